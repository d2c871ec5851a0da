/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h - what the catalog remembers of each store's owner record, under these names (meta). */
#ifndef RP_CORE_OWNER_FACTS_H
#define RP_CORE_OWNER_FACTS_H

#include <inttypes.h>
#include <stdio.h>

#define RP_OWNER_RAISED "epoch_raised_at:" /* when the epoch was raised for this store */
#define RP_OWNER_STAMPS "stamps:"          /* stamps.h, L2 */
#define RP_OWNER_VESSEL "vessel:"          /* vessel.h */

#define RP_OWNER_FACT_MAX 40
static inline const char *rp_owner_fact(const char *name, int64_t store_id, char out[RP_OWNER_FACT_MAX])
{
    snprintf(out, RP_OWNER_FACT_MAX, "%s%" PRId64, name, store_id);
    return out;
}

#endif
