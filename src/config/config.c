/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "config/load.h"
#include "config/path.h"
#include "config/settings.h"
#include "config/yaml.h"

#define SCRATCH_BYTES_MAX ((size_t)16 << 20)

int rp_config_parse(const char *text, size_t n, const char *name, const char *dir, struct rp_arena *arena,
                    struct rp_config *out, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena scratch = RP_ARENA(SCRATCH_BYTES_MAX);
    struct rp_load load = { .file = name, .dir = dir, .arena = arena, .scratch = &scratch };
    struct rp_yaml *root = NULL;
    struct rp_config config;
    int r = rp_yaml_parse(text, n, name, &scratch, &root, err);
    if (r == 0) r = rp_load_tree(&load, root, &config, err);
    if (r == 0) r = rp_load_check(&load, root, &config, err);
    if (r == 0) *out = config;
    return r;
}

static int cannot_read(const char *file, int errno_value, struct rp_error *err)
{
    return rp_error_set(err, RP_ECONFIG, "%s: expected a configuration file that can be read: %s", file,
                        strerror(errno_value));
}

/* One byte over the bound is enough for the parser to refuse it. */
static int read_all(int fd, const char *file, struct rp_buf *out, struct rp_error *err)
{
    char chunk[16384];
    while (out->len <= RP_YAML_BYTES_MAX) {
        ssize_t got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_read(file, errno, err);
        if (got == 0) break;
        int r = rp_buf_add(out, chunk, (size_t)got);
        if (r < 0) return rp_error_set(err, r, "%s: no memory to read it", file);
    }
    return 0;
}

static int load_file(int fd, const char *file, struct rp_arena *arena, struct rp_config *out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_YAML_BYTES_MAX + 32768);
    int r = read_all(fd, file, &text, err);
    if (r < 0) return r;
    const char *dir = rp_path_parent(file, arena);
    if (!dir) return rp_error_set(err, RP_ENOMEM, "%s: no memory to read it", file);
    return rp_config_parse(rp_buf_text(&text), text.len, file, dir, arena, out, err);
}

static const struct rp_setting *stores_setting(void)
{
    size_t i = 0;
    while (i < rp_settings_count && strcmp(rp_settings[i].path, "stores") != 0)
        i++;
    RP_ASSERT(i < rp_settings_count);
    return &rp_settings[i];
}

static int embedded_default(const char *data, struct rp_arena *arena, struct rp_config *out, struct rp_error *err)
{
    struct rp_load load = { .file = "embedded default", .dir = data, .arena = arena, .scratch = arena };
    struct rp_config config = { .data = rp_arena_strdup(arena, data) };
    struct rp_store_config *store = rp_arena_alloc(arena, sizeof(*store));
    if (!store) return rp_error_set(err, RP_ENOMEM, "no memory for the embedded default");
    int r = rp_load_defaults(&load, NULL, &config, err);
    if (r == 0) r = rp_load_defaults(&load, stores_setting(), store, err);
    if (r < 0) return r;
    config.catalog_url = rp_arena_fmt(arena, "sqlite:%s/catalog.db", data);
    config.log_file = rp_arena_fmt(arena, "%s/reprieve.log", data);
    store->name = "main";
    store->path = rp_arena_fmt(arena, "%s/objects", data);
    store->mode = RP_MODE_PURGE;
    if (config.catalog_url) r = rp_load_segments(&load, &config, err);
    if (r < 0) return r;
    if (!config.data || !config.catalog_url || !config.log_file || !store->path)
        return rp_error_set(err, RP_ENOMEM, "no memory for the embedded default");
    config.stores = store;
    config.n_stores = 1;
    *out = config;
    return 0;
}

static int refuse_data(const char *file, struct rp_error *err)
{
    rp_error_set(err, RP_EINVAL, "the data directory is for running without a configuration file, but %s is in use",
                 file);
    rp_error_hint(err, "leave the data directory out; %s says where everything is", file);
    return RP_EINVAL;
}

/* A file that was asked for must be there; the usual places may be empty, but not unreadable. */
static int try_file(const char *file, bool must_exist, const char *data, struct rp_arena *arena, struct rp_config *out,
                    bool *found, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && !must_exist && (errno == ENOENT || errno == ENOTDIR)) return 0;
    *found = true;
    if (data) return refuse_data(file, err);
    if (fd < 0) return cannot_read(file, errno, err);
    return load_file(fd, file, arena, out, err);
}

int rp_load_search(const char *file, const char *data, const char *system_file, struct rp_arena *arena,
                   struct rp_config *out, struct rp_error *err)
{
    bool found = false;
    const char *from_environment = getenv("REPRIEVE_CONFIG");
    if (!file && from_environment && *from_environment) file = from_environment;
    if (file) return try_file(file, true, data, arena, out, &found, err);
    int r = try_file("reprieve.yaml", false, data, arena, out, &found, err);
    if (!found) r = try_file(system_file, false, data, arena, out, &found, err);
    if (found) return r;
    if (data && !*data) return rp_error_set(err, RP_EINVAL, "the data directory: expected a path, found an empty text");
    return embedded_default(data ? data : "./reprieve-data", arena, out, err);
}

int rp_config_load(const char *file, const char *data, struct rp_arena *arena, struct rp_config *out,
                   struct rp_error *err)
{
    return rp_load_search(file, data, "/etc/reprieve/reprieve.yaml", arena, out, err);
}

const struct rp_store_config *rp_config_store(const struct rp_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_stores; i++)
        if (strcmp(config->stores[i].name, name) == 0) return &config->stores[i];
    return NULL;
}

const char *rp_config_base_url(const struct rp_config *config, const char *address, struct rp_arena *arena)
{
    bool tls = config->tls_certificate && config->tls_certificate[0];
    const char *given = config->public_url ? config->public_url : "";
    size_t n = strlen(given);
    while (n > 0 && given[n - 1] == '/')
        n--;
    if (n > 0) return rp_arena_copy(arena, given, n);
    return rp_arena_fmt(arena, "%s://%s", tls ? "https" : "http", address ? address : config->listen);
}

const struct rp_confirmer_config *rp_config_confirmer(const struct rp_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_confirmers; i++)
        if (!strcmp(config->confirmers[i].name, name)) return &config->confirmers[i];
    return NULL;
}

const struct rp_database_config *rp_config_database(const struct rp_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_databases; i++)
        if (strcmp(config->databases[i].name, name) == 0) return &config->databases[i];
    return NULL;
}

bool rp_config_is_s3(const struct rp_store_config *store)
{
    return strcmp(store->type, "s3") == 0;
}

bool rp_config_is_loopback(const char *listen)
{
    return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]:", 6) == 0 ||
           strncmp(listen, "localhost:", 10) == 0;
}

const struct rp_store_config *rp_config_uploads_store(const struct rp_config *config)
{
    if (config->uploads_store[0] != '\0') return rp_config_store(config, config->uploads_store);
    for (size_t i = 0; i < config->n_stores; i++)
        if (config->stores[i].mode != RP_MODE_OBSERVE) return &config->stores[i];
    return NULL;
}
