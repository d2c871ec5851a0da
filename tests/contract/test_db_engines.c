/* SPDX-License-Identifier: Apache-2.0 */
/* What db/db.h promises between two connections, and what only one engine can break: damaged files
 * and full disks, lost connections and lost commits. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include "db_steps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "lib/dbs.h"

#define PATIENCE_MS 20000

static const struct rp_sql insert_one = { "insert_one", "INSERT INTO t (id, data) VALUES ($1, $2)", "ib", NULL, NULL };

static int set_up(void **state)
{
    struct dbs *t = calloc(1, sizeof *t);
    rp_error_clear(&err);
    dbs_make(t, (enum dbs_kind)(uintptr_t)*state, NULL);
    ok(rp_db_script(t->db, "CREATE TABLE t (id bigint PRIMARY KEY, name text, data @BYTES)", &err));
    *state = t;
    return 0;
}

static int64_t ask(struct rp_db *db, const char *text)
{
    int64_t n = -1;
    ok(rp_db_query(db, &(struct rp_sql){ "ask", text, "", NULL, "i" }, NULL, take_int, &n, &err));
    return n;
}

static int insert(struct rp_db *db, int64_t id, size_t n)
{
    static const char bytes[100000];
    return rp_db_exec(db, &insert_one, (struct rp_value[]){ rp_int(id), rp_bytes(bytes, n) }, NULL, &err);
}

static int open_url(const char *url, const struct rp_db_options *options)
{
    struct rp_db *db = NULL;
    int r = rp_db_open(url, options, &db, &err);
    rp_db_close(db);
    return r;
}

static int open_file(const struct dbs *t, const char *name, bool read_only)
{
    char url[160];
    snprintf(url, sizeof url, "sqlite:%s/%s", t->dir, name);
    return open_url(url, &(struct rp_db_options){ .read_only = read_only });
}

static void write_file(const struct dbs *t, const char *name, off_t at, const char *bytes, size_t n)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    RP_CLEANUP(rp_fd_closep) int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
}

static void an_unknown_scheme_is_refused_without_repeating_the_url(void **state)
{
    (void)state;
    assert_int_equal(open_url("mysql://me:hunter2@host/db", NULL), RP_ECONFIG);
    assert_null(strstr(err.text, "hunter2"));
    assert_string_not_equal(err.hint, "");
}

/* ---- two connections ---- */

/* PostgreSQL locks rows, SQLite the whole database: this takes the lock in either. */
static int lock_row(struct rp_db *db)
{
    static const struct rp_sql lock = { "lock_row", "UPDATE t SET name = 'locked' WHERE id = 1", "", NULL, NULL };
    int r = rp_db_begin(db, true, &err);
    return r < 0 ? r : rp_db_exec(db, &lock, NULL, NULL, &err);
}

static void a_lock_is_waited_for_as_long_as_told(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_db_closep) struct rp_db *other = dbs_open_again(t, &(struct rp_db_options){ .busy_ms = 150 });
    ok(insert(t->db, 1, 1));
    ok(lock_row(t->db));
    int64_t start_ms = rp_time_boot_ms();
    assert_int_equal(lock_row(other), RP_EBUSY);
    assert_in_range(rp_time_boot_ms() - start_ms, 100, 4000);
    rp_db_rollback(other);
    ok(rp_db_commit(t->db, &err));
    ok(lock_row(other));
    ok(rp_db_commit(other, &err));
}

struct waiter {
    struct rp_db *db;
    int result;
    int ready[2];
};

static void *wait_for_lock(void *arg)
{
    static const struct rp_sql lock = { "lock_row", "UPDATE t SET name = 'second' WHERE id = 1", "", NULL, NULL };
    struct waiter *w = arg;
    close(w->ready[1]);
    w->result = rp_db_begin(w->db, true, NULL);
    if (w->result == 0) w->result = rp_db_exec(w->db, &lock, NULL, NULL, NULL);
    if (w->result == 0) w->result = rp_db_commit(w->db, NULL);
    return NULL;
}

static void a_waiting_writer_goes_on_when_the_first_commits(void **state)
{
    static const struct rp_sql name = { "name", "SELECT count(*) FROM t WHERE name = 'second'", "", NULL, "i" };
    struct dbs *t = *state;
    RP_CLEANUP(rp_db_closep) struct rp_db *other = dbs_open_again(t, &(struct rp_db_options){ .busy_ms = 20000 });
    struct waiter w = { .db = other, .result = -1 };
    pthread_t thread;
    int64_t n = 0;
    char byte;
    ok(insert(t->db, 1, 1));
    ok(lock_row(t->db));
    assert_int_equal(pipe(w.ready), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &w), 0);
    assert_int_equal(read(w.ready[0], &byte, 1), 0);
    ok(rp_db_commit(t->db, &err));
    pthread_join(thread, NULL);
    close(w.ready[0]);
    assert_int_equal(w.result, 0);
    ok(rp_db_query(t->db, &name, NULL, take_int, &n, &err));
    assert_int_equal(n, 1);
}

static void a_read_only_connection_changes_nothing(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_db_closep) struct rp_db *reader = dbs_open_again(t, &(struct rp_db_options){ .read_only = true });
    ok(insert(t->db, 1, 1));
    assert_int_equal(ask(reader, "SELECT count(*) FROM t"), 1);
    assert_int_equal(insert(reader, 2, 1), RP_EDENIED);
    assert_int_equal(rp_db_script(reader, "CREATE TABLE u (id bigint)", &err), RP_EDENIED);
    ok(rp_db_begin(reader, true, &err));
    assert_int_equal(insert(reader, 2, 1), RP_EDENIED);
    rp_db_rollback(reader);
    assert_int_equal(ask(t->db, "SELECT count(*) FROM t"), 1);
}

static void an_uncommitted_row_is_not_seen(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_db_closep) struct rp_db *other = dbs_open_again(t, NULL);
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 1, 1));
    assert_int_equal(ask(other, "SELECT count(*) FROM t"), 0);
    ok(rp_db_commit(t->db, &err));
    assert_int_equal(ask(other, "SELECT count(*) FROM t"), 1);
}

/* ---- SQLite ---- */

static void a_file_that_is_no_database_is_called_damaged(void **state)
{
    static char words[8192] = "This is certainly no database. ";
    write_file(*state, "words", 0, words, sizeof words);
    assert_int_equal(open_file(*state, "words", false), RP_ECORRUPT);
    assert_non_null(strstr(err.text, "sqlite: open "));
    assert_non_null(strstr(err.hint, "backup"));
    assert_int_equal(open_file(*state, "words", true), RP_ECORRUPT);
}

/* As a backup is put in its place under a running program, with its log or without. */
static void a_file_that_was_replaced_is_not_written_any_more(void **state)
{
    struct dbs *t = *state;
    char path[200], copy[200], command[500];
    snprintf(path, sizeof path, "%s", strchr(t->url, ':') + 1);
    snprintf(copy, sizeof copy, "%s/copy", t->dir);
    ok(insert(t->db, 1, 1));
    snprintf(command, sizeof command, "cp %s %s", path, copy);
    assert_int_equal(system(command), 0);
    assert_int_equal(rename(copy, path), 0);
    assert_int_equal(rp_db_begin(t->db, true, &err), RP_EUNAVAILABLE);
    assert_non_null(strstr(err.text, "replaced"));
    assert_non_null(strstr(err.hint, "restart"));
    ok(rp_db_begin(t->db, false, &err)); /* what was there can be read */
    rp_db_rollback(t->db);
}

static void damaged_pages_are_noticed(void **state)
{
    struct dbs *t = *state;
    int64_t n = 0;
    for (int64_t i = 0; i < 300; i++)
        ok(insert(t->db, i, 500));
    rp_db_close(t->db);
    char noise[4096];
    memset(noise, 0x5a, sizeof noise);
    for (off_t page = 1; page < 20; page++)
        write_file(t, "test.db", page * 4096, noise, sizeof noise);
    t->db = dbs_open_again(t, NULL);
    assert_int_equal(rp_db_query(t->db, &(struct rp_sql){ "sum", "SELECT sum(length(data)) FROM t", "", NULL, "i" },
                                 NULL, take_int, &n, &err),
                     RP_ECORRUPT);
    assert_non_null(strstr(err.text, "sqlite: sum: "));
    assert_non_null(strstr(err.hint, "backup"));
}

static void a_missing_directory_is_not_made(void **state)
{
    const struct dbs *t = *state;
    struct stat st;
    char path[160];
    assert_int_equal(open_file(t, "none/x.db", false), RP_ECONFIG);
    assert_non_null(strstr(err.hint, "directory"));
    snprintf(path, sizeof path, "%s/none", t->dir);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(open_file(t, "absent.db", true), RP_ENOTFOUND);
    assert_int_equal(open_file(t, "", false), RP_ECONFIG);
    assert_int_equal(open_url("sqlite:", NULL), RP_ECONFIG);
}

static void the_file_is_its_owners_alone(void **state)
{
    const struct dbs *t = *state;
    struct stat st;
    char path[160];
    mode_t old = umask(0);
    ok(open_file(t, "open.db", false));
    umask(0277);
    ok(open_file(t, "closed.db", false));
    umask(old);
    snprintf(path, sizeof path, "%s/open.db", t->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s/closed.db", t->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void settings_are_those_of_a_safe_catalog(void **state)
{
    struct rp_db *db = ((struct dbs *)*state)->db;
    assert_int_equal(ask(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
    assert_int_equal(ask(db, "PRAGMA synchronous"), 2);
    assert_int_equal(ask(db, "PRAGMA foreign_keys"), 1);
    assert_int_equal(ask(db, "PRAGMA wal_autocheckpoint"), 4000);
    assert_int_equal(ask(db, "PRAGMA trusted_schema"), 0);
    assert_int_equal(ask(db, "PRAGMA busy_timeout"), 10000);
}

static int switch_to_rollback_journal(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    (void)ctx;
    assert_string_equal(row[0].p, "delete");
    return 0;
}

static void a_database_that_was_there_keeps_its_journal(void **state)
{
    static const struct rp_sql leave_wal = { "leave_wal", "PRAGMA journal_mode=DELETE", "", NULL, "s" };
    struct dbs *t = *state;
    ok(rp_db_query(t->db, &leave_wal, NULL, switch_to_rollback_journal, NULL, &err));
    rp_db_close(t->db);
    t->db = dbs_open_again(t, NULL);
    assert_int_equal(ask(t->db, "SELECT journal_mode = 'delete' FROM pragma_journal_mode"), 1);
}

static int64_t fixed_clock(void *ctx)
{
    return *(int64_t *)ctx;
}

static void the_clock_is_the_one_given(void **state)
{
    struct dbs *t = *state;
    int64_t now_ms = 1234567890123, got_ms = 0;
    struct rp_clock clock = { .now_ms = fixed_clock, .ctx = &now_ms };
    RP_CLEANUP(rp_db_closep) struct rp_db *db = dbs_open_again(t, &(struct rp_db_options){ .clock = &clock });
    ok(rp_db_now_ms(db, &got_ms, &err));
    assert_int_equal(got_ms, now_ms);
    now_ms++;
    ok(rp_db_now_ms(db, &got_ms, &err));
    assert_int_equal(got_ms, now_ms);
}

/* In a child, since the limit cannot be raised again. The exit status says what went wrong, 0 for
 * nothing. */
static int fill_the_disk(const struct dbs *t)
{
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 400000, 400000 });
    struct rp_db *db = dbs_open_again(t, NULL);
    int r = rp_db_begin(db, true, &err);
    for (int64_t i = 100; r == 0 && i < 200; i++) {
        r = insert(db, i, 100000);
        if (r == 0 && i % 2 == 1) r = rp_db_commit(db, &err);
        if (r == 0 && i % 2 == 1) r = rp_db_begin(db, true, &err);
    }
    if (r != RP_EFULL) return 1;
    rp_db_rollback(db);
    int64_t n = -1;
    if (rp_db_query(db, &count_all, NULL, take_int, &n, &err) < 0) return 2;
    rp_db_close(db);
    return n % 2 == 1 ? 0 : 3;
}

static void a_full_disk_is_told_apart_and_loses_nothing(void **state)
{
    struct dbs *t = *state;
    int status = -1;
    ok(insert(t->db, 1, 10));
    rp_db_close(t->db);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(fill_the_disk(t));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    t->db = dbs_open_again(t, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(ask(t->db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
    ok(insert(t->db, 2, 100000));
}

/* ---- PostgreSQL ---- */

/* Ends a session of the server and waits until it is gone. */
static void terminate(const struct dbs *t, int64_t pid)
{
    RP_CLEANUP(rp_db_closep) struct rp_db *other = dbs_open_again(t, NULL);
    char text[96];
    snprintf(text, sizeof text, "SELECT pg_terminate_backend(%" PRId64 ", %d)", pid, PATIENCE_MS);
    assert_int_equal(ask(other, text), 1);
}

static void a_lost_session_is_made_again(void **state)
{
    struct dbs *t = *state;
    ok(insert(t->db, 1, 1));
    terminate(t, ask(t->db, "SELECT pg_backend_pid()"));
    ok(insert(t->db, 2, 1));
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 3, 1));
    terminate(t, ask(t->db, "SELECT pg_backend_pid()"));
    assert_int_equal(insert(t->db, 4, 1), RP_EUNAVAILABLE);
    assert_non_null(strstr(err.text, "postgres: insert_one: "));
    assert_true(rp_db_in_transaction(t->db));
    assert_int_equal(insert(t->db, 4, 1), RP_EFAILED);
    rp_db_rollback(t->db);
    assert_int_equal(ask(t->db, "SELECT count(*) FROM t"), 2);
    ok(insert(t->db, 4, 1));
}

/* The session ends before COMMIT is sent: nothing was decided, but the client cannot know that. */
static void a_session_that_ends_before_commit_has_rolled_back(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 3, 1));
    terminate(t, ask(t->db, "SELECT pg_backend_pid()"));
    assert_int_equal(rp_db_commit(t->db, &err), RP_EUNKNOWN);
    assert_int_equal(ask(t->db, "SELECT count(*) FROM t"), 0);
}

static void lose_commit(const struct dbs *t, enum cut cut, bool expected)
{
    char url[512];
    struct rp_db *db = NULL;
    struct cutter *cutter = cutter_start(t, cut, url, sizeof url);
    ok(rp_db_open(url, NULL, &db, &err));
    ok(rp_db_begin(db, true, &err));
    ok(insert(db, 10 + (int64_t)cut, 1));
    assert_int_equal(rp_db_commit(db, &err), RP_EUNKNOWN);
    assert_non_null(strstr(err.text, "postgres: commit"));
    assert_false(rp_db_in_transaction(db));
    rp_db_rollback(db);
    assert_int_equal(ask(db, "SELECT count(*) FROM t"), expected ? 1 : 0);
    rp_db_close(db);
    cutter_stop(cutter);
}

static void a_commit_whose_answer_was_lost_is_found_committed(void **state)
{
    lose_commit(*state, CUT_AFTER_COMMIT, true);
}

static void a_commit_that_never_arrived_is_found_rolled_back(void **state)
{
    lose_commit(*state, CUT_BEFORE_COMMIT, false);
}

static void a_commit_is_never_guessed_while_nobody_can_be_asked(void **state)
{
    const struct dbs *t = *state;
    char url[512];
    struct rp_db *db = NULL;
    struct cutter *cutter = cutter_start(t, CUT_AFTER_COMMIT, url, sizeof url);
    ok(rp_db_open(url, NULL, &db, &err));
    ok(rp_db_begin(db, true, &err));
    ok(insert(db, 1, 1));
    assert_int_equal(rp_db_commit(db, &err), RP_EUNKNOWN);
    cutter_stop(cutter);
    assert_int_equal(insert(db, 2, 1), RP_EUNAVAILABLE);
    rp_db_close(db);
}

/* A cancelled wait for a synchronous standby is answered so: committed here, perhaps nowhere
 * else. */
static void a_commit_answered_with_a_warning_is_unknown(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_script(t->db,
                    "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS"
                    " $$BEGIN RAISE WARNING 'in doubt'; RETURN NULL; END$$;"
                    "CREATE CONSTRAINT TRIGGER warns AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED"
                    " FOR EACH ROW WHEN (NEW.id = 7) EXECUTE FUNCTION warn()",
                    &err));
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 7, 1));
    assert_int_equal(rp_db_commit(t->db, &err), RP_EUNKNOWN);
    assert_int_equal(ask(t->db, "SELECT count(*) FROM t"), 1);
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 8, 1));
    ok(rp_db_commit(t->db, &err));
}

static void a_session_that_sleeps_in_a_transaction_gives_its_locks_back(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_db_closep) struct rp_db *other = dbs_open_again(t, NULL);
    ok(rp_db_begin(t->db, true, &err));
    ok(insert(t->db, 1, 1));
    int64_t began_ms = rp_time_boot_ms();
    ok(insert(other, 1, 1)); /* waits until the sleeper has lost its session */
    assert_in_range(rp_time_boot_ms() - began_ms, 0, 6000);
    assert_int_equal(insert(t->db, 2, 1), RP_EUNAVAILABLE);
    rp_db_rollback(t->db);
    ok(insert(t->db, 2, 1));
}

static void a_server_that_became_read_only_counts_as_lost(void **state)
{
    struct dbs *t = *state;
    ok(rp_db_script(t->db, "SET default_transaction_read_only=on", &err)); /* as a standby says it */
    assert_int_equal(insert(t->db, 1, 1), RP_EUNAVAILABLE);
    ok(insert(t->db, 1, 1)); /* a new session */
}

struct crossing {
    struct rp_db *db;
    int r;
    struct rp_error why;
};

static const struct rp_sql lock_first = { "lock_first", "UPDATE t SET name = 'x' WHERE id = 1", "", NULL, NULL };
static const struct rp_sql lock_second = { "lock_second", "UPDATE t SET name = 'x' WHERE id = 2", "", NULL, NULL };

static void *cross(void *arg)
{
    struct crossing *c = arg;
    c->r = rp_db_exec(c->db, &lock_first, NULL, NULL, &c->why);
    return NULL;
}

static void a_deadlock_is_busy_and_counted(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_db_closep) struct rp_db *other = dbs_open_again(t, NULL);
    struct crossing c = { .db = other };
    pthread_t thread;
    int64_t before = rp_db_figures().deadlocks;
    assert_true(rp_db_figures().sessions >= 2);
    ok(insert(t->db, 1, 1));
    ok(insert(t->db, 2, 1));
    ok(rp_db_begin(t->db, true, &err));
    ok(rp_db_begin(other, true, &err));
    ok(rp_db_exec(t->db, &lock_first, NULL, NULL, &err));
    ok(rp_db_exec(other, &lock_second, NULL, NULL, &err));
    assert_int_equal(pthread_create(&thread, NULL, cross, &c), 0);
    int r = rp_db_exec(t->db, &lock_second, NULL, NULL, &err);
    pthread_join(thread, NULL);
    assert_true((r == RP_EBUSY) != (c.r == RP_EBUSY)); /* one of them */
    assert_int_equal(rp_db_figures().deadlocks, before + 1);
    rp_db_rollback(t->db);
    rp_db_rollback(other);
}

static void an_answer_that_is_late_for_the_deadline_is_a_lost_connection(void **state)
{
    static const struct rp_sql sleep = { "sleep", "SELECT count(*) FROM pg_sleep(20)", "", NULL, "i" };
    struct dbs *t = *state;
    int64_t began_ms = rp_time_boot_ms();
    rp_db_deadline(t->db, began_ms + 300);
    assert_int_equal(rp_db_exec(t->db, &sleep, NULL, NULL, &err), RP_EUNAVAILABLE);
    assert_in_range(rp_time_boot_ms() - began_ms, 300, 5000);
    rp_db_deadline(t->db, 0);
    ok(insert(t->db, 1, 1));
}

/* More than the socket holds is on its way to a server that hangs. */
static void a_send_that_is_late_for_the_deadline_is_a_lost_connection(void **state)
{
    struct dbs *t = *state;
    static uint8_t much[8 << 20];
    struct rp_value few[] = { rp_int(1), rp_bytes(much, 1) }, many[] = { rp_int(2), rp_bytes(much, sizeof much) };
    ok(rp_db_exec(t->db, &insert_one, few, NULL, &err)); /* it is prepared now */
    pid_t server = (pid_t)ask(t->db, "SELECT pg_backend_pid()");
    assert_int_equal(kill(server, SIGSTOP), 0);
    int64_t began_ms = rp_time_boot_ms();
    rp_db_deadline(t->db, began_ms + 300);
    int r = rp_db_exec(t->db, &insert_one, many, NULL, &err);
    int64_t took_ms = rp_time_boot_ms() - began_ms;
    assert_int_equal(kill(server, SIGCONT), 0);
    rp_db_deadline(t->db, 0);
    assert_int_equal(r, RP_EUNAVAILABLE);
    assert_true(took_ms < PATIENCE_MS);
    ok(rp_db_exec(t->db, &insert_one, many, NULL, &err));
    assert_int_equal(ask(t->db, "SELECT count(*) FROM t"), 2);
}

static void no_error_repeats_the_password(void **state)
{
    static const char *const urls[] = {
        "postgres://me:hunter2@127.0.0.1:1/db",
        "postgres://me:hunter2%zz@127.0.0.1/db",
        "postgres://me:hunter2@127.0.0.1/db?nonsense=hunter2",
        "postgres://me:hunter2@127.0.0.1:hunter2/db",
        "postgres://me@127.0.0.1:1/db?password=hunter2&schema=%00",
        "postgres://me@[::hunter2/db",
        "postgresql:///hunter2?host=/nonexistent&password=hunter2&user=me",
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        rp_error_clear(&err);
        assert_true(open_url(urls[i], NULL) < 0);
        assert_int_equal(strncmp(err.text, "postgres: ", 10), 0);
        assert_null(strstr(err.text, "hunter2"));
        assert_null(strstr(err.hint, "hunter2"));
    }
}

static void only_the_named_schema_is_seen(void **state)
{
    struct dbs *t = *state;
    char url[600], text[120];
    struct rp_db *other = NULL;
    assert_int_equal(ask(t->db, "SELECT cardinality(current_schemas(false))"), 2);
    snprintf(text, sizeof text, "SELECT (current_schema() = '%s')::int", t->schema);
    assert_int_equal(ask(t->db, text), 1);
    snprintf(url, sizeof url, "%s%%20x", t->url);
    ok(rp_db_open(url, &(struct rp_db_options){ .read_only = true }, &other, &err));
    assert_int_equal(rp_db_query(other, &count_all, NULL, NULL, NULL, &err), RP_EFAILED);
    rp_db_close(other);
    snprintf(text, sizeof text, "SELECT count(*) FROM pg_namespace WHERE nspname = '%s x'", t->schema);
    assert_int_equal(ask(t->db, text), 0);
    ok(open_url(url, NULL));
    assert_int_equal(ask(t->db, text), 1);
    snprintf(text, sizeof text, "DROP SCHEMA \"%s x\"", t->schema);
    ok(rp_db_script(t->db, text, &err));
}

static void sessions_are_set_up_for_durable_commits(void **state)
{
    struct dbs *t = *state;
    assert_int_equal(ask(t->db, "SELECT (current_setting('synchronous_commit') = 'on')::int"), 1);
    assert_int_equal(ask(t->db, "SELECT (current_setting('client_encoding') = 'UTF8')::int"), 1);
    assert_int_equal(ask(t->db, "SELECT (current_setting('lock_timeout') = '10s')::int"), 1);
    ok(rp_db_begin(t->db, true, &err));
    assert_int_equal(ask(t->db, "SELECT (current_setting('transaction_isolation') = 'read committed')::int"), 1);
    ok(rp_db_commit(t->db, &err));
}

static void a_session_is_called_reprieve_unless_its_url_names_it(void **state)
{
    static const char say[] = "SELECT (current_setting('application_name') = '%s')::int";
    struct dbs *t = *state;
    char text[120];
    struct rp_db *unnamed = NULL;
    snprintf(text, sizeof text, say, t->schema); /* the tests' URLs name their sessions like the schema */
    assert_int_equal(ask(t->db, text), 1);
    snprintf(text, sizeof text, say, "reprieve");
    ok(rp_db_open(getenv("RP_TEST_POSTGRES"), NULL, &unnamed, &err));
    assert_int_equal(ask(unnamed, text), 1);
    rp_db_close(unnamed);
}

static void unused_statements_are_given_back_to_the_server(void **state)
{
    static char texts[600][32];
    static struct rp_sql sql[600];
    struct dbs *t = *state;
    for (int i = 0; i < 600; i++) {
        int64_t n = -1;
        snprintf(texts[i], sizeof texts[i], "SELECT %d", i);
        sql[i] = (struct rp_sql){ "one_of_many", texts[i], "", NULL, "i" };
        ok(rp_db_query(t->db, &sql[i], NULL, take_int, &n, &err));
    }
    assert_in_range(ask(t->db, "SELECT count(*) FROM pg_prepared_statements"), 1, 256);
}

/* ---- PostgreSQL: many rows ---- */

static const struct rp_sql insert_rows = { "insert_rows", "INSERT INTO t (id, name) VALUES @ROWS", "", "is", NULL };

static struct rp_value *make_rows(size_t n, const char *name)
{
    struct rp_value *rows = calloc(2 * n, sizeof *rows);
    assert_non_null(rows);
    for (size_t i = 0; i < n; i++) {
        rows[2 * i] = rp_int((int64_t)i);
        rows[2 * i + 1] = rp_text(name);
    }
    return rows;
}

static int64_t times_run(struct rp_db *db)
{
    return ask(db, "SELECT COALESCE(sum(generic_plans + custom_plans), 0) FROM pg_prepared_statements "
                   "WHERE statement LIKE 'INSERT INTO t (id, name) %'");
}

static void insert_many(struct rp_db *db, const struct rp_value *rows, size_t n)
{
    int64_t changed = -1;
    ok(rp_db_exec_rows(db, &insert_rows, NULL, rows, n, &changed, &err));
    assert_int_equal(changed, n);
    assert_int_equal(ask(db, "SELECT count(*) FROM t"), n);
    ok(rp_db_script(db, "DELETE FROM t", &err));
}

static void one_statement_serves_any_number_of_rows(void **state)
{
    static const size_t counts[] = { 0, 1, 2, 999, 5000, 3 };
    struct dbs *t = *state;
    RP_CLEANUP(rp_freep) struct rp_value *rows = make_rows(5000, "x");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        insert_many(t->db, rows, counts[i]);
    assert_int_equal(ask(t->db, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'INSERT%'"), 1);
    assert_int_equal(times_run(t->db), 5);
}

static void rows_beyond_a_statements_limits_come_in_several(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_freep) struct rp_value *many = make_rows(20001, "x");
    RP_CLEANUP(rp_freep) char *big = calloc(1, (6 << 20) + 1);
    memset(big, 'x', 6 << 20);
    insert_many(t->db, many, 10000);
    assert_int_equal(times_run(t->db), 1);
    insert_many(t->db, many, 20001);
    assert_int_equal(times_run(t->db), 4);
    for (size_t i = 0; i < 3; i++)
        many[2 * i + 1] = rp_text(big); /* each alone is more than a statement takes */
    insert_many(t->db, many, 4);
    assert_int_equal(times_run(t->db), 8);
    many[2 * 20000] = rp_int(0);
    many[1] = many[3] = many[5] = rp_null();
    assert_int_equal(rp_db_exec_rows(t->db, &insert_rows, NULL, many, 20001, NULL, &err), RP_ECONFLICT);
    assert_int_equal(ask(t->db, "SELECT count(*) FROM t"), 0);
}

/* The schema of a URL comes first in the search path, and may be one that others write functions
 * into. */
static void no_function_of_the_schema_stands_in_for_ours(void **state)
{
    struct dbs *t = *state;
    RP_CLEANUP(rp_freep) struct rp_value *rows = make_rows(9, "x");
    ok(rp_db_script(t->db, "CREATE FUNCTION unnest(bigint[]) RETURNS SETOF bigint LANGUAGE sql AS 'SELECT 1::bigint'",
                    &err));
    insert_many(t->db, rows, 9);
}

static int add_line(void *ctx, const struct rp_value *row, struct rp_error *e)
{
    (void)e;
    rp_buf_str(ctx, row[0].p);
    return rp_buf_char(ctx, '\n');
}

/* An array's elements have the default collation; the column's own must be the one that counts, or
 * no index is used. */
static void rows_find_bytewise_text_by_its_index(void **state)
{
    static const struct rp_sql find = { "find",
                                        "EXPLAIN (COSTS OFF) SELECT u.id FROM (VALUES @ROWS) AS v JOIN u ON u.name = "
                                        "v.column1 AND u.data > v.column2",
                                        "", "sb", "s" };
    struct dbs *t = *state;
    RP_CLEANUP(rp_buf_done) struct rp_buf plan = RP_BUF(10000);
    ok(rp_db_script(t->db,
                    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
                    "CREATE TABLE u (id bigint, name text COLLATE \"C\", data @BYTES);"
                    "CREATE INDEX u_name ON u (name, data);",
                    &err));
    ok(rp_db_query_rows(t->db, &find, NULL, (struct rp_value[]){ rp_text("x"), rp_bytes("\0", 1) }, 1, add_line, &plan,
                        &err));
    assert_non_null(strstr(rp_buf_text(&plan), "u_name"));
    assert_non_null(strstr(rp_buf_text(&plan), "Index Cond: ((name = "));
}

/* clang-format off */
#define SQLITE(fn)   { "sqlite: " #fn, fn, set_up, tear_down, (void *)(uintptr_t)DBS_SQLITE_FILE }
#define POSTGRES(fn) { "postgres: " #fn, fn, set_up, tear_down, (void *)(uintptr_t)DBS_POSTGRES }
/* clang-format on */

int main(void)
{
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_scheme_is_refused_without_repeating_the_url),
        SQLITE(a_lock_is_waited_for_as_long_as_told),
        POSTGRES(a_lock_is_waited_for_as_long_as_told),
        SQLITE(a_waiting_writer_goes_on_when_the_first_commits),
        POSTGRES(a_waiting_writer_goes_on_when_the_first_commits),
        SQLITE(a_read_only_connection_changes_nothing),
        POSTGRES(a_read_only_connection_changes_nothing),
        SQLITE(an_uncommitted_row_is_not_seen),
        POSTGRES(an_uncommitted_row_is_not_seen),
        SQLITE(a_file_that_is_no_database_is_called_damaged),
        SQLITE(damaged_pages_are_noticed),
        SQLITE(a_file_that_was_replaced_is_not_written_any_more),
        SQLITE(a_missing_directory_is_not_made),
        SQLITE(the_file_is_its_owners_alone),
        SQLITE(settings_are_those_of_a_safe_catalog),
        SQLITE(a_database_that_was_there_keeps_its_journal),
        SQLITE(the_clock_is_the_one_given),
        SQLITE(a_full_disk_is_told_apart_and_loses_nothing),
        POSTGRES(a_lost_session_is_made_again),
        POSTGRES(a_session_that_ends_before_commit_has_rolled_back),
        POSTGRES(a_commit_whose_answer_was_lost_is_found_committed),
        POSTGRES(a_commit_that_never_arrived_is_found_rolled_back),
        POSTGRES(a_commit_is_never_guessed_while_nobody_can_be_asked),
        POSTGRES(a_commit_answered_with_a_warning_is_unknown),
        POSTGRES(a_session_that_sleeps_in_a_transaction_gives_its_locks_back),
        POSTGRES(a_server_that_became_read_only_counts_as_lost),
        POSTGRES(a_deadlock_is_busy_and_counted),
        POSTGRES(an_answer_that_is_late_for_the_deadline_is_a_lost_connection),
        POSTGRES(a_send_that_is_late_for_the_deadline_is_a_lost_connection),
        POSTGRES(no_error_repeats_the_password),
        POSTGRES(only_the_named_schema_is_seen),
        POSTGRES(sessions_are_set_up_for_durable_commits),
        POSTGRES(a_session_is_called_reprieve_unless_its_url_names_it),
        POSTGRES(unused_statements_are_given_back_to_the_server),
        POSTGRES(one_statement_serves_any_number_of_rows),
        POSTGRES(rows_beyond_a_statements_limits_come_in_several),
        POSTGRES(no_function_of_the_schema_stands_in_for_ours),
        POSTGRES(rows_find_bytewise_text_by_its_index),
    };
    /* clang-format on */
    return cmocka_run_group_tests_name("db engines", tests, NULL, NULL);
}
