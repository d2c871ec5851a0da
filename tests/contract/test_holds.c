/* SPDX-License-Identifier: Apache-2.0 */
/* Holds: what they cover waits, on both engines, with objects in memory and in a directory. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hold.h"
#include "core/subject/quarantine.h"
#include "lib/ask.h"
#include "lib/world.h"

#define HOUR RP_HOUR_MS
#define DAY  RP_DAY_MS

static struct rp_error err;

static void expect_object(struct world *w, const char *key, const char *text)
{
    const char *found = world_text(w, key);
    assert_non_null(found);
    assert_string_equal(found, text);
    assert_string_equal(world_field(w, key, "content-type"), "image/png");
    assert_string_equal(world_field(w, key, "cache-control"), "no-store");
    assert_string_equal(world_field(w, key, "owner"), "ada");
    assert_string_equal(world_field(w, key, "purpose"), "avatar");
}

static void expect_sweep(struct world *w, int64_t purged, int64_t already_gone, int64_t skipped)
{
    const struct rp_sweep_result *r = world_swept(w, purged);
    assert_int_equal(r->run.figures.already_gone, already_gone);
    assert_int_equal(r->run.figures.skipped, skipped);
    assert_int_equal(r->run.figures.failed, 0);
}

static struct rp_hold_command hold(struct world *w, enum rp_scope scope, const char *key)
{
    struct rp_hold_command q = { .scope = scope,
                                 .store = key != NULL ? &w->store : NULL,
                                 .key = key,
                                 .reason = "court",
                                 .command.actor = "tester" };
    ok(ask_hold(w->catalog, &q, &w->arena, &err));
    return q;
}

/* Three due marks; the hold covers `held` of them, and after it is lifted they go too. */
static void expect_held(struct world *w, enum rp_scope scope, const char *key, int64_t held)
{
    static const char *const keys[] = { "a/1", "a/10", "b/1" };
    for (size_t i = 0; i < 3; i++) {
        world_put(w, keys[i], "x");
        assert_int_equal(world_mark(w, keys[i], 0).what, RP_MARK_CREATED);
    }
    struct rp_hold_command h = hold(w, scope, key);
    assert_int_equal(h.claimed.n, 0);
    expect_sweep(w, 3 - held, 0, 0);
    assert_int_equal(world_count(w, RP_MARKED), held);
    ok(ask_lift(w->catalog, h.id, "tester", &err));
    assert_int_equal(ask_lift(w->catalog, h.id, "tester", &err), RP_ENOTFOUND);
    expect_sweep(w, held, 0, 0);
    assert_int_equal(world_count(w, RP_MARKED), 0);
}

static void test_X3_what_a_hold_of_each_scope_covers_is_not_claimed_until_it_is_lifted(void **state)
{
    struct world *w = *state;
    expect_held(w, RP_SCOPE_SUBJECT, "a/1", 1);
    expect_held(w, RP_SCOPE_SUBJECT, "a/", 0); /* a subject, not a prefix */
    expect_held(w, RP_SCOPE_PREFIX, "a/1", 2);
    expect_held(w, RP_SCOPE_PREFIX, "a/", 2);
    expect_held(w, RP_SCOPE_PREFIX, "A/", 0);
    expect_held(w, RP_SCOPE_PREFIX, "%", 0); /* bytes, not a pattern */
    expect_held(w, RP_SCOPE_EVERYTHING, NULL, 3);
}

static void test_X3_a_tenants_hold_covers_its_marks_alone(void **state)
{
    struct world *w = *state;
    world_put_many(w, 4, 1);
    world_mark_many(w, 4, 0);
    world_script(w, "UPDATE mark SET tenant_id = 5 WHERE key = 'many/00001';"
                    "INSERT INTO hold (id, scope, tenant_id, reason, actor, placed_at) VALUES (77, 3, 5, '', '', 0)");
    expect_sweep(w, 3, 0, 0);
    assert_true(world_exists(w, "many/00001"));
    ok(ask_lift(w->catalog, 77, "tester", &err));
    expect_sweep(w, 1, 0, 0);
}

static void test_X3_a_hold_stops_purging_not_marking_nor_restoring(void **state)
{
    struct world *w = *state;
    world_put(w, "a/1", "x");
    world_put(w, "a/2", "x");
    (void)world_mark(w, "a/1", 0);
    (void)hold(w, RP_SCOPE_PREFIX, "a/");
    assert_int_equal(world_mark(w, "a/2", 0).what, RP_MARK_CREATED);
    assert_int_equal(world_mark(w, "a/2", HOUR).what, RP_MARK_EXTENDED);
    world_put(w, "a/2", "newer");
    assert_int_equal(world_mark(w, "a/2", 0).what, RP_MARK_REPLACED);
    assert_int_equal(world_restore(w, "a/1").what, RP_REPRIEVE_DONE);
    world_pass(w, DAY);
    expect_sweep(w, 0, 0, 0);
    expect_object(w, "a/2", "newer");
    int64_t lifted = -1;
    ok(ask_resume(w->catalog, "tester", &lifted, &err));
    assert_int_equal(lifted, 0); /* resume lifts pauses, not other holds */
    (void)hold(w, RP_SCOPE_EVERYTHING, NULL);
    (void)hold(w, RP_SCOPE_EVERYTHING, NULL);
    ok(ask_resume(w->catalog, "tester", &lifted, &err));
    assert_int_equal(lifted, 2);
    expect_sweep(w, 0, 0, 0);
    expect_object(w, "a/2", "newer");
}

/* More are under way than the answer has room for: those that the hold covers must be among it all the same. */
static void test_X3_the_answer_lists_the_covered_marks_that_are_past_their_claim(void **state)
{
    struct world *w = *state;
    struct world_steps s[2];
    world_put_many(w, RP_HOLD_CLAIMED_MAX + 200, 1);
    world_mark_many(w, RP_HOLD_CLAIMED_MAX + 200, 0);
    w->rules.batch = 700;
    for (int i = 0; i < 2; i++) {
        world_steps_begin(w, w->catalog, i == 0 ? "one" : "two", &s[i]);
        world_steps_claim(w, w->catalog, &s[i]);
    }
    struct rp_hold_command h = hold(w, RP_SCOPE_PREFIX, "many/011");
    assert_int_equal(h.claimed.n, 100);
    for (size_t i = 0; i < h.claimed.n; i++)
        assert_int_equal(strncmp(h.claimed.at[i].key, "many/011", 8), 0);
    h = hold(w, RP_SCOPE_SUBJECT, "many/01199");
    assert_int_equal(h.claimed.n, 1);
    h = hold(w, RP_SCOPE_SUBJECT, "other");
    assert_int_equal(h.claimed.n, 0);
    h = hold(w, RP_SCOPE_EVERYTHING, NULL);
    assert_int_equal(h.claimed.n, RP_HOLD_CLAIMED_MAX);
    for (int i = 0; i < 2; i++) {
        world_steps_erase(w, w->catalog, &s[i]);
        ok(rp_purge_finish(w->catalog, &w->rules, &s[i].batch, &s[i].run, &err));
        ok(rp_run_end(w->catalog, &s[i].run, "done", &err));
        world_steps_done(&s[i]);
    }
}

/* ---- copies in quarantine ---- */

static const char *aside_key(struct world *w, const char *key)
{
    static char text[RP_QUARANTINE_KEY];
    return rp_quarantine_key(world_newest(w, key).id, text);
}

static void set_aside(struct world *w, const char *key, const char *text)
{
    w->config.mode = RP_MODE_QUARANTINE;
    world_put(w, key, text);
    assert_int_equal(world_mark(w, key, 0).what, RP_MARK_CREATED);
    expect_sweep(w, 1, 0, 0);
    assert_false(world_exists(w, key));
    assert_int_equal(world_newest(w, key).outcome, RP_END_QUARANTINED);
}

/* A copy whose time is over; the hold keeps it, if it covers the object that it came from. */
static void expect_copy_held(struct world *w, enum rp_scope scope, const char *key, bool covered)
{
    set_aside(w, "a/1", "picture");
    struct rp_hold_command h = hold(w, scope, key);
    assert_int_equal(h.claimed.n, 0);
    world_pass(w, 8 * DAY);
    expect_sweep(w, covered ? 0 : 1, 0, 0);
    assert_int_equal(world_exists(w, aside_key(w, "a/1")), covered);
    ok(ask_lift(w->catalog, h.id, "tester", &err));
    expect_sweep(w, covered ? 1 : 0, 0, 0);
    assert_false(world_exists(w, aside_key(w, "a/1")));
}

static void test_X3_a_hold_covers_the_copy_in_quarantine_of_what_it_names(void **state)
{
    struct world *w = *state;
    expect_copy_held(w, RP_SCOPE_SUBJECT, "a/1", true);
    expect_copy_held(w, RP_SCOPE_SUBJECT, "a/", false);
    expect_copy_held(w, RP_SCOPE_PREFIX, "a/", true);
    expect_copy_held(w, RP_SCOPE_PREFIX, "b/", false);
    expect_copy_held(w, RP_SCOPE_PREFIX, "", true); /* the whole store */
    expect_copy_held(w, RP_SCOPE_PREFIX, ".reprieve/quarantine/", true);
    expect_copy_held(w, RP_SCOPE_EVERYTHING, NULL, true);
}

static void test_X3_a_hold_covers_the_copy_that_a_return_has_left(void **state)
{
    struct world *w = *state;
    set_aside(w, "a/1", "picture");
    assert_int_equal(world_restore(w, "a/1").what, RP_REPRIEVE_RETURNED);
    (void)hold(w, RP_SCOPE_SUBJECT, "a/1");
    world_pass(w, 8 * DAY);
    expect_sweep(w, 0, 0, 0);
    assert_true(world_exists(w, aside_key(w, "a/1")));
}

static void test_X3_the_answer_lists_a_copy_that_is_being_erased(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    set_aside(w, "a/1", "picture");
    world_pass(w, 8 * DAY);
    world_steps_begin(w, w->catalog, "one", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(hold(w, RP_SCOPE_SUBJECT, "a/2").claimed.n, 0);
    struct rp_hold_command h = hold(w, RP_SCOPE_SUBJECT, "a/1");
    assert_int_equal(h.claimed.n, 1);
    assert_string_equal(h.claimed.at[0].key, aside_key(w, "a/1"));
    world_steps_done(&s);
}

static void test_X3_the_answer_lists_a_dead_letter_whose_purge_has_begun(void **state)
{
    struct world *w = *state;
    world_put(w, "a/1", "picture");
    world_mark(w, "a/1", 0);
    world_script(w, "UPDATE mark SET state = 6, was = 3, next_at = NULL");
    world_script(w, "INSERT INTO dead_letter (id, mark_id, from_state, attempts, error, died_at, open) "
                    "SELECT 1, id, 3, 3, 'no answer', 1, 1 FROM mark");
    assert_int_equal(hold(w, RP_SCOPE_SUBJECT, "a/1").claimed.n, 1); /* a delete of it may be on its way */
}

/* clang-format off */
#define EDITED(which, words, fn) { #fn " on " words, fn, world_set_up, world_leave, (void *)(uintptr_t)(which) }
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_X3_what_a_hold_of_each_scope_covers_is_not_claimed_until_it_is_lifted),
        ALL(test_X3_a_tenants_hold_covers_its_marks_alone),
        ALL(test_X3_a_hold_stops_purging_not_marking_nor_restoring),
        ALL(test_X3_a_hold_covers_the_copy_in_quarantine_of_what_it_names),
        ALL(test_X3_a_hold_covers_the_copy_that_a_return_has_left),
        ALL(test_X3_the_answer_lists_a_copy_that_is_being_erased),
        EDITED(0, "sqlite, memory", test_X3_the_answer_lists_a_dead_letter_whose_purge_has_begun),
        ALL(test_X3_the_answer_lists_the_covered_marks_that_are_past_their_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
