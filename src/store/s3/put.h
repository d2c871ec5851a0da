/* SPDX-License-Identifier: Apache-2.0 */
/* put.h - a put as it was asked for, and what came of it. */
#ifndef RP_STORE_S3_PUT_H
#define RP_STORE_S3_PUT_H

#include "store/s3/s3.h"

struct s3_put {
    struct rp_s3 *s3;
    const char *key;
    int flags;
    struct rp_identity over; /* RP_PUT_OVER: what may be replaced */
    int64_t size_bytes;
    int64_t begun_ms; /* whole seconds of the server's clock, as its dates are; 0: not known */
};

/* RP_PUT_OVER: a look at what stands there. A request that was `refused` was so because of it:
 * servers say 412 of what is absent as well. */
int rp_s3_put_expect_over(const struct s3_put *p, bool refused, struct rp_error *err);
/* `r` is what the request came to that made the object; `etag` is the object's as the answer says,
 * or by our own reckoning ("": cannot be foretold). `out` may be NULL. */
int rp_s3_put_conclude(const struct s3_put *p, const struct s3_call *call, int r, const char *etag,
                       struct rp_identity *out, struct rp_error *err);

#endif
