/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/runs.h"

#include "base/cleanup.h"
#include "catalog/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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
    if (r < 0) rp_sweep_report_not_begun(report, all.name, r, err);
    rp_log_flush(report->session->log);
    return r;
}

/* ---- runs that people ask for ---- */

struct asked {
    struct rp_runs *all;
    struct rp_session session;
    struct rp_sweep_report report;
    struct target target;
    struct rp_run run;
    pthread_t thread;
    bool used, over; /* over: the thread touches nothing any more but itself */
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

/* Runs that are over are joined on the way. */
static struct asked *reserve(struct rp_runs *runs, const struct rp_config **config, struct rp_error *err)
{
    struct asked *found = NULL;
    pthread_mutex_lock(&runs->lock);
    for (size_t i = 0; i < RUNS_MAX && runs->stop == 0; i++) {
        struct asked *a = &runs->at[i];
        if (a->used && a->over) {
            pthread_join(a->thread, NULL);
            a->used = false;
        }
        if (!a->used && found == NULL) found = a;
    }
    if (found != NULL) *found = (struct asked){ .all = runs, .used = true };
    *config = runs->config;
    pthread_mutex_unlock(&runs->lock);
    if (found == NULL) rp_error_set(err, RP_EBUSY, "too many sweeps are under way");
    if (found == NULL) rp_error_hint(err, "wait for one of them to end");
    return found;
}

/* The session is closed. `over`: by the run's thread, which is still to be joined. */
static void leave(struct asked *a, bool over)
{
    pthread_mutex_lock(&a->all->lock);
    a->used = a->over = over;
    pthread_cond_broadcast(&a->all->changed);
    pthread_mutex_unlock(&a->all->lock);
}

static void *carry_out(void *arg)
{
    struct asked *a = arg;
    struct rp_error err = { 0 };
    if (sweep(&a->report, &a->target, &a->run, &a->all->stop, &err) < 0) {
        rp_figures_error(&a->run.figures, "%s", err.text);
        (void)rp_run_end(a->session.catalog, &a->run, "failed", &err);
        rp_sweep_report_ended(&a->report, &a->run, "failed", RP_ENOMEM);
    }
    rp_log_flush(a->session.log);
    rp_session_close(&a->session);
    leave(a, true);
    return NULL;
}

static int open_session(struct asked *a, const struct rp_config *config, const char *actor, struct rp_error *err)
{
    const struct rp_runs_options *options = &a->all->options;
    int r = rp_session_beside(options->session, options->lane, &a->session, err);
    if (r < 0) return r;
    if (config != NULL) a->session.config = *config;
    if (options->writers != NULL) rp_writers_attach(options->writers, a->session.catalog);
    snprintf(a->session.actor, sizeof a->session.actor, "%s", actor);
    a->report = (struct rp_sweep_report){ .session = &a->session, .metrics = options->metrics };
    return 0;
}

static int begin(struct asked *a, const char *store, const struct rp_run *begun, const struct rp_keeper *keeper,
                 struct rp_error *err)
{
    struct rp_session *s = &a->session;
    int r = find_stores(s, store, &a->target, err);
    if (r == 0 && begun == NULL) {
        s->catalog->keeper = keeper;
        r = rp_run_begin(s->catalog, "sweep", a->target.name, &s->worker, s->config.lock_stale_after_ms, &a->run, err);
        s->catalog->keeper = NULL;
    } else if (begun != NULL) {
        a->run = *begun;
        a->run.worker = &s->worker;
    }
    if (r < 0) rp_sweep_report_not_begun(&a->report, a->target.name, r, err);
    if (r == 0) a->target.name = a->run.name; /* outlives the caller's words */
    return r;
}

int rp_runs_begin(struct rp_runs *runs, const char *store, const char *actor, const struct rp_run *begun,
                  const struct rp_keeper *keeper, int64_t *run_id, struct rp_error *err)
{
    const struct rp_config *config;
    struct asked *a = reserve(runs, &config, err);
    if (a == NULL) return RP_EBUSY;
    int r = open_session(a, config, actor, err);
    if (r == 0) r = begin(a, store, begun, keeper, err);
    int64_t id = a->run.id;
    if (r == 0 && pthread_create(&a->thread, NULL, carry_out, a) != 0) {
        r = rp_error_set(err, RP_ENOMEM, "no thread for a sweep");
        if (begun == NULL) (void)rp_run_end(a->session.catalog, &a->run, "failed", &(struct rp_error){ 0 });
    }
    if (r == 0) {
        *run_id = id;
        return 0;
    }
    rp_session_close(&a->session);
    leave(a, false);
    return r;
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
