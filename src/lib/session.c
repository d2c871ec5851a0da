/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/session.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "base/time.h"
#include "core/check/references.h"
#include "core/check/waits.h"
#include "core/guarantee.h"
#include "core/journal.h"
#include "core/owner/raise.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define BESIDE_CACHE_KIB  1024
#define SESSION_ARENA_MAX ((size_t)8 << 20)

static void default_actor(char out[RP_ACTOR_MAX])
{
    const struct passwd *user = getpwuid(geteuid());
    if (user != NULL)
        snprintf(out, RP_ACTOR_MAX, "cli:%s", user->pw_name);
    else
        snprintf(out, RP_ACTOR_MAX, "cli:%u", (unsigned)geteuid());
}

/* The embedded default makes its own directory; a configured path must be there. */
static int make_data_directory(const char *catalog_url, struct rp_error *err)
{
    char path[4096];
    const char *file = catalog_url + strlen("sqlite:");
    const char *slash = strrchr(file, '/');
    if (slash == NULL || (size_t)(slash - file) >= sizeof path) return 0;
    snprintf(path, sizeof path, "%.*s", (int)(slash - file), file);
    if (mkdir(path, 0700) == 0 || errno == EEXIST) return 0;
    rp_error_errno(err, errno, "data directory %s", path);
    return rp_error_hint(err, "choose another with --data, or make its parent directory first");
}

static int open_log(struct rp_session *s, struct rp_error *err)
{
    enum rp_log_level level;
    int r = rp_log_level_parse(s->config.log_level, &level, err);
    return r < 0 ? r : rp_log_open(s->config.log_file, level, &s->log, err);
}

/* ---- the epoch ---- */

static void log_owed(struct rp_session *s, const char *store, const struct rp_error *why)
{
    json_t *o = rp_json_object(
        "store", json_string(store), "code", json_string(rp_error_slug(why->code)), "error", rp_json_text(why->text),
        "note", json_string("until the next raise a catalog put back from a backup may go unnoticed"), NULL);
    rp_session_log(s, RP_LOG_WARNING, "store.raise_owed", o);
}

static void raise_here(void *ctx, uint64_t which)
{
    struct rp_session *s = ctx;
    for (size_t i = 0; i < s->config.n_stores; i++) {
        struct rp_error why = { 0 };
        struct rp_store *store = NULL;
        if ((which >> i & 1) == 0) continue;
        int r = rp_session_store(s, s->config.stores[i].name, &store, &why);
        if (r < 0) rp_raises_owe(s->raises, i, why.text);
        rp_raises_begin(s->raises, i);
        if (r == 0) r = rp_raise(s->raises, i, s->catalog, store, &why);
        if (r < 0) log_owed(s, s->config.stores[i].name, &why);
    }
}

static int open_raises(struct rp_session *s, struct rp_error *err)
{
    s->raises = rp_raises_new(s->catalog->clock);
    if (s->raises == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a session");
    for (size_t i = 0; i < s->config.n_stores; i++)
        rp_raises_set(s->raises, i, 0, s->config.stores[i].mode == RP_MODE_OBSERVE);
    s->raise_hook = (struct rp_raise_hook){
        .due = rp_raises_due, .note = rp_raises_note, .raise = raise_here, .raises = s->raises, .ctx = s
    };
    s->catalog->raise_hook = &s->raise_hook;
    return 0;
}

/* raise.h, R3. A daemon has done so by then. */
static void raise_at_the_end(struct rp_session *s)
{
    uint64_t pending = 0;
    if (s->catalog == NULL || s->catalog->raise_hook != &s->raise_hook) return;
    for (size_t i = 0; i < s->config.n_stores; i++)
        if (rp_raises_is_pending(s->raises, i)) pending |= UINT64_C(1) << i;
    raise_here(s, pending);
}

static int open_waits(struct rp_session *s, struct rp_error *err)
{
    s->waits = rp_waits_new(s->catalog->clock);
    return s->waits != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a session");
}

int rp_session_open(struct rp_session *s, const struct rp_session_options *options, struct rp_error *err)
{
    *s = (struct rp_session){ .arena = RP_ARENA(SESSION_ARENA_MAX), .on_silence = options->on_silence };
    rp_worker_self(&s->worker);
    if (options->actor != NULL)
        snprintf(s->actor, sizeof s->actor, "%s", options->actor);
    else
        default_actor(s->actor);
    if (!rp_utf8_valid(s->actor, strlen(s->actor)))
        return rp_error_set(err, RP_EINVAL, "the actor's name is not valid UTF-8");
    int r = rp_config_load(options->config_file, options->data, &s->arena, &s->config, err);
    if (r < 0) return r;
    if (s->config.file == NULL) r = make_data_directory(s->config.catalog_url, err);
    if (r == 0) r = open_log(s, err);
    if (r < 0 || options->no_catalog) return r;
    s->clock = rp_clock_host;
    s->clock.booted_at_ms = &s->booted_at_ms;
    struct rp_catalog_options catalog = { .clock = options->clock != NULL ? options->clock : &s->clock,
                                          .migrate = options->migrate,
                                          .patient = options->patient };
    r = rp_catalog_open(s->config.catalog_url, &catalog, &s->catalog, err);
    if (r == 0) s->catalog->log = s->log;
    if (r == 0) r = open_waits(s, err);
    return r < 0 ? r : open_raises(s, err);
}

int rp_session_beside(const struct rp_session *of, int lane, struct rp_session *s, struct rp_error *err)
{
    /* in a daemon on SQLite its changes go through the writer, whose pages are the ones to keep */
    struct rp_catalog_options catalog = {
        .clock = of->catalog->clock, .lane = lane, .holder = of->actor, .cache_kib = BESIDE_CACHE_KIB
    };
    *s = (struct rp_session){
        .arena = RP_ARENA(SESSION_ARENA_MAX), .config = of->config, .log = of->log, .worker = of->worker, .of = of
    };
    memcpy(s->actor, of->actor, sizeof s->actor);
    int r = rp_catalog_open(of->config.catalog_url, &catalog, &s->catalog, err);
    if (r < 0) return r;
    s->catalog->log = s->log;
    s->catalog->raise_hook = of->catalog->raise_hook;
    s->raises = of->raises;
    return open_waits(s, err);
}

static void close_store(struct rp_store *store)
{
    if (!store->borrowed) {
        rp_backend_close(store->backend);
        rp_guarantee_free(store->guarantee);
    }
    store->backend = NULL;
    store->guarantee = NULL;
}

void rp_session_close(struct rp_session *s)
{
    raise_at_the_end(s);
    for (size_t i = 0; i < s->config.n_stores; i++) {
        rp_references_free(s->stores[i].references);
        close_store(&s->stores[i]);
    }
    rp_waits_free(s->waits);
    rp_catalog_close(s->catalog);
    if (s->of == NULL) rp_raises_free(s->raises);
    if (s->of == NULL) rp_log_close(s->log);
    rp_arena_done(&s->arena);
    *s = (struct rp_session){ 0 };
}

static int unknown_store(const struct rp_session *s, const char *name, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf names = RP_BUF(200);
    for (size_t i = 0; i < s->config.n_stores; i++)
        rp_buf_fmt(&names, "%s%s", i > 0 ? ", " : "", s->config.stores[i].name);
    rp_error_set(err, RP_ENOTFOUND, "no store '%.64s'", name);
    rp_error_hint(err, "configured stores: %s", s->config.n_stores > 0 ? rp_buf_text(&names) : "none");
    return RP_ENOTFOUND;
}

/* A directory's level is known without a canary, which a sweep need not write then. */
static int open_directory(const struct rp_session *s, struct rp_store *store, struct rp_error *err)
{
    struct rp_probed probed = { 0 };
    int r = rp_fs_open(store->config->path, s->config.file == NULL, &store->backend, err);
    if (r == 0) r = rp_backend_probe(store->backend, false, &probed, err);
    if (r < 0) return r;
    store->level = probed.level;
    store->guarantee = rp_guarantee_new(probed.level, true);
    if (store->guarantee == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    return rp_guarantee_load(s->catalog->db, store, err);
}

static int open_bucket(const struct rp_session *s, struct rp_store *store, struct rp_error *err)
{
    const struct rp_store_config *c = store->config;
    const bool shares = s->of != NULL && !s->own_buckets;
    const struct rp_store *shared = shares ? &s->of->stores[c - s->config.stores] : NULL;
    if (shared != NULL && shared->backend != NULL) {
        store->backend = shared->backend;
        store->guarantee = shared->guarantee;
        store->borrowed = true;
        return 0;
    }
    store->guarantee = rp_guarantee_new(RP_LEVEL_WINDOW, false);
    if (store->guarantee == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    int r = rp_guarantee_load(s->catalog->db, store, err); /* before it is open: keys may not be what they promise */
    struct rp_s3_options options = { .endpoint = c->endpoint,
                                     .region = strcmp(c->region, "auto") == 0 ? "" : c->region,
                                     .bucket = c->bucket,
                                     .style = c->style,
                                     .access_key = c->access_key,
                                     .secret_key = c->secret_key,
                                     .session_token = c->session_token,
                                     .profile = c->profile,
                                     .ca_file = c->ca_file,
                                     .requests_per_second = c->requests_per_second_max,
                                     .timeout_ms = c->request_timeout_ms,
                                     .one_step_deletes = c->conditional_deletes == RP_DELETES_ATOMIC,
                                     .write_once = rp_store_level(store) == RP_LEVEL_EXACT,
                                     .on_silence = s->on_silence };
    return r < 0 ? r : rp_s3_open(&options, &store->backend, err);
}

static int open_store(struct rp_session *s, struct rp_store *store, const struct rp_store_config *config,
                      struct rp_error *err)
{
    struct rp_store_row row;
    struct rp_store made = { .config = config,
                             .environment = s->config.environment,
                             .raises = s->raises,
                             .fails_over = strcmp(s->config.catalog_failover, "synchronous") == 0 };
    int r = rp_store_get(s->catalog, RP_STORE_STORE, config->name, &row, err);
    if (r < 0) return rp_error_wrap(err, r, "open store '%s'", config->name);
    made.id = row.id;
    rp_raises_set(s->raises, (size_t)(config - s->config.stores), row.id, config->mode == RP_MODE_OBSERVE);
    r = rp_config_is_s3(config) ? open_bucket(s, &made, &made.closed) : open_directory(s, &made, &made.closed);
    if (r == 0) r = rp_references_new(&s->config, config, &made.references, &made.closed);
    rp_references_use(made.references, s->waits);
    if (r < 0) {
        close_store(&made);
        rp_error_wrap(&made.closed, r, "open store '%s'", config->name);
        *err = made.closed;
    }
    *store = made;
    return r;
}

int rp_session_store(struct rp_session *s, const char *name, struct rp_store **out, struct rp_error *err)
{
    const struct rp_store_config *config = rp_config_store(&s->config, name);
    if (config == NULL) return unknown_store(s, name, err);
    struct rp_store *store = &s->stores[config - s->config.stores];
    int r = store->backend == NULL ? open_store(s, store, config, err) : 0;
    if (r == 0) *out = store;
    return r;
}

void rp_session_look(struct rp_session *s, struct rp_store *store)
{
    size_t i = (size_t)(store->config - s->config.stores);
    struct rp_error ignored = { 0 };
    if ((s->looked >> i & 1) != 0 || store->backend == NULL || store->config->mode == RP_MODE_OBSERVE) return;
    s->looked |= UINT64_C(1) << i;
    (void)rp_raises_look(s->raises, i, s->catalog, store, &ignored);
}

int rp_session_stores(struct rp_session *s, struct rp_store **out, size_t *n, struct rp_error *err)
{
    for (size_t i = 0; i < s->config.n_stores; i++) {
        struct rp_error why = { 0 };
        int r = rp_session_store(s, s->config.stores[i].name, &out[i], &why);
        if (r == 0) continue;
        if (s->stores[i].closed.code == 0) { /* the catalog failed, not the store */
            *err = why;
            return r;
        }
        out[i] = &s->stores[i];
    }
    *n = s->config.n_stores;
    return 0;
}

const char *rp_session_store_name(const struct rp_session *s, int64_t store_id)
{
    for (size_t i = 0; i < s->config.n_stores; i++)
        if (s->stores[i].backend != NULL && s->stores[i].id == store_id) return s->config.stores[i].name;
    return "?";
}

static struct rp_purge_rules purge_rules(const struct rp_session *s)
{
    struct rp_purge_rules rules = { .batch = s->config.sweep_batch,
                                    .lease_ms = s->config.sweep_lease_ms,
                                    .max_attempts = s->config.sweep_max_attempts,
                                    .retry_first_ms = s->config.sweep_retry_first_ms,
                                    .retry_most_ms = s->config.sweep_retry_most_ms };
    if (getrandom(&rules.random, sizeof rules.random, 0) != (ssize_t)sizeof rules.random)
        rules.random = (uint64_t)rp_session_now_ms(s); /* only jitter hangs on it */
    return rules;
}

struct rp_sweep rp_session_sweep(struct rp_session *s)
{
    return (struct rp_sweep){ .by.catalog = s->catalog,
                              .by.environment = s->config.environment,
                              .by.worker = &s->worker,
                              .by.rules = purge_rules(s),
                              .limit = s->config.sweep_limit,
                              .stale_after_ms = s->config.lock_stale_after_ms };
}

struct rp_retention rp_session_retention(struct rp_session *s)
{
    return (struct rp_retention){ .catalog = s->catalog,
                                  .rules = s->config.retention,
                                  .worker = &s->worker,
                                  .actor = s->actor,
                                  .stale_after_ms = s->config.lock_stale_after_ms };
}

struct rp_safety_net rp_session_safety_net(struct rp_session *s, struct rp_upload_rules *uploads)
{
    *uploads = (struct rp_upload_rules){ .expire_ms = s->config.uploads_expire_ms,
                                         .txn_timeout_ms = s->config.transactions_timeout_ms,
                                         .rollback_grace_ms = s->config.transactions_rollback_grace_ms };
    return (struct rp_safety_net){ .catalog = s->catalog,
                                   .config = &s->config,
                                   .uploads = uploads,
                                   .worker = &s->worker,
                                   .actor = s->actor,
                                   .limit = s->config.safety_net_limit,
                                   .stale_after_ms = s->config.lock_stale_after_ms };
}

int64_t rp_session_now_ms(const struct rp_session *s)
{
    return rp_clock_now_ms(s->catalog != NULL ? s->catalog->clock : &rp_clock_host);
}

struct rp_journal rp_session_journal(const struct rp_session *s)
{
    return (struct rp_journal){ .log = s->log, .at_ms = rp_session_now_ms(s), .actor = s->actor };
}

void rp_session_log(const struct rp_session *s, enum rp_log_level level, const char *event, json_t *fields)
{
    rp_log_event(s->log, level, rp_session_now_ms(s), event, fields);
    rp_log_flush(s->log);
}

int rp_session_subject(struct rp_session *s, const char *text, struct rp_subject *out, struct rp_error *err)
{
    enum rp_id_kind kind;
    int64_t id;
    char name[64];
    if (rp_id_parse(text, &kind, &id)) {
        if (kind != RP_ID_MARK && kind != RP_ID_FILE)
            return rp_error_set(err, RP_EINVAL, "'%.32s' is not the id of a mark or a file", text);
        *out = (struct rp_subject){ .mark_id = kind == RP_ID_MARK ? id : 0, .file_id = kind == RP_ID_FILE ? id : 0 };
        return 0;
    }
    const char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof name)
        return rp_error_advise(
            err, RP_EINVAL,
            "a subject is STORE:KEY (main:avatars/7.png) or the id of a mark or a file (mrk_..., fil_...)",
            "'%.64s' is no subject", text);
    snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
    struct rp_store *store;
    int r = rp_session_store(s, name, &store, err);
    if (r == 0) r = rp_key_check(colon + 1, strlen(colon + 1), err);
    if (r == 0) *out = (struct rp_subject){ .store = store, .key = colon + 1 };
    return r;
}
