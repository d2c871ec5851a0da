/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what metrics.c counts and write.c writes. */
#ifndef RP_METRICS_INNER_H
#define RP_METRICS_INNER_H

#include "metrics/metrics.h"
#include "metrics/series.h"

#define RP_STATUSES_MAX 40

enum rp_metrics_family {
    RP_METRICS_PURGED,
    RP_METRICS_SUPERSEDED,
    RP_METRICS_FREED,
    RP_METRICS_ABANDONED,
    RP_METRICS_REFUNDED,
    RP_METRICS_FAILURES,
    RP_METRICS_RUNS,
    RP_METRICS_RUNS_WITH_ERRORS,
    RP_METRICS_LAST_RUN,
    RP_METRICS_EVENTS,
    RP_METRICS_DELIVERIES,
    RP_METRICS_CONFIRMATIONS,
    RP_METRICS_BREAKERS,
    RP_METRICS_FAMILIES
};

/* How often each status was answered on one route; the last is of the statuses that are not in the
 * list. */
struct rp_route_counts {
    struct rp_metrics_route route; /* key NULL: no route was found */
    _Atomic uint64_t statuses[RP_STATUSES_MAX + 1];
};

struct rp_metrics {
    struct rp_series_set families[RP_METRICS_FAMILIES];
    struct rp_histogram durations, batches, runs;
    struct rp_route_counts *routes; /* in order of the key, then one without route */
    size_t n_routes;                /* without that one */
    int64_t began_ms;
    struct rp_metrics_sinks sinks;
    struct rp_health *health;
};

extern const int rp_metrics_statuses[];
extern const size_t rp_metrics_statuses_n;

#endif
