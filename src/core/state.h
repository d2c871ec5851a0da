/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the life of a mark. Every birth, every extension and every move is made here: the row
 * is changed if it is still as it was read, it is counted, and its audit row is written.
 *
 *   (nothing) -> marked              rp_state_birth
 *   marked    -> marked, due later   rp_state_extend
 *   marked    -> checking, purging   rp_state_claim (recorded in the mark itself, without an audit
 *                                    row)
 *   purging   -> purging, leased     rp_state_renew (the same)
 *   marked, checking, purging, and nobody looks at it -> looked at again   rp_state_watch
 *   marked    -> reprieved           a restore, a newer identity, a recovery
 *   checking  -> checking            a service is asked, or was (core/confirm)
 *   checking  -> purging             every check said yes: the point of no return
 *   checking  -> marked              still referenced: asked again later, and can be restored
 *                                    until then
 *   checking  -> reprieved           a recovery; a newer upload was seen before a service was asked
 *   purging   -> purged              erased and verified, or nothing left of it
 *   purging   -> reprieved           a newer upload stands under the key of an object
 *   checking, purging -> dead        attempts used up
 *   dead      -> checking, purging   retried, where it was; or a late yes
 *   dead      -> reprieved           given up from checking: nothing was erased
 *   dead      -> lost                given up from purging: something may have been erased
 *
 * T1  The due time of a birth comes from due.h, and is stored.
 * T2  A change whose row is not as it was read is left undone, and says so: somebody else was
 *     first.
 * T3  A change that a file's audit row tells of (or, of a copy in quarantine, its original's) has
 *     none of its own.
 * T4  Whatever ends a mark by a reprieve, or makes it due later, keeps something alive, and is
 *     noted so (catalog.h, K6). A newer upload that a purge has met lives by itself: a catalog that
 *     forgot this would meet it again.
 * T5  What waits for confirmations is claimed by whoever asks for them, and never purged: NO-EARLY
 *     and the checks are asked by the sweep that claims it afterwards.
 * T6  Once a service has said yes a mark does not go back to `marked`. */
#ifndef RP_CORE_STATE_H
#define RP_CORE_STATE_H

#include "catalog/mark/mark.h"

#include <jansson.h>

/* All states for people, in order; a test holds the three together. */
#define RP_STATE_NAMES_TEXT "marked, checking, purging, purged, reprieved, dead or lost"
#define RP_STATE_WORDS(X)                                                                                              \
    X("marked", "it waits until it is due; a restore takes it back")                                                   \
    X("checking", "references are counted or outside services asked; nothing is erased, a restore is too late")        \
    X("purging", "its object is being erased or moved to quarantine; a restore is too late")                           \
    X("purged", "that is done, or it was gone already; a restore brings it back from quarantine")                      \
    X("reprieved", "it ended without a purge: restored, confirmed, replaced or given up")                              \
    X("dead", "a dead letter: a person must decide")                                                                   \
    X("lost", "given up after its purge had begun: something of it may be erased")
extern const char *const rp_state_names[RP_STATES]; /* in order of their numbers, then NULL */
const char *rp_state_name(enum rp_state state);
bool rp_state_parse(const char *name, enum rp_state *out);
bool rp_state_may_move(enum rp_state from, enum rp_state to);
const char *rp_end_name(enum rp_end end);

/* Who makes a change, and in which store: the words of audit rows. */
#define RP_EVENT_ORPHAN "orphan.detected" /* something that was lost is brought back (core/safety_net) */
struct rp_state_by {
    const char *store; /* its name */
    const char *actor; /* where a change does not name its own */
    bool told;         /* T3: another audit row tells of it */
};

/* Marks as they are to be. What is 0 is filled in: id, marked_at_ms (now), etag and version (""),
 * state. RP_ECONFLICT: another writer has marked one of the subjects meanwhile. RP_ENOTOWNER: a
 * store is not in the catalog any more (core/owner/rename.h). */
int rp_state_birth(struct rp_tx *tx, const struct rp_state_by *by, struct rp_mark *marks, size_t n,
                   struct rp_error *err);
/* catalog.h, K8: whoever changes marks has locked their tenants. */
int rp_state_lock_tenants(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err);
/* Later due times; extends[i].done says which were made. */
int rp_state_extend(struct rp_tx *tx, const struct rp_state_by *by, struct rp_extend *extends, size_t n,
                    struct rp_error *err);
/* Marks that are due become this worker's (NO-EARLY is asserted; those that wait for confirmations
 * may be asked about before). */
int rp_state_claim(struct rp_tx *tx, const struct rp_claim *claim, struct rp_marks *out, struct rp_error *err);
/* A claim whose outcome is not known, made at `db_ms`: if it was made, its marks are due again at
 * once. */
int rp_state_unclaim(struct rp_tx *tx, const struct rp_claim *claim, int64_t db_ms, struct rp_error *err);
/* Later ends of the leases of marks in `purging`; `renewed`: how many were still this worker's. */
int rp_state_renew(struct rp_tx *tx, const struct rp_mark *const *marks, size_t n, int64_t lease_ms, size_t *renewed,
                   struct rp_error *err);
/* moves[i].done says which were made. */
int rp_state_move(struct rp_tx *tx, const struct rp_state_by *by, struct rp_move *moves, size_t n,
                  struct rp_error *err);
/* The same where each must be made: RP_ECONFLICT if one is not. */
int rp_state_move_all(struct rp_tx *tx, const struct rp_state_by *by, struct rp_move *moves, size_t n,
                      struct rp_error *err);

/* A mark in marked, checking or purging that nobody will look at: it is due again now, or when its
 * promise says. `what` was wrong, for the audit row. */
int rp_state_watch(struct rp_tx *tx, const struct rp_state_by *by, struct rp_mark *mark, const char *what,
                   struct rp_error *err);
/* A dead mark whose letter is not there gets one. */
int rp_state_write_letter(struct rp_tx *tx, const struct rp_state_by *by, const struct rp_mark *mark, const char *what,
                          struct rp_error *err);

/* {"mark":"mrk_...","subject":"store:key", ...}: what something else says of a mark: a row of the
 * audit log, a log line, the answer to a change. */
json_t *rp_mark_json(const struct rp_mark *mark, const char *store);
/* {"id":"mrk_...", ...}: the mark itself and what became of it, as lists show it. */
json_t *rp_mark_line(const struct rp_mark *mark, const char *store);
/* "store:key" as JSON, whatever the bytes. */
json_t *rp_subject_json(const char *store, const char *key);

#endif
