/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds and filters of what is read: lists that are longer than the room for them, pages that end
 * anywhere, counters that are compared with their ledger, times that two indexes know. A list that
 * does not fit is told or goes on at the next call; it is never cut without a word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "catalog/alert.h"
#include "catalog/token.h"
#include "core/check/references.h"
#include "core/hold.h"
#include "core/mark/import.h"
#include "core/mark/list.h"
#include "core/quota.h"
#include "core/restore/restore.h"
#include "core/state.h"
#include "core/subject/quarantine.h"
#include "lib/answer.h"
#include "lib/ask.h"
#include "lib/uploads.h"

#define DAY RP_DAY_MS

static struct rp_error err;

/* ---- lists that are longer than their room ---- */

static void add_lanes(struct world *w, int n)
{
    for (int i = 0; i < n; i++)
        world_script(w, "INSERT INTO lane (lane, seq, head, last_id, heads_at) VALUES (%d, 0, zeroblob(32), 0, 0)",
                     10 + i);
}

static void lanes_that_do_not_fit_are_told(void **state)
{
    struct world *w = *state;
    struct rp_audit_head heads[2];
    struct rp_audit_verdict verdict;
    int64_t lanes[1];
    size_t n = 0;
    world_put(w, "a", "x");
    (void)world_mark(w, "a", DAY);
    struct rp_catalog *other = world_catalog(w, 1, NULL);
    struct rp_mark mark = world_newest(w, "a");
    struct rp_reprieve_answer answer;
    ok(rp_reprieve_many(other, &w->store, &mark, 1, "tester", &answer, &err));
    rp_catalog_close(other);
    ok(rp_audit_heads(w->catalog->db, heads, 2, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(rp_audit_heads(w->catalog->db, heads, 1, &n, &err), RP_ETOOBIG);
    assert_int_equal(rp_audit_lanes(w->catalog->db, lanes, 1, &n, &err), RP_ETOOBIG);
    ok(rp_audit_verify(w->catalog, &verdict, &err));
    assert_false(verdict.broken);
    add_lanes(w, 255); /* more than there can be */
    assert_int_equal(rp_audit_verify(w->catalog, &verdict, &err), RP_ECORRUPT);
}

static void members_that_do_not_fit_are_told(void **state)
{
    struct world *w = *state;
    struct rp_files members;
    int64_t txn = uploads_txn_begin(w);
    (void)uploads_member(w, txn, "one", "bytes", 0);
    ok(rp_files_init(&members, 1, &w->arena, &err));
    ok(rp_files_members(w->catalog->db, txn, &members, &err));
    assert_int_equal(members.n, 1);
    (void)uploads_member(w, txn, "two", "bytes", 0);
    ok(rp_files_init(&members, 1, &w->arena, &err));
    assert_int_equal(rp_files_members(w->catalog->db, txn, &members, &err), RP_ETOOBIG);
}

static void claimed_marks_are_read_as_far_as_there_is_room(void **state)
{
    struct world *w = *state;
    struct rp_marks page;
    world_put_many(w, 3, 1);
    world_mark_many(w, 3, 0);
    world_script(w, "UPDATE mark SET state = 3");
    ok(rp_marks_init(&page, 2, &w->arena, &err));
    ok(rp_hold_claimed(w->catalog->db, w->store.id, 0, &page, &err));
    assert_int_equal(page.n, 2);
    ok(rp_hold_claimed(w->catalog->db, w->store.id, page.at[1].id, &page, &err));
    assert_int_equal(page.n, 2);
}

static const char *name_of_main(void *ctx, int64_t store_id)
{
    (void)ctx;
    (void)store_id;
    return "main";
}

/* The answer lists the first thousand, and says how many there are. */
static void a_hold_lists_a_thousand_claimed_marks(void **state)
{
    struct world *w = *state;
    struct rp_hold_command everything = { .scope = RP_SCOPE_EVERYTHING, .reason = "stop", .command.actor = "tester" };
    struct rp_hold_command few = {
        .scope = RP_SCOPE_PREFIX, .store = &w->store, .key = "many/01", .reason = "stop", .command.actor = "tester"
    };
    world_put_many(w, RP_HOLD_CLAIMED_MAX + 5, 1);
    world_mark_many(w, RP_HOLD_CLAIMED_MAX + 5, 0);
    world_script(w, "UPDATE mark SET state = 3");
    world_script(w, "INSERT INTO store (id, kind, name) VALUES (99, 1, 'second')");
    ok(ask_hold(w->catalog, &everything, &w->arena, &err));
    assert_int_equal(everything.claimed.n, RP_HOLD_CLAIMED_MAX);
    assert_int_equal(everything.claimed_total, RP_HOLD_CLAIMED_MAX + 5);
    json_t *answer = rp_placed_json(&everything, "everything", name_of_main, NULL);
    assert_int_equal(json_integer_value(json_object_get(answer, "claimed_total")), RP_HOLD_CLAIMED_MAX + 5);
    json_decref(answer);
    ok(ask_hold(w->catalog, &few, &w->arena, &err)); /* those of the second page */
    assert_int_equal(few.claimed.n, 5);
    assert_int_equal(few.claimed_total, 5);
}

/* ---- stores that are noted ---- */

static void a_store_that_cannot_be_noted_is_not_tried_for_ever(void **state)
{
    struct world *w = *state;
    struct rp_store_row row;
    world_script(w, "CREATE TRIGGER nobody BEFORE INSERT ON store BEGIN SELECT RAISE(IGNORE); END");
    assert_int_equal(rp_store_get(w->catalog, RP_STORE_STORE, "second", &row, &err), RP_ENOTFOUND);
    world_script(w, "DROP TRIGGER nobody");
    ok(rp_store_get(w->catalog, RP_STORE_STORE, "second", &row, &err));
    assert_string_equal(row.name, "second");
}

struct busy {
    int calls, at, code;
};

static int busy_once(void *ctx, const char *call, struct rp_error *e)
{
    struct busy *busy = ctx;
    (void)call;
    return ++busy->calls == busy->at ? rp_error_set(e, busy->code, "injected") : 0;
}

static void a_store_is_noted_although_the_database_was_busy_once(void **state)
{
    struct world *w = *state;
    struct busy busy = { .at = -1 };
    struct rp_store_row row;
    struct rp_catalog *catalog = world_catalog(w, 1, &(struct rp_db_fault){ .before = busy_once, .ctx = &busy });
    busy = (struct busy){ .at = 2, .code = RP_EBUSY }; /* look, add, look */
    ok(rp_store_get(catalog, RP_STORE_STORE, "second", &row, &err));
    assert_string_equal(row.name, "second");
    assert_int_equal(err.code, 0);
    busy = (struct busy){ .at = 2, .code = RP_EFULL };
    assert_int_equal(rp_store_get(catalog, RP_STORE_STORE, "third", &row, &err), RP_EFULL);
    assert_non_null(strstr(err.text, "third"));
    rp_catalog_close(catalog);
}

/* ---- counters and their ledger ---- */

struct comparing {
    int seen, stop_after;
};

static int compare(void *ctx, const struct rp_tenant *counted, const struct rp_tenant *summed, struct rp_error *e)
{
    struct comparing *c = ctx;
    assert_int_equal(counted->id, summed->id);
    return ++c->seen == c->stop_after ? rp_error_set(e, RP_EFAILED, "enough") : 0;
}

static void each_counter_is_compared_and_only_told_unless_it_is_to_be_mended(void **state)
{
    static const char *const spoil[] = { "used_bytes = used_bytes + 1", "reserved_bytes = 1", "open_uploads = 1" };
    struct world *w = *state;
    struct rp_quota_check check;
    struct comparing c = { 0 };
    for (int i = 0; i < 70; i++) {
        char name[32];
        snprintf(name, sizeof name, "tenant-%d", i);
        (void)uploads_tenant(w, name);
    }
    (void)uploads_live(w, "photo", "bytes");
    for (size_t i = 0; i < 3; i++) {
        world_script(w, "UPDATE tenant SET %s WHERE name = 'acme'", spoil[i]);
        for (int k = 0; k < 2; k++) { /* looking changes nothing */
            ok(ask_proof(w->catalog, false, compare, &c, &check, &err));
            assert_int_equal(check.wrong, 1);
            assert_int_equal(check.tenants, 71);
        }
        ok(ask_proof(w->catalog, true, compare, &c, &check, &err));
        ok(ask_proof(w->catalog, false, compare, &c, &check, &err));
        assert_int_equal(check.wrong, 0);
        uploads_expect_quota(w, 5, 0, 0);
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'quota.rebuilt'"), 3);
    c = (struct comparing){ .stop_after = 2 };
    assert_int_equal(ask_proof(w->catalog, true, compare, &c, &check, &err), RP_EFAILED);
    assert_int_equal(c.seen, 2);
    world_check(w);
}

static int limit_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    (void)ctx;
    return rp_tenant_limit(tx, 12345, true, 5, e);
}

static void a_tenant_that_is_not_there_gets_no_limit(void **state)
{
    struct world *w = *state;
    assert_int_equal(rp_catalog_transact(w->catalog, limit_tx, NULL, &err), RP_ENOTFOUND);
}

/* ---- lists of marks ---- */

static size_t list(struct world *w, struct rp_list_filter filter, struct rp_list_cursor *cursor, size_t max,
                   int64_t looked_max)
{
    struct rp_marks page;
    ok(rp_marks_init(&page, max, &w->arena, &err));
    ok(rp_marks_list(w->catalog->db, &filter, cursor, looked_max, &page, &err));
    return page.n;
}

static size_t list_all(struct world *w, struct rp_list_filter filter)
{
    struct rp_list_cursor cursor = { 0 };
    size_t n = 0;
    while (!cursor.done)
        n += list(w, filter, &cursor, 2, 100);
    return n;
}

static void mark_as(struct world *w, const char *key, const char *reason, int64_t grace_ms)
{
    struct rp_mark_request request = { .key = key, .grace_ms = grace_ms, .at_ms = -1, .reason = reason };
    struct rp_mark_answer answer;
    world_put(w, key, "bytes");
    ok(rp_mark_many(w->catalog, &w->store, &request, 1, "tester", false, &answer, &err));
}

static void marks_are_listed_by_what_is_asked_for_together(void **state)
{
    struct world *w = *state;
    int64_t now = rp_clock_now_ms(&w->host_clock);
    mark_as(w, "a", "old", DAY);
    mark_as(w, "b", "old", 9 * DAY);
    mark_as(w, "c", "new", 2 * DAY);
    world_script(w, "UPDATE mark SET state = 3, was = 1 WHERE key = 'c'");
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1 }), 3);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .reason = "old" }), 2);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .state = RP_MARKED }), 2);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .state = RP_PURGING }), 1);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .reason = "old", .state = RP_PURGING }),
                     0);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = now + 3 * DAY }), 2);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = now + 3 * DAY, .reason = "old" }), 1);
    /* the index is on the next look, which may be later than the due time: both bounds are asked */
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = now + 3 * DAY, .slack_ms = 30 * DAY }), 2);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = RP_TIME_MAX_MS, .slack_ms = DAY }), 3);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .state = RP_DEAD, .reason = "old" }), 0);
    world_script(w, "UPDATE mark SET state = 6, was = 3, next_at = NULL WHERE key = 'b';"
                    "INSERT INTO dead_letter (id, mark_id, from_state, attempts, error, died_at, open) "
                    "SELECT 1, id, 3, 3, 'why', 1, 1 FROM mark WHERE key = 'b'");
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .state = RP_DEAD, .reason = "new" }), 0);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .state = RP_DEAD, .reason = "old" }), 1);
}

static void a_reason_is_text_of_a_bounded_length(void **state)
{
    struct world *w = *state;
    char longest[RP_REASON_MAX + 2];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const struct {
        const char *reason;
        int code;
    } cases[] = { { longest, RP_EINVAL }, { "no \xff text", RP_EINVAL }, { longest + 1, 0 } };
    world_put(w, "a", "bytes");
    for (size_t i = 0; i < 3; i++) {
        struct rp_mark_request request = { .key = "a", .grace_ms = -1, .at_ms = -1, .reason = cases[i].reason };
        struct rp_mark_answer answer;
        ok(rp_mark_many(w->catalog, &w->store, &request, 1, "tester", false, &answer, &err));
        assert_int_equal(answer.error.code, cases[i].code);
        assert_int_equal(answer.what, cases[i].code < 0 ? RP_MARK_REFUSED : RP_MARK_CREATED);
    }
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), 1);
}

/* Two stores, and a cursor that stands in the second. */
static void a_list_goes_on_in_the_store_where_it_stopped(void **state)
{
    struct world *w = *state;
    const struct rp_list_filter all = { .due_before_ms = -1 };
    const struct rp_list_filter second = { .due_before_ms = -1, .store_id = 99 };
    struct rp_list_cursor cursor = { 0 };
    for (int i = 0; i < 6; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        mark_as(w, key, "why", (i + 1) * DAY);
    }
    world_script(w, "INSERT INTO store (id, kind, name) VALUES (99, 1, 'second'), (100, 1, 'third');"
                    "UPDATE mark SET store_id = 99 WHERE key IN ('k1', 'k3', 'k5')");
    assert_int_equal(list(w, all, &cursor, 5, 100), 5);
    assert_int_equal(cursor.store_id, 99);
    assert_false(cursor.done);
    assert_int_equal(list(w, all, &cursor, 5, 100), 1);
    assert_true(cursor.done);
    /* as few may be looked at as there is patience for */
    cursor = (struct rp_list_cursor){ 0 };
    assert_int_equal(list(w, all, &cursor, 5, 2), 2);
    assert_false(cursor.done);
    assert_int_equal(list(w, all, &cursor, 5, 2), 2);
    assert_int_equal(list(w, all, &cursor, 5, 2), 2);
    cursor = (struct rp_list_cursor){ 0 };
    assert_int_equal(list(w, second, &cursor, 5, 100), 3);
    assert_int_equal(list_all(w, (struct rp_list_filter){ .due_before_ms = -1, .store_id = 99, .reason = "why" }), 3);
}

static int stop_at_once(void *ctx, const struct rp_mark *mark, struct rp_error *e)
{
    int *answer = ctx;
    (void)mark;
    return *answer < 0 ? rp_error_set(e, *answer, "enough") : *answer;
}

/* After the first one, whatever else there is. */
static void an_undo_that_is_told_to_stop_stops(void **state)
{
    struct world *w = *state;
    struct rp_restore_filter everything = { .reason = "why", .since_ms = -1, .until_ms = -1 };
    mark_as(w, "a", "why", 0);
    w->config.mode = RP_MODE_QUARANTINE;
    (void)world_sweep(w);
    world_script(w, "INSERT INTO store (id, kind, name) VALUES (99, 1, 'second')");
    int answer = 1;
    ok(rp_restore_each(w->catalog->db, &everything, stop_at_once, &answer, &err));
    answer = RP_EFAILED;
    assert_int_equal(rp_restore_each(w->catalog->db, &everything, stop_at_once, &answer, &err), RP_EFAILED);
}

static void a_copy_tells_the_run_that_made_it(void **state)
{
    struct world *w = *state;
    char key[RP_QUARANTINE_KEY], run[RP_ID_TEXT];
    mark_as(w, "a", "why", 0);
    int64_t id = world_newest(w, "a").id;
    w->config.mode = RP_MODE_QUARANTINE;
    struct rp_sweep_result *result = world_sweep(w);
    struct rp_mark mark = { .id = id, .store_id = w->store.id }, copy;
    ok(rp_quarantine_mark(w->catalog->db, &mark, &w->arena, &copy, &err));
    assert_string_equal(copy.key, rp_quarantine_key(id, key));
    RP_CLEANUP(rp_json_decrefp) json_t *shown = rp_mark_line(&copy, "main");
    assert_string_equal(rp_json_get_text(shown, "run", ""), rp_id_format(RP_ID_RUN, result->run.id, run));
}

/* ---- copies in quarantine ---- */

static void a_copy_is_found_while_its_mark_waits_or_was_returned(void **state)
{
    struct world *w = *state;
    char key[RP_QUARANTINE_KEY];
    struct rp_mark aside;
    mark_as(w, "a", "why", 0);
    struct rp_mark mark = world_newest(w, "a");
    assert_int_equal(rp_quarantine_mark(w->catalog->db, &mark, &w->arena, &aside, &err), RP_ENOTFOUND);
    w->config.mode = RP_MODE_QUARANTINE;
    (void)world_sweep(w);
    rp_quarantine_key(mark.id, key);
    ok(rp_quarantine_mark(w->catalog->db, &mark, &w->arena, &aside, &err));
    assert_string_equal(aside.key, key);
    /* its copy was erased: what came before does not count */
    world_script(w, "UPDATE mark SET state = 4, active = NULL, next_at = NULL, outcome = 1 WHERE key = '%s'", key);
    assert_int_equal(rp_quarantine_mark(w->catalog->db, &mark, &w->arena, &aside, &err), RP_ENOTFOUND);
    w->config.mode = RP_MODE_PURGE;
    world_put(w, key, "bytes");
    world_script(
        w,
        "INSERT INTO mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, etag, version, "
        "size_bytes, modified_ms, reason, actor) SELECT id + 1, store_id, key, 1, 1, 1, 9, 9, 9, etag, version, "
        "size_bytes, modified_ms, reason, actor FROM mark WHERE key = '%s'",
        key);
    ok(rp_quarantine_mark(w->catalog->db, &mark, &w->arena, &aside, &err));
    assert_int_equal(aside.state, RP_MARKED);
}

static void what_is_gone_does_not_stand(void **state)
{
    struct world *w = *state;
    struct rp_identity as;
    struct rp_mark aside = { .key = "copy", .size_bytes = 5 };
    world_put(w, "copy", "bytes");
    assert_false(rp_quarantine_stands(w->store.backend, &aside, "key", &as));
    world_put(w, "key", "other");
    assert_false(rp_quarantine_stands(w->store.backend, &aside, "key", &as));
    world_put(w, "key", "bytes");
    assert_true(rp_quarantine_stands(w->store.backend, &aside, "key", &as));
}

/* ---- what waits longest ---- */

static int64_t oldest(struct world *w)
{
    int64_t ms = -1;
    ok(rp_figure_oldest_due(w->catalog->db, w->store.id, rp_clock_now_ms(&w->host_clock), &ms, &err));
    return ms;
}

static void the_oldest_mark_past_due_may_wait_or_be_claimed(void **state)
{
    struct world *w = *state;
    assert_int_equal(oldest(w), 0);
    mark_as(w, "claimed", "why", 0);
    /* claimed, failed, and to be tried again much later: only the index of claimed marks knows
     * it */
    world_script(w, "UPDATE mark SET state = 3, due_at = 5000, next_at = next_at + %" PRId64, 9 * DAY);
    assert_int_equal(oldest(w), 5000);
    mark_as(w, "waits", "why", 0);
    world_script(w, "UPDATE mark SET due_at = 7000, next_at = 7000 WHERE key = 'waits'");
    assert_int_equal(oldest(w), 5000);
    world_script(w, "UPDATE mark SET due_at = 3000, next_at = 3000 WHERE key = 'waits'");
    assert_int_equal(oldest(w), 3000);
}

/* ---- references in several databases ---- */

/* Made by a program that is not ours: it may choose the encoding. */
static void make_app(struct world *w, const char *name, const char *sql, char url[200])
{
    sqlite3 *db = NULL;
    snprintf(url, 200, "sqlite:%s/%s.db", w->dbs.dir, name);
    assert_int_equal(sqlite3_open(url + strlen("sqlite:"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* What any of them names is referenced; a copy to read from may lag, and is not asked. */
static void references_are_summed_over_databases_and_never_read_from_a_copy(void **state)
{
    struct world *w = *state;
    char urls[2][200];
    const char *const keys[] = { "a", "b", "c" };
    struct rp_referenced found[3];
    struct rp_references *guard = NULL;
    make_app(w, "one", "CREATE TABLE used (key TEXT); INSERT INTO used VALUES ('a'), ('b')", urls[0]);
    make_app(w, "two", "CREATE TABLE used (key TEXT); INSERT INTO used VALUES ('b')", urls[1]);
    const struct rp_database_config databases[] = {
        { .name = "one", .url = urls[0], .read_url = "" },
        { .name = "two", .url = urls[1], .read_url = "sqlite:/nowhere/at/all.db" },
    };
    struct rp_reference references[] = { { .database = "one", .table = "used", .column = "key" },
                                         { .database = "two", .table = "used", .column = "key" },
                                         { .database = "one", .sql = "SELECT key FROM used WHERE key = 'a'" } };
    const struct rp_config config = { .environment = "test",
                                      .databases = (struct rp_database_config *)(uintptr_t)databases,
                                      .n_databases = 2 };
    w->config.referenced_by = references;
    w->config.n_referenced_by = 3;
    ok(rp_references_new(&config, &w->config, &guard, &err));
    ok(rp_references_count(guard, keys, 3, found, &err));
    assert_int_equal(found[0].rows, 2);
    assert_string_equal(found[0].first, "used.key in one");
    assert_int_equal(found[1].rows, 2);
    assert_int_equal(found[2].rows, 0);
    assert_null(found[2].first);
    rp_references_free(guard);
    references[0].column = "not there"; /* SQLite could take it for a text */
    ok(rp_references_new(&config, &w->config, &guard, &err));
    assert_int_equal(rp_references_count(guard, keys, 3, found, &err), RP_EUNAVAILABLE);
    rp_references_free(guard);
}

static int count_in(struct rp_references *guard, const char *key)
{
    struct rp_referenced found = { .rows = -1 };
    int r = rp_references_count(guard, &key, 1, &found, &err);
    return r < 0 ? r : (int)found.rows;
}

/* A backup that is moved into its place, a link that is switched: the rows of today are in the
 * other file. */
static void a_sqlite_file_that_was_replaced_is_asked_anew_and_one_that_is_gone_is_no_answer(void **state)
{
    struct world *w = *state;
    char url[240], next[240], path[3][200];
    struct rp_references *guard = NULL;
    struct rp_database_config database = { .name = "app", .url = url, .read_url = "" };
    const struct rp_config config = { .databases = &database, .n_databases = 1 };
    struct rp_reference reference = { .database = "app", .sql = "SELECT * FROM used" };
    make_app(w, "now", "CREATE TABLE used (k TEXT)", url);
    make_app(w, "restored", "CREATE TABLE used (k TEXT); INSERT INTO used VALUES ('a')", next);
    snprintf(path[0], 200, "%s/link.db", w->dbs.dir);
    assert_int_equal(symlink("now.db", path[0]), 0);
    snprintf(path[1], 200, "%s/now.db", w->dbs.dir);
    snprintf(path[2], 200, "%s/restored.db", w->dbs.dir);
    snprintf(url, sizeof url, "sqlite:%s", path[0]);
    w->config.referenced_by = &reference;
    w->config.n_referenced_by = 1;
    ok(rp_references_new(&config, &w->config, &guard, &err));
    assert_int_equal(count_in(guard, "a"), 0);
    assert_int_equal(unlink(path[0]), 0);
    assert_int_equal(count_in(guard, "a"), RP_EUNAVAILABLE);
    assert_int_equal(symlink("restored.db", path[0]), 0);
    assert_int_equal(count_in(guard, "a"), 1);
    assert_int_equal(unlink(path[0]), 0);
    assert_int_equal(symlink("now.db", path[0]), 0);
    assert_int_equal(count_in(guard, "a"), 0);
    assert_int_equal(rename(path[2], path[1]), 0);
    assert_int_equal(count_in(guard, "a"), 1);
    make_app(w, "columns", "CREATE TABLE used (k TEXT, other TEXT)", next);
    assert_int_equal(rename(next + strlen("sqlite:"), path[1]), 0);
    assert_int_equal(count_in(guard, "a"), RP_EUNAVAILABLE);
    rp_references_free(guard);
}

/* In SQLite a key may be held as text, as bytes or as a number, whatever the column was declared to
 * be. */
static void a_key_that_sqlite_holds_as_a_number_is_a_reference(void **state)
{
    struct world *w = *state;
    static const char *const keys[] = { "7", "07", "7.0", "bytes", "0.3", "9007199254740993", "9007199254740992", "x" };
    static const char *const least[] = { "-9223372036854775808" };
    static const struct {
        const char *declared, *sql; /* sql NULL: the column itself */
        const char *found;          /* of `keys` in order, 1: referenced */
        const char *encoding;       /* NULL: UTF-8 */
    } trials[] = { { "", NULL, "11111100", NULL },
                   { "INTEGER", NULL, "11111100", NULL },
                   { "STRING", NULL, "11111100", NULL },
                   { "REAL", NULL, "11111110", NULL },
                   { "TEXT", NULL, "10011100", NULL },
                   { "INTEGER", "SELECT k + 0 FROM used", "11101100", NULL },
                   { "", "SELECT k FROM used", "11111100", NULL },
                   { "", "SELECT 'x' UNION ALL SELECT k FROM used", "11111101", NULL },
                   { "", NULL, "11111100", "UTF-16le" },
                   { "TEXT", NULL, "10011100", "UTF-16be" } };
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        char name[16], sql[300], url[200], found[9] = "";
        struct rp_referenced counts[8], none;
        struct rp_references *guard = NULL;
        snprintf(name, sizeof name, "typed%zu", t);
        snprintf(sql, sizeof sql,
                 "PRAGMA encoding = '%s'; CREATE TABLE used (k %s); INSERT INTO used VALUES (7), (X'6279746573'), "
                 "(0.1 + 0.2), (9007199254740993), (NULL), (1e300)",
                 trials[t].encoding != NULL ? trials[t].encoding : "UTF-8", trials[t].declared);
        make_app(w, name, sql, url);
        struct rp_database_config database = { .name = "app", .url = url, .read_url = "" };
        const struct rp_config config = { .databases = &database, .n_databases = 1 };
        struct rp_reference reference = { .database = "app", .table = "used", .column = "k" };
        if (trials[t].sql != NULL) reference = (struct rp_reference){ .database = "app", .sql = trials[t].sql };
        w->config.referenced_by = &reference;
        w->config.n_referenced_by = 1;
        ok(rp_references_new(&config, &w->config, &guard, &err));
        ok(rp_references_count(guard, keys, 8, counts, &err));
        ok(rp_references_count(guard, least, 1, &none, &err)); /* whose amount is no integer */
        assert_int_equal(none.rows, 0);
        rp_references_free(guard);
        for (size_t i = 0; i < 8; i++)
            found[i] = counts[i].rows > 0 ? '1' : '0';
        assert_string_equal(found, trials[t].found);
    }
}

/* ---- tokens, imports ---- */

struct linked {
    const char *link;
    struct rp_token session;
};

static int use_link_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct linked *l = ctx;
    char secret[RP_TOKEN_SECRET];
    int r = rp_token_secret(RP_TOKEN_SESSION, secret, e);
    return r < 0 ? r : rp_token_use_link(tx, l->link, secret, &l->session, e);
}

static int create_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    char secret[RP_TOKEN_SECRET];
    int r = rp_token_secret(RP_TOKEN_BEARER, secret, e);
    return r < 0 ? r : rp_token_create(tx, ctx, secret, "tester", e);
}

static void what_is_no_link_no_scope_and_no_name_is_refused(void **state)
{
    struct world *w = *state;
    struct linked linked = { .link = "rp_link_short" };
    struct rp_token token = { .kind = RP_TOKEN_BEARER, .scopes = 1 };
    unsigned scopes = 0;
    assert_int_equal(rp_catalog_transact(w->catalog, use_link_tx, &linked, &err), RP_EUNAUTHORIZED);
    assert_int_equal(
        rp_token_scopes_parse("files.read,a-scope-that-is-longer-than-what-an-error-repeats", &scopes, &err),
        RP_EINVAL);
    assert_null(strstr(err.text, "repeats"));
    assert_non_null(strstr(err.text, "a-scope-that-is-longer"));
    memset(token.name, 'x', sizeof token.name - 1);
    int r = rp_catalog_transact(w->catalog, create_tx, &token, &err);
    assert_int_equal(r, sizeof token.name - 1 > RP_TOKEN_NAME_MAX ? RP_EINVAL : 0);
}

static int create_link_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct rp_token token = { .kind = RP_TOKEN_LINK, .name = "link", .scopes = 1, .expires_at_ms = tx->late_ms + DAY };
    int r = rp_token_secret(RP_TOKEN_LINK, ctx, e);
    return r < 0 ? r : rp_token_create(tx, &token, ctx, "tester", e);
}

static void a_link_works_once_and_its_session_ends(void **state)
{
    struct world *w = *state;
    char secret[RP_TOKEN_SECRET];
    struct linked linked = { .link = secret };
    ok(rp_catalog_transact(w->catalog, create_link_tx, secret, &err));
    ok(rp_catalog_transact(w->catalog, use_link_tx, &linked, &err));
    int64_t left_ms = linked.session.expires_at_ms - rp_clock_now_ms(w->catalog->clock);
    assert_in_range(left_ms, RP_TOKEN_SESSION_MS - RP_MINUTE_MS, RP_TOKEN_SESSION_MS);
    assert_int_equal(linked.session.kind, RP_TOKEN_SESSION);
    assert_int_equal(rp_catalog_transact(w->catalog, use_link_tx, &linked, &err), RP_EUNAUTHORIZED);
}

static void an_import_of_nothing_ends(void **state)
{
    struct world *w = *state;
    RP_CLEANUP(rp_import_end) struct rp_import import = { .store = &w->store, .prefix = "nothing/", .actor = "tester" };
    ok(rp_import_begin(&import, &err));
    assert_int_equal(rp_import_next(&import, w->catalog, &err), 1);
    assert_int_equal(rp_import_next(&import, w->catalog, &err), 0);
    assert_int_equal(import.counts.looked_at, 0);
    assert_false(import.limited);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_set_up, world_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lanes_that_do_not_fit_are_told),
        TEST(members_that_do_not_fit_are_told),
        TEST(claimed_marks_are_read_as_far_as_there_is_room),
        TEST(a_hold_lists_a_thousand_claimed_marks),
        TEST(a_store_that_cannot_be_noted_is_not_tried_for_ever),
        TEST(a_store_is_noted_although_the_database_was_busy_once),
        TEST(each_counter_is_compared_and_only_told_unless_it_is_to_be_mended),
        TEST(a_tenant_that_is_not_there_gets_no_limit),
        TEST(marks_are_listed_by_what_is_asked_for_together),
        TEST(a_reason_is_text_of_a_bounded_length),
        TEST(a_list_goes_on_in_the_store_where_it_stopped),
        TEST(an_undo_that_is_told_to_stop_stops),
        TEST(a_copy_tells_the_run_that_made_it),
        TEST(a_copy_is_found_while_its_mark_waits_or_was_returned),
        TEST(what_is_gone_does_not_stand),
        TEST(the_oldest_mark_past_due_may_wait_or_be_claimed),
        TEST(references_are_summed_over_databases_and_never_read_from_a_copy),
        TEST(a_key_that_sqlite_holds_as_a_number_is_a_reference),
        TEST(a_sqlite_file_that_was_replaced_is_asked_anew_and_one_that_is_gone_is_no_answer),
        TEST(what_is_no_link_no_scope_and_no_name_is_refused),
        TEST(a_link_works_once_and_its_session_ends),
        TEST(an_import_of_nothing_ends),
    };
    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
