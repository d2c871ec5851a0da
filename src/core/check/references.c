/* SPDX-License-Identifier: Apache-2.0 */
#include "core/check/references.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "db/db.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct question {
    const struct rp_reference *reference;
    size_t database; /* index into refs->databases */
    char *text;
    char name[80];
    struct rp_sql sql;
    char *shape_text; /* of a user's query: refused unless it has one column of text */
    struct rp_sql shape;
    bool shaped;
};

struct connection {
    const struct rp_database_config *config;
    struct rp_db *db; /* NULL: not open yet */
};

struct rp_references {
    const char *store;
    struct question *questions;
    size_t n_questions;
    struct connection *databases;
    size_t n_databases;
    pthread_mutex_t lock; /* of the connections: one question at a time */
};

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
static int write_shape(struct question *q, const struct rp_reference *ref, struct rp_error *err)
{
    if (asprintf(
            &q->shape_text,
            "SELECT COUNT(*) FROM (VALUES (1)) AS v WHERE CAST('' AS text) IN (SELECT * FROM (%s\n) AS u WHERE 1 = 0)",
            ref->sql) < 0) {
        q->shape_text = NULL;
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    }
    q->shape = (struct rp_sql){ .name = q->name, .text = q->shape_text, .params = "", .columns = "i" };
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

static size_t connection_of(struct rp_references *refs, const struct rp_database_config *config)
{
    size_t i = 0;
    while (i < refs->n_databases && refs->databases[i].config != config)
        i++;
    if (i == refs->n_databases) refs->databases[refs->n_databases++].config = config;
    return i;
}

static int ask_by(struct rp_references *refs, const struct rp_config *config, const struct rp_reference *ref,
                  struct question *q, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(65536);
    const struct rp_database_config *database = rp_config_database(config, ref->database);
    int r = 0;
    RP_ASSERT(database != NULL);
    if (ref->sql != NULL) r = check_sql(ref->sql, err);
    if (r == 0) r = write_question(&text, ref, err);
    if (r < 0) return r;
    if (text.failed < 0) return rp_error_set(err, text.failed, "the query is too long");
    q->reference = ref;
    q->database = connection_of(refs, database);
    q->text = strdup(rp_buf_text(&text));
    if (q->text == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    snprintf(q->name, sizeof q->name, "%s.%s", ref->database, ref->sql != NULL ? "sql" : ref->table);
    q->sql = (struct rp_sql){ .name = q->name, .text = q->text, .params = "", .rows = "s", .columns = "si" };
    return ref->sql != NULL ? write_shape(q, ref, err) : 0;
}

static void free_references(struct rp_references **refs)
{
    rp_references_free(*refs);
}

int rp_references_new(const struct rp_config *config, const struct rp_store_config *store, struct rp_references **out,
                      struct rp_error *err)
{
    size_t n = store->n_referenced_by;
    if (n == 0) {
        *out = NULL;
        return 0;
    }
    RP_CLEANUP(free_references) struct rp_references *refs = calloc(1, sizeof *refs);
    if (refs != NULL) pthread_mutex_init(&refs->lock, NULL);
    if (refs != NULL) refs->questions = calloc(n, sizeof *refs->questions);
    if (refs != NULL) refs->databases = calloc(n, sizeof *refs->databases);
    if (refs == NULL || refs->questions == NULL || refs->databases == NULL)
        return rp_error_set(err, RP_ENOMEM, "out of memory");
    refs->store = store->name;
    for (size_t i = 0; i < n; i++) {
        refs->n_questions = i + 1;
        int r = ask_by(refs, config, &store->referenced_by[i], &refs->questions[i], err);
        if (r < 0) return rp_error_wrap(err, RP_ECONFIG, "stores.%s.referenced_by[%zu]", store->name, i);
    }
    *out = refs;
    refs = NULL;
    return 0;
}

void rp_references_free(struct rp_references *refs)
{
    if (refs == NULL) return;
    for (size_t i = 0; i < refs->n_databases; i++)
        rp_db_close(refs->databases[i].db);
    for (size_t i = 0; i < refs->n_questions; i++) {
        free(refs->questions[i].text);
        free(refs->questions[i].shape_text);
    }
    free(refs->questions);
    free(refs->databases);
    pthread_mutex_destroy(&refs->lock);
    free(refs);
}

static int connect_to(struct connection *c, struct rp_error *err)
{
    const struct rp_database_config *config = c->config;
    struct rp_db_options options = { .read_only = true, .statement_ms = config->statement_timeout_ms };
    if (c->db != NULL) return 0;
    /* never read_url: what a replica has not heard of yet would be erased */
    return rp_db_open(config->url, &options, &c->db, err);
}

struct counting {
    const char *const *keys;
    int64_t *counts;
    size_t n;
};

static int count_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct counting *c = ctx;
    if (row[0].type != RP_TEXT_T || row[1].type != RP_INT_T || row[1].i < 0)
        return rp_error_set(err, RP_EFAILED, "the look-up answered nonsense");
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->keys[i], row[0].p) == 0) c->counts[i] += row[1].i;
    return 0;
}

static int ignore_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)ctx, (void)row, (void)err;
    return 0;
}

static int check_shape(struct rp_db *db, struct question *q, struct rp_error *err)
{
    if (q->shape_text == NULL || q->shaped) return 0;
    int r = rp_db_query(db, &q->shape, NULL, ignore_row, NULL, err);
    if (r < 0) return rp_error_wrap(err, r, "see that the query has one column, of text");
    q->shaped = true;
    return 0;
}

static int ask(struct rp_references *refs, struct question *q, const struct rp_value *rows, size_t n,
               struct counting *c, struct rp_error *err)
{
    struct connection *connection = &refs->databases[q->database];
    int r = connect_to(connection, err);
    if (r == 0) r = check_shape(connection->db, q, err);
    if (r == 0) r = rp_db_query_rows(connection->db, &q->sql, NULL, rows, n, count_row, c, err);
    if (r == 0) return 0;
    /* whatever went wrong, the answer is "we do not know": try again later */
    rp_error_wrap(err, RP_EUNAVAILABLE, "references of store '%s' in %s", refs->store, q->name);
    return RP_EUNAVAILABLE;
}

int rp_references_count(struct rp_references *refs, const char *const *keys, size_t n, int64_t *counts,
                        struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_value *rows = calloc(n + 1, sizeof *rows);
    RP_CLEANUP(rp_freep) int64_t *sums = calloc(n + 1, sizeof *sums);
    struct counting c = { .keys = keys, .counts = sums, .n = n };
    if (rows == NULL || sums == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        rows[i] = rp_text(keys[i]);
    int r = 0;
    pthread_mutex_lock(&refs->lock);
    for (size_t q = 0; q < refs->n_questions && r == 0; q++)
        r = ask(refs, &refs->questions[q], rows, n, &c, err);
    pthread_mutex_unlock(&refs->lock);
    if (r == 0) memcpy(counts, sums, n * sizeof *counts);
    return r;
}

int rp_references_check(struct rp_references *refs, struct rp_error *err)
{
    const char *key = "reprieve-doctor-asks-whether-this-works";
    int64_t count;
    return rp_references_count(refs, &key, 1, &count, err);
}
