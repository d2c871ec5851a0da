/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - what can go wrong in a run. Each kind has a switch, a rate and a stream of its own in
 * every run (some runs have only a few kinds, some all of them), and a counter that tells whether
 * it was ever met. */
#ifndef RP_SIM_FAULTS_H
#define RP_SIM_FAULTS_H

#include "random.h"

/*   kind                name                    rate    in 10,000 chances, at most */
/* clang-format off */
#define SIM_FAULTS(X)                                                                                              \
    X(CRASH,             "crash",                    50) /* a node stops between any two calls */                  \
    X(CRASH_STARTING,    "crash-starting",          800) /* a node stops while it starts again */                  \
    X(DB_UNAVAILABLE,    "db-unavailable",          120) /* the connection is lost before a call */                \
    X(DB_BUSY,           "db-busy",                 150) /* busy, deadlock, serialization */                       \
    X(DB_FULL,           "db-full",                  60)                                                           \
    X(COMMIT_LOST,       "commit-lost",             400) /* committed, and the answer was lost */                  \
    X(COMMIT_UNDONE,     "commit-undone",           400) /* the connection broke at COMMIT, and nothing was */     \
    X(COMMIT_UNRESOLVED, "commit-unresolved",      3000) /* then nobody can be asked for a while */                \
    X(NO_MEMORY,         "no-memory",               150) /* an allocation fails, one of the next of a command */   \
    X(STORE_REFUSES,     "store-refuses",           500) /* 5xx, slow down */                                      \
    X(STORE_DENIES,      "store-denies",            300)                                                           \
    X(STORE_SLOW,        "store-slow",              300) /* an answer takes minutes */                             \
    X(STORE_LOST,        "store-lost",              900) /* applied, then timed out */                             \
    X(STORE_LATE,        "store-late",             1200) /* timed out, then applied */                             \
    X(STORE_PARTLY,      "store-partly",           1500) /* keys missing from the answer of a delete */            \
    X(STORE_CUT,         "store-cut",              3000) /* a listing that ends early */                           \
    X(STORE_FALSE,       "store-false",             300) /* "deleted", and it was not */                           \
    X(STORE_OUTAGE,      "store-outage",             15) /* every request fails for a while */                     \
    X(CLOCK_FORWARD,     "clock-forward",            12)                                                           \
    X(CLOCK_BACK,        "clock-back",               12)                                                           \
    X(CLOCK_FREEZE,      "clock-freeze",             12)                                                           \
    X(CLOCK_DISAGREE,    "clock-disagree",           12) /* by less than what stops a sweep */                     \
    X(CLOCKS_TOGETHER,   "clocks-together",          12) /* hosts and database jump as one: they have one clock */ \
    X(REBOOT,            "reboot",                   12) /* a host starts again, its boot clock at nothing */      \
    X(STORE_STRICT,      "store-strict",             80) /* every delete is denied for days */                     \
    X(GUARD_FAILS,       "guard-fails",            1500)                                                           \
    X(ROLLED_BACK,       "catalog-rolled-back",      40) /* restored from a backup */                              \
    X(MOVED,             "catalog-moved",            15) /* found in another place, whole */                       \
    X(FOREIGN_OWNER,     "foreign-owner",            12) /* another catalog took the store over */                 \
    X(WRONG_BUCKET,      "wrong-bucket",             40) /* the store's name leads somewhere else for a while */   \
    X(LATE_PUT,          "late-put",               2000) /* an upload that ends long after it began */             \
    X(REPEATED,          "repeated",               2000) /* a command given again though it was answered */        \
    X(OTHER_BODY,        "other-body",             1500) /* an Idempotency-Key with another body */                \
    X(WRONG_TENANT,      "wrong-tenant",            500) /* somebody asks for a file of another tenant */          \
    X(FILES_KEY,         "mark-of-a-file's-key",   1500) /* somebody marks a file's object by its key */           \
    X(REUPLOAD,          "reupload",                250) /* somebody uploads under a marked key */                 \
    X(TWINS,             "identical-reupload",      100) /* somebody uploads the same bytes again */               \
    X(HIDDEN,            "hidden-by-others",         60) /* somebody leaves a delete marker on a key */            \
    X(TAKEN_AWAY,        "taken-away",               25) /* somebody else deletes an object */                     \
    X(SERVICE_NO,        "service-says-no",        2500)                                                           \
    X(SERVICE_LATER,     "service-says-later",     4000) /* 202; it calls, or waits to be asked again */           \
    X(SERVICE_FAILS,     "service-fails",          3000) /* 5xx, 429 */                                            \
    X(SERVICE_HANGS,     "service-hangs",          2000)                                                           \
    X(SERVICE_BREAKS,    "service-breaks-off",     3000) /* it has acted, and nobody hears its answer */           \
    X(FROZEN_ASKING,     "frozen-while-asking",    1500) /* a node stands still during a call */
/* clang-format on */

enum sim_fault {
#define X(kind, name, rate) FAULT_##kind,
    SIM_FAULTS(X)
#undef X
        FAULT_KINDS
};

/* Not chosen, but met: counted beside the faults, because a run that never meets them proves
 * little. */
/* clang-format off */
#define SIM_SIGHTS(X)                                                                                              \
    X(TWO_SWEEPERS,      "two-sweepers"           ) /* two nodes in the middle of a sweep */                       \
    X(TAKEOVER,          "lease-taken-over"       ) /* a claim of a mark whose lease ended */                      \
    X(LEASE_RENEWED,     "lease-renewed"          )                                                                \
    X(LEASE_OVER,        "lease-over-in-a-batch"  ) /* what was left was given back, unsent */                     \
    X(STALE_HOLDER,      "stale-holder-woke"      ) /* a claim while the old holder was still at work */           \
    X(ZOMBIE_DELETE,     "zombie-delete"          ) /* a late delete that found something to delete */             \
    X(RETURN_MET,        "late-delete-met-return" ) /* ... that had come back from quarantine */                   \
    X(RETURNED_AGAIN,    "returned-again"         ) /* ... and was brought back */                                 \
    X(EXPIRED_CONFIRM,   "expired-confirm"        ) /* a confirm after the upload had expired */                   \
    X(DOUBLE_CONFIRM,    "double-confirm"         ) /* a confirm of a live file */                                 \
    X(TOO_LATE,          "too-late"               ) /* a restore that lost against the claim */                    \
    X(REPLAY,            "replayed-key"           ) /* an answer given from an Idempotency-Key */                  \
    X(KEY_REUSED,        "key-reused"             ) /* ... refused for another body */                             \
    X(SUPERSEDED,        "newer-upload-won"       )                                                                \
    X(MARKED_WHILE_HELD, "marked-while-held"      ) /* the mark waits for the end of a hold */                     \
    X(REFERENCED,        "still-referenced"       )                                                                \
    X(USED_UP,           "attempts-used-up"       ) /* a purge that failed as often as it may */                   \
    X(NOT_OWNER,         "not-owner"              ) /* a sweep that found the store to be another's */             \
    X(PUT_BACK_UNDER,    "put-back-under-nodes"   ) /* a backup was put back while nodes went on */                \
    X(UNNOTICED,         "put-back-unnoticed"     ) /* nothing shows it: U4 of backups.c */                        \
    X(CLOCKS_APART,      "clocks-apart"           ) /* a sweep that found the clocks too far apart */              \
    X(CLOCK_JUMPED,      "clock-jumped"           ) /* a sweep: its host is far ahead of the boot clock */         \
    X(CLOCK_ACCEPTED,    "clock-accepted"         ) /* somebody took such a clock for right */                     \
    X(WEAK,              "too-weak"               ) /* a sweep, or a mark, that found the store too weak */        \
    X(QUARANTINED,       "quarantined"            )                                                                \
    X(RETURNED,          "returned"               ) /* from quarantine */                                          \
    X(HIDDEN,            "hidden-in-place"        ) /* quarantined by a delete marker */                           \
    X(SHOWN,             "shown-again"            ) /* ... and returned by its removal */                          \
    X(LATE_HIDE,         "late-hide-met-return"   ) /* ... and hidden again by a request that came late */         \
    X(EXPIRED,           "upload-expired"         )                                                                \
    X(REPLACED,          "file-replaced"          )                                                                \
    X(COMMITTED,         "transaction-committed"  )                                                                \
    X(ROLLED,            "transaction-rolled-back")                                                                \
    X(QUOTA,             "quota-exceeded"         )                                                                \
    X(FAMILY,            "family-deleted"         ) /* a file that was taken along by what it belongs to */        \
    X(LET_GO,            "let-go-by-retention"    )                                                                \
    X(LET_GO_IN_TROUBLE, "let-go-in-trouble"      ) /* ... before everything has healed */                         \
    X(RETENTION_CRASHED, "retention-crashed"      )                                                                \
    X(RETENTION_TAKEN,   "retention-taken-over"   ) /* ... and carried on by another process */                    \
    X(RETENTION_LOST,    "retention-lost"         ) /* its old worker woke, and let nothing more go */             \
    X(TWO_RETENTIONS,    "two-retentions"         ) /* one was refused: another is under way */                    \
    X(KEY_ANEW,          "key-given-anew"         ) /* whose answer had been let go */                             \
    X(LET_GO_PUT_BACK,   "let-go-put-back"        ) /* a backup brought back what had been let go */               \
    X(KEPT_WITH_COPY,    "kept-with-its-copy"     ) /* an ended mark: its copy waits in quarantine */              \
    X(NET_ENDED,         "safety-net-ended"       ) /* in trouble; it found nothing */                             \
    X(NET_CRASHED,       "safety-net-crashed"     )                                                                \
    X(REFUSED,           "service-refused"        )                                                                \
    X(SERVICE_GONE,      "service-said-gone"      ) /* a code that counts as yes */                                \
    X(SAID_LATER,        "service-said-later"     )                                                                \
    X(LATE_YES,          "late-yes"               ) /* a service that had said later has called */                 \
    X(LATE_NO,           "late-no"                )                                                                \
    X(NO_AFTER_YES,      "no-after-yes"           )                                                                \
    X(ANSWER_AFTER_END,  "answer-after-the-end"   ) /* of the mark */                                              \
    X(ANSWER_UNKNOWN,    "answer-unasked"         ) /* by what a catalog put back knows, or a recovery */          \
    X(REVIVED,           "dead-letter-revived"    ) /* by a late yes */                                            \
    X(ASKED_NOW,         "asked-before-due"       )                                                                \
    X(ASKER_CRASHED,     "crashed-after-asked"    ) /* before the answer was committed */                          \
    X(ASKER_LOST,        "lost-while-asking"      ) /* the mark was another one's when the answer came */          \
    X(GAVE_UP,           "service-given-up"       ) /* its time was over, or it will never say yes */              \
    X(KEPT_AGREED,       "kept-after-a-yes"       ) /* by a person */                                              \
    X(RESTORED_REFUSED,  "restored-from-refusal"  ) /* from a dead letter to which nobody has said yes */          \
    X(RECOVERED_AGREED,  "dead-by-a-recovery"     ) /* a yes, and a catalog that was put back */                   \
    X(BREAKER_OPENED,    "breaker-opened"         ) /* of one node's asker */                                      \
    X(BREAKER_CLOSED,    "breaker-closed"         )                                                                \
    X(STAYS_DEAD,        "refused-for-good"       ) /* a dead letter in the end */                                 \
    X(LIE,               "lying-if-match"         )                                                                \
    X(WINDOW_LOSS,       "window-loss"            ) /* the known remainder of level window */
/* clang-format on */

enum sim_sight {
#define X(kind, name) SIGHT_##kind,
    SIM_SIGHTS(X)
#undef X
        SIGHT_KINDS
};

const char *sim_fault_name(enum sim_fault kind);
const char *sim_sight_name(enum sim_sight kind);
/* FAULT_KINDS: no such one. */
enum sim_fault sim_fault_by_name(const char *name);

struct sim_faults {
    struct sim_random stream[FAULT_KINDS];
    int rate[FAULT_KINDS]; /* 0: not in this run */
    uint64_t met[FAULT_KINDS], seen[SIGHT_KINDS];
    bool on; /* false once the world is healed */
};

/* Which kinds this run has, and how often. `without`: bits of kinds that it shall not have,
 * whatever the seed says. */
void sim_faults_choose(struct sim_faults *faults, uint64_t seed, uint64_t without);
/* Whether this one happens now; counts it. */
bool sim_strikes(struct sim_faults *faults, enum sim_fault kind);

#endif
