/* SPDX-License-Identifier: Apache-2.0 */
/* scheduled.h - the runs that a daemon begins by cron lines, as the configuration says: what an
 * alert waits for when one did not happen. Each is judged by itself: one that goes on hides none
 * that does not. */
#ifndef RP_CORE_RUN_SCHEDULED_H
#define RP_CORE_RUN_SCHEDULED_H

#include "base/cron.h"
#include "config/config.h"

struct rp_db;
struct rp_error;

#define RP_SCHEDULED_MAX (RP_STORES_MAX + 3)

struct rp_scheduled {
    const char *kind, *name; /* of the run */
    struct rp_cron cron;
};
/* How many there are. A continuous sweep is none of them. */
size_t rp_scheduled_runs(const struct rp_config *config, struct rp_scheduled out[RP_SCHEDULED_MAX]);
/* When the last one of that kind and name ended; 0: none has. */
int rp_scheduled_last(struct rp_db *db, const struct rp_scheduled *run, int64_t *ended_ms, struct rp_error *err);

/* The longest time between two ticks in a row, looking some ticks ahead: what "did not run for" is
 * measured against. */
int64_t rp_schedule_interval_ms(const struct rp_cron *cron, int64_t now_ms);

#endif
