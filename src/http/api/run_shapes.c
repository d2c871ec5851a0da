/* SPDX-License-Identifier: Apache-2.0 */
/* run_shapes.c - what the calls about runs take and answer. */
#include "http/api/runs.h"
#include "http/api/shapes.h"

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
    { RP_FIELD("guard", TEXT), .help = "what is asked before it is purged; null: nothing" },
};
static const struct rp_shape example_shape = RP_SHAPE("due_mark", example_fields, "a mark that is due");

static const char *const effects[] = { "none", "quarantine", "purge", NULL };
static const struct rp_field planned_fields[] = {
    { RP_FIELD("store", TEXT), .required = true },
    { RP_FIELD("effect", CHOICE), .choices = effects, .required = true },
    { RP_FIELD("marks", INT), .required = true, .help = "due and not held, without those of unconfirmed" },
    { RP_FIELD("bytes", INT), .required = true },
    { RP_FIELD("guarded", INT), .required = true, .help = "of the marks: with a guard" },
    { RP_FIELD("unconfirmed", INT), .required = true, .help = "outside services would be asked about these first" },
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
const struct rp_shape rp_shape_run_plan = RP_SHAPE("run_plan", plan_fields, "what such a run would do");

static const struct rp_field list_fields[] = {
    RP_FIELD_LIMIT,
    { RP_FIELD("cursor", ID), .id = RP_ID_RUN, .help = "next_cursor of the page before" },
};
const struct rp_shape rp_shape_runs_query = RP_SHAPE("runs_query", list_fields, "a page of runs");

static const struct rp_field summary_query_fields[] = {
    { RP_FIELD("days", INT), .least = 1, .most = 3650, .help = "how many back from now; 30 unless told" },
};
const struct rp_shape rp_shape_runs_summary_query =
    RP_SHAPE("runs_summary_query", summary_query_fields, "over how long");

static const struct rp_field summary_fields[] = {
    { RP_FIELD("since", TIME), .required = true },
    { RP_FIELD("runs", INT), .required = true },
    { RP_FIELD("outcomes", OBJECT), .of = &outcome_counts_shape, .required = true },
    { RP_FIELD("counts", OBJECT), .of = &counts_shape, .required = true, .help = "the sums of the runs' counts" },
    { RP_FIELD("longest_ms", INT), .required = true },
    { RP_FIELD("last_finished_at", TIME) },
    { RP_FIELD("complete", BOOL), .required = true, .help = "false: there were more than 10000 runs" },
};
const struct rp_shape rp_shape_runs_summary = RP_SHAPE("runs_summary", summary_fields, "runs of some days, summed up");

static const struct rp_field start_fields[] = {
    { RP_FIELD("kind", CHOICE), .choices = kinds, .required = true,
      .help = "sweep, retention, safety_net or import; a restore is begun at /v1/restore" },
    { RP_FIELD("name", TEXT), .least = 1, .most = 63,
      .help = "of a sweep: one store; else all. Of an import: its store" },
    { RP_FIELD("dry_run", BOOL), .help = "say what would happen and change nothing" },
    { RP_FIELD("plan", BOOL), .help = "comes later" },
};
const struct rp_shape rp_shape_run_request = RP_SHAPE("run_request", start_fields, "a run to be started");
