/* SPDX-License-Identifier: Apache-2.0 */
/* What catalog/writer/lane.h promises. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "catalog/schema.h"
#include "catalog/statements/statements.h"
#include "changes.h"
#include "lib/world.h"

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
    world_drop(*state);
    free(*state);
    return 0;
}

struct lessee {
    const char *url;
    int lane, r;
    struct rp_error why;
    pthread_barrier_t *start;
    struct rp_catalog *catalog;
};

static struct rp_catalog *leased(struct world *w, const char *holder)
{
    struct rp_catalog *catalog = NULL;
    struct rp_catalog_options options = { .clock = &w->host_clock, .lane = RP_LANE_LEASED, .holder = holder };
    ok(rp_catalog_open(w->dbs.url, &options, &catalog, &err));
    return catalog;
}

static void change_on(struct rp_catalog *catalog)
{
    struct change c = { 0 };
    ok(rp_catalog_transact(catalog, make_change, &c, &err));
}

static void test_a_leased_lane_is_nobody_elses_until_it_is_given_back(void **state)
{
    struct world *w = *state;
    struct rp_catalog *a = leased(w, "a"), *b = leased(w, "b");
    change_on(a);
    change_on(b);
    assert_true(a->lane > 0 && b->lane > 0 && a->lane != b->lane);
    int of_a = a->lane;
    rp_catalog_close(a);
    struct rp_catalog *c = leased(w, "c");
    change_on(c);
    assert_int_equal(c->lane, of_a); /* and its chain goes on */
    expect_changes(w, 3);
    rp_catalog_close(b);
    rp_catalog_close(c);
}

static void test_a_lane_that_another_leased_is_not_written_on(void **state)
{
    struct world *w = *state;
    struct rp_catalog *sleeper = leased(w, "sleeper");
    change_on(sleeper);
    int lane = sleeper->lane;
    ok(rp_db_script(w->dbs.db, "UPDATE lane SET leased_until = 1", &err)); /* it slept */
    struct rp_catalog *other = leased(w, "other");
    change_on(other);
    assert_int_equal(other->lane, lane);
    change_on(sleeper);
    assert_true(sleeper->lane > 0 && sleeper->lane != lane);
    expect_changes(w, 3);
    rp_catalog_close(sleeper);
    rp_catalog_close(other);
}

static void *lease_one(void *arg)
{
    struct lessee *c = arg;
    struct rp_catalog *catalog = NULL;
    struct rp_catalog_options options = { .lane = RP_LANE_LEASED };
    struct change change = { 0 };
    pthread_barrier_wait(c->start);
    c->r = rp_catalog_open(c->url, &options, &catalog, &c->why);
    if (c->r == 0) c->r = rp_catalog_transact(catalog, make_change, &change, &c->why);
    if (c->r == 0) c->lane = catalog->lane;
    c->catalog = catalog;
    return NULL;
}

static void test_many_who_lease_at_once_get_a_lane_each(void **state)
{
    enum { N = 8 };
    struct world *w = *state;
    struct lessee creators[N];
    pthread_t threads[N];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, N);
    for (int i = 0; i < N; i++) {
        creators[i] = (struct lessee){ .url = w->dbs.url, .start = &start };
        assert_int_equal(pthread_create(&threads[i], NULL, lease_one, &creators[i]), 0);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N; i++) {
        world_ok(creators[i].r, &creators[i].why, __FILE__, __LINE__);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(creators[i].lane, creators[k].lane);
    }
    for (int i = 0; i < N; i++)
        rp_catalog_close(creators[i].catalog);
    expect_changes(w, N);
    pthread_barrier_destroy(&start);
}

/* clang-format off */
#define ON(kind, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(kind) }
#define BOTH(fn) ON(DBS_SQLITE_FILE, "sqlite", fn), ON(DBS_POSTGRES, "postgres", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_a_leased_lane_is_nobody_elses_until_it_is_given_back),
        BOTH(test_a_lane_that_another_leased_is_not_written_on),
        BOTH(test_many_who_lease_at_once_get_a_lane_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
