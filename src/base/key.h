/* SPDX-License-Identifier: Apache-2.0 */
/* key.h - keys that are ours in every store. Here because the catalog's statements name them
 * too. */
#ifndef RP_BASE_KEY_H
#define RP_BASE_KEY_H

#define RP_STORE_OWN        ".reprieve/"            /* our prefix in every store */
#define RP_STORE_OWNER      ".reprieve/owner"       /* the owner record */
#define RP_STORE_RESERVE    ".reprieve/reserve"     /* of a directory (core/room.h) */
#define RP_STORE_QUARANTINE ".reprieve/quarantine/" /* + mark id */

#endif
