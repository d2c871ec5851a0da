/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of db/db.h, asked of every engine. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include "db_steps.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "lib/dbs.h"
#include "lib/fault_db.h"

#define MANY 5000

/* ---- a small table to work on ---- */

static const struct rp_sql insert_one = { "insert_one", "INSERT INTO t (id, name, data) VALUES ($1, $2, $3)", "isb",
                                          NULL, NULL };
static const struct rp_sql insert_rows = { "insert_rows", "INSERT INTO t (id, name, data) VALUES @ROWS", "", "isb",
                                           NULL };
static const struct rp_sql delete_all = { "delete_all", "DELETE FROM t", "", NULL, NULL };

static struct dbs *make(enum dbs_kind kind, const struct rp_db_options *options)
{
    struct dbs *t = calloc(1, sizeof *t);
    assert_non_null(t);
    dbs_make(t, kind, options);
    ok(rp_db_script(t->db, "CREATE TABLE t (id bigint PRIMARY KEY, name @TEXT_C, data @BYTES) @CLUSTERED;", &err));
    return t;
}

static int set_up(void **state)
{
    rp_error_clear(&err);
    *state = make((enum dbs_kind)(uintptr_t)*state, &(struct rp_db_options){ .busy_ms = 5000 });
    return 0;
}

static int64_t count(struct rp_db *db)
{
    int64_t n = -1;
    ok(rp_db_query(db, &count_all, NULL, take_int, &n, &err));
    return n;
}

static int insert(struct rp_db *db, int64_t id)
{
    return rp_db_exec(db, &insert_one, (struct rp_value[]){ rp_int(id), rp_text("x"), rp_null() }, NULL, &err);
}

/* Runs `fn` in a child and tells whether an assertion stopped it. */
static bool is_asserted(void (*fn)(struct rp_db *), struct rp_db *db)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGABRT, SIG_DFL);
        fn(db);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* ---- values ---- */

static const struct rp_value samples[][3] = {
    { { RP_INT_T, INT64_MIN, NULL, 0 }, { RP_TEXT_T, 0, "", 0 }, { RP_BYTES_T, 0, "", 0 } },
    { { RP_INT_T, INT64_MAX, NULL, 0 }, { RP_TEXT_T, 0, "'\"@ROWS $1 \\", 12 }, { RP_BYTES_T, 0, "\0\xff\0\\x", 5 } },
    { { RP_INT_T, 0, NULL, 0 }, { RP_TEXT_T, 0, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x97\x91\n", 10 }, { 0, 0, NULL, 0 } },
    { { RP_INT_T, 7, NULL, 0 }, { 0, 0, NULL, 0 }, { RP_BYTES_T, 0, "\n\t\x80", 3 } },
};

static int check_sample(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    const struct rp_value *want = ctx;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(row[i].type, want[i].type);
        assert_int_equal(row[i].i, want[i].i);
        assert_int_equal(row[i].n, want[i].n);
        if (row[i].n > 0) assert_memory_equal(row[i].p, want[i].p, want[i].n);
        if (row[i].type == RP_TEXT_T) assert_int_equal(row[i].p[row[i].n], '\0');
    }
    return 0;
}

static void values_come_back_as_they_went(void **state)
{
    static const struct rp_sql get = { "get", "SELECT id, name, data FROM t WHERE id = $1", "i", NULL, "isb" };
    struct dbs *t = *state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        ok(rp_db_exec(t->db, &insert_one, samples[i], NULL, &err));
        ok(rp_db_query(t->db, &get, samples[i], check_sample, (void *)(uintptr_t)samples[i], &err));
    }
    assert_int_equal(count(t->db), 4);
}

static int take_texts(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    return rp_buf_fmt(ctx, "%s;", row[0].p);
}

static void text_is_compared_bytewise(void **state)
{
    static const struct rp_sql sorted = { "sorted", "SELECT name FROM t ORDER BY name", "", NULL, "s" };
    struct dbs *t = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf names = RP_BUF(1000);
    const char *texts[] = { "b", "a/", "B", "a", "\xc3\xa4", "a-", "_" };
    for (int64_t i = 0; i < 7; i++)
        ok(rp_db_exec(t->db, &insert_one, (struct rp_value[]){ rp_int(i), rp_text(texts[i]), rp_null() }, NULL, &err));
    ok(rp_db_query(t->db, &sorted, NULL, take_texts, &names, &err));
    assert_string_equal(rp_buf_text(&names), "B;_;a;a-;a/;b;\xc3\xa4;");
}

static void typed_nulls_and_sums_need_no_cast(void **state)
{
    static const struct rp_sql either = { "either", "SELECT count(*) FROM t WHERE $1 IS NULL OR id = $1 + $2", "ii",
                                          NULL, "i" };
    struct dbs *t = *state;
    int64_t n = 0;
    ok(insert(t->db, 5));
    ok(rp_db_query(t->db, &either, (struct rp_value[]){ rp_null(), rp_int(1) }, take_int, &n, &err));
    assert_int_equal(n, 1);
    ok(rp_db_query(t->db, &either, (struct rp_value[]){ rp_int(2), rp_int(1) }, take_int, &n, &err));
    assert_int_equal(n, 0);
}

static void give_text_for_an_integer(struct rp_db *db)
{
    rp_db_exec(db, &insert_one, (struct rp_value[]){ rp_text("1"), rp_null(), rp_null() }, NULL, NULL);
}

static void a_value_of_another_type_is_asserted(void **state)
{
    assert_true(is_asserted(give_text_for_an_integer, ((struct dbs *)*state)->db));
}

static void a_result_that_is_not_as_declared_is_an_error(void **state)
{
    static const struct rp_sql wide = { "wide", "SELECT id, name FROM t", "", NULL, "i" };
    static const struct rp_sql wrong = { "wrong", "SELECT name FROM t", "", NULL, "i" };
    static const struct rp_sql number = { "number", "SELECT '42' FROM t", "", NULL, "i" };
    struct dbs *t = *state;
    int64_t n = 0;
    ok(insert(t->db, 1));
    assert_int_equal(rp_db_query(t->db, &wide, NULL, take_int, &n, &err), RP_EINVAL);
    assert_int_equal(rp_db_query(t->db, &wrong, NULL, take_int, &n, &err), RP_EFAILED);
    assert_non_null(strstr(err.text, ": wrong: column 1"));
    ok(rp_db_query(t->db, &number, NULL, take_int, &n, &err));
    assert_int_equal(n, 42);
}

/* ---- many rows ---- */

static const size_t row_counts[] = { 0, 1, 2, 7, 8, 9, 512, 513, 999, MANY };

static struct rp_value *make_rows(size_t n)
{
    struct rp_value *rows = calloc(n * 3 + 1, sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        rows[i * 3] = rp_int((int64_t)i);
        rows[i * 3 + 1] = rp_text(i % 2 == 0 ? "even" : "odd");
        rows[i * 3 + 2] = rp_bytes("\0\1", 2);
    }
    return rows;
}

static void check_rows(struct rp_db *db, size_t n)
{
    static const struct rp_sql rename = { "rename",
                                          "UPDATE t SET name = $1, data = v.column2 FROM (VALUES @ROWS) AS v "
                                          "WHERE t.id = v.column1",
                                          "s", "ib", NULL };
    static const struct rp_sql renamed = { "renamed", "SELECT count(*) FROM t WHERE name = $1 AND data IS NULL", "s",
                                           NULL, "i" };
    static const struct rp_sql drop = { "drop", "DELETE FROM t WHERE id IN (VALUES @ROWS)", "", "i", NULL };
    RP_CLEANUP(rp_freep) struct rp_value *rows = make_rows(n);
    RP_CLEANUP(rp_freep) struct rp_value *pairs = calloc(n * 2 + 1, sizeof *pairs);
    int64_t changed = -1, found = -1;
    ok(rp_db_exec_rows(db, &insert_rows, NULL, rows, n, &changed, &err));
    assert_int_equal(changed, n);
    assert_int_equal(count(db), n);
    for (size_t i = 0; i < n; i++)
        pairs[2 * i] = rows[3 * i];
    ok(rp_db_exec_rows(db, &rename, (struct rp_value[]){ rp_text("new") }, pairs, n, &changed, &err));
    assert_int_equal(changed, n);
    ok(rp_db_query(db, &renamed, (struct rp_value[]){ rp_text("new") }, take_int, &found, &err));
    assert_int_equal(found, n);
    for (size_t i = 0; i < n; i++)
        pairs[i] = rows[3 * i];
    ok(rp_db_exec_rows(db, &drop, NULL, pairs, n, &changed, &err));
    assert_int_equal(changed, n);
    assert_int_equal(count(db), 0);
}

static void any_number_of_rows_is_written(void **state)
{
    struct dbs *t = *state;
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++) {
        check_rows(t->db, row_counts[i]);
        ok(rp_db_begin(t->db, true, &err));
        check_rows(t->db, row_counts[i]);
        ok(rp_db_commit(t->db, &err));
    }
}

struct echo {
    const struct rp_value *next;
    size_t seen;
};

static int check_echo(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    struct echo *echo = ctx;
    echo->seen++;
    echo->next += 3;
    return check_sample((void *)(uintptr_t)(echo->next - 3), row, e);
}

/* Each column goes through its samples and NULL at a pace of its own, so that they meet in every
 * combination. */
static void rows_come_back_as_they_went_and_in_order(void **state)
{
    enum { N = sizeof samples / sizeof *samples };
    static const struct rp_sql echo_rows = { "echo_rows", "SELECT v.* FROM (VALUES @ROWS) AS v", "", "isb", "isb" };
    static const struct rp_sql read_back = { "read_back", "SELECT id, name, data FROM t ORDER BY id", "", NULL, "isb" };
    struct dbs *t = *state;
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++) {
        RP_CLEANUP(rp_freep) struct rp_value *rows = make_rows(row_counts[i]);
        struct echo echo = { rows, 0 }, stored = { rows, 0 };
        for (size_t j = 0; j < row_counts[i]; j++) {
            rows[3 * j + 1] = j / N % 5 < N ? samples[j / N % 5][1] : rp_null();
            rows[3 * j + 2] = samples[j / N / 5 % N][2];
        }
        ok(rp_db_exec_rows(t->db, &insert_rows, NULL, rows, row_counts[i], NULL, &err));
        ok(rp_db_query(t->db, &read_back, NULL, check_echo, &stored, &err));
        assert_int_equal(stored.seen, row_counts[i]);
        ok(rp_db_exec(t->db, &delete_all, NULL, NULL, &err));
        for (size_t j = 0; j < row_counts[i]; j++)
            rows[3 * j] = j % 7 < N ? samples[j % 7][0] : j % 7 < 6 ? rp_int((int64_t)j) : rp_null();
        ok(rp_db_query_rows(t->db, &echo_rows, NULL, rows, row_counts[i], check_echo, &echo, &err));
        assert_int_equal(echo.seen, row_counts[i]);
    }
}

static void conflicts_that_do_nothing_are_not_counted(void **state)
{
    static const struct rp_sql add_new = { "add_new",
                                           "INSERT INTO t (id, name, data) VALUES @ROWS ON CONFLICT (id) DO NOTHING",
                                           "", "isb", NULL };
    struct dbs *t = *state;
    RP_CLEANUP(rp_freep) struct rp_value *rows = make_rows(MANY);
    int64_t changed = -1;
    ok(rp_db_exec_rows(t->db, &add_new, NULL, rows + 3 * 1000, 600, NULL, &err));
    ok(rp_db_exec_rows(t->db, &add_new, NULL, rows, MANY, &changed, &err));
    assert_int_equal(changed, MANY - 600);
    ok(rp_db_exec_rows(t->db, &add_new, NULL, rows, MANY, &changed, &err));
    assert_int_equal(changed, 0);
    assert_int_equal(count(t->db), MANY);
}

struct tally {
    int64_t rows, sum;
};

static int tally_row(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    struct tally *tally = ctx;
    tally->rows++;
    tally->sum += row[0].i + row[1].i;
    return 0;
}

static void any_number_of_rows_is_joined(void **state)
{
    static const struct rp_sql join = { "join",
                                        "SELECT t.id, v.column2 FROM (VALUES @ROWS) AS v JOIN t ON t.id = v.column1 "
                                        "WHERE t.id >= $1",
                                        "i", "ii", "ii" };
    struct dbs *t = *state;
    RP_CLEANUP(rp_freep) struct rp_value *rows = make_rows(MANY);
    ok(rp_db_exec_rows(t->db, &insert_rows, NULL, rows, MANY, NULL, &err));
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++) {
        int64_t n = (int64_t)row_counts[i];
        struct rp_value pairs[2 * MANY];
        struct tally tally = { 0 };
        for (int64_t j = 0; j < n; j++) {
            pairs[2 * j] = rp_int(j);
            pairs[2 * j + 1] = rp_int(3);
        }
        ok(rp_db_query_rows(t->db, &join, (struct rp_value[]){ rp_int(1) }, pairs, (size_t)n, tally_row, &tally, &err));
        assert_int_equal(tally.rows, n > 0 ? n - 1 : 0);
        assert_int_equal(tally.sum, n > 0 ? n * (n - 1) / 2 + 3 * (n - 1) : 0);
    }
}

static void a_set_is_seen_as_a_whole(void **state)
{
    static const struct rp_sql whole = { "whole", "SELECT count(*), sum(column1) FROM (VALUES @ROWS) AS v", "", "i",
                                         "ii" };
    struct rp_value rows[512];
    struct tally tally = { 0 };
    for (int64_t i = 0; i < 512; i++)
        rows[i] = rp_int(i);
    ok(rp_db_query_rows(((struct dbs *)*state)->db, &whole, NULL, rows, 512, tally_row, &tally, &err));
    assert_int_equal(tally.rows, 1);
    assert_int_equal(tally.sum, 512 + 512 * 511 / 2);
}

static void returning_hands_back_every_row(void **state)
{
    static const struct rp_sql give_back = { "give_back", "INSERT INTO t (id, name) VALUES @ROWS RETURNING id, id", "",
                                             "is", "ii" };
    struct dbs *t = *state;
    struct rp_value rows[2 * MANY];
    struct tally tally = { 0 };
    for (int64_t i = 0; i < MANY; i++) {
        rows[2 * i] = rp_int(i);
        rows[2 * i + 1] = rp_null();
    }
    ok(rp_db_query_rows(t->db, &give_back, NULL, rows, MANY, tally_row, &tally, &err));
    assert_int_equal(tally.rows, MANY);
    assert_int_equal(tally.sum, (int64_t)MANY * (MANY - 1));
    assert_int_equal(count(t->db), MANY);
}

static void rows_outside_a_transaction_are_all_or_none(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_freep) struct rp_value *rows = make_rows(MANY);
    rows[3 * (MANY - 1)] = rp_int(0);
    int64_t changed = -1;
    assert_int_equal(rp_db_exec_rows(t->db, &insert_rows, NULL, rows, MANY, &changed, &err), RP_ECONFLICT);
    assert_int_equal(changed, -1);
    assert_false(rp_db_in_transaction(t->db));
    assert_int_equal(count(t->db), 0);
}

static void changed_counts_only_what_the_statement_did(void **state)
{
    static const struct rp_sql none = { "none", "UPDATE t SET name = 'y' WHERE id = $1", "i", NULL, NULL };
    static const struct rp_sql odd = { "odd", "UPDATE t SET name = 'y' WHERE id % 2 = 1", "", NULL, NULL };
    struct dbs *t = *state;
    int64_t changed = -1;
    for (int64_t i = 0; i < 9; i++)
        ok(insert(t->db, i));
    ok(rp_db_exec(t->db, &odd, NULL, &changed, &err));
    assert_int_equal(changed, 4);
    ok(rp_db_exec(t->db, &none, (struct rp_value[]){ rp_int(99) }, &changed, &err));
    assert_int_equal(changed, 0);
    ok(rp_db_exec(t->db, &(struct rp_sql){ "ddl", "CREATE TABLE u (id bigint)", "", NULL, NULL }, NULL, &changed,
                  &err));
    assert_int_equal(changed, 0);
    ok(rp_db_exec(t->db, &delete_all, NULL, &changed, &err));
    assert_int_equal(changed, 9);
}

/* ---- transactions ---- */

static void a_transaction_commits_or_rolls_back(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_begin(t->db, true, &err));
    assert_true(rp_db_in_transaction(t->db));
    ok(insert(t->db, 1));
    rp_db_rollback(t->db);
    assert_false(rp_db_in_transaction(t->db));
    assert_int_equal(count(t->db), 0);
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 1));
    ok(rp_db_commit(t->db, &err));
    rp_db_rollback(t->db);
    assert_int_equal(count(t->db), 1);
}

static void a_failed_transaction_takes_nothing_more(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 1));
    assert_int_equal(insert(t->db, 1), RP_ECONFLICT);
    assert_non_null(strstr(err.text, rp_db_engine(t->db)));
    assert_non_null(strstr(err.text, "insert_one"));
    assert_int_equal(insert(t->db, 2), RP_EFAILED);
    assert_int_equal(rp_db_commit(t->db, &err), RP_EFAILED);
    assert_int_equal(count(t->db), 0);
    ok(rp_db_begin(t->db, true, &err));
    assert_int_equal(rp_db_script(t->db, "NOT SQL", &err), RP_EFAILED);
    rp_db_rollback(t->db);
    ok(insert(t->db, 3));
    assert_int_equal(count(t->db), 1);
}

static void a_unique_violation_is_a_conflict(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_script(t->db, "CREATE UNIQUE INDEX t_name ON t (name)", &err));
    ok(insert(t->db, 1));
    assert_int_equal(insert(t->db, 1), RP_ECONFLICT);
    assert_int_equal(insert(t->db, 2), RP_ECONFLICT);
    assert_int_equal(count(t->db), 1);
}

static void begin_twice(struct rp_db *db)
{
    rp_db_begin(db, false, NULL);
    rp_db_begin(db, false, NULL);
}

static void commit_without_begin(struct rp_db *db)
{
    rp_db_commit(db, NULL);
}

static void nesting_and_stray_commits_are_asserted(void **state)
{
    struct dbs *t = *state;
    assert_true(is_asserted(begin_twice, t->db));
    assert_true(is_asserted(commit_without_begin, t->db));
}

static void a_transaction_for_reading_refuses_changes(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_begin(t->db, false, &err));
    assert_int_equal(count(t->db), 0);
    assert_int_equal(insert(t->db, 1), RP_EDENIED);
    rp_db_rollback(t->db);
    ok(insert(t->db, 1));
}

static int stop_at_three(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)row;
    return ++*(int *)ctx < 3 ? 0 : rp_error_set(e, RP_EHELD, "enough");
}

static void a_callback_may_stop_and_the_transaction_goes_on(void **state)
{
    static const struct rp_sql ids = { "ids", "SELECT id FROM t", "", NULL, "i" };
    struct dbs *t = *state;
    int seen = 0;
    ok(rp_db_begin(t->db, true, &err));
    for (int64_t i = 0; i < 9; i++)
        ok(insert(t->db, i));
    assert_int_equal(rp_db_query(t->db, &ids, NULL, stop_at_three, &seen, &err), RP_EHELD);
    assert_int_equal(seen, 3);
    assert_string_equal(err.text, "enough");
    ok(insert(t->db, 9));
    ok(rp_db_commit(t->db, &err));
    assert_int_equal(count(t->db), 10);
}

static int count_inside(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)row;
    return rp_db_query(ctx, &count_all, NULL, NULL, NULL, e);
}

static void query_inside_a_query(struct rp_db *db)
{
    rp_db_query(db, &count_all, NULL, count_inside, db, NULL);
}

static void a_callback_that_uses_its_connection_is_asserted(void **state)
{
    assert_true(is_asserted(query_inside_a_query, ((struct dbs *)*state)->db));
}

/* ---- statements ---- */

static void a_script_is_all_or_nothing(void **state)
{
    struct dbs *t = *state;
    assert_int_equal(rp_db_script(t->db, "INSERT INTO t (id) VALUES (1); INSERT INTO nowhere VALUES (1);", &err),
                     RP_EFAILED);
    assert_int_equal(count(t->db), 0);
    assert_false(rp_db_in_transaction(t->db));
}

static void append_only_tables_refuse_changes(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_script(
        t->db, "CREATE TABLE log (id bigint, note text); @APPEND_ONLY(log)\nINSERT INTO log VALUES (1, 'a');", &err));
    assert_int_equal(rp_db_script(t->db, "UPDATE log SET note = 'b'", &err), RP_EFAILED);
    assert_non_null(strstr(err.text, "log is append-only"));
    assert_int_equal(rp_db_script(t->db, "DELETE FROM log", &err), RP_EFAILED);
    ok(rp_db_script(t->db, "INSERT INTO log VALUES (2, 'b')", &err));
}

static void erasable_tables_only_let_one_column_go(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_script(t->db,
                    "CREATE TABLE log (id bigint, hash text, details text, more bigint);\n"
                    "@ERASABLE(log, details,\n  id, hash, more)\n"
                    "INSERT INTO log VALUES (1, 'h', 'd', NULL);",
                    &err));
    assert_int_equal(rp_db_script(t->db, "UPDATE log SET details = 'e'", &err), RP_EFAILED);
    assert_int_equal(rp_db_script(t->db, "UPDATE log SET hash = 'e', details = NULL", &err), RP_EFAILED);
    assert_int_equal(rp_db_script(t->db, "UPDATE log SET more = 1, details = NULL", &err), RP_EFAILED);
    assert_int_equal(rp_db_script(t->db, "DELETE FROM log", &err), RP_EFAILED);
    assert_non_null(strstr(err.text, "log is append-only"));
    ok(rp_db_script(t->db, "UPDATE log SET details = NULL", &err));
}

static void macros_are_not_looked_for_in_literals(void **state)
{
    static const struct rp_sql quoted = { "quoted", "SELECT '@NONE $1' /* @NONE */ AS \"@NONE\" -- @NONE\n", "", NULL,
                                          "s" };
    RP_CLEANUP(rp_buf_done) struct rp_buf texts = RP_BUF(100);
    ok(rp_db_query(((struct dbs *)*state)->db, &quoted, NULL, take_texts, &texts, &err));
    assert_string_equal(rp_buf_text(&texts), "@NONE $1;");
}

static void use_an_unknown_macro(struct rp_db *db)
{
    rp_db_script(db, "SELECT @NONE", NULL);
}

static void an_unknown_macro_is_asserted(void **state)
{
    assert_true(is_asserted(use_an_unknown_macro, ((struct dbs *)*state)->db));
}

static void row_locks_are_understood(void **state)
{
    static const struct rp_sql claim = { "claim", "SELECT id FROM t WHERE id = $1 @FOR_UPDATE @SKIP_LOCKED", "i", NULL,
                                         "i" };
    static const struct rp_sql share = { "share", "SELECT id FROM t WHERE id = $1 @FOR_SHARE", "i", NULL, "i" };
    struct dbs *t = *state;
    int64_t id = 0;
    ok(insert(t->db, 4));
    ok(rp_db_begin(t->db, true, &err));
    ok(rp_db_query(t->db, &share, (struct rp_value[]){ rp_int(4) }, take_int, &id, &err));
    ok(rp_db_query(t->db, &claim, (struct rp_value[]){ rp_int(4) }, take_int, &id, &err));
    ok(rp_db_commit(t->db, &err));
    assert_int_equal(id, 4);
}

static void statements_may_come_and_go_at_one_address(void **state)
{
    struct dbs *t = *state;
    char text[64];
    struct rp_sql sql = { "changing", text, "", NULL, "i" };
    for (int i = 0; i < 600; i++) {
        int64_t n = -1;
        snprintf(text, sizeof text, "SELECT %d", i);
        ok(rp_db_query(t->db, &sql, NULL, take_int, &n, &err));
        assert_int_equal(n, i);
    }
}

static void more_statements_than_are_kept_still_work(void **state)
{
    struct dbs *t = *state;
    static char texts[600][32];
    static struct rp_sql sql[600];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 600; i++) {
            int64_t n = -1;
            snprintf(texts[i], sizeof texts[i], "SELECT %d + $1", i);
            sql[i] = (struct rp_sql){ "one_of_many", texts[i], "i", NULL, "i" };
            ok(rp_db_query(t->db, &sql[i], (struct rp_value[]){ rp_int(round) }, take_int, &n, &err));
            assert_int_equal(n, i + round);
        }
    }
}

static void names_are_quoted(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(1000);
    rp_buf_str(&text, "CREATE TABLE ");
    ok(rp_db_quote_name(&text, "we\"ird @NAME $1", &err));
    rp_buf_str(&text, " (id bigint)");
    ok(rp_db_script(t->db, rp_buf_text(&text), &err));
    assert_int_equal(rp_db_quote_name(&text, "", &err), RP_EINVAL);
    char name[65];
    memset(name, 'x', 64);
    name[64] = '\0';
    assert_int_equal(rp_db_quote_name(&text, name, &err), RP_EINVAL);
    ok(rp_db_quote_name(&text, name + 1, &err));
}

static void the_database_tells_the_time(void **state)
{
    int64_t now_ms = 0, host_ms = rp_clock_now_ms(&rp_clock_host);
    ok(rp_db_now_ms(((struct dbs *)*state)->db, &now_ms, &err));
    assert_in_range(now_ms, (uint64_t)host_ms - 60000, (uint64_t)host_ms + 60000);
}

static void a_statement_that_runs_too_long_is_stopped(void **state)
{
    static const struct rp_sql endless = {
        "endless",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n > 0) "
        "SELECT count(*) FROM c",
        "", NULL, "i"
    };
    struct dbs *t = *state;
    /* Long enough for one insert on a machine whose disk is slow. */
    struct dbs *limited = make(t->kind, &(struct rp_db_options){ .statement_ms = 2000 });
    assert_int_equal(rp_db_query(limited->db, &endless, NULL, NULL, NULL, &err), RP_EBUSY);
    assert_non_null(strstr(err.text, "endless"));
    ok(insert(limited->db, 1));
    dbs_drop(limited);
    free(limited);
}

/* ---- injected faults ---- */

struct injection {
    const char *call;
    bool after;
    int asked;
};

static int inject(struct injection *i, const char *call, bool after, struct rp_error *e)
{
    if (i->call == NULL || i->after != after || strcmp(i->call, call) != 0) return 0;
    i->asked++;
    return rp_error_set(e, RP_EUNAVAILABLE, "injected");
}

static int inject_before(void *ctx, const char *call, struct rp_error *e)
{
    return inject(ctx, call, false, e);
}

static int inject_after(void *ctx, const char *call, struct rp_error *e)
{
    return inject(ctx, call, true, e);
}

static int write_one(struct rp_db *db)
{
    int r = rp_db_begin(db, true, &err);
    if (r == 0) r = insert(db, 1);
    if (r == 0) return rp_db_commit(db, &err);
    rp_db_rollback(db);
    return r;
}

static void check_fault(struct dbs *t, struct injection *i, const char *call, bool after, int want, int64_t rows)
{
    *i = (struct injection){ call, after, 0 };
    assert_int_equal(write_one(t->db), want);
    assert_int_equal(i->asked, 1);
    *i = (struct injection){ 0 };
    assert_int_equal(count(t->db), rows);
    ok(rp_db_exec(t->db, &delete_all, NULL, NULL, &err));
}

static void injected_faults_keep_the_contract(void **state)
{
    struct dbs *t = *state;
    struct injection i = { 0 };
    struct rp_db_fault fault = { .before = inject_before, .after = inject_after, .ctx = &i };
    ok(rp_db_fault_wrap(t->db, &fault, &t->db, &err));
    ok(write_one(t->db));
    ok(rp_db_exec(t->db, &delete_all, NULL, NULL, &err));
    check_fault(t, &i, "begin", false, RP_EUNAVAILABLE, 0);
    check_fault(t, &i, "begin", true, RP_EUNAVAILABLE, 0);
    check_fault(t, &i, "run", false, RP_EUNAVAILABLE, 0);
    check_fault(t, &i, "run", true, RP_EUNAVAILABLE, 0);
    check_fault(t, &i, "commit", false, RP_EUNAVAILABLE, 0);
    check_fault(t, &i, "commit", true, RP_EUNKNOWN, 1);
    i = (struct injection){ "run", true, 0 };
    assert_int_equal(insert(t->db, 5), RP_EUNAVAILABLE);
    i = (struct injection){ "script", false, 0 };
    assert_int_equal(rp_db_script(t->db, "DELETE FROM t", &err), RP_EUNAVAILABLE);
    i = (struct injection){ 0 };
    assert_int_equal(count(t->db), 1);
    ok(rp_db_exec(t->db, &delete_all, NULL, NULL, &err));
    check_rows(t->db, 513);
}

/* ---- the list ---- */

struct contract {
    const char *name;
    CMUnitTestFunction fn;
};

/* clang-format off */
#define CONTRACT(fn) { #fn, fn }
/* clang-format on */

static const struct contract contracts[] = {
    CONTRACT(values_come_back_as_they_went),
    CONTRACT(text_is_compared_bytewise),
    CONTRACT(typed_nulls_and_sums_need_no_cast),
    CONTRACT(a_value_of_another_type_is_asserted),
    CONTRACT(a_result_that_is_not_as_declared_is_an_error),
    CONTRACT(any_number_of_rows_is_written),
    CONTRACT(rows_come_back_as_they_went_and_in_order),
    CONTRACT(conflicts_that_do_nothing_are_not_counted),
    CONTRACT(any_number_of_rows_is_joined),
    CONTRACT(a_set_is_seen_as_a_whole),
    CONTRACT(returning_hands_back_every_row),
    CONTRACT(rows_outside_a_transaction_are_all_or_none),
    CONTRACT(changed_counts_only_what_the_statement_did),
    CONTRACT(a_transaction_commits_or_rolls_back),
    CONTRACT(a_failed_transaction_takes_nothing_more),
    CONTRACT(a_unique_violation_is_a_conflict),
    CONTRACT(nesting_and_stray_commits_are_asserted),
    CONTRACT(a_transaction_for_reading_refuses_changes),
    CONTRACT(a_callback_may_stop_and_the_transaction_goes_on),
    CONTRACT(a_callback_that_uses_its_connection_is_asserted),
    CONTRACT(a_script_is_all_or_nothing),
    CONTRACT(append_only_tables_refuse_changes),
    CONTRACT(erasable_tables_only_let_one_column_go),
    CONTRACT(macros_are_not_looked_for_in_literals),
    CONTRACT(an_unknown_macro_is_asserted),
    CONTRACT(row_locks_are_understood),
    CONTRACT(statements_may_come_and_go_at_one_address),
    CONTRACT(more_statements_than_are_kept_still_work),
    CONTRACT(names_are_quoted),
    CONTRACT(the_database_tells_the_time),
    CONTRACT(a_statement_that_runs_too_long_is_stopped),
    CONTRACT(injected_faults_keep_the_contract),
};

int main(void)
{
    enum { N = sizeof contracts / sizeof *contracts };
    static struct CMUnitTest tests[N * DBS_KINDS];
    static char names[N * DBS_KINDS][96];
    size_t n = 0;
    for (enum dbs_kind kind = 0; kind < DBS_KINDS; kind++) {
        for (size_t i = 0; i < N; i++) {
            snprintf(names[n], sizeof names[n], "%s: %s", dbs_kind_name(kind), contracts[i].name);
            tests[n] = (struct CMUnitTest){ names[n], contracts[i].fn, set_up, tear_down, (void *)(uintptr_t)kind };
            n++;
        }
    }
    return _cmocka_run_group_tests("db contract", tests, n, NULL, NULL);
}
