/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - the catalog's part of asking: a few claimed marks whose turn it is for one service. */
#include "base/assert.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/confirm/inner.h"
#include "core/journal.h"
#include "core/state.h"

#include <stdio.h>
#include <string.h>

const char *rp_round_store(const struct rp_round *round)
{
    return round->batch.store->config->name;
}

int rp_round_no_memory(struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "no memory to ask for confirmations");
}

struct rp_asking *rp_round_asking(const struct rp_round *round, const struct rp_mark *mark)
{
    RP_ASSERT(mark >= round->batch.marks.at && mark < round->batch.marks.at + round->n);
    return &round->askings[mark - round->batch.marks.at];
}

/* ---- C2: asked, committed ---- */

static const char *tenant_of(const struct rp_tenant *tenants, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (tenants[i].id == id) return tenants[i].name;
    return NULL;
}

static int load_tenants(struct rp_tx *tx, const struct rp_round *round, struct rp_tenant **out, size_t *n,
                        struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, round->n + 1, sizeof *ids);
    *out = rp_arena_array(tx->arena, round->n + 1, sizeof **out);
    size_t wanted = 0;
    *n = 0;
    if (ids == NULL || *out == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < round->n; i++)
        if (round->askings[i].mark->tenant_id != 0) ids[wanted++] = round->askings[i].mark->tenant_id;
    return wanted == 0 ? 0 : rp_tenants_load(tx, ids, wanted, *out, n, err);
}

/* The deadline is fixed when it is asked first. */
static void ask_now(struct rp_asking *a, const struct rp_confirmation *next, int64_t now_ms)
{
    const struct rp_confirmer_config *config = a->round->service->config;
    a->now = *next;
    a->now.name = config->name;
    a->now.note = NULL;
    a->now.state = RP_CONFIRM_ASKED;
    a->now.attempts++;
    if (a->now.asked_at_ms == 0) a->now.asked_at_ms = now_ms;
    if (a->now.until_at_ms == 0) a->now.until_at_ms = now_ms + config->give_up_after_ms;
    rp_id_format(RP_ID_CONFIRMATION, a->now.id, a->id);
}

static int ask_one(struct rp_tx *tx, struct rp_asking *a, const struct rp_round_known *k,
                   const struct rp_tenant *tenants, size_t n_tenants, struct rp_error *err)
{
    const struct rp_turn turn = rp_turn_of(&k->all, a->mark->id);
    const char *name = a->round->service->config->name;
    a->ours = rp_round_is_ours(k, a->mark) && turn.next != NULL && strcmp(turn.next->name, name) == 0;
    if (!a->ours) return 0;
    a->last = turn.last;
    ask_now(a, turn.next, tx->late_ms);
    const char *tenant = tenant_of(tenants, n_tenants, a->mark->tenant_id);
    int r = rp_asking_body(a, tenant, &a->round->batch.arena, &a->body, err);
    if (r < 0 || turn.next->asked_at_ms != 0) return r;
    return rp_confirm_audit(tx, "mark.asked", rp_asker_name(a->round->asker), a->mark, rp_round_store(a->round),
                            &a->now, err);
}

static int ask_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct rp_round *round = ctx;
    struct rp_confirmation *rows = rp_arena_array(tx->arena, round->n + 1, sizeof *rows);
    struct rp_tenant *tenants = NULL;
    struct rp_round_known k;
    size_t n = 0, n_tenants = 0;
    if (rows == NULL) return rp_round_no_memory(err);
    int r = rp_round_load(tx, round, &k, err);
    if (r == 0) r = load_tenants(tx, round, &tenants, &n_tenants, err);
    for (size_t i = 0; i < round->n && r == 0; i++) {
        struct rp_asking *a = &round->askings[i];
        if (!a->ours) continue;
        r = ask_one(tx, a, &k, tenants, n_tenants, err);
        if (a->ours) rows[n++] = a->now;
    }
    return r < 0 ? r : rp_confirmations_save(tx, rows, n, err);
}

static int begin(struct rp_round *round, struct rp_error *err)
{
    struct rp_purge_batch *b = &round->batch;
    round->askings = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *round->askings);
    if (round->askings == NULL) return rp_round_no_memory(err);
    round->n = b->marks.n;
    for (size_t i = 0; i < round->n; i++)
        round->askings[i] = (struct rp_asking){ .round = round, .mark = &b->marks.at[i], .ours = true };
    return 0;
}

static void tell_asked(const struct rp_asking *a)
{
    struct rp_journal j = rp_asker_journal(a->round->asker);
    if (a->now.attempts > 1) return;
    rp_journal_change(&j, "mark.asked", rp_confirm_json(a->mark, rp_round_store(a->round), &a->now));
}

int rp_round_ask(struct rp_round *round, struct rp_error *err)
{
    struct rp_asker *asker = round->asker;
    int r = begin(round, err);
    if (r == 0) r = rp_round_leave(round, err);
    for (size_t i = 0; i < round->n && r == 0; i++)
        round->askings[i].random = rp_purge_random(&asker->options.by.rules);
    if (r == 0) r = rp_catalog_transact(asker->options.by.catalog, ask_tx, round, err);
    if (r < 0) return rp_error_wrap(err, r, "ask for confirmations of store '%s'", rp_round_store(round));
    RP_CRASHPOINT("confirm.asked");
    for (size_t i = 0; i < round->n; i++)
        if (round->askings[i].ours) tell_asked(&round->askings[i]);
    return 0;
}

/* ---- C2: what was said ---- */

struct finishing {
    struct rp_round *round;
    struct rp_asking *const *back;
    size_t n;
};

static struct rp_heard heard_of(const struct rp_asking *a)
{
    const struct rp_confirm_answer *answer = &a->answer;
    return (struct rp_heard){ .meaning = a->meaning,
                              .status = answer->status,
                              .retry_after_ms = answer->retry_after_ms,
                              .words = answer->status != 0 ? answer->body : answer->error };
}

static struct rp_attempt attempt_of(const struct rp_asking *a)
{
    return (struct rp_attempt){ .mark_id = a->mark->id,
                                .ordinal = a->now.ordinal,
                                .n = a->now.attempts,
                                .at_ms = a->called_at_ms,
                                .status = a->answer.status,
                                .body = a->answer.body,
                                .error = a->answer.error };
}

static int note_answers(struct rp_tx *tx, struct finishing *f, const struct rp_move *moves, struct rp_error *err)
{
    struct rp_confirmation *rows = rp_arena_array(tx->arena, f->n + 1, sizeof *rows);
    struct rp_attempt *attempts = rp_arena_array(tx->arena, f->n + 1, sizeof *attempts);
    size_t n = 0;
    int r = 0;
    if (rows == NULL || attempts == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < f->n && r == 0; i++) {
        struct rp_asking *a = rp_round_asking(f->round, moves[i].mark);
        a->decision.move.done = moves[i].done;
        if (!moves[i].done) continue;
        attempts[n] = attempt_of(a);
        rows[n++] = a->decision.after;
        if (a->decision.after.state != RP_CONFIRM_YES) continue;
        r = rp_confirm_audit(tx, "mark.confirmed", rp_asker_name(f->round->asker), a->mark, rp_round_store(f->round),
                             &a->decision.after, err);
    }
    if (r == 0) r = rp_confirmations_save(tx, rows, n, err);
    return r < 0 ? r : rp_attempts_add(tx, attempts, n, err);
}

static int finish_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct finishing *f = ctx;
    struct rp_state_by by = { .store = rp_round_store(f->round), .actor = rp_asker_name(f->round->asker) };
    struct rp_move *moves = rp_arena_array(tx->arena, f->n + 1, sizeof *moves);
    struct rp_mark *marks = rp_arena_array(tx->arena, f->n + 1, sizeof *marks);
    if (moves == NULL || marks == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < f->n; i++) {
        struct rp_asking *a = f->back[i];
        const struct rp_heard heard = heard_of(a);
        rp_confirm_decide(a->mark, &a->now, a->last, &heard, tx->late_ms, a->random, &a->decision);
        moves[i] = a->decision.move;
        marks[i] = *a->mark;
    }
    int r = rp_state_lock_tenants(tx, marks, f->n, err);
    if (r == 0) r = rp_state_move(tx, &by, moves, f->n, err);
    return r < 0 ? r : note_answers(tx, f, moves, err);
}

static void tell(const struct rp_asking *a)
{
    const struct rp_confirm_decision *d = &a->decision;
    struct rp_journal j = rp_asker_journal(a->round->asker);
    bool yes = d->after.state == RP_CONFIRM_YES;
    if (!d->move.done) return; /* it is another one's, who has said it */
    json_t *o = rp_confirm_json(a->mark, rp_round_store(a->round), &d->after);
    rp_json_set(o, "status", json_integer(a->answer.status));
    rp_json_set(o, "attempts", json_integer(d->after.attempts));
    if (d->move.next_at_ms != 0 && !yes) rp_json_set(o, "again_at", rp_json_time(d->move.next_at_ms));
    rp_journal_change(&j, yes ? "mark.confirmed" : d->move.to == RP_DEAD ? "mark.dead" : "mark.unconfirmed", o);
}

static void count(struct rp_asker *asker, const struct rp_asking *a)
{
    bool done = a->decision.move.done, yes = a->decision.after.state == RP_CONFIRM_YES;
    if (done && yes) asker->pass->yes++;
    if (done && yes && !a->last) rp_asker_look_again(asker);
    if (done && a->decision.move.to == RP_DEAD) asker->pass->dead++;
    if (asker->options.answered != NULL)
        asker->options.answered(asker->options.ctx, a->now.name, rp_meaning_name(a->meaning));
}

int rp_round_finish(struct rp_round *round, struct rp_asking *const *back, size_t n, struct rp_error *err)
{
    struct finishing f = { .round = round, .back = back, .n = n };
    RP_CRASHPOINT("confirm.answered");
    int r = rp_catalog_transact(round->asker->options.by.catalog, finish_tx, &f, err);
    if (r < 0) return rp_error_wrap(err, r, "note confirmations of store '%s'", rp_round_store(round));
    for (size_t i = 0; i < n; i++) {
        tell(back[i]);
        count(round->asker, back[i]);
    }
    return 0;
}
