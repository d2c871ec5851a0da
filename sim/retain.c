/* SPDX-License-Identifier: Apache-2.0 */
/* Retentions, as the daemon (what was left is carried on, else one is begun) and the command line
 * (one is begun) run them. What they let go is judged in judge_gone.c. */
#include <signal.h>

#include "core/retention/retention.h"
#include "judge.h"
#include "node.h"
#include "retain.h"
#include "verb.h"
#include "world.h"

/* Short enough that records go while things go wrong. */
static int64_t any_age(struct sim_random *r)
{
    static const int64_t ages[] = { RP_MINUTE_MS, 10 * RP_MINUTE_MS, RP_HOUR_MS, 6 * RP_HOUR_MS };
    return ages[sim_index(r, sizeof ages / sizeof ages[0])];
}

void sim_retention_choose(struct sim *s)
{
    struct sim_random *r = &s->retaining.random;
    *r = sim_stream(s->seed, 3);
    s->retaining.chance = sim_chance(r, 5000) ? (int)sim_between(r, 60, 500) : 0;
    s->retaining.config = (struct rp_retention_config){
        .marks_ms = RP_DAY_MS, .files_ms = RP_DAY_MS, .keys_ms = RP_DAY_MS, .audit_ms = RP_FOREVER_MS
    };
    if (s->retaining.chance == 0) return;
    s->retaining.config.marks_ms = any_age(r);
    s->retaining.config.files_ms = any_age(r);
    s->retaining.config.keys_ms = any_age(r);
}

static bool is_other_at_it(const struct sim_node *n)
{
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_node *other = &n->sim->nodes[i];
        if (other != n && other->command.verb == VERB_RETAIN && !other->dead) return true;
    }
    return false;
}

/* Sooner where one was left or is under way. */
bool sim_wants_retention(struct sim_node *n)
{
    struct sim *s = n->sim;
    if (s->retaining.chance == 0) return false;
    bool sooner = s->retaining.died != 0 || is_other_at_it(n);
    return sim_chance(&s->retaining.random, sooner ? 4 * s->retaining.chance : s->retaining.chance);
}

/* Marks that are still there because a copy waits. */
static void note_kept(struct sim_node *n)
{
    struct model *m = n->sim->model;
    for (size_t i = 0; i < m->n_marks; i++) {
        const struct model_mark *original = model_original(m, m->marks[i].key);
        if (original != NULL && !model_is_active(original) && model_is_active(&m->marks[i]))
            sim_see(n->sim, SIGHT_KEPT_WITH_COPY);
    }
}

static volatile sig_atomic_t stops[SIM_NODES], cancels[SIM_NODES];

static void after_batch(void *ctx, const struct rp_run *run)
{
    struct sim_node *n = ctx;
    struct sim *s = n->sim;
    (void)run;
    if (!s->faults.on) return;
    stops[n->index] = stops[n->index] || sim_chance(&s->retaining.random, 300);
    cancels[n->index] = cancels[n->index] || sim_chance(&s->retaining.random, 150);
}

static int enter(struct sim_node *n, struct rp_retention *retention, struct rp_run *run, struct rp_error *err)
{
    struct sim *s = n->sim;
    int r = n->command.flag ? RP_ENOTFOUND
                            : rp_run_resume(retention->catalog, RP_RUN_RETENTION, retention->worker,
                                            retention->stale_after_ms, run, err);
    if (r == RP_ENOTFOUND) {
        rp_error_clear(err);
        r = rp_retention_begin(retention, run, err);
    }
    if (r == RP_ERUNNING && s->faults.on) sim_see(s, SIGHT_TWO_RETENTIONS);
    if (r < 0) return r;
    if (s->retaining.died == run->id) sim_see(s, SIGHT_RETENTION_TAKEN);
    /* a node may hear late that it has the run, and has lost it since */
    if (s->retaining.run == run->id && run->fence < s->retaining.fence) return 0;
    s->retaining.run = run->id;
    s->retaining.fence = run->fence;
    s->retaining.holder = sim_holder(n);
    return 0;
}

int sim_give_retain(struct sim_node *n)
{
    static struct rp_run runs[SIM_NODES]; /* too big for a coroutine's stack */
    struct sim *s = n->sim;
    struct rp_run *run = &runs[n->index];
    struct rp_error err = { 0 };
    const char *outcome = NULL;
    struct rp_retention retention = { .catalog = n->catalog,
                                      .rules = s->retaining.config,
                                      .worker = &n->worker,
                                      .actor = "retention",
                                      .stale_after_ms = SIM_STALE_MS,
                                      .stop = &stops[n->index],
                                      .cancel = &cancels[n->index],
                                      .finished = after_batch,
                                      .ctx = n };
    stops[n->index] = cancels[n->index] = 0;
    int r = enter(n, &retention, run, &err);
    bool entered = r == 0;
    if (entered) r = rp_retention_carry(&retention, run, &outcome, &err);
    if (entered && run->lost && !n->dead) sim_see(s, SIGHT_RETENTION_LOST);
    if (entered && n->dead) sim_see(s, SIGHT_RETENTION_CRASHED);
    if (entered && n->dead) s->retaining.died = run->id;
    if (outcome != NULL && s->retaining.died == run->id) s->retaining.died = 0;
    if (outcome != NULL && !s->faults.on) s->retaining.done_ms = s->now_ms;
    note_kept(n);
    if (r < 0) sim_say(s, "node %d: a retention fails: %s", n->index, err.text);
    return r;
}
