/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that want the same marks at the same moment, each with its own connection: exactly one
 * gets each. On both engines. Needs PostgreSQL: run under tests/lib/with-postgres. Threads note
 * what they saw; the test's own thread judges it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "core/hold.h"
#include "lib/ask.h"
#include "lib/world.h"

#define ROUNDS      200
#define MARKS       2000
#define HELD_ROUNDS 8
#define HELD_MARKS  900 /* fewer than a hold lists */
#define SAME_ROUNDS 100

static struct rp_error err;

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    world_make(w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_check(*state);
    world_drop(*state);
    free(*state);
    return 0;
}

static void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
}

/* Shifts who comes first from round to round, so that the two meet in every order. */
static void linger(int64_t us)
{
    struct timespec now, begun;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000 + (now.tv_nsec - begun.tv_nsec) / 1000 < us);
}

/* ---- restore against claim ---- */

struct duel {
    struct world *w;
    struct rp_catalog *restorer, *sweeper;
    struct world_steps steps;
    struct rp_purge_rules rules;
    pthread_barrier_t begin, end;
    struct rp_mark mark; /* of this round */
    int round;
    int restored_r, swept_r;
    struct rp_error restored_why, swept_why;
    struct rp_reprieve_answer answer;
    size_t claimed;
};

static void *restore_each(void *arg)
{
    struct duel *d = arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&d->begin);
        if (d->round % 2 == 0) linger(d->round % 50 * 40);
        d->restored_r =
            rp_reprieve_many(d->restorer, &d->w->store, &d->mark, 1, "restorer", &d->answer, &d->restored_why);
        pthread_barrier_wait(&d->end);
    }
    return NULL;
}

static int sweep_once(struct duel *d)
{
    struct world_steps *s = &d->steps;
    int64_t from_ms = 0;
    int r = rp_purge_claim(d->sweeper, &d->w->store, &d->rules, &d->w->worker, 10, &from_ms, &s->batch, &d->swept_why);
    d->claimed = r == 0 ? s->batch.marks.n : 0;
    if (r < 0 || d->claimed == 0) return r;
    rp_purge_erase(&s->batch);
    return rp_purge_finish(d->sweeper, &d->rules, &s->batch, &s->run, &d->swept_why);
}

static void *sweep_each(void *arg)
{
    struct duel *d = arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&d->begin);
        if (d->round % 2 == 1) linger(d->round % 50 * 40);
        d->swept_r = sweep_once(d);
        pthread_barrier_wait(&d->end);
    }
    return NULL;
}

/* One round: exactly one has won, both know it, and the object is there if and only if it was
 * restored. */
static bool judge_duel(struct world *w, struct duel *d, const char *key)
{
    world_ok(d->restored_r, &d->restored_why, __FILE__, __LINE__);
    world_ok(d->swept_r, &d->swept_why, __FILE__, __LINE__);
    bool restored = d->answer.what == RP_REPRIEVE_DONE;
    if (!restored) assert_int_equal(d->answer.error.code, RP_ETOOLATE);
    assert_int_equal(d->claimed, restored ? 0 : 1);
    assert_int_equal(world_exists(w, key), restored);
    assert_int_equal(world_newest(w, key).state, restored ? RP_REPRIEVED : RP_PURGED);
    return restored;
}

static void test_RESTORE_WINS_or_the_claim_does_never_both_and_never_none(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_freep) struct duel *d = calloc(1, sizeof *d);
    pthread_t threads[2];
    int restored = 0;
    *d = (struct duel){
        .w = w, .restorer = world_catalog(w, 1, NULL), .sweeper = world_catalog(w, 2, NULL), .rules = w->rules
    };
    world_steps_begin(w, d->sweeper, "duel", &d->steps);
    pthread_barrier_init(&d->begin, NULL, 3);
    pthread_barrier_init(&d->end, NULL, 3);
    start(&threads[0], restore_each, d);
    start(&threads[1], sweep_each, d);
    for (d->round = 0; d->round < ROUNDS; d->round++) {
        char key[32];
        snprintf(key, sizeof key, "duel/%d", d->round);
        world_put(w, key, "x");
        assert_int_equal(world_mark(w, key, 0).what, RP_MARK_CREATED);
        d->mark = world_newest(w, key);
        pthread_barrier_wait(&d->begin);
        pthread_barrier_wait(&d->end);
        restored += judge_duel(w, d, key);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(restored, 1, ROUNDS - 1); /* it was a race */
    ok(rp_run_end(d->sweeper, &d->steps.run, "done", &err));
    world_steps_done(&d->steps);
    rp_catalog_close(d->restorer);
    rp_catalog_close(d->sweeper);
    pthread_barrier_destroy(&d->begin);
    pthread_barrier_destroy(&d->end);
}

/* ---- several sweepers ---- */

struct sweeping {
    struct rp_sweep sweeper;
    struct rp_sweep_result result;
    struct rp_error why;
    int r;
};

static void *sweep_all(void *arg)
{
    struct sweeping *s = arg;
    s->r = rp_sweep_run(&s->sweeper, &s->result, &s->why);
    return NULL;
}

static void sweep_together(struct world *w, size_t n)
{
    RP_CLEANUP(rp_freep) struct sweeping *all = calloc(n, sizeof *all);
    pthread_t threads[4];
    char names[4][24];
    int64_t purged = 0;
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "s%zu", i);
        all[i].sweeper = world_sweeper(w, world_catalog(w, 1 + (int)i, NULL), names[i]);
    }
    for (size_t i = 0; i < n; i++)
        start(&threads[i], sweep_all, &all[i]);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < n; i++) {
        world_ok(all[i].r, &all[i].why, __FILE__, __LINE__);
        if (all[i].result.run.figures.n_errors > 0) print_error("%s\n", all[i].result.run.figures.errors[0]);
        assert_string_equal(all[i].result.outcome, "done");
        purged += all[i].result.run.figures.purged;
        assert_int_equal(all[i].result.run.figures.already_gone + all[i].result.run.figures.failed, 0);
        rp_catalog_close(all[i].sweeper.by.catalog);
    }
    assert_int_equal(purged, MARKS);
}

static void test_sweepers_side_by_side_delete_each_object_once(void **state)
{
    struct world *w = *state;
    for (size_t n = 2; n <= 4; n += 2) {
        w->removed = 0;
        world_put_many(w, MARKS, 10);
        world_mark_many(w, MARKS, 0);
        sweep_together(w, n);
        assert_int_equal(w->removed, MARKS);
        assert_false(world_exists(w, "many/00000"));
        assert_int_equal(world_count(w, RP_PURGED), (int64_t)(n / 2) * MARKS);
        assert_int_equal(world_count(w, RP_MARKED) + world_count(w, RP_PURGING), 0);
        world_check(w);
    }
}

/* ---- hold against claim ---- */

struct holding {
    struct world *w;
    struct rp_catalog *claimer;
    atomic_bool placed; /* the hold's answer is there */
    atomic_int claims;
    int r;
    struct rp_error why;
};

/* Claims a few at a time, on and on, until the hold has been placed and nothing is left to
 * claim. */
static void *claim_all(void *arg)
{
    struct holding *h = arg;
    struct rp_purge_batch batch;
    rp_purge_batch_init(&batch);
    for (bool last = false; h->r == 0 && !last; atomic_fetch_add(&h->claims, 1)) {
        int64_t from_ms = 0;
        bool placed = atomic_load(&h->placed);
        h->r = rp_purge_claim(h->claimer, &h->w->store, &h->w->rules, &h->w->worker, 3, &from_ms, &batch, &h->why);
        last = placed && batch.marks.n == 0;
        linger(500); /* the time that a store would take, in which others get at the database */
    }
    rp_purge_batch_done(&batch);
    return NULL;
}

static void expect_listed(struct world *w, const struct rp_hold_command *hold)
{
    assert_int_equal(world_count(w, RP_PURGING), (int64_t)hold->claimed.n);
    for (size_t i = 0; i < hold->claimed.n; i++) {
        char sql[96];
        snprintf(sql, sizeof sql, "SELECT state FROM mark WHERE id = %lld", (long long)hold->claimed.at[i].id);
        assert_int_equal(world_number(w, sql), RP_PURGING);
    }
}

static void test_X3_no_claim_slips_past_a_hold_that_does_not_list_it(void **state)
{
    struct world *w = *state;
    struct holding h = { .w = w, .claimer = world_catalog(w, 1, NULL) };
    struct rp_hold_command everything = { .scope = RP_SCOPE_EVERYTHING, .reason = "stop", .command.actor = "tester" };
    int partly = 0;
    world_put_many(w, HELD_MARKS, 1);
    world_mark_many(w, HELD_MARKS, 0);
    for (int round = 0; round < HELD_ROUNDS; round++) {
        pthread_t thread;
        atomic_store(&h.placed, false);
        atomic_store(&h.claims, 0);
        start(&thread, claim_all, &h);
        while (atomic_load(&h.claims) < round * 20) /* a little later each time */
            linger(1);
        ok(ask_hold(w->catalog, &everything, &w->arena, &err));
        atomic_store(&h.placed, true);
        pthread_join(thread, NULL);
        world_ok(h.r, &h.why, __FILE__, __LINE__);
        expect_listed(w, &everything);
        partly += everything.claimed.n > 0 && everything.claimed.n < HELD_MARKS;
        ok(ask_lift(w->catalog, everything.id, "tester", &err));
        /* as if nobody had claimed them; the tallies are counted anew, for this is no way to do
         * it */
        world_script(
            w, "UPDATE mark SET state = 1, was = 1, next_at = due_at WHERE state = 3;"
               "DELETE FROM tally; INSERT INTO tally (lane, store_id, state, marks, bytes, waiting, waiting_bytes) "
               "SELECT 0, store_id, state, count(*), count(*), count(*), count(*) FROM mark "
               "GROUP BY store_id, state");
    }
    assert_true(partly > 0); /* some rounds stopped it half way */
    rp_catalog_close(h.claimer);
}

/* ---- mark against mark ---- */

struct marking {
    struct world *w;
    struct rp_catalog *catalog;
    pthread_barrier_t *begin, *end;
    const char *key;
    struct rp_mark_answer answer;
    struct rp_error why;
    int r;
};

static void *mark_each(void *arg)
{
    struct marking *m = arg;
    for (int i = 0; i < SAME_ROUNDS; i++) {
        pthread_barrier_wait(m->begin);
        struct rp_mark_request q = { .key = m->key, .grace_ms = -1, .at_ms = -1, .reason = "" };
        m->r = rp_mark_many(m->catalog, &m->w->store, &q, 1, "marker", false, &m->answer, &m->why);
        pthread_barrier_wait(m->end);
    }
    return NULL;
}

static void judge_marking(const struct marking *m)
{
    for (int i = 0; i < 2; i++)
        world_ok(m[i].r, &m[i].why, __FILE__, __LINE__);
    int created = (m[0].answer.what == RP_MARK_CREATED) + (m[1].answer.what == RP_MARK_CREATED);
    int same = (m[0].answer.what == RP_MARK_SAME) + (m[1].answer.what == RP_MARK_SAME);
    assert_int_equal(created, 1);
    assert_int_equal(same, 1);
    assert_int_equal(m[0].answer.mark_id, m[1].answer.mark_id);
    assert_int_equal(m[0].answer.due_at_ms, m[1].answer.due_at_ms);
}

static void test_two_who_mark_the_same_subject_get_one_mark(void **state)
{
    struct world *w = *state;
    static struct marking m[2];
    pthread_barrier_t begin, end;
    pthread_t threads[2];
    pthread_barrier_init(&begin, NULL, 3);
    pthread_barrier_init(&end, NULL, 3);
    for (int i = 0; i < 2; i++) {
        m[i] = (struct marking){ .w = w, .catalog = world_catalog(w, 1 + i, NULL), .begin = &begin, .end = &end };
        start(&threads[i], mark_each, &m[i]);
    }
    for (int round = 0; round < SAME_ROUNDS; round++) {
        char key[32];
        snprintf(key, sizeof key, "same/%d", round);
        world_put(w, key, "x");
        m[0].key = m[1].key = key;
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        judge_marking(m);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        rp_catalog_close(m[i].catalog);
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), SAME_ROUNDS);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.created'"), SAME_ROUNDS);
    pthread_barrier_destroy(&begin);
    pthread_barrier_destroy(&end);
}

/* ---- a holder that wakes up ---- */

/* It does not know that its lease is over: what it sends was under way before. */
static int64_t boot_stands_still(void *ctx)
{
    (void)ctx;
    return 1000;
}

/* A worker whose lease ran out is taken for dead, and another one takes the mark over and finishes
 * it. The first one wakes up in the middle: its delete finds what everybody agreed to delete, or
 * nothing of it, and its word changes nothing. */
static void test_FENCED_a_worker_that_wakes_up_late_changes_nothing(void **state)
{
    struct world *w = *state;
    struct world_steps first, second;
    struct rp_catalog *catalogs[2] = { world_catalog(w, 1, NULL), world_catalog(w, 2, NULL) };
    world_put(w, "k", "old");
    (void)world_mark(w, "k", 0);
    world_steps_begin(w, catalogs[0], "first", &first);
    world_steps_begin(w, catalogs[1], "second", &second);
    w->host_clock.boot_ms = boot_stands_still;
    w->rules.lease_ms = 1;
    world_steps_claim(w, catalogs[0], &first);
    assert_int_equal(first.batch.marks.n, 1);
    do
        world_steps_claim(w, catalogs[1], &second);
    while (second.batch.marks.n == 0); /* until the lease has run out */
    assert_true(second.batch.marks.at[0].fence > first.batch.marks.at[0].fence);
    world_steps_erase(w, catalogs[1], &second);
    ok(rp_purge_finish(catalogs[1], &w->rules, &second.batch, &second.run, &err));
    assert_int_equal(second.run.figures.purged, 1);
    world_put(w, "k", "new");
    struct rp_mark before = world_newest(w, "k");
    int64_t audits = world_number(w, "SELECT count(*) FROM audit");
    world_steps_erase(w, catalogs[0], &first);
    ok(rp_purge_finish(catalogs[0], &w->rules, &first.batch, &first.run, &err));
    assert_int_equal(first.run.figures.purged + first.run.figures.already_gone, 0);
    assert_int_equal(first.run.figures.skipped, 1);
    struct rp_mark after = world_newest(w, "k");
    assert_int_equal(after.state, RP_PURGED);
    assert_int_equal(after.outcome, RP_END_ERASED);
    assert_int_equal(after.fence, before.fence);
    assert_int_equal(after.ended_at_ms, before.ended_at_ms);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), audits);
    assert_string_equal(world_text(w, "k"), "new");
    ok(rp_run_end(catalogs[0], &first.run, "done", &err));
    ok(rp_run_end(catalogs[1], &second.run, "done", &err));
    world_steps_done(&first);
    world_steps_done(&second);
    rp_catalog_close(catalogs[0]);
    rp_catalog_close(catalogs[1]);
}

/* The same, but it wakes up while the other one has only claimed: the mark stays the other one's,
 * who finds the work done. */
static void test_FENCED_a_worker_that_wakes_up_after_the_takeover_cannot_finish(void **state)
{
    struct world *w = *state;
    struct world_steps first, second;
    world_put(w, "k", "x");
    (void)world_mark(w, "k", 0);
    world_steps_begin(w, w->catalog, "first", &first);
    world_steps_begin(w, w->catalog, "second", &second);
    w->host_clock.boot_ms = boot_stands_still;
    w->rules.lease_ms = 1;
    world_steps_claim(w, w->catalog, &first);
    do
        world_steps_claim(w, w->catalog, &second);
    while (second.batch.marks.n == 0);
    world_steps_erase(w, w->catalog, &first);
    ok(rp_purge_finish(w->catalog, &w->rules, &first.batch, &first.run, &err));
    assert_int_equal(first.run.figures.skipped, 1);
    assert_int_equal(world_newest(w, "k").state, RP_PURGING);
    world_steps_erase(w, w->catalog, &second);
    for (int i = 0; i < 2; i++) /* and its word counts once */
        ok(rp_purge_finish(w->catalog, &w->rules, &second.batch, &second.run, &err));
    assert_int_equal(second.run.figures.already_gone, 1);
    assert_int_equal(second.run.figures.skipped, 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.purged'"), 1);
    ok(rp_run_end(w->catalog, &first.run, "done", &err));
    ok(rp_run_end(w->catalog, &second.run, "done", &err));
    world_steps_done(&first);
    world_steps_done(&second);
}

/* clang-format off */
#define ON(kind, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(kind) }
#define BOTH(fn) ON(DBS_SQLITE_FILE, "sqlite", fn), ON(DBS_POSTGRES, "postgres", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_RESTORE_WINS_or_the_claim_does_never_both_and_never_none),
        BOTH(test_sweepers_side_by_side_delete_each_object_once),
        BOTH(test_X3_no_claim_slips_past_a_hold_that_does_not_list_it),
        BOTH(test_two_who_mark_the_same_subject_get_one_mark),
        BOTH(test_FENCED_a_worker_that_wakes_up_late_changes_nothing),
        BOTH(test_FENCED_a_worker_that_wakes_up_after_the_takeover_cannot_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
