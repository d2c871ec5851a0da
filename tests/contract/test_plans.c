/* SPDX-License-Identifier: Apache-2.0 */
/* A million marks, and no statement that reads them all: the cost of a question grows with its
 * answer, never with what is stored. Asked of SQLite before and after ANALYZE, and of PostgreSQL,
 * which makes one plan for any values, while all tables are still empty and when they are full.
 * Needs PostgreSQL: run under tests/lib/with-postgres. */
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
#include "base/text/buf.h"
#include "catalog/statements/statements.h"
#include "lib/world.h"

#define NOW    INT64_C(1790000000000)
#define MARKS  1000000
#define AUDITS 200000

static struct rp_error err;

/* Of 1,000 marks: 700 purged, 100 reprieved, 2 due, 1 in a worker's hands, the rest waits for the
 * next 30 days. One in ten belongs to a second store, one in three was made by a run. Ids follow
 * the time, as they do in life. */
static const char fill_marks[] =
    "INSERT INTO mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, fence, attempts, checks, "
    "run_id,"
    " etag, version, size_bytes, modified_ms, outcome, ended_at, reason, actor) "
    "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < 1000000), "
    "s(i, st, at) AS (SELECT i, CASE WHEN i %% 1000 < 700 THEN 4 WHEN i %% 1000 < 800 THEN 5 WHEN i %% 1000 = 800 THEN "
    "3 "
    "ELSE 1 END, CAST(%" PRId64 " AS bigint) - 5000000000 + CAST(i AS bigint) * 5000 FROM n) "
    "SELECT (at - 1577836800000) * 2097152, CASE WHEN i %% 10 = 3 THEN 2 ELSE 1 END, 'users/' || (i * 7919 %% 1000003) "
    "|| '.png',"
    " CASE WHEN st IN (4, 5) THEN NULL ELSE 1 END, st, 1,"
    " CASE WHEN st IN (4, 5) THEN NULL WHEN st = 3 THEN %" PRId64 " + 120000 WHEN i %% 1000 < 803 THEN %" PRId64
    " - i %% 1000000"
    " ELSE at + 10000000000 END, at + 432000000, at, 1, 0, 0, CASE WHEN i %% 3 = 0 THEN i / 1000 ELSE NULL END,"
    " 'etag' || i, '', 4096, at, CASE WHEN st = 4 THEN 1 WHEN st = 5 THEN 5 ELSE 0 END,"
    " CASE WHEN st IN (4, 5) THEN at + 432000000 ELSE NULL END, 'reason ' || (i %% 50), 'cli:ada' FROM s";

static const char fill_others[] =
    "INSERT INTO audit (lane, seq, at, event, actor, mark_id, tenant_id, details, digest, hash) "
    "SELECT id %% 2, id, marked_at, 'mark.created', 'cli:ada', id, 0, '{}', CAST('x' AS @BYTES), CAST('x' AS @BYTES) "
    "FROM mark ORDER BY id LIMIT %d;"
    "INSERT INTO dead_letter (id, mark_id, from_state, attempts, error, died_at, open) "
    "SELECT id, id, 3, 20, 'denied', marked_at, CASE WHEN run_id > 950 THEN 1 ELSE NULL END FROM mark "
    "WHERE state = 3;"
    "INSERT INTO run (id, kind, name, locked_by, fence, started_at, figures, open) "
    "SELECT id, 'sweep', 'all', 'host', 1, marked_at, '{}', CASE WHEN id %% 7919 = 0 THEN 1 ELSE NULL END FROM mark "
    "WHERE state = 3;"
    "INSERT INTO run_record (run_id, kind, name, outcome, started_at, finished_at, body) "
    "SELECT id, kind, name, 'done', started_at, started_at, '{}' FROM run;"
    "INSERT INTO hold (id, scope, store_id, key, reason, actor, placed_at, lifted_at) "
    "SELECT id, 1 + id / 2097152 %% 2, 1, 'users/' || id, '', '', 0, CASE WHEN run_id > 980 THEN NULL ELSE 1 END FROM "
    "mark "
    "WHERE state = 3;"
    "INSERT INTO restore_run (run_id, store_id, prefix, upto_id, asked_by, open) "
    "SELECT id, 1, 'users/77', id, 'cli:ada', CASE WHEN run_id > 980 THEN 1 ELSE NULL END FROM mark WHERE state = 3;"
    "INSERT INTO tally (lane, store_id, state, marks, bytes) SELECT 0, store_id, state, count(*), 4096 * count(*) FROM "
    "mark "
    "GROUP BY store_id, state;";

/* A file of each tenth mark: eight of ten live, one is deleted, one is of the past; one in five
 * belongs to another. */
static const char fill_files[] =
    "INSERT INTO file (id, tenant_id, name, live_name, store_id, key, status, was, size_bytes, content_type, etag, "
    "version,"
    " modified_ms, mark_id, parent_id, source_id, txn_id, url_ends_at, created_at, changed_at) "
    "WITH g(id, marked_at, key, i) AS (SELECT id, marked_at, key, (marked_at - %" PRId64
    " + 5000000000) / 50000 FROM mark "
    "WHERE (marked_at - %" PRId64 " + 5000000000) / 5000 %% 10 = 0) "
    "SELECT id, 1 + i %% 997, key, CASE WHEN i %% 10 < 8 THEN key ELSE NULL END, 1, 'f/' || id,"
    " CASE WHEN i %% 10 < 8 THEN 3 WHEN i %% 10 = 8 THEN 4 ELSE 5 END, 1, 4096, '', '', '', 0, id,"
    " CASE WHEN i %% 5 = 1 THEN id - 10 * CAST(5000 AS bigint) * 2097152 ELSE NULL END,"
    " CASE WHEN i %% 5 = 2 THEN id - 10 * CAST(5000 AS bigint) * 2097152 ELSE NULL END,"
    " CASE WHEN i %% 5 = 3 THEN i / 100 ELSE NULL END, marked_at, marked_at, marked_at FROM g;"
    "INSERT INTO idempotency (id, key_hash, tenant_id, key, body_digest, status, answer) "
    "SELECT id, (id / 2097152 * 7919), 1, 'k' || id, CAST('x' AS @BYTES), 201, '{}' FROM mark WHERE state = 4;"
    "UPDATE file SET shown = 1 WHERE status > 3 AND tenant_id = 7;"
    "INSERT INTO ledger (file_id, kind, tenant_id, bytes, at) SELECT id, 1, tenant_id, 4096, 1 FROM file;"
    "INSERT INTO txn (id, tenant_id, state, ends_at, actor, created_at, changed_at) SELECT DISTINCT txn_id, 1, 2, 1, "
    "'', 1, 1 "
    "FROM file WHERE txn_id IS NOT NULL;"
    "INSERT INTO tenant (id, name) SELECT DISTINCT tenant_id, 't' || tenant_id FROM file;";

static void fill(struct world *w)
{
    world_script(w, fill_marks, NOW, NOW, NOW);
    world_script(w, fill_others, AUDITS);
    world_script(w, fill_files, NOW, NOW);
    assert_int_equal(world_number(w, "SELECT count(*) FROM file"), MARKS / 10);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), MARKS);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), AUDITS);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    world_make(w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    rp_db_close(w->dbs.db);
    w->dbs.db = dbs_open_again(&w->dbs, &(struct rp_db_options){ .by_index = true }); /* as the catalog's */
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world_drop(*state);
    free(*state);
    return 0;
}

/* ---- the questions ---- */

struct question {
    const struct rp_sql *sql;
    const char *uses; /* the index, where both engines call it alike */
    struct rp_value args[9];
};

static struct question ask(const struct rp_sql *sql, const char *uses, const char *fmt, ...)
{
    struct question q = { .sql = sql, .uses = uses };
    va_list args;
    va_start(args, fmt);
    assert_string_equal(sql->params, fmt);
    for (size_t i = 0; fmt[i] != 0; i++)
        q.args[i] = fmt[i] == 'i' ? rp_int(va_arg(args, int64_t)) : rp_text(va_arg(args, const char *));
    va_end(args);
    return q;
}

#define I(n) ((int64_t)(n))

static size_t retention_questions(struct question *out)
{
    int64_t id = (NOW - INT64_C(1577836800000)) * 2097152;
    size_t n = 0;
    out[n++] = ask(RP_SQL(old_keys), NULL, "iii", id, I(0), I(100));
    out[n++] = ask(RP_SQL(keys_remove), NULL, "");
    out[n++] = ask(RP_SQL(old_marks), "mark_ended", "iiii", NOW, I(1), I(1), I(1000));
    out[n++] = ask(RP_SQL(old_marks_lock), NULL, "i", NOW);
    out[n++] = ask(RP_SQL(copies_waiting), "mark_copy", "");
    out[n++] = ask(RP_SQL(marks_there), NULL, "");
    out[n++] = ask(RP_SQL(letters_remove), NULL, "");
    out[n++] = ask(RP_SQL(marks_remove), NULL, "");
    out[n++] = ask(RP_SQL(old_files), "file_over", "iiii", NOW, I(1), I(1), I(1000));
    out[n++] = ask(RP_SQL(old_files_lock), NULL, "i", NOW);
    out[n++] = ask(RP_SQL(letters_of_files), NULL, "");
    out[n++] = ask(RP_SQL(marks_of_files), "mark_copy", "");
    out[n++] = ask(RP_SQL(ledger_remove), NULL, "");
    out[n++] = ask(RP_SQL(files_remove), NULL, "");
    out[n++] = ask(RP_SQL(old_txns), NULL, "iiii", I(0), id, I(1000), NOW);
    out[n++] = ask(RP_SQL(txns_remove), "file_txn", "i", NOW);
    out[n++] = ask(RP_SQL(old_runs), NULL, "iii", I(0), id, I(1000));
    return n;
}

static size_t safety_net_questions(struct question *out)
{
    size_t n = 0;
    out[n++] = ask(RP_SQL(orphan_files), "file_pending", "iii", I(1), I(1), I(1000));
    out[n++] = ask(RP_SQL(orphan_files), "file_deleted", "iii", I(4), I(1), I(1000));
    out[n++] = ask(RP_SQL(orphan_files), "file_purged", "iii", I(5), I(1), I(1000));
    out[n++] = ask(RP_SQL(orphan_files), "file_expired", "iii", I(6), I(1), I(1000));
    out[n++] = ask(RP_SQL(orphan_files), "file_child", "iii", I(4), I(1), I(1000));
    out[n++] = ask(RP_SQL(orphan_files), "file_derivative", "iii", I(1), I(0), I(1000));
    out[n++] = ask(RP_SQL(orphan_lost), "mark_subject", "");
    out[n++] = ask(RP_SQL(orphan_children), "file_child", "i", I(1000));
    out[n++] = ask(RP_SQL(orphan_children), "file_derivative", "i", I(1000));
    out[n++] = ask(RP_SQL(orphan_marks), "mark_unwatched", "ii", I(0), I(1000));
    out[n++] = ask(RP_SQL(orphan_dead), "mark_dead", "ii", I(0), I(1000));
    out[n++] = ask(RP_SQL(orphan_letterless), "dead_letter_mark", "");
    out[n++] = ask(RP_SQL(mark_watch), NULL, "");
    return n;
}

static size_t mark_questions(struct question *out)
{
    int64_t id = (NOW - INT64_C(1577836800000)) * 2097152;
    size_t n = 0;
    out[n++] = ask(RP_SQL(mark_due), "mark_due", "iiiiii", I(1), NOW, I(-1), INT64_MAX, I(0), I(1000));
    out[n++] = ask(RP_SQL(mark_due), "mark_due", "iiiiii", I(1), NOW, I(-1), INT64_MAX, I(1), I(1000));
    out[n++] = ask(RP_SQL(mark_next), "mark_due", "ii", I(1), I(1));
    out[n++] = ask(RP_SQL(mark_due_unseen), "mark_unseen", "iiiii", I(1), NOW, I(-1), INT64_MAX, I(1000));
    out[n++] = ask(RP_SQL(mark_oldest), "mark_oldest", "i", I(1));
    out[n++] = ask(RP_SQL(tally_waiting), NULL, "i", I(1));
    out[n++] = ask(RP_SQL(mark_next_unseen), "mark_unseen", "i", I(1));
    out[n++] = ask(RP_SQL(mark_due_to_confirm), "mark_to_confirm", "iiiiiisii", I(1), NOW, I(-1), INT64_MAX, I(0),
                   I(16), "|calendar|", I(1), I(0));
    out[n++] = ask(RP_SQL(mark_next_to_confirm), "mark_to_confirm", "i", I(1));
    out[n++] = ask(RP_SQL(mark_count_to_confirm), "mark_to_confirm", "iiii", I(1), NOW, I(1), I(1000));
    out[n++] = ask(RP_SQL(confirmation_get), NULL, "i", id);
    out[n++] = ask(RP_SQL(attempts_of), NULL, "i", id);
    out[n++] = ask(RP_SQL(mark_overdue), "mark_due", "iii", I(1), NOW, I(1));
    out[n++] = ask(RP_SQL(mark_waiting), "mark_due", "iiiii", I(1), NOW, NOW - 1000, id, I(1000));
    out[n++] = ask(RP_SQL(mark_due_peek), "mark_due", "iiii", I(1), NOW, NOW - 1000, id);
    out[n++] = ask(RP_SQL(mark_ended), "mark_ended", "iiii", I(4), NOW, id, I(100));
    out[n++] = ask(RP_SQL(mark_by_prefix), "mark_subject", "isssi", I(1), "users/5", "users/5\xF4\x8F\xBF\xBF",
                   "users/500", I(1000));
    out[n++] = ask(RP_SQL(mark_by_reason), "mark_reason", "sii", "reason 7", id - RP_DAY_MS * 2097152, I(1000));
    out[n++] = ask(RP_SQL(mark_by_run), "mark_run", "iii", I(77), I(0), I(1000));
    out[n++] = ask(RP_SQL(mark_last_id), NULL, "");
    out[n++] = ask(RP_SQL(mark_since), NULL, "ii", id - RP_DAY_MS * 2097152, I(1000));
    out[n++] = ask(RP_SQL(mark_active), "mark_subject", "i", I(1));
    out[n++] = ask(RP_SQL(mark_these), NULL, "");
    out[n++] = ask(RP_SQL(mark_lock), NULL, "");
    out[n++] = ask(RP_SQL(mark_move), NULL, "");
    out[n++] = ask(RP_SQL(mark_history), "mark_subject", "isi", I(1), "users/77.png", I(100));
    out[n++] = ask(RP_SQL(mark_overdue), "mark_due", "iii", I(1), NOW, I(0));
    out[n++] = ask(RP_SQL(mark_next), "mark_due", "ii", I(1), I(0));
    out[n++] = ask(RP_SQL(mark_dead), "dead_letter", "ii", I(0), I(100));
    out[n++] = ask(RP_SQL(mark_claimed), "mark_claimed", "iii", I(1), I(0), I(1000));
    return n;
}

static size_t run_questions(struct question *out)
{
    int64_t id = (NOW - INT64_C(1577836800000)) * 2097152;
    size_t n = 0;
    out[n++] = ask(RP_SQL(dead_list), "dead_letter", "iiis", I(0), I(100), I(0), "");
    out[n++] = ask(RP_SQL(dead_of_mark), "dead_letter_mark", "i", I(7));
    out[n++] = ask(RP_SQL(run_open), "run_open", "s", "all");
    out[n++] = ask(RP_SQL(run_open_kind), "run_open", "s", "restore");
    out[n++] = ask(RP_SQL(record_list), NULL, "ii", INT64_MAX, I(100));
    out[n++] = ask(RP_SQL(audit_page), NULL, "iii", I(0), id, I(1000));
    out[n++] = ask(RP_SQL(audit_of_mark), "audit_mark", "i", id);
    out[n++] = ask(RP_SQL(audit_lanes), NULL, "");
    out[n++] = ask(RP_SQL(figure_overdue), "mark_due", "iii", I(1), NOW, I(5000));
    out[n++] = ask(RP_SQL(figure_claimed), "mark_claimed", "ii", I(1), I(5000));
    out[n++] = ask(RP_SQL(figure_runs), NULL, "i", id - RP_DAY_MS * 2097152);
    out[n++] = ask(RP_SQL(figure_run_errors), "run_record_errors", "i", id - RP_DAY_MS * 2097152);
    out[n++] = ask(RP_SQL(figure_last_run), NULL, "i", INT64_MAX);
    out[n++] = ask(RP_SQL(figure_last_run_of), "run_record_kind", "ss", "sweep", "all");
    out[n++] = ask(RP_SQL(figure_abandoned), "mark_abandoned", "ii", NOW - RP_HOUR_MS, I(201));
    out[n++] = ask(RP_SQL(hold_list), NULL, "");
    out[n++] = ask(RP_SQL(tally_sums), NULL, "");
    return n;
}

static size_t file_questions(struct question *out)
{
    size_t n = 0;
    out[n++] = ask(RP_SQL(file_lock), NULL, "");
    out[n++] = ask(RP_SQL(file_living), "file_live", "");
    out[n++] = ask(RP_SQL(file_marks), NULL, "");
    out[n++] = ask(RP_SQL(file_any_below), NULL, "");
    out[n++] = ask(RP_SQL(file_below), "file_child", "i", I(10001));
    out[n++] = ask(RP_SQL(file_below), "file_derivative", "i", I(10001));
    out[n++] = ask(RP_SQL(file_along), "file_child", "");
    out[n++] = ask(RP_SQL(file_along), "file_derivative", "");
    out[n++] = ask(RP_SQL(file_members), "file_txn", "i", I(77));
    out[n++] = ask(RP_SQL(file_of_keys), "file_key", "i", I(1));
    out[n++] = ask(RP_SQL(file_save), NULL, "");
    out[n++] = ask(RP_SQL(file_status), "file_listed", "iiii", I(1), I(4), I(0), I(100));
    out[n++] = ask(RP_SQL(file_visible), "file_listed", "iiii", I(1), I(0), I(100), I(0));
    out[n++] = ask(RP_SQL(file_visible), "file_shown", "iiii", I(1), I(0), I(100), I(0));
    out[n++] = ask(RP_SQL(hold_list), "hold_active", "");
    out[n++] = ask(RP_SQL(file_by_name), "file_live", "isssi", I(1), "users/5", "users/5\xF4\x8F\xBF\xBF", "users/500",
                   I(100));
    out[n++] = ask(RP_SQL(tenant_lock), NULL, "");
    out[n++] = ask(RP_SQL(key_find), NULL, "");
    return n;
}

static size_t reader_questions(struct question *out)
{
    size_t n = 0;
    out[n++] = ask(RP_SQL(feed_lag), NULL, "s", "sink:app");
    out[n++] = ask(RP_SQL(process_make), NULL, "i", NOW);
    out[n++] = ask(RP_SQL(process_drop), NULL, "");
    out[n++] = ask(RP_SQL(process_cancel), NULL, "i", NOW);
    out[n++] = ask(RP_SQL(process_due), "processor_due", "ii", NOW, I(4));
    out[n++] = ask(RP_SQL(process_dead), NULL, "i", I(1000));
    return n;
}

static size_t questions(struct question *out)
{
    size_t n = mark_questions(out);
    n += run_questions(out + n);
    n += file_questions(out + n);
    out[n++] = ask(RP_SQL(metrics_overdue), "mark_due", "iii", I(1), NOW, I(1000000));
    out[n++] = ask(RP_SQL(metrics_dead), "dead_letter_open", "i", I(1000000));
    out[n++] = ask(RP_SQL(metrics_runs), "run_record_name", "i", I(1000));
    n += safety_net_questions(out + n);
    n += reader_questions(out + n);
    return n + retention_questions(out + n);
}

/* ---- the answers ---- */

static void complain(const struct question *q, const char *plan, const char *how, const char *what)
{
    fprintf(stderr, "%s\n", plan); /* cmocka would cut it */
    fail_msg("%s (%s): %s", q->sql->name, how, what);
}

static void judge(const struct question *q, const char *plan, const char *how)
{
    /* SQLite's SCAN reads all of it, through an index too; a SEARCH goes to its place. `m` is the
     * mark in a claim. */
    static const char *const never[] = { "Seq Scan on mark",
                                         "Seq Scan on audit",
                                         "Seq Scan on run_record",
                                         "SCAN mark",
                                         "SCAN m\n",
                                         "SCAN m ",
                                         "SCAN audit",
                                         "SCAN run_record",
                                         "Seq Scan on file",
                                         "SCAN file",
                                         "SCAN f\n",
                                         "SCAN f ",
                                         "SCAN child\n",
                                         "SCAN child ",
                                         "Seq Scan on ledger",
                                         "SCAN ledger",
                                         "Seq Scan on txn",
                                         "SCAN txn",
                                         "Seq Scan on dead_letter",
                                         "SCAN dead_letter\n",
                                         "Seq Scan on idempotency",
                                         "SCAN idempotency",
                                         "SCAN k\n",
                                         "SCAN k ",
                                         "Seq Scan on restore_run" };
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (strstr(plan, never[i]) != NULL) complain(q, plan, how, never[i]);
    if (q->uses != NULL && strstr(plan, q->uses) == NULL) complain(q, plan, how, "another index than expected");
}

static void judge_all(struct world *w, const char *how)
{
    struct question all[130];
    size_t n = questions(all);
    for (size_t i = 0; i < n; i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf plan = RP_BUF(1 << 20);
        ok(dbs_explain(w->dbs.db, all[i].sql, all[i].args, &plan, &err));
        assert_true(plan.len > 0);
        judge(&all[i], rp_buf_text(&plan), how);
    }
}

/* ---- PostgreSQL's plan for any values ---- */

static int add_line(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    rp_buf_str(ctx, row[0].p);
    return rp_buf_char(ctx, '\n');
}

static const char *type_name(char type)
{
    return type == 'i' ? "bigint" : type == 's' ? "text" : "bytea";
}

/* What the port makes of VALUES @ROWS: an array parameter for each column. */
static void write_rows(const struct question *q, struct rp_buf *types, struct rp_buf *values, struct rp_buf *text)
{
    size_t first = strlen(q->sql->params), width = strlen(q->sql->rows);
    const char *hole = strstr(q->sql->text, "VALUES @ROWS");
    rp_buf_add(text, q->sql->text, (size_t)(hole - q->sql->text));
    for (size_t i = 0; i < width; i++) {
        rp_buf_fmt(types, "%s%s[]", first + i > 0 ? ", " : "", type_name(q->sql->rows[i]));
        rp_buf_fmt(values, "%sNULL", first + i > 0 ? ", " : "");
        rp_buf_fmt(text, "%s pg_catalog.unnest($%zu) AS column%zu", i > 0 ? "," : "SELECT", first + i + 1, i + 1);
    }
    rp_buf_str(text, hole + strlen("VALUES @ROWS"));
}

/* "PREPARE any_values(bigint, text) AS ..." and "EXPLAIN EXECUTE any_values(1, 'x')". */
static void write_prepared(const struct question *q, struct rp_buf *prepare, struct rp_buf *execute)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf types = RP_BUF(1 << 20), values = RP_BUF(1 << 20), text = RP_BUF(1 << 20);
    for (size_t i = 0; q->sql->params[i] != 0; i++) {
        rp_buf_fmt(&types, "%s%s", i > 0 ? ", " : "", type_name(q->sql->params[i]));
        if (q->sql->params[i] == 'i')
            rp_buf_fmt(&values, "%s%" PRId64, i > 0 ? ", " : "", q->args[i].i);
        else
            rp_buf_fmt(&values, "%s'%s'", i > 0 ? ", " : "", q->args[i].p);
    }
    if (q->sql->rows != NULL)
        write_rows(q, &types, &values, &text);
    else
        rp_buf_str(&text, q->sql->text);
    bool none = types.len == 0;
    rp_buf_fmt(prepare, "PREPARE any_values%s%s%s AS %s", none ? "" : "(", rp_buf_text(&types), none ? "" : ")",
               rp_buf_text(&text));
    rp_buf_fmt(execute, "EXPLAIN EXECUTE any_values%s%s%s", none ? "" : "(", rp_buf_text(&values), none ? "" : ")");
    assert_true(types.failed == 0 && values.failed == 0 && text.failed == 0 && prepare->failed == 0 &&
                execute->failed == 0);
}

/* The plan that a prepared statement has, whenever it was made. */
static void judge_generic(struct world *w, const char *how)
{
    struct question all[130];
    size_t n = questions(all);
    for (size_t i = 0; i < n; i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf prepare = RP_BUF(1 << 20);
        RP_CLEANUP(rp_buf_done) struct rp_buf execute = RP_BUF(1 << 20);
        RP_CLEANUP(rp_buf_done) struct rp_buf plan = RP_BUF(1 << 20);
        write_prepared(&all[i], &prepare, &execute);
        ok(rp_db_script(w->dbs.db, rp_buf_text(&prepare), &err));
        const struct rp_sql sql = { .name = "generic", .text = rp_buf_text(&execute), .params = "", .columns = "s" };
        ok(rp_db_query(w->dbs.db, &sql, NULL, add_line, &plan, &err));
        judge(&all[i], rp_buf_text(&plan), how);
        world_script(w, "DEALLOCATE any_values");
    }
}

static void test_no_question_reads_a_million_marks(void **state)
{
    struct world *w = *state;
    if (w->dbs.kind == DBS_POSTGRES) judge_generic(w, "an empty catalog");
    fill(w);
    if (w->dbs.kind == DBS_SQLITE_FILE) judge_all(w, "no statistics");
    world_script(w, "ANALYZE");
    judge_all(w, "statistics");
    if (w->dbs.kind == DBS_POSTGRES) judge_generic(w, "statistics, any values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        { "test_no_question_reads_a_million_marks on sqlite", test_no_question_reads_a_million_marks, set_up, tear_down,
          (void *)(uintptr_t)DBS_SQLITE_FILE },
        { "test_no_question_reads_a_million_marks on postgres", test_no_question_reads_a_million_marks, set_up,
          tear_down, (void *)(uintptr_t)DBS_POSTGRES },
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
