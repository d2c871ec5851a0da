/* SPDX-License-Identifier: Apache-2.0 */
/* feed.h - where the durable readers of the audit log stand.
 *
 * A cursor is one row a lane: the number of the last row of that lane that the reader has dealt
 * with. A lane without a row is at 0. Saving never moves a cursor back, in any lane: of two saves
 * the order does not matter. */
#ifndef RP_CATALOG_FEED_H
#define RP_CATALOG_FEED_H

#include "catalog/audit/audit.h"

/* In order of lanes. *n 0: no reader of this name has ever saved. */
int rp_feed_cursor_load(struct rp_db *db, const char *reader, struct rp_audit_head *out, size_t max, size_t *n,
                        struct rp_error *err);
int rp_feed_cursor_save(struct rp_tx *tx, const char *reader, const struct rp_audit_head *at, size_t n,
                        struct rp_error *err);

#endif
