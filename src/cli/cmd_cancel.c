/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cancel.c - `cancel`: a run ends between two of its batches. */
#include "base/cleanup.h"
#include "base/id.h"
#include "cli/cli.h"
#include "core/run/run.h"
#include "lib/answer.h"

int rp_cmd_cancel(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_session *s = &cli->session;
    const char *text = cli->args.words[0];
    struct rp_cancel_command c = { .command = { .verb = &rp_verb_cancel }, .worker = &s->worker, .arena = &arena };
    int r = rp_cli_open(cli, err);
    if (r == 0) r = rp_cli_id(text, RP_ID_RUN, &c.run_id, err);
    if (r < 0) return r;
    c.stale_after_ms = s->config.lock_stale_after_ms;
    r = rp_cli_run(cli, &c.command, err);
    if (r < 0) return r;
    json_t *run = rp_cancelled_json(&c, err);
    if (run == NULL) return err->code;
    rp_emit(cli, run);
    if (c.over)
        rp_say(cli, "%s  cancelled; the process that worked on it had ended before\n", text);
    else
        rp_say(cli, "%s  ends after its batch; `reprieve runs show %s` tells how\n", text, text);
    return 0;
}
