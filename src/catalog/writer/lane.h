/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h - which lane a connection writes on.
 *
 * L1  A daemon's connection has a lane of its own, leased in the lane's row. Every commit moves the
 *     lease on. A lane whose lease is over may be leased by another; the one that had it finds a
 *     higher fence in the row, which it locks before it writes anything, and leases another lane.
 *     So two never write on one lane, whatever their clocks say.
 * L2  Lane 0 is shared by command lines, and never leased. They wait for each other.
 * L3  A lane that was given up goes on with its chain under its next holder; lanes do not multiply
 *     with restarts.
 * L4  A connection remembers for a day how its last commit left its lane. If the row is another by
 *     its next transaction, it looks for the audit row that was the lane's last. Is that gone, the
 *     catalog was put back while it was open, into the same file or the same tables: then its place
 *     is forgotten for every store (core/owner/vessel.h, V2), in the same transaction. After a day
 *     the owner record, raised since, tells as well. */
#ifndef RP_CATALOG_LANE_H
#define RP_CATALOG_LANE_H

#include "catalog/catalog.h"

#define RP_LANE_LEASE_MS (15 * RP_SECOND_MS)
#define RP_LANE_END_MS   RP_DAY_MS

/* Before a transaction: the lane's row is there, and leased if it is to be. */
int rp_lane_ensure(struct rp_catalog *catalog, struct rp_error *err);
/* In a transaction: whether the row that was locked is still ours. RP_EBUSY: no longer; the next
 * ensure leases another. */
int rp_lane_check(struct rp_catalog *catalog, int64_t fence, struct rp_error *err);
/* L4. In a transaction, with the row's stamp: whether to doubt. */
void rp_lane_compare(struct rp_catalog *catalog, int64_t stamp);
/* There is no such row. RP_EBUSY: there is nothing either of what we left on that lane, and the
 * next ensure makes or leases one. */
int rp_lane_missing(struct rp_catalog *catalog, struct rp_error *err);
int rp_lane_settle_doubt(struct rp_tx *tx, struct rp_error *err);
/* Whether what we left there is there: true also if it is not known. */
int rp_lane_is_unchanged(struct rp_db *db, const struct rp_lane_end *end, bool *out, struct rp_error *err);
/* The next transaction of this connection looks for what another one left, and notes that it is
 * gone. */
void rp_lane_doubt(struct rp_catalog *catalog, const struct rp_lane_end *end);
/* It is committed. */
void rp_lane_note_end(const struct rp_tx *tx);
/* Gives a leased lane back. Best effort: the lease ends by itself. */
void rp_lane_release(struct rp_catalog *catalog);

#endif
