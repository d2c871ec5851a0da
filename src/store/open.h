/* SPDX-License-Identifier: Apache-2.0 */
/* open.h - the stores there are, and what each is opened with. */
#ifndef RP_STORE_OPEN_H
#define RP_STORE_OPEN_H

#include "store/backend.h"

int rp_fs_open(const char *root, bool create, struct rp_backend **out, struct rp_error *err);
/* Who is told that a server has said nothing for a while, and is waited for: from a thread of the
 * store's. */
struct rp_on_silence {
    void (*tell)(void *ctx, const char *endpoint, int64_t silent_ms);
    void *ctx;
};
struct rp_s3_options {
    const char *endpoint;                                /* "https://host[:port]"; "": AWS's of the region */
    const char *region, *bucket;                         /* region "": that of the vendor (wire/vendor.h) */
    const char *style;                                   /* "auto", "path" or "host" */
    const char *access_key, *secret_key, *session_token; /* "": looked for where AWS tools look (credentials.h) */
    const char *profile;                                 /* of the AWS files; "": AWS_PROFILE, else default */
    const char *ca_file;                                 /* "": the system's */
    int64_t requests_per_second;                         /* 0: no cap */
    int64_t timeout_ms;                                  /* of one attempt; 0: 30 s */
    int64_t patience_ms;                                 /* of one call with its repetitions; 0: 60 s */
    bool one_step_deletes; /* its owner vouches that If-Match on a DELETE is checked in one step with the delete */
    bool write_once;       /* keys are declared never to be overwritten: level exact until one is seen changed */
    struct rp_on_silence on_silence;
};
/* Reaches for nothing: the first call does. The strings are copied. */
int rp_s3_open(const struct rp_s3_options *options, struct rp_backend **out, struct rp_error *err);

#endif
