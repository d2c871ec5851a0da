/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.h - ticks of cron lines, in UTC, each taken by one daemon of all (catalog/node.h).
 * K1  A tick that came while no daemon ran is made up for once, at the next look; several missed
 *     ones are one.
 * K2  A schedule that is new makes up for nothing. */
#ifndef RP_DAEMON_SCHEDULE_H
#define RP_DAEMON_SCHEDULE_H

#include "base/cron.h"
#include "catalog/catalog.h"
#include "daemon/watch/watch.h"

#include <stdbool.h>
#include <stdint.h>

/* Is a tick due that nobody has taken? Then it is ours (*mine). *next_ms: when to look again. By
 * the database's clock. */
int rp_schedule_due(struct rp_catalog *catalog, const char *name, const struct rp_cron *cron, bool *mine,
                    int64_t *next_ms, struct rp_error *err);
/* The same by a cron line, looked at by a watch. *next_tick_ms: 0 at first, and whenever the line may
 * be another. False: the tick is another daemon's, there is no schedule, or the catalog fails. */
bool rp_schedule_is_mine(struct rp_watch *watch, const char *name, const char *schedule, int64_t *next_tick_ms);

#endif
