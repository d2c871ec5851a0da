/* SPDX-License-Identifier: Apache-2.0 */
/* dead.h - dead letters: marks that a person must decide on. */
#ifndef RP_CATALOG_DEAD_H
#define RP_CATALOG_DEAD_H

#include "catalog/mark/mark.h"

struct rp_dead {
    int64_t id, mark_id;
    enum rp_state from_state; /* where a retry goes back to */
    int64_t attempts;
    const char *error;
    int64_t died_at_ms;
};
typedef int rp_dead_fn(void *ctx, const struct rp_dead *dead, struct rp_error *err);

int rp_dead_add(struct rp_tx *tx, const struct rp_dead *letters, size_t n, struct rp_error *err);
/* The letter of each of these marks is closed: "retried" or "kept". */
int rp_dead_end(struct rp_tx *tx, const int64_t *mark_ids, size_t n, const char *as, const char *actor,
                struct rp_error *err);
int rp_dead_each(struct rp_db *db, int64_t after_id, int64_t limit, rp_dead_fn *fn, void *ctx, struct rp_error *err);
/* Those of them that died since then (0: all), and whose confirmation waits for this service (NULL or
 * "": all). */
int rp_dead_each_of(struct rp_db *db, int64_t after_id, int64_t limit, int64_t since_ms, const char *endpoint,
                    rp_dead_fn *fn, void *ctx, struct rp_error *err);
/* The tenants of these letters' marks; with ids NULL, of all open ones after `after_id`. */
int rp_dead_tenants(struct rp_tx *tx, const int64_t *ids, size_t n, int64_t after_id, rp_row_fn *fn, void *ctx,
                    struct rp_error *err);
/* The open letter of this mark, if there is one. */
int rp_dead_of_mark(struct rp_db *db, int64_t mark_id, rp_dead_fn *fn, void *ctx, struct rp_error *err);
/* RP_ENOTFOUND if there is no open letter of this id. */
int rp_dead_get(struct rp_db *db, int64_t id, rp_dead_fn *fn, void *ctx, struct rp_error *err);

#endif
