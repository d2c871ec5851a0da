/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_safety_net.c - `safety-net`: one run that brings back what nothing would find any more, or
 * with --dry-run what it would do, and why. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "core/journal.h"
#include "core/safety_net/safety_net.h"
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
    if (sum == 0 && done) rp_say(cli, "  nothing was lost\n");
}

/* ---- a dry run ---- */

struct showing {
    const struct rp_cli *cli;
    json_t *examples;
};

static int show(void *ctx, const struct rp_net_finding *finding, struct rp_error *err)
{
    struct showing *s = ctx;
    char parent[RP_ID_TEXT] = "";
    (void)err;
    if (json_array_size(s->examples) == RP_NET_EXAMPLES) return 0;
    rp_json_append(s->examples, rp_net_finding_json(finding));
    if (s->cli->json) return 0;
    if (finding->orphan->owner_id != 0) rp_id_format(RP_ID_FILE, finding->orphan->owner_id, parent);
    rp_say(s->cli, "  %s:%s: %s%s%s; would be %s\n", finding->orphan->store, finding->orphan->key,
           finding->orphan->what, parent[0] != 0 ? ": " : "", parent, finding->would);
    return 0;
}

static int dry_run(struct rp_cli *cli, struct rp_safety_net *net, struct rp_run *run, struct rp_error *err)
{
    struct showing showing = { .cli = cli, .examples = json_array() };
    bool complete = true;
    int r = rp_safety_net_look(net, show, &showing, &run->figures, &complete, err);
    if (r < 0) {
        json_decref(showing.examples);
        return r;
    }
    rp_emit(cli, rp_safety_net_plan_json(&run->figures, complete, showing.examples));
    if (!cli->json) say_figures(cli, &run->figures, "would be brought back", true);
    if (!complete) rp_say(cli, "  and perhaps more: %d rows of each kind are looked at\n", RP_NET_LOOKS * RP_NET_BATCH);
    return 0;
}

/* ---- a run ---- */

static int exit_of(const char *outcome)
{
    return strcmp(outcome, "done") == 0 ? 0 : rp_error_exit(strcmp(outcome, "failed") == 0 ? RP_EFAILED : RP_EPARTLY);
}

static int carry(struct rp_cli *cli, struct rp_safety_net *net, struct rp_run *run, struct rp_error *err)
{
    struct rp_progress progress;
    char id[RP_ID_TEXT];
    const char *outcome = NULL;
    int r = rp_safety_net_begin(net, run, err);
    if (r < 0) return r;
    rp_catch_signals(0);
    rp_progress_begin(&progress, cli, "looking", 0);
    net->finished = batch_finished;
    net->ctx = &progress;
    net->cancel = &rp_stop_asked;
    r = rp_safety_net_carry(net, run, &outcome, err);
    rp_progress_clear(&progress);
    if (outcome == NULL) return r < 0 ? r : rp_error_set(err, RP_ECHANGED, "another worker has taken the run over");
    rp_emit(cli, rp_run_json(run, outcome, false, rp_session_now_ms(&cli->session)));
    rp_say(cli, "%s  %s\n", rp_id_format(RP_ID_RUN, run->id, id), outcome);
    if (!cli->json) say_figures(cli, &run->figures, "brought back", strcmp(outcome, "done") == 0);
    for (int64_t i = 0; i < run->figures.n_errors && i < RP_RUN_ERRORS_MAX; i++)
        rp_warn("%s", run->figures.errors[i]);
    return exit_of(outcome);
}

int rp_cmd_safety_net(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    bool dry = rp_args_has(&cli->args, "dry-run");
    struct rp_upload_rules uploads;
    if (run == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a safety net");
    int r = rp_cli_open(cli, err);
    if (r < 0) return r;
    struct rp_safety_net net = rp_session_safety_net(&cli->session, &uploads);
    return dry ? dry_run(cli, &net, run, err) : carry(cli, &net, run, err);
}
