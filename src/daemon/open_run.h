/* SPDX-License-Identifier: Apache-2.0 */
/* open_run.h - the run of the continuous sweep, `sweep` `continuous@NODE`: begun with the first
 * mark that is claimed, its lock renewed every two minutes, closed after an hour and at the end.
 * Exactly one record a run. */
#ifndef RP_DAEMON_OPEN_RUN_H
#define RP_DAEMON_OPEN_RUN_H

#include "daemon/sweep_report.h"

#define RP_CONTINUOUS "continuous@" /* + node */

struct rp_open_run {
    struct rp_run run; /* id 0: none is open */
    struct rp_sweep_report *report;
    struct rp_sweep sweep;        /* whose passes it is of */
    int64_t began_ms, renewed_ms; /* boot clock */
};

/* Purges what is due in one store; the run begins or goes on with it. As rp_sweep_pass, and the
 * same if the run was lost. */
int rp_open_run_pass(struct rp_open_run *open, struct rp_store *store, struct rp_sweep_pass *out, struct rp_error *err);
/* Closes a run that is an hour old, else renews its lock if it is time. Negative: the catalog
 * fails. */
int rp_open_run_keep(struct rp_open_run *open, struct rp_error *err);
int rp_open_run_close(struct rp_open_run *open, struct rp_error *err);

/* A node that never comes back would leave its run without a record, and its lock held, for
 * ever: such runs are closed. */
int rp_open_runs_bury(struct rp_session *session, const char *own, int64_t stale_after_ms, struct rp_error *err);

#endif
