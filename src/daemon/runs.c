/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/runs.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "catalog/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS_MAX 4 /* that people asked for, at a time */

/* A run that was begun for us and cannot be carried out gets its record all the same. */
static void end_unswept(struct rp_session *session, const struct rp_run *begun, const struct rp_error *why)
{
    struct rp_run run = *begun;
    struct rp_error ignored = { 0 };
    rp_figures_error(&run.figures, "%s", why->text);
    (void)rp_run_end(session->catalog, &run, "failed", &ignored);
}

int rp_runs_sweep(struct rp_sweep_report *report, const char *store, const struct rp_run *begun,
                  const volatile sig_atomic_t *stop, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_session *session = report->session;
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_sweep sweep = rp_sweep_report_sweep(report, stop);
    sweep.stores = stores;
    sweep.name = store != NULL ? store : "all";
    sweep.n_stores = 1;
    sweep.begun = begun;
    int r = result == NULL  ? rp_error_set(err, RP_ENOMEM, "no memory for a sweep")
            : store != NULL ? rp_session_store(session, store, &stores[0], err)
                            : rp_session_stores(session, stores, &sweep.n_stores, err);
    if (r < 0 && begun != NULL) end_unswept(session, begun, err);
    if (r == 0) r = rp_sweep_run(&sweep, result, err);
    if (r < 0)
        rp_sweep_report_not_begun(report, sweep.name, r, err);
    else
        rp_sweep_report_ended(report, &result->run, result->outcome, result->code);
    rp_log_flush(session->log);
    return r;
}

/* ---- runs that people ask for ---- */

struct asked {
    struct rp_runs *all;
    struct rp_session session;
    char store[64];
    pthread_t thread;
    bool used, begun, over;     /* over: the thread touches nothing any more but itself */
    bool awaited;               /* whoever asked has not read the answer yet */
    struct rp_run begun_before; /* id 0: it is begun here */
    int64_t run_id;
    int code;
    struct rp_error error;
};

struct rp_runs {
    pthread_mutex_t lock;
    pthread_cond_t moved;
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
    pthread_cond_init(&runs->moved, NULL);
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

static void note_begun(void *ctx, const struct rp_run *run)
{
    struct asked *a = ctx;
    a->session.catalog->keeper = NULL;
    pthread_mutex_lock(&a->all->lock);
    a->run_id = run->id;
    a->begun = true;
    pthread_cond_broadcast(&a->all->moved);
    pthread_mutex_unlock(&a->all->lock);
}

static void *run_asked(void *arg)
{
    struct asked *a = arg;
    struct rp_error err = { 0 };
    struct rp_sweep_report report = {
        .session = &a->session, .metrics = a->all->options.metrics, .begun = note_begun, .ctx = a
    };
    int r = rp_runs_sweep(&report, a->store[0] != 0 ? a->store : NULL,
                          a->begun_before.id != 0 ? &a->begun_before : NULL, &a->all->stop, &err);
    rp_session_close(&a->session);
    pthread_mutex_lock(&a->all->lock);
    a->code = r;
    a->error = err;
    a->over = true;
    pthread_cond_broadcast(&a->all->moved);
    pthread_mutex_unlock(&a->all->lock);
    return NULL;
}

static int open_session(struct rp_runs *runs, const struct rp_config *config, const char *actor, struct rp_session *out,
                        struct rp_error *err)
{
    int r = rp_session_beside(runs->options.session, runs->options.lane, out, err);
    if (r < 0) {
        rp_session_close(out);
        return r;
    }
    if (config != NULL) out->config = *config;
    if (runs->options.writers != NULL) rp_writers_attach(runs->options.writers, out->catalog);
    snprintf(out->actor, sizeof out->actor, "%s", actor);
    return 0;
}

/* Under the lock; runs that are over are joined on the way. NULL: too many are under way. */
static struct asked *find_free(struct rp_runs *runs)
{
    struct asked *found = NULL;
    for (size_t i = 0; i < RUNS_MAX; i++) {
        struct asked *a = &runs->at[i];
        if (a->used && a->over && !a->awaited) {
            pthread_join(a->thread, NULL);
            a->used = false;
        }
        if (!a->used && found == NULL) found = a;
    }
    return found;
}

static struct asked *reserve(struct rp_runs *runs, const struct rp_config **config, struct rp_error *err)
{
    pthread_mutex_lock(&runs->lock);
    struct asked *a = runs->stop != 0 ? NULL : find_free(runs);
    if (a != NULL) *a = (struct asked){ .all = runs, .used = true, .awaited = true };
    *config = runs->config;
    pthread_mutex_unlock(&runs->lock);
    if (a == NULL) {
        rp_error_set(err, RP_EBUSY, "too many sweeps are under way");
        rp_error_hint(err, "wait for one of them to end");
    }
    return a;
}

static void give_back(struct rp_runs *runs, struct asked *a)
{
    pthread_mutex_lock(&runs->lock);
    a->used = a->awaited = false;
    pthread_cond_broadcast(&runs->moved);
    pthread_mutex_unlock(&runs->lock);
}

static int wait_begun(struct rp_runs *runs, struct asked *a, int64_t *run_id, struct rp_error *err)
{
    int r = 0;
    pthread_mutex_lock(&runs->lock);
    while (!a->begun && !a->over)
        pthread_cond_wait(&runs->moved, &runs->lock);
    if (a->begun) {
        *run_id = a->run_id;
    } else {
        r = a->code;
        *err = a->error;
    }
    a->awaited = false;
    pthread_cond_broadcast(&runs->moved);
    pthread_mutex_unlock(&runs->lock);
    return r;
}

int rp_runs_begin(struct rp_runs *runs, const char *store, const char *actor, const struct rp_run *begun,
                  const struct rp_keeper *keeper, int64_t *run_id, struct rp_error *err)
{
    const struct rp_config *config;
    struct asked *a = reserve(runs, &config, err);
    if (a == NULL) return RP_EBUSY;
    int r = open_session(runs, config, actor, &a->session, err);
    if (r == 0) a->session.catalog->keeper = keeper;
    if (r == 0 && begun != NULL) {
        a->begun_before = *begun;
        a->begun_before.worker = &a->session.worker;
    }
    snprintf(a->store, sizeof a->store, "%s", store != NULL ? store : "");
    if (r == 0 && pthread_create(&a->thread, NULL, run_asked, a) != 0) {
        rp_session_close(&a->session);
        r = rp_error_set(err, RP_ENOMEM, "no thread for a sweep");
    }
    if (r < 0) {
        give_back(runs, a);
        return r;
    }
    return wait_begun(runs, a, run_id, err);
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
        while (a->used && (!a->over || a->awaited))
            pthread_cond_wait(&runs->moved, &runs->lock);
        if (a->used) pthread_join(a->thread, NULL);
    }
    pthread_mutex_unlock(&runs->lock);
    pthread_cond_destroy(&runs->moved);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}
