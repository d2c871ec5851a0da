/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/network.h"
#include "base/text/buf.h"
#include "base/text/nearest.h"
#include "base/url.h"
#include "config/config.h"
#include "config/events.h"
#include "config/field.h"
#include "config/form.h"
#include "config/path.h"
#include "config/settings.h"
#include "config/yaml.h"

/* A section, an entry or an item that is being filled. */
struct scope {
    const struct rp_setting *setting; /* NULL: the top */
    char *base;                       /* what offsets count from */
    const char *key;                  /* "" at the top */
};

int rp_load_refuse(const struct rp_load *load, int line, struct rp_error *err, const char *fmt, ...)
{
    char words[sizeof err->text];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    return rp_error_set(err, RP_ECONFIG, "%s:%d: %s", load->file, line, words);
}

static int no_memory(const struct rp_load *load, struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "%s: no memory for the configuration", load->file);
}

/* Only for error texts, so that without memory a shorter one will do. */
static const char *join_key(const struct rp_load *load, const struct scope *scope, const char *key)
{
    if (!scope->key[0]) return key;
    const char *joined = rp_arena_fmt(load->scratch, "%s.%s", scope->key, key);
    return joined ? joined : key;
}

static struct rp_field_source source_of(const struct rp_load *load, const struct rp_yaml *node, const char *key)
{
    return (struct rp_field_source){ .file = load->file,
                                     .line = node->line,
                                     .key = key,
                                     .raw = node->kind == RP_YAML_SCALAR ? node->text : "",
                                     .dir = load->dir,
                                     .arena = load->arena };
}

static int wrong_kind(const struct rp_load *load, const struct rp_setting *s, const struct rp_yaml *node,
                      const char *key, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf expected = RP_BUF(512);
    rp_setting_expected(s, &expected);
    return rp_load_refuse(load, node->line, err, "%s: expected %s, found %s", key, rp_buf_text(&expected),
                          rp_yaml_kind_name(node));
}

static int load_default(const struct rp_load *load, const struct rp_setting *s, char *base, struct rp_error *err)
{
    struct rp_field_source from = {
        .file = load->file, .key = s->path, .raw = s->fallback, .dir = load->dir, .arena = load->arena
    };
    return rp_field_set(s, s->fallback, &from, base, err);
}

int rp_load_defaults(const struct rp_load *load, const struct rp_setting *scope, void *base, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < rp_settings_count; i++) {
        const struct rp_setting *s = &rp_settings[i];
        if (!rp_setting_is_member(s, scope)) continue;
        if (s->type == RP_SETTING_SECTION)
            r = rp_load_defaults(load, s, base, err);
        else if (!s->entries && s->fallback)
            r = load_default(load, s, base, err);
    }
    return r;
}

static int load_secret_file(const struct rp_load *load, const struct rp_setting *s, const struct rp_yaml *node,
                            const char *key, char *base, struct rp_error *err)
{
    struct rp_field_source from = source_of(load, node, key);
    if (node->kind != RP_YAML_SCALAR || node->null || !*node->text)
        return rp_load_refuse(load, node->line, err, "%s: expected the path of a file, found %s", key,
                              node->kind == RP_YAML_SCALAR ? "nothing" : rp_yaml_kind_name(node));
    const char *name = NULL, *secret = NULL;
    int r = rp_field_expand(&from, &name, err);
    if (r < 0) return r;
    const char *path = rp_path_join(load->dir, name, load->scratch);
    if (!path) return no_memory(load, err);
    r = rp_field_read_secret(&from, path, &secret, err);
    return r < 0 ? r : rp_field_set(s, secret, &from, base, err);
}

static int load_value(const struct rp_load *load, const struct rp_setting *s, const struct rp_yaml *node,
                      const char *key, char *base, struct rp_error *err)
{
    if (node->kind != RP_YAML_SCALAR || node->null) return wrong_kind(load, s, node, key, err);
    struct rp_field_source from = source_of(load, node, key);
    const char *text = NULL;
    int r = rp_field_expand(&from, &text, err);
    return r < 0 ? r : rp_field_set(s, text, &from, base, err);
}

/* The hint says which there are: those of the same kind or, if there is none, the kinds. */
static int unknown_event(const struct rp_setting *s, const struct rp_field_source *from, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf known = RP_BUF(sizeof err->hint);
    size_t own = strcspn(from->raw, ".");
    bool is_kind = false;
    for (const char *const *name = rp_event_names; *name; name++)
        is_kind |= strcspn(*name, ".") == own && !strncmp(*name, from->raw, own);
    for (const char *const *name = rp_event_names; *name; name++) {
        size_t kind = strcspn(*name, ".");
        bool first = name == rp_event_names || strncmp(name[-1], *name, kind + 1) != 0;
        if (is_kind ? kind != own || strncmp(*name, from->raw, own) != 0 : !first) continue;
        const char *comma = known.len > 0 ? ", " : "";
        if (is_kind)
            rp_buf_fmt(&known, "%s%s", comma, *name);
        else
            rp_buf_fmt(&known, "%s%.*s.*", comma, (int)kind, *name);
    }
    rp_field_mismatch(s, from, err);
    rp_error_hint(err, "there are %s", rp_buf_text(&known));
    return RP_ECONFIG;
}

/* Why the item of a list is none of its kind; 0: it is. */
static int check_item(const struct rp_setting *s, const struct rp_field_source *from, const char *text,
                      struct rp_error *err)
{
    struct rp_network network;
    if (s->type == RP_SETTING_EVENTS)
        return rp_event_pattern_is_known(text, strlen(text)) ? 0 : unknown_event(s, from, err);
    return rp_network_parse(text, strlen(text), &network) ? 0 : rp_field_mismatch(s, from, err);
}

static int add_item(const struct rp_load *load, const struct rp_setting *s, const struct rp_yaml *node, const char *key,
                    struct rp_buf *out, struct rp_error *err)
{
    if (node->kind != RP_YAML_SCALAR || node->null) return wrong_kind(load, s, node, key, err);
    struct rp_field_source from = source_of(load, node, key);
    const char *text = NULL;
    int rc = rp_field_expand(&from, &text, err);
    if (rc == 0) rc = check_item(s, &from, text, err);
    if (rc == 0) rp_buf_fmt(out, "%s%s", out->len > 0 ? " " : "", text);
    return rc;
}

/* Of single values: kept with a space between. */
static int load_list(const struct rp_load *load, const struct rp_setting *s, const struct rp_yaml *node,
                     const char *key, char *base, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf list = RP_BUF((size_t)s->most);
    int rc = 0;
    if (node->kind != RP_YAML_LIST) return wrong_kind(load, s, node, key, err);
    for (const struct rp_yaml *item = node->first; rc == 0 && item; item = item->next)
        rc = add_item(load, s, item, key, &list, err);
    if (rc < 0) return rc;
    if (list.failed == RP_ETOOBIG)
        return rp_load_refuse(load, node->line, err, "%s: expected at most %zu bytes, found more", key, list.max);
    const char *text = list.failed ? NULL : rp_arena_strdup(load->arena, rp_buf_text(&list));
    struct rp_field_source from = source_of(load, node, key);
    return text ? rp_field_set(s, text, &from, base, err) : no_memory(load, err);
}

/* A list of numbers is read as the text that it would be on one line. */
static int load_codes(const struct rp_load *load, const struct rp_setting *s, const struct rp_yaml *node,
                      const char *key, char *base, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(256);
    struct rp_field_source from = source_of(load, node, key);
    if (node->kind != RP_YAML_LIST) return wrong_kind(load, s, node, key, err);
    rp_buf_char(&text, '[');
    for (const struct rp_yaml *item = node->first; item; item = item->next) {
        if (item->kind != RP_YAML_SCALAR || item->null) return wrong_kind(load, s, item, key, err);
        rp_buf_fmt(&text, "%s%.16s", item == node->first ? "" : ", ", item->text);
    }
    rp_buf_char(&text, ']');
    from.raw = rp_arena_strdup(load->scratch, rp_buf_text(&text));
    if (!from.raw) return no_memory(load, err);
    return rp_field_set(s, text.failed ? "" : from.raw, &from, base, err);
}

static bool is_file_key(const struct rp_setting *s, const char *key)
{
    const char *own = rp_setting_key(s);
    size_t n = strlen(own);
    return rp_setting_is_secret(s) && strncmp(key, own, n) == 0 && strcmp(key + n, "_file") == 0;
}

/* The member that a key names, as itself or with _file. */
static const struct rp_setting *find_setting(const struct rp_setting *parent, const char *key, bool *from_file)
{
    for (size_t i = 0; i < rp_settings_count; i++) {
        const struct rp_setting *s = &rp_settings[i];
        if (!rp_setting_is_member(s, parent)) continue;
        *from_file = is_file_key(s, key);
        if (*from_file || strcmp(rp_setting_key(s), key) == 0) return s;
    }
    return NULL;
}

/* Whole names only, with dots if there are more. */
static const char *cut_names(const char *names, char *out, size_t size)
{
    static const char more[] = ", ...";
    if ((size_t)snprintf(out, size, "%s", names) < size) return out;
    out[size - sizeof more] = '\0';
    char *comma = strrchr(out, ',');
    if (comma) snprintf(comma, sizeof more, "%s", more);
    return out;
}

static int unknown_key(const struct rp_load *load, const struct scope *scope, const struct rp_yaml *node,
                       struct rp_error *err)
{
    const char *known[32];
    char shown[320], hinted[sizeof err->hint - sizeof "known here: "];
    size_t n = 0;
    RP_CLEANUP(rp_buf_done) struct rp_buf list = RP_BUF(1024);
    for (size_t i = 0; i < rp_settings_count; i++) {
        if (!rp_setting_is_member(&rp_settings[i], scope->setting)) continue;
        RP_ASSERT(n < sizeof(known) / sizeof(known[0]));
        known[n++] = rp_setting_key(&rp_settings[i]);
        rp_buf_fmt(&list, "%s%s", n > 1 ? ", " : "", known[n - 1]);
        if (rp_setting_is_secret(&rp_settings[i])) rp_buf_fmt(&list, ", %s_file", known[n - 1]);
    }
    const char *key = join_key(load, scope, rp_yaml_key_shown(node->key));
    const char *nearest = rp_text_nearest(node->key, known, n);
    if (!nearest)
        return rp_load_refuse(load, node->line, err, "%s: expected one of %s, found an unknown key", key,
                              cut_names(rp_buf_text(&list), shown, sizeof shown));
    rp_load_refuse(load, node->line, err, "%s: expected a known key, found another; did you mean '%s'?", key, nearest);
    rp_error_hint(err, "known here: %s", cut_names(rp_buf_text(&list), hinted, sizeof hinted));
    return RP_ECONFIG;
}

static int load_group(const struct rp_load *load, const struct scope *parent, const struct rp_setting *s,
                      const struct rp_yaml *node, struct rp_error *err);

static int load_member(const struct rp_load *load, const struct scope *scope, const struct rp_yaml *node,
                       struct rp_error *err)
{
    bool from_file = false;
    const struct rp_setting *s = find_setting(scope->setting, node->key, &from_file);
    if (!s) return unknown_key(load, scope, node, err);
    const char *key = join_key(load, scope, node->key);
    if (from_file) return load_secret_file(load, s, node, key, scope->base, err);
    if (rp_setting_is_group(s)) return load_group(load, scope, s, node, err);
    if (s->type == RP_SETTING_NETWORKS || s->type == RP_SETTING_EVENTS)
        return load_list(load, s, node, key, scope->base, err);
    if (s->type == RP_SETTING_CODES) return load_codes(load, s, node, key, scope->base, err);
    return load_value(load, s, node, key, scope->base, err);
}

static const struct rp_yaml *find_file_member(const struct rp_yaml *map, const struct rp_setting *s)
{
    for (const struct rp_yaml *m = map->first; m; m = m->next)
        if (is_file_key(s, m->key)) return m;
    return NULL;
}

/* "" where entries have no types. */
static const char *type_of(const struct scope *scope)
{
    const char *type = "";
    if (scope->setting && scope->setting->entries && scope->setting->entries->type_at != 0)
        memcpy(&type, scope->base + scope->setting->entries->type_at, sizeof(type));
    return type;
}

/* After all members are read, so that their order does not matter. */
static int check_member(const struct rp_load *load, const struct scope *scope, const struct rp_setting *s,
                        const struct rp_yaml *map, struct rp_error *err)
{
    const char *key = join_key(load, scope, rp_setting_key(s));
    const struct rp_yaml *node = rp_yaml_member(map, rp_setting_key(s)), *file = find_file_member(map, s);
    if (!rp_setting_is_for(s, type_of(scope))) {
        if (!node && !file) return 0;
        return rp_load_refuse(load, (node ? node : file)->line, err,
                              "%s: expected settings of type %s, found one of type %s", key, type_of(scope), s->only);
    }
    if (node && file)
        return rp_load_refuse(load, node->line, err, "%s: expected either it or %s, found both", key, file->key);
    if (s->required && !node && !file)
        return rp_load_refuse(load, map->line, err, "%s: expected it to be set, found no such key", key);
    if (!s->lifted_by || !node) return 0;
    struct rp_field_source from = source_of(load, node, key);
    return rp_field_check_lifted(s, &from, scope->base, err);
}

/* `node` is a map, or null for one without members. */
static int load_members(const struct rp_load *load, const struct scope *scope, const struct rp_yaml *node,
                        struct rp_error *err)
{
    int r = 0;
    for (const struct rp_yaml *m = node->first; r == 0 && m; m = m->next)
        r = load_member(load, scope, m, err);
    for (size_t i = 0; r == 0 && i < rp_settings_count; i++)
        if (rp_setting_is_member(&rp_settings[i], scope->setting))
            r = check_member(load, scope, &rp_settings[i], node, err);
    return r;
}

static const char *entry_key(const struct rp_load *load, const struct scope *parent, const struct rp_setting *s,
                             const struct rp_yaml *node, size_t index)
{
    const char *group = join_key(load, parent, rp_setting_key(s));
    const char *key = node->key ? rp_arena_fmt(load->scratch, "%s.%s", group, rp_yaml_key_shown(node->key))
                                : rp_arena_fmt(load->scratch, "%s[%zu]", group, index);
    return key ? key : group;
}

static int check_entry(const struct rp_load *load, const struct rp_yaml *node, const char *key, struct rp_error *err)
{
    if (node->key && !rp_form_is_name(node->key))
        return rp_load_refuse(load, node->line, err, "%s: expected %s, found another", key, RP_FORM_NAME_RULE);
    if (node->kind == RP_YAML_LIST || (node->kind == RP_YAML_SCALAR && !node->null))
        return rp_load_refuse(load, node->line, err, "%s: expected a section, found %s", key, rp_yaml_kind_name(node));
    return 0;
}

/* Fill one element of the array behind a map or a list. */
static int load_entry(const struct rp_load *load, const struct scope *parent, const struct rp_setting *s,
                      const struct rp_yaml *node, size_t index, char *element, struct rp_error *err)
{
    struct scope scope = { .setting = s, .base = element, .key = entry_key(load, parent, s, node, index) };
    int r = check_entry(load, node, scope.key, err);
    if (r < 0) return r;
    if (node->key) {
        const char *name = rp_arena_strdup(load->arena, node->key);
        if (!name) return no_memory(load, err);
        memcpy(element + s->entries->name_at, &name, sizeof(name));
    }
    memcpy(element + s->entries->line_at, &node->line, sizeof(node->line));
    r = rp_load_defaults(load, s, element, err);
    return r < 0 ? r : load_members(load, &scope, node, err);
}

static int load_entries(const struct rp_load *load, const struct scope *parent, const struct rp_setting *s,
                        const struct rp_yaml *node, const char *key, struct rp_error *err)
{
    if (node->n > s->entries->most)
        return rp_load_refuse(load, node->line, err, "%s: expected at most %zu entries, found %zu", key,
                              s->entries->most, node->n);
    if (node->n == 0) return 0;
    char *array = rp_arena_array(load->arena, node->n, s->entries->size_bytes);
    if (!array) return no_memory(load, err);
    size_t i = 0;
    for (const struct rp_yaml *m = node->first; m; m = m->next, i++) {
        int r = load_entry(load, parent, s, m, i, array + i * s->entries->size_bytes, err);
        if (r < 0) return r;
    }
    RP_ASSERT(i == node->n);
    memcpy(parent->base + s->offset, &array, sizeof(array));
    memcpy(parent->base + s->entries->count_at, &i, sizeof(i));
    return 0;
}

/* A group whose members are all commented out is null, and means none. */
static int load_group(const struct rp_load *load, const struct scope *parent, const struct rp_setting *s,
                      const struct rp_yaml *node, struct rp_error *err)
{
    const char *key = join_key(load, parent, rp_setting_key(s));
    enum rp_yaml_kind wanted = s->type == RP_SETTING_LIST ? RP_YAML_LIST : RP_YAML_MAP;
    if (node->kind != wanted && !(node->kind == RP_YAML_SCALAR && node->null))
        return wrong_kind(load, s, node, key, err);
    if (s->entries) return load_entries(load, parent, s, node, key, err);
    struct scope scope = { .setting = s, .base = parent->base, .key = key };
    return load_members(load, &scope, node, err);
}

int rp_load_segments(const struct rp_load *load, struct rp_config *config, struct rp_error *err)
{
    const char *file = rp_sqlite_path(config->catalog_url);
    RP_ASSERT(config->retention.segments != NULL);
    if (config->retention.segments[0] != '\0' || !file) return 0;
    const char *dir = rp_path_parent(file, load->arena);
    config->retention.segments = dir ? rp_path_join(dir, "segments", load->arena) : NULL;
    return config->retention.segments ? 0 : no_memory(load, err);
}

/* app.example:8443 is app-example-8443. */
static const char *name_of_host(const struct rp_load *load, const char *url)
{
    const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
    size_t n = strcspn(host, "/?#");
    for (const char *at; (at = memchr(host, '@', n)) != NULL; host = at + 1)
        n -= (size_t)(at + 1 - host);
    char *name = rp_arena_copy(load->arena, host, n < 63 ? n : 63);
    for (char *c = name; name && *c; c++) {
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
        if ((*c < 'a' || *c > 'z') && (*c < '0' || *c > '9')) *c = '-';
    }
    return name;
}

int rp_load_sinks(const struct rp_load *load, struct rp_config *config, struct rp_error *err)
{
    for (size_t i = 0; i < config->n_sinks; i++) {
        struct rp_sink_config *sink = &config->sinks[i];
        if (!sink->name[0]) sink->name = name_of_host(load, sink->url);
        if (!sink->name) return no_memory(load, err);
    }
    return 0;
}

int rp_load_tree(const struct rp_load *load, const struct rp_yaml *root, struct rp_config *out, struct rp_error *err)
{
    if (root->kind != RP_YAML_MAP && !root->null)
        return rp_load_refuse(load, root->line, err, "expected keys with values, found %s", rp_yaml_kind_name(root));
    struct rp_config config = { .file = rp_arena_strdup(load->arena, load->file),
                                .data = rp_arena_strdup(load->arena, load->dir) };
    if (!config.file || !config.data) return no_memory(load, err);
    int r = rp_load_defaults(load, NULL, &config, err);
    struct scope top = { .base = (char *)&config, .key = "" };
    if (r == 0) r = load_members(load, &top, root, err);
    if (r == 0) r = rp_load_segments(load, &config, err);
    if (r == 0) r = rp_load_sinks(load, &config, err);
    if (r == 0) *out = config;
    return r;
}
