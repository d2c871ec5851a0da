/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - what the store said becomes what the catalog knows; or, of a batch that is given
 * up, that nothing was. */
#include "base/crashpoint.h"
#include "core/guarantee.h"
#include "core/purge/batch.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <stdlib.h>

struct finishing {
    struct rp_purge_rules *rules;
    struct rp_purge_batch *batch;
    struct rp_run *run;
    size_t from; /* the first of the batch's marks that this transaction is about */
    struct rp_purge_part part;
    struct rp_figures before; /* for a transaction that is run again */
    uint64_t random_before;
    int64_t changed_at_ms; /* 0: no object was */
};

static void count_move(struct rp_figures *f, const char *store, const struct rp_purge_item *item)
{
    const struct rp_move *move = &item->move;
    bool ours = move->outcome == RP_END_ERASED || move->outcome == RP_END_QUARANTINED;
    if (!move->done || rp_purge_is_skipped(item->status)) {
        f->skipped++;
    } else if (move->outcome == RP_END_SUPERSEDED) {
        f->superseded++;
    } else if (move->to == RP_PURGED) {
        *(ours ? &f->purged : &f->already_gone) += 1;
        if (move->outcome == RP_END_ERASED) f->bytes_freed += move->mark->size_bytes;
    } else {
        f->failed++;
        rp_figures_error(f, "%s:%.120s: %s%s", store, move->mark->key, move->note,
                         move->to == RP_DEAD ? " (dead letter)" : "");
    }
}

static size_t judge_all(struct rp_tx *tx, struct finishing *f, struct rp_move *moves)
{
    struct rp_purge_batch *b = f->batch;
    size_t n = 0;
    for (size_t i = f->from; i < f->from + f->part.n; i++) {
        const struct rp_purge_item *item = &b->items[i];
        rp_figures_see(&f->run->figures, b->store->config->name, item->mark->key,
                       tx->late_ms - item->mark->marked_at_ms, item->mark->size_bytes);
        if (item->status == RP_ITEM_KEPT)
            f->run->figures.skipped++;
        else
            moves[n++] =
                rp_purge_judge(item, b->store_error.code < 0, f->rules, tx->late_ms, rp_purge_random(f->rules));
    }
    return n;
}

static int settle(struct rp_tx *tx, struct finishing *f, struct rp_move *moves, size_t n, struct rp_error *err)
{
    struct rp_state_by by = { .store = f->batch->store->config->name, .actor = f->run->worker->name };
    int r = rp_state_move(tx, &by, moves, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_purge_item *item = rp_purge_item_of(f->batch, moves[i].mark);
        item->move = moves[i];
        count_move(&f->run->figures, by.store, item);
    }
    if (r == 0) r = rp_subjects_ended(tx, by.store, moves, n, by.actor, err);
    if (r == 0) r = rp_purge_note_returns(tx, f->batch, by.actor, f->from, f->part.n, err);
    return r < 0 ? r : rp_purge_mark_copies(tx, f->batch, f->run, moves, n, err);
}

/* An object that another upload has taken the key of: a promise about the store's keys, if there
 * was one, is broken. */
static int note_changed(struct rp_tx *tx, struct finishing *f, struct rp_error *err)
{
    struct rp_purge_batch *b = f->batch;
    f->changed_at_ms = 0;
    for (size_t i = f->from; i < f->from + f->part.n; i++) {
        const struct rp_purge_item *item = &b->items[i];
        bool changed = item->status == RP_ITEM_CHANGED || item->status == RP_ITEM_MOVED_CHANGED;
        if (!changed || rp_mark_is_named(item->mark)) continue;
        f->changed_at_ms = tx->late_ms;
        return rp_guarantee_note_changed(tx, b->store, item->mark->key, f->run->worker->name, err);
    }
    return 0;
}

static void note_errors(struct rp_run *run, const struct rp_purge_batch *b)
{
    if (b->store_error.code < 0) rp_figures_error(&run->figures, "%s", b->store_error.text);
    if (b->check_error.code < 0) rp_figures_error(&run->figures, "%s", b->check_error.text);
}

static int finish_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct finishing *f = ctx;
    struct rp_purge_item *first = &f->batch->items[f->from];
    struct rp_move *moves = rp_arena_array(tx->arena, f->part.n + 1, sizeof *moves);
    if (moves == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    f->run->figures = f->before;
    f->rules->random = f->random_before;
    if (f->part.damaged && first->status != RP_ITEM_KEPT) rp_purge_set_damaged(first, &f->part.why);
    if (f->from == f->batch->from) note_errors(f->run, f->batch);
    size_t n = judge_all(tx, f, moves);
    int r = rp_purge_take_tenants(tx, f->batch, f->from, f->part.n, err);
    if (r == 0) r = settle(tx, f, moves, n, err);
    if (r == 0) r = note_changed(tx, f, err);
    return r < 0 ? r : rp_run_step(tx, f->run, err);
}

/* The slice at once, as a rule; else part by part (S6). A slice of nothing renews the run's
 * lock. */
static int finish_parts(struct rp_catalog *catalog, struct finishing *f, struct rp_error *err)
{
    do {
        f->part.n = f->batch->to - f->from;
        f->before = f->run->figures;
        f->random_before = f->rules->random;
        int r = rp_purge_narrow(catalog, finish_tx, f, &f->part, err);
        if (r < 0) {
            f->run->figures = f->before;
            return r;
        }
        if (f->changed_at_ms != 0) rp_guarantee_revoke(f->batch->store, f->changed_at_ms);
        f->from += f->part.n;
    } while (f->from < f->batch->to);
    return 0;
}

int rp_purge_finish(struct rp_catalog *catalog, struct rp_purge_rules *rules, struct rp_purge_batch *batch,
                    struct rp_run *run, struct rp_error *err)
{
    struct finishing *f = calloc(1, sizeof *f);
    if (f == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    *f = (struct finishing){ .rules = rules, .batch = batch, .run = run, .from = batch->from };
    RP_CRASHPOINT("sweep.before-finish");
    int r = finish_parts(catalog, f, err);
    if (r == 0) rp_purge_take_away(batch);
    RP_CRASHPOINT("sweep.finished");
    free(f);
    return r < 0 ? rp_error_wrap(err, r, "finish a batch of store '%s'", batch->store->config->name) : 0;
}

/* ---- release ---- */

struct releasing {
    struct rp_purge_batch *batch;
    const char *actor;
};

static int release_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct releasing *rel = ctx;
    struct rp_state_by by = { .store = rel->batch->store->config->name, .actor = rel->actor };
    struct rp_marks *marks = &rel->batch->marks;
    struct rp_move *moves = rp_arena_array(tx->arena, marks->n + 1, sizeof *moves);
    size_t n = 0;
    if (moves == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = rel->batch->from; i < marks->n; i++) {
        const struct rp_mark *m = &marks->at[i];
        if (rel->batch->items[i].status == RP_ITEM_KEPT) continue;
        bool may_return = m->state == RP_CHECKING && (m->checks & RP_CHECK_AGREED) == 0;
        enum rp_state to = may_return ? RP_MARKED : m->state;
        moves[n++] = (struct rp_move){ .mark = m, .to = to, .attempts = m->attempts, .next_at_ms = m->due_at_ms };
    }
    int r = rp_purge_take_tenants(tx, rel->batch, 0, marks->n, err);
    return r < 0 ? r : rp_state_move(tx, &by, moves, n, err);
}

void rp_purge_release(struct rp_catalog *catalog, struct rp_purge_batch *batch, const char *actor)
{
    struct releasing rel = { .batch = batch, .actor = actor };
    struct rp_error ignored = { 0 };
    if (batch->from < batch->marks.n) (void)rp_catalog_transact(catalog, release_tx, &rel, &ignored);
    batch->marks.n = batch->from;
}
