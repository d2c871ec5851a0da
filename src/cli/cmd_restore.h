/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_restore.h - what the two halves of `restore` share: named subjects (cmd_restore.c) and
 * filters (restore_filter.c). */
#ifndef RP_CLI_CMD_RESTORE_H
#define RP_CLI_CMD_RESTORE_H

#include "cli/answers.h"
#include "cli/progress.h"
#include "core/reprieve/reprieve.h"

struct rp_restore_report {
    struct rp_cli *cli;
    bool dry_run;
    struct rp_answers told;
    struct rp_progress progress;
};

void rp_restore_report_init(struct rp_restore_report *report, struct rp_cli *cli);
/* What became of one; `text`: as it was given, "" by a filter. */
void rp_restore_report_add(struct rp_restore_report *report, const char *text, const struct rp_reprieve_item *item);
int rp_restore_report_end(struct rp_restore_report *report);

/* Everything that fits the filters: a run, or with --dry-run what it would do. */
int rp_restore_by_filter(struct rp_cli *cli, struct rp_error *err);

#endif
