/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.h - the daemon's watch: looks at the figures every ten seconds, raises and clears conditions (core/alert.h), and tells the webhook.
 *
 * V1  Over all daemons a condition is raised once and cleared once (catalog/alert.h), each with its audit row, alert.raised or alert.cleared.
 * V2  The webhook is told once of each; a call that failed is repeated, later each time up to an hour, by whichever daemon is there. A
 *     condition that was over before anybody could be told is told once, as cleared.
 * V3  A figure that cannot be read changes nothing. */
#ifndef RP_DAEMON_ALERTS_H
#define RP_DAEMON_ALERTS_H

#include "lib/session.h"
#include "metrics/metrics.h"

struct rp_writers;
struct rp_watch;

struct rp_watch_options {
    const struct rp_session *session; /* outlives the watch */
    struct rp_writers *writers;       /* may be NULL */
    struct rp_metrics *metrics;       /* may be NULL */
    const char *node;
    int lane;
    int64_t every_ms; /* 0: 10 s */
};

int rp_watch_start(const struct rp_watch_options *options, struct rp_watch **out, struct rp_error *err);
void rp_watch_stop(struct rp_watch *watch); /* NULL is fine */
/* Settings changed. `config` outlives the watch. Any thread. */
void rp_watch_configure(struct rp_watch *watch, const struct rp_config *config);

#endif
