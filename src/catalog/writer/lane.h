/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h - which lane a connection writes on.
 *
 * L1  A daemon's connection has a lane of its own, leased in the lane's row. Every commit moves the
 *     lease on. A lane whose lease is over may be leased by another; the one that had it finds a
 *     higher fence in the row, which it locks before it writes anything, and leases another lane.
 *     So two never write on one lane, whatever their clocks say.
 * L2  Lane 0 is shared by command lines, and never leased. They wait for each other.
 * L3  A lane that was given up goes on with its chain under its next holder; lanes do not multiply
 *     with restarts. */
#ifndef RP_CATALOG_LANE_H
#define RP_CATALOG_LANE_H

#include "catalog/catalog.h"

#define RP_LANE_LEASE_MS (15 * RP_SECOND_MS)

/* Before a transaction: the lane's row is there, and leased if it is to be. */
int rp_lane_ensure(struct rp_catalog *catalog, struct rp_error *err);
/* In a transaction: whether the row that was locked is still ours. RP_EBUSY: no longer; the next
 * ensure leases another. */
int rp_lane_check(struct rp_catalog *catalog, int64_t fence, struct rp_error *err);
/* Gives a leased lane back. Best effort: the lease ends by itself. */
void rp_lane_release(struct rp_catalog *catalog);

#endif
