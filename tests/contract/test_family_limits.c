/* SPDX-License-Identifier: Apache-2.0 */
/* How many files one delete takes along: those that it really takes, counted for each file that is
 * deleted or replaced. On both engines, with objects in memory and in a directory. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/uploads.h"

#define DAY RP_DAY_MS

/* The largest id of a row that add_below makes; those of real files are far above. */
#define MADE_MAX 100000

/* n files of one status below this one: rows as so many inits would leave them. */
static void add_below(struct world *w, int64_t root, int first, int n, enum rp_status status)
{
    world_script(
        w,
        "INSERT INTO file (id, tenant_id, name, store_id, key, status, size_bytes, content_type, etag, version,"
        " modified_ms, mark_id, parent_id, was, url_ends_at, created_at, changed_at) "
        "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
        "SELECT i, tenant_id, 'n' || i, store_id, 'k' || i, %d, 1, '', '', '', 0, mark_id, id, 4, 0, 0, 0 "
        "FROM n, file WHERE id = %lld",
        first, first + n - 1, (int)status, (long long)root);
}

static void expect_below(struct world *w, int64_t root, enum rp_status status, int64_t n)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM file WHERE id < %d AND parent_id = %lld AND status = %d", MADE_MAX,
             (long long)root, (int)status);
    assert_int_equal(world_number(w, sql), n);
}

/* They have no ledger and no objects: nothing else shall see them. */
static void forget_made(struct world *w)
{
    world_script(w, "DELETE FROM file WHERE id < %d", MADE_MAX);
}

/* ---- what counts ---- */

static void the_limit_is_on_what_a_delete_takes_along(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, root);
    add_below(w, root, 1, RP_FILE_FAMILY_MAX, RP_FILE_LIVE);
    assert_int_equal(uploads_delete(w, root, -1, &c), RP_ETOOBIG);
    assert_non_null(strstr(c.command.error.text, "1000"));
    assert_non_null(strstr(c.command.error.hint, "delete some"));
    uploads_expect(w, root, RP_FILE_LIVE); /* the refusal changes nothing */
    uploads_expect(w, child, RP_FILE_LIVE);
    world_script(w, "DELETE FROM file WHERE id = 1000");
    assert_int_equal(uploads_delete(w, root, -1, &c), 0);
    uploads_expect(w, child, RP_FILE_DELETED);
    expect_below(w, root, RP_FILE_DELETED, RP_FILE_FAMILY_MAX - 1);
    assert_int_equal(uploads_delete(w, root, 20 * DAY, &c), 0);
    assert_int_equal(uploads_restore(w, root, &c), 0);
    expect_below(w, root, RP_FILE_LIVE, RP_FILE_FAMILY_MAX - 1);
    forget_made(w);
}

static void what_has_ended_or_was_deleted_before_does_not_count(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    add_below(w, root, 1, 600, RP_FILE_PURGED);
    add_below(w, root, 1001, 600, RP_FILE_EXPIRED);
    add_below(w, root, 2001, 600, RP_FILE_DELETED);
    add_below(w, 1, 3001, 600, RP_FILE_EXPIRED); /* deeper */
    assert_int_equal(uploads_delete(w, root, -1, &c), 0);
    uploads_expect(w, child, RP_FILE_DELETED);
    assert_int_equal(uploads_delete(w, root, 20 * DAY, &c), 0);
    assert_int_equal(uploads_mark(w, child).due_at_ms, uploads_mark(w, root).due_at_ms);
    assert_int_equal(uploads_restore(w, root, &c), 0);
    uploads_expect(w, child, RP_FILE_LIVE);
    expect_below(w, root, RP_FILE_DELETED, 600);
    int64_t newer = uploads_live(w, "root", "y"); /* and it can be replaced */
    uploads_expect(w, root, RP_FILE_DELETED);
    uploads_expect(w, child, RP_FILE_DELETED);
    uploads_expect(w, newer, RP_FILE_LIVE);
    forget_made(w);
}

/* ---- whom it refuses ---- */

static void of_a_round_only_those_above_the_limit_are_refused(void **state)
{
    struct world *w = *state;
    const int below[] = { RP_FILE_FAMILY_MAX + 1, 600, 600 };
    const char *const names[] = { "large", "one", "other" };
    struct rp_file_command c[3];
    struct rp_command *commands[3];
    for (int i = 0; i < 3; i++) {
        int64_t root = uploads_live(w, names[i], "x");
        add_below(w, root, 1 + 2000 * i, below[i], RP_FILE_LIVE);
        c[i] = uploads_command(w, &rp_verb_delete, root);
        commands[i] = &c[i].command;
    }
    int64_t before = world_number(w, "SELECT max(seq) FROM audit");
    assert_int_equal(rp_round_run(w->catalog, commands, 3, true), 0);
    assert_int_equal(c[0].command.error.code, RP_ETOOBIG);
    assert_false(c[0].command.failed); /* decided, beside the others */
    uploads_expect(w, c[0].file_id, RP_FILE_LIVE);
    for (int i = 1; i < 3; i++) {
        world_ok(c[i].command.error.code, &c[i].command.error, __FILE__, __LINE__);
        uploads_expect(w, c[i].file_id, RP_FILE_DELETED);
        expect_below(w, c[i].file_id, RP_FILE_DELETED, 600);
    }
    assert_int_equal(world_number(w, "SELECT max(seq) FROM audit") - before, 2 * 601);
    forget_made(w);
}

/* More than memory is set aside for, in one round: each is run by itself. */
static void one_family_beyond_all_bounds_harms_no_neighbour(void **state)
{
    struct world *w = *state;
    struct rp_file_command c[2];
    int64_t huge = uploads_live(w, "huge", "x"), small = uploads_live(w, "small", "x");
    int64_t child = uploads_child(w, "child", small, 0);
    add_below(w, huge, 1, RP_FILE_FAMILIES_MAX + 1, RP_FILE_LIVE);
    c[0] = uploads_command(w, &rp_verb_delete, huge);
    c[1] = uploads_command(w, &rp_verb_delete, small);
    (void)rp_round_run(w->catalog, (struct rp_command *[]){ &c[0].command, &c[1].command }, 2, true);
    assert_int_equal(c[0].command.error.code, RP_ETOOBIG);
    uploads_expect(w, huge, RP_FILE_LIVE);
    uploads_expect(w, small, RP_FILE_DELETED);
    uploads_expect(w, child, RP_FILE_DELETED);
    forget_made(w);
}

/* ---- replaced ---- */

static int64_t put_member(struct world *w, int64_t txn, int i, int64_t replaces_id)
{
    char name[32];
    snprintf(name, sizeof name, "file %d", i);
    return uploads_member(w, txn, name, "y", replaces_id);
}

static void a_commit_has_the_limit_for_each_that_it_replaces(void **state)
{
    struct world *w = *state;
    struct rp_txn_command t;
    int64_t old[3], txn = uploads_txn_begin(w);
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "file %d", i);
        old[i] = uploads_live(w, name, "x");
        add_below(w, old[i], 1 + 2000 * i, 600, RP_FILE_LIVE);
    }
    (void)put_member(w, txn, 0, 0); /* two by their names, one by its id */
    (void)put_member(w, txn, 1, 0);
    (void)put_member(w, txn, 7, old[2]);
    add_below(w, old[1], 10001, 401, RP_FILE_LIVE);
    assert_int_equal(uploads_commit(w, txn, &t), RP_ETOOBIG);
    assert_false(t.command.failed);
    for (int i = 0; i < 3; i++)
        uploads_expect(w, old[i], RP_FILE_LIVE);
    world_script(w, "DELETE FROM file WHERE id = 10001");
    assert_int_equal(uploads_commit(w, txn, &t), 0);
    for (int i = 0; i < 3; i++) {
        uploads_expect(w, old[i], RP_FILE_DELETED);
        expect_below(w, old[i], RP_FILE_LIVE, 0);
    }
    forget_made(w);
}

static void what_one_commit_takes_along_altogether_is_bounded(void **state)
{
    struct world *w = *state;
    struct rp_txn_command t;
    int64_t old[11], txn = uploads_txn_begin(w);
    for (int i = 0; i < 11; i++) {
        char name[32];
        snprintf(name, sizeof name, "file %d", i);
        old[i] = uploads_live(w, name, "x");
        (void)put_member(w, txn, i, 0);
        add_below(w, old[i], 1 + 1000 * i, i < 10 ? 1000 : 1, RP_FILE_LIVE);
    }
    assert_int_equal(uploads_commit(w, txn, &t), RP_ETOOBIG);
    uploads_expect(w, old[0], RP_FILE_LIVE);
    world_script(w, "DELETE FROM file WHERE id = 10001");
    assert_int_equal(uploads_commit(w, txn, &t), 0);
    for (int i = 0; i < 11; i++) {
        uploads_expect(w, old[i], RP_FILE_DELETED);
        expect_below(w, old[i], RP_FILE_DELETED, i < 10 ? 1000 : 0);
    }
    forget_made(w);
}

static struct rp_file_command confirm_of(struct world *w, int64_t id)
{
    struct rp_error err = { 0 };
    struct rp_file file = uploads_file(w, id);
    struct rp_file_command c = uploads_command(w, &rp_verb_confirm, id);
    ok(rp_file_see(&file, &w->store, NULL, &c.seen, &err));
    return c;
}

static void a_confirm_has_it_for_each_that_it_replaces(void **state)
{
    struct world *w = *state;
    const char *const names[] = { "large", "one", "other" };
    const int below[] = { RP_FILE_FAMILY_MAX + 1, 600, 600 };
    struct rp_file_command c[3];
    struct rp_command *commands[3];
    int64_t old[3];
    for (int i = 0; i < 3; i++) {
        old[i] = uploads_live(w, names[i], "x");
        add_below(w, old[i], 1 + 2000 * i, below[i], RP_FILE_LIVE);
        int64_t id = uploads_begin(w, names[i], "y");
        uploads_put(w, id, "y");
        c[i] = confirm_of(w, id);
        commands[i] = &c[i].command;
    }
    assert_int_equal(rp_round_run(w->catalog, commands, 3, true), 0);
    assert_int_equal(c[0].command.error.code, RP_ETOOBIG);
    assert_false(c[0].command.failed);
    uploads_expect(w, old[0], RP_FILE_LIVE);
    uploads_expect(w, c[0].file_id, RP_FILE_PENDING);
    for (int i = 1; i < 3; i++) {
        world_ok(c[i].command.error.code, &c[i].command.error, __FILE__, __LINE__);
        uploads_expect(w, old[i], RP_FILE_DELETED);
        uploads_expect(w, c[i].file_id, RP_FILE_LIVE);
        expect_below(w, old[i], RP_FILE_DELETED, 600);
    }
    forget_made(w);
}

/* The replaced file is loaded already, as the parent of another upload of the round: what belongs
 * to it goes with it all the same. */
static void what_belongs_to_the_replaced_parent_of_another_goes_with_it(void **state)
{
    struct world *w = *state;
    struct rp_file_command c[2];
    int64_t old = uploads_live(w, "photo", "x"), thumb = uploads_child(w, "thumb", 0, old);
    struct rp_init late = uploads_init(w, "late", 5);
    late.parent_id = old;
    assert_int_equal(rp_command_run(w->catalog, &late.command), 0);
    int64_t newer = uploads_begin(w, "photo", "y");
    uploads_put(w, late.file_id, "child");
    uploads_put(w, newer, "y");
    c[0] = confirm_of(w, late.file_id);
    c[1] = confirm_of(w, newer);
    assert_int_equal(rp_round_run(w->catalog, (struct rp_command *[]){ &c[0].command, &c[1].command }, 2, true), 0);
    uploads_expect(w, newer, RP_FILE_LIVE);
    uploads_expect(w, old, RP_FILE_DELETED);
    uploads_expect(w, late.file_id, RP_FILE_DELETED);
    uploads_expect(w, thumb, RP_FILE_DELETED);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(the_limit_is_on_what_a_delete_takes_along),
        ALL(what_has_ended_or_was_deleted_before_does_not_count),
        ALL(of_a_round_only_those_above_the_limit_are_refused),
        ALL(one_family_beyond_all_bounds_harms_no_neighbour),
        ALL(a_commit_has_the_limit_for_each_that_it_replaces),
        ALL(what_one_commit_takes_along_altogether_is_bounded),
        ALL(a_confirm_has_it_for_each_that_it_replaces),
        ALL(what_belongs_to_the_replaced_parent_of_another_goes_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
