/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - files that belong to another (parent, source), however deep: they live and are deleted with it. */
#include "base/id.h"
#include "base/mutant.h"
#include "core/file/work.h"

#include <string.h>

/* Pass by pass, until a pass finds nothing new. */
void rp_file_work_tag(struct rp_file_work *work, struct rp_file_slot *root, rp_file_family_fn *is_of)
{
    int64_t root_id = root->file.id;
    for (size_t i = 0; i < work->n && work->families; i++)
        if (work->slots[i].under == root_id) work->slots[i].under = 0;
    root->under = root_id;
    for (bool found = work->families; found;) {
        found = false;
        for (size_t i = 0; i < work->n; i++) {
            struct rp_file_slot *slot = &work->slots[i];
            if (slot->under == root_id || !is_of(work, slot, root_id)) continue;
            slot->under = root_id;
            found = true;
        }
    }
}

bool rp_file_is_below(struct rp_file_work *work, const struct rp_file_slot *slot, int64_t root_id)
{
    const int64_t owners[] = { slot->file.parent_id, slot->file.source_id };
    for (size_t i = 0; i < 2; i++) {
        const struct rp_file_slot *owner = owners[i] != 0 ? rp_file_work_find(work, owners[i]) : NULL;
        if (owner != NULL && owner->under == root_id) return true;
    }
    return false;
}

/* ---- what a file belongs to ---- */

static bool become_live_at_once(const struct rp_file *a, const struct rp_file *b)
{
    return a->status == RP_FILE_PENDING && a->txn_id != 0 && a->txn_id == b->txn_id;
}

const struct rp_file_slot *rp_file_gone_owner(struct rp_file_work *work, const struct rp_file *file, int64_t root_id)
{
    const int64_t owners[] = { file->with_id != file->id ? file->with_id : 0, file->parent_id, file->source_id };
    for (size_t i = 0; i < 3; i++) {
        const struct rp_file_slot *owner = owners[i] != 0 ? rp_file_work_find(work, owners[i]) : NULL;
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

int rp_file_check_owners(struct rp_file_work *work, const struct rp_file *file, struct rp_error *err)
{
    const struct rp_file_slot *owner = rp_file_gone_owner(work, file, RP_FILE_NO_ROOT);
    char id[RP_ID_TEXT];
    if (owner == NULL) return 0;
    rp_error_set(err, owner->file.status == RP_FILE_PENDING ? RP_ENOTLIVE : RP_EOWNERGONE,
                 "'%s' belongs to %s, which is %s", file->name, rp_id_format(RP_ID_FILE, owner->file.id, id),
                 rp_status_name(owner->file.status));
    return rp_error_hint(err, "%s", hint_for(file, &owner->file));
}

/* ---- deleted together ---- */

static int delete_one(struct rp_file_work *work, struct rp_file_slot *slot, int64_t root_id,
                      const struct rp_file_deletion *deletion, struct rp_error *err)
{
    bool has_mark = slot->file.status == RP_FILE_PENDING; /* born marked: that mark goes on */
    if (RP_MUTANT(REPLACED_NOT_MARKED) && strcmp(deletion->reason, RP_REASON_REPLACED) == 0) has_mark = true;
    int r = 0;
    rp_file_work_change(work, slot, RP_FILE_DELETED);
    slot->file.with_id = root_id;
    if (!has_mark) r = rp_file_work_mark(work, slot, deletion->due_at_ms, deletion->reason, deletion->by.actor, err);
    return r < 0 ? r : rp_file_work_audit(work, &deletion->by, "file.deleted", slot, "", err);
}

int rp_file_work_delete(struct rp_file_work *work, struct rp_file_slot *root, const struct rp_file_deletion *deletion,
                        struct rp_error *err)
{
    int r = delete_one(work, root, root->file.id, deletion, err);
    if (r < 0 || !work->families || RP_MUTANT(DELETE_FORGETS_CHILDREN)) return r;
    rp_file_work_tag(work, root, rp_file_is_below);
    for (size_t i = 0; i < work->n && r == 0; i++) {
        struct rp_file_slot *slot = &work->slots[i];
        if (slot->under != root->file.id || !rp_status_may_move(slot->file.status, RP_FILE_DELETED)) continue;
        r = delete_one(work, slot, root->file.id, deletion, err);
    }
    return r;
}

int rp_file_work_drop(struct rp_file_work *work, struct rp_file_slot *root, const struct rp_store *store,
                      const char *reason, const char *actor, struct rp_error *err)
{
    const struct rp_due due = {
        .by = RP_DUE_ASKED, .at_ms = -1, .grace_ms = -1, .config = store != NULL ? store->config : NULL
    };
    const struct rp_file_deletion deletion = { .by = { .store = rp_store_name(store), .actor = actor },
                                               .reason = reason,
                                               .due_at_ms = rp_due(&due, work->tx->late_ms) };
    return rp_file_work_delete(work, root, &deletion, err);
}
