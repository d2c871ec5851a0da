/* SPDX-License-Identifier: Apache-2.0 */
/* What users do next, and what they do again. */
#include <stdio.h>
#include <string.h>

#include "asking.h"
#include "choose.h"
#include "net.h"
#include "node.h"
#include "owner.h"
#include "retain.h"
#include "task.h"
#include "uploads.h"
#include "users.h"
#include "verb.h"
#include "world.h"

static const int64_t graces[] = { -1, 0, RP_MINUTE_MS, RP_HOUR_MS, RP_DAY_MS, 5 * RP_DAY_MS };

static int64_t any_grace(struct sim_random *r)
{
    return graces[sim_index(r, sizeof graces / sizeof graces[0])];
}

static void choose_keys(struct sim_random *r, struct sim_command *c)
{
    c->n_keys = 1 + sim_index(r, 3);
    for (size_t i = 0; i < c->n_keys; i++)
        c->keys[i] = sim_index(r, SIM_KEYS);
}

/* ---- uploads ---- */

static size_t begun_file(struct sim *s, struct sim_random *r)
{
    for (int try = 0; s->n_files > 0 && try < 4; try++) {
        size_t i = sim_index(r, s->n_files);
        if (s->files[i].begun) return i;
    }
    return SIZE_MAX;
}

static size_t open_txn(struct sim *s, struct sim_random *r)
{
    if (s->n_txns == 0) return SIZE_MAX;
    size_t i = sim_index(r, s->n_txns);
    return s->txns[i].begun ? i : SIZE_MAX;
}

static void new_file(struct sim *s, struct sim_random *r, struct sim_command *c)
{
    struct sim_file *f = &s->files[s->n_files];
    *f = (struct sim_file){ .tenant = sim_index(r, SIM_TENANTS),
                            .parent = SIZE_MAX,
                            .source = SIZE_MAX,
                            .replaces = SIZE_MAX,
                            .txn = SIZE_MAX };
    if (sim_chance(r, 3000)) f->txn = open_txn(s, r);
    if (f->txn != SIZE_MAX) f->tenant = s->txns[f->txn].tenant;
    size_t other = begun_file(s, r);
    if (other != SIZE_MAX && s->files[other].tenant == f->tenant) {
        int64_t as = sim_between(r, 0, 9);
        if (as < 2) f->parent = other;
        if (as == 2) f->source = other;
        if (as == 3 && f->txn != SIZE_MAX) f->replaces = other;
    }
    snprintf(f->name, sizeof f->name, "n%d", (int)sim_between(r, 0, 5));
    snprintf(f->text, sizeof f->text, "bytes of file %zu%.*s", s->n_files, (int)sim_between(r, 0, 12), "............");
    c->file = s->n_files++;
}

static void choose_upload(struct sim *s, struct sim_random *r, struct sim_command *c)
{
    static const enum sim_verb verbs[] = { VERB_PUT,      VERB_PUT,     VERB_PUT,    VERB_CONFIRM,
                                           VERB_CONFIRM,  VERB_CONFIRM, VERB_DELETE, VERB_DELETE,
                                           VERB_UNDELETE, VERB_RETURN,  VERB_RESULT };
    c->file = begun_file(s, r);
    if ((c->file == SIZE_MAX || sim_chance(r, 2500)) && s->n_files < SIM_FILES) {
        c->verb = VERB_INIT;
        new_file(s, r, c);
        return;
    }
    if (c->file == SIZE_MAX) return;
    const struct sim_file *f = &s->files[c->file];
    const struct model_file *m = model_file(s->model, f->id);
    c->verb = verbs[sim_index(r, sizeof verbs / sizeof verbs[0])];
    /* most of the time they do what makes sense next */
    if (sim_chance(r, 6000))
        c->verb = !f->put ? VERB_PUT : m != NULL && m->status == RP_FILE_PENDING ? VERB_CONFIRM : VERB_DELETE;
    if (m != NULL && m->status == RP_FILE_DELETED && sim_chance(r, 4000)) c->verb = VERB_UNDELETE;
    if (c->verb == VERB_CONFIRM && f->txn != SIZE_MAX && sim_chance(r, 8000)) {
        c->txn = f->txn;
        c->verb = VERB_COMMIT;
    }
    if (c->verb == VERB_RESULT && !s->uploads.scan) c->verb = VERB_CONFIRM;
    c->flag = sim_chance(r, 8000);
    c->grace_ms = any_grace(r);
}

static void choose_txn(struct sim *s, struct sim_random *r, struct sim_command *c)
{
    c->txn = open_txn(s, r);
    if ((c->txn == SIZE_MAX || sim_chance(r, 2000)) && s->n_txns < SIM_TXNS) {
        c->verb = VERB_BEGIN;
        c->txn = s->n_txns++;
        s->txns[c->txn] = (struct sim_txn){ .tenant = sim_index(r, SIM_TENANTS) };
        return;
    }
    if (c->txn != SIZE_MAX) c->verb = sim_chance(r, 7500) ? VERB_COMMIT : VERB_ABORT;
}

/* ---- the rest ---- */

static bool is_far_off(const struct sim_node *n)
{
    int64_t wrong_ms = sim_host_ms(n) - n->sim->now_ms;
    return wrong_ms > RP_CLOCKS_APART_MS || wrong_ms < -RP_CLOCKS_APART_MS;
}

static void choose_operation(struct sim_node *n, struct sim_random *r, struct sim_command *c)
{
    struct sim *s = n->sim;
    switch (sim_between(r, 0, 9)) {
    case 0:
    case 1:
        c->verb = VERB_HOLD;
        c->n_keys = 1;
        c->keys[0] = sim_index(r, SIM_KEYS);
        c->body = sim_chance(r, 6000) ? 0 : (int)sim_between(r, 1, 3);
        break;
    case 2:
    case 3:
    case 4:
        c->verb = VERB_LIFT;
        break;
    case 5:
    case 6:
        c->verb = VERB_DEAD;
        c->flag = sim_chance(r, 7000);
        break;
    case 7:
        c->verb =
            !s->misled[n->index] && !sim_owns(s, n) && s->config.mode != RP_MODE_OBSERVE ? VERB_RECOVER : VERB_SWEEP;
        if (c->verb == VERB_SWEEP && is_far_off(n) && sim_chance(r, 3000)) c->verb = VERB_CLOCK;
        break;
    case 8:
        c->verb = VERB_IMPORT;
        break;
    default:
        c->verb = VERB_QUOTA;
        c->body = (int)sim_between(r, 0, 1);
        c->flag = sim_chance(r, 7000);
        c->grace_ms = sim_between(r, 50, 600);
    }
}

/* What stands in quarantine while a delete of it is still under way is wanted back: a return that
 * is met by it. */
static bool choose_return(struct sim *s, struct sim_random *r, struct sim_command *c)
{
    size_t n = bucket_late(s->bucket);
    if (n == 0 || !sim_chance(r, 8000)) return false;
    const char *key = bucket_late_key(s->bucket, sim_index(r, n));
    const struct model_mark *m = model_mark_of(s->model, key);
    if (m == NULL || m->outcome != RP_END_QUARANTINED) return false;
    for (size_t i = 0; i < SIM_KEYS; i++)
        if (strcmp(sim_key(i), key) == 0) c->verb = VERB_RESTORE, c->keys[c->n_keys++] = i;
    for (size_t i = 0; i < s->n_files; i++)
        if (s->files[i].begun && strcmp(s->files[i].key, key) == 0) c->verb = VERB_RETURN, c->file = i;
    return c->verb != VERB_SWEEP;
}

static void choose_new(struct sim_node *n, struct sim_command *c)
{
    struct sim_random *r = &n->random;
    int64_t as = sim_between(r, 0, 99), sweeps = n->index < 2 ? 45 : 12;
    *c = sim_command_of(VERB_SWEEP);
    c->flag = sim_chance(r, 4000);
    if (choose_return(n->sim, r, c) || as < sweeps) return;
    as = sim_between(r, 0, 99);
    if (as < 22) {
        c->verb = VERB_MARK;
        choose_keys(r, c);
        c->grace_ms = any_grace(r);
        c->if_unreferenced = sim_chance(r, 3000);
        c->annotate = sim_chance(r, 1500);
        if (sim_strikes(&n->sim->faults, FAULT_FILES_KEY)) c->file = begun_file(n->sim, r);
        if (c->file != SIZE_MAX) c->n_keys = 1;
    } else if (as < 34) {
        c->verb = VERB_RESTORE;
        choose_keys(r, c);
    } else if (as < 45) {
        choose_operation(n, r, c);
    } else if (as < 58) {
        choose_txn(n->sim, r, c);
    } else {
        choose_upload(n->sim, r, c);
    }
}

/* Of keys whose answers were let go there can be more than the judge remembers. */
static bool is_full(const struct model *m, enum sim_verb verb)
{
    return (verb == VERB_INIT && m->n_files + SIM_NODES > MODEL_FILES_MAX) ||
           (verb == VERB_BEGIN && m->n_txns + SIM_NODES > MODEL_TXNS_MAX);
}

void sim_choose(struct sim_node *n, struct sim_command *out)
{
    struct sim *s = n->sim;
    if (sim_wants_retention(n)) {
        *out = sim_command_of(VERB_RETAIN);
        out->flag = sim_chance(&s->retaining.random, 3000); /* it begins one */
        return;
    }
    if (sim_wants_net(n)) {
        *out = sim_command_of(VERB_NET);
        out->flag = sim_chance(&s->netting.random, 3000);
        return;
    }
    if (sim_wants_asking(n, out)) return;
    if (s->n_again > 0 && sim_strikes(&s->faults, FAULT_REPEATED)) {
        *out = s->again[sim_index(&n->random, s->n_again)];
        if (out->verb == VERB_RECOVER && s->misled[n->index])
            out->verb = VERB_SWEEP; /* nobody recovers what is not ours */
        if (is_full(s->model, out->verb)) out->verb = VERB_SWEEP;
        if (out->verb == VERB_INIT && sim_strikes(&s->faults, FAULT_OTHER_BODY)) out->body = 1;
        return;
    }
    choose_new(n, out);
    sim_name_services(s, out);
}

/* A command that nobody heard an answer to is given again sooner or later; others may be. */
static void keep(struct sim_node *n)
{
    struct sim *s = n->sim;
    if (!sim_repeats(n->command.verb) || n->command.body != 0) return;
    struct sim_command *slot =
        s->n_again < SIM_PENDING ? &s->again[s->n_again++] : &s->again[sim_index(&n->random, SIM_PENDING)];
    *slot = n->command;
}

int sim_give(struct sim_node *n)
{
    int r = sim_verb_give(n);
    keep(n);
    return r;
}
