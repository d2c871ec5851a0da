/* SPDX-License-Identifier: Apache-2.0 */
/* quarantine.h - where a purge in mode quarantine puts things: a copy under
 * .reprieve/quarantine/MARK, which has a mark of its own, due when the quarantine's time is
 * over. Where the store can hide an object there is no copy, and the mark has the same name: it is
 * `in_place`. */
#ifndef RP_CORE_SUBJECT_QUARANTINE_H
#define RP_CORE_SUBJECT_QUARANTINE_H

#include "base/id.h"
#include "base/key.h"
#include "catalog/mark/mark.h"
#include "store/backend.h"

#include <stdbool.h>
#include <stdint.h>

#define RP_REASON_RETURNED "returned from quarantine" /* of the mark of a copy that was */

#define RP_QUARANTINE_KEY (sizeof RP_STORE_QUARANTINE + RP_ID_TEXT)

/* Where the copy of this mark's subject stands. */
const char *rp_quarantine_key(int64_t mark_id, char out[RP_QUARANTINE_KEY]);
/* The mark whose copy stands under this key; false: it is no such key. */
bool rp_quarantine_original(const char *key, int64_t *mark_id);
/* The mark of a mark's copy in quarantine: the active one - or, once the copy was returned under
 * its key, the one that ended with that (reprieved). RP_ENOTFOUND: there is no copy. */
int rp_quarantine_mark(struct rp_db *db, const struct rp_mark *mark, struct rp_arena *arena, struct rp_mark *out,
                       struct rp_error *err);
/* A copy that has done its work, and only waits to be erased. */
bool rp_quarantine_is_returned(const struct rp_mark *mark);
/* Whether the bytes of a copy stand under the key already, and as what: a restore that ended
 * right after its copy. */
bool rp_quarantine_stands(struct rp_backend *backend, const struct rp_mark *copy, const char *key,
                          struct rp_identity *as);

#endif
