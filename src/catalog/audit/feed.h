/* SPDX-License-Identifier: Apache-2.0 */
/* feed.h - where the durable readers of the audit log stand, and on which node each of them works.
 *
 * A cursor is one row a lane: the number of the last row of that lane that the reader has dealt
 * with. A lane without a row is at 0. Saving never moves a cursor back, in any lane: of two saves
 * the order does not matter.
 *
 * A lease says which of several nodes delivers for a reader, until a moment of the database's
 * clock. It only makes them take turns: as cursors never go back, a node that lost its lease and
 * does not know it delivers twice, and leaves nothing out. It is taken before the reader's cursor
 * is first saved, and stays as a row when it is over. */
#ifndef RP_CATALOG_FEED_H
#define RP_CATALOG_FEED_H

#include "catalog/audit/audit.h"

#define RP_FEED_READER 80 /* a reader's name */

/* In order of lanes. *n 0: no reader of this name has ever saved. */
int rp_feed_cursor_load(struct rp_db *db, const char *reader, struct rp_audit_head *out, size_t max, size_t *n,
                        struct rp_error *err);
int rp_feed_cursor_save(struct rp_tx *tx, const char *reader, const struct rp_audit_head *at, size_t n,
                        struct rp_error *err);

/* Rows after a reader's cursor, and the age of the oldest of them. */
struct rp_feed_lag {
    bool begun;                 /* false: no reader of this name has ever saved */
    int64_t rows, oldest_at_ms; /* 0: none */
};
int rp_feed_lag(struct rp_db *db, const char *reader, struct rp_feed_lag *out, struct rp_error *err);

/* Each reader that has a cursor, in order of their names. `fn` may use the same connection. */
typedef int rp_feed_reader_fn(void *ctx, const char *reader, struct rp_error *err);
int rp_feed_readers(struct rp_db *db, rp_feed_reader_fn *fn, void *ctx, struct rp_error *err);
/* Its cursor and its lease, unless that was held at `before_ms` or later. */
int rp_feed_reader_forget(struct rp_tx *tx, const char *reader, int64_t before_ms, bool *forgotten,
                          struct rp_error *err);

/* ---- leases ---- */

#define RP_FEED_HOLDER 80

struct rp_feed_lease {
    char holder[RP_FEED_HOLDER];
    int64_t fence, until_ms;
};
/* All 0: nobody ever held it. */
int rp_feed_lease_get(struct rp_db *db, const char *reader, struct rp_feed_lease *out, struct rp_error *err);
/* If it is free, over, or this holder's (an earlier process of the same node). *fence 0: another
 * one holds it. */
int rp_feed_lease_take(struct rp_tx *tx, const char *reader, const char *holder, int64_t lease_ms, int64_t *fence,
                       struct rp_error *err);
/* From now on for so long; 0: it is given back. *held false: it was taken over. */
int rp_feed_lease_renew(struct rp_tx *tx, const char *reader, int64_t fence, int64_t lease_ms, bool *held,
                        struct rp_error *err);

#endif
