/* SPDX-License-Identifier: Apache-2.0 */
/* file_sweep.c - what the sweep of a mark means for the mark's file. The marks are claimed, hence locked, when this is called. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/time.h"
#include "core/file/work.h"
#include "core/subject/quarantine.h"

#include <stdio.h>
#include <string.h>

static bool is_birth_mark(const struct rp_mark *mark)
{
    return strcmp(mark->reason, RP_REASON_ABANDONED) == 0 || strcmp(mark->reason, RP_REASON_ROLLBACK) == 0;
}

static int file_gone(int64_t file_id, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    return rp_error_set(err, RP_ECORRUPT, "%s is gone from the catalog", rp_id_format(RP_ID_FILE, file_id, id));
}

/* ---- claimed ---- */

static int tenant_names(struct rp_file_work *work, struct rp_tenant **out, size_t *n, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(work->tx->arena, work->n + 1, sizeof *ids);
    *out = rp_arena_array(work->tx->arena, work->n + 1, sizeof **out);
    if (ids == NULL || *out == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n; i++)
        ids[i] = work->slots[i].file.tenant_id;
    return rp_tenants_lock(work->tx, ids, work->n, *out, n, err);
}

static const char *name_of(const struct rp_tenant *tenants, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (tenants[i].id == id) return tenants[i].name;
    return "?";
}

/* The refund does not wait for the delete: it is decided here, with the claim (U3). */
static int expire(struct rp_file_work *work, struct rp_file_slot *slot, const char *store, const char *tenant,
                  const char *reason, const char *actor, struct rp_error *err)
{
    char extra[160];
    rp_file_work_change(work, slot, RP_FILE_EXPIRED);
    if (!RP_MUTANT(EXPIRE_WITHOUT_REFUND)) rp_file_work_ledger(work, &slot->file, RP_LEDGER_REFUND, false);
    snprintf(extra, sizeof extra, ",\"reason\":\"%s\",\"tenant\":\"%s\"", reason, tenant);
    return rp_file_work_audit(work, "file.cleaned", actor, store, slot, extra, err);
}

int rp_files_claimed(struct rp_tx *tx, const char *store, const struct rp_marks *marks, const char *actor,
                     struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int64_t *ids = rp_arena_array(tx->arena, marks->n + 1, sizeof *ids);
    struct rp_tenant *tenants = NULL;
    size_t n = 0, n_tenants = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", marks->n);
    for (size_t i = 0; i < marks->n; i++) {
        const struct rp_mark *m = &marks->at[i];
        /* an earlier claim has done it, as a rule; not one that found the rows damaged (sweep.h, S6) */
        if (m->file_id != 0 && is_birth_mark(m)) ids[n++] = m->file_id;
    }
    if (n == 0 || RP_MUTANT(CONFIRM_AFTER_CLAIM)) return 0;
    int r = rp_file_work_load(&work, tx, ids, n, RP_LOAD_MARKS, 0, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (rp_file_work_find(&work, ids[i]) == NULL) r = file_gone(ids[i], err);
    if (r == 0) r = tenant_names(&work, &tenants, &n_tenants, err);
    for (size_t i = 0; i < work.n && r == 0; i++) {
        struct rp_file_slot *slot = &work.slots[i];
        if (slot->file.status != RP_FILE_PENDING) continue; /* deleted early: refunded when it is purged */
        if (slot->mark == NULL || slot->mark->state == RP_MARKED)
            return rp_error_set(err, RP_ECORRUPT, "the mark that it was born with is not its last");
        r = expire(&work, slot, store, name_of(tenants, n_tenants, slot->file.tenant_id), slot->mark->reason, actor,
                   err);
    }
    return r < 0 ? r : rp_file_work_save(&work, err);
}

/* ---- purged ---- */

/* A person may give a mark any reason: what counts is that the file never was confirmed. */
static bool was_never_confirmed(const struct rp_file *file)
{
    return file->status == RP_FILE_EXPIRED || (file->status == RP_FILE_DELETED && file->was == RP_FILE_PENDING);
}

static bool is_late_mark(const struct rp_mark *mark)
{
    return strcmp(mark->reason, RP_REASON_LATE) == 0 && mark->etag[0] == '\0' && mark->version[0] == '\0';
}

static bool ends_a_file(const struct rp_move *move)
{
    return move->done && move->mark->file_id != 0 && move->to == RP_PURGED;
}

static bool is_covered(const struct rp_marks *covered, const char *key)
{
    for (size_t i = 0; i < covered->n; i++)
        if (strcmp(covered->at[i].key, key) == 0) return true;
    return false;
}

/* The file of a copy in quarantine may still have the mark that was to erase it: a dead letter. */
static int load_covered(struct rp_file_work *work, const struct rp_move *moves, size_t n, struct rp_marks *out,
                        struct rp_error *err)
{
    const char **keys = rp_arena_array(work->tx->arena, n + 1, sizeof *keys);
    int64_t store_id = 0;
    size_t n_keys = 0;
    int r = rp_marks_init(out, n + 1, work->tx->arena, err);
    if (r < 0 || keys == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_file_slot *slot = ends_a_file(&moves[i]) && rp_quarantine_is(moves[i].mark->key)
                                              ? rp_file_work_find(work, moves[i].mark->file_id)
                                              : NULL;
        if (slot == NULL) continue;
        keys[n_keys++] = slot->file.key;
        store_id = slot->file.store_id; /* a batch is of one store */
    }
    return n_keys > 0 ? rp_marks_active(work->tx, store_id, keys, n_keys, out, err) : 0;
}

/* Something may come to stand under the file's key that nobody knows: a PUT that began in time and ended late, of an upload that was never
 * confirmed or of a file that was erased while its URL was in use (nothing is erased before it is due; who erased it may have died long before this
 * is written); and what a return from quarantine had copied back when it was interrupted. A dead letter that is retried after its copy's time was over
 * ends last, and finds only what it is about. */
static void mark_again(struct rp_file_work *work, const struct rp_file_slot *slot, const struct rp_move *move,
                       const struct rp_marks *covered)
{
    const struct rp_file *f = &slot->file;
    const struct rp_mark *mark = move->mark;
    int64_t due = f->url_ends_at_ms + RP_LATE_PUT_MS;
    bool ends = f->status == RP_FILE_DELETED && f->mark_id == mark->id && move->outcome != RP_END_QUARANTINED;
    bool unborn = is_birth_mark(mark) && was_never_confirmed(f);
    bool late = ends && (due > mark->due_at_ms || rp_quarantine_is(mark->key));
    bool retried = f->status == RP_FILE_PURGED && !is_late_mark(mark) && !rp_quarantine_is(mark->key);
    if (RP_MUTANT(LATE_MARK_MISSING) || (!unborn && !late && !retried) || is_covered(covered, f->key)) return;
    work->adds[work->n_adds++] = (struct rp_mark){ .id = rp_tx_new_id(work->tx),
                                                   .store_id = f->store_id,
                                                   .key = f->key,
                                                   .state = RP_MARKED,
                                                   .due_at_ms = due > work->tx->late_ms ? due : work->tx->late_ms,
                                                   .marked_at_ms = work->tx->late_ms,
                                                   .tenant_id = f->tenant_id,
                                                   .etag = "",
                                                   .version = "",
                                                   .reason = RP_REASON_LATE,
                                                   .actor = mark->actor,
                                                   .file_id = f->id };
}

static int end_file(struct rp_file_work *work, const struct rp_move *move, const struct rp_marks *covered,
                    const char *store, const char *actor, struct rp_error *err)
{
    struct rp_file_slot *slot = rp_file_work_find(work, move->mark->file_id);
    if (slot == NULL) return file_gone(move->mark->file_id, err);
    mark_again(work, slot, move, covered);
    if (slot->file.status != RP_FILE_DELETED) return 0; /* expired before */
    /* its copy is still there; or it is another's mark: of a late upload, of such a one's copy, of what a return left */
    if (move->outcome == RP_END_QUARANTINED || slot->file.mark_id != move->mark->id) return 0;
    bool used = slot->file.was != RP_FILE_PENDING;
    rp_file_work_change(work, slot, RP_FILE_PURGED);
    if (!RP_MUTANT(PURGE_WITHOUT_REFUND)) rp_file_work_ledger(work, &slot->file, RP_LEDGER_REFUND, used);
    return rp_file_work_audit(work, "file.purged", actor, store, slot, "", err);
}

int rp_files_purged(struct rp_tx *tx, const char *store, const struct rp_move *moves, size_t n, const char *actor,
                    struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int64_t *ids = rp_arena_array(tx->arena, n + 1, sizeof *ids);
    size_t wanted = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++)
        if (ends_a_file(&moves[i])) ids[wanted++] = moves[i].mark->file_id;
    if (wanted == 0) return 0;
    struct rp_marks covered;
    int r = rp_file_work_load(&work, tx, ids, wanted, RP_LOAD_MARKS, 0, err);
    if (r == 0) r = load_covered(&work, moves, n, &covered, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (ends_a_file(&moves[i])) r = end_file(&work, &moves[i], &covered, store, actor, err);
    return r < 0 ? r : rp_file_work_save(&work, err);
}

/* ---- quarantine ---- */

int rp_files_take_over(struct rp_tx *tx, const struct rp_mark *marks, const int64_t *from, size_t n,
                       struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int64_t *ids = rp_arena_array(tx->arena, n + 1, sizeof *ids);
    size_t wanted = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    for (size_t i = 0; i < n; i++)
        if (marks[i].file_id != 0) ids[wanted++] = marks[i].file_id;
    if (wanted == 0) return 0;
    int r = rp_file_work_load(&work, tx, ids, wanted, RP_LOAD_MARKS, 0, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_file_slot *slot = marks[i].file_id != 0 ? rp_file_work_find(&work, marks[i].file_id) : NULL;
        if (slot == NULL || slot->file.status != RP_FILE_DELETED || slot->file.mark_id != from[i]) continue;
        slot->file.mark_id = marks[i].id;
        slot->changed = true;
    }
    return r < 0 ? r : rp_file_work_save(&work, err);
}

int rp_files_returned(struct rp_tx *tx, const char *store, int64_t file_id, const struct rp_identity *identity,
                      const char *actor, struct rp_error *refused, struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    int r = rp_file_work_load(&work, tx, &file_id, 1, RP_LOAD_MARKS, RP_FILE_FAMILY_MAX + 4, err);
    if (r == 0) r = rp_file_work_owners(&work, RP_FILE_DELETED, err);
    if (r < 0) return r;
    struct rp_file_slot *slot = rp_file_work_find(&work, file_id);
    if (slot == NULL) return file_gone(file_id, err);
    if (slot->file.status != RP_FILE_DELETED || slot->file.was == RP_FILE_PENDING) {
        rp_error_set(refused, RP_ENOTMARKED, "the file is %s", rp_status_name(slot->file.status));
        return 0;
    }
    if (slot->mark == NULL || slot->mark->state != RP_MARKED) {
        rp_error_set(refused, RP_ETOOLATE, "too late: its time in quarantine is over");
        return 0;
    }
    if (rp_file_check_owners(&work, &slot->file, refused) < 0) return 0;
    r = rp_file_work_living(&work, &slot->file.tenant_id, &slot->file.name, 1, err);
    if (r < 0) return r;
    if (rp_file_work_holder(&work, slot->file.tenant_id, slot->file.name) != NULL) {
        rp_error_set(refused, RP_ENAMETAKEN, "the name '%s' lives again: another file was uploaded under it",
                     slot->file.name);
        return 0;
    }
    struct rp_seen seen = { .identity = *identity };
    r = rp_file_take_seen(&work, slot, &seen, err);
    if (r < 0) return r;
    rp_file_work_change(&work, slot, slot->file.was == RP_FILE_SCANNING ? RP_FILE_SCANNING : RP_FILE_LIVE);
    slot->file.with_id = 0;
    slot->file.shown = false;
    r = rp_file_work_audit(&work, "file.restored", actor, store, slot, "", err);
    return r < 0 ? r : rp_file_work_save(&work, err);
}
