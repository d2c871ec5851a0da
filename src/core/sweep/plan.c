/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sweep/plan.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/guarantee.h"
#include "core/state.h"

#include <stdlib.h>

#define PAGE 1000

/* By the earliest of the clocks, like a claim. */
static int now_of(struct rp_catalog *catalog, int64_t *now_ms, struct rp_error *err)
{
    int64_t db_ms = 0;
    *now_ms = rp_clock_now_ms(catalog->clock);
    int r = rp_db_now_ms(catalog->db, &db_ms, err);
    if (r == 0 && db_ms < *now_ms) *now_ms = db_ms;
    return r;
}

/* Nothing is purged there but what guarantee.h, L4 names. */
static bool is_weak(const struct rp_store *store)
{
    return store->config->mode != RP_MODE_OBSERVE && rp_store_is_weak(store);
}

/* ---- each mark ---- */

struct walk {
    struct rp_sweep *sweep;
    rp_plan_fn *fn;
    void *ctx;
    struct rp_marks page;
    int64_t left;
};

static int walk_store(struct walk *w, struct rp_store *store, struct rp_error *err)
{
    struct rp_catalog *catalog = w->sweep->by.catalog;
    struct rp_marks_query query = { .by = RP_BY_DUE_UNHELD, .store_id = store->id };
    struct rp_marks *page = &w->page;
    bool weak = is_weak(store);
    int r = now_of(catalog, &query.before_ms, err);
    while (r == 0 && w->left > 0) {
        rp_arena_reset(page->arena);
        r = rp_marks_init(page, PAGE, page->arena, err);
        if (r == 0) r = rp_marks_page(catalog->db, &query, page, err);
        if (r < 0 || page->n == 0) return r;
        for (size_t i = 0; i < page->n && r == 0 && w->left > 0; i++) {
            if (weak && !rp_mark_is_named(&page->at[i])) continue;
            w->left--;
            r = w->fn(w->ctx, store, &page->at[i], err);
        }
    }
    return r;
}

int rp_plan_each(struct rp_sweep *s, rp_plan_fn *fn, void *ctx, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)8 << 20);
    struct walk walk = { .sweep = s, .fn = fn, .ctx = ctx, .page = { .arena = &arena }, .left = s->limit };
    int r = 0;
    for (size_t i = 0; i < s->by.n_stores && r == 0; i++) {
        struct rp_error ignored = { 0 }; /* who asks whether it may be purged is told */
        if (s->by.stores[i]->backend != NULL)
            (void)rp_guarantee_ensure(s->by.catalog, s->by.stores[i], RP_GUARANTEE_LOOK, &ignored);
        r = walk_store(&walk, s->by.stores[i], err);
    }
    return r < 0 ? rp_error_wrap(err, r, "plan a sweep") : 0;
}

/* ---- each store ---- */

static struct rp_planned *planned_of(struct rp_plan *plan, const struct rp_store *store)
{
    size_t i = 0;
    while (i < plan->n && plan->at[i].store != store)
        i++;
    RP_ASSERT(i < plan->n);
    return &plan->at[i];
}

static int plan_mark(void *ctx, const struct rp_store *store, const struct rp_mark *mark, struct rp_error *err)
{
    struct rp_planned *p = planned_of(ctx, store);
    size_t n = json_array_size(p->examples);
    const char *guard = rp_check_name(rp_checks_of(store, mark));
    (void)err;
    p->marks++;
    p->bytes += mark->size_bytes;
    p->guarded += guard != NULL;
    if (n >= RP_PLAN_EXAMPLES) return 0;
    p->example_due_ms[n] = mark->due_at_ms;
    json_t *o = rp_mark_line(mark, store->config->name);
    rp_json_set(o, "guard", guard != NULL ? json_string(guard) : json_null());
    rp_json_append(p->examples, o);
    return 0;
}

static int count_unconfirmed(struct rp_sweep *s, struct rp_planned *p, struct rp_error *err)
{
    bool weak = is_weak(p->store);
    int64_t now_ms;
    int r = now_of(s->by.catalog, &now_ms, err);
    if (r < 0) return r;
    return rp_marks_count_to_confirm(s->by.catalog->db, p->store->id, now_ms, weak, s->limit, &p->unconfirmed, err);
}

static void find_left_out(struct rp_sweep *s, struct rp_planned *p)
{
    p->left_out = rp_sweeper_may_purge(&s->by, p->store, &p->why) < 0;
    if (!p->left_out) rp_error_clear(&p->why); /* of what was looked for on the way and not found */
    p->waiting = p->left_out ? p->marks + p->unconfirmed : rp_sweep_count_too_weak(s, p->store, &p->why);
}

int rp_plan_make(struct rp_sweep *s, struct rp_plan **out, struct rp_error *err)
{
    RP_CLEANUP(rp_plan_freep) struct rp_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a plan");
    for (; plan->n < s->by.n_stores; plan->n++)
        plan->at[plan->n] = (struct rp_planned){ .store = s->by.stores[plan->n], .examples = json_array() };
    int r = rp_plan_each(s, plan_mark, plan, err);
    for (size_t i = 0; i < plan->n && r == 0; i++)
        r = count_unconfirmed(s, &plan->at[i], err);
    if (r < 0) return r;
    for (size_t i = 0; i < plan->n; i++)
        find_left_out(s, &plan->at[i]);
    *out = plan;
    plan = NULL;
    return 0;
}

void rp_plan_freep(struct rp_plan **plan)
{
    for (size_t i = 0; *plan != NULL && i < (*plan)->n; i++)
        json_decref((*plan)->at[i].examples);
    free(*plan);
}

const char *rp_planned_effect(const struct rp_planned *p)
{
    if (p->left_out) return "none";
    return p->store->config->mode == RP_MODE_QUARANTINE ? "quarantine" : "purge";
}
