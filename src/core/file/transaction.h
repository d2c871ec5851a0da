/* SPDX-License-Identifier: Apache-2.0 */
/* transaction.h - many files that appear together or not at all (TXN-ATOMIC).
 *
 * X1  begin makes a row and nothing else. A member is an init with txn_id: born `pending` under a mark `rollback`, due at the
 *     transaction's end plus the rollback grace, so that a crash, a time-out and an abort leave nothing to undo.
 * X2  commit looks at every member's object first; then, in ONE transaction: the row `committed`, every member live (or scanning), its
 *     mark reprieved, its metadata written, what it replaces - by `replaces` or by name - marked `replaced` with the store's grace if still
 *     live. All marks change or nothing does.
 * X3  Committing again gives the same answer; after the end or an abort it is refused (RP_EEXPIRED, RP_ENOTOPEN). */
#ifndef RP_CORE_FILE_TRANSACTION_H
#define RP_CORE_FILE_TRANSACTION_H

#include "catalog/transaction.h"
#include "core/file/file.h"

#define RP_TXN_MEMBERS_MAX 1000

struct rp_txn_command {
    struct rp_command command;
    const struct rp_upload_rules *rules;
    struct rp_store *const *stores;
    size_t n_stores;
    struct rp_arena *arena; /* the caller's: texts of the answer are copied there */
    int64_t txn_id;         /* commit, abort */
    int64_t timeout_ms;     /* begin; -1: the configured one */
    /* commit: what was seen of each member, and its metadata (JSON text by file id, NULL: none) */
    const struct rp_seen *seen;
    size_t n_seen;
    const struct rp_txn_metadata {
        int64_t file_id;
        const char *json;
    } * metadata;
    size_t n_metadata;
    /* out */
    struct rp_txn txn;
    int64_t *
        missing; /* commit refused with RP_ENOTUPLOADED, RP_ESIZE, RP_ECHECKSUM: the members it is about; in the arena */
    size_t n_missing;
    struct rp_file_answer *members; /* commit: as they are now; in the arena */
    size_t n_members;
    bool changed;
};

/* "open", "expired", "committed", "aborted" */
const char *rp_txn_state_name(const struct rp_txn *txn, int64_t now_ms);

extern const struct rp_verb rp_verb_txn_begin, rp_verb_txn_commit, rp_verb_txn_abort;

#endif
