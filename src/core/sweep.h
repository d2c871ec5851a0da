/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - purges marks that have come due, in steps with one outside effect each.
 *
 * S1  Nothing is erased without a claim that is durable (INTENT-FIRST): claim commits `purging` - or `checking`, for a mark
 *     with a guard, and check commits `purging` - before erase touches the store.
 * S2  A claim carries a fence and a lease; finishing with an old fence changes nothing (FENCED); an expired lease is
 *     taken over by the next claim.
 * S3  Nothing is claimed before it is due on every clock we see: host, database, store (NO-EARLY).
 * S4  A failed purge stays and is tried again, later each time; used-up attempts make a dead letter. A store-wide failure
 *     uses up no attempt (M12).
 * S5  "Already gone" is believed only while the store's owner record is there.
 * S6  Rows that cannot be (a mark whose file is gone, a refund that was made before) hold up nobody else: a transaction that they make
 *     fail is tried with half of its marks, down to the one whose rows they are. Its attempt has failed and its note says why; none of these
 *     rows is touched, and nothing is erased if the claim found it.
 *
 *   marked   -> checking, purging      rp_sweep_claim
 *   checking -> purging, marked        rp_sweep_check
 *   (looked at, copied aside, erased)  rp_sweep_learn, rp_sweep_set_aside, rp_sweep_erase: the store only
 *   purging  -> purged, purging, dead  rp_sweep_finish */
#ifndef RP_CORE_SWEEP_H
#define RP_CORE_SWEEP_H

#include "base/error.h"
#include "catalog/mark.h"
#include "core/run.h"
#include "core/store.h"

#define RP_CLOCKS_APART_MS (5 * RP_MINUTE_MS)

struct rp_sweep_rules {
    int64_t batch, lease_ms, max_attempts, retry_first_ms, retry_most_ms;
    uint64_t random; /* state of the jitter; seeded by the surface */
};

uint64_t rp_sweep_random(struct rp_sweep_rules *rules);

/* What becomes of one claimed mark. */
struct rp_sweep_item {
    struct rp_mark *mark;
    struct rp_identity identity; /* of the object; learned from the store for an upload that was never confirmed */
    enum rp_outcome outcome;     /* of the store, or NONE while it was not asked */
    char note[240];
    bool damaged; /* S6 */
    bool skipped; /* moved back to marked: still referenced, or the guard could not answer */
    int64_t references;
    bool aside; /* a verified copy stands in quarantine */
    struct rp_identity aside_identity;
    struct rp_move move; /* decided by finish */
};

struct rp_sweep_batch {
    struct rp_store *store;
    struct rp_marks marks;
    struct rp_sweep_item *items; /* one a mark */
    struct rp_item *deletes;     /* what the store is asked, for items in `purging` */
    size_t n_deletes;
    struct rp_arena arena;
    int store_code; /* negative: the store as a whole failed, with the words below */
    struct rp_error store_error;
    struct rp_error guard_error; /* code 0: the guard answered, or was not asked */
};

void rp_sweep_batch_init(struct rp_sweep_batch *batch);
void rp_sweep_batch_done(struct rp_sweep_batch *batch);
struct rp_sweep_item *rp_sweep_item_of(struct rp_sweep_batch *batch, const struct rp_mark *mark);
/* S6: whether a transaction that failed like this may have failed for the rows of one mark. */
bool rp_sweep_may_be_one(int code);
/* S6: the rows of this mark made a transaction fail that had no other. */
void rp_sweep_set_damaged(struct rp_sweep_item *item, const struct rp_error *why);

/* Claims up to rules->batch (and `limit`) due marks of one store that came due at `*from_ms` or later; afterwards *from_ms is
 * where the next claim of this run may begin. batch->marks.n is 0 when nothing is due, and when the store's clock could not be asked:
 * batch->store_code is negative then. In a store that is too weak only what guarantee.h, L4 names is claimed; the rest waits. */
int rp_sweep_claim(struct rp_catalog *catalog, struct rp_store *store, const struct rp_sweep_rules *rules,
                   const struct rp_worker *worker, int64_t limit, int64_t *from_ms, struct rp_sweep_batch *batch,
                   struct rp_error *err);
int rp_sweep_check(struct rp_catalog *catalog, struct rp_sweep_rules *rules, const char *actor,
                   struct rp_sweep_batch *batch, struct rp_error *err);
/* Where a mark was born before its object, what stands under the key is what it is about: nobody else names such keys. */
void rp_sweep_learn(struct rp_sweep_batch *batch);
/* The store's part; safe on another thread than the catalog's. They fill outcomes and store_code and cannot fail otherwise. */
void rp_sweep_set_aside(struct rp_sweep_batch *batch);
void rp_sweep_erase(struct rp_sweep_batch *batch);
/* Judges every outcome, moves the marks, adds to the run's figures, renews its lock. */
int rp_sweep_finish(struct rp_catalog *catalog, struct rp_sweep_rules *rules, struct rp_sweep_batch *batch,
                    struct rp_run *run, struct rp_error *err);
/* Gives claimed marks back unerased (a stop, an error): due again at once, no attempt used. Best effort: the lease ends
 * by itself. */
void rp_sweep_release(struct rp_catalog *catalog, struct rp_sweep_batch *batch, const char *actor);

/* Pure: what the store's word means for a mark in `purging`. `random` is any number, for the jitter. */
struct rp_move rp_sweep_judge(const struct rp_mark *mark, const struct rp_sweep_item *item, bool store_failed,
                              const struct rp_sweep_rules *rules, int64_t now_ms, uint64_t random);
/* Pure: how long to wait after this many failures: doubled each time up to the most, and +-50 %. */
int64_t rp_sweep_backoff_ms(const struct rp_sweep_rules *rules, int64_t failures, uint64_t random);

#endif
