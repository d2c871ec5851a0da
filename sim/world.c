/* SPDX-License-Identifier: Apache-2.0 */
/* The world: made once, used for many runs. Everything that a run changes in the catalog happens
 * inside one transaction that is taken back. */
#include <malloc.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backups.h"
#include "base/assert.h"
#include "base/id.h"
#include "core/guarantee.h"
#include "heal.h"
#include "journal.h"
#include "judge.h"
#include "lib/fault_db.h"
#include "memory.h"
#include "net.h"
#include "node.h"
#include "retain.h"
#include "task.h"
#include "users.h"
#include "weather.h"
#include "world.h"

/* ---- what is said ---- */

void sim_say(struct sim *s, const char *fmt, ...)
{
    char line[SIM_LINE];
    va_list args;
    if (s->trace == NULL) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    rp_buf_fmt(s->trace, "%6llu %12.3f  %s\n", (unsigned long long)s->steps, (double)(s->now_ms - SIM_START_MS) / 1000,
               line);
}

void sim_violate(struct sim *s, const char *name, const char *fmt, ...)
{
    char line[SIM_LINE - 32];
    va_list args;
    if (s->violation[0] != '\0') return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    snprintf(s->violation, sizeof s->violation, "%s: %s", name, line);
    sim_say(s, "%s", s->violation);
    s->violated_at = s->steps;
    s->ending = true;
    for (int i = 0; i < SIM_NODES; i++)
        s->nodes[i].dead = true;
}

void sim_see(struct sim *s, enum sim_sight sight)
{
    s->faults.seen[sight]++;
}

/* ---- once ---- */

static void must(int r, const struct rp_error *err)
{
    if (r < 0) fprintf(stderr, "sim: %s\n", err->text);
    RP_ASSERT(r == 0);
}

static int64_t db_now(void *ctx)
{
    return sim_db_ms(ctx);
}

static void make_catalog(struct sim *s)
{
    struct rp_error err = { 0 };
    struct rp_db_options options = { .clock = &s->db };
    struct rp_db_fault none = { .nested = true };
    struct rp_catalog_options as = { .clock = &s->db, .lane = RP_LANE_MAX };
    struct rp_store_row row;
    struct rp_catalog *catalog = NULL;
    struct rp_db *db = NULL;
    must(rp_db_open("sqlite::memory:", &options, &s->inner, &err), &err);
    must(rp_db_fault_wrap(s->inner, &none, &db, &err), &err);
    must(rp_catalog_adopt(db, &as, &catalog, &err), &err);
    must(rp_store_get(catalog, RP_STORE_STORE, "main", &row, &err), &err);
    s->store_id = row.id;
    for (int i = 0; i < SIM_TENANTS; i++) {
        struct rp_tenant tenant;
        must(rp_tenant_make(catalog, i == 0 ? "t0" : "t1", &tenant, &err), &err);
        s->tenants[i] = tenant.id;
    }
    memcpy(s->catalog_id, catalog->id, sizeof s->catalog_id);
    rp_catalog_close(catalog);
    sim_journal_make(s);
}

/* One thread, and the same few allocations again and again: nothing of it need go back to the
 * system. */
static void tune(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sim_pool_use();
}

struct sim *sim_open(void)
{
    tune();
    sim_journal_prepare();
    struct sim *s = calloc(1, sizeof *s);
    RP_ASSERT(s != NULL);
    s->now_ms = SIM_START_MS;
    s->db = (struct rp_clock){ .now_ms = db_now, .ctx = s };
    s->model = calloc(1, sizeof *s->model);
    s->past.saved = calloc(1, sizeof *s->past.saved);
    s->past.undone = calloc(SIM_UNDONE, sizeof *s->past.undone);
    s->bucket = bucket_new(BUCKET_EXACT);
    s->elsewhere = bucket_new(BUCKET_EXACT);
    RP_ASSERT(s->model != NULL && s->past.saved != NULL && s->past.undone != NULL && s->bucket != NULL &&
              s->elsewhere != NULL);
    make_catalog(s);
    return s;
}

void sim_close(struct sim *s)
{
    rp_db_close(s->inner);
    bucket_free(s->bucket);
    bucket_free(s->elsewhere);
    free(s->model);
    free(s->past.saved);
    free(s->past.undone);
    free(s);
}

/* ---- a run ---- */

/* Every fourth run: what stays wrong is seen in the end, and the questions take an eighth of a run. */
#define CHECKED_HALFWAY 4

static void choose_rules(struct sim *s)
{
    struct sim_random *r = &s->luck;
    s->kind = sim_chance(r, 600) ? BUCKET_LIAR : (enum bucket_kind)sim_between(r, 0, BUCKET_LIAR - 1);
    bool once = sim_chance(r, 2000);
    s->config =
        (struct rp_store_config){ .name = "main",
                                  .type = s->kind == BUCKET_EXACT ? "fs" : "s3",
                                  .path = "",
                                  .endpoint = "",
                                  .bucket = "main",
                                  .keys = once ? RP_KEYS_WRITE_ONCE : RP_KEYS_REUSED,
                                  .mode = sim_chance(r, 500)                                       ? RP_MODE_OBSERVE
                                          : sim_chance(r, s->kind == BUCKET_VERSION ? 6000 : 3500) ? RP_MODE_QUARANTINE
                                                                                                   : RP_MODE_PURGE,
                                  .grace_ms = sim_chance(r, 5000) ? 5 * RP_DAY_MS : RP_HOUR_MS,
                                  .allow_any_grace = true,
                                  .quarantine_ms = sim_chance(r, 5000) ? 7 * RP_DAY_MS : RP_HOUR_MS,
                                  .allow_window_deletes = s->kind != BUCKET_LIAR && sim_chance(r, 7000) };
    s->uploads = (struct rp_upload_rules){ .expire_ms = RP_HOUR_MS,
                                           .max_size_bytes = 1000,
                                           .max_open_per_tenant = sim_chance(r, 2000) ? 3 : 100,
                                           .quota_default_bytes = sim_chance(r, 5000) ? 120 : 4000,
                                           .txn_timeout_ms = RP_HOUR_MS,
                                           .rollback_grace_ms = sim_chance(r, 5000) ? 2 * RP_DAY_MS : RP_MINUTE_MS,
                                           .scan = sim_chance(r, 1500) };
    s->rules = (struct rp_purge_rules){ .batch = sim_between(r, 1, 5),
                                        .lease_ms = 2 * RP_MINUTE_MS,
                                        .max_attempts = sim_between(r, 2, 5),
                                        .retry_first_ms = 10 * RP_SECOND_MS,
                                        .retry_most_ms = RP_HOUR_MS };
    s->switching = (int)sim_between(r, 50, 4000);
}

/* What is not of the process is that of a world in which nothing has happened. */
static void forget(struct sim *s)
{
    struct sim kept = { .db = s->db, .inner = s->inner, .bucket = s->bucket, .elsewhere = s->elsewhere };
    kept.model = s->model;
    kept.store_id = s->store_id;
    memcpy(kept.tenants, s->tenants, sizeof kept.tenants);
    memcpy(kept.catalog_id, s->catalog_id, sizeof kept.catalog_id);
    kept.now_ms = SIM_START_MS;
    kept.record.epoch = kept.past.backup.seen_epoch = -2; /* nobody has looked */
    kept.past.saved = s->past.saved;
    kept.past.undone = s->past.undone;
    *s = kept;
    model_clear(s->model);
}

static void begin(struct sim *s, uint64_t seed, uint64_t without, uint64_t steps, struct rp_buf *trace)
{
    struct rp_error err = { 0 };
    forget(s);
    s->seed = seed;
    s->steps_max = steps;
    s->trace = trace;
    s->order = sim_stream(seed, 1);
    s->luck = sim_stream(seed, 2);
    sim_faults_choose(&s->faults, seed, without);
    choose_rules(s);
    sim_retention_choose(s);
    sim_net_choose(s);
    sim_services_choose(s);
    sim_vessel_choose(s);
    for (int i = 0; i < SIM_NODES; i++) {
        s->nodes[i].sim = s;
        s->nodes[i].index = i;
        s->nodes[i].random = sim_stream(seed, 10 + (uint64_t)i);
        s->nodes[i].clock.ppm = sim_between(&s->luck, -200, 200);
        s->nodes[i].booted_ms = s->now_ms - sim_between(&s->luck, RP_MINUTE_MS, RP_DAY_MS);
    }
    sim_say(s, "a bucket of kind %s, keys %s, mode %d, window deletes %s", bucket_kind_name(s->kind),
            s->config.keys == RP_KEYS_WRITE_ONCE ? "written once" : "reused", (int)s->config.mode,
            s->config.allow_window_deletes ? "allowed" : "refused");
    bucket_clear(s->bucket, s->kind);
    bucket_clear(s->elsewhere, s->kind);
    must(rp_db_begin(s->inner, true, &err), &err);
    for (size_t i = 0; i < SIM_KEYS; i++)
        sim_upload(s, i, false);
}

bool sim_run(struct sim *s, uint64_t seed, uint64_t without, uint64_t steps, struct rp_buf *trace)
{
    begin(s, seed, without, steps, trace);
    sim_tasks_start(s, sim_node_work);
    sim_tasks_run(s);
    if (seed % CHECKED_HALFWAY == 0) sim_check(s, false);
    if (s->violation[0] == '\0') {
        sim_say(s, "everything heals");
        sim_heal_weather(s);
        s->ending = false;
        s->steps_max = UINT64_MAX;
        sim_tasks_start(s, sim_heal);
        sim_tasks_run(s);
        sim_check(s, true);
    }
    if (bucket_counts(s->bucket).lies > 0) sim_see(s, SIGHT_LIE);
    rp_db_rollback(s->inner);
    return s->violation[0] == '\0';
}
