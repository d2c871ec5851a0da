/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.h - the rows of table txn. */
#ifndef RP_CATALOG_TRANSACTION_H
#define RP_CATALOG_TRANSACTION_H

#include "catalog/catalog.h"

enum rp_txn_state { RP_TXN_OPEN = 1, RP_TXN_COMMITTED = 2, RP_TXN_ABORTED = 3, RP_TXN_STATES };

struct rp_txn {
    int64_t id, tenant_id;
    enum rp_txn_state state;
    int64_t members, ends_at_ms, created_at_ms, changed_at_ms;
};

int rp_txn_add(struct rp_tx *tx, const struct rp_txn *txn, const char *actor, struct rp_error *err);
/* Locked. Those that are not there are left out. */
int rp_txns_lock(struct rp_tx *tx, int64_t *ids, size_t n, struct rp_txn *out, size_t *found, struct rp_error *err);
/* Writes back state, members and changed_at. */
int rp_txns_save(struct rp_tx *tx, const struct rp_txn *txns, size_t n, struct rp_error *err);
int rp_txn_get(struct rp_db *db, int64_t id, struct rp_txn *out, struct rp_error *err); /* RP_ENOTFOUND */

#endif
