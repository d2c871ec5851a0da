/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness: what is looked at, how often, and that something that hangs holds up one caller and no
 * more. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "catalog/writer/writer.h"
#include "lib/world.h"
#include "metrics/health.h"

static struct rp_error err;

struct ground {
    struct world w;
    struct rp_writers *writers;
    struct rp_health *health;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool broken, hangs, inside;
};

static int set_up(void **state)
{
    struct ground *g = calloc(1, sizeof *g);
    world_make(&g->w, DBS_SQLITE_FILE, WORLD_MEMORY);
    struct rp_writers_options options = { .url = g->w.dbs.url, .n = 1, .first_lane = 1, .queue_max = 100 };
    ok(rp_writers_start(&options, &g->writers, &err));
    g->health = rp_health_new();
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    *state = g;
    return 0;
}

static int tear_down(void **state)
{
    struct ground *g = *state;
    rp_health_free(g->health);
    rp_writers_stop(g->writers);
    world_drop(&g->w);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    free(g);
    return 0;
}

static struct rp_health_state look(struct ground *g)
{
    struct rp_health_state state;
    rp_health_look(g->health, g->writers, &g->w.store, 1, &state);
    return state;
}

static void all_is_well_and_asked_once(void **state)
{
    struct ground *g = *state;
    struct rp_writers_state before, after;
    struct rp_health_state found = look(g);
    assert_true(found.catalog_ok && found.catalog_age_ms >= 0 && found.catalog_age_ms < 1000);
    assert_int_equal(found.n_stores, 1);
    assert_true(found.stores[0].ok);
    rp_writers_state(g->writers, &before);
    int64_t asked = g->w.calls[WORLD_STAT];
    for (int i = 0; i < 50; i++)
        (void)look(g);
    rp_writers_state(g->writers, &after);
    assert_int_equal(g->w.calls[WORLD_STAT], asked);
    assert_true(after.rounds - before.rounds <= 1);
}

static int fails(void *ctx, const char *call, const char *key, struct rp_error *why)
{
    (void)ctx, (void)call, (void)key;
    return rp_error_set(why, RP_EUNAVAILABLE, "no route to /secret/path");
}

static void a_store_that_fails_is_said_without_its_words(void **state)
{
    struct ground *g = *state;
    g->w.before = fails;
    struct rp_health_state found = look(g);
    assert_true(found.catalog_ok);
    assert_false(found.stores[0].ok);
    assert_string_equal(found.stores[0].why, "backend unavailable");
}

static void a_store_that_could_not_be_opened_is_not_ready(void **state)
{
    struct ground *g = *state;
    struct rp_store closed = g->w.store;
    struct rp_health_state found;
    closed.backend = NULL;
    rp_health_look(g->health, g->writers, &closed, 1, &found);
    assert_false(found.stores[0].ok);
    assert_non_null(found.stores[0].why);
}

static void a_catalog_that_takes_no_writes_is_not_ready(void **state)
{
    struct ground *g = *state;
    world_script(&g->w, "CREATE TRIGGER no BEFORE UPDATE ON lane BEGIN SELECT RAISE(ABORT, 'no'); END;");
    struct rp_health_state found = look(g);
    assert_false(found.catalog_ok);
    assert_non_null(found.catalog_why);
    assert_int_equal(found.catalog_age_ms, -1);
    assert_true(found.stores[0].ok);
}

static int hang(void *ctx, const char *call, const char *key, struct rp_error *why)
{
    struct ground *g = ctx;
    (void)call, (void)key, (void)why;
    pthread_mutex_lock(&g->lock);
    g->inside = true;
    pthread_cond_broadcast(&g->changed);
    while (g->hangs)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return 0;
}

static void *look_in_thread(void *ctx)
{
    (void)look(ctx);
    return NULL;
}

static void one_that_hangs_holds_up_one_caller(void **state)
{
    struct ground *g = *state;
    pthread_t first;
    g->hangs = true;
    g->w.ctx = g;
    g->w.before = hang;
    assert_int_equal(pthread_create(&first, NULL, look_in_thread, g), 0);
    pthread_mutex_lock(&g->lock);
    while (!g->inside)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    struct rp_health_state found = look(g); /* comes back at all */
    assert_true(found.catalog_ok);
    assert_false(found.stores[0].ok);
    assert_string_equal(found.stores[0].why, "it has not answered yet");
    pthread_mutex_lock(&g->lock);
    g->hangs = false;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    pthread_join(first, NULL);
    assert_true(look(g).stores[0].ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_well_and_asked_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_that_fails_is_said_without_its_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_that_could_not_be_opened_is_not_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_catalog_that_takes_no_writes_is_not_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_hangs_holds_up_one_caller, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
