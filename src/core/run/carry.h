/* SPDX-License-Identifier: Apache-2.0 */
/* carry.h - a run that is carried batch by batch to its end on one thread: a restore in bulk, a
 * retention, a safety net, an import.
 *
 * C1  Between two batches it is cancelled, or left: a process that stops leaves it open.
 * C2  What may pass (rp_error_retry) leaves it open too, if its kind is resumed (run.h, U3), and so
 *     does losing it to another worker. Any other error ends it, `failed`.
 * C3  One that was left, or whose worker is gone, is resumed by whoever looks first: same run, same
 *     figures, one record.
 * C4  A batch is one command. Its figures count once it is committed: a command that is run again,
 *     or fails, begins from those of the batch before. */
#ifndef RP_CORE_RUN_CARRY_H
#define RP_CORE_RUN_CARRY_H

#include "core/run/run.h"

#include <signal.h>

#define RP_CARRY_ARENA_MAX ((size_t)16 << 20) /* of a batch, as a rule */

struct rp_carry {
    struct rp_catalog *catalog;
    struct rp_run *run;
    const char *actor;                   /* in whose name the log tells of its end; NULL: the caller tells */
    const volatile sig_atomic_t *cancel; /* set: it ends between two batches, `cancelled`; may be NULL */
    const volatile sig_atomic_t *stop;   /* set: it is left between two batches; may be NULL */
    struct rp_figures before;            /* C4: of the batches before; set by rp_carry_batch */
};
/* C1: no batch is begun any more. */
bool rp_carry_is_over(const struct rp_carry *carry);
/* Keeps figures and lock (rp_run_step) in a transaction of its own. `early_ms`: its time (catalog.h,
 * K5); may be NULL. */
int rp_carry_keep(const struct rp_carry *carry, int64_t *early_ms, struct rp_error *err);
/* C4: waits for the command of a batch, whose run calls rp_carry_rewind first. */
int rp_carry_batch(struct rp_carry *carry, struct rp_command *command, struct rp_error *err);
void rp_carry_rewind(const struct rp_carry *carry);
/* `r`: why it goes no further, or 0. `through`: the outcome if nothing is left to do, else NULL.
 * `outcome`: as it ended; NULL: it is still open (C1, C2). */
int rp_carry_end(const struct rp_carry *carry, int r, const char *through, const char **outcome, struct rp_error *err);
/* C3. RP_ENOTFOUND: none of this kind waits to be resumed. */
int rp_run_resume(struct rp_catalog *catalog, const char *kind, const struct rp_worker *worker, int64_t stale_after_ms,
                  struct rp_run *out, struct rp_error *err);

#endif
