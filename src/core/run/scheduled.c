/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/scheduled.h"

#include "catalog/alert.h"
#include "core/retention/retention.h"
#include "core/run/run.h"
#include "core/safety_net/safety_net.h"

#define TICKS_LOOKED_AT 200

static void add(const char *kind, const char *name, const char *line, struct rp_scheduled *out, size_t *n)
{
    if (line == NULL || rp_cron_parse(line, &out[*n].cron, NULL) < 0) return; /* "continuous", "" */
    out[*n].kind = kind;
    out[*n].name = name;
    (*n)++;
}

size_t rp_scheduled_runs(const struct rp_config *config, struct rp_scheduled out[RP_SCHEDULED_MAX])
{
    size_t n = 0;
    add(RP_RUN_SWEEP, "all", config->sweep_schedule, out, &n);
    add(RP_RUN_RETENTION, RP_RETENTION_NAME, RP_RETENTION_SCHEDULE, out, &n);
    add(RP_RUN_SAFETY_NET, RP_NET_NAME, config->safety_net_schedule, out, &n);
    for (size_t i = 0; i < config->n_stores; i++)
        add(RP_RUN_IMPORT, config->stores[i].name, config->stores[i].import_schedule, out, &n);
    return n;
}

int rp_scheduled_last(struct rp_db *db, const struct rp_scheduled *run, int64_t *ended_ms, struct rp_error *err)
{
    return rp_figure_last_run_of(db, run->kind, run->name, ended_ms, err);
}

int64_t rp_schedule_interval_ms(const struct rp_cron *cron, int64_t now_ms)
{
    int64_t longest = 0, at = now_ms, next;
    for (int i = 0; i < TICKS_LOOKED_AT && rp_cron_next(cron, at, &next, NULL) == 0; i++) {
        if (i > 0 && next - at > longest) longest = next - at;
        at = next;
    }
    return longest;
}
