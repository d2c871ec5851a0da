/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "cli/cmd_sweep.h"
#include "core/subject/subject.h"
#include "core/sweep/plan.h"
#include "lib/answer.h"

#include <inttypes.h>

static void say_examples(const struct rp_cli *cli, const struct rp_planned *p)
{
    char subject[RP_SHOWN_MAX], reason[RP_SHOWN_MAX], due[RP_WHEN_TEXT];
    int64_t now_ms = rp_session_now_ms(&cli->session);
    size_t i;
    json_t *mark;
    json_array_foreach(p->examples, i, mark)
    {
        const char *why = rp_json_get_text(mark, "reason", "");
        rp_say(cli, "  %s, due %s%s%s%s\n", rp_show(rp_json_get_text(mark, "subject", "?"), subject),
               rp_show_when(p->example_due_ms[i], now_ms, due), why[0] != 0 ? ", reason: " : "", rp_show(why, reason),
               json_is_string(json_object_get(mark, "guard")) ? "; its references are counted first" : "");
    }
    if (p->marks > (int64_t)i) rp_say(cli, "  and %" PRId64 " more\n", p->marks - (int64_t)i);
}

static void say_store(const struct rp_cli *cli, const struct rp_planned *p)
{
    const struct rp_store_config *config = p->store->config;
    const char *would = config->mode == RP_MODE_QUARANTINE ? ", would be moved to quarantine" : ", would be purged";
    char size[RP_SIZE_TEXT];
    if (cli->json) return;
    rp_say(cli, "%s: %s%" PRId64 " due, %s%s\n", config->name, p->left_out ? "left out; " : "", p->marks,
           rp_show_size(p->bytes, size), p->left_out ? "" : would);
    if (config->mode == RP_MODE_QUARANTINE && rp_config_is_s3(config) && !rp_subject_can_hide(p->store))
        rp_say(cli, "  quarantine is a copy there: neither ACL nor storage class would come back\n");
    say_examples(cli, p);
    if (p->unconfirmed > 0)
        rp_say(cli, "  %" PRId64 " %s for outside services, which would be asked first\n", p->unconfirmed,
               p->unconfirmed == 1 ? "waits" : "wait");
}

int rp_sweep_dry_run(struct rp_sweep_call *call, struct rp_sweep *sweep, struct rp_error *err)
{
    RP_CLEANUP(rp_plan_freep) struct rp_plan *plan = NULL;
    int r = rp_plan_make(sweep, &plan, err);
    if (r < 0) return r;
    json_t *o = rp_plan_json(plan, sweep->name);
    /* those that could not be opened, and have no place in the plan */
    if (json_array_size(call->left_out) > 0) rp_json_set(o, "left_out", json_copy(call->left_out));
    for (size_t i = 0; i < plan->n; i++) {
        const struct rp_planned *p = &plan->at[i];
        say_store(call->cli, p);
        if (p->left_out || p->waiting > 0) rp_sweep_leave_out(call, p->store->config->name, p->waiting, &p->why);
    }
    rp_emit(call->cli, o);
    rp_sweep_say_what_waits(call);
    return 0;
}
