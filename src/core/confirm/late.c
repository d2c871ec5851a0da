/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - the verb answer: what a service says by itself, after a 202 or after its time was over. */
#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/mark/dead.h"
#include "core/confirm/inner.h"
#include "core/journal.h"
#include "core/state.h"

#include <stddef.h>
#include <string.h>

static int load(struct rp_tx *tx, struct rp_answer_command *c, bool *last, struct rp_error *err)
{
    struct rp_marks marks = { 0 };
    struct rp_confirmations all = { 0 };
    int r = rp_confirmation_get(tx->db, c->confirmation_id, c->arena, &c->confirmation, err);
    if (r == 0) r = rp_marks_init(&marks, 1, c->arena, err);
    if (r == 0) r = rp_marks_lock(tx, &c->confirmation.mark_id, 1, &marks, err);
    if (r == 0 && marks.n == 0) r = rp_error_set(err, RP_ENOTFOUND, "its mark is not kept any more");
    if (r == 0) r = rp_confirmations_of(tx->db, &c->confirmation.mark_id, 1, c->arena, &all, err);
    if (r < 0) return r;
    RP_ASSERT(marks.n == 1);
    c->mark = marks.at[0];
    for (size_t i = 0; i < all.n; i++)
        if (all.at[i].id == c->confirmation.id) c->confirmation = all.at[i]; /* as it is under the lock */
    const struct rp_turn turn = rp_turn_of(&all, c->mark.id);
    *last = turn.last && turn.next != NULL && turn.next->id == c->confirmation.id;
    return rp_store_name(tx->db, c->mark.store_id, c->store, err);
}

/* What was said before, once more; or something else. 1: it is news. */
static int compare(const struct rp_answer_command *c, struct rp_error *err)
{
    const struct rp_confirmation *now = &c->confirmation;
    const struct rp_mark *mark = &c->mark;
    bool waits = mark->state == RP_CHECKING || (mark->state == RP_DEAD && mark->was == RP_CHECKING);
    if (now->state == RP_CONFIRM_PENDING && now->asked_at_ms == 0)
        return rp_error_set(err, RP_ENOTFOUND, "this confirmation has not been asked for");
    if (now->state == RP_CONFIRM_YES && c->yes) return 0;
    if (now->state == RP_CONFIRM_REFUSED && !c->yes) return 0;
    if (now->state == RP_CONFIRM_YES) return rp_error_set(err, RP_EANSWERED, "it has said yes before");
    if (mark->state == RP_DEAD && now->state == RP_CONFIRM_PENDING)
        return rp_error_set(err, RP_ENOTFOUND, "this confirmation is not asked for now; a person decides");
    if (mark->state == RP_MARKED)
        return rp_error_set(err, RP_ENOTFOUND, "this confirmation is not asked for now; it will be asked again");
    if (!waits) return rp_error_set(err, RP_EGONE, "the mark has ended: nothing waits for this answer any more");
    return mark->state == RP_DEAD && !c->yes ? 0 : 1; /* a no changes nothing about a dead letter */
}

/* A dead letter that it is about is brought back first, as a retry would. */
static int revive(struct rp_tx *tx, struct rp_answer_command *c, const struct rp_state_by *by, struct rp_error *err)
{
    struct rp_move move = { .mark = &c->mark, .to = RP_CHECKING, .next_at_ms = tx->late_ms, .refence = true };
    if (c->mark.state != RP_DEAD) return 0;
    int r = rp_state_move_all(tx, by, &move, 1, err);
    if (r == 0) r = rp_dead_end(tx, &c->mark.id, 1, "retried", by->actor, err);
    c->mark.was = RP_DEAD;
    c->mark.state = RP_CHECKING;
    c->mark.fence++;
    c->mark.attempts = 0;
    return r;
}

static struct rp_heard heard_of(const struct rp_answer_command *c)
{
    return (struct rp_heard){ .meaning = c->yes ? RP_MEANS_YES : RP_MEANS_REFUSED,
                              .retry_after_ms = -1,
                              .words = c->words };
}

/* Whoever is calling it at this moment has lost the mark (refence): its answer changes nothing. */
static int apply(struct rp_tx *tx, struct rp_answer_command *c, bool last, struct rp_error *err)
{
    struct rp_state_by by = { .store = c->store, .actor = c->command.actor };
    const struct rp_heard heard = heard_of(c);
    struct rp_confirm_decision *d = rp_arena_alloc(c->arena, sizeof *d);
    if (d == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an answer");
    int r = c->yes ? revive(tx, c, &by, err) : 0;
    if (r < 0) return r;
    rp_confirm_decide(&c->mark, &c->confirmation, last, &heard, tx->late_ms, 0, d);
    d->move.refence = true;
    r = rp_state_move_all(tx, &by, &d->move, 1, err);
    if (r == 0) r = rp_confirmations_save(tx, &d->after, 1, err);
    if (r == 0 && c->yes) r = rp_confirm_audit(tx, "mark.confirmed", by.actor, &c->mark, c->store, &d->after, err);
    c->confirmation = d->after;
    c->event = c->yes ? "mark.confirmed" : "mark.dead";
    c->command.due_at_ms = d->move.next_at_ms;
    return r;
}

static int answer(struct rp_tx *tx, struct rp_answer_command *c, struct rp_error *err)
{
    struct rp_error *refused = &c->command.error;
    bool last;
    c->event = NULL;
    int r = load(tx, c, &last, err);
    if (r == RP_ENOTFOUND) {
        *refused = *err;
        rp_error_clear(err);
        return 0;
    }
    if (r < 0 || compare(c, refused) <= 0) return r;
    return apply(tx, c, last, err);
}

static int run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = answer(tx, (struct rp_answer_command *)commands[i], err);
    return r;
}

static int add_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err)
{
    const struct rp_answer_command *c = (const struct rp_answer_command *)command;
    struct rp_confirmation confirmation;
    struct rp_mark mark;
    int r = rp_confirmation_get(tx->db, c->confirmation_id, tx->arena, &confirmation, err);
    if (r == 0) r = rp_mark_get(tx->db, confirmation.mark_id, tx->arena, &mark, err);
    if (r == RP_ENOTFOUND) { /* run says so */
        rp_error_clear(err);
        return 0;
    }
    if (r == 0) rp_locks_tenant(out, mark.tenant_id);
    return r;
}

static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_answer_command *c = (const struct rp_answer_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    if (command->error.code == 0 && c->event != NULL)
        rp_journal_change(&j, c->event, rp_confirm_json(&c->mark, c->store, &c->confirmation));
}

_Static_assert(offsetof(struct rp_answer_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_answer = {
    .name = "answer", .locks = add_locks, .run = run, .log = write_log, .alone = true
};
