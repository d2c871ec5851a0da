/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h - records of what has ended are let go after a while, so that the catalog grows with
 * what is there and not with what ever was. A run of kind `retention` with lock, figures and
 * record.
 *
 * R1  What may go is said by a table of steps (steps.h): each has a name, a setting, and
 *     looks for rows that ended before a moment and may go.
 * R2  A batch is a look at RP_RETENTION_BATCH rows at most, outside of any transaction, and, if it
 *     found something, one command with a round of its own: it locks what it found, looks again
 *     whether each row may still go, and lets those go. Locks are taken in the one order
 *     (catalog.h, K8); what somebody else has locked is left for the next run.
 * R3  A batch, its figures and its audit row are one commit. A step may be repeated: what is gone
 *     is not found again. So a run whose process died is taken over and goes on from its first
 *     step.
 * R4  Age is counted by the earliest of the clocks that we see (catalog.h, K5), as for a purge.
 *     While a clock that jumped is not accepted, it is counted by the boot clock.
 * R5  `forever` turns a step off. Deletion records of runs stay, whatever the settings say.
 * R6  A stop leaves the run open, to be taken over; a cancel ends it with its record. */
#ifndef RP_CORE_RETENTION_H
#define RP_CORE_RETENTION_H

#include "config/config.h"
#include "core/run/carry.h"

#include <signal.h>

#define RP_RETENTION_BATCH    1000
#define RP_RETENTION_SCHEDULE "17 3 * * *"
#define RP_RETENTION_NAME     "records" /* of its runs: what they are about */
#define RP_RETENTION_LOOKS    100       /* of a dry run, a step: 100,000 rows */

struct rp_retention {
    struct rp_catalog *catalog;
    struct rp_retention_config rules;
    const struct rp_worker *worker;
    const char *actor;
    int64_t stale_after_ms;
    const volatile sig_atomic_t *cancel; /* set: the run ends between two batches, `cancelled`; may be NULL */
    const volatile sig_atomic_t *stop;   /* R6; may be NULL */
    /* After each batch, with the figures so far. May be NULL. */
    void (*finished)(void *ctx, const struct rp_run *run);
    void *ctx;
};

/* Takes an open run over that nobody works on, or begins one. RP_ERUNNING: somebody works on
 * one. */
int rp_retention_begin(struct rp_retention *retention, struct rp_run *out, struct rp_error *err);
/* Carries a run that was begun or resumed to its end (core/run/carry.h). `outcome`: done,
 * cancelled, failed; NULL: it is still open, because `stop` was set, the catalog cannot be reached
 * (negative), or another worker has it now (negative, run->lost). */
int rp_retention_carry(struct rp_retention *retention, struct rp_run *run, const char **outcome, struct rp_error *err);
/* What a run would let go now, by step, into figures->let_go; nothing is written. `complete` false:
 * a step has more rows than are looked at (RP_RETENTION_LOOKS), and what was counted is the least
 * that would go. */
int rp_retention_look(struct rp_retention *retention, struct rp_figures *figures, bool *complete, struct rp_error *err);

#endif
