/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - which files may go, and what goes with them.
 *
 * F1  A file that was purged or expired, changed last before the moment, and does not stay listed
 *     (visibility: shown).
 * F2  None of its marks, nor of its copies in quarantine, waits or ended later: a copy can be
 *     restored, and the second mark waits for a late PUT.
 * F3  No file names it as parent or source any more: what belongs to it goes first, in a run
 *     before.
 * F4  Its bytes were given back. Its ledger rows then sum to nothing and go with it: the tenant's
 *     counters, and what the ledger sums up, are the same before and after (QUOTA-EXACT).
 * F5  The transaction that it is a member of ended, or ran out of time, before the moment as well.
 *     It goes with its last member. A transaction that never had one goes by itself.
 * F6  Its marks and theirs of its copies go with it.
 * F7  All of it happens under its tenant's lock. */
#include "base/error.h"
#include "catalog/retention.h"
#include "core/retention/steps.h"

#define TXN_FLOOR "retention_transactions"

static int init_files(struct rp_old_files *files, size_t max, struct rp_arena *arena, struct rp_error *err)
{
    *files = (struct rp_old_files){ .at = rp_arena_array(arena, max + 1, sizeof *files->at), .max = max };
    return files->at != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for %zu files", max);
}

int rp_retention_find_files(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                            struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    (void)step;
    struct rp_old_files files;
    int r = init_files(&files, (size_t)batch->limit, arena, err);
    if (r == 0)
        r = rp_old_files_page(db, batch->before_ms, batch->cursor.files.at_ms, batch->cursor.files.at_id, &files, err);
    if (r < 0) return r;
    for (size_t i = 0; i < files.n; i++)
        if (files.at[i].may_go) out->at[out->n++] = files.at[i].id;
    batch->more = files.n == (size_t)batch->limit;
    if (files.n == 0) return 0;
    batch->cursor.files.at_ms = files.at[files.n - 1].changed_at_ms;
    batch->cursor.files.at_id = files.at[files.n - 1].id;
    return 0;
}

int rp_retention_let_go_files(const struct rp_retention_step *step, struct rp_tx *tx, struct rp_retention_batch *batch,
                              const struct rp_ids *ids, struct rp_error *err)
{
    (void)step;
    struct rp_old_files files;
    int r = init_files(&files, ids->n, tx->arena, err);
    if (r == 0) r = rp_old_files_lock(tx, batch->before_ms, ids, &files, err);
    if (r == 0) r = rp_old_files_remove(tx, batch->before_ms, &files, &batch->along, err);
    batch->gone = (int64_t)files.n;
    return r;
}

/* ---- transactions without members ---- */

static int begin_txns(struct rp_db *db, struct rp_retention_batch *batch, struct rp_error *err)
{
    if (batch->cursor.txns.begun != 0) return 0;
    batch->cursor.txns.begun = 1;
    return rp_retention_floor_load(db, TXN_FLOOR, &batch->cursor.txns.at_id, err);
}

/* Those with members go with the last of them. So the next run begins behind them; not behind one
 * that may still end without any. */
int rp_retention_find_txns(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                           struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    (void)step;
    struct rp_old_txns txns = { .at = rp_arena_array(arena, (size_t)batch->limit + 1, sizeof *txns.at),
                                .max = (size_t)batch->limit };
    if (txns.at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for transactions");
    int r = begin_txns(db, batch, err);
    if (r == 0) r = rp_old_txns_page(db, batch->before_ms, batch->cursor.txns.at_id, &txns, err);
    if (r < 0) return r;
    for (size_t i = 0; i < txns.n; i++) {
        const struct rp_old_txn *t = &txns.at[i];
        if (t->members == 0 && t->over) out->at[out->n++] = t->id;
        if (t->members == 0 && !t->over && batch->cursor.txns.first_kept_id == 0)
            batch->cursor.txns.first_kept_id = t->id;
    }
    batch->more = txns.n == (size_t)batch->limit;
    if (txns.n > 0) batch->cursor.txns.at_id = txns.at[txns.n - 1].id;
    return 0;
}

int rp_retention_let_go_txns(const struct rp_retention_step *step, struct rp_tx *tx, struct rp_retention_batch *batch,
                             const struct rp_ids *ids, struct rp_error *err)
{
    (void)step;
    int r = rp_txns_remove(tx, batch->before_ms, ids, &batch->gone, err);
    if (r == 0 && batch->gone != (int64_t)ids->n && batch->cursor.txns.first_kept_id == 0)
        batch->cursor.txns.first_kept_id = ids->at[0]; /* somebody has locked one */
    if (r < 0 || batch->more || batch->cursor.txns.at_id == 0) return r;
    return rp_retention_floor_save(tx, TXN_FLOOR, batch->cursor.txns.first_kept_id, batch->cursor.txns.at_id, err);
}
