/* SPDX-License-Identifier: Apache-2.0 */
/* carry.h - a run that is carried batch by batch to its end on one thread: a restore in bulk, a
 * retention, a safety net.
 *
 * C1  Between two batches it is cancelled, or left: a process that stops leaves it open.
 * C2  What may pass (rp_error_retry) leaves it open too, and so does losing it to another worker.
 *     Any other error ends it, `failed`.
 * C3  One that was left, or whose worker is gone, is resumed by whoever looks first: same run, same
 *     figures, one record. */
#ifndef RP_CORE_RUN_CARRY_H
#define RP_CORE_RUN_CARRY_H

#include "core/run/run.h"

#include <signal.h>

struct rp_carry {
    struct rp_catalog *catalog;
    struct rp_run *run;
    const char *actor;                   /* in whose name the log tells of its end */
    const volatile sig_atomic_t *cancel; /* set: it ends between two batches, `cancelled`; may be NULL */
    const volatile sig_atomic_t *stop;   /* set: it is left between two batches; may be NULL */
};
/* C1: no batch is begun any more. */
bool rp_carry_is_over(const struct rp_carry *carry);
/* `r`: why it goes no further, or 0. `through`: the outcome if nothing is left to do, else NULL.
 * `outcome`: as it ended; NULL: it is still open (C1, C2). */
int rp_carry_end(const struct rp_carry *carry, int r, const char *through, const char **outcome, struct rp_error *err);
/* C3. RP_ENOTFOUND: none of this kind waits to be resumed. */
int rp_run_resume(struct rp_catalog *catalog, const char *kind, const struct rp_worker *worker, int64_t stale_after_ms,
                  struct rp_run *out, struct rp_error *err);

#endif
