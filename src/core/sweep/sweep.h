/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - a run over the stores that may be purged: batches of due marks (core/purge) until
 * nothing is due.
 *
 * W1  While the store deletes some batches, the catalog finishes the one before and claims the
 *     next; memory is that of the batches under way, whatever waits (pass.c).
 *     Batches are done in slices, and their leases renewed meanwhile (purge.h, S7).
 * W2  A store that fails, or may not be purged, is left out and the others go on; a catalog that
 *     fails ends the run.
 * W3  A run ends with its record, however it ends; a stop is asked for between two slices.
 * W4  A dry run looks and writes nothing anywhere (plan.h). */
#ifndef RP_CORE_SWEEP_H
#define RP_CORE_SWEEP_H

#include "core/sweep/sweeper.h"

struct rp_sweep {
    struct rp_sweeper by;
    const char *name; /* of the run: a store's, or "all" */
    int64_t limit;    /* marks a run */
    int64_t stale_after_ms;
    const struct rp_run *begun; /* a run that somebody has begun for us already; NULL: begin one */
    /* Told of the run's begin, of every finished batch, and of every store that is left out and
     * why. May be NULL. */
    void (*started)(void *ctx, const struct rp_run *run);
    void (*finished)(void *ctx, const struct rp_purge_batch *batch, const struct rp_run *run);
    void (*left_out)(void *ctx, const struct rp_store *store, int64_t due, const struct rp_error *why);
    void *ctx;
};

struct rp_sweep_result {
    struct rp_run run;
    const char *outcome; /* done, partial, failed, cancelled */
    int code;            /* with failed: why */
};

/* Negative only if no run could be begun. Otherwise the result tells, and the run has its
 * record. */
int rp_sweep_run(struct rp_sweep *sweep, struct rp_sweep_result *out, struct rp_error *err);

/* ---- a run that stays open: the continuous sweep ----
 * It begins with the first mark that a pass claims (run->id 0: not begun yet; zero it, give it back
 * to every pass), is renewed while nothing is due, and closed by the caller, who then zeroes it
 * again. run->lost: another one has taken it over and written its record; there is nothing to
 * close. */

struct rp_sweep_pass {
    int64_t claimed;     /* marks that were taken; the limit: there may be more */
    struct rp_error why; /* code < 0: the store was not purged, or failed as a whole; wait before the next pass */
};
/* Purges what is due now in one store, at most sweep->limit marks. Negative only for trouble
 * with the catalog. */
int rp_sweep_pass(struct rp_sweep *sweep, struct rp_store *store, struct rp_run *run, struct rp_sweep_pass *out,
                  struct rp_error *err);
int rp_sweep_renew(struct rp_sweep *sweep, struct rp_run *run, struct rp_error *err);
/* Writes the record. On failure the run is still open and may be closed later. */
int rp_sweep_close(struct rp_sweep *sweep, struct rp_run *run, const char **outcome, struct rp_error *err);

/* How many due marks of plain objects wait because the store is too weak for them (guarantee.h);
 * then `why` says so. Those of files are purged all the same. */
int64_t rp_sweep_count_too_weak(struct rp_sweep *sweep, struct rp_store *store, struct rp_error *why);

#endif
