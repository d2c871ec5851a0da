/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - what the catalog knows of a round's marks, locked; whose turn it is for one. */
#include "core/confirm/inner.h"
#include "core/state.h"

int rp_round_load(struct rp_tx *tx, struct rp_round *round, struct rp_round_known *k, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, round->n + 1, sizeof *ids);
    if (ids == NULL) return rp_round_no_memory(err);
    for (size_t i = 0; i < round->n; i++)
        ids[i] = round->askings[i].mark->id;
    int r = rp_state_lock_tenants(tx, round->batch.marks.at, round->n, err);
    if (r == 0) r = rp_marks_init(&k->locked, round->n + 1, tx->arena, err);
    if (r == 0) r = rp_marks_lock(tx, ids, round->n, &k->locked, err);
    return r < 0 ? r : rp_confirmations_of(tx->db, ids, round->n, tx->arena, &k->all, err);
}

bool rp_round_is_ours(const struct rp_round_known *k, const struct rp_mark *mark)
{
    for (size_t i = 0; i < k->locked.n; i++) {
        const struct rp_mark *now = &k->locked.at[i];
        if (now->id == mark->id) return now->fence == mark->fence && now->state == RP_CHECKING;
    }
    return false;
}

struct rp_turn rp_turn_of(const struct rp_confirmations *all, int64_t mark_id)
{
    struct rp_turn turn = { .last = true, .untouched = true };
    for (size_t i = 0; i < all->n; i++) {
        const struct rp_confirmation *c = &all->at[i];
        if (c->mark_id != mark_id) continue;
        if (c->asked_at_ms != 0) turn.untouched = false;
        if (c->state == RP_CONFIRM_YES) continue;
        if (turn.next != NULL) turn.last = false;
        if (turn.next == NULL) turn.next = c;
    }
    return turn;
}
