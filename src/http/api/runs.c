/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - deletion records and runs under way, and the end of a run. */
#include "http/api/runs.h"
#include "base/text/json.h"
#include "catalog/run.h"
#include "core/run/run.h"
#include "http/api/shapes.h"
#include "lib/answer.h"
#include "lib/session.h"

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

/* ---- cancel ---- */

struct cancelling {
    struct rp_cancel_command command;
    struct rp_worker worker;
};

static void then_cancelled(struct rp_request *q)
{
    const struct cancelling *c = (const struct cancelling *)q->command;
    struct rp_error err = { 0 };
    json_t *run = rp_cancelled_json(&c->command, &err);
    if (run == NULL)
        rp_reply_error(q, &err);
    else
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

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/runs", RP_FOR_ADMINS, RP_MAY_READ_RUNS, list_runs), .blocks = true,
      .query = &rp_shape_runs_query, .answer = &rp_shape_run, .many = true,
      .summary = "Runs: first those under way, then deletion records, newest first." },
    { RP_ROUTE("GET", "/v1/runs/summary", RP_FOR_ADMINS, RP_MAY_READ_RUNS, rp_http_summarise_runs), .blocks = true,
      .query = &rp_shape_runs_summary_query, .answer = &rp_shape_runs_summary,
      .summary = "What the runs of the last days did, in sum." },
    { RP_ROUTE("GET", "/v1/runs/{id}", RP_FOR_ADMINS, RP_MAY_READ_RUNS, get_run), .blocks = true,
      .answer = &rp_shape_run, .errors = "not_found", .summary = "One run." },
    { RP_ROUTE("POST", "/v1/runs", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, rp_http_start_run), .blocks = true,
      .body = &rp_shape_run_request, .answer = &rp_shape_run, .status = 202,
      .also = { { .status = 200, .answer = &rp_shape_run_plan, .help = "with dry_run: what it would do" } },
      .errors = "already_running not_found",
      .summary = "Starts a sweep, a retention, a safety net or an import now, or with dry_run says what it would do; "
                 "not of an import.",
      .example = "-X POST -d '{\"kind\":\"sweep\",\"dry_run\":true}'" },
    { RP_ROUTE("POST", "/v1/runs/{id}/cancel", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, cancel_run), .answer = &rp_shape_run,
      .status = 202, .errors = "not_found",
      .summary =
          "Ends a run between two batches: its outcome is then cancelled, and what it did stays. A continuous sweep "
          "goes on with its next run; a hold on everything stops it.",
      .example = "-X POST" },
};
const struct rp_routes rp_routes_runs = { routes, sizeof routes / sizeof routes[0] };
