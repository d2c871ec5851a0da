/* SPDX-License-Identifier: Apache-2.0 */
/* Files: delete and restore, families, holds, quarantine, and what the verbs over marks do with the
 * mark of a file. On both engines, with objects in memory and in a directory. Needs PostgreSQL: run
 * under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hold.h"
#include "core/recover/recover.h"
#include "core/restore/restore.h"
#include "core/subject/quarantine.h"
#include "lib/ask.h"
#include "lib/uploads.h"

#define HOUR RP_HOUR_MS
#define DAY  RP_DAY_MS

static struct rp_error err;

static int64_t events(struct world *w, const char *event)
{
    char sql[120];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM audit WHERE event = '%s'", event);
    return world_number(w, sql);
}

static void delete (struct world *w, int64_t id)
{
    struct rp_file_command c;
    world_ok(uploads_delete(w, id, -1, &c), &c.command.error, __FILE__, __LINE__);
}

static void restore(struct world *w, int64_t id)
{
    struct rp_file_command c;
    world_ok(uploads_restore(w, id, &c), &c.command.error, __FILE__, __LINE__);
}

/* ---- delete ---- */

static void test_a_deleted_file_can_be_restored_until_it_is_purged(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_live(w, "a", "hello");
    const char *key = uploads_file(w, id).key;
    assert_int_equal(uploads_delete(w, id, -1, &c), 0);
    assert_non_null(c.event);
    assert_int_equal(c.answer.file.status, RP_FILE_DELETED);
    assert_int_equal(c.answer.due_at_ms - c.answer.marked_at_ms, 5 * DAY);
    assert_int_equal(c.answer.mark_id, uploads_mark(w, id).id);
    uploads_expect_quota(w, 5, 0, 0);
    world_pass(w, 4 * DAY);
    world_swept(w, 0);
    assert_int_equal(uploads_restore(w, id, &c), 0);
    assert_non_null(c.event);
    assert_int_equal(c.answer.mark_id, 0);
    uploads_expect(w, id, RP_FILE_LIVE);
    assert_int_equal(uploads_restore(w, id, &c), 0); /* again: the same answer */
    assert_null(c.event);
    world_pass(w, 40 * DAY);
    world_swept(w, 0);
    assert_string_equal(world_text(w, key), "hello");
    delete (w, id);
    world_pass(w, 6 * DAY);
    world_swept(w, 1);
    uploads_expect(w, id, RP_FILE_PURGED);
    uploads_expect_quota(w, 0, 0, 0);
    assert_false(world_exists(w, key));
    assert_int_equal(uploads_restore(w, id, &c), RP_ETOOLATE);
    assert_int_equal(uploads_delete(w, id, -1, &c), 0);
    assert_null(c.event); /* again: the mark that it went under */
    assert_int_equal(c.answer.mark_id, uploads_file(w, id).mark_id);
    assert_int_equal(c.answer.due_at_ms - c.answer.marked_at_ms, 5 * DAY);
    assert_int_equal(events(w, "file.purged"), 1);
    assert_int_equal(world_count(w, RP_MARKED), 0); /* a confirmed file has no second mark */
}

static void test_M5_deleting_again_is_the_same_mark_and_only_a_later_time_counts(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_live(w, "a", "hello");
    assert_int_equal(uploads_delete(w, id, 5 * DAY, &c), 0);
    int64_t mark = c.answer.mark_id, due = c.answer.due_at_ms;
    assert_int_equal(uploads_delete(w, id, -1, &c), 0);
    assert_null(c.event);
    assert_int_equal(c.answer.mark_id, mark);
    assert_int_equal(c.answer.due_at_ms, due);
    assert_int_equal(uploads_delete(w, id, 7 * DAY, &c), 0);
    assert_non_null(c.event);
    assert_int_equal(c.answer.mark_id, mark);
    assert_true(c.answer.due_at_ms > due);
    assert_int_equal(uploads_mark(w, id).due_at_ms, c.answer.due_at_ms);
    assert_int_equal(events(w, "mark.extended"), 1);
    assert_int_equal(uploads_delete(w, id, 6 * DAY, &c), RP_EMARKED);
    c = uploads_command(w, &rp_verb_delete, id);
    c.at_ms = uploads_mark(w, id).due_at_ms + DAY;
    c.reason = "another reason";
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    assert_string_equal(uploads_mark(w, id).reason, "another reason");
    assert_string_equal(c.answer.mark_reason, "another reason");
    assert_int_equal(uploads_mark(w, id).due_at_ms, c.at_ms);
    world_pass(w, 7 * DAY + HOUR);
    world_swept(w, 0);
    world_pass(w, DAY);
    world_swept(w, 1);
}

static void test_a_file_says_when_it_was_confirmed_and_since_when_it_is_deleted(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_begin(w, "a", "hello"), never = uploads_begin(w, "b", "x");
    assert_int_equal(uploads_file(w, id).confirmed_at_ms, 0);
    uploads_put(w, id, "hello");
    assert_int_equal(uploads_confirm(w, id, NULL, &c), 0);
    struct rp_file live = uploads_file(w, id);
    assert_true(live.confirmed_at_ms >= live.created_at_ms && live.deleted_at_ms == 0);
    assert_int_equal(live.confirmed_at_ms, live.changed_at_ms);
    assert_int_equal(uploads_delete(w, id, 5 * DAY, &c), 0);
    assert_int_equal(uploads_file(w, id).deleted_at_ms, uploads_mark(w, id).marked_at_ms);
    assert_int_equal(uploads_file(w, id).confirmed_at_ms, live.confirmed_at_ms);
    assert_int_equal(
        world_number(w, "SELECT count(*) FROM audit WHERE event = 'file.deleted' AND details LIKE '%\"name\":\"a\"%' "
                        "AND details LIKE '%\"event_time\":\"20%Z\"%'"),
        1);
    restore(w, id);
    assert_int_equal(uploads_file(w, id).deleted_at_ms, 0);
    assert_int_equal(uploads_delete(w, never, -1, &c), 0);
    assert_true(uploads_file(w, never).deleted_at_ms > 0 && uploads_file(w, never).confirmed_at_ms == 0);
}

static void test_what_delete_refuses(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    char reason[RP_REASON_MAX + 2];
    int64_t id = uploads_live(w, "a", "hello");
    w->config.allow_any_grace = false;
    assert_int_equal(uploads_delete(w, id, HOUR, &c), RP_EGRACE);
    assert_int_equal(uploads_delete(w, id, 31 * DAY, &c), RP_EGRACE);
    assert_int_equal(uploads_delete(w, 4711, -1, &c), RP_ENOTFOUND);
    c = uploads_command(w, &rp_verb_delete, id);
    c.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    c = uploads_command(w, &rp_verb_file_restore, id);
    c.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    memset(reason, 'x', sizeof reason);
    reason[sizeof reason - 1] = 0;
    c = uploads_command(w, &rp_verb_delete, id);
    c.reason = reason;
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_EINVAL);
    c.reason = "\xff";
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_EINVAL);
    uploads_expect(w, id, RP_FILE_LIVE);
    c = uploads_command(w, &rp_verb_delete, id);
    c.command.tenant_id = 0; /* an admin's command is for any tenant's file */
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
}

static void test_a_pending_upload_that_is_deleted_keeps_its_mark_and_is_refunded_once(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_begin(w, "a", "hello");
    int64_t mark = uploads_mark(w, id).id;
    uploads_put(w, id, "hello");
    assert_int_equal(uploads_delete(w, id, DAY, &c), 0);
    assert_int_equal(c.answer.mark_id, mark);
    uploads_expect(w, id, RP_FILE_DELETED);
    uploads_expect_quota(w, 0, 5, 1);
    assert_int_equal(uploads_restore(w, id, &c), RP_ENOTMARKED);
    world_pass(w, 2 * HOUR);
    world_swept(w, 1);
    uploads_expect(w, id, RP_FILE_PURGED);
    uploads_expect_quota(w, 0, 0, 0);
    assert_false(world_exists(w, uploads_file(w, id).key));
    uploads_put(w, id, "late!");
    world_pass(w, 26 * HOUR);
    world_swept(w, 1);
    assert_false(world_exists(w, uploads_file(w, id).key));
    uploads_expect_quota(w, 0, 0, 0);
}

static void test_a_reason_that_sounds_like_ours_is_only_a_reason(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_live(w, "a", "hello");
    struct rp_file_command c = uploads_command(w, &rp_verb_delete, id);
    c.reason = RP_REASON_ABANDONED;
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    world_pass(w, 6 * DAY);
    world_swept(w, 1);
    uploads_expect(w, id, RP_FILE_PURGED);
    uploads_expect_quota(w, 0, 0, 0);
    assert_int_equal(world_count(w, RP_MARKED), 0);
}

/* ---- families ---- */

static void test_F4_a_delete_takes_along_what_belongs_to_it_and_a_restore_brings_it_back(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "xx"), other = uploads_live(w, "other", "x");
    int64_t child = uploads_child(w, "child", root, 0), thumb = uploads_child(w, "thumb", 0, child);
    int64_t diamond = uploads_child(w, "diamond", child, thumb);
    struct rp_init pending = uploads_init(w, "pending", 3);
    pending.parent_id = thumb;
    assert_int_equal(rp_command_run(w->catalog, &pending.command), 0);
    const int64_t family[] = { root, child, thumb, diamond };
    delete (w, root);
    for (size_t i = 0; i < 4; i++) {
        uploads_expect(w, family[i], RP_FILE_DELETED);
        assert_int_equal(uploads_file(w, family[i]).with_id, root);
        assert_int_equal(uploads_mark(w, family[i]).due_at_ms, uploads_mark(w, root).due_at_ms);
    }
    uploads_expect(w, pending.file_id, RP_FILE_DELETED);
    uploads_expect(w, other, RP_FILE_LIVE);
    world_check(w);
    assert_int_equal(uploads_restore(w, child, &c), RP_EOWNERGONE);
    assert_int_equal(uploads_restore(w, diamond, &c), RP_EOWNERGONE);
    restore(w, root);
    for (size_t i = 0; i < 4; i++)
        uploads_expect(w, family[i], RP_FILE_LIVE);
    uploads_expect(w, pending.file_id, RP_FILE_DELETED); /* its upload never ended */
    assert_int_equal(events(w, "file.restored"), 4);
    delete (w, root);
    world_pass(w, 6 * DAY);
    (void)world_sweep(w);
    for (size_t i = 0; i < 4; i++)
        uploads_expect(w, family[i], RP_FILE_PURGED);
    uploads_expect_quota(w, 1, 0, 0);
}

static void test_F4_what_was_deleted_by_itself_stays_deleted(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    int64_t grandchild = uploads_child(w, "grandchild", child, 0);
    delete (w, child);
    assert_int_equal(uploads_file(w, grandchild).with_id, child);
    delete (w, root);
    assert_int_equal(uploads_restore(w, child, &c), RP_EOWNERGONE); /* what it belongs to is gone */
    uploads_expect(w, child, RP_FILE_DELETED);
    restore(w, root);
    uploads_expect(w, child, RP_FILE_DELETED);
    uploads_expect(w, grandchild, RP_FILE_DELETED);
    assert_int_equal(uploads_restore(w, grandchild, &c), RP_EOWNERGONE);
    restore(w, child);
    uploads_expect(w, child, RP_FILE_LIVE);
    uploads_expect(w, grandchild, RP_FILE_LIVE);
}

/* A derivative of one deleted file and child of another: it comes back with the last of them. */
static void test_F4_what_belongs_to_two_waits_for_both(void **state)
{
    struct world *w = *state;
    int64_t left = uploads_live(w, "left", "x"), right = uploads_live(w, "right", "x");
    int64_t both = uploads_child(w, "both", left, right), below = uploads_child(w, "below", both, 0);
    delete (w, left);
    delete (w, right);
    restore(w, left);
    uploads_expect(w, left, RP_FILE_LIVE);
    uploads_expect(w, both, RP_FILE_DELETED);
    uploads_expect(w, below, RP_FILE_DELETED);
    world_check(w);
    restore(w, right);
    uploads_expect(w, both, RP_FILE_LIVE);
    uploads_expect(w, below, RP_FILE_LIVE);
}

static void test_F4_more_time_for_a_file_is_more_time_for_its_family(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    delete (w, root);
    assert_int_equal(uploads_delete(w, root, 20 * DAY, &c), 0);
    world_pass(w, 10 * DAY);
    world_swept(w, 0);
    restore(w, root);
    uploads_expect(w, child, RP_FILE_LIVE);
    assert_int_equal(events(w, "mark.extended"), 2);
}

static void test_F4_one_taken_name_in_the_family_refuses_the_whole(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    delete (w, root);
    int64_t taker = uploads_live(w, "child", "taken");
    assert_int_equal(uploads_restore(w, root, &c), RP_ENAMETAKEN);
    uploads_expect(w, root, RP_FILE_DELETED);
    uploads_expect(w, child, RP_FILE_DELETED);
    delete (w, taker);
    restore(w, root);
    uploads_expect(w, child, RP_FILE_LIVE);
    uploads_expect(w, taker, RP_FILE_DELETED);
}

static void test_F4_replacing_takes_the_family_along(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t old = uploads_live(w, "a", "old"), thumb = uploads_child(w, "thumb", 0, old);
    int64_t now = uploads_live(w, "a", "newer");
    uploads_expect(w, old, RP_FILE_DELETED);
    uploads_expect(w, thumb, RP_FILE_DELETED);
    assert_string_equal(uploads_mark(w, thumb).reason, "replaced");
    assert_int_equal(uploads_restore(w, old, &c), RP_ENAMETAKEN);
    delete (w, now);
    restore(w, old);
    uploads_expect(w, thumb, RP_FILE_LIVE);
    assert_int_equal(uploads_restore(w, now, &c), RP_ENAMETAKEN);
}

/* ---- too late ---- */

static void test_RESTORE_WINS_until_the_claim_and_is_too_late_after_it(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    struct rp_file_command c;
    int64_t id = uploads_live(w, "a", "hello");
    assert_int_equal(uploads_delete(w, id, 0, &c), 0);
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(s.batch.marks.n, 1);
    assert_int_equal(uploads_restore(w, id, &c), RP_ETOOLATE);
    uploads_expect(w, id, RP_FILE_DELETED);
    uploads_expect_quota(w, 5, 0, 0); /* given back when the bytes are gone */
    assert_int_equal(uploads_delete(w, id, 30 * DAY, &c), 0);
    assert_null(c.event);
    world_steps_erase(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    for (int i = 0; i < 2; i++) /* a second word counts for nothing */
        ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    ok(rp_run_end(w->catalog, &s.run, "done", &err));
    uploads_expect(w, id, RP_FILE_PURGED);
    uploads_expect_quota(w, 0, 0, 0);
    world_steps_done(&s);
}

/* ---- holds ---- */

static int64_t hold(struct world *w, struct rp_hold_command q)
{
    q.reason = "audit";
    q.command.actor = "tester";
    ok(ask_hold(w->catalog, &q, &w->arena, &err));
    return q.id;
}

static void test_X3_a_held_file_is_deleted_and_not_purged_and_its_upload_does_not_expire(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_live(w, "a", "hello"), before = uploads_live(w, "b", "hello");
    int64_t pending = uploads_begin(w, "c", "hello");
    delete (w, before);
    uploads_expect_quota(w, 10, 5, 1);
    const struct rp_hold_command scopes[] = {
        { .scope = RP_SCOPE_TENANT, .tenant = "acme" },
        { .scope = RP_SCOPE_PREFIX, .store = &w->store, .key = "acme/" },
        { .scope = RP_SCOPE_EVERYTHING },
    };
    for (size_t i = 0; i < 3; i++) {
        int64_t held = hold(w, scopes[i]);
        assert_int_equal(uploads_delete(w, id, -1, &c), 0);
        world_pass(w, 10 * DAY);
        world_swept(w, 0);
        uploads_expect(w, id, RP_FILE_DELETED);
        uploads_expect(w, before, RP_FILE_DELETED);
        uploads_expect(w, pending, RP_FILE_PENDING);
        uploads_expect_quota(w, 10, 5, 1); /* refunds wait as well */
        ok(ask_lift(w->catalog, held, "tester", &err));
    }
    (void)uploads_tenant(w, "other");
    int64_t others = hold(w, (struct rp_hold_command){ .scope = RP_SCOPE_TENANT, .tenant = "other" });
    world_swept(w, 2);
    uploads_expect(w, id, RP_FILE_PURGED);
    uploads_expect(w, before, RP_FILE_PURGED);
    uploads_expect(w, pending, RP_FILE_EXPIRED);
    uploads_expect_quota(w, 0, 0, 0);
    ok(ask_lift(w->catalog, others, "tester", &err));
}

/* ---- families over several stores ---- */

/* A mark and its audit row are about the store of the file that goes, not of the one that replaces
 * it. */
static void test_what_is_replaced_has_the_grace_and_the_name_of_its_own_store(void **state)
{
    struct world *w = *state;
    struct rp_store_config config = w->config;
    struct rp_store_row row;
    struct rp_store far = w->store;
    config.name = "far";
    config.grace_ms = 20 * DAY;
    ok(rp_store_get(w->catalog, RP_STORE_STORE, "far", &row, &err));
    far.id = row.id;
    far.config = &config;
    struct rp_store *stores[] = { &w->store, &far };
    int64_t old = uploads_live(w, "a", "hello"), next = uploads_begin(w, "a", "newer");
    world_script(w, "UPDATE file SET store_id = %lld WHERE id = %lld", (long long)row.id, (long long)old);
    uploads_put(w, next, "newer");
    struct rp_file file = uploads_file(w, next);
    struct rp_seen seen;
    ok(rp_file_see(&file, &w->store, NULL, &seen, &err));
    struct rp_file_command c = uploads_command(w, &rp_verb_confirm, next);
    c.seen = seen;
    c.stores = stores;
    c.n_stores = 2;
    ok(rp_command_run(w->catalog, &c.command));
    struct rp_mark mark = uploads_mark(w, old);
    assert_int_equal(mark.due_at_ms, mark.marked_at_ms + 20 * DAY);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'file.deleted' AND details LIKE "
                                     "'%\"store\":\"far\"%'"),
                     1);
}

static void test_X1_everything_is_held_however_many_stores_there_were(void **state)
{
    struct world *w = *state;
    struct rp_store_row row;
    char name[20];
    for (int i = 0; i < 130; i++) {
        snprintf(name, sizeof name, "former-%d", i);
        ok(rp_store_get(w->catalog, RP_STORE_STORE, name, &row, &err));
    }
    (void)hold(w, (struct rp_hold_command){ .scope = RP_SCOPE_EVERYTHING });
}

/* ---- quarantine ---- */

static struct rp_reprieve_answer restore_mark(struct world *w, int64_t mark_id)
{
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    ok(rp_mark_get(w->catalog->db, mark_id, &w->arena, &mark, &err));
    ok(rp_reprieve_many(w->catalog, &w->store, &mark, 1, "tester", &answer, &err));
    return answer;
}

static void test_S5_a_file_moved_aside_stays_deleted_and_lives_again_when_it_is_returned(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t id = uploads_live(w, "a", "hello");
    const char *key = uploads_file(w, id).key;
    delete (w, id);
    int64_t mark = uploads_mark(w, id).id;
    world_pass(w, 6 * DAY);
    world_swept(w, 1);
    uploads_expect(w, id, RP_FILE_DELETED);
    assert_false(world_exists(w, key));
    uploads_expect_quota(w, 5, 0, 0); /* its bytes still stand in the store */
    assert_int_equal(uploads_restore(w, id, &c), RP_ETOOLATE);
    assert_non_null(strstr(c.command.error.hint, "reprieve restore mrk_"));
    int64_t taker = uploads_live(w, "a", "taken");
    assert_int_equal(restore_mark(w, mark).error.code, RP_ENAMETAKEN);
    assert_false(world_exists(w, key)); /* a refused return takes its copy away again */
    delete (w, taker);
    assert_int_equal(restore_mark(w, mark).what, RP_REPRIEVE_RETURNED);
    uploads_expect(w, id, RP_FILE_LIVE);
    assert_string_equal(world_text(w, key), "hello");
    assert_int_equal(restore_mark(w, mark).what, RP_REPRIEVE_ALREADY);
    world_check(w);
    world_swept(w, 0);
    world_pass(w, DAY + RP_MINUTE_MS);
    world_swept(w, 1); /* the copy in quarantine: a late delete could have taken what was returned */
    uploads_expect(w, id, RP_FILE_LIVE);
    assert_string_equal(world_text(w, key), "hello");
    delete (w, id); /* its identity is that of the copy that came back */
    world_pass(w, 6 * DAY);
    world_swept(w, 2);
    assert_false(world_exists(w, key));
}

static void test_S5_what_nobody_returns_is_purged_and_refunded_at_the_end(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t id = uploads_live(w, "a", "hello"), pending = uploads_begin(w, "b", "xx");
    struct rp_file_command c;
    uploads_put(w, pending, "xx");
    delete (w, id);
    assert_int_equal(uploads_delete(w, pending, -1, &c), 0);
    int64_t mark = uploads_mark(w, id).id;
    world_pass(w, 6 * DAY);
    (void)world_sweep(w);
    uploads_expect(w, id, RP_FILE_DELETED);
    world_check(w);
    world_pass(w, 8 * DAY);
    (void)world_sweep(w);
    uploads_expect(w, id, RP_FILE_PURGED);
    uploads_expect(w, pending, RP_FILE_PURGED);
    uploads_expect_quota(w, 0, 0, 0);
    assert_int_equal(restore_mark(w, mark).error.code, RP_ETOOLATE);
    world_pass(w, 8 * DAY);
    (void)world_sweep(w);
    assert_int_equal(world_count(w, RP_MARKED), 0);
}

static void test_TENANT_a_restore_of_anothers_mark_touches_nothing(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t id = uploads_live(w, "a", "hello");
    const char *key = uploads_file(w, id).key;
    delete (w, id);
    int64_t mark = uploads_mark(w, id).id;
    world_pass(w, 6 * DAY);
    world_swept(w, 1);
    struct rp_reprieve_item stranger = { .mark_id = mark };
    struct rp_reprieve_command c = uploads_restore_as(w, &stranger, "other");
    struct rp_command *list[] = { &c.command };
    rp_commands_prepare(w->catalog, list, 1);
    assert_false(world_exists(w, key));
    assert_int_equal(restore_mark(w, mark).what, RP_REPRIEVE_RETURNED);
    assert_int_equal(rp_round_run(w->catalog, list, 1, true), 0);
    rp_commands_finish(w->catalog, list, 1);
    assert_int_equal(c.command.error.code, RP_ENOTFOUND);
    assert_string_equal(world_text(w, key), "hello");
}

/* Two items of one mark are decided once: not for both tenants. */
static void test_TENANT_a_strangers_restore_beside_the_owners_is_told_nothing(void **state)
{
    struct world *w = *state;
    for (size_t first = 0; first < 2; first++) { /* items are sorted by mark, then by address */
        int64_t id = uploads_live(w, first == 0 ? "a" : "b", "hello");
        struct rp_reprieve_item items[2] = { { .file_id = id }, { .file_id = id } };
        delete (w, id);
        struct rp_reprieve_command owner = uploads_restore_as(w, &items[first], "acme"),
                                   stranger = uploads_restore_as(w, &items[1 - first], "other");
        struct rp_command *list[] = { &owner.command, &stranger.command };
        rp_commands_prepare(w->catalog, list, 2);
        assert_int_equal(rp_round_run(w->catalog, list, 2, true), 0);
        assert_int_equal(items[first].answer.what, RP_REPRIEVE_DONE);
        assert_int_equal(items[1 - first].answer.error.code, RP_ENOTFOUND);
        assert_null(items[1 - first].file);
        uploads_expect(w, id, RP_FILE_LIVE);
    }
}

static int deny_delete_then_copy(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct world *w = ctx;
    bool copied = w->calls[WORLD_COPY] > 1;
    (void)key;
    if (strcmp(call, "remove") == 0 || (strcmp(call, "copy") == 0 && copied))
        return rp_error_set(e, RP_EDENIED, "denied");
    return 0;
}

static int deny_deletes(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    return key != NULL && strcmp(call, "remove") == 0 ? rp_error_set(e, RP_EDENIED, "denied") : 0;
}

/* By the audit row that the feed carries. */
static void test_T3_a_delete_that_failed_for_good_is_told_with_the_files_name(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_live(w, "holiday.jpg", "hello");
    delete (w, id);
    w->before = deny_deletes;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(events(w, "file.delete_failed"), 0);
        world_pass(w, 6 * DAY);
        (void)world_sweep(w);
        if (uploads_mark(w, id).state == RP_DEAD) break;
    }
    w->before = NULL;
    assert_int_equal(uploads_mark(w, id).state, RP_DEAD);
    assert_int_equal(events(w, "file.delete_failed"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'file.delete_failed' "
                                     "AND details LIKE '%\"name\":\"holiday.jpg\"%' "
                                     "AND details LIKE '%\"error\":\"%denied%' "
                                     "AND tenant_id = (SELECT id FROM tenant WHERE name = 'acme')"),
                     1);
}

/* The copy of the first attempt stands there; the last one could not even ask. */
static void test_S5_a_copy_that_a_dead_mark_left_is_erased_in_the_end(void **state)
{
    struct world *w = *state;
    char copy[RP_QUARANTINE_KEY];
    w->config.mode = RP_MODE_QUARANTINE;
    world_put(w, "a", "x");
    struct rp_mark_answer mark = world_mark(w, "a", 0);
    rp_quarantine_key(mark.mark_id, copy);
    w->before = deny_delete_then_copy;
    w->ctx = w;
    for (int i = 0; i < 4; i++) {
        world_pass(w, DAY);
        (void)world_sweep(w);
    }
    w->before = NULL;
    assert_int_equal(world_newest(w, "a").state, RP_DEAD);
    assert_true(world_exists(w, copy));
    assert_int_equal(world_count(w, RP_MARKED), 1);
    world_pass(w, 8 * DAY);
    world_swept(w, 1);
    assert_false(world_exists(w, copy));
    assert_true(world_exists(w, "a"));
}

/* ---- the verbs over marks ---- */

static void test_the_object_of_a_file_is_not_marked_by_its_key(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_live(w, "a", "hello");
    const char *key = uploads_file(w, id).key;
    assert_int_equal(world_mark(w, key, DAY).error.code, RP_EISFILE);
    delete (w, id);
    assert_int_equal(world_mark(w, key, 10 * DAY).error.code, RP_EISFILE);
    world_pass(w, 6 * DAY);
    world_swept(w, 1);
    world_put(w, key, "somebody else"); /* the file is over: what stands there now is an object like any other */
    assert_int_equal(world_mark(w, key, DAY).what, RP_MARK_CREATED);
}

static void test_restoring_the_mark_of_a_file_restores_the_file(void **state)
{
    struct world *w = *state;
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    int64_t pending = uploads_begin(w, "p", "x");
    delete (w, root);
    assert_int_equal(restore_mark(w, uploads_mark(w, child).id).error.code, RP_EOWNERGONE);
    assert_int_equal(restore_mark(w, uploads_mark(w, pending).id).error.code, RP_ENOTMARKED);
    int64_t mark = uploads_mark(w, root).id;
    assert_int_equal(restore_mark(w, mark).what, RP_REPRIEVE_DONE);
    uploads_expect(w, root, RP_FILE_LIVE);
    uploads_expect(w, child, RP_FILE_LIVE);
    assert_int_equal(restore_mark(w, mark).what, RP_REPRIEVE_ALREADY);
}

struct found {
    struct world *w;
    struct rp_mark marks[16];
    size_t n;
};

static int keep_mark(void *ctx, const struct rp_mark *mark, struct rp_error *e)
{
    struct found *f = ctx;
    return rp_mark_copy(mark, &f->w->arena, &f->marks[f->n++], e);
}

static void test_X8_a_restore_in_bulk_restores_files_and_objects(void **state)
{
    struct world *w = *state;
    struct found f = { .w = w };
    struct rp_reprieve_answer answers[16];
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    int64_t alone = uploads_live(w, "alone", "x");
    world_put(w, "object", "x");
    (void)world_mark(w, "object", DAY);
    delete (w, alone);
    delete (w, root);
    ok(rp_restore_each(w->catalog->db, &(struct rp_restore_filter){ .since_ms = 0, .until_ms = -1 }, keep_mark, &f,
                       &err));
    assert_int_equal(f.n, 4);
    ok(rp_reprieve_many(w->catalog, &w->store, f.marks, f.n, "tester", answers, &err));
    for (size_t i = 0; i < f.n; i++)
        assert_int_equal(answers[i].what, RP_REPRIEVE_DONE);
    uploads_expect(w, root, RP_FILE_LIVE);
    uploads_expect(w, child, RP_FILE_LIVE);
    uploads_expect(w, alone, RP_FILE_LIVE);
    assert_int_equal(world_count(w, RP_MARKED), 0);
}

/* The child's mark first: what comes back with the root later in the same batch is no refusal. */
static void test_X8_the_order_of_a_family_in_a_batch_does_not_matter(void **state)
{
    struct world *w = *state;
    struct rp_reprieve_answer answers[2];
    int64_t root = uploads_live(w, "root", "x"), child = uploads_child(w, "child", root, 0);
    delete (w, root);
    struct rp_mark marks[2] = { uploads_mark(w, child), uploads_mark(w, root) };
    ok(rp_reprieve_many(w->catalog, &w->store, marks, 2, "tester", answers, &err));
    uploads_expect(w, child, RP_FILE_LIVE);
    assert_int_equal(answers[1].what, RP_REPRIEVE_DONE);
    assert_int_equal(answers[0].what, RP_REPRIEVE_DONE);
}

/* What was given more time is met again further on: by then it is later. */
static int time_passes(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct world *w = ctx;
    (void)call, (void)key, (void)e;
    w->host_ahead_ms += 50;
    return 0;
}

static void test_S6_a_recovery_gives_files_more_time_instead_of_letting_go_of_them(void **state)
{
    struct world *w = *state;
    w->before = time_passes;
    w->ctx = w;
    struct rp_recovery recovery;
    struct rp_file_command c;
    int64_t soon = uploads_live(w, "soon", "x"), later = uploads_live(w, "later", "x");
    int64_t pending = uploads_begin(w, "pending", "x");
    world_put(w, "object", "x");
    (void)world_mark(w, "object", DAY);
    assert_int_equal(uploads_delete(w, soon, DAY, &c), 0);
    assert_int_equal(uploads_delete(w, later, 20 * DAY, &c), 0);
    int64_t later_due = uploads_mark(w, later).due_at_ms;
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
    assert_int_equal(recovery.reprieved, 1); /* the object */
    uploads_expect(w, soon, RP_FILE_DELETED);
    uploads_expect(w, pending, RP_FILE_PENDING);
    assert_int_equal(uploads_mark(w, later).due_at_ms, later_due);
    world_pass(w, 4 * DAY);
    world_swept(w, 0);
    world_pass(w, 2 * DAY);
    world_swept(w, 1);
    uploads_expect(w, soon, RP_FILE_PURGED);
    uploads_expect(w, later, RP_FILE_DELETED);
    uploads_expect(w, pending, RP_FILE_EXPIRED);
    assert_int_equal(events(w, "mark.extended"), 2);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_a_deleted_file_can_be_restored_until_it_is_purged),
        ALL(test_M5_deleting_again_is_the_same_mark_and_only_a_later_time_counts),
        ALL(test_a_file_says_when_it_was_confirmed_and_since_when_it_is_deleted),
        ALL(test_what_delete_refuses),
        ALL(test_a_pending_upload_that_is_deleted_keeps_its_mark_and_is_refunded_once),
        ALL(test_a_reason_that_sounds_like_ours_is_only_a_reason),
        ALL(test_F4_a_delete_takes_along_what_belongs_to_it_and_a_restore_brings_it_back),
        ALL(test_F4_what_was_deleted_by_itself_stays_deleted),
        ALL(test_F4_what_belongs_to_two_waits_for_both),
        ALL(test_F4_more_time_for_a_file_is_more_time_for_its_family),
        ALL(test_F4_one_taken_name_in_the_family_refuses_the_whole),
        ALL(test_F4_replacing_takes_the_family_along),
        ALL(test_RESTORE_WINS_until_the_claim_and_is_too_late_after_it),
        ALL(test_X3_a_held_file_is_deleted_and_not_purged_and_its_upload_does_not_expire),
        ALL(test_S5_a_file_moved_aside_stays_deleted_and_lives_again_when_it_is_returned),
        ALL(test_S5_what_nobody_returns_is_purged_and_refunded_at_the_end),
        ALL(test_what_is_replaced_has_the_grace_and_the_name_of_its_own_store),
        ALL(test_X1_everything_is_held_however_many_stores_there_were),
        ALL(test_TENANT_a_restore_of_anothers_mark_touches_nothing),
        ALL(test_TENANT_a_strangers_restore_beside_the_owners_is_told_nothing),
        ALL(test_T3_a_delete_that_failed_for_good_is_told_with_the_files_name),
        ALL(test_S5_a_copy_that_a_dead_mark_left_is_erased_in_the_end),
        ALL(test_the_object_of_a_file_is_not_marked_by_its_key),
        ALL(test_restoring_the_mark_of_a_file_restores_the_file),
        ALL(test_X8_a_restore_in_bulk_restores_files_and_objects),
        ALL(test_X8_the_order_of_a_family_in_a_batch_does_not_matter),
        ALL(test_S6_a_recovery_gives_files_more_time_instead_of_letting_go_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
