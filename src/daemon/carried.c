/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/carried.h"

#include "base/cleanup.h"
#include "base/time.h"
#include "core/restore/restore.h"
#include "core/retention/retention.h"
#include "core/safety_net/safety_net.h"
#include "daemon/schedule.h"

#include <stdlib.h>
#include <string.h>

static int carry_restore(struct rp_session *session, struct rp_run *run, const volatile sig_atomic_t *stop,
                         const char **outcome, struct rp_error *err)
{
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_restorer restorer = { .catalog = session->catalog, .stores = stores, .stop = stop };
    int r = rp_session_stores(session, stores, &restorer.n_stores, err);
    return r < 0 ? r : rp_restore_carry(&restorer, run, outcome, err);
}

static int carry_retention(struct rp_session *session, struct rp_run *run, const volatile sig_atomic_t *stop,
                           const char **outcome, struct rp_error *err)
{
    struct rp_retention retention = rp_session_retention(session);
    retention.stop = stop;
    return rp_retention_carry(&retention, run, outcome, err);
}

static int carry_safety_net(struct rp_session *session, struct rp_run *run, const volatile sig_atomic_t *stop,
                            const char **outcome, struct rp_error *err)
{
    struct rp_upload_rules uploads;
    struct rp_safety_net net = rp_session_safety_net(session, &uploads);
    net.stop = stop;
    return rp_safety_net_carry(&net, run, outcome, err);
}

typedef int carry_fn(struct rp_session *session, struct rp_run *run, const volatile sig_atomic_t *stop,
                     const char **outcome, struct rp_error *err);

static carry_fn *carry_of(const char *kind)
{
    if (strcmp(kind, RP_RUN_RESTORE) == 0) return carry_restore;
    return strcmp(kind, RP_RUN_SAFETY_NET) == 0 ? carry_safety_net : carry_retention;
}

bool rp_carried_run(struct rp_session *session, struct rp_metrics *metrics, struct rp_run *run,
                    const volatile sig_atomic_t *stop)
{
    struct rp_error err = { 0 };
    const char *outcome = NULL;
    int r = carry_of(run->kind)(session, run, stop, &outcome, &err);
    int64_t now_ms = rp_session_now_ms(session);
    if (outcome != NULL)
        rp_metrics_run(metrics, run, outcome, now_ms);
    else if (r < 0)
        rp_metrics_failure(metrics, "catalog");
    rp_log_flush(session->log);
    return outcome != NULL;
}

/* T1. RP_ENOTFOUND: none was left. */
static int resume(struct rp_watch *w, const char *kind, struct rp_run *run)
{
    struct rp_session *s = &w->session;
    struct rp_error why = { 0 };
    int r = rp_run_resume(s->catalog, kind, &s->worker, s->config.lock_stale_after_ms, run, &why);
    if (r < 0 && r != RP_ENOTFOUND) rp_metrics_failure(w->options.metrics, "catalog");
    return r;
}

/* ---- restores ---- */

/* One that fails is tried again at the next look. */
static void look_at_restores(struct rp_watch *w)
{
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    bool ended = run != NULL;
    while (ended && !rp_watch_is_ending(w))
        ended = resume(w, RP_RUN_RESTORE, run) == 0 && rp_carried_run(&w->session, w->options.metrics, run, &w->stop);
}

const struct rp_watch_kind rp_restore_watch = { .what = "the watch over restores",
                                                .every_ms = 10 * RP_SECOND_MS,
                                                .catalog = RP_WATCH_BRIEFLY,
                                                .bytes = sizeof(struct rp_watch),
                                                .look = look_at_restores };

/* ---- retentions and safety nets ---- */

struct ticking_watch {
    struct rp_watch watch;
    int64_t next_tick_ms; /* 0: not known */
};

static int begin_retention(struct rp_session *session, struct rp_run *run, struct rp_error *err)
{
    struct rp_retention retention = rp_session_retention(session);
    return rp_retention_begin(&retention, run, err);
}

static int begin_safety_net(struct rp_session *session, struct rp_run *run, struct rp_error *err)
{
    struct rp_upload_rules uploads;
    struct rp_safety_net net = rp_session_safety_net(session, &uploads);
    return rp_safety_net_begin(&net, run, err);
}

static void look_at(struct rp_watch *w, const char *kind, const char *schedule,
                    int (*begin)(struct rp_session *session, struct rp_run *run, struct rp_error *err))
{
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    int64_t *next_tick_ms = &((struct ticking_watch *)w)->next_tick_ms;
    struct rp_error why = { 0 };
    if (run == NULL) return;
    int r = resume(w, kind, run);
    if (r == RP_ENOTFOUND && rp_schedule_is_mine(w, kind, schedule, next_tick_ms)) { /* T3 */
        r = begin(&w->session, run, &why);
        if (r < 0 && r != RP_ERUNNING) rp_metrics_failure(w->options.metrics, "catalog");
    }
    if (r == 0) (void)rp_carried_run(&w->session, w->options.metrics, run, &w->stop);
}

static void look_at_retention(struct rp_watch *w)
{
    look_at(w, RP_RUN_RETENTION, RP_RETENTION_SCHEDULE, begin_retention);
}

static void look_at_safety_net(struct rp_watch *w)
{
    look_at(w, RP_RUN_SAFETY_NET, w->session.config.safety_net_schedule, begin_safety_net);
}

/* The next tick may be another one. */
static void forget_tick(struct rp_watch *w)
{
    ((struct ticking_watch *)w)->next_tick_ms = 0;
}

const struct rp_watch_kind rp_retention_watch = { .what = "the watch over retention",
                                                  .every_ms = RP_MINUTE_MS,
                                                  .catalog = RP_WATCH_BRIEFLY,
                                                  .bytes = sizeof(struct ticking_watch),
                                                  .look = look_at_retention };
const struct rp_watch_kind rp_safety_net_watch = { .what = "the watch over lost files",
                                                   .every_ms = RP_MINUTE_MS,
                                                   .catalog = RP_WATCH_BRIEFLY,
                                                   .bytes = sizeof(struct ticking_watch),
                                                   .look = look_at_safety_net,
                                                   .settings = forget_tick };
