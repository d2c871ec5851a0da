/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - deletion records, runs under way, a sum over some days, a sweep on demand, and the end of a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/run.h"
#include "core/run.h"
#include "core/state.h"
#include "core/sweep/plan.h"
#include "http/api/runs.h"
#include "http/api/shapes.h"
#include "http/server/request.h"
#include "http/server/server.h"
#include "lib/session.h"

#define SUMMARY_RECORDS_MAX 10000
#define SUMMARY_PAGE        500
#define PLAN_MARKS_MAX      100000

/* ---- shapes ---- */

static const char *const kinds[] = { "sweep", "policy", "orphans", "reconcile", "safety_net", "restore", NULL };
static const char *const states[] = { "running", "interrupted", "finished", NULL };
static const char *const outcomes[] = { "done", "partial", "failed", "braked", "cancelled", NULL };

static const struct rp_field run_fields[] = {
    { .name = "id", .kind = RP_FIELD_ID, .id = RP_ID_RUN, .help = "none for a dry run" },
    { .name = "kind", .kind = RP_FIELD_CHOICE, .choices = kinds, .required = true },
    { .name = "name", .kind = RP_FIELD_TEXT, .required = true, .help = "a store's, all, or continuous@NODE" },
    { .name = "state", .kind = RP_FIELD_CHOICE, .choices = states },
    { .name = "outcome", .kind = RP_FIELD_CHOICE, .choices = outcomes, .help = "once it is finished" },
    { .name = "dry_run", .kind = RP_FIELD_BOOL },
    { .name = "locked_by", .kind = RP_FIELD_TEXT },
    { .name = "started_at", .kind = RP_FIELD_TIME },
    { .name = "finished_at", .kind = RP_FIELD_TIME },
    { .name = "duration_ms", .kind = RP_FIELD_INT },
    { .name = "counts",
      .kind = RP_FIELD_ANY,
      .help = "scanned, marked, purged, already_gone, skipped, failed, bytes_freed; of a restore also restored, "
              "already_restored, returned, refused" },
    { .name = "filter", .kind = RP_FIELD_ANY, .help = "of a restore: what it is about" },
    { .name = "progress",
      .kind = RP_FIELD_ANY,
      .help = "while a restore is under way: done, total, rate_per_s, left_s" },
    { .name = "avg_age_s", .kind = RP_FIELD_INT },
    { .name = "oldest", .kind = RP_FIELD_ANY, .help = "subject, age_s" },
    { .name = "largest", .kind = RP_FIELD_ANY, .help = "subject, bytes" },
    { .name = "errors", .kind = RP_FIELD_ANY },
    { .name = "stores", .kind = RP_FIELD_ANY, .help = "of a dry run: what would happen in each store" },
};
const struct rp_shape rp_shape_run = RP_SHAPE("Run", run_fields, "One run and its deletion record.");

static const struct rp_field list_fields[] = {
    RP_FIELD_LIMIT,
    { .name = "cursor", .kind = RP_FIELD_ID, .id = RP_ID_RUN, .help = "next_cursor of the page before" },
};
static const struct rp_shape list_shape = RP_SHAPE("RunQuery", list_fields, "A page of runs.");

static const struct rp_field summary_query_fields[] = {
    { .name = "days",
      .kind = RP_FIELD_INT,
      .least = 1,
      .most = 3650,
      .help = "how many back from now; 30 unless told" },
};
static const struct rp_shape summary_query = RP_SHAPE("RunSummaryQuery", summary_query_fields, "Over how long.");

static const struct rp_field summary_fields[] = {
    { .name = "since", .kind = RP_FIELD_TIME, .required = true },
    { .name = "runs", .kind = RP_FIELD_INT, .required = true },
    { .name = "outcomes", .kind = RP_FIELD_ANY, .required = true, .help = "how many ended how" },
    { .name = "counts", .kind = RP_FIELD_ANY, .required = true, .help = "the sums of the runs' counts" },
    { .name = "longest_ms", .kind = RP_FIELD_INT, .required = true },
    { .name = "last_finished_at", .kind = RP_FIELD_TIME },
    { .name = "complete", .kind = RP_FIELD_BOOL, .required = true, .help = "false: there were more than 10000 runs" },
};
static const struct rp_shape summary_shape = RP_SHAPE("RunSummary", summary_fields, "Runs of some days, summed up.");

static const struct rp_field start_fields[] = {
    { .name = "kind",
      .kind = RP_FIELD_CHOICE,
      .choices = kinds,
      .required = true,
      .help = "sweep; a restore is begun at /v1/restore, the others come later" },
    { .name = "name", .kind = RP_FIELD_TEXT, .least = 1, .most = 63, .help = "of a sweep: one store; else all" },
    { .name = "dry_run", .kind = RP_FIELD_BOOL, .help = "say what would happen and change nothing" },
    { .name = "plan", .kind = RP_FIELD_BOOL, .help = "comes later" },
};
static const struct rp_shape start_shape = RP_SHAPE("NewRun", start_fields, "A run to be started.");

/* ---- list and get ---- */

static int parse_record(const struct rp_record_row *row, json_t **out, struct rp_error *err)
{
    int r = rp_json_parse(row->body, strlen(row->body), out, err);
    return r < 0 ? rp_error_wrap(err, RP_ECORRUPT, "the record of a run") : 0;
}

struct listing {
    json_t *items;
    int64_t last_id;
    size_t records;
};

static int list_open(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    struct listing *l = ctx;
    json_t *run = rp_run_open_json(row, rp_worker_is_dead(row->locked_by), err);
    if (run == NULL) return RP_ECORRUPT;
    rp_json_append(l->items, run);
    return 0;
}

static int list_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    struct listing *l = ctx;
    json_t *run = NULL;
    int r = parse_record(row, &run, err);
    if (r < 0) return r;
    rp_json_append(l->items, run);
    l->last_id = row->run_id;
    l->records++;
    return 0;
}

static void list_runs(struct rp_request *q)
{
    struct rp_db *db = rp_request_catalog(q)->db;
    struct rp_error err = { 0 };
    struct listing l = { .items = json_array() };
    int64_t limit = rp_request_int(q->query, "limit", RP_LIST_LIMIT);
    int64_t before = rp_request_int(q->query, "cursor", INT64_MAX);
    char cursor[RP_ID_TEXT];
    int r = before == INT64_MAX ? rp_run_each_open(db, NULL, list_open, &l, &err) : 0;
    if (r == 0) r = rp_record_each(db, before, limit, list_record, &l, &err);
    if (r < 0) {
        json_decref(l.items);
        rp_reply_error(q, &err);
        return;
    }
    bool more = l.records == (size_t)limit;
    rp_reply_list(q, l.items, more ? rp_id_format(RP_ID_RUN, l.last_id, cursor) : NULL);
}

struct finding {
    int64_t id;
    json_t *run;
};

static int find_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    struct finding *f = ctx;
    return parse_record(row, &f->run, err);
}

static int find_open(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    struct finding *f = ctx;
    if (row->id != f->id || f->run != NULL) return 0;
    f->run = rp_run_open_json(row, rp_worker_is_dead(row->locked_by), err);
    return f->run == NULL ? RP_ECORRUPT : 0;
}

/* Open ones first, then records: one that ends meanwhile is found as a record. */
static int find_run(struct rp_db *db, int64_t id, json_t **out, struct rp_error *err)
{
    struct finding f = { .id = id };
    int r = rp_run_each_open(db, NULL, find_open, &f, err);
    if (r == 0 && f.run == NULL) r = rp_record_get(db, id, find_record, &f, err);
    if (r < 0) json_decref(f.run);
    if (r == 0) *out = f.run;
    return r;
}

static void get_run(struct rp_request *q)
{
    struct rp_error err = { 0 };
    json_t *run = NULL;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_RUN, &id)) return;
    if (find_run(rp_request_catalog(q)->db, id, &run, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, run);
}

/* ---- summary ---- */

static const char *const counted[] = {
    "scanned", "marked", "purged", "already_gone", "skipped", "failed", "bytes_freed"
};
#define COUNTED (sizeof counted / sizeof counted[0])

struct summary {
    int64_t since_ms, runs, longest_ms, last_ms, last_id;
    int64_t sums[COUNTED];
    json_t *outcomes;
    bool over;
};

static int sum_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    struct summary *s = ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *run = NULL;
    s->last_id = row->run_id;
    if (row->started_at_ms < s->since_ms) {
        s->over = true;
        return 0;
    }
    int r = parse_record(row, &run, err);
    if (r < 0) return r;
    const json_t *counts = json_object_get(run, "counts");
    for (size_t i = 0; i < COUNTED; i++)
        s->sums[i] += rp_json_get_int(counts, counted[i], 0);
    s->runs++;
    if (row->finished_at_ms - row->started_at_ms > s->longest_ms)
        s->longest_ms = row->finished_at_ms - row->started_at_ms;
    if (row->finished_at_ms > s->last_ms) s->last_ms = row->finished_at_ms;
    rp_json_set(s->outcomes, row->outcome, json_integer(rp_json_get_int(s->outcomes, row->outcome, 0) + 1));
    return 0;
}

static json_t *summary_json(const struct summary *s, bool complete)
{
    json_t *o = json_object(), *counts = json_object();
    for (size_t i = 0; i < COUNTED; i++)
        rp_json_set(counts, counted[i], json_integer(s->sums[i]));
    rp_json_set(o, "since", rp_json_time(s->since_ms));
    rp_json_set(o, "runs", json_integer(s->runs));
    rp_json_set(o, "outcomes", json_incref(s->outcomes));
    rp_json_set(o, "counts", counts);
    rp_json_set(o, "longest_ms", json_integer(s->longest_ms));
    if (s->last_ms != 0) rp_json_set(o, "last_finished_at", rp_json_time(s->last_ms));
    rp_json_set(o, "complete", json_boolean(complete));
    return o;
}

static void summarise(struct rp_request *q)
{
    RP_CLEANUP(rp_json_decrefp) json_t *outcomes_seen = json_object();
    struct rp_db *db = rp_request_catalog(q)->db;
    struct rp_error err = { 0 };
    int64_t days = rp_request_int(q->query, "days", 30), before = INT64_MAX;
    struct summary s = { .since_ms = rp_request_now_ms(q) - days * RP_DAY_MS, .outcomes = outcomes_seen };
    int r = 0;
    if (s.since_ms < 0) s.since_ms = 0;
    for (size_t n = 0; r == 0 && !s.over && n < SUMMARY_RECORDS_MAX; n += SUMMARY_PAGE) {
        s.last_id = 0;
        r = rp_record_each(db, before, SUMMARY_PAGE, sum_record, &s, &err);
        if (s.last_id == 0) s.over = true;
        before = s.last_id;
    }
    if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, summary_json(&s, s.over));
}

/* ---- a dry run ---- */

static json_t *plan_json(const struct rp_plan *plan, const char *name)
{
    json_t *o = json_object(), *stores = json_array();
    int64_t scanned = 0;
    for (size_t i = 0; i < plan->n; i++) {
        const struct rp_planned *p = &plan->at[i];
        json_t *planned = rp_planned_json(p);
        if (p->left_out || p->waiting > 0) rp_json_set(planned, "left_out", json_string(rp_error_slug(p->why.code)));
        rp_json_append(stores, planned);
        scanned += p->marks;
    }
    rp_json_set(o, "kind", json_string("sweep"));
    rp_json_set(o, "name", rp_json_text(name));
    rp_json_set(o, "dry_run", json_true());
    rp_json_set(o, "counts", json_pack("{s:I}", "scanned", (json_int_t)scanned));
    rp_json_set(o, "stores", stores);
    return o;
}

static void dry_run(struct rp_request *q, struct rp_store *const *stores, size_t n, const char *name)
{
    RP_CLEANUP(rp_plan_freep) struct rp_plan *plan = NULL;
    const struct rp_config *config = rp_request_config(q);
    struct rp_error err = { 0 };
    struct rp_sweep sweep = { .catalog = rp_request_catalog(q),
                              .stores = stores,
                              .n_stores = n,
                              .name = name,
                              .environment = config->environment,
                              .limit = config->sweep_limit < PLAN_MARKS_MAX ? config->sweep_limit : PLAN_MARKS_MAX };
    if (rp_plan_make(&sweep, &plan, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, plan_json(plan, name));
}

/* ---- start ---- */

struct beginning {
    struct rp_run_command command;
    const char *store; /* NULL: all */
    struct rp_run run;
};

static void then_begun(struct rp_request *q)
{
    const struct beginning *b = (const struct beginning *)q->command;
    const struct rp_error *err = &q->command->error;
    if (err->code == RP_ERUNNING) {
        json_t *holder = json_object();
        rp_json_set(holder, "locked_by", rp_json_text(b->command.locked_by));
        rp_json_set(holder, "locked_at", rp_json_time(b->command.locked_at_ms));
        rp_reply_problem(q, err, holder);
    } else if (err->code < 0) {
        rp_reply_error(q, err);
    } else {
        rp_reply_json(q, 202, rp_run_json(&b->run, NULL, false, 0));
    }
}

void rp_request_carry(struct rp_request *q, const char *store, const struct rp_run *run)
{
    const struct rp_beside *beside = &rp_server_options_of(q->server)->beside;
    bool begun = q->command->error.code == 0 && !q->command->replayed;
    beside->start_run(beside->ctx, store, q->who.actor, begun ? run : NULL);
}

const struct rp_worker *rp_request_reserve(struct rp_request *q)
{
    const struct rp_beside *beside = &rp_server_options_of(q->server)->beside;
    const struct rp_worker *worker = NULL;
    struct rp_error err = { 0 };
    int r = beside->reserve_run != NULL ? beside->reserve_run(beside->ctx, &worker, &err)
                                        : rp_error_set(&err, RP_EUNAVAILABLE, "no run is carried out here");
    if (r == 0) return worker;
    rp_reply_error(q, &err);
    return NULL;
}

static void after_begun(struct rp_request *q)
{
    const struct beginning *b = (const struct beginning *)q->command;
    rp_request_carry(q, b->store, &b->run);
}

static void begin_sweep(struct rp_request *q, const char *store)
{
    struct beginning *b = rp_arena_alloc(&q->arena, sizeof *b);
    if (b == NULL) {
        rp_reply_no_memory(q);
        return;
    }
    const struct rp_worker *worker = rp_request_reserve(q);
    if (worker == NULL) return;
    rp_run_command_init(&b->command, &b->run, RP_RUN_SWEEP, store != NULL ? store : "all", worker,
                        rp_request_config(q)->lock_stale_after_ms, q->who.actor);
    b->store = store;
    q->after = after_begun;
    rp_request_submit(q, &b->command.command, then_begun, NULL);
}

/* ---- cancel ---- */

struct cancelling {
    struct rp_cancel_command command;
    struct rp_worker worker;
};

static void then_cancelled(struct rp_request *q)
{
    const struct cancelling *c = (const struct cancelling *)q->command;
    struct rp_error err = { 0 };
    json_t *run = NULL;
    if (q->command->error.code < 0) {
        rp_reply_error(q, &q->command->error);
        return;
    }
    run = rp_run_open_json(&c->command.run, false, &err);
    if (run == NULL) {
        rp_reply_error(q, &err);
        return;
    }
    if (c->command.over) rp_json_set(run, "state", json_string("finished"));
    if (c->command.over) rp_json_set(run, "outcome", json_string("cancelled"));
    rp_reply_json(q, 202, run);
}

static void cancel_run(struct rp_request *q)
{
    struct cancelling *c = rp_arena_alloc(&q->arena, sizeof *c);
    int64_t id;
    if (c == NULL) {
        rp_reply_no_memory(q);
        return;
    }
    if (!rp_request_id(q, 0, RP_ID_RUN, &id)) return;
    rp_worker_self(&c->worker);
    c->command = (struct rp_cancel_command){ .command = { .verb = &rp_verb_cancel, .actor = q->who.actor },
                                             .run_id = id,
                                             .worker = &c->worker,
                                             .stale_after_ms = rp_request_config(q)->lock_stale_after_ms,
                                             .arena = &q->arena };
    rp_request_submit(q, &c->command.command, then_cancelled, NULL);
}

static void refuse(struct rp_request *q, const char *what)
{
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EINVAL, "%s: this version runs sweeps only, without a plan", what);
    rp_error_hint(&err, "{\"kind\":\"sweep\"} purges what is due now; add \"dry_run\":true to see it first");
    rp_reply_error(q, &err);
}

static void start_run(struct rp_request *q)
{
    const char *kind = rp_request_text(q->body, "kind", ""), *store = rp_request_text(q->body, "name", NULL);
    struct rp_error err = { 0 };
    struct rp_store *one = NULL;
    size_t n = 0;
    if (strcmp(kind, "sweep") != 0 || rp_request_bool(q->body, "plan")) {
        refuse(q, strcmp(kind, "sweep") != 0 ? "kind" : "plan");
        return;
    }
    if (store != NULL && strcmp(store, "all") == 0) store = NULL;
    if (store != NULL && (one = rp_request_store(q, store)) == NULL) {
        rp_error_set(&err, RP_ENOTFOUND, "no store '%s'", store);
        rp_reply_error(q, &err);
        return;
    }
    if (!rp_request_bool(q->body, "dry_run")) {
        begin_sweep(q, store);
        return;
    }
    struct rp_store *const *all = rp_request_stores(q, &n);
    if (all == NULL && one == NULL) {
        rp_error_set(&err, RP_ENOMEM, "out of memory");
        rp_reply_error(q, &err);
        return;
    }
    dry_run(q, one != NULL ? &one : all, one != NULL ? 1 : n, store != NULL ? store : "all");
}

static const struct rp_route routes[] = {
    { .method = "GET",
      .path = "/v1/runs",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_READ_RUNS,
      .blocks = true,
      .handler = list_runs,
      .query = &list_shape,
      .answer = &rp_shape_run,
      .many = true,
      .status = 200,
      .summary = "Runs: first those under way, then deletion records, newest first.",
      .example = "" },
    { .method = "GET",
      .path = "/v1/runs/summary",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_READ_RUNS,
      .blocks = true,
      .handler = summarise,
      .query = &summary_query,
      .answer = &summary_shape,
      .status = 200,
      .summary = "What the runs of the last days did, in sum.",
      .example = "" },
    { .method = "GET",
      .path = "/v1/runs/{id}",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_READ_RUNS,
      .blocks = true,
      .handler = get_run,
      .answer = &rp_shape_run,
      .status = 200,
      .summary = "One run.",
      .example = "" },
    { .method = "POST",
      .path = "/v1/runs",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_WRITE_RUNS,
      .blocks = true,
      .handler = start_run,
      .body = &start_shape,
      .answer = &rp_shape_run,
      .status = 202,
      .errors = "already_running not_found",
      .summary = "Starts a sweep now, or with dry_run says what it would do (200).",
      .example = "-X POST -d '{\"kind\":\"sweep\",\"dry_run\":true}'" },
    { .method = "POST",
      .path = "/v1/runs/{id}/cancel",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_WRITE_RUNS,
      .handler = cancel_run,
      .answer = &rp_shape_run,
      .status = 202,
      .errors = "not_found",
      .summary =
          "Ends a run between two batches: its outcome is then cancelled, and what it did stays. A continuous sweep "
          "goes on with its next run; a hold on everything stops it.",
      .example = "-X POST" },
};
const struct rp_routes rp_routes_runs = { routes, sizeof routes / sizeof routes[0] };
