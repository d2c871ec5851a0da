/* SPDX-License-Identifier: Apache-2.0 */
/* file_delete.c - the verbs delete, restore and result. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/mutant.h"
#include "base/time.h"
#include "base/utf8.h"
#include "core/file/work.h"
#include "core/mark.h"
#include "core/subject/quarantine.h"

#include <string.h>

static bool is_foreign(const struct rp_file_command *c, const struct rp_file_slot *slot)
{
    if (RP_MUTANT(TENANT_IGNORED)) return slot == NULL;
    return slot == NULL || (c->command.tenant_id != 0 && slot->file.tenant_id != c->command.tenant_id);
}

static int load(struct rp_file_work *work, struct rp_tx *tx, struct rp_command *const *commands, size_t n, int what,
                size_t more, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, n, sizeof *ids);
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", n);
    for (size_t i = 0; i < n; i++)
        ids[i] = ((struct rp_file_command *)commands[i])->file_id;
    return rp_file_work_load(work, tx, ids, n, what, more, err);
}

/* ---- delete ---- */

struct deleting {
    struct rp_file_work work;
    struct rp_extend *extends; /* at most one a slot */
    size_t n_extends;
    bool *held; /* by slot */
};

static int extend_one(struct deleting *d, struct rp_file_slot *slot, int64_t due, const char *store, const char *actor,
                      struct rp_error *err)
{
    struct rp_mark *mark = slot->mark;
    size_t i = 0;
    if (mark == NULL || mark->state != RP_MARKED || mark->due_at_ms >= due) return 0;
    while (i < d->n_extends && d->extends[i].mark->id != mark->id)
        i++;
    if (i == d->n_extends) {
        struct rp_mark *before = rp_arena_alloc(d->work.tx->arena, sizeof *before);
        if (before == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a mark");
        *before = *mark;
        d->extends[d->n_extends++].mark = before;
    }
    d->extends[i].due_at_ms = mark->due_at_ms = due;
    return rp_file_work_audit(&d->work, "mark.extended", actor, store, slot, "", err);
}

/* What was deleted along with it waits as long: it can only be restored together. */
static int extend_family(struct deleting *d, struct rp_file_slot *root, int64_t due, const char *store,
                         const char *actor, struct rp_error *err)
{
    int r = extend_one(d, root, due, store, actor, err);
    for (size_t i = 0; i < d->work.n && r == 0 && d->work.families; i++) {
        struct rp_file_slot *slot = &d->work.slots[i];
        if (slot != root && slot->file.with_id == root->file.id && slot->file.status == RP_FILE_DELETED)
            r = extend_one(d, slot, due, store, actor, err);
    }
    return r;
}

/* Deleting again: the same mark, or a later time for it; never an earlier one. */
static int delete_again(struct deleting *d, struct rp_file_command *c, struct rp_file_slot *slot, int64_t due,
                        const char *store, struct rp_error *err)
{
    bool explicit_time = c->at_ms >= 0 || c->grace_ms >= 0;
    const struct rp_mark *mark = slot->mark;
    if (!explicit_time || mark == NULL || mark->state != RP_MARKED || due == mark->due_at_ms) return 0;
    if (due < mark->due_at_ms) {
        char text[RP_TIME_TEXT];
        rp_error_set(&c->command.error, RP_EMARKED, "the file is already deleted, its purge is due %s",
                     rp_time_format(mark->due_at_ms, text));
        rp_error_hint(&c->command.error, "a promise is never shortened: restore it and delete it again");
        return 0;
    }
    c->changed = true;
    return extend_family(d, slot, due, store, c->command.actor, err);
}

static int decide_delete(struct rp_file_command *c, const struct rp_file_slot *slot, const struct rp_store *store,
                         bool held, int64_t span_ms, struct rp_error *err)
{
    if (is_foreign(c, slot)) return rp_error_set(err, RP_ENOTFOUND, "there is no such file");
    if (slot->file.status == RP_FILE_EXPIRED)
        return rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time: there is nothing to delete");
    if (store == NULL) return rp_error_set(err, RP_ECONFIG, "the file's store is not configured any more");
    if (strlen(c->reason) > RP_REASON_MAX || !rp_utf8_valid(c->reason, strlen(c->reason)))
        return rp_error_set(err, RP_EINVAL, "the reason is longer than %d bytes, or not valid UTF-8", RP_REASON_MAX);
    if (slot->file.status == RP_FILE_PURGED) return 0;
    if (held) {
        rp_error_set(err, RP_EHELD, "the file is held");
        return rp_error_hint(err, "`reprieve hold` lists the holds, `reprieve hold rm ID` lifts one");
    }
    return rp_grace_check(store->config, span_ms, err);
}

static int load_holds(struct deleting *d, struct rp_error *err)
{
    struct rp_file_work *w = &d->work;
    const struct rp_file **files = rp_arena_array(w->tx->arena, w->n + 1, sizeof(struct rp_file *));
    d->held = rp_arena_array(w->tx->arena, w->n + 1, sizeof *d->held);
    if (files == NULL || d->held == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", w->n);
    for (size_t i = 0; i < w->n; i++)
        files[i] = &w->slots[i].file;
    return rp_files_held(w->tx, files, w->n, d->held, err);
}

static int delete_one(struct deleting *d, struct rp_file_command *c, struct rp_error *err)
{
    struct rp_file_work *work = &d->work;
    struct rp_file_slot *slot = rp_file_work_find(work, c->file_id);
    const struct rp_store *store = slot != NULL ? rp_store_of_file(c->stores, c->n_stores, &slot->file) : NULL;
    int64_t now = work->tx->late_ms;
    int64_t grace = c->grace_ms >= 0 || store == NULL ? c->grace_ms : store->config->grace_ms;
    int64_t due = c->at_ms >= 0 ? c->at_ms : now + grace;
    bool held = slot != NULL && d->held[slot - work->slots];
    int r = 0;
    RP_ASSERT(c->at_ms < 0 || c->grace_ms < 0);
    c->changed = false;
    if (decide_delete(c, slot, store, held, due - now, &c->command.error) < 0) return 0;
    if (due < now) due = now;
    if (!rp_status_may_move(slot->file.status, RP_FILE_DELETED)) {
        r = delete_again(d, c, slot, due, store->config->name, err);
        if (c->command.error.code < 0) return r;
    } else {
        struct rp_mark_make make = { .due_at_ms = due, .reason = c->reason, .actor = c->command.actor };
        c->changed = true;
        r = rp_file_work_delete(work, slot, store->config->name, &make, err);
    }
    if (c->shown && !slot->file.shown) slot->file.shown = slot->changed = true;
    return r < 0 ? r : rp_file_work_answer(slot, c->arena, &c->answer, err);
}

static int save_extends(struct deleting *d, struct rp_error *err)
{
    int r = rp_marks_extend(d->work.tx, d->extends, d->n_extends, err);
    for (size_t i = 0; i < d->n_extends && r == 0; i++)
        RP_ASSERT(d->extends[i].done); /* locked since they were loaded */
    return r;
}

static void deleting_done(struct deleting *d)
{
    rp_file_work_done(&d->work);
}

static int run_delete(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(deleting_done) struct deleting d = { .n_extends = 0 };
    int r = load(&d.work, tx, commands, n, RP_LOAD_BELOW, 0, err);
    if (r == 0) r = load_holds(&d, err);
    if (r < 0) return r;
    d.extends = rp_arena_array(tx->arena, d.work.n + 1, sizeof *d.extends);
    if (d.extends == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", n);
    for (size_t i = 0; i < n && r == 0; i++)
        r = delete_one(&d, (struct rp_file_command *)commands[i], err);
    if (r == 0) r = save_extends(&d, err);
    return r < 0 ? r : rp_file_work_save(&d.work, err);
}

const struct rp_verb rp_verb_delete = { .name = "delete", .run = run_delete };

/* ---- restore ---- */

static int too_late(const char *why, struct rp_error *err)
{
    return rp_error_set(err, RP_ETOOLATE, "too late to restore: %s", why);
}

static int check_mark(const struct rp_file_slot *slot, struct rp_error *err)
{
    const struct rp_mark *mark = slot->mark;
    if (mark == NULL || mark->state == RP_PURGED) return too_late("the file was purged", err);
    if (RP_MUTANT(FILE_RESTORE_AFTER_CLAIM) && mark->state == RP_PURGING) return 0;
    if (mark->state != RP_MARKED) return too_late("its purge has begun", err);
    if (rp_quarantine_is(mark->key)) {
        rp_error_set(err, RP_ETOOLATE, "its bytes are in quarantine");
        return rp_error_hint(err, "`reprieve restore %s` moves them back", mark->key + strlen(RP_STORE_QUARANTINE));
    }
    return 0;
}

/* One of the family: may it live again under its name? */
static int check_return(struct rp_file_work *work, const struct rp_file_slot *slot, struct rp_error *err)
{
    int r = check_mark(slot, err);
    const struct rp_file_slot *holder = rp_file_work_holder(work, slot->file.tenant_id, slot->file.name);
    if (r == 0 && holder != NULL) /* not itself: what is deleted holds no name */
        r = rp_error_set(err, RP_ENAMETAKEN, "the name '%s' lives again: another file was uploaded under it",
                         slot->file.name);
    return r;
}

static bool goes_along(const struct rp_file_slot *slot, int64_t root_id)
{
    return slot->file.with_id == root_id && slot->file.id != root_id && slot->file.status == RP_FILE_DELETED &&
           slot->file.was != RP_FILE_PENDING;
}

/* What was confirmed belongs to nothing that is pending. */
static bool is_living(const struct rp_file *file)
{
    return file->status == RP_FILE_LIVE || file->status == RP_FILE_SCANNING;
}

#define NOBODY (-1)
/* What a file belongs to and what is gone, unless it comes back with `root_id` (NULL: nothing is in the way). */
static const struct rp_file_slot *gone_owner(struct rp_file_work *work, const struct rp_file *file, int64_t root_id)
{
    const int64_t ids[] = { file->with_id != file->id ? file->with_id : 0, file->parent_id, file->source_id };
    for (size_t i = 0; i < 3; i++) {
        const struct rp_file_slot *owner = ids[i] != 0 ? rp_file_work_find(work, ids[i]) : NULL;
        if (owner != NULL && !is_living(&owner->file) && owner->under != root_id) return owner;
    }
    return NULL;
}

/* Tags those that come back with the root: what belongs to something else that is gone as well stays with that. */
static void tag_returning(struct rp_file_work *work, struct rp_file_slot *root)
{
    bool found = work->families;
    root->under = root->file.id;
    while (found) {
        found = false;
        for (size_t i = 0; i < work->n; i++) {
            struct rp_file_slot *slot = &work->slots[i];
            if (slot->under == root->file.id || !goes_along(slot, root->file.id)) continue;
            if (gone_owner(work, &slot->file, root->file.id) != NULL) continue;
            slot->under = root->file.id;
            found = true;
        }
    }
}

static int refuse_owner_gone(const struct rp_file_slot *owner, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    rp_error_set(err, RP_EOWNERGONE, "it belongs to %s, which is %s", rp_id_format(RP_ID_FILE, owner->file.id, id),
                 rp_status_name(owner->file.status));
    return rp_error_hint(err, "restore that file first: what was deleted along with it comes back with it");
}

static int decide_restore(struct rp_file_work *work, const struct rp_file_command *c, struct rp_file_slot *slot,
                          struct rp_error *err)
{
    if (is_foreign(c, slot)) return rp_error_set(err, RP_ENOTFOUND, "there is no such file");
    const struct rp_file *f = &slot->file;
    if (f->status == RP_FILE_LIVE || f->status == RP_FILE_SCANNING) return 0;
    if (f->status == RP_FILE_EXPIRED) return rp_error_set(err, RP_EEXPIRED, "the upload was not confirmed in time");
    if (f->status == RP_FILE_PURGED) return too_late("the file was purged", err);
    if (f->status == RP_FILE_PENDING || f->was == RP_FILE_PENDING)
        return rp_error_set(err, RP_ENOTMARKED, "its upload was never confirmed: there is nothing to restore");
    const struct rp_file_slot *owner = gone_owner(work, f, NOBODY);
    if (owner != NULL) return refuse_owner_gone(owner, err);
    int r = check_return(work, slot, err);
    tag_returning(work, slot);
    for (size_t i = 0; i < work->n && r == 0 && work->families; i++)
        if (&work->slots[i] != slot && work->slots[i].under == f->id) r = check_return(work, &work->slots[i], err);
    return r;
}

static int bring_back(struct rp_file_work *work, struct rp_file_slot *slot, const char *store, const char *actor,
                      struct rp_error *err)
{
    int r = rp_file_work_reprieve(work, slot, RP_END_RESTORED, err);
    if (r < 0) return r;
    rp_file_work_change(work, slot, slot->file.was == RP_FILE_SCANNING ? RP_FILE_SCANNING : RP_FILE_LIVE);
    slot->file.with_id = 0;
    slot->file.shown = false;
    return rp_file_work_audit(work, "file.restored", actor, store, slot, "", err);
}

/* The root and what comes back with it; the rest of its family waits for what else it belongs to. */
static int bring_family_back(struct rp_file_work *work, struct rp_file_slot *root, const char *store, const char *actor,
                             struct rp_error *err)
{
    int64_t root_id = root->file.id;
    int r = 0;
    if (RP_MUTANT(RESTORE_FORGETS_CHILDREN)) return bring_back(work, root, store, actor, err);
    for (size_t i = 0; i < work->n && work->families; i++) {
        struct rp_file_slot *slot = &work->slots[i];
        if (!goes_along(slot, root_id) || slot->under == root_id) continue;
        const struct rp_file_slot *owner = gone_owner(work, &slot->file, root_id);
        if (owner->file.with_id != 0) slot->file.with_id = owner->file.with_id;
        slot->changed = true;
    }
    for (size_t i = 0; i < work->n && r == 0; i++)
        if (work->slots[i].under == root_id) r = bring_back(work, &work->slots[i], store, actor, err);
    return r;
}

static int restore_one(struct rp_file_work *work, struct rp_file_command *c, struct rp_error *err)
{
    struct rp_file_slot *slot = rp_file_work_find(work, c->file_id);
    int r = 0;
    c->changed = false;
    if (decide_restore(work, c, slot, &c->command.error) < 0) return 0;
    if (slot->file.status == RP_FILE_DELETED) {
        const struct rp_store *store = rp_store_of_file(c->stores, c->n_stores, &slot->file);
        c->changed = true;
        r = bring_family_back(work, slot, store != NULL ? store->config->name : "?", c->command.actor, err);
    }
    return r < 0 ? r : rp_file_work_answer(slot, c->arena, &c->answer, err);
}

/* Whoever holds the names that are to live again. */
static int load_holders(struct rp_file_work *work, struct rp_error *err)
{
    int64_t *tenants = rp_arena_array(work->tx->arena, work->n + 1, sizeof *tenants);
    const char **names = rp_arena_array(work->tx->arena, work->n + 1, sizeof *names);
    size_t n = 0;
    if (tenants == NULL || names == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n; i++) {
        if (work->slots[i].file.status != RP_FILE_DELETED) continue;
        tenants[n] = work->slots[i].file.tenant_id;
        names[n++] = work->slots[i].file.name;
    }
    return n > 0 ? rp_file_work_living(work, tenants, names, n, err) : 0;
}

/* The files that deletions were made with, and those that a file belongs to. */
static int load_owners(struct rp_file_work *work, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(work->tx->arena, 3 * work->n + 1, sizeof *ids);
    size_t n = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n; i++) {
        const struct rp_file *f = &work->slots[i].file;
        const int64_t owners[] = { f->with_id, f->parent_id, f->source_id };
        for (size_t k = 0; k < 3 && f->status == RP_FILE_DELETED; k++)
            if (owners[k] != 0 && rp_file_work_find(work, owners[k]) == NULL) ids[n++] = owners[k];
    }
    return n > 0 ? rp_file_work_add(work, ids, n, err) : 0;
}

/* Those that were refused because what they belong to came later in the same round. */
static int restore_rest(struct rp_file_work *work, struct rp_command *const *commands, size_t n, bool *again,
                        struct rp_error *err)
{
    int r = 0;
    *again = false;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (commands[i]->error.code != RP_EOWNERGONE) continue;
        rp_error_clear(&commands[i]->error);
        r = restore_one(work, (struct rp_file_command *)commands[i], err);
        *again |= commands[i]->error.code == 0;
    }
    return r;
}

static int run_restore(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int r = load(&work, tx, commands, n, RP_LOAD_MARKS | RP_LOAD_BELOW, 4 * n + 2 * RP_FILE_FAMILY_MAX, err);
    if (r == 0) r = load_holders(&work, err);
    if (r == 0) r = load_owners(&work, err);
    for (size_t i = 0; i < n && r == 0; i++)
        r = restore_one(&work, (struct rp_file_command *)commands[i], err);
    for (bool again = n > 1; again && r == 0;)
        r = restore_rest(&work, commands, n, &again, err);
    return r < 0 ? r : rp_file_work_save(&work, err);
}

const struct rp_verb rp_verb_restore = { .name = "restore", .run = run_restore };

/* ---- the processor's result ---- */

static int apply_result(struct rp_file_work *work, struct rp_file_command *c, struct rp_file_slot *slot,
                        struct rp_error *err)
{
    const struct rp_store *store = rp_store_of_file(c->stores, c->n_stores, &slot->file);
    const char *store_name = store != NULL ? store->config->name : "?";
    c->changed = true;
    if (c->accept) {
        rp_file_work_change(work, slot, RP_FILE_LIVE);
        return rp_file_work_audit(work, "file.live", c->command.actor, store_name, slot, "", err);
    }
    struct rp_mark_make make = { .due_at_ms =
                                     work->tx->late_ms + (store != NULL ? store->config->grace_ms : 5 * RP_DAY_MS),
                                 .reason = RP_REASON_REJECTED,
                                 .actor = c->command.actor };
    return rp_file_work_delete(work, slot, store_name, &make, err);
}

static int result_one(struct rp_file_work *work, struct rp_file_command *c, struct rp_error *err)
{
    struct rp_file_slot *slot = rp_file_work_find(work, c->file_id);
    int r = 0;
    c->changed = false;
    if (is_foreign(c, slot)) {
        rp_error_set(&c->command.error, RP_ENOTFOUND, "there is no such file");
        return 0;
    }
    /* deleted, replaced or decided meanwhile, or a key of another upload: it comes late, and that is no error */
    if (slot->file.status == RP_FILE_SCANNING && slot->file.process_key != NULL &&
        strcmp(slot->file.process_key, c->process_key) == 0)
        r = apply_result(work, c, slot, err);
    return r < 0 ? r : rp_file_work_answer(slot, c->arena, &c->answer, err);
}

static int run_result(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int r = load(&work, tx, commands, n, RP_LOAD_BELOW, 0, err);
    for (size_t i = 0; i < n && r == 0; i++)
        r = result_one(&work, (struct rp_file_command *)commands[i], err);
    return r < 0 ? r : rp_file_work_save(&work, err);
}

const struct rp_verb rp_verb_result = { .name = "result", .run = run_result };
