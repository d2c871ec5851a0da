/* SPDX-License-Identifier: Apache-2.0 */
/* refuse.h - why this catalog does not purge a store, in words, with what a person can do. Each is
 * RP_ENOTOWNER. */
#ifndef RP_CORE_OWNER_REFUSE_H
#define RP_CORE_OWNER_REFUSE_H

#include "core/owner/owner.h"

/* What a look found; not of a store that is ours or nobody's. */
int rp_owner_refuse(const struct rp_owner *owner, const struct rp_store *at, struct rp_error *err);
/* The catalog is in another vessel (vessel.h). */
int rp_owner_refuse_vessel(const struct rp_store *at, struct rp_error *err);
/* O6 */
int rp_owner_refuse_gone_back(const struct rp_store *at, int64_t seen_epoch, int64_t epoch, struct rp_error *err);

#endif
