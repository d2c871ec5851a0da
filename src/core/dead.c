/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dead.h"

#include "base/error.h"
#include "core/state.h"

struct deciding {
    int64_t dead_id;
    const char *store, *actor;
    bool retry;
    enum rp_state to;
};

static int keep_letter(void *ctx, const struct rp_dead *dead, struct rp_error *err)
{
    (void)err;
    *(struct rp_dead *)ctx = *dead;
    return 0;
}

static struct rp_move decide(const struct rp_mark *mark, bool retry, int64_t now_ms)
{
    bool untouched = mark->was == RP_CHECKING;
    if (retry) return (struct rp_move){ .mark = mark, .to = mark->was, .next_at_ms = now_ms, .refence = true };
    return (struct rp_move){ .mark = mark,
                             .to = untouched ? RP_REPRIEVED : RP_LOST,
                             .outcome = RP_END_KEPT,
                             .attempts = mark->attempts,
                             .note = mark->note,
                             .refence = true };
}

static int decide_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct deciding *d = ctx;
    struct rp_dead letter = { 0 };
    struct rp_marks marks = { 0 };
    int r = rp_dead_get(tx->db, d->dead_id, keep_letter, &letter, err);
    if (r == 0) r = rp_marks_init(&marks, 1, tx->arena, err);
    if (r == 0) r = rp_marks_lock(tx, &letter.mark_id, 1, &marks, err);
    if (r < 0) return r;
    if (marks.n == 0 || marks.at[0].state != RP_DEAD)
        return rp_error_set(err, RP_ECORRUPT, "the dead letter's mark is not dead");
    struct rp_move move = decide(&marks.at[0], d->retry, tx->late_ms);
    d->to = move.to;
    r = rp_state_move(tx, d->store, d->actor, &move, 1, err);
    if (r == 0 && !move.done) return rp_error_set(err, RP_ECONFLICT, "another one was faster");
    if (r == 0) r = rp_dead_end(tx, &letter.mark_id, 1, d->retry ? "retried" : "kept", d->actor, err);
    return r;
}

int rp_dead_retry(struct rp_catalog *catalog, int64_t dead_id, const char *store, const char *actor,
                  struct rp_error *err)
{
    struct deciding d = { .dead_id = dead_id, .store = store, .actor = actor, .retry = true };
    return rp_catalog_transact(catalog, decide_tx, &d, err);
}

int rp_dead_keep(struct rp_catalog *catalog, int64_t dead_id, const char *store, const char *actor, enum rp_state *as,
                 struct rp_error *err)
{
    struct deciding d = { .dead_id = dead_id, .store = store, .actor = actor };
    int r = rp_catalog_transact(catalog, decide_tx, &d, err);
    if (r == 0) *as = d.to;
    return r;
}
