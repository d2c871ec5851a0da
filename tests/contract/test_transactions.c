/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions over files: all of them or none (TXN-ATOMIC). On both engines, with objects in
 * memory and in a directory. Needs PostgreSQL: run under tests/lib/with-postgres. What a crash
 * between two steps leaves is in tests/fault and tests/crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/uploads.h"

#define HOUR RP_HOUR_MS
#define DAY  RP_DAY_MS

static void commit(struct world *w, int64_t txn, struct rp_txn_command *c)
{
    world_ok(uploads_commit(w, txn, c), &c->command.error, __FILE__, __LINE__);
}

static int abort_txn(struct world *w, int64_t txn, struct rp_txn_command *c)
{
    *c = uploads_txn(w, &rp_verb_txn_abort, txn);
    return rp_command_run(w->catalog, &c->command);
}

static int add(struct world *w, int64_t txn, const char *name, struct rp_init *c)
{
    *c = uploads_init(w, name, 1);
    c->txn_id = txn;
    return rp_command_run(w->catalog, &c->command);
}

static void test_M7_a_member_is_born_marked_for_the_rollback(void **state)
{
    struct world *w = *state;
    struct rp_txn_command begin = uploads_txn(w, &rp_verb_txn_begin, 0);
    struct rp_file_command confirm;
    struct rp_init c;
    begin.timeout_ms = 10 * RP_MINUTE_MS;
    assert_int_equal(rp_command_run(w->catalog, &begin.command), 0);
    assert_int_equal(begin.txn.ends_at_ms - begin.txn.created_at_ms, 10 * RP_MINUTE_MS);
    assert_string_equal(rp_txn_state_name(&begin.txn, begin.txn.created_at_ms), "open");
    assert_string_equal(rp_txn_state_name(&begin.txn, begin.txn.ends_at_ms), "expired");
    assert_int_equal(add(w, begin.txn.id, "a", &c), 0);
    struct rp_mark m = uploads_mark(w, c.file_id);
    assert_string_equal(m.reason, "rollback");
    assert_int_equal(m.due_at_ms, begin.txn.ends_at_ms + 5 * DAY);
    assert_int_equal(c.url_ends_at_ms, begin.txn.ends_at_ms); /* an upload has no use after the end */
    uploads_put(w, c.file_id, "x");
    assert_int_equal(uploads_confirm(w, c.file_id, NULL, &confirm), RP_EINTXN);
    uploads_expect(w, c.file_id, RP_FILE_PENDING);
    uploads_expect_quota(w, 0, 1, 1);
}

static void test_M7_a_commit_makes_all_members_live_and_marks_what_they_replace(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    int64_t by_id = uploads_live(w, "old name", "old"), by_name = uploads_live(w, "b", "old");
    int64_t thumb = uploads_child(w, "thumb", 0, by_id), other = uploads_live(w, "other", "x");
    int64_t txn = uploads_txn_begin(w);
    int64_t a = uploads_member(w, txn, "a", "aa", by_id), b = uploads_member(w, txn, "b", "bb", 0);
    uploads_expect(w, by_id, RP_FILE_LIVE); /* nothing is seen of it yet */
    uploads_expect(w, by_name, RP_FILE_LIVE);
    commit(w, txn, &c);
    assert_true(c.changed);
    assert_int_equal(c.n_members, 2);
    assert_int_equal(c.txn.state, RP_TXN_COMMITTED);
    assert_int_equal(c.txn.members, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(c.members[i].file.status, RP_FILE_LIVE);
    uploads_expect(w, a, RP_FILE_LIVE);
    uploads_expect(w, b, RP_FILE_LIVE);
    uploads_expect(w, other, RP_FILE_LIVE);
    const int64_t replaced[] = { by_id, by_name, thumb };
    for (size_t i = 0; i < 3; i++) {
        uploads_expect(w, replaced[i], RP_FILE_DELETED);
        assert_string_equal(uploads_mark(w, replaced[i]).reason, "replaced");
        assert_int_equal(uploads_mark(w, replaced[i]).due_at_ms - uploads_mark(w, replaced[i]).marked_at_ms, 5 * DAY);
    }
    commit(w, txn, &c); /* again: the same answer */
    assert_false(c.changed);
    assert_int_equal(c.n_members, 2);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'transaction.committed'"), 1);
    world_pass(w, 40 * DAY);
    (void)world_sweep(w);
    uploads_expect(w, a, RP_FILE_LIVE);
    uploads_expect(w, by_name, RP_FILE_PURGED);
    commit(w, txn, &c); /* and long after its time is over */
    uploads_expect_quota(w, 5, 0, 0);
}

static void test_TXN_ATOMIC_one_member_that_is_not_ready_holds_back_all(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    struct rp_init missing, another;
    int64_t old = uploads_live(w, "a", "old"), txn = uploads_txn_begin(w);
    int64_t a = uploads_member(w, txn, "a", "aa", 0), short_one = uploads_member(w, txn, "s", "abc", 0);
    assert_int_equal(add(w, txn, "m1", &missing), 0);
    assert_int_equal(add(w, txn, "m2", &another), 0);
    uploads_put(w, short_one, "ab");
    assert_int_equal(uploads_commit(w, txn, &c), RP_ESIZE);
    assert_int_equal(c.n_missing, 3);
    assert_int_equal(c.missing[0], short_one);
    assert_int_equal(c.missing[1], missing.file_id);
    assert_int_equal(c.missing[2], another.file_id);
    uploads_put(w, short_one, "abc");
    assert_int_equal(uploads_commit(w, txn, &c), RP_ENOTUPLOADED);
    assert_int_equal(c.n_missing, 2);
    uploads_expect(w, a, RP_FILE_PENDING);
    uploads_expect(w, old, RP_FILE_LIVE);
    uploads_expect_quota(w, 3, 7, 4);
    world_check(w);
    uploads_put(w, missing.file_id, "1");
    uploads_put(w, another.file_id, "1");
    commit(w, txn, &c);
    uploads_expect(w, a, RP_FILE_LIVE);
    uploads_expect(w, old, RP_FILE_DELETED);
}

static void test_a_wrong_checksum_of_one_holds_back_all(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    uint8_t digest[RP_DIGEST_BYTES];
    int64_t txn = uploads_txn_begin(w), a = uploads_member(w, txn, "a", "aa", 0);
    struct rp_init sure = uploads_init(w, "sure", 2);
    uploads_digest(w, "ok", digest);
    sure.txn_id = txn;
    sure.checksum = digest;
    assert_int_equal(rp_command_run(w->catalog, &sure.command), 0);
    uploads_put(w, sure.file_id, "no");
    assert_int_equal(uploads_commit(w, txn, &c), RP_ECHECKSUM);
    assert_int_equal(c.n_missing, 1);
    uploads_expect(w, a, RP_FILE_PENDING);
    uploads_put(w, sure.file_id, "ok");
    commit(w, txn, &c);
}

static void test_M7_the_commit_writes_the_metadata(void **state)
{
    struct world *w = *state;
    int64_t txn = uploads_txn_begin(w), a = uploads_member(w, txn, "a", "a", 0),
            b = uploads_member(w, txn, "b", "b", 0);
    int64_t outside = uploads_live(w, "outside", "x");
    struct rp_txn_metadata wrong[] = { { a, "{\"n\":1}" }, { outside, "{}" } }, right[] = { { a, "{\"n\":1}" } };
    struct rp_txn_command c = uploads_txn(w, &rp_verb_txn_commit, txn);
    uploads_see(w, &c);
    c.metadata = wrong;
    c.n_metadata = 2;
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    uploads_expect(w, a, RP_FILE_PENDING);
    c = uploads_txn(w, &rp_verb_txn_commit, txn);
    uploads_see(w, &c);
    c.metadata = right;
    c.n_metadata = 1;
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    assert_string_equal(uploads_file(w, a).metadata, "{\"n\":1}");
    assert_null(uploads_file(w, b).metadata);
    assert_null(uploads_file(w, outside).metadata);
}

static void test_a_member_that_came_during_the_commit_is_not_left_behind(void **state)
{
    struct world *w = *state;
    int64_t txn = uploads_txn_begin(w), a = uploads_member(w, txn, "a", "a", 0);
    struct rp_txn_command c = uploads_txn(w, &rp_verb_txn_commit, txn);
    uploads_see(w, &c);
    int64_t late = uploads_member(w, txn, "late", "late", 0);
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ECHANGED);
    assert_int_equal(c.n_missing, 1);
    assert_int_equal(c.missing[0], late);
    uploads_expect(w, a, RP_FILE_PENDING);
    struct rp_init too_late;
    commit(w, txn, &c);
    uploads_expect(w, late, RP_FILE_LIVE);
    assert_int_equal(add(w, txn, "never", &too_late), RP_ENOTOPEN);
}

static void test_M7_an_abort_leaves_the_old_ones_and_the_new_ones_go_by_themselves(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    struct rp_file_command confirmed;
    struct rp_init more;
    int64_t old = uploads_live(w, "a", "old"), txn = uploads_txn_begin(w);
    int64_t a = uploads_member(w, txn, "a", "aa", 0), b = uploads_member(w, txn, "b", "bb", old);
    const char *key = uploads_file(w, a).key;
    assert_int_equal(abort_txn(w, txn, &c), 0);
    assert_true(c.changed);
    assert_int_equal(abort_txn(w, txn, &c), 0);
    assert_false(c.changed);
    assert_int_equal(uploads_commit(w, txn, &c), RP_ENOTOPEN);
    assert_non_null(strstr(c.command.error.hint, "begin a new one"));
    assert_int_equal(uploads_confirm(w, a, NULL, &confirmed), RP_EINTXN);
    assert_non_null(strstr(confirmed.command.error.hint, "after an abort, begin a new upload"));
    assert_int_equal(add(w, txn, "c", &more), RP_ENOTOPEN);
    world_pass(w, 5 * DAY);
    (void)world_sweep(w);
    uploads_expect(w, a, RP_FILE_PENDING); /* the rollback's grace counts from the transaction's end */
    world_pass(w, 2 * HOUR);
    (void)world_sweep(w);
    uploads_expect(w, a, RP_FILE_EXPIRED);
    uploads_expect(w, b, RP_FILE_EXPIRED);
    uploads_expect(w, old, RP_FILE_LIVE);
    assert_false(world_exists(w, key));
    uploads_expect_quota(w, 3, 0, 0);
}

static void test_M7_after_its_time_a_transaction_is_never_committed(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    struct rp_init more;
    int64_t old = uploads_live(w, "a", "old"), txn = uploads_txn_begin(w);
    int64_t a = uploads_member(w, txn, "a", "aa", 0);
    world_pass(w, HOUR + RP_MINUTE_MS);
    assert_int_equal(uploads_commit(w, txn, &c), RP_EEXPIRED);
    assert_int_equal(add(w, txn, "b", &more), RP_EEXPIRED);
    uploads_expect(w, a, RP_FILE_PENDING);
    assert_int_equal(abort_txn(w, txn, &c), 0);
    world_pass(w, 6 * DAY);
    (void)world_sweep(w);
    uploads_expect(w, a, RP_FILE_EXPIRED);
    uploads_expect(w, old, RP_FILE_LIVE);
}

static void test_what_a_transaction_refuses(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    int64_t txn = uploads_txn_begin(w), a = uploads_member(w, txn, "a", "a", 0);
    struct rp_init theirs = uploads_init(w, "t", 1);
    theirs.txn_id = txn;
    theirs.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(rp_command_run(w->catalog, &theirs.command), RP_ENOTFOUND);
    struct rp_init self = uploads_init(w, "s", 1);
    self.txn_id = txn;
    self.replaces_id = a;
    assert_int_equal(rp_command_run(w->catalog, &self.command), RP_EINVAL);
    assert_int_equal(uploads_commit(w, 4711, &c), RP_ENOTFOUND);
    assert_int_equal(abort_txn(w, 4711, &c), RP_ENOTFOUND);
    c = uploads_txn(w, &rp_verb_txn_commit, txn);
    c.command.tenant_id = uploads_tenant(w, "other");
    uploads_see(w, &c);
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    c = uploads_txn(w, &rp_verb_txn_abort, txn);
    c.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    commit(w, txn, &c);
    assert_int_equal(abort_txn(w, txn, &c), RP_ENOTOPEN);
    uploads_expect(w, a, RP_FILE_LIVE);
}

/* Whatever would have a member go with what the transaction replaces is refused before anything
 * changes. */
static void test_TXN_ATOMIC_no_member_goes_with_what_is_replaced(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    int64_t old = uploads_live(w, "old", "x"), child = uploads_child(w, "child", old, 0);
    int64_t txn = uploads_txn_begin(w), a = uploads_member(w, txn, "new", "x", old);
    struct rp_init member = uploads_init(w, "m", 1);
    member.txn_id = txn;
    member.source_id = child;
    assert_int_equal(rp_command_run(w->catalog, &member.command), 0);
    uploads_put(w, member.file_id, "x");
    assert_int_equal(uploads_commit(w, txn, &c), RP_EOWNERGONE);
    uploads_expect(w, old, RP_FILE_LIVE);
    uploads_expect(w, a, RP_FILE_PENDING);
    int64_t twins = uploads_txn_begin(w);
    (void)uploads_member(w, twins, "twin", "1", 0);
    int64_t second = uploads_member(w, twins, "twin", "2", 0);
    assert_int_equal(uploads_commit(w, twins, &c), RP_ENAMETAKEN);
    assert_int_equal(c.n_missing, 1);
    assert_int_equal(c.missing[0], second);
    uploads_expect(w, second, RP_FILE_PENDING);
}

static void test_a_replaced_file_that_is_gone_meanwhile_is_no_obstacle(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    struct rp_file_command d;
    int64_t old = uploads_live(w, "old", "x"), txn = uploads_txn_begin(w);
    int64_t a = uploads_member(w, txn, "a", "x", old), b = uploads_member(w, txn, "b", "x", old);
    assert_int_equal(uploads_delete(w, old, 20 * DAY, &d), 0);
    int64_t due = uploads_mark(w, old).due_at_ms;
    commit(w, txn, &c);
    uploads_expect(w, a, RP_FILE_LIVE);
    uploads_expect(w, b, RP_FILE_LIVE);
    assert_int_equal(uploads_mark(w, old).due_at_ms, due); /* its own promise stands */
}

static void test_an_empty_transaction_commits(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    int64_t txn = uploads_txn_begin(w);
    commit(w, txn, &c);
    assert_int_equal(c.n_members, 0);
}

/* A thousand members, each replacing one by name, all belonging to the first, and to the one
 * before. */
static void test_M7_a_thousand_members(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    struct rp_init extra;
    int64_t old = uploads_live(w, "n7", "old"), txn = uploads_txn_begin(w), first = 0, before = 0;
    for (int i = 0; i < RP_TXN_MEMBERS_MAX; i++) {
        struct rp_init member = uploads_init(w, rp_arena_fmt(&w->arena, "n%d", i), 1);
        member.txn_id = txn;
        member.parent_id = first;
        member.source_id = before;
        world_ok(rp_command_run(w->catalog, &member.command), &member.command.error, __FILE__, __LINE__);
        world_put(w, member.key, "x");
        before = member.file_id;
        if (first == 0) first = before;
    }
    assert_int_equal(add(w, txn, "one too many", &extra), RP_ETOOBIG);
    commit(w, txn, &c);
    assert_int_equal(c.n_members, RP_TXN_MEMBERS_MAX);
    assert_int_equal(world_number(w, "SELECT count(*) FROM file WHERE status = 3"), RP_TXN_MEMBERS_MAX);
    uploads_expect(w, old, RP_FILE_DELETED);
    uploads_expect_quota(w, RP_TXN_MEMBERS_MAX + 3, 0, 0);
    struct rp_file_command d;
    world_ok(uploads_delete(w, first, -1, &d), &d.command.error, __FILE__, __LINE__);
    world_ok(uploads_restore(w, first, &d), &d.command.error, __FILE__, __LINE__);
    assert_int_equal(world_number(w, "SELECT count(*) FROM file WHERE status = 3"), RP_TXN_MEMBERS_MAX);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
#define BOTH(fn) ON(0, "sqlite, memory", fn), ON(1, "postgres, memory", fn)
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_M7_a_member_is_born_marked_for_the_rollback),
        ALL(test_M7_a_commit_makes_all_members_live_and_marks_what_they_replace),
        ALL(test_TXN_ATOMIC_one_member_that_is_not_ready_holds_back_all),
        ALL(test_a_wrong_checksum_of_one_holds_back_all),
        ALL(test_M7_the_commit_writes_the_metadata),
        ALL(test_a_member_that_came_during_the_commit_is_not_left_behind),
        ALL(test_M7_an_abort_leaves_the_old_ones_and_the_new_ones_go_by_themselves),
        ALL(test_M7_after_its_time_a_transaction_is_never_committed),
        ALL(test_what_a_transaction_refuses),
        ALL(test_TXN_ATOMIC_no_member_goes_with_what_is_replaced),
        ALL(test_a_replaced_file_that_is_gone_meanwhile_is_no_obstacle),
        ALL(test_an_empty_transaction_commits),
        BOTH(test_M7_a_thousand_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
