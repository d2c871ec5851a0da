/* SPDX-License-Identifier: Apache-2.0 */
#include "core/guarantee.h"

#include "base/assert.h"
#include "base/digest.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "core/subject/quarantine.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACT_MAX  64
#define LEVEL_MAX 16

struct rp_guarantee {
    bool settled;
    _Atomic int level;            /* without what is declared */
    _Atomic int64_t probed_at_ms; /* by anybody, of the catalog's clock; 0: never */
    _Atomic int64_t changed_at_ms;
    _Atomic int64_t ahead_ms;
    _Atomic bool wrote;      /* this process has probed by writing */
    pthread_mutex_t probing; /* one at a time; held as long as the store takes */
    pthread_mutex_t lock;    /* of what follows; held for a moment */
    bool has_probed;
    struct rp_probed probed;
};

struct rp_guarantee *rp_guarantee_new(enum rp_level level, bool settled)
{
    struct rp_guarantee *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->settled = settled;
    s->level = (int)level;
    s->ahead_ms = RP_CLOCK_UNKNOWN;
    pthread_mutex_init(&s->probing, NULL);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void rp_guarantee_free(struct rp_guarantee *guarantee)
{
    if (guarantee == NULL) return;
    pthread_mutex_destroy(&guarantee->probing);
    pthread_mutex_destroy(&guarantee->lock);
    free(guarantee);
}

/* ---- the level ---- */

enum rp_level rp_store_level(const struct rp_store *store)
{
    const struct rp_guarantee *s = store->guarantee;
    bool declared = store->config->keys == RP_KEYS_WRITE_ONCE;
    if (declared && (s == NULL || s->changed_at_ms == 0)) return RP_LEVEL_EXACT;
    return s == NULL ? store->level : (enum rp_level)s->level;
}

bool rp_store_is_weak(const struct rp_store *store)
{
    const struct rp_guarantee *s = store->guarantee;
    if (store->config->allow_window_deletes || rp_store_level(store) != RP_LEVEL_WINDOW) return false;
    return s == NULL || s->settled || store->config->mode != RP_MODE_OBSERVE;
}

int rp_store_refuse_weak(const struct rp_store *store, struct rp_error *err)
{
    const char *name = store->config->name;
    rp_error_set(err, RP_EWEAK, "store '%s' cannot delete exactly what was marked", name);
    return rp_error_hint(
        err,
        "an upload between the look and the delete could be lost; stores.%s.allow_window_deletes: true "
        "accepts that risk, versioning of the bucket ends it",
        name);
}

bool rp_mark_is_named(const struct rp_mark *mark)
{
    return mark->file_id != 0 || rp_quarantine_is(mark->key);
}

/* ---- what the catalog remembers ---- */

/* A name of the configuration that comes to stand for another bucket begins anew: nothing is known
 * of that one. */
static uint64_t whereabouts(const struct rp_store_config *config)
{
    const char *const parts[] = { config->endpoint, config->bucket, config->path };
    uint64_t h = rp_hash_text(0, "");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *part = parts[i] != NULL ? parts[i] : "";
        h = rp_hash_bytes(h, part, strlen(part) + 1);
    }
    return h;
}

static const char *fact(const char *what, const struct rp_store *store, char out[FACT_MAX])
{
    snprintf(out, FACT_MAX, "%s:%" PRId64 ":%016" PRIx64, what, store->id, whereabouts(store->config));
    return out;
}

static bool level_of(const char *name, enum rp_level *out)
{
    for (int i = RP_LEVEL_WINDOW; i <= RP_LEVEL_EXACT; i++) {
        if (strcmp(rp_level_name((enum rp_level)i), name) != 0) continue;
        *out = (enum rp_level)i;
        return true;
    }
    return false;
}

struct remembered {
    bool known; /* the level */
    enum rp_level level;
    int64_t probed_at_ms, changed_at_ms; /* 0: never */
};

static int remember(struct rp_db *db, const struct rp_store *store, struct remembered *out, struct rp_error *err)
{
    char name[FACT_MAX], word[LEVEL_MAX] = "";
    bool found = false;
    *out = (struct remembered){ 0 };
    int r = rp_meta_find(db, fact("level", store, name), &found, &out->probed_at_ms, word, sizeof word, err);
    if (r == 0) out->known = found && level_of(word, &out->level);
    if (r == 0) r = rp_meta_find(db, fact("keys_changed", store, name), &found, &out->changed_at_ms, NULL, 0, err);
    return r < 0 ? rp_error_wrap(err, r, "what is known of store '%s'", store->config->name) : 0;
}

/* With what this process has seen itself the memory is not mixed. */
static void take(struct rp_guarantee *s, const struct remembered *m)
{
    if (m->changed_at_ms != 0) s->changed_at_ms = m->changed_at_ms;
    if (s->settled || s->wrote || !m->known) return;
    s->level = (int)m->level;
    s->probed_at_ms = m->probed_at_ms;
}

int rp_guarantee_load(struct rp_db *db, struct rp_store *store, struct rp_error *err)
{
    struct remembered m;
    if (store->guarantee == NULL) return 0;
    int r = remember(db, store, &m, err);
    if (r == 0) take(store->guarantee, &m);
    return r;
}

/* ---- probing ---- */

struct noting {
    const struct rp_store *store;
    enum rp_level level;
    int64_t at_ms;
    struct remembered before;
};

static int note_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct noting *n = ctx;
    char name[FACT_MAX];
    int r = remember(tx->db, n->store, &n->before, err);
    n->at_ms = tx->late_ms;
    if (r == 0) r = rp_meta_set(tx->db, fact("level", n->store, name), tx->late_ms, rp_level_name(n->level), err);
    if (r < 0 || !n->before.known || n->before.level == n->level) return r;
    struct rp_audit_entry entry = { .event = "store.level_changed",
                                    .actor = "reprieve",
                                    .details =
                                        json_pack("{s:s,s:s,s:s}", "store", n->store->config->name, "from",
                                                  rp_level_name(n->before.level), "to", rp_level_name(n->level)) };
    return rp_tx_audit(tx, &entry, err);
}

static void keep_findings(struct rp_guarantee *s, const struct rp_probed *probed)
{
    RP_ASSERT(probed->n_findings <= RP_FINDINGS_MAX);
    pthread_mutex_lock(&s->lock);
    s->probed = *probed;
    s->has_probed = true;
    pthread_mutex_unlock(&s->lock);
}

/* One at a time. What was seen counts, also when the catalog cannot be told. */
static int probe(struct rp_catalog *catalog, struct rp_store *store, bool may_write, struct rp_error *err)
{
    struct rp_guarantee *s = store->guarantee;
    struct rp_probed probed = { 0 };
    int r = rp_backend_probe(store->backend, may_write, &probed, err);
    if (r < 0) return rp_error_wrap(err, r, "probe store '%s'", store->config->name);
    keep_findings(s, &probed);
    /* what is declared is not seen, and may be revoked any time */
    enum rp_level seen = s->settled || probed.level != RP_LEVEL_EXACT ? probed.level : probed.undeclared;
    if (!may_write && !s->settled) { /* knows less than a probe that could write */
        if (s->probed_at_ms == 0) s->level = (int)seen;
        return 0;
    }
    struct noting n = { .store = store, .level = seen };
    s->level = (int)seen;
    if (!may_write) return 0;
    s->wrote = true;
    r = rp_catalog_transact(catalog, note_tx, &n, err);
    if (r < 0) return rp_error_wrap(err, r, "remember the guarantee of store '%s'", store->config->name);
    s->probed_at_ms = n.at_ms;
    if (n.before.changed_at_ms != 0) s->changed_at_ms = n.before.changed_at_ms;
    return 0;
}

int rp_guarantee_probe(struct rp_catalog *catalog, struct rp_store *store, struct rp_error *err)
{
    RP_ASSERT(store->backend != NULL && store->guarantee != NULL);
    pthread_mutex_lock(&store->guarantee->probing);
    int r = probe(catalog, store, store->config->mode != RP_MODE_OBSERVE, err);
    pthread_mutex_unlock(&store->guarantee->probing);
    return r;
}

static bool is_sure(const struct rp_catalog *catalog, const struct rp_guarantee *s, enum rp_guarantee_for purpose)
{
    if (s->wrote) return true;
    if (purpose == RP_GUARANTEE_LOOK) return s->probed_at_ms != 0;
    int64_t age_ms = rp_clock_now_ms(catalog->clock) - s->probed_at_ms;
    return purpose == RP_GUARANTEE_MARK && s->probed_at_ms != 0 && age_ms >= 0 && age_ms < RP_DAY_MS;
}

int rp_guarantee_ensure(struct rp_catalog *catalog, struct rp_store *store, enum rp_guarantee_for purpose,
                        struct rp_error *err)
{
    struct rp_guarantee *s = store->guarantee;
    int r = 0;
    if (s == NULL) return 0;
    if (store->config->keys == RP_KEYS_WRITE_ONCE) r = rp_guarantee_load(catalog->db, store, err);
    bool looks = purpose == RP_GUARANTEE_LOOK;
    if (r < 0 || s->settled || (store->config->mode == RP_MODE_OBSERVE && !looks)) return r;
    if (is_sure(catalog, s, purpose)) return 0;
    pthread_mutex_lock(&s->probing);
    if (!is_sure(catalog, s, purpose)) r = probe(catalog, store, !looks, err);
    pthread_mutex_unlock(&s->probing);
    return r;
}

bool rp_guarantee_is_known(const struct rp_store *store)
{
    const struct rp_guarantee *s = store->guarantee;
    return s == NULL || s->settled || s->wrote;
}

bool rp_guarantee_probed(const struct rp_store *store, struct rp_probed *out)
{
    struct rp_guarantee *s = store->guarantee;
    if (s == NULL) return false;
    pthread_mutex_lock(&s->lock);
    bool has = s->has_probed;
    if (has) *out = s->probed;
    pthread_mutex_unlock(&s->lock);
    return has;
}

int64_t rp_guarantee_probed_at_ms(const struct rp_store *store)
{
    return store->guarantee != NULL ? store->guarantee->probed_at_ms : 0;
}

/* ---- keys that were promised never to change ---- */

int64_t rp_guarantee_changed_at_ms(const struct rp_store *store)
{
    return store->guarantee != NULL ? store->guarantee->changed_at_ms : 0;
}

int rp_guarantee_note_changed(struct rp_tx *tx, const struct rp_store *store, const char *key, const char *actor,
                              struct rp_error *err)
{
    char name[FACT_MAX];
    bool found = false;
    int64_t at_ms = 0;
    if (store->config->keys != RP_KEYS_WRITE_ONCE) return 0;
    int r = rp_meta_find(tx->db, fact("keys_changed", store, name), &found, &at_ms, NULL, 0, err);
    if (r < 0 || found) return r;
    r = rp_meta_set(tx->db, name, tx->late_ms, "", err);
    if (r < 0) return r;
    struct rp_audit_entry entry = { .event = "store.keys_changed",
                                    .actor = actor,
                                    .details = json_pack(
                                        "{s:s,s:o,s:s}", "store", store->config->name, "key", rp_json_text(key), "note",
                                        "keys: write_once does not hold: the level is the probed one") };
    return rp_tx_audit(tx, &entry, err);
}

void rp_guarantee_revoke(const struct rp_store *store, int64_t at_ms)
{
    if (store->guarantee != NULL && store->config->keys == RP_KEYS_WRITE_ONCE) store->guarantee->changed_at_ms = at_ms;
}

/* ---- the clock ---- */

int rp_guarantee_ask_clock(struct rp_store *store, const struct rp_clock *host, struct rp_error *err)
{
    struct rp_guarantee *s = store->guarantee;
    int64_t store_ms = 0;
    if (s == NULL || store->backend == NULL || !rp_backend_has_clock(store->backend)) return 0;
    int64_t before_ms = rp_clock_now_ms(host);
    int r = rp_backend_now_ms(store->backend, &store_ms, err);
    int64_t after_ms = rp_clock_now_ms(host);
    /* an answer that took long says little about how far the clock is off: the nearer end counts */
    int64_t ahead_ms = store_ms > after_ms ? store_ms - after_ms : store_ms < before_ms ? store_ms - before_ms : 0;
    s->ahead_ms = r < 0 ? RP_CLOCK_UNKNOWN : ahead_ms;
    return r < 0 ? rp_error_wrap(err, r, "clock of store '%s'", store->config->name) : 0;
}

int64_t rp_guarantee_clock_ahead_ms(const struct rp_store *store)
{
    return store->guarantee != NULL ? store->guarantee->ahead_ms : RP_CLOCK_UNKNOWN;
}
