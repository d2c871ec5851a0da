/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/cmd_sweep.h"

#include <inttypes.h>
#include <stdio.h>

#define EXAMPLES 10

struct planned {
    int64_t marks, bytes, guarded;
    json_t *examples;            /* the first of each store */
    int64_t due_at_ms[EXAMPLES]; /* of them */
};

struct plan {
    struct rp_sweep_call *call;
    struct rp_sweeper *sweeper;
    struct planned stores[RP_STORES_MAX];
};

static size_t index_of(const struct rp_sweep_call *call, const struct rp_store *store)
{
    size_t i = 0;
    while (i + 1 < call->n_stores && call->stores[i] != store)
        i++;
    return i;
}

static int plan_mark(void *ctx, const struct rp_store *store, const struct rp_mark *mark, struct rp_error *err)
{
    struct plan *plan = ctx;
    struct planned *p = &plan->stores[index_of(plan->call, store)];
    bool guarded = (mark->checks & RP_CHECK_REFERENCES) != 0;
    (void)err;
    p->marks++;
    p->bytes += mark->size_bytes;
    p->guarded += guarded;
    if (json_array_size(p->examples) >= EXAMPLES) return 0;
    p->due_at_ms[json_array_size(p->examples)] = mark->due_at_ms;
    json_t *o = rp_mark_line(mark, store->config->name);
    rp_json_set(o, "guard", guarded ? json_string("references") : json_null());
    rp_json_append(p->examples, o);
    return 0;
}

static const char *effect_of(enum rp_mode mode)
{
    return mode == RP_MODE_QUARANTINE ? "quarantine" : "purge";
}

static void say_examples(const struct rp_cli *cli, const struct planned *p)
{
    char subject[RP_SHOWN_MAX], reason[RP_SHOWN_MAX], due[RP_WHEN_TEXT];
    int64_t now_ms = rp_session_now_ms(&cli->session);
    size_t i;
    json_t *mark;
    json_array_foreach(p->examples, i, mark)
    {
        const char *why = rp_json_get_text(mark, "reason", "");
        rp_say(cli, "  %s, due %s%s%s%s\n", rp_show(rp_json_get_text(mark, "subject", "?"), subject),
               rp_show_when(p->due_at_ms[i], now_ms, due), why[0] != 0 ? ", reason: " : "", rp_show(why, reason),
               json_is_string(json_object_get(mark, "guard")) ? "; its references are counted first" : "");
    }
    if (p->marks > (int64_t)i) rp_say(cli, "  and %" PRId64 " more\n", p->marks - (int64_t)i);
}

static json_t *tell_store(const struct plan *plan, size_t i, bool left_out)
{
    const struct planned *p = &plan->stores[i];
    const struct rp_store_config *config = plan->call->stores[i]->config;
    const struct rp_cli *cli = plan->call->cli;
    char size[RP_SIZE_TEXT];
    if (!cli->json) {
        rp_say(cli, "%s: %s%" PRId64 " due, %s%s\n", config->name, left_out ? "left out; " : "", p->marks,
               rp_show_size(p->bytes, size),
               left_out                             ? ""
               : config->mode == RP_MODE_QUARANTINE ? ", would be moved to quarantine"
                                                    : ", would be purged");
        say_examples(cli, p);
    }
    json_t *o = json_object();
    rp_json_set(o, "store", json_string(config->name));
    rp_json_set(o, "effect", left_out ? json_string("none") : json_string(effect_of(config->mode)));
    rp_json_set(o, "marks", json_integer(p->marks));
    rp_json_set(o, "bytes", json_integer(p->bytes));
    rp_json_set(o, "guarded", json_integer(p->guarded));
    rp_json_set(o, "examples", json_incref(p->examples));
    return o;
}

static json_t *tell_plan(struct plan *plan)
{
    struct rp_sweep_call *call = plan->call;
    json_t *stores = json_array(), *o = json_object();
    for (size_t i = 0; i < call->n_stores; i++) {
        struct rp_error why = { 0 };
        bool left_out = rp_sweeper_may_purge(plan->sweeper, call->stores[i], true, &why) < 0;
        rp_json_append(stores, tell_store(plan, i, left_out));
        int64_t waiting = left_out ? plan->stores[i].marks : rp_sweeper_weak(plan->sweeper, call->stores[i], &why);
        if (left_out || waiting > 0) rp_sweep_leave_out(call, call->stores[i]->config->name, waiting, &why);
    }
    rp_json_set(o, "dry_run", json_true());
    rp_json_set(o, "stores", stores);
    rp_json_set(o, "left_out", json_incref(call->left_out));
    return o;
}

int rp_sweep_plan(struct rp_sweep_call *call, struct rp_sweeper *sweeper, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct plan *plan = calloc(1, sizeof *plan);
    RP_CLEANUP(rp_json_decrefp) json_t *all = json_array();
    if (plan == NULL || all == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a plan");
    plan->call = call;
    plan->sweeper = sweeper;
    for (size_t i = 0; i < call->n_stores; i++) {
        plan->stores[i].examples = json_array();
        rp_json_append(all, plan->stores[i].examples); /* owns it */
    }
    int r = rp_sweeper_plan(sweeper, plan_mark, plan, err);
    if (r < 0) return r;
    rp_emit(call->cli, tell_plan(plan));
    return 0;
}
