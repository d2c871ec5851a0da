/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - how a row that is lent becomes one that stays. */
#ifndef RP_CATALOG_ROW_H
#define RP_CATALOG_ROW_H

#include "base/arena.h"
#include "db/db.h"

#include <stdbool.h>

/* A copy of a text or of bytes, or NULL for NULL. `failed` tells a copy that could not be made from one that was not needed. */
static inline const char *rp_row_keep(struct rp_arena *arena, const struct rp_value *v, bool *failed)
{
    if (v->type == RP_NULL_T) return NULL;
    const char *copy = rp_arena_copy(arena, v->p, v->n);
    if (copy == NULL) *failed = true;
    return copy;
}

#endif
