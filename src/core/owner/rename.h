/* SPDX-License-Identifier: Apache-2.0 */
/* rename.h - a store that was renamed in the configuration keeps what hangs on it.
 *
 * The catalog knows a store by its name there. A new name is a new row, on which no hold, no mark
 * and no file hangs: the owner record tells (stamps.h, L5), and nothing is purged. A rename gives
 * the new name to the old row instead; everything else is by the row's number.
 *
 * E1  A row that has the new name already, because somebody opened the store meanwhile, goes, if
 *     nothing hangs on it. Else the rename is refused: two stores are not made one.
 * E2  Its number is never given out again, and whoever has it in memory is refused: an owner record
 *     is not looked at, nothing is claimed, and no mark, file or hold is born with it
 *     (rp_store_share, which waits for a rename that is under way).
 * E3  Whether it is the same bucket is not asked here: the owner record says so at the next
 *     look. */
#ifndef RP_CORE_RENAME_H
#define RP_CORE_RENAME_H

#include "catalog/writer/writer.h"

/* RP_ENOTFOUND: no store has the old name. RP_ECONFLICT: E1. */
struct rp_rename_command {
    struct rp_command command;
    const char *from, *to;
    bool dry_run; /* only asks whether it would be done */
};
extern const struct rp_verb rp_verb_store_rename;

#endif
