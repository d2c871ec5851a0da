/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - files that belong to another (parent, source), however deep: they live and are deleted
 * with it (file.h, F4). */
#include "base/id.h"
#include "core/file/work.h"

#include <string.h>

static void link_to_owners(struct rp_work *work, size_t i)
{
    struct rp_slot *slot = &work->slots[i];
    const int64_t owners[] = { slot->file.parent_id, slot->file.source_id };
    for (size_t k = 0; k < 2; k++) {
        struct rp_slot *owner = owners[k] != 0 ? rp_work_find(work, owners[k]) : NULL;
        if (owner == NULL) continue;
        slot->next[k] = owner->below[k];
        owner->below[k] = i + 1;
    }
}

void rp_work_link(struct rp_work *work)
{
    for (size_t i = 0; i < work->n && work->families; i++)
        for (size_t k = 0; k < 2; k++)
            work->slots[i].below[k] = work->slots[i].next[k] = 0;
    for (size_t i = 0; i < work->n && work->families; i++)
        link_to_owners(work, i);
}

/* Those right below `owner` are tagged after `last`, whoever was tagged last then. */
static struct rp_slot *tag_below(struct rp_work *work, const struct rp_slot *owner, struct rp_slot *last,
                                 rp_family_fn *is_of)
{
    for (size_t k = 0; k < 2; k++)
        for (size_t i = owner->below[k]; i != 0; i = work->slots[i - 1].next[k]) {
            struct rp_slot *slot = &work->slots[i - 1];
            if (slot->under == owner->under || (is_of != NULL && !is_of(work, slot, owner->under))) continue;
            slot->under = owner->under;
            slot->tagged = NULL;
            last->tagged = slot;
            last = slot;
        }
    return last;
}

void rp_work_tag(struct rp_work *work, struct rp_slot *root, rp_family_fn *is_of)
{
    struct rp_slot *last = root;
    for (size_t i = 0; i < work->n && work->families; i++)
        if (work->slots[i].under == root->file.id) work->slots[i].under = 0;
    root->under = root->file.id;
    root->tagged = NULL;
    for (struct rp_slot *at = root; at != NULL && work->families; at = at->tagged)
        last = tag_below(work, at, last, is_of);
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

static bool goes_along(const struct rp_slot *slot, const struct rp_slot *root)
{
    return slot != root && slot->under == root->file.id && rp_status_may_move(slot->file.status, RP_FILE_DELETED);
}

int rp_work_check_along(struct rp_work *work, struct rp_slot *root, struct rp_error *err)
{
    size_t n = 0;
    if (!work->families) return 0;
    rp_work_tag(work, root, NULL);
    for (size_t i = 0; i < work->n; i++)
        n += goes_along(&work->slots[i], root);
    if (n <= RP_FILE_FAMILY_MAX) return 0;
    rp_error_set(err, RP_ETOOBIG, "%zu files belong to '%s', and one delete takes %d along", n, root->file.name,
                 RP_FILE_FAMILY_MAX);
    return rp_error_hint(err, "delete some of its children or derivatives first");
}

static int delete_one(struct rp_work *work, struct rp_slot *slot, int64_t root_id, int64_t due_at_ms,
                      const char *reason, struct rp_error *err)
{
    bool has_mark = slot->file.status == RP_FILE_PENDING; /* born marked: that mark goes on */
    rp_work_change(work, slot, RP_FILE_DELETED);
    slot->file.with_id = root_id;
    if (!has_mark) rp_work_mark(work, slot, due_at_ms, reason);
    return rp_work_audit_deleted(work, slot, err);
}

int rp_work_delete(struct rp_work *work, struct rp_slot *root, int64_t due_at_ms, const char *reason,
                   struct rp_error *err)
{
    int64_t root_id = root->file.id;
    int r = delete_one(work, root, root_id, due_at_ms, reason, err);
    if (r < 0 || !work->families) return r;
    rp_work_tag(work, root, NULL);
    for (size_t i = 0; i < work->n && r == 0; i++)
        if (goes_along(&work->slots[i], root)) r = delete_one(work, &work->slots[i], root_id, due_at_ms, reason, err);
    return r;
}

int rp_work_delete_one(struct rp_work *work, struct rp_slot *slot, int64_t root_id, int64_t due_at_ms,
                       const char *reason, struct rp_error *err)
{
    return delete_one(work, slot, root_id, due_at_ms, reason, err);
}

int rp_work_drop(struct rp_work *work, struct rp_slot *root, const char *reason, struct rp_error *err)
{
    const struct rp_store *store = rp_store_of_file(work->stores, work->n_stores, &root->file);
    const struct rp_due due = {
        .by = RP_DUE_ASKED, .at_ms = -1, .grace_ms = -1, .config = store != NULL ? store->config : NULL
    };
    return rp_work_delete(work, root, rp_due(&due, work->tx->late_ms), reason, err);
}
