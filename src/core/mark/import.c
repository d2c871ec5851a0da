/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mark/import.h"

#include "base/assert.h"
#include "base/error.h"
#include "core/mark/import_walk.h"

#include <stdlib.h>

#define PAGE_BYTES ((size_t)4 << 20)

/* ---- one batch ---- */

static bool is_told(const struct rp_import_item *item)
{
    return !item->gone && (item->unread || item->note.flag != RP_IMPORT_NO);
}

static void note_unmarked(struct rp_import *import, struct rp_import_item *item)
{
    import->counts.unclear += !item->unread;
    import->counts.refused += item->unread;
    if (item->unread) return;
    rp_error_set(&item->answer.error, RP_EINVAL, "%s:%s: marked_for_deletion says neither true nor false",
                 import->store->config->name, item->key);
    rp_error_hint(&item->answer.error, "mark it by hand if it shall go");
}

/* Of the page, what is told next: as many requests as the limit leaves. */
static size_t take_batch(struct rp_import *import)
{
    struct rp_import_walk *w = import->walk;
    int64_t left = import->limit > 0 ? import->limit - import->counts.marked : RP_IMPORT_PAGE;
    size_t n = 0;
    import->n_batch = 0;
    while (w->n_taken < w->n_page && (int64_t)n < left) {
        struct rp_import_item *item = &w->page[w->n_taken++];
        import->counts.looked_at++;
        if (!is_told(item)) continue;
        import->batch[import->n_batch++] = item;
        if (item->note.flag != RP_IMPORT_YES) {
            note_unmarked(import, item);
            continue;
        }
        import->counts.annotated++;
        import->counts.unreadable += item->note.time == RP_IMPORT_UNREADABLE;
        w->requests[n] = (struct rp_mark_request){ .key = item->key,
                                                   .grace_ms = -1,
                                                   .at_ms = item->note.at_ms,
                                                   .reason = item->note.reason,
                                                   .marked_at_ms = item->note.marked_at_ms,
                                                   .imported = &item->identity };
        w->asked[n++] = item;
    }
    return n;
}

static void count(struct rp_import *import, const struct rp_mark_answer *answer)
{
    import->counts.marked += answer->what == RP_MARK_CREATED || answer->what == RP_MARK_REPLACED;
    import->counts.already_marked += answer->what == RP_MARK_SAME;
    import->counts.refused += answer->what == RP_MARK_REFUSED;
}

static int mark_batch(struct rp_import *import, struct rp_catalog *catalog, struct rp_error *err)
{
    struct rp_import_walk *w = import->walk;
    size_t n = take_batch(import);
    if (n == 0) return 0;
    int r = rp_mark_many(catalog, import->store, w->requests, n, import->actor, import->dry_run, w->answers, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        w->asked[i]->answer = w->answers[i];
        count(import, &w->answers[i]);
    }
    return r;
}

/* ---- the walk ---- */

int rp_import_begin(struct rp_import *import, struct rp_error *err)
{
    RP_ASSERT(import->walk == NULL && import->prefix != NULL);
    struct rp_import_walk *w = import->walk = calloc(1, sizeof *w);
    if (w == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an import");
    w->arena = RP_ARENA(PAGE_BYTES);
    w->page = malloc(RP_IMPORT_PAGE * sizeof *w->page);
    w->requests = malloc(RP_IMPORT_PAGE * sizeof *w->requests);
    w->answers = malloc(RP_IMPORT_PAGE * sizeof *w->answers);
    w->asked = malloc(RP_IMPORT_PAGE * sizeof *w->asked);
    w->batch = import->batch = malloc(RP_IMPORT_PAGE * sizeof *import->batch);
    if (w->page != NULL && w->requests != NULL && w->answers != NULL && w->asked != NULL && w->batch != NULL) return 0;
    rp_import_end(import);
    return rp_error_set(err, RP_ENOMEM, "no memory for an import");
}

int rp_import_next(struct rp_import *import, struct rp_catalog *catalog, struct rp_error *err)
{
    struct rp_import_walk *w = import->walk;
    bool full = import->limit > 0 && import->counts.marked >= import->limit;
    bool more = w->n_taken < w->n_page || !w->listed;
    import->limited = full && more;
    if (full || !more) return 0;
    int r = 0;
    if (w->n_taken == w->n_page) {
        r = rp_import_list_page(import, err);
        if (r == 0) r = rp_import_read_page(import, err);
    }
    if (r == 0) r = mark_batch(import, catalog, err);
    return r < 0 ? rp_error_wrap(err, r, "import") : 1;
}

void rp_import_end(struct rp_import *import)
{
    struct rp_import_walk *w = import->walk;
    import->walk = NULL;
    if (w == NULL) return;
    rp_arena_done(&w->arena);
    free(w->page);
    free(w->requests);
    free(w->answers);
    free(w->asked);
    free(w->batch);
    free(w);
}
