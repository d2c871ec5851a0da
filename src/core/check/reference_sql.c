/* SPDX-License-Identifier: Apache-2.0 */
/* reference_sql.c - a column, or a query whose only column is a key: one statement for many keys. */
#include "core/check/reference_source.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "catalog/row.h"
#include "db/db.h"

#include <stdio.h>
#include <string.h>

struct rp_sql_source {
    struct rp_sql_connection *connection;
    char *text;
    char name[80];
    struct rp_sql sql;
    char *shape_text; /* of a user's query: refused unless it has one column of text */
    struct rp_sql shape;
    bool shaped;
};

/* ---- the statement ---- */

/* $1 and @NAME mean something to the port; in a user's text they could only be a mistake. Inside
 * a literal they are fine, but a query that needs them there can name the column through a view. */
static int check_sql(const char *sql, struct rp_error *err)
{
    for (const char *p = sql; *p != 0; p++) {
        bool parameter = p[0] == '$' && p[1] >= '0' && p[1] <= '9';
        bool macro = p[0] == '@' && p[1] >= 'A' && p[1] <= 'Z';
        if (parameter || macro || *p == ';')
            return rp_error_set(err, RP_ECONFIG, "the query may not contain ';', $1 or @NAME");
    }
    return 0;
}

/* PostgreSQL lets a query have more columns than `q(k)` names and takes the first, which need
 * not be the key. As the right side of IN both engines refuse it; the query itself is not run. */
static int write_shape(struct rp_sql_source *s, const struct rp_reference *ref, struct rp_error *err)
{
    if (asprintf(
            &s->shape_text,
            "SELECT COUNT(*) FROM (VALUES (1)) AS v WHERE CAST('' AS text) IN (SELECT * FROM (%s\n) AS u WHERE 1 = 0)",
            ref->sql) < 0) {
        s->shape_text = NULL;
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    s->shape = (struct rp_sql){ .name = s->name, .text = s->shape_text, .params = "", .columns = "i" };
    return 0;
}

/* The user's query, or the column, becomes a table of one column. */
static int write_question(struct rp_buf *b, const struct rp_reference *ref, struct rp_error *err)
{
    int r = 0;
    rp_buf_str(b, "WITH q(k) AS (");
    if (ref->sql != NULL) {
        rp_buf_str(b, ref->sql);
    } else {
        rp_buf_str(b, "SELECT t."); /* else SQLite takes the name of a column that is not there for a text */
        r = rp_db_quote_name(b, ref->column, err);
        rp_buf_str(b, " FROM ");
        if (r == 0) r = rp_db_quote_name(b, ref->table, err);
        rp_buf_str(b, " AS t");
    }
    rp_buf_str(b, "\n) SELECT v.column1, COUNT(*) FROM (VALUES @ROWS) AS v JOIN q ON @HOLDS(q.k, v.column1) "
                  "GROUP BY v.column1");
    return r;
}

static void free_source(struct rp_sql_source **s)
{
    rp_sql_source_free(*s);
}

int rp_sql_source_new(const struct rp_reference *ref, struct rp_sql_connection *connection, struct rp_sql_source **out,
                      struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(65536);
    RP_CLEANUP(free_source) struct rp_sql_source *s = calloc(1, sizeof *s);
    if (s == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    int r = ref->sql != NULL ? check_sql(ref->sql, err) : 0;
    if (r == 0) r = write_question(&text, ref, err);
    if (r < 0) return r;
    if (text.failed < 0) return rp_error_set(err, text.failed, "the query is too long");
    s->connection = connection;
    s->text = strdup(rp_buf_text(&text));
    if (s->text == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    snprintf(s->name, sizeof s->name, "%s.%s", ref->database, ref->sql != NULL ? "sql" : ref->table);
    s->sql = (struct rp_sql){ .name = s->name, .text = s->text, .params = "", .rows = "s", .columns = "si" };
    if (ref->sql != NULL) r = write_shape(s, ref, err);
    if (r < 0) return r;
    *out = s;
    s = NULL;
    return 0;
}

void rp_sql_source_free(struct rp_sql_source *s)
{
    if (s == NULL) return;
    free(s->text);
    free(s->shape_text);
    free(s);
}

/* ---- the connection ---- */

static int connect_to(struct rp_sql_connection *c, struct rp_error *err)
{
    const struct rp_database_config *config = c->config;
    struct rp_db_options options = { .read_only = true, .guest = true, .statement_ms = config->statement_timeout_ms };
    if (c->db != NULL && !rp_db_is_replaced(c->db)) return 0;
    rp_sql_connection_close(c);
    /* never read_url: what a replica has not heard of yet would be erased */
    return rp_db_open(config->url, &options, &c->db, err);
}

void rp_sql_connection_close(struct rp_sql_connection *c)
{
    rp_db_close(c->db);
    c->db = NULL;
}

/* ---- asking ---- */

static int count_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_counting *c = ctx;
    if (row[0].type != RP_TEXT_T || row[1].type != RP_INT_T || row[1].i < 0)
        return rp_error_set(err, RP_EFAILED, "the look-up answered nonsense");
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->keys[i], row[0].p) == 0) rp_counting_add(c, i, row[1].i);
    return 0;
}

static int check_shape(struct rp_db *db, struct rp_sql_source *s, struct rp_error *err)
{
    if (s->shape_text == NULL || s->shaped) return 0;
    int r = rp_db_query(db, &s->shape, NULL, rp_ignore_row, NULL, err);
    if (r < 0) return rp_error_wrap(err, r, "see that the query has one column, of text");
    s->shaped = true;
    return 0;
}

static int ask_in(struct rp_db *db, struct rp_sql_source *s, const struct rp_value *rows, struct rp_counting *c,
                  struct rp_error *err)
{
    int r = rp_db_begin(db, false, err);
    if (r == 0) r = check_shape(db, s, err);
    if (r == 0) r = rp_db_query_rows(db, &s->sql, NULL, rows, c->n, count_row, c, err);
    if (r == 0) r = rp_db_commit(db, err);
    rp_db_rollback(db);
    return r;
}

int rp_sql_source_ask(struct rp_sql_source *s, struct rp_counting *c, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_value *rows = calloc(c->n + 1, sizeof *rows);
    for (size_t i = 0; i < c->n && rows != NULL; i++)
        rows[i] = rp_text(c->keys[i]);
    int r = rows != NULL ? connect_to(s->connection, err) : rp_error_set(err, RP_ENOMEM, "out of memory");
    if (r == 0) r = ask_in(s->connection->db, s, rows, c, err);
    c->silent = r < 0;
    for (size_t i = 0; i < c->n && r < 0; i++)
        rp_counting_lose(c, i);
    return r;
}
