/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_retention.c - `retention`: one run that lets old records go, or with --dry-run what it would
 * let go. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "core/journal.h"
#include "core/retention/retention.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void batch_finished(void *ctx, const struct rp_run *run)
{
    rp_progress_at(ctx, run->figures.scanned);
}

static void say_figures(const struct rp_cli *cli, const struct rp_figures *f, const char *words, bool done)
{
    int64_t sum = 0;
    for (size_t i = 0; i < f->n_let_go; i++) {
        sum += f->let_go[i].rows;
        if (f->let_go[i].rows > 0) rp_say(cli, "  %-14s %" PRId64 " %s\n", f->let_go[i].what, f->let_go[i].rows, words);
    }
    if (sum == 0 && done) rp_say(cli, "  nothing is old enough\n");
}

static int dry_run(struct rp_cli *cli, struct rp_retention *retention, struct rp_run *run, struct rp_error *err)
{
    bool complete;
    int r = rp_retention_look(retention, &run->figures, &complete, err);
    if (r < 0) return r;
    rp_emit(cli, rp_retention_plan_json(&run->figures, complete));
    if (!cli->json) say_figures(cli, &run->figures, "would go", true);
    if (!complete)
        rp_say(cli, "  and more: of each kind the first %d rows are looked at\n",
               RP_RETENTION_LOOKS * RP_RETENTION_BATCH);
    return 0;
}

static int carry(struct rp_cli *cli, struct rp_retention *retention, struct rp_run *run, struct rp_error *err)
{
    struct rp_progress progress;
    char id[RP_ID_TEXT];
    const char *outcome = NULL;
    int r = rp_retention_begin(retention, run, err);
    if (r < 0) return r;
    rp_catch_signals(0);
    rp_progress_begin(&progress, cli, "letting go", 0);
    retention->finished = batch_finished;
    retention->ctx = &progress;
    retention->cancel = &rp_stop_asked;
    r = rp_retention_carry(retention, run, &outcome, err);
    rp_progress_clear(&progress);
    if (outcome == NULL) return r < 0 ? r : rp_error_set(err, RP_ECHANGED, "another worker has taken the run over");
    rp_emit(cli, rp_run_json(run, outcome, false, rp_session_now_ms(&cli->session)));
    rp_say(cli, "%s  %s\n", rp_id_format(RP_ID_RUN, run->id, id), outcome);
    if (!cli->json) say_figures(cli, &run->figures, "let go", strcmp(outcome, "done") == 0);
    for (int64_t i = 0; i < run->figures.n_errors && i < RP_RUN_ERRORS_MAX; i++)
        rp_warn("%s", run->figures.errors[i]);
    return strcmp(outcome, "done") == 0 ? 0 : rp_error_exit(strcmp(outcome, "failed") == 0 ? RP_EFAILED : RP_EPARTLY);
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
