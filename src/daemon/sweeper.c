/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sweeper.h"

#include "base/assert.h"
#include "base/time.h"
#include "base/trouble.h"
#include "base/wait.h"
#include "catalog/node.h"
#include "catalog/writer/writer.h"
#include "core/check/references.h"
#include "core/guarantee.h"
#include "daemon/open_run.h"
#include "daemon/runs.h"
#include "daemon/schedule.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS       (4 * RP_SECOND_MS / 5) /* the longest sleep: what others mark is purged within a second */
#define PASS_MAX      20000                  /* marks of one store before the others have their turn */
#define EMPTY_MS      50                     /* after a pass that found nothing to claim though something is due */
#define ALIVE_MS      (10 * RP_SECOND_MS)
#define BURY_MS       RP_MINUTE_MS
#define STORE_WAIT_MS RP_MINUTE_MS /* the longest time that a failing store is left alone */

/* A store as the sweeper sees it. Moments are of the boot clock. */
struct swept {
    struct rp_store *store;
    int64_t wait_until_ms;
    struct rp_trouble trouble;
    int empties;           /* passes in a row that found nothing */
    int64_t weak_again_ms; /* when the log may hear again that it is too weak */
};

struct sweeper {
    struct rp_watch watch;
    char name[80];
    struct rp_sweep_report report;
    struct rp_open_run open;
    struct rp_store *stores[RP_STORES_MAX];
    struct swept swept[RP_STORES_MAX];
    size_t n_stores; /* 0: they have no numbers in the catalog yet */
    struct rp_cron cron;
    bool continuous;
    int64_t next_tick_ms; /* of the cron line; 0: not known */
    struct rp_trouble catalog;
    int64_t started_at_ms, alive_again_ms, bury_again_ms;
    int64_t beat_ms; /* atomic */
};

static int64_t now_ms(const struct sweeper *s)
{
    return rp_session_now_ms(&s->watch.session);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- trouble ---- */

/* Everything waits, longer each time. Returns r. */
static int note_catalog(struct sweeper *s, int r, const struct rp_error *why)
{
    if (r != 0) rp_watch_catalog_failed(&s->watch, &s->catalog, "sweeper.waits", why);
    return r;
}

static void store_failed(struct sweeper *s, struct swept *store, const struct rp_error *why)
{
    bool say = rp_trouble_again(&store->trouble, why->code, rp_time_boot_ms(), RP_SECOND_MS, STORE_WAIT_MS);
    store->wait_until_ms = store->trouble.until_ms;
    if (say) rp_sweep_report_left_out(&s->report, store->store, why);
}

/* ---- signs of life ---- */

static int alive_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct sweeper *s = ctx;
    int r = rp_node_seen(tx, s->watch.node, s->started_at_ms, err);
    bool first = s->alive_again_ms == 0;
    return r < 0 || !first ? r : rp_node_forget(tx, tx->db_ms - 30 * RP_DAY_MS, err);
}

static void alive(void *ctx)
{
    struct sweeper *s = ctx;
    struct rp_error ignored = { 0 };
    int64_t boot_ms = rp_time_boot_ms();
    __atomic_store_n(&s->beat_ms, boot_ms, __ATOMIC_RELAXED);
    if (boot_ms < s->alive_again_ms) return;
    bool noted = rp_catalog_transact(s->watch.session.catalog, alive_tx, s, &ignored) == 0;
    s->alive_again_ms = boot_ms + (noted ? ALIVE_MS : 2 * RP_SECOND_MS);
}

/* ---- settings and stores ---- */

static void use_settings(struct rp_watch *watch)
{
    struct sweeper *s = (struct sweeper *)watch;
    struct rp_error ignored = { 0 };
    const struct rp_config *config = &s->watch.session.config;
    s->continuous = strcmp(config->sweep_schedule, "continuous") == 0;
    if (!s->continuous && rp_cron_parse(config->sweep_schedule, &s->cron, &ignored) < 0) s->continuous = true;
    s->next_tick_ms = 0;
    s->open.sweep = rp_sweep_report_sweep(&s->report, &watch->stop);
    s->open.sweep.by.enough = &watch->enough;
    s->open.sweep.name = s->name;
    s->open.sweep.by.rules.unseen = !s->continuous;
    if (s->open.sweep.limit > PASS_MAX) s->open.sweep.limit = PASS_MAX;
    for (size_t i = 0; i < s->n_stores; i++) {
        s->stores[i]->config = &config->stores[i];
        rp_references_allow(s->stores[i]->references, config->outbound_allow);
    }
}

static int number_stores(struct sweeper *s)
{
    struct rp_error why = { 0 };
    size_t n = 0;
    if (s->n_stores > 0) return 0;
    int r = rp_session_stores(&s->watch.session, s->stores, &n, &why);
    if (note_catalog(s, r, &why) < 0) return r;
    for (size_t i = 0; i < n; i++)
        s->swept[i] = (struct swept){ .store = s->stores[i] };
    s->n_stores = n;
    use_settings(&s->watch);
    return 0;
}

/* A store that could not be opened is tried again. */
static bool is_open(struct sweeper *s, struct swept *store)
{
    struct rp_error why = { 0 };
    struct rp_store *opened;
    if (store->store->backend != NULL) return true;
    if (rp_session_store(&s->watch.session, store->store->config->name, &opened, &why) == 0) return true;
    store_failed(s, store, &why);
    return false;
}

/* ---- one store ---- */

/* Marks of plain objects in a store that is too weak for them: they wait, and somebody is told.
 * Those of files go on. */
static void say_weak(struct sweeper *s, struct swept *store)
{
    struct rp_error why = { 0 };
    int64_t boot_ms = rp_time_boot_ms();
    if (boot_ms < store->weak_again_ms) return;
    store->weak_again_ms = boot_ms + RP_SAY_AGAIN_MS;
    if (rp_sweep_count_too_weak(&s->open.sweep, store->store, &why) > 0)
        rp_sweep_report_left_out(&s->report, store->store, &why);
}

/* When something is due there; 0: nothing waits. Negative: the catalog fails. */
static int next_due(struct sweeper *s, struct swept *store, int64_t *next)
{
    struct rp_error why = { 0 };
    const struct rp_store *at = store->store;
    bool weak = at->backend != NULL && rp_guarantee_is_known(at) && rp_store_is_weak(at);
    int64_t began_ms = rp_time_boot_ms();
    if (!s->continuous)
        return note_catalog(s, rp_marks_next_unseen(s->watch.session.catalog->db, at->id, next, &why), &why);
    if (weak) say_weak(s, store);
    int r = rp_marks_next(s->watch.session.catalog->db, at->id, weak, next, &why);
    int64_t took_ms = rp_time_boot_ms() - began_ms;
    /* what waits there for a person was walked past; that may cost a tenth of the time, as in
     * found_nothing */
    if (weak && took_ms > 0) store->wait_until_ms = rp_time_boot_ms() + 10 * took_ms;
    return note_catalog(s, r, &why);
}

/* Something is due, but it cannot be had: held, or by another clock not due yet. The wait also
 * bounds what looking costs when a long list of held marks has to be walked. */
static void found_nothing(struct swept *store, int64_t took_ms)
{
    int64_t wait = rp_trouble_backoff_ms(++store->empties, EMPTY_MS, LOOK_MS);
    if (wait < 10 * took_ms) wait = 10 * took_ms;
    store->wait_until_ms = rp_time_boot_ms() + wait;
}

/* Returns whether there may be more at once. */
static bool sweep_store(struct sweeper *s, struct swept *store)
{
    struct rp_sweep_pass pass;
    struct rp_error why = { 0 };
    int64_t began_ms = rp_time_boot_ms();
    if (!is_open(s, store)) return false;
    s->open.sweep.by.lazily = true; /* raiser.h has raised the epoch at the start */
    int r = rp_open_run_pass(&s->open, store->store, &pass, &why);
    if (note_catalog(s, r, &why) < 0) return false;
    if (pass.why.code < 0) {
        store_failed(s, store, &pass.why);
        return false;
    }
    rp_trouble_over(&store->trouble);
    if (pass.claimed == 0)
        found_nothing(store, rp_time_boot_ms() - began_ms);
    else
        store->empties = 0;
    return pass.claimed > 0;
}

/* ---- time ---- */

/* K1: a tick that nobody else has taken is ours. Returns when the next one is. */
static int64_t sweep_at_tick(struct sweeper *s)
{
    struct rp_error why = { 0 };
    bool mine = false;
    int r = rp_schedule_due(s->watch.session.catalog, RP_RUN_SWEEP, &s->cron, &mine, &s->next_tick_ms, &why);
    if (note_catalog(s, r, &why) < 0) return s->next_tick_ms = 0;
    if (mine) (void)rp_runs_sweep_all(&s->report, &s->watch.stop, &why);
    return s->next_tick_ms;
}

/* Everything that time causes. Returns when to look again: a moment of the session's clock. */
static int64_t tick(struct sweeper *s)
{
    struct rp_error why = { 0 };
    int64_t wake = now_ms(s) + LOOK_MS;
    int failures = s->catalog.failures;

    /* every ten seconds: a sign of life */
    alive(s);

    /* the catalog failed: everything waits */
    if (rp_time_boot_ms() < s->catalog.until_ms || number_stores(s) < 0) return wake;

    /* a tick of the cron line: a run over all stores */
    if (!s->continuous && now_ms(s) >= s->next_tick_ms) (void)sweep_at_tick(s);
    if (!s->continuous && s->next_tick_ms != 0) wake = earlier(wake, s->next_tick_ms);

    /* marks that came due: a pass over their store; with a cron line, of unconfirmed uploads */
    for (size_t i = 0; i < s->n_stores && !rp_watch_is_ending(&s->watch) && s->catalog.failures == failures; i++) {
        struct swept *store = &s->swept[i];
        int64_t next = 0, wait = store->wait_until_ms - rp_time_boot_ms();
        if (store->store->config->mode == RP_MODE_OBSERVE) continue;
        if (wait <= 0 && (next_due(s, store, &next) < 0 || next == 0)) continue;
        if (wait <= 0 && next <= now_ms(s)) {
            bool more = sweep_store(s, store);
            wait = store->wait_until_ms - rp_time_boot_ms();
            if (more || wait > 0) wake = earlier(wake, now_ms(s) + (more ? 0 : wait));
            alive(s);
        } else
            wake = earlier(wake, wait > 0 ? now_ms(s) + wait : next);
    }

    /* the run's lock grows old, or the run does */
    int r = rp_open_run_keep(&s->open, &why);
    (void)note_catalog(s, r, &why);

    /* every minute: runs of daemons that never came back */
    if (rp_time_boot_ms() >= s->bury_again_ms) {
        s->bury_again_ms = rp_time_boot_ms() + BURY_MS;
        r = rp_open_runs_bury(&s->watch.session, s->name, s->open.sweep.stale_after_ms, &why);
        (void)note_catalog(s, r, &why);
    }

    if (s->catalog.failures == failures) rp_trouble_over(&s->catalog);
    return wake;
}

static void look(struct rp_watch *watch)
{
    struct sweeper *s = (struct sweeper *)watch;
    int64_t wake = tick(s);
    watch->wait_ms = earlier(wake - now_ms(s), LOOK_MS);
}

static void begin(struct rp_watch *watch)
{
    struct sweeper *s = (struct sweeper *)watch;
    snprintf(s->name, sizeof s->name, RP_CONTINUOUS "%s", watch->node);
    s->beat_ms = rp_time_boot_ms();
    s->started_at_ms = now_ms(s);
    s->report = (struct rp_sweep_report){
        .session = &watch->session, .metrics = watch->options.metrics, .alive = alive, .ctx = s
    };
    s->open.report = &s->report;
    use_settings(watch);
}

static void end(struct rp_watch *watch)
{
    struct sweeper *s = (struct sweeper *)watch;
    struct rp_error why = { 0 };
    (void)note_catalog(s, rp_open_run_close(&s->open, &why), &why);
    rp_log_flush(watch->session.log);
}

const struct rp_watch_kind rp_sweep_watch = { .what = "the sweeper",
                                              .every_ms = LOOK_MS,
                                              .bytes = sizeof(struct sweeper),
                                              .begin = begin,
                                              .look = look,
                                              .settings = use_settings,
                                              .end = end };

int64_t rp_sweeper_idle_ms(const struct rp_watch *sweeper)
{
    const struct sweeper *s = (const struct sweeper *)sweeper;
    return rp_time_boot_ms() - __atomic_load_n(&s->beat_ms, __ATOMIC_RELAXED);
}
