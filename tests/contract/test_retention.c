/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: what has ended goes after a while, and nothing goes that somebody still looks at. On
 * both engines. Needs PostgreSQL: run under tests/lib/with-postgres. */
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
#include "base/id.h"
#include "base/text/json.h"
#include "core/explain.h"
#include "core/retention/retention.h"
#include "lib/uploads.h"

#define DAY RP_DAY_MS

static struct rp_error err;

/* Whatever has ended is old: the moment before which it ended lies ahead. */
#define OLD (-RP_MINUTE_MS)
static const struct rp_retention_config everything = { OLD, OLD, OLD, RP_FOREVER_MS, "" };
static const struct rp_retention_config nothing = { RP_FOREVER_MS, RP_FOREVER_MS, RP_FOREVER_MS, RP_FOREVER_MS, "" };

static struct rp_retention retention_of(struct world *w, struct rp_catalog *catalog,
                                        const struct rp_retention_config *rules)
{
    return (struct rp_retention){
        .catalog = catalog, .rules = *rules, .worker = &w->worker, .actor = "tester", .stale_after_ms = RP_MINUTE_MS
    };
}

static int64_t let_go(const struct rp_run *run, const char *what)
{
    for (size_t i = 0; i < run->figures.n_let_go; i++)
        if (strcmp(run->figures.let_go[i].what, what) == 0) return run->figures.let_go[i].rows;
    return -1;
}

/* A whole run, which must succeed. */
static struct rp_run *retain(struct world *w, const struct rp_retention_config *rules)
{
    static struct rp_run run;
    struct rp_retention retention = retention_of(w, w->catalog, rules);
    const char *outcome;
    ok(rp_retention_begin(&retention, &run, &err));
    ok(rp_retention_carry(&retention, &run, &outcome, &err));
    assert_string_equal(outcome, "done");
    return &run;
}

static int64_t marks_of(struct world *w, const char *key)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM mark WHERE key = '%s'", key);
    return world_number(w, sql);
}

static void purge(struct world *w, const char *key)
{
    world_put(w, key, "hello");
    world_mark(w, key, 0);
    world_swept(w, 1);
}

/* ---- marks ---- */

static int ignore_line(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    (void)ctx, (void)line, (void)e;
    return 0;
}

static void test_marks_that_ended_go_and_others_stay(void **state)
{
    struct world *w = *state;
    struct rp_story_end end;
    purge(w, "purged");
    world_put(w, "kept", "hello");
    world_mark(w, "kept", 10 * DAY);
    world_restore(w, "kept");
    world_put(w, "waits", "hello");
    world_mark(w, "waits", 10 * DAY);
    assert_int_equal(let_go(retain(w, &nothing), "marks"), 0);
    assert_int_equal(let_go(retain(w, &(struct rp_retention_config){ DAY, DAY, DAY, DAY, "" }), "marks"), 0);

    struct rp_run *run = retain(w, &everything);
    assert_int_equal(let_go(run, "marks"), 2);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), 1);
    assert_int_equal(marks_of(w, "waits"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit WHERE event = 'retention.let_go' AND details LIKE "
                                     "'%\"what\":\"marks\",\"rows\":2%'"),
                     1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE kind = 'retention' AND outcome = 'done' "
                                     "AND body LIKE '%\"marks\":2%'"),
                     1);
    assert_int_equal(let_go(retain(w, &everything), "marks"), 0);

    /* "never marked" would be a lie */
    assert_int_equal(rp_explain(w->catalog, &w->store, "purged", &w->arena,
                                &(struct rp_story){ .fn = ignore_line, .ctx = NULL }, &end, &err),
                     RP_ENOTFOUND);
    assert_non_null(strstr(err.text, "let go"));
    rp_error_clear(&err);
    ok(rp_explain(w->catalog, &w->store, "kept", &w->arena, &(struct rp_story){ .fn = ignore_line, .ctx = NULL }, &end,
                  &err));
    assert_non_null(strstr(end.words, "let go"));
    world_swept(w, 0);
}

static int64_t newest_id(struct world *w, const char *key)
{
    return world_newest(w, key).id;
}

static enum rp_reprieving restore_by_id(struct world *w, int64_t id)
{
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    ok(rp_mark_get(w->catalog->db, id, &w->arena, &mark, &err));
    ok(rp_reprieve_many(w->catalog, &w->store, &mark, 1, "tester", &answer, &err));
    return answer.what;
}

/* M2, M3, M5. */
static void test_a_mark_whose_copy_waits_stays_with_all_that_came_later(void **state)
{
    struct world *w = *state;
    purge(w, "key"); /* before the one with the copy: nobody needs it */
    w->config.mode = RP_MODE_QUARANTINE;
    purge(w, "key");
    int64_t copied = newest_id(w, "key");
    w->config.mode = RP_MODE_PURGE;
    purge(w, "key");
    purge(w, "other");
    assert_int_equal(let_go(retain(w, &everything), "marks"), 2);
    assert_int_equal(marks_of(w, "key"), 2);
    assert_int_equal(restore_by_id(w, copied), RP_REPRIEVE_RETURNED);

    /* the copy waits to be erased, and its mark says that the restore was made */
    retain(w, &everything);
    assert_int_equal(restore_by_id(w, copied), RP_REPRIEVE_ALREADY);
    world_pass(w, 30 * DAY);
    world_swept(w, 1);
    for (int i = 0; i < 3; i++)
        retain(w, &everything);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), 0);
    assert_true(world_exists(w, "key"));
}

static int64_t times(struct world *w, const char *sql, int n)
{
    char text[400];
    snprintf(text, sizeof text, sql, n);
    return world_number(w, text);
}

/* M5: by a clock that was ahead the older one ended later. */
static void test_marks_of_a_subject_go_from_the_oldest_on(void **state)
{
    struct world *w = *state;
    world_put(w, "key", "hello");
    world_mark(w, "key", 10 * DAY);
    world_restore(w, "key");
    world_script(w, "UPDATE mark SET ended_at = ended_at + %d", (int)DAY);
    world_mark(w, "key", 0);
    world_swept(w, 1);
    int64_t newest = newest_id(w, "key");
    assert_int_equal(let_go(retain(w, &everything), "marks"), 0);
    assert_int_equal(newest_id(w, "key"), newest); /* else a restore would hear that it was restored */
    static const struct rp_retention_config later = { -2 * DAY, OLD, OLD, RP_FOREVER_MS, "" };
    assert_int_equal(let_go(retain(w, &later), "marks"), 2);
}

static void test_a_mark_goes_with_its_dead_letters(void **state)
{
    struct world *w = *state;
    purge(w, "died");
    int64_t id = newest_id(w, "died");
    world_script(
        w,
        "INSERT INTO dead_letter (id, mark_id, from_state, attempts, error, died_at, open, ended_at, ended_as) "
        "VALUES (77, %" PRId64 ", 3, 3, '', 1, NULL, 2, 'retried')",
        id);
    assert_int_equal(let_go(retain(w, &everything), "marks"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM dead_letter"), 0);
}

/* A page of marks that stay does not hide what comes behind it, nor does the next run forget it. */
static void test_a_look_goes_past_marks_that_stay(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_QUARANTINE;
    purge(w, "copied");
    w->config.mode = RP_MODE_PURGE;
    for (int i = 0; i < 3; i++)
        purge(w, "plain");
    assert_int_equal(let_go(retain(w, &everything), "marks"), 3);
    purge(w, "plain");
    assert_int_equal(let_go(retain(w, &everything), "marks"), 1);
    world_pass(w, 30 * DAY);
    world_swept(w, 1);
    assert_int_equal(let_go(retain(w, &everything), "marks"), 1);
    assert_int_equal(let_go(retain(w, &everything), "marks"), 1); /* the copy's own */
}

/* ---- files ---- */

static void delete_now(struct world *w, int64_t file_id)
{
    struct rp_file_command c;
    assert_int_equal(uploads_delete(w, file_id, 0, &c), 0);
}

/* Until the second marks, which wait for a late PUT, have ended as well. */
static void settle(struct world *w)
{
    world_days(w, 3);
}

static void test_files_go_with_their_marks_and_their_ledger_rows(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t lives = uploads_live(w, "lives", "hello");
    assert_int_equal(uploads_delete(w, lives, DAY, &c), 0);
    assert_int_equal(uploads_restore(w, lives, &c), 0);
    int64_t root = uploads_live(w, "root", "hello"), child = uploads_child(w, "child", root, 0);
    delete_now(w, root);
    settle(w);
    uploads_expect(w, child, RP_FILE_PURGED);

    struct rp_run *run = retain(w, &everything);
    assert_int_equal(let_go(run, "files"), 1); /* F3: the child first */
    assert_int_equal(let_go(run, "marks"), 0); /* M1 */
    assert_int_equal(let_go(retain(w, &everything), "files"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM file"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), 2);
    assert_int_equal(world_number(w, "SELECT count(*) FROM ledger"), 2);
    uploads_expect_quota(w, 5, 0, 0);
    uploads_expect(w, lives, RP_FILE_LIVE);
    assert_int_equal(uploads_delete(w, lives, DAY, &c), 0);
    assert_int_equal(uploads_restore(w, lives, &c), 0);
    uploads_live(w, "root", "again"); /* its name is free */
}

static void test_a_file_stays_while_something_of_it_waits(void **state)
{
    struct world *w = *state;
    int64_t shown = uploads_live(w, "shown", "hello");
    struct rp_file_command c = uploads_command(w, &rp_verb_delete, shown);
    c.grace_ms = 0;
    c.shown = true;
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    world_swept(w, 1);
    uploads_begin(w, "expires", "hello"); /* its second mark waits for a late PUT */
    world_pass(w, 2 * RP_HOUR_MS);
    world_sweep(w);
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t copied = uploads_live(w, "copied", "hello");
    delete_now(w, copied);
    int64_t mark = uploads_mark(w, copied).id;
    world_swept(w, 1);
    assert_int_equal(let_go(retain(w, &everything), "files"), 0);
    assert_int_equal(restore_by_id(w, mark), RP_REPRIEVE_RETURNED);
    uploads_expect(w, copied, RP_FILE_LIVE);
    delete_now(w, copied);
    world_days(w, 40);
    w->config.mode = RP_MODE_PURGE;
    assert_int_equal(let_go(retain(w, &everything), "files"), 2);
    assert_int_equal(world_number(w, "SELECT count(*) FROM file"), 1);
    uploads_expect(w, shown, RP_FILE_PURGED);
    uploads_expect_quota(w, 0, 0, 0);
}

static void test_transactions_go_with_their_last_member_or_alone(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c = { 0 };
    int64_t committed = uploads_txn_begin(w), empty = uploads_txn_begin(w);
    uploads_txn_begin(w);
    int64_t a = uploads_member(w, committed, "a", "hello", 0), b = uploads_member(w, committed, "b", "hello", 0);
    assert_int_equal(uploads_commit(w, committed, &c), 0);
    c = uploads_txn(w, &rp_verb_txn_abort, empty);
    ok(rp_command_run(w->catalog, &c.command));
    assert_int_equal(let_go(retain(w, &everything), "transactions"), 1);
    assert_int_equal(times(w, "SELECT count(*) FROM txn WHERE state = %d", RP_TXN_OPEN), 1);
    delete_now(w, a);
    settle(w); /* nobody can commit the open one any more */
    assert_int_equal(let_go(retain(w, &everything), "transactions"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM txn"), 1);
    delete_now(w, b);
    settle(w);
    assert_int_equal(let_go(retain(w, &everything), "files"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM txn"), 0);
}

/* Its age counts from its end, not from its beginning. */
static void test_a_transaction_stays_until_its_end_is_old(void **state)
{
    struct world *w = *state;
    static const struct rp_retention_config after_a_day = { DAY, DAY, DAY, RP_FOREVER_MS, "" };
    uploads_txn_begin(w);
    world_script(w, "UPDATE txn SET id = 5, created_at = 1");
    struct rp_txn_command c = uploads_txn(w, &rp_verb_txn_abort, 5);
    ok(rp_command_run(w->catalog, &c.command));
    assert_int_equal(let_go(retain(w, &after_a_day), "transactions"), 0);
    ok(rp_command_run(w->catalog, &c.command)); /* asked again, it is the same answer */
    world_script(w, "UPDATE txn SET changed_at = 2");
    assert_int_equal(let_go(retain(w, &after_a_day), "transactions"), 1);
}

/* By clocks that differ it may have ended after its member did; nobody would find it alone. */
static void test_a_member_stays_until_its_transaction_is_old(void **state)
{
    struct world *w = *state;
    struct rp_txn_command c;
    int64_t txn = uploads_txn_begin(w), file = uploads_member(w, txn, "member", "hello", 0);
    assert_int_equal(uploads_commit(w, txn, &c), 0);
    delete_now(w, file);
    settle(w);
    world_script(w, "UPDATE txn SET changed_at = changed_at + %d, ends_at = ends_at + %" PRId64, (int)RP_HOUR_MS,
                 9 * DAY);
    assert_int_equal(let_go(retain(w, &everything), "files"), 0);
    world_script(w, "UPDATE txn SET changed_at = changed_at - %d", (int)RP_HOUR_MS);
    assert_int_equal(let_go(retain(w, &everything), "files"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM txn"), 0);
}

/* ---- the rest ---- */

static void make_keys(struct world *w, int n)
{
    world_script(w,
                 "INSERT INTO idempotency (id, key_hash, tenant_id, key, body_digest, status, answer) "
                 "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
                 "SELECT i, i, 1, 'k', CAST('x' AS @BYTES), 201, '{}' FROM n",
                 n);
}

static void test_answers_holds_tokens_and_runs_go(void **state)
{
    struct world *w = *state;
    make_keys(w, 1500);
    purge(w, "swept");
    world_script(w, "INSERT INTO hold (id, scope, reason, actor, placed_at, lifted_at) VALUES (1, 3, '', '', 1, 2);"
                    "INSERT INTO hold (id, scope, tenant_id, reason, actor, placed_at) VALUES (2, 3, 99, '', '', 1);"
                    "INSERT INTO token (id, kind, hash, name, tenant_id, scopes, created_at, created_by, revoked_at) "
                    "VALUES (1, 1, CAST('a' AS @BYTES), 'r', 0, 1, 1, 'x', 2), (2, 1, CAST('b' AS @BYTES), 'l', 0, 1, "
                    "1, 'x', NULL);"
                    "INSERT INTO run_lock (name, locked_by, locked_at, fence) VALUES ('sweep:continuous@gone', '', 1, "
                    "7)");
    int64_t records = world_number(w, "SELECT count(*) FROM run_record");
    struct rp_run *run = retain(w, &everything);
    assert_int_equal(let_go(run, "keys"), 1500);
    assert_int_equal(let_go(run, "holds"), 1);
    assert_int_equal(let_go(run, "tokens"), 1);
    assert_int_equal(let_go(run, "runs"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM idempotency"), 0);
    assert_int_equal(world_number(w, "SELECT min(id) FROM hold"), 2);
    assert_int_equal(world_number(w, "SELECT min(id) FROM token"), 2);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_lock WHERE name LIKE 'sweep:cont%'"), 0);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), records + 1);
    assert_int_equal(times(w,
                           "SELECT count(*) FROM audit WHERE event = 'retention.let_go' AND details LIKE "
                           "'%%\"what\":\"keys\",\"rows\":%d%%'",
                           1000),
                     1);
}

/* Where the processor was taken out of the configuration nobody is left to end them. */
static void test_X10_jobs_of_files_that_scan_no_more_go(void **state)
{
    struct world *w = *state;
    int64_t lives = uploads_live(w, "lives", "bytes");
    w->uploads.scan = true;
    int64_t scans = uploads_live(w, "scans", "bytes");
    world_script(w,
                 "INSERT INTO processor_job (file_id, process_key, action, state, attempts, made_at, next_at, status) "
                 "VALUES (%lld, 'a', 1, 2, 1, 1, NULL, 202), (%lld, 'b', 1, 1, 1, 1, 1, 0), (7, 'c', 2, 1, 1, 1, 1, 0)",
                 (long long)lives, (long long)scans);
    assert_int_equal(let_go(retain(w, &everything), "jobs"), 2);
    assert_int_equal(world_number(w, "SELECT SUM(file_id) FROM processor_job"), scans);
}

/* A sign-in link is over after minutes: it does not lie in the way of the list of tokens for three
 * months. */
static void test_links_and_sessions_go_after_a_day(void **state)
{
    struct world *w = *state;
    world_script(w, "INSERT INTO token (id, kind, hash, name, tenant_id, scopes, created_at, created_by, expires_at) "
                    "VALUES (1, 1, CAST('a' AS @BYTES), 'r', 0, 1, 1, 'x', @NOW_MS - 172800000), "
                    "(2, 3, CAST('b' AS @BYTES), 's', 0, 1, 1, 'x', @NOW_MS - 172800000), "
                    "(3, 3, CAST('c' AS @BYTES), 's', 0, 1, 1, 'x', @NOW_MS - 7200000)");
    assert_int_equal(let_go(retain(w, &(struct rp_retention_config){ 90 * DAY, DAY, DAY, DAY, "" }), "tokens"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM token WHERE id = 2"), 0);
}

/* ---- the run ---- */

struct stopping {
    volatile sig_atomic_t flag;
    int64_t seen;
};

static void stop_after_one(void *ctx, const struct rp_run *run)
{
    struct stopping *s = ctx;
    (void)run;
    s->flag = 1;
    s->seen++;
}

static void test_a_run_is_stopped_taken_over_and_cancelled(void **state)
{
    struct world *w = *state;
    struct rp_retention retention = retention_of(w, w->catalog, &everything);
    struct stopping s = { 0 };
    struct rp_run run, other;
    const char *outcome = "";
    make_keys(w, 2500);
    retention.finished = stop_after_one;
    retention.ctx = &s;
    retention.stop = &s.flag;
    ok(rp_retention_begin(&retention, &run, &err));
    assert_int_equal(rp_retention_begin(&retention, &other, &err), RP_ERUNNING);
    rp_error_clear(&err);
    ok(rp_retention_carry(&retention, &run, &outcome, &err));
    assert_null(outcome);
    assert_int_equal(world_number(w, "SELECT count(*) FROM idempotency"), 1500);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run WHERE open = 1"), 1);

    retention.stop = NULL;
    ok(rp_retention_begin(&retention, &other, &err));
    assert_int_equal(other.id, run.id);
    ok(rp_retention_carry(&retention, &other, &outcome, &err));
    assert_string_equal(outcome, "done");
    assert_int_equal(let_go(&other, "keys"), 2500);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), 1);

    make_keys(w, 2500);
    s.flag = 0;
    retention.cancel = &s.flag;
    ok(rp_retention_begin(&retention, &run, &err));
    ok(rp_retention_carry(&retention, &run, &outcome, &err));
    assert_string_equal(outcome, "cancelled");
    assert_int_equal(world_number(w, "SELECT count(*) FROM idempotency"), 1500);
}

/* A worker that hangs: another one takes its run over after its first batch, and what it asks next
 * fails. */
struct losing {
    struct world *w;
    struct rp_retention *other;
    struct rp_run taken;
    bool fails;
};

static void lose_after_one(void *ctx, const struct rp_run *run)
{
    struct losing *l = ctx;
    if (l->taken.id != 0) return;
    world_script(l->w, "UPDATE run_lock SET locked_at = locked_at - %" PRId64, RP_HOUR_MS);
    ok(rp_retention_begin(l->other, &l->taken, &err));
    assert_int_equal(l->taken.id, run->id);
    l->fails = true;
}

static int fail_once(void *ctx, const char *call, struct rp_error *e)
{
    struct losing *l = ctx;
    if (!l->fails) return 0;
    l->fails = false;
    return rp_error_set(e, RP_ECORRUPT, "%s: damaged", call);
}

/* U2, U3 */
static void test_a_run_that_was_lost_is_not_ended(void **state)
{
    struct world *w = *state;
    struct losing l = { .w = w };
    const struct rp_db_fault fault = { .before = fail_once, .ctx = &l };
    struct rp_catalog *catalog = world_catalog(w, 7, &fault);
    struct rp_retention hangs = retention_of(w, catalog, &everything), other = retention_of(w, w->catalog, &everything);
    struct rp_run run;
    const char *outcome = "";
    l.other = &other;
    hangs.finished = lose_after_one;
    hangs.ctx = &l;
    make_keys(w, 2500);
    ok(rp_retention_begin(&hangs, &run, &err));
    assert_int_equal(rp_retention_carry(&hangs, &run, &outcome, &err), RP_ECORRUPT);
    rp_error_clear(&err);
    assert_null(outcome);
    assert_true(run.lost);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), 0);
    rp_catalog_close(catalog);
    ok(rp_retention_carry(&other, &l.taken, &outcome, &err));
    assert_string_equal(outcome, "done");
    assert_int_equal(let_go(&l.taken, "keys"), 2500);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE outcome = 'done'"), 1);
}

static void test_a_dry_run_counts_and_writes_nothing(void **state)
{
    struct world *w = *state;
    struct rp_retention retention = retention_of(w, w->catalog, &everything);
    struct rp_run run = { 0 };
    bool complete = false;
    make_keys(w, 1500);
    purge(w, "purged");
    int64_t rows = world_number(w, "SELECT count(*) FROM audit");
    ok(rp_retention_look(&retention, &run.figures, &complete, &err));
    assert_true(complete);
    assert_int_equal(let_go(&run, "keys"), 1500);
    assert_int_equal(let_go(&run, "marks"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM idempotency"), 1500);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), rows);
}

static void test_a_dry_run_looks_at_so_many_rows(void **state)
{
    struct world *w = *state;
    struct rp_retention retention = retention_of(w, w->catalog, &everything);
    struct rp_run run = { 0 };
    bool complete = true;
    make_keys(w, RP_RETENTION_LOOKS * RP_RETENTION_BATCH + 500);
    purge(w, "purged");
    ok(rp_retention_look(&retention, &run.figures, &complete, &err));
    assert_false(complete);
    assert_int_equal(let_go(&run, "keys"), RP_RETENTION_LOOKS * RP_RETENTION_BATCH);
    assert_int_equal(let_go(&run, "marks"), 1);
}

/* What somebody has locked is left, and the next run has it. */
static void test_what_is_locked_is_left_for_the_next_run(void **state)
{
    struct world *w = *state;
    int64_t file = uploads_live(w, "file", "hello");
    delete_now(w, file);
    settle(w);
    purge(w, "locked");
    purge(w, "free");
    ok(rp_db_begin(w->dbs.db, true, &err));
    world_script(w, "SELECT id FROM tenant FOR UPDATE; SELECT id FROM mark WHERE key = 'locked' FOR UPDATE");
    struct rp_run *run = retain(w, &everything);
    assert_int_equal(let_go(run, "files"), 0);
    assert_int_equal(let_go(run, "marks"), 1);
    rp_db_rollback(w->dbs.db);
    run = retain(w, &everything);
    assert_int_equal(let_go(run, "files"), 1);
    assert_int_equal(let_go(run, "marks"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), 0);
}

#define IN(test, kind)                                                                                                 \
    {                                                                                                                  \
#test " on " #kind, test, world_set_up, world_tear_down, (void *)(uintptr_t)WORLD_##kind                       \
    }
#define ON_BOTH(test) IN(test, SQLITE), IN(test, POSTGRES)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_marks_that_ended_go_and_others_stay),
        ON_BOTH(test_a_mark_whose_copy_waits_stays_with_all_that_came_later),
        ON_BOTH(test_marks_of_a_subject_go_from_the_oldest_on),
        ON_BOTH(test_a_mark_goes_with_its_dead_letters),
        ON_BOTH(test_a_look_goes_past_marks_that_stay),
        ON_BOTH(test_files_go_with_their_marks_and_their_ledger_rows),
        ON_BOTH(test_a_file_stays_while_something_of_it_waits),
        ON_BOTH(test_transactions_go_with_their_last_member_or_alone),
        ON_BOTH(test_a_transaction_stays_until_its_end_is_old),
        ON_BOTH(test_a_member_stays_until_its_transaction_is_old),
        ON_BOTH(test_answers_holds_tokens_and_runs_go),
        ON_BOTH(test_X10_jobs_of_files_that_scan_no_more_go),
        ON_BOTH(test_links_and_sessions_go_after_a_day),
        ON_BOTH(test_a_run_is_stopped_taken_over_and_cancelled),
        ON_BOTH(test_a_run_that_was_lost_is_not_ended),
        ON_BOTH(test_a_dry_run_counts_and_writes_nothing),
        IN(test_a_dry_run_looks_at_so_many_rows, SQLITE),
        IN(test_what_is_locked_is_left_for_the_next_run, POSTGRES),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
