/* SPDX-License-Identifier: Apache-2.0 */
/* Holds: what they cover waits, on both engines, with objects in memory and in a directory. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/mark/hold.h"
#include "catalog/statements/statements.h"
#include "core/hold.h"
#include "core/subject/quarantine.h"
#include "lib/ask.h"
#include "lib/world.h"

#define HOUR RP_HOUR_MS
#define DAY  RP_DAY_MS

static struct rp_error err;

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
    world_expect_sweep(w, 3 - held, 0, 0);
    assert_int_equal(world_count(w, RP_MARKED), held);
    ok(ask_lift(w->catalog, h.id, "tester", &err));
    assert_int_equal(ask_lift(w->catalog, h.id, "tester", &err), RP_ENOTFOUND);
    world_expect_sweep(w, held, 0, 0);
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
    world_expect_sweep(w, 3, 0, 0);
    assert_true(world_exists(w, "many/00001"));
    ok(ask_lift(w->catalog, 77, "tester", &err));
    world_expect_sweep(w, 1, 0, 0);
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
    world_expect_sweep(w, 0, 0, 0);
    world_expect_object(w, "a/2", "newer");
    int64_t lifted = -1;
    ok(ask_resume(w->catalog, "tester", &lifted, &err));
    assert_int_equal(lifted, 0); /* resume lifts pauses, not other holds */
    (void)hold(w, RP_SCOPE_EVERYTHING, NULL);
    (void)hold(w, RP_SCOPE_EVERYTHING, NULL);
    ok(ask_resume(w->catalog, "tester", &lifted, &err));
    assert_int_equal(lifted, 2);
    world_expect_sweep(w, 0, 0, 0);
    world_expect_object(w, "a/2", "newer");
}

static void test_X3_resume_lifts_every_pause_however_many_there_are(void **state)
{
    struct world *w = *state;
    int64_t lifted = -1;
    world_put(w, "a/1", "x");
    (void)world_mark(w, "a/1", 0);
    world_script(w,
                 "INSERT INTO hold (id, scope, reason, actor, placed_at) WITH RECURSIVE n(i) AS "
                 "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) SELECT i, %d, '', '', 0 FROM n",
                 RP_SCOPE_EVERYTHING);
    world_expect_sweep(w, 0, 0, 0);
    ok(ask_resume(w->catalog, "tester", &lifted, &err));
    assert_int_equal(lifted, 1001);
    world_expect_sweep(w, 1, 0, 0);
}

/* More are under way than the answer has room for: those that the hold covers must be among it all
 * the same. */
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

/* ---- two ways to ask one thing ---- */

/* What a claim asks in SQL and an answer in C, about one hold and every kind of mark. The names
 * `hold` and `m` are those that HELD expects. */
static const struct rp_sql held_marks = {
    "held_marks",
    "WITH hold AS (SELECT CAST(NULL AS bigint) AS lifted_at, CAST($1 AS bigint) AS scope, CAST($2 AS bigint) AS "
    "store_id, CAST($3 AS text) AS key, CAST($4 AS bigint) AS tenant_id), "
    "m AS (SELECT column1 AS i, column2 AS store_id, column3 AS key, column4 AS original, column5 AS tenant_id FROM "
    "(VALUES @ROWS) AS v) SELECT i FROM m WHERE " HELD("m"),
    "iisi", "iissi", "i"
};
/* Neighbours of each other: longer, shorter, case, what a pattern would take, several bytes a
 * character. */
static const char *const named[] = { "a", "a/", "a/1", "a/10", "A/1", "a/%", "a_1", "%", "\xc3\xbc", "\xc3\xbc/1" };
#define NAMED_N   (sizeof named / sizeof named[0])
#define STORES_N  2
#define TENANTS_N 3
#define MARKS_N   (STORES_N * NAMED_N * (NAMED_N + 1) * TENANTS_N)

struct every_mark {
    struct rp_mark at[MARKS_N];
    struct rp_value rows[MARKS_N][5];
    bool covered[MARKS_N];
    int64_t seen;
};

static void make_every_mark(struct every_mark *e)
{
    for (size_t i = 0; i < MARKS_N; i++) {
        struct rp_mark *m = &e->at[i];
        size_t original = i / STORES_N / NAMED_N % (NAMED_N + 1);
        m->store_id = 1 + (int64_t)(i % STORES_N);
        m->key = named[i / STORES_N % NAMED_N];
        m->original = original < NAMED_N ? named[original] : NULL;
        m->tenant_id = (int64_t)(i / STORES_N / NAMED_N / (NAMED_N + 1));
        const struct rp_value row[5] = { rp_int((int64_t)i), rp_int(m->store_id), rp_text(m->key),
                                         m->original != NULL ? rp_text(m->original) : rp_null(), rp_int(m->tenant_id) };
        memcpy(e->rows[i], row, sizeof row);
    }
}

static int note_covered(void *ctx, const struct rp_value *v, struct rp_error *e)
{
    struct every_mark *every = ctx;
    (void)e;
    every->covered[v[0].i] = true;
    every->seen++;
    return 0;
}

static void expect_one_answer(struct world *w, struct every_mark *e, const struct rp_hold *hold)
{
    const struct rp_value args[] = { rp_int(hold->scope), hold->store_id != 0 ? rp_int(hold->store_id) : rp_null(),
                                     hold->key != NULL ? rp_text(hold->key) : rp_null(),
                                     hold->tenant_id != 0 ? rp_int(hold->tenant_id) : rp_null() };
    memset(e->covered, 0, sizeof e->covered);
    ok(rp_db_query_rows(w->catalog->db, &held_marks, args, e->rows[0], MARKS_N, note_covered, e, &err));
    for (size_t i = 0; i < MARKS_N; i++)
        if (rp_hold_covers(hold, &e->at[i]) != e->covered[i])
            fail_msg("scope %d, store %d, '%s', tenant %d: of store %d, '%s', original '%s', tenant %d SQL says %d",
                     (int)hold->scope, (int)hold->store_id, hold->key ? hold->key : "", (int)hold->tenant_id,
                     (int)e->at[i].store_id, e->at[i].key, e->at[i].original ? e->at[i].original : "",
                     (int)e->at[i].tenant_id, e->covered[i]);
}

static void test_X3_the_statements_and_the_code_mean_the_same_marks(void **state)
{
    struct world *w = *state;
    struct every_mark *e = calloc(1, sizeof *e);
    assert_non_null(e);
    make_every_mark(e);
    for (enum rp_scope scope = RP_SCOPE_SUBJECT; scope <= RP_SCOPE_PREFIX; scope++)
        for (size_t k = 0; k < NAMED_N; k++)
            expect_one_answer(w, e, &(struct rp_hold){ .scope = scope, .store_id = 1, .key = named[k] });
    for (int64_t tenant = 1; tenant <= TENANTS_N; tenant++)
        expect_one_answer(w, e, &(struct rp_hold){ .scope = RP_SCOPE_TENANT, .tenant_id = tenant });
    assert_in_range(e->seen, MARKS_N, 2 * NAMED_N * MARKS_N); /* neither all nor none */
    expect_one_answer(w, e, &(struct rp_hold){ .scope = RP_SCOPE_EVERYTHING });
    free(e);
}

/* ---- copies in quarantine ---- */

/* A copy whose time is over; the hold keeps it, if it covers the object that it came from. */
static void expect_copy_held(struct world *w, enum rp_scope scope, const char *key, bool covered)
{
    world_move_to_quarantine(w, "a/1", "picture");
    struct rp_hold_command h = hold(w, scope, key);
    assert_int_equal(h.claimed.n, 0);
    world_pass(w, 8 * DAY);
    world_expect_sweep(w, covered ? 0 : 1, 0, 0);
    assert_int_equal(world_exists(w, world_aside_key(w, "a/1")), covered);
    ok(ask_lift(w->catalog, h.id, "tester", &err));
    world_expect_sweep(w, covered ? 1 : 0, 0, 0);
    assert_false(world_exists(w, world_aside_key(w, "a/1")));
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
    world_move_to_quarantine(w, "a/1", "picture");
    assert_int_equal(world_restore(w, "a/1").what, RP_REPRIEVE_RETURNED);
    (void)hold(w, RP_SCOPE_SUBJECT, "a/1");
    world_pass(w, 8 * DAY);
    world_expect_sweep(w, 0, 0, 0);
    assert_true(world_exists(w, world_aside_key(w, "a/1")));
}

static void test_X3_the_answer_lists_a_copy_that_is_being_erased(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    world_move_to_quarantine(w, "a/1", "picture");
    world_pass(w, 8 * DAY);
    world_steps_begin(w, w->catalog, "one", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(hold(w, RP_SCOPE_SUBJECT, "a/2").claimed.n, 0);
    struct rp_hold_command h = hold(w, RP_SCOPE_SUBJECT, "a/1");
    assert_int_equal(h.claimed.n, 1);
    assert_string_equal(h.claimed.at[0].key, world_aside_key(w, "a/1"));
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
        ON(0, "sqlite, memory", test_X3_resume_lifts_every_pause_however_many_there_are),
        ALL(test_X3_the_statements_and_the_code_mean_the_same_marks),
        ALL(test_X3_a_hold_covers_the_copy_in_quarantine_of_what_it_names),
        ALL(test_X3_a_hold_covers_the_copy_that_a_return_has_left),
        ALL(test_X3_the_answer_lists_a_copy_that_is_being_erased),
        EDITED(0, "sqlite, memory", test_X3_the_answer_lists_a_dead_letter_whose_purge_has_begun),
        ALL(test_X3_the_answer_lists_the_covered_marks_that_are_past_their_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
