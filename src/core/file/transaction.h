/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.h - many files that appear together or not at all (TXN-ATOMIC).
 *
 * X1  begin makes a row and nothing else. A member is an init with txn_id: born `pending` under a
 *     mark `rollback`, due at the transaction's end plus the rollback grace. So a crash, a time-out
 *     and an abort leave nothing to undo.
 * X2  commit looks at every member's object first. Then, in ONE transaction: the row is
 *     `committed`; every member is live (or scanning), its mark reprieved, its metadata written;
 *     what it replaces, by `replaces` or by name, is marked `replaced` with the store's grace if it
 *     still lives. All marks change or nothing does.
 * X3  Committing again gives the same answer; after the end or an abort it is refused (RP_EEXPIRED,
 *     RP_ENOTOPEN).
 *
 *   (nothing) -> open        rp_verb_txn_begin
 *   open      -> committed   rp_verb_txn_commit
 *   open      -> aborted     rp_verb_txn_abort */
#ifndef RP_CORE_FILE_TRANSACTION_H
#define RP_CORE_FILE_TRANSACTION_H

#include "catalog/file/transaction.h"
#include "core/file/file.h"

#define RP_TXN_MEMBERS_MAX 1000

struct rp_txn_metadata {
    int64_t file_id;
    const char *json; /* NULL: none */
};

struct rp_txn_command {
    struct rp_command command;
    const struct rp_upload_rules *rules;
    struct rp_store *const *stores;
    size_t n_stores;
    struct rp_arena *arena; /* the caller's: texts of the answer are copied there */
    int64_t txn_id;         /* commit, abort */
    int64_t timeout_ms;     /* begin; -1: the configured one */
    /* commit: what was seen of each member, and the metadata of those that get some */
    const struct rp_seen *seen;
    size_t n_seen;
    const struct rp_txn_metadata *metadata;
    size_t n_metadata;
    /* out */
    struct rp_txn txn;
    int64_t *missing; /* commit refused: the members that are not ready; in the arena */
    size_t n_missing;
    struct rp_file_answer *members; /* commit: as they are now; in the arena */
    size_t n_members;
    struct rp_file_marked *marked; /* commit: on what was replaced; in the arena */
    bool changed;
};

/* "open", "expired", "committed", "aborted" */
const char *rp_txn_state_name(const struct rp_txn *txn, int64_t now_ms);

extern const struct rp_verb rp_verb_txn_begin, rp_verb_txn_commit, rp_verb_txn_abort;

/* ---- between the verbs ---- */

/* RP_ENOTOPEN, RP_EEXPIRED */
int rp_txn_check_open(const struct rp_txn *txn, int64_t now_ms, struct rp_error *err);
/* Decides the commands one after the other, each may have a thousand files of its own: c->txn is
 * loaded and locked. */
typedef int rp_txn_decide_fn(struct rp_tx *tx, struct rp_txn_command *c, struct rp_error *err);
int rp_txn_each(struct rp_tx *tx, struct rp_command *const *commands, size_t n, rp_txn_decide_fn *decide,
                struct rp_error *err);
/* The open transaction is committed or aborted from now on. */
int rp_txn_end(struct rp_tx *tx, struct rp_txn_command *c, enum rp_txn_state state, struct rp_error *err);

#endif
