/* SPDX-License-Identifier: Apache-2.0 */
/* returns.c - what came back from quarantine is looked at before its copy is erased (S8). */
#include "base/assert.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "core/file/file.h"
#include "core/mark/annotation.h"
#include "core/purge/batch.h"
#include "core/state.h"
#include "core/subject/subject.h"

#include <string.h>

/* ---- what the catalog says ---- */

enum life { LIFE_OVER, LIFE_MARKED, LIFE_GOES_ON };

static enum life life_of(const struct rp_mark_since *since)
{
    if (since->ended > 0) return LIFE_OVER; /* erased data must not rise again */
    if (since->active > 0) return LIFE_MARKED;
    bool lives = since->file_id == 0 || rp_status_lives((enum rp_status)since->file_status);
    return lives ? LIFE_GOES_ON : LIFE_OVER;
}

static struct rp_purge_item *find_item(struct rp_purge_batch *b, int64_t original)
{
    int64_t id = 0;
    for (size_t i = b->from; i < b->marks.n; i++)
        if (rp_quarantine_original(b->marks.at[i].key, &id) && id == original) return &b->items[i];
    RP_ASSERT(false);
    return NULL;
}

static void take_since(struct rp_purge_item *item, const struct rp_mark_since *since)
{
    enum life life = life_of(since);
    if (life == LIFE_MARKED)
        rp_purge_set_status(item, RP_ITEM_WAITS, "what it was returned as is marked again");
    else if (life == LIFE_GOES_ON)
        item->back = (struct rp_purge_return){
            .key = since->key, .mark_id = since->id, .file_id = since->file_id, .annotated = since->annotated
        };
}

int rp_purge_load_returns(struct rp_catalog *catalog, struct rp_purge_batch *b, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(&b->arena, b->marks.n + 1, sizeof *ids);
    struct rp_mark_since *since = NULL;
    size_t n = 0, found = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->marks.n; i++)
        if (b->items[i].status == RP_ITEM_CLAIMED && rp_quarantine_is_returned(&b->marks.at[i]) &&
            rp_quarantine_original(b->marks.at[i].key, &ids[n]))
            n++;
    int r = n == 0 ? 0 : rp_marks_since(catalog->db, ids, n, &b->arena, &since, &found, err);
    for (size_t i = 0; i < found; i++)
        take_since(find_item(b, since[i].id), &since[i]);
    return r;
}

/* ---- what the store says ---- */

/* RP_ENOTFOUND, RP_ECHANGED: there is no copy any more. RP_EEXISTS: something stands there by now.
 * Either way there is nothing to bring back. */
static void bring_back(struct rp_purge_batch *b, struct rp_purge_item *item)
{
    struct rp_purge_return *back = &item->back;
    struct rp_error why = { 0 };
    bool made = false;
    int r = rp_subject_in(b->store)->bring_back(b->store, item->mark, back->key, &back->identity, &made, &why);
    if (r == RP_ENOTFOUND || r == RP_ECHANGED || r == RP_EEXISTS || (r == 0 && !made)) return;
    if (r == 0 && back->annotated) r = rp_annotation_take_off(b->store, back->key, &back->identity, &why);
    rp_purge_set_status(item, r == 0 ? RP_ITEM_RETURNED : RP_ITEM_FAILED, "%.200s",
                        r == 0 ? "its object was gone, and was brought back" : why.text);
    if (r < 0 && (rp_error_fault(r) & RP_OF_STORE) != 0) b->store_error = why;
}

static size_t collect(struct rp_purge_batch *b)
{
    size_t n = 0;
    for (size_t i = b->from; i < b->to; i++) {
        struct rp_purge_item *item = &b->items[i];
        if (item->status != RP_ITEM_CLAIMED || item->back.key == NULL) continue;
        b->asked[n] = (struct rp_item){ .key = item->back.key };
        b->about[n++] = item;
    }
    return n;
}

void rp_purge_return(struct rp_purge_batch *b)
{
    size_t n = b->store_error.code == 0 && rp_purge_has_lease(b) ? collect(b) : 0;
    if (n == 0 || rp_subject_in(b->store)->look(b->store, b->asked, n, &b->store_error) < 0) return;
    rp_error_clear(&b->store_error);
    for (size_t i = 0; i < n && b->store_error.code == 0; i++) {
        const struct rp_item *seen = &b->asked[i];
        if (seen->outcome == RP_OUT_GONE && rp_purge_has_lease(b))
            bring_back(b, b->about[i]);
        else if (seen->outcome != RP_OUT_FOUND)
            rp_purge_set_status(b->about[i], RP_ITEM_FAILED, "%s", seen->note);
    }
}

/* ---- what is made of it ---- */

static int audit(struct rp_tx *tx, const struct rp_purge_batch *b, const struct rp_purge_item *item, const char *actor,
                 struct rp_error *err)
{
    json_t *details = json_object();
    rp_json_set(details, "subject", rp_subject_json(b->store->config->name, item->back.key));
    struct rp_audit_entry entry = { .event = "object.returned_again",
                                    .actor = actor,
                                    .mark_id = item->back.mark_id,
                                    .tenant_id = item->mark->tenant_id,
                                    .details = details };
    return rp_tx_audit(tx, &entry, err);
}

/* They stand there again. One that was marked meanwhile goes again, for that mark does not know of
 * it; and the copy waits. */
int rp_purge_note_returns(struct rp_tx *tx, struct rp_purge_batch *b, const char *actor, size_t from, size_t n,
                          struct rp_error *err)
{
    struct rp_mark_since *since = NULL;
    int64_t *ids = rp_arena_array(tx->arena, n + 1, sizeof *ids);
    size_t returned = 0, found = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    for (size_t i = from; i < from + n; i++)
        if (b->items[i].status == RP_ITEM_RETURNED && b->items[i].move.done) ids[returned++] = b->items[i].back.mark_id;
    int r = returned == 0 ? 0 : rp_marks_since(tx->db, ids, returned, tx->arena, &since, &found, err);
    for (size_t i = 0; i < found && r == 0; i++) {
        struct rp_purge_item *item = find_item(b, since[i].id);
        item->back.unwanted = life_of(&since[i]) != LIFE_GOES_ON;
        if (item->back.unwanted) continue;
        if (item->back.file_id != 0) r = rp_file_came_back(tx, item->back.file_id, &item->back.identity, err);
        if (r == 0) r = audit(tx, b, item, actor, err);
    }
    return r;
}

/* Exactly what was brought back. */
void rp_purge_take_away(struct rp_purge_batch *b)
{
    for (size_t i = b->from; i < b->to; i++) {
        struct rp_purge_item *item = &b->items[i];
        if (item->status == RP_ITEM_RETURNED && item->back.unwanted)
            rp_subject_in(b->store)->take_away(b->store, item->mark, item->back.key, &item->back.identity);
    }
}
