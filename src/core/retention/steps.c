/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - what is let go, in this order: rows go after the rows that refer to them. */
#include "core/retention/steps.h"

#include "base/error.h"
#include "base/time.h"

#include <stddef.h>

#define KEPT(member) offsetof(struct rp_retention_config, member)

/* clang-format off */
const struct rp_retention_step rp_retention_steps[] = {
    { "keys",         KEPT(keys_ms),  .find = rp_retention_find_old,   .let_go = rp_retention_let_go_old, .kind = RP_OLD_KEYS },
    { "files",        KEPT(files_ms), .find = rp_retention_find_files, .let_go = rp_retention_let_go_files, .of_marks = true },
    { "transactions", KEPT(files_ms), .find = rp_retention_find_txns,  .let_go = rp_retention_let_go_txns },
    { "marks",        KEPT(marks_ms), .find = rp_retention_find_marks, .let_go = rp_retention_let_go_marks, .of_marks = true },
    { "holds",        KEPT(marks_ms), .find = rp_retention_find_old,   .let_go = rp_retention_let_go_old, .kind = RP_OLD_HOLDS },
    { "tokens",       KEPT(marks_ms), .find = rp_retention_find_old,   .let_go = rp_retention_let_go_old, .kind = RP_OLD_TOKENS },
    { "jobs",         KEPT(keys_ms),  .find = rp_retention_find_old,   .let_go = rp_retention_let_go_old, .kind = RP_OLD_JOBS },
    { "runs",         KEPT(marks_ms), .find = rp_retention_find_old,   .let_go = rp_retention_let_go_runs, .kind = RP_OLD_RUNS },
    { "audit",        KEPT(audit_ms), .find = rp_retention_find_audit, .let_go = rp_retention_let_go_audit },
};
/* clang-format on */
const size_t rp_retention_steps_count = sizeof rp_retention_steps / sizeof rp_retention_steps[0];

_Static_assert(sizeof rp_retention_steps / sizeof rp_retention_steps[0] <= RP_LET_GO_MAX, "figures have room for each");

static int64_t kept_for(const struct rp_retention *retention, const struct rp_retention_step *step)
{
    return *(const int64_t *)(const void *)((const char *)&retention->rules + step->kept_for);
}

struct rp_retention_batch rp_retention_first_batch(const struct rp_retention *retention,
                                                   const struct rp_retention_step *step, int64_t run_id, int64_t now_ms)
{
    int64_t kept_ms = kept_for(retention, step);
    return (struct rp_retention_batch){ .rules = &retention->rules,
                                        .actor = retention->actor,
                                        .dry_run = run_id == 0,
                                        .run_id = run_id,
                                        .before_ms = now_ms > kept_ms ? now_ms - kept_ms : 0,
                                        .now_ms = now_ms,
                                        .limit = RP_RETENTION_BATCH,
                                        .more = kept_ms != RP_FOREVER_MS };
}

int rp_retention_find(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                      struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    rp_arena_reset(arena);
    *out = (struct rp_ids){ .at = rp_arena_array(arena, (size_t)batch->limit, sizeof *out->at) };
    if (out->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a batch");
    batch->more = false;
    batch->found = NULL;
    batch->gone = batch->along = 0;
    return step->find(step, db, arena, batch, out, err);
}
