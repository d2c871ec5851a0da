/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - whole sweeps inside the daemon: those of a schedule, and those that people ask for. */
#ifndef RP_DAEMON_RUNS_H
#define RP_DAEMON_RUNS_H

#include "daemon/sweep_report.h"

struct rp_writers;

/* One run over all stores, on this thread. Negative only if none was begun, which is in the log:
 * cleanup_skipped or cleanup_failed. */
int rp_runs_sweep_all(struct rp_sweep_report *report, const volatile sig_atomic_t *stop, struct rp_error *err);

/* ---- runs that people ask for: each on a thread and a session of its own, four at a time ---- */

struct rp_runs;

struct rp_runs_options {
    const struct rp_session *session; /* outlives them */
    struct rp_writers *writers;       /* may be NULL */
    struct rp_metrics *metrics;       /* may be NULL */
    int lane;
};
int rp_runs_new(const struct rp_runs_options *options, struct rp_runs **out, struct rp_error *err);
/* Settings changed: for the runs that begin from now on. `config` outlives them. */
void rp_runs_configure(struct rp_runs *runs, const struct rp_config *config);
/* Room for one run, and the thread that will carry it out: RP_EBUSY without. Then rp_runs_start, in
 * any case. Any thread. */
int rp_runs_reserve(struct rp_runs *runs, struct rp_error *err);
/* That thread carries out a run of one store (NULL: all) that was begun already; `begun` NULL gives
 * the room back. Any thread. */
void rp_runs_start(struct rp_runs *runs, const char *store, const char *actor, const struct rp_run *begun);
/* Those under way end after their batches, and none begins any more. Comes before rp_runs_stop,
 * or not at all. NULL is fine. */
void rp_runs_halt(struct rp_runs *runs);
/* The same, and waits for them. */
void rp_runs_stop(struct rp_runs *runs);

#endif
