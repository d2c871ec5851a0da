/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sweep/sweep.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "core/sweep/pass.h"

int rp_sweep_begin(struct rp_sweep *s, struct rp_run *run, struct rp_error *err)
{
    int r = 0;
    if (s->begun != NULL) {
        RP_ASSERT(s->begun->id != 0);
        *run = *s->begun;
    } else
        r = rp_run_begin(s->by.catalog, "sweep", s->name, s->by.worker, s->stale_after_ms, run, err);
    if (r < 0)
        run->id = 0;
    else if (s->started != NULL)
        s->started(s->ctx, run);
    return r;
}

const char *rp_sweep_outcome(const struct rp_run *run, bool stopped)
{
    if (run->cancelled) return "cancelled";
    return stopped || run->figures.failed > 0 || run->figures.n_errors > 0 ? "partial" : "done";
}

static void leave_out(struct rp_sweep *s, struct rp_store *store, struct rp_sweep_result *out, int64_t due,
                      const struct rp_error *why)
{
    out->code = why->code;
    out->run.figures.skipped += due;
    /* observing is what the user asked for; everything else is an error of the run */
    if (why->code != RP_EOBSERVE) rp_figures_error(&out->run.figures, "%s", why->text);
    if (s->left_out != NULL) s->left_out(s->ctx, store, due, why);
}

/* Returns whether the run goes on. */
static bool sweep_store(struct rp_sweep *s, struct rp_store *store, struct rp_batches *batches, int64_t *left,
                        struct rp_sweep_result *out)
{
    struct rp_error why = { 0 };
    struct rp_pass pass = { .sweep = s, .store = store, .run = &out->run, .left = *left };
    if (rp_sweeper_admit(&s->by, store, &why) < 0) {
        leave_out(s, store, out, rp_sweep_count_due(s, store), &why);
        return true;
    }
    int64_t before = out->run.figures.scanned;
    if (rp_pass_run(&pass, batches, &why) < 0) {
        rp_figures_error(&out->run.figures, "%s", why.text);
        out->code = why.code;
        if (out->run.lost || (rp_error_fault(why.code) & RP_OF_RUN) != 0) return false;
    }
    *left -= out->run.figures.scanned - before;
    int64_t waiting = rp_sweep_count_too_weak(s, store, &why);
    if (waiting > 0) leave_out(s, store, out, waiting, &why);
    return true;
}

static const char *sweep_all(struct rp_sweep *s, struct rp_batches *batches, struct rp_sweep_result *out)
{
    int64_t left = s->limit;
    size_t closed = 0;
    for (size_t i = 0; i < s->by.n_stores && left > 0 && !rp_sweeper_is_stopped(&s->by) && !out->run.cancelled; i++) {
        if (!sweep_store(s, s->by.stores[i], batches, &left, out)) return "failed";
        closed += s->by.stores[i]->backend == NULL;
    }
    if (s->by.n_stores > 0 && closed == s->by.n_stores) return "failed";
    return rp_sweep_outcome(&out->run, rp_sweeper_is_stopped(&s->by));
}

static void end_run(struct rp_sweep *s, struct rp_sweep_result *out)
{
    struct rp_error end = { 0 };
    rp_sweep_count_waiting(s, &out->run);
    if (rp_run_end(s->by.catalog, &out->run, out->outcome, &end) == 0) return;
    rp_figures_error(&out->run.figures, "%s", end.text);
    out->outcome = "failed";
    out->code = end.code;
}

int rp_sweep_run(struct rp_sweep *s, struct rp_sweep_result *out, struct rp_error *err)
{
    struct rp_error why = { 0 };
    int r = rp_sweep_begin(s, &out->run, err);
    if (r < 0) return r;
    RP_CLEANUP(rp_batches_freep) struct rp_batches *batches = rp_batches_new(&why);
    out->code = why.code;
    rp_sweep_count_total(s, &out->run);
    if (batches == NULL) rp_figures_error(&out->run.figures, "%s", why.text);
    out->outcome = batches != NULL ? sweep_all(s, batches, out) : "failed";
    end_run(s, out);
    return 0;
}
