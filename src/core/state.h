/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the life of a mark. One function makes every move but the claim: it asserts the table, sets the row if it is
 * still as it was read, tallies, and writes the audit row.
 *
 *   marked    -> checking, purging   rp_marks_claim (one statement; recorded in the mark itself)
 *   marked    -> reprieved           a restore, a newer identity, a recovery
 *   checking  -> purging             every check said yes: the point of no return
 *   checking  -> marked              still referenced: looked at again later, and can be restored until then
 *   checking  -> reprieved           a recovery
 *   purging   -> purged              erased and verified, or nothing left of it
 *   checking, purging -> dead        attempts used up
 *   dead      -> checking, purging   retried, where it was
 *   dead      -> reprieved, lost     given up: from checking nothing was erased, from purging something may have been */
#ifndef RP_CORE_STATE_H
#define RP_CORE_STATE_H

#include "catalog/mark.h"

#include <jansson.h>

const char *rp_state_name(enum rp_state state);
bool rp_state_parse(const char *name, enum rp_state *out);
bool rp_state_may_move(enum rp_state from, enum rp_state to);
bool rp_state_final(enum rp_state state);
const char *rp_end_name(enum rp_end end);

/* `store` is the store's name, for the audit's words. Moves whose row was not as it was read are left undone
 * (move.done false): somebody else moved it first. */
int rp_state_move(struct rp_tx *tx, const char *store, const char *actor, struct rp_move *moves, size_t n,
                  struct rp_error *err);

/* {"subject":"store:key", ...}: how marks look in the audit log, in log lines and to people. */
json_t *rp_mark_json(const struct rp_mark *mark, const char *store);
/* The same, and what became of it: how lists show marks. */
json_t *rp_mark_line(const struct rp_mark *mark, const char *store);
/* "store:key" as JSON, whatever the bytes. */
json_t *rp_subject_json(const char *store, const char *key);

#endif
