/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/restore_run.h"

#include "base/cleanup.h"
#include "base/time.h"
#include "daemon/pulse.h"

#include <stdlib.h>

#define EVERY_MS (10 * RP_SECOND_MS)

bool rp_restore_run(struct rp_session *session, struct rp_metrics *metrics, struct rp_run *run,
                    const volatile sig_atomic_t *stop)
{
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_restorer restorer = { .catalog = session->catalog, .stores = stores, .stop = stop };
    struct rp_error err = { 0 };
    const char *outcome = NULL;
    int r = rp_session_stores(session, stores, &restorer.n_stores, &err);
    if (r == 0) r = rp_restore_carry(&restorer, run, &outcome, &err);
    int64_t now_ms = rp_session_now_ms(session);
    if (outcome != NULL)
        rp_metrics_run(metrics, run->kind, run->name, outcome, now_ms - run->started_at_ms, now_ms);
    else if (r < 0)
        rp_metrics_failure(metrics, "catalog");
    rp_log_flush(session->log);
    return outcome != NULL;
}

/* ---- what was left ---- */

struct rp_restore_watch {
    struct rp_restore_watch_options options;
    struct rp_pulse pulse;
    volatile sig_atomic_t stop;
};

/* One that fails is tried again at the next look. */
static void look(void *ctx)
{
    struct rp_restore_watch *w = ctx;
    struct rp_session *s = &w->pulse.session;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    bool ended = run != NULL;
    while (ended && __atomic_load_n(&w->stop, __ATOMIC_RELAXED) == 0) {
        struct rp_error why = { 0 };
        int r = rp_restore_resume(s->catalog, &s->worker, s->config.lock_stale_after_ms, run, &why);
        if (r < 0 && r != RP_ENOTFOUND) rp_metrics_failure(w->options.metrics, "catalog");
        ended = r == 0 && rp_restore_run(s, w->options.metrics, run, &w->stop);
    }
}

int rp_restore_watch_start(const struct rp_restore_watch_options *options, struct rp_restore_watch **out,
                           struct rp_error *err)
{
    struct rp_restore_watch *w = calloc(1, sizeof *w);
    if (w == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the watch over restores");
    w->options = *options;
    struct rp_pulse_options pulse = { .what = "the watch over restores",
                                      .session = options->session,
                                      .writers = options->writers,
                                      .node = options->node,
                                      .lane = options->lane,
                                      .every_ms = EVERY_MS,
                                      .look = look,
                                      .ctx = w };
    int r = rp_pulse_start(&w->pulse, &pulse, err);
    if (r < 0) {
        free(w);
        return r;
    }
    *out = w;
    return 0;
}

void rp_restore_watch_halt(struct rp_restore_watch *w)
{
    if (w != NULL) __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
}

void rp_restore_watch_stop(struct rp_restore_watch *w)
{
    if (w == NULL) return;
    rp_restore_watch_halt(w);
    rp_pulse_stop(&w->pulse);
    free(w);
}

void rp_restore_watch_configure(struct rp_restore_watch *w, const struct rp_config *config)
{
    if (w != NULL) rp_pulse_configure(&w->pulse, config);
}
