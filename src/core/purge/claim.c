/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c - due marks become this worker's, and whatever follows from that is committed with it. */
#include "base/assert.h"
#include "base/crashpoint.h"
#include "base/time.h"
#include "catalog/clock.h"
#include "core/guarantee.h"
#include "core/owner/owner.h"
#include "core/owner/vessel.h"
#include "core/purge/batch.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <inttypes.h>
#include <stdlib.h>

struct claiming {
    struct rp_claim claim;
    struct rp_purge_batch *batch;
    int64_t store_ms; /* INT64_MAX: the store has no clock of its own */
    struct rp_purge_part part;
    int64_t db_ms;    /* of the last transaction */
    int64_t first_id; /* of the marks that were claimed last */
    int64_t looked_epoch;
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

static void fill_items(struct rp_purge_batch *batch)
{
    for (size_t i = 0; i < batch->marks.n; i++) {
        struct rp_mark *m = &batch->marks.at[i];
        batch->items[i] = (struct rp_purge_item){ .mark = m, .identity = rp_subject_identity(m) };
    }
}

static int claim_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct claiming *c = ctx;
    struct rp_store *store = c->batch->store;
    struct rp_marks *marks = &c->batch->marks;
    c->db_ms = tx->db_ms;
    int r = rp_clock_refuse(tx->ahead_ms, err);
    if (r == 0) r = check_clocks(tx->host_ms, tx->db_ms, c->store_ms, store->config->name, err);
    if (r == 0) r = rp_store_share(tx, store->id, store->config->name, err);
    if (r == 0) r = rp_vessel_check(tx, store, err);
    if (r == 0) r = rp_owner_check_epoch(tx, store, c->looked_epoch, err);
    /* another process may have seen since that keys are not what they were promised to be */
    if (r == 0 && store->config->keys == RP_KEYS_WRITE_ONCE) r = rp_guarantee_load(tx->db, store, err);
    if (r < 0) return r;
    c->claim.limit = (int64_t)c->part.n;
    c->claim.named = rp_store_is_weak(store);
    c->claim.now_ms = tx->early_ms < c->store_ms ? tx->early_ms : c->store_ms;
    marks->n = 0;
    r = rp_state_claim(tx, &c->claim, marks, err);
    if (r < 0) return r;
    c->batch->now_ms = c->claim.now_ms;
    fill_items(c->batch);
    if (c->part.damaged && marks->n == 1 && marks->at[0].id == c->first_id) { /* S6: claimed, and nothing else */
        rp_purge_set_damaged(&c->batch->items[0], &c->part.why);
        return 0;
    }
    c->first_id = marks->n > 0 ? marks->at[0].id : 0;
    return rp_subjects_claimed(tx, store->config->name, marks, c->claim.lease_by, err);
}

static int unclaim_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct claiming *c = ctx;
    return rp_state_unclaim(tx, &c->claim, c->db_ms, err);
}

/* `what`: of whom, and how many. */
static int claim(struct rp_catalog *catalog, struct rp_store *store, const struct rp_purge_rules *rules,
                 const struct claiming *what, struct rp_purge_batch *batch, struct rp_error *err)
{
    struct claiming c = *what;
    int64_t limit = (int64_t)c.part.n;
    RP_ASSERT(store->config->mode != RP_MODE_OBSERVE);
    if (limit > rules->batch) limit = rules->batch;
    c.part.n = (size_t)limit;
    c.batch = batch;
    c.claim.store_id = store->id;
    c.claim.lease_ms = rules->lease_ms;
    c.claim.asks = rp_store_asks(store);
    c.claim.unseen = rules->unseen;
    c.looked_epoch = catalog->looked_epoch;
    int64_t boot_ms = rp_clock_boot_ms(catalog->clock); /* before the transaction: our lease ends no later */
    int r = rp_purge_batch_prepare(batch, store, limit, err);
    rp_purge_lease_begins(batch, catalog->clock, rules->lease_ms, boot_ms);
    if (r == 0 && rp_subject_in(store)->clock(store, &c.store_ms, &batch->store_error) < 0) return 0;
    rp_error_clear(&batch->store_error);
    if (r == 0) r = rp_purge_narrow(catalog, claim_tx, &c, &c.part, err);
    struct rp_error ignored = { 0 }; /* best effort: the lease ends by itself */
    if (r == RP_EUNKNOWN) (void)rp_catalog_transact(catalog, unclaim_tx, &c, &ignored);
    if (r < 0) return rp_error_wrap(err, r, "claim due marks of store '%s'", store->config->name);
    RP_CRASHPOINT("sweep.claimed");
    batch->to = batch->marks.n;
    return 0;
}

int rp_purge_claim(struct rp_catalog *catalog, struct rp_store *store, const struct rp_purge_rules *rules,
                   const struct rp_worker *worker, int64_t limit, int64_t *from_ms, struct rp_purge_batch *batch,
                   struct rp_error *err)
{
    struct claiming c = { .claim = { .from_ms = *from_ms, .lease_by = worker->name }, .part = { .n = (size_t)limit } };
    int r = claim(catalog, store, rules, &c, batch, err);
    if (r < 0) return r;
    /* claimed in order of time: whatever waits earlier is held, or another one's */
    for (size_t i = 0; i < batch->marks.n; i++) {
        const struct rp_mark *m = &batch->marks.at[i];
        if (m->was == RP_MARKED && m->attempts == 0 && m->due_at_ms > *from_ms) *from_ms = m->due_at_ms;
    }
    return 0;
}

int rp_purge_claim_to_confirm(struct rp_catalog *catalog, struct rp_store *store, const struct rp_purge_rules *rules,
                              const struct rp_worker *worker, const struct rp_confirm_claim *of, int64_t limit,
                              struct rp_purge_batch *batch, struct rp_error *err)
{
    struct claiming c = { .claim = { .lease_by = worker->name,
                                     .confirmers = of->services,
                                     .others = of->strays,
                                     .asked = of->only_asked_before },
                          .part = { .n = (size_t)limit } };
    return claim(catalog, store, rules, &c, batch, err);
}
