/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_report.h - what a sweep inside the daemon says on its way: to the log and to the
 * metrics. Used by the thread that sweeps. */
#ifndef RP_DAEMON_SWEEP_REPORT_H
#define RP_DAEMON_SWEEP_REPORT_H

#include "core/sweep/sweep.h"
#include "lib/session.h"
#include "metrics/metrics.h"

struct rp_sweep_report {
    struct rp_session *session;
    struct rp_metrics *metrics; /* may be NULL */
    void (*alive)(void *ctx);   /* after every batch; may be NULL */
    void *ctx;
};

/* The sweep of this session, all but `stores` and `name`, which reports here. */
struct rp_sweep rp_sweep_report_sweep(struct rp_sweep_report *report, const volatile sig_atomic_t *stop);
/* The end of a run: cleanup_completed or cleanup_failed, and the metrics of runs. */
void rp_sweep_report_ended(struct rp_sweep_report *report, const struct rp_run *run, const char *outcome, int code);
/* A run that could not begin: cleanup_failed. Of one whose lock is held its command has told. */
void rp_sweep_report_not_begun(struct rp_sweep_report *report, int code, const struct rp_error *err);
/* A store that is not purged now, and why. */
void rp_sweep_report_left_out(struct rp_sweep_report *report, const struct rp_store *store, const struct rp_error *why);

#endif
