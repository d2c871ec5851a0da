/* SPDX-License-Identifier: Apache-2.0 */
/* A verb that meets rows which somebody has edited: marks and ledger rows that do not fit their
 * file, chains of which a lane is broken, stories with events and details that no program wrote.
 * The verb refuses or tells; what it was asked to change is as it was, and an honest row beside is
 * not touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "core/dead.h"
#include "core/explain.h"
#include "core/hold.h"
#include "lib/ask.h"
#include "lib/uploads.h"

#define DAY RP_DAY_MS

static struct rp_error err;

static int set_up(void **state)
{
    if (world_set_up(state) < 0) return -1;
    world_script(*state, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
    return 0;
}

/* ---- marks and ledger rows that do not fit their file ---- */

static const char *const not_waiting[] = { "DELETE FROM mark WHERE id = %" PRId64,
                                           "UPDATE mark SET state = 3 WHERE id = %" PRId64 };

static void edit_mark(struct world *w, size_t how, int64_t file_id)
{
    world_script(w, how == 0 ? not_waiting[0] : not_waiting[1], uploads_file(w, file_id).mark_id);
}

static void an_upload_whose_mark_does_not_wait_is_not_confirmed(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_file_command c;
        struct rp_txn_command commit;
        char name[8];
        snprintf(name, sizeof name, "f%zu", i);
        int64_t id = uploads_begin(w, name, "bytes");
        uploads_put(w, id, "bytes");
        edit_mark(w, i, id);
        assert_int_equal(uploads_confirm(w, id, NULL, &c), RP_EEXPIRED);
        uploads_expect(w, id, RP_FILE_PENDING);
        int64_t txn = uploads_txn_begin(w), bad = uploads_member(w, txn, "bad", "bytes", 0);
        int64_t good = uploads_member(w, txn, "good", "bytes", 0);
        edit_mark(w, i, bad);
        assert_int_equal(uploads_commit(w, txn, &commit), RP_ENOTPENDING);
        assert_int_equal(commit.n_missing, 1);
        assert_int_equal(commit.missing[0], bad);
        uploads_expect(w, good, RP_FILE_PENDING); /* all or none */
    }
}

static void a_file_whose_mark_is_gone_or_ended_is_not_restored(void **state)
{
    static const char *const edits[] = { "DELETE FROM mark WHERE id = %" PRId64,
                                         "UPDATE mark SET state = 4, next_at = NULL WHERE id = %" PRId64 };
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_file_command c;
        int64_t id = uploads_live(w, i == 0 ? "gone" : "ended", "bytes");
        assert_int_equal(uploads_delete(w, id, DAY, &c), 0);
        world_script(w, i == 0 ? edits[0] : edits[1], uploads_file(w, id).mark_id);
        assert_int_equal(uploads_restore(w, id, &c), RP_ETOOLATE);
        uploads_expect(w, id, RP_FILE_DELETED);
    }
}

static void more_time_for_a_family_passes_over_a_child_without_a_mark(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "bytes"), bare = uploads_child(w, "bare", root, 0);
    int64_t other = uploads_child(w, "other", root, 0);
    assert_int_equal(uploads_delete(w, root, DAY, &c), 0);
    edit_mark(w, 0, bare);
    assert_int_equal(uploads_delete(w, root, 3 * DAY, &c), 0);
    assert_int_equal(uploads_mark(w, other).due_at_ms, uploads_mark(w, root).due_at_ms);
    assert_int_equal(c.answer.due_at_ms, uploads_mark(w, root).due_at_ms);
}

static void a_quota_that_cannot_be_moved_stops_the_confirm(void **state)
{
    static const char *const edits[] = { "INSERT INTO ledger SELECT id, 2, tenant_id, 5, 1 FROM file",
                                         "DELETE FROM tenant" };
    static const char *const words[] = { "was reserved, used or refunded before", "a tenant is gone" };
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        struct rp_file_command c = uploads_command(w, &rp_verb_confirm, uploads_begin(w, "photo", "bytes"));
        struct rp_file file = uploads_file(w, c.file_id);
        uploads_put(w, c.file_id, "bytes");
        ok(rp_file_see(&file, &w->store, NULL, &c.seen, &err));
        world_unlock(w);
        world_script(w, "%s", edits[i]);
        assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ECORRUPT);
        assert_non_null(strstr(c.command.error.text, words[i]));
        uploads_expect(w, c.file_id, RP_FILE_PENDING);
        assert_int_equal(uploads_mark(w, c.file_id).state, RP_MARKED);
        world_script(w, "DELETE FROM ledger; DELETE FROM file; DELETE FROM mark");
    }
}

static void a_result_for_a_scan_without_a_key_changes_nothing(void **state)
{
    struct world *w = *state;
    w->uploads.scan = true;
    struct rp_file_command c = uploads_command(w, &rp_verb_result, uploads_live(w, "photo", "bytes"));
    c.process_key = uploads_file(w, c.file_id).process_key;
    world_script(w, "UPDATE file SET process_key = NULL");
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    assert_null(c.event);
    uploads_expect(w, c.file_id, RP_FILE_SCANNING);
    RP_CLEANUP(rp_json_decrefp) json_t *shown = rp_file_json(&c.answer, "main");
    assert_null(json_object_get(shown, "processing"));
    assert_string_equal(rp_json_get_text(shown, "status", ""), "scanning");
}

/* Deleted with two owners, one of which does not say with whom it went. */
static void a_child_of_two_waits_for_the_owner_that_is_still_gone(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t parent = uploads_live(w, "parent", "bytes"), source = uploads_live(w, "source", "bytes");
    int64_t child = uploads_child(w, "child", parent, source);
    assert_int_equal(uploads_delete(w, source, DAY, &c), 0);
    assert_int_equal(uploads_delete(w, parent, DAY, &c), 0);
    assert_int_equal(uploads_file(w, child).with_id, source);
    world_script(w, "UPDATE file SET deleted_with = NULL WHERE id = %" PRId64, parent);
    assert_int_equal(uploads_restore(w, source, &c), 0);
    uploads_expect(w, source, RP_FILE_LIVE);
    uploads_expect(w, child, RP_FILE_DELETED); /* its parent is */
    assert_int_equal(uploads_file(w, child).with_id, source);
}

/* ---- a dead letter's copy ---- */

static int deny(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    bool it = strcmp(call, "remove") == 0 && key != NULL;
    return it ? rp_error_set(e, RP_EDENIED, "refused") : 0;
}

/* Somebody has claimed it, and may be about to erase what the retried mark would count on. */
static void a_letter_whose_copy_is_being_erased_is_not_retried(void **state)
{
    struct world *w = *state;
    world_put(w, "object", "bytes");
    int64_t id = world_mark(w, "object", 0).mark_id;
    world_script(w, "UPDATE mark SET attempts = 2");
    w->config.mode = RP_MODE_QUARANTINE;
    w->before = deny;
    (void)world_sweep(w);
    w->before = NULL;
    assert_int_equal(world_newest(w, "object").state, RP_DEAD);
    int64_t letter = world_number(w, "SELECT id FROM dead_letter");
    world_script(w, "UPDATE mark SET state = 3 WHERE id <> %" PRId64, id);
    assert_int_equal(ask_retry(w->catalog, letter, "tester", &err), RP_EERASING);
    assert_int_equal(world_newest(w, "object").state, RP_DEAD);
    world_script(w, "UPDATE mark SET state = 1 WHERE id <> %" PRId64, id);
    ok(ask_retry(w->catalog, letter, "tester", &err));
    assert_int_equal(world_newest(w, "object").state, RP_PURGING);
}

/* ---- chains ---- */

static int note_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct rp_audit_entry entry = { .event = ctx, .actor = "tester", .text = "" };
    return rp_tx_audit(tx, &entry, e);
}

static void note(struct world *w, int lane, char *event)
{
    struct rp_catalog *catalog = world_catalog(w, lane, NULL);
    ok(rp_catalog_transact(catalog, note_tx, event, &err));
    rp_catalog_close(catalog);
}

static struct rp_audit_verdict verify(struct world *w)
{
    struct rp_audit_verdict verdict;
    ok(rp_audit_verify(w->catalog, &verdict, &err));
    return verdict;
}

static void make_lanes(struct world *w)
{
    char event[] = "test.noted";
    for (int i = 0; i < 3; i++)
        note(w, i, event);
    world_unlock(w);
}

/* Nothing was said, so nothing was erased. */
static void details_that_were_empty_are_not_missed(void **state)
{
    struct world *w = *state;
    make_lanes(w);
    world_script(w, "UPDATE audit SET details = NULL WHERE event = 'test.noted'");
    struct rp_audit_verdict verdict = verify(w);
    assert_false(verdict.broken);
    assert_int_equal(verdict.erased, 0);
    assert_int_equal(verdict.lanes, 3);
}

static void the_first_broken_lane_is_named_though_others_follow(void **state)
{
    static const char *const edits[] = { "DELETE FROM lane WHERE lane = 0",
                                         "UPDATE audit SET actor = 'somebody' WHERE lane = 0" };
    struct world *w = *state;
    make_lanes(w);
    for (size_t i = 2; i > 0; i--) {
        world_script(w, "%s", edits[i - 1]);
        struct rp_audit_verdict verdict = verify(w);
        assert_true(verdict.broken);
        assert_int_equal(verdict.lane, 0);
    }
}

/* What others said of a lane is gone with the details; the chain itself holds. */
static void heads_whose_details_were_erased_say_nothing(void **state)
{
    struct world *w = *state;
    char event[] = "test.noted";
    make_lanes(w);
    world_script(w, "UPDATE lane SET heads_at = 0");
    note(w, 0, event);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE lane = 0 AND event = 'audit.heads'"), 1);
    world_script(w, "UPDATE audit SET details = NULL WHERE lane = 0 AND event = 'audit.heads'");
    struct rp_audit_verdict verdict = verify(w);
    assert_false(verdict.broken);
    assert_int_equal(verdict.erased, 1);
}

static void a_head_that_is_no_digest_is_not_recorded_by_others(void **state)
{
    struct world *w = *state;
    char event[] = "test.noted";
    make_lanes(w);
    world_script(w, "UPDATE lane SET heads_at = 0; UPDATE lane SET head = x'00' WHERE lane = 1");
    int64_t rows = world_number(w, "SELECT count(*) FROM audit");
    assert_int_equal(rp_catalog_transact(w->catalog, note_tx, event, &err), RP_ECORRUPT);
    assert_non_null(strstr(err.text, "lane 1"));
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), rows);
}

/* ---- stories ---- */

static int keep_words(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    (void)e;
    return rp_buf_fmt(ctx, "%s\n", line->words);
}

static int stop_telling(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    (void)line;
    ++*(int *)ctx;
    return rp_error_set(e, RP_EFAILED, "enough");
}

static void a_story_tells_events_that_it_has_no_words_for(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    struct rp_story_end end;
    world_put(w, "object", "bytes");
    (void)world_mark(w, "object", DAY);
    world_unlock(w);
    world_script(w, "UPDATE audit SET event = 'mark.dreamt', details = '{}' WHERE event = 'mark.created'");
    ok(rp_explain(w->catalog, &w->store, "object", &w->arena, &(struct rp_story){ .fn = keep_words, .ctx = &words },
                  &end, &err));
    assert_string_equal(rp_buf_text(&words), "mark.dreamt\n");
    world_script(w, "UPDATE audit SET details = 'no json' WHERE event = 'mark.dreamt'");
    rp_buf_clear(&words);
    assert_true(rp_explain(w->catalog, &w->store, "object", &w->arena,
                           &(struct rp_story){ .fn = keep_words, .ctx = &words }, &end, &err) < 0);
    assert_string_equal(rp_buf_text(&words), "");
}

static void a_story_ends_where_its_listener_leaves(void **state)
{
    struct world *w = *state;
    struct rp_story_end end;
    int told = 0;
    for (int i = 0; i < 2; i++) {
        world_put(w, "object", "bytes");
        (void)world_mark(w, "object", DAY);
        (void)world_restore(w, "object");
    }
    assert_int_equal(rp_explain(w->catalog, &w->store, "object", &w->arena,
                                &(struct rp_story){ .fn = stop_telling, .ctx = &told }, &end, &err),
                     RP_EFAILED);
    assert_int_equal(told, 1); /* of two marks */
}

static void a_hold_in_another_store_holds_nothing_here(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf words = RP_BUF(10000);
    struct rp_story_end end;
    world_put(w, "object", "bytes");
    (void)world_mark(w, "object", DAY);
    world_script(w, "INSERT INTO hold (id, scope, store_id, key, reason, actor, placed_at) VALUES "
                    "(1, 1, 77, 'object', 'why', 'tester', 1), (2, 2, 77, 'obj', 'why', 'tester', 1)");
    ok(rp_explain(w->catalog, &w->store, "object", &w->arena, &(struct rp_story){ .fn = keep_words, .ctx = &words },
                  &end, &err));
    assert_false(end.held);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, world_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_upload_whose_mark_does_not_wait_is_not_confirmed),
        TEST(a_file_whose_mark_is_gone_or_ended_is_not_restored),
        TEST(more_time_for_a_family_passes_over_a_child_without_a_mark),
        TEST(a_quota_that_cannot_be_moved_stops_the_confirm),
        TEST(a_result_for_a_scan_without_a_key_changes_nothing),
        TEST(a_child_of_two_waits_for_the_owner_that_is_still_gone),
        TEST(a_letter_whose_copy_is_being_erased_is_not_retried),
        TEST(details_that_were_empty_are_not_missed),
        TEST(the_first_broken_lane_is_named_though_others_follow),
        TEST(heads_whose_details_were_erased_say_nothing),
        TEST(a_head_that_is_no_digest_is_not_recorded_by_others),
        TEST(a_story_tells_events_that_it_has_no_words_for),
        TEST(a_story_ends_where_its_listener_leaves),
        TEST(a_hold_in_another_store_holds_nothing_here),
    };
    return cmocka_run_group_tests_name("edited rows", tests, NULL, NULL);
}
