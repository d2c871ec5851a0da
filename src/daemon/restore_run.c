/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/restore_run.h"

#include "base/cleanup.h"
#include "base/time.h"
#include "daemon/watch/watch.h"

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

/* One that fails is tried again at the next look. */
static void look(struct rp_watch *w)
{
    struct rp_session *s = &w->session;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    bool ended = run != NULL;
    while (ended && !rp_watch_is_ending(w)) {
        struct rp_error why = { 0 };
        int r = rp_restore_resume(s->catalog, &s->worker, s->config.lock_stale_after_ms, run, &why);
        if (r < 0 && r != RP_ENOTFOUND) rp_metrics_failure(w->options.metrics, "catalog");
        ended = r == 0 && rp_restore_run(s, w->options.metrics, run, &w->stop);
    }
}

const struct rp_watch_kind rp_restore_watch = {
    .what = "the watch over restores", .every_ms = EVERY_MS, .bytes = sizeof(struct rp_watch), .look = look
};
