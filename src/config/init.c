/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the commented file of `reprieve init`, from the table of settings.
 * A line "#key: value" is a default that may be un-commented; a line "# text" is for people. */
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "config/config.h"
#include "config/form.h"
#include "config/path.h"
#include "config/settings.h"
#include "config/yaml.h"

#define LINE_COLUMNS   100
#define INIT_BYTES_MAX (RP_YAML_BYTES_MAX)

struct printer {
    struct rp_buf *out;
    bool example; /* all of it stays a comment, two columns in */
};

static void begin_line(const struct printer *p, int indent)
{
    if (p->example)
        rp_buf_fmt(p->out, "  # %*s", indent - 2, "");
    else
        rp_buf_fmt(p->out, "%*s", indent, "");
}

/* Words filled into comment lines. */
static void add_comment(const struct printer *p, int indent, const char *text)
{
    int column = 0;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column > 0 && column + 1 + n > LINE_COLUMNS) {
            rp_buf_char(p->out, '\n');
            column = 0;
        }
        if (column == 0) {
            begin_line(p, indent);
            rp_buf_char(p->out, '#');
            column = indent + 1;
        }
        rp_buf_fmt(p->out, " %.*s", n, text);
        column += 1 + n;
        text += n + (text[n] == ' ');
    }
    rp_buf_char(p->out, '\n');
}

/* Double quotes unless the text is a word or a number that every reader of YAML takes the same
 * way. */
static void add_quoted(struct rp_buf *out, const char *text)
{
    RP_ASSERT(text != NULL);
    if (*text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(text)) {
        rp_buf_str(out, text);
        return;
    }
    rp_buf_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') rp_buf_char(out, '\\');
        rp_buf_char(out, *text);
    }
    rp_buf_char(out, '"');
}

static void add_help(const struct printer *p, const struct rp_setting *s, int indent)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(2048);
    rp_buf_str(&text, s->help);
    if (!rp_setting_is_group(s)) {
        rp_buf_str(&text, " Takes ");
        rp_setting_expected(s, &text);
        rp_buf_fmt(&text, "%s", rp_setting_is_secret(s) ? "; or use " : ".");
        if (rp_setting_is_secret(s)) rp_buf_fmt(&text, "%s_file: PATH of a file that holds it.", rp_setting_key(s));
    }
    if (text.failed) p->out->failed = text.failed;
    add_comment(p, indent, rp_buf_text(&text));
}

static void add_items_help(const struct printer *p, const struct rp_setting *list, int indent)
{
    add_comment(p, indent, "The keys of an item:");
    for (size_t i = 0; i < rp_settings_count; i++) {
        if (!rp_setting_is_member(&rp_settings[i], list)) continue;
        begin_line(p, indent);
        rp_buf_fmt(p->out, "#   %-9s %s\n", rp_setting_key(&rp_settings[i]), rp_settings[i].help);
    }
    begin_line(p, indent);
    rp_buf_fmt(p->out, "# Example: %s: %s\n", rp_setting_key(list), list->example);
}

/* What is asked for in place of a default. */
struct given {
    const char *type; /* of the entry; "": entries have no types */
    const char *value;
    const char *name;     /* of the entry */
    const char *endpoint; /* of a bucket; NULL: none */
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ${MEDIA_ACCESS_KEY} */
static void add_variable(struct rp_buf *out, const char *name, const char *key)
{
    rp_buf_str(out, "\"${");
    for (const char *parts[] = { name, "_", key, NULL }, **part = parts; *part; part++)
        for (const char *c = *part; *c; c++)
            rp_buf_char(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c == '-' ? '_' : *c);
    rp_buf_str(out, "}\"");
}

/* Whether the setting was asked for, or a person should see it in force. */
static bool is_given(const struct rp_setting *s, const struct given *given)
{
    const char *key = rp_setting_key(s);
    if (s->required) return true;
    if (!given || strcmp(given->type, "s3") != 0) return false;
    return strcmp(key, "type") == 0 || strcmp(key, "mode") == 0 || (strcmp(key, "endpoint") == 0 && given->endpoint) ||
           ends_with(s->path, "access_key") || ends_with(s->path, "secret_key");
}

static void add_given(const struct printer *p, const struct rp_setting *s, const struct given *given)
{
    RP_ASSERT(given != NULL); /* only entries have settings that must be given */
    const char *key = rp_setting_key(s);
    if (s->required)
        add_quoted(p->out, given->value);
    else if (strcmp(key, "type") == 0)
        add_quoted(p->out, given->type);
    else if (strcmp(key, "endpoint") == 0)
        add_quoted(p->out, given->endpoint);
    else if (rp_setting_is_secret(s))
        add_variable(p->out, given->name, key);
    else
        add_quoted(p->out, s->fallback);
}

static void add_members(const struct printer *p, const struct rp_setting *parent, int indent,
                        const struct given *given);

static void add_setting(const struct printer *p, const struct rp_setting *s, int indent, const struct given *given)
{
    if (s->type == RP_SETTING_SECTION) { /* of an entry; one whose members are all commented out means none */
        add_help(p, s, indent);
        begin_line(p, indent);
        rp_buf_fmt(p->out, "%s:\n", rp_setting_key(s));
        add_members(p, s, indent + 2, given);
        return;
    }
    bool open = is_given(s, given);
    add_help(p, s, indent);
    if (s->type == RP_SETTING_LIST) add_items_help(p, s, indent);
    begin_line(p, indent);
    if (!open && !p->example) rp_buf_char(p->out, '#');
    rp_buf_fmt(p->out, "%s: ", rp_setting_key(s));
    bool in_brackets = s->entries || s->type == RP_SETTING_NETWORKS || s->type == RP_SETTING_EVENTS;
    if (in_brackets || (s->type == RP_SETTING_CODES && !open))
        rp_buf_str(p->out, s->fallback);
    else if (open)
        add_given(p, s, given);
    else
        add_quoted(p->out, s->fallback);
    rp_buf_char(p->out, '\n');
}

static void add_members(const struct printer *p, const struct rp_setting *parent, int indent, const struct given *given)
{
    for (size_t i = 0; i < rp_settings_count; i++)
        if (rp_setting_is_member(&rp_settings[i], parent) &&
            rp_setting_is_for(&rp_settings[i], given ? given->type : ""))
            add_setting(p, &rp_settings[i], indent, given);
}

static const char *example_value(const struct rp_setting *map, const char *type)
{
    for (size_t i = 0; i < rp_settings_count; i++)
        if (rp_setting_is_member(&rp_settings[i], map) && rp_settings[i].required &&
            rp_setting_is_for(&rp_settings[i], type))
            return rp_settings[i].example;
    return "";
}

#define BUCKET "s3://"

static bool is_bucket(const char *value)
{
    return strncmp(value, BUCKET, strlen(BUCKET)) == 0;
}

static void add_map(const struct printer *p, const struct rp_setting *map, const struct rp_pair_text *pairs, size_t n,
                    const char *endpoint)
{
    bool typed = map->entries->type_at != 0;
    for (size_t i = 0; i < n; i++) {
        bool bucket = typed && is_bucket(pairs[i].value);
        struct given given = { .type = !typed   ? ""
                                       : bucket ? "s3"
                                                : "fs",
                               .value = pairs[i].value + (bucket ? strlen(BUCKET) : 0),
                               .name = pairs[i].name,
                               .endpoint = endpoint };
        rp_buf_fmt(p->out, "%s  %s:\n", i > 0 ? "\n" : "", pairs[i].name);
        add_members(p, map, 4, &given);
    }
    if (n > 0) return;
    struct printer example = { .out = p->out, .example = true };
    struct given given = { .type = typed ? "fs" : "" };
    given.value = example_value(map, given.type);
    rp_buf_fmt(p->out, "  # %s:\n", map->entries->example);
    add_members(&example, map, 4, &given);
}

static void add_top(const struct printer *p, const struct rp_setting *s, const struct rp_config_init *init)
{
    rp_buf_char(p->out, '\n');
    if (!rp_setting_is_group(s) || s->type == RP_SETTING_LIST) {
        add_setting(p, s, 0, NULL);
        return;
    }
    add_help(p, s, 0);
    rp_buf_fmt(p->out, "%s:\n", s->path);
    if (!s->entries)
        add_members(p, s, 2, NULL);
    else if (strcmp(s->path, "stores") == 0)
        add_map(p, s, init->stores, init->n_stores, init->endpoint);
    else if (!strcmp(s->path, "databases"))
        add_map(p, s, init->databases, init->n_databases, NULL);
    else
        add_map(p, s, NULL, 0, NULL);
}

static int check_names(const char *what, const struct rp_pair_text *pairs, size_t n, size_t most, struct rp_error *err)
{
    if (n > most) return rp_error_set(err, RP_EINVAL, "expected at most %zu %ss, found %zu", most, what, n);
    for (size_t i = 0; i < n; i++) {
        if (!rp_form_is_name(pairs[i].name))
            return rp_error_set(err, RP_EINVAL, "%s '%.63s': expected %s", what, pairs[i].name, RP_FORM_NAME_RULE);
        for (size_t j = 0; j < i; j++)
            if (strcmp(pairs[i].name, pairs[j].name) == 0)
                return rp_error_set(err, RP_EINVAL, "%s '%s': expected once, found twice", what, pairs[i].name);
    }
    return 0;
}

static bool is_one_line(const char *text)
{
    size_t n = strlen(text);
    if (n == 0 || n > RP_PATH_BYTES_MAX) return false;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) return false;
    return true;
}

/* ${NAME} may stand for anything until the file is read. */
static int check_values(const struct rp_config_init *init, struct rp_error *err)
{
    size_t buckets = 0;
    for (size_t i = 0; i < init->n_stores; i++) {
        const char *value = init->stores[i].value;
        bool bucket = is_bucket(value);
        const char *path = value + (bucket ? strlen(BUCKET) : 0);
        buckets += bucket;
        if (!is_one_line(path) || strstr(path, "://") || (bucket && strchr(path, '/')))
            return rp_error_set(err, RP_EINVAL, "store '%s': expected a directory, or " BUCKET "BUCKET",
                                init->stores[i].name);
    }
    if (init->endpoint && buckets == 0)
        return rp_error_set(err, RP_EINVAL, "an endpoint is for stores in " BUCKET ", and none was asked for");
    if (init->endpoint && !rp_form_is_web(init->endpoint))
        return rp_error_set(err, RP_EINVAL, "the endpoint: expected https://HOST or http://HOST, with port if need be");
    for (size_t i = 0; i < init->n_databases; i++) {
        const char *url = init->databases[i].value;
        if (!is_one_line(url) || (!strstr(url, "${") && !rp_form_is_url(url)))
            return rp_error_set(err, RP_EINVAL, "database '%s': expected sqlite:PATH or postgres://USER@HOST/DATABASE",
                                init->databases[i].name);
    }
    return 0;
}

static void add_file(const struct rp_config_init *init, struct rp_buf *out)
{
    struct printer p = { .out = out };
    rp_buf_str(out,
               "# The configuration of Reprieve.\n#\n"
               "# Every setting stands here. A line that begins with # and a key is a default: take the # away to\n"
               "# change it. ${NAME} in a value is an environment variable; $${ is a literal ${. Relative paths\n"
               "# begin at the directory of this file. Durations: 250ms, 90s, 15m, 12h, 5d, 2w.\n");
    for (size_t i = 0; i < rp_settings_count; i++)
        if (rp_setting_is_member(&rp_settings[i], NULL)) add_top(&p, &rp_settings[i], init);
}

/* Bytes that are not UTF-8 cannot stand in YAML in any spelling. */
static int check_yaml(const struct rp_buf *text, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena scratch = RP_ARENA((size_t)16 << 20);
    struct rp_yaml *root = NULL;
    int r = rp_yaml_parse(rp_buf_text(text), text->len, "reprieve.yaml", &scratch, &root, err);
    if (r == 0 || r == RP_ENOMEM) return r;
    return rp_error_set(err, RP_EINVAL, "a path or URL cannot be written into the file: expected text in UTF-8");
}

int rp_config_write_init(const struct rp_config_init *init, struct rp_buf *out, struct rp_error *err)
{
    int r = check_names("store", init->stores, init->n_stores, RP_STORES_MAX, err);
    if (r == 0) r = check_names("database", init->databases, init->n_databases, RP_DATABASES_MAX, err);
    if (r == 0) r = check_values(init, err);
    if (r < 0) return r;
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(INIT_BYTES_MAX);
    add_file(init, &text);
    if (text.failed) return rp_error_set(err, text.failed, "the configuration file does not fit into memory");
    r = check_yaml(&text, err);
    if (r == 0 && rp_buf_add(out, rp_buf_text(&text), text.len) < 0)
        r = rp_error_set(err, out->failed, "the configuration file does not fit into its buffer");
    return r;
}
