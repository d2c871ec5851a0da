/* SPDX-License-Identifier: Apache-2.0 */
/* mutant.h - mistakes made on purpose, to see that the simulator's checkers notice each of them.
 *
 * MU1 Only the simulator's own copy of the rules (RP_MUTANTS; sim/meson.build) has them. Everywhere else RP_MUTANT(...) is the constant 0: the compiler drops the
 *     mistake, and neither variable nor table exists. tests/unit/test_mutant.c holds the binary against this.
 * MU2 One mistake at a time: `rp_mutant` is set before the first thread starts, by the simulator alone.
 * MU3 A mistake is one line where the rule is kept, and such as a colleague could make. Our own assertions stay satisfied as far as
 *     possible: whoever looks from outside has to find it.
 *
 * The columns: the name in code; the name that is typed; the invariant (DESIGN section 4) that breaks; what is wrong. */
#ifndef RP_BASE_MUTANT_H
#define RP_BASE_MUTANT_H

/* clang-format off */
#define RP_MUTANT_TABLE(X)                                                                                             \
    X(DELETE_BEFORE_INTENT,   "delete-before-intent",   "INTENT-FIRST",  "the claim erases before it commits")         \
    X(DELETE_FROM_CHECKING,   "delete-from-checking",   "INTENT-FIRST",  "the guard's yes is not committed before the erase") \
    X(CLAIM_BEFORE_DUE,       "claim-before-due",       "NO-EARLY",      "marks are claimed half a lease early")        \
    X(PURGE_BY_LATEST_CLOCK,  "purge-by-latest-clock",  "NO-EARLY",      "a mark is due when one of host and database says so") \
    X(STORE_CLOCK_IGNORED,    "store-clock-ignored",    "NO-EARLY",      "a claim does not ask the store's clock")     \
    X(DUE_FROM_EARLIEST_CLOCK, "due-from-earliest-clock", "NO-EARLY",    "a promise is counted from the earliest clock") \
    X(EXTENSION_LOST,         "extension-lost",         "NO-EARLY",      "a later due time is acknowledged, not written") \
    X(LEASE_IGNORED,          "lease-ignored",          "FENCED",        "a claim is taken over a second later")        \
    X(FINISH_WITHOUT_FENCE,   "finish-without-fence",   "FENCED",        "moves do not compare the fence")             \
    X(RESTORE_AFTER_CLAIM,    "restore-after-claim",    "RESTORE-WINS",  "a mark in purging is reprieved")             \
    X(FILE_RESTORE_AFTER_CLAIM, "file-restore-after-claim", "RESTORE-WINS", "a file whose mark is in purging is restored") \
    X(RETURN_ONTO_NEWER,      "return-onto-newer",      "RESTORE-WINS",  "something newer under the key is taken for the returned copy") \
    X(RESTORE_FORGETS_CHILDREN, "restore-forgets-children", "RESTORE-WINS", "what was deleted along with a file stays deleted") \
    X(GUARD_SKIPPED,          "guard-skipped",          "NO-LOSS",       "references are not counted before a purge")  \
    X(GUARD_FAILURE_IS_NO,    "guard-failure-is-no",    "BRAKED",        "a guard that cannot answer counts as unreferenced") \
    X(REFERENCED_FORGOTTEN,   "referenced-forgotten",   "EVENTUAL",      "a mark that is still referenced is never asked about again") \
    X(HOLD_ELSEWHERE,         "hold-elsewhere",         "NO-LOSS",       "a hold is written for another store than it was asked for") \
    X(EPOCH_NOT_RAISED,       "epoch-not-raised",       "NO-LOSS",       "the catalog's epoch stays as it is")         \
    X(FOREIGN_OWNER_IGNORED,  "foreign-owner-ignored",  "NO-LOSS",       "a store of another catalog is purged")       \
    X(ROLLBACK_IGNORED,       "rollback-ignored",       "NO-LOSS",       "a catalog behind the store's epoch goes on purging") \
    X(OWNER_STAMP_IGNORED,    "owner-stamp-ignored",    "NO-LOSS",       "a copy of the catalog that counts as far goes on purging") \
    X(RECOVER_KEEPS_MARKS,    "recover-keeps-marks",    "NO-LOSS",       "a recovery leaves the waiting marks as they are") \
    X(EMPTY_STORE_BELIEVED,   "empty-store-believed",   "BRAKED",        "already gone is believed without the owner record") \
    X(FILE_OBJECT_MARKED,     "file-object-marked",     "NO-LOSS",       "the object of a live file can be marked by its key") \
    X(CONFIRM_UNSEEN,         "confirm-unseen",         "NO-LOSS",       "a confirm does not look at the object")      \
    X(CONFIRM_AFTER_CLAIM,    "confirm-after-claim",    "NO-LOSS",       "an upload is confirmed although its expiry is claimed") \
    X(COPY_NOT_VERIFIED,      "copy-not-verified",      "NO-LOSS",       "a failed copy into quarantine counts as made") \
    X(COPY_NOT_MARKED,        "copy-not-marked",        "EVENTUAL",      "the copy in quarantine gets no mark of its own") \
    X(IDENTITY_FROM_STORE,    "identity-from-store",    "NEWER-WINS",    "what stands under the key is erased, not what was marked") \
    X(SUPERSEDED_KEPT,        "superseded-kept",        "NEWER-WINS",    "marking a newer upload answers with the older one's mark") \
    X(REFUND_WITHOUT_LEDGER,  "refund-without-ledger",  "QUOTA-EXACT",   "a refund moves the counter and writes no ledger row") \
    X(REFUND_TWICE,           "refund-twice",           "QUOTA-EXACT",   "a refund moves the counter twice")           \
    X(EXPIRE_WITHOUT_REFUND,  "expire-without-refund",  "QUOTA-EXACT",   "an expired upload keeps its reservation")    \
    X(PURGE_WITHOUT_REFUND,   "purge-without-refund",   "QUOTA-EXACT",   "a purged file still counts as used")         \
    X(RESERVED_NOT_COUNTED,   "reserved-not-counted",   "QUOTA-EXACT",   "the limit is compared with used bytes alone") \
    X(RESERVATION_KEPT,       "reservation-kept",       "QUOTA-EXACT",   "a confirm adds to used and leaves reserved as it was") \
    X(COMMIT_FIRST_ONLY,      "commit-first-only",      "TXN-ATOMIC",    "a commit makes its first member live and forgets the others") \
    X(COMMIT_WITH_MISSING,    "commit-with-missing",    "TXN-ATOMIC",    "a commit goes through with a member that is not in the store") \
    X(ABORT_NOT_WRITTEN,      "abort-not-written",      "TXN-ATOMIC",    "an abort is acknowledged, not written")      \
    X(REPLACED_NOT_MARKED,    "replaced-not-marked",    "EVENTUAL",      "a replaced file is deleted without a mark")  \
    X(DELETE_FORGETS_CHILDREN, "delete-forgets-children", "EVENTUAL",    "what belongs to a deleted file stays live")  \
    X(UNKNOWN_IS_DELETED,     "unknown-is-deleted",     "EVENTUAL",      "an unknown outcome of a delete counts as deleted") \
    X(STORE_FAILURE_IS_GONE,  "store-failure-is-gone",  "EVENTUAL",      "objects of a store that failed count as gone") \
    X(LATE_MARK_MISSING,      "late-mark-missing",      "EVENTUAL",      "no second mark for a PUT that ends late")    \
    X(DEAD_LETTER_MISSING,    "dead-letter-missing",    "AT-LEAST-ONCE", "a dead mark has no letter that a person would find") \
    X(KEY_NOT_KEPT,           "key-not-kept",           "IDEMPOTENT",    "answers are not kept under their Idempotency-Key") \
    X(KEY_BODY_IGNORED,       "key-body-ignored",       "IDEMPOTENT",    "a key with another body gets the first one's answer") \
    X(ANSWER_BEFORE_COMMIT,   "answer-before-commit",   "AUDITED",       "a commit that fails is not noticed")         \
    X(UNKNOWN_COMMIT_IS_DONE, "unknown-commit-is-done", "INTENT-FIRST",  "a commit whose answer was lost counts as done") \
    X(UNKNOWN_COMMIT_IS_NOT,  "unknown-commit-is-not",  "AUDITED",       "a commit whose answer was lost is made again") \
    X(AUDIT_ROW_MISSING,      "audit-row-missing",      "AUDITED",       "a reprieve has no audit row")                \
    X(ATTEMPTS_NOT_COUNTED,   "attempts-not-counted",   "AT-LEAST-ONCE", "a failing purge is tried for ever")          \
    X(AUDIT_NOT_CHAINED,      "audit-not-chained",      "AUDITED",       "an audit row does not become the lane's head") \
    X(TALLY_WRONG,            "tally-wrong",            "HONEST",        "a mark that moves is not counted where it arrives") \
    X(TENANT_IGNORED,         "tenant-ignored",         "TENANT",        "files of another tenant can be deleted and restored")
/* clang-format on */

#define RP_MUTANT_ID(id, name, breaks, what) RP_MUTANT_##id,

#ifdef RP_MUTANTS

enum rp_mutant { RP_MUTANT_NONE, RP_MUTANT_TABLE(RP_MUTANT_ID) RP_MUTANTS_N };
extern enum rp_mutant rp_mutant; /* RP_MUTANT_NONE at the start */
#define RP_MUTANT(id) (rp_mutant == RP_MUTANT_##id)

struct rp_mutant_row {
    const char *name, *breaks, *what;
};
extern const struct rp_mutant_row rp_mutant_rows[RP_MUTANTS_N]; /* [RP_MUTANT_NONE] is empty */
/* RP_MUTANT_NONE for a name that is none of them. */
enum rp_mutant rp_mutant_find(const char *name);

#else

/* Never, and a constant; a name that is misspelt does not compile. */
enum { RP_MUTANT_NONE, RP_MUTANT_TABLE(RP_MUTANT_ID) RP_MUTANTS_N };
#define RP_MUTANT(id) (RP_MUTANT_##id == RP_MUTANT_NONE)

#endif

#endif
