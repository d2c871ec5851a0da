/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/runs.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "catalog/writer/writer.h"
#include "daemon/restore_run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 4 /* that people asked for, at a time */

/* ---- one run ---- */

/* What is swept: one store, or all of them. */
struct target {
    const char *name; /* of the run */
    struct rp_store *stores[RP_STORES_MAX];
    size_t n;
};

static int find_stores(struct rp_session *session, const char *store, struct target *out, struct rp_error *err)
{
    out->name = store != NULL ? store : "all";
    out->n = 1;
    return store != NULL ? rp_session_store(session, store, &out->stores[0], err)
                         : rp_session_stores(session, out->stores, &out->n, err);
}

static int sweep(struct rp_sweep_report *report, const struct target *target, const struct rp_run *begun,
                 const volatile sig_atomic_t *stop, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_sweep sweep = rp_sweep_report_sweep(report, stop);
    if (result == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a sweep");
    sweep.stores = target->stores;
    sweep.n_stores = target->n;
    sweep.name = target->name;
    sweep.begun = begun;
    int r = rp_sweep_run(&sweep, result, err);
    if (r == 0) rp_sweep_report_ended(report, &result->run, result->outcome, result->code);
    return r;
}

int rp_runs_sweep_all(struct rp_sweep_report *report, const volatile sig_atomic_t *stop, struct rp_error *err)
{
    struct target all;
    int r = find_stores(report->session, NULL, &all, err);
    if (r == 0) r = sweep(report, &all, NULL, stop, err);
    if (r < 0) rp_sweep_report_not_begun(report, r, err);
    rp_log_flush(report->session->log);
    return r;
}

/* ---- runs that people ask for ---- */

struct asked {
    struct rp_runs *all;
    struct rp_run run;
    char store[64], actor[RP_ACTOR_MAX]; /* store "": all */
    pthread_t thread;
    bool used, over; /* over: the thread touches nothing any more but itself */
};

struct rp_runs {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rp_runs_options options;
    const struct rp_config *config; /* NULL: the session's */
    struct asked at[RUNS_MAX];
    size_t reserved; /* room that nobody has started in yet */
    volatile sig_atomic_t stop;
};

int rp_runs_new(const struct rp_runs_options *options, struct rp_runs **out, struct rp_error *err)
{
    struct rp_runs *runs = calloc(1, sizeof *runs);
    if (runs == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for runs");
    pthread_mutex_init(&runs->lock, NULL);
    pthread_cond_init(&runs->changed, NULL);
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

/* With the lock; runs that are over are joined on the way. */
static size_t count_free(struct rp_runs *runs, struct asked **first)
{
    size_t n = 0;
    for (size_t i = RUNS_MAX; i-- > 0;) {
        struct asked *a = &runs->at[i];
        if (a->used && a->over) pthread_join(a->thread, NULL);
        if (a->over) *a = (struct asked){ 0 };
        if (a->used) continue;
        *first = a;
        n++;
    }
    return n;
}

int rp_runs_reserve(struct rp_runs *runs, struct rp_error *err)
{
    struct asked *unused;
    pthread_mutex_lock(&runs->lock);
    bool room = runs->stop == 0 && count_free(runs, &unused) > runs->reserved;
    runs->reserved += room;
    pthread_mutex_unlock(&runs->lock);
    if (room) return 0;
    rp_error_set(err, RP_EBUSY, "too many runs are under way");
    return rp_error_hint(err, "wait for one of them to end");
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
    struct rp_sweep_report report = { .session = session, .metrics = a->all->options.metrics };
    struct rp_error err = { 0 };
    struct target target;
    a->run.worker = &session->worker;
    int r = find_stores(session, a->store[0] != 0 ? a->store : NULL, &target, &err);
    if (r == 0) r = sweep(&report, &target, &a->run, &a->all->stop, &err);
    if (r < 0) {
        rp_figures_error(&a->run.figures, "%s", err.text);
        (void)rp_run_end(session->catalog, &a->run, "failed", &err);
        rp_sweep_report_ended(&report, &a->run, "failed", r);
    }
    rp_log_flush(session->log);
}

/* Without a session the run stays open: when its lock is stale, or this daemon is gone, a sweep is
 * closed as failed and a restore is carried on. */
static void *work(void *arg)
{
    struct asked *a = arg;
    struct rp_session session = { 0 };
    struct rp_error err = { 0 };
    bool opened = open_session(a, &session, &err) == 0;
    if (opened && strcmp(a->run.kind, RP_RUN_RESTORE) == 0)
        (void)rp_restore_run(&session, a->all->options.metrics, &a->run, &a->all->stop);
    else if (opened)
        carry_out(a, &session);
    else
        rp_metrics_failure(a->all->options.metrics, "catalog");
    rp_session_close(&session);
    pthread_mutex_lock(&a->all->lock);
    a->over = true;
    pthread_cond_broadcast(&a->all->changed);
    pthread_mutex_unlock(&a->all->lock);
    return NULL;
}

void rp_runs_start(struct rp_runs *runs, const char *store, const char *actor, const struct rp_run *begun)
{
    struct asked *a = NULL;
    pthread_mutex_lock(&runs->lock);
    RP_ASSERT(runs->reserved > 0 && count_free(runs, &a) > 0);
    runs->reserved--;
    if (begun != NULL) {
        *a = (struct asked){ .all = runs, .run = *begun };
        snprintf(a->store, sizeof a->store, "%s", store != NULL ? store : "");
        snprintf(a->actor, sizeof a->actor, "%s", actor);
        a->used = pthread_create(&a->thread, NULL, work, a) == 0;
    }
    pthread_cond_broadcast(&runs->changed);
    pthread_mutex_unlock(&runs->lock);
}

void rp_runs_halt(struct rp_runs *runs)
{
    if (runs == NULL) return;
    pthread_mutex_lock(&runs->lock);
    __atomic_store_n(&runs->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&runs->lock);
}

void rp_runs_stop(struct rp_runs *runs)
{
    if (runs == NULL) return;
    rp_runs_halt(runs);
    pthread_mutex_lock(&runs->lock);
    while (runs->reserved > 0)
        pthread_cond_wait(&runs->changed, &runs->lock);
    for (size_t i = 0; i < RUNS_MAX; i++) {
        struct asked *a = &runs->at[i];
        while (a->used && !a->over)
            pthread_cond_wait(&runs->changed, &runs->lock);
        if (a->used) pthread_join(a->thread, NULL);
    }
    pthread_mutex_unlock(&runs->lock);
    pthread_cond_destroy(&runs->changed);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}
