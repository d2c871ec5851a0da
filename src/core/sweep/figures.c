/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - what is due and what waits, counted for people: without these figures a run goes on all
 * the same. */
#include "base/time.h"
#include "catalog/metrics.h"
#include "core/guarantee.h"
#include "core/sweep/pass.h"

typedef int count_fn(struct rp_db *db, int64_t store_id, int64_t now_ms, struct rp_overdue *out, struct rp_error *err);

static int64_t count_by(struct rp_sweep *s, const struct rp_store *store, count_fn *count)
{
    struct rp_overdue due = { 0 };
    struct rp_error ignored = { 0 };
    (void)count(s->by.catalog->db, store->id, rp_clock_now_ms(s->by.catalog->clock), &due, &ignored);
    return due.marks;
}

int64_t rp_sweep_count_due(struct rp_sweep *s, const struct rp_store *store)
{
    return count_by(s, store, rp_marks_overdue);
}

int64_t rp_sweep_count_too_weak(struct rp_sweep *s, struct rp_store *store, struct rp_error *why)
{
    if (store->config->mode == RP_MODE_OBSERVE || store->backend == NULL || !rp_store_is_weak(store)) return 0;
    int64_t waiting = count_by(s, store, rp_marks_overdue_plain);
    if (waiting > 0) (void)rp_store_refuse_weak(store, why);
    return waiting;
}

int64_t rp_sweep_count_due_up_to(struct rp_sweep *s, const struct rp_store *store, int64_t most)
{
    struct rp_error ignored = { 0 };
    int64_t due = 0;
    (void)rp_count_overdue(s->by.catalog->db, store->id, rp_clock_now_ms(s->by.catalog->clock), most, &due, &ignored);
    return due;
}

void rp_sweep_count_total(struct rp_sweep *s, struct rp_run *run)
{
    for (size_t i = 0; i < s->by.n_stores && run->total < s->limit; i++)
        if (s->by.stores[i]->config->mode != RP_MODE_OBSERVE)
            run->total += rp_sweep_count_due_up_to(s, s->by.stores[i], s->limit - run->total);
}

void rp_sweep_count_waiting(struct rp_sweep *s, struct rp_run *run)
{
    struct rp_figures *f = &run->figures;
    int64_t now_ms = rp_clock_now_ms(s->by.catalog->clock);
    f->waiting = f->waiting_bytes = f->waiting_age_sum_s = f->waiting_oldest_s = 0;
    f->has_waiting = true;
    for (size_t i = 0; i < s->by.n_stores; i++) {
        struct rp_waiting w = { 0 };
        struct rp_error ignored = { 0 };
        if (rp_marks_waiting(s->by.catalog->db, s->by.stores[i]->id, &w, &ignored) < 0) f->has_waiting = false;
        int64_t oldest_s = w.oldest_at_ms != 0 ? (now_ms - w.oldest_at_ms) / 1000 : 0;
        f->waiting += w.marks;
        f->waiting_bytes += w.bytes;
        f->waiting_age_sum_s += w.marks * (now_ms / 1000) - w.marked_at_s;
        if (oldest_s > f->waiting_oldest_s) f->waiting_oldest_s = oldest_s;
    }
    if (f->waiting_age_sum_s < 0) f->waiting_age_sum_s = 0; /* marked by a clock that is ahead of ours */
}
