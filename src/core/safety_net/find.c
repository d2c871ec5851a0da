/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - the pages of the steps, without locks (safety_net.h, G2). */
#include "base/error.h"
#include "base/id.h"
#include "core/safety_net/steps.h"

#include <stdlib.h>

/* Of the rows of a page those that are findings, as many as there is room for; the next one begins behind the
 * last row that was judged here. */
static void keep_lost(struct rp_orphans *rows, struct rp_net_page *page)
{
    size_t kept = 0, i = 0;
    for (; i < rows->n && (kept < page->room || !rows->at[i].lost); i++) {
        page->at.id = rows->at[i].id;
        if (rows->at[i].lost) rows->at[kept++] = rows->at[i];
    }
    page->scanned = (int64_t)i;
    page->more = i < rows->n || rows->n == rows->max;
    page->end = page->at;
    rows->n = kept;
}

/* Each status is a step of its own. */
int rp_net_find_files(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                      struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err)
{
    int r = rp_orphans_init(out, RP_NET_BATCH, arena, err);
    if (r == 0) r = rp_orphans_files(db, (enum rp_status)step->from.status, page->at.id, out, err);
    if (r == 0) keep_lost(out, page);
    return r;
}

/* ---- what belongs to something that is gone ---- */

static int by_id(const void *a, const void *b)
{
    return rp_id_order(((const struct rp_orphan *)a)->id, ((const struct rp_orphan *)b)->id);
}

/* Whose parent and source are gone is one finding. */
static void keep_each_once(struct rp_orphans *orphans)
{
    size_t kept = 0;
    if (orphans->n > 1) qsort(orphans->at, orphans->n, sizeof *orphans->at, by_id);
    for (size_t i = 0; i < orphans->n; i++)
        if (kept == 0 || orphans->at[i].id != orphans->at[kept - 1].id) orphans->at[kept++] = orphans->at[i];
    orphans->n = kept;
}

/* What is gone is deleted, purged or expired: one after the other. Behind those there is nothing. */
static struct rp_net_place behind(const struct rp_orphans *owners, struct rp_net_place at)
{
    if (owners->n < owners->max) return (struct rp_net_place){ at.status + 1, 0 };
    return (struct rp_net_place){ at.status, owners->at[owners->n - 1].id };
}

/* A page that has findings is looked at again when these are mended: something may have more children
 * than there was room for, and what is deleted now may have children of its own. */
int rp_net_find_children(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                         struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err)
{
    struct rp_orphans owners;
    int64_t *ids = rp_arena_array(arena, RP_NET_BATCH, sizeof *ids);
    size_t n = 0;
    (void)step;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a page of files");
    int r = rp_orphans_init(&owners, RP_NET_BATCH, arena, err);
    if (r == 0) r = rp_orphans_init(out, page->room, arena, err);
    if (r == 0) r = rp_orphans_files(db, (enum rp_status)page->at.status, page->at.id, &owners, err);
    if (r < 0) return r;
    for (size_t i = 0; i < owners.n; i++)
        if (owners.at[i].has_living) ids[n++] = owners.at[i].id;
    if (n > 0) r = rp_orphans_children(db, ids, n, out, err);
    page->scanned = (int64_t)owners.n;
    page->cut = out->n == out->max;
    page->end = behind(&owners, page->at);
    if (out->n == 0) page->at = page->end;
    page->more = page->at.status <= RP_FILE_EXPIRED;
    keep_each_once(out);
    return r;
}

/* ---- marks ---- */

int rp_net_find_marks(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                      struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err)
{
    (void)step;
    int r = rp_orphans_init(out, page->room < RP_NET_BATCH ? page->room : RP_NET_BATCH, arena, err);
    if (r == 0) r = rp_orphans_marks(db, page->at.id, out, err);
    if (r == 0) keep_lost(out, page);
    return r;
}

int rp_net_find_letters(const struct rp_net_step *step, struct rp_db *db, struct rp_arena *arena,
                        struct rp_net_page *page, struct rp_orphans *out, struct rp_error *err)
{
    (void)step;
    int r = rp_orphans_init(out, RP_NET_BATCH, arena, err);
    if (r == 0) r = rp_orphans_dead(db, page->at.id, out, err);
    if (r == 0) keep_lost(out, page);
    return r;
}
