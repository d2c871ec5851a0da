/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite: one file, or memory. A database that we create gets a write-ahead log; one that was there
 * before keeps the journal its owner chose. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "base/url.h"
#include "db/driver.h"

#define PROGRESS_OPCODES 20000
#define VERSION_MIN      3040000
#define JOURNAL_WAIT_MS  5
#define CACHE_KIB        16384
#define CACHE_READ_KIB   2048

struct sqlite {
    sqlite3 *db;
    struct rp_statements statements;
    int64_t busy_ms, statement_ms, cache_kib;
    int64_t deadline_ms; /* of the running statement, on the boot clock */
    const struct rp_clock *clock;
    bool read_only;
    bool reading;      /* in a transaction begun for reading */
    char opening[256]; /* "open PATH", for errors before the first statement */
    char vessel[RP_VESSEL_TEXT];
    char *path; /* NULL: in memory */
    dev_t dev;
    ino_t ino;
};

/* The number that a text is, NULL if it is none. Of the type of its value: no affinity of the
 * cast. */
#define NUMBER(text) "CASE WHEN CAST(" text " AS NUMERIC) = " text " THEN +CAST(" text " AS NUMERIC) END"

/* clang-format off */
static const struct rp_dialect dialect[] = {
    { "$",           "?" },
    { "NOW_MS",      "rp_now_ms()" },
    { "BYTES",       "BLOB" },
    { "TEXT_C",      "TEXT" },
    { "FOR_UPDATE",  "" },
    { "FOR_UPDATE_OF", "{*}" },
    { "FOR_SHARE",   "" },
    { "SKIP_LOCKED", "" },
    { "CLUSTERED",   "WITHOUT ROWID" },
    { "INSERT",      "INSERT OR ROLLBACK INTO" },
    { "ID",          "INTEGER PRIMARY KEY" },
    { "APPEND_ONLY",
      "CREATE TRIGGER {1}_no_update BEFORE UPDATE ON {1} BEGIN SELECT RAISE(ABORT, '{1} is append-only'); END;\n"
      "CREATE TRIGGER {1}_no_delete BEFORE DELETE ON {1} BEGIN SELECT RAISE(ABORT, '{1} is append-only'); END;" },
    { "ERASABLE",
      "CREATE TRIGGER {1}_only_erase BEFORE UPDATE ON {1}"
      " WHEN NEW.{2} IS NOT NULL{* OR NEW.# IS DISTINCT FROM OLD.#}"
      " BEGIN SELECT RAISE(ABORT, '{1} is append-only; only {2} may be erased'); END;\n"
      "CREATE TRIGGER {1}_no_delete BEFORE DELETE ON {1} BEGIN SELECT RAISE(ABORT, '{1} is append-only'); END;" },
    { "LET_GO",
      "DROP TRIGGER {1}_no_delete;\n"
      "CREATE TRIGGER {1}_no_delete BEFORE DELETE ON {1} WHEN NOT EXISTS (SELECT 1 FROM {2} s WHERE {3})"
      " BEGIN SELECT RAISE(ABORT, '{1} is append-only; only what {2} covers may go'); END" },
    /* INSERT OR REPLACE deletes without a delete trigger */
    { "NO_REPLACE",
      "CREATE TRIGGER {1}_no_replace BEFORE INSERT ON {1} WHEN EXISTS (SELECT 1 FROM {1} WHERE {2})"
      " BEGIN SELECT RAISE(ABORT, '{1} is append-only'); END" },
    { "VACUUM",      "{*}" },
    /* each term can use an index of the column, whatever type that was declared with */
    { "HOLDS",
      "({1} = {2} OR {1} = CAST({2} AS BLOB) OR {1} = rp_utf8({2}) OR (typeof({1}) = 'integer' AND {1} = " NUMBER("{2}") ") OR"
      " (typeof({1}) = 'real' AND {1} BETWEEN " NUMBER("{2}") " - abs(" NUMBER("{2}") " * 1e-14)"
      " AND " NUMBER("{2}") " + abs(" NUMBER("{2}") " * 1e-14)))" },
    { NULL, NULL },
};
/* clang-format on */

/* ---- errors ---- */

static int last_errno(sqlite3_file *file)
{
    int value = 0;
    if (file != NULL && file->pMethods != NULL) file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &value);
    return value;
}

/* SQLITE_FULL is ENOSPC only. A quota or a size limit shows as a failed write, and only the file
 * knows of what kind. */
static bool is_full(sqlite3 *db, int extended)
{
    sqlite3_file *file = NULL, *journal = NULL;
    if (extended != SQLITE_IOERR_WRITE) return extended == SQLITE_IOERR_SHMSIZE;
    sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &journal);
    int a = last_errno(file), b = last_errno(journal);
    return a == EDQUOT || a == EFBIG || b == EDQUOT || b == EFBIG;
}

static int error_code(sqlite3 *db, int extended)
{
    if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
        extended == SQLITE_CONSTRAINT_ROWID)
        return RP_ECONFLICT;
    switch (extended & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
        return RP_EBUSY;
    case SQLITE_FULL:
        return RP_EFULL;
    case SQLITE_IOERR:
        return is_full(db, extended) ? RP_EFULL : RP_EFAILED;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return RP_ECORRUPT;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return RP_EDENIED;
    case SQLITE_NOMEM:
        return RP_ENOMEM;
    default:
        return RP_EFAILED;
    }
}

static int fail(const struct sqlite *c, const char *what, struct rp_error *err)
{
    int extended = sqlite3_extended_errcode(c->db), code = error_code(c->db, extended);
    if (extended == SQLITE_INTERRUPT)
        rp_error_set(err, code, "sqlite: %s: stopped after %lld ms", what, (long long)c->statement_ms);
    else
        rp_error_set(err, code, "sqlite: %s: %s", what, sqlite3_errmsg(c->db));
    if (code == RP_ECORRUPT)
        rp_error_hint(err, "the file is damaged or not a SQLite database: run PRAGMA integrity_check on a copy, or "
                           "restore it from a backup");
    if (code == RP_EFULL) rp_error_hint(err, "free space on the disk that holds the database");
    return code;
}

/* ---- opening ---- */

static void now_function(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    (void)args;
    const struct sqlite *c = sqlite3_user_data(context);
    sqlite3_result_int64(context, rp_clock_wall_ms(c->clock));
}

/* In a database in UTF-16 a text that is cast to bytes has two of them for each letter; bytes that
 * a program wrote are as a rule UTF-8 there too. */
static void utf8_function(sqlite3_context *context, int n, sqlite3_value **args)
{
    (void)n;
    const unsigned char *text = sqlite3_value_text(args[0]);
    if (text == NULL) return;
    sqlite3_result_blob64(context, text, (sqlite3_uint64)sqlite3_value_bytes(args[0]), SQLITE_TRANSIENT);
}

static int on_progress(void *ctx)
{
    const struct sqlite *c = ctx;
    return c->deadline_ms != 0 && rp_time_boot_ms() > c->deadline_ms;
}

static int execute(struct sqlite *c, const char *text, const char *what, struct rp_error *err)
{
    return sqlite3_exec(c->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(c, what, err);
}

static int read_int(struct sqlite *c, const char *text, int64_t *out, struct rp_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = sqlite3_prepare_v2(c->db, text, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW;
    int r = ok ? 0 : fail(c, c->opening, err);
    if (ok) *out = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return r;
}

/* SQLite would create the file with the umask's mode; the rows in it are nobody else's to read. */
static int create_file(const char *path, struct rp_error *err)
{
    RP_CLEANUP(rp_fd_closep) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) return 0;
    int failure = fd < 0 || fchmod(fd, 0600) < 0 ? errno : 0;
    if (failure == 0) return 0;
    const char *slash = strrchr(path, '/');
    if (failure != ENOENT || slash == NULL) return rp_error_errno(err, failure, "sqlite: create %s", path);
    rp_error_set(err, RP_ECONFIG, "sqlite: create %s: %s", path, strerror(failure));
    return rp_error_hint(err, "create its directory first: mkdir -p '%.*s'", (int)(slash - path), path);
}

static int check_file(const char *path, bool read_only, struct rp_error *err)
{
    struct stat st;
    if (path[0] == '\0') return rp_error_advise(err, RP_ECONFIG, "write sqlite:PATH", "sqlite: the URL names no file");
    if (stat(path, &st) == 0) {
        if (S_ISREG(st.st_mode)) return 0;
        return rp_error_set(err, RP_ECONFIG, "sqlite: %s is not a file", path);
    }
    if (errno != ENOENT || read_only) return rp_error_errno(err, errno, "sqlite: open %s", path);
    return create_file(path, err);
}

/* Another process may be doing the same at this moment, and SQLite does not wait for a lock
 * here. */
static int use_wal(struct sqlite *c, struct rp_error *err)
{
    int64_t until_ms = rp_time_boot_ms() + c->busy_ms;
    for (;;) {
        int64_t pages = 0;
        int r = read_int(c, "PRAGMA page_count", &pages, err);
        if (r == 0 && pages > 0) return 0;
        if (r == 0) r = execute(c, "PRAGMA journal_mode=WAL", c->opening, err);
        if (r != RP_EBUSY || rp_time_boot_ms() > until_ms) return r;
        sqlite3_sleep(JOURNAL_WAIT_MS);
    }
}

static int set_up(struct sqlite *c, struct rp_error *err)
{
    static const char settings[] = "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000;"
                                   "PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=ON;"
                                   "PRAGMA trusted_schema=OFF;";
    int64_t ignored;
    sqlite3_busy_timeout(c->db, c->busy_ms < INT32_MAX ? (int)c->busy_ms : INT32_MAX);
    if (c->statement_ms > 0) sqlite3_progress_handler(c->db, PROGRESS_OPCODES, on_progress, c);
    int flags = SQLITE_UTF8 | SQLITE_INNOCUOUS, pure = flags | SQLITE_DETERMINISTIC;
    if (sqlite3_create_function(c->db, "rp_now_ms", 0, flags, c, now_function, NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function(c->db, "rp_utf8", 1, pure, NULL, utf8_function, NULL, NULL) != SQLITE_OK)
        return fail(c, c->opening, err);
    char cache[64];
    (void)snprintf(cache, sizeof cache, "PRAGMA cache_size=-%lld", (long long)c->cache_kib);
    int r = execute(c, settings, c->opening, err);
    if (r == 0) r = execute(c, cache, c->opening, err);
    /* Opening reads nothing yet: this is where a file that is no database shows itself. */
    if (r == 0) r = read_int(c, "SELECT count(*) FROM sqlite_schema", &ignored, err);
    if (r == 0) r = c->read_only ? execute(c, "PRAGMA query_only=ON", c->opening, err) : use_wal(c, err);
    return r;
}

static void release_statement(void *owner, struct rp_statement *s)
{
    (void)owner;
    sqlite3_finalize(s->handle);
}

static void sqlite_close(void *conn)
{
    struct sqlite *c = conn;
    rp_statements_clear(&c->statements);
    int r = sqlite3_close(c->db);
    RP_ASSERT(r == SQLITE_OK);
    free(c->path);
    free(c);
}

/* Where inodes come and go with a mount, or are the server's to give. */
static bool keeps_inodes(const char *path)
{
    static const uint32_t others[] = {
        0x65735546,                         /* FUSE */
        0x6969,                             /* NFS */
        0x517b,     0xfe534d42, 0xff534d42, /* SMB */
        0x01021997,                         /* 9P */
        0x794c7630,                         /* overlay */
    };
    struct statfs fs;
    if (statfs(path, &fs) < 0) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if ((uint32_t)fs.f_type == others[i]) return false;
    return true;
}

/* No device number: that one changes with reboots and containers. */
static void read_vessel(struct sqlite *c, const char *path)
{
    struct statx st;
    if (strcmp(path, ":memory:") == 0 || !keeps_inodes(path)) return;
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) < 0) return;
    if (st.stx_mask & STATX_BTIME)
        snprintf(c->vessel, sizeof c->vessel, "file/%llu/%lld.%09u", (unsigned long long)st.stx_ino,
                 (long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
    else
        snprintf(c->vessel, sizeof c->vessel, "file/%llu/-", (unsigned long long)st.stx_ino);
}

static int sqlite_vessel(void *conn, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err)
{
    const struct sqlite *c = conn;
    (void)table;
    (void)err;
    memcpy(out, c->vessel, sizeof c->vessel);
    return 0;
}

/* Before the file is opened: should it be replaced in between, what is open looks replaced, which
 * costs an opening more. */
static int note_file(struct sqlite *c, const char *path, struct rp_error *err)
{
    struct stat st;
    if (strcmp(path, ":memory:") == 0) return 0;
    if (stat(path, &st) < 0) return rp_error_errno(err, errno, "sqlite: open %s", path);
    c->path = strdup(path);
    c->dev = st.st_dev;
    c->ino = st.st_ino;
    return c->path != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "sqlite: open");
}

/* By its name as it was given: SQLite looks through symbolic links once, when it opens. */
static bool sqlite_is_replaced(const void *conn)
{
    const struct sqlite *c = conn;
    struct stat st;
    if (c->path == NULL) return false;
    return stat(c->path, &st) < 0 || st.st_dev != c->dev || st.st_ino != c->ino;
}

static int connect_file(struct sqlite *c, const char *path, struct rp_error *err)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= c->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (sqlite3_open_v2(path, &c->db, flags, NULL) == SQLITE_OK) return set_up(c, err);
    if (c->db == NULL) return rp_error_set(err, RP_ENOMEM, "sqlite: open");
    return fail(c, c->opening, err);
}

static int sqlite_open(const char *url, const struct rp_db_options *options, void **conn, struct rp_error *err)
{
    const char *path = rp_sqlite_path(url);
    RP_ASSERT(path != NULL);
    if (sqlite3_libversion_number() < VERSION_MIN)
        return rp_error_set(err, RP_ECONFIG, "sqlite: version 3.40 or newer is needed, this is %s",
                            sqlite3_libversion());
    int r = strcmp(path, ":memory:") != 0 ? check_file(path, options->read_only, err) : 0;
    if (r < 0) return r;
    struct sqlite *c = calloc(1, sizeof *c);
    if (c == NULL) return rp_error_set(err, RP_ENOMEM, "sqlite: open");
    c->statements.release = release_statement;
    snprintf(c->opening, sizeof c->opening, "open %s", path);
    c->busy_ms = options->busy_ms > 0 ? options->busy_ms : RP_BUSY_MS_DEFAULT;
    c->statement_ms = options->statement_ms;
    c->read_only = options->read_only;
    c->cache_kib = options->cache_kib > 0 ? options->cache_kib : options->read_only ? CACHE_READ_KIB : CACHE_KIB;
    c->clock = options->clock != NULL ? options->clock : &rp_clock_host;
    r = note_file(c, path, err);
    if (r == 0) r = connect_file(c, path, err);
    if (r == 0) read_vessel(c, path);
    if (r < 0)
        sqlite_close(c);
    else
        *conn = c;
    return r;
}

/* ---- transactions ---- */

/* Somebody has put another file in its place, or removed it: what is written here is nobody's any
 * more. */
static int check_moved(const struct sqlite *c, struct rp_error *err)
{
    int moved = 0;
    (void)sqlite3_file_control(c->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (moved == 0) return 0;
    return rp_error_advise(err, RP_EUNAVAILABLE, "stop the daemon before you put a backup in its place; now restart it",
                           "sqlite: %s: the file was replaced or removed while it was open", c->opening);
}

static int sqlite_begin(void *conn, bool write, struct rp_error *err)
{
    struct sqlite *c = conn;
    int r = write ? check_moved(c, err) : 0;
    if (r < 0) return r;
    c->reading = !write || c->read_only;
    r = execute(c, c->reading ? "BEGIN" : "BEGIN IMMEDIATE", "begin", err);
    if (r < 0) c->reading = false;
    return r;
}

/* Some errors have ended the transaction already, others leave it open: only autocommit tells
 * which. */
static void sqlite_rollback(void *conn)
{
    struct sqlite *c = conn;
    c->reading = false;
    if (sqlite3_get_autocommit(c->db)) return;
    sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    RP_ASSERT(sqlite3_get_autocommit(c->db));
}

static int sqlite_commit(void *conn, struct rp_error *err)
{
    struct sqlite *c = conn;
    int r = execute(c, "COMMIT", "commit", err);
    sqlite_rollback(c);
    return r;
}

static bool sqlite_in_transaction(const void *conn)
{
    return !sqlite3_get_autocommit(((const struct sqlite *)conn)->db);
}

/* ---- statements ---- */

static int check_prepared(struct sqlite *c, const struct rp_sql *sql, sqlite3_stmt *stmt, const char *tail,
                          size_t n_values, struct rp_error *err)
{
    sqlite3_stmt *second = NULL;
    bool more = sqlite3_prepare_v2(c->db, tail, -1, &second, NULL) != SQLITE_OK || second != NULL;
    sqlite3_finalize(second);
    if (stmt == NULL || more) return rp_error_set(err, RP_EINVAL, "sqlite: %s: is not one statement", sql->name);
    size_t params = (size_t)sqlite3_bind_parameter_count(stmt);
    if (params > n_values)
        return rp_error_set(err, RP_EINVAL, "sqlite: %s: has %zu parameters, %zu are declared", sql->name, params,
                            n_values);
    size_t columns = (size_t)sqlite3_column_count(stmt);
    if (sql->columns != NULL && columns != strlen(sql->columns))
        return rp_error_set(err, RP_EINVAL, "sqlite: %s: returns %zu columns, %zu are declared", sql->name, columns,
                            strlen(sql->columns));
    return 0;
}

static int prepare(struct sqlite *c, const struct rp_sql *sql, size_t n_rows, const char *text, size_t n_values,
                   sqlite3_stmt **out, struct rp_error *err)
{
    struct rp_statement *s = rp_statements_find(&c->statements, sql, n_rows, text);
    if (s == NULL) {
        sqlite3_stmt *stmt = NULL;
        const char *tail = NULL;
        if (sqlite3_prepare_v3(c->db, text, -1, SQLITE_PREPARE_PERSISTENT, &stmt, &tail) != SQLITE_OK)
            return fail(c, sql->name, err);
        int r = check_prepared(c, sql, stmt, tail, n_values, err);
        if (r == 0) s = rp_statements_add(&c->statements, sql, n_rows, text);
        if (s == NULL) {
            sqlite3_finalize(stmt);
            return r < 0 ? r : rp_error_set(err, RP_ENOMEM, "sqlite: %s", sql->name);
        }
        s->handle = stmt;
    }
    *out = s->handle;
    return 0;
}

static int bind_value(sqlite3_stmt *stmt, int number, const struct rp_value *v)
{
    switch (v->type) {
    case RP_INT_T:
        return sqlite3_bind_int64(stmt, number, v->i);
    case RP_TEXT_T:
        return sqlite3_bind_text64(stmt, number, v->p, v->n, SQLITE_STATIC, SQLITE_UTF8);
    case RP_BYTES_T:
        return sqlite3_bind_blob64(stmt, number, v->p, v->n, SQLITE_STATIC);
    case RP_NULL_T:
        break;
    }
    return sqlite3_bind_null(stmt, number);
}

static int bind_values(struct sqlite *c, const struct rp_sql *sql, sqlite3_stmt *stmt, const struct rp_value *args,
                       const struct rp_value *rows, struct rp_error *err)
{
    int n = sqlite3_bind_parameter_count(stmt), n_fixed = (int)rp_types_count(sql->params);
    for (int i = 0; i < n; i++) {
        const struct rp_value *v = i < n_fixed ? &args[i] : &rows[i - n_fixed];
        if (bind_value(stmt, i + 1, v) != SQLITE_OK) return fail(c, sql->name, err);
    }
    return 0;
}

static bool column_int(sqlite3_stmt *stmt, int i, int64_t *out)
{
    if (sqlite3_column_type(stmt, i) == SQLITE_INTEGER) {
        *out = sqlite3_column_int64(stmt, i);
        return true;
    }
    const char *text = (const char *)sqlite3_column_text(stmt, i);
    char *end = NULL;
    errno = 0;
    int64_t value = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0' || errno != 0) return false;
    *out = value;
    return true;
}

static bool read_column(sqlite3_stmt *stmt, int i, char type, struct rp_value *out)
{
    *out = (struct rp_value){ .type = RP_NULL_T };
    if (sqlite3_column_type(stmt, i) == SQLITE_NULL) return true;
    if (type == 'i') {
        out->type = RP_INT_T;
        return column_int(stmt, i, &out->i);
    }
    out->type = type == 's' ? RP_TEXT_T : RP_BYTES_T;
    const void *p = type == 's' ? (const void *)sqlite3_column_text(stmt, i) : sqlite3_column_blob(stmt, i);
    out->n = (size_t)sqlite3_column_bytes(stmt, i);
    out->p = p != NULL ? p : "";
    return p != NULL || out->n == 0;
}

static int hand_row(const struct rp_sql *sql, sqlite3_stmt *stmt, rp_row_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value row[RP_COLUMNS_MAX];
    if (sql->columns == NULL) return 0;
    RP_ASSERT(strlen(sql->columns) <= RP_COLUMNS_MAX);
    for (int i = 0; sql->columns[i] != '\0'; i++)
        if (!read_column(stmt, i, sql->columns[i], &row[i]))
            return rp_error_set(err, RP_EFAILED, "sqlite: %s: column %d is not of the declared type", sql->name, i + 1);
    return fn(ctx, row, err);
}

static int step_all(struct sqlite *c, const struct rp_sql *sql, sqlite3_stmt *stmt, rp_row_fn *fn, void *ctx,
                    struct rp_error *err)
{
    c->deadline_ms = c->statement_ms > 0 ? rp_time_boot_ms() + c->statement_ms : 0;
    int step, r = 0;
    while (r == 0 && (step = sqlite3_step(stmt)) != SQLITE_DONE)
        r = step == SQLITE_ROW ? hand_row(sql, stmt, fn, ctx, err) : fail(c, sql->name, err);
    c->deadline_ms = 0;
    sqlite3_reset(stmt);
    return r;
}

static int sqlite_run(void *conn, const struct rp_sql *sql, const char *text, const struct rp_value *args,
                      const struct rp_value *rows, size_t n_rows, rp_row_fn *fn, void *ctx, int64_t *changed,
                      struct rp_error *err)
{
    struct sqlite *c = conn;
    sqlite3_stmt *stmt = NULL;
    size_t n_values = rp_types_count(sql->params) + n_rows * rp_types_count(sql->rows);
    int r = prepare(c, sql, n_rows, text, n_values, &stmt, err);
    if (r < 0) return r;
    if (c->reading && !sqlite3_stmt_readonly(stmt))
        return rp_error_set(err, RP_EDENIED, "sqlite: %s: the transaction was begun for reading", sql->name);
    r = bind_values(c, sql, stmt, args, rows, err);
    if (r < 0) return r;
    int64_t before = sqlite3_total_changes64(c->db);
    r = step_all(c, sql, stmt, fn, ctx, err);
    /* sqlite3_changes64 keeps its number over a statement that changes nothing. */
    if (r == 0) *changed = sqlite3_total_changes64(c->db) != before ? sqlite3_changes64(c->db) : 0;
    return r;
}

static int sqlite_script(void *conn, const char *text, struct rp_error *err)
{
    struct sqlite *c = conn;
    if (c->reading) return rp_error_set(err, RP_EDENIED, "sqlite: script: the transaction was begun for reading");
    return execute(c, text, "script", err);
}

const struct rp_db_driver rp_sqlite_driver = {
    .engine = "sqlite",
    .one_writer = true,
    .schemes = (const char *const[]){ RP_SQLITE_SCHEME, NULL },
    .params_max = 2048, /* far below what SQLite takes: its parser goes over all numbered parameters for each one */
    .open = sqlite_open,
    .close = sqlite_close,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .in_transaction = sqlite_in_transaction,
    .is_replaced = sqlite_is_replaced,
    .run = sqlite_run,
    .script = sqlite_script,
    .vessel = sqlite_vessel,
    .dialect = dialect,
};
