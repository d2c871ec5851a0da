/* SPDX-License-Identifier: Apache-2.0 */
/* A restore in bulk is a run (core/restore/restore.h): a frozen filter that keeps claims away,
 * batches, cancel, and whoever finds it goes on where another one ended. On both engines. Needs
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

#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "core/restore/restore.h"
#include "lib/ask.h"
#include "lib/restoring.h"

#define MANY 2500 /* three batches */

static struct rp_error err;
static struct rp_restore_filter everything = { .since_ms = -1, .until_ms = -1 };

static int cancel(struct rp_catalog *catalog, const struct rp_worker *worker, int64_t run_id, bool *over)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct rp_cancel_command c = { .command = { .verb = &rp_verb_cancel, .actor = "tester" },
                                   .run_id = run_id,
                                   .worker = worker,
                                   .stale_after_ms = RESTORING_STALE,
                                   .arena = &arena };
    int r = ask_run(catalog, &c.command, &err);
    *over = c.over;
    return r;
}

/* ---- the filter ---- */

static void what_is_marked_after_the_begin_is_not_touched(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    struct rp_restore_filter a = restoring_prefix(w, "a/");
    world_put(w, "a/before", "x");
    world_put(w, "a/after", "x");
    world_put(w, "b/before", "x");
    world_mark(w, "a/before", RP_DAY_MS);
    world_mark(w, "b/before", RP_DAY_MS);
    restoring_begin(t, &a);
    world_mark(w, "a/after", RP_DAY_MS);
    assert_string_equal(restoring_carry(t), "done");
    assert_int_equal(world_newest(w, "a/before").state, RP_REPRIEVED);
    assert_int_equal(world_newest(w, "a/after").state, RP_MARKED);
    assert_int_equal(world_newest(w, "b/before").state, RP_MARKED);
    assert_int_equal(restoring_counted(w, t->run.id, "scanned"), 1);
    assert_int_equal(restoring_counted(w, t->run.id, "restored"), 1);
    restoring_expect(w, t->run.id, "done");
}

static void what_lies_in_quarantine_comes_back_and_what_cannot_is_counted(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    w->config.mode = RP_MODE_QUARANTINE;
    restoring_put_due(w, "a/moved");
    restoring_put_due(w, "a/replaced");
    int64_t moved_by = world_sweep(w)->run.id;
    world_put(w, "a/replaced", "newer");
    struct rp_restore_filter of_run = { .run_id = moved_by, .since_ms = -1, .until_ms = -1 };
    restoring_begin(t, &of_run);
    assert_string_equal(restoring_carry(t), "partial");
    assert_string_equal(world_text(w, "a/moved"), "x");
    assert_string_equal(world_text(w, "a/replaced"), "newer");
    assert_int_equal(restoring_counted(w, t->run.id, "returned"), 1);
    assert_int_equal(restoring_counted(w, t->run.id, "refused"), 1);
}

/* ---- claims ---- */

static void nothing_that_an_open_restore_names_is_claimed(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    struct rp_restore_filter a = restoring_prefix(w, "a/");
    int64_t epoch = world_number(w, "SELECT number FROM meta WHERE name = 'hold_epoch'");
    restoring_put_due(w, "a/named");
    restoring_put_due(w, "b/other");
    restoring_begin(t, &a);
    assert_int_equal(world_number(w, "SELECT number FROM meta WHERE name = 'hold_epoch'"), epoch + 1);
    restoring_put_due(w, "a/later"); /* not named: it came after */
    assert_int_equal(world_sweep(w)->run.figures.purged, 2);
    assert_true(world_exists(w, "a/named"));
    assert_false(world_exists(w, "a/later"));
    assert_false(world_exists(w, "b/other"));
    assert_string_equal(restoring_carry(t), "done");
    restoring_put_due(w, "a/named"); /* the restore is over: it is a mark like any other */
    assert_int_equal(world_sweep(w)->run.figures.purged, 1);
}

/* Each filter on its own, as the statement of a claim reads it: one mark fits, one does not. */
static void a_claim_leaves_alone_exactly_what_each_filter_names(void **state)
{
    struct world *w = *state;
    const struct rp_mark_request mine = { .key = "mine", .grace_ms = 0, .at_ms = -1, .reason = "undo" };
    const struct rp_mark_request theirs = { .key = "theirs", .grace_ms = 0, .at_ms = -1, .reason = "other" };
    for (int i = 0; i < 4; i++) {
        RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
        struct rp_mark_answer answer;
        world_put(w, "mine", "x");
        world_put(w, "theirs", "x");
        ok(rp_mark_many(w->catalog, &w->store, &theirs, 1, "another", false, &answer, &err));
        world_pass(w, 1000);
        ok(rp_mark_many(w->catalog, &w->store, &mine, 1, "me", false, &answer, &err));
        int64_t at = world_newest(w, "mine").marked_at_ms;
        const struct rp_restore_filter filters[] = { { .reason = "undo", .since_ms = -1, .until_ms = -1 },
                                                     { .actor = "me", .since_ms = -1, .until_ms = -1 },
                                                     { .since_ms = at, .until_ms = -1 },
                                                     { .since_ms = at, .until_ms = at + 1 } };
        restoring_begin(t, &filters[i]);
        assert_int_equal(world_sweep(w)->run.figures.purged, 1);
        assert_true(world_exists(w, "mine"));
        assert_string_equal(restoring_carry(t), "done");
        assert_int_equal(restoring_counted(w, t->run.id, "restored"), 1);
    }
}

static void a_copy_in_quarantine_outlives_its_time_while_a_restore_may_want_it(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    w->config.mode = RP_MODE_QUARANTINE;
    restoring_put_due(w, "a/moved");
    world_sweep(w);
    restoring_begin(t, &everything);
    world_pass(w, 30 * RP_DAY_MS);
    assert_int_equal(world_sweep(w)->run.figures.purged, 0);
    assert_string_equal(restoring_carry(t), "done");
    assert_string_equal(world_text(w, "a/moved"), "x");
}

/* ---- cancel ---- */

static void cancel_from_elsewhere(struct restoring *t)
{
    struct rp_catalog *other = world_catalog(t->w, 5, NULL);
    bool over = true;
    ok(cancel(other, &t->w->worker, t->run.id, &over));
    assert_false(over);
    rp_catalog_close(other);
}

static void ask_here(struct restoring *t)
{
    t->cancel = 1;
}

static void cancelled_by(struct world *w, void (*way)(struct restoring *t))
{
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    bool over;
    restoring_mark_many(w, MANY);
    t->between = way;
    restoring_begin(t, &everything);
    assert_string_equal(restoring_carry(t), "cancelled");
    assert_int_equal(restoring_counted(w, t->run.id, "restored"), 1000);
    assert_int_equal(world_count(w, RP_MARKED), MANY - 1000);
    restoring_expect(w, t->run.id, "cancelled");
    assert_int_equal(cancel(w->catalog, &w->worker, t->run.id, &over), RP_ENOTFOUND);
}

static void a_restore_is_cancelled_by_somebody_else(void **state)
{
    cancelled_by(*state, cancel_from_elsewhere);
}

static void a_restore_is_cancelled_by_who_works_on_it(void **state)
{
    cancelled_by(*state, ask_here);
}

static void cancel_sweep(void *ctx, const struct rp_purge_batch *batch, const struct rp_run *run)
{
    struct restoring *t = ctx;
    bool over;
    (void)batch;
    if (t->batches++ > 0) return;
    struct rp_catalog *other = world_catalog(t->w, 5, NULL);
    ok(cancel(other, &t->w->worker, run->id, &over));
    rp_catalog_close(other);
}

static void a_sweep_is_cancelled_between_two_batches(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_sweep sweep = world_sweeper(w, w->catalog, "main");
    world_put_many(w, MANY, 1);
    world_mark_many(w, MANY, 0);
    sweep.finished = cancel_sweep;
    sweep.ctx = t;
    ok(rp_sweep_run(&sweep, result, &err));
    assert_string_equal(result->outcome, "cancelled");
    assert_in_range(result->run.figures.purged, 100, MANY - 100);
    assert_int_equal(world_count(w, RP_MARKED), MANY - result->run.figures.purged);
    restoring_expect(w, result->run.id, "cancelled");
    free(result);
}

static bool everybody_is_dead(const char *name)
{
    (void)name;
    return true;
}

static void a_restore_that_nobody_works_on_is_cancelled_at_once(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    struct rp_worker other = { .name = "other", .is_dead = everybody_is_dead };
    bool over = false;
    restoring_put_due(w, "a");
    restoring_begin(t, &everything);
    assert_int_equal(world_sweep(w)->run.figures.purged, 0);
    ok(cancel(w->catalog, &other, t->run.id, &over));
    assert_true(over);
    restoring_expect(w, t->run.id, "cancelled");
    assert_int_equal(world_sweep(w)->run.figures.purged, 1);
}

/* ---- stopped, killed, resumed ---- */

static int fail_when_down(void *ctx, const char *call, struct rp_error *e)
{
    struct restoring *t = *(struct restoring **)ctx;
    (void)call;
    return t != NULL && t->down ? rp_error_set(e, RP_EUNAVAILABLE, "gone") : 0;
}

static void go_down(struct restoring *t)
{
    t->down = true;
}

static void expect_whole(struct world *w, int64_t run_id, int64_t restored)
{
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE kind = 'restore'"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.reprieved'"), restored);
    assert_int_equal(restoring_counted(w, run_id, "restored"), restored);
    assert_int_equal(restoring_counted(w, run_id, "already_restored"), 0);
}

/* Marks of a store that this worker has not open are refused, and stay as they are: after a crash
 * they are not met again. */
static void mark_elsewhere(struct world *w, const char *key)
{
    struct rp_store second = w->store;
    struct rp_store_row row;
    const struct rp_mark_request request = { .key = key, .grace_ms = RP_DAY_MS, .at_ms = -1, .reason = "" };
    struct rp_mark_answer answer;
    ok(rp_store_get(w->catalog, RP_STORE_STORE, "second", &row, &err));
    second.id = row.id;
    world_put(w, key, "x");
    ok(rp_mark_many(w->catalog, &second, &request, 1, "tester", false, &answer, &err));
    assert_int_equal(answer.what, RP_MARK_CREATED);
}

static void a_killed_restore_is_carried_on_by_another_worker(void **state)
{
    struct world *w = *state;
    struct restoring *dying = NULL;
    struct rp_db_fault fault = { .before = fail_when_down, .ctx = &dying };
    struct rp_catalog *first = world_catalog(w, 4, &fault);
    RP_CLEANUP(restoring_free) struct restoring *a = restoring_new(w, first), *b = restoring_new(w, w->catalog);
    struct rp_worker other = { .name = "other", .is_dead = everybody_is_dead };
    restoring_mark_many(w, MANY);
    mark_elsewhere(w, "elsewhere");
    dying = a;
    a->between = go_down;
    restoring_begin(a, &everything);
    assert_int_equal(rp_restore_carry(&a->restorer, &a->run, &a->outcome, &err), RP_EUNAVAILABLE);
    assert_null(a->outcome);
    assert_int_equal(world_count(w, RP_REPRIEVED), 999);
    assert_int_equal(rp_run_resume(w->catalog, RP_RUN_RESTORE, &w->worker, RESTORING_STALE, &b->run, &err),
                     RP_ENOTFOUND); /* it may live */
    ok(rp_run_resume(w->catalog, RP_RUN_RESTORE, &other, RESTORING_STALE, &b->run, &err));
    assert_int_equal(b->run.id, a->run.id);
    assert_int_equal(rp_run_resume(w->catalog, RP_RUN_RESTORE, &w->worker, RESTORING_STALE, &b->run, &err),
                     RP_ENOTFOUND);
    a->down = false; /* it was not dead after all: it has lost its lock, and changes nothing any more */
    assert_int_equal(rp_restore_carry(&a->restorer, &a->run, &a->outcome, &err), RP_ECHANGED);
    assert_true(a->run.lost);
    assert_null(a->outcome);
    assert_int_equal(world_count(w, RP_REPRIEVED), 999);

    assert_string_equal(restoring_carry(b), "partial");
    expect_whole(w, a->run.id, MANY);
    assert_int_equal(restoring_counted(w, a->run.id, "scanned"), MANY + 1);
    assert_int_equal(restoring_counted(w, a->run.id, "refused"), 1);
    rp_catalog_close(first);
}

/* The connection ends at the n-th call, for every n there is. */
struct countdown {
    int left;
};

static int fail_from(void *ctx, const char *call, struct rp_error *e)
{
    struct countdown *c = ctx;
    (void)call;
    return c->left-- > 0 ? 0 : rp_error_set(e, RP_EUNAVAILABLE, "gone");
}

static void wherever_it_is_killed_it_ends_once_and_whole(void **state)
{
    struct world *w = *state;
    struct rp_worker other = { .name = "other", .is_dead = everybody_is_dead };
    struct countdown countdown = { .left = 1000000 };
    struct rp_db_fault fault = { .before = fail_from, .ctx = &countdown };
    struct rp_catalog *first = world_catalog(w, 4, &fault);
    world_put_many(w, 3, 1);
    bool begun = false, ended = false;
    for (int n = 0; !ended; n++) {
        RP_CLEANUP(restoring_free) struct restoring *a = restoring_new(w, first), *b = restoring_new(w, w->catalog);
        int64_t records = world_number(w, "SELECT count(*) FROM run_record");
        int64_t audits = world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.reprieved'");
        world_mark_many(w, 3, RP_DAY_MS);
        restoring_begin(a, &everything);
        countdown.left = n;
        (void)rp_restore_carry(&a->restorer, &a->run, &a->outcome, &err);
        ended = a->outcome != NULL && countdown.left >= 0;
        begun = begun || a->batches > 0;
        countdown.left = 1000000;
        if (a->outcome == NULL &&
            rp_run_resume(w->catalog, RP_RUN_RESTORE, &other, RESTORING_STALE, &b->run, &err) == 0)
            assert_string_equal(restoring_carry(b), "done");
        assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), records + 1);
        assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.reprieved'"), audits + 3);
        assert_int_equal(restoring_counted(w, a->run.id, "scanned"), 3);
        assert_int_equal(restoring_counted(w, a->run.id, "restored"), 3);
        assert_int_equal(world_number(w, "SELECT count(*) FROM run_lock WHERE name <> 'sweep:main'"), 0);
    }
    assert_true(begun);
    rp_catalog_close(first);
}

static void a_restore_that_is_stopped_stays_open_and_is_carried_on_at_once(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *a = restoring_new(w, w->catalog), *b = restoring_new(w, w->catalog);
    restoring_mark_many(w, MANY);
    a->between = restoring_stop;
    restoring_begin(a, &everything);
    assert_null(restoring_carry(a));
    world_pass(w, 2 * RP_DAY_MS);
    assert_int_equal(world_sweep(w)->run.figures.purged, 0); /* still named */
    ok(rp_run_resume(w->catalog, RP_RUN_RESTORE, &w->worker, RESTORING_STALE, &b->run, &err));
    assert_string_equal(restoring_carry(b), "done");
    expect_whole(w, a->run.id, MANY);
    assert_int_equal(b->run.total, MANY);
}

static int keep_open(void *ctx, const struct rp_run_row *row, struct rp_error *e)
{
    json_t **out = ctx;
    *out = rp_run_open_json(row, false, e);
    return *out != NULL ? 0 : RP_ECORRUPT;
}

static void look_at_progress(struct restoring *t)
{
    RP_CLEANUP(rp_json_decrefp) json_t *run = NULL;
    ok(rp_run_get_open(t->catalog->db, t->run.id, keep_open, &run, &err));
    const json_t *progress = json_object_get(run, "progress");
    assert_int_equal(rp_json_get_int(progress, "done", -1), 1000);
    assert_int_equal(rp_json_get_int(progress, "total", -1), MANY);
    assert_true(json_is_integer(json_object_get(progress, "rate_per_s")));
    assert_string_equal(rp_json_get_text(json_object_get(run, "filter"), "prefix", ""), "main:many/");
}

static void a_restore_under_way_says_how_far_it_is(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    struct rp_restore_filter many = restoring_prefix(w, "many/");
    restoring_mark_many(w, MANY);
    t->between = look_at_progress;
    restoring_begin(t, &many);
    assert_string_equal(restoring_carry(t), "done");
}

/* ---- two nodes ---- */

struct node {
    struct restoring *trial;
    int code;
};

static void *carry_on_thread(void *arg)
{
    struct node *n = arg;
    struct rp_error why = { 0 };
    n->code = rp_restore_carry(&n->trial->restorer, &n->trial->run, &n->trial->outcome, &why);
    return NULL;
}

static void two_nodes_that_restore_the_same_restore_each_mark_once(void **state)
{
    struct world *w = *state;
    struct rp_catalog *catalogs[2] = { world_catalog(w, 4, NULL), world_catalog(w, 5, NULL) };
    RP_CLEANUP(restoring_free) struct restoring *a = restoring_new(w, catalogs[0]), *b = restoring_new(w, catalogs[1]);
    struct node nodes[2] = { { .trial = a }, { .trial = b } };
    pthread_t threads[2];
    restoring_mark_many(w, MANY);
    restoring_begin(a, &everything);
    restoring_begin(b, &everything);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, carry_on_thread, &nodes[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nodes[i].code, 0);
        assert_string_equal(nodes[i].trial->outcome, "done");
        rp_catalog_close(catalogs[i]);
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.reprieved'"), MANY);
    assert_int_equal(restoring_counted(w, a->run.id, "restored") + restoring_counted(w, b->run.id, "restored"), MANY);
}

#define ON(engine, test)                                                                                               \
    {                                                                                                                  \
        .name = #test, .test_func = (test), .setup_func = world_set_up, .teardown_func = world_tear_down,              \
        .initial_state = (void *)(uintptr_t)(engine)                                                                   \
    }
#define BOTH(test) ON(WORLD_SQLITE, test), ON(WORLD_POSTGRES, test)

/* Given a pattern, those whose names fit: the thread sanitizer has nothing to say of the others. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_is_marked_after_the_begin_is_not_touched),
        BOTH(what_lies_in_quarantine_comes_back_and_what_cannot_is_counted),
        BOTH(nothing_that_an_open_restore_names_is_claimed),
        BOTH(a_claim_leaves_alone_exactly_what_each_filter_names),
        BOTH(a_copy_in_quarantine_outlives_its_time_while_a_restore_may_want_it),
        BOTH(a_restore_is_cancelled_by_somebody_else),
        BOTH(a_restore_is_cancelled_by_who_works_on_it),
        BOTH(a_sweep_is_cancelled_between_two_batches),
        BOTH(a_restore_that_nobody_works_on_is_cancelled_at_once),
        BOTH(a_killed_restore_is_carried_on_by_another_worker),
        BOTH(wherever_it_is_killed_it_ends_once_and_whole),
        BOTH(a_restore_that_is_stopped_stays_open_and_is_carried_on_at_once),
        BOTH(a_restore_under_way_says_how_far_it_is),
        BOTH(two_nodes_that_restore_the_same_restore_each_mark_once),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
