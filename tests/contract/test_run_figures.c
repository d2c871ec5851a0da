/* SPDX-License-Identifier: Apache-2.0 */
/* What a run says of itself: how far it is, what it left waiting, and whether it had errors. On
 * both engines. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "catalog/alert.h"
#include "lib/uploads.h"
#include "sweep_steps.h"

#define DAY RP_DAY_MS

/* ---- what still waits ---- */

static int64_t waiting(const json_t *record, const char *name)
{
    return rp_json_get_int(json_object_get(record, "waiting"), name, -1);
}

static void test_M9_a_sweeps_record_says_what_still_waits(void **state)
{
    struct world *w = *state;
    world_put(w, "old", "12345");
    (void)world_mark(w, "old", 9 * DAY);
    world_pass(w, 4 * DAY);
    world_put(w, "new", "123");
    (void)world_mark(w, "new", 9 * DAY);
    put_due(w, "k");
    (void)uploads_begin(w, "not confirmed", "x"); /* waits for its confirm */
    struct rp_sweep_result *r = world_swept(w, 1);
    RP_CLEANUP(rp_json_decrefp) json_t *record = rp_run_json(&r->run, "done", false, r->run.started_at_ms + 1000);
    assert_int_equal(waiting(record, "count"), 2);
    assert_int_equal(waiting(record, "bytes"), 8);
    assert_in_range(waiting(record, "avg_age_s"), 2 * DAY / 1000 - 60, 2 * DAY / 1000 + 60);
    assert_in_range(waiting(record, "oldest_age_s"), 4 * DAY / 1000 - 60, 4 * DAY / 1000 + 60);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE body LIKE '%\"waiting\":{\"count\":2,%'"),
                     1);
    (void)world_restore(w, "old");
    (void)world_restore(w, "new");
    RP_CLEANUP(rp_json_decrefp)
    json_t *none = rp_run_json(&world_swept(w, 0)->run, "done", false, r->run.started_at_ms + 1000);
    assert_int_equal(waiting(none, "count"), 0);
    assert_int_equal(waiting(none, "avg_age_s"), 0);
    assert_int_equal(waiting(none, "oldest_age_s"), 0);
}

/* ---- how far it is ---- */

struct looks {
    size_t batches;
    int64_t total, done;
};

static void look(void *ctx, const struct rp_purge_batch *batch, const struct rp_run *run)
{
    struct looks *l = ctx;
    (void)batch;
    assert_true(run->figures.scanned > l->done);
    assert_true(l->batches == 0 || run->total == l->total);
    l->batches++;
    l->total = run->total;
    l->done = run->figures.scanned;
}

static void test_C10_progress_has_the_total_that_was_due_at_the_start(void **state)
{
    struct world *w = *state;
    struct rp_sweep sweep = world_sweeper(w, w->catalog, "main");
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct looks looks = { 0 };
    world_put_many(w, 250, 1);
    world_mark_many(w, 250, 0);
    put_due(w, "k");
    world_put(w, "later", "x");
    (void)world_mark(w, "later", DAY);
    sweep.finished = look;
    sweep.ctx = &looks;
    ok(rp_sweep_run(&sweep, result, &err));
    assert_int_equal(looks.batches, 3);
    assert_int_equal(looks.total, 251);
    assert_int_equal(looks.done, 251);
}

static void test_C10_the_total_is_no_more_than_a_run_may_do(void **state)
{
    struct world *w = *state;
    struct rp_sweep sweep = world_sweeper(w, w->catalog, "main");
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct looks looks = { 0 };
    world_put_many(w, 250, 1);
    world_mark_many(w, 250, 0);
    sweep.finished = look;
    sweep.ctx = &looks;
    sweep.limit = 120;
    ok(rp_sweep_run(&sweep, result, &err));
    assert_int_equal(looks.total, 120);
    assert_int_equal(looks.done, 120);
}

/* ---- whether it had errors ---- */

static struct rp_run_counts counts(struct world *w)
{
    struct rp_run_counts c;
    ok(rp_figure_runs(w->catalog->db, 0, &c, &err));
    return c;
}

static void end_as(struct world *w, const char *outcome, const char *error)
{
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    ok(rp_run_begin(w->catalog, "sweep", "main", &w->worker, RP_HOUR_MS, run, &err));
    if (error != NULL) rp_figures_error(&run->figures, "%s", error);
    ok(rp_run_end(w->catalog, run, outcome, &err));
}

static void test_C11_stopping_early_is_no_error(void **state)
{
    struct world *w = *state;
    end_as(w, "done", NULL);
    end_as(w, "partial", NULL);
    end_as(w, "cancelled", NULL);
    assert_int_equal(counts(w).runs, 3);
    assert_int_equal(counts(w).errors, 0);
    end_as(w, "done", "one object was denied");
    end_as(w, "partial", "the store was away");
    end_as(w, "failed", NULL);
    assert_int_equal(counts(w).runs, 6);
    assert_int_equal(counts(w).errors, 3);
}

/* Each by itself: a sweep of one store is not the scheduled one of all. */
static void test_C11_the_last_run_of_a_name_is_that_of_its_kind(void **state)
{
    struct world *w = *state;
    int64_t main_ms = -1, all_ms = -1, retention_ms = -1;
    end_as(w, "done", NULL);
    ok(rp_figure_last_run_of(w->catalog->db, "sweep", "main", &main_ms, &err));
    ok(rp_figure_last_run_of(w->catalog->db, "sweep", "all", &all_ms, &err));
    ok(rp_figure_last_run_of(w->catalog->db, "retention", "main", &retention_ms, &err));
    assert_true(main_ms > 0);
    assert_int_equal(all_ms, 0);
    assert_int_equal(retention_ms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_M9_a_sweeps_record_says_what_still_waits),
        BOTH(test_C10_progress_has_the_total_that_was_due_at_the_start),
        BOTH(test_C11_stopping_early_is_no_error),
        BOTH(test_C11_the_last_run_of_a_name_is_that_of_its_kind),
        BOTH(test_C10_the_total_is_no_more_than_a_run_may_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
