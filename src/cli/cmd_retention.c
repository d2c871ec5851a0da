/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_retention.c - `retention`: one run that lets old records go, or with --dry-run what it would
 * let go. */
#include "base/cleanup.h"
#include "cli/carried.h"
#include "core/retention/retention.h"
#include "lib/answer.h"

#include <stdlib.h>

#define NOTHING "nothing is old enough"

static int dry_run(struct rp_cli *cli, struct rp_retention *retention, struct rp_run *run, struct rp_error *err)
{
    bool complete;
    int r = rp_retention_look(retention, &run->figures, &complete, err);
    if (r < 0) return r;
    rp_emit(cli, rp_retention_plan_json(&run->figures, complete));
    rp_carried_say(cli, &run->figures, "would go", NOTHING);
    if (!complete)
        rp_say(cli, "  and more: of each kind the first %d rows are looked at\n",
               RP_RETENTION_LOOKS * RP_RETENTION_BATCH);
    return 0;
}

static int carry(struct rp_cli *cli, struct rp_retention *retention, struct rp_run *run, struct rp_error *err)
{
    struct rp_progress progress;
    const char *outcome = NULL;
    int r = rp_retention_begin(retention, run, err);
    if (r < 0) return r;
    rp_catch_signals(0);
    rp_progress_begin(&progress, cli, "letting go", 0);
    retention->finished = rp_carried_batch;
    retention->ctx = &progress;
    retention->cancel = &rp_stop_asked;
    r = rp_retention_carry(retention, run, &outcome, err);
    rp_progress_clear(&progress);
    return rp_carried_end(cli, run, outcome, r, "let go", NOTHING, err);
}

int rp_cmd_retention(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    bool dry = rp_args_has(&cli->args, "dry-run");
    if (run == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a retention");
    int r = rp_cli_open(cli, err);
    if (r < 0) return r;
    struct rp_retention retention = rp_session_retention(&cli->session);
    return dry ? dry_run(cli, &retention, run, err) : carry(cli, &retention, run, err);
}
