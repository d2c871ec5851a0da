/* SPDX-License-Identifier: Apache-2.0 */
#include "core/purge/batch.h"

#include "base/assert.h"
#include "base/id.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <stdarg.h>
#include <stdio.h>

#define BATCH_ARENA_MAX ((size_t)32 << 20)

void rp_purge_batch_init(struct rp_purge_batch *batch)
{
    *batch = (struct rp_purge_batch){ .arena = RP_ARENA(BATCH_ARENA_MAX) };
}

void rp_purge_batch_done(struct rp_purge_batch *batch)
{
    rp_arena_done(&batch->arena);
}

int rp_purge_batch_prepare(struct rp_purge_batch *batch, struct rp_store *store, int64_t limit, struct rp_error *err)
{
    size_t n = (size_t)limit;
    rp_arena_reset(&batch->arena);
    batch->store = store;
    rp_error_clear(&batch->store_error);
    rp_error_clear(&batch->check_error);
    batch->from = batch->to = 0;
    batch->looked = false;
    int r = rp_marks_init(&batch->marks, n, &batch->arena, err);
    batch->items = rp_arena_array(&batch->arena, n, sizeof *batch->items);
    batch->asked = rp_arena_array(&batch->arena, n, sizeof *batch->asked);
    batch->about = rp_arena_array(&batch->arena, n, sizeof(struct rp_purge_item *));
    if (r < 0 || batch->items == NULL || batch->asked == NULL || batch->about == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for a batch");
    return 0;
}

struct rp_purge_item *rp_purge_item_of(struct rp_purge_batch *batch, const struct rp_mark *mark)
{
    RP_ASSERT(mark >= batch->marks.at && mark < batch->marks.at + batch->marks.n);
    return &batch->items[mark - batch->marks.at];
}

int rp_purge_narrow(struct rp_catalog *catalog, rp_tx_fn *fn, void *ctx, struct rp_purge_part *part,
                    struct rp_error *err)
{
    int r;
    part->damaged = false;
    while ((r = rp_catalog_transact(catalog, fn, ctx, err)) < 0) {
        if ((rp_error_fault(r) & RP_OF_ONE) == 0 || part->n == 0 || part->damaged) return r;
        part->damaged = part->n == 1;
        part->why = *err;
        if (part->n > 1) part->n /= 2;
    }
    return 0;
}

int rp_purge_take_tenants(struct rp_tx *tx, const struct rp_purge_batch *batch, size_t from, size_t n,
                          struct rp_error *err)
{
    return rp_state_lock_tenants(tx, &batch->marks.at[from], n, err);
}

void rp_purge_set_status(struct rp_purge_item *item, enum rp_purge_status status, const char *note, ...)
{
    va_list args;
    va_start(args, note);
    item->status = status;
    vsnprintf(item->note, sizeof item->note, note, args);
    va_end(args);
}

void rp_purge_set_damaged(struct rp_purge_item *item, const struct rp_error *why)
{
    char id[RP_ID_TEXT];
    rp_purge_set_status(
        item, RP_ITEM_DAMAGED,
        "damaged rows of %s: %.120s; put them right, from a backup if need be, then retry, or give it up",
        rp_subject_id(item->mark, id), why->text);
}
