/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted. */
#include "metrics/inner.h"

#include "base/error.h"
#include "base/time.h"
#include "core/state.h"
#include "metrics/health.h"

#include <stdlib.h>
#include <string.h>

#define FAMILY(name_, type_, help_, most_, divisor_, ...)                                                              \
    {                                                                                                                  \
        name_, help_, type_, { __VA_ARGS__ }, most_, divisor_                                                          \
    }
static const struct rp_family families[RP_METRICS_FAMILIES] = {
    [RP_METRICS_PURGED] = FAMILY("reprieve_purged_total", "counter", "Marks that ended in a purge, by how it ended.",
                                 512, 0, "store", "outcome"),
    [RP_METRICS_SUPERSEDED] =
        FAMILY("reprieve_superseded_total", "counter",
               "Marks that were reprieved when they were due, for a newer upload stood under the key.", 64, 0, "store"),
    [RP_METRICS_FREED] =
        FAMILY("reprieve_bytes_freed_total", "counter", "Bytes of objects that were erased.", 64, 0, "store"),
    [RP_METRICS_ABANDONED] = FAMILY("reprieve_uploads_abandoned_total", "counter",
                                    "Uploads that expired and were cleaned up.", 1000, 0, "tenant"),
    [RP_METRICS_REFUNDED] = FAMILY("reprieve_quota_refunded_bytes_total", "counter",
                                   "Bytes given back to quotas by uploads that expired.", 1000, 0, "tenant"),
    [RP_METRICS_FAILURES] = FAMILY("reprieve_failures_total", "counter", "Failures, by what failed.", 64, 0, "kind"),
    [RP_METRICS_RUNS] =
        FAMILY("reprieve_runs_total", "counter", "Runs that ended.", 1000, 0, "kind", "name", "outcome"),
    [RP_METRICS_RUNS_WITH_ERRORS] = FAMILY("reprieve_runs_with_errors_total", "counter",
                                           "Of these, runs that failed or had errors.", 1000, 0, "kind", "name"),
    [RP_METRICS_LAST_RUN] = FAMILY("reprieve_last_run_timestamp_seconds", "gauge",
                                   "When the last run of this name ended.", 512, 1000, "name"),
    [RP_METRICS_EVENTS] =
        FAMILY("reprieve_events_total", "counter", "Bucket notifications that came in.", 512, 0, "store", "outcome"),
    [RP_METRICS_DELIVERIES] =
        FAMILY("reprieve_sink_deliveries_total", "counter",
               "Calls to the webhooks of events_out: delivered, failed (it is tried again), refused (passed over).", 64,
               0, "sink", "outcome"),
    [RP_METRICS_CONFIRMATIONS] =
        FAMILY("reprieve_confirmations_total", "counter", "Answers of outside services to what they were asked.", 128,
               0, "name", "outcome"),
    [RP_METRICS_BREAKERS] =
        FAMILY("reprieve_confirmation_breaker_open", "gauge",
               "Whether a service is left alone by this process, because it failed.", 64, 0, "name"),
};

#define BOUNDS(list) .bounds = (list), .n = sizeof(list) / sizeof((list)[0])

static const int64_t durations_us[] = { 1000,   2500,   5000,   10000,   25000,   50000,
                                        100000, 250000, 500000, 1000000, 2500000, 10000000 };
static const int64_t batch_sizes[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 };
static const int64_t runs_ms[] = { 1000, 5000, 15000, 60000, 240000, 900000, 3600000, 14400000 };

static const struct rp_histogram_kind durations = { "reprieve_http_duration_seconds",
                                                    "From the request's first byte to its answer.",
                                                    BOUNDS(durations_us), .unit = 1e-6 };
static const struct rp_histogram_kind batches = { "reprieve_commit_batch_size", "Commands that one commit carried.",
                                                  BOUNDS(batch_sizes), .unit = 1 };
static const struct rp_histogram_kind runs = { "reprieve_run_duration_seconds", "How long runs took.", BOUNDS(runs_ms),
                                               .unit = 1e-3 };

const int rp_metrics_statuses[] = { 200, 201, 202, 204, 206, 207, 302, 303, 304, 400, 401, 403, 404, 405, 408,
                                    409, 410, 411, 412, 413, 415, 416, 422, 429, 431, 500, 501, 503, 507 };
const size_t rp_metrics_statuses_n = sizeof rp_metrics_statuses / sizeof rp_metrics_statuses[0];
_Static_assert(sizeof rp_metrics_statuses / sizeof rp_metrics_statuses[0] <= RP_STATUSES_MAX, "room for each");

/* ---- the whole ---- */

static int by_route(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct rp_route_counts *)a)->route.key;
    uintptr_t y = (uintptr_t)((const struct rp_route_counts *)b)->route.key;
    return (x > y) - (x < y);
}

static int init_routes(struct rp_metrics *m, rp_metrics_route_fn *routes)
{
    struct rp_metrics_route route;
    while (routes(m->n_routes, &route))
        m->n_routes++;
    m->routes = calloc(m->n_routes + 1, sizeof *m->routes);
    if (m->routes == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < m->n_routes; i++)
        (void)routes(i, &m->routes[i].route);
    qsort(m->routes, m->n_routes, sizeof *m->routes, by_route);
    return 0;
}

static int init(struct rp_metrics *m, rp_metrics_route_fn *routes)
{
    m->began_ms = rp_clock_now_ms(NULL);
    m->durations.kind = &durations;
    m->batches.kind = &batches;
    m->runs.kind = &runs;
    int r = init_routes(m, routes);
    for (size_t i = 0; r == 0 && i < RP_METRICS_FAMILIES; i++)
        r = rp_series_init(&m->families[i], &families[i]);
    if (r < 0) return r;
    m->health = rp_health_new();
    return m->health == NULL ? RP_ENOMEM : 0;
}

int rp_metrics_new(rp_metrics_route_fn *routes, struct rp_metrics **out, struct rp_error *err)
{
    struct rp_metrics *m = calloc(1, sizeof *m);
    if (m == NULL || init(m, routes) < 0) {
        rp_metrics_free(m);
        return rp_error_set(err, RP_ENOMEM, "metrics: out of memory");
    }
    *out = m;
    return 0;
}

void rp_metrics_free(struct rp_metrics *metrics)
{
    if (metrics == NULL) return;
    for (size_t i = 0; i < RP_METRICS_FAMILIES; i++)
        rp_series_done(&metrics->families[i]);
    rp_health_free(metrics->health);
    free(metrics->routes);
    free(metrics);
}

struct rp_health *rp_metrics_health(struct rp_metrics *m)
{
    return m == NULL ? NULL : m->health;
}

/* ---- counting ---- */

/* Without metrics nothing is counted. */
static void add(struct rp_metrics *m, enum rp_metrics_family family, int64_t n, const char *a, const char *b,
                const char *c)
{
    const char *const values[RP_SERIES_LABELS] = { a, b, c };
    if (m != NULL) rp_series_add(&m->families[family], values, n);
}

void rp_metrics_request(struct rp_metrics *m, const void *route, int status, int64_t took_us)
{
    if (m == NULL) return;
    struct rp_route_counts key = { .route.key = route };
    struct rp_route_counts *counts =
        route != NULL ? bsearch(&key, m->routes, m->n_routes, sizeof *m->routes, by_route) : NULL;
    size_t i = 0;
    if (counts == NULL) counts = &m->routes[m->n_routes];
    while (i < rp_metrics_statuses_n && rp_metrics_statuses[i] != status)
        i++;
    atomic_fetch_add_explicit(&counts->statuses[i < rp_metrics_statuses_n ? i : RP_STATUSES_MAX], 1,
                              memory_order_relaxed);
    rp_histogram_add(&m->durations, took_us);
}

void rp_metrics_round(struct rp_metrics *m, size_t commands)
{
    if (m != NULL) rp_histogram_add(&m->batches, (int64_t)commands);
}

/* A label that is typed in queries: already_gone. */
static const char *slug(const char *words, char *out, size_t size)
{
    size_t i = 0;
    for (; words[i] != '\0' && i + 1 < size; i++)
        out[i] = words[i] == ' ' ? '_' : words[i];
    out[i] = '\0';
    return out;
}

static void count_item(struct rp_metrics *m, const char *store, const struct rp_purge_item *item)
{
    const struct rp_move *move = &item->move;
    char outcome[32];
    if (item->status == RP_ITEM_KEPT || item->status == RP_ITEM_WAITS || move->mark == NULL) return;
    if (!move->done) {
        rp_metrics_failure(m, "lease"); /* it ended before the store was done: another worker has claimed the mark */
    } else if (item->status == RP_ITEM_RETURNED) {
        rp_metrics_failure(m, "return");
    } else if (move->to == RP_REPRIEVED) {
        add(m, RP_METRICS_SUPERSEDED, 1, store, NULL, NULL);
    } else if (move->to == RP_PURGED) {
        add(m, RP_METRICS_PURGED, 1, store, slug(rp_end_name(move->outcome), outcome, sizeof outcome), NULL);
        if (move->outcome == RP_END_ERASED) add(m, RP_METRICS_FREED, move->mark->size_bytes, store, NULL, NULL);
    } else {
        rp_metrics_failure(m, move->to == RP_DEAD ? "dead" : "purge");
    }
}

void rp_metrics_batch(struct rp_metrics *m, const struct rp_purge_batch *batch)
{
    for (size_t i = batch->from; i < batch->to; i++)
        count_item(m, batch->store->config->name, &batch->items[i]);
    if (batch->store_error.code < 0) rp_metrics_failure(m, "store");
    if (batch->check_error.code < 0) rp_metrics_failure(m, "guard");
}

void rp_metrics_abandoned(struct rp_metrics *m, const char *tenant, int64_t uploads, int64_t bytes)
{
    add(m, RP_METRICS_ABANDONED, uploads, tenant, NULL, NULL);
    add(m, RP_METRICS_REFUNDED, bytes, tenant, NULL, NULL);
}

void rp_metrics_failure(struct rp_metrics *m, const char *kind)
{
    add(m, RP_METRICS_FAILURES, 1, kind, NULL, NULL);
}

void rp_metrics_delivery(struct rp_metrics *m, const char *sink, const char *outcome)
{
    add(m, RP_METRICS_DELIVERIES, 1, sink, outcome, NULL);
}

void rp_metrics_watch_sinks(struct rp_metrics *m, const struct rp_metrics_sinks *sinks)
{
    if (m != NULL) m->sinks = *sinks;
}

void rp_metrics_event(struct rp_metrics *m, const char *store, const char *outcome)
{
    add(m, RP_METRICS_EVENTS, 1, store, outcome, NULL);
}

void rp_metrics_confirmation(struct rp_metrics *m, const char *name, const char *outcome)
{
    add(m, RP_METRICS_CONFIRMATIONS, 1, name, outcome, NULL);
}

void rp_metrics_breaker(struct rp_metrics *m, const char *name, bool open)
{
    const char *const values[RP_SERIES_LABELS] = { name };
    if (m != NULL)
        atomic_store_explicit(rp_series_of(&m->families[RP_METRICS_BREAKERS], values), open, memory_order_relaxed);
}

void rp_metrics_run(struct rp_metrics *m, const struct rp_run *run, const char *outcome, int64_t finished_at_ms)
{
    if (m == NULL) return;
    const char *const last[RP_SERIES_LABELS] = { run->name };
    bool errors = run->figures.n_errors > 0 || strcmp(outcome, "failed") == 0;
    add(m, RP_METRICS_RUNS, 1, run->kind, run->name, outcome);
    add(m, RP_METRICS_RUNS_WITH_ERRORS, errors, run->kind, run->name, NULL);
    rp_histogram_add(&m->runs, finished_at_ms - run->started_at_ms);
    rp_series_raise(&m->families[RP_METRICS_LAST_RUN], last, finished_at_ms);
}
