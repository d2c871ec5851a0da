/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/runs.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "base/wait.h"
#include "catalog/writer/writer.h"
#include "core/journal.h"
#include "daemon/carried.h"
#include "daemon/imports.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 4            /* that people asked for, at a time */
#define RETRY_MS RP_SECOND_MS /* until the catalog is tried again */

/* ---- one run ---- */

/* `store` NULL: all of them. `begun` NULL: it is to be begun. */
static int sweep(struct rp_sweep_report *report, const char *store, const struct rp_run *begun,
                 const volatile sig_atomic_t *stop, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_store *stores[RP_STORES_MAX];
    size_t n = 1;
    if (result == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a sweep");
    int r = store != NULL ? rp_session_store(report->session, store, &stores[0], err)
                          : rp_session_stores(report->session, stores, &n, err);
    if (r < 0) return r;
    struct rp_sweep sweep = rp_sweep_report_sweep(report, stop);
    sweep.by.stores = stores;
    sweep.by.n_stores = n;
    sweep.name = store != NULL ? store : "all";
    sweep.begun = begun;
    r = rp_sweep_run(&sweep, result, err);
    if (r == 0) rp_sweep_report_ended(report, &result->run, result->outcome, result->code);
    return r;
}

int rp_runs_sweep_all(struct rp_sweep_report *report, const volatile sig_atomic_t *stop, struct rp_error *err)
{
    int r = sweep(report, NULL, NULL, stop, err);
    if (r < 0) rp_sweep_report_not_begun(report, r, err);
    rp_log_flush(report->session->log);
    return r;
}

/* ---- runs that people ask for ---- */

/* RESERVED: its thread waits to be told which run. OVER: the thread touches nothing any more but
 * itself. */
enum asked_state { ASKED_NONE, ASKED_RESERVED, ASKED_BEGUN, ASKED_OVER };

struct asked {
    struct rp_runs *all;
    struct rp_run run;                   /* id 0: none began */
    char store[64], actor[RP_ACTOR_MAX]; /* store "": all */
    pthread_t thread;
    enum asked_state state;
};

struct rp_runs {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rp_runs_options options;
    const struct rp_config *config; /* NULL: the session's */
    struct asked at[RUNS_MAX];
    volatile sig_atomic_t stop;
};

int rp_runs_new(const struct rp_runs_options *options, struct rp_runs **out, struct rp_error *err)
{
    struct rp_runs *runs = calloc(1, sizeof *runs);
    if (runs == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for runs");
    pthread_mutex_init(&runs->lock, NULL);
    rp_wait_init(&runs->changed);
    runs->options = *options;
    *out = runs;
    return 0;
}

void rp_runs_configure(struct rp_runs *runs, const struct rp_config *config)
{
    pthread_mutex_lock(&runs->lock);
    runs->config = config;
    pthread_mutex_unlock(&runs->lock);
}

static int open_session(struct asked *a, struct rp_session *out, struct rp_error *err)
{
    const struct rp_runs_options *options = &a->all->options;
    int r = rp_session_beside(options->session, options->lane, out, err);
    if (r < 0) return r;
    pthread_mutex_lock(&a->all->lock);
    if (a->all->config != NULL) out->config = *a->all->config;
    pthread_mutex_unlock(&a->all->lock);
    if (options->writers != NULL) rp_writers_attach(options->writers, out->catalog);
    snprintf(out->actor, sizeof out->actor, "%s", a->actor);
    return 0;
}

static void carry_out(struct asked *a, struct rp_session *session)
{
    struct rp_metrics *metrics = a->all->options.metrics;
    const volatile sig_atomic_t *stop = &a->all->stop;
    struct rp_sweep_report report = { .session = session, .metrics = metrics };
    struct rp_error err = { 0 };
    int r = strcmp(a->run.kind, RP_RUN_IMPORT) == 0
                ? rp_imports_run(session, metrics, a->store, &a->run, stop, &err)
                : sweep(&report, a->store[0] != 0 ? a->store : NULL, &a->run, stop, &err);
    if (r < 0) {
        rp_figures_error(&a->run.figures, "%s", err.text);
        (void)rp_run_end(session->catalog, &a->run, "failed", &err);
        rp_sweep_report_ended(&report, &a->run, "failed", r);
    }
    rp_log_flush(session->log);
}

static void wait_until_begun(struct asked *a)
{
    pthread_mutex_lock(&a->all->lock);
    while (a->state == ASKED_RESERVED)
        pthread_cond_wait(&a->all->changed, &a->all->lock);
    pthread_mutex_unlock(&a->all->lock);
}

static void tell_closed(const struct asked *a, const struct rp_error *why)
{
    const struct rp_session *s = a->all->options.session;
    struct rp_journal j = { .log = s->log, .at_ms = rp_session_now_ms(s), .actor = a->actor };
    rp_journal_failed(&j, a->run.kind, &a->run, why);
    rp_log_flush(s->log);
    rp_metrics_failure(a->all->options.metrics, "catalog");
}

/* False: it is to stop. */
static bool wait_to_retry(struct rp_runs *all)
{
    struct timespec until = rp_wait_until(RETRY_MS);
    pthread_mutex_lock(&all->lock);
    while (all->stop == 0 && pthread_cond_timedwait(&all->changed, &all->lock, &until) == 0)
        ;
    bool stopping = all->stop != 0;
    pthread_mutex_unlock(&all->lock);
    return !stopping;
}

/* Tries until it can be opened: the run has begun, and nobody else carries it out. It is told
 * once. */
static bool open_until(struct asked *a, struct rp_session *session)
{
    for (bool told = false;; told = true) {
        struct rp_error why = { 0 };
        if (open_session(a, session, &why) == 0) return true;
        rp_session_close(session);
        if (!told) tell_closed(a, &why);
        if (!wait_to_retry(a->all)) return false;
    }
}

/* Without a session the run stays open: when its lock is stale, or this daemon is gone, a sweep is
 * closed as failed, and a restore, a retention or a safety net is carried on. */
static void carry(struct asked *a)
{
    struct rp_session session = { 0 };
    if (!open_until(a, &session)) return;
    a->run.worker = &session.worker;
    if (rp_run_is_resumed(a->run.kind))
        (void)rp_carried_run(&session, a->all->options.metrics, &a->run, &a->all->stop);
    else
        carry_out(a, &session);
    rp_session_close(&session);
}

static void *work(void *arg)
{
    struct asked *a = arg;
    wait_until_begun(a);
    if (a->run.id != 0) carry(a);
    pthread_mutex_lock(&a->all->lock);
    a->state = ASKED_OVER;
    pthread_cond_broadcast(&a->all->changed);
    pthread_mutex_unlock(&a->all->lock);
    return NULL;
}

/* With the lock. NULL: there is none in this state. */
static struct asked *find(struct rp_runs *runs, enum asked_state state)
{
    for (size_t i = 0; i < RUNS_MAX; i++)
        if (runs->at[i].state == state) return &runs->at[i];
    return NULL;
}

/* Joins runs that are over. */
static struct asked *find_room(struct rp_runs *runs)
{
    struct asked *a;
    while ((a = find(runs, ASKED_OVER)) != NULL) {
        pthread_join(a->thread, NULL);
        *a = (struct asked){ 0 };
    }
    return runs->stop == 0 ? find(runs, ASKED_NONE) : NULL;
}

/* The thread is made before the run is: one that nobody carries out would hold its lock. */
int rp_runs_reserve(struct rp_runs *runs, struct rp_error *err)
{
    pthread_mutex_lock(&runs->lock);
    struct asked *a = find_room(runs);
    bool room = a != NULL, made = false;
    if (room) {
        *a = (struct asked){ .all = runs, .state = ASKED_RESERVED };
        made = pthread_create(&a->thread, NULL, work, a) == 0;
        if (!made) a->state = ASKED_NONE;
    }
    pthread_mutex_unlock(&runs->lock);
    if (made) return 0;
    if (room) return rp_error_advise(err, RP_EBUSY, "try again later", "no thread for another run");
    return rp_error_advise(err, RP_EBUSY, "wait for one of them to end", "too many runs are under way");
}

void rp_runs_start(struct rp_runs *runs, const char *store, const char *actor, const struct rp_run *begun)
{
    pthread_mutex_lock(&runs->lock);
    struct asked *a = find(runs, ASKED_RESERVED);
    RP_ASSERT(a != NULL && (begun == NULL || begun->id != 0));
    if (begun != NULL) a->run = *begun;
    snprintf(a->store, sizeof a->store, "%s", store != NULL ? store : "");
    snprintf(a->actor, sizeof a->actor, "%s", actor);
    a->state = ASKED_BEGUN;
    pthread_cond_broadcast(&runs->changed);
    pthread_mutex_unlock(&runs->lock);
}

void rp_runs_halt(struct rp_runs *runs)
{
    if (runs == NULL) return;
    pthread_mutex_lock(&runs->lock);
    __atomic_store_n(&runs->stop, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&runs->changed);
    pthread_mutex_unlock(&runs->lock);
}

void rp_runs_stop(struct rp_runs *runs)
{
    if (runs == NULL) return;
    rp_runs_halt(runs);
    pthread_mutex_lock(&runs->lock);
    while (find(runs, ASKED_RESERVED) != NULL || find(runs, ASKED_BEGUN) != NULL)
        pthread_cond_wait(&runs->changed, &runs->lock);
    (void)find_room(runs);
    pthread_mutex_unlock(&runs->lock);
    pthread_cond_destroy(&runs->changed);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}
