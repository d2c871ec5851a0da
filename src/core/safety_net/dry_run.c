/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.c - what a run would find, with nothing written. What is found is not mended, so each page
 * begins behind the one before. */
#include "base/cleanup.h"
#include "base/error.h"
#include "core/safety_net/steps.h"

#include <stdlib.h>

struct dry_run {
    rp_net_found_fn *found;
    void *ctx;
    struct rp_net_search search;
    struct rp_figures *figures;
};

static int tell_all(const struct dry_run *w, const struct rp_net_step *step, const struct rp_orphans *orphans,
                    struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < orphans->n && r == 0; i++) {
        const struct rp_net_finding finding = { .of_mark = step->orphans_are_marks,
                                                .would = step->would,
                                                .orphan = &orphans->at[i] };
        r = w->found(w->ctx, &finding, err);
    }
    return r;
}

static int find_in_step(struct dry_run *w, const struct rp_net_step *step, bool *complete, struct rp_error *err)
{
    struct rp_net_page page = { .at = step->from, .more = true };
    int r = 0;
    rp_figures_let_go(w->figures, step->name, 0);
    for (int pages = 0; r == 0 && page.more && pages < RP_NET_PAGES; pages++) {
        struct rp_orphans orphans = { 0 };
        page.room = RP_NET_BATCH;
        r = rp_net_find_page(&w->search, step, &page, &orphans, err);
        if (r < 0) break;
        rp_figures_let_go(w->figures, step->name, (int64_t)orphans.n);
        w->figures->scanned += page.scanned;
        r = tell_all(w, step, &orphans, err);
        *complete = *complete && !page.cut;
        page.at = page.end;
    }
    *complete = *complete && !page.more;
    return r;
}

int rp_safety_net_dry_run(struct rp_safety_net *net, rp_net_found_fn *found, void *ctx, struct rp_figures *figures,
                          bool *complete, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct dry_run *w = calloc(1, sizeof *w);
    if (w == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a safety net");
    w->found = found;
    w->ctx = ctx;
    w->figures = figures;
    figures->repairs = *complete = true;
    int r = rp_net_search_open(&w->search, net, err);
    for (size_t i = 0; i < rp_net_steps_count && r == 0; i++)
        r = find_in_step(w, &rp_net_steps[i], complete, err);
    if (r == 0) r = rp_net_count_behind(net, false, &figures->behind, err);
    rp_net_search_close(&w->search);
    return r < 0 ? rp_error_wrap(err, r, "look for what was lost") : 0;
}
