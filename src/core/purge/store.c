/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the steps of a batch that touch the store, through the subjects' port. Nothing of
 * the catalog. */
#include "base/assert.h"
#include "base/crashpoint.h"
#include "base/time.h"
#include "core/guarantee.h"
#include "core/purge/batch.h"
#include "core/subject/subject.h"

#include <string.h>

static bool failed(const struct rp_purge_batch *batch)
{
    return batch->store_error.code < 0;
}

/* On its way a call may have filled the error with what it looked for and did not find. */
static int note_failure(struct rp_purge_batch *batch, int r)
{
    if (r == 0) rp_error_clear(&batch->store_error);
    return r;
}

static bool is_unseen(const struct rp_purge_item *item)
{
    const struct rp_mark *m = item->mark;
    if (item->status != RP_ITEM_CLAIMED) return false;
    return rp_mark_is_named(m) && m->etag[0] == 0 && m->version[0] == 0;
}

static bool is_to_be_erased(const struct rp_purge_item *item)
{
    return rp_purge_is_open(item->status);
}

/* Of the slice. */
static size_t collect(struct rp_purge_batch *b, bool (*wanted)(const struct rp_purge_item *))
{
    size_t n = 0;
    for (size_t i = b->from; i < b->to; i++) {
        struct rp_purge_item *item = &b->items[i];
        if (!wanted(item)) continue;
        RP_ASSERT(rp_subject_of(item->mark)->erase == rp_subject_in(b->store)->erase); /* subject.h, J2 */
        b->asked[n] = (struct rp_item){ .key = rp_subject_where(item->mark), .identity = item->identity };
        b->about[n++] = item;
    }
    return n;
}

static void take_outcome(struct rp_purge_item *item, const struct rp_item *said)
{
    rp_purge_set_status(item, rp_purge_status_after(item->status, said->outcome), "%s", said->note);
}

/* Of the whole batch, once. */
void rp_purge_look(struct rp_purge_batch *b)
{
    b->to = b->marks.n;
    if (b->looked || failed(b) || !rp_purge_has_lease(b)) return;
    size_t n = collect(b, is_unseen);
    b->looked = true;
    if (n == 0 || note_failure(b, rp_subject_in(b->store)->look(b->store, b->asked, n, &b->store_error)) < 0) return;
    for (size_t i = 0; i < n; i++) {
        struct rp_purge_item *item = b->about[i];
        item->identity = b->asked[i].identity;
        /* what is gone may stand in quarantine already: an earlier attempt was interrupted, and
         * the copy is looked for */
        bool may_be_moved = b->asked[i].outcome == RP_OUT_GONE && rp_subject_is_quarantined(b->store, item->mark);
        if (b->asked[i].outcome != RP_OUT_FOUND && !may_be_moved) take_outcome(item, &b->asked[i]);
    }
}

/* ---- quarantine ---- */

static bool is_to_be_copied(const struct rp_purge_batch *b, const struct rp_purge_item *item)
{
    return item->status == RP_ITEM_CLAIMED && item->mark->state == RP_PURGING &&
           rp_subject_is_quarantined(b->store, item->mark);
}

static void take_copy(struct rp_purge_item *item, const struct rp_copy *copy)
{
    if (copy->outcome != RP_OUT_FOUND) {
        rp_purge_set_status(item, rp_purge_status_after(item->status, copy->outcome), "%s", copy->note);
        return;
    }
    item->status = copy->in_place ? RP_ITEM_MOVED : RP_ITEM_COPIED;
    item->in_place = copy->in_place;
    item->copy = copy->identity;
}

static bool slice_is_open(void *ctx)
{
    return rp_purge_has_slice(ctx);
}

/* The next copies from *i on, as many as one call takes; *i is then the first that was not
 * begun. */
static void copy_some(struct rp_purge_batch *b, size_t *i)
{
    struct rp_copy copies[RP_COPIES_MAX];
    const struct rp_gate gate = { slice_is_open, b };
    size_t about[RP_COPIES_MAX], n = 0, next = *i;
    for (; next < b->marks.n && n < RP_COPIES_MAX; next++) {
        if (!is_to_be_copied(b, &b->items[next])) continue;
        copies[n] = (struct rp_copy){ .mark = b->items[next].mark, .identity = b->items[next].identity };
        about[n++] = next;
    }
    if (n > 0) (void)note_failure(b, rp_subject_in(b->store)->quarantine(b->store, copies, n, &gate, &b->store_error));
    for (size_t k = 0; k < n; k++) {
        if (copies[k].outcome == RP_OUT_NONE) {
            *i = about[k];
            return;
        }
        take_copy(&b->items[about[k]], &copies[k]);
    }
    *i = next;
}

/* A store that failed as a whole ends the batch: all that is left is judged by that. */
void rp_purge_quarantine(struct rp_purge_batch *b)
{
    size_t next = b->from;
    RP_CRASHPOINT("sweep.before-quarantine");
    rp_purge_slice_begins(b);
    while (next < b->marks.n && !failed(b)) {
        size_t before = next;
        copy_some(b, &next);
        if (next == before || !rp_purge_has_slice(b)) break;
    }
    b->to = failed(b) ? b->marks.n : next;
    RP_CRASHPOINT("sweep.quarantined");
}

/* ---- erase ---- */

/* S5: if it was not our store that answered, nothing that it said is known. */
static void confirm(struct rp_purge_batch *b)
{
    size_t i = b->from;
    while (i < b->to && !rp_purge_is_end(b->items[i].status))
        i++;
    if (i == b->to || note_failure(b, rp_subject_in(b->store)->confirm(b->store, &b->store_error)) == 0) return;
    for (; i < b->to; i++)
        if (rp_purge_is_end(b->items[i].status)) b->items[i].status = RP_ITEM_UNKNOWN;
}

static bool is_hidden_one(const struct rp_purge_item *item)
{
    return item->status == RP_ITEM_CLAIMED && item->mark->in_place;
}

/* S11. A person decides about a file, for it may have been a restore that died before its commit. */
static void take_shown(struct rp_purge_item *item)
{
    rp_purge_set_status(
        item, item->mark->file_id != 0 ? RP_ITEM_FAILED : RP_ITEM_GONE,
        "its object shows itself again, without its delete marker. To erase it, delete it in the bucket and "
        "`dead retry`; to have it back, `dead keep`, delete the file once more and restore it");
}

static void leave_shown(struct rp_purge_batch *b)
{
    size_t n = collect(b, is_hidden_one);
    if (n == 0 || note_failure(b, rp_subject_in(b->store)->look(b->store, b->asked, n, &b->store_error)) < 0) return;
    for (size_t i = 0; i < n; i++) {
        struct rp_purge_item *item = b->about[i];
        const struct rp_item *seen = &b->asked[i];
        if (seen->outcome != RP_OUT_FOUND && seen->outcome != RP_OUT_GONE)
            take_outcome(item, seen);
        else if (seen->outcome == RP_OUT_FOUND && strcmp(seen->identity.version, item->identity.version) == 0)
            take_shown(item);
    }
}

/* S9: what was returned has left nothing behind. The other one is a version, and nothing else may
 * be taken for it. */
static void settle_in_place(struct rp_purge_batch *b)
{
    for (size_t i = b->from; i < b->to; i++) {
        struct rp_purge_item *item = &b->items[i];
        if (item->status != RP_ITEM_CLAIMED || !item->mark->in_place) continue;
        if (rp_quarantine_is_returned(item->mark))
            item->status = RP_ITEM_GONE;
        else if (!rp_subject_can_hide(b->store))
            rp_purge_set_status(
                item, RP_ITEM_FAILED,
                "the store is not seen to keep versions any more: erase version %.100s of %.60s yourself",
                item->mark->version, item->mark->original);
    }
    leave_shown(b);
}

static bool lease_is_ours(void *ctx)
{
    return rp_purge_has_lease(ctx);
}

void rp_purge_erase(struct rp_purge_batch *b)
{
    const struct rp_gate gate = { lease_is_ours, b };
    if (failed(b)) return;
    if (!rp_purge_has_lease(b)) b->to = b->from; /* S7: given back, whatever was seen of it */
    settle_in_place(b);
    if (failed(b)) return;
    size_t n = collect(b, is_to_be_erased);
    for (size_t i = 0; i < n; i++) {
        RP_ASSERT(b->about[i]->mark->state == RP_PURGING); /* INTENT-FIRST */
        RP_ASSERT(b->about[i]->status == RP_ITEM_COPIED || !rp_subject_is_quarantined(b->store, b->about[i]->mark));
    }
    if (n > 0) {
        RP_CRASHPOINT("sweep.before-erase");
        (void)note_failure(b, rp_subject_in(b->store)->erase(b->store, b->asked, n, &gate, &b->store_error));
        RP_CRASHPOINT("sweep.erased");
    }
    for (size_t i = 0; i < n; i++)
        take_outcome(b->about[i], &b->asked[i]);
    if (!failed(b)) confirm(b);
}
