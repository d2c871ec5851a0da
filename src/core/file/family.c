/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - files that belong to another (parent, source), however deep: they live and are deleted
 * with it (file.h, F4). */
#include "base/id.h"
#include "core/file/work.h"

#include <string.h>

/* Pass by pass, until a pass finds nothing new. */
void rp_work_tag(struct rp_work *work, struct rp_slot *root, rp_family_fn *is_of)
{
    int64_t root_id = root->file.id;
    for (size_t i = 0; i < work->n && work->families; i++)
        if (work->slots[i].under == root_id) work->slots[i].under = 0;
    root->under = root_id;
    for (bool found = work->families; found;) {
        found = false;
        for (size_t i = 0; i < work->n; i++) {
            struct rp_slot *slot = &work->slots[i];
            if (slot->under == root_id || !is_of(work, slot, root_id)) continue;
            slot->under = root_id;
            found = true;
        }
    }
}

bool rp_family_below(struct rp_work *work, const struct rp_slot *slot, int64_t root_id)
{
    const int64_t owners[] = { slot->file.parent_id, slot->file.source_id };
    for (size_t i = 0; i < 2; i++) {
        const struct rp_slot *owner = owners[i] != 0 ? rp_work_find(work, owners[i]) : NULL;
        if (owner != NULL && owner->under == root_id) return true;
    }
    return false;
}

/* ---- what a file belongs to ---- */

static bool become_live_at_once(const struct rp_file *a, const struct rp_file *b)
{
    return a->status == RP_FILE_PENDING && a->txn_id != 0 && a->txn_id == b->txn_id;
}

const struct rp_slot *rp_work_gone_owner(struct rp_work *work, const struct rp_file *file, int64_t root_id)
{
    const int64_t owners[] = { file->with_id != file->id ? file->with_id : 0, file->parent_id, file->source_id };
    for (size_t i = 0; i < 3; i++) {
        const struct rp_slot *owner = owners[i] != 0 ? rp_work_find(work, owners[i]) : NULL;
        if (owner == NULL || rp_status_lives(owner->file.status) || owner->under == root_id) continue;
        if (!become_live_at_once(&owner->file, file)) return owner;
    }
    return NULL;
}

static const char *hint_for(const struct rp_file *file, const struct rp_file *owner)
{
    if (owner->status == RP_FILE_PENDING) return "confirm that file first";
    if (file->status == RP_FILE_PENDING) return "restore that file first; or upload this one for itself";
    return "restore that file first: what was deleted along with it comes back with it";
}

int rp_work_check_owners(struct rp_work *work, const struct rp_file *file, struct rp_error *err)
{
    const struct rp_slot *owner = rp_work_gone_owner(work, file, RP_FAMILY_NONE);
    char id[RP_ID_TEXT];
    if (owner == NULL) return 0;
    rp_error_set(err, owner->file.status == RP_FILE_PENDING ? RP_ENOTLIVE : RP_EOWNERGONE,
                 "'%s' belongs to %s, which is %s", file->name, rp_id_format(RP_ID_FILE, owner->file.id, id),
                 rp_status_name(owner->file.status));
    return rp_error_hint(err, "%s", hint_for(file, &owner->file));
}

/* ---- deleted together ---- */

static int delete_one(struct rp_work *work, struct rp_slot *slot, int64_t root_id, int64_t due_at_ms,
                      const char *reason, struct rp_error *err)
{
    bool has_mark = slot->file.status == RP_FILE_PENDING; /* born marked: that mark goes on */
    rp_work_change(work, slot, RP_FILE_DELETED);
    slot->file.with_id = root_id;
    if (!has_mark) rp_work_mark(work, slot, due_at_ms, reason);
    return rp_work_audit(work, "file.deleted", slot, "", err);
}

int rp_work_delete(struct rp_work *work, struct rp_slot *root, int64_t due_at_ms, const char *reason,
                   struct rp_error *err)
{
    int64_t root_id = root->file.id;
    int r = delete_one(work, root, root_id, due_at_ms, reason, err);
    if (r < 0 || !work->families) return r;
    rp_work_tag(work, root, rp_family_below);
    for (size_t i = 0; i < work->n && r == 0; i++) {
        struct rp_slot *slot = &work->slots[i];
        if (slot->under != root_id || !rp_status_may_move(slot->file.status, RP_FILE_DELETED)) continue;
        r = delete_one(work, slot, root_id, due_at_ms, reason, err);
    }
    return r;
}

int rp_work_drop(struct rp_work *work, struct rp_slot *root, const char *reason, struct rp_error *err)
{
    const struct rp_store *store = rp_store_of_file(work->stores, work->n_stores, &root->file);
    const struct rp_due due = {
        .by = RP_DUE_ASKED, .at_ms = -1, .grace_ms = -1, .config = store != NULL ? store->config : NULL
    };
    return rp_work_delete(work, root, rp_due(&due, work->tx->late_ms), reason, err);
}
