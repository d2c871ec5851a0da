/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/imports.h"

#include "base/cleanup.h"
#include "base/time.h"
#include "core/journal.h"
#include "core/mark/import_run.h"
#include "daemon/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void import_batch(void *ctx, const struct rp_import *import, const struct rp_run *run)
{
    (void)import, (void)run;
    rp_log_flush(((struct rp_session *)ctx)->log);
}

int rp_imports_run(struct rp_session *session, struct rp_metrics *metrics, const char *store, struct rp_run *run,
                   const volatile sig_atomic_t *stop, struct rp_error *err)
{
    struct rp_importer importer = { .catalog = session->catalog,
                                    .import = { .prefix = "", .actor = session->actor },
                                    .stop = stop,
                                    .finished = import_batch,
                                    .ctx = session };
    struct rp_journal j = { .log = session->log, .actor = session->actor };
    const char *outcome = NULL;
    int r = rp_session_store(session, store, &importer.import.store, err);
    if (r < 0) return r;
    j.at_ms = rp_session_now_ms(session);
    rp_journal_started(&j, run);
    r = rp_import_carry(&importer, run, &outcome, err);
    j.at_ms = rp_session_now_ms(session);
    rp_journal_ended(&j, run, outcome, r);
    rp_metrics_run(metrics, run, outcome, j.at_ms);
    rp_log_flush(session->log);
    return 0;
}

struct import_watch {
    struct rp_watch watch;
    int64_t next_tick_ms[RP_STORES_MAX]; /* of each store's schedule; 0: not known */
};

static void import_store(struct rp_watch *w, const char *store, struct rp_run *run)
{
    struct rp_session *s = &w->session;
    struct rp_error why = { 0 };
    int r = rp_run_begin(s->catalog, RP_RUN_IMPORT, store, &s->worker, s->config.lock_stale_after_ms, run, &why);
    if (r == RP_ERUNNING) return; /* its command has told */
    if (r == 0) r = rp_imports_run(s, w->options.metrics, store, run, &w->stop, &why);
    if (r == 0) return;
    struct rp_journal j = { .log = s->log, .at_ms = rp_session_now_ms(s), .actor = s->actor };
    rp_journal_failed(&j, RP_RUN_IMPORT, run->id != 0 ? run : NULL, &why);
    rp_figures_error(&run->figures, "%s", why.text);
    if (run->id != 0) (void)rp_run_end(s->catalog, run, "failed", &why);
    rp_metrics_failure(w->options.metrics, "store");
}

static void look_at_imports(struct rp_watch *watch)
{
    struct import_watch *w = (struct import_watch *)watch;
    const struct rp_config *config = &watch->session.config;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    for (size_t i = 0; run != NULL && i < config->n_stores && !rp_watch_is_ending(watch); i++) {
        const struct rp_store_config *store = &config->stores[i];
        char name[80];
        snprintf(name, sizeof name, RP_RUN_IMPORT ":%s", store->name); /* I2 */
        if (rp_schedule_is_mine(watch, name, store->import_schedule, &w->next_tick_ms[i]))
            import_store(watch, store->name, run);
    }
}

static void forget_ticks(struct rp_watch *watch)
{
    struct import_watch *w = (struct import_watch *)watch;
    memset(w->next_tick_ms, 0, sizeof w->next_tick_ms);
}

const struct rp_watch_kind rp_import_watch = { .what = "the watch over imports",
                                               .every_ms = RP_MINUTE_MS,
                                               .catalog = RP_WATCH_BRIEFLY,
                                               .bytes = sizeof(struct import_watch),
                                               .look = look_at_imports,
                                               .settings = forget_ticks };
