/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sweep.h - what a sweep and its dry run share. */
#ifndef RP_CLI_CMD_SWEEP_H
#define RP_CLI_CMD_SWEEP_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "core/sweep/sweep.h"

struct rp_sweep_call {
    struct rp_cli *cli;
    bool dry_run;
    int64_t limit;
    struct rp_store *stores[RP_STORES_MAX];
    size_t n_stores;
    json_t *left_out; /* [{"store","due","code","message","hint"}] */
    struct rp_progress progress;
};

void rp_sweep_leave_out(struct rp_sweep_call *call, const char *store, int64_t due, const struct rp_error *why);
/* Marks that are due and are claimed by no sweep for now: a pause, an open restore. */
void rp_sweep_say_what_waits(struct rp_sweep_call *call);
/* The dry run: says what a sweep would do now and writes nothing, neither to a store nor to the
 * catalog. */
int rp_sweep_dry_run(struct rp_sweep_call *call, struct rp_sweep *sweep, struct rp_error *err);

#endif
