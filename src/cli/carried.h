/* SPDX-License-Identifier: Apache-2.0 */
/* carried.h - what a command says of a run that is carried to its end here and counts rows by kind:
 * a retention, a safety net. */
#ifndef RP_CLI_CARRIED_H
#define RP_CLI_CARRIED_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "core/run/run.h"

/* A line for each kind: "marks  12 let go". `nothing`: said if there was none; may be NULL. */
void rp_carried_say(const struct rp_cli *cli, const struct rp_figures *figures, const char *words, const char *nothing);
/* After each batch; `progress` is a struct rp_progress. */
void rp_carried_batch(void *progress, const struct rp_run *run);
/* How it ended, in words and as the exit code. `outcome` NULL: it is still open, because of `r` or
 * because another worker has it now. */
int rp_carried_end(struct rp_cli *cli, const struct rp_run *run, const char *outcome, int r, const char *words,
                   const char *nothing, struct rp_error *err);

#endif
