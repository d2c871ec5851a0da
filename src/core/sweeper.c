/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sweeper.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "core/guarantee.h"
#include "core/owner.h"

#include <pthread.h>
#include <string.h>

#define PLAN_PAGE 1000
#define FLIGHTS   6 /* batches with the store at a time: while one waits for its directory to be synced, others delete */

int rp_sweeper_may_purge(struct rp_sweeper *s, struct rp_store *store, bool dry_run, struct rp_error *err)
{
    const struct rp_store_config *config = store->config;
    int r = 0;
    if (store->backend == NULL) {
        *err = store->closed;
        return store->closed.code;
    }
    if (config->mode == RP_MODE_OBSERVE) {
        rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: nothing of it is purged", config->name);
        return rp_error_hint(err, "set stores.%s.mode to quarantine or purge when you are ready", config->name);
    }
    r = rp_guarantee_ensure(s->catalog, store, dry_run ? RP_GUARANTEE_LOOK : RP_GUARANTEE_SWEEP, err);
    if (r < 0) return r;
    if (dry_run) return rp_owner_check(s->catalog, store, err);
    return rp_owner_assert(s->catalog, store, s->environment, s->lazily, err);
}

int64_t rp_sweeper_weak(struct rp_sweeper *s, struct rp_store *store, struct rp_error *why)
{
    struct rp_overdue due = { 0 };
    struct rp_error ignored = { 0 };
    if (store->config->mode == RP_MODE_OBSERVE || store->backend == NULL || !rp_store_is_weak(store)) return 0;
    (void)rp_marks_overdue_plain(s->catalog->db, store->id, rp_clock_now_ms(s->catalog->clock), &due, &ignored);
    if (due.marks > 0) (void)rp_store_refuse_weak(store, why);
    return due.marks;
}

/* ---- the store's part, beside the catalog's ---- */

struct air;
struct flight {
    struct air *air;
    struct rp_sweep_batch batch;
    pthread_t thread;
    bool taken;  /* in the air */
    bool flying; /* on a thread of its own */
    bool back;   /* the store's part of it is done; under the lock of the air */
};

struct air {
    struct flight flights[FLIGHTS];
    size_t n; /* in the air */
    pthread_mutex_t lock;
    pthread_cond_t landed;
};

static void *fly(void *arg)
{
    struct flight *flight = arg;
    rp_sweep_learn(&flight->batch);
    rp_sweep_set_aside(&flight->batch);
    rp_sweep_erase(&flight->batch);
    pthread_mutex_lock(&flight->air->lock);
    flight->back = true;
    pthread_cond_signal(&flight->air->landed);
    pthread_mutex_unlock(&flight->air->lock);
    return NULL;
}

static void take_off(struct flight *flight)
{
    flight->taken = true;
    flight->back = false;
    flight->air->n++;
    flight->flying = pthread_create(&flight->thread, NULL, fly, flight) == 0;
    if (!flight->flying) fly(flight); /* no thread to be had: slower, not wrong */
}

static struct flight *find_back(struct air *air)
{
    for (size_t i = 0; i < FLIGHTS; i++)
        if (air->flights[i].taken && air->flights[i].back) return &air->flights[i];
    return NULL;
}

/* Whichever is back: the slowest holds nobody up. */
static struct flight *land(struct air *air)
{
    struct flight *flight;
    RP_ASSERT(air->n > 0);
    pthread_mutex_lock(&air->lock);
    while ((flight = find_back(air)) == NULL)
        pthread_cond_wait(&air->landed, &air->lock);
    pthread_mutex_unlock(&air->lock);
    if (flight->flying) pthread_join(flight->thread, NULL);
    flight->taken = flight->flying = false;
    air->n--;
    return flight;
}

static bool stopped(const struct rp_sweeper *s)
{
    return s->stop != NULL && __atomic_load_n(s->stop, __ATOMIC_RELAXED) != 0;
}

struct pass {
    struct rp_sweeper *sweeper;
    struct rp_store *store;
    struct rp_run *run;
    int64_t left; /* how many marks this run may still claim */
    int64_t from_ms;
    struct rp_error store_failed; /* code 0: it did not */
};

static int begin(struct rp_sweeper *s, struct rp_run *run, struct rp_error *err)
{
    int r = rp_run_begin(s->catalog, "sweep", s->name, s->worker, s->stale_after_ms, run, err);
    if (r < 0)
        run->id = 0;
    else if (s->started != NULL)
        s->started(s->ctx, run);
    return r;
}

static int claim_next(struct pass *p, struct flight *flight, struct rp_error *err)
{
    struct rp_sweeper *s = p->sweeper;
    flight->batch.marks.n = 0;
    if (p->left <= 0 || stopped(s) || p->run->cancelled) return 0;
    int r = rp_sweep_claim(s->catalog, p->store, &s->rules, s->worker, p->left, &p->from_ms, &flight->batch, err);
    if (r < 0) return r;
    if (flight->batch.store_code < 0) { /* its clock could not be asked: nothing was claimed */
        p->left = 0;
        p->store_failed = flight->batch.store_error;
        rp_figures_error(&p->run->figures, "%s", p->store_failed.text);
        return 0;
    }
    p->left -= (int64_t)flight->batch.marks.n;
    if (flight->batch.marks.n > 0 && p->run->id == 0) r = begin(s, p->run, err);
    if (r == 0) r = rp_sweep_check(s->catalog, &s->rules, s->worker->name, &flight->batch, err);
    if (r < 0) rp_sweep_release(s->catalog, &flight->batch, s->worker->name);
    return r;
}

static int finish(struct pass *p, struct flight *flight, struct rp_error *err)
{
    struct rp_sweeper *s = p->sweeper;
    int r = rp_sweep_finish(s->catalog, &s->rules, &flight->batch, p->run, err);
    if (r == 0 && s->finished != NULL) s->finished(s->ctx, &flight->batch, p->run);
    if (flight->batch.store_code >= 0) return r;
    /* a store that failed as a whole is left alone for the rest of this run */
    p->left = 0;
    p->store_failed = flight->batch.store_error;
    return r;
}

static int claim_one(struct pass *p, struct air *air, bool *more, struct rp_error *err)
{
    struct flight *next = air->flights;
    while (next->taken)
        next++;
    RP_ASSERT(next < air->flights + FLIGHTS);
    int r = claim_next(p, next, err);
    *more = r == 0 && next->batch.marks.n > 0;
    if (*more) take_off(next);
    return r;
}

/* While batches are with the store, the next is claimed and those that are back are finished. Whatever has taken off is landed and
 * finished, also after a failure: the store's part of it is done. */
static int sweep_store(struct pass *p, struct air *air, struct rp_error *err)
{
    bool more = true;
    int failed = 0;
    while (more || air->n > 0) {
        struct rp_error why = { 0 };
        int r = more && air->n < FLIGHTS ? claim_one(p, air, &more, &why) : finish(p, land(air), &why);
        if (r == 0) continue;
        more = false;
        if (failed == 0) *err = why;
        if (failed == 0) failed = r;
    }
    return failed;
}

/* ---- the run ---- */

static int64_t count_due(struct rp_sweeper *s, const struct rp_store *store)
{
    struct rp_overdue due = { 0 };
    struct rp_error ignored = { 0 };
    (void)rp_marks_overdue(s->catalog->db, store->id, rp_clock_now_ms(s->catalog->clock), &due, &ignored);
    return due.marks;
}

static void leave_out(struct rp_sweeper *s, struct rp_store *store, struct rp_run *run, int64_t due,
                      const struct rp_error *why)
{
    run->figures.skipped += due;
    /* observing is what the user asked for; everything else is an error of the run */
    if (why->code != RP_EOBSERVE) rp_figures_error(&run->figures, "%s", why->text);
    if (s->left_out != NULL) s->left_out(s->ctx, store, due, why);
}

/* A catalog that fails ends the run; a store that fails is left alone, and the others go on. */
static bool ends_the_run(int code)
{
    return code == RP_EUNAVAILABLE || code == RP_EUNKNOWN || code == RP_ECORRUPT || code == RP_ECHANGED;
}

static const char *sweep_all(struct rp_sweeper *s, struct air *air, struct rp_sweep_result *out)
{
    struct rp_run *run = &out->run;
    int64_t left = s->limit;
    size_t closed = 0;
    for (size_t i = 0; i < s->n_stores && left > 0 && !stopped(s) && !run->cancelled; i++) {
        struct rp_error why = { 0 };
        struct pass pass = { .sweeper = s, .store = s->stores[i], .run = run, .left = left };
        if (rp_sweeper_may_purge(s, s->stores[i], false, &why) < 0) {
            leave_out(s, s->stores[i], run, count_due(s, s->stores[i]), &why);
            closed += s->stores[i]->backend == NULL;
            out->code = why.code;
            continue;
        }
        int64_t before = run->figures.scanned;
        if (sweep_store(&pass, air, &why) < 0) {
            rp_figures_error(&run->figures, "%s", why.text);
            out->code = why.code;
            if (run->lost || ends_the_run(why.code)) return "failed";
        }
        left -= run->figures.scanned - before;
        int64_t waiting = rp_sweeper_weak(s, s->stores[i], &why);
        if (waiting > 0) leave_out(s, s->stores[i], run, waiting, &why);
        if (waiting > 0) out->code = why.code;
    }
    if (s->n_stores > 0 && closed == s->n_stores) return "failed";
    if (run->cancelled) return "cancelled";
    return stopped(s) || run->figures.failed > 0 || run->figures.n_errors > 0 ? "partial" : "done";
}

static struct air *new_air(struct rp_error *err)
{
    struct air *air = calloc(1, sizeof *air);
    if (air == NULL) {
        rp_error_set(err, RP_ENOMEM, "sweep: out of memory");
        return NULL;
    }
    RP_ASSERT(pthread_mutex_init(&air->lock, NULL) == 0 && pthread_cond_init(&air->landed, NULL) == 0);
    for (size_t i = 0; i < FLIGHTS; i++) {
        air->flights[i].air = air;
        rp_sweep_batch_init(&air->flights[i].batch);
    }
    return air;
}

static void free_air(struct air **air)
{
    if (*air == NULL) return;
    RP_ASSERT((*air)->n == 0);
    for (size_t i = 0; i < FLIGHTS; i++)
        rp_sweep_batch_done(&(*air)->flights[i].batch);
    pthread_cond_destroy(&(*air)->landed);
    pthread_mutex_destroy(&(*air)->lock);
    free(*air);
}

static void end_run(struct rp_sweeper *s, struct rp_sweep_result *out)
{
    struct rp_error end = { 0 };
    if (rp_run_end(s->catalog, &out->run, out->outcome, &end) == 0) return;
    rp_figures_error(&out->run.figures, "%s", end.text);
    out->outcome = "failed";
    out->code = end.code;
}

int rp_sweeper_run(struct rp_sweeper *s, struct rp_sweep_result *out, struct rp_error *err)
{
    RP_CLEANUP(free_air) struct air *air = new_air(err);
    if (air == NULL) return RP_ENOMEM;
    int r = 0;
    if (out->run.id == 0)
        r = begin(s, &out->run, err);
    else if (s->started != NULL)
        s->started(s->ctx, &out->run);
    if (r < 0) return r;
    out->code = 0;
    out->outcome = sweep_all(s, air, out);
    end_run(s, out);
    return 0;
}

/* ---- a run that stays open ---- */

int rp_sweeper_pass(struct rp_sweeper *s, struct rp_store *store, struct rp_run *run, struct rp_sweep_pass *out,
                    struct rp_error *err)
{
    *out = (struct rp_sweep_pass){ 0 };
    int r = rp_sweeper_may_purge(s, store, false, &out->why);
    if (r < 0) return 0;
    rp_error_clear(&out->why); /* of what was looked for on the way and not found */
    RP_CLEANUP(free_air) struct air *air = new_air(err);
    if (air == NULL) return RP_ENOMEM;
    struct pass pass = { .sweeper = s, .store = store, .run = run, .left = s->limit };
    r = sweep_store(&pass, air, err);
    out->claimed = s->limit - pass.left;
    if (pass.store_failed.code < 0) {
        out->claimed = 0;
        out->why = pass.store_failed;
    }
    /* clocks, a store's own trouble: not the catalog's */
    if (r == RP_ECLOCK) {
        out->why = *err;
        return 0;
    }
    return r;
}

static int renew_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    return rp_run_step(tx, ctx, err);
}

int rp_sweeper_renew(struct rp_sweeper *s, struct rp_run *run, struct rp_error *err)
{
    RP_ASSERT(run->id != 0);
    int r = rp_catalog_transact(s->catalog, renew_tx, run, err);
    if (r == RP_ECHANGED) run->lost = true;
    return r < 0 ? rp_error_wrap(err, r, "keep the lock of %s", run->lock) : 0;
}

int rp_sweeper_close(struct rp_sweeper *s, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    RP_ASSERT(run->id != 0);
    *outcome = run->figures.failed > 0 || run->figures.n_errors > 0 ? "partial" : "done";
    if (run->cancelled) *outcome = "cancelled";
    return rp_run_end(s->catalog, run, *outcome, err);
}

/* ---- plan ---- */

static int plan_store(struct rp_sweeper *s, struct rp_store *store, int64_t *left, struct rp_marks *page,
                      rp_sweep_plan_fn *fn, void *ctx, struct rp_error *err)
{
    int64_t now_ms = rp_clock_now_ms(s->catalog->clock), db_ms = 0;
    bool weak = store->config->mode != RP_MODE_OBSERVE && rp_store_is_weak(store);
    int r = rp_db_now_ms(s->catalog->db, &db_ms, err);
    struct rp_marks_query query = { .by = RP_BY_DUE_UNHELD,
                                    .store_id = store->id,
                                    .before_ms = now_ms < db_ms ? now_ms : db_ms };
    while (r == 0 && *left > 0) {
        rp_arena_reset(page->arena);
        r = rp_marks_init(page, PLAN_PAGE, page->arena, err);
        if (r == 0) r = rp_marks_page(s->catalog->db, &query, page, err);
        if (r < 0 || page->n == 0) return r;
        for (size_t i = 0; i < page->n && r == 0 && *left > 0; i++) {
            if (weak && !rp_mark_is_named(&page->at[i])) continue;
            (*left)--;
            r = fn(ctx, store, &page->at[i], err);
        }
    }
    return r;
}

int rp_sweeper_plan(struct rp_sweeper *s, rp_sweep_plan_fn *fn, void *ctx, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)8 << 20);
    struct rp_marks page = { .arena = &arena };
    int64_t left = s->limit;
    int r = 0;
    for (size_t i = 0; i < s->n_stores && r == 0; i++) {
        struct rp_error ignored = { 0 }; /* who asks whether it may be purged is told */
        if (s->stores[i]->backend != NULL)
            (void)rp_guarantee_ensure(s->catalog, s->stores[i], RP_GUARANTEE_LOOK, &ignored);
        r = plan_store(s, s->stores[i], &left, &page, fn, ctx, err);
    }
    return r < 0 ? rp_error_wrap(err, r, "plan a sweep") : 0;
}
