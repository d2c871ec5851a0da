/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/row.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text/utf8.h"

#include <stdio.h>
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

#define LAST "\xF4\x8F\xBF\xBF" /* U+10FFFF: no character comes after it */
_Static_assert(RP_PREFIX_END_MAX == RP_KEY_MAX + sizeof LAST, "the last one fits");

const char *rp_key_prefix_end(const char *prefix, char out[RP_PREFIX_END_MAX])
{
    snprintf(out, RP_KEY_MAX + 1, "%s", prefix); /* no key begins with a longer one */
    size_t n = strlen(out);
    for (; n <= RP_KEY_MAX; n += sizeof LAST - 1)
        memcpy(out + n, LAST, sizeof LAST);
    return out;
}

struct rp_rows rp_rows_of(const struct rp_sql *sql, struct rp_arena *arena, size_t max)
{
    size_t columns = strlen(sql->rows);
    return (struct rp_rows){
        .sql = sql, .at = rp_arena_array(arena, max, columns * sizeof(struct rp_value)), .max = max, .columns = columns
    };
}

void rp_rows_add(struct rp_rows *rows, const struct rp_value *row, size_t columns)
{
    RP_ASSERT(columns == rows->columns && rows->n < rows->max);
    if (rows->at != NULL) memcpy(&rows->at[rows->n * columns], row, columns * sizeof *row);
    rows->n++;
}

struct rp_rows rp_rows_of_ids(const struct rp_sql *sql, struct rp_arena *arena, const int64_t *ids, size_t n)
{
    struct rp_rows rows = rp_rows_of(sql, arena, n);
    for (size_t i = 0; i < n; i++)
        rp_rows_add(&rows, RP_ROW(rp_int(ids[i])));
    return rows;
}

struct rp_rows rp_rows_of_texts(const struct rp_sql *sql, struct rp_arena *arena, const char *const *texts, size_t n)
{
    struct rp_rows rows = rp_rows_of(sql, arena, n);
    for (size_t i = 0; i < n; i++)
        rp_rows_add(&rows, RP_ROW(rp_text(texts[i])));
    return rows;
}

static int check_memory(const struct rp_rows *rows, struct rp_error *err)
{
    if (rows->n == 0 || rows->at != NULL) return 0;
    return rp_error_set(err, RP_ENOMEM, "no memory for %zu rows of %s", rows->n, rows->sql->name);
}

int rp_rows_exec(const struct rp_rows *rows, struct rp_db *db, const struct rp_value *args, int64_t *changed,
                 struct rp_error *err)
{
    int r = check_memory(rows, err);
    if (r == 0 && rows->n == 0 && changed != NULL) *changed = 0;
    return r < 0 || rows->n == 0 ? r : rp_db_exec_rows(db, rows->sql, args, rows->at, rows->n, changed, err);
}

int rp_rows_query(const struct rp_rows *rows, struct rp_db *db, const struct rp_value *args, rp_row_fn *fn, void *ctx,
                  struct rp_error *err)
{
    int r = check_memory(rows, err);
    return r < 0 || rows->n == 0 ? r : rp_db_query_rows(db, rows->sql, args, rows->at, rows->n, fn, ctx, err);
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
