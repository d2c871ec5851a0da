/* SPDX-License-Identifier: Apache-2.0 */
/* Safety nets, as the daemon (what was left is carried on, else one is begun) and the command line
 * (one is begun) run them, beside everything else. Nothing is lost here: whatever one brings back is
 * a false finding, and no verb of it may make a move (judge.c, judge_files.c). */
#include <signal.h>

#include "core/safety_net/safety_net.h"
#include "net.h"
#include "node.h"
#include "world.h"

void sim_net_choose(struct sim *s)
{
    s->netting.random = sim_stream(s->seed, 4);
    s->netting.chance = sim_chance(&s->netting.random, 2500) ? (int)sim_between(&s->netting.random, 60, 500) : 0;
}

bool sim_wants_net(struct sim_node *n)
{
    return n->sim->netting.chance > 0 && sim_chance(&n->sim->netting.random, n->sim->netting.chance);
}

static volatile sig_atomic_t stops[SIM_NODES];

static void after_batch(void *ctx, const struct rp_run *run)
{
    struct sim_node *n = ctx;
    (void)run;
    if (n->sim->faults.on && sim_chance(&n->sim->netting.random, 500)) stops[n->index] = 1;
}

static int enter(struct rp_safety_net *net, bool begins, struct rp_run *run, struct rp_error *err)
{
    int r = begins ? RP_ENOTFOUND
                   : rp_run_resume(net->catalog, RP_RUN_SAFETY_NET, net->worker, net->stale_after_ms, run, err);
    if (r != RP_ENOTFOUND) return r;
    rp_error_clear(err);
    return rp_safety_net_begin(net, run, err);
}

static void judge(struct sim *s, const struct rp_run *run)
{
    for (size_t i = 0; i < run->figures.n_let_go; i++)
        if (run->figures.let_go[i].rows > 0)
            sim_violate(s, "STATES", "a safety net brought %s back, and nothing was lost", run->figures.let_go[i].what);
}

int sim_give_net(struct sim_node *n)
{
    static struct rp_run runs[SIM_NODES]; /* too big for a coroutine's stack */
    static struct rp_config configs[SIM_NODES];
    struct sim *s = n->sim;
    struct rp_run *run = &runs[n->index];
    struct rp_error err = { 0 };
    const char *outcome = NULL;
    configs[n->index] = (struct rp_config){ .stores = &s->config, .n_stores = 1 };
    struct rp_safety_net net = { .catalog = n->catalog,
                                 .config = &configs[n->index],
                                 .uploads = &s->uploads,
                                 .worker = &n->worker,
                                 .actor = "safety net",
                                 .limit = 1000,
                                 .stale_after_ms = SIM_STALE_MS,
                                 .stop = &stops[n->index],
                                 .finished = after_batch,
                                 .ctx = n };
    stops[n->index] = 0;
    int r = enter(&net, n->command.flag, run, &err);
    bool entered = r == 0;
    if (entered) r = rp_safety_net_carry(&net, run, &outcome, &err);
    if (entered) judge(s, run);
    if (entered && n->dead) sim_see(s, SIGHT_NET_CRASHED);
    if (outcome != NULL && s->faults.on) sim_see(s, SIGHT_NET_ENDED);
    if (r < 0) sim_say(s, "node %d: a safety net fails: %s", n->index, err.text);
    return r;
}
