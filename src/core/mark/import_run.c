/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/import_run.h"

#include "base/assert.h"
#include "base/time.h"

#include <string.h>

static bool is_stopped(const struct rp_importer *im)
{
    return im->stop != NULL && __atomic_load_n(im->stop, __ATOMIC_RELAXED) != 0;
}

/* I6 */
static void count_item(const struct rp_importer *im, struct rp_figures *f, const struct rp_import_item *item)
{
    const struct rp_mark_answer *a = &item->answer;
    int64_t now_ms = rp_clock_now_ms(im->catalog->clock);
    if (item->unread) {
        f->failed++;
        rp_figures_error(f, "%s", a->error.text);
    } else if (a->what == RP_MARK_CREATED || a->what == RP_MARK_REPLACED) {
        f->marked++;
        rp_figures_see(f, im->import.store->config->name, item->key, now_ms - a->marked_at_ms, a->size_bytes);
    } else
        f->skipped++;
}

static int step_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    return rp_run_step(tx, ctx, err);
}

/* 1: and there is more. */
static int carry_batch(struct rp_importer *im, struct rp_run *run, struct rp_error *err)
{
    int more = rp_import_next(&im->import, im->catalog, err);
    if (more <= 0) return more;
    for (size_t i = 0; i < im->import.n_batch; i++)
        count_item(im, &run->figures, im->import.batch[i]);
    run->figures.scanned = im->import.counts.looked_at;
    int r = rp_catalog_transact(im->catalog, step_tx, run, err);
    if (r < 0) return rp_error_wrap(err, r, "import");
    if (im->finished != NULL) im->finished(im->ctx, &im->import, run);
    return 1;
}

int rp_import_carry(struct rp_importer *im, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    struct rp_error end = { 0 };
    RP_ASSERT(run->id != 0 && strcmp(run->kind, RP_RUN_IMPORT) == 0);
    int r = rp_import_begin(&im->import, err), more = 1;
    while (r == 0 && more > 0 && !run->cancelled && !is_stopped(im)) {
        more = carry_batch(im, run, err);
        r = more < 0 ? more : 0;
    }
    rp_import_end(&im->import);
    bool through = r == 0 && more == 0 && !run->cancelled;
    *outcome = run->cancelled                        ? "cancelled"
               : r < 0                               ? "failed"
               : through && run->figures.failed == 0 ? "done"
                                                     : "partial";
    if (r < 0) rp_figures_error(&run->figures, "%s", err->text);
    if (run->lost) return r; /* whoever took it over has written its record */
    int ended = rp_run_end(im->catalog, run, *outcome, r < 0 ? &end : err);
    return r < 0 ? r : ended;
}
