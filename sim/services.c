/* SPDX-License-Identifier: Apache-2.0 */
/* Outside services: what they are asked, what they do, and what is heard of it. */
#include "services.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/id.h"
#include "judge.h"
#include "node.h"
#include "task.h"
#include "world.h"

static const char *const names[SIM_SERVICES] = { "calendar", "billing", "mail" };

const char *sim_service_name(int service)
{
    return names[service];
}

int sim_service_of(const char *name)
{
    for (int i = 0; i < SIM_SERVICES; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* calendar and billing are asked when a mark is due, mail at once. A call of billing may take longer
 * than a sweep's lease lasts. */
void sim_services_choose(struct sim *s)
{
    struct sim_services *v = &s->services;
    static const int64_t timeouts_ms[SIM_SERVICES] = { 15 * RP_SECOND_MS, 3 * RP_MINUTE_MS, 15 * RP_SECOND_MS };
    v->choosing = sim_stream(s->seed, 5);
    v->random = sim_stream(s->seed, 6);
    v->asks = sim_chance(&v->choosing, 5000) ? (int)sim_between(&v->choosing, 300, 2000) : 0;
    v->naming = (int)sim_between(&v->choosing, 3000, 10000);
    for (int i = 0; i < SIM_SERVICES; i++)
        v->configs[i] =
            (struct rp_confirmer_config){ .name = names[i],
                                          .url = "http://service",
                                          .when = i == 2 ? RP_CONFIRM_NOW : RP_CONFIRM_DUE,
                                          .timeout_ms = timeouts_ms[i],
                                          .give_up_after_ms = sim_chance(&v->choosing, 5000)
                                                                  ? 3 * RP_DAY_MS
                                                                  : sim_between(&v->choosing, 1, 60) * RP_MINUTE_MS,
                                          .gone = { .n = 1, .at = { 410 } } };
    v->config = (struct rp_config){ .confirmers = v->configs, .n_confirmers = SIM_SERVICES };
}

void sim_services_heal(struct sim *s)
{
    struct sim_services *v = &s->services;
    for (size_t i = 0; i < v->n_questions; i++) {
        struct sim_question *q = &v->questions[i];
        if (q->word == WORD_LATER) q->word = q->at_last;
        if (q->word != WORD_NO) continue;
        q->stubborn = sim_chance(&v->random, 3000);
        if (!q->stubborn) q->word = WORD_YES;
    }
    for (size_t i = 0; i < v->n_calls; i++)
        v->calls[i].at_ms = s->now_ms;
    memset(v->down_until_ms, 0, sizeof v->down_until_ms);
}

struct sim_question *sim_question(struct sim *s, int64_t confirmation_id)
{
    struct sim_services *v = &s->services;
    for (size_t i = v->n_questions; i-- > 0;)
        if (v->questions[i].id == confirmation_id) return &v->questions[i];
    return NULL;
}

void sim_will_call(struct sim *s, size_t question, bool yes, int64_t in_ms)
{
    struct sim_services *v = &s->services;
    struct sim_call call = { .question = question, .yes = yes, .at_ms = s->now_ms + in_ms };
    if (v->n_calls < SIM_CALLS) v->calls[v->n_calls++] = call;
}

/* ---- what it is asked ---- */

static int64_t id_after(const char *body, const char *name)
{
    enum rp_id_kind kind;
    int64_t id = 0;
    char text[RP_ID_TEXT] = "";
    const char *at = strstr(body, name);
    if (at != NULL) snprintf(text, sizeof text, "%.*s", (int)strcspn(at + strlen(name), "\""), at + strlen(name));
    return rp_id_parse(text, &kind, &id) ? id : 0;
}

/* V1 */
static struct sim_question *remember(struct sim *s, int service, int64_t id, int64_t mark_id)
{
    struct sim_services *v = &s->services;
    struct sim_question *q = sim_question(s, id);
    if (q != NULL && (q->mark_id != mark_id || q->service != service))
        sim_violate(s, "IDEMPOTENT", "%s was asked something else under a key that it knows", names[service]);
    for (size_t i = 0; i < v->n_questions && q == NULL; i++)
        if (v->questions[i].mark_id == mark_id && v->questions[i].service == service)
            sim_violate(s, "IDEMPOTENT", "%s was asked the same under another key", names[service]);
    if (q != NULL) return q;
    RP_ASSERT(v->n_questions < SIM_QUESTIONS);
    q = &v->questions[v->n_questions++];
    *q = (struct sim_question){ .id = id, .mark_id = mark_id, .service = service };
    return q;
}

/* ---- what it says ---- */

static int64_t soon_ms(struct sim_random *r)
{
    static const int64_t most[] = { RP_MINUTE_MS, RP_HOUR_MS, RP_DAY_MS, 4 * RP_DAY_MS };
    return sim_between(r, RP_SECOND_MS, most[sim_index(r, sizeof most / sizeof most[0])]);
}

/* It calls when it has decided: perhaps twice, and perhaps somebody takes it back afterwards. */
static void decide_later(struct sim *s, struct sim_question *q)
{
    struct sim_random *r = &s->services.random;
    size_t which = (size_t)(q - s->services.questions);
    int64_t in_ms = soon_ms(r);
    q->word = WORD_LATER;
    q->at_last = sim_chance(r, 7500) ? WORD_YES : WORD_NO;
    q->decided_ms = s->now_ms + in_ms;
    if (sim_chance(r, 2000)) return; /* it waits to be asked */
    sim_will_call(s, which, q->at_last == WORD_YES, in_ms);
    if (sim_chance(r, 3000)) sim_will_call(s, which, q->at_last == WORD_YES, in_ms + soon_ms(r));
}

static void decide(struct sim *s, struct sim_question *q)
{
    struct sim_faults *f = &s->faults;
    struct sim_random *r = &s->services.random;
    size_t which = (size_t)(q - s->services.questions);
    if (q->word == WORD_NONE && sim_strikes(f, FAULT_SERVICE_LATER)) decide_later(s, q);
    if (q->word == WORD_NONE) {
        q->word = sim_strikes(f, FAULT_SERVICE_NO) ? WORD_NO : WORD_YES;
        bool again = f->on && sim_chance(r, q->word == WORD_YES ? 1000 : 3000); /* V3 */
        if (again) sim_will_call(s, which, q->word != WORD_YES, soon_ms(r));
        return;
    }
    if (q->word == WORD_LATER && s->now_ms >= q->decided_ms) q->word = q->at_last;
    if (q->word == WORD_NO && f->on && sim_chance(r, 4000)) q->word = WORD_YES;
}

static void agree(struct sim *s, struct sim_question *q, struct rp_confirm_answer *out)
{
    bool gone = sim_chance(&s->services.random, 2000);
    if (sim_strikes(&s->faults, FAULT_SERVICE_BREAKS)) {
        snprintf(out->error, sizeof out->error, "the answer broke off");
        return;
    }
    q->agreed = true;
    out->status = gone ? 410 : sim_chance(&s->services.random, 3000) ? 204 : 200;
    if (gone) sim_see(s, SIGHT_SERVICE_GONE);
}

static void refuse(struct sim *s, struct rp_confirm_answer *out)
{
    static const long codes[] = { 409, 409, 423, 404, 401, 302 };
    out->status = codes[sim_index(&s->services.random, sizeof codes / sizeof codes[0])];
    snprintf(out->body, sizeof out->body, "not this one");
    sim_see(s, SIGHT_REFUSED);
}

static int64_t any_retry_ms(struct sim_random *r)
{
    return sim_chance(r, 5000) ? -1 : sim_between(r, 0, 2 * RP_HOUR_MS);
}

/* V4: false: it never looked at the question. */
static bool looks(struct sim *s, int service, struct rp_confirm_answer *out)
{
    static const long codes[] = { 500, 503, 429, 408 };
    struct sim_random *r = &s->services.random;
    int64_t *down_until_ms = &s->services.down_until_ms[service];
    if (s->now_ms < *down_until_ms) {
        out->status = 502;
        return false;
    }
    if (sim_strikes(&s->faults, FAULT_SERVICE_HANGS)) {
        snprintf(out->error, sizeof out->error, "no answer in time");
        return false;
    }
    if (!sim_strikes(&s->faults, FAULT_SERVICE_FAILS)) return true;
    if (sim_chance(r, 3000)) *down_until_ms = s->now_ms + soon_ms(r);
    out->status = codes[sim_index(r, sizeof codes / sizeof codes[0])];
    out->retry_after_ms = any_retry_ms(r);
    return false;
}

static void answer(struct sim *s, struct sim_question *q, struct rp_confirm_answer *out)
{
    decide(s, q);
    switch (q->word) {
    case WORD_YES:
        agree(s, q, out);
        break;
    case WORD_NO:
        refuse(s, out);
        break;
    default:
        out->status = 202;
        out->retry_after_ms = any_retry_ms(&s->services.random);
        sim_see(s, SIGHT_SAID_LATER);
    }
}

/* ---- a call ---- */

/* No answer takes as long as the caller waits; and the caller may be frozen meanwhile, and hear it
 * all the same. */
static void wait_for_it(struct sim_node *n, const struct rp_confirm_call *call, const struct rp_confirm_answer *out)
{
    struct sim *s = n->sim;
    if (out->status == 0)
        sim_sleep(s, call->to->timeout_ms);
    else if (sim_strikes(&s->faults, FAULT_FROZEN_ASKING))
        sim_sleep(s, sim_between(&s->services.random, RP_SECOND_MS, 20 * RP_MINUTE_MS));
}

static void note_lost(struct sim_node *n, const struct sim_question *q)
{
    const struct model_mark *m = model_mark(n->sim->model, q->mark_id);
    if (n->dead || sim_is_stale(n) || m == NULL || m->holder == sim_holder(n)) return;
    sim_see(n->sim, SIGHT_ASKER_LOST);
}

void sim_service_send(void *ctx, const struct rp_confirm_call *call, struct rp_confirm_answer *out)
{
    struct sim_node *n = ctx;
    struct sim *s = n->sim;
    enum rp_id_kind kind;
    int64_t id = 0;
    int service = sim_service_of(call->to->name);
    RP_ASSERT(service >= 0);
    if (!rp_id_parse(call->id, &kind, &id)) id = 0;
    struct sim_question *q = remember(s, service, id, id_after(call->body, "\"mark\":\""));
    if (id != id_after(call->body, "\"idempotency_key\":\""))
        sim_violate(s, "IDEMPOTENT", "%s is asked under a key that the question does not have", names[service]);
    if (!n->dead) sim_judge_call(s, n, service, id);
    if (!sim_step(n, true, "call")) {
        snprintf(out->error, sizeof out->error, "the process is gone");
        return;
    }
    n->calling = id;
    if (looks(s, service, out))
        answer(s, q, out);
    else if (s->faults.on && sim_chance(&s->services.random, 2000)) /* it gets to it later, and says so */
        sim_will_call(s, (size_t)(q - s->services.questions), true, soon_ms(&s->services.random));
    sim_say(s, "node %d: %s is asked and answers %ld", n->index, names[service], out->status);
    wait_for_it(n, call, out);
    note_lost(n, q);
}
