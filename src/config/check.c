/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text/nearest.h"
#include "base/time.h"
#include "base/url.h"
#include "config/config.h"
#include "config/load.h"
#include "config/path.h"
#include "config/yaml.h"

static int line_of(const struct rp_yaml *root, const char *section, const char *name, const char *key)
{
    const struct rp_yaml *at = rp_yaml_member(root, section);
    const struct rp_yaml *inner = rp_yaml_member(at, name);
    const struct rp_yaml *value = key ? rp_yaml_member(inner, key) : NULL;
    const struct rp_yaml *deepest = value ? value : inner ? inner : at;
    return deepest ? deepest->line : 1;
}

/* Shows the file's text, not the expanded one: an environment variable may be a secret put in
 * the wrong place. */
static int unknown_name(const struct rp_load *load, const struct rp_yaml *node, const char *key, const char *name,
                        const char *section, const char *const *names, size_t n, struct rp_error *err)
{
    RP_ASSERT(node);
    const char *nearest = rp_text_nearest(name, names, n);
    return rp_load_refuse(load, node->line, err, "%s: expected a name under %s, found '%.63s'%s%s%s", key, section,
                          node->text, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int unknown_database(const struct rp_load *load, const struct rp_config *config, const struct rp_yaml *item,
                            const char *key, const char *name, struct rp_error *err)
{
    const char *names[RP_DATABASES_MAX], *whole = rp_arena_fmt(load->scratch, "%s.database", key);
    for (size_t i = 0; i < config->n_databases; i++)
        names[i] = config->databases[i].name;
    return unknown_name(load, rp_yaml_member(item, "database"), whole ? whole : key, name, "databases", names,
                        config->n_databases, err);
}

static int check_reference(const struct rp_load *load, const struct rp_config *config, const struct rp_yaml *item,
                           const struct rp_store_config *store, size_t index, struct rp_error *err)
{
    const struct rp_reference *ref = &store->referenced_by[index];
    const char *key = rp_arena_fmt(load->scratch, "stores.%s.referenced_by[%zu]", store->name, index);
    if (!key) return rp_error_set(err, RP_ENOMEM, "%s: no memory for the configuration", load->file);
    bool webhook = ref->webhook && *ref->webhook;
    const char *found = NULL;
    if (webhook == (ref->database != NULL)) found = webhook ? "both" : "neither";
    if (found) return rp_load_refuse(load, ref->line, err, "%s: expected database, or webhook, found %s", key, found);
    if (webhook && (ref->table || ref->column || ref->sql))
        return rp_load_refuse(load, ref->line, err, "%s: expected a webhook alone, found table, column or sql", key);
    if (!webhook && (*ref->secret || *ref->secret_old))
        return rp_load_refuse(load, ref->line, err, "%s: expected a secret beside a webhook, found one alone", key);
    if (webhook) return 0;
    if (!rp_config_database(config, ref->database))
        return unknown_database(load, config, item, key, ref->database, err);
    if (ref->sql && (ref->table || ref->column)) found = "both";
    if (!ref->sql && !ref->table) found = ref->column ? "column alone" : "neither";
    if (!ref->sql && ref->table && !ref->column) found = "table alone";
    if (!found) return 0;
    return rp_load_refuse(load, ref->line, err, "%s: expected table and column, or sql, found %s", key, found);
}

static int check_references(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                            struct rp_error *err)
{
    const struct rp_yaml *stores = rp_yaml_member(root, "stores");
    for (size_t i = 0; i < config->n_stores; i++) {
        const struct rp_store_config *store = &config->stores[i];
        if (store->n_referenced_by == 0) continue;
        const struct rp_yaml *item = rp_yaml_member(rp_yaml_member(stores, store->name), "referenced_by")->first;
        for (size_t j = 0; j < store->n_referenced_by; j++, item = item->next) {
            int r = check_reference(load, config, item, store, j, err);
            if (r < 0) return r;
        }
    }
    return 0;
}

/* Something in the file system that must not be taken for an object. */
struct named_path {
    const char *key;  /* "stores.media.path"; NULL: nothing */
    const char *path; /* resolved */
};

static int add_path(const struct rp_load *load, const char *key, const char *path, struct named_path *out,
                    struct rp_error *err)
{
    const char *resolved = rp_path_resolve(path, load->scratch);
    if (!key || !resolved) return rp_error_set(err, RP_ENOMEM, "%s: no memory for the configuration", load->file);
    *out = (struct named_path){ .key = key, .path = resolved };
    return 0;
}

static int add_url(const struct rp_load *load, const char *key, const char *url, struct named_path *out,
                   struct rp_error *err)
{
    const char *file = rp_sqlite_path(url);
    return file ? add_path(load, key, file, out, err) : 0;
}

#define PATHS_MAX (RP_STORES_MAX + 2 * RP_DATABASES_MAX + 4)

static int list_files(const struct rp_load *load, const struct rp_config *config, struct named_path *out,
                      struct rp_error *err)
{
    const char *slash = strrchr(load->file, '/');
    const char *own = rp_path_join(load->dir, slash ? slash + 1 : load->file, load->scratch);
    int r = add_path(load, "the configuration file", own ? own : "", &out[0], err);
    if (r == 0) r = add_url(load, "catalog.url", config->catalog_url, &out[1], err);
    bool logs_to_file = config->log_file[0] && strcmp(config->log_file, "-") != 0;
    if (r == 0 && logs_to_file) r = add_path(load, "log.file", config->log_file, &out[2], err);
    const char *segments = config->retention.segments;
    if (r == 0 && segments[0] != '\0') r = add_path(load, "retention.segments", segments, &out[3], err);
    for (size_t i = 0; r == 0 && i < config->n_databases; i++) {
        const struct rp_database_config *db = &config->databases[i];
        const char *key = rp_arena_fmt(load->scratch, "databases.%s.url", db->name);
        const char *read_key = rp_arena_fmt(load->scratch, "databases.%s.read_url", db->name);
        r = add_url(load, key, db->url, &out[4 + 2 * i], err);
        if (r == 0) r = add_url(load, read_key, db->read_url, &out[5 + 2 * i], err);
    }
    return r;
}

static int check_stores_apart(const struct rp_load *load, int line, const struct named_path *a,
                              const struct named_path *b, struct rp_error *err)
{
    bool b_in_a = rp_path_is_within(b->path, a->path), a_in_b = rp_path_is_within(a->path, b->path);
    if (!a_in_b && !b_in_a) return 0;
    return rp_load_refuse(load, line, err, "%s: expected a directory apart from %s, found %s", b->key, a->key,
                          a_in_b && b_in_a ? "the same one"
                          : b_in_a         ? "one inside it"
                                           : "one that contains it");
}

static int check_files_outside(const struct rp_load *load, int line, const struct named_path *store,
                               const struct named_path *files, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!files[i].key || !rp_path_is_within(files[i].path, store->path)) continue;
        return rp_load_refuse(load, line, err, "%s: expected a directory of objects only, found one that contains %s%s",
                              store->key, i == 0 ? "" : "the file of ", files[i].key);
    }
    return 0;
}

static int check_paths(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                       struct rp_error *err)
{
    struct named_path stores[RP_STORES_MAX], files[PATHS_MAX - RP_STORES_MAX] = { 0 };
    int r = list_files(load, config, files, err);
    for (size_t i = 0; r == 0 && i < config->n_stores; i++) {
        const char *name = config->stores[i].name;
        int line = line_of(root, "stores", name, "path");
        stores[i] = (struct named_path){ 0 };
        if (rp_config_is_s3(&config->stores[i])) continue;
        r = add_path(load, rp_arena_fmt(load->scratch, "stores.%s.path", name), config->stores[i].path, &stores[i],
                     err);
        for (size_t j = 0; r == 0 && j < i; j++)
            if (stores[j].key) r = check_stores_apart(load, line, &stores[j], &stores[i], err);
        if (r == 0) r = check_files_outside(load, line, &stores[i], files, sizeof(files) / sizeof(files[0]), err);
    }
    return r;
}

/* ---- buckets ---- */

/* A path would be the bucket said twice. */
static int check_endpoint(const struct rp_load *load, const struct rp_yaml *root, const struct rp_store_config *store,
                          struct rp_error *err)
{
    const char *scheme = strstr(store->endpoint, "://");
    const char *host = scheme ? scheme + 3 : store->endpoint;
    size_t n = strcspn(host, "/?#");
    if (host[n] == '\0' || strcmp(host + n, "/") == 0) return 0;
    return rp_load_refuse(load, line_of(root, "stores", store->name, "endpoint"), err,
                          "stores.%s.endpoint: expected https://HOST or http://HOST, with port if "
                          "need be, found more behind the host",
                          store->name);
}

/* Half of a pair of keys would be silently replaced by another one that happens to lie around. */
static int check_bucket_keys(const struct rp_load *load, const struct rp_yaml *root,
                             const struct rp_store_config *store, struct rp_error *err)
{
    bool access = store->access_key[0], secret = store->secret_key[0];
    int line = line_of(root, "stores", store->name, NULL);
    if (access != secret)
        return rp_load_refuse(load, line, err,
                              "stores.%s: expected access_key and secret_key, or neither, found "
                              "%s alone",
                              store->name, access ? "access_key" : "secret_key");
    if (store->session_token[0] && !access)
        return rp_load_refuse(load, line, err,
                              "stores.%s: expected session_token beside access_key and "
                              "secret_key, found it alone",
                              store->name);
    if (!store->profile[0] || !access) return 0;
    return rp_load_refuse(load, line, err, "stores.%s: expected either profile or access_key, found both", store->name);
}

static int check_buckets(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                         struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < config->n_stores; i++) {
        const struct rp_store_config *store = &config->stores[i];
        if (!rp_config_is_s3(store)) continue;
        r = check_endpoint(load, root, store, err);
        if (r == 0) r = check_bucket_keys(load, root, store, err);
        for (size_t j = 0; r == 0 && j < i; j++) {
            const struct rp_store_config *other = &config->stores[j];
            if (!rp_config_is_s3(other) || strcmp(other->bucket, store->bucket) != 0 ||
                strcmp(other->endpoint, store->endpoint) != 0)
                continue;
            r = rp_load_refuse(load, line_of(root, "stores", store->name, "bucket"), err,
                               "stores.%s.bucket: expected a bucket apart from that of "
                               "stores.%s, found the same one",
                               store->name, other->name);
        }
    }
    return r;
}

/* ---- the daemon's ---- */

/* N4 of http/server/server.h: what others can reach is encrypted, or somebody has said in so many
 * words that it is not. */
static int check_listen(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                        struct rp_error *err)
{
    bool certificate = config->tls_certificate[0] != '\0', key = config->tls_key[0] != '\0';
    if (certificate != key)
        return rp_load_refuse(load, line_of(root, "tls", certificate ? "certificate" : "key", NULL), err,
                              "tls: expected certificate and key, found %s alone", certificate ? "certificate" : "key");
    if (certificate || config->listen_insecure || rp_config_is_loopback(config->listen)) return 0;
    rp_load_refuse(load, line_of(root, "listen", "", NULL), err,
                   "listen: expected a loopback address, or tls, found %s without it", config->listen);
    return rp_error_hint(err, "set tls.certificate and tls.key; behind a proxy that speaks TLS: listen_insecure: true");
}

static int check_uploads(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                         struct rp_error *err)
{
    const char *names[RP_STORES_MAX];
    if (config->uploads_store[0] == '\0' || rp_config_store(config, config->uploads_store)) return 0;
    for (size_t i = 0; i < config->n_stores; i++)
        names[i] = config->stores[i].name;
    return unknown_name(load, rp_yaml_member(rp_yaml_member(root, "uploads"), "store"), "uploads.store",
                        config->uploads_store, "stores", names, config->n_stores, err);
}

/* Rows go nowhere without a file that holds them. */
static int check_segments(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                          struct rp_error *err)
{
    char found[RP_TIME_TEXT];
    const struct rp_retention_config *retention = &config->retention;
    if (retention->audit_ms == RP_FOREVER_MS || retention->segments[0] != '\0') return 0;
    rp_load_refuse(load, line_of(root, "retention", "audit", NULL), err,
                   "retention.audit: expected forever, or retention.segments beside it, found %s alone",
                   rp_duration_format(retention->audit_ms, found));
    return rp_error_hint(err, "a catalog on PostgreSQL has no directory of its own: set retention.segments to one "
                              "that all nodes see");
}

/* ---- events out ---- */

static bool is_sink_name(const char *name)
{
    size_t n = strlen(name);
    return n >= 1 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

static int check_sink(const struct rp_load *load, const struct rp_config *config, size_t i, struct rp_error *err)
{
    const struct rp_sink_config *sink = &config->sinks[i];
    if (strcmp(sink->type, "webhook") != 0) {
        rp_load_refuse(load, sink->line, err, "events_out[%zu].type: expected webhook, found '%s'", i, sink->type);
        return rp_error_hint(err, "%s comes with a later version; `reprieve version` says which this is", sink->type);
    }
    if (!sink->url[0])
        return rp_load_refuse(load, sink->line, err, "events_out[%zu].url: expected a URL, found an empty text", i);
    if (!is_sink_name(sink->name))
        return rp_load_refuse(load, sink->line, err,
                              "events_out[%zu].name: expected 1 to 63 of a-z 0-9 - _, found '%s'", i, sink->name);
    for (size_t j = 0; j < i; j++) {
        if (strcmp(config->sinks[j].name, sink->name) != 0) continue;
        rp_load_refuse(load, sink->line, err, "events_out[%zu].name: expected one of its own, found '%s' twice", i,
                       sink->name);
        return rp_error_hint(err, "without a name the URL's host is taken; give each a name");
    }
    return 0;
}

static int check_sinks(const struct rp_load *load, const struct rp_config *config, struct rp_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < config->n_sinks; i++)
        rc = check_sink(load, config, i, err);
    return rc;
}

int rp_load_check(const struct rp_load *load, const struct rp_yaml *root, const struct rp_config *config,
                  struct rp_error *err)
{
    int r = check_references(load, root, config, err);
    if (r == 0) r = check_paths(load, root, config, err);
    if (r == 0) r = check_buckets(load, root, config, err);
    if (r == 0) r = check_listen(load, root, config, err);
    if (r == 0) r = check_uploads(load, root, config, err);
    if (r == 0) r = check_segments(load, root, config, err);
    if (r == 0) r = check_sinks(load, config, err);
    if (r < 0) return r;
    if (config->sweep_retry_most_ms >= config->sweep_retry_first_ms) return 0;
    char first[RP_TIME_TEXT], most[RP_TIME_TEXT];
    return rp_load_refuse(load, line_of(root, "sweep", "retry_most", NULL), err,
                          "sweep.retry_most: expected at least sweep.retry_first (%s), found %s",
                          rp_duration_format(config->sweep_retry_first_ms, first),
                          rp_duration_format(config->sweep_retry_most_ms, most));
}
