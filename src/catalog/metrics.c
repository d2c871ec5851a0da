/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/metrics.h"

#include "base/error.h"
#include "catalog/statements/statements.h"

static int count(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, int64_t *out,
                 struct rp_error *err)
{
    struct rp_one one = { .found = false };
    int r = rp_db_query(db, sql, args, rp_one_row, &one, err);
    if (r == 0) *out = one.i[0];
    return r;
}

int rp_count_overdue(struct rp_db *db, int64_t store_id, int64_t now_ms, int64_t most, int64_t *out,
                     struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(now_ms), rp_int(most) };
    int r = count(db, RP_SQL(metrics_overdue), args, out, err);
    return r < 0 ? rp_error_wrap(err, r, "count marks that are overdue") : 0;
}

int rp_count_dead(struct rp_db *db, int64_t most, int64_t *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(most) };
    int r = count(db, RP_SQL(metrics_dead), args, out, err);
    return r < 0 ? rp_error_wrap(err, r, "count dead letters") : 0;
}

struct nodes {
    rp_node_fn *fn;
    void *ctx;
};

static int node_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct nodes *nodes = ctx;
    return nodes->fn(nodes->ctx, row[0].p, row[1].i, err);
}

int rp_node_each(struct rp_db *db, int64_t limit, rp_node_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(limit) };
    struct nodes nodes = { .fn = fn, .ctx = ctx };
    int r = rp_db_query(db, RP_SQL(metrics_nodes), args, node_row, &nodes, err);
    return r < 0 ? rp_error_wrap(err, r, "list nodes") : 0;
}

struct ends {
    rp_run_end_fn *fn;
    void *ctx;
};

static int end_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct ends *ends = ctx;
    return ends->fn(ends->ctx, row[0].p, row[1].p, row[2].i, err);
}

int rp_run_each_end(struct rp_db *db, int64_t limit, rp_run_end_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(limit) };
    struct ends ends = { .fn = fn, .ctx = ctx };
    int r = rp_db_query(db, RP_SQL(metrics_runs), args, end_row, &ends, err);
    return r < 0 ? rp_error_wrap(err, r, "list runs") : 0;
}
