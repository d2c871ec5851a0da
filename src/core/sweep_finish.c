/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_finish.c - what the store said becomes what the catalog knows. */
#include "base/assert.h"
#include "base/crashpoint.h"
#include "base/mutant.h"
#include "base/time.h"
#include "core/file/file.h"
#include "core/guarantee.h"
#include "core/quarantine.h"
#include "core/state.h"
#include "core/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t rp_sweep_backoff_ms(const struct rp_sweep_rules *rules, int64_t failures, uint64_t random)
{
    int64_t wait = rules->retry_first_ms;
    RP_ASSERT(failures >= 1 && wait > 0);
    for (int64_t i = 1; i < failures && wait < rules->retry_most_ms; i++)
        wait *= 2;
    if (wait > rules->retry_most_ms) wait = rules->retry_most_ms;
    int64_t half = wait / 2;
    return half + (int64_t)(random % (uint64_t)(wait + 1));
}

static struct rp_move try_again(const struct rp_mark *mark, int64_t attempts, int64_t next_at_ms, const char *note)
{
    return (
        struct rp_move){ .mark = mark, .to = RP_PURGING, .attempts = attempts, .next_at_ms = next_at_ms, .note = note };
}

struct rp_move rp_sweep_judge(const struct rp_mark *mark, const struct rp_sweep_item *item, bool store_failed,
                              const struct rp_sweep_rules *rules, int64_t now_ms, uint64_t random)
{
    struct rp_move purged = { .mark = mark, .to = RP_PURGED, .attempts = mark->attempts, .outcome = RP_END_GONE };
    int64_t attempts = mark->attempts + 1;
    RP_ASSERT(mark->state == RP_PURGING);
    if (RP_MUTANT(UNKNOWN_IS_DELETED) && item->outcome == RP_OUT_UNKNOWN) return purged;
    if (RP_MUTANT(STORE_FAILURE_IS_GONE) && store_failed) return purged;
    if (store_failed && item->outcome != RP_OUT_DELETED)
        return try_again(mark, mark->attempts, now_ms + rp_sweep_backoff_ms(rules, 1, random),
                         "the store was unavailable");
    switch (item->outcome) {
    case RP_OUT_DELETED:
    case RP_OUT_GONE:
    case RP_OUT_CHANGED:
        if (item->outcome == RP_OUT_DELETED) purged.outcome = RP_END_ERASED;
        if (item->outcome == RP_OUT_CHANGED) purged.outcome = RP_END_SUPERSEDED;
        if (item->aside) purged.outcome = RP_END_QUARANTINED;
        return purged;
    default:
        break;
    }
    if (RP_MUTANT(ATTEMPTS_NOT_COUNTED)) attempts = 1;
    const char *note = item->note[0] != 0 ? item->note : "the store did not say whether it was deleted";
    if (attempts >= rules->max_attempts)
        return (struct rp_move){ .mark = mark, .to = RP_DEAD, .attempts = attempts, .note = note };
    return try_again(mark, attempts, now_ms + rp_sweep_backoff_ms(rules, attempts, random), note);
}

struct finishing {
    struct rp_sweep_rules *rules;
    struct rp_sweep_batch *batch;
    struct rp_run *run;
    size_t from, n;           /* of the batch's marks: those of this transaction */
    struct rp_figures before; /* for a transaction that is run again */
    uint64_t random_before;
    int64_t changed_at_ms; /* 0: no object was */
};

static void count_end(struct rp_figures *f, const struct rp_move *move)
{
    switch (move->outcome) {
    case RP_END_ERASED:
        f->purged++;
        f->bytes_freed += move->mark->size_bytes;
        break;
    case RP_END_QUARANTINED:
        f->purged++;
        break;
    default:
        f->already_gone++;
        break;
    }
}

static void count_move(struct rp_figures *f, const char *store, const struct rp_move *move)
{
    if (!move->done) {
        f->skipped++;
        return;
    }
    if (move->to == RP_PURGED) {
        count_end(f, move);
        return;
    }
    f->failed++;
    rp_figures_error(f, "%s:%.120s: %s%s", store, move->mark->key, move->note,
                     move->to == RP_DEAD ? " (dead letter)" : "");
}

/* The copy in quarantine is a subject of its own, with a mark of its own: the same promise, later. */
static struct rp_mark aside_mark(struct rp_tx *tx, const struct finishing *f, const struct rp_sweep_item *item,
                                 char *key)
{
    return (struct rp_mark){ .id = rp_tx_new_id(tx),
                             .store_id = item->mark->store_id,
                             .key = rp_quarantine_key(item->mark->id, key),
                             .state = RP_MARKED,
                             .marked_at_ms = tx->late_ms,
                             .due_at_ms = tx->late_ms + f->batch->store->config->quarantine_ms,
                             .tenant_id = item->mark->tenant_id,
                             .run_id = f->run->id,
                             .etag = item->aside_identity.etag,
                             .version = item->aside_identity.version,
                             .size_bytes = item->aside_identity.size_bytes,
                             .modified_ms = item->aside_identity.modified_ms,
                             .reason = "quarantine",
                             .actor = f->run->worker->name,
                             .file_id = item->damaged ? 0 : item->mark->file_id };
}

/* A dead letter's copy needs its mark as well: given up, nobody else would erase it. Whether there is one an attempt that failed early
 * cannot know; an earlier one may have made it. Its mark then learns what stands there, if anything does. */
static bool left_a_copy(const struct finishing *f, const struct rp_move *move)
{
    bool may_have = f->batch->store->config->mode == RP_MODE_QUARANTINE && !rp_quarantine_is(move->mark->key);
    if (RP_MUTANT(COPY_NOT_MARKED)) return false;
    return move->done && (move->outcome == RP_END_QUARANTINED || (move->to == RP_DEAD && may_have));
}

/* A mark that died, was retried and is purged now has its copy marked already. */
static bool is_marked(const struct rp_marks *marks, const char *key)
{
    for (size_t i = 0; i < marks->n; i++)
        if (strcmp(marks->at[i].key, key) == 0) return true;
    return false;
}

static int mark_asides(struct rp_tx *tx, struct finishing *f, const struct rp_move *moves, size_t n,
                       struct rp_error *err)
{
    struct rp_mark *marks = rp_arena_array(tx->arena, n + 1, sizeof *marks);
    int64_t *from = rp_arena_array(tx->arena, n + 1, sizeof *from);
    const char **keys = rp_arena_array(tx->arena, n + 1, sizeof *keys);
    struct rp_marks active;
    size_t copies = 0, added = 0;
    int r = rp_marks_init(&active, n + 1, tx->arena, err);
    if (r < 0 || marks == NULL || from == NULL || keys == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (!left_a_copy(f, &moves[i])) continue;
        char *key = rp_arena_alloc(tx->arena, RP_QUARANTINE_KEY);
        if (key == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
        marks[copies] = aside_mark(tx, f, rp_sweep_item_of(f->batch, moves[i].mark), key);
        from[copies] = moves[i].mark->id;
        keys[copies++] = key;
    }
    if (copies > 0) r = rp_marks_active(tx, f->batch->store->id, keys, copies, &active, err);
    for (size_t i = 0; i < copies && r == 0; i++) {
        if (is_marked(&active, marks[i].key)) continue;
        rp_tx_tally(tx, marks[i].store_id, RP_MARKED, 1, marks[i].size_bytes);
        from[added] = from[i];
        marks[added++] = marks[i];
    }
    f->run->figures.marked += (int64_t)added;
    if (r == 0) r = rp_marks_add(tx, marks, added, err);
    return r < 0 ? r : rp_files_take_over(tx, marks, from, added, err);
}

static size_t judge_all(struct rp_tx *tx, struct finishing *f, struct rp_move *moves)
{
    struct rp_sweep_batch *b = f->batch;
    size_t n = 0;
    for (size_t i = f->from; i < f->from + f->n; i++) {
        const struct rp_sweep_item *item = &b->items[i];
        rp_figures_see(&f->run->figures, b->store->config->name, item->mark->key,
                       tx->late_ms - item->mark->marked_at_ms, item->mark->size_bytes);
        if (item->skipped)
            f->run->figures.skipped++;
        else
            moves[n++] =
                rp_sweep_judge(item->mark, item, b->store_code < 0, f->rules, tx->late_ms, rp_sweep_random(f->rules));
    }
    return n;
}

static int settle(struct rp_tx *tx, struct finishing *f, struct rp_move *moves, size_t n, struct rp_error *err)
{
    const char *store_name = f->batch->store->config->name;
    int r =
        rp_state_move(tx, &(struct rp_state_by){ .store = store_name, .actor = f->run->worker->name }, moves, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        rp_sweep_item_of(f->batch, moves[i].mark)->move = moves[i];
        count_move(&f->run->figures, store_name, &moves[i]);
    }
    if (r == 0) r = rp_files_purged(tx, store_name, moves, n, f->run->worker->name, err);
    return r < 0 ? r : mark_asides(tx, f, moves, n, err);
}

/* An object that another upload has taken the place of: a promise about the store's keys, if there was one, is broken. */
static int note_changed(struct rp_tx *tx, struct finishing *f, struct rp_error *err)
{
    struct rp_sweep_batch *b = f->batch;
    f->changed_at_ms = 0;
    for (size_t i = f->from; i < f->from + f->n; i++) {
        const struct rp_mark *mark = b->items[i].mark;
        if (b->items[i].skipped || b->items[i].outcome != RP_OUT_CHANGED || rp_mark_is_named(mark)) continue;
        f->changed_at_ms = tx->late_ms;
        return rp_guarantee_note_changed(tx, b->store, mark->key, f->run->worker->name, err);
    }
    return 0;
}

static int finish_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct finishing *f = ctx;
    struct rp_move *moves = rp_arena_array(tx->arena, f->n + 1, sizeof *moves);
    if (moves == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    f->run->figures = f->before;
    f->rules->random = f->random_before;
    if (f->from == 0 && f->batch->store_code < 0) rp_figures_error(&f->run->figures, "%s", f->batch->store_error.text);
    if (f->from == 0 && f->batch->guard_error.code < 0)
        rp_figures_error(&f->run->figures, "%s", f->batch->guard_error.text);
    size_t n = judge_all(tx, f, moves);
    int r = settle(tx, f, moves, n, err);
    if (r == 0) r = note_changed(tx, f, err);
    return r < 0 ? r : rp_run_step(tx, f->run, err);
}

static int finish_part(struct rp_catalog *catalog, struct finishing *f, struct rp_error *err)
{
    f->before = f->run->figures;
    f->random_before = f->rules->random;
    int r = rp_catalog_transact(catalog, finish_tx, f, err);
    if (r < 0) f->run->figures = f->before;
    if (r == 0 && f->changed_at_ms != 0) rp_guarantee_revoke(f->batch->store, f->changed_at_ms);
    return r;
}

/* S6: all of them, as a rule; else what is left after those that could be finished, halved until it is one. */
static int finish_parts(struct rp_catalog *catalog, struct finishing *f, struct rp_error *err)
{
    size_t all = f->batch->marks.n;
    f->n = all;
    do {
        int r = finish_part(catalog, f, err);
        struct rp_sweep_item *first = &f->batch->items[f->from];
        if (r == 0) {
            f->from += f->n;
            f->n = all - f->from;
        } else if (!rp_sweep_may_be_one(r) || f->n == 0 || (f->n == 1 && first->damaged))
            return r;
        else if (f->n > 1)
            f->n /= 2;
        else
            rp_sweep_set_damaged(first, err);
    } while (f->from < all);
    return 0;
}

int rp_sweep_finish(struct rp_catalog *catalog, struct rp_sweep_rules *rules, struct rp_sweep_batch *batch,
                    struct rp_run *run, struct rp_error *err)
{
    struct finishing *f = calloc(1, sizeof *f);
    if (f == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    *f = (struct finishing){ .rules = rules, .batch = batch, .run = run };
    RP_CRASHPOINT("sweep.before-finish");
    int r = finish_parts(catalog, f, err);
    RP_CRASHPOINT("sweep.finished");
    if (r == RP_ECHANGED) run->lost = true;
    free(f);
    return r < 0 ? rp_error_wrap(err, r, "finish a batch of store '%s'", batch->store->config->name) : 0;
}

/* ---- release ---- */

struct releasing {
    struct rp_sweep_batch *batch;
    const char *actor;
};

static int release_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct releasing *rel = ctx;
    struct rp_marks *marks = &rel->batch->marks;
    struct rp_move *moves = rp_arena_array(tx->arena, marks->n + 1, sizeof *moves);
    size_t n = 0;
    if (moves == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < marks->n; i++) {
        const struct rp_mark *m = &marks->at[i];
        if (rel->batch->items[i].skipped) continue;
        enum rp_state to = m->state == RP_CHECKING ? RP_MARKED : m->state;
        moves[n++] = (struct rp_move){ .mark = m, .to = to, .attempts = m->attempts, .next_at_ms = m->due_at_ms };
    }
    return rp_state_move(tx, &(struct rp_state_by){ .store = rel->batch->store->config->name, .actor = rel->actor },
                         moves, n, err);
}

void rp_sweep_release(struct rp_catalog *catalog, struct rp_sweep_batch *batch, const char *actor)
{
    struct releasing rel = { .batch = batch, .actor = actor };
    struct rp_error ignored = { 0 };
    if (batch->marks.n > 0) (void)rp_catalog_transact(catalog, release_tx, &rel, &ignored);
    batch->marks.n = 0;
}
