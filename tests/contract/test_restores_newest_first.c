/* SPDX-License-Identifier: Apache-2.0 */
/* A restore goes from the newest mark down (core/restore/restore.h, N9 to N11;
 * reprieve.h, V9): of several uploads of one key, or several deleted files of one name, the last
 * comes back. On both engines. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "lib/restoring.h"
#include "lib/uploads.h"

#define MANY 2500 /* three batches */

static struct rp_error err;
static struct rp_restore_filter everything = { .since_ms = -1, .until_ms = -1 };

static struct rp_restore_filter of_run(int64_t run_id)
{
    return (struct rp_restore_filter){ .run_id = run_id, .since_ms = -1, .until_ms = -1 };
}

/* Three files of one name, each deleted before the next one came. */
struct three {
    int64_t files[3], marks[3];
};

static struct three delete_three(struct world *w, const int64_t grace_ms[3])
{
    struct three t;
    struct rp_file_command c;
    for (size_t i = 0; i < 3; i++) {
        t.files[i] = uploads_live(w, "name", "x");
        assert_int_equal(uploads_delete(w, t.files[i], grace_ms[i], &c), 0);
        t.marks[i] = uploads_mark(w, t.files[i]).id;
    }
    return t;
}

static void expect_the_last(struct world *w, const struct three *t, int64_t run_id)
{
    uploads_expect(w, t->files[2], RP_FILE_LIVE);
    uploads_expect(w, t->files[1], RP_FILE_DELETED);
    uploads_expect(w, t->files[0], RP_FILE_DELETED);
    assert_int_equal(restoring_counted(w, run_id, "refused"), 2);
    restoring_expect(w, run_id, "partial");
}

static struct rp_restore_filter by_prefix(struct world *w, const struct rp_mark *first)
{
    (void)first;
    return restoring_prefix(w, "");
}

static struct rp_restore_filter by_reason(struct world *w, const struct rp_mark *first)
{
    (void)w;
    return (struct rp_restore_filter){ .reason = first->reason, .since_ms = -1, .until_ms = -1 };
}

static struct rp_restore_filter by_actor(struct world *w, const struct rp_mark *first)
{
    (void)w;
    return (struct rp_restore_filter){ .actor = first->actor, .since_ms = -1, .until_ms = -1 };
}

static struct rp_restore_filter by_time(struct world *w, const struct rp_mark *first)
{
    (void)w;
    return (struct rp_restore_filter){ .since_ms = first->marked_at_ms, .until_ms = -1 };
}

static void restore_three(struct world *w,
                          struct rp_restore_filter (*filter_of)(struct world *w, const struct rp_mark *first))
{
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    static const int64_t grace_ms[3] = { RP_DAY_MS, RP_DAY_MS, RP_DAY_MS };
    struct three three = delete_three(w, grace_ms);
    const struct rp_mark first = uploads_mark(w, three.files[0]);
    const struct rp_restore_filter filter = filter_of(w, &first);
    restoring_begin(t, &filter);
    assert_string_equal(restoring_carry(t), "partial");
    expect_the_last(w, &three, t->run.id);
}

static void of_three_deleted_files_of_one_name_the_last_comes_back_by_prefix(void **state)
{
    restore_three(*state, by_prefix);
}

static void of_three_deleted_files_of_one_name_the_last_comes_back_by_reason(void **state)
{
    restore_three(*state, by_reason);
}

static void of_three_deleted_files_of_one_name_the_last_comes_back_by_actor(void **state)
{
    restore_three(*state, by_actor);
}

static void of_three_deleted_files_of_one_name_the_last_comes_back_by_time(void **state)
{
    restore_three(*state, by_time);
}

/* Moved to quarantine by one sweep, in the order of their marks and in the opposite one. */
static void the_last_of_a_name_comes_back_from_quarantine_whenever_it_was_moved(void **state)
{
    struct world *w = *state;
    static const int64_t grace_ms[2][3] = { { 1000, 2000, 3000 }, { 3000, 2000, 1000 } };
    w->config.mode = RP_MODE_QUARANTINE;
    for (size_t i = 0; i < 4; i++) {
        RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
        struct rp_file_command c;
        struct three three = delete_three(w, grace_ms[i / 2]);
        world_pass(w, RP_MINUTE_MS);
        int64_t run = world_swept(w, 3)->run.id;
        const struct rp_restore_filter filter = i % 2 == 0 ? of_run(run) : restoring_prefix(w, "");
        restoring_begin(t, &filter);
        assert_string_equal(restoring_carry(t), "partial");
        expect_the_last(w, &three, t->run.id);
        assert_int_equal(restoring_counted(w, t->run.id, "returned"), 1);
        assert_int_equal(uploads_delete(w, three.files[2], 0, &c), 0);
        w->config.mode = RP_MODE_PURGE;
        world_pass(w, 90 * RP_DAY_MS);
        (void)world_sweep(w);
        w->config.mode = RP_MODE_QUARANTINE;
    }
}

/* The last was moved to quarantine while the others, which were given more time, still wait. */
static void the_last_of_a_name_in_quarantine_comes_before_the_others_that_wait(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    static const int64_t grace_ms[3] = { RP_DAY_MS, RP_DAY_MS, 0 };
    w->config.mode = RP_MODE_QUARANTINE;
    struct three three = delete_three(w, grace_ms);
    world_swept(w, 1);
    restoring_begin(t, &everything);
    assert_string_equal(restoring_carry(t), "partial");
    expect_the_last(w, &three, t->run.id);
}

static void put_and_move(struct world *w, const char *key, const char *text)
{
    world_put(w, key, text);
    assert_int_equal(world_mark(w, key, 0).what, RP_MARK_CREATED);
    world_swept(w, 1);
}

static void of_three_uploads_of_one_key_the_last_comes_back_from_quarantine(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++) {
        RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
        const struct rp_restore_filter filters[] = { restoring_prefix(w, "k"),
                                                     { .reason = "test", .since_ms = -1, .until_ms = -1 },
                                                     { .since_ms = 0, .until_ms = -1 } };
        w->config.mode = RP_MODE_QUARANTINE;
        put_and_move(w, "k", "first");
        put_and_move(w, "k", "second");
        put_and_move(w, "k", "last");
        restoring_begin(t, &filters[i]);
        assert_string_equal(restoring_carry(t), "partial");
        assert_string_equal(world_text(w, "k"), "last");
        assert_int_equal(restoring_counted(w, t->run.id, "returned"), 1);
        assert_int_equal(restoring_counted(w, t->run.id, "refused"), 2);
        world_remove(w, "k");
        world_pass(w, 90 * RP_DAY_MS);
        (void)world_sweep(w);
    }
}

static void an_upload_that_waits_comes_before_older_ones_of_its_key_in_quarantine(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    w->config.mode = RP_MODE_QUARANTINE;
    put_and_move(w, "k", "first");
    put_and_move(w, "k", "second");
    restoring_put_due(w, "k");
    restoring_begin(t, &everything);
    assert_string_equal(restoring_carry(t), "partial");
    assert_string_equal(world_text(w, "k"), "x");
    assert_int_equal(world_newest(w, "k").state, RP_REPRIEVED);
    assert_int_equal(restoring_counted(w, t->run.id, "restored"), 1);
    assert_int_equal(restoring_counted(w, t->run.id, "refused"), 2);
}

/* The first in the last batch, the last in the first one, and a stop between. */
static void the_last_of_a_name_comes_back_over_batches_and_a_stop(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *a = restoring_new(w, w->catalog), *b = restoring_new(w, w->catalog);
    struct three three;
    struct rp_file_command c;
    world_put_many(w, MANY, 1);
    for (size_t i = 0; i < 3; i++) {
        three.files[i] = uploads_live(w, "name", "x");
        assert_int_equal(uploads_delete(w, three.files[i], RP_DAY_MS, &c), 0);
        if (i == 0) world_mark_many(w, MANY, RP_DAY_MS);
    }
    struct rp_restore_filter all = restoring_prefix(w, "");
    a->between = restoring_stop;
    restoring_begin(a, &all);
    assert_null(restoring_carry(a));
    uploads_expect(w, three.files[2], RP_FILE_LIVE);
    restoring_resume(b);
    assert_string_equal(restoring_carry(b), "partial");
    expect_the_last(w, &three, a->run.id);
    assert_int_equal(restoring_counted(w, a->run.id, "scanned"), MANY + 3);
    assert_int_equal(restoring_counted(w, a->run.id, "restored"), MANY + 1);
}

/* Between a root and its child there would be the end of a batch. */
static void a_family_is_not_torn_by_the_end_of_a_batch(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    struct rp_file_command c;
    assert_int_equal(uploads_delete(w, root, RP_DAY_MS, &c), 0);
    restoring_mark_many(w, 999);
    restoring_begin(t, &everything);
    assert_string_equal(restoring_carry(t), "done");
    uploads_expect(w, root, RP_FILE_LIVE);
    uploads_expect(w, child, RP_FILE_LIVE);
}

/* However they are given. */
static void of_one_command_the_last_of_a_name_or_key_comes_back(void **state)
{
    struct world *w = *state;
    static const int64_t grace_ms[3] = { RP_DAY_MS, RP_DAY_MS, RP_DAY_MS };
    struct rp_reprieve_answer answers[5];
    struct rp_mark marks[5];
    struct three three = delete_three(w, grace_ms);
    for (size_t i = 0; i < 3; i++)
        ok(rp_mark_get(w->catalog->db, three.marks[i], &w->arena, &marks[i], &err));
    w->config.mode = RP_MODE_QUARANTINE;
    for (size_t i = 3; i < 5; i++) {
        put_and_move(w, "k", i == 3 ? "first" : "last");
        marks[i] = world_newest(w, "k");
    }
    ok(rp_reprieve_many(w->catalog, &w->store, marks, 5, "tester", answers, &err));
    uploads_expect(w, three.files[2], RP_FILE_LIVE);
    assert_int_equal(answers[0].error.code, RP_ENAMETAKEN);
    assert_int_equal(answers[1].error.code, RP_ENAMETAKEN);
    assert_string_equal(world_text(w, "k"), "last");
    assert_int_equal(answers[3].error.code, RP_EEXISTS);
    assert_int_equal(answers[4].what, RP_REPRIEVE_RETURNED);
}

static void end_the_sweep(struct restoring *t)
{
    struct world_steps *s = t->moving;
    world_steps_erase(t->w, t->catalog, s);
    ok(rp_purge_finish(t->catalog, &t->w->rules, &s->batch, &s->run, &err));
}

static void what_a_sweep_was_moving_when_it_began_comes_back_at_its_end(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(restoring_free) struct restoring *t = restoring_new(w, w->catalog);
    struct world_steps moving = { 0 };
    t->moving = &moving;
    t->between = end_the_sweep;
    w->config.mode = RP_MODE_QUARANTINE;
    restoring_put_due(w, "moving");
    world_steps_begin(w, w->catalog, "main", &moving);
    world_steps_claim(w, w->catalog, &moving);
    world_put(w, "waiting", "x");
    world_mark(w, "waiting", RP_DAY_MS);
    restoring_begin(t, &everything);
    assert_string_equal(restoring_carry(t), "done");
    assert_true(world_exists(w, "moving"));
    assert_int_equal(restoring_counted(w, t->run.id, "restored"), 1);
    assert_int_equal(restoring_counted(w, t->run.id, "returned"), 1);
    ok(rp_run_end(w->catalog, &moving.run, "done", &err));
    world_steps_done(&moving);
}

/* Room for four ids, and ten marks: looked for again as often as it takes, each found once. */
static void what_has_no_room_is_looked_for_again(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_restore_walk_done) struct rp_restore_walk walk;
    struct rp_restore_filter all = restoring_prefix(w, "");
    struct rp_marks page;
    size_t n = 0;
    int64_t last = INT64_MAX;
    world_put_many(w, 10, 1);
    world_mark_many(w, 10, RP_DAY_MS);
    rp_restore_walk_init(&walk, w->catalog->db, &all, &(struct rp_restore_cursor){ 0 });
    walk.ids_max = 4;
    ok(rp_marks_init(&page, 3, &w->arena, &err));
    for (ok(rp_restore_next(&walk, &page, &err)); page.n > 0; ok(rp_restore_next(&walk, &page, &err))) {
        for (size_t i = 0; i < page.n; i++, n++) {
            assert_true(page.at[i].id < last);
            last = page.at[i].id;
        }
        if (n <= 3) assert_int_equal(walk.found, 10);
    }
    assert_true(rp_restore_is_over(&walk.cursor));
    assert_int_equal(n, 10);
}

/* n files below this one: rows as so many inits would leave them. */
static void add_below(struct world *w, int64_t root, int first, int n)
{
    world_script(
        w,
        "INSERT INTO file (id, tenant_id, name, store_id, key, status, size_bytes, content_type, etag, version,"
        " modified_ms, mark_id, parent_id, was, url_ends_at, created_at, changed_at) "
        "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
        "SELECT i, tenant_id, 'n' || i, store_id, 'k' || i, 5, 1, '', '', '', 0, mark_id, id, 4, 0, 0, 0 "
        "FROM n, file WHERE id = %lld",
        first, first + n - 1, (long long)root);
}

/* Two families are above the limit of one load, and the child is asked about before its root. */
static void a_child_comes_back_with_its_root_where_the_batch_is_cut_between_them(void **state)
{
    struct world *w = *state;
    struct rp_reprieve_answer answers[3];
    struct rp_file_command c;
    int64_t other = uploads_live(w, "other", "x"), root = uploads_live(w, "root", "x");
    int64_t child = uploads_child(w, "child", root, 0);
    assert_int_equal(uploads_delete(w, other, RP_DAY_MS, &c), 0);
    assert_int_equal(uploads_delete(w, root, RP_DAY_MS, &c), 0);
    add_below(w, other, 1, 600);
    add_below(w, root, 2000, 600);
    struct rp_mark marks[3] = { uploads_mark(w, other), uploads_mark(w, root), uploads_mark(w, child) };
    ok(rp_reprieve_many(w->catalog, &w->store, marks, 3, "tester", answers, &err));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(answers[i].what, RP_REPRIEVE_DONE);
    uploads_expect(w, child, RP_FILE_LIVE);
    world_script(w, "DELETE FROM file WHERE id < 10000");
}

#define ON(engine, test)                                                                                               \
    {                                                                                                                  \
        .name = #test, .test_func = (test), .setup_func = world_set_up, .teardown_func = world_tear_down,              \
        .initial_state = (void *)(uintptr_t)(engine)                                                                   \
    }
#define BOTH(test) ON(WORLD_SQLITE, test), ON(WORLD_POSTGRES, test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(of_three_deleted_files_of_one_name_the_last_comes_back_by_prefix),
        BOTH(of_three_deleted_files_of_one_name_the_last_comes_back_by_reason),
        BOTH(of_three_deleted_files_of_one_name_the_last_comes_back_by_actor),
        BOTH(of_three_deleted_files_of_one_name_the_last_comes_back_by_time),
        BOTH(the_last_of_a_name_comes_back_from_quarantine_whenever_it_was_moved),
        BOTH(the_last_of_a_name_in_quarantine_comes_before_the_others_that_wait),
        BOTH(of_three_uploads_of_one_key_the_last_comes_back_from_quarantine),
        BOTH(an_upload_that_waits_comes_before_older_ones_of_its_key_in_quarantine),
        BOTH(the_last_of_a_name_comes_back_over_batches_and_a_stop),
        BOTH(a_family_is_not_torn_by_the_end_of_a_batch),
        BOTH(of_one_command_the_last_of_a_name_or_key_comes_back),
        BOTH(what_a_sweep_was_moving_when_it_began_comes_back_at_its_end),
        BOTH(what_has_no_room_is_looked_for_again),
        BOTH(a_child_comes_back_with_its_root_where_the_batch_is_cut_between_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
