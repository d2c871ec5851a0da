/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - the two halves of each step, for the table of them. */
#ifndef RP_CORE_RETENTION_STEPS_H
#define RP_CORE_RETENTION_STEPS_H

#include "core/retention/retention.h"

/* others.c: rows of a kind that age alone lets go. */
rp_retention_find_fn rp_retention_find_old;
rp_retention_let_go_fn rp_retention_let_go_old;
rp_retention_let_go_fn rp_retention_let_go_runs;

rp_retention_find_fn rp_retention_find_audit;
rp_retention_let_go_fn rp_retention_let_go_audit;
rp_retention_find_fn rp_retention_find_files;
rp_retention_let_go_fn rp_retention_let_go_files;
rp_retention_find_fn rp_retention_find_txns;
rp_retention_let_go_fn rp_retention_let_go_txns;
rp_retention_find_fn rp_retention_find_marks;
rp_retention_let_go_fn rp_retention_let_go_marks;

#endif
