/* SPDX-License-Identifier: Apache-2.0 */
/* statements.h - what a connection keeps for each statement it has run, found by (statement, number
 * of rows).
 *
 * K1  At most RP_STATEMENTS_MAX are kept; the one unused for longest makes room.
 * K2  The text is compared at every look-up: a statement that was built at run time may stand where
 *     another one stood. */
#ifndef RP_DB_STATEMENTS_H
#define RP_DB_STATEMENTS_H

#include <stddef.h>
#include <stdint.h>

struct rp_sql;

#define RP_STATEMENTS_MAX     256
#define RP_STATEMENTS_BUCKETS 512

struct rp_statement {
    const struct rp_sql *sql;
    size_t n_rows;
    char *text;      /* ours */
    void *handle;    /* the owner's; given back through `release` */
    uint64_t serial; /* never used twice by one cache */
    uint64_t used;
    int next;
};

struct rp_statements {
    struct rp_statement slots[RP_STATEMENTS_MAX];
    int buckets[RP_STATEMENTS_BUCKETS]; /* index + 1 of the first slot; 0: none */
    uint64_t ticks;
    void (*release)(void *owner, struct rp_statement *s);
    void *owner;
};

/* NULL if it is not there. */
struct rp_statement *rp_statements_find(struct rp_statements *c, const struct rp_sql *sql, size_t n_rows,
                                        const char *text);
/* A new one without a handle, only after a find that gave NULL. NULL: no memory. */
struct rp_statement *rp_statements_add(struct rp_statements *c, const struct rp_sql *sql, size_t n_rows,
                                       const char *text);
void rp_statements_drop(struct rp_statements *c, struct rp_statement *s);
void rp_statements_clear(struct rp_statements *c);

#endif
