/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the figures of this process, as Prometheus reads them. Counters are atomic and cost no lock; gauges of the catalog
 * (marks, overdue, dead letters, ...) are read when they are asked for. Numbers of labels are bounded: beyond, `other`. */
#ifndef RP_METRICS_METRICS_H
#define RP_METRICS_METRICS_H

#include "base/buf.h"
#include "catalog/catalog.h"
#include "core/purge/purge.h"

struct rp_route;
struct rp_metrics;

int rp_metrics_new(struct rp_metrics **out, struct rp_error *err);
void rp_metrics_free(struct rp_metrics *metrics);

/* Each accepts a NULL metrics. */
void rp_metrics_request(struct rp_metrics *m, const struct rp_route *route, int status,
                        int64_t took_us);                                        /* route NULL: none */
void rp_metrics_round(struct rp_metrics *m, size_t commands);                    /* a group commit */
void rp_metrics_batch(struct rp_metrics *m, const struct rp_purge_batch *batch); /* purged, bytes freed, failures */
void rp_metrics_abandoned(struct rp_metrics *m, const char *tenant, int64_t uploads, int64_t bytes);
void rp_metrics_failure(struct rp_metrics *m, const char *kind); /* webhook, store, catalog, upload, ... */
void rp_metrics_event(struct rp_metrics *m, const char *store, const char *outcome); /* a bucket notification */
void rp_metrics_run(struct rp_metrics *m, const char *kind, const char *name, const char *outcome, int64_t took_ms,
                    int64_t finished_at_ms);

/* Everything, in the text format; gauges of the catalog through `db`. A catalog that cannot be read (or NULL) is said as
 * reprieve_catalog_up 0: its gauges are missing then, the rest is there. */
struct rp_store;
int rp_metrics_write(struct rp_metrics *m, struct rp_db *db, struct rp_store *const *stores, size_t n_stores,
                     int64_t now_ms, struct rp_buf *out, struct rp_error *err);
/* One more gauge, whole. */
void rp_metric_gauge(struct rp_buf *out, const char *name, const char *help, double value);
/* What readiness was found to be last (health.h). NULL for NULL. */
struct rp_health *rp_metrics_health(struct rp_metrics *m);

#endif
