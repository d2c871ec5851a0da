/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what the verbs answered, as JSON for a program: the same words from the command line
 * (--json) and over HTTP. */
#ifndef RP_LIB_ANSWER_H
#define RP_LIB_ANSWER_H

#include "base/error.h"
#include "catalog/audit/audit.h"
#include "catalog/mark/dead.h"
#include "catalog/run.h"
#include "core/hold.h"
#include "core/mark/mark.h"
#include "core/reprieve/reprieve.h"

#include <jansson.h>

json_t *rp_error_json(const struct rp_error *err); /* {"code","message","hint"} */

/* {"subject","outcome":"created",...}, or refused with "error". `reason`: as it was asked for. */
json_t *rp_mark_answer_json(const struct rp_mark_answer *answer, const char *store, const char *key,
                            const char *reason);
/* The mark and what became of it: restored, already_restored, returned, or refused with "error". */
json_t *rp_reprieve_answer_json(const struct rp_reprieve_answer *answer, const struct rp_mark *mark, const char *store,
                                bool dry_run);
json_t *rp_dead_json(const struct rp_dead *dead, const struct rp_mark *mark, const char *store);
json_t *rp_audit_json(const struct rp_audit_row *row);
json_t *rp_audit_verdict_json(const struct rp_audit_verdict *verdict);

/* A run: its record, or, while it has none, how it stands. RP_ENOTFOUND: there never was one. */
int rp_run_find_json(struct rp_db *db, int64_t run_id, json_t **out, struct rp_error *err);
int rp_record_json(const struct rp_record_row *row, json_t **out, struct rp_error *err);
/* Those under way, unless `before_id` names a run, then up to `limit` records, newest first. `run` is lent. */
struct rp_run_shown {
    int64_t id, started_at_ms;
    bool open;
    json_t *run;
};
typedef int rp_run_shown_fn(void *ctx, const struct rp_run_shown *shown, struct rp_error *err);
int rp_runs_each_json(struct rp_db *db, int64_t before_id, int64_t limit, rp_run_shown_fn *fn, void *ctx,
                      struct rp_error *err);

/* `scope` as rp_scope_text writes it. */
json_t *rp_hold_json(const struct rp_hold *hold, const char *scope);

#endif
