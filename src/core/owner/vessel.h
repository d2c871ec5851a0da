/* SPDX-License-Identifier: Apache-2.0 */
/* vessel.h - whether the catalog still lives in the vessel in which its epoch was last raised for a
 * store. Its vessel is the file, or the server, database and timeline, that holds it (db.h, D8);
 * users are told of it as the catalog's place.
 *
 * V1  It is noted for each store with every raise, and by `recover`; a catalog that never noted one
 *     is in no other.
 * V2  A catalog that is found in another vessel was put back, promoted or moved: it claims nothing
 *     (RP_ENOTOWNER) until somebody says `recover` or `recover --moved`. It is compared in every
 *     claim's own transaction, so that a connection that leads to another server in the middle of a
 *     sweep claims nothing. A catalog that was put back while it was open has forgotten its vessel,
 *     which then is another one, too (catalog/writer/lane.h, L4).
 * V3  Where a fail-over loses nothing (catalog.failover: synchronous), a later timeline is the same
 *     vessel. */
#ifndef RP_CORE_VESSEL_H
#define RP_CORE_VESSEL_H

#include "catalog/catalog.h"
#include "core/store.h"

int rp_vessel_compare(struct rp_db *db, const struct rp_store *store, bool *moved, struct rp_error *err);
int rp_vessel_note(struct rp_tx *tx, const struct rp_store *store, struct rp_error *err);
/* RP_ENOTOWNER if it moved. */
int rp_vessel_check(struct rp_tx *tx, const struct rp_store *store, struct rp_error *err);

#endif
