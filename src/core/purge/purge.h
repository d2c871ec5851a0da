/* SPDX-License-Identifier: Apache-2.0 */
/* purge.h - ends marks that have come due, a batch of one store at a time, in steps with one
 * outside effect each.
 *
 * S1  Nothing is erased without a claim that is durable (INTENT-FIRST): claim commits `purging`
 *     - or `checking`, for a mark with checks, and check commits `purging` - before erase
 *     touches the store.
 * S2  A claim carries a fence and a lease; finishing with an old fence changes nothing (FENCED); an
 *     expired lease is taken over by the next claim.
 * S3  Nothing is claimed before it is due on every clock we see: host, database, store (NO-EARLY).
 * S4  A failed purge stays and is tried again, later each time; used-up attempts make a dead
 *     letter. A failure of the store as a whole uses up no attempt (requirement M12).
 * S5  "Already gone" is believed only while the store's owner record is there.
 * S6  Rows that cannot be (a mark whose file is gone, a refund that was made before) hold up nobody
 *     else: the mark that they belong to fails alone, with a note that says why. None of these rows
 *     is touched, and nothing is erased if the claim found them.
 * S7  A batch is worked on in slices: look, quarantine, erase, finish. What a slice did is
 *     committed before the next begins. Leases are renewed by fence, each third of their time;
 *     nothing is begun in the store once ours is over by the boot clock. What is left after the
 *     time of one lease is given back: a batch of a slow store keeps nobody else away.
 * S8  Before the copy of something that was returned from quarantine is erased, the object is
 *     looked at: a delete that was sent long ago may have taken it. If it is gone, lives by the
 *     catalog and no later mark of it was purged, it is brought back, and the copy stays for
 *     another day. While a later mark of it waits, so does the copy.
 * S9  Where the store can hide an object (docs/guarantees.md), quarantine is in place: hidden it
 *     stays where it was, with its older versions.
 * S10 A purge that takes older versions along waits while one of them is in quarantine: no setting
 *     changed meanwhile shortens its time. Older is what was marked before, or what the bucket says
 *     was uploaded before. Where these two do not agree, for a clock was set back, it waits until
 *     the other one's purge is decided as well.
 * S11 What shows itself again when its time in quarantine is over is not erased: whoever has removed
 *     the marker has returned it. Its mark ends with that. A file's fails and becomes a dead letter,
 *     for a file's end would erase all that stands under its key. What was shown and then marked
 *     anew waits as long as that mark does.
 *
 *   marked   -> checking, purging      rp_purge_claim
 *   checking -> purging, marked        rp_purge_check
 *   (the store alone)                  rp_purge_look, rp_purge_quarantine, rp_purge_return,
 *                                      rp_purge_erase
 *   purging  -> purged, purging, dead, reprieved  rp_purge_finish
 *   (leases alone)                     rp_purge_renew
 *   checking -> marked                 rp_purge_release */
#ifndef RP_CORE_PURGE_H
#define RP_CORE_PURGE_H

#include "base/arena.h"
#include "base/error.h"
#include "catalog/mark/mark.h"
#include "core/check/check.h"
#include "core/run/run.h"
#include "core/store.h"

struct rp_purge_rules {
    int64_t batch, lease_ms, max_attempts, retry_first_ms, retry_most_ms;
    uint64_t random; /* state of the jitter; seeded by the surface */
    bool unseen;     /* nothing but uploads that were never seen in their store: the others wait (requirement M11) */
};
uint64_t rp_purge_random(struct rp_purge_rules *rules);

/* What is known of one claimed mark. decide.c has the table of what each means. */
enum rp_purge_status {
    RP_ITEM_CLAIMED,       /* nothing yet */
    RP_ITEM_KEPT,          /* a check did not say yes: the mark waits again */
    RP_ITEM_COPIED,        /* a verified copy stands in quarantine */
    RP_ITEM_ERASED,        /* by us */
    RP_ITEM_GONE,          /* nothing was there any more */
    RP_ITEM_CHANGED,       /* another upload stands under the key; left alone */
    RP_ITEM_MOVED,         /* copied, then erased by us; or hidden in place */
    RP_ITEM_MOVED_GONE,    /* copied, then nothing was there any more: an earlier attempt got that far */
    RP_ITEM_MOVED_CHANGED, /* copied, then another upload stood under the key */
    RP_ITEM_WAITS,         /* S8: what it came back as is marked again; S10, S11 */
    RP_ITEM_RETURNED,      /* S8: brought back once more, and kept for another day */
    RP_ITEM_FAILED,        /* nothing happened */
    RP_ITEM_UNKNOWN,       /* it may have happened */
    RP_ITEM_DAMAGED,       /* S6 */
    RP_ITEMS
};

/* Of a copy whose object was returned: what it came back as. */
struct rp_purge_return {
    const char *key; /* NULL: it is no such copy, or need not be looked at any more */
    int64_t mark_id, file_id;
    bool annotated;
    struct rp_identity identity; /* RETURNED: as what */
    bool unwanted;               /* RETURNED, and meanwhile it was marked: to be taken away again */
};

struct rp_purge_item {
    struct rp_mark *mark;
    enum rp_purge_status status;
    char note[240];              /* failed, unknown, damaged, kept: why */
    struct rp_identity identity; /* what is to be erased: the mark's; seen, for an upload that was never confirmed */
    struct rp_identity copy;     /* in quarantine, once COPIED */
    bool in_place;               /* MOVED: it is no copy: hidden where it was */
    struct rp_purge_return back; /* S8 */
    int64_t references;          /* kept: how many a check counted; -1: they were not */
    struct rp_move move;         /* decided by check or finish */
};

struct rp_purge_batch {
    struct rp_store *store;
    struct rp_marks marks;
    struct rp_purge_item *items;  /* one a mark */
    struct rp_item *asked;        /* what the store is asked ... */
    struct rp_purge_item **about; /* ... and about which */
    struct rp_arena arena;
    int64_t now_ms; /* of the claim: the earliest of all clocks */
    /* S7. Moments are of the boot clock. */
    const struct rp_clock *clock;
    size_t from, to; /* the slice: what is before it is finished, what is after it not begun */
    bool looked;
    int64_t lease_ms, claimed_at_ms, slice_ends_ms;
    int64_t lease_ends_ms;       /* atomic: renewed while the store's part is under way; 0: lost */
    struct rp_error store_error; /* code 0: the store as a whole did not fail */
    struct rp_error check_error; /* code 0: the checks answered, or were not asked */
};

void rp_purge_batch_init(struct rp_purge_batch *batch);
void rp_purge_batch_done(struct rp_purge_batch *batch);
struct rp_purge_item *rp_purge_item_of(struct rp_purge_batch *batch, const struct rp_mark *mark);

/* Claims up to rules->batch (and `limit`) due marks of one store that came due at `*from_ms` or
 * later; afterwards *from_ms is where the next claim of this run may begin. batch->marks.n is 0
 * when nothing is due, and when the store's clock could not be asked: batch->store_error says
 * so. In a store that is too weak only what guarantee.h, L4 names is claimed; the rest waits. */
int rp_purge_claim(struct rp_catalog *catalog, struct rp_store *store, const struct rp_purge_rules *rules,
                   const struct rp_worker *worker, int64_t limit, int64_t *from_ms, struct rp_purge_batch *batch,
                   struct rp_error *err);
/* The same of marks that wait for confirmations (core/confirm), also before they are due: nothing of
 * them is purged. */
struct rp_confirm_claim {
    const char *services;   /* "|calendar|mail|": whose turn it is */
    bool strays;            /* it is the turn of none of these, and has been for a day */
    bool only_asked_before; /* only what somebody was asked about before */
};
int rp_purge_claim_to_confirm(struct rp_catalog *catalog, struct rp_store *store, const struct rp_purge_rules *rules,
                              const struct rp_worker *worker, const struct rp_confirm_claim *of, int64_t limit,
                              struct rp_purge_batch *batch, struct rp_error *err);
/* S8, S10, S11: what the catalog knows beside the marks of the batch. */
int rp_purge_load(struct rp_catalog *catalog, struct rp_purge_batch *batch, struct rp_error *err);
int rp_purge_check(struct rp_catalog *catalog, struct rp_purge_rules *rules, const char *actor,
                   struct rp_purge_batch *batch, struct rp_error *err);

/* The store's part of a slice; safe on another thread than the catalog's. What goes wrong is in
 * items and in store_error. look: where a mark was born before its object, what stands under the
 * key is what it is about: we named that key. quarantine decides how far the slice goes: a sixth of
 * the lease's time, or to the end. */
void rp_purge_look(struct rp_purge_batch *batch);
void rp_purge_quarantine(struct rp_purge_batch *batch);
void rp_purge_return(struct rp_purge_batch *batch); /* S8 */
void rp_purge_erase(struct rp_purge_batch *batch);

/* Leases, beside the store's part. A mark that another worker has claimed since ends them all: the
 * batch was too slow, and nothing more is begun. Negative: the catalog failed, and they go on. */
int rp_purge_renew(struct rp_catalog *catalog, struct rp_purge_batch *batch, struct rp_error *err);
bool rp_purge_is_renewal_due(const struct rp_purge_batch *batch);
bool rp_purge_has_lease(const struct rp_purge_batch *batch);
/* The slice is finished. True: another one follows; else what is left is to be given back. */
bool rp_purge_next(struct rp_purge_batch *batch);

/* Judges every item of the slice, moves the marks, adds to the run's figures, renews its lock. */
int rp_purge_finish(struct rp_catalog *catalog, struct rp_purge_rules *rules, struct rp_purge_batch *batch,
                    struct rp_run *run, struct rp_error *err);
/* Gives back what no slice has done (a stop, an error, the end of its time): due again at once, no
 * attempt used. Best effort: the lease ends by itself. */
void rp_purge_release(struct rp_catalog *catalog, struct rp_purge_batch *batch, const char *actor);

/* ---- pure ---- */

/* What the store's word makes of an item. */
enum rp_purge_status rp_purge_status_after(enum rp_purge_status before, enum rp_outcome outcome);
bool rp_purge_is_open(enum rp_purge_status status);    /* the store has still to act on it */
bool rp_purge_is_end(enum rp_purge_status status);     /* nothing is left of it, if the store is believed */
bool rp_purge_is_skipped(enum rp_purge_status status); /* it waits, and nothing went wrong */
/* What an item means for its mark in `purging`. `random` is any number, for the jitter. */
struct rp_move rp_purge_judge(const struct rp_purge_item *item, bool store_failed, const struct rp_purge_rules *rules,
                              int64_t now_ms, uint64_t random);
/* What the checks' answer means for a mark in `checking`. */
struct rp_move rp_purge_decide_check(const struct rp_mark *mark, const struct rp_check_answer *answer,
                                     const struct rp_purge_rules *rules, int64_t now_ms, uint64_t random);
/* How long to wait after this many failures: doubled each time up to the most, and +-50 %. */
int64_t rp_purge_backoff_ms(const struct rp_purge_rules *rules, int64_t failures, uint64_t random);
/* How long what a check has not agreed to waits until it is asked about again. */
int64_t rp_purge_recheck_ms(const struct rp_check_answer *answer, const struct rp_purge_rules *rules, uint64_t random);

#endif
