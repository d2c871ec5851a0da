/* SPDX-License-Identifier: Apache-2.0 */
/* by_age.c - rows that age alone lets go: answers saved under an Idempotency-Key, holds that were
 * lifted, tokens that were revoked or are over, jobs of the processor that nobody waits for, runs
 * that have their record. */
#include "base/time.h"
#include "catalog/retention.h"
#include "core/retention/steps.h"

/* Sign-in links and a console's sessions go a day after they are over, sooner than other tokens: there
 * are many, every list of tokens walks past them, and the audit log tells of them all the same. */
#define SESSIONS_MS RP_DAY_MS

static struct rp_old_query query_of(enum rp_old_kind kind, const struct rp_retention_batch *batch)
{
    int64_t sessions_ms = batch->now_ms - SESSIONS_MS;
    return (struct rp_old_query){ .kind = kind,
                                  .before_ms = batch->before_ms,
                                  .sooner_ms = sessions_ms > batch->before_ms ? sessions_ms : batch->before_ms,
                                  .after = batch->cursor.by_age.after_id,
                                  .limit = batch->limit };
}

int rp_retention_find_old(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                          struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    struct rp_old_query query = query_of(step->kind, batch);
    (void)arena;
    int r = rp_old_find(db, &query, out, err);
    batch->more = out->n == (size_t)batch->limit;
    if (out->n > 0) batch->cursor.by_age.after_id = out->at[out->n - 1];
    return r;
}

int rp_retention_let_go_old(const struct rp_retention_step *step, struct rp_tx *tx, struct rp_retention_batch *batch,
                            const struct rp_ids *ids, struct rp_error *err)
{
    struct rp_old_query query = query_of(step->kind, batch);
    return rp_old_remove(tx, &query, ids, &batch->gone, err);
}

/* And the locks of runs that nobody begins any more: of daemons that are gone. */
int rp_retention_let_go_runs(const struct rp_retention_step *step, struct rp_tx *tx, struct rp_retention_batch *batch,
                             const struct rp_ids *ids, struct rp_error *err)
{
    int r = rp_retention_let_go_old(step, tx, batch, ids, err);
    return r < 0 || batch->more ? r : rp_old_locks_remove(tx, batch->before_ms, err);
}
