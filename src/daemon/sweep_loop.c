/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sweep_loop.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/alert.h"
#include "catalog/node.h"
#include "catalog/writer.h"
#include "core/guarantee.h"
#include "daemon/schedule.h"
#include "daemon/sweep_run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS       (4 * RP_SECOND_MS / 5) /* the longest sleep: what others mark is purged within a second */
#define PASS_MAX      20000                  /* marks of one store before the others have their turn */
#define EMPTY_MS      50 /* after a pass that found nothing to claim though something is due: held, or clocks differ */
#define RENEW_MS      (2 * RP_MINUTE_MS)
#define RUN_MS        RP_HOUR_MS
#define ALIVE_MS      (10 * RP_SECOND_MS)
#define BURY_MS       RP_MINUTE_MS
#define BURIED_MAX    16
#define LOCK_PREFIX   "sweep:"
#define CONTINUOUS    "continuous@"
#define STORE_WAIT_MS RP_MINUTE_MS        /* the longest time that a failing store is left alone */
#define SAY_AGAIN_MS  (10 * RP_MINUTE_MS) /* the same trouble is in the log once in this time */

/* A store as the loop sees it. Moments are of the boot clock. */
struct spot {
    struct rp_store *store;
    int64_t wait_until_ms;
    int failures, empties;
    bool raised;   /* its epoch, once at start */
    int said_code; /* the trouble that was logged last */
    int64_t said_at_ms, weak_said_at_ms;
};

struct rp_sweep_loop {
    struct rp_sweep_loop_options options;
    char node[64], name[80];
    struct rp_session session; /* the thread's */
    struct rp_sweep_teller teller;
    struct rp_sweeper sweeper;
    struct rp_store *stores[RP_STORES_MAX];
    struct spot spots[RP_STORES_MAX];
    size_t n_spots;
    bool opened; /* the stores have their numbers in the catalog */
    struct rp_cron cron;
    bool continuous;
    int64_t next_tick_ms; /* 0: not known */

    struct rp_run run; /* id 0: none is open */
    int64_t began_ms, renewed_ms, buried_ms;
    int64_t started_at_ms, alive_noted_ms;
    int catalog_failures;
    int64_t catalog_wait_ms;
    int said_code;
    int64_t said_at_ms;

    pthread_t thread;
    bool running;
    volatile sig_atomic_t stop;
    int64_t beat_ms; /* atomic */
    pthread_mutex_t lock;
    pthread_cond_t poke;
    /* under the lock */
    int64_t wake_at_ms; /* of the session's clock */
    bool poked;
    const struct rp_config *config; /* new settings, or NULL */
};

static bool stopped(const struct rp_sweep_loop *l)
{
    return __atomic_load_n(&l->stop, __ATOMIC_RELAXED) != 0;
}

static int64_t now_ms(const struct rp_sweep_loop *l)
{
    return rp_session_now_ms(&l->session);
}

/* Doubled each time, from `first` to `most`. */
static int64_t backoff_ms(int failures, int64_t first, int64_t most)
{
    int64_t wait = first;
    while (failures-- > 1 && wait < most)
        wait *= 2;
    return wait < most ? wait : most;
}

static void say(struct rp_sweep_loop *l, enum rp_log_level level, const char *event, const struct rp_error *why)
{
    json_t *o = json_object();
    rp_json_set(o, "node", rp_json_text(l->node));
    rp_json_set(o, "code", json_string(rp_error_slug(why->code)));
    rp_json_set(o, "error", rp_json_text(why->text));
    rp_log_event(l->session.log, level, now_ms(l), event, o);
}

/* ---- signs of life ---- */

static int alive_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct rp_sweep_loop *l = ctx;
    return rp_node_seen(tx, l->node, l->started_at_ms, err);
}

static int forget_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    (void)ctx;
    return rp_node_forget(tx, tx->db_ms - 30 * RP_DAY_MS, err);
}

static void alive(void *ctx)
{
    struct rp_sweep_loop *l = ctx;
    struct rp_error ignored = { 0 };
    int64_t boot_ms = rp_time_boot_ms();
    __atomic_store_n(&l->beat_ms, boot_ms, __ATOMIC_RELAXED);
    if (l->alive_noted_ms != 0 && boot_ms - l->alive_noted_ms < ALIVE_MS) return;
    bool first = l->alive_noted_ms == 0;
    bool noted = rp_catalog_transact(l->session.catalog, alive_tx, l, &ignored) == 0;
    l->alive_noted_ms = noted ? boot_ms : boot_ms - ALIVE_MS + 2 * RP_SECOND_MS;
    if (first && noted) (void)rp_catalog_transact(l->session.catalog, forget_tx, NULL, &ignored);
}

/* ---- the run ---- */

static void forget_run(struct rp_sweep_loop *l)
{
    l->run = (struct rp_run){ 0 };
}

static void note_begun(void *ctx, const struct rp_run *run)
{
    struct rp_sweep_loop *l = ctx;
    if (run == &l->run) l->began_ms = l->renewed_ms = rp_time_boot_ms();
}

/* Trouble with the catalog: everything waits, longer each time. */
static void catalog_failed(struct rp_sweep_loop *l, const struct rp_error *why)
{
    int64_t boot_ms = rp_time_boot_ms();
    l->catalog_failures++;
    l->catalog_wait_ms = boot_ms + backoff_ms(l->catalog_failures, RP_SECOND_MS, RP_MINUTE_MS / 2);
    rp_metrics_failure(l->options.metrics, "catalog");
    if (l->said_code == why->code && boot_ms - l->said_at_ms < SAY_AGAIN_MS) return;
    l->said_code = why->code;
    l->said_at_ms = boot_ms;
    say(l, RP_LOG_ERROR, "sweeper.waits", why);
}

static void close_run(struct rp_sweep_loop *l)
{
    struct rp_error why = { 0 };
    const char *outcome;
    if (l->run.id == 0) return;
    if (rp_sweeper_close(&l->sweeper, &l->run, &outcome, &why) < 0) {
        catalog_failed(l, &why);
        return;
    }
    rp_sweep_teller_ended(&l->teller, &l->run, outcome, 0);
    forget_run(l);
}

static void lose_run(struct rp_sweep_loop *l)
{
    rp_sweep_teller_ended(&l->teller, &l->run, "failed", RP_ECHANGED);
    forget_run(l);
}

static void keep_run(struct rp_sweep_loop *l)
{
    struct rp_error why = { 0 };
    int64_t boot_ms = rp_time_boot_ms(), every = l->sweeper.stale_after_ms / 3;
    if (l->run.id == 0) return;
    if (boot_ms - l->began_ms >= RUN_MS || !l->continuous || l->run.cancelled) {
        close_run(l);
        return;
    }
    if (every > RENEW_MS) every = RENEW_MS;
    if (boot_ms - l->renewed_ms < every) return;
    if (rp_sweeper_renew(&l->sweeper, &l->run, &why) == 0)
        l->renewed_ms = boot_ms;
    else if (l->run.lost)
        lose_run(l);
    else
        catalog_failed(l, &why);
}

/* ---- runs of daemons that are gone ---- */

struct burying {
    const char *own;
    char names[BURIED_MAX][80];
    size_t n;
};

static int see_lock(void *ctx, const struct rp_held_lock *lock, struct rp_error *err)
{
    struct burying *b = ctx;
    const char *name = lock->name + strlen(LOCK_PREFIX);
    (void)err;
    if (strncmp(lock->name, LOCK_PREFIX CONTINUOUS, strlen(LOCK_PREFIX CONTINUOUS)) != 0) return 0;
    if (b->n < BURIED_MAX && strcmp(name, b->own) != 0) snprintf(b->names[b->n++], sizeof b->names[0], "%s", name);
    return 0;
}

/* A node that never comes back would leave its run without a record, and its lock held, for ever. */
static void bury_dead(struct rp_sweep_loop *l)
{
    struct burying b = { .own = l->name };
    struct rp_error why = { 0 };
    int64_t boot_ms = rp_time_boot_ms();
    if (l->buried_ms != 0 && boot_ms - l->buried_ms < BURY_MS) return;
    l->buried_ms = boot_ms;
    int r = rp_lock_each_held(l->session.catalog->db, NULL, see_lock, &b, &why);
    for (size_t i = 0; i < b.n && r == 0; i++) {
        bool buried = false;
        r = rp_run_bury(l->session.catalog, "sweep", b.names[i], &l->session.worker, l->sweeper.stale_after_ms, &buried,
                        &why);
        if (!buried) continue;
        json_t *o = json_object();
        rp_json_set(o, "kind", json_string("sweep"));
        rp_json_set(o, "name", rp_json_text(b.names[i]));
        rp_json_set(o, "error", json_string("the daemon is gone; its run was closed"));
        rp_log_event(l->session.log, RP_LOG_WARNING, now_ms(l), "cleanup_failed", o);
    }
    if (r < 0) catalog_failed(l, &why);
}

/* ---- one store ---- */

static void store_failed(struct rp_sweep_loop *l, struct spot *spot, const struct rp_error *why)
{
    int64_t boot_ms = rp_time_boot_ms();
    spot->failures++;
    spot->wait_until_ms = boot_ms + backoff_ms(spot->failures, RP_SECOND_MS, STORE_WAIT_MS);
    if (spot->said_code == why->code && boot_ms - spot->said_at_ms < SAY_AGAIN_MS) return;
    spot->said_code = why->code;
    spot->said_at_ms = boot_ms;
    rp_sweep_teller_left_out(&l->teller, spot->store, why);
}

/* Something is due, but it cannot be had: held, or by another clock not due yet. The wait also bounds what looking costs when a
 * long list of held marks has to be walked. */
static void found_nothing(struct spot *spot, int64_t took_ms)
{
    int64_t wait = backoff_ms(++spot->empties, EMPTY_MS, LOOK_MS);
    if (wait < 10 * took_ms) wait = 10 * took_ms;
    spot->wait_until_ms = rp_time_boot_ms() + wait;
}

/* Returns whether there may be more at once. */
static bool sweep_spot(struct rp_sweep_loop *l, struct spot *spot)
{
    struct rp_sweep_pass pass;
    struct rp_error why = { 0 };
    int64_t began_ms = rp_time_boot_ms();
    l->sweeper.lazily = spot->raised;
    int r = rp_sweeper_pass(&l->sweeper, spot->store, &l->run, &pass, &why);
    int64_t over_ms = rp_time_boot_ms();
    if (pass.claimed > 0) l->renewed_ms = over_ms;
    if (l->run.lost) {
        lose_run(l);
    } else if (r < 0) {
        catalog_failed(l, &why);
    } else if (pass.why.code < 0) {
        store_failed(l, spot, &pass.why);
    } else {
        spot->raised = true;
        spot->failures = spot->said_code = 0;
        if (pass.claimed == 0) found_nothing(spot, over_ms - began_ms);
        if (pass.claimed > 0) spot->empties = 0;
        return pass.claimed > 0;
    }
    return false;
}

/* A store that could not be opened is tried again. */
static bool is_open(struct rp_sweep_loop *l, struct spot *spot)
{
    struct rp_error why = { 0 };
    struct rp_store *store;
    if (spot->store->backend != NULL) return true;
    if (rp_session_store(&l->session, spot->store->config->name, &store, &why) == 0) return true;
    store_failed(l, spot, &why);
    return false;
}

/* Marks of plain objects in a store that is too weak for them: they wait, and somebody is told. Those of files go on. */
static void say_weak(struct rp_sweep_loop *l, struct spot *spot)
{
    struct rp_error why = { 0 };
    int64_t boot_ms = rp_time_boot_ms();
    if (spot->weak_said_at_ms != 0 && boot_ms - spot->weak_said_at_ms < SAY_AGAIN_MS) return;
    spot->weak_said_at_ms = boot_ms;
    if (rp_sweeper_weak(&l->sweeper, spot->store, &why) > 0) rp_sweep_teller_left_out(&l->teller, spot->store, &why);
}

/* When this store must be looked at; 0: nothing waits there. Negative: trouble with the catalog. */
static int next_of(struct rp_sweep_loop *l, struct spot *spot, int64_t *next)
{
    struct rp_error why = { 0 };
    const struct rp_store *store = spot->store;
    bool weak = store->backend != NULL && rp_guarantee_is_known(store) && rp_store_is_weak(store);
    int64_t began_ms = rp_time_boot_ms();
    if (weak) say_weak(l, spot);
    int r = rp_marks_next_of(l->session.catalog->db, spot->store->id, weak, next, &why);
    int64_t took_ms = rp_time_boot_ms() - began_ms;
    /* what waits there for a person was walked past; that may cost a tenth of the time, as in found_nothing */
    if (weak && took_ms > 0) spot->wait_until_ms = rp_time_boot_ms() + 10 * took_ms;
    if (r < 0) catalog_failed(l, &why);
    return r;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What is due now is purged. Returns when to look again: a moment of the session's clock. */
static int64_t sweep_due(struct rp_sweep_loop *l)
{
    int64_t wake = now_ms(l) + LOOK_MS;
    for (size_t i = 0; i < l->n_spots && !stopped(l); i++) {
        struct spot *spot = &l->spots[i];
        int64_t next = 0, wait = spot->wait_until_ms - rp_time_boot_ms();
        if (spot->store->config->mode == RP_MODE_OBSERVE) continue;
        if (wait > 0) {
            wake = earlier(wake, now_ms(l) + wait);
            continue;
        }
        if (next_of(l, spot, &next) < 0) break;
        if (next == 0) continue;
        if (next > now_ms(l)) {
            wake = earlier(wake, next);
            continue;
        }
        bool more = is_open(l, spot) && sweep_spot(l, spot);
        wait = more ? 0 : spot->wait_until_ms - rp_time_boot_ms();
        if (more || wait > 0) wake = earlier(wake, now_ms(l) + wait);
        alive(l);
    }
    return wake;
}

/* ---- ticks ---- */

static int64_t sweep_at_ticks(struct rp_sweep_loop *l)
{
    struct rp_error why = { 0 };
    bool mine = false;
    int64_t now = now_ms(l);
    if (l->next_tick_ms == 0 || now >= l->next_tick_ms) {
        if (rp_schedule_due(l->session.catalog, "sweep", &l->cron, &mine, &l->next_tick_ms, &why) < 0) {
            catalog_failed(l, &why);
            l->next_tick_ms = 0;
        }
    }
    if (mine) (void)rp_sweep_run(&l->teller, NULL, NULL, &l->stop, &why);
    return earlier(now + LOOK_MS, l->next_tick_ms != 0 ? l->next_tick_ms : now + LOOK_MS);
}

/* ---- the thread ---- */

static void use_settings(struct rp_sweep_loop *l)
{
    struct rp_error ignored = { 0 };
    const struct rp_config *config = &l->session.config;
    l->continuous = strcmp(config->sweep_schedule, "continuous") == 0;
    if (!l->continuous && rp_cron_parse(config->sweep_schedule, &l->cron, &ignored) < 0) l->continuous = true;
    l->next_tick_ms = 0;
    l->sweeper = rp_sweep_teller_sweeper(&l->teller, &l->stop);
    l->sweeper.name = l->name;
    if (l->sweeper.limit > PASS_MAX) l->sweeper.limit = PASS_MAX;
    for (size_t i = 0; i < l->n_spots; i++)
        l->stores[i]->config = &config->stores[i];
}

static void take_settings(struct rp_sweep_loop *l)
{
    pthread_mutex_lock(&l->lock);
    const struct rp_config *config = l->config;
    l->config = NULL;
    pthread_mutex_unlock(&l->lock);
    if (config == NULL) return;
    RP_ASSERT(config->n_stores == l->session.config.n_stores);
    l->session.config = *config;
    use_settings(l);
}

static bool open_stores(struct rp_sweep_loop *l)
{
    struct rp_error why = { 0 };
    if (l->opened) return true;
    if (rp_session_stores(&l->session, l->stores, &l->n_spots, &why) < 0) {
        l->n_spots = 0;
        catalog_failed(l, &why);
        return false;
    }
    for (size_t i = 0; i < l->n_spots; i++)
        l->spots[i] = (struct spot){ .store = l->stores[i] };
    l->opened = true;
    use_settings(l);
    return true;
}

/* Sleeps until that moment, a second at most, or until it is told of an earlier one. */
static void sleep_until(struct rp_sweep_loop *l, int64_t at_ms)
{
    pthread_mutex_lock(&l->lock);
    int64_t now = now_ms(l), wait = at_ms - now;
    if (wait > LOOK_MS) wait = LOOK_MS;
    if (wait > 0 && !l->poked && !stopped(l)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t ns = until.tv_nsec + wait % 1000 * 1000000;
        until.tv_sec += (time_t)(wait / 1000 + ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
        l->wake_at_ms = now + wait;
        while (!l->poked && !stopped(l) && pthread_cond_timedwait(&l->poke, &l->lock, &until) == 0)
            ;
        l->wake_at_ms = 0;
    }
    l->poked = false;
    pthread_mutex_unlock(&l->lock);
}

static void *work(void *arg)
{
    struct rp_sweep_loop *l = arg;
    while (!stopped(l)) {
        int64_t wake = now_ms(l) + LOOK_MS;
        take_settings(l);
        alive(l);
        if (l->catalog_wait_ms <= rp_time_boot_ms() && open_stores(l)) {
            int failures = l->catalog_failures;
            wake = l->continuous ? sweep_due(l) : sweep_at_ticks(l);
            keep_run(l);
            bury_dead(l);
            if (l->catalog_failures == failures) l->catalog_failures = l->said_code = 0;
        }
        sleep_until(l, wake);
    }
    close_run(l);
    rp_log_flush(l->session.log);
    return NULL;
}

/* ---- start and stop ---- */

static void free_loop(struct rp_sweep_loop *l)
{
    rp_session_close(&l->session);
    pthread_cond_destroy(&l->poke);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct rp_sweep_loop *new_loop(const struct rp_sweep_loop_options *options)
{
    struct rp_sweep_loop *l = calloc(1, sizeof *l);
    pthread_condattr_t monotonic;
    if (l == NULL) return NULL;
    l->options = *options;
    snprintf(l->node, sizeof l->node, "%s", options->node);
    snprintf(l->name, sizeof l->name, CONTINUOUS "%s", options->node);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->poke, &monotonic);
    pthread_condattr_destroy(&monotonic);
    l->beat_ms = rp_time_boot_ms();
    return l;
}

int rp_sweep_loop_start(const struct rp_sweep_loop_options *options, struct rp_sweep_loop **out, struct rp_error *err)
{
    struct rp_sweep_loop *l = new_loop(options);
    if (l == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the sweeper");
    int r = rp_session_beside(options->session, options->lane, &l->session, err);
    if (r < 0) {
        free_loop(l);
        return rp_error_wrap(err, r, "start the sweeper");
    }
    if (options->writers != NULL) rp_writers_attach(options->writers, l->session.catalog);
    snprintf(l->session.actor, sizeof l->session.actor, "daemon:%s", l->node);
    l->started_at_ms = now_ms(l);
    l->teller = (struct rp_sweep_teller){
        .session = &l->session, .metrics = options->metrics, .alive = alive, .begun = note_begun, .ctx = l
    };
    use_settings(l);
    l->running = pthread_create(&l->thread, NULL, work, l) == 0;
    if (!l->running) {
        free_loop(l);
        return rp_error_set(err, RP_ENOMEM, "no thread for the sweeper");
    }
    *out = l;
    return 0;
}

void rp_sweep_loop_halt(struct rp_sweep_loop *l)
{
    if (l == NULL) return;
    pthread_mutex_lock(&l->lock);
    __atomic_store_n(&l->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&l->poke);
    pthread_mutex_unlock(&l->lock);
}

void rp_sweep_loop_stop(struct rp_sweep_loop *l)
{
    if (l == NULL) return;
    rp_sweep_loop_halt(l);
    pthread_join(l->thread, NULL);
    free_loop(l);
}

void rp_sweep_loop_due(struct rp_sweep_loop *l, int64_t due_at_ms)
{
    if (due_at_ms > now_ms(l) + LOOK_MS) return; /* it will have looked by then */
    pthread_mutex_lock(&l->lock);
    if (l->wake_at_ms == 0 || due_at_ms < l->wake_at_ms) {
        l->poked = true;
        pthread_cond_signal(&l->poke);
    }
    pthread_mutex_unlock(&l->lock);
}

int64_t rp_sweep_loop_idle_ms(const struct rp_sweep_loop *l)
{
    return rp_time_boot_ms() - __atomic_load_n(&l->beat_ms, __ATOMIC_RELAXED);
}

void rp_sweep_loop_configure(struct rp_sweep_loop *l, const struct rp_config *config)
{
    pthread_mutex_lock(&l->lock);
    l->config = config;
    l->poked = true;
    pthread_cond_signal(&l->poke);
    pthread_mutex_unlock(&l->lock);
}
