/* SPDX-License-Identifier: Apache-2.0 */
/* erase.h - deletes as they are sent, and what the server says to each. */
#ifndef RP_STORE_S3_ERASE_H
#define RP_STORE_S3_ERASE_H

#include "store/s3/s3.h"

/* S3_BY_VERSION: identity.version, "null" for the one without. S3_BY_ETAG: identity.etag, by
 * If-Match. */
enum s3_by { S3_BY_KEY, S3_BY_VERSION, S3_BY_ETAG };
/* Sends the deletes. Outcomes are what the server said: deleted, gone (no such key), changed (the
 * etag did not fit), denied, retry (refused), unknown. By key where versions are kept: deleted, and
 * identity.version is the marker that was made ("": the server does not tell); gone, if the server
 * names markers and named none here: the key was hidden already. Negative: a failure of the store
 * as a whole; the items are then retry or unknown. Each key (and version) once. The gate as T11 of
 * backend.h says. */
int rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, const struct rp_gate *gate,
                struct rp_error *err);
static inline bool rp_s3_is_away(enum rp_outcome said)
{
    return said == RP_OUT_DELETED || said == RP_OUT_GONE;
}

/* Sends XML. Servers want to see that such a body arrived whole: by MD5 or, where that is forbidden
 * here, the newer way. `sum` outlives the call. */
struct s3_sum {
    char text[64];
    struct rp_pair headers[2];
};
void rp_s3_send_xml(struct s3_call *call, const struct rp_buf *body, struct s3_sum *sum);

#endif
