/* SPDX-License-Identifier: Apache-2.0 */
/* owner.h - whose store is it? The object .reprieve/owner names the catalog, its epoch and that
 * epoch's stamp.
 *
 * O1  A store is purged only by the catalog that its record names, and only if that catalog's epoch
 *     is not behind the record's, and it is the catalog itself that drew the record's stamp
 *     (stamps.h). Otherwise the catalog is a clone or was restored from a backup: RP_ENOTOWNER
 *     until `reprieve recover`.
 * O2  The epoch is raised in the catalog first, then in the store: a crash between leaves the
 *     catalog ahead, which is fine.
 * O3  A record that was there and is gone is not ours any more: an empty mount point must not look
 *     like an empty store.
 * O4  In mode observe nothing is read or written here. When the epoch is raised: raise.h.
 * O5  A record is written over the very record that was looked at, or where none was (RP_PUT_OVER,
 *     RP_PUT_NEW): whoever took the store over meanwhile stays its owner, an empty place that the
 *     store's name leads to meanwhile stays empty, and no epoch is replaced by a lower one. What
 *     remains where a bucket knows no such condition: docs/guarantees.md.
 * O6  The catalog's epoch does not go back between a look at the record and the claim, or the
 *     raise, that relies on it: one that did was put back in its place meanwhile, and what the look
 *     found was another catalog. Compared in the transaction itself. What remains: only another
 *     node has raised the epoch since the look, and all of that was undone. */
#ifndef RP_CORE_OWNER_H
#define RP_CORE_OWNER_H

#include "catalog/catalog.h"
#include "core/store.h"

/* Where more than one is so, the first in this order is said:
 *   GONE, DAMAGED; of no record, MOVED before NONE   nothing else can be asked
 *   FOREIGN           epochs and stamps of two catalogs do not compare
 *   AHEAD             the catalog has forgotten what it did last, stamps among it. It comes before
 *                     SWAPPED, which a person may settle with `recover --moved`: that keeps the
 *                     marks, and one of a catalog that was rolled back may be of what was saved since
 *   FORKED, SWAPPED, RENAMED   a stamp is one of them at most (stamps.h)
 *   MOVED             a known stamp in another vessel: nothing need be lost
 *   ELSEWHERE         all else is as it should be */
enum rp_ownership {
    RP_OWNER_NONE, /* no record, and we never wrote one */
    RP_OWNER_OURS,
    RP_OWNER_GONE,      /* no record, but we wrote one once */
    RP_OWNER_FOREIGN,   /* another catalog's */
    RP_OWNER_AHEAD,     /* ours, but of a later epoch than the catalog's: it was rolled back */
    RP_OWNER_MOVED,     /* ours, but the catalog is found in another vessel (vessel.h) */
    RP_OWNER_FORKED,    /* ours by name, but with a stamp that this catalog never drew: a copy's, or of
                       * what this one is a copy of */
    RP_OWNER_SWAPPED,   /* ours, but of another store of this catalog (stamps.h, L5) */
    RP_OWNER_RENAMED,   /* the same, under a name that has written nothing yet (rename.h) */
    RP_OWNER_ELSEWHERE, /* ours, but of another environment: staging made from production's dump */
    RP_OWNER_DAMAGED
};
const char *rp_ownership_text(enum rp_ownership ownership);
/* Nothing need be lost: a person may say that it is ours all the same (rp_owner_accept_move). */
bool rp_ownership_is_moved(enum rp_ownership ownership);
/* Of another store of this catalog, whose holds, marks and files do not cover this name. */
bool rp_ownership_is_others(enum rp_ownership ownership);

struct rp_owner {
    enum rp_ownership ownership;
    char catalog[64], environment[64]; /* of the record */
    int64_t epoch, catalog_epoch, written_at_ms;
    char stamp[RP_STAMP_TEXT]; /* "": it is of a release that wrote none */
    int64_t other;             /* rp_ownership_is_others: the store that it is, and its name */
    char other_name[RP_STORE_NAME];
    bool there; /* a record, of whatever kind; then which one it is: */
    struct rp_identity identity;
};

/* Looks, changes nothing. RP_ENOTOWNER if the store was renamed since this process has opened
 * it. */
int rp_owner_look(struct rp_catalog *catalog, struct rp_store *store, struct rp_owner *out, struct rp_error *err);
/* O6: RP_ENOTOWNER if the catalog is at an earlier epoch than a look has seen
 * (rp_catalog.looked_epoch). */
int rp_owner_check_epoch(struct rp_tx *tx, const struct rp_store *store, int64_t seen_epoch, struct rp_error *err);
/* May this catalog purge there? Looks, changes nothing; RP_ENOTOWNER with what to do otherwise. */
int rp_owner_check(struct rp_catalog *catalog, struct rp_store *store, struct rp_error *err);
/* The same, and writes our record: the first one, or one with a raised epoch (with `lazily` not if
 * that was done for this store within the last minute). RP_ENOTOWNER also if that became true
 * meanwhile. Nodes of one catalog that raise it at the same moment do not fail each other: the
 * highest epoch stays. */
int rp_owner_write(struct rp_catalog *catalog, struct rp_store *store, const char *environment, bool lazily,
                   struct rp_error *err);

/* Because somebody said so (recover.h): notes the vessel, leaves the audit row, and writes our
 * record over the one that was seen, one epoch later than either side. RP_ENOTOWNER if that is
 * another's by now. */
struct rp_audit_entry;
int rp_owner_write_over(struct rp_catalog *catalog, struct rp_store *store, const char *environment,
                        const struct rp_owner *seen, const struct rp_audit_entry *entry, struct rp_error *err);

#endif
