/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/import_run.h"

#include "base/assert.h"
#include "base/time.h"

#include <string.h>

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

/* 1: and there is more. */
static int carry_batch(struct rp_importer *im, const struct rp_carry *carry, struct rp_error *err)
{
    struct rp_run *run = carry->run;
    int more = rp_import_next(&im->import, im->catalog, err);
    if (more <= 0) return more;
    for (size_t i = 0; i < im->import.n_batch; i++)
        count_item(im, &run->figures, im->import.batch[i]);
    run->figures.scanned = im->import.counts.looked_at;
    int r = rp_carry_keep(carry, NULL, err);
    if (r < 0) return rp_error_wrap(err, r, "import");
    if (im->finished != NULL) im->finished(im->ctx, &im->import, run);
    return 1;
}

/* NULL: it was cancelled. A stop ends an import as well: I7. */
static const char *outcome_of(const struct rp_run *run, int more)
{
    if (run->cancelled) return NULL;
    return more == 0 && run->figures.failed == 0 ? "done" : "partial";
}

int rp_import_carry(struct rp_importer *im, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    struct rp_carry carry = { .catalog = im->catalog, .run = run, .stop = im->stop };
    RP_ASSERT(run->id != 0 && strcmp(run->kind, RP_RUN_IMPORT) == 0);
    int r = rp_import_begin(&im->import, err), more = 1;
    while (r == 0 && more > 0 && !rp_carry_is_over(&carry)) {
        more = carry_batch(im, &carry, err);
        r = more < 0 ? more : 0;
    }
    rp_import_end(&im->import);
    int ended = rp_carry_end(&carry, r, outcome_of(run, more), outcome, err);
    if (*outcome == NULL) *outcome = "failed"; /* it has no record, or whoever took it over has written it */
    return r < 0 ? r : ended;
}
