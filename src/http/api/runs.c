/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - deletion records, runs under way, a sum over some days, a sweep on demand, and the
 * end of a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/run.h"
#include "core/retention/retention.h"
#include "core/run/run.h"
#include "core/safety_net/safety_net.h"
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

static const char *const kinds[] = { "sweep", "safety_net", "restore", "retention", "import", NULL };
static const char *const states[] = { "running", "interrupted", "finished", NULL };
static const char *const outcomes[] = { "done", "partial", "failed", "cancelled", NULL };

#define COUNT(name_, help_)                                                                                            \
    {                                                                                                                  \
        RP_FIELD(name_, INT), .help = (help_)                                                                          \
    }
/* clang-format off */
static const struct rp_field counts_fields[] = {
    COUNT("scanned", "looked at"), COUNT("marked", "marked"), COUNT("purged", "purged"),
    COUNT("already_gone", "of those, gone before"), COUNT("skipped", "left for later"),
    COUNT("superseded", "reprieved: a newer upload stands there"), COUNT("failed", "failed"),
    COUNT("bytes_freed", "bytes"), COUNT("restored", "of a restore: brought back"),
    COUNT("already_restored", "of a restore: had been before"), COUNT("returned", "of a restore: from quarantine"),
    COUNT("refused", "of a restore: could not be"),
};
static const struct rp_field progress_fields[] = {
    COUNT("done", "so far"), COUNT("total", "of so many"), COUNT("rate_per_s", "each second"),
    COUNT("left_s", "seconds that are left at this rate"),
};
static const struct rp_field oldest_fields[] = {
    { RP_FIELD("subject", TEXT), .required = true, .help = "STORE:KEY" }, COUNT("age_s", "how long it had been marked"),
};
static const struct rp_field largest_fields[] = {
    { RP_FIELD("subject", TEXT), .required = true, .help = "STORE:KEY" }, COUNT("bytes", "its size"),
};
static const struct rp_field waiting_fields[] = {
    COUNT("count", "marks of people and rules; an upload that is not confirmed yet is none"), COUNT("bytes", "theirs"),
    COUNT("avg_age_s", "how long they had been marked, on average"), COUNT("oldest_age_s", "and the oldest of them"),
};
static const struct rp_field outcome_counts_fields[] = {
    COUNT("done", "all of it"), COUNT("partial", "a part"), COUNT("failed", "nothing more"),
    COUNT("cancelled", "a person ended it"),
};
static const struct rp_field let_go_fields[] = {
    COUNT("keys", "answers under an Idempotency-Key"), COUNT("files", "purged and expired files"),
    COUNT("transactions", "ended ones"), COUNT("marks", "ended ones"), COUNT("holds", "lifted ones"),
    COUNT("tokens", "revoked and expired ones"), COUNT("jobs", "of the processor, that nobody waits for"),
    COUNT("runs", "figures of ended runs; their records stay"),
    COUNT("audit", "rows of the audit log, sealed before"),
};
static const struct rp_field repaired_fields[] = {
    COUNT("deletes", "deleted files that no mark waited for"), COUNT("uploads", "the same of uploads"),
    COUNT("children", "files that lived while their parent or source was gone"),
    COUNT("marks", "marks that nobody looked at"), COUNT("letters", "dead marks without a letter"),
};
/* clang-format on */
static const struct rp_shape repaired_shape =
    RP_SHAPE("repaired", repaired_fields, "how much a safety net brought back");
static const struct rp_shape let_go_shape = RP_SHAPE("let_go", let_go_fields, "how many records a retention let go");
static const struct rp_shape counts_shape = RP_SHAPE("run_counts", counts_fields, "what a run did");
static const struct rp_shape progress_shape = RP_SHAPE("run_progress", progress_fields, "how far a run is");
static const struct rp_shape oldest_shape = RP_SHAPE("run_oldest", oldest_fields, "what had waited longest");
static const struct rp_shape largest_shape = RP_SHAPE("run_largest", largest_fields, "what was largest");
static const struct rp_shape waiting_shape = RP_SHAPE("run_waiting", waiting_fields, "what a sweep left waiting");
static const struct rp_shape outcome_counts_shape =
    RP_SHAPE("run_outcomes", outcome_counts_fields, "how many runs ended how");

static const struct rp_field filter_fields[] = {
    { RP_FIELD("run", ID), .id = RP_ID_RUN, .help = "what this run marked" },
    { RP_FIELD("prefix", TEXT), .help = "STORE:PREFIX" },
    { RP_FIELD("reason", TEXT), .help = "marks with this reason" },
    { RP_FIELD("actor", TEXT), .help = "marks that this one made" },
    { RP_FIELD("since", TIME), .help = "marks made since" },
    { RP_FIELD("until", TIME), .help = "marks made before" },
};
static const struct rp_shape filter_shape = RP_SHAPE("restore_filter", filter_fields, "what a restore is about");

static const struct rp_field run_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_RUN, .required = true },
    { RP_FIELD("kind", CHOICE), .choices = kinds, .required = true },
    { RP_FIELD("name", TEXT), .required = true,
      .help = "a store's, all, or continuous@NODE; of a retention: records; of a safety net: files; "
              "of an import: its store" },
    { RP_FIELD("state", CHOICE), .choices = states, .required = true },
    { RP_FIELD("outcome", CHOICE), .choices = outcomes, .help = "once it is finished" },
    { RP_FIELD("dry_run", BOOL), .required = true, .help = "false" },
    { RP_FIELD("locked_by", TEXT), .help = "who carries it out" },
    { RP_FIELD("started_at", TIME), .required = true },
    { RP_FIELD("finished_at", TIME) },
    { RP_FIELD("duration_ms", INT) },
    { RP_FIELD("counts", OBJECT), .of = &counts_shape, .required = true },
    { RP_FIELD("let_go", OBJECT), .of = &let_go_shape, .help = "of a retention" },
    { RP_FIELD("repaired", OBJECT), .of = &repaired_shape, .help = "of a safety net" },
    { RP_FIELD("behind", INT), .help = "of a safety net: webhooks and others that are far behind" },
    { RP_FIELD("filter", OBJECT), .of = &filter_shape, .help = "of a restore" },
    { RP_FIELD("progress", OBJECT), .of = &progress_shape, .help = "while a sweep or a restore is under way" },
    { RP_FIELD("avg_age_s", INT), .help = "how long what it looked at had been marked" },
    { RP_FIELD("oldest", OBJECT), .of = &oldest_shape },
    { RP_FIELD("largest", OBJECT), .of = &largest_shape },
    { RP_FIELD("waiting", OBJECT), .of = &waiting_shape, .help = "of a sweep: in its stores, at its end" },
    { RP_FIELD("errors", TEXTS), .help = "the first of them" },
};
const struct rp_shape rp_shape_run = RP_SHAPE("run", run_fields, "one run and its deletion record");

static const struct rp_field example_fields[] = {
    RP_MARK_FIELDS,
    { RP_FIELD("guard", TEXT), .help = "what is asked before it is purged" },
};
static const struct rp_shape example_shape = RP_SHAPE("due_mark", example_fields, "a mark that is due");

static const char *const effects[] = { "none", "quarantine", "purge", NULL };
static const struct rp_field planned_fields[] = {
    { RP_FIELD("store", TEXT), .required = true },
    { RP_FIELD("effect", CHOICE), .choices = effects, .required = true },
    { RP_FIELD("marks", INT), .required = true, .help = "due and not held" },
    { RP_FIELD("bytes", INT), .required = true },
    { RP_FIELD("guarded", INT), .required = true, .help = "of the marks: with a check" },
    { RP_FIELD("examples", LIST), .of = &example_shape, .required = true, .help = "the first of them" },
    { RP_FIELD("left_out", OBJECT), .of = &rp_shape_why, .help = "why all of it, or a part, would wait" },
};
static const struct rp_shape planned_shape = RP_SHAPE("planned_store", planned_fields, "what would happen in a store");

static const struct rp_field found_fields[] = {
    { RP_FIELD("subject", TEXT), .required = true, .help = "STORE:KEY" },
    { RP_FIELD("file", ID), .id = RP_ID_FILE },
    { RP_FIELD("mark", ID), .id = RP_ID_MARK },
    { RP_FIELD("parent", ID), .id = RP_ID_FILE, .help = "what it belongs to, as parent or source" },
    { RP_FIELD("what", TEXT), .required = true, .help = "what is wrong with it" },
    { RP_FIELD("would", TEXT), .required = true, .help = "what would be done" },
};
static const struct rp_shape found_shape = RP_SHAPE("lost", found_fields, "something that nothing would find any more");

static const struct rp_field plan_fields[] = {
    { RP_FIELD("kind", CHOICE), .choices = kinds, .required = true },
    { RP_FIELD("name", TEXT), .required = true, .help = "a store's, or all" },
    { RP_FIELD("dry_run", BOOL), .required = true, .help = "true: nothing is changed" },
    { RP_FIELD("counts", OBJECT), .of = &counts_shape, .help = "of a sweep and a safety net: scanned alone" },
    { RP_FIELD("stores", LIST), .of = &planned_shape, .help = "of a sweep" },
    { RP_FIELD("let_go", OBJECT), .of = &let_go_shape, .help = "of a retention" },
    { RP_FIELD("repaired", OBJECT), .of = &repaired_shape, .help = "of a safety net" },
    { RP_FIELD("behind", INT), .help = "of a safety net: webhooks and others that are far behind" },
    { RP_FIELD("found", LIST), .of = &found_shape, .help = "of a safety net: the first of them" },
    { RP_FIELD("complete", BOOL), .help = "of a retention or a safety net; false: of some kind 100,000 rows were "
                                          "looked at, and there are more" },
};
static const struct rp_shape plan_shape = RP_SHAPE("run_plan", plan_fields, "what such a run would do");

static const struct rp_field list_fields[] = {
    RP_FIELD_LIMIT,
    { RP_FIELD("cursor", ID), .id = RP_ID_RUN, .help = "next_cursor of the page before" },
};
static const struct rp_shape list_shape = RP_SHAPE("runs_query", list_fields, "a page of runs");

static const struct rp_field summary_query_fields[] = {
    { RP_FIELD("days", INT), .least = 1, .most = 3650, .help = "how many back from now; 30 unless told" },
};
static const struct rp_shape summary_query = RP_SHAPE("runs_summary_query", summary_query_fields, "over how long");

static const struct rp_field summary_fields[] = {
    { RP_FIELD("since", TIME), .required = true },
    { RP_FIELD("runs", INT), .required = true },
    { RP_FIELD("outcomes", OBJECT), .of = &outcome_counts_shape, .required = true },
    { RP_FIELD("counts", OBJECT), .of = &counts_shape, .required = true, .help = "the sums of the runs' counts" },
    { RP_FIELD("longest_ms", INT), .required = true },
    { RP_FIELD("last_finished_at", TIME) },
    { RP_FIELD("complete", BOOL), .required = true, .help = "false: there were more than 10000 runs" },
};
static const struct rp_shape summary_shape = RP_SHAPE("runs_summary", summary_fields, "runs of some days, summed up");

static const struct rp_field start_fields[] = {
    { RP_FIELD("kind", CHOICE), .choices = kinds, .required = true,
      .help = "sweep, retention, safety_net or import; a restore is begun at /v1/restore" },
    { RP_FIELD("name", TEXT), .least = 1, .most = 63,
      .help = "of a sweep: one store; else all. Of an import: its store" },
    { RP_FIELD("dry_run", BOOL), .help = "say what would happen and change nothing" },
    { RP_FIELD("plan", BOOL), .help = "comes later" },
};
static const struct rp_shape start_shape = RP_SHAPE("run_request", start_fields, "a run to be started");

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

static const char *const counted[] = { "scanned", "marked",     "purged", "already_gone",
                                       "skipped", "superseded", "failed", "bytes_freed" };
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
        rp_reply_json(q, 200, rp_plan_json(plan, name));
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

/* The one name that runs of this kind have. NULL: a sweep is named by its store. */
static const char *own_name_of(const char *kind)
{
    if (strcmp(kind, RP_RUN_RETENTION) == 0) return RP_RETENTION_NAME;
    return strcmp(kind, RP_RUN_SAFETY_NET) == 0 ? RP_NET_NAME : NULL;
}

/* `store`: of a sweep; NULL: all. */
static void begin_run(struct rp_request *q, const char *kind, const char *store)
{
    struct beginning *b = rp_command_new(q, sizeof *b, &rp_verb_run_begin);
    const struct rp_worker *worker = NULL;
    struct rp_error err = { 0 };
    if (b == NULL) return;
    if (rp_request_reserve(q, &worker, &err) < 0) {
        rp_request_refuse(q, &b->command.command, &err, NULL);
        return;
    }
    const char *own = own_name_of(kind), *name = own != NULL ? own : store != NULL ? store : "all";
    rp_run_command_init(&b->command, &b->run, kind, name, worker, rp_request_config(q)->lock_stale_after_ms,
                        q->who.actor);
    b->store = store;
    q->after = after_begun;
    q->refused = not_begun;
    rp_request_submit(q, &b->command.command, then_begun, NULL);
}

/* ---- a retention ---- */

static void look_what_may_go(struct rp_request *q)
{
    struct rp_retention retention = { .catalog = rp_request_catalog(q), .rules = rp_request_config(q)->retention };
    struct rp_figures figures = { 0 };
    struct rp_error err = { 0 };
    bool complete;
    if (rp_retention_look(&retention, &figures, &complete, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, rp_retention_plan_json(&figures, complete));
}

/* ---- a safety net ---- */

static int keep_found(void *ctx, const struct rp_net_finding *finding, struct rp_error *err)
{
    json_t *found = ctx;
    (void)err;
    if (json_array_size(found) < RP_NET_EXAMPLES) rp_json_append(found, rp_net_finding_json(finding));
    return 0;
}

static void look_what_was_lost(struct rp_request *q)
{
    struct rp_safety_net net = { .catalog = rp_request_catalog(q) };
    struct rp_figures figures = { 0 };
    struct rp_error err = { 0 };
    json_t *found = json_array();
    bool complete;
    if (rp_safety_net_look(&net, keep_found, found, &figures, &complete, &err) == 0) {
        rp_reply_json(q, 200, rp_safety_net_plan_json(&figures, complete, found));
        return;
    }
    json_decref(found);
    rp_reply_error(q, &err);
}

/* ---- what is about everything ---- */

static void start_other(struct rp_request *q, const char *kind, const char *name)
{
    struct rp_error err = { 0 };
    bool retains = strcmp(kind, RP_RUN_RETENTION) == 0;
    if (name != NULL && strcmp(name, own_name_of(kind)) != 0) {
        rp_error_set(&err, RP_EINVAL, "name: a %s is about all %s", retains ? "retention" : "safety net",
                     own_name_of(kind));
        rp_reply_error(q, &err);
    } else if (!rp_request_bool(q->body, "dry_run"))
        begin_run(q, kind, NULL);
    else if (retains)
        look_what_may_go(q);
    else
        look_what_was_lost(q);
}

/* ---- an import ---- */

static void start_import(struct rp_request *q, const char *store)
{
    struct rp_error err = { 0 };
    if (store == NULL)
        rp_error_set(&err, RP_EINVAL, "name: an import is of one store");
    else if (rp_request_store(q, store) == NULL)
        rp_error_set(&err, RP_ENOTFOUND, "no store '%s'", store);
    else if (rp_request_bool(q->body, "dry_run"))
        rp_error_advise(&err, RP_EINVAL, "`reprieve import --dry-run` reads the objects and says it",
                        "dry_run: what an import would mark is not known before it has read the store");
    if (err.code < 0)
        rp_reply_error(q, &err);
    else
        begin_run(q, RP_RUN_IMPORT, store);
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

static void refuse(struct rp_request *q, const char *what)
{
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_EINVAL,
                 "%s: this version runs sweeps, retentions, safety nets and imports only, without a plan", what);
    rp_error_hint(&err, "{\"kind\":\"sweep\"} purges what is due now; add \"dry_run\":true to see it first");
    rp_reply_error(q, &err);
}

static void start_run(struct rp_request *q)
{
    const char *kind = rp_json_get_text(q->body, "kind", ""), *store = rp_json_get_text(q->body, "name", NULL);
    struct rp_error err = { 0 };
    struct rp_store *one = NULL;
    size_t n = 0;
    bool sweeps = strcmp(kind, RP_RUN_SWEEP) == 0, imports = strcmp(kind, RP_RUN_IMPORT) == 0;
    bool known = sweeps || imports || own_name_of(kind) != NULL;
    if (!known || rp_request_bool(q->body, "plan")) {
        refuse(q, known ? "plan" : "kind");
        return;
    }
    if (imports) {
        start_import(q, store);
        return;
    }
    if (store != NULL && strcmp(store, "all") == 0) store = NULL;
    if (!sweeps) {
        start_other(q, kind, store);
        return;
    }
    if (store != NULL && (one = rp_request_store(q, store)) == NULL) {
        rp_error_set(&err, RP_ENOTFOUND, "no store '%s'", store);
        rp_reply_error(q, &err);
        return;
    }
    if (!rp_request_bool(q->body, "dry_run")) {
        begin_run(q, RP_RUN_SWEEP, store);
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
      .answer = &rp_shape_run, .errors = "not_found", .summary = "One run." },
    { RP_ROUTE("POST", "/v1/runs", RP_FOR_ADMINS, RP_MAY_WRITE_RUNS, start_run), .blocks = true, .body = &start_shape,
      .answer = &rp_shape_run, .status = 202,
      .also = { { .status = 200, .answer = &plan_shape, .help = "with dry_run: what it would do" } },
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
