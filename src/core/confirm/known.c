/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - what the catalog knows of a round's marks, locked. */
#include "core/confirm/inner.h"
#include "core/state.h"

const char *rp_round_store(const struct rp_round *round)
{
    return round->batch.store->config->name;
}

const char *rp_round_actor(const struct rp_round *round)
{
    return round->asker->options.sweep.worker->name;
}

struct rp_journal rp_round_journal(const struct rp_round *round)
{
    const struct rp_asker_options *o = &round->asker->options;
    return (struct rp_journal){ .log = o->log,
                                .at_ms = rp_clock_now_ms(o->sweep.catalog->clock),
                                .actor = rp_round_actor(round) };
}

int rp_round_no_memory(struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "no memory to ask for confirmations");
}

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

const struct rp_confirmation *rp_round_next(const struct rp_round_known *k, const struct rp_mark *mark, bool *last,
                                            bool *first)
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
