/* SPDX-License-Identifier: Apache-2.0 */
/* leave.c - C5, C10, C11: marks that no service is asked about yet. A service that is asked may delete its
 * half, so what keeps the purge away is looked for before. */
#include "base/text/json.h"
#include "core/check/check.h"
#include "core/confirm/inner.h"
#include "core/journal.h"
#include "core/mark/mark.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <stdio.h>

/* One asking, and why it is left. */
struct leaving {
    struct rp_asking *asking;
    struct rp_check_answer counted;
    bool untouched; /* nobody was asked before, since it was last marked */
    bool replaced, left;
    struct rp_move move;
};

struct leavings {
    struct rp_round *round;
    struct leaving *at; /* one an asking */
};

/* ---- C5: what is still used ---- */

static int count_references(struct leavings *l, struct rp_error *err)
{
    struct rp_round *round = l->round;
    struct rp_arena *arena = &round->batch.arena;
    struct rp_mark *copies = rp_arena_array(arena, round->n + 1, sizeof *copies); /* with that check alone */
    const struct rp_mark **marks = rp_arena_array(arena, round->n + 1, sizeof(struct rp_mark *));
    struct rp_check_answer *answers = rp_arena_array(arena, round->n + 1, sizeof *answers);
    struct leaving **of = rp_arena_array(arena, round->n + 1, sizeof(struct leaving *));
    struct rp_error ignored = { 0 };
    size_t n = 0;
    if (copies == NULL || marks == NULL || answers == NULL || of == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < round->n; i++) {
        const struct rp_mark *mark = round->askings[i].mark;
        if ((rp_checks_of(round->batch.store, mark) & RP_CHECK_REFERENCES) == 0) continue;
        copies[n] = *mark;
        copies[n].checks = RP_CHECK_REFERENCES;
        of[n] = &l->at[i];
        marks[n] = &copies[n];
        n++;
    }
    if (n > 0) (void)rp_check_ask(round->batch.store, marks, n, arena, answers, &ignored);
    for (size_t i = 0; i < n; i++)
        of[i]->counted = answers[i];
    return 0;
}

/* ---- C10: what was replaced since ---- */

/* A version is deleted whatever stands above it, and a file's object has a key of its own. Of what
 * was asked about before there is no way back. */
static bool may_be_replaced(const struct leaving *l)
{
    const struct rp_mark *mark = l->asking->mark;
    return l->counted.says == RP_SAYS_YES && l->untouched && mark->file_id == 0 && mark->version[0] == 0 &&
           mark->original == NULL;
}

/* An earlier claimer may have died before it asked anyone. Nobody else changes this
 * while it is ours: who was not asked has nothing to answer. */
static int find_untouched(struct leavings *l, struct rp_error *err)
{
    struct rp_round *round = l->round;
    struct rp_db *db = round->asker->options.by.catalog->db;
    int64_t *ids = rp_arena_array(&round->batch.arena, round->n + 1, sizeof *ids);
    struct rp_confirmations all = { 0 };
    size_t n = 0;
    if (ids == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < round->n; i++) {
        const struct rp_mark *mark = round->askings[i].mark;
        l->at[i].untouched = mark->was == RP_MARKED;
        if (!l->at[i].untouched) ids[n++] = mark->id;
    }
    int r = n > 0 ? rp_confirmations_of(db, ids, n, &round->batch.arena, &all, err) : 0;
    for (size_t i = 0; i < round->n && r == 0; i++)
        if (!l->at[i].untouched) l->at[i].untouched = rp_turn_of(&all, round->askings[i].mark->id).untouched;
    return r;
}

static void see(struct leaving *l, const struct rp_item *item)
{
    if (item->outcome == RP_OUT_GONE) return; /* its other half is to go all the same */
    if (item->outcome == RP_OUT_FOUND) {
        l->replaced = !rp_mark_same_upload(l->asking->mark, &item->identity);
        return;
    }
    l->counted.says = RP_SAYS_UNKNOWN;
    snprintf(l->counted.note, sizeof l->counted.note, "whether it was replaced is not known: %.119s", item->note);
}

static int look(struct leavings *l, struct rp_error *err)
{
    struct rp_store *store = l->round->batch.store;
    struct rp_item *items = rp_arena_array(&l->round->batch.arena, l->round->n + 1, sizeof *items);
    struct leaving **of = rp_arena_array(&l->round->batch.arena, l->round->n + 1, sizeof(struct leaving *));
    struct rp_error why = { 0 };
    size_t n = 0;
    if (items == NULL || of == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < l->round->n; i++) {
        if (!may_be_replaced(&l->at[i])) continue;
        items[n] = (struct rp_item){ .key = l->at[i].asking->mark->key };
        of[n++] = &l->at[i];
    }
    if (n == 0) return 0;
    int64_t began_ms = rp_clock_boot_ms(l->round->asker->options.by.catalog->clock);
    int r = rp_subject_in(store)->look(store, items, n, &why);
    if (r < 0) rp_asker_store_failed(l->round->asker, l->round->which, began_ms);
    for (size_t i = 0; i < n; i++) {
        if (r < 0) items[i].outcome = RP_OUT_RETRY;
        if (r < 0) snprintf(items[i].note, sizeof items[i].note, "%.119s", why.text);
        see(of[i], &items[i]);
    }
    return 0;
}

/* ---- what follows ---- */

/* By the earliest of the clocks, like a purge. */
static bool is_early(const struct leaving *l)
{
    const struct rp_round *round = l->asking->round;
    return round->service->config->when == RP_CONFIRM_DUE && l->asking->mark->due_at_ms > round->batch.now_ms;
}

static bool is_left(const struct leaving *l)
{
    return l->counted.says != RP_SAYS_YES || l->replaced || is_early(l);
}

static struct rp_move move_of(const struct leaving *l, bool untouched, struct rp_purge_rules *rules, int64_t now_ms)
{
    const struct rp_mark *mark = l->asking->mark;
    const struct rp_check_answer *counted = &l->counted;
    struct rp_move move = { .mark = mark, .to = untouched ? RP_MARKED : RP_CHECKING, .attempts = mark->attempts };
    if (l->replaced) {
        move.to = RP_REPRIEVED;
        move.outcome = RP_END_SUPERSEDED;
    } else if (counted->says == RP_SAYS_YES) { /* early */
        move.next_at_ms = mark->due_at_ms;
        move.note = mark->note;
    } else {
        move.next_at_ms = now_ms + rp_purge_recheck_ms(counted, rules, 0);
        move.note = counted->note;
    }
    return move;
}

static int leave_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct leavings *l = ctx;
    struct rp_state_by by = { .store = rp_round_store(l->round), .actor = rp_asker_name(l->round->asker) };
    struct rp_move *moves = rp_arena_array(tx->arena, l->round->n + 1, sizeof *moves);
    struct rp_round_known k;
    size_t n = 0;
    if (moves == NULL) return rp_round_no_memory(err);
    int r = rp_round_load(tx, l->round, &k, err);
    for (size_t i = 0; i < l->round->n && r == 0; i++) {
        l->at[i].left = is_left(&l->at[i]);
        if (!l->at[i].left) continue;
        bool untouched = rp_turn_of(&k.all, l->at[i].asking->mark->id).untouched;
        moves[n++] = move_of(&l->at[i], untouched, &l->round->asker->options.by.rules, tx->late_ms);
    }
    if (r == 0) r = rp_state_move(tx, &by, moves, n, err); /* sorts them */
    for (size_t i = 0; i < n && r == 0; i++)
        l->at[rp_round_asking(l->round, moves[i].mark) - l->round->askings].move = moves[i];
    return r;
}

static void tell(const struct leaving *l)
{
    const struct rp_asking *a = l->asking;
    struct rp_journal j = rp_asker_journal(a->round->asker);
    if (!l->move.done || (l->counted.says == RP_SAYS_YES && !l->replaced)) return;
    json_t *o = rp_mark_json(a->mark, rp_round_store(a->round));
    if (l->replaced)
        rp_json_set(o, "outcome", json_string(rp_end_name(RP_END_SUPERSEDED)));
    else
        rp_json_set(o, "note", rp_json_text(l->counted.note));
    if (l->counted.references > 0) rp_json_set(o, "references", json_integer(l->counted.references));
    rp_journal_change(&j, l->replaced ? "mark.reprieved" : "mark.skipped", o);
}

static int leave(struct leavings *l, struct rp_error *err)
{
    struct rp_catalog *catalog = l->round->asker->options.by.catalog;
    bool any = false;
    for (size_t i = 0; i < l->round->n; i++)
        any = any || is_left(&l->at[i]);
    if (!any) return 0;
    int r = rp_catalog_transact(catalog, leave_tx, l, err);
    for (size_t i = 0; i < l->round->n && r == 0; i++) {
        if (!l->at[i].left) continue;
        l->at[i].asking->ours = false;
        tell(&l->at[i]);
    }
    return r;
}

int rp_round_leave(struct rp_round *round, struct rp_error *err)
{
    struct leavings l = { .round = round, .at = rp_arena_array(&round->batch.arena, round->n + 1, sizeof *l.at) };
    if (l.at == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < round->n; i++)
        l.at[i] = (struct leaving){ .asking = &round->askings[i], .counted = { .says = RP_SAYS_YES } };
    int r = count_references(&l, err);
    if (r == 0) r = find_untouched(&l, err);
    if (r == 0) r = look(&l, err);
    return r == 0 ? leave(&l, err) : r;
}
