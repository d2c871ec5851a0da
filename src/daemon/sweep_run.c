/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sweep_run.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/alert.h"
#include "catalog/writer.h"
#include "core/file/file.h"
#include "core/journal.h"
#include "daemon/restore_run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 4 /* that people asked for, at a time */

/* ---- telling ---- */

static struct rp_journal journal_of(const struct rp_sweep_teller *t)
{
    return (struct rp_journal){ .log = t->session->log,
                                .at_ms = rp_session_now_ms(t->session),
                                .actor = t->session->actor };
}

static void run_started(void *ctx, const struct rp_run *run)
{
    struct rp_sweep_teller *t = ctx;
    struct rp_journal j = journal_of(t);
    rp_journal_started(&j, run);
    if (t->begun != NULL) t->begun(t->ctx, run);
}

static bool is_abandoned(const struct rp_mark *mark)
{
    return mark->file_id != 0 && mark->was == RP_MARKED && strcmp(mark->reason, RP_REASON_ABANDONED) == 0;
}

/* U6: by tenant. A batch of one tenant's uploads is the rule, hence a look-up each time that it changes. */
static void count_abandoned(struct rp_sweep_teller *t, const struct rp_sweep_batch *batch)
{
    struct rp_tenant tenant = { 0 };
    struct rp_error ignored = { 0 };
    for (size_t i = 0; i < batch->marks.n && t->metrics != NULL; i++) {
        const struct rp_mark *mark = &batch->marks.at[i];
        if (!is_abandoned(mark)) continue;
        if (mark->tenant_id != tenant.id &&
            rp_tenant_by_id(t->session->catalog->db, mark->tenant_id, &tenant, &ignored) < 0)
            continue;
        rp_metrics_abandoned(t->metrics, tenant.name, 1, mark->size_bytes);
    }
}

static void batch_finished(void *ctx, const struct rp_sweep_batch *batch, const struct rp_run *run)
{
    struct rp_sweep_teller *t = ctx;
    struct rp_journal j = journal_of(t);
    rp_journal_batch(&j, batch, run);
    rp_metrics_batch(t->metrics, batch);
    count_abandoned(t, batch);
    if (t->alive != NULL) t->alive(t->ctx);
}

static void left_out(void *ctx, const struct rp_store *store, int64_t due, const struct rp_error *why)
{
    struct rp_sweep_teller *t = ctx;
    struct rp_journal j = journal_of(t);
    if (why->code == RP_EOBSERVE && due == 0) return;
    rp_journal_left_out(&j, store->config->name, due, why);
    if (why->code != RP_EOBSERVE) rp_metrics_failure(t->metrics, "store");
}

void rp_sweep_teller_left_out(struct rp_sweep_teller *t, const struct rp_store *store, const struct rp_error *why)
{
    struct rp_overdue due = { 0 };
    struct rp_error ignored = { 0 };
    (void)rp_marks_overdue(t->session->catalog->db, store->id, rp_session_now_ms(t->session), &due, &ignored);
    left_out(t, store, due.marks, why);
}

struct rp_sweeper rp_sweep_teller_sweeper(struct rp_sweep_teller *t, const volatile sig_atomic_t *stop)
{
    struct rp_session *s = t->session;
    return (struct rp_sweeper){ .catalog = s->catalog,
                                .environment = s->config.environment,
                                .worker = &s->worker,
                                .rules = rp_session_sweep_rules(s),
                                .limit = s->config.sweep_limit,
                                .stale_after_ms = s->config.lock_stale_after_ms,
                                .stop = stop,
                                .started = run_started,
                                .finished = batch_finished,
                                .left_out = left_out,
                                .ctx = t };
}

void rp_sweep_teller_ended(struct rp_sweep_teller *t, const struct rp_run *run, const char *outcome, int code)
{
    struct rp_journal j = journal_of(t);
    const struct rp_figures *f = &run->figures;
    RP_ASSERT(outcome != NULL);
    if (strcmp(outcome, "failed") == 0) {
        struct rp_error why = { 0 };
        rp_error_set(&why, code < 0 ? code : RP_EFAILED, "%s",
                     f->n_errors > 0 ? f->errors[0] : "the lock was taken over by another worker");
        rp_journal_failed(&j, run->kind, run, &why);
    } else {
        rp_journal_completed(&j, run, outcome);
    }
    rp_metrics_run(t->metrics, run->kind, run->name, outcome, j.at_ms - run->started_at_ms, j.at_ms);
}

/* ---- one run ---- */

struct skipped {
    const struct rp_journal *journal;
    const char *name;
};

static int note_holder(void *ctx, const struct rp_held_lock *lock, struct rp_error *err)
{
    const struct skipped *s = ctx;
    (void)err;
    rp_journal_skipped(s->journal, "sweep", s->name, lock->locked_by, lock->locked_at_ms);
    return 0;
}

static void tell_not_begun(struct rp_sweep_teller *t, const char *name, int code, const struct rp_error *err)
{
    struct rp_journal j = journal_of(t);
    struct skipped skipped = { .journal = &j, .name = name };
    struct rp_error ignored = { 0 };
    char lock[96];
    snprintf(lock, sizeof lock, "sweep:%s", name);
    if (code == RP_ERUNNING)
        (void)rp_lock_each_held(t->session->catalog->db, lock, note_holder, &skipped, &ignored);
    else
        rp_journal_failed(&j, "sweep", NULL, err);
}

int rp_sweep_run(struct rp_sweep_teller *t, const char *store, const struct rp_run *begun,
                 const volatile sig_atomic_t *stop, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_sweeper sweeper = rp_sweep_teller_sweeper(t, stop);
    if (result == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a sweep");
    if (begun != NULL) result->run = *begun;
    sweeper.stores = stores;
    sweeper.name = store != NULL ? store : "all";
    sweeper.n_stores = 1;
    int r = store != NULL ? rp_session_store(t->session, store, &stores[0], err)
                          : rp_session_stores(t->session, stores, &sweeper.n_stores, err);
    if (r == 0) r = rp_sweeper_run(&sweeper, result, err);
    if (r < 0)
        tell_not_begun(t, sweeper.name, r, err);
    else
        rp_sweep_teller_ended(t, &result->run, result->outcome, result->code);
    rp_log_flush(t->session->log);
    return r;
}

/* ---- runs that people ask for ---- */

struct asked {
    struct rp_sweep_runs *all;
    struct rp_run run;
    char store[64], actor[RP_ACTOR_MAX];
    pthread_t thread;
    bool used, over; /* over: the thread touches nothing any more but itself */
};

struct rp_sweep_runs {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct rp_sweep_runs_options options;
    const struct rp_config *config; /* NULL: the session's */
    struct asked at[RUNS_MAX];
    size_t reserved; /* room that nobody has started in yet */
    volatile sig_atomic_t stop;
};

int rp_sweep_runs_new(const struct rp_sweep_runs_options *options, struct rp_sweep_runs **out, struct rp_error *err)
{
    struct rp_sweep_runs *runs = calloc(1, sizeof *runs);
    if (runs == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for runs");
    pthread_mutex_init(&runs->lock, NULL);
    pthread_cond_init(&runs->moved, NULL);
    runs->options = *options;
    *out = runs;
    return 0;
}

void rp_sweep_runs_configure(struct rp_sweep_runs *runs, const struct rp_config *config)
{
    pthread_mutex_lock(&runs->lock);
    runs->config = config;
    pthread_mutex_unlock(&runs->lock);
}

static int open_session(struct asked *a, struct rp_session *out, struct rp_error *err)
{
    struct rp_sweep_runs *runs = a->all;
    int r = rp_session_beside(runs->options.session, runs->options.lane, out, err);
    if (r < 0) return r;
    pthread_mutex_lock(&runs->lock);
    if (runs->config != NULL) out->config = *runs->config;
    pthread_mutex_unlock(&runs->lock);
    if (runs->options.writers != NULL) rp_writers_attach(runs->options.writers, out->catalog);
    snprintf(out->actor, sizeof out->actor, "%s", a->actor);
    return 0;
}

/* Without a session the run stays open: when its lock is stale, or this daemon is gone, a sweep is
 * closed as failed and a restore is carried on. */
static void *run_asked(void *arg)
{
    struct asked *a = arg;
    struct rp_error err = { 0 };
    RP_CLEANUP(rp_session_close) struct rp_session session = { 0 };
    struct rp_sweep_teller teller = { .session = &session, .metrics = a->all->options.metrics, .ctx = a };
    bool opened = open_session(a, &session, &err) == 0;
    if (opened && strcmp(a->run.kind, RP_RUN_RESTORE) == 0)
        (void)rp_restore_run(&session, a->all->options.metrics, &a->run, &a->all->stop);
    else if (opened)
        (void)rp_sweep_run(&teller, a->store[0] != 0 ? a->store : NULL, &a->run, &a->all->stop, &err);
    else
        rp_metrics_failure(a->all->options.metrics, "catalog");
    pthread_mutex_lock(&a->all->lock);
    a->over = true;
    pthread_cond_broadcast(&a->all->moved);
    pthread_mutex_unlock(&a->all->lock);
    return NULL;
}

/* Under the lock; runs that are over are joined on the way. */
static size_t count_free(struct rp_sweep_runs *runs, struct asked **first)
{
    size_t n = 0;
    for (size_t i = RUNS_MAX; i-- > 0;) {
        struct asked *a = &runs->at[i];
        if (a->used && a->over) {
            pthread_join(a->thread, NULL);
            a->used = false;
        }
        if (a->used) continue;
        *first = a;
        n++;
    }
    return n;
}

int rp_sweep_runs_reserve(struct rp_sweep_runs *runs, struct rp_error *err)
{
    struct asked *free_one;
    pthread_mutex_lock(&runs->lock);
    bool room = runs->stop == 0 && count_free(runs, &free_one) > runs->reserved;
    runs->reserved += room;
    pthread_mutex_unlock(&runs->lock);
    if (room) return 0;
    rp_error_set(err, RP_EBUSY, "too many runs are under way");
    return rp_error_hint(err, "wait for one of them to end");
}

void rp_sweep_runs_start(struct rp_sweep_runs *runs, const char *store, const char *actor, const struct rp_run *begun)
{
    struct asked *a = NULL;
    pthread_mutex_lock(&runs->lock);
    RP_ASSERT(runs->reserved > 0 && count_free(runs, &a) > 0);
    runs->reserved--;
    if (begun != NULL) {
        *a = (struct asked){ .all = runs, .run = *begun };
        snprintf(a->store, sizeof a->store, "%s", store != NULL ? store : "");
        snprintf(a->actor, sizeof a->actor, "%s", actor);
        a->used = pthread_create(&a->thread, NULL, run_asked, a) == 0;
    }
    pthread_cond_broadcast(&runs->moved);
    pthread_mutex_unlock(&runs->lock);
}

void rp_sweep_runs_halt(struct rp_sweep_runs *runs)
{
    if (runs == NULL) return;
    pthread_mutex_lock(&runs->lock);
    __atomic_store_n(&runs->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&runs->lock);
}

void rp_sweep_runs_stop(struct rp_sweep_runs *runs)
{
    if (runs == NULL) return;
    rp_sweep_runs_halt(runs);
    pthread_mutex_lock(&runs->lock);
    while (runs->reserved > 0)
        pthread_cond_wait(&runs->moved, &runs->lock);
    for (size_t i = 0; i < RUNS_MAX; i++) {
        struct asked *a = &runs->at[i];
        while (a->used && !a->over)
            pthread_cond_wait(&runs->moved, &runs->lock);
        if (a->used) pthread_join(a->thread, NULL);
    }
    pthread_mutex_unlock(&runs->lock);
    pthread_cond_destroy(&runs->moved);
    pthread_mutex_destroy(&runs->lock);
    free(runs);
}
