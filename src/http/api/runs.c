/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - deletion records, runs under way, a sum over some days, a sweep on demand, and the
 * end of a run. */
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
#include "lib/answer.h"
#include "lib/session.h"

#define SUMMARY_RECORDS_MAX 10000
#define SUMMARY_PAGE        500
#define PLAN_MARKS_MAX      100000

/* ---- shapes ---- */

static const char *const kinds[] = { "sweep", "policy", "orphans", "reconcile", "safety_net", "restore", NULL };
static const char *const states[] = { "running", "interrupted", "finished", NULL };
static const char *const outcomes[] = { "done", "partial", "failed", "braked", "cancelled", NULL };

static const struct rp_field run_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_RUN, .help = "none for a dry run" },
    { RP_FIELD("kind", CHOICE), .choices = kinds, .required = true },
    { RP_FIELD("name", TEXT), .required = true, .help = "a store's, all, or continuous@NODE" },
    { RP_FIELD("state", CHOICE), .choices = states },
    { RP_FIELD("outcome", CHOICE), .choices = outcomes, .help = "once it is finished" },
    { RP_FIELD("dry_run", BOOL) },
    { RP_FIELD("locked_by", TEXT) },
    { RP_FIELD("started_at", TIME) },
    { RP_FIELD("finished_at", TIME) },
    { RP_FIELD("duration_ms", INT) },
    { RP_FIELD("counts", ANY),
      .help = "scanned, marked, purged, already_gone, skipped, failed, bytes_freed; of a restore also restored, "
              "already_restored, returned, refused" },
    { RP_FIELD("filter", ANY), .help = "of a restore: what it is about" },
    { RP_FIELD("progress", ANY), .help = "while a restore is under way: done, total, rate_per_s, left_s" },
    { RP_FIELD("avg_age_s", INT) },
    { RP_FIELD("oldest", ANY), .help = "subject, age_s" },
    { RP_FIELD("largest", ANY), .help = "subject, bytes" },
    { RP_FIELD("errors", ANY) },
    { RP_FIELD("stores", ANY), .help = "of a dry run: what would happen in each store" },
};
const struct rp_shape rp_shape_run = RP_SHAPE("Run", run_fields, "one run and its deletion record");

static const struct rp_field list_fields[] = {
    RP_FIELD_LIMIT,
    { RP_FIELD("cursor", ID), .id = RP_ID_RUN, .help = "next_cursor of the page before" },
};
static const struct rp_shape list_shape = RP_SHAPE("RunQuery", list_fields, "a page of runs");

static const struct rp_field summary_query_fields[] = {
    { RP_FIELD("days", INT), .least = 1, .most = 3650, .help = "how many back from now; 30 unless told" },
};
static const struct rp_shape summary_query = RP_SHAPE("RunSummaryQuery", summary_query_fields, "over how long");

static const struct rp_field summary_fields[] = {
    { RP_FIELD("since", TIME), .required = true },
    { RP_FIELD("runs", INT), .required = true },
    { RP_FIELD("outcomes", ANY), .required = true, .help = "how many ended how" },
    { RP_FIELD("counts", ANY), .required = true, .help = "the sums of the runs' counts" },
    { RP_FIELD("longest_ms", INT), .required = true },
    { RP_FIELD("last_finished_at", TIME) },
    { RP_FIELD("complete", BOOL), .required = true, .help = "false: there were more than 10000 runs" },
};
static const struct rp_shape summary_shape = RP_SHAPE("RunSummary", summary_fields, "runs of some days, summed up");

static const struct rp_field start_fields[] = {
    { RP_FIELD("kind", CHOICE), .choices = kinds, .required = true,
      .help = "sweep; a restore is begun at /v1/restore, the others come later" },
    { RP_FIELD("name", TEXT), .least = 1, .most = 63, .help = "of a sweep: one store; else all" },
    { RP_FIELD("dry_run", BOOL), .help = "say what would happen and change nothing" },
    { RP_FIELD("plan", BOOL), .help = "comes later" },
};
static const struct rp_shape start_shape = RP_SHAPE("NewRun", start_fields, "a run to be started");

/* ---- list and get ---- */

struct listing {
    json_t *items;
    int64_t last_id;
    int64_t records;
};

static int list_run(void *ctx, const struct rp_run_shown *shown, struct rp_error *err)
{
    struct listing *l = ctx;
    (void)err;
    rp_json_append(l->items, json_incref(shown->run));
    if (shown->open) return 0;
    l->last_id = shown->id;
    l->records++;
    return 0;
}

static void list_runs(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct listing l = { .items = json_array() };
    int64_t limit = rp_json_get_int(q->query, "limit", RP_LIST_LIMIT);
    int64_t before = rp_json_get_int(q->query, "cursor", INT64_MAX);
    int r = rp_runs_each_json(rp_request_catalog(q)->db, before, limit, list_run, &l, &err);
    rp_reply_page(q, r, &err, l.items, l.records == limit ? rp_cursor_of(q, RP_ID_RUN, l.last_id) : NULL);
}

static void get_run(struct rp_request *q)
{
    struct rp_error err = { 0 };
    json_t *run = NULL;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_RUN, &id)) return;
    if (rp_run_find_json(rp_request_catalog(q)->db, id, &run, &err) < 0)
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
    int r = rp_record_json(row, &run, err);
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
    int64_t days = rp_json_get_int(q->query, "days", 30), before = INT64_MAX;
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

static void not_begun(struct rp_request *q)
{
    const struct beginning *b = (const struct beginning *)q->command;
    json_t *holder = NULL;
    if (q->command->error.code == RP_ERUNNING) {
        holder = json_object();
        rp_json_set(holder, "locked_by", rp_json_text(b->command.locked_by));
        rp_json_set(holder, "locked_at", rp_json_time(b->command.locked_at_ms));
    }
    rp_reply_problem(q, &q->command->error, holder);
}

/* No I/O here: this may be the writer's thread. */
static void then_begun(struct rp_request *q)
{
    rp_reply_json(q, 202, rp_run_json(&((const struct beginning *)q->command)->run, NULL, false, 0));
}

void rp_request_carry(struct rp_request *q, const char *store, const struct rp_run *run)
{
    const struct rp_beside *beside = &rp_server_options_of(q->server)->beside;
    bool begun = q->command->error.code == 0 && !q->command->replayed;
    beside->start_run(beside->ctx, store, q->who.actor, begun ? run : NULL);
}

int rp_request_reserve(struct rp_request *q, const struct rp_worker **worker, struct rp_error *err)
{
    const struct rp_beside *beside = &rp_server_options_of(q->server)->beside;
    return beside->reserve_run != NULL ? beside->reserve_run(beside->ctx, worker, err)
                                       : rp_error_set(err, RP_EUNAVAILABLE, "no run is carried out here");
}

static void after_begun(struct rp_request *q)
{
    const struct beginning *b = (const struct beginning *)q->command;
    rp_request_carry(q, b->store, &b->run);
}

static void begin_sweep(struct rp_request *q, const char *store)
{
    struct beginning *b = rp_command_new(q, sizeof *b, &rp_verb_run_begin);
    const struct rp_worker *worker = NULL;
    struct rp_error err = { 0 };
    if (b == NULL) return;
    if (rp_request_reserve(q, &worker, &err) < 0) {
        rp_request_refuse(q, &b->command.command, &err, NULL);
        return;
    }
    rp_run_command_init(&b->command, &b->run, RP_RUN_SWEEP, store != NULL ? store : "all", worker,
                        rp_request_config(q)->lock_stale_after_ms, q->who.actor);
    b->store = store;
    q->after = after_begun;
    q->refused = not_begun;
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
    json_t *run = rp_run_open_json(&c->command.run, false, &err);
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
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_RUN, &id)) return;
    struct cancelling *c = rp_command_new(q, sizeof *c, &rp_verb_cancel);
    if (c == NULL) return;
    rp_worker_self(&c->worker);
    c->command.run_id = id;
    c->command.worker = &c->worker;
    c->command.stale_after_ms = rp_request_config(q)->lock_stale_after_ms;
    c->command.arena = &q->arena;
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
    const char *kind = rp_json_get_text(q->body, "kind", ""), *store = rp_json_get_text(q->body, "name", NULL);
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
    if (all == NULL)
        rp_reply_no_memory(q);
    else
        dry_run(q, one != NULL ? &one : all, one != NULL ? 1 : n, store != NULL ? store : "all");
}

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/runs", RP_FOR_ADMINS, RP_MAY_READ_RUNS, list_runs), .blocks = true, .query = &list_shape,
      .answer = &rp_shape_run, .many = true,
      .summary = "Runs: first those under way, then deletion records, newest first." },
    { RP_ROUTE("GET", "/v1/runs/summary", RP_FOR_ADMINS, RP_MAY_READ_RUNS, summarise), .blocks = true,
      .query = &summary_query, .answer = &summary_shape, .summary = "What the runs of the last days did, in sum." },
    { RP_ROUTE("GET", "/v1/runs/{id}", RP_FOR_ADMINS, RP_MAY_READ_RUNS, get_run), .blocks = true,
      .answer = &rp_shape_run, .summary = "One run." },
    { RP_ROUTE("POST", "/v1/runs", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, start_run), .blocks = true, .body = &start_shape,
      .answer = &rp_shape_run, .status = 202, .errors = "already_running not_found",
      .summary = "Starts a sweep now, or with dry_run says what it would do (200).",
      .example = "-X POST -d '{\"kind\":\"sweep\",\"dry_run\":true}'" },
    { RP_ROUTE("POST", "/v1/runs/{id}/cancel", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, cancel_run), .answer = &rp_shape_run,
      .status = 202, .errors = "not_found",
      .summary =
          "Ends a run between two batches: its outcome is then cancelled, and what it did stays. A continuous sweep "
          "goes on with its next run; a hold on everything stops it.",
      .example = "-X POST" },
};
const struct rp_routes rp_routes_runs = { routes, sizeof routes / sizeof routes[0] };
