/* SPDX-License-Identifier: Apache-2.0 */
/* key.h - how long keys are, and which are ours in every store. Here because the catalog knows
 * them too. */
#ifndef RP_BASE_KEY_H
#define RP_BASE_KEY_H

#include <stdbool.h>
#include <string.h>

#define RP_KEY_MAX 1024 /* bytes of a key in a store */

#define RP_STORE_OWN        ".reprieve/"            /* our prefix in every store */
#define RP_STORE_OWNER      ".reprieve/owner"       /* the owner record */
#define RP_STORE_RESERVE    ".reprieve/reserve"     /* of a directory (core/room.h) */
#define RP_STORE_QUARANTINE ".reprieve/quarantine/" /* + mark id */

/* Also of a prefix: all under it are ours. */
static inline bool rp_key_is_own(const char *key)
{
    return strncmp(key, RP_STORE_OWN, sizeof RP_STORE_OWN - 1) == 0;
}

/* Whether a copy in quarantine stands under the key. */
static inline bool rp_quarantine_is(const char *key)
{
    return strncmp(key, RP_STORE_QUARANTINE, sizeof RP_STORE_QUARANTINE - 1) == 0;
}

#endif
