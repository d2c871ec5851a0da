/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - what the sweep of a mark means for the mark's file. The marks are claimed, hence
 * locked, when this is called. */
#include "base/cleanup.h"
#include "core/file/work.h"
#include "core/subject/quarantine.h"

#include <stdio.h>
#include <string.h>

static bool is_birth_mark(const struct rp_mark *mark)
{
    return strcmp(mark->reason, RP_REASON_ABANDONED) == 0 || strcmp(mark->reason, RP_REASON_ROLLBACK) == 0;
}

/* ---- claimed: what was never confirmed expires ---- */

static int load_tenants(struct rp_work *work, struct rp_tenant **out, size_t *n, struct rp_error *err)
{
    int64_t *ids = rp_work_room(work->tx, work->n + 1, sizeof *ids, err);
    *out = rp_work_room(work->tx, work->n + 1, sizeof **out, err);
    if (ids == NULL || *out == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < work->n; i++)
        ids[i] = work->slots[i].file.tenant_id;
    return rp_tenants_load(work->tx, ids, work->n, *out, n, err);
}

static const char *name_of(const struct rp_tenant *tenants, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (tenants[i].id == id) return tenants[i].name;
    return "?";
}

/* The refund does not wait for the delete: it is decided here, with the claim. */
static int expire(struct rp_work *work, struct rp_slot *slot, const char *tenant, struct rp_error *err)
{
    char extra[160];
    if (slot->mark.id == 0 || slot->mark.state == RP_MARKED)
        return rp_error_set(err, RP_ECORRUPT, "the mark that it was born with is not its last");
    rp_work_change(work, slot, RP_FILE_EXPIRED);
    slot->owed = RP_LEDGER_REFUND;
    snprintf(extra, sizeof extra, ",\"reason\":\"%s\",\"tenant\":\"%s\"", slot->mark.reason, tenant);
    return rp_work_audit(work, "file.cleaned", slot, extra, err);
}

static int expire_pending(struct rp_work *work, struct rp_error *err)
{
    struct rp_tenant *tenants = NULL;
    size_t n_tenants = 0;
    int r = load_tenants(work, &tenants, &n_tenants, err);
    for (size_t i = 0; i < work->n && r == 0; i++) {
        struct rp_slot *slot = &work->slots[i];
        if (slot->file.status != RP_FILE_PENDING) continue; /* refunded when purged */
        r = expire(work, slot, name_of(tenants, n_tenants, slot->file.tenant_id), err);
    }
    return r;
}

int rp_files_claimed(struct rp_tx *tx, const char *store, const struct rp_marks *marks, const char *actor,
                     struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int64_t *ids = rp_work_room(tx, marks->n + 1, sizeof *ids, err);
    size_t n = 0;
    if (ids == NULL) return RP_ENOMEM;
    /* an earlier claim has done it, as a rule; not one that found the rows damaged (sweep.h, S6) */
    for (size_t i = 0; i < marks->n; i++)
        if (marks->at[i].file_id != 0 && is_birth_mark(&marks->at[i])) ids[n++] = marks->at[i].file_id;
    if (n == 0) return 0;
    int r = rp_work_load(&work, tx, ids, n, RP_LOAD_MARKS, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (rp_work_find(&work, ids[i]) == NULL) r = rp_work_missing(ids[i], err);
    work.by = (struct rp_state_by){ .store = store, .actor = actor };
    if (r == 0) r = expire_pending(&work, err);
    return r < 0 ? r : rp_work_save(&work, err);
}

/* ---- purged ---- */

/* A mark of a file that ended as purged. */
struct ending {
    const struct rp_file *file;
    const struct rp_mark *mark;
    enum rp_end outcome;
};

static bool is_file_purge(const struct rp_move *move)
{
    return move->done && move->mark->file_id != 0 && move->to == RP_PURGED;
}

/* The file ends with its own mark. Not while its copy is in quarantine; and not with a mark of what
 * came later under its key: a late upload, such a one's copy, what a return left. */
static bool ends_the_file(const struct ending *e)
{
    return e->file->status == RP_FILE_DELETED && e->file->mark_id == e->mark->id && e->outcome != RP_END_QUARANTINED;
}

/* Something that nobody knows may come to stand under the file's key in four cases; each asks for a
 * second mark on the key.
 *
 * 1. The upload was never confirmed: a PUT that began in time may end late. A person may give a
 *    mark any reason, so the file has the last word. */
static bool was_never_confirmed(const struct ending *e)
{
    const struct rp_file *f = e->file;
    return is_birth_mark(e->mark) &&
           (f->status == RP_FILE_EXPIRED || (f->status == RP_FILE_DELETED && f->was == RP_FILE_PENDING));
}

static struct rp_due late_due(const struct rp_file *file)
{
    return (struct rp_due){ .by = RP_DUE_LATE, .from_ms = file->url_ends_at_ms };
}

/* 2. The file was erased while such a PUT could arrive. The mark's due time counts, not this
 *    moment: nothing is erased before it is due, and who erased it may have died long before this
 *    is written. */
static bool was_url_in_use(const struct ending *e)
{
    struct rp_due late = late_due(e->file);
    return ends_the_file(e) && rp_due(&late, e->mark->due_at_ms) > e->mark->due_at_ms;
}

/* 3. Its copy in quarantine was erased: a return that was interrupted may have copied it back. */
static bool was_in_quarantine(const struct ending *e)
{
    return ends_the_file(e) && rp_quarantine_is(e->mark->key);
}

/* 4. A dead letter was retried after its copy's time was over: it ends last, and found only what it
 *    is about. */
static bool was_retried_last(const struct ending *e)
{
    bool late = strcmp(e->mark->reason, RP_REASON_LATE) == 0 && e->mark->etag[0] == '\0' && e->mark->version[0] == '\0';
    return e->file->status == RP_FILE_PURGED && !late && !rp_quarantine_is(e->mark->key);
}

static void mark_again(struct rp_work *work, struct rp_slot *slot, const struct ending *e)
{
    struct rp_due late = late_due(e->file);
    if (!was_never_confirmed(e) && !was_url_in_use(e) && !was_in_quarantine(e) && !was_retried_last(e)) return;
    if (slot->covered) return;
    slot->covered = true;
    slot->late_due_at_ms = rp_due(&late, work->tx->late_ms);
    slot->late_actor = e->mark->actor;
}

static int end_file(struct rp_work *work, const struct rp_move *move, struct rp_error *err)
{
    struct rp_slot *slot = rp_work_find(work, move->mark->file_id);
    if (slot == NULL) return rp_work_missing(move->mark->file_id, err);
    const struct ending ending = { .file = &slot->file, .mark = move->mark, .outcome = move->outcome };
    mark_again(work, slot, &ending);
    if (!ends_the_file(&ending)) return 0;
    slot->was_used = slot->file.was != RP_FILE_PENDING;
    rp_work_change(work, slot, RP_FILE_PURGED);
    slot->owed = RP_LEDGER_REFUND;
    return rp_work_audit(work, "file.purged", slot, "", err);
}

/* The file of a copy in quarantine may still have the mark that was to erase it: a dead letter. */
static int load_covered(struct rp_work *work, const struct rp_move *moves, size_t n, struct rp_error *err)
{
    struct rp_marks active;
    const char **keys = rp_work_room(work->tx, n + 1, sizeof *keys, err);
    int64_t store_id = 0;
    size_t n_keys = 0;
    int r = rp_marks_init(&active, n + 1, work->tx->arena, err);
    if (r < 0 || keys == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!is_file_purge(&moves[i]) || !rp_quarantine_is(moves[i].mark->key)) continue;
        const struct rp_slot *slot = rp_work_find(work, moves[i].mark->file_id);
        if (slot == NULL) continue;
        keys[n_keys++] = slot->file.key;
        store_id = slot->file.store_id; /* a batch is of one store */
    }
    if (n_keys > 0) r = rp_marks_active(work->tx, store_id, keys, n_keys, &active, err);
    for (size_t i = 0; i < active.n && r == 0; i++)
        for (size_t k = 0; k < work->n; k++)
            if (strcmp(work->slots[k].file.key, active.at[i].key) == 0) work->slots[k].covered = true;
    return r;
}

int rp_files_purged(struct rp_tx *tx, const char *store, const struct rp_move *moves, size_t n, const char *actor,
                    struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int64_t *ids = rp_work_room(tx, n + 1, sizeof *ids, err);
    size_t wanted = 0;
    if (ids == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (is_file_purge(&moves[i])) ids[wanted++] = moves[i].mark->file_id;
    if (wanted == 0) return 0;
    int r = rp_work_load(&work, tx, ids, wanted, RP_LOAD_MARKS, err);
    work.by = (struct rp_state_by){ .store = store, .actor = actor };
    if (r == 0) r = load_covered(&work, moves, n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (is_file_purge(&moves[i])) r = end_file(&work, &moves[i], err);
    return r < 0 ? r : rp_work_save(&work, err);
}

/* ---- moved to quarantine ---- */

int rp_files_take_over(struct rp_tx *tx, const struct rp_mark *marks, const int64_t *from, size_t n,
                       struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int64_t *ids = rp_work_room(tx, n + 1, sizeof *ids, err);
    size_t wanted = 0;
    if (ids == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (marks[i].file_id != 0) ids[wanted++] = marks[i].file_id;
    if (wanted == 0) return 0;
    int r = rp_work_load(&work, tx, ids, wanted, RP_LOAD_MARKS, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_slot *slot = marks[i].file_id != 0 ? rp_work_find(&work, marks[i].file_id) : NULL;
        if (slot == NULL || slot->file.status != RP_FILE_DELETED || slot->file.mark_id != from[i]) continue;
        slot->file.mark_id = marks[i].id;
        slot->changed = true;
    }
    return r < 0 ? r : rp_work_save(&work, err);
}
