/* SPDX-License-Identifier: Apache-2.0 */
/* stamps.h - which owner records are of this catalog's own making.
 *
 * An epoch is a number without a name: a catalog and its copy count alike, and one that raises
 * without writing its record counts further. So each raise draws a *stamp*, 64 random bits, which
 * stands in the record beside the epoch.
 *
 * L1  A stamp is committed with the epoch that it belongs to, before the record that carries it is
 *     written.
 * L2  A catalog knows, for each store, the stamp of the record last seen there and those drawn
 *     since. They and that record's epoch are one row of meta, so that they are read as of one
 *     moment.
 * L3  A record is of another history if its stamp is not known, unless its epoch is earlier than
 *     that of the record last seen: then another node has raised between the look at the record and
 *     the look at the catalog, and what it saw is no longer kept.
 * L4  A record without a stamp, and a catalog that has none, are from before there were stamps: the
 *     epoch alone speaks.
 * L5  Stamps belong to the catalog's row of a store. A record with a stamp of another row is that
 *     row's store, on which its holds, marks and files hang: it is not purged under this name. If
 *     this name has no stamps yet, the store was renamed in the configuration (rename.h); if it
 *     has, two were swapped there, or one has two names.
 * L6  At most RP_STAMPS_MAX are kept for a store. Beyond that the oldest that was never seen in a
 *     record goes; were that record written all the same, the store would be refused until
 *     `reprieve recover`.
 *
 * Why all of them and not the last one: docs/decisions/owner-record-in-place.md,
 * models/owner.pml. */
#ifndef RP_CORE_STAMPS_H
#define RP_CORE_STAMPS_H

#include "catalog/catalog.h"

#define RP_STAMPS_MAX 32

enum rp_stamp {
    RP_STAMP_UNKNOWN, /* L3 */
    RP_STAMP_OURS,
    RP_STAMP_OTHERS, /* L5: of another store of this catalog */
    RP_STAMP_RENAMED /* L5: the same, and this name has none */
};
/* Of a record that was looked at: its stamp ("": it has none) and epoch. To be asked after the
 * record was read. `other`: whose it is by L5; else 0. */
int rp_stamps_judge(struct rp_db *db, int64_t store_id, const char *stamp, int64_t epoch, enum rp_stamp *out,
                    int64_t *other, struct rp_error *err);
/* Whether the store has any. */
int rp_stamps_any(struct rp_db *db, int64_t store_id, bool *out, struct rp_error *err);
/* With the epoch's row locked. Draws a stamp; `seen` and `seen_epoch` are those of the record that
 * was looked at and found ours ("": none was). */
int rp_stamps_draw(struct rp_tx *tx, int64_t store_id, const char *seen, int64_t seen_epoch, char out[RP_STAMP_TEXT],
                   struct rp_error *err);

#endif
