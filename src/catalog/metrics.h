/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - figures of the catalog that are read for a look from outside. None costs in
 * proportion to what is stored. */
#ifndef RP_CATALOG_METRICS_H
#define RP_CATALOG_METRICS_H

#include "catalog/catalog.h"

/* Marks of a store that are past due and not in anybody's hands, counted up to `most`. */
int rp_count_overdue(struct rp_db *db, int64_t store_id, int64_t now_ms, int64_t most, int64_t *out,
                     struct rp_error *err);
/* Dead letters that wait for a person, counted up to `most`. */
int rp_count_dead(struct rp_db *db, int64_t most, int64_t *out, struct rp_error *err);

/* Nodes, the last seen first. */
typedef int rp_node_fn(void *ctx, const char *name, int64_t seen_at_ms, struct rp_error *err);
int rp_node_each(struct rp_db *db, int64_t limit, rp_node_fn *fn, void *ctx, struct rp_error *err);
/* The newest record of a run of each name. */
typedef int rp_run_end_fn(void *ctx, const char *kind, const char *name, int64_t finished_at_ms, struct rp_error *err);
int rp_run_each_end(struct rp_db *db, int64_t limit, rp_run_end_fn *fn, void *ctx, struct rp_error *err);

#endif
