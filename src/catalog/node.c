/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/node.h"

#include "base/error.h"
#include "catalog/statements/statements.h"

int rp_node_seen(struct rp_tx *tx, const char *name, int64_t started_at_ms, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(tx->db_ms), rp_int(started_at_ms) };
    int r = rp_db_exec(tx->db, RP_SQL(node_seen), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "sign of life of node '%s'", name) : 0;
}

int rp_node_newest(struct rp_db *db, int64_t *seen_at_ms, struct rp_error *err)
{
    struct rp_one newest = { 0 };
    int r = rp_db_query(db, RP_SQL(node_newest), NULL, rp_one_row, &newest, err);
    if (r < 0) return rp_error_wrap(err, r, "look for nodes");
    *seen_at_ms = newest.i[0];
    return 0;
}

int rp_node_forget(struct rp_tx *tx, int64_t before_ms, struct rp_error *err)
{
    struct rp_value arg = rp_int(before_ms);
    int r = rp_db_exec(tx->db, RP_SQL(node_forget), &arg, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "forget old nodes") : 0;
}

int rp_schedule_last(struct rp_tx *tx, const char *name, int64_t *tick_at_ms, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(tx->db_ms) };
    struct rp_one tick = { 0 };
    int r = rp_db_exec(tx->db, RP_SQL(schedule_make), args, NULL, err);
    if (r == 0) r = rp_db_query(tx->db, RP_SQL(schedule_get), args, rp_one_row, &tick, err);
    if (r < 0) return rp_error_wrap(err, r, "schedule '%s'", name);
    *tick_at_ms = tick.i[0];
    return 0;
}

int rp_schedule_take(struct rp_tx *tx, const char *name, int64_t last_ms, int64_t tick_at_ms, bool *mine,
                     struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(last_ms), rp_int(tick_at_ms) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(schedule_take), args, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "schedule '%s'", name);
    *mine = changed > 0;
    return 0;
}
