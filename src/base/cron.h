/* SPDX-License-Identifier: Apache-2.0 */
/* cron.h - when a schedule fires next: five fields (minute hour day-of-month month day-of-week),
 * UTC. Each field: *, n, a-b, lists with commas, steps (a-b/n, *\/n); names jan..dec and sun..sat
 * in either case; 7 is Sunday. If both day fields are restricted (anything but a plain *), either
 * may match (as in POSIX cron). Pure: a function of text and moment. */
#ifndef RP_BASE_CRON_H
#define RP_BASE_CRON_H

#include <stdbool.h>
#include <stdint.h>

struct rp_error;

struct rp_cron {
    uint64_t minutes; /* bit n: minute n */
    uint32_t hours, days, months, weekdays;
    bool any_day, any_weekday;
};

int rp_cron_parse(const char *text, struct rp_cron *out, struct rp_error *err);
/* The first moment after `after_ms` (strictly) at which it fires; RP_EINVAL for one that never does
 * (30 February), or not before the end of 9999. */
int rp_cron_next(const struct rp_cron *cron, int64_t after_ms, int64_t *out_ms, struct rp_error *err);

#endif
