/* SPDX-License-Identifier: Apache-2.0 */
/* The files of AWS tools. A line that is indented goes on from the setting before it ("s3 =" has
 * such lines) and means nothing here; of a setting that is there twice the last counts. */
#include "store/s3/credentials/source.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)

/* ---- lines ---- */

/* A piece of the file. */
struct piece {
    const char *at;
    size_t n;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct piece trim(struct piece p)
{
    while (p.n > 0 && is_blank(p.at[0])) {
        p.at++;
        p.n--;
    }
    while (p.n > 0 && is_blank(p.at[p.n - 1]))
        p.n--;
    return p;
}

static bool is_text(struct piece p, const char *text)
{
    return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

/* A comment may follow a value after a blank; keys have no blanks. */
static struct piece without_comment(struct piece p)
{
    for (size_t i = 1; i < p.n; i++) {
        if ((p.at[i] != '#' && p.at[i] != ';') || !is_blank(p.at[i - 1])) continue;
        p.n = i;
        break;
    }
    return trim(p);
}

static bool next_line(struct piece *rest, struct piece *line)
{
    if (rest->n == 0) return false;
    const char *end = memchr(rest->at, '\n', rest->n);
    line->at = rest->at;
    line->n = end == NULL ? rest->n : (size_t)(end - rest->at);
    size_t taken = end == NULL ? line->n : line->n + 1;
    rest->at += taken;
    rest->n -= taken;
    return true;
}

/* ---- sections and settings ---- */

/* "[NAME]", in the configuration "[profile NAME]" and "[default]"; the name may be in quotes. */
static bool is_section_of(struct piece inner, const char *name, bool is_config)
{
    static const char word[] = "profile";
    const size_t word_n = sizeof word - 1;
    inner = trim(inner);
    bool named = is_config && inner.n > word_n && memcmp(inner.at, word, word_n) == 0 && is_blank(inner.at[word_n]);
    if (is_config && !named) return is_text(inner, "default") && strcmp(name, "default") == 0;
    if (named) inner = trim((struct piece){ inner.at + word_n, inner.n - word_n });
    if (inner.n >= 2 && (inner.at[0] == '"' || inner.at[0] == '\'') && inner.at[inner.n - 1] == inner.at[0])
        inner = (struct piece){ inner.at + 1, inner.n - 2 };
    return is_text(inner, name);
}

static bool take_value(struct piece value, char *out, size_t size)
{
    if (value.n >= size) return false;
    memcpy(out, value.at, value.n);
    out[value.n] = '\0';
    return true;
}

static const char *const roles[] = { "role_arn",      "web_identity_token_file", "sso_session",
                                     "sso_start_url", "sso_account_id",          "login_session" };
static const char *const others[] = { "source_profile", "credential_source", "credential_process" };

static void note_unsupported(struct s3_profile *p, const char *name)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(name, roles[i]) == 0) snprintf(p->role, sizeof p->role, "%s", roles[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0) snprintf(p->others, sizeof p->others, "%s", others[i]);
}

static bool take_setting(struct s3_profile *p, struct piece name, struct piece value)
{
    char lower[32];
    if (name.n >= sizeof lower) return true; /* none of ours is so long */
    for (size_t i = 0; i < name.n; i++)
        lower[i] = name.at[i] >= 'A' && name.at[i] <= 'Z' ? (char)(name.at[i] + ('a' - 'A')) : name.at[i];
    lower[name.n] = '\0';
    if (strcmp(lower, "aws_access_key_id") == 0) return take_value(value, p->access, sizeof p->access);
    if (strcmp(lower, "aws_secret_access_key") == 0) return take_value(value, p->secret, sizeof p->secret);
    if (strcmp(lower, "aws_session_token") == 0) return take_value(value, p->token, sizeof p->token);
    if (value.n > 0) note_unsupported(p, lower);
    return true;
}

/* Where in the file we are. */
struct reading {
    const char *name;
    bool is_config, in_section, in_ours, after_setting;
};

/* NULL, or what is wrong with the line. */
static const char *read_line(struct reading *r, struct piece line, struct s3_profile *out)
{
    struct piece text = trim(line);
    if (text.n == 0 || text.at[0] == '#' || text.at[0] == ';') return NULL;
    if (memchr(text.at, '\0', text.n) != NULL) return "it has a NUL byte";
    if (is_blank(line.at[0]) && r->after_setting) return NULL;
    if (text.at[0] == '[') {
        const char *end = memchr(text.at, ']', text.n);
        if (end == NULL) return "the section has no \"]\"";
        r->in_ours = is_section_of((struct piece){ text.at + 1, (size_t)(end - text.at) - 1 }, r->name, r->is_config);
        r->in_section = true;
        r->after_setting = false;
        out->found |= r->in_ours;
        return NULL;
    }
    const char *equals = memchr(text.at, '=', text.n);
    if (equals == NULL || equals == text.at) return "neither a section nor a setting";
    if (!r->in_section) return "a setting before the first section";
    r->after_setting = true;
    if (!r->in_ours) return NULL;
    struct piece name = trim((struct piece){ text.at, (size_t)(equals - text.at) });
    struct piece value = trim((struct piece){ equals + 1, text.n - (size_t)(equals - text.at) - 1 });
    return take_setting(out, name, without_comment(value)) ? NULL : "the value is too long";
}

int rp_s3_profile_parse(const char *text, size_t n, const char *name, bool is_config, struct s3_profile *out,
                        struct rp_error *err)
{
    static const char bom[] = "\xef\xbb\xbf"; /* some editors begin a file with it */
    struct s3_profile found = { 0 };
    struct reading reading = { .name = name, .is_config = is_config };
    struct piece rest = { text, n }, line;
    if (n >= 3 && memcmp(text, bom, 3) == 0) rest = (struct piece){ text + 3, n - 3 };
    for (size_t number = 1; next_line(&rest, &line); number++) {
        const char *wrong = read_line(&reading, line, &found);
        if (wrong == NULL) continue;
        explicit_bzero(&found, sizeof found);
        return rp_error_set(err, RP_ECONFIG, "line %zu: %s", number, wrong);
    }
    *out = found;
    explicit_bzero(&found, sizeof found);
    return 0;
}

/* ---- files ---- */

int rp_s3_file_read(const char *path, size_t max, char **out, size_t *n, struct rp_error *err)
{
    /* A pipe without a writer would keep us here. */
    RP_CLEANUP(rp_fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) return rp_error_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return rp_error_set(err, RP_ECONFIG, "%s: not a regular file", path);
    if ((uint64_t)st.st_size > max) return rp_error_set(err, RP_ECONFIG, "%s: more than %zu bytes", path, max);
    RP_CLEANUP(rp_freep) char *text = malloc(max + 1);
    size_t have = 0;
    if (text == NULL) return rp_error_set(err, RP_ENOMEM, "%s: out of memory", path);
    for (;;) {
        ssize_t got = read(fd, text + have, max + 1 - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return rp_error_errno(err, errno, "%s", path);
        if (got == 0) break;
        have += (size_t)got;
        if (have > max) return rp_error_set(err, RP_ECONFIG, "%s: more than %zu bytes", path, max);
    }
    text[have] = '\0';
    *out = text;
    *n = have;
    text = NULL;
    return 0;
}

static int home(char *out, size_t size, struct rp_error *err)
{
    const char *set = rp_s3_environment("HOME");
    char room[4096];
    struct passwd entry, *found = NULL;
    if (set == NULL && getpwuid_r(getuid(), &entry, room, sizeof room, &found) == 0 && found != NULL)
        set = found->pw_dir;
    if (set == NULL) return rp_error_set(err, RP_ENOTFOUND, "no home directory");
    return snprintf(out, size, "%s", set) < (int)size ? 0 : rp_error_set(err, RP_ENOTFOUND, "HOME is too long");
}

/* One of the two files. */
struct profile_file {
    const char *variable, *standard; /* names it; in the home directory otherwise */
    bool is_config, is_chosen;       /* by the variable */
    char path[PATH_MAX];
    struct s3_profile says;
};

static int find_path(struct profile_file *file, struct rp_error *err)
{
    char at[PATH_MAX] = "";
    const char *set = rp_s3_environment(file->variable);
    file->is_chosen = set != NULL;
    const char *below = set == NULL ? file->standard : strncmp(set, "~/", 2) == 0 ? set + 2 : NULL;
    if (below != NULL) {
        int r = home(at, sizeof at, err);
        if (r < 0) return r;
    }
    int n = below != NULL ? snprintf(file->path, sizeof file->path, "%s/%s", at, below)
                          : snprintf(file->path, sizeof file->path, "%s", set);
    return n < (int)sizeof file->path ? 0 : rp_error_set(err, RP_ECONFIG, "%s: the path is too long", file->variable);
}

/* A file that is absent, or is not ours to read where nobody asked for it, says nothing. */
static int read_file(struct profile_file *file, const char *name, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) char *text = NULL;
    size_t n = 0;
    int r = find_path(file, err);
    if (r == 0) r = rp_s3_file_read(file->path, FILE_BYTES_MAX, &text, &n, err);
    if (r == RP_ENOTFOUND || (r == RP_EDENIED && !file->is_chosen)) {
        rp_error_clear(err);
        return 0;
    }
    if (r < 0) return r == RP_ENOMEM ? r : rp_error_wrap(err, RP_ECONFIG, "profile %.40s", name);
    r = rp_s3_profile_parse(text, n, name, file->is_config, &file->says, err);
    if (text != NULL) explicit_bzero(text, n);
    return r < 0 ? rp_error_wrap(err, r, "%s", file->path) : 0;
}

static int unsupported(const struct profile_file *file, const char *name, const char *setting, struct rp_error *err)
{
    return rp_error_advise(err, RP_ECONFIG,
                           "only keys themselves are read from a profile (aws_access_key_id, aws_secret_access_key, "
                           "aws_session_token): add a profile that has them, or set access_key and secret_key",
                           "profile %.40s in %s has %s, which is not supported", name, file->path, setting);
}

static int choose(struct profile_file files[2], const char *name, bool is_named, struct s3_keys *out,
                  struct rp_error *err)
{
    for (size_t i = 0; i < 2; i++)
        if (files[i].says.role[0] != 0) return unsupported(&files[i], name, files[i].says.role, err);
    for (size_t i = 0; i < 2; i++) {
        const struct s3_profile *p = &files[i].says;
        char where[160];
        snprintf(where, sizeof where, "profile %.40s in %.100s", name, files[i].path);
        if (p->access[0] != 0 || p->secret[0] != 0)
            return rp_s3_keys_make(where, p->access, p->secret, p->token, INT64_MAX, out, err);
    }
    for (size_t i = 0; i < 2; i++)
        if (files[i].says.others[0] != 0) return unsupported(&files[i], name, files[i].says.others, err);
    bool there = files[0].says.found || files[1].says.found;
    if (!is_named) return rp_error_set(err, RP_ENOTFOUND, there ? "no keys in profile default" : "no profile default");
    return rp_error_advise(err, RP_ECONFIG,
                           "add aws_access_key_id and aws_secret_access_key to it there, or choose another profile",
                           there ? "profile %.40s has no keys: looked in %.150s and %.150s"
                                 : "no profile %.40s: looked in %.150s and %.150s",
                           name, files[0].path, files[1].path);
}

int rp_s3_keys_of_profile(const char *name, struct s3_keys *out, char used[64], struct rp_error *err)
{
    struct profile_file files[2] = {
        { .variable = "AWS_SHARED_CREDENTIALS_FILE", .standard = ".aws/credentials" },
        { .variable = "AWS_CONFIG_FILE", .standard = ".aws/config", .is_config = true },
    };
    const char *wanted = name[0] != 0 ? name : rp_s3_environment("AWS_PROFILE");
    bool is_named = wanted != NULL;
    if (wanted == NULL) wanted = "default";
    int r = read_file(&files[0], wanted, err);
    if (r == 0) r = read_file(&files[1], wanted, err);
    if (r == 0) r = choose(files, wanted, is_named, out, err);
    if (r == 0) snprintf(used, 64, "%s", wanted);
    explicit_bzero(files, sizeof files);
    return r;
}
