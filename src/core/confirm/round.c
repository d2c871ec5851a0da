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

#define RECHECK_MS RP_HOUR_MS /* what is still referenced is asked about again after this */

static const char *store_of(const struct rp_round *round)
{
    return round->batch.store->config->name;
}

static const char *actor_of(const struct rp_round *round)
{
    return round->asker->options.sweep.worker->name;
}

static struct rp_journal journal_of(const struct rp_round *round)
{
    const struct rp_asker_options *o = &round->asker->options;
    return (struct rp_journal){ .log = o->log,
                                .at_ms = rp_clock_now_ms(o->sweep.catalog->clock),
                                .actor = actor_of(round) };
}

static int begin(struct rp_round *round, struct rp_error *err)
{
    struct rp_purge_batch *b = &round->batch;
    if (round->askings != NULL) return 0;
    round->askings = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *round->askings);
    if (round->askings == NULL) return rp_error_set(err, RP_ENOMEM, "no memory to ask for confirmations");
    round->n = b->marks.n;
    for (size_t i = 0; i < round->n; i++)
        round->askings[i] = (struct rp_asking){ .round = round, .mark = &b->marks.at[i], .ours = true };
    return 0;
}

static int no_memory(struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "no memory to ask for confirmations");
}

static struct rp_asking *asking_of(struct rp_round *round, const struct rp_mark *mark)
{
    RP_ASSERT(mark >= round->batch.marks.at && mark < round->batch.marks.at + round->n);
    return &round->askings[mark - round->batch.marks.at];
}

/* ---- what the catalog knows of these marks ---- */

struct known {
    struct rp_confirmations all;
    struct rp_marks locked;
};

static int load(struct rp_tx *tx, struct rp_round *round, struct known *k, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, round->n + 1, sizeof *ids);
    if (ids == NULL) return no_memory(err);
    for (size_t i = 0; i < round->n; i++)
        ids[i] = round->askings[i].mark->id;
    int r = rp_state_lock_tenants(tx, round->batch.marks.at, round->n, err);
    if (r == 0) r = rp_marks_init(&k->locked, round->n + 1, tx->arena, err);
    if (r == 0) r = rp_marks_lock(tx, ids, round->n, &k->locked, err);
    return r < 0 ? r : rp_confirmations_of(tx->db, ids, round->n, tx->arena, &k->all, err);
}

/* FENCED */
static bool is_ours(const struct known *k, const struct rp_mark *mark)
{
    for (size_t i = 0; i < k->locked.n; i++) {
        const struct rp_mark *now = &k->locked.at[i];
        if (now->id == mark->id) return now->fence == mark->fence && now->state == RP_CHECKING;
    }
    return false;
}

/* The first of a mark's that has not said yes; NULL: none. */
static const struct rp_confirmation *next_of(const struct known *k, const struct rp_mark *mark, bool *last, bool *first)
{
    const struct rp_confirmation *next = NULL;
    *last = *first = true;
    for (size_t i = 0; i < k->all.n; i++) {
        const struct rp_confirmation *c = &k->all.at[i];
        if (c->mark_id != mark->id) continue;
        if (c->asked_at_ms != 0) *first = false;
        if (c->state == RP_CONFIRM_YES) continue;
        if (next != NULL) *last = false;
        if (next == NULL) next = c;
    }
    return next;
}

/* ---- C5: what is still used ---- */

struct counting {
    struct rp_round *round;
    bool *kept;                   /* by marks: its move was made */
    const struct rp_mark **marks; /* copies, with that check alone */
    struct rp_asking **of;
    struct rp_check_answer *answers;
    size_t n;
};

static int collect_counted(struct counting *c, struct rp_error *err)
{
    struct rp_round *round = c->round;
    struct rp_arena *arena = &round->batch.arena;
    struct rp_mark *copies = rp_arena_array(arena, round->n + 1, sizeof *copies);
    c->marks = rp_arena_array(arena, round->n + 1, sizeof(struct rp_mark *));
    c->of = rp_arena_array(arena, round->n + 1, sizeof(struct rp_asking *));
    c->answers = rp_arena_array(arena, round->n + 1, sizeof *c->answers);
    c->kept = rp_arena_array(arena, round->n + 1, sizeof *c->kept);
    if (copies == NULL || c->marks == NULL || c->of == NULL || c->answers == NULL || c->kept == NULL)
        return no_memory(err);
    for (size_t i = 0; i < round->n; i++) {
        const struct rp_mark *mark = round->askings[i].mark;
        if ((rp_checks_of(round->batch.store, mark) & RP_CHECK_REFERENCES) == 0) continue;
        copies[c->n] = *mark;
        copies[c->n].checks = RP_CHECK_REFERENCES;
        c->of[c->n] = &round->askings[i];
        c->marks[c->n] = &copies[c->n];
        c->n++;
    }
    return 0;
}

static int counted_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct counting *c = ctx;
    struct rp_state_by by = { .store = store_of(c->round), .actor = actor_of(c->round) };
    struct rp_purge_rules *rules = &c->round->asker->options.sweep.rules;
    struct rp_move *moves = rp_arena_array(tx->arena, c->n + 1, sizeof *moves);
    struct known k;
    size_t n = 0;
    if (moves == NULL) return no_memory(err);
    int r = load(tx, c->round, &k, err);
    for (size_t i = 0; i < c->n && r == 0; i++) {
        const struct rp_mark *mark = c->of[i]->mark;
        bool last, first;
        if (c->answers[i].says == RP_SAYS_YES) continue;
        (void)next_of(&k, mark, &last, &first);
        int64_t wait =
            c->answers[i].says == RP_SAYS_NO ? RECHECK_MS : c->answers[i].wait_ms + rp_purge_backoff_ms(rules, 1, 0);
        moves[n++] = (struct rp_move){ .mark = mark,
                                       .to = first ? RP_MARKED : RP_CHECKING,
                                       .attempts = mark->attempts,
                                       .next_at_ms = tx->late_ms + wait,
                                       .note = c->answers[i].note };
    }
    if (r == 0) r = rp_state_move(tx, &by, moves, n, err);
    for (size_t i = 0, m = 0; i < c->n; i++)
        c->kept[i] = r == 0 && c->answers[i].says != RP_SAYS_YES && moves[m++].done;
    return r;
}

static void tell_kept(const struct rp_asking *a, const struct rp_check_answer *answer)
{
    struct rp_journal j = journal_of(a->round);
    json_t *o = rp_mark_json(a->mark, store_of(a->round));
    rp_json_set(o, "note", rp_json_text(answer->note));
    if (answer->references >= 0) rp_json_set(o, "references", json_integer(answer->references));
    rp_journal_change(&j, "mark.skipped", o);
}

static int count_references(struct rp_round *round, struct rp_error *err)
{
    struct counting c = { .round = round };
    struct rp_error ignored = { 0 };
    bool kept = false;
    int r = collect_counted(&c, err);
    if (r < 0 || c.n == 0) return r;
    (void)rp_check_ask(round->batch.store, c.marks, c.n, &round->batch.arena, c.answers, &ignored);
    for (size_t i = 0; i < c.n; i++)
        if (c.answers[i].says != RP_SAYS_YES) kept = true;
    if (kept) r = rp_catalog_transact(round->asker->options.sweep.catalog, counted_tx, &c, err);
    for (size_t i = 0; i < c.n && r == 0; i++) {
        if (c.answers[i].says == RP_SAYS_YES) continue;
        c.of[i]->ours = false;
        if (c.kept[i]) tell_kept(c.of[i], &c.answers[i]);
    }
    return r;
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
    if (ids == NULL || *out == NULL) return no_memory(err);
    for (size_t i = 0; i < round->n; i++)
        if (round->askings[i].mark->tenant_id != 0) ids[wanted++] = round->askings[i].mark->tenant_id;
    return wanted == 0 ? 0 : rp_tenants_load(tx, ids, wanted, *out, n, err);
}

/* The deadline is fixed when it is asked first. */
static void ask_now(struct rp_asking *a, const struct rp_confirmation *next, int64_t now_ms)
{
    const struct rp_confirmer_config *config = a->round->endpoint->config;
    a->now = *next;
    a->now.name = config->name;
    a->now.note = NULL;
    a->now.state = RP_CONFIRM_ASKED;
    a->now.attempts++;
    if (a->now.asked_at_ms == 0) a->now.asked_at_ms = now_ms;
    if (a->now.until_at_ms == 0) a->now.until_at_ms = now_ms + config->give_up_after_ms;
    rp_id_format(RP_ID_CONFIRMATION, a->now.id, a->id);
}

static int ask_one(struct rp_tx *tx, struct rp_asking *a, const struct known *k, const struct rp_tenant *tenants,
                   size_t n_tenants, struct rp_error *err)
{
    const struct rp_confirmation *next = next_of(k, a->mark, &a->last, &a->first);
    if (!is_ours(k, a->mark) || next == NULL || strcmp(next->name, a->round->endpoint->config->name) != 0) {
        a->ours = false;
        return 0;
    }
    ask_now(a, next, tx->late_ms);
    a->body = rp_asking_body(a, tenant_of(tenants, n_tenants, a->mark->tenant_id), &a->round->batch.arena);
    if (a->body == NULL) return no_memory(err);
    if (next->asked_at_ms != 0) return 0;
    return rp_confirm_audit(tx, "mark.asked", actor_of(a->round), a->mark, store_of(a->round), &a->now, err);
}

static int ask_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct rp_round *round = ctx;
    struct rp_confirmation *rows = rp_arena_array(tx->arena, round->n + 1, sizeof *rows);
    struct rp_tenant *tenants = NULL;
    struct known k;
    size_t n = 0, n_tenants = 0;
    if (rows == NULL) return no_memory(err);
    int r = load(tx, round, &k, err);
    if (r == 0) r = load_tenants(tx, round, &tenants, &n_tenants, err);
    for (size_t i = 0; i < round->n && r == 0; i++) {
        struct rp_asking *a = &round->askings[i];
        if (!a->ours) continue;
        r = ask_one(tx, a, &k, tenants, n_tenants, err);
        if (a->ours) rows[n++] = a->now;
    }
    return r < 0 ? r : rp_confirmations_save(tx, rows, n, err);
}

static void tell_asked(const struct rp_asking *a)
{
    struct rp_journal j = journal_of(a->round);
    if (a->now.attempts > 1) return;
    rp_journal_change(&j, "mark.asked", rp_confirm_json(a->mark, store_of(a->round), &a->now));
}

int rp_round_ask(struct rp_round *round, struct rp_error *err)
{
    struct rp_asker *asker = round->asker;
    int r = begin(round, err);
    if (r == 0) r = count_references(round, err);
    for (size_t i = 0; i < round->n && r == 0; i++)
        round->askings[i].random = rp_purge_random(&asker->options.sweep.rules);
    if (r == 0) r = rp_catalog_transact(asker->options.sweep.catalog, ask_tx, round, err);
    if (r < 0) return rp_error_wrap(err, r, "ask for confirmations of store '%s'", store_of(round));
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
    return (struct rp_heard){ .meaning = rp_meaning_of(a->round->endpoint->config, answer->status),
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
    if (rows == NULL || attempts == NULL) return no_memory(err);
    for (size_t i = 0; i < f->n && r == 0; i++) {
        struct rp_asking *a = asking_of(f->round, moves[i].mark);
        a->decision.move.done = moves[i].done;
        if (!moves[i].done) continue;
        attempts[n] = attempt_of(a);
        rows[n++] = a->decision.after;
        if (a->decision.after.state != RP_CONFIRM_YES) continue;
        r = rp_confirm_audit(tx, "mark.confirmed", actor_of(f->round), a->mark, store_of(f->round), &a->decision.after,
                             err);
    }
    if (r == 0) r = rp_confirmations_save(tx, rows, n, err);
    return r < 0 ? r : rp_attempts_add(tx, attempts, n, err);
}

static int finish_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct finishing *f = ctx;
    struct rp_state_by by = { .store = store_of(f->round), .actor = actor_of(f->round) };
    struct rp_move *moves = rp_arena_array(tx->arena, f->n + 1, sizeof *moves);
    struct rp_mark *marks = rp_arena_array(tx->arena, f->n + 1, sizeof *marks);
    if (moves == NULL || marks == NULL) return no_memory(err);
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
    struct rp_journal j = journal_of(a->round);
    bool yes = d->after.state == RP_CONFIRM_YES;
    if (!d->move.done) return; /* it is another one's, who has said it */
    json_t *o = rp_confirm_json(a->mark, store_of(a->round), &d->after);
    rp_json_set(o, "status", json_integer(a->answer.status));
    rp_json_set(o, "attempts", json_integer(d->after.attempts));
    if (d->move.next_at_ms != 0 && !yes) rp_json_set(o, "again_at", rp_json_time(d->move.next_at_ms));
    rp_journal_change(&j, yes ? "mark.confirmed" : d->move.to == RP_DEAD ? "mark.dead" : "mark.unconfirmed", o);
}

static void count(struct rp_asker *asker, const struct rp_asking *a)
{
    enum rp_meaning meaning = rp_meaning_of(a->round->endpoint->config, a->answer.status);
    if (a->decision.after.state == RP_CONFIRM_YES) asker->pass->yes++;
    if (a->decision.after.state == RP_CONFIRM_YES && !a->last) rp_asker_look_again(asker);
    if (a->decision.move.to == RP_DEAD) asker->pass->dead++;
    if (asker->options.answered != NULL)
        asker->options.answered(asker->options.ctx, a->now.name, rp_meaning_name(meaning));
}

int rp_round_finish(struct rp_round *round, struct rp_asking *const *back, size_t n, struct rp_error *err)
{
    struct finishing f = { .round = round, .back = back, .n = n };
    RP_CRASHPOINT("confirm.answered");
    int r = rp_catalog_transact(round->asker->options.sweep.catalog, finish_tx, &f, err);
    if (r < 0) return rp_error_wrap(err, r, "note confirmations of store '%s'", store_of(round));
    for (size_t i = 0; i < n; i++) {
        tell(back[i]);
        count(round->asker, back[i]);
    }
    return 0;
}

/* ---- C8 ---- */

static int bury_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct rp_round *round = ctx;
    struct rp_state_by by = { .store = store_of(round), .actor = actor_of(round) };
    struct rp_move *moves = rp_arena_array(tx->arena, round->n + 1, sizeof *moves);
    struct known k;
    if (moves == NULL) return no_memory(err);
    int r = load(tx, round, &k, err);
    for (size_t i = 0; i < round->n && r == 0; i++) {
        const struct rp_mark *mark = round->askings[i].mark;
        bool last, first;
        const struct rp_confirmation *next = next_of(&k, mark, &last, &first);
        char *note = rp_arena_alloc(tx->arena, RP_CONFIRM_NOTE);
        if (note == NULL) return no_memory(err);
        snprintf(note, RP_CONFIRM_NOTE, "its confirmation '%.63s' is not configured any more",
                 next != NULL ? next->name : "?");
        moves[i] = (struct rp_move){ .mark = mark, .to = RP_DEAD, .attempts = mark->attempts, .note = note };
    }
    return r < 0 ? r : rp_state_move(tx, &by, moves, round->n, err);
}

int rp_round_bury(struct rp_round *round, struct rp_error *err)
{
    struct rp_journal j = journal_of(round);
    int r = begin(round, err);
    if (r == 0) r = rp_catalog_transact(round->asker->options.sweep.catalog, bury_tx, round, err);
    if (r < 0) return rp_error_wrap(err, r, "marks of store '%s' without their service", store_of(round));
    for (size_t i = 0; i < round->n; i++)
        rp_journal_change(&j, "mark.dead", rp_mark_json(round->askings[i].mark, store_of(round)));
    round->asker->pass->dead += (int64_t)round->n;
    return 0;
}
