/* SPDX-License-Identifier: Apache-2.0 */
/* recover.h - what a person can say of a store that is not this catalog's any more (owner.h): that
 * it is to be taken over, or that the catalog moved and lost nothing. Both refuse a store that is
 * another one of this catalog (rp_owner_refuse_others). */
#ifndef RP_CORE_RECOVER_H
#define RP_CORE_RECOVER_H

#include "core/owner/owner.h"

struct rp_recovery {
    struct rp_owner before;
    /* Waiting marks of the store, and how their objects stand; not_seen: it could not be found
     * out. */
    int64_t waiting, present, changed, missing, not_seen;
    int64_t reprieved;
};

/* Takes the store over. A restore that was acknowledged after the backup cannot be seen in it, so
 * every waiting mark of the store is reprieved; but those of files and of copies in quarantine,
 * which must be cleaned up some day, wait for their whole time again. Marks already purging go on
 * (their intent was final). Then the record is ours, one epoch later than either side; RP_ENOTOWNER
 * if it is another's than the one that was looked at. */
int rp_owner_recover(struct rp_catalog *catalog, struct rp_store *store, const char *environment, const char *actor,
                     bool dry_run, struct rp_recovery *out, struct rp_error *err);

/* The catalog moved and lost nothing: notes its vessel, and raises the epoch, so that the copy it
 * came from falls behind. RP_ENOTOWNER if anything but the vessel speaks against it: then something
 * was lost, and a recovery is due. */
int rp_owner_accept_move(struct rp_catalog *catalog, struct rp_store *store, const char *environment, const char *actor,
                         struct rp_owner *before, struct rp_error *err);

#endif
