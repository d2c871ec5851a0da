/* SPDX-License-Identifier: Apache-2.0 */
#include "db/postgres.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/hex.h"

#define ROWS_MAX       10000
#define ROWS_BYTES_MAX ((size_t)4 << 20)
#define NAME_TEXT      24
#define BEGIN_MAX      ((size_t)4 << 10)

/* clang-format off */
static const struct rp_dialect dialect[] = {
    { "$",           "$" },
    /* The statement's time, not the clock's: a volatile function could not be compared with an
     * index. */
    { "NOW_MS",      "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint" },
    { "BYTES",       "bytea" },
    { "TEXT_C",      "text COLLATE \"C\"" },
    { "FOR_UPDATE",  "FOR UPDATE" },
    { "FOR_UPDATE_OF", "FOR UPDATE OF {1}" },
    { "FOR_SHARE",   "FOR SHARE" },
    { "SKIP_LOCKED", "SKIP LOCKED" },
    { "CLUSTERED",   "" },
    { "INSERT",      "INSERT INTO" },
    { "UNNEST",      "pg_catalog.unnest" }, /* the search path may begin with a schema that others write into */
    { "ID",          "BIGINT PRIMARY KEY" },
    { "APPEND_ONLY",
      "CREATE FUNCTION {1}_refuse() RETURNS trigger LANGUAGE plpgsql AS"
      " $$BEGIN RAISE EXCEPTION '{1} is append-only'; END$$;\n"
      "CREATE TRIGGER {1}_no_change BEFORE UPDATE OR DELETE ON {1} FOR EACH ROW EXECUTE FUNCTION {1}_refuse();\n"
      "CREATE TRIGGER {1}_no_truncate BEFORE TRUNCATE ON {1} FOR EACH STATEMENT EXECUTE FUNCTION {1}_refuse();" },
    { "ERASABLE",
      "CREATE FUNCTION {1}_refuse() RETURNS trigger LANGUAGE plpgsql AS"
      " $$BEGIN RAISE EXCEPTION '{1} is append-only; only {2} may be erased'; END$$;\n"
      "CREATE TRIGGER {1}_only_erase BEFORE UPDATE ON {1} FOR EACH ROW"
      " WHEN (NEW.{2} IS NOT NULL{* OR NEW.# IS DISTINCT FROM OLD.#}) EXECUTE FUNCTION {1}_refuse();\n"
      "CREATE TRIGGER {1}_no_delete BEFORE DELETE ON {1} FOR EACH ROW EXECUTE FUNCTION {1}_refuse();\n"
      "CREATE TRIGGER {1}_no_truncate BEFORE TRUNCATE ON {1} FOR EACH STATEMENT EXECUTE FUNCTION {1}_refuse();" },
    /* The other table is that of the same schema, whatever the search path of whoever deletes. */
    { "LET_GO",
      "CREATE FUNCTION {1}_let_go() RETURNS trigger LANGUAGE plpgsql AS"
      " $$DECLARE covered boolean; BEGIN"
      " EXECUTE pg_catalog.format('SELECT EXISTS (SELECT 1 FROM %I.{2} s, (SELECT ($1).*) AS old WHERE {3})',"
      " TG_TABLE_SCHEMA) INTO covered USING OLD;"
      " IF NOT covered THEN RAISE EXCEPTION '{1} is append-only; only what {2} covers may go'; END IF;"
      " RETURN OLD; END$$;\n"
      "DROP TRIGGER {1}_no_delete ON {1};\n"
      "CREATE TRIGGER {1}_no_delete BEFORE DELETE ON {1} FOR EACH ROW EXECUTE FUNCTION {1}_let_go()" },
    { "NO_REPLACE",   "{*}" },
    { "VACUUM",
      "ALTER TABLE {1} SET (autovacuum_vacuum_scale_factor = {2}, autovacuum_vacuum_threshold = {3},"
      " autovacuum_analyze_scale_factor = {2}, autovacuum_analyze_threshold = {3},"
      " autovacuum_vacuum_cost_delay = 1)" },
    { "HOLDS",        "{1} = {2}" },
    { NULL, NULL },
};
/* clang-format on */

/* ---- opening ---- */

static void release_statement(void *owner, struct rp_statement *s)
{
    struct rp_pg *c = owner;
    char text[48];
    if (s->handle == NULL || rp_pg_lost(c)) return;
    snprintf(text, sizeof text, "DEALLOCATE s%llu", (unsigned long long)s->serial);
    rp_pg_command(c, text, "deallocate", NULL, 0, NULL);
}

static void postgres_close(void *conn)
{
    struct rp_pg *c = conn;
    rp_pg_disconnect(c);
    PQconninfoFree(c->parameters);
    free(c->schema);
    rp_pg_params_done(&c->params);
    free(c);
}

static int postgres_open(const char *url, const struct rp_db_options *options, void **conn, struct rp_error *err)
{
    struct rp_pg *c = calloc(1, sizeof *c);
    if (c == NULL) return rp_error_set(err, RP_ENOMEM, "postgres: open");
    c->statements.release = release_statement;
    c->statements.owner = c;
    c->read_only = options->read_only;
    c->by_index = options->by_index;
    c->any_server = options->any_server;
    c->guest = options->guest;
    c->busy_ms = options->busy_ms > 0 ? options->busy_ms : RP_BUSY_MS_DEFAULT;
    c->statement_ms = options->statement_ms;
    int r = rp_pg_parse_url(c, url, err);
    if (r == 0) r = rp_pg_ensure(c, err);
    if (r == 0 && c->schema != NULL && !c->read_only) r = rp_pg_create_schema(c, err);
    if (r < 0) {
        postgres_close(c);
        return r;
    }
    *conn = c;
    return 0;
}

/* ---- transactions ---- */

static void postgres_rollback(void *conn)
{
    struct rp_pg *c = conn;
    c->in_transaction = c->reading = false;
    if (c->pg == NULL) return;
    /* A session that cannot even roll back is closed: that rolls back as well. */
    if (rp_pg_command(c, "ROLLBACK", "rollback", NULL, 0, NULL) < 0) rp_pg_disconnect(c);
}

static int postgres_begin(void *conn, bool write, struct rp_error *err)
{
    struct rp_pg *c = conn;
    bool reading = !write || c->read_only;
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(BEGIN_MAX);
    rp_buf_fmt(&text, "BEGIN ISOLATION LEVEL READ COMMITTED READ %s;", reading ? "ONLY" : "WRITE");
    int r = c->guest ? rp_pg_settings(c, true, &text, err) : 0;
    if (r == 0 && text.failed < 0) r = rp_error_set(err, text.failed, "postgres: begin");
    if (r == 0) r = rp_pg_ensure(c, err);
    if (r < 0) return r;
    r = rp_pg_command(c, rp_buf_text(&text), "begin", NULL, 0, err);
    if (r < 0) postgres_rollback(c); /* it may have begun, and failed at a setting */
    c->in_transaction = r == 0;
    c->reading = r == 0 && reading;
    return r;
}

/* D9: the setting holds for the rest of this transaction, which is its COMMIT. */
static int postgres_commit(void *conn, struct rp_error *err)
{
    struct rp_pg *c = conn;
    bool reading = c->reading;
    if (c->pg == NULL) {
        c->in_transaction = c->reading = false;
        return rp_error_set(err, RP_EUNAVAILABLE, "postgres: commit: the connection was lost before");
    }
    RP_ASSERT(PQtransactionStatus(c->pg) != PQTRANS_INERROR);
    c->warned = false;
    int r = rp_pg_commit(c, reading ? "COMMIT" : "SET LOCAL statement_timeout=0; COMMIT", err);
    bool lost = rp_pg_lost(c);
    c->in_transaction = c->reading = false;
    if (r == 0 && (!c->warned || reading)) return 0;
    if (r == 0) return rp_error_set(err, RP_EUNKNOWN, "postgres: commit: the server is in doubt about it");
    if (!lost) {
        postgres_rollback(c);
        return r;
    }
    rp_pg_disconnect(c);
    if (reading) return r;
    return rp_error_set(err, RP_EUNKNOWN, "postgres: commit: the connection broke while COMMIT was under way");
}

static void postgres_deadline(void *conn, int64_t at_boot_ms)
{
    ((struct rp_pg *)conn)->deadline_ms = at_boot_ms;
}

static bool postgres_in_transaction(const void *conn)
{
    return ((const struct rp_pg *)conn)->in_transaction;
}

/* ---- results ---- */

static bool read_int(const char *text, int64_t *out)
{
    if ((text[0] == 't' || text[0] == 'f') && text[1] == '\0') {
        *out = text[0] == 't';
        return true;
    }
    char *end = NULL;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

/* "\x0aff" becomes two bytes where it stands: the result is ours, and the bytes need less room. */
static bool read_bytes(char *text, size_t n, struct rp_value *out)
{
    if (n < 2 || text[0] != '\\' || text[1] != 'x') return false;
    out->p = text;
    out->n = n / 2 - 1;
    return rp_hex_read(text + 2, out->n, text);
}

static bool read_column(PGresult *result, int row, int i, char type, struct rp_value *out)
{
    *out = (struct rp_value){ .type = RP_NULL_T };
    if (PQgetisnull(result, row, i)) return true;
    char *text = PQgetvalue(result, row, i);
    size_t n = (size_t)PQgetlength(result, row, i);
    if (type == 'i') {
        out->type = RP_INT_T;
        return read_int(text, &out->i);
    }
    if (type == 'b') {
        out->type = RP_BYTES_T;
        return read_bytes(text, n, out);
    }
    *out = (struct rp_value){ .type = RP_TEXT_T, .p = text, .n = n };
    return true;
}

static int hand_row(const struct rp_sql *sql, PGresult *result, int row, rp_row_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value values[RP_COLUMNS_MAX];
    size_t n = strlen(sql->columns);
    RP_ASSERT(n <= RP_COLUMNS_MAX && fn != NULL);
    if ((size_t)PQnfields(result) != n)
        return rp_error_set(err, RP_EINVAL, "postgres: %s: returns %d columns, %zu are declared", sql->name,
                            PQnfields(result), n);
    for (int i = 0; i < (int)n; i++)
        if (!read_column(result, row, i, sql->columns[i], &values[i]))
            return rp_error_set(err, RP_EFAILED, "postgres: %s: column %d is not of the declared type", sql->name,
                                i + 1);
    return fn(ctx, values, err);
}

static int take_result(struct rp_pg *c, const struct rp_sql *sql, PGresult *result, rp_row_fn *fn, void *ctx,
                       int64_t *changed, struct rp_error *err)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_SINGLE_TUPLE)
        return rp_pg_fail(c, result, sql->name, err);
    int r = 0;
    for (int row = 0; r == 0 && sql->columns != NULL && row < PQntuples(result); row++)
        r = hand_row(sql, result, row, fn, ctx, err);
    bool changes = strncmp(PQcmdStatus(result), "SELECT", 6) != 0;
    if (r == 0 && changes) read_int(PQcmdTuples(result), changed);
    return r;
}

/* Reads to the end even after a failure: the next statement cannot be sent before. */
static int take_results(struct rp_pg *c, const struct rp_sql *sql, rp_row_fn *fn, void *ctx, int64_t *changed,
                        struct rp_error *err)
{
    int r = 0;
    bool any = false;
    for (PGresult *next = rp_pg_result(c); next != NULL; next = rp_pg_result(c)) {
        PGresult *result RP_CLEANUP(rp_pg_clearp) = next;
        any = true;
        if (r == 0) r = take_result(c, sql, result, fn, ctx, changed, err);
    }
    if (r == 0 && (!any || rp_pg_lost(c))) r = rp_pg_fail(c, NULL, sql->name, err);
    return r;
}

/* ---- statements ---- */

static int send_prepare(struct rp_pg *c, const struct rp_sql *sql, const char *text, const char *name,
                        struct rp_error *err)
{
    int64_t ignored = 0;
    rp_pg_start_waiting(c);
    if (c->pg == NULL || !PQsendPrepare(c->pg, name, text, (int)c->params.n, c->params.types))
        return rp_pg_fail(c, NULL, sql->name, err);
    return take_results(c, sql, NULL, NULL, &ignored, err);
}

/* Under the statement alone: its text is the same for any number of rows. */
static int prepare(struct rp_pg *c, const struct rp_sql *sql, const char *text, char name[NAME_TEXT],
                   struct rp_error *err)
{
    struct rp_statement *s = rp_statements_find(&c->statements, sql, 0, text);
    bool known = s != NULL;
    if (s == NULL) s = rp_statements_add(&c->statements, sql, 0, text);
    if (s == NULL) return rp_error_set(err, RP_ENOMEM, "postgres: %s", sql->name);
    snprintf(name, NAME_TEXT, "s%llu", (unsigned long long)s->serial);
    if (known) return 0;
    int r = send_prepare(c, sql, text, name, err);
    if (r == 0)
        s->handle = c;
    else if (c->pg != NULL)
        rp_statements_drop(&c->statements, s);
    return r;
}

static int run_prepared(struct rp_pg *c, const struct rp_sql *sql, const char *name, rp_row_fn *fn, void *ctx,
                        int64_t *changed, struct rp_error *err)
{
    const struct rp_pg_params *p = &c->params;
    rp_pg_start_waiting(c);
    if (!PQsendQueryPrepared(c->pg, name, (int)p->n, p->values, p->lengths, p->formats, 0))
        return rp_pg_fail(c, NULL, sql->name, err);
    /* Row by row, so that memory does not grow with the answer. */
    if (sql->columns != NULL) PQsetSingleRowMode(c->pg);
    return take_results(c, sql, fn, ctx, changed, err);
}

static int postgres_run(void *conn, const struct rp_sql *sql, const char *text, const struct rp_value *args,
                        const struct rp_value *rows, size_t n_rows, rp_row_fn *fn, void *ctx, int64_t *changed,
                        struct rp_error *err)
{
    struct rp_pg *c = conn;
    char name[NAME_TEXT] = ""; /* of a guest: the statement without a name, which the next one replaces */
    RP_ASSERT(!c->guest || c->in_transaction);
    int r = c->in_transaction ? 0 : rp_pg_ensure(c, err);
    if (r == 0) r = rp_pg_params_set(&c->params, sql, args, rows, n_rows, err);
    if (r == 0) r = c->guest ? send_prepare(c, sql, text, name, err) : prepare(c, sql, text, name, err);
    if (r == 0) r = run_prepared(c, sql, name, fn, ctx, changed, err);
    rp_pg_params_trim(&c->params);
    return r;
}

static int postgres_script(void *conn, const char *text, struct rp_error *err)
{
    return rp_pg_command(conn, text, "script", NULL, 0, err);
}

static int postgres_vessel(void *conn, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err)
{
    return rp_pg_vessel(conn, table, out, err);
}

const struct rp_db_driver rp_postgres_driver = {
    .engine = "postgres",
    .schemes = (const char *const[]){ "postgres://", "postgresql://", NULL },
    .params_max = RP_PG_PARAMS_MAX,
    .rows_max = ROWS_MAX,
    .rows_bytes_max = ROWS_BYTES_MAX,
    .open = postgres_open,
    .close = postgres_close,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .deadline = postgres_deadline,
    .in_transaction = postgres_in_transaction,
    .run = postgres_run,
    .script = postgres_script,
    .vessel = postgres_vessel,
    .dialect = dialect,
};
