/* SPDX-License-Identifier: Apache-2.0 */
/* refuse.h - why this catalog does not purge a store, or make anything in it, in words, with what a
 * person can do. Each is RP_ENOTOWNER unless it says otherwise. */
#ifndef RP_CORE_OWNER_REFUSE_H
#define RP_CORE_OWNER_REFUSE_H

#include "core/owner/owner.h"

/* What a look found; not of a store that is ours or nobody's. */
int rp_owner_refuse(const struct rp_owner *owner, const struct rp_store *at, struct rp_error *err);
/* The catalog is in another vessel (vessel.h). */
int rp_owner_refuse_vessel(const struct rp_store *at, struct rp_error *err);
/* O6 */
int rp_owner_refuse_gone_back(const struct rp_store *at, int64_t seen_epoch, int64_t epoch, struct rp_error *err);

/* Neither recovery takes a store over that is another one of this catalog (rp_ownership_is_others)
 * as long as holds or files hang on that: they would not cover it. Nor ever one that was only
 * renamed: rename.h keeps all of it. RP_ENOTOWNER; 0 of any other store. */
int rp_owner_refuse_others(struct rp_catalog *catalog, const struct rp_store *store, const struct rp_owner *owner,
                           struct rp_error *err);

/* ---- by what the process knows of a store (raise.h); 0 where nothing is known ---- */

/* R7: RP_EUNAVAILABLE, and what to do. */
int rp_owner_refuse_bytes(const struct rp_store *store, struct rp_error *err);
/* The same, when the record was looked for just now. It is missed only where it was ours before. */
int rp_owner_refuse_gone(const struct rp_store *store, enum rp_outcome record, struct rp_error *err);
/* R9: if the record is known to be another store's of this catalog. */
int rp_owner_refuse_name(const struct rp_store *store, struct rp_error *err);

#endif
