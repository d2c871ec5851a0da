/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - a deleted file lives again, with what was deleted along with it (file.h, F4): while
 * its mark waits, because its copy was returned from quarantine, or because its purge was given up
 * and its object was seen to be there. */
#include "base/cleanup.h"
#include "base/id.h"
#include "core/confirm/confirm.h"
#include "core/file/log.h"
#include "core/file/work.h"
#include "core/subject/subject.h"

#include <string.h>

static int too_late(const char *why, struct rp_error *err)
{
    return rp_error_set(err, RP_ETOOLATE, "too late to restore: %s", why);
}

static int check_name(struct rp_work *work, const struct rp_file *file, struct rp_error *err)
{
    if (rp_work_holder(work, file) == NULL) return 0; /* what is deleted holds no name itself */
    rp_error_set(err, RP_ENAMETAKEN, "the name '%s' lives again: another file was uploaded under it", file->name);
    return rp_error_hint(err, "delete the file that has the name now, then restore this one");
}

static int live_again(struct rp_work *work, struct rp_slot *slot, struct rp_error *err)
{
    rp_work_change(work, slot, slot->file.was == RP_FILE_SCANNING ? RP_FILE_SCANNING : RP_FILE_LIVE);
    slot->file.with_id = 0;
    slot->file.shown = false;
    return rp_work_audit(work, "file.restored", slot, "", err);
}

/* ---- the family ---- */

/* With the root; or, if the root itself had gone along with a file and stayed behind when that came
 * back, with that file. */
static bool was_deleted_along(struct rp_work *work, const struct rp_slot *slot, int64_t root_id)
{
    const struct rp_file *f = &slot->file, *root = &rp_work_find(work, root_id)->file;
    bool together = f->with_id == root_id || (f->with_id != 0 && f->with_id == root->with_id);
    return together && f->id != root_id && f->status == RP_FILE_DELETED && f->was != RP_FILE_PENDING;
}

/* It cannot come back: that keeps nobody else away. What a service is asked about may wait for its
 * answer for days; if it refuses, it can be restored by itself. */
static bool stays_behind(const struct rp_slot *slot)
{
    const struct rp_mark *mark = &slot->mark;
    if (mark->state == RP_CHECKING) return rp_mark_has_confirmations(mark);
    if (mark->state == RP_DEAD && !rp_mark_is_refused(mark)) return true;
    if (slot->returned == NULL) return mark->state == RP_LOST;
    return slot->returned->as == NULL;
}

/* What belongs to something else that is gone as well stays with that. */
static bool comes_back(struct rp_work *work, const struct rp_slot *slot, int64_t root_id)
{
    return was_deleted_along(work, slot, root_id) && !stays_behind(slot) &&
           rp_work_gone_owner(work, &slot->file, root_id) == NULL;
}

static int bring_back(struct rp_work *work, struct rp_slot *slot, struct rp_error *err)
{
    int r = 0;
    enum rp_end how = slot->kept ? RP_END_KEPT : RP_END_RESTORED;
    slot->is_back = rp_quarantine_is(slot->mark.key);
    if (slot->is_back || slot->mark.state == RP_LOST)
        r = rp_work_identity(work, slot, slot->returned->as, err);
    else
        rp_work_reprieve(slot, how);
    return r < 0 ? r : live_again(work, slot, err);
}

/* The root and what comes back with it; the rest of its family waits for what else it belongs
 * to. */
static int bring_family_back(struct rp_work *work, struct rp_slot *root, struct rp_error *err)
{
    int64_t root_id = root->file.id;
    int r = 0;
    for (size_t i = 0; i < work->n && work->families; i++) {
        struct rp_slot *slot = &work->slots[i];
        if (!was_deleted_along(work, slot, root_id) || slot->under == root_id) continue;
        const struct rp_slot *owner = rp_work_gone_owner(work, &slot->file, root_id);
        if (owner != NULL && owner->file.with_id != 0) slot->file.with_id = owner->file.with_id;
        slot->changed = true;
    }
    for (size_t i = 0; i < work->n && r == 0; i++)
        if (work->slots[i].under == root_id) r = bring_back(work, &work->slots[i], err);
    return r;
}

/* ---- the verb ---- */

static int check_mark(const struct rp_slot *slot, struct rp_error *err)
{
    const struct rp_mark *mark = &slot->mark;
    bool is_back = slot->returned != NULL && slot->returned->as != NULL;
    if (mark->id == 0 || mark->state == RP_PURGED) return too_late("the file was purged", err);
    if (mark->state == RP_LOST && is_back) return 0;
    if (mark->state == RP_LOST) return too_late("its purge was given up, and nobody has looked for its object", err);
    if (rp_mark_is_refused(mark) || (slot->kept && mark->state == RP_DEAD && mark->was == RP_CHECKING)) return 0;
    if (mark->state == RP_CHECKING && rp_mark_has_confirmations(mark))
        return too_late("an outside service is asked to delete its half", err);
    if (mark->state == RP_DEAD && mark->was == RP_CHECKING)
        return too_late("an outside service has deleted its half", err);
    if (mark->state != RP_MARKED) return too_late("its purge has begun", err);
    if (!rp_quarantine_is(mark->key) || is_back) return 0;
    rp_error_set(err, RP_ETOOLATE, "its bytes are in quarantine");
    return rp_error_hint(err, "`reprieve restore %s` moves them back", mark->key + strlen(RP_STORE_QUARANTINE));
}

/* One that was deleted along with what is to be restored, and is at this moment neither to be had nor
 * to be left behind. */
static int check_mark_along(const struct rp_slot *slot, struct rp_error *err)
{
    struct rp_error why = { 0 };
    char id[RP_ID_TEXT];
    if (check_mark(slot, &why) == 0) return 0;
    rp_error_set(err, why.code, "'%s' (%s), which was deleted along with it: %s", slot->file.name,
                 rp_id_format(RP_ID_FILE, slot->file.id, id), why.text);
    return rp_error_hint(err, "restore this one again in a moment: it then comes back with that one, or without");
}

static int check_deleted(const struct rp_file *f, struct rp_error *err)
{
    if (f->status == RP_FILE_EXPIRED) return rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time");
    if (f->status == RP_FILE_PURGED) return too_late("the file was purged", err);
    if (f->status == RP_FILE_PENDING || f->was == RP_FILE_PENDING)
        return rp_error_set(err, RP_ENOTMARKED, "its upload was never confirmed: there is nothing to restore");
    return 0;
}

/* Negative: the catalog. `refusal`: it cannot be restored. */
static int decide_restore(struct rp_work *work, struct rp_slot *slot, struct rp_error *refusal, struct rp_error *err)
{
    int r = check_deleted(&slot->file, refusal);
    if (r == 0) r = rp_work_check_owners(work, &slot->file, refusal);
    if (r < 0) return 0;
    if (slot->returned != NULL && slot->returned->as == NULL) {
        *refusal = *slot->returned->why;
        return 0;
    }
    rp_work_tag(work, slot, comes_back);
    for (size_t i = 0; i < work->n && r == 0; i++) {
        if (work->slots[i].under != slot->file.id) continue;
        r = &work->slots[i] == slot ? check_mark(slot, refusal) : check_mark_along(&work->slots[i], refusal);
        if (r < 0 && &work->slots[i] == slot)
            return rp_confirm_refuse(work->tx->db, &slot->mark, work->tx->arena, "too late to restore:", refusal, err);
        if (r == 0) r = check_name(work, &work->slots[i].file, refusal);
    }
    return 0;
}

static int restore(struct rp_work *work, struct rp_file_command *c, struct rp_slot *slot, struct rp_error *err)
{
    int r = 0;
    if (!rp_status_lives(slot->file.status)) {
        slot->kept = c->kept;
        slot->note = c->note;
        r = decide_restore(work, slot, &c->command.error, err);
        if (r < 0 || c->command.error.code < 0) return r;
        c->event = "file.restored";
        r = bring_family_back(work, slot, err);
    }
    c->is_back = slot->is_back;
    return r;
}

static int run_restore(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int r = rp_work_load_commands(&work, tx, commands, n, RP_LOAD_MARKS | RP_LOAD_BELOW, err);
    if (r == 0) r = rp_work_holders(&work, RP_FILE_DELETED, 0, err);
    if (r == 0) r = rp_work_owners(&work, RP_FILE_DELETED, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct rp_file_command *c = (const struct rp_file_command *)commands[i];
        struct rp_slot *slot = c->returned != NULL ? rp_work_find(&work, c->file_id) : NULL;
        if (slot != NULL) slot->returned = c->returned;
    }
    if (r == 0) r = rp_work_each(&work, commands, n, restore, RP_EOWNERGONE, err);
    return r < 0 ? r : rp_work_save(&work, err);
}

const struct rp_verb rp_verb_file_restore = { .name = "restore", .run = run_restore, .log = rp_log_restore };

int rp_file_came_back(struct rp_tx *tx, int64_t file_id, const struct rp_identity *identity, struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int r = rp_work_load(&work, tx, &file_id, 1, RP_LOAD_MARKS, err);
    struct rp_slot *slot = r == 0 ? rp_work_find(&work, file_id) : NULL;
    if (r < 0 || slot == NULL || !rp_status_lives(slot->file.status)) return r;
    r = rp_work_identity(&work, slot, identity, err);
    slot->changed = true;
    return r < 0 ? r : rp_work_save(&work, err);
}
