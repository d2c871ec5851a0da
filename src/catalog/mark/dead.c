/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/mark/dead.h"

#include "base/error.h"
#include "base/id.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

int rp_dead_add(struct rp_tx *tx, const struct rp_dead *letters, size_t n, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(dead_add), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_dead *d = &letters[i];
        rp_rows_add(&rows, RP_ROW(rp_int(d->id), rp_int(d->mark_id), rp_int(d->from_state), rp_int(d->attempts),
                                  rp_row_words(tx->arena, d->error), rp_int(d->died_at_ms)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "add dead letters") : 0;
}

int rp_dead_end(struct rp_tx *tx, const int64_t *mark_ids, size_t n, const char *as, const char *actor,
                struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(dead_end), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        rp_rows_add(&rows, RP_ROW(rp_int(mark_ids[i]), rp_int(tx->late_ms), rp_text(as), rp_text(actor)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "close dead letters") : 0;
}

struct each {
    rp_dead_fn *fn;
    void *ctx;
    bool found;
};

static int dead_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct each *each = ctx;
    struct rp_dead dead = { .id = v[0].i,
                            .mark_id = v[1].i,
                            .from_state = (enum rp_state)v[2].i,
                            .attempts = v[3].i,
                            .error = v[4].p,
                            .died_at_ms = v[5].i };
    each->found = true;
    return each->fn(each->ctx, &dead, err);
}

int rp_dead_each(struct rp_db *db, int64_t after_id, int64_t limit, rp_dead_fn *fn, void *ctx, struct rp_error *err)
{
    return rp_dead_each_of(db, after_id, limit, 0, NULL, fn, ctx, err);
}

int rp_dead_each_of(struct rp_db *db, int64_t after_id, int64_t limit, int64_t since_ms, const char *endpoint,
                    rp_dead_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(after_id), rp_int(limit), rp_int(since_ms),
                               rp_text(endpoint != NULL ? endpoint : "") };
    struct each each = { .fn = fn, .ctx = ctx };
    return rp_db_query(db, RP_SQL(dead_list), args, dead_row, &each, err);
}

int rp_dead_of_mark(struct rp_db *db, int64_t mark_id, rp_dead_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_int(mark_id);
    struct each each = { .fn = fn, .ctx = ctx };
    return rp_db_query(db, RP_SQL(dead_of_mark), &arg, dead_row, &each, err);
}

int rp_dead_get(struct rp_db *db, int64_t id, rp_dead_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    struct each each = { .fn = fn, .ctx = ctx };
    char text[RP_ID_TEXT];
    int r = rp_db_query(db, RP_SQL(dead_get), &arg, dead_row, &each, err);
    if (r < 0 || each.found) return r;
    return rp_error_set(err, RP_ENOTFOUND, "no dead letter %s", rp_id_format(RP_ID_DEAD, id, text));
}

int rp_dead_tenants(struct rp_tx *tx, const int64_t *ids, size_t n, int64_t after_id, rp_row_fn *fn, void *ctx,
                    struct rp_error *err)
{
    struct rp_value after = rp_int(after_id);
    if (ids == NULL) return rp_db_query(tx->db, RP_SQL(dead_tenants), &after, fn, ctx, err);
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(dead_tenant), tx->arena, ids, n);
    return rp_rows_query(&rows, tx->db, NULL, fn, ctx, err);
}
