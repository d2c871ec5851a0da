/* SPDX-License-Identifier: Apache-2.0 */
/* commit.c - the verb commit: all members of a transaction become live, or none (transaction.h,
 * X2). */
#include "base/cleanup.h"
#include "core/file/log.h"
#include "core/file/transaction.h"
#include "core/file/work.h"

#include <string.h>

/* ---- load ---- */

/* The members, what they replace by id, and whoever holds their names. */
static int load_members(struct rp_txn_command *c, struct rp_tx *tx, struct rp_work *work, struct rp_error *err)
{
    struct rp_files members;
    int r = rp_files_init(&members, RP_TXN_MEMBERS_MAX, tx->arena, err);
    if (r == 0) r = rp_files_members(tx->db, c->txn_id, &members, err);
    if (r < 0) return r;
    int64_t *ids = rp_work_room(tx, 2 * members.n + 1, sizeof *ids, err);
    size_t n = 0;
    if (ids == NULL) return RP_ENOMEM;
    for (size_t i = 0; i < members.n; i++) {
        ids[n++] = members.at[i].id;
        if (members.at[i].replaces_id != 0) ids[n++] = members.at[i].replaces_id;
    }
    r = rp_work_load(work, tx, ids, n, RP_LOAD_MARKS | RP_LOAD_BELOW, err);
    if (r == 0) r = rp_work_owners(work, RP_FILE_PENDING, err);
    return r < 0 ? r : rp_work_holders(work, RP_FILE_PENDING, c->txn_id, err);
}

static const struct rp_seen *seen_of(const struct rp_txn_command *c, int64_t file_id)
{
    for (size_t i = 0; i < c->n_seen; i++)
        if (c->seen[i].file_id == file_id) return &c->seen[i];
    return NULL;
}

/* The next member from slot i on; NULL: no more. */
static struct rp_slot *next_member(const struct rp_txn_command *c, struct rp_work *work, size_t *i)
{
    while (*i < work->n && work->slots[*i].file.txn_id != c->txn_id)
        ++*i;
    return *i < work->n ? &work->slots[(*i)++] : NULL;
}

/* ---- decide ---- */

/* Of two members with one name only one could live. */
static int check_name(const struct rp_txn_command *c, struct rp_work *work, const struct rp_slot *slot,
                      struct rp_error *err)
{
    const struct rp_slot *other;
    for (size_t i = 0; (other = next_member(c, work, &i)) != NULL && other != slot;)
        if (strcmp(other->file.name, slot->file.name) == 0) {
            rp_error_set(err, RP_ENAMETAKEN, "two files of the transaction are named '%s'", slot->file.name);
            return rp_error_hint(err, "abort, and begin a new transaction with one file a name");
        }
    return 0;
}

static int check_member(const struct rp_txn_command *c, struct rp_work *work, const struct rp_slot *slot,
                        struct rp_error *err)
{
    const struct rp_seen *seen = seen_of(c, slot->file.id);
    int r = 0;
    if (slot->file.status != RP_FILE_PENDING || slot->mark.state != RP_MARKED)
        return rp_error_set(err, RP_ENOTPENDING, "'%s' is %s", slot->file.name, rp_status_name(slot->file.status));
    if (seen == NULL)
        return rp_error_set(err, RP_ECHANGED, "'%s' was added while the commit was under way", slot->file.name);
    r = rp_seen_check(seen, &slot->file, err);
    return r < 0 ? r : check_name(c, work, slot, err);
}

/* All members, or none: those that are not ready are listed. */
static int decide_members(struct rp_txn_command *c, struct rp_work *work, struct rp_error *err)
{
    const struct rp_slot *slot;
    c->n_missing = 0;
    for (size_t i = 0; (slot = next_member(c, work, &i)) != NULL;) {
        struct rp_error why = { 0 };
        if (check_member(c, work, slot, &why) == 0) continue;
        if (c->n_missing == 0) *err = why;
        c->missing[c->n_missing++] = slot->file.id;
    }
    return c->n_missing > 0 ? err->code : 0;
}

/* A member that belongs to `old` would go with it. So would the rest of its family. */
static int check_replaced(const struct rp_txn_command *c, struct rp_work *work, struct rp_slot *old,
                          struct rp_error *err)
{
    const struct rp_slot *slot;
    if (old == NULL) return 0;
    rp_work_tag(work, old, NULL);
    for (size_t i = 0; (slot = next_member(c, work, &i)) != NULL;)
        if (slot->under == old->file.id)
            return rp_error_set(err, RP_EOWNERGONE, "'%s' belongs to '%s', which the transaction replaces",
                                slot->file.name, old->file.name);
    return rp_status_lives(old->file.status) ? rp_work_check_along(work, old, err) : 0;
}

static struct rp_slot *replaced_by(struct rp_work *work, const struct rp_slot *slot)
{
    return slot->file.replaces_id != 0 ? rp_work_find(work, slot->file.replaces_id) : NULL;
}

static int decide_families(const struct rp_txn_command *c, struct rp_work *work, struct rp_error *err)
{
    const struct rp_slot *slot;
    int r = 0;
    if (!work->families) return 0;
    for (size_t i = 0; r == 0 && (slot = next_member(c, work, &i)) != NULL;) {
        r = rp_work_check_owners(work, &slot->file, err);
        if (r == 0) r = check_replaced(c, work, rp_work_holder(work, &slot->file), err);
        if (r == 0) r = check_replaced(c, work, replaced_by(work, slot), err);
    }
    return r;
}

static int decide_metadata(const struct rp_txn_command *c, struct rp_work *work, struct rp_error *err)
{
    for (size_t i = 0; i < c->n_metadata; i++) {
        const struct rp_slot *slot = rp_work_find(work, c->metadata[i].file_id);
        if (slot == NULL || slot->file.txn_id != c->txn_id)
            return rp_error_set(err, RP_ENOTFOUND, "metadata: a file that is not of this transaction");
    }
    return 0;
}

static int decide_commit(struct rp_txn_command *c, struct rp_work *work, struct rp_error *err)
{
    int r = rp_txn_check_open(&c->txn, work->tx->late_ms, err);
    if (r == 0) r = decide_members(c, work, err);
    if (r == 0) r = decide_families(c, work, err);
    return r < 0 ? r : decide_metadata(c, work, err);
}

/* ---- apply ---- */

static int go_live(struct rp_txn_command *c, struct rp_work *work, struct rp_slot *slot, struct rp_error *err)
{
    struct rp_slot *old = replaced_by(work, slot);
    int r = 0;
    rp_work_turn(work, c->stores, c->n_stores, &slot->file, c->command.actor);
    if (work->store == NULL) return rp_error_set(err, RP_ECONFIG, "a file's store is not configured any more");
    if (old != NULL && rp_status_lives(old->file.status)) r = rp_work_drop(work, old, RP_REASON_REPLACED, err);
    return r < 0 ? r : rp_work_go_live(work, slot, seen_of(c, slot->file.id), c->rules, err);
}

static int apply_commit(struct rp_txn_command *c, struct rp_work *work, struct rp_error *err)
{
    struct rp_slot *slot;
    size_t n = 0;
    int r = 0;
    for (size_t i = 0; i < c->n_metadata; i++)
        rp_work_find(work, c->metadata[i].file_id)->file.metadata = c->metadata[i].json;
    for (size_t i = 0; r == 0 && (slot = next_member(c, work, &i)) != NULL; n++)
        r = go_live(c, work, slot, err);
    if (r == 0) r = rp_work_save(work, err);
    return r < 0 ? r : rp_txn_end(work->tx, c, RP_TXN_COMMITTED, err);
}

static int answer_members(struct rp_txn_command *c, struct rp_work *work, struct rp_error *err)
{
    const struct rp_slot *slot;
    int r = 0;
    c->n_members = 0;
    c->members = rp_arena_array(c->arena, work->n + 1, sizeof *c->members);
    if (c->members == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work->n);
    for (size_t i = 0; r == 0 && (slot = next_member(c, work, &i)) != NULL;)
        r = rp_work_answer(slot, c->arena, &c->members[c->n_members++], err);
    return r;
}

static int commit_one(struct rp_tx *tx, struct rp_txn_command *c, struct rp_error *err)
{
    RP_CLEANUP(rp_work_done) struct rp_work work = { 0 };
    int r = load_members(c, tx, &work, err);
    if (r == 0 && c->txn.state != RP_TXN_COMMITTED) {
        /* not where they are decided: a refusal is kept as the answer, missing memory must not
         * be */
        c->missing = rp_arena_array(c->arena, work.n + 1, sizeof *c->missing);
        if (c->missing == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", work.n);
        if (decide_commit(c, &work, &c->command.error) < 0) return 0;
        r = apply_commit(c, &work, err);
    }
    if (r == 0) r = answer_members(c, &work, err);
    c->marked = rp_work_told(&work, NULL, c->arena);
    return r;
}

static int run_commit(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    return rp_txn_each(tx, commands, n, commit_one, err);
}

const struct rp_verb rp_verb_txn_commit = { .name = "commit", .run = run_commit, .log = rp_log_txn };
