/* SPDX-License-Identifier: Apache-2.0 */
/* older.c - a purge that would take older versions along waits while one of them is in quarantine (S9). */
#include "base/error.h"
#include "core/purge/batch.h"
#include "core/subject/subject.h"

#include <stdio.h>

/* S9. What was returned is erased by nobody. */
static bool takes_older_along(const struct rp_store *store, const struct rp_purge_item *item)
{
    return item->status == RP_ITEM_CLAIMED && !rp_subject_stays_in_place(store, item->mark) &&
           !rp_quarantine_is_returned(item->mark);
}

static void let_wait(struct rp_purge_batch *b, int64_t mark_id)
{
    for (size_t i = 0; i < b->marks.n; i++) {
        struct rp_purge_item *item = &b->items[i];
        if (item->mark->id != mark_id) continue;
        item->status = RP_ITEM_WAITS;
        snprintf(item->note, sizeof item->note, "an older version of it is in quarantine");
    }
}

static int load_older(struct rp_catalog *catalog, struct rp_purge_batch *b, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *ids);
    int64_t *over = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *over);
    size_t n = 0, found = 0;
    if (ids == NULL || over == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->marks.n; i++)
        if (takes_older_along(b->store, &b->items[i])) ids[n++] = b->marks.at[i].id;
    int r = n == 0 ? 0 : rp_marks_on_older(catalog->db, ids, n, RP_REASON_RETURNED, &b->arena, over, &found, err);
    for (size_t i = 0; i < found; i++)
        let_wait(b, over[i]);
    return r;
}

int rp_purge_load(struct rp_catalog *catalog, struct rp_purge_batch *b, struct rp_error *err)
{
    int r = rp_purge_load_returns(catalog, b, err);
    return r < 0 || !rp_subject_may_have_older(b->store) ? r : load_older(catalog, b, err);
}
