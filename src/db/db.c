/* SPDX-License-Identifier: Apache-2.0 */
#include "db/db.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "db/driver.h"

static const struct rp_db_driver *const drivers[] = { &rp_sqlite_driver, &rp_postgres_driver };
static const size_t chunk_sizes[] = { 512, 64, 8, 1 };

struct rp_value rp_null(void)
{
    return (struct rp_value){ .type = RP_NULL_T };
}

struct rp_value rp_int(int64_t i)
{
    return (struct rp_value){ .type = RP_INT_T, .i = i };
}

struct rp_value rp_int_or_null(bool present, int64_t i)
{
    return present ? rp_int(i) : rp_null();
}

struct rp_value rp_text(const char *text)
{
    if (text == NULL) return rp_null();
    return (struct rp_value){ .type = RP_TEXT_T, .p = text, .n = strlen(text) };
}

struct rp_value rp_bytes(const void *bytes, size_t n)
{
    if (bytes == NULL) return rp_null();
    return (struct rp_value){ .type = RP_BYTES_T, .p = bytes, .n = n };
}

/* ---- opening ---- */

static void check_driver(const struct rp_db_driver *d)
{
    RP_ASSERT(d->engine != NULL && d->schemes != NULL && d->params_max > 0 && d->dialect != NULL);
    RP_ASSERT(d->open != NULL && d->close != NULL && d->begin != NULL && d->commit != NULL && d->rollback != NULL);
    RP_ASSERT(d->in_transaction != NULL && d->run != NULL && d->script != NULL);
    RP_ASSERT(d->vessel != NULL);
}

static const struct rp_db_driver *find_driver(const char *url)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        check_driver(drivers[i]);
        for (const char *const *scheme = drivers[i]->schemes; *scheme != NULL; scheme++)
            if (strncmp(url, *scheme, strlen(*scheme)) == 0) return drivers[i];
    }
    return NULL;
}

static void release_text(void *owner, struct rp_statement *s)
{
    (void)owner;
    free(s->handle);
}

int rp_db_new(const struct rp_db_driver *driver, void *conn, struct rp_db **out, struct rp_error *err)
{
    struct rp_db *db = calloc(1, sizeof *db);
    if (db == NULL) return rp_error_set(err, RP_ENOMEM, "%s: open", driver->engine);
    db->driver = driver;
    db->conn = conn;
    db->own.release = release_text;
    db->texts = &db->own;
    *out = db;
    return 0;
}

int rp_db_open(const char *url, const struct rp_db_options *options, struct rp_db **out, struct rp_error *err)
{
    static const struct rp_db_options defaults;
    const struct rp_db_driver *driver = find_driver(url);
    if (driver == NULL) {
        /* The URL is not repeated: whatever it is, it may hold a password. */
        return rp_error_advise(err, RP_ECONFIG, "write sqlite:PATH or postgres://USER@HOST/DATABASE",
                               "the database URL begins with none of sqlite:, postgres:// and postgresql://");
    }
    void *conn = NULL;
    int r = driver->open(url, options != NULL ? options : &defaults, &conn, err);
    if (r < 0) return r;
    r = rp_db_new(driver, conn, out, err);
    if (r < 0) driver->close(conn);
    return r;
}

void rp_db_close(struct rp_db *db)
{
    if (db == NULL) return;
    RP_ASSERT(!db->running);
    rp_db_rollback(db);
    db->driver->close(db->conn);
    rp_statements_clear(&db->own);
    free(db);
}

void rp_db_closep(struct rp_db **db)
{
    rp_db_close(*db);
}

bool rp_db_has_one_writer(const struct rp_db *db)
{
    return db->driver->one_writer;
}

const char *rp_db_engine(const struct rp_db *db)
{
    return db->driver->engine;
}

/* ---- transactions ---- */

int rp_db_begin(struct rp_db *db, bool write, struct rp_error *err)
{
    RP_ASSERT(!db->running && db->tx == RP_TX_NONE);
    int r = db->driver->begin(db->conn, write, err);
    RP_ASSERT(db->driver->in_transaction(db->conn) == (r == 0));
    if (r == 0) db->tx = RP_TX_OPEN;
    return r;
}

int rp_db_commit(struct rp_db *db, struct rp_error *err)
{
    RP_ASSERT(!db->running && db->tx != RP_TX_NONE);
    if (db->tx == RP_TX_FAILED) {
        rp_db_rollback(db);
        return rp_error_set(err, RP_EFAILED, "%s: commit: a statement had failed before; all is rolled back",
                            db->driver->engine);
    }
    int r = db->driver->commit(db->conn, err);
    db->tx = RP_TX_NONE;
    RP_ASSERT(!db->driver->in_transaction(db->conn));
    return r;
}

void rp_db_rollback(struct rp_db *db)
{
    RP_ASSERT(!db->running);
    if (db->tx != RP_TX_NONE) db->driver->rollback(db->conn);
    db->tx = RP_TX_NONE;
    RP_ASSERT(!db->driver->in_transaction(db->conn));
}

void rp_db_deadline(struct rp_db *db, int64_t at_boot_ms)
{
    if (db->driver->deadline != NULL) db->driver->deadline(db->conn, at_boot_ms);
}

bool rp_db_in_transaction(const struct rp_db *db)
{
    return db->tx != RP_TX_NONE;
}

bool rp_db_is_replaced(const struct rp_db *db)
{
    return db->driver->is_replaced != NULL && db->driver->is_replaced(db->conn);
}

static int check_usable(const struct rp_db *db, const char *name, struct rp_error *err)
{
    RP_ASSERT(!db->running);
    if (db->tx != RP_TX_FAILED) return 0;
    return rp_error_set(err, RP_EFAILED, "%s: %s: the transaction has failed before; roll it back first",
                        db->driver->engine, name);
}

/* ---- statements ---- */

size_t rp_types_count(const char *types)
{
    return types != NULL ? strlen(types) : 0;
}

static void check_values(const char *types, const struct rp_value *values)
{
    static const char letters[] = { [RP_INT_T] = 'i', [RP_TEXT_T] = 's', [RP_BYTES_T] = 'b' };
    for (size_t i = 0; types != NULL && types[i] != '\0'; i++)
        RP_ASSERT(values[i].type == RP_NULL_T || letters[values[i].type] == types[i]);
}

/* `n_rows` of the text: 0 where one text serves any number of them. */
static int translate(struct rp_db *db, const struct rp_sql *sql, size_t n_rows, const char **text, struct rp_error *err)
{
    struct rp_statement *s = rp_statements_find(db->texts, sql, n_rows, sql->text);
    if (s == NULL) {
        RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(RP_SQL_TEXT_MAX);
        int r = rp_dialect_translate(db->driver->dialect, sql->text, rp_types_count(sql->params), sql->rows, n_rows,
                                     &out, err);
        if (r < 0) return rp_error_wrap(err, r, "%s: %s", db->driver->engine, sql->name);
        char *copy = strdup(rp_buf_text(&out));
        s = copy != NULL ? rp_statements_add(db->texts, sql, n_rows, sql->text) : NULL;
        if (s == NULL) {
            free(copy);
            return rp_error_set(err, RP_ENOMEM, "%s: %s", db->driver->engine, sql->name);
        }
        s->handle = copy;
    }
    *text = s->handle;
    return 0;
}

struct sink {
    rp_row_fn *fn;
    void *ctx;
    bool stopped; /* by the caller's own function, which is no failure of the database */
};

static int hand_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct sink *sink = ctx;
    int r = sink->fn != NULL ? sink->fn(sink->ctx, row, err) : 0;
    sink->stopped = r < 0;
    return r;
}

static int run(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, const struct rp_value *rows,
               size_t n_rows, struct sink *sink, int64_t *changed, struct rp_error *err)
{
    const char *text = NULL;
    int64_t count = 0;
    int r = translate(db, sql, db->driver->rows_max > 0 ? 0 : n_rows, &text, err);
    if (r == 0) {
        db->running = true;
        r = db->driver->run(db->conn, sql, text, args, rows, n_rows, hand_row, sink, &count, err);
        db->running = false;
    }
    if (r == 0)
        *changed += count;
    else if (db->tx == RP_TX_OPEN && !sink->stopped)
        db->tx = RP_TX_FAILED;
    return r;
}

static int call(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, struct sink *sink,
                int64_t *changed, struct rp_error *err)
{
    RP_ASSERT(sql->rows == NULL);
    int r = check_usable(db, sql->name, err);
    if (r < 0) return r;
    check_values(sql->params, args);
    int64_t count = 0;
    r = run(db, sql, args, NULL, 0, sink, &count, err);
    if (r == 0 && changed != NULL) *changed = count;
    return r;
}

int rp_db_exec(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, int64_t *changed,
               struct rp_error *err)
{
    return call(db, sql, args, &(struct sink){ 0 }, changed, err);
}

int rp_db_query(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, rp_row_fn *fn, void *ctx,
                struct rp_error *err)
{
    RP_ASSERT(sql->columns != NULL);
    return call(db, sql, args, &(struct sink){ .fn = fn, .ctx = ctx }, NULL, err);
}

/* ---- statements over many rows ---- */

/* Rows that fit into arrays: always one, and then as many as the engine's limits allow. */
static size_t array_rows(const struct rp_db_driver *driver, size_t width, const struct rp_value *rows, size_t left)
{
    size_t bytes = 0, n = 0, most = left < driver->rows_max ? left : driver->rows_max;
    while (n < most) {
        for (size_t i = 0; i < width; i++)
            bytes += sizeof rows->i + rows[n * width + i].n;
        if (n > 0 && bytes > driver->rows_bytes_max) break;
        n++;
    }
    return n;
}

static size_t chunk_rows(const struct rp_db *db, const struct rp_sql *sql, const struct rp_value *rows, size_t left)
{
    size_t width = strlen(sql->rows);
    if (db->driver->rows_max > 0) return array_rows(db->driver, width, rows, left);
    size_t fit = (db->driver->params_max - rp_types_count(sql->params)) / width;
    size_t i = 0;
    while (chunk_sizes[i] > left || chunk_sizes[i] > fit) {
        i++;
        RP_ASSERT(i < sizeof chunk_sizes / sizeof *chunk_sizes);
    }
    return chunk_sizes[i];
}

static int run_chunks(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args,
                      const struct rp_value *rows, size_t n, struct sink *sink, int64_t *changed, struct rp_error *err)
{
    size_t width = strlen(sql->rows);
    for (size_t done = 0, chunk = 0; done < n; done += chunk) {
        const struct rp_value *from = rows + done * width;
        chunk = chunk_rows(db, sql, from, n - done);
        int r = run(db, sql, args, from, chunk, sink, changed, err);
        if (r < 0) return r;
    }
    return 0;
}

/* Several chunks outside a transaction are still one call (D4), so they get a transaction of their
 * own. */
static int run_alone(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args,
                     const struct rp_value *rows, size_t n, struct sink *sink, int64_t *changed, struct rp_error *err)
{
    bool reads = sql->columns != NULL && strncmp(sql->text, "SELECT", 6) == 0;
    int r = rp_db_begin(db, !reads, err);
    if (r == 0) r = run_chunks(db, sql, args, rows, n, sink, changed, err);
    if (r == 0) return rp_db_commit(db, err);
    rp_db_rollback(db);
    return r;
}

static int call_rows(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args,
                     const struct rp_value *rows, size_t n, struct sink *sink, int64_t *changed, struct rp_error *err)
{
    RP_ASSERT(sql->rows != NULL && sql->rows[0] != '\0');
    int r = check_usable(db, sql->name, err);
    if (r < 0) return r;
    int64_t count = 0;
    if (n > 0) {
        check_values(sql->params, args);
        for (size_t i = 0; i < n; i++)
            check_values(sql->rows, rows + i * strlen(sql->rows));
        bool alone = db->tx == RP_TX_NONE && chunk_rows(db, sql, rows, n) < n;
        r = alone ? run_alone(db, sql, args, rows, n, sink, &count, err)
                  : run_chunks(db, sql, args, rows, n, sink, &count, err);
    }
    if (r == 0 && changed != NULL) *changed = count;
    return r;
}

int rp_db_exec_rows(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args,
                    const struct rp_value *rows, size_t n, int64_t *changed, struct rp_error *err)
{
    return call_rows(db, sql, args, rows, n, &(struct sink){ 0 }, changed, err);
}

int rp_db_query_rows(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args,
                     const struct rp_value *rows, size_t n, rp_row_fn *fn, void *ctx, struct rp_error *err)
{
    RP_ASSERT(sql->columns != NULL);
    return call_rows(db, sql, args, rows, n, &(struct sink){ .fn = fn, .ctx = ctx }, NULL, err);
}

/* ---- the rest ---- */

static int run_script(struct rp_db *db, const char *text, struct rp_error *err)
{
    int r = db->driver->script(db->conn, text, err);
    if (r < 0 && db->tx == RP_TX_OPEN) db->tx = RP_TX_FAILED;
    return r;
}

int rp_db_script(struct rp_db *db, const char *text, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(RP_SQL_TEXT_MAX);
    int r = check_usable(db, "script", err);
    if (r == 0) r = rp_dialect_translate(db->driver->dialect, text, 0, NULL, 0, &out, err);
    if (r < 0) return r;
    if (db->tx != RP_TX_NONE) return run_script(db, rp_buf_text(&out), err);
    r = rp_db_begin(db, true, err);
    if (r == 0) r = run_script(db, rp_buf_text(&out), err);
    if (r == 0) return rp_db_commit(db, err);
    rp_db_rollback(db);
    return r;
}

static int take_int(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

int rp_db_now_ms(struct rp_db *db, int64_t *out, struct rp_error *err)
{
    static const struct rp_sql now = { .name = "now", .text = "SELECT @NOW_MS", .params = "", .columns = "i" };
    return rp_db_query(db, &now, NULL, take_int, out, err);
}

/* ---- the vessel ---- */

int rp_db_vessel(struct rp_db *db, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err)
{
    int r = check_usable(db, "vessel", err);
    if (r < 0) return r;
    r = db->driver->vessel(db->conn, table, out, err);
    if (r < 0 && db->tx == RP_TX_OPEN) db->tx = RP_TX_FAILED;
    return r;
}

bool rp_vessel_same(const char *a, const char *b, bool later_timeline)
{
    bool server = strncmp(a, "server/", 7) == 0;
    while (*a != '\0' && *b != '\0') {
        size_t n = strcspn(a, "/"), m = strcspn(b, "/");
        bool last = a[n] == '\0' && b[m] == '\0';
        bool unknown = (n == 1 && *a == '-') || (m == 1 && *b == '-');
        bool later = later_timeline && server && last && n == m && memcmp(a, b, n) < 0;
        if (!unknown && !later && (n != m || memcmp(a, b, n) != 0)) return false;
        if (last) return true;
        a += n + (a[n] == '/');
        b += m + (b[m] == '/');
    }
    return *a == *b;
}
