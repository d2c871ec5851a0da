/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file/transaction.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/id.h"
#include "base/mutant.h"
#include "base/time.h"
#include "catalog/audit.h"
#include "core/file/work.h"

#include <string.h>

static const char *state_name(enum rp_txn_state state)
{
    static const char *const names[RP_TXN_STATES] = {
        [RP_TXN_OPEN] = "open", [RP_TXN_COMMITTED] = "committed", [RP_TXN_ABORTED] = "aborted"
    };
    return names[state];
}

const char *rp_txn_state_name(const struct rp_txn *txn, int64_t now_ms)
{
    return txn->state == RP_TXN_OPEN && txn->ends_at_ms <= now_ms ? "expired" : state_name(txn->state);
}

static int audit_txn(struct rp_tx *tx, const char *event, const char *actor, const struct rp_txn *txn,
                     struct rp_error *err)
{
    char id[RP_ID_TEXT];
    struct rp_audit_entry entry = { .event = event,
                                    .actor = actor,
                                    .tenant_id = txn->tenant_id,
                                    .details = json_pack("{s:s,s:I}", "transaction",
                                                         rp_id_format(RP_ID_TRANSACTION, txn->id, id), "files",
                                                         (json_int_t)txn->members) };
    return rp_tx_audit(tx, &entry, err);
}

/* ---- begin ---- */

static int run_begin(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_txn_command *c = (struct rp_txn_command *)commands[i];
        int64_t timeout = c->timeout_ms >= 0 ? c->timeout_ms : c->rules->txn_timeout_ms;
        c->txn = (struct rp_txn){ .id = rp_tx_new_id(tx),
                                  .tenant_id = c->command.tenant_id,
                                  .state = RP_TXN_OPEN,
                                  .ends_at_ms = tx->late_ms + timeout,
                                  .created_at_ms = tx->late_ms,
                                  .changed_at_ms = tx->late_ms };
        c->changed = true;
        r = rp_txn_add(tx, &c->txn, c->command.actor, err);
        if (r == 0) r = audit_txn(tx, "transaction.begun", c->command.actor, &c->txn, err);
    }
    return r;
}

const struct rp_verb rp_verb_txn_begin = { .name = "begin", .run = run_begin };

/* ---- commit and abort, one after the other: each has up to a thousand files of its own ---- */

static int load_txn(struct rp_tx *tx, struct rp_txn_command *c, bool *found, struct rp_error *err)
{
    size_t n = 0;
    int r = rp_txns_lock(tx, &c->txn_id, 1, &c->txn, &n, err);
    *found = r == 0 && n == 1 && (c->command.tenant_id == 0 || c->txn.tenant_id == c->command.tenant_id);
    if (r == 0 && !*found) rp_error_set(&c->command.error, RP_ENOTFOUND, "there is no such transaction");
    return r;
}

static int decide_open(const struct rp_txn *txn, int64_t now_ms, struct rp_error *err)
{
    if (txn->state != RP_TXN_OPEN)
        return rp_error_set(err, RP_ENOTOPEN, "the transaction is %s", state_name(txn->state));
    if (txn->ends_at_ms <= now_ms) {
        rp_error_set(err, RP_EEXPIRED, "the transaction's time is over");
        return rp_error_hint(err, "its files are purged by themselves; begin a new one");
    }
    return 0;
}

static const struct rp_seen *seen_of(const struct rp_txn_command *c, int64_t file_id)
{
    for (size_t i = 0; i < c->n_seen; i++)
        if (c->seen[i].file_id == file_id) return &c->seen[i];
    return NULL;
}

/* Of two members with one name only one could live. */
static int check_name(const struct rp_file_work *work, size_t i, struct rp_error *err)
{
    const struct rp_file *f = &work->slots[i].file;
    for (size_t k = 0; k < i; k++) {
        const struct rp_file *other = &work->slots[k].file;
        if (other->txn_id == f->txn_id && strcmp(other->name, f->name) == 0)
            return rp_error_set(err, RP_ENAMETAKEN, "two files of the transaction are named '%s'", f->name);
    }
    return 0;
}

/* All members, or none: those that are not ready are listed. */
static int decide_members(struct rp_txn_command *c, struct rp_file_work *work, struct rp_error *err)
{
    c->n_missing = 0;
    for (size_t i = 0; i < work->n; i++) {
        const struct rp_file_slot *slot = &work->slots[i];
        struct rp_error why = { 0 };
        if (slot->file.txn_id != c->txn_id) continue;
        const struct rp_seen *seen = seen_of(c, slot->file.id);
        int code = 0;
        if (slot->file.status != RP_FILE_PENDING || slot->mark == NULL || slot->mark->state != RP_MARKED)
            code = rp_error_set(&why, RP_ENOTPENDING, "'%s' is %s", slot->file.name, rp_status_name(slot->file.status));
        else if (seen == NULL)
            code = rp_error_set(&why, RP_ECHANGED, "'%s' was added while the commit was under way", slot->file.name);
        else if (!RP_MUTANT(COMMIT_WITH_MISSING))
            code = rp_seen_check(seen, &slot->file, &why);
        if (code == 0) code = check_name(work, i, &why);
        if (code == 0) continue;
        if (c->n_missing == 0) *err = why;
        c->missing[c->n_missing++] = slot->file.id;
    }
    return c->n_missing > 0 ? err->code : 0;
}

static int take_metadata(struct rp_txn_command *c, struct rp_file_work *work, struct rp_error *err)
{
    for (size_t i = 0; i < c->n_metadata; i++) {
        struct rp_file_slot *slot = rp_file_work_find(work, c->metadata[i].file_id);
        if (slot == NULL || slot->file.txn_id != c->txn_id)
            return rp_error_set(err, RP_ENOTFOUND, "metadata: a file that is not of this transaction");
    }
    for (size_t i = 0; i < c->n_metadata; i++) {
        struct rp_file_slot *slot = rp_file_work_find(work, c->metadata[i].file_id);
        slot->file.metadata = c->metadata[i].json;
        slot->changed = true;
    }
    return 0;
}

static int replace_named(struct rp_txn_command *c, struct rp_file_work *work, const struct rp_file_slot *slot,
                         const struct rp_store *store, struct rp_error *err)
{
    struct rp_file_slot *old = slot->file.replaces_id != 0 ? rp_file_work_find(work, slot->file.replaces_id) : NULL;
    if (old == NULL || (old->file.status != RP_FILE_LIVE && old->file.status != RP_FILE_SCANNING)) return 0;
    struct rp_mark_make make = { .due_at_ms = work->tx->late_ms + store->config->grace_ms,
                                 .reason = RP_REASON_REPLACED,
                                 .actor = c->command.actor };
    return rp_file_work_delete(work, old, store->config->name, &make, err);
}

/* A member that belongs to `old` would go with it. */
static int check_owner(const struct rp_txn_command *c, struct rp_file_work *work, const struct rp_file_slot *old,
                       struct rp_error *err)
{
    if (old != NULL) rp_file_work_tag(work, old->file.id);
    for (size_t i = 0; old != NULL && i < work->n; i++) {
        const struct rp_file_slot *slot = &work->slots[i];
        if (slot->file.txn_id != c->txn_id || slot->under != old->file.id) continue;
        return rp_error_set(err, RP_EOWNERGONE, "'%s' belongs to '%s', which the transaction replaces", slot->file.name,
                            old->file.name);
    }
    return 0;
}

static int decide_replaced(const struct rp_txn_command *c, struct rp_file_work *work, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < work->n && r == 0 && work->families; i++) {
        const struct rp_file *f = &work->slots[i].file;
        if (f->txn_id != c->txn_id) continue;
        r = rp_file_check_owners(work, f, err);
        if (r == 0) r = check_owner(c, work, rp_file_work_holder(work, f->tenant_id, f->name), err);
        if (r == 0 && f->replaces_id != 0) r = check_owner(c, work, rp_file_work_find(work, f->replaces_id), err);
    }
    return r;
}

static int flip(struct rp_txn_command *c, struct rp_file_work *work, struct rp_error *err)
{
    for (size_t i = 0; i < work->n; i++) {
        struct rp_file_slot *slot = &work->slots[i];
        const struct rp_store *store = rp_store_of_file(c->stores, c->n_stores, &slot->file);
        if (slot->file.txn_id != c->txn_id) continue;
        if (RP_MUTANT(COMMIT_FIRST_ONLY) && work->n_moves > 0) continue;
        if (store == NULL) return rp_error_set(err, RP_ECONFIG, "a file's store is not configured any more");
        int r = rp_file_take_seen(work, slot, seen_of(c, slot->file.id), err);
        if (r == 0) r = replace_named(c, work, slot, store, err);
        if (r == 0) r = rp_file_go_live(work, slot, store, c->rules, c->command.actor, err);
        if (r < 0) return r;
    }
    return 0;
}

static int answer_members(struct rp_txn_command *c, struct rp_file_work *work, struct rp_error *err)
{
    int r = 0;
    c->n_members = 0;
    c->members = rp_arena_array(c->arena, work->n + 1, sizeof *c->members);
    if (c->members == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; i < work->n && r == 0; i++)
        if (work->slots[i].file.txn_id == c->txn_id)
            r = rp_file_work_answer(&work->slots[i], c->arena, &c->members[c->n_members++], err);
    return r;
}

/* The members, what they replace by id, and whoever holds their names. */
static int load_members(struct rp_txn_command *c, struct rp_tx *tx, struct rp_file_work *work, struct rp_error *err)
{
    struct rp_files members;
    int r = rp_files_init(&members, RP_TXN_MEMBERS_MAX, tx->arena, err);
    if (r == 0) r = rp_files_members(tx->db, c->txn_id, &members, err);
    if (r < 0) return r;
    int64_t *ids = rp_arena_array(tx->arena, 2 * members.n + 1, sizeof *ids);
    int64_t *tenants = rp_arena_array(tx->arena, members.n + 1, sizeof *tenants);
    const char **names = rp_arena_array(tx->arena, members.n + 1, sizeof *names);
    size_t n = 0;
    if (ids == NULL || tenants == NULL || names == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for files");
    for (size_t i = 0; i < members.n; i++) {
        ids[n++] = members.at[i].id;
        if (members.at[i].replaces_id != 0) ids[n++] = members.at[i].replaces_id;
        tenants[i] = members.at[i].tenant_id;
        names[i] = members.at[i].name;
    }
    r = rp_file_work_load(work, tx, ids, n, RP_LOAD_MARKS | RP_LOAD_BELOW, 3 * members.n + RP_FILE_FAMILY_MAX, err);
    if (r == 0) r = rp_file_work_owners(work, RP_FILE_PENDING, err);
    return r < 0 ? r : rp_file_work_living(work, tenants, names, members.n, err);
}

static int commit_one(struct rp_tx *tx, struct rp_txn_command *c, struct rp_error *err)
{
    RP_CLEANUP(rp_file_work_done) struct rp_file_work work = { 0 };
    struct rp_error *refused = &c->command.error;
    bool found = false;
    c->changed = false;
    int r = load_txn(tx, c, &found, err);
    if (r < 0 || !found) return r;
    r = load_members(c, tx, &work, err);
    if (r < 0) return r;
    if (c->txn.state == RP_TXN_COMMITTED) return answer_members(c, &work, err);
    /* here, not where they are decided: a refusal is kept as the answer, and missing memory is none */
    c->missing = rp_arena_array(c->arena, work.n + 1, sizeof *c->missing);
    if (c->missing == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work.n);
    if (decide_open(&c->txn, tx->late_ms, refused) < 0 || decide_members(c, &work, refused) < 0 ||
        decide_replaced(c, &work, refused) < 0 || take_metadata(c, &work, refused) < 0)
        return 0;
    c->changed = true;
    c->txn.state = RP_TXN_COMMITTED;
    c->txn.changed_at_ms = tx->late_ms;
    r = flip(c, &work, err);
    if (r == 0) r = rp_file_work_save(&work, err);
    if (r == 0) r = rp_txns_save(tx, &c->txn, 1, err);
    if (r == 0) r = audit_txn(tx, "transaction.committed", c->command.actor, &c->txn, err);
    return r < 0 ? r : answer_members(c, &work, err);
}

static int run_commit(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = commit_one(tx, (struct rp_txn_command *)commands[i], err);
    return r;
}

const struct rp_verb rp_verb_txn_commit = { .name = "commit", .run = run_commit };

static int abort_one(struct rp_tx *tx, struct rp_txn_command *c, struct rp_error *err)
{
    bool found = false;
    c->changed = false;
    int r = load_txn(tx, c, &found, err);
    if (r < 0 || !found || c->txn.state == RP_TXN_ABORTED) return r;
    if (c->txn.state == RP_TXN_COMMITTED) {
        rp_error_set(&c->command.error, RP_ENOTOPEN, "the transaction is committed");
        return 0;
    }
    c->changed = true;
    c->txn.state = RP_TXN_ABORTED;
    c->txn.changed_at_ms = tx->late_ms;
    r = RP_MUTANT(ABORT_NOT_WRITTEN) ? 0 : rp_txns_save(tx, &c->txn, 1, err);
    return r < 0 ? r : audit_txn(tx, "transaction.aborted", c->command.actor, &c->txn, err);
}

static int run_abort(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = abort_one(tx, (struct rp_txn_command *)commands[i], err);
    return r;
}

const struct rp_verb rp_verb_txn_abort = { .name = "abort", .run = run_abort };
