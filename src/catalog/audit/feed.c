/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/audit/feed.h"

#include "base/error.h"
#include "catalog/statements/statements.h"

struct loading {
    struct rp_audit_head *out;
    size_t n, max;
};

static int cursor_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct loading *l = ctx;
    if (l->n == l->max) return rp_error_set(err, RP_ETOOBIG, "more than %zu lanes", l->max);
    l->out[l->n++] = (struct rp_audit_head){ .lane = row[0].i, .seq = row[1].i };
    return 0;
}

int rp_feed_cursor_load(struct rp_db *db, const char *reader, struct rp_audit_head *out, size_t max, size_t *n,
                        struct rp_error *err)
{
    struct rp_value name = rp_text(reader);
    struct loading loading = { .out = out, .max = max };
    int r = rp_db_query(db, RP_SQL(feed_cursor_load), &name, cursor_row, &loading, err);
    if (r < 0) return rp_error_wrap(err, r, "load the cursor of reader '%s'", reader);
    *n = loading.n;
    return 0;
}

int rp_feed_cursor_save(struct rp_tx *tx, const char *reader, const struct rp_audit_head *at, size_t n,
                        struct rp_error *err)
{
    struct rp_value name = rp_text(reader);
    struct rp_value *rows = rp_arena_array(tx->arena, 2 * n, sizeof *rows);
    if (rows == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the cursor of reader '%s'", reader);
    for (size_t i = 0; i < n; i++) {
        rows[2 * i] = rp_int(at[i].lane);
        rows[2 * i + 1] = rp_int(at[i].seq);
    }
    int r = rp_db_exec_rows(tx->db, RP_SQL(feed_cursor_save), &name, rows, n, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "save the cursor of reader '%s'", reader) : 0;
}
