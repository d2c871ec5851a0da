/* SPDX-License-Identifier: Apache-2.0 */
/* What Prometheus reads. */
#include "metrics/inner.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/time.h"
#include "catalog/alert.h"
#include "catalog/audit/feed.h"
#include "catalog/clock.h"
#include "catalog/file/process.h"
#include "catalog/metrics.h"
#include "core/guarantee.h"
#include "core/owner/raise.h"
#include "core/room.h"
#include "core/run/scheduled.h"
#include "core/state.h"
#include "db/db.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT_MOST 1000000
#define NODES_MOST 1000
#define RUNS_MOST  1000

/* ---- of this process ---- */

void rp_metric_gauge(struct rp_buf *out, const char *name, const char *help, double value)
{
    rp_metric_head(out, name, "gauge", help);
    rp_buf_fmt(out, "%s %.15g\n", name, value);
}

static void write_database(struct rp_buf *out)
{
    struct rp_db_figures f = rp_db_figures();
    rp_metric_gauge(out, "reprieve_database_connections",
                    "Sessions that this daemon has open with PostgreSQL: the catalog and your databases.",
                    (double)f.sessions);
    rp_metric_head(out, "reprieve_database_deadlocks_total", "counter",
                   "Deadlocks that PostgreSQL ended by failing a transaction of this daemon; it was tried again.");
    rp_buf_fmt(out, "reprieve_database_deadlocks_total %lld\n", (long long)f.deadlocks);
}

/* name{label="value" */
static void begin_line(struct rp_buf *out, const char *name_and_label, const char *value)
{
    rp_buf_fmt(out, "%s=\"", name_and_label);
    rp_metric_label(out, value);
    rp_buf_char(out, '"');
}

static void write_route(const struct rp_route_counts *counts, struct rp_buf *out)
{
    for (size_t i = 0; i <= RP_STATUSES_MAX; i++) {
        uint64_t n = atomic_load_explicit(&counts->statuses[i], memory_order_relaxed);
        if (n == 0) continue;
        rp_buf_str(out, "reprieve_http_requests_total{route=\"");
        if (counts->route.key != NULL)
            rp_buf_fmt(out, "%s %s", counts->route.method, counts->route.path);
        else
            rp_buf_str(out, "none");
        if (i < RP_STATUSES_MAX)
            rp_buf_fmt(out, "\",status=\"%d\"} %llu\n", rp_metrics_statuses[i], (unsigned long long)n);
        else
            rp_buf_fmt(out, "\",status=\"other\"} %llu\n", (unsigned long long)n);
    }
}

static void write_requests(struct rp_metrics *m, struct rp_buf *out)
{
    rp_metric_head(out, "reprieve_http_requests_total", "counter", "Requests that were answered.");
    for (size_t i = 0; i <= m->n_routes; i++)
        write_route(&m->routes[i], out);
}

static double resident_bytes(void)
{
    char line[128] = "", *resident = line;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) return 0;
    /* The first is the address space. */
    if (fgets(line, sizeof line, f) != NULL) (void)strtoll(line, &resident, 10);
    fclose(f);
    return (double)strtoll(resident, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

static double open_files(void)
{
    double n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) return 0;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 3; /* ".", ".." and the look itself */
}

static void write_process(struct rp_metrics *m, struct rp_buf *out)
{
    rp_metric_head(out, "reprieve_build_info", "gauge", "The program's version, as a label.");
    rp_buf_fmt(out, "reprieve_build_info{version=\"%s\"} 1\n", REPRIEVE_VERSION);
    rp_metric_gauge(out, "process_resident_memory_bytes", "Resident memory.", resident_bytes());
    rp_metric_gauge(out, "process_open_fds", "Open file descriptors.", open_files());
    rp_metric_gauge(out, "process_start_time_seconds", "When the process began.", (double)m->began_ms / 1000);
}

static void write_guarantees(struct rp_store *const *stores, size_t n, struct rp_buf *out)
{
    rp_metric_head(out, "reprieve_store_guarantee", "gauge",
                   "How exactly a delete in this store can name what it deletes, as probed: the level is a label.");
    for (size_t i = 0; i < n; i++) {
        if (stores[i]->backend == NULL) continue;
        begin_line(out, "reprieve_store_guarantee{store", stores[i]->config->name);
        rp_buf_fmt(out, ",level=\"%s\"} 1\n", rp_level_name(rp_store_level(stores[i])));
    }
}

/* As this process last found it; a store that nobody has looked at, or that is only observed, has
 * no line. */
static void write_owners(struct rp_store *const *stores, size_t n, int64_t now_ms, struct rp_buf *out)
{
    struct rp_raise_state state;
    rp_metric_head(out, "reprieve_store_ours", "gauge",
                   "Whether the owner record names this catalog, where it was. 0: nothing of the store is purged.");
    for (size_t i = 0; i < n; i++) {
        rp_raise_state(stores[i], &state);
        if (!state.known) continue;
        begin_line(out, "reprieve_store_ours{store", stores[i]->config->name);
        rp_buf_fmt(out, "} %d\n", !rp_raise_is_lost(&state));
    }
    rp_metric_head(
        out, "reprieve_raise_owed_seconds", "gauge",
        "How long a raise of the owner's epoch is owed: until it is made, a catalog put back from a backup may "
        "go unnoticed.");
    for (size_t i = 0; i < n; i++) {
        rp_raise_state(stores[i], &state);
        if (!state.known && state.owed_since_ms == 0) continue;
        int64_t owed_ms = state.owed_since_ms != 0 && now_ms > state.owed_since_ms ? now_ms - state.owed_since_ms : 0;
        begin_line(out, "reprieve_raise_owed_seconds{store", stores[i]->config->name);
        rp_buf_fmt(out, "} %.15g\n", (double)owed_ms / 1000);
    }
}

/* As they were last asked; a store without an answer has no line. */
static void write_clocks(struct rp_store *const *stores, size_t n, struct rp_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        int64_t ahead_ms = rp_guarantee_clock_ahead_ms(stores[i]);
        if (ahead_ms == RP_CLOCK_UNKNOWN) continue;
        begin_line(out, "reprieve_clocks_apart_seconds{clock=\"store\",store", stores[i]->config->name);
        rp_buf_fmt(out, "} %.15g\n", (double)llabs(ahead_ms) / 1000);
    }
}

/* `of` is the catalog, or a store. One whose disk was not asked has no line. */
static void write_room(struct rp_rooms *rooms, struct rp_store *const *stores, size_t n, bool full, struct rp_buf *out)
{
    for (size_t i = 0; i <= n; i++) {
        struct rp_rooms_place seen = rp_rooms_seen(rooms, i < n ? i : RP_ROOM_CATALOG);
        if (!seen.known || (!full && seen.room.reserve_bytes == 0)) continue;
        rp_buf_str(out, full ? "reprieve_disk_full{of=\"" : "reprieve_disk_free_bytes{of=\"");
        rp_buf_str(out, i < n ? "store " : "catalog");
        if (i < n) rp_metric_label(out, stores[i]->config->name);
        rp_buf_fmt(out, "\"} %lld\n", full ? (long long)seen.full : (long long)seen.room.free_bytes);
    }
}

void rp_metrics_room(struct rp_rooms *rooms, struct rp_store *const *stores, size_t n, struct rp_buf *out)
{
    rp_metric_head(out, "reprieve_disk_full", "gauge",
                   "1: there is no space left. What is new is refused; deletes, restores and sweeps go on.");
    write_room(rooms, stores, n, true, out);
    rp_metric_head(out, "reprieve_disk_free_bytes", "gauge",
                   "Room on the disk of a SQLite catalog or a directory, without the reserve.");
    write_room(rooms, stores, n, false, out);
}

/* ---- scheduled runs ---- */

static void begin_scheduled(struct rp_buf *out, const char *name, const struct rp_scheduled *run)
{
    rp_buf_fmt(out, "%s{kind=\"%s\",name=\"", name, run->kind);
    rp_metric_label(out, run->name);
    rp_buf_str(out, "\"} ");
}

/* One that never ended is waited for since this process began. */
void rp_metrics_scheduled(const struct rp_metrics *m, struct rp_db *db, const struct rp_config *config, int64_t now_ms,
                          struct rp_buf *out)
{
    struct rp_scheduled runs[RP_SCHEDULED_MAX];
    int64_t last_ms[RP_SCHEDULED_MAX] = { 0 };
    size_t n = rp_scheduled_runs(config, runs);
    for (size_t i = 0; i < n; i++) {
        struct rp_error ignored = { 0 };
        if (db == NULL || rp_scheduled_last(db, &runs[i], &last_ms[i], &ignored) < 0) return;
        if (last_ms[i] == 0) last_ms[i] = m->began_ms;
    }
    rp_metric_head(out, "reprieve_scheduled_run_timestamp_seconds", "gauge",
                   "When the last run of this schedule ended; before the first one, when this process began.");
    for (size_t i = 0; i < n; i++) {
        begin_scheduled(out, "reprieve_scheduled_run_timestamp_seconds", &runs[i]);
        rp_buf_fmt(out, "%.3f\n", (double)last_ms[i] / 1000);
    }
    rp_metric_head(out, "reprieve_scheduled_run_interval_seconds", "gauge",
                   "The longest time between two ticks of this schedule.");
    for (size_t i = 0; i < n; i++) {
        begin_scheduled(out, "reprieve_scheduled_run_interval_seconds", &runs[i]);
        rp_buf_fmt(out, "%lld\n", (long long)(rp_schedule_interval_ms(&runs[i].cron, now_ms) / 1000));
    }
}

/* ---- of the catalog ---- */

struct gauges {
    int64_t marks[RP_STATES], bytes[RP_STATES];
    int64_t overdue, oldest_due_ms, dead;
    int64_t now_ms, db_ms, jump_ms, dead_jobs;
    struct rp_buf nodes, running, locks, clocks, lag_events, lag_seconds;
    struct rp_metrics *m;
};

static void gauges_init(struct gauges *g, struct rp_metrics *m, int64_t now_ms)
{
    *g = (struct gauges){ .m = m,
                          .now_ms = now_ms,
                          .nodes = RP_BUF((size_t)1 << 20),
                          .running = RP_BUF((size_t)1 << 18),
                          .locks = RP_BUF((size_t)1 << 18),
                          .lag_events = RP_BUF((size_t)1 << 14),
                          .lag_seconds = RP_BUF((size_t)1 << 14),
                          .clocks = RP_BUF((size_t)1 << 18) };
}

static void gauges_done(struct gauges *g)
{
    struct rp_buf *const all[] = { &g->nodes, &g->running, &g->locks, &g->lag_events, &g->lag_seconds, &g->clocks };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        rp_buf_done(all[i]);
}

static int add_tally(void *ctx, const struct rp_tally_row *row, struct rp_error *err)
{
    struct gauges *g = ctx;
    (void)err;
    if (row->state <= 0 || row->state >= RP_STATES) return 0;
    g->marks[row->state] += row->marks;
    g->bytes[row->state] += row->bytes;
    return 0;
}

static int read_overdue(struct rp_db *db, struct rp_store *const *stores, size_t n, int64_t now_ms, struct gauges *g,
                        struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        int64_t overdue = 0, oldest_ms = 0;
        if (stores[i]->config->mode == RP_MODE_OBSERVE)
            continue; /* it is not purged, and its marks are nobody's fault */
        r = rp_count_overdue(db, stores[i]->id, now_ms, COUNT_MOST, &overdue, err);
        if (r == 0) r = rp_figure_oldest_due(db, stores[i]->id, now_ms, &oldest_ms, err);
        g->overdue += overdue;
        if (oldest_ms != 0 && (g->oldest_due_ms == 0 || oldest_ms < g->oldest_due_ms)) g->oldest_due_ms = oldest_ms;
    }
    return r;
}

static int node_seen(void *ctx, const char *name, int64_t seen_at_ms, struct rp_error *err)
{
    struct gauges *g = ctx;
    (void)err;
    begin_line(&g->nodes, "reprieve_worker_last_seen_timestamp_seconds{node", name);
    rp_buf_fmt(&g->nodes, "} %.3f\n", (double)seen_at_ms / 1000);
    return 0;
}

/* A lock is held by a run under way, whose id says when it began. */
static int lock_held(void *ctx, const struct rp_held_lock *lock, struct rp_error *err)
{
    struct gauges *g = ctx;
    (void)err;
    begin_line(&g->running, "reprieve_run_running_seconds{name", lock->name);
    rp_buf_fmt(&g->running, "} %.3f\n", (double)(g->now_ms - rp_id_time_ms(lock->run_id)) / 1000);
    begin_line(&g->locks, "reprieve_run_lock_age_seconds{name", lock->name);
    rp_buf_fmt(&g->locks, "} %.3f\n", (double)(g->db_ms - lock->locked_at_ms) / 1000);
    return 0;
}

/* Also the runs of others, and those before this process began. */
static int run_ended(void *ctx, const char *kind, const char *name, int64_t finished_at_ms, struct rp_error *err)
{
    struct gauges *g = ctx;
    const char *const values[RP_SERIES_LABELS] = { name };
    (void)kind;
    (void)err;
    rp_series_raise(&g->m->families[RP_METRICS_LAST_RUN], values, finished_at_ms);
    return 0;
}

static int read_sinks(struct rp_db *db, struct gauges *g, struct rp_error *err)
{
    const struct rp_metrics_sinks *sinks = &g->m->sinks;
    int r = sinks->processor ? rp_process_count_dead(db, COUNT_MOST, &g->dead_jobs, err) : 0;
    for (size_t i = 0; r == 0 && i < sinks->n; i++) {
        struct rp_feed_lag lag;
        r = rp_feed_lag(db, sinks->at[i].reader, &lag, err);
        if (r < 0 || !lag.begun) continue;
        int64_t age_ms = lag.oldest_at_ms != 0 && g->now_ms > lag.oldest_at_ms ? g->now_ms - lag.oldest_at_ms : 0;
        begin_line(&g->lag_events, "reprieve_sink_lag_events{sink", sinks->at[i].name);
        rp_buf_fmt(&g->lag_events, "} %lld\n", (long long)lag.rows);
        begin_line(&g->lag_seconds, "reprieve_sink_lag_seconds{sink", sinks->at[i].name);
        rp_buf_fmt(&g->lag_seconds, "} %.3f\n", (double)age_ms / 1000);
    }
    return r;
}

static int read_gauges(struct rp_db *db, struct rp_store *const *stores, size_t n, int64_t now_ms, struct gauges *g,
                       struct rp_error *err)
{
    char jumped[64];
    if (db == NULL) return rp_error_set(err, RP_EUNAVAILABLE, "no catalog");
    int r = rp_tally_each(db, add_tally, g, err);
    if (r == 0) r = read_overdue(db, stores, n, now_ms, g, err);
    if (r == 0) r = rp_count_dead(db, COUNT_MOST, &g->dead, err);
    if (r == 0) r = rp_node_each(db, NODES_MOST, node_seen, g, err);
    if (r == 0) r = rp_run_each_end(db, RUNS_MOST, run_ended, g, err);
    if (r == 0) r = rp_db_now_ms(db, &g->db_ms, err);
    if (r == 0) r = rp_clock_worst(db, now_ms, &g->jump_ms, jumped, err);
    /* the database's clock is the host's, and jumped with it */
    if (rp_clock_has_jumped(g->jump_ms) && rp_clock_has_jumped(g->db_ms - now_ms)) g->db_ms = now_ms;
    if (r == 0) r = rp_lock_each_held(db, NULL, lock_held, g, err);
    return r < 0 ? r : read_sinks(db, g, err);
}

static void write_sinks(const struct gauges *g, struct rp_buf *out)
{
    if (g->m->sinks.processor)
        rp_metric_gauge(out, "reprieve_processor_dead_jobs",
                        "Uploads that the processor could not be told of: they stay scanning.", (double)g->dead_jobs);
    if (g->m->sinks.n == 0) return;
    rp_metric_head(out, "reprieve_sink_lag_events", "gauge",
                   "Rows of the audit log that a sink of events_out has before it; up to ten seconds' of those that it "
                   "does not want are among them.");
    rp_buf_str(out, rp_buf_text(&g->lag_events));
    rp_metric_head(out, "reprieve_sink_lag_seconds", "gauge", "How old the oldest of them is.");
    rp_buf_str(out, rp_buf_text(&g->lag_seconds));
}

static void write_gauges(const struct gauges *g, int64_t now_ms, struct rp_buf *out)
{
    rp_metric_head(out, "reprieve_marks", "gauge", "Marks in each state.");
    for (int i = 1; i < RP_STATES; i++)
        rp_buf_fmt(out, "reprieve_marks{state=\"%s\"} %lld\n", rp_state_name((enum rp_state)i), (long long)g->marks[i]);
    rp_metric_head(out, "reprieve_marks_bytes", "gauge", "Bytes of the marks in each state.");
    for (int i = 1; i < RP_STATES; i++)
        rp_buf_fmt(out, "reprieve_marks_bytes{state=\"%s\"} %lld\n", rp_state_name((enum rp_state)i),
                   (long long)g->bytes[i]);
    rp_metric_gauge(out, "reprieve_marks_overdue", "Marks past their due time, counted up to a million a store.",
                    (double)g->overdue);
    int64_t late_ms = g->oldest_due_ms != 0 && now_ms > g->oldest_due_ms ? now_ms - g->oldest_due_ms : 0;
    rp_metric_gauge(out, "reprieve_oldest_overdue_seconds", "How long the oldest of them is past due.",
                    (double)late_ms / 1000);
    rp_metric_gauge(out, "reprieve_dead_letters", "Dead letters that wait for a person.", (double)g->dead);
    rp_metric_head(out, "reprieve_worker_last_seen_timestamp_seconds", "gauge", "Last sign of life of each node.");
    rp_buf_str(out, rp_buf_text(&g->nodes));
    rp_metric_head(out, "reprieve_run_running_seconds", "gauge", "How long each run under way has lasted.");
    rp_buf_str(out, rp_buf_text(&g->running));
    rp_metric_head(out, "reprieve_run_lock_age_seconds", "gauge", "How long ago each lock that is held was renewed.");
    rp_buf_str(out, rp_buf_text(&g->locks));
    rp_metric_head(out, "reprieve_clocks_apart_seconds", "gauge", "How far a clock is from the host's.");
    rp_buf_fmt(out, "reprieve_clocks_apart_seconds{clock=\"database\"} %.15g\n",
               (double)llabs(g->now_ms - g->db_ms) / 1000);
    rp_buf_str(out, rp_buf_text(&g->clocks));
    rp_metric_gauge(out, "reprieve_clock_jump_seconds",
                    "How far the clock of a host is ahead of the time since its boot: the one that is furthest.",
                    (double)g->jump_ms / 1000);
}

int rp_metrics_write(struct rp_metrics *m, struct rp_db *db, struct rp_store *const *stores, size_t n_stores,
                     int64_t now_ms, struct rp_buf *out, struct rp_error *err)
{
    RP_CLEANUP(gauges_done) struct gauges gauges;
    struct rp_error why = { 0 };
    gauges_init(&gauges, m, now_ms);
    int r = read_gauges(db, stores, n_stores, now_ms, &gauges, &why);
    if (r < 0) rp_metrics_failure(m, "catalog");
    rp_metric_gauge(out, "reprieve_catalog_up", "Whether the catalog could be read for this answer.", r == 0);
    write_database(out);
    write_clocks(stores, n_stores, &gauges.clocks);
    if (r == 0) write_gauges(&gauges, now_ms, out);
    if (r == 0) write_sinks(&gauges, out);
    write_guarantees(stores, n_stores, out);
    write_owners(stores, n_stores, now_ms, out);
    for (size_t i = 0; i < RP_METRICS_FAMILIES; i++)
        rp_series_write(&m->families[i], out);
    rp_histogram_write(&m->runs, out);
    write_requests(m, out);
    rp_histogram_write(&m->durations, out);
    rp_histogram_write(&m->batches, out);
    write_process(m, out);
    return out->failed < 0 ? rp_error_set(err, out->failed, "the metrics do not fit into the answer") : 0;
}
