/* SPDX-License-Identifier: Apache-2.0 */
/* Mark, restore and sweep, as a user sees them: on both engines, with objects in memory and in a
 * directory. How a sweep behaves when something is wrong is in test_sweeps.c. Needs PostgreSQL: run
 * under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/subject/quarantine.h"
#include "core/sweep/plan.h"
#include "lib/ask.h"
#include "lib/world.h"

#define HOUR RP_HOUR_MS
#define DAY  RP_DAY_MS

static struct rp_error err;

/* A newer upload stands under the key: its mark is reprieved, and says so everywhere. */
static void expect_superseded(struct world *w, const char *key)
{
    struct rp_sweep_result *r = world_sweep(w);
    struct rp_mark m = world_newest(w, key);
    char sql[160];
    assert_string_equal(r->outcome, "done");
    assert_int_equal(r->run.figures.superseded, 1);
    assert_int_equal(r->run.figures.purged + r->run.figures.already_gone + r->run.figures.failed, 0);
    assert_int_equal(r->run.figures.bytes_freed, 0);
    assert_int_equal(m.state, RP_REPRIEVED);
    assert_int_equal(m.outcome, RP_END_SUPERSEDED);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM audit WHERE mark_id = %" PRId64 " AND event = 'mark.reprieved'",
             m.id);
    assert_int_equal(world_number(w, sql), 1);
}

static struct rp_mark_answer mark_with(struct world *w, struct rp_mark_request q)
{
    struct rp_mark_answer answer;
    if (q.reason == NULL) q.reason = "";
    ok(rp_mark_many(w->catalog, &w->store, &q, 1, "tester", false, &answer, &err));
    return answer;
}

/* ---- mark ---- */

static void test_M1_a_marked_object_stays_as_it_is(void **state)
{
    struct world *w = *state;
    struct rp_item before = { .key = "a/b.png" }, after = { .key = "a/b.png" };
    world_put(w, "a/b.png", "picture");
    ok(rp_backend_stat(w->inner, &before, 1, &err));
    struct rp_mark_answer a = world_mark(w, "a/b.png", -1);
    assert_int_equal(a.what, RP_MARK_CREATED);
    assert_int_equal(a.size_bytes, 7);
    assert_int_equal(a.due_at_ms - a.marked_at_ms, 5 * DAY);
    world_expect_object(w, "a/b.png", "picture");
    ok(rp_backend_stat(w->inner, &after, 1, &err));
    assert_true(rp_identity_equal(&before.identity, &after.identity));
    assert_int_equal(w->calls[WORLD_PUT] + w->calls[WORLD_COPY] + w->calls[WORLD_ANNOTATE] + w->calls[WORLD_REMOVE], 0);
}

static void test_M1_marking_what_does_not_exist_is_not_found(void **state)
{
    struct world *w = *state;
    struct rp_mark_answer a = world_mark(w, "nowhere", -1);
    assert_int_equal(a.what, RP_MARK_REFUSED);
    assert_int_equal(a.error.code, RP_ENOTFOUND);
    assert_string_equal(a.error.text, "main:nowhere does not exist");
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), 0);
}

static void test_M4_grace_outside_the_range_is_refused_with_the_range(void **state)
{
    struct world *w = *state;
    w->config.allow_any_grace = false;
    world_put(w, "k", "x");
    struct rp_mark_answer a = world_mark(w, "k", HOUR);
    assert_int_equal(a.error.code, RP_EGRACE);
    assert_non_null(strstr(a.error.text, "1d to 30d"));
    assert_int_equal(world_mark(w, "k", 31 * DAY).error.code, RP_EGRACE);
    a = world_mark(w, "k", 30 * DAY);
    assert_int_equal(a.what, RP_MARK_CREATED);
    assert_int_equal(a.due_at_ms - a.marked_at_ms, 30 * DAY);
}

static void test_M4_no_grace_deletes_at_the_next_sweep_where_it_is_allowed(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "x");
    assert_int_equal(world_mark(w, "k", 0).what, RP_MARK_CREATED);
    world_expect_sweep(w, 1, 0, 0);
    assert_false(world_exists(w, "k"));
}

static void test_M5_marking_again_is_the_same_mark_and_only_a_later_time_counts(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "x");
    struct rp_mark_answer first = world_mark(w, "k", 5 * DAY);
    struct rp_mark_answer same = world_mark(w, "k", -1);
    assert_int_equal(same.what, RP_MARK_SAME);
    assert_int_equal(same.mark_id, first.mark_id);
    assert_int_equal(same.due_at_ms, first.due_at_ms);
    struct rp_mark_answer later = world_mark(w, "k", 7 * DAY);
    assert_int_equal(later.what, RP_MARK_EXTENDED);
    assert_int_equal(later.mark_id, first.mark_id);
    assert_true(later.due_at_ms > first.due_at_ms);
    struct rp_mark_request renamed = { .key = "k", .grace_ms = 8 * DAY, .at_ms = -1, .reason = "another reason" };
    ok(rp_mark_many(w->catalog, &w->store, &renamed, 1, "tester", false, &later, &err));
    assert_string_equal(later.reason, "another reason");
    assert_string_equal(world_newest(w, "k").reason, "another reason");
    renamed = (struct rp_mark_request){ .key = "k", .grace_ms = 9 * DAY, .at_ms = -1, .reason = "" };
    ok(rp_mark_many(w->catalog, &w->store, &renamed, 1, "tester", false, &later, &err));
    assert_string_equal(world_newest(w, "k").reason, "another reason");
    struct rp_mark_answer earlier = world_mark(w, "k", 6 * DAY);
    assert_int_equal(earlier.error.code, RP_EMARKED);
    assert_int_equal(world_newest(w, "k").due_at_ms, later.due_at_ms);
    world_pass(w, 8 * DAY);
    world_expect_sweep(w, 0, 0, 0);
    assert_true(world_exists(w, "k"));
    world_pass(w, 1 * DAY);
    world_expect_sweep(w, 1, 0, 0);
    assert_false(world_exists(w, "k"));
}

static int extend_as_seen(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    return rp_marks_extend(tx, ctx, 1, why);
}

/* A recovery extends what it saw a moment ago; somebody may have been promised more since. */
static void test_NO_EARLY_more_time_given_by_one_who_saw_less_shortens_nothing(void **state)
{
    struct world *w = *state;
    world_put(w, "a", "bytes");
    (void)world_mark(w, "a", 5 * DAY);
    struct rp_mark seen = world_newest(w, "a");
    int64_t promised = world_mark(w, "a", 7 * DAY).due_at_ms;
    struct rp_extend extend = { .mark = &seen, .due_at_ms = seen.due_at_ms + DAY };
    ok(rp_catalog_transact(w->catalog, extend_as_seen, &extend, &err));
    assert_false(extend.done);
    assert_int_equal(world_newest(w, "a").due_at_ms, promised);
}

static void test_one_refusal_in_a_batch_harms_no_other_and_a_key_twice_is_answered_alike(void **state)
{
    struct world *w = *state;
    struct rp_mark_request q[] = { { .key = "b", .grace_ms = 2 * DAY, .at_ms = -1, .reason = "one" },
                                   { .key = "nowhere", .grace_ms = -1, .at_ms = -1, .reason = "" },
                                   { .key = ".reprieve/owner", .grace_ms = -1, .at_ms = -1, .reason = "" },
                                   { .key = "a", .grace_ms = -1, .at_ms = -1, .reason = "" },
                                   { .key = "b", .grace_ms = 2 * DAY, .at_ms = -1, .reason = "one" },
                                   { .key = "\xff", .grace_ms = -1, .at_ms = -1, .reason = "" } };
    struct rp_mark_answer a[6];
    world_put(w, "a", "x");
    world_put(w, "b", "xx");
    ok(rp_mark_many(w->catalog, &w->store, q, 6, "tester", false, a, &err));
    assert_int_equal(a[0].what, RP_MARK_CREATED);
    assert_int_equal(a[1].error.code, RP_ENOTFOUND);
    assert_int_equal(a[2].error.code, RP_EINVAL);
    assert_int_equal(a[3].what, RP_MARK_CREATED);
    assert_int_equal(a[5].error.code, RP_EINVAL);
    assert_int_equal(a[4].mark_id, a[0].mark_id);
    assert_int_equal(a[4].due_at_ms, a[0].due_at_ms);
    assert_int_equal(world_count(w, RP_MARKED), 2);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.created'"), 2);
}

/* ---- restore ---- */

static void test_a_restored_object_is_never_purged_by_that_mark(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "x");
    struct rp_mark_answer first = world_mark(w, "k", -1);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_ALREADY);
    world_pass(w, 40 * DAY);
    world_expect_sweep(w, 0, 0, 0);
    world_expect_object(w, "k", "x");
    struct rp_mark_answer again = world_mark(w, "k", -1);
    assert_int_equal(again.what, RP_MARK_CREATED);
    assert_true(again.mark_id > first.mark_id);
}

static void test_a_mark_twice_in_one_restore_is_answered_alike(void **state)
{
    struct world *w = *state;
    struct rp_reprieve_answer answers[2];
    world_put(w, "k", "x");
    (void)world_mark(w, "k", -1);
    struct rp_mark twice[2] = { world_newest(w, "k"), world_newest(w, "k") };
    ok(rp_reprieve_many(w->catalog, &w->store, twice, 2, "tester", answers, &err));
    assert_int_equal(answers[0].what, RP_REPRIEVE_DONE);
    assert_int_equal(answers[1].what, RP_REPRIEVE_DONE);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.reprieved'"), 1);
}

static void test_a_restore_after_the_claim_is_too_late(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    world_put(w, "k", "x");
    (void)world_mark(w, "k", 0);
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(s.batch.marks.n, 1);
    struct rp_reprieve_answer a = world_restore(w, "k");
    assert_int_equal(a.what, RP_REPRIEVE_REFUSED);
    assert_int_equal(a.error.code, RP_ETOOLATE);
    world_steps_erase(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    ok(rp_run_end(w->catalog, &s.run, "done", &err));
    assert_int_equal(world_restore(w, "k").error.code, RP_ETOOLATE);
    assert_false(world_exists(w, "k"));
    world_steps_done(&s);
}

/* ---- annotation ---- */

static void test_M2_the_annotation_says_when_and_why(void **state)
{
    struct world *w = *state;
    char text[32];
    world_put(w, "k", "x");
    struct rp_mark_answer a = mark_with(
        w, (struct rp_mark_request){ .key = "k", .grace_ms = -1, .at_ms = -1, .reason = "old", .annotate = true });
    assert_true(a.annotated);
    assert_string_equal(world_field(w, "k", "marked_for_deletion"), "true");
    snprintf(text, sizeof text, "%lld", (long long)a.marked_at_ms);
    assert_string_equal(world_field(w, "k", "marked_for_deletion_on"), text);
    snprintf(text, sizeof text, "%lld", (long long)a.due_at_ms);
    assert_string_equal(world_field(w, "k", "delete_after"), text);
    assert_string_equal(world_field(w, "k", "deletion_reason"), "old");
    world_expect_object(w, "k", "x");
    world_pass(w, 6 * DAY); /* an annotated object is purged like any other */
    world_expect_sweep(w, 1, 0, 0);
    assert_false(world_exists(w, "k"));
}

static void test_M2_a_key_twice_in_a_command_is_annotated_once(void **state)
{
    struct world *w = *state;
    struct rp_mark_request q = { .key = "k", .grace_ms = -1, .at_ms = -1, .reason = "old", .annotate = true };
    struct rp_mark_request both[] = { q, q };
    struct rp_mark_answer a[2];
    world_put(w, "k", "x");
    ok(rp_mark_many(w->catalog, &w->store, both, 2, "tester", false, a, &err));
    for (size_t i = 0; i < 2; i++) {
        assert_true(a[i].annotated);
        assert_string_equal(a[i].annotate_note, "");
    }
    assert_int_equal(w->calls[WORLD_ANNOTATE], 1);
}

static void test_M2_more_time_and_its_reason_show_in_the_annotation(void **state)
{
    struct world *w = *state;
    char text[32];
    world_put(w, "k", "x");
    (void)mark_with(
        w, (struct rp_mark_request){ .key = "k", .grace_ms = -1, .at_ms = -1, .reason = "old", .annotate = true });
    struct rp_mark_answer a = world_mark(w, "k", 9 * DAY);
    assert_int_equal(a.what, RP_MARK_EXTENDED);
    snprintf(text, sizeof text, "%lld", (long long)a.due_at_ms);
    assert_string_equal(world_field(w, "k", "delete_after"), text);
    assert_string_equal(world_field(w, "k", "deletion_reason"), "test");
}

static void expect_no_annotation(struct world *w, const char *key)
{
    static const char *const ours[] = { "marked_for_deletion", "marked_for_deletion_on", "delete_after",
                                        "deletion_reason" };
    for (size_t i = 0; i < 4; i++)
        assert_null(world_field(w, key, ours[i]));
}

static void test_M3_a_restore_removes_only_the_marks_own_fields(void **state)
{
    struct world *w = *state;
    const struct rp_pair others[] = { { "scanned", "clean" }, { "purpose", "avatar" } };
    world_put(w, "k", "x");
    w->config.annotate = true; /* the store's setting is as good as the call's */
    assert_true(world_mark(w, "k", -1).annotated);
    struct rp_item item = { .key = "k" };
    ok(rp_backend_stat(w->inner, &item, 1, &err));
    ok(rp_backend_annotate(w->inner, "k", &item.identity, others, 2, &err));
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
    expect_no_annotation(w, "k");
    assert_string_equal(world_field(w, "k", "scanned"), "clean");
    world_expect_object(w, "k", "x");
}

static void test_an_annotation_does_not_come_back_from_quarantine(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_QUARANTINE;
    w->config.annotate = true;
    world_put(w, "k", "x");
    assert_true(world_mark(w, "k", 0).annotated);
    world_expect_sweep(w, 1, 0, 0);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_RETURNED);
    world_expect_object(w, "k", "x");
    expect_no_annotation(w, "k");
}

/* Something else happens once, right before or after a call to annotate. */
struct meanwhile {
    struct world *w;
    struct rp_catalog *theirs;
    bool after, done;
    void (*happens)(struct meanwhile *m);
};

static int at_annotate(struct meanwhile *m, bool after, const char *call, const char *key)
{
    if (m->done || m->after != after || key == NULL || strcmp(call, "annotate") != 0) return 0;
    m->done = true;
    m->happens(m);
    return 0;
}

static int before_annotate(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)e;
    return at_annotate(ctx, false, call, key);
}

static int after_annotate(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)e;
    return at_annotate(ctx, true, call, key);
}

static void meanwhile(struct world *w, struct meanwhile *m)
{
    m->w = w;
    m->theirs = world_catalog(w, 1, NULL);
    w->before = before_annotate;
    w->after = after_annotate;
    w->ctx = m;
}

static void meanwhile_over(struct meanwhile *m)
{
    assert_true(m->done);
    m->w->before = m->w->after = NULL;
    rp_catalog_close(m->theirs);
}

static void they_restore(struct meanwhile *m)
{
    struct rp_mark mark = world_newest(m->w, "k");
    struct rp_reprieve_answer answer;
    ok(rp_reprieve_many(m->theirs, &m->w->store, &mark, 1, "other", &answer, &err));
    assert_int_equal(answer.what, RP_REPRIEVE_DONE);
}

static void test_M3_what_is_restored_before_it_is_annotated_carries_none(void **state)
{
    struct world *w = *state;
    struct meanwhile m = { .happens = they_restore };
    world_put(w, "k", "x");
    w->config.annotate = true;
    meanwhile(w, &m);
    struct rp_mark_answer a = world_mark(w, "k", -1);
    meanwhile_over(&m);
    assert_int_equal(world_newest(w, "k").state, RP_REPRIEVED);
    expect_no_annotation(w, "k");
    assert_false(a.annotated);
    assert_non_null(strstr(a.annotate_note, "reprieved"));
}

static void they_extend(struct meanwhile *m)
{
    struct rp_mark_request q = { .key = "k", .grace_ms = 9 * DAY, .at_ms = -1, .reason = "" };
    struct rp_mark_answer answer;
    ok(rp_mark_many(m->theirs, &m->w->store, &q, 1, "other", false, &answer, &err));
    assert_int_equal(answer.what, RP_MARK_EXTENDED);
    assert_true(answer.annotated);
}

static void test_M3_what_is_annotated_while_it_is_restored_carries_none(void **state)
{
    struct world *w = *state;
    struct meanwhile m = { .happens = they_extend, .after = true };
    world_put(w, "k", "x");
    w->config.annotate = true;
    assert_true(world_mark(w, "k", -1).annotated);
    meanwhile(w, &m);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
    meanwhile_over(&m);
    assert_int_equal(world_newest(w, "k").state, RP_REPRIEVED);
    expect_no_annotation(w, "k");
}

/* ---- sweep ---- */

static void test_a_sweep_purges_what_is_due_and_nothing_else(void **state)
{
    struct world *w = *state;
    world_put(w, "due", "1234567");
    world_put(w, "waiting", "x");
    world_put(w, "unmarked", "x");
    (void)world_mark(w, "due", 1 * DAY);
    (void)world_mark(w, "waiting", 3 * DAY);
    world_pass(w, 2 * DAY);
    struct rp_sweep_result *r = world_sweep(w);
    assert_string_equal(r->outcome, "done");
    assert_int_equal(r->run.figures.scanned, 1);
    assert_int_equal(r->run.figures.purged, 1);
    assert_int_equal(r->run.figures.bytes_freed, 7);
    assert_string_equal(r->run.figures.largest, "main:due");
    assert_in_range(r->run.figures.oldest_age_s, 2 * 86400, 2 * 86400 + 600);
    assert_false(world_exists(w, "due"));
    world_expect_object(w, "waiting", "x");
    world_expect_object(w, "unmarked", "x");
    struct rp_mark m = world_newest(w, "due");
    assert_int_equal(m.state, RP_PURGED);
    assert_int_equal(m.outcome, RP_END_ERASED);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.purged'"), 1);
}

static void test_many_marks_are_purged_in_batches_up_to_the_limit(void **state)
{
    struct world *w = *state;
    world_put_many(w, 250, 10);
    world_mark_many(w, 250, 0);
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    struct rp_sweep_result *r = rp_arena_alloc(&w->arena, sizeof *r);
    sweeper.limit = 130;
    ok(rp_sweep_run(&sweeper, r, &err));
    assert_int_equal(r->run.figures.purged, 130);
    assert_int_equal(world_count(w, RP_MARKED), 120);
    world_expect_sweep(w, 120, 0, 0);
    assert_int_equal(world_count(w, RP_PURGED), 250);
    assert_int_equal(w->removed, 250);
}

static void test_what_somebody_else_deleted_is_already_gone(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "x");
    (void)world_mark(w, "k", 0);
    world_remove(w, "k");
    world_expect_sweep(w, 0, 1, 0);
    assert_int_equal(world_newest(w, "k").outcome, RP_END_GONE);
}

static void test_NEWER_WINS_an_upload_after_the_mark_is_never_deleted(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "old");
    (void)world_mark(w, "k", 0);
    world_put(w, "k", "new");
    expect_superseded(w, "k");
    world_expect_object(w, "k", "new");
    assert_int_equal(world_newest(w, "k").outcome, RP_END_SUPERSEDED);
    world_pass(w, 40 * DAY);
    world_expect_sweep(w, 0, 0, 0);
    world_expect_object(w, "k", "new");
}

static void test_a_newer_upload_that_is_marked_has_a_promise_of_its_own(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "old");
    struct rp_mark_answer first = world_mark(w, "k", 1 * DAY);
    world_put(w, "k", "newer");
    struct rp_mark_answer second = world_mark(w, "k", 5 * DAY);
    assert_int_equal(second.what, RP_MARK_REPLACED);
    assert_true(second.mark_id > first.mark_id);
    struct rp_mark old;
    ok(rp_mark_get(w->catalog->db, first.mark_id, &w->arena, &old, &err));
    assert_int_equal(old.state, RP_REPRIEVED);
    assert_int_equal(old.outcome, RP_END_SUPERSEDED);
    world_pass(w, 2 * DAY);
    world_expect_sweep(w, 0, 0, 0);
    world_expect_object(w, "k", "newer");
    world_pass(w, 4 * DAY);
    world_expect_sweep(w, 1, 0, 0);
    assert_false(world_exists(w, "k"));
}

static void test_observe_asks_nothing_of_the_store_and_writes_nothing_to_it(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_OBSERVE;
    world_put(w, "k", "x");
    struct rp_mark_answer a =
        mark_with(w, (struct rp_mark_request){ .key = "k", .grace_ms = 0, .at_ms = -1, .annotate = true });
    assert_int_equal(a.what, RP_MARK_CREATED);
    assert_false(a.annotated);
    assert_non_null(strstr(a.annotate_note, "observe"));
    assert_int_equal(w->calls[WORLD_STAT], 1); /* to see what is marked */
    w->calls[WORLD_STAT] = 0;
    world_expect_sweep(w, 0, 0, 1);
    for (int i = 0; i < WORLD_CALLS; i++)
        assert_int_equal(w->calls[i], 0);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
    for (int i = 0; i < WORLD_CALLS; i++)
        assert_int_equal(w->calls[i], 0);
    world_expect_object(w, "k", "x");
    assert_false(world_exists(w, RP_STORE_OWNER));
}

static int count_planned(void *ctx, const struct rp_store *store, const struct rp_mark *mark, struct rp_error *e)
{
    (void)store, (void)e;
    assert_true(mark->state == RP_MARKED);
    ++*(int64_t *)ctx;
    return 0;
}

static void test_a_dry_run_names_what_is_due_and_changes_nothing(void **state)
{
    struct world *w = *state;
    int64_t planned = 0;
    world_put_many(w, 30, 1);
    world_mark_many(w, 30, 0);
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    int64_t audits = world_number(w, "SELECT count(*) FROM audit");
    for (int i = 0; i < WORLD_CALLS; i++)
        w->calls[i] = 0;
    ok(rp_plan_each(&sweeper, count_planned, &planned, &err));
    assert_int_equal(planned, 30);
    sweeper.limit = planned = 7;
    planned = 0;
    ok(rp_plan_each(&sweeper, count_planned, &planned, &err));
    assert_int_equal(planned, 7);
    assert_int_equal(world_count(w, RP_MARKED), 30);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), audits);
    for (int i = 0; i < WORLD_CALLS; i++)
        assert_int_equal(w->calls[i], 0);
}

/* ---- quarantine ---- */

static void test_S5_a_purge_moves_aside_and_a_restore_returns_it_as_it_was(void **state)
{
    struct world *w = *state;
    world_move_to_quarantine(w, "k", "picture");
    world_expect_object(w, world_aside_key(w, "k"), "picture");
    world_pass(w, 6 * DAY);
    world_expect_sweep(w, 0, 0, 0);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_RETURNED);
    world_expect_object(w, "k", "picture");
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_ALREADY);
    world_expect_sweep(w, 0, 0, 0); /* a delete that comes late may take what was returned: the copy stays for a day */
    world_pass(w, DAY + HOUR);
    world_expect_sweep(w, 1, 0, 0);
    assert_false(world_exists(w, world_aside_key(w, "k")));
    world_expect_object(w, "k", "picture");
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_ALREADY);
    world_pass(w, 30 * DAY);
    world_expect_sweep(w, 0, 0, 0);
    world_expect_object(w, "k", "picture");
}

static void test_S5_a_mark_twice_in_one_return_is_answered_alike(void **state)
{
    struct world *w = *state;
    struct rp_reprieve_answer answers[2];
    world_move_to_quarantine(w, "k", "picture");
    struct rp_mark twice[2] = { world_newest(w, "k"), world_newest(w, "k") };
    ok(rp_reprieve_many(w->catalog, &w->store, twice, 2, "tester", answers, &err));
    assert_int_equal(answers[0].what, RP_REPRIEVE_RETURNED);
    assert_int_equal(answers[1].what, RP_REPRIEVE_RETURNED);
    assert_int_equal(w->calls[WORLD_COPY], 2); /* aside, and back once */
    world_expect_object(w, "k", "picture");
}

/* A store in which somebody else restores as well, right after our copy back. */
static struct {
    struct world *w;
    const struct rp_backend_ops *ops;
    struct rp_reprieve_answer other;
} beside;

static int copy_beside(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                       struct rp_identity *out, struct rp_error *why)
{
    int r = beside.ops->copy(backend, from, expected, to, out, why);
    backend->ops = beside.ops;
    beside.other = world_restore(beside.w, "k");
    return r;
}

static void test_S5_two_returns_at_once_leave_what_they_returned(void **state)
{
    struct world *w = *state;
    world_move_to_quarantine(w, "k", "picture");
    struct rp_backend_ops ops = *w->store.backend->ops;
    beside.w = w;
    beside.ops = w->store.backend->ops;
    ops.copy = copy_beside;
    w->store.backend->ops = &ops;
    struct rp_reprieve_answer ours = world_restore(w, "k");
    assert_int_equal(beside.other.what, RP_REPRIEVE_RETURNED);
    assert_int_equal(ours.what, RP_REPRIEVE_ALREADY);
    world_expect_object(w, "k", "picture");
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'object.returned'"), 1);
}

static void test_S5_what_is_in_quarantine_is_erased_when_its_time_is_over(void **state)
{
    struct world *w = *state;
    world_move_to_quarantine(w, "k", "picture");
    world_pass(w, 7 * DAY + HOUR);
    struct rp_sweep_result *r = world_sweep(w);
    assert_int_equal(r->run.figures.purged, 1);
    assert_int_equal(r->run.figures.bytes_freed, 7);
    assert_false(world_exists(w, world_aside_key(w, "k")));
    struct rp_reprieve_answer a = world_restore(w, "k");
    assert_int_equal(a.error.code, RP_ETOOLATE);
    assert_false(world_exists(w, "k"));
}

static void test_S5_a_return_never_overwrites_something_newer(void **state)
{
    struct world *w = *state;
    world_move_to_quarantine(w, "k", "old");
    world_put(w, "k", "new");
    struct rp_reprieve_answer a = world_restore(w, "k");
    assert_int_equal(a.what, RP_REPRIEVE_REFUSED);
    assert_int_equal(a.error.code, RP_EEXISTS);
    world_expect_object(w, "k", "new");
    world_expect_object(w, world_aside_key(w, "k"), "old");
    world_remove(w, "k");
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_RETURNED);
    world_expect_object(w, "k", "old");
}

/* The copy's own mark is no subject of a user: reprieving it would leave a copy that nobody returns
 * and nobody erases. */
static void test_S5_the_copys_own_mark_is_not_restored_by_itself(void **state)
{
    struct world *w = *state;
    struct rp_mark copy;
    struct rp_reprieve_answer answer;
    world_move_to_quarantine(w, "k", "old");
    ok(ask_newest(w->catalog, &w->store, world_aside_key(w, "k"), &w->arena, &copy, &err));
    ok(rp_reprieve_many(w->catalog, &w->store, &copy, 1, "tester", &answer, &err));
    assert_int_equal(answer.what, RP_REPRIEVE_REFUSED);
    assert_int_equal(answer.error.code, RP_EINVAL);
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_RETURNED);
    world_expect_object(w, "k", "old");
}

static void test_S5_a_newer_upload_is_not_moved_aside(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_QUARANTINE;
    world_put(w, "k", "old");
    (void)world_mark(w, "k", 0);
    world_put(w, "k", "new");
    expect_superseded(w, "k");
    world_expect_object(w, "k", "new");
    assert_false(world_exists(w, world_aside_key(w, "k")));
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_M1_a_marked_object_stays_as_it_is),
        ALL(test_M1_marking_what_does_not_exist_is_not_found),
        ALL(test_M4_grace_outside_the_range_is_refused_with_the_range),
        ALL(test_M4_no_grace_deletes_at_the_next_sweep_where_it_is_allowed),
        ALL(test_M5_marking_again_is_the_same_mark_and_only_a_later_time_counts),
        ALL(test_NO_EARLY_more_time_given_by_one_who_saw_less_shortens_nothing),
        ALL(test_one_refusal_in_a_batch_harms_no_other_and_a_key_twice_is_answered_alike),
        ALL(test_a_restored_object_is_never_purged_by_that_mark),
        ALL(test_a_mark_twice_in_one_restore_is_answered_alike),
        ALL(test_a_restore_after_the_claim_is_too_late),
        ALL(test_M2_the_annotation_says_when_and_why),
        ALL(test_M2_a_key_twice_in_a_command_is_annotated_once),
        ALL(test_M2_more_time_and_its_reason_show_in_the_annotation),
        ALL(test_M3_a_restore_removes_only_the_marks_own_fields),
        ALL(test_an_annotation_does_not_come_back_from_quarantine),
        ALL(test_M3_what_is_restored_before_it_is_annotated_carries_none),
        ALL(test_M3_what_is_annotated_while_it_is_restored_carries_none),
        ALL(test_a_sweep_purges_what_is_due_and_nothing_else),
        ALL(test_many_marks_are_purged_in_batches_up_to_the_limit),
        ALL(test_what_somebody_else_deleted_is_already_gone),
        ALL(test_NEWER_WINS_an_upload_after_the_mark_is_never_deleted),
        ALL(test_a_newer_upload_that_is_marked_has_a_promise_of_its_own),
        ALL(test_observe_asks_nothing_of_the_store_and_writes_nothing_to_it),
        ALL(test_a_dry_run_names_what_is_due_and_changes_nothing),
        ALL(test_S5_a_purge_moves_aside_and_a_restore_returns_it_as_it_was),
        ALL(test_S5_a_mark_twice_in_one_return_is_answered_alike),
        ALL(test_S5_two_returns_at_once_leave_what_they_returned),
        ALL(test_S5_what_is_in_quarantine_is_erased_when_its_time_is_over),
        ALL(test_S5_a_return_never_overwrites_something_newer),
        ALL(test_S5_the_copys_own_mark_is_not_restored_by_itself),
        ALL(test_S5_a_newer_upload_is_not_moved_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
