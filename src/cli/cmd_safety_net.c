/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_safety_net.c - `safety-net`: one run that brings back what nothing would find any more, or
 * with --dry-run what it would do, and why. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "cli/carried.h"
#include "core/safety_net/safety_net.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdlib.h>

#define NOTHING "nothing was lost"

static void say_behind(const struct rp_cli *cli, const struct rp_figures *f)
{
    if (f->behind > 0 && !cli->json)
        rp_say(cli, "  %" PRId64 " %s of events far behind; `reprieve doctor` says which\n", f->behind,
               f->behind == 1 ? "receiver is" : "receivers are");
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
    int r = rp_safety_net_dry_run(net, show, &showing, &run->figures, &complete, err);
    if (r < 0) {
        json_decref(showing.examples);
        return r;
    }
    rp_emit(cli, rp_safety_net_plan_json(&run->figures, complete, showing.examples));
    rp_carried_say(cli, &run->figures, "would be brought back", NOTHING);
    say_behind(cli, &run->figures);
    if (!complete) rp_say(cli, "  and perhaps more: %d rows of each kind are looked at\n", RP_NET_PAGES * RP_NET_BATCH);
    return 0;
}

/* ---- a run ---- */

static int carry(struct rp_cli *cli, struct rp_safety_net *net, struct rp_run *run, struct rp_error *err)
{
    struct rp_progress progress;
    const char *outcome = NULL;
    int r = rp_safety_net_begin(net, run, err);
    if (r < 0) return r;
    rp_catch_signals(0);
    rp_progress_begin(&progress, cli, "looking", 0);
    net->finished = rp_carried_batch;
    net->ctx = &progress;
    net->cancel = &rp_stop_asked;
    r = rp_safety_net_carry(net, run, &outcome, err);
    rp_progress_clear(&progress);
    r = rp_carried_end(cli, run, outcome, r, "brought back", NOTHING, err);
    if (outcome != NULL) say_behind(cli, &run->figures);
    return r;
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
