/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - how a row that is lent becomes one that stays, and how rows go into a statement. */
#ifndef RP_CATALOG_ROW_H
#define RP_CATALOG_ROW_H

#include "base/arena.h"
#include "base/key.h"
#include "db/db.h"

#include <stdbool.h>

/* A copy of a text or of bytes, or NULL for NULL. `failed` tells a copy that could not be made from
 * one that was not needed. */
const char *rp_row_keep(struct rp_arena *arena, const struct rp_value *v, bool *failed);

/* Words of ours or of somebody else's that may have been cut: as text that every engine takes. */
struct rp_value rp_row_words(struct rp_arena *arena, const char *words);

/* A text that begins with the prefix of a key or of a file's name, and no such text comes after it,
 * as bytes compare. */
#define RP_PREFIX_END_MAX (RP_KEY_MAX + 5) /* the last character may begin at the end of the longest key */
const char *rp_key_prefix_end(const char *prefix, char out[RP_PREFIX_END_MAX]);

/* The @ROWS of a statement, in the arena: begun with room for `max`, added, given to the statement.
 * What is begun without memory takes rows all the same; whoever executes it is told RP_ENOMEM. Of no
 * rows the database is not asked. */
struct rp_rows {
    const struct rp_sql *sql;
    struct rp_value *at;
    size_t n, max, columns;
};
struct rp_rows rp_rows_of(const struct rp_sql *sql, struct rp_arena *arena, size_t max);
/* A row of each. */
struct rp_rows rp_rows_of_ids(const struct rp_sql *sql, struct rp_arena *arena, const int64_t *ids, size_t n);
struct rp_rows rp_rows_of_texts(const struct rp_sql *sql, struct rp_arena *arena, const char *const *texts, size_t n);
/* As many values as the statement has columns of @ROWS: rp_rows_add(&rows, RP_ROW(rp_int(1), rp_text("a"))). */
void rp_rows_add(struct rp_rows *rows, const struct rp_value *row, size_t columns);
#define RP_ROW(...)                                                                                                    \
    (const struct rp_value[]){ __VA_ARGS__ }, sizeof((const struct rp_value[]){ __VA_ARGS__ }) / sizeof(struct rp_value)
/* `changed`: how many rows were; may be NULL. */
int rp_rows_exec(const struct rp_rows *rows, struct rp_db *db, const struct rp_value *args, int64_t *changed,
                 struct rp_error *err);
int rp_rows_query(const struct rp_rows *rows, struct rp_db *db, const struct rp_value *args, rp_row_fn *fn, void *ctx,
                  struct rp_error *err);

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
