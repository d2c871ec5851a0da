/* SPDX-License-Identifier: Apache-2.0 */
/* seal.h - ids of events for tenants.
 *
 * A cursor counts the rows of the log, which are those of all tenants. So a tenant gets it
 * encrypted, and gives it back as it is; what was not sealed here is no id. The same cursor gives
 * the same id on every node (AES-256-CTR, its counter begins with the cursor's own HMAC). */
#ifndef RP_HTTP_LIVE_SEAL_H
#define RP_HTTP_LIVE_SEAL_H

#include "base/digest.h"
#include "feed/cursor.h"

#define RP_SEAL_BLOCK   64 /* a cursor's length tells little */
#define RP_SEAL_MAC     16
#define RP_LIVE_ID_TEXT (2 * (RP_SEAL_MAC + RP_FEED_CURSOR_TEXT + RP_SEAL_BLOCK) + 1)

struct rp_seal {
    bool on;
    uint8_t mac_key[RP_DIGEST_BYTES], key[RP_DIGEST_BYTES];
};

void rp_seal_init(struct rp_seal *seal, const char *secret); /* NULL: nothing is sealed */
const char *rp_seal_close(const struct rp_seal *seal, const char *cursor, char out[RP_LIVE_ID_TEXT]);
/* RP_EINVAL: nothing of ours. */
int rp_seal_open(const struct rp_seal *seal, const char *id, char cursor[RP_FEED_CURSOR_TEXT], struct rp_error *err);

#endif
