/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_run.h - a whole sweep inside the daemon: what a run tells on its way (log, metrics, sign of life), and the runs that a
 * schedule or a person asks for. */
#ifndef RP_DAEMON_SWEEP_RUN_H
#define RP_DAEMON_SWEEP_RUN_H

#include "core/sweeper.h"
#include "lib/session.h"
#include "metrics/metrics.h"

struct rp_writers;

/* Where a sweep tells what it does. Used by the thread that sweeps. */
struct rp_sweep_teller {
    struct rp_session *session;
    struct rp_metrics *metrics;                         /* may be NULL */
    void (*alive)(void *ctx);                           /* after every batch; may be NULL */
    void (*begun)(void *ctx, const struct rp_run *run); /* may be NULL */
    void *ctx;
};

/* The sweeper of this session, all but `stores` and `name`, telling through `teller`. */
struct rp_sweeper rp_sweep_teller_sweeper(struct rp_sweep_teller *teller, const volatile sig_atomic_t *stop);
/* The end of a run: cleanup_completed or cleanup_failed, and the metrics of runs. */
void rp_sweep_teller_ended(struct rp_sweep_teller *teller, const struct rp_run *run, const char *outcome, int code);
/* A store that is not purged now, and why. */
void rp_sweep_teller_left_out(struct rp_sweep_teller *teller, const struct rp_store *store, const struct rp_error *why);

/* One run, named by the store (NULL: "all"). Negative only if none was begun, which is in the log: cleanup_skipped or cleanup_failed. */
/* `begun`: a run that was begun already; NULL: none was. */
int rp_sweep_run(struct rp_sweep_teller *teller, const char *store, const struct rp_run *begun,
                 const volatile sig_atomic_t *stop, struct rp_error *err);

/* ---- runs that people ask for, sweeps and restores: each on a thread and a session of its own, a bounded number at a time ---- */

struct rp_sweep_runs;

struct rp_sweep_runs_options {
    const struct rp_session *session; /* outlives them */
    struct rp_writers *writers;       /* may be NULL */
    struct rp_metrics *metrics;       /* may be NULL */
    int lane;
};
int rp_sweep_runs_new(const struct rp_sweep_runs_options *options, struct rp_sweep_runs **out, struct rp_error *err);
/* Settings changed: for the runs that begin from now on. `config` outlives them. */
void rp_sweep_runs_configure(struct rp_sweep_runs *runs, const struct rp_config *config);
/* Room for one run: RP_EBUSY without. Then rp_sweep_runs_start, in any case. Any thread. */
int rp_sweep_runs_reserve(struct rp_sweep_runs *runs, struct rp_error *err);
/* Carries out a run of one store (NULL: all) that was begun already; `begun` NULL gives the room back. Any thread. */
void rp_sweep_runs_start(struct rp_sweep_runs *runs, const char *store, const char *actor, const struct rp_run *begun);
/* Those under way end after their batches, and none begins any more. Comes before rp_sweep_runs_stop, or not at all. NULL is fine. */
void rp_sweep_runs_halt(struct rp_sweep_runs *runs);
/* The same, and waits for them. */
void rp_sweep_runs_stop(struct rp_sweep_runs *runs);

#endif
