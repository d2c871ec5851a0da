/* SPDX-License-Identifier: Apache-2.0 */
#include "config/field.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/hex.h"
#include "base/text/size.h"
#include "base/time.h"
#include "base/url.h"
#include "config/config.h"
#include "config/form.h"
#include "config/path.h"
#include "config/settings.h"

static int no_memory(const struct rp_field_source *from, struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "%s:%d: %s: no memory", from->file, from->line, from->key);
}

static int refuse(const struct rp_field_source *from, const char *what, struct rp_error *err)
{
    return rp_error_set(err, RP_ECONFIG, "%s:%d: %s: %s", from->file, from->line, from->key, what);
}

static void add_found(const struct rp_setting *s, const char *raw, struct rp_buf *out)
{
    if (!*raw) {
        rp_buf_str(out, "an empty text");
    } else if (s->type == RP_SETTING_WEB && rp_form_has_user(raw)) {
        rp_buf_str(out, "a user in it");
    } else if (rp_setting_is_secret(s)) {
        rp_buf_str(out, "something else (not shown: it may hold a password)");
    } else {
        rp_buf_char(out, '\'');
        for (size_t i = 0; raw[i] && i < 40; i++)
            rp_buf_char(out, raw[i] >= ' ' && raw[i] <= '~' ? raw[i] : '?');
        rp_buf_str(out, strlen(raw) > 40 ? "...'" : "'");
    }
}

int rp_field_mismatch(const struct rp_setting *s, const struct rp_field_source *from, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(512);
    rp_buf_str(&text, "expected ");
    rp_setting_expected(s, &text);
    rp_buf_str(&text, ", found ");
    add_found(s, from->raw, &text);
    return refuse(from, rp_buf_text(&text), err);
}

static size_t environment_name_length(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return rp_is_digit(*text) ? 0 : strspn(text, letters);
}

/* Adds the value of the ${NAME} that begins at *at, and moves past it. */
static int expand_one(const struct rp_field_source *from, const char **at, struct rp_buf *out, struct rp_error *err)
{
    char name[128];
    size_t n = environment_name_length(*at + 2);
    if (n == 0 || n >= sizeof(name) || (*at)[2 + n] != '}')
        return refuse(from,
                      "expected ${NAME} of an environment variable, found ${ with something else; "
                      "write $${ for a literal ${",
                      err);
    memcpy(name, *at + 2, n);
    name[n] = '\0';
    const char *value = getenv(name);
    if (!value)
        return rp_error_set(err, RP_ECONFIG, "%s:%d: %s: expected the environment variable %s, found it unset",
                            from->file, from->line, from->key, name);
    rp_buf_str(out, value);
    *at += 2 + n + 1;
    return 0;
}

static int expand_into(const struct rp_field_source *from, struct rp_buf *out, struct rp_error *err)
{
    const char *at = from->raw;
    while (*at) {
        if (strncmp(at, "$${", 3) == 0) {
            rp_buf_str(out, "${");
            at += 3;
        } else if (strncmp(at, "${", 2) == 0) {
            int r = expand_one(from, &at, out, err);
            if (r < 0) return r;
        } else {
            rp_buf_char(out, *at++);
        }
    }
    return 0;
}

int rp_field_expand(const struct rp_field_source *from, const char **out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_FIELD_BYTES_MAX);
    int r = expand_into(from, &text, err);
    if (r < 0) return r;
    if (text.failed == RP_ETOOBIG) return refuse(from, "expected at most 65536 bytes, found more", err);
    const char *copy = text.failed ? NULL : rp_arena_copy(from->arena, rp_buf_text(&text), text.len);
    if (!copy) return no_memory(from, err);
    *out = copy;
    return 0;
}

static int cannot_read(const struct rp_field_source *from, const char *path, const char *why, struct rp_error *err)
{
    return rp_error_set(err, RP_ECONFIG, "%s:%d: %s: expected a file that can be read, found '%s': %s", from->file,
                        from->line, from->key, path, why);
}

/* Not blocking: a FIFO in the file's place must not stop the program before its type is seen. */
static int open_regular(const struct rp_field_source *from, const char *path, int *out, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return cannot_read(from, path, strerror(errno), err);
    struct stat st;
    if (fstat(fd, &st) < 0) return cannot_read(from, path, strerror(errno), err);
    if (!S_ISREG(st.st_mode)) return cannot_read(from, path, "not a regular file", err);
    *out = fd;
    fd = -1;
    return 0;
}

int rp_field_read_secret(const struct rp_field_source *from, const char *path, const char **out, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int fd = -1;
    int r = open_regular(from, path, &fd, err);
    if (r < 0) return r;
    char *text = rp_arena_alloc(from->arena, RP_FIELD_BYTES_MAX + 2);
    if (!text) return no_memory(from, err);
    size_t n = 0;
    while (n <= RP_FIELD_BYTES_MAX) {
        ssize_t got = read(fd, text + n, RP_FIELD_BYTES_MAX + 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_read(from, path, strerror(errno), err);
        if (got == 0) break;
        n += (size_t)got;
    }
    if (n > RP_FIELD_BYTES_MAX) return cannot_read(from, path, "more than 65536 bytes", err);
    if (memchr(text, '\0', n)) return cannot_read(from, path, "a NUL character in it", err);
    if (n > 0 && text[n - 1] == '\n') n--;
    text[n] = '\0';
    *out = text;
    return 0;
}

/* Its bounds, if there are any, are bytes. */
static bool fits_text(const struct rp_setting *s, const char *text)
{
    size_t n = strlen(text);
    if (!rp_form_fits(s->type, text)) return false;
    if (s->most == 0) return true;
    if (n < (size_t)s->least || n > (size_t)s->most) return false;
    return s->type == RP_SETTING_SQL || rp_form_is_line(text);
}

/* Decimal digits only: 010, 0x10 and 1_000 mean different numbers to different readers of YAML. */
static bool parse_integer(const char *text, int64_t *out)
{
    size_t n = strlen(text);
    if (n == 0 || n > 18 || strspn(text, "0123456789") != n || (text[0] == '0' && n > 1)) return false;
    int64_t value = 0;
    for (; *text; text++)
        value = value * 10 + (*text - '0');
    *out = value;
    return true;
}

static bool parse_number(const struct rp_setting *s, const char *text, int64_t *out)
{
    if (s->type == RP_SETTING_INTEGER) {
        if (!parse_integer(text, out)) return false;
    } else if (s->type == RP_SETTING_SIZE) {
        if (rp_size_parse(text, out, NULL) < 0) return false;
    } else if (s->may_be_forever && strcmp(text, "forever") == 0) {
        *out = RP_FOREVER_MS;
        return true;
    } else if (rp_duration_parse(text, out, NULL) < 0) {
        return false;
    }
    if (s->lifted_by) return *out >= 0 && *out <= RP_SETTING_LIFTED_MOST_MS;
    return *out >= s->least && *out <= s->most;
}

static bool parse_choice(const struct rp_setting *s, const char *text, int *out)
{
    for (int i = 0; s->choices[i]; i++) {
        if (strcmp(text, s->choices[i]) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

/* "[410, 404]". 409 and 423 say no, whatever else they say. */
static bool parse_codes(const struct rp_setting *s, const char *text, struct rp_codes *out)
{
    struct rp_codes codes = { 0 };
    if (*text != '[') return false;
    for (text++; *text != ']';) {
        char *end;
        long code = strtol(text, &end, 10);
        if (end == text || codes.n == RP_CODES_MAX || code < s->least || code > s->most || code == 409 || code == 423)
            return false;
        codes.at[codes.n++] = (int32_t)code;
        text = end + strspn(end, " ");
        if (*text == ',')
            text += 1 + strspn(text + 1, " ");
        else if (*text != ']')
            return false;
    }
    *out = codes;
    return text[1] == '\0';
}

static bool parse_bool(const char *text, bool *out)
{
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0) return false;
    *out = yes;
    return true;
}

/* An empty default marks a URL that may be left out. */
static int parse_url(const struct rp_setting *s, const char *text, const struct rp_field_source *from, const char **out,
                     struct rp_error *err)
{
    bool may_be_empty = s->fallback && !*s->fallback;
    if (!*text && may_be_empty) {
        *out = "";
        return 0;
    }
    if (!rp_form_is_url(text) || strlen(text) > RP_PATH_BYTES_MAX || !rp_form_is_line(text))
        return rp_field_mismatch(s, from, err);
    const char *file = rp_sqlite_path(text);
    if (!file) {
        *out = text;
        return 0;
    }
    const char *path = rp_path_join(from->dir, file, from->arena);
    const char *url = path ? rp_arena_fmt(from->arena, RP_SQLITE_SCHEME "%s", path) : NULL;
    if (!url) return no_memory(from, err);
    *out = url;
    return 0;
}

static int parse_path(const struct rp_setting *s, const char *text, const struct rp_field_source *from,
                      const char **out, struct rp_error *err)
{
    bool none = s->type != RP_SETTING_PATH && !*text;
    if (none || (s->type == RP_SETTING_LOG && strcmp(text, "-") == 0)) {
        *out = text;
        return 0;
    }
    if (!*text || strlen(text) > RP_PATH_BYTES_MAX || !rp_form_is_line(text)) return rp_field_mismatch(s, from, err);
    const char *path = rp_path_join(from->dir, text, from->arena);
    if (!path) return no_memory(from, err);
    *out = path;
    return 0;
}

static bool is_path(const struct rp_setting *s)
{
    return s->type == RP_SETTING_PATH || s->type == RP_SETTING_FOLDER || s->type == RP_SETTING_LOG ||
           s->type == RP_SETTING_FILE;
}

static int set_text(const struct rp_setting *s, const char *text, const struct rp_field_source *from, void *field,
                    struct rp_error *err)
{
    const char *value = NULL;
    int r = 0, index = 0;
    if (s->type == RP_SETTING_URL) {
        r = parse_url(s, text, from, &value, err);
    } else if (is_path(s)) {
        r = parse_path(s, text, from, &value, err);
    } else if (s->type == RP_SETTING_CHOICE) {
        if (!parse_choice(s, text, &index)) return rp_field_mismatch(s, from, err);
        value = s->choices[index];
    } else {
        value = s->type == RP_SETTING_NETWORKS && strcmp(text, "[]") == 0 ? "" : text;
        if (!fits_text(s, value)) return rp_field_mismatch(s, from, err);
    }
    if (r == 0) memcpy(field, &value, sizeof(value));
    return r;
}

int rp_field_set(const struct rp_setting *s, const char *text, const struct rp_field_source *from, void *base,
                 struct rp_error *err)
{
    RP_ASSERT(!rp_setting_is_group(s));
    char *field = (char *)base + s->offset;
    int64_t number = 0;
    int index = 0;
    bool yes = false;
    struct rp_codes codes;
    switch (s->type) {
    case RP_SETTING_INTEGER:
    case RP_SETTING_DURATION:
    case RP_SETTING_SIZE:
        if (!parse_number(s, text, &number)) return rp_field_mismatch(s, from, err);
        memcpy(field, &number, sizeof(number));
        return 0;
    case RP_SETTING_CODES:
        if (!parse_codes(s, text, &codes)) return rp_field_mismatch(s, from, err);
        memcpy(field, &codes, sizeof(codes));
        return 0;
    case RP_SETTING_BOOL:
        if (!parse_bool(text, &yes)) return rp_field_mismatch(s, from, err);
        memcpy(field, &yes, sizeof(yes));
        return 0;
    case RP_SETTING_ENUM:
        if (!parse_choice(s, text, &index)) return rp_field_mismatch(s, from, err);
        memcpy(field, &index, sizeof(index));
        return 0;
    default:
        return set_text(s, text, from, field, err);
    }
}

int rp_field_check_lifted(const struct rp_setting *s, const struct rp_field_source *from, const void *base,
                          struct rp_error *err)
{
    RP_ASSERT(s->lifted_by && s->type == RP_SETTING_DURATION);
    int64_t number;
    bool lifted;
    memcpy(&number, (const char *)base + s->offset, sizeof(number));
    memcpy(&lifted, (const char *)base + s->lifted_by, sizeof(lifted));
    if (lifted || (number >= s->least && number <= s->most)) return 0;
    return rp_field_mismatch(s, from, err);
}
