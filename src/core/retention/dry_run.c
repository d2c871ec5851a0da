/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.c - what a run would let go, with nothing written. What is found does not go, so each look
 * begins behind the one before. */
#include "base/cleanup.h"
#include "base/error.h"
#include "catalog/clock.h"
#include "core/retention/steps.h"

static int look_step(const struct rp_retention *retention, const struct rp_retention_step *step, int64_t now_ms,
                     struct rp_arena *arena, struct rp_figures *figures, bool *complete, struct rp_error *err)
{
    struct rp_retention_batch batch = rp_retention_first_batch(retention, step, 0, now_ms);
    struct rp_ids ids;
    int r = 0;
    rp_figures_let_go(figures, step->name, 0);
    for (int looks = 0; r == 0 && batch.more && looks < RP_RETENTION_LOOKS; looks++) {
        r = rp_retention_find(step, retention->catalog->db, arena, &batch, &ids, err);
        if (r == 0) rp_figures_let_go(figures, step->name, (int64_t)ids.n);
    }
    *complete = *complete && !batch.more;
    return r;
}

int rp_retention_look(struct rp_retention *retention, struct rp_figures *figures, bool *complete, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(RP_CARRY_ARENA_MAX);
    struct rp_clock_state clock;
    *complete = true;
    int r = rp_clock_look(retention->catalog, &clock, err);
    if (r < 0) return r;
    int64_t now_ms = clock.by_boot_ms < clock.db_ms ? clock.by_boot_ms : clock.db_ms; /* R4 */
    for (size_t i = 0; i < rp_retention_steps_count && r == 0; i++)
        r = look_step(retention, &rp_retention_steps[i], now_ms, &arena, figures, complete, err);
    return r < 0 ? rp_error_wrap(err, r, "look what may go") : 0;
}
