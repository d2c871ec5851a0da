/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/row.h"

#include "base/error.h"
#include "base/text/utf8.h"

#include <string.h>

const char *rp_row_keep(struct rp_arena *arena, const struct rp_value *v, bool *failed)
{
    if (v->type == RP_NULL_T) return NULL;
    const char *copy = rp_arena_copy(arena, v->p, v->n);
    if (copy == NULL) *failed = true;
    return copy;
}

struct rp_value rp_row_words(struct rp_arena *arena, const char *words)
{
    if (words == NULL || rp_utf8_valid(words, strlen(words))) return rp_text(words);
    char *clean = rp_arena_strdup(arena, words);
    if (clean == NULL) return rp_text("(no memory for these words)");
    rp_utf8_clean(clean);
    return rp_text(clean);
}

struct rp_value *rp_rows_of_ids(struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_error *err)
{
    struct rp_value *rows = rp_arena_array(arena, n + 1, sizeof *rows);
    if (rows == NULL) rp_error_set(err, RP_ENOMEM, "no memory for %zu ids", n);
    for (size_t i = 0; rows != NULL && i < n; i++)
        rows[i] = rp_int(ids[i]);
    return rows;
}

int rp_ignore_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)ctx, (void)row, (void)err;
    return 0;
}

int rp_ids_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_ids *ids = ctx;
    (void)err;
    ids->at[ids->n++] = row[0].i;
    return 0;
}
