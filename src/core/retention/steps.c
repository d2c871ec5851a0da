/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - what is let go, in this order: what others look at goes after those who look. */
#include "core/retention/steps.h"

#include <stddef.h>

#define KEPT(member) offsetof(struct rp_retention_config, member)

/* clang-format off */
const struct rp_retention_step rp_retention_steps[] = {
    { "keys",         KEPT(keys_ms), false,  rp_retention_find_keys,   rp_retention_let_go_keys },
    { "files",        KEPT(files_ms), true,  rp_retention_find_files,  rp_retention_let_go_files },
    { "transactions", KEPT(files_ms), false, rp_retention_find_txns,   rp_retention_let_go_txns },
    { "marks",        KEPT(marks_ms), true,  rp_retention_find_marks,  rp_retention_let_go_marks },
    { "holds",        KEPT(marks_ms), false, rp_retention_find_holds,  rp_retention_let_go_holds },
    { "tokens",       KEPT(marks_ms), false, rp_retention_find_tokens, rp_retention_let_go_tokens },
    { "jobs",         KEPT(keys_ms), false,  rp_retention_find_jobs,   rp_retention_let_go_jobs },
    { "runs",         KEPT(marks_ms), false, rp_retention_find_runs,   rp_retention_let_go_runs },
    { "audit",        KEPT(audit_ms), false, rp_retention_find_audit,  rp_retention_let_go_audit },
};
/* clang-format on */
const size_t rp_retention_steps_count = sizeof rp_retention_steps / sizeof rp_retention_steps[0];

_Static_assert(sizeof rp_retention_steps / sizeof rp_retention_steps[0] <= RP_LET_GO_MAX, "figures have room for each");
