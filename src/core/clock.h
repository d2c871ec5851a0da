/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - a clock that jumped is taken for right (catalog/clock.h says what a jump is).
 *
 * A1  Marks that the jump makes due, and that were made by the time before, are moved by its
 *     length: they keep their grace. What was made by a later time than the boot clock tells,
 *     before this boot, is due by right and stays.
 * A2  They are moved in batches while the jump stands and nothing is claimed. What was moved is
 *     out of its reach, so whoever is interrupted begins again. The last transaction looks once
 *     more, with every other writer waiting, and takes the clock for right. */
#ifndef RP_CORE_CLOCK_H
#define RP_CORE_CLOCK_H

#include "catalog/clock.h"

struct rp_clock_accept {
    const char *actor;
    bool as_is, dry_run;
    /* out */
    struct rp_clock_state before;
    bool stands;             /* the clock had jumped, or was set back: there is something to accept */
    int64_t made_due, moved; /* marks; with dry_run: that would be */
};
int rp_clock_accept(struct rp_catalog *catalog, struct rp_clock_accept *accept, struct rp_error *err);

#endif
