/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - what is let go, in this order: rows go after the rows that refer to them. */
#include "core/retention/steps.h"

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
