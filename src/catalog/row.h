/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - how a row that is lent becomes one that stays, and how ids go into a statement and come
 * out of one. */
#ifndef RP_CATALOG_ROW_H
#define RP_CATALOG_ROW_H

#include "base/arena.h"
#include "db/db.h"

#include <stdbool.h>

/* A copy of a text or of bytes, or NULL for NULL. `failed` tells a copy that could not be made from
 * one that was not needed. */
const char *rp_row_keep(struct rp_arena *arena, const struct rp_value *v, bool *failed);

/* Words of ours or of somebody else's that may have been cut: as text that every engine takes. */
struct rp_value rp_row_words(struct rp_arena *arena, const char *words);

/* A row of each id, for @ROWS. NULL: no memory, and `err` says so. */
struct rp_value *rp_rows_of_ids(struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_error *err);

/* The row function of a statement whose rows nobody wants to see. */
rp_row_fn rp_ignore_row;

struct rp_ids {
    int64_t *at;
    size_t n;
};
/* The row function of a statement whose first column is an id: appends to a struct rp_ids, which
 * has room for all. */
rp_row_fn rp_ids_row;

#endif
