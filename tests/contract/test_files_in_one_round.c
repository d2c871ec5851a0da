/* SPDX-License-Identifier: Apache-2.0 */
/* Files in awkward rounds: several commands of one verb in one transaction, in the wrong order or
 * about the same file; a store that was taken out of the configuration; families of which a part is
 * on its way out; objects that change while they are looked at. */
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
#include "base/text/json.h"
#include "core/subject/quarantine.h"
#include "lib/uploads.h"

#define DAY RP_DAY_MS

static struct rp_error err;

/* ---- rounds ---- */

struct round {
    struct rp_command *commands[4];
    size_t n;
};

static int round_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct round *round = ctx;
    return round->commands[0]->verb->run(tx, round->commands, round->n, e);
}

static void run(struct world *w, struct rp_command *const *commands, size_t n)
{
    struct round round = { .n = n };
    memcpy(round.commands, commands, n * sizeof(struct rp_command *));
    ok(rp_catalog_transact(w->catalog, round_tx, &round, &err));
}

static void done(const struct rp_command *c)
{
    world_ok(c->error.code, &c->error, __FILE__, __LINE__);
}

static void uploads_of_one_round_join_each_its_own_transaction(void **state)
{
    struct world *w = *state;
    int64_t txns[] = { uploads_txn_begin(w), uploads_txn_begin(w) };
    struct rp_init inits[3];
    struct rp_command *commands[3];
    const char *const names[] = { "one", "two", "three" };
    for (size_t i = 0; i < 3; i++) {
        inits[i] = uploads_init(w, names[i], 5);
        inits[i].txn_id = txns[i % 2];
        commands[i] = &inits[i].command;
    }
    run(w, commands, 3);
    for (size_t i = 0; i < 3; i++) {
        done(commands[i]);
        assert_int_equal(uploads_file(w, inits[i].file_id).txn_id, txns[i % 2]);
    }
    for (size_t i = 0; i < 2; i++) {
        struct rp_txn txn;
        ok(rp_txn_get(w->catalog->db, txns[i], &txn, &err));
        assert_int_equal(txn.members, i == 0 ? 2 : 1);
    }
}

static struct rp_file_command confirm_of(struct world *w, int64_t id)
{
    struct rp_file_command c = uploads_command(w, &rp_verb_confirm, id);
    struct rp_file file = uploads_file(w, id);
    ok(rp_file_see(&file, &w->store, NULL, &c.seen, &err));
    return c;
}

static int64_t begin_child(struct world *w, const char *name, int64_t parent_id)
{
    struct rp_init c = uploads_init(w, name, 5);
    c.parent_id = parent_id;
    world_ok(rp_command_run(w->catalog, &c.command), &c.command.error, __FILE__, __LINE__);
    uploads_put(w, c.file_id, "bytes");
    return c.file_id;
}

static void a_child_that_is_confirmed_before_its_parent_in_one_round_lives(void **state)
{
    struct world *w = *state;
    int64_t parent = uploads_begin(w, "parent", "bytes"), other = uploads_begin(w, "other", "bytes");
    uploads_put(w, parent, "bytes");
    uploads_put(w, other, "bytes");
    int64_t child = begin_child(w, "child", parent), orphan = begin_child(w, "orphan", other);
    struct rp_file_command c[] = { confirm_of(w, child), confirm_of(w, orphan), confirm_of(w, parent) };
    run(w, (struct rp_command *[]){ &c[0].command, &c[1].command, &c[2].command }, 3);
    done(&c[0].command);
    done(&c[2].command);
    assert_int_equal(c[1].command.error.code, RP_ENOTLIVE);
    uploads_expect(w, child, RP_FILE_LIVE);
    uploads_expect(w, parent, RP_FILE_LIVE);
    uploads_expect(w, orphan, RP_FILE_PENDING);
}

static void of_two_later_times_in_one_round_the_latest_holds(void **state)
{
    struct world *w = *state;
    struct rp_file_command first, c[2];
    int64_t id = uploads_live(w, "photo", "bytes"), two = uploads_live(w, "two", "bytes");
    assert_int_equal(uploads_delete(w, id, DAY, &first), 0);
    assert_int_equal(uploads_delete(w, two, DAY, &first), 0);
    int64_t before = uploads_mark(w, id).due_at_ms;
    for (size_t i = 0; i < 2; i++) {
        c[i] = uploads_command(w, &rp_verb_delete, id);
        c[i].grace_ms = (int64_t)(i + 2) * DAY;
    }
    struct rp_file_command other = uploads_command(w, &rp_verb_delete, two);
    other.grace_ms = 5 * DAY;
    run(w, (struct rp_command *[]){ &other.command, &c[0].command, &c[1].command }, 3);
    done(&other.command);
    done(&c[0].command);
    done(&c[1].command);
    struct rp_mark mark = uploads_mark(w, id);
    assert_in_range(mark.due_at_ms, before + 2 * DAY - 1, before + 2 * DAY + RP_MINUTE_MS);
    assert_in_range(uploads_mark(w, two).due_at_ms, before + 4 * DAY - 1, before + 4 * DAY + RP_MINUTE_MS);
    assert_int_equal(c[1].answer.due_at_ms, mark.due_at_ms);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'mark.extended'"), 3);
}

static void deleted_twice_in_one_round_it_is_due_at_the_later_time(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_live(w, "photo", "bytes");
    struct rp_file_command c[] = { uploads_command(w, &rp_verb_delete, id), uploads_command(w, &rp_verb_delete, id) };
    c[0].grace_ms = 2 * DAY;
    c[1].grace_ms = 3 * DAY;
    run(w, (struct rp_command *[]){ &c[0].command, &c[1].command }, 2);
    done(&c[0].command);
    done(&c[1].command);
    struct rp_mark mark = uploads_mark(w, id);
    assert_int_equal(mark.due_at_ms, mark.marked_at_ms + 3 * DAY);
    assert_int_equal(c[1].answer.due_at_ms, mark.due_at_ms);
    assert_int_equal(c[1].answer.mark_id, c[0].answer.mark_id);
}

/* ---- families of which a part is on its way out ---- */

static int64_t due_of(struct world *w, int64_t id)
{
    return uploads_mark(w, id).due_at_ms;
}

static void come_due(struct world *w, int64_t id)
{
    world_script(w, "UPDATE mark SET next_at = 1, due_at = 1, marked_at = 1 WHERE id = %" PRId64,
                 uploads_file(w, id).mark_id);
}

static void more_time_is_given_to_those_who_still_wait(void **state)
{
    struct world *w = *state;
    struct world_steps steps;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "bytes");
    int64_t gone = uploads_child(w, "gone", root, 0), claimed = uploads_child(w, "claimed", root, 0);
    int64_t waits = uploads_child(w, "waits", root, 0);
    assert_int_equal(uploads_delete(w, root, DAY, &c), 0);
    come_due(w, gone);
    (void)world_sweep(w);
    uploads_expect(w, gone, RP_FILE_PURGED);
    come_due(w, claimed);
    world_steps_begin(w, w->catalog, "steps", &steps);
    world_steps_claim(w, w->catalog, &steps);
    assert_int_equal(steps.batch.marks.n, 1);
    assert_int_equal(uploads_delete(w, root, 10 * DAY, &c), 0);
    assert_non_null(c.event);
    assert_int_equal(due_of(w, waits), due_of(w, root));
    assert_int_equal(due_of(w, claimed), 1);
    assert_int_equal(uploads_mark(w, claimed).state, RP_PURGING);
    assert_int_equal(due_of(w, gone), 1);
    world_steps_erase(w, w->catalog, &steps);
    ok(rp_purge_finish(w->catalog, &w->rules, &steps.batch, &steps.run, &err));
    ok(rp_run_end(w->catalog, &steps.run, "done", &err));
    world_steps_done(&steps);
    uploads_expect(w, claimed, RP_FILE_PURGED);
    uploads_expect(w, root, RP_FILE_DELETED);
}

static void a_file_in_quarantine_shows_the_mark_that_moved_it_there(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    struct rp_mark shown;
    int64_t id = uploads_live(w, "photo", "bytes");
    assert_int_equal(uploads_delete(w, id, DAY, &c), 0);
    int64_t mark_id = uploads_mark(w, id).id;
    world_pass(w, 2 * DAY);
    w->config.mode = RP_MODE_QUARANTINE;
    (void)world_sweep(w);
    assert_true(rp_quarantine_is(uploads_mark(w, id).key));
    ok(rp_file_mark(w->catalog->db, id, &w->arena, &shown, &err));
    assert_int_equal(shown.id, mark_id);
    assert_string_equal(shown.key, uploads_file(w, id).key);
}

static void a_restore_of_a_file_in_quarantine_says_how(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_live(w, "photo", "bytes");
    assert_int_equal(uploads_delete(w, id, DAY, &c), 0);
    world_pass(w, 2 * DAY);
    w->config.mode = RP_MODE_QUARANTINE;
    (void)world_sweep(w);
    assert_int_equal(uploads_restore(w, id, &c), RP_ETOOLATE);
    assert_non_null(strstr(c.command.error.hint, "reprieve restore"));
}

/* ---- times and visibility ---- */

static void a_time_that_is_past_is_now(void **state)
{
    struct world *w = *state;
    struct rp_file_command c = uploads_command(w, &rp_verb_delete, uploads_live(w, "photo", "bytes"));
    c.at_ms = rp_clock_now_ms(&w->host_clock) - DAY;
    done((rp_command_run(w->catalog, &c.command), &c.command));
    struct rp_mark mark = uploads_mark(w, c.file_id);
    assert_int_equal(mark.due_at_ms, mark.marked_at_ms);
}

static void what_is_shown_stays_shown_and_is_written_once(void **state)
{
    struct world *w = *state;
    struct rp_file_command c = uploads_command(w, &rp_verb_delete, uploads_live(w, "photo", "bytes"));
    for (int i = 0; i < 2; i++) {
        c.shown = true;
        done((rp_command_run(w->catalog, &c.command), &c.command));
        assert_int_equal(c.event != NULL, i == 0);
        assert_true(uploads_file(w, c.file_id).shown);
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'file.deleted'"), 1);
}

/* ---- scans ---- */

static void what_was_begun_without_a_processor_is_not_sent_to_one(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_begin(w, "photo", "bytes");
    uploads_put(w, id, "bytes");
    w->uploads.scan = true;
    assert_int_equal(uploads_confirm(w, id, NULL, &c), 0);
    uploads_expect(w, id, RP_FILE_LIVE);
}

static void a_commit_replaces_what_is_still_being_scanned(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    w->uploads.scan = true;
    int64_t old = uploads_live(w, "old", "bytes");
    uploads_expect(w, old, RP_FILE_SCANNING);
    w->uploads.scan = false;
    int64_t txn = uploads_txn_begin(w), member = uploads_member(w, txn, "new", "bytes", old);
    assert_int_equal(uploads_commit(w, txn, &c), 0);
    uploads_expect(w, member, RP_FILE_LIVE);
    uploads_expect(w, old, RP_FILE_DELETED);
    assert_string_equal(uploads_mark(w, old).reason, "replaced");
}

/* ---- a store that is not configured any more ---- */

static void without_its_store_a_file_is_neither_deleted_nor_committed(void **state)
{
    struct world *w = *state;
    int64_t txn = uploads_txn_begin(w), member = uploads_member(w, txn, "new", "bytes", 0);
    struct rp_file_command c = uploads_command(w, &rp_verb_delete, uploads_live(w, "photo", "bytes"));
    struct rp_txn_command commit = uploads_txn(w, &rp_verb_txn_commit, txn);
    c.n_stores = commit.n_stores = 0;
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ECONFIG);
    uploads_expect(w, c.file_id, RP_FILE_LIVE);
    uploads_see(w, &commit);
    assert_int_equal(rp_command_run(w->catalog, &commit.command), RP_ECONFIG);
    uploads_expect(w, member, RP_FILE_PENDING);
    struct rp_txn found;
    ok(rp_txn_get(w->catalog->db, txn, &found, &err));
    assert_int_equal(found.state, RP_TXN_OPEN);
}

static struct rp_file_command result_of(struct world *w, int64_t id, bool accept)
{
    struct rp_file_command c = uploads_command(w, &rp_verb_result, id);
    c.process_key = uploads_file(w, id).process_key;
    c.accept = accept;
    c.n_stores = 0;
    done((rp_command_run(w->catalog, &c.command), &c.command));
    return c;
}

/* Nothing of it needs the store: what a processor or a user decides is not lost for want of a
 * name. */
static void without_its_store_a_file_is_restored_and_judged(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    w->uploads.scan = true;
    int64_t good = uploads_live(w, "good", "bytes"), bad = uploads_live(w, "bad", "bytes");
    w->uploads.scan = false;
    int64_t id = uploads_live(w, "photo", "bytes");
    assert_int_equal(uploads_delete(w, id, DAY, &c), 0);
    c = uploads_command(w, &rp_verb_file_restore, id);
    c.n_stores = 0;
    done((rp_command_run(w->catalog, &c.command), &c.command));
    uploads_expect(w, id, RP_FILE_LIVE);
    (void)result_of(w, good, true);
    uploads_expect(w, good, RP_FILE_LIVE);
    (void)result_of(w, bad, false);
    uploads_expect(w, bad, RP_FILE_DELETED);
    struct rp_mark mark = uploads_mark(w, bad);
    assert_int_equal(mark.due_at_ms - mark.marked_at_ms, 5 * DAY);
}

/* ---- an administrator, who is of no tenant ---- */

static void who_is_of_no_tenant_may_confirm_and_commit_for_all(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_begin(w, "photo", "bytes");
    uploads_put(w, id, "bytes");
    struct rp_file_command c = confirm_of(w, id);
    c.command.tenant_id = 0;
    done((rp_command_run(w->catalog, &c.command), &c.command));
    uploads_expect(w, id, RP_FILE_LIVE);
    int64_t txn = uploads_txn_begin(w), member = uploads_member(w, txn, "new", "bytes", 0);
    struct rp_txn_command commit = uploads_txn(w, &rp_verb_txn_commit, txn);
    commit.command.tenant_id = 0;
    uploads_see(w, &commit);
    done((rp_command_run(w->catalog, &commit.command), &commit.command));
    uploads_expect(w, member, RP_FILE_LIVE);
}

/* ---- looking at an object ---- */

static int change_it(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct world *w = ctx;
    (void)e;
    if (strcmp(call, "get") == 0 && key != NULL) world_put(w, key, "other");
    return 0;
}

static int remove_it(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    struct world *w = ctx;
    (void)e;
    if (strcmp(call, "get") == 0 && key != NULL) world_remove(w, key);
    return 0;
}

/* Which of the two was seen nobody knows: the confirm is refused, and may be given again. */
static void an_object_that_changes_between_the_look_and_the_reading_is_unknown(void **state)
{
    struct world *w = *state;
    int (*const hooks[])(void *, const char *, const char *, struct rp_error *) = { change_it, remove_it };
    uint8_t digest[RP_DIGEST_BYTES];
    struct rp_file_command c;
    uploads_digest(w, "bytes", digest);
    w->ctx = w;
    for (size_t i = 0; i < 2; i++) {
        int64_t id = uploads_begin(w, i == 0 ? "changes" : "goes", "bytes");
        uploads_put(w, id, "bytes");
        w->before = hooks[i];
        assert_int_equal(uploads_confirm(w, id, digest, &c), RP_EUNAVAILABLE);
        w->before = NULL;
        assert_int_equal(c.seen.outcome, RP_OUT_UNKNOWN);
        assert_false(c.seen.checked);
        assert_non_null(strstr(c.command.error.text, "changed while it was read"));
        uploads_expect(w, id, RP_FILE_PENDING);
    }
}

static int64_t begin_with(struct world *w, const char *name, const uint8_t *digest)
{
    struct rp_init c = uploads_init(w, name, 5);
    c.checksum = digest;
    world_ok(rp_command_run(w->catalog, &c.command), &c.command.error, __FILE__, __LINE__);
    return c.file_id;
}

static void a_checksum_is_promised_once_or_twice_the_same(void **state)
{
    struct world *w = *state;
    uint8_t digest[RP_DIGEST_BYTES], other[RP_DIGEST_BYTES];
    struct rp_file_command c;
    uploads_digest(w, "bytes", digest);
    uploads_digest(w, "other", other);
    int64_t id = begin_with(w, "photo", digest);
    uploads_put(w, id, "longer");
    assert_int_equal(uploads_confirm(w, id, digest, &c), RP_ESIZE);
    assert_false(c.seen.checked); /* another size says enough: the bytes are not read */
    uploads_put(w, id, "bytes");
    assert_int_equal(uploads_confirm(w, id, other, &c), RP_ECHECKSUM);
    uploads_expect(w, id, RP_FILE_PENDING);
    assert_int_equal(uploads_confirm(w, id, digest, &c), 0);
    uploads_expect(w, id, RP_FILE_LIVE);
}

static void a_store_that_is_closed_is_not_looked_at(void **state)
{
    struct world *w = *state;
    struct rp_backend *backend = w->store.backend;
    struct rp_file file = uploads_file(w, uploads_begin(w, "photo", "bytes"));
    struct rp_seen seen;
    w->store.backend = NULL;
    rp_error_set(&w->store.closed, RP_EDENIED, "the key is not valid");
    assert_int_equal(rp_file_see(&file, &w->store, NULL, &seen, &err), RP_EDENIED);
    assert_string_equal(err.text, "the key is not valid");
    w->store.backend = backend;
}

/* ---- marks by key ---- */

/* Each of the two is told apart: both are refused, in favour of the verb on files. */
static void objects_of_several_files_are_not_marked_by_key(void **state)
{
    struct world *w = *state;
    int64_t ids[] = { uploads_live(w, "one", "bytes"), uploads_live(w, "two", "bytes") };
    struct rp_mark_request requests[3];
    struct rp_mark_answer answers[3];
    world_put(w, "plain", "bytes");
    for (size_t i = 0; i < 3; i++)
        requests[i] = (struct rp_mark_request){
            .key = i < 2 ? uploads_file(w, ids[i]).key : "plain", .grace_ms = -1, .at_ms = -1, .reason = ""
        };
    ok(rp_mark_many(w->catalog, &w->store, requests, 3, "tester", false, answers, &err));
    assert_int_equal(answers[0].what, RP_MARK_REFUSED);
    assert_int_equal(answers[1].what, RP_MARK_REFUSED);
    assert_int_equal(answers[2].what, RP_MARK_CREATED);
    for (size_t i = 0; i < 2; i++) {
        char id[RP_ID_TEXT];
        assert_non_null(strstr(answers[i].error.text, rp_id_format(RP_ID_FILE, ids[i], id)));
        uploads_expect(w, ids[i], RP_FILE_LIVE);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_set_up, world_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(uploads_of_one_round_join_each_its_own_transaction),
        TEST(a_child_that_is_confirmed_before_its_parent_in_one_round_lives),
        TEST(of_two_later_times_in_one_round_the_latest_holds),
        TEST(deleted_twice_in_one_round_it_is_due_at_the_later_time),
        TEST(more_time_is_given_to_those_who_still_wait),
        TEST(a_file_in_quarantine_shows_the_mark_that_moved_it_there),
        TEST(a_restore_of_a_file_in_quarantine_says_how),
        TEST(a_time_that_is_past_is_now),
        TEST(what_is_shown_stays_shown_and_is_written_once),
        TEST(what_was_begun_without_a_processor_is_not_sent_to_one),
        TEST(a_commit_replaces_what_is_still_being_scanned),
        TEST(without_its_store_a_file_is_neither_deleted_nor_committed),
        TEST(without_its_store_a_file_is_restored_and_judged),
        TEST(who_is_of_no_tenant_may_confirm_and_commit_for_all),
        TEST(an_object_that_changes_between_the_look_and_the_reading_is_unknown),
        TEST(a_checksum_is_promised_once_or_twice_the_same),
        TEST(a_store_that_is_closed_is_not_looked_at),
        TEST(objects_of_several_files_are_not_marked_by_key),
    };
    return cmocka_run_group_tests_name("files in awkward rounds", tests, NULL, NULL);
}
