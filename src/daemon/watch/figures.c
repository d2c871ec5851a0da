/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/watch/figures.h"

#include "base/error.h"
#include "base/time.h"
#include "catalog/alert.h"
#include "catalog/audit/feed.h"
#include "catalog/clock.h"
#include "catalog/mark/mark.h"
#include "catalog/node.h"
#include "catalog/run.h"
#include "core/guarantee.h"
#include "core/owner/raise.h"
#include "core/run/scheduled.h"
#include "daemon/open_run.h"
#include "daemon/sinks/sinks.h"

#include <stdio.h>
#include <string.h>

#define LOCKS_MAX 64

struct reading {
    struct rp_db *db;
    const struct rp_config *config;
    int64_t host_ms, db_ms, began_ms;
    struct rp_alert_figures *out;
    struct rp_held_lock locks[LOCKS_MAX];
    size_t n_locks;
    bool sweeping; /* a sweep is under way and its lock is fresh */
};

static int add_marked(void *ctx, const struct rp_tally_row *row, struct rp_error *err)
{
    struct rp_alert_figures *out = ctx;
    (void)err;
    if (row->state == RP_MARKED) out->marked += row->marks;
    if (row->state == RP_DEAD) out->dead += row->marks;
    return 0;
}

static int read_marked(struct reading *r, struct rp_error *err)
{
    r->out->marked = r->out->dead = 0;
    return rp_tally_each(r->db, add_marked, r->out, err);
}

/* A store in mode observe is not purged, and its marks are nobody's fault. */
static int read_oldest(struct reading *r, struct rp_error *err)
{
    r->out->oldest_due_ms = 0;
    for (size_t i = 0; i < r->config->n_stores; i++) {
        struct rp_store_row store;
        int64_t oldest = 0;
        if (r->config->stores[i].mode == RP_MODE_OBSERVE) continue;
        int code = rp_store_find(r->db, r->config->stores[i].name, &store, err);
        if (code == RP_ENOTFOUND) continue;
        if (code == 0) code = rp_figure_oldest_due(r->db, store.id, r->host_ms, &oldest, err);
        if (code < 0) return code;
        if (oldest != 0 && (r->out->oldest_due_ms == 0 || oldest < r->out->oldest_due_ms))
            r->out->oldest_due_ms = oldest;
    }
    return 0;
}

static int keep_lock(void *ctx, const struct rp_held_lock *lock, struct rp_error *err)
{
    struct reading *r = ctx;
    int64_t age_ms = r->db_ms - lock->locked_at_ms;
    (void)err;
    if (age_ms > r->out->stale_lock_ms) {
        r->out->stale_lock_ms = age_ms;
        snprintf(r->out->stale_lock, sizeof r->out->stale_lock, "%s", lock->name);
    }
    if (r->n_locks < LOCKS_MAX) r->locks[r->n_locks++] = *lock;
    return 0;
}

/* A run whose lock is stale hangs or is gone: that is another condition. */
static bool is_under_way(const struct reading *r, const struct rp_run_row *run)
{
    for (size_t i = 0; i < r->n_locks; i++)
        if (r->locks[i].run_id == run->id) return r->db_ms - r->locks[i].locked_at_ms < r->config->lock_stale_after_ms;
    return false;
}

static int see_run(void *ctx, const struct rp_run_row *run, struct rp_error *err)
{
    struct reading *r = ctx;
    int64_t lasts_ms = r->host_ms - run->started_at_ms;
    (void)err;
    if (!is_under_way(r, run)) return 0;
    if (strcmp(run->kind, RP_RUN_SWEEP) == 0) r->sweeping = true;
    bool may_last = strcmp(run->kind, RP_RUN_RETENTION) == 0 || /* as long as there is something to let go */
                    strncmp(run->name, RP_CONTINUOUS, strlen(RP_CONTINUOUS)) == 0;
    if (may_last || lasts_ms <= r->out->longest_run_ms) return 0;
    r->out->longest_run_ms = lasts_ms;
    snprintf(r->out->longest_run, sizeof r->out->longest_run, "%s", run->name);
    return 0;
}

static int read_runs(struct reading *r, struct rp_error *err)
{
    struct rp_run_counts counts = { 0 };
    r->out->stale_lock_ms = r->out->longest_run_ms = 0;
    int code = rp_lock_each_held(r->db, NULL, keep_lock, r, err);
    if (code == 0) code = rp_run_each_open(r->db, NULL, see_run, r, err);
    if (code == 0) code = rp_figure_runs(r->db, r->host_ms - r->config->alerts.error_window_ms, &counts, err);
    if (code < 0) return code;
    r->out->runs = counts.runs;
    r->out->run_errors = counts.errors;
    return 0;
}

/* A continuous sweep has nothing to do while nothing is due. */
static bool sweep_is_expected(const struct reading *r)
{
    struct rp_cron cron;
    bool long_due = r->out->oldest_due_ms != 0 && r->host_ms - r->out->oldest_due_ms > r->config->alerts.no_run_for_ms;
    return long_due && !r->sweeping && rp_cron_parse(r->config->sweep_schedule, &cron, NULL) < 0;
}

/* The run that is furthest past its limit, or nearest to it, is the one that is told of. `ended_ms`
 * 0: none ever did. */
static void see_last(struct reading *r, const char *kind, const char *name, int64_t interval_ms, int64_t ended_ms)
{
    struct rp_alert_figures *out = r->out;
    int64_t since_ms = ended_ms != 0 ? ended_ms : r->began_ms;
    int64_t late_ms = r->host_ms - since_ms - rp_alert_no_run_limit_ms(&r->config->alerts, interval_ms);
    int64_t most_ms = r->host_ms - out->last_run_ms - rp_alert_no_run_limit_ms(&r->config->alerts, out->interval_ms);
    if (out->last_run_ms != 0 && late_ms <= most_ms) return;
    out->last_run_ms = since_ms;
    out->interval_ms = interval_ms;
    snprintf(out->late_run, sizeof out->late_run, "%s %s", kind, name);
}

static int read_last_runs(struct reading *r, struct rp_error *err)
{
    struct rp_scheduled runs[RP_SCHEDULED_MAX];
    size_t n = rp_scheduled_runs(r->config, runs);
    int code = 0;
    int64_t ended_ms = 0;
    r->out->interval_ms = r->out->last_run_ms = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        code = rp_scheduled_last(r->db, &runs[i], &ended_ms, err);
        if (code == 0)
            see_last(r, runs[i].kind, runs[i].name, rp_schedule_interval_ms(&runs[i].cron, r->host_ms), ended_ms);
    }
    if (code < 0 || !sweep_is_expected(r)) return code;
    code = rp_figure_last_run(r->db, &ended_ms, err);
    if (code == 0) see_last(r, RP_RUN_SWEEP, "continuous", 0, ended_ms);
    return code;
}

static int read_uploads(struct reading *r, struct rp_error *err)
{
    int64_t limit = r->config->alerts.abandoned_per_hour_over;
    r->out->abandoned = 0;
    if (limit == 0) return 0;
    return rp_figure_abandoned(r->db, r->host_ms - RP_HOUR_MS, limit * 2 + 1, &r->out->abandoned, err);
}

static int read_workers(struct reading *r, struct rp_error *err)
{
    int64_t seen_ms = 0, apart_ms = r->host_ms - r->db_ms;
    int code = rp_node_newest(r->db, &seen_ms, err);
    if (code < 0) return code;
    /* on the host's clock, as the moment that it is judged by */
    r->out->worker_seen_ms = seen_ms != 0 ? seen_ms + apart_ms : r->began_ms;
    r->out->clocks_apart_ms = apart_ms < 0 ? -apart_ms : apart_ms;
    return 0;
}

static int read_sinks(struct reading *r, struct rp_error *err)
{
    for (size_t i = 0; i < r->config->n_sinks; i++) {
        char reader[RP_FEED_READER];
        struct rp_feed_lag lag;
        int code = rp_feed_lag(r->db, rp_sink_reader(&r->config->sinks[i], reader), &lag, err);
        if (code < 0) return code;
        int64_t age_ms = lag.begun && lag.oldest_at_ms != 0 ? r->host_ms - lag.oldest_at_ms : 0;
        if (age_ms <= r->out->sink_lag_ms) continue;
        r->out->sink_lag_ms = age_ms;
        snprintf(r->out->sink, sizeof r->out->sink, "sink %s", r->config->sinks[i].name);
    }
    return 0;
}

/* X7: of host, database and each store that has a clock, those that are furthest apart. A purge of
 * that store would be refused. */
static void read_clocks(struct reading *r, const struct rp_store *stores)
{
    int64_t db_ahead_ms = r->db_ms - r->host_ms;
    snprintf(r->out->clock, sizeof r->out->clock, "database");
    for (size_t i = 0; stores != NULL && i < r->config->n_stores; i++) {
        int64_t ahead_ms = rp_guarantee_clock_ahead_ms(&stores[i]);
        if (ahead_ms == RP_CLOCK_UNKNOWN) continue;
        int64_t least = ahead_ms < 0 ? ahead_ms : 0, most = ahead_ms > 0 ? ahead_ms : 0;
        if (db_ahead_ms < least) least = db_ahead_ms;
        if (db_ahead_ms > most) most = db_ahead_ms;
        if (most - least <= r->out->clocks_apart_ms) continue;
        r->out->clocks_apart_ms = most - least;
        snprintf(r->out->clock, sizeof r->out->clock, "store %s", r->config->stores[i].name);
    }
}

/* As the raiser found them. -1: not every store was looked at yet, and none is lost. */
static void read_owners(struct reading *r, const struct rp_store *stores)
{
    struct rp_alert_figures *out = r->out;
    bool unknown = false;
    for (size_t i = 0; stores != NULL && i < r->config->n_stores; i++) {
        const char *name = r->config->stores[i].name;
        struct rp_raise_state state;
        rp_raise_state(&stores[i], &state);
        unknown = unknown || (!state.known && r->config->stores[i].mode != RP_MODE_OBSERVE);
        if (rp_raise_is_lost(&state) && out->not_ours++ == 0)
            snprintf(out->not_ours_store, sizeof out->not_ours_store, "store %s: %s", name,
                     rp_ownership_text(state.ownership));
        int64_t owed_ms = state.owed_since_ms != 0 ? r->host_ms - state.owed_since_ms : 0;
        if (rp_raise_is_lost(&state) || owed_ms <= out->raise_owed_ms) continue;
        out->raise_owed_ms = owed_ms;
        snprintf(out->raise_owed_store, sizeof out->raise_owed_store, "store %s", name);
    }
    if (unknown && out->not_ours == 0) out->not_ours = -1;
}

void rp_figures_room(struct rp_rooms *rooms, const struct rp_config *config, struct rp_alert_figures *out)
{
    out->full = rooms != NULL ? 0 : -1;
    for (size_t i = 0; i <= config->n_stores;
         i++) { /* the catalog comes last, and is named rather than a store on its disk */
        bool catalog = i == config->n_stores;
        if (!rp_rooms_seen(rooms, catalog ? RP_ROOM_CATALOG : i).full) continue;
        out->full++;
        if (catalog)
            snprintf(out->full_of, sizeof out->full_of, "catalog");
        else
            snprintf(out->full_of, sizeof out->full_of, "store %s", config->stores[i].name);
    }
}

int rp_figures_read(struct rp_catalog *catalog, const struct rp_config *config, const struct rp_store *stores,
                    int64_t host_ms, int64_t began_ms, struct rp_alert_figures *out, struct rp_error *err)
{
    struct rp_alert_figures figures = { 0 };
    struct reading r = {
        .db = catalog->db, .config = config, .host_ms = host_ms, .began_ms = began_ms, .out = &figures
    };
    int code = rp_db_now_ms(r.db, &r.db_ms, err);
    r.db_ms = rp_clock_held_ms(catalog->clock, r.db_ms);
    if (code == 0) code = read_marked(&r, err);
    if (code == 0) code = read_oldest(&r, err);
    if (code == 0) code = read_runs(&r, err);
    if (code == 0) code = read_last_runs(&r, err);
    if (code == 0) code = read_uploads(&r, err);
    if (code == 0) code = read_workers(&r, err);
    if (code == 0) code = read_sinks(&r, err);
    if (code == 0) code = rp_clock_worst(r.db, host_ms, &figures.clock_jump_ms, figures.clock_host, err);
    if (code < 0) return rp_error_wrap(err, code, "read the figures of alerts");
    read_clocks(&r, stores);
    read_owners(&r, stores);
    *out = figures;
    return 0;
}
