/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - a run that stays open: the daemon's. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "core/sweep/pass.h"

int rp_sweep_pass(struct rp_sweep *s, struct rp_store *store, struct rp_run *run, struct rp_sweep_pass *out,
                  struct rp_error *err)
{
    *out = (struct rp_sweep_pass){ 0 };
    if (rp_sweeper_admit(&s->by, store, &out->why) < 0) return 0;
    rp_error_clear(&out->why); /* of what was looked for on the way and not found */
    RP_CLEANUP(rp_batches_freep) struct rp_batches *batches = rp_batches_new(err);
    if (batches == NULL) return RP_ENOMEM;
    struct rp_pass pass = { .sweep = s, .store = store, .run = run, .left = s->limit };
    pass.total = run->figures.scanned + rp_sweep_count_due_up_to(s, store, s->limit);
    int r = rp_pass_run(&pass, batches, err);
    out->claimed = s->limit - pass.left;
    if (pass.store_error.code < 0) {
        out->claimed = 0;
        out->why = pass.store_error;
    }
    if (r != RP_ECLOCK) return r;
    out->why = *err; /* clocks apart: not the catalog's trouble */
    return 0;
}

static int renew_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    return rp_run_step(tx, ctx, err);
}

int rp_sweep_renew(struct rp_sweep *s, struct rp_run *run, struct rp_error *err)
{
    RP_ASSERT(run->id != 0);
    int r = rp_catalog_transact(s->by.catalog, renew_tx, run, err);
    return r < 0 ? rp_error_wrap(err, r, "keep the lock of %s", run->lock) : 0;
}

int rp_sweep_close(struct rp_sweep *s, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    RP_ASSERT(run->id != 0);
    *outcome = rp_sweep_outcome(run, false);
    rp_sweep_count_waiting(s, run);
    return rp_run_end(s->by.catalog, run, *outcome, err);
}
