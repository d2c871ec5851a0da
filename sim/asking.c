/* SPDX-License-Identifier: Apache-2.0 */
/* Askers, as the daemon runs them on every node; calls of services that answer later; and which
 * deletes name a service. */
#include <inttypes.h>

#include "asking.h"
#include "base/cleanup.h"
#include "core/confirm/confirm.h"
#include "node.h"
#include "services.h"
#include "verb.h"
#include "world.h"

/* ---- what is given next ---- */

bool sim_takes_call(struct sim_node *n, struct sim_command *out)
{
    struct sim_services *v = &n->sim->services;
    for (size_t i = 0; i < v->n_calls; i++) {
        if (v->calls[i].at_ms > n->sim->now_ms) continue;
        *out = sim_command_of(VERB_ANSWER);
        out->question = v->calls[i].question;
        out->flag = v->calls[i].yes;
        v->calls[i] = v->calls[--v->n_calls];
        return true;
    }
    return false;
}

/* Somebody may be asked about something now. */
static bool is_waited_for(struct sim *s)
{
    for (size_t i = s->model->n_confirmations; i-- > 0;) {
        const struct model_confirmation *c = &s->model->confirmations[i];
        if (c->state == RP_CONFIRM_YES) continue;
        const struct model_mark *m = model_mark(s->model, c->mark_id);
        if ((m->state == RP_MARKED || m->state == RP_CHECKING) && m->next_at_ms <= s->now_ms) return true;
    }
    return false;
}

bool sim_wants_asking(struct sim_node *n, struct sim_command *out)
{
    struct sim_services *v = &n->sim->services;
    if (v->asks == 0) return false;
    if (sim_chance(&v->choosing, 3000) && sim_takes_call(n, out)) return true;
    if (!sim_chance(&v->choosing, is_waited_for(n->sim) ? 3 * v->asks : v->asks)) return false;
    *out = sim_command_of(VERB_ASK);
    return true;
}

/* Often of what is due soon: there is the more to ask while things go wrong. */
void sim_name_services(struct sim *s, struct sim_command *c)
{
    struct sim_services *v = &s->services;
    if (v->asks == 0 || (c->verb != VERB_MARK && c->verb != VERB_DELETE)) return;
    if (!sim_chance(&v->choosing, v->naming)) return;
    c->services = (unsigned)sim_between(&v->choosing, 1, (1 << SIM_SERVICES) - 1);
    if (sim_chance(&v->choosing, 6000)) c->grace_ms = sim_chance(&v->choosing, 5000) ? 0 : RP_MINUTE_MS;
}

int sim_named_services(struct sim_node *n, struct rp_confirmer_list *out, struct rp_error *err)
{
    const char *names[SIM_SERVICES];
    size_t count = 0;
    for (int i = 0; i < SIM_SERVICES; i++)
        if ((n->command.services >> i & 1) != 0) names[count++] = sim_service_name(i);
    return rp_confirmers_find(&n->sim->services.config, names, count, out, err);
}

/* ---- an asker's pass ---- */

static void broken(void *ctx, const char *name, bool open)
{
    const struct sim_node *n = ctx;
    sim_say(n->sim, "node %d: the breaker of %s %s", n->index, name, open ? "opens" : "closes");
    sim_see(n->sim, open ? SIGHT_BREAKER_OPENED : SIGHT_BREAKER_CLOSED);
}

static int make_asker(struct sim_node *n, struct rp_error *err)
{
    struct sim *s = n->sim;
    n->stores[0] = &n->store;
    struct rp_asker_options options = { .by = { .catalog = n->catalog,
                                                .stores = n->stores,
                                                .n_stores = 1,
                                                .environment = "test",
                                                .worker = &n->worker,
                                                .rules = s->rules,
                                                .lazily = true },
                                        .config = &s->services.config,
                                        .url_base = "",
                                        .url_key = "",
                                        .send = sim_service_send,
                                        .send_ctx = n,
                                        .broken = broken,
                                        .ctx = n };
    options.by.rules.random = sim_next(&s->services.random);
    n->asker = rp_asker_new(&options, err);
    return n->asker != NULL ? 0 : RP_ENOMEM;
}

int sim_give_ask(struct sim_node *n)
{
    struct rp_error err = { 0 };
    struct rp_asker_pass pass;
    int r = n->asker == NULL ? make_asker(n, &err) : 0;
    n->calling = 0;
    if (r == 0) r = rp_asker_pass(n->asker, &pass, &err);
    if (n->dead && n->calling != 0) sim_see(n->sim, SIGHT_ASKER_CRASHED);
    if (r < 0) sim_say(n->sim, "node %d: asking fails: %s", n->index, err.text);
    return r;
}

/* ---- a call of a service ---- */

/* It has said so: in its own memory, before anybody can hear it. */
static void say(struct sim_question *q, bool yes)
{
    if (yes) {
        q->word = WORD_YES;
        q->agreed = true;
    } else if (q->word == WORD_LATER) {
        q->word = WORD_NO;
    }
}

static void judge_answer(struct sim_node *n, const struct sim_question *q, int r)
{
    struct sim *s = n->sim;
    const struct model_confirmation *c = model_confirmation(s->model, q->id);
    bool yes = n->command.flag;
    if (r == 0 && (c == NULL || (c->state == RP_CONFIRM_YES) != yes))
        sim_violate(s, "AUDITED", "a late %s of %s was taken, and is not there", yes ? "yes" : "no",
                    sim_service_name(q->service));
    if (r == RP_EANSWERED && yes)
        sim_violate(s, "IDEMPOTENT", "a yes of %s was called a contradiction", sim_service_name(q->service));
    if (r == RP_EANSWERED) sim_see(s, SIGHT_NO_AFTER_YES);
    if (r == RP_EGONE) sim_see(s, SIGHT_ANSWER_AFTER_END);
    if (r == RP_ENOTFOUND) sim_see(s, SIGHT_ANSWER_UNKNOWN);
}

/* Whoever does not hear that it was taken calls again. */
int sim_give_answer(struct sim_node *n)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 18);
    struct sim *s = n->sim;
    struct sim_question *q = &s->services.questions[n->command.question];
    struct rp_answer_command c = { .command = { .verb = &rp_verb_answer, .actor = sim_service_name(q->service) },
                                   .confirmation_id = q->id,
                                   .yes = n->command.flag,
                                   .words = n->command.flag ? "" : "not this one",
                                   .arena = &arena };
    say(q, n->command.flag);
    int r = rp_command_run(n->catalog, &c.command);
    bool definite = r == 0 || r == RP_EANSWERED || r == RP_EGONE || r == RP_ENOTFOUND;
    if (!definite || sim_is_unheard(n)) {
        sim_will_call(s, n->command.question, n->command.flag, sim_between(&s->services.random, 0, RP_HOUR_MS));
        return r;
    }
    judge_answer(n, q, r);
    return r;
}
