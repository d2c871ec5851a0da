/* SPDX-License-Identifier: Apache-2.0 */
/* vendor.h - how servers that speak S3 differ, as one table. Only what must be known before the first request, or cannot be
 * found out by trying, stands here; what a store guarantees is probed, never looked up (DESIGN section 5). */
#ifndef RP_STORE_S3_VENDOR_H
#define RP_STORE_S3_VENDOR_H

#include "base/arena.h"
#include "base/error.h"
#include "store/s3/wire/sign.h"

struct s3_vendor {
    const char *name;           /* "aws", "r2", "gcs", "b2", "minio", "ceph", "other" */
    const char *host_ends;      /* the endpoint's host ends so; NULL: recognised by `server` */
    const char *server;         /* the answer's Server header contains it; NULL: no such */
    const char *region;         /* where none is configured */
    bool path_style;            /* where style is auto */
    bool etag_bare_in_if_match; /* If-Match of a PUT wants the etag without quotes */
    bool list_token_raw;        /* NextContinuationToken is the last key as it is, whatever encoding-type says */
};
const struct s3_vendor *rp_s3_vendor_of_host(const char *host);
/* By the Server header of an answer, if the host told nothing; `known` otherwise. */
const struct s3_vendor *rp_s3_vendor_of_server(const struct s3_vendor *known, const char *server);
/* The same by its x-amz-request-id, where there is no Server header (Ceph 16 sends none): "tx...-...-1009-ZONE" is Ceph's. */
const struct s3_vendor *rp_s3_vendor_of_request_id(const struct s3_vendor *known, const char *id);

/* Endpoint, region, bucket and style of the options, checked (RP_ECONFIG says what is wrong and what is expected) and split. A bucket name
 * that cannot be part of a host name, or an endpoint that is an address, is addressed by path when style is auto. */
int rp_s3_target_of(const struct rp_s3_options *options, struct rp_arena *arena, struct s3_target *out,
                    const struct s3_vendor **vendor, struct rp_error *err);

#endif
