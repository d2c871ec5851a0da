/* SPDX-License-Identifier: Apache-2.0 */
/* Two-phase deletion: who was asked, in which order and how often; what was said; and that nothing
 * goes before all have agreed in truth. What each rule is called is in docs/proof.md.
 *
 * What a catalog that was put back has forgotten is judged by what it knows: then a service that has
 * agreed is asked again, with the same key (services.h, V1), a mark that waits again is restored
 * like any other, and a late answer finds nobody. A node that goes on in such a catalog
 * (sim_is_stale) may send a call that it does not know of, and write down what was said. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "journal.h"
#include "judge.h"
#include "node.h"
#include "services.h"
#include "task.h"
#include "users.h"
#include "verb.h"
#include "world.h"

#define SPARE_MS (30 * RP_SECOND_MS) /* a lease lasts so much longer than a call may (core/confirm/asker.c) */

static const char *const states[RP_CONFIRM_STATES] = { "nothing", "pending", "asked", "waiting",
                                                       "yes",     "refused", "failed" };

/* ---- what follows for marks ---- */

static bool has_yes(const struct model *m, int64_t mark_id)
{
    for (size_t i = 0; i < m->n_confirmations; i++)
        if (m->confirmations[i].mark_id == mark_id && m->confirmations[i].state == RP_CONFIRM_YES) return true;
    return false;
}

static bool is_any_asked(const struct model *m, int64_t mark_id)
{
    for (size_t i = 0; i < m->n_confirmations; i++)
        if (m->confirmations[i].mark_id == mark_id && m->confirmations[i].asked) return true;
    return false;
}

bool sim_is_asked_now(const struct sim *s, int64_t mark_id)
{
    const struct model *m = s->model;
    for (size_t i = 0; i < m->n_confirmations; i++) {
        const struct model_confirmation *c = &m->confirmations[i];
        if (c->mark_id == mark_id && s->services.configs[c->service].when == RP_CONFIRM_NOW) return true;
    }
    return false;
}

void sim_judge_agreed(struct sim *s, const struct model_mark *m, const char *what)
{
    for (size_t i = 0; i < s->model->n_confirmations; i++) {
        const struct model_confirmation *c = &s->model->confirmations[i];
        if (c->mark_id != m->id) continue;
        const struct sim_question *q = sim_question(s, c->id);
        if (q == NULL || !q->agreed)
            sim_violate(s, "T2", "%s %s, and %s has not said yes", m->key, what, sim_service_name(c->service));
        else if (c->state != RP_CONFIRM_YES)
            sim_violate(s, "T2", "%s %s, and nobody has written down the yes of %s", m->key, what,
                        sim_service_name(c->service));
    }
}

/* From the first call on there is no restore, until it is refused or given up; after a yes only a
 * person gives the delete up. A recovery begins anew what was only asked about, and reprieves what
 * is nobody's. */
static void judge_reprieve(struct sim *s, const struct sim_node *n, const struct model_mark *m, int from)
{
    enum sim_verb by = n->command.verb;
    bool asked = is_any_asked(s->model, m->id), yes = has_yes(s->model, m->id);
    if (from == RP_CHECKING && asked && by != VERB_RECOVER)
        sim_violate(s, "T1", "%s was reprieved by a %s, and a service is asked to delete its half", m->key,
                    sim_verb_name(by));
    if (from == RP_DEAD && yes && by != VERB_DEAD)
        sim_violate(s, "T1", "%s was restored from its dead letter, and a service has said yes", m->key);
    if (from == RP_DEAD && yes) sim_see(s, SIGHT_KEPT_AGREED);
    if (from == RP_DEAD && asked && !yes && by != VERB_DEAD) sim_see(s, SIGHT_RESTORED_REFUSED);
}

void sim_judge_asked_mark(struct sim *s, struct sim_node *n, const struct model_mark *m, const struct journal_mark *r)
{
    int from = m->state;
    bool recovers = n->command.verb == VERB_RECOVER;
    if (r->to == RP_PURGING && from != RP_PURGING) sim_judge_agreed(s, m, "is to be erased");
    if (r->to == RP_REPRIEVED) judge_reprieve(s, n, m, from);
    if (r->to == RP_MARKED && from == RP_CHECKING && has_yes(s->model, m->id))
        sim_violate(s, "T1", "%s can be restored again, and a service has said yes", m->key);
    if (r->to == RP_MARKED && from == RP_CHECKING && !recovers && is_any_asked(s->model, m->id))
        sim_violate(s, "T1", "%s can be restored again, and a service was asked", m->key);
    if (r->to == RP_DEAD && recovers && from == RP_CHECKING) sim_see(s, SIGHT_RECOVERED_AGREED);
    if (r->to == RP_CHECKING && from == RP_DEAD && n->command.verb == VERB_ANSWER) sim_see(s, SIGHT_REVIVED);
}

/* ---- rows ---- */

void sim_judge_new_confirmation(struct sim *s, struct sim_node *n, const struct journal_confirmation *r)
{
    struct model *m = s->model;
    int service = sim_service_of(r->name);
    RP_ASSERT(m->n_confirmations < MODEL_CONFIRMATIONS_MAX && service >= 0);
    for (size_t i = 0; i < m->n_confirmations; i++) {
        const struct model_confirmation *before = &m->confirmations[i];
        if (before->mark_id == r->mark_id && s->services.configs[before->service].when == RP_CONFIRM_DUE &&
            s->services.configs[service].when == RP_CONFIRM_NOW)
            sim_violate(s, "T1", "%s is to be asked at once, and after %s", r->name, sim_service_name(before->service));
    }
    if ((n->command.services >> service & 1) == 0)
        sim_violate(s, "STATES", "a %s named %s, and nobody asked for that", sim_verb_name(n->command.verb), r->name);
    m->confirmations[m->n_confirmations++] = (struct model_confirmation){
        .id = r->id, .mark_id = r->mark_id, .ordinal = (int)r->ordinal, .service = service, .state = r->to
    };
}

/* *Asked* is committed: it is its turn, and nothing keeps the purge away. */
static void judge_asking(struct sim *s, const struct sim_node *n, const struct model_confirmation *c)
{
    const struct model_mark *m = model_mark(s->model, c->mark_id);
    struct bucket_object now;
    for (size_t i = 0; i < s->model->n_confirmations; i++) {
        const struct model_confirmation *before = &s->model->confirmations[i];
        if (before->mark_id == c->mark_id && before->ordinal < c->ordinal && before->state != RP_CONFIRM_YES)
            sim_violate(s, "T2", "%s is asked about %s before %s has said yes", sim_service_name(c->service), m->key,
                        sim_service_name(before->service));
    }
    if (s->services.configs[c->service].when == RP_CONFIRM_DUE && m->due_at_ms > n->early_ms)
        sim_violate(s, "NO-EARLY", "%s is asked about %s %" PRId64 " ms before it is due", sim_service_name(c->service),
                    m->key, m->due_at_ms - n->early_ms);
    for (size_t i = 0; i < SIM_KEYS; i++)
        if (strcmp(sim_key(i), m->key) == 0 && n->refs[i] != 0)
            sim_violate(s, "GUARD", "%s is asked about %s, whose references are %d", sim_service_name(c->service),
                        m->key, n->refs[i]);
    bool looked = m->file_id == 0 && m->version[0] == '\0' && !is_any_asked(s->model, m->id) &&
                  n->sent_at_begin == s->sent && n->returns_at_begin == s->returns && !s->misled[n->index] && !s->lied;
    if (looked && bucket_look(s->bucket, m->key, &now) && strcmp(now.identity.etag, m->etag) != 0)
        sim_violate(s, "NEWER-WINS", "%s is asked about %s, which another upload has replaced",
                    sim_service_name(c->service), m->key);
    if (m->due_at_ms > n->early_ms) sim_see(s, SIGHT_ASKED_NOW);
}

static void judge_yes(struct sim *s, const struct model_confirmation *c)
{
    const struct sim_question *q = sim_question(s, c->id);
    if (q == NULL || !q->agreed)
        sim_violate(s, "T2", "a yes of %s was written down that it has not said", sim_service_name(c->service));
}

/* Askers and services change rows; a retry and a recovery begin those anew that have not said yes. */
static bool may_change(const struct journal_confirmation *r, enum sim_verb by)
{
    if (by == VERB_DEAD || by == VERB_RECOVER) return r->from != RP_CONFIRM_YES && r->to == RP_CONFIRM_PENDING;
    return (by == VERB_ASK || by == VERB_ANSWER) && r->to != RP_CONFIRM_PENDING;
}

void sim_judge_confirmation(struct sim *s, struct sim_node *n, const struct journal_confirmation *r)
{
    struct model_confirmation *c = model_confirmation(s->model, r->id);
    RP_ASSERT(c != NULL);
    const struct model_mark *m = model_mark(s->model, c->mark_id);
    const char *name = sim_service_name(c->service);
    bool asks = n->command.verb == VERB_ASK && r->attempts > c->attempts && !sim_is_stale(n);
    RP_ASSERT(m != NULL);
    sim_say(s, "node %d: %s: %s about %s: %s to %s, attempt %" PRId64, n->index, sim_verb_name(n->command.verb), name,
            m->key, states[c->state], states[r->to], r->attempts);
    bool moved = m->since == s->steps; /* in this transaction */
    if (n->command.verb == VERB_ASK && !moved && m->holder != sim_holder(n) && !sim_is_stale(n))
        sim_violate(s, "FENCED", "what %s says about %s was written down by node %d, which had lost its lease", name,
                    m->key, n->index);
    if (c->state == RP_CONFIRM_YES && r->to != RP_CONFIRM_YES)
        sim_violate(s, "T2", "%s has said yes about %s, and that was forgotten", name, m->key);
    if (!may_change(r, n->command.verb))
        sim_violate(s, "STATES", "what %s says about %s went from %s to %s by a %s", name, m->key, states[c->state],
                    states[r->to], sim_verb_name(n->command.verb));
    if (asks) judge_asking(s, n, c);
    if (r->to == RP_CONFIRM_YES && c->state != RP_CONFIRM_YES) {
        judge_yes(s, c);
        if (n->command.verb == VERB_ANSWER) sim_see(s, SIGHT_LATE_YES);
    }
    if (r->to == RP_CONFIRM_REFUSED && n->command.verb == VERB_ANSWER) sim_see(s, SIGHT_LATE_NO);
    if (r->to == RP_CONFIRM_FAILED && n->command.verb == VERB_ASK) sim_see(s, SIGHT_GAVE_UP);
    if (!asks) n->calling = 0;
    if (sim_is_stale(n) && !c->asked && r->asked_at_ms != 0) s->past.unasked = true;
    c->state = r->to;
    c->attempts = r->attempts;
    c->asked = r->asked_at_ms != 0;
}

/* ---- calls ---- */

/* A call goes out now: the catalog knows of it, and its holder has the mark. Its service may have
 * answered by itself meanwhile. */
void sim_judge_call(struct sim *s, const struct sim_node *n, int service, int64_t id)
{
    const struct model_confirmation *c = model_confirmation(s->model, id);
    const char *name = sim_service_name(service);
    if (sim_is_stale(n)) return;
    if (c == NULL) {
        sim_violate(s, "INTENT-FIRST", "%s is called, and the catalog knows nothing of it", name);
        return;
    }
    const struct model_mark *m = model_mark(s->model, c->mark_id);
    if (m->outcome == RP_END_RECOVERED) return; /* a recovery takes away what others have */
    if (!c->asked || c->state == RP_CONFIRM_PENDING)
        sim_violate(s, "INTENT-FIRST", "%s is called about %s, and that it is asked was not committed", name, m->key);
    bool answered = c->state == RP_CONFIRM_YES || c->state == RP_CONFIRM_REFUSED;
    if (!answered && (m->state != RP_CHECKING || m->holder != sim_holder(n)))
        sim_violate(s, "FENCED", "%s is called about %s by a node that does not have it", name, m->key);
    int64_t lease_ms = s->rules.lease_ms, call_ms = s->services.configs[service].timeout_ms + SPARE_MS;
    if (call_ms > lease_ms) lease_ms = call_ms;
    if (m->leased_at_ms != 0 && s->now_ms > m->leased_at_ms + lease_ms)
        sim_violate(s, "FENCED", "%s is called about %s after the lease was over", name, m->key);
}

/* ---- in the end ---- */

bool sim_is_refused(struct sim *s, const struct model_mark *m)
{
    for (size_t i = 0; i < s->model->n_confirmations; i++) {
        const struct model_confirmation *c = &s->model->confirmations[i];
        const struct sim_question *q = c->mark_id == m->id ? sim_question(s, c->id) : NULL;
        if (q != NULL && q->stubborn && q->word == WORD_NO) return true;
    }
    return false;
}

void sim_judge_refused(struct sim *s)
{
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        if (!model_is_active(m) || !sim_is_refused(s, m)) continue;
        sim_see(s, SIGHT_STAYS_DEAD);
        if (m->state != RP_DEAD || m->was != RP_CHECKING)
            sim_violate(s, "EVENTUAL", "%s was refused, and no dead letter waits for a person: it is in state %d",
                        m->key, m->state);
    }
}
