/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - what the steps of a purge share. For the files of this folder. */
#ifndef RP_CORE_PURGE_BATCH_H
#define RP_CORE_PURGE_BATCH_H

#include "core/purge/purge.h"

/* Room for `limit` marks, all of it as new. */
int rp_purge_batch_prepare(struct rp_purge_batch *batch, struct rp_store *store, int64_t limit, struct rp_error *err);

/* What is known of it now, and why. */
void rp_purge_set_status(struct rp_purge_item *item, enum rp_purge_status status, const char *note, ...)
    __attribute__((format(printf, 3, 4)));

/* S7 */
void rp_purge_lease_begins(struct rp_purge_batch *batch, const struct rp_clock *clock, int64_t lease_ms,
                           int64_t boot_ms);

/* How long a slice goes on: a sixth of the lease's time. */
void rp_purge_slice_begins(struct rp_purge_batch *batch);
bool rp_purge_has_slice(const struct rp_purge_batch *batch);

/* S6: the marks that one transaction is about. */
struct rp_purge_part {
    size_t n;            /* at most so many */
    bool damaged;        /* the first of them is alone, and its rows made the transaction fail before */
    struct rp_error why; /* damaged: how it failed */
};
/* Runs the transaction with part->n marks; if it fails for what may be the rows of one, with
 * half of them, down to that one, and at last with that one as damaged. `ctx` reads `part`. */
int rp_purge_narrow(struct rp_catalog *catalog, rp_tx_fn *fn, void *ctx, struct rp_purge_part *part,
                    struct rp_error *err);
/* catalog.h, K8: locks the tenants of n of the batch's marks, from this one on. */
int rp_purge_take_tenants(struct rp_tx *tx, const struct rp_purge_batch *batch, size_t from, size_t n,
                          struct rp_error *err);
void rp_purge_set_damaged(struct rp_purge_item *item, const struct rp_error *why);

/* load: S8 */
int rp_purge_load_returns(struct rp_catalog *catalog, struct rp_purge_batch *batch, struct rp_error *err);
/* finish: S8, of the marks that are moved now. */
int rp_purge_note_returns(struct rp_tx *tx, struct rp_purge_batch *batch, const char *actor, size_t from, size_t n,
                          struct rp_error *err);
/* After it: what came back and is not wanted any more. */
void rp_purge_take_away(struct rp_purge_batch *batch);

/* finish: the marks of what was copied into quarantine by marks that were moved just now. */
int rp_purge_mark_copies(struct rp_tx *tx, struct rp_purge_batch *batch, struct rp_run *run,
                         const struct rp_move *moves, size_t n, struct rp_error *err);

#endif
