/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that are slower than a lease, and workers that lose one. On both engines. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
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

#include "core/subject/quarantine.h"
#include "lib/world.h"

#define WORKERS 3
#define OBJECTS 96
#define COPY_MS 120
#define MOST_MS 15000

static struct rp_error err;

static void pause_ms(int64_t ms)
{
    const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&pause, NULL);
}

/* ---- a store that is slower than a lease ---- */

static int slow_copies(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx, (void)key, (void)e;
    if (strcmp(call, "copy") == 0) pause_ms(COPY_MS);
    return 0;
}

struct node {
    pthread_t thread;
    struct rp_sweep sweep;
    struct rp_sweep_result result;
    struct rp_worker worker;
    char name[16];
    volatile sig_atomic_t stop;
    bool stuck;
};

/* Sweeps until nothing is due, as a daemon does. */
static void *sweep_until_done(void *arg)
{
    struct node *n = arg;
    struct rp_error why = { 0 };
    int64_t began_ms = rp_time_boot_ms(), next_ms = 1;
    while (next_ms != 0) {
        if (rp_sweep_run(&n->sweep, &n->result, &why) < 0) print_error("%s\n", why.text);
        if (rp_marks_next(n->sweep.by.catalog->db, n->sweep.by.stores[0]->id, false, &next_ms, &why) < 0) break;
        if (next_ms > rp_clock_now_ms(n->sweep.by.catalog->clock) + RP_DAY_MS) next_ms = 0; /* copies in quarantine */
        n->stuck = rp_time_boot_ms() > began_ms + MOST_MS;
        if (n->stuck) break;
        if (next_ms != 0) pause_ms(20);
    }
    return NULL;
}

static void test_sweepers_empty_a_store_slower_than_a_lease(void **state)
{
    static struct node nodes[WORKERS];
    struct world *w = *state;
    w->config.mode = RP_MODE_QUARANTINE;
    w->rules.lease_ms = RP_SECOND_MS; /* a batch of 32, one by one, takes four */
    w->rules.batch = 32;
    world_put_many(w, OBJECTS, 10);
    world_mark_many(w, OBJECTS, 0);
    world_pass(w, RP_SECOND_MS);
    w->before = slow_copies;
    for (int i = 0; i < WORKERS; i++) {
        struct node *n = &nodes[i];
        memset(n, 0, sizeof *n);
        snprintf(n->name, sizeof n->name, "node%d", i);
        snprintf(n->worker.name, sizeof n->worker.name, "%s", n->name);
        n->sweep = world_sweeper(w, world_catalog(w, i + 1, NULL), n->name);
        n->sweep.by.worker = &n->worker;
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&nodes[i].thread, NULL, sweep_until_done, &nodes[i]), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(nodes[i].thread, NULL);
    w->before = NULL;
    for (int i = 0; i < WORKERS; i++) {
        assert_false(nodes[i].stuck);
        rp_catalog_close(nodes[i].sweep.by.catalog);
    }
    /* leases are renewed: without that every object is copied again and again, on a busy machine
     * some are */
    assert_in_range(w->calls[WORLD_COPY], OBJECTS, 2 * OBJECTS);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE state = 4 AND outcome = 4"), OBJECTS);
    assert_true(world_number(w, "SELECT MAX(fence) FROM mark") <= 6);
}

/* ---- one worker, step by step, under a boot clock of the test's ---- */

static _Atomic int64_t boot;

static int64_t boot_now(void *ctx)
{
    (void)ctx;
    return boot;
}

/* A batch of so many, claimed at moment 1,000,000 for 60 s. */
static void claim(struct world *w, size_t n, struct world_steps *s)
{
    w->host_clock.boot_ms = boot_now;
    boot = 1000000;
    w->config.mode = RP_MODE_QUARANTINE;
    w->rules.lease_ms = RP_MINUTE_MS;
    world_put_many(w, n, 10);
    world_mark_many(w, n, 0);
    world_pass(w, RP_SECOND_MS);
    world_steps_begin(w, w->catalog, "main", s);
    world_steps_claim(w, w->catalog, s);
    assert_int_equal(s->batch.marks.n, n);
}

static int64_t sent(struct world *w)
{
    return w->calls[WORLD_COPY] + w->calls[WORLD_REMOVE] + w->calls[WORLD_STAT];
}

static void test_nothing_is_sent_once_the_lease_is_over(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    claim(w, 5, &s);
    int64_t before = sent(w);
    boot += RP_MINUTE_MS; /* the process was frozen; nobody else has come */
    world_steps_erase(w, w->catalog, &s);
    assert_int_equal(sent(w), before);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    assert_false(rp_purge_next(&s.batch));
    rp_purge_release(w->catalog, &s.batch, "worker");
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE state = 3 AND attempts = 0 AND next_at = due_at"),
                     5);
    world_steps_done(&s);
}

static int eleven_seconds(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx, (void)key, (void)e;
    if (strcmp(call, "copy") == 0) boot += 11 * RP_SECOND_MS;
    return 0;
}

/* A sixth of the lease is over with every copy: slices of what is begun together. */
static void test_what_a_slice_did_is_committed_before_the_next(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    claim(w, 20, &s);
    w->before = eleven_seconds;
    world_steps_erase(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    int64_t done = world_number(w, "SELECT COUNT(*) FROM mark WHERE outcome = 4");
    assert_in_range(done, 1, 4); /* the store makes four at a time */
    assert_int_equal(w->calls[WORLD_COPY], done);
    assert_int_equal(s.batch.to, done);
    w->before = NULL;
    boot = 1000000 + 30 * RP_SECOND_MS;
    assert_true(rp_purge_next(&s.batch));
    world_steps_erase(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    assert_false(rp_purge_next(&s.batch));
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE outcome = 4"), 20);
    world_steps_done(&s);
}

static void test_a_lease_is_renewed_by_its_fence(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    claim(w, 3, &s);
    assert_false(rp_purge_is_renewal_due(&s.batch));
    boot += 20 * RP_SECOND_MS;
    world_pass(w, 20 * RP_SECOND_MS);
    assert_true(rp_purge_is_renewal_due(&s.batch));
    int64_t until = world_number(w, "SELECT MIN(next_at) FROM mark WHERE state = 3");
    ok(rp_purge_renew(w->catalog, &s.batch, &err));
    assert_true(world_number(w, "SELECT MIN(next_at) FROM mark WHERE state = 3") >= until + 20 * RP_SECOND_MS);
    assert_false(rp_purge_is_renewal_due(&s.batch));
    boot += 59 * RP_SECOND_MS;
    assert_true(rp_purge_has_lease(&s.batch));
    assert_false(rp_purge_next(&s.batch)); /* of a batch that is done */

    /* one of them is another's now: nothing of it changes, and the batch stops */
    s.batch.from = 0;
    s.batch.to = s.batch.marks.n;
    world_script(w, "UPDATE mark SET fence = fence + 1, next_at = 77 WHERE id = (SELECT MIN(id) FROM mark)");
    ok(rp_purge_renew(w->catalog, &s.batch, &err));
    assert_false(rp_purge_has_lease(&s.batch));
    assert_int_equal(world_number(w, "SELECT MIN(next_at) FROM mark WHERE state = 3"), 77);
    world_steps_done(&s);
}

/* ---- a claim that nobody knows of ---- */

static bool lose_commit;
static int unreachable; /* so many times the database cannot be asked */

static int no_answer(void *ctx, const char *call, struct rp_error *e)
{
    (void)ctx;
    if (!lose_commit || strcmp(call, "commit") != 0) return 0;
    lose_commit = false;
    unreachable = RP_SETTLE_TRIES;
    return rp_error_set(e, RP_EUNKNOWN, "the answer was lost");
}

static int nobody_knows(void *ctx, const char *call, struct rp_error *e)
{
    (void)ctx;
    if (unreachable == 0 || strcmp(call, "begin") != 0) return 0;
    unreachable--;
    return rp_error_set(e, RP_EUNAVAILABLE, "nobody can be asked");
}

static void test_a_claim_of_unknown_outcome_does_not_wait_for_its_lease(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    const struct rp_db_fault fault = { .before = nobody_knows, .after = no_answer };
    struct rp_catalog *unsure = world_catalog(w, 1, &fault);
    world_put_many(w, 5, 10);
    world_mark_many(w, 5, 0);
    world_pass(w, RP_SECOND_MS);
    world_steps_begin(w, unsure, "main", &s);
    lose_commit = true;
    assert_int_equal(
        rp_purge_claim(unsure, &w->store, &w->rules, &w->worker, w->rules.batch, &s.from_ms, &s.batch, &err),
        RP_EUNKNOWN);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE state = 3"), 5); /* it was made */
    s.from_ms = 0;
    world_steps_claim(w, unsure, &s);
    assert_int_equal(s.batch.marks.n, 5);
    ok(rp_run_end(unsure, &s.run, "done", &err));
    world_steps_done(&s);
    rp_catalog_close(unsure);
}

static atomic_bool frozen;

static int freeze(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx, (void)key, (void)e;
    if (strcmp(call, "copy") == 0 && !atomic_exchange(&frozen, true)) boot += RP_MINUTE_MS;
    return 0;
}

/* Frozen in its first copy: what is left goes back, somebody is told, and it is claimed again. */
static void test_a_sweep_that_lost_its_lease_says_so_and_goes_on(void **state)
{
    struct world *w = *state;
    w->host_clock.boot_ms = boot_now;
    w->config.mode = RP_MODE_QUARANTINE;
    w->rules.lease_ms = RP_MINUTE_MS;
    world_put_many(w, 12, 10);
    world_mark_many(w, 12, 0);
    world_pass(w, RP_SECOND_MS);
    frozen = false;
    w->before = freeze;
    struct rp_sweep_result *r = world_sweep(w);
    w->before = NULL;
    assert_string_equal(r->outcome, "partial");
    assert_non_null(strstr(r->run.figures.errors[0], "ended before the store was done"));
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE outcome = 4"), 12);
}

int main(void)
{
#define ON_BOTH(test)                                                                                                  \
    { #test " (sqlite)", test, world_set_up, world_tear_down, (void *)WORLD_SQLITE },                                  \
    {                                                                                                                  \
#test " (postgres)", test, world_set_up, world_tear_down, (void *)WORLD_POSTGRES                               \
    }
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_sweepers_empty_a_store_slower_than_a_lease),
        ON_BOTH(test_nothing_is_sent_once_the_lease_is_over),
        ON_BOTH(test_what_a_slice_did_is_committed_before_the_next),
        ON_BOTH(test_a_lease_is_renewed_by_its_fence),
        ON_BOTH(test_a_sweep_that_lost_its_lease_says_so_and_goes_on),
        ON_BOTH(test_a_claim_of_unknown_outcome_does_not_wait_for_its_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
