/* SPDX-License-Identifier: Apache-2.0 */
/* orphans.c - files that nothing would find any more, brought back (core/safety_net): each is asked
 * again here, now that its tenant is locked. */
#include "base/cleanup.h"
#include "base/id.h"
#include "catalog/orphan.h"
#include "core/confirm/confirm.h"
#include "core/file/work.h"

#include <stdio.h>

#define REASON_LOST "safety net: lost delete"

static void note_done(const struct rp_slot *slot, struct rp_orphan *orphan)
{
    orphan->done = true;
    orphan->due_at_ms = slot->mark.due_at_ms;
}

static int64_t grace_from_now(const struct rp_work *work)
{
    const struct rp_due due = {
        .by = RP_DUE_ASKED, .at_ms = -1, .grace_ms = -1, .config = work->store != NULL ? work->store->config : NULL
    };
    return rp_due(&due, work->tx->late_ms);
}

/* ---- without a mark ---- */

/* A member has at least as long as its transaction can last. */
static int64_t upload_due(const struct rp_work *work, const struct rp_file *file, const struct rp_upload_rules *rules)
{
    int64_t grace_ms = rules->expire_ms;
    if (file->txn_id != 0) grace_ms = rules->txn_timeout_ms + rules->rollback_grace_ms;
    const struct rp_due due = { .by = RP_DUE_AFTER, .from_ms = work->tx->late_ms, .grace_ms = grace_ms };
    return rp_due(&due, work->tx->late_ms);
}

static int audit_orphan(struct rp_work *work, const struct rp_slot *slot, const struct rp_orphan *orphan,
                        int64_t owner_id, struct rp_error *err)
{
    char extra[200], parent[40] = "", id[RP_ID_TEXT];
    if (owner_id != 0) snprintf(parent, sizeof parent, ",\"parent\":\"%s\"", rp_id_format(RP_ID_FILE, owner_id, id));
    snprintf(extra, sizeof extra, ",\"what\":\"%s\"%s", orphan->what, parent);
    return rp_work_audit(work, RP_EVENT_ORPHAN, slot, extra, err);
}

/* Who had to agree to what was lost, or to what its owner goes by, has to agree to this. */
static int ask_the_same(struct rp_work *work, int64_t mark_id, struct rp_error *err)
{
    work->confirmers = NULL;
    return mark_id != 0 ? rp_confirmers_of(work->tx->db, mark_id, work->tx->arena, &work->confirmers, err) : 0;
}

static int mark_again(struct rp_work *work, struct rp_slot *slot, const struct rp_upload_rules *rules,
                      struct rp_error *err)
{
    const struct rp_file *file = &slot->file;
    int r = ask_the_same(work, file->mark_id, err);
    if (r < 0) return r;
    if (file->status == RP_FILE_DELETED) {
        rp_work_mark(work, slot, grace_from_now(work), REASON_LOST);
        return rp_work_audit(work, "file.deleted", slot, "", err);
    }
    rp_work_mark(work, slot, upload_due(work, file, rules),
                 file->txn_id != 0 ? RP_REASON_ROLLBACK : RP_REASON_ABANDONED);
    return 0;
}

static int64_t *ids_of(struct rp_tx *tx, const struct rp_orphan *orphans, size_t n, struct rp_error *err)
{
    int64_t *ids = rp_work_room(tx, n + 1, sizeof *ids, err);
    for (size_t i = 0; i < n && ids != NULL; i++)
        ids[i] = orphans[i].id;
    return ids;
}

int rp_files_mark_again(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                        struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    struct rp_ids lost;
    const int64_t *ids = ids_of(tx, orphans, n, err);
    if (ids == NULL) return RP_ENOMEM;
    int r = rp_orphans_lost(tx->db, tx->arena, ids, n, &lost, err);
    if (r == 0) r = rp_work_load(&work, tx, lost.at, lost.n, RP_LOAD_MARKS, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_slot *slot = rp_work_find(&work, orphans[i].id);
        if (slot == NULL) continue; /* it has a mark by now */
        rp_work_turn(&work, mending->stores, mending->n_stores, &slot->file, mending->actor);
        r = mark_again(&work, slot, mending->uploads, err);
        if (r == 0) r = audit_orphan(&work, slot, &orphans[i], 0, err);
        note_done(slot, &orphans[i]);
    }
    return r < 0 ? r : rp_work_save(&work, err);
}

/* ---- without what they belong to ---- */

struct gone {
    int64_t id; /* 0: it has all that it belongs to */
    const char *as;
    const struct rp_slot *slot; /* NULL: there is no such file any more */
};

static struct gone gone_owner(struct rp_work *work, const struct rp_file *file)
{
    const struct gone owners[] = { { file->parent_id, "parent", NULL }, { file->source_id, "source", NULL } };
    for (size_t i = 0; i < 2; i++) {
        if (owners[i].id == 0) continue;
        const struct rp_slot *slot = rp_work_find(work, owners[i].id);
        bool is_there = slot != NULL && (rp_status_lives(slot->file.status) || slot->file.status == RP_FILE_PENDING);
        if (!is_there) return (struct gone){ owners[i].id, owners[i].as, slot };
    }
    return (struct gone){ 0 };
}

/* With an owner that can be restored it comes back, and so it waits as long. */
static int follow(struct rp_work *work, struct rp_slot *slot, const struct gone *owner, struct rp_error *err)
{
    char id[RP_ID_TEXT], *reason = rp_arena_alloc(work->tx->arena, RP_REASON_MAX + 1);
    int64_t due_at_ms = grace_from_now(work), root_id = slot->file.id;
    if (reason == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a reason");
    snprintf(reason, RP_REASON_MAX + 1, "safety net: its %s %s is gone", owner->as,
             rp_id_format(RP_ID_FILE, owner->id, id));
    if (owner->slot != NULL && owner->slot->file.status == RP_FILE_DELETED) {
        const struct rp_slot *o = owner->slot;
        root_id = o->file.with_id != 0 ? o->file.with_id : o->file.id;
        if (o->mark.state == RP_MARKED && o->mark.due_at_ms > due_at_ms) due_at_ms = o->mark.due_at_ms;
    }
    int r = ask_the_same(work, owner->slot != NULL ? owner->slot->file.mark_id : 0, err);
    return r < 0 ? r : rp_work_delete_one(work, slot, root_id, due_at_ms, reason, err);
}

static int follow_all(struct rp_work *work, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                      struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_slot *slot = rp_work_find(work, orphans[i].id);
        if (slot == NULL || !rp_status_lives(slot->file.status)) continue;
        const struct gone owner = gone_owner(work, &slot->file);
        if (owner.id == 0) continue; /* it was brought back meanwhile */
        rp_work_turn(work, mending->stores, mending->n_stores, &slot->file, mending->actor);
        r = follow(work, slot, &owner, err);
        if (r == 0) r = audit_orphan(work, slot, &orphans[i], owner.id, err);
        note_done(slot, &orphans[i]);
    }
    return r;
}

int rp_files_follow_owners(struct rp_tx *tx, const struct rp_mending *mending, struct rp_orphan *orphans, size_t n,
                           struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    const int64_t *ids = ids_of(tx, orphans, n, err);
    if (ids == NULL) return RP_ENOMEM;
    int r = rp_work_load(&work, tx, ids, n, 0, err);
    if (r == 0) r = rp_work_owners(&work, RP_FILE_LIVE, err);
    if (r == 0) r = rp_work_owners(&work, RP_FILE_SCANNING, err);
    if (r == 0) r = follow_all(&work, mending, orphans, n, err);
    return r < 0 ? r : rp_work_save(&work, err);
}
