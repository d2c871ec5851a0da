/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what the verbs answered, as JSON for a program: the same words from the command line
 * (--json) and over HTTP. */
#ifndef RP_LIB_ANSWER_H
#define RP_LIB_ANSWER_H

#include "base/error.h"
#include "catalog/audit/audit.h"
#include "catalog/mark/dead.h"
#include "catalog/run.h"
#include "core/dead.h"
#include "core/hold.h"
#include "core/mark/mark.h"
#include "core/reprieve/reprieve.h"
#include "core/run/run.h"
#include "core/sweep/plan.h"

#include <jansson.h>

json_t *rp_error_json(const struct rp_error *err); /* {"code","message","hint"} */

/* {"subject","outcome":"created",...}, or refused with "error". */
json_t *rp_mark_answer_json(const struct rp_mark_answer *answer, const char *store, const char *key);
/* The mark and what became of it: restored, already_restored, returned, or refused with "error". */
json_t *rp_reprieve_answer_json(const struct rp_reprieve_answer *answer, const struct rp_mark *mark, const char *store,
                                bool dry_run);
json_t *rp_dead_json(const struct rp_dead *dead, const struct rp_mark *mark, const char *store);
/* What a person decided about one. */
json_t *rp_decided_json(const struct rp_dead_item *item, const char *store);
json_t *rp_audit_json(const struct rp_audit_row *row);
json_t *rp_audit_verdict_json(const struct rp_audit_verdict *verdict);
struct rp_segment;
json_t *rp_segment_json(const struct rp_segment *segment);

/* A run: its record, or, while it has none, how it stands. RP_ENOTFOUND: there never was one. */
int rp_run_find_json(struct rp_db *db, int64_t run_id, json_t **out, struct rp_error *err);
int rp_record_json(const struct rp_record_row *row, json_t **out, struct rp_error *err);
/* Those under way, unless `before_id` names a run, then up to `limit` records, newest first. `run`
 * is lent. */
struct rp_run_shown {
    int64_t id, started_at_ms;
    bool open;
    json_t *run;
};
typedef int rp_run_shown_fn(void *ctx, const struct rp_run_shown *shown, struct rp_error *err);
int rp_runs_each_json(struct rp_db *db, int64_t before_id, int64_t limit, rp_run_shown_fn *fn, void *ctx,
                      struct rp_error *err);

/* What cancelling it made of a run. */
json_t *rp_cancelled_json(const struct rp_cancel_command *command, struct rp_error *err);
/* What a sweep would do. */
json_t *rp_plan_json(const struct rp_plan *plan, const char *name);
/* What a safety net would bring back, with the first examples (a list of rp_net_finding_json, taken
 * over). */
#define RP_NET_EXAMPLES 100
json_t *rp_safety_net_plan_json(const struct rp_figures *figures, bool complete, json_t *examples);
/* What a retention would let go; `complete` as rp_retention_look has it. */
json_t *rp_retention_plan_json(const struct rp_figures *figures, bool complete);

/* `scope` as rp_scope_text writes it. */
json_t *rp_hold_json(const struct rp_hold *hold, const char *scope);
/* The same for one that was placed, with what it came too late for. */
typedef const char *rp_store_name_fn(void *ctx, int64_t store_id);
json_t *rp_placed_json(const struct rp_hold_command *command, const char *scope, rp_store_name_fn *name_of, void *ctx);
json_t *rp_lifted_json(int64_t hold_id);

#endif
