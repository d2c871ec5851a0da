/* SPDX-License-Identifier: Apache-2.0 */
/* postgres.h - a PostgreSQL session that can be lost and made again; shared by the driver's files.
 *
 * P1  The URL is parsed once. No text that libpq writes about the URL leaves this folder: it may
 *     quote the password.
 * P2  Every wait has an end: connect_timeout, keep-alives, and for sending a statement and its
 *     answer the statement's time-out and some more, or the deadline of the whole change. The
 *     server ends a session of ours that sleeps in a transaction, and notices a client that is
 *     gone: a process that hangs or is cut off holds its locks for seconds.
 * P3  A statement's parameters are its fixed ones and then one array for each column of its rows.
 *     All are sent in binary, which for text is the text. The arrays' memory is kept for the next
 *     statement unless it has become big.
 * P4  A server that vanishes (nothing is answered, nothing refused) is noticed by every session in
 *     6 s. Where the URL has several hosts the next one is tried after 2 s. So a fail-over is
 *     followed within 15 s. The URL may say otherwise. */
#ifndef RP_DB_POSTGRES_H
#define RP_DB_POSTGRES_H

#include <libpq-fe.h>

#include "db/driver.h"

#define RP_PG_PARAMS_MAX 128

/* One statement's parameters in the shape libpq wants them. The values point into `ints`, `arrays`
 * and the caller's. */
struct rp_pg_params {
    size_t n;
    Oid types[RP_PG_PARAMS_MAX];
    const char *values[RP_PG_PARAMS_MAX];
    int lengths[RP_PG_PARAMS_MAX];
    int formats[RP_PG_PARAMS_MAX];
    uint64_t ints[RP_PG_PARAMS_MAX];
    char *arrays;
    size_t arrays_cap;
};

struct rp_pg {
    PGconn *pg;                   /* NULL: not connected */
    PQconninfoOption *parameters; /* of the URL, without ours */
    char *schema;                 /* NULL: as the server says */
    bool read_only, by_index, any_server, guest;
    int64_t busy_ms, statement_ms;
    int64_t deadline_ms; /* of all waits, on the boot clock; 0: none */
    int64_t answer_ms;   /* when the answer awaited must be there; 0: whenever */
    bool in_transaction;
    bool reading;                /* in a transaction begun for reading */
    bool warned;                 /* the server has warned since this was last cleared */
    char vessel[RP_VESSEL_TEXT]; /* of this session, as far as it has been read */
    struct rp_statements statements;
    struct rp_pg_params params;
};

int rp_pg_parse_url(struct rp_pg *c, const char *url, struct rp_error *err);
/* Connects if there is no living session. */
int rp_pg_ensure(struct rp_pg *c, struct rp_error *err);
void rp_pg_disconnect(struct rp_pg *c);
/* Appends what every session of ours is told, or with `local` what each transaction is (D10). */
int rp_pg_settings(const struct rp_pg *c, bool local, struct rp_buf *out, struct rp_error *err);
int rp_pg_create_schema(struct rp_pg *c, struct rp_error *err);

/* The next result of what was sent, all of which goes out first, or NULL at its end; waits no
 * longer than the deadline. */
PGresult *rp_pg_result(struct rp_pg *c);
void rp_pg_clearp(PGresult **result); /* RP_CLEANUP function */
void rp_pg_start_waiting(struct rp_pg *c);
/* Statements without parameters in one round trip; `out` (may be NULL) takes the last value
 * returned. */
int rp_pg_command(struct rp_pg *c, const char *text, const char *what, char *out, size_t out_size,
                  struct rp_error *err);
/* The same for the end of a transaction: it waits until the deadline (D9). */
int rp_pg_commit(struct rp_pg *c, const char *text, struct rp_error *err);
int rp_pg_vessel(struct rp_pg *c, const char *table, char out[RP_VESSEL_TEXT], struct rp_error *err);
bool rp_pg_lost(const struct rp_pg *c);
/* Fill `err` from a failed result (NULL: from the session) and drop a session that is lost. */
int rp_pg_fail(struct rp_pg *c, const PGresult *result, const char *what, struct rp_error *err);

/* Types and values of all parameters; `n_rows` is 0 for a statement without @ROWS. */
int rp_pg_params_set(struct rp_pg_params *p, const struct rp_sql *sql, const struct rp_value *args,
                     const struct rp_value *rows, size_t n_rows, struct rp_error *err);
void rp_pg_params_trim(struct rp_pg_params *p); /* after use: gives back memory that is too much to keep */
void rp_pg_params_done(struct rp_pg_params *p);

#endif
