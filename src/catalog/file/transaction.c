/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/file/transaction.h"

#include "base/error.h"
#include "base/id.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <string.h>

int rp_txn_add(struct rp_tx *tx, const struct rp_txn *txn, const char *actor, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(txn->id),         rp_int(txn->tenant_id), rp_int(txn->state),
                               rp_int(txn->ends_at_ms), rp_text(actor),         rp_int(txn->created_at_ms) };
    int r = rp_db_exec(tx->db, RP_SQL(txn_add), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "begin a transaction") : 0;
}

struct txns {
    struct rp_txn *at;
    size_t n;
};

static int txn_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct txns *txns = ctx;
    struct rp_txn t = { .id = v[0].i,
                        .tenant_id = v[1].i,
                        .state = (enum rp_txn_state)v[2].i,
                        .members = v[3].i,
                        .ends_at_ms = v[4].i,
                        .created_at_ms = v[5].i,
                        .changed_at_ms = v[6].i };
    if (t.state < RP_TXN_OPEN || t.state >= RP_TXN_STATES)
        return rp_error_set(err, RP_ECORRUPT, "transaction %lld is in no state we know", (long long)t.id);
    txns->at[txns->n++] = t;
    return 0;
}

int rp_txns_lock(struct rp_tx *tx, int64_t *ids, size_t n, struct rp_txn *out, size_t *found, struct rp_error *err)
{
    struct txns txns = { .at = out };
    n = rp_ids_sort(ids, n);
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(txn_lock), tx->arena, ids, n);
    int r = rp_rows_query(&rows, tx->db, NULL, txn_row, &txns, err);
    if (r < 0) return rp_error_wrap(err, r, "load transactions");
    *found = txns.n;
    return 0;
}

int rp_txns_save(struct rp_tx *tx, const struct rp_txn *txns, size_t n, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(txn_save), tx->arena, n);
    int64_t changed = 0;
    for (size_t i = 0; i < n; i++) {
        rp_rows_add(&rows, RP_ROW(rp_int(txns[i].id), rp_int(txns[i].state), rp_int(txns[i].members),
                                  rp_int(txns[i].changed_at_ms)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "save transactions");
    if (changed != (int64_t)n) return rp_error_set(err, RP_ECORRUPT, "a transaction is gone from the catalog");
    return 0;
}

int rp_txn_get(struct rp_db *db, int64_t id, struct rp_txn *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    struct txns txns = { .at = out };
    int r = rp_db_query(db, RP_SQL(txn_get), &arg, txn_row, &txns, err);
    if (r < 0) return rp_error_wrap(err, r, "load a transaction");
    return txns.n == 1 ? 0 : rp_error_set(err, RP_ENOTFOUND, "there is no such transaction");
}
