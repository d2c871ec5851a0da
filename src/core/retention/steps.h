/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - the two halves of each step, for the table of them. */
#ifndef RP_CORE_RETENTION_STEPS_H
#define RP_CORE_RETENTION_STEPS_H

#include "core/retention/retention.h"

typedef int rp_retention_find_fn(struct rp_db *db, struct rp_arena *arena, struct rp_retention_batch *batch,
                                 struct rp_ids *out, struct rp_error *err);
typedef int rp_retention_let_go_fn(struct rp_tx *tx, struct rp_retention_batch *batch, const struct rp_ids *ids,
                                   struct rp_error *err);

rp_retention_find_fn rp_retention_find_keys;
rp_retention_let_go_fn rp_retention_let_go_keys;
rp_retention_find_fn rp_retention_find_audit;
rp_retention_let_go_fn rp_retention_let_go_audit;
rp_retention_find_fn rp_retention_find_files;
rp_retention_let_go_fn rp_retention_let_go_files;
rp_retention_find_fn rp_retention_find_txns;
rp_retention_let_go_fn rp_retention_let_go_txns;
rp_retention_find_fn rp_retention_find_marks;
rp_retention_let_go_fn rp_retention_let_go_marks;
rp_retention_find_fn rp_retention_find_holds;
rp_retention_let_go_fn rp_retention_let_go_holds;
rp_retention_find_fn rp_retention_find_tokens;
rp_retention_let_go_fn rp_retention_let_go_tokens;
rp_retention_find_fn rp_retention_find_jobs;
rp_retention_let_go_fn rp_retention_let_go_jobs;
rp_retention_find_fn rp_retention_find_runs;
rp_retention_let_go_fn rp_retention_let_go_runs;

#endif
