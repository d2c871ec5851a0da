/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dead.h"

#include "base/error.h"
#include "core/file/file.h"
#include "core/state.h"
#include "core/subject/quarantine.h"

struct deciding {
    int64_t dead_id;
    const char *store, *actor;
    bool retry;
    enum rp_state *as;
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

/* The copy in quarantine that an earlier attempt made belongs to the retried mark again: erased by a mark of its own meanwhile, it would be
 * gone when it is needed. Its time begins when the purge has ended. */
static int rejoin_copy(struct rp_tx *tx, const struct deciding *d, const struct rp_mark *mark, struct rp_error *err)
{
    char key[RP_QUARANTINE_KEY];
    const char *keys[] = { rp_quarantine_key(mark->id, key) };
    struct rp_marks active;
    int r = rp_marks_init(&active, 1, tx->arena, err);
    if (r == 0) r = rp_marks_active(tx, mark->store_id, keys, 1, &active, err);
    if (r < 0 || active.n == 0) return r;
    if (active.at[0].state != RP_MARKED) {
        rp_error_set(err, RP_EHELD, "its copy in quarantine is being erased");
        return rp_error_hint(err, "retry it when that is done; if that is a dead letter too, retry that one first");
    }
    struct rp_move move = { .mark = &active.at[0], .to = RP_REPRIEVED, .outcome = RP_END_KEPT, .refence = true };
    r = rp_state_move(tx, &(struct rp_state_by){ .store = d->store, .actor = d->actor }, &move, 1, err);
    if (r == 0 && !move.done) return rp_error_set(err, RP_ECONFLICT, "another one was faster");
    return r < 0 ? r : rp_files_take_over(tx, mark, &active.at[0].id, 1, err);
}

static int decide_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct deciding *d = ctx;
    struct rp_dead letter = { 0 };
    struct rp_marks marks = { 0 };
    int r = rp_dead_get(tx->db, d->dead_id, keep_letter, &letter, err);
    if (r == 0) r = rp_marks_init(&marks, 1, tx->arena, err);
    if (r == 0) r = rp_marks_lock(tx, &letter.mark_id, 1, &marks, err);
    /* somebody may have decided about it until its mark was locked: then the letter is not open any more */
    if (r == 0) r = rp_dead_get(tx->db, d->dead_id, keep_letter, &letter, err);
    if (r < 0) return r;
    if (marks.n == 0 || marks.at[0].state != RP_DEAD)
        return rp_error_set(err, RP_ECORRUPT, "the dead letter's mark is not dead");
    struct rp_move move = decide(&marks.at[0], d->retry, tx->late_ms);
    *d->as = move.to;
    r = d->retry ? rejoin_copy(tx, d, &marks.at[0], err) : 0;
    if (r == 0) r = rp_state_move(tx, &(struct rp_state_by){ .store = d->store, .actor = d->actor }, &move, 1, err);
    if (r == 0 && !move.done) return rp_error_set(err, RP_ECONFLICT, "another one was faster");
    if (r == 0) r = rp_dead_end(tx, &letter.mark_id, 1, d->retry ? "retried" : "kept", d->actor, err);
    return r;
}

int rp_dead_retry(struct rp_catalog *catalog, int64_t dead_id, const char *store, const char *actor,
                  struct rp_error *err)
{
    enum rp_state as;
    struct deciding d = { .dead_id = dead_id, .store = store, .actor = actor, .retry = true, .as = &as };
    return rp_catalog_change(catalog, decide_tx, &d, err);
}

int rp_dead_keep(struct rp_catalog *catalog, int64_t dead_id, const char *store, const char *actor, enum rp_state *as,
                 struct rp_error *err)
{
    struct deciding d = { .dead_id = dead_id, .store = store, .actor = actor, .as = as };
    return rp_catalog_change(catalog, decide_tx, &d, err);
}
