/* SPDX-License-Identifier: Apache-2.0 */
/* db.h - the database port: statements and transactions on SQLite (>= 3.40) and PostgreSQL (>= 15).
 *
 * A statement is a constant `struct rp_sql`: its text, and the types of its parameters and columns.
 * Both engines run the same text; what differs is a macro that the driver's dialect table replaces
 * (see "Dialect" below).
 *
 * D1  Parameters are $1, $2, ...; every value's type is checked against the declaration (a mismatch
 *     is a bug: asserted). NULL is allowed anywhere.
 * D2  A prepared statement is cached per connection; where D3 needs a text for each number of rows,
 *     each of them.
 * D3  A statement with VALUES @ROWS is run over many rows at once, its columns called column1,
 *     column2, ... On SQLite it becomes "VALUES ($3,$4),($5,$6),..." after the fixed parameters
 *     ($1, $2); on PostgreSQL an unnest of one array a column, so that one prepared statement
 *     serves any number of rows. The port cuts n rows into chunks (SQLite: 512, 64, 8, 1 rows;
 *     PostgreSQL: at most 10,000 rows or 4 MiB, a bigger row alone); effects and results are those
 *     of all chunks together, in order. Zero rows: nothing is run.
 * D4  Outside a transaction each call is its own. rp_db_begin(write=true) takes SQLite's write lock
 *     at once (BEGIN IMMEDIATE). PostgreSQL runs READ COMMITTED. A transaction begun with
 *     write=false reads only: both engines refuse a change in it (RP_EDENIED).
 * D5  After any error inside a transaction the transaction is over in effect: the caller must
 *     rp_db_rollback, which cannot fail and is harmless without a transaction. A commit that fails
 *     has been rolled back - unless it returns RP_EUNKNOWN: the connection broke while COMMIT was
 *     under way, or the server answered it with a warning (a wait for a synchronous standby that
 *     was cancelled returns success with one). Whoever must know looks for what it wrote.
 * D6  A lost connection is RP_EUNAVAILABLE; the next call outside a transaction connects again
 *     (bounded time). A server that has become a standby, or ended a session that slept in a
 *     transaction, counts as lost; so does, for whoever writes, a SQLite file that was replaced or
 *     removed, for ever; whoever reads goes on in the old one (rp_db_is_replaced). Busy, deadlock,
 *     serialization: RP_EBUSY. Unique violation: RP_ECONFLICT. Disk full: RP_EFULL. Damaged or not
 *     a database: RP_ECORRUPT. Permission, read-only: RP_EDENIED. Anything else: RP_EFAILED. Texts
 *     begin with "sqlite: " or "postgres: " and name the statement. A statement outside a
 *     transaction whose connection is lost may have taken effect; one inside has not.
 * D7  A connection belongs to one thread at a time. A row callback does not use the connection it
 *     is called from (asserted), and a negative return of it does not end the transaction.
 * D8  The *vessel* is what a database lives in, as text: of a SQLite file inode and time of birth;
 *     of PostgreSQL system identifier, oids of the database and of one table, and timeline,
 *     separated by "/". A part that cannot be read is "-". None ("") in memory and on FUSE, NFS,
 *     SMB, 9P and overlay, whose inodes are not kept. It is that of this connection: read once, and
 *     again when the connection is another one.
 * D9  No wait is without end: a statement that is not sent and answered when its time and a little
 *     more are over, or at the deadline (rp_db_deadline), is a lost connection. COMMIT ends by the
 *     deadline alone: a server that cancels it leaves everybody in doubt.
 * D10 As a guest every statement stands in a transaction. On PostgreSQL settings hold for that
 *     transaction alone and nothing stays prepared after it: a transaction pooler may stand
 *     between, whose sessions others use too. Rows that row-level security would hide are an error
 *     (RP_EDENIED), never left out.
 *
 * Dialect: @NOW_MS the database's clock in ms (bigint); @BYTES the type of a byte string; @TEXT_C
 * text compared bytewise (a column type with collation "C"); @FOR_UPDATE, @FOR_UPDATE_OF(table),
 * @FOR_SHARE, @SKIP_LOCKED row locks (nothing in SQLite, where one writer holds the whole
 * database); @CLUSTERED storage by primary key (WITHOUT ROWID; nothing in PostgreSQL); @INSERT
 * begins an INSERT of many rows (SQLite: OR ROLLBACK, so that it keeps no copy of every page to
 * undo this one statement: D5); @ID the type of a column that is the primary key and grows
 * (SQLite's rowid: no index beside the table); @APPEND_ONLY(table) triggers that refuse UPDATE and
 * DELETE; @ERASABLE(table,column,rest...) triggers that refuse DELETE and every UPDATE but one that
 * sets that column to NULL and leaves the `rest` as it is; @LET_GO(table, other, condition) from
 * now on such a table lets a row `old` go for which the other one has a row `s` with that
 * condition; @NO_REPLACE(table, condition) refuses an INSERT for which a row with that condition
 * exists (SQLite: OR REPLACE passes the other triggers); @VACUUM(table, factor, rows) cleans it
 * once that part of it and so many rows more are dead (nothing in SQLite); @HOLDS(column, text) the
 * column holds this text, in SQLite also as a BLOB (in the encoding of the database or in UTF-8) or
 * as the number that it writes (07 and 7.0 are 7; a REAL equals what its 15 digits say). */
#ifndef RP_DB_DB_H
#define RP_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_clock;
struct rp_error;
struct rp_db;

enum rp_type { RP_NULL_T, RP_INT_T, RP_TEXT_T, RP_BYTES_T };

struct rp_value {
    enum rp_type type;
    int64_t i;     /* RP_INT_T */
    const char *p; /* RP_TEXT_T (NUL-terminated in results, n bytes), RP_BYTES_T */
    size_t n;
};

struct rp_value rp_null(void);
struct rp_value rp_int(int64_t i);
struct rp_value rp_int_or_null(bool present, int64_t i);
struct rp_value rp_text(const char *text);             /* NULL pointer: SQL NULL */
struct rp_value rp_bytes(const void *bytes, size_t n); /* NULL pointer: SQL NULL */

/* Types are letters: i integer, s text, b bytes. */
struct rp_sql {
    const char *name; /* for error texts: "mark_claim" */
    const char *text;
    const char *params;  /* types of the fixed parameters */
    const char *rows;    /* types of one row of @ROWS, NULL without */
    const char *columns; /* types of the result's columns, NULL for a statement that returns none */
};

/* One row of a result, borrowed until the callback returns. Return 0 to go on, or a negative code
 * to stop: it is handed back to the caller of the query. */
typedef int rp_row_fn(void *ctx, const struct rp_value *row, struct rp_error *err);

struct rp_db_options {
    bool read_only;       /* no statement can change anything; the database is not created */
    int64_t busy_ms;      /* how long to wait for a lock or a connection; 0: 10 s */
    int64_t statement_ms; /* a statement that runs longer is stopped (RP_EBUSY); 0: no limit */
    bool guest;           /* a user's database (D10) */
    bool any_server;      /* PostgreSQL: a standby will do, which may lag; else it is a server that takes writes */
    bool by_index;        /* rows are found by an index wherever one will do, whatever the statistics say: PostgreSQL
                                     keeps a plan that it made while a table was still empty */
    int64_t cache_kib;    /* pages that SQLite keeps in memory at most; 0: 16 MiB, read_only 2 MiB */
    const struct rp_clock *clock; /* what @NOW_MS reads on SQLite; NULL: the host's */
};

/* "sqlite:PATH", "sqlite::memory:", "postgres://..." or "postgresql://..." (?schema=NAME sets, and
 * creates unless read_only, the schema that statements see). Any other scheme: RP_ECONFIG.
 * Passwords never appear in an error. */
int rp_db_open(const char *url, const struct rp_db_options *options, struct rp_db **out, struct rp_error *err);
void rp_db_close(struct rp_db *db);
void rp_db_closep(struct rp_db **db);

int rp_db_begin(struct rp_db *db, bool write, struct rp_error *err);
int rp_db_commit(struct rp_db *db, struct rp_error *err);
void rp_db_rollback(struct rp_db *db);
/* From now on nothing is waited for beyond this moment of the boot clock (D9); 0: no deadline. */
void rp_db_deadline(struct rp_db *db, int64_t at_boot_ms);
/* Whether the server behind this URL hands out its sessions anew with every transaction (a
 * transaction pooler): then neither settings nor prepared statements last. Opens two sessions and
 * asks. */
int rp_db_is_pooled(const char *url, bool *out, struct rp_error *err);
bool rp_db_in_transaction(const struct rp_db *db);
/* SQLite: the file that the URL names is another one than the one that is open, or there is
 * none. */
bool rp_db_is_replaced(const struct rp_db *db);

/* `changed` (may be NULL): rows inserted, updated or deleted. */
int rp_db_exec(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, int64_t *changed,
               struct rp_error *err);
int rp_db_query(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, rp_row_fn *fn, void *ctx,
                struct rp_error *err);
/* The same over `n` rows: `rows` holds n * strlen(sql->rows) values. */
int rp_db_exec_rows(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args,
                    const struct rp_value *rows, size_t n, int64_t *changed, struct rp_error *err);
int rp_db_query_rows(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args,
                     const struct rp_value *rows, size_t n, rp_row_fn *fn, void *ctx, struct rp_error *err);
/* Several statements at once without parameters, dialect macros replaced: schema files. */
int rp_db_script(struct rp_db *db, const char *text, struct rp_error *err);
int rp_db_now_ms(struct rp_db *db, int64_t *out, struct rp_error *err);

/* Of this process, since it began. */
struct rp_db_figures {
    int64_t sessions;  /* with a database server, open now */
    int64_t deadlocks; /* that a server found and ended by failing one of our transactions */
};
struct rp_db_figures rp_db_figures(void);
/* Quote a name for use as an identifier in both engines' SQL; RP_EINVAL for an empty one, a NUL or
 * over 63 bytes. */
struct rp_buf;
int rp_db_quote_name(struct rp_buf *out, const char *name, struct rp_error *err);

/* D8. `table`: always the same one. A failure in a transaction is like that of a statement. */
#define RP_VESSEL_TEXT 120
int rp_db_vessel(struct rp_db *db, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err);
/* Whether it is the same vessel, as far as both are known; with `later_timeline` also if that of
 * `b` is later. */
bool rp_vessel_same(const char *a, const char *b, bool later_timeline);

const char *rp_db_engine(const struct rp_db *db); /* "sqlite" or "postgres" */
/* Whether one write transaction at a time has the whole database: what is read in it stays so until
 * its end. */
bool rp_db_has_one_writer(const struct rp_db *db);

/* ---- what a driver is; for db.c, the drivers and what wraps one ---- */

struct rp_db_driver {
    const char *engine;
    bool one_writer;
    const char *const *schemes; /* NULL-terminated: "sqlite:", ... */
    size_t params_max;          /* most parameters in one statement */
    size_t rows_max;            /* most rows in one statement, as one array a column; 0: each value is a parameter */
    size_t rows_bytes_max;      /* most bytes in those arrays, more only if one row alone has them */
    int (*open)(const char *url, const struct rp_db_options *options, void **conn, struct rp_error *err);
    void (*close)(void *conn);
    int (*begin)(void *conn, bool write, struct rp_error *err);
    int (*commit)(void *conn, struct rp_error *err);
    void (*rollback)(void *conn);
    void (*deadline)(void *conn, int64_t at_boot_ms); /* NULL: it never waits long */
    bool (*in_transaction)(const void *conn);
    bool (*is_replaced)(const void *conn); /* NULL: it connects by name again when it is lost */
    /* Run `text` (already in the engine's dialect; cached under `sql` and, without arrays,
     * `n_rows`). */
    int (*run)(void *conn, const struct rp_sql *sql, const char *text, const struct rp_value *args,
               const struct rp_value *rows, size_t n_rows, rp_row_fn *fn, void *ctx, int64_t *changed,
               struct rp_error *err);
    int (*script)(void *conn, const char *text, struct rp_error *err);
    int (*vessel)(void *conn, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err);
    const struct rp_dialect *dialect;
};

#endif
