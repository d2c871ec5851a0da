/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/schedule.h"

#include "base/error.h"
#include "catalog/node.h"

struct look {
    const char *name;
    const struct rp_cron *cron;
    bool mine;
    int64_t next_ms;
};

/* What is noted is the moment of the look, not the tick: whatever was missed until then counts as
 * made up for. */
static int look_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct look *look = ctx;
    int64_t last_ms;
    look->mine = false;
    int r = rp_schedule_last(tx, look->name, &last_ms, err);
    if (r == 0) r = rp_cron_next(look->cron, last_ms, &look->next_ms, err);
    if (r < 0 || look->next_ms > tx->db_ms) return r;
    r = rp_schedule_take(tx, look->name, last_ms, tx->db_ms, &look->mine, err);
    return r < 0 ? r : rp_cron_next(look->cron, tx->db_ms, &look->next_ms, err);
}

int rp_schedule_due(struct rp_catalog *catalog, const char *name, const struct rp_cron *cron, bool *mine,
                    int64_t *next_ms, struct rp_error *err)
{
    struct look look = { .name = name, .cron = cron };
    int r = rp_catalog_transact(catalog, look_tx, &look, err);
    if (r < 0) return r;
    *mine = look.mine;
    *next_ms = look.next_ms;
    return 0;
}

bool rp_schedule_is_mine(struct rp_watch *watch, const char *name, const char *schedule, int64_t *next_tick_ms)
{
    struct rp_cron cron;
    struct rp_error why = { 0 };
    bool mine = false;
    if (rp_session_now_ms(&watch->session) < *next_tick_ms || rp_cron_parse(schedule, &cron, &why) < 0) return false;
    int r = rp_schedule_due(watch->session.catalog, name, &cron, &mine, next_tick_ms, &why);
    if (r < 0) rp_metrics_failure(watch->options.metrics, "catalog");
    return r == 0 && mine;
}
