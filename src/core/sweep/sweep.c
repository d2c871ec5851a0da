/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sweep/sweep.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "catalog/clock.h"
#include "catalog/metrics.h"
#include "core/guarantee.h"
#include "core/owner/owner.h"
#include "core/sweep/pass.h"

/* What the claim, and asserting ownership, would find. */
static int check_dry(struct rp_catalog *catalog, struct rp_store *store, struct rp_error *err)
{
    struct rp_clock_state clock;
    int r = rp_clock_look(catalog, &clock, err);
    if (r == 0) r = rp_clock_refuse(clock.ahead_ms, err);
    return r < 0 ? r : rp_owner_check(catalog, store, err);
}

int rp_sweep_may_purge(struct rp_sweep *s, struct rp_store *store, bool dry_run, struct rp_error *err)
{
    const struct rp_store_config *config = store->config;
    int r = rp_store_refuse_closed(store, err);
    if (r < 0) return r;
    if (config->mode == RP_MODE_OBSERVE) {
        rp_error_set(err, RP_EOBSERVE, "store '%s' is in mode observe: nothing of it is purged", config->name);
        return rp_error_hint(err, "set stores.%s.mode to quarantine or purge when you are ready", config->name);
    }
    r = rp_guarantee_ensure(s->catalog, store, dry_run ? RP_GUARANTEE_LOOK : RP_GUARANTEE_SWEEP, err);
    if (r < 0) return r;
    if (dry_run) return check_dry(s->catalog, store, err);
    return rp_owner_write(s->catalog, store, s->environment, s->lazily, err);
}

typedef int count_fn(struct rp_db *db, int64_t store_id, int64_t now_ms, struct rp_overdue *out, struct rp_error *err);

static int64_t count_due(struct rp_sweep *s, const struct rp_store *store, count_fn *count)
{
    struct rp_overdue due = { 0 };
    struct rp_error ignored = { 0 };
    (void)count(s->catalog->db, store->id, rp_clock_now_ms(s->catalog->clock), &due, &ignored);
    return due.marks;
}

int64_t rp_sweep_count_too_weak(struct rp_sweep *s, struct rp_store *store, struct rp_error *why)
{
    if (store->config->mode == RP_MODE_OBSERVE || store->backend == NULL || !rp_store_is_weak(store)) return 0;
    int64_t waiting = count_due(s, store, rp_marks_overdue_plain);
    if (waiting > 0) (void)rp_store_refuse_weak(store, why);
    return waiting;
}

/* Asked between two slices of a batch (W3): the process is to stop. */
bool rp_sweep_is_stopped(const struct rp_sweep *s)
{
    return s->stop != NULL && __atomic_load_n(s->stop, __ATOMIC_RELAXED) != 0;
}

bool rp_sweep_has_enough(const struct rp_sweep *s)
{
    return rp_sweep_is_stopped(s) || (s->enough != NULL && __atomic_load_n(s->enough, __ATOMIC_RELAXED) != 0);
}

/* ---- figures of a run ---- */

/* What is due there now, as far as this run may go. A figure for people: without it the run goes on
 * all the same. */
static int64_t count_due_up_to(struct rp_sweep *s, const struct rp_store *store, int64_t most)
{
    struct rp_error ignored = { 0 };
    int64_t due = 0;
    (void)rp_count_overdue(s->catalog->db, store->id, rp_clock_now_ms(s->catalog->clock), most, &due, &ignored);
    return due;
}

static void count_total(struct rp_sweep *s, struct rp_run *run)
{
    for (size_t i = 0; i < s->n_stores && run->total < s->limit; i++)
        if (s->stores[i]->config->mode != RP_MODE_OBSERVE)
            run->total += count_due_up_to(s, s->stores[i], s->limit - run->total);
}

/* What still waits at its end. */
static void count_waiting(struct rp_sweep *s, struct rp_run *run)
{
    struct rp_figures *f = &run->figures;
    int64_t now_ms = rp_clock_now_ms(s->catalog->clock);
    f->waiting = f->waiting_bytes = f->waiting_age_sum_s = f->waiting_oldest_s = 0;
    f->has_waiting = true;
    for (size_t i = 0; i < s->n_stores; i++) {
        struct rp_waiting w = { 0 };
        struct rp_error ignored = { 0 };
        if (rp_marks_waiting(s->catalog->db, s->stores[i]->id, &w, &ignored) < 0) f->has_waiting = false;
        int64_t oldest_s = w.oldest_at_ms != 0 ? (now_ms - w.oldest_at_ms) / 1000 : 0;
        f->waiting += w.marks;
        f->waiting_bytes += w.bytes;
        f->waiting_age_sum_s += w.marks * (now_ms / 1000) - w.marked_at_s;
        if (oldest_s > f->waiting_oldest_s) f->waiting_oldest_s = oldest_s;
    }
    if (f->waiting_age_sum_s < 0) f->waiting_age_sum_s = 0; /* marked by a clock that is ahead of ours */
}

/* ---- a whole run ---- */

int rp_sweep_begin(struct rp_sweep *s, struct rp_run *run, struct rp_error *err)
{
    int r = 0;
    if (s->begun != NULL) {
        RP_ASSERT(s->begun->id != 0);
        *run = *s->begun;
    } else
        r = rp_run_begin(s->catalog, "sweep", s->name, s->worker, s->stale_after_ms, run, err);
    if (r < 0)
        run->id = 0;
    else if (s->started != NULL)
        s->started(s->ctx, run);
    return r;
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
    if (rp_sweep_may_purge(s, store, false, &why) < 0) {
        leave_out(s, store, out, count_due(s, store, rp_marks_overdue), &why);
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
    const struct rp_figures *f = &out->run.figures;
    int64_t left = s->limit;
    size_t closed = 0;
    for (size_t i = 0; i < s->n_stores && left > 0 && !rp_sweep_is_stopped(s) && !out->run.cancelled; i++) {
        if (!sweep_store(s, s->stores[i], batches, &left, out)) return "failed";
        closed += s->stores[i]->backend == NULL;
    }
    if (s->n_stores > 0 && closed == s->n_stores) return "failed";
    if (out->run.cancelled) return "cancelled";
    return rp_sweep_is_stopped(s) || f->failed > 0 || f->n_errors > 0 ? "partial" : "done";
}

static void end_run(struct rp_sweep *s, struct rp_sweep_result *out)
{
    struct rp_error end = { 0 };
    count_waiting(s, &out->run);
    if (rp_run_end(s->catalog, &out->run, out->outcome, &end) == 0) return;
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
    count_total(s, &out->run);
    if (batches == NULL) rp_figures_error(&out->run.figures, "%s", why.text);
    out->outcome = batches != NULL ? sweep_all(s, batches, out) : "failed";
    end_run(s, out);
    return 0;
}

/* ---- a run that stays open ---- */

int rp_sweep_pass(struct rp_sweep *s, struct rp_store *store, struct rp_run *run, struct rp_sweep_pass *out,
                  struct rp_error *err)
{
    *out = (struct rp_sweep_pass){ 0 };
    if (rp_sweep_may_purge(s, store, false, &out->why) < 0) return 0;
    rp_error_clear(&out->why); /* of what was looked for on the way and not found */
    RP_CLEANUP(rp_batches_freep) struct rp_batches *batches = rp_batches_new(err);
    if (batches == NULL) return RP_ENOMEM;
    struct rp_pass pass = { .sweep = s, .store = store, .run = run, .left = s->limit };
    pass.total = run->figures.scanned + count_due_up_to(s, store, s->limit);
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
    int r = rp_catalog_transact(s->catalog, renew_tx, run, err);
    if (r == RP_ECHANGED) run->lost = true;
    return r < 0 ? rp_error_wrap(err, r, "keep the lock of %s", run->lock) : 0;
}

int rp_sweep_close(struct rp_sweep *s, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    RP_ASSERT(run->id != 0);
    *outcome = run->figures.failed > 0 || run->figures.n_errors > 0 ? "partial" : "done";
    if (run->cancelled) *outcome = "cancelled";
    count_waiting(s, run);
    return rp_run_end(s->catalog, run, *outcome, err);
}
