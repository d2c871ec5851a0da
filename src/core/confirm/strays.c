/* SPDX-License-Identifier: Apache-2.0 */
/* strays.c - C8: marks whose service is not configured become dead letters. */
#include "base/cleanup.h"
#include "core/confirm/inner.h"
#include "core/state.h"

#include <stdio.h>

#define BURY_MOST 100

struct strays {
    struct rp_asker *asker;
    struct rp_purge_batch batch;
    struct rp_move *moves; /* one a mark */
};

static const char *store_of(const struct strays *s)
{
    return s->batch.store->config->name;
}

static int bury_one(const struct rp_mark *mark, const struct rp_confirmations *all, struct rp_arena *arena,
                    struct rp_move *move, struct rp_error *err)
{
    const struct rp_confirmation *next = rp_turn_of(all, mark->id).next;
    char *note = rp_arena_alloc(arena, RP_CONFIRM_NOTE);
    if (note == NULL) return rp_round_no_memory(err);
    snprintf(note, RP_CONFIRM_NOTE, "its confirmation '%.63s' is not configured any more",
             next != NULL ? next->name : "?");
    *move = (struct rp_move){ .mark = mark, .to = RP_DEAD, .attempts = mark->attempts, .note = note };
    return 0;
}

static int bury_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct strays *s = ctx;
    const struct rp_marks *marks = &s->batch.marks;
    struct rp_state_by by = { .store = store_of(s), .actor = rp_asker_name(s->asker) };
    struct rp_confirmations all = { 0 };
    int64_t *ids = rp_arena_array(tx->arena, marks->n, sizeof *ids);
    if (ids == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < marks->n; i++)
        ids[i] = marks->at[i].id;
    int r = rp_state_lock_tenants(tx, marks->at, marks->n, err);
    if (r == 0) r = rp_confirmations_of(tx->db, ids, marks->n, tx->arena, &all, err);
    for (size_t i = 0; i < marks->n && r == 0; i++)
        r = bury_one(&marks->at[i], &all, tx->arena, &s->moves[i], err);
    return r < 0 ? r : rp_state_move(tx, &by, s->moves, marks->n, err); /* sorts them */
}

static void tell(const struct strays *s)
{
    struct rp_journal j = rp_asker_journal(s->asker);
    for (size_t i = 0; i < s->batch.marks.n && s->moves != NULL; i++) {
        if (!s->moves[i].done) continue;
        rp_journal_change(&j, "mark.dead", rp_mark_json(s->moves[i].mark, store_of(s)));
        s->asker->pass->dead++;
    }
}

static int bury(struct strays *s, struct rp_store *store, struct rp_error *err)
{
    struct rp_sweeper *by = &s->asker->options.by;
    const struct rp_confirm_claim others = { .services = s->asker->names, .strays = true };
    int r = rp_purge_claim_to_confirm(by->catalog, store, &by->rules, by->worker, &others, BURY_MOST, &s->batch, err);
    if (r < 0 || s->batch.marks.n == 0) return r;
    s->moves = rp_arena_array(&s->batch.arena, s->batch.marks.n, sizeof *s->moves);
    r = s->moves != NULL ? rp_catalog_transact(by->catalog, bury_tx, s, err) : rp_round_no_memory(err);
    if (r < 0) return rp_error_wrap(err, r, "marks of store '%s' without their service", store_of(s));
    tell(s);
    return 0;
}

int rp_strays_bury(struct rp_asker *asker, struct rp_store *store, size_t *n, struct rp_error *err)
{
    struct strays s = { .asker = asker };
    rp_purge_batch_init(&s.batch);
    int r = bury(&s, store, err);
    *n = r == 0 ? s.batch.marks.n : 0;
    rp_purge_batch_done(&s.batch);
    return r;
}
