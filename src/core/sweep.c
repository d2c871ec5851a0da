/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sweep.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/time.h"
#include "core/file/file.h"
#include "core/guarantee.h"
#include "core/guard.h"
#include "core/quarantine.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BATCH_ARENA_MAX ((size_t)32 << 20)
#define RECHECK_MS      RP_HOUR_MS /* a mark that is still referenced is asked about again after this */

void rp_sweep_batch_init(struct rp_sweep_batch *batch)
{
    *batch = (struct rp_sweep_batch){ .arena = RP_ARENA(BATCH_ARENA_MAX) };
}

void rp_sweep_batch_done(struct rp_sweep_batch *batch)
{
    rp_arena_done(&batch->arena);
}

struct rp_sweep_item *rp_sweep_item_of(struct rp_sweep_batch *batch, const struct rp_mark *mark)
{
    RP_ASSERT(mark >= batch->marks.at && mark < batch->marks.at + batch->marks.n);
    return &batch->items[mark - batch->marks.at];
}

/* Not what is everybody's: no memory, no room, no connection, a run that was lost. */
bool rp_sweep_may_be_one(int code)
{
    return code == RP_ECORRUPT || code == RP_ECONFLICT || code == RP_EFAILED;
}

void rp_sweep_set_damaged(struct rp_sweep_item *item, const struct rp_error *why)
{
    const struct rp_mark *m = item->mark;
    char id[RP_ID_TEXT];
    item->damaged = true;
    item->outcome = RP_OUT_RETRY;
    snprintf(item->note, sizeof item->note,
             "damaged rows of %s: %.120s; put them right, from a backup if need be, then retry, or give it up",
             m->file_id != 0 ? rp_id_format(RP_ID_FILE, m->file_id, id) : rp_id_format(RP_ID_MARK, m->id, id),
             why->text);
}

uint64_t rp_sweep_random(struct rp_sweep_rules *rules)
{
    uint64_t z = (rules->random += UINT64_C(0x9E3779B97F4A7C15)); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* ---- claim ---- */

struct claiming {
    struct rp_claim claim;
    struct rp_sweep_batch *batch;
    int64_t store_ms; /* INT64_MAX: the store has no clock of its own */
    int64_t damaged;  /* the mark that could not be claimed with its file, and why; 0: none */
    struct rp_error why;
};

static int check_clocks(int64_t host_ms, int64_t db_ms, int64_t store_ms, const char *store, struct rp_error *err)
{
    int64_t least = host_ms < db_ms ? host_ms : db_ms, most = host_ms > db_ms ? host_ms : db_ms;
    if (store_ms != INT64_MAX && store_ms < least) least = store_ms;
    if (store_ms != INT64_MAX && store_ms > most) most = store_ms;
    if (most - least <= RP_CLOCKS_APART_MS) return 0;
    if (llabs(host_ms - db_ms) > RP_CLOCKS_APART_MS)
        rp_error_set(err, RP_ECLOCK, "the clocks of host and database are %lld s apart", llabs(host_ms - db_ms) / 1000);
    else
        rp_error_set(err, RP_ECLOCK, "the clock of store '%s' and those of host and database are %" PRId64 " s apart",
                     store, (most - least) / 1000);
    return rp_error_hint(err, "nothing is purged until they agree within 5m: set the clocks");
}

/* A fresh claim moves marked to its next state; a takeover leaves the state as it was. */
static void tally_claims(struct rp_tx *tx, const struct rp_marks *marks)
{
    for (size_t i = 0; i < marks->n; i++) {
        const struct rp_mark *m = &marks->at[i];
        RP_ASSERT(m->was == m->state || rp_state_may_move(m->was, m->state));
        if (m->was == m->state) continue;
        rp_tx_tally(tx, m->store_id, m->was, -1, -m->size_bytes);
        rp_tx_tally(tx, m->store_id, m->state, 1, m->size_bytes);
    }
}

/* Only a mutant calls this. */
static void erase_too_soon(const struct rp_sweep_batch *batch)
{
    struct rp_backend *backend = batch->store->backend;
    for (size_t i = 0; i < batch->marks.n; i++) {
        const struct rp_mark *m = &batch->marks.at[i];
        struct rp_item item = { .key = m->key, .identity = rp_mark_identity(m) };
        struct rp_error ignored = { 0 };
        if (m->state == RP_PURGING) (void)rp_backend_remove(backend, &item, 1, &ignored);
    }
}

static int claim_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct claiming *c = ctx;
    struct rp_store *store = c->batch->store;
    int r = check_clocks(tx->host_ms, tx->db_ms, c->store_ms, store->config->name, err);
    /* another process may have seen since that keys are not what they were promised to be */
    if (r == 0 && store->config->keys == RP_KEYS_WRITE_ONCE) r = rp_guarantee_load(tx->db, store, err);
    if (r < 0) return r;
    c->claim.named = rp_store_is_weak(store);
    c->claim.now_ms = tx->early_ms < c->store_ms ? tx->early_ms : c->store_ms;
    if (RP_MUTANT(CLAIM_BEFORE_DUE)) c->claim.now_ms += c->claim.lease_ms / 2;
    if (RP_MUTANT(PURGE_BY_LATEST_CLOCK)) c->claim.now_ms = tx->late_ms;
    if (RP_MUTANT(STORE_CLOCK_IGNORED)) c->claim.now_ms = tx->early_ms;
    c->batch->marks.n = 0;
    r = rp_marks_claim(tx, &c->claim, &c->batch->marks, err);
    if (r < 0) return r;
    for (size_t i = 0; i < c->batch->marks.n; i++)
        RP_ASSERT(c->batch->marks.at[i].due_at_ms <= c->claim.now_ms); /* NO-EARLY */
    tally_claims(tx, &c->batch->marks);
    if (RP_MUTANT(DELETE_BEFORE_INTENT)) erase_too_soon(c->batch);
    if (c->damaged != 0 && c->batch->marks.n == 1 && c->batch->marks.at[0].id == c->damaged) return 0;
    return rp_files_claimed(tx, store->config->name, &c->batch->marks, c->claim.lease_by, err);
}

/* S6: fewer and fewer, then the first alone, then without its file. */
static int claim_some(struct rp_catalog *catalog, struct claiming *c, struct rp_error *err)
{
    int r;
    while ((r = rp_catalog_transact(catalog, claim_tx, c, err)) < 0 && rp_sweep_may_be_one(r)) {
        if (c->claim.limit == 1 && (c->batch->marks.n != 1 || c->damaged != 0)) break;
        if (c->claim.limit == 1) {
            c->damaged = c->batch->marks.at[0].id;
            c->why = *err;
        } else
            c->claim.limit /= 2;
    }
    return r;
}

static int prepare_batch(struct rp_sweep_batch *batch, struct rp_store *store, int64_t limit, struct rp_error *err)
{
    rp_arena_reset(&batch->arena);
    batch->store = store;
    batch->n_deletes = 0;
    batch->store_code = 0;
    rp_error_clear(&batch->store_error);
    rp_error_clear(&batch->guard_error);
    int r = rp_marks_init(&batch->marks, (size_t)limit, &batch->arena, err);
    batch->items = rp_arena_array(&batch->arena, (size_t)limit, sizeof *batch->items);
    batch->deletes = rp_arena_array(&batch->arena, (size_t)limit, sizeof *batch->deletes);
    if (r < 0 || batch->items == NULL || batch->deletes == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for a batch");
    return 0;
}

static int store_clock(struct rp_store *store, int64_t *out, struct rp_error *err)
{
    *out = INT64_MAX;
    if (!rp_backend_has_clock(store->backend)) return 0;
    return rp_backend_now_ms(store->backend, out, err);
}

int rp_sweep_claim(struct rp_catalog *catalog, struct rp_store *store, const struct rp_sweep_rules *rules,
                   const struct rp_worker *worker, int64_t limit, int64_t *from_ms, struct rp_sweep_batch *batch,
                   struct rp_error *err)
{
    RP_ASSERT(store->config->mode != RP_MODE_OBSERVE);
    if (limit > rules->batch) limit = rules->batch;
    struct claiming c = { .batch = batch,
                          .claim = { .store_id = store->id,
                                     .lease_ms = RP_MUTANT(LEASE_IGNORED) ? 1000 : rules->lease_ms,
                                     .from_ms = *from_ms,
                                     .limit = limit,
                                     .lease_by = worker->name } };
    int r = prepare_batch(batch, store, limit, err);
    if (r == 0) batch->store_code = store_clock(store, &c.store_ms, &batch->store_error);
    if (batch->store_code < 0) return 0; /* nothing is claimed; finish and the sweeper say why */
    if (r == 0) r = claim_some(catalog, &c, err);
    if (r < 0) return rp_error_wrap(err, r, "claim due marks of store '%s'", store->config->name);
    RP_CRASHPOINT("sweep.claimed");
    for (size_t i = 0; i < batch->marks.n; i++) {
        struct rp_mark *m = &batch->marks.at[i];
        batch->items[i] = (struct rp_sweep_item){ .mark = m, .identity = rp_mark_identity(m) };
        if (m->id == c.damaged) rp_sweep_set_damaged(&batch->items[i], &c.why);
        /* claimed in order of time: whatever waits earlier is held, or another one's */
        if (m->was == RP_MARKED && m->attempts == 0 && m->due_at_ms > *from_ms) *from_ms = m->due_at_ms;
    }
    return 0;
}

/* ---- check ---- */

struct checking {
    struct rp_sweep_batch *batch;
    struct rp_sweep_rules *rules;
    const char *actor;
    struct rp_sweep_item **asked;
    int64_t *counts;
    const char **keys;
    size_t n;
    bool answered;
};

static struct rp_move decide_check(const struct checking *c, size_t i, int64_t now_ms, uint64_t random, char note[120])
{
    const struct rp_mark *mark = c->asked[i]->mark;
    struct rp_move move = {
        .mark = mark, .to = RP_PURGING, .next_at_ms = mark->next_at_ms, .attempts = mark->attempts
    };
    if (c->answered && c->counts[i] == 0) return move;
    move.to = RP_MARKED;
    move.next_at_ms = now_ms + (c->answered ? RECHECK_MS : rp_sweep_backoff_ms(c->rules, 1, random));
    if (RP_MUTANT(REFERENCED_FORGOTTEN)) move.next_at_ms = 0;
    if (c->answered)
        snprintf(note, 120, "still referenced by %" PRId64 " rows", c->counts[i]);
    else
        snprintf(note, 120, "%.119s", c->batch->guard_error.text);
    move.note = note;
    return move;
}

static int check_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct checking *c = ctx;
    struct rp_move *moves = rp_arena_array(tx->arena, c->n, sizeof *moves);
    if (moves == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < c->n; i++)
        moves[i] = decide_check(c, i, tx->late_ms, rp_sweep_random(c->rules), c->asked[i]->note);
    int r = rp_state_move(tx, &(struct rp_state_by){ .store = c->batch->store->config->name, .actor = c->actor }, moves,
                          c->n, err);
    if (r < 0) return r;
    for (size_t i = 0; i < c->n; i++)
        rp_sweep_item_of(c->batch, moves[i].mark)->move = moves[i];
    return 0;
}

static int collect_checks(struct checking *c, struct rp_error *err)
{
    struct rp_sweep_batch *b = c->batch;
    c->asked = rp_arena_array(&b->arena, b->marks.n + 1, sizeof(struct rp_sweep_item *));
    c->counts = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *c->counts);
    c->keys = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *c->keys);
    if (c->asked == NULL || c->counts == NULL || c->keys == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->marks.n; i++) {
        if (b->marks.at[i].state != RP_CHECKING) continue;
        c->keys[c->n] = b->marks.at[i].key;
        c->asked[c->n++] = &b->items[i];
    }
    return 0;
}

int rp_sweep_check(struct rp_catalog *catalog, struct rp_sweep_rules *rules, const char *actor,
                   struct rp_sweep_batch *batch, struct rp_error *err)
{
    struct checking c = { .batch = batch, .rules = rules, .actor = actor };
    int r = collect_checks(&c, err);
    if (r < 0 || c.n == 0) return r;
    if (batch->store->guard == NULL) /* the list was taken out of the configuration: we cannot know */
        r = rp_error_set(&batch->guard_error, RP_ECONFIG, "store '%s' has no referenced_by any more",
                         batch->store->config->name);
    else if (!RP_MUTANT(GUARD_SKIPPED))
        r = rp_guard_count(batch->store->guard, c.keys, c.n, c.counts, &batch->guard_error);
    c.answered = r == 0 || RP_MUTANT(GUARD_FAILURE_IS_NO);
    r = RP_MUTANT(DELETE_FROM_CHECKING) ? 0 : rp_catalog_transact(catalog, check_tx, &c, err);
    if (r < 0) return rp_error_wrap(err, r, "check marks of store '%s'", batch->store->config->name);
    RP_CRASHPOINT("sweep.checked");
    for (size_t i = 0; i < c.n; i++) {
        struct rp_sweep_item *item = c.asked[i];
        item->references = c.answered ? c.counts[i] : -1;
        item->skipped = !item->move.done || item->move.to != RP_PURGING;
        if (RP_MUTANT(DELETE_FROM_CHECKING)) item->skipped = !c.answered || c.counts[i] > 0;
        if (!item->skipped) item->mark->state = RP_PURGING;
    }
    return 0;
}

/* ---- learn, set aside, erase ---- */

static bool is_unseen(const struct rp_sweep_item *item)
{
    const struct rp_mark *m = item->mark;
    if (item->damaged) return false;
    if (RP_MUTANT(IDENTITY_FROM_STORE)) return !item->skipped;
    return rp_mark_is_named(m) && !item->skipped && m->etag[0] == 0 && m->version[0] == 0;
}

static bool goes_aside(const struct rp_sweep_batch *batch, const struct rp_mark *mark)
{
    return batch->store->config->mode == RP_MODE_QUARANTINE && !rp_quarantine_is(mark->key);
}

/* What is gone may stand aside already: an earlier attempt was interrupted. Then set_aside has to find the copy. */
static void learn_one(const struct rp_sweep_batch *batch, struct rp_sweep_item *item, const struct rp_item *seen)
{
    bool moved = seen->outcome == RP_OUT_GONE && goes_aside(batch, item->mark);
    item->identity = seen->identity;
    item->outcome = seen->outcome == RP_OUT_FOUND || moved ? RP_OUT_NONE : seen->outcome;
    memcpy(item->note, seen->note, sizeof seen->note);
}

void rp_sweep_learn(struct rp_sweep_batch *batch)
{
    size_t n = 0;
    struct rp_backend *backend = batch->store->backend;
    for (size_t i = 0; i < batch->marks.n; i++)
        if (is_unseen(&batch->items[i])) batch->deletes[n++] = (struct rp_item){ .key = batch->marks.at[i].key };
    if (n == 0) return;
    batch->store_code = rp_backend_stat(backend, batch->deletes, n, &batch->store_error);
    if (batch->store_code < 0) return;
    n = 0;
    for (size_t i = 0; i < batch->marks.n; i++)
        if (is_unseen(&batch->items[i])) learn_one(batch, &batch->items[i], &batch->deletes[n++]);
}

static bool is_store_wide(int code)
{
    return code == RP_EUNAVAILABLE || code == RP_EFULL || code == RP_ENOMEM;
}

/* No copy could be made. An earlier attempt that was interrupted may have made one: only a store that says there is none is
 * believed, for that copy may be all that is left. */
static void look_aside(struct rp_backend *backend, struct rp_sweep_item *item, const char *key, int copy_code)
{
    struct rp_item there = { .key = key };
    struct rp_error why = { 0 };
    int r = rp_backend_stat(backend, &there, 1, &why);
    if (r < 0 || (there.outcome != RP_OUT_FOUND && there.outcome != RP_OUT_GONE)) {
        item->outcome = RP_OUT_RETRY;
        snprintf(item->note, sizeof item->note, "%.200s", r < 0 ? why.text : there.note);
    } else if (there.outcome == RP_OUT_FOUND) {
        item->aside = true;
        item->aside_identity = there.identity;
    } else if (copy_code == RP_ENOTFOUND)
        item->outcome = RP_OUT_GONE;
    else
        item->outcome = copy_code == RP_ECHANGED ? RP_OUT_CHANGED : RP_OUT_UNKNOWN;
}

/* The copy, or the one that an earlier attempt made before it was interrupted. */
static void set_one_aside(struct rp_sweep_batch *batch, struct rp_sweep_item *item)
{
    char key[RP_QUARANTINE_KEY];
    struct rp_backend *backend = batch->store->backend;
    struct rp_error why = { 0 };
    rp_quarantine_key(item->mark->id, key);
    int r = rp_backend_copy(backend, item->mark->key, &item->identity, key, &item->aside_identity, &why);
    if (RP_MUTANT(COPY_NOT_VERIFIED)) r = 0;
    if (r == 0) item->aside = true;
    if (r == RP_EEXISTS || r == RP_ENOTFOUND || r == RP_ECHANGED) {
        look_aside(backend, item, key, r);
        return;
    }
    if (r == 0) return;
    if (is_store_wide(r)) {
        batch->store_code = r;
        batch->store_error = why;
    }
    item->outcome = r == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_RETRY;
    snprintf(item->note, sizeof item->note, "%.200s", why.text);
}

void rp_sweep_set_aside(struct rp_sweep_batch *batch)
{
    RP_CRASHPOINT("sweep.before-aside");
    for (size_t i = 0; i < batch->marks.n && batch->store_code == 0; i++) {
        struct rp_sweep_item *item = &batch->items[i];
        if (item->mark->state == RP_PURGING && !item->skipped && item->outcome == RP_OUT_NONE &&
            goes_aside(batch, item->mark))
            set_one_aside(batch, item);
    }
    RP_CRASHPOINT("sweep.aside");
}

static bool is_ending(enum rp_outcome outcome)
{
    return outcome == RP_OUT_DELETED || outcome == RP_OUT_GONE || outcome == RP_OUT_CHANGED;
}

/* An unmounted disk leaves an empty directory, where everything is "already gone"; a bucket deletes versions that it never had. The owner record tells
 * whether it was our store that answered: otherwise nothing that it said is known. */
static void confirm_store(struct rp_sweep_batch *batch)
{
    struct rp_backend *backend = batch->store->backend;
    struct rp_item owner = { .key = RP_STORE_OWNER };
    batch->store_code = rp_backend_stat(backend, &owner, 1, &batch->store_error);
    if (batch->store_code == 0 && owner.outcome != RP_OUT_FOUND)
        batch->store_code = rp_error_set(&batch->store_error, RP_EUNAVAILABLE,
                                         "store '%s': objects and the owner record are gone; is it mounted?",
                                         batch->store->config->name);
    for (size_t i = 0; i < batch->marks.n && batch->store_code < 0; i++)
        if (is_ending(batch->items[i].outcome)) batch->items[i].outcome = RP_OUT_UNKNOWN;
}

static bool any_ends(const struct rp_sweep_batch *batch)
{
    for (size_t i = 0; i < batch->marks.n; i++)
        if (is_ending(batch->items[i].outcome)) return true;
    return false;
}

static void erase_all(struct rp_sweep_batch *batch, const size_t *from)
{
    struct rp_backend *backend = batch->store->backend;
    RP_CRASHPOINT("sweep.before-erase");
    batch->store_code = rp_backend_remove(backend, batch->deletes, batch->n_deletes, &batch->store_error);
    RP_CRASHPOINT("sweep.erased");
    for (size_t i = 0; i < batch->n_deletes; i++) {
        struct rp_sweep_item *item = &batch->items[from[i]];
        item->outcome = batch->deletes[i].outcome;
        memcpy(item->note, batch->deletes[i].note, sizeof batch->deletes[i].note);
    }
}

void rp_sweep_erase(struct rp_sweep_batch *batch)
{
    size_t *from = rp_arena_array(&batch->arena, batch->marks.n + 1, sizeof *from);
    batch->n_deletes = 0;
    if (batch->store_code < 0) return;
    if (from == NULL) {
        batch->store_code = rp_error_set(&batch->store_error, RP_ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < batch->marks.n; i++) {
        const struct rp_sweep_item *item = &batch->items[i];
        if (item->skipped || item->outcome != RP_OUT_NONE) continue;
        RP_ASSERT(item->mark->state == RP_PURGING); /* INTENT-FIRST */
        RP_ASSERT(item->aside || !goes_aside(batch, item->mark));
        from[batch->n_deletes] = i;
        batch->deletes[batch->n_deletes++] = (struct rp_item){ .key = item->mark->key, .identity = item->identity };
    }
    if (batch->n_deletes > 0) erase_all(batch, from);
    if (batch->store_code == 0 && any_ends(batch) && !RP_MUTANT(EMPTY_STORE_BELIEVED)) confirm_store(batch);
}
