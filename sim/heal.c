/* SPDX-License-Identifier: Apache-2.0 */
/* Faults have stopped; people do what the messages tell them to; time passes. What must happen in
 * the end? */
#include <string.h>

#include "asking.h"
#include "choose.h"
#include "core/subject/quarantine.h"
#include "heal.h"
#include "judge.h"
#include "node.h"
#include "owner.h"
#include "verb.h"
#include "weather.h"
#include "world.h"

#define ROUNDS 30

static int give(struct sim_node *n, enum sim_verb verb, bool flag)
{
    struct sim_command c = sim_command_of(verb);
    c.flag = flag;
    sim_node_begin(n, &c);
    int r = sim_give(n);
    n->command.verb = VERB_NONE;
    return r;
}

/* Marks that may wait for ever: of a store that only observes, of plain objects where nothing can
 * delete exactly those (who declared that no key is used again is wrong once one was), and those to
 * which a service never says anything but no. */
static bool may_wait(struct sim *s, const struct model_mark *m)
{
    if (s->config.mode == RP_MODE_OBSERVE || sim_is_refused(s, m)) return true;
    return sim_is_weak(s, s->reused) && m->file_id == 0 && !rp_quarantine_is(m->key);
}

/* The copy of what was returned and marked anew waits as long as that mark does (purge.h, S8). */
static bool waits_for_another(struct sim *s, const struct model_mark *copy)
{
    const struct model_mark *original = copy->returned ? model_original(s->model, copy->key) : NULL;
    const struct model_mark *newest = original != NULL ? model_mark_of(s->model, original->key) : NULL;
    return newest != NULL && newest != original && model_is_active(newest) && may_wait(s, newest);
}

static const struct model_mark *waiting(struct sim *s)
{
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        if (model_is_active(m) && !may_wait(s, m) && !waits_for_another(s, m)) return m;
    }
    return NULL;
}

static bool has_dead(const struct sim *s)
{
    for (size_t i = 0; i < s->model->n_marks; i++)
        if (s->model->marks[i].state == RP_DEAD) return true;
    return false;
}

/* A file's version in quarantine that shows itself again: its letter says that a person is to
 * decide (purge.h, S11), and how. One that nobody has restored is deleted in the bucket, before the
 * retry. */
static void delete_what_shows(struct sim *s)
{
    for (size_t i = 0; i < s->model->n_marks; i++) {
        const struct model_mark *m = &s->model->marks[i];
        const struct model_file *f = model_file(s->model, m->file_id);
        struct bucket_object now;
        if (m->state != RP_DEAD || !m->in_place || f == NULL || rp_status_lives((enum rp_status)f->status)) continue;
        if (!bucket_look(s->bucket, f->key, &now) || strcmp(now.identity.version, m->version) != 0) continue;
        bucket_hide(s->bucket, f->key, sim_store_ms(s));
        s->by_user[bucket_serial(s->bucket)] = true;
        sim_say(s, "somebody deletes %s, which shows itself again", f->key);
    }
}

static void ask(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct sim_command c;
    for (size_t i = s->services.n_calls; i > 0 && sim_takes_call(n, &c); i--) {
        sim_node_begin(n, &c);
        (void)sim_give(n);
        n->command.verb = VERB_NONE;
    }
    (void)give(n, VERB_ASK, false);
}

static void judge_end(struct sim *s)
{
    const struct model_mark *m = waiting(s);
    if (m != NULL)
        sim_violate(s, "EVENTUAL", "%s still waits in state %d after everything has healed", m->key, m->state);
}

void sim_heal(struct sim_node *n)
{
    struct sim *s = n->sim;
    struct rp_error err = { 0 };
    if (n->index != 0) return;
    n->unresolved = 0;
    n->command.verb = VERB_START;
    int r = sim_node_open(n, &err);
    n->command.verb = VERB_NONE;
    if (r < 0) sim_violate(s, "EVENTUAL", "a healed node does not start: %s", err.text);
    if (r == 0 && !sim_owns(s, n) && s->config.mode != RP_MODE_OBSERVE) r = give(n, VERB_RECOVER, false);
    if (r == 0) r = give(n, VERB_CLOCK, false); /* it is right by now */
    if (r == 0) r = give(n, VERB_LIFT, false);
    int retained = 0;
    for (int round = 0; round < ROUNDS && r == 0 && s->violation[0] == '\0'; round++) {
        s->now_ms += 8 * RP_DAY_MS;
        retained = give(n, VERB_RETAIN, false);    /* while copies still wait that this round's sweep will erase */
        if (retained != RP_ERUNNING) r = retained; /* one that crashed, by a clock that was days ahead */
        if (s->services.asks > 0) ask(n);
        (void)give(n, VERB_SWEEP, true); /* partly done, as long as there is more than one run may take */
        delete_what_shows(s);
        for (int i = 0; i < 8 && has_dead(s); i++)
            (void)give(n, VERB_DEAD, true); /* not while its copy is being erased */
        if (r == 0 && round == 0) r = give(n, VERB_NET, false);
        if (waiting(s) == NULL && retained == 0 && round > 2) break;
    }
    if (r == 0) r = give(n, VERB_NET, false);
    /* those that were retried and are refused again */
    for (int i = 0; i < SIM_SERVICES && s->services.asks > 0; i++) {
        s->now_ms += RP_HOUR_MS;
        ask(n);
    }
    if (r == 0) r = retained;
    if (r < 0) sim_violate(s, "EVENTUAL", "a command fails with %d in a healed world", r);
    if (r == 0) judge_end(s);
    if (r == 0 && s->config.mode != RP_MODE_OBSERVE) sim_judge_refused(s);
    if (r == 0 && s->retaining.chance > 0) sim_judge_remains(n);
    sim_node_close(n);
}
