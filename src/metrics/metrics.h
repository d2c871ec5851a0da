/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the figures of this process, as Prometheus reads them.
 *
 * P1  Counting costs no lock and never blocks. Every function that counts accepts NULL metrics.
 * P2  The number of labels is bounded; what is beyond has the label `other`.
 * P3  Figures of the catalog (marks, overdue, ...) are read when they are asked for. */
#ifndef RP_METRICS_METRICS_H
#define RP_METRICS_METRICS_H

#include "base/text/buf.h"
#include "catalog/catalog.h"
#include "core/purge/purge.h"

struct rp_metrics;

/* A call that requests are counted by. */
struct rp_metrics_route {
    const void *key; /* what rp_metrics_request is given */
    const char *method, *path;
};
/* The route number `i`; false: there are no more. */
typedef bool rp_metrics_route_fn(size_t i, struct rp_metrics_route *out);

int rp_metrics_new(rp_metrics_route_fn *routes, struct rp_metrics **out, struct rp_error *err);
void rp_metrics_free(struct rp_metrics *metrics);

/* `route`: the key of one, or NULL: none was found. */
void rp_metrics_request(struct rp_metrics *m, const void *route, int status, int64_t took_us);
void rp_metrics_round(struct rp_metrics *m, size_t commands); /* a group commit */
/* Purged, bytes freed, failures. */
void rp_metrics_batch(struct rp_metrics *m, const struct rp_purge_batch *batch);
void rp_metrics_abandoned(struct rp_metrics *m, const char *tenant, int64_t uploads, int64_t bytes);
/* `kind`: webhook, store, catalog, upload, ... */
void rp_metrics_failure(struct rp_metrics *m, const char *kind);
/* A call to a sink of events_out: delivered, failed, refused. */
void rp_metrics_delivery(struct rp_metrics *m, const char *sink, const char *outcome);
/* The sinks whose lag is written, with the names of their readers; before there are threads. `at`
 * outlives the metrics. */
struct rp_metrics_sink {
    const char *name, *reader;
};
struct rp_metrics_sinks {
    const struct rp_metrics_sink *at;
    size_t n;
    bool processor; /* there is one, and its dead jobs are counted */
};
void rp_metrics_watch_sinks(struct rp_metrics *m, const struct rp_metrics_sinks *sinks);
/* A bucket notification. */
void rp_metrics_event(struct rp_metrics *m, const char *store, const char *outcome);
/* What an outside service has answered; and whether it is left alone. */
void rp_metrics_confirmation(struct rp_metrics *m, const char *name, const char *outcome);
void rp_metrics_breaker(struct rp_metrics *m, const char *name, bool open);
/* It has ended so. */
void rp_metrics_run(struct rp_metrics *m, const struct rp_run *run, const char *outcome, int64_t finished_at_ms);

/* Everything, in the text format; figures of the catalog through `db`. If it cannot be read (or is
 * NULL), reprieve_catalog_up is 0 and its figures are missing; the rest is there. */
struct rp_store;
int rp_metrics_write(struct rp_metrics *m, struct rp_db *db, struct rp_store *const *stores, size_t n_stores,
                     int64_t now_ms, struct rp_buf *out, struct rp_error *err);
/* How much room there is on the disks; NULL: nothing. */
struct rp_rooms;
void rp_metrics_room(struct rp_rooms *rooms, struct rp_store *const *stores, size_t n, struct rp_buf *out);
/* When the scheduled runs ended last (run/scheduled.h), and how long is between them. Nothing if
 * the catalog cannot be read: rp_metrics_write says so. */
struct rp_config;
void rp_metrics_scheduled(const struct rp_metrics *m, struct rp_db *db, const struct rp_config *config, int64_t now_ms,
                          struct rp_buf *out);
/* One more gauge, whole. */
void rp_metric_gauge(struct rp_buf *out, const char *name, const char *help, double value);
/* What readiness was found to be last (health.h). NULL for NULL. */
struct rp_health *rp_metrics_health(struct rp_metrics *m);

#endif
