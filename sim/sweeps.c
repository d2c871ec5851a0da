/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps as the command line (one run from begin to end) and the daemon (a run that stays open)
 * make them. */
#include <string.h>

#include "catalog/clock.h"
#include "core/sweep/sweep.h"
#include "node.h"
#include "sweeps.h"
#include "verb.h"
#include "world.h"

#define LIMIT 12

static void count_sweepers(struct sim_node *n)
{
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_node *other = &n->sim->nodes[i];
        if (other != n && !other->dead && other->command.verb == VERB_SWEEP) sim_see(n->sim, SIGHT_TWO_SWEEPERS);
    }
}

static void note(struct sim_node *n, int code, const char *why)
{
    struct rp_error ignored = { 0 };
    struct rp_clock_state clock;
    if (code == RP_ECLOCK && rp_clock_look(n->catalog, &clock, &ignored) == 0 && rp_clock_has_jumped(clock.ahead_ms))
        sim_see(n->sim, SIGHT_CLOCK_JUMPED);
    if (code < 0) sim_say(n->sim, "node %d: a sweep is refused: %d, %s", n->index, code, why);
    if (code == RP_ENOTOWNER) sim_see(n->sim, SIGHT_NOT_OWNER);
    if (code == RP_ECLOCK) sim_see(n->sim, SIGHT_CLOCKS_APART);
    if (code == RP_EWEAK) sim_see(n->sim, SIGHT_WEAK);
}

static int whole_run(struct sim_node *n, struct rp_sweep *sweeper)
{
    static struct rp_sweep_result results[SIM_NODES]; /* too big for a coroutine's stack */
    struct rp_error err = { 0 };
    struct rp_sweep_result *result = &results[n->index];
    memset(result, 0, sizeof *result);
    int r = rp_sweep_run(sweeper, result, &err);
    if (r < 0) return r;
    note(n, result->code, result->run.figures.n_errors > 0 ? result->run.figures.errors[0] : "");
    return strcmp(result->outcome, "done") == 0 ? 0 : RP_EPARTLY;
}

static int open_run(struct sim_node *n, struct rp_sweep *sweeper)
{
    struct rp_error err = { 0 };
    struct rp_sweep_pass pass;
    const char *outcome = NULL;
    sweeper->by.lazily = true;
    sweeper->name = n->worker.name; /* a run keeps its name as long as it lasts */
    int r = rp_sweep_pass(sweeper, &n->store, &n->run, &pass, &err);
    note(n, r < 0 ? r : pass.why.code, r < 0 ? err.text : pass.why.text);
    if (n->run.id != 0 && !n->run.lost) {
        bool ends = sim_chance(&n->random, 4000);
        r = ends ? rp_sweep_close(sweeper, &n->run, &outcome, &err) : rp_sweep_renew(sweeper, &n->run, &err);
        if (ends && r == 0) n->run = (struct rp_run){ 0 };
    }
    if (n->run.lost) n->run = (struct rp_run){ 0 };
    return r;
}

int sim_give_sweep(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct rp_store *stores[] = { &n->store };
    struct rp_sweep sweeper = { .by.catalog = n->catalog,
                                .by.stores = stores,
                                .by.n_stores = 1,
                                .name = n->command.flag ? "main" : n->worker.name,
                                .by.environment = "test",
                                .by.worker = &n->worker,
                                .by.rules = s->rules,
                                .limit = LIMIT,
                                .stale_after_ms = SIM_STALE_MS };
    sweeper.by.rules.random = sim_next(&n->random);
    count_sweepers(n);
    /* a run has one name as long as it lasts */
    return n->command.flag && n->run.id == 0 ? whole_run(n, &sweeper) : open_run(n, &sweeper);
}
