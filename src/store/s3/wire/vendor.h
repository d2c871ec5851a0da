/* SPDX-License-Identifier: Apache-2.0 */
/* vendor.h - how servers that speak S3 differ, as one table. Only what must be known before the
 * first request, or cannot be found out by trying, stands here; what a store guarantees is probed
 * all the same (DESIGN section 5): what stands here never replaces a probe. */
#ifndef RP_STORE_S3_VENDOR_H
#define RP_STORE_S3_VENDOR_H

#include "base/arena.h"
#include "base/error.h"
#include "store/open.h"
#include "store/s3/wire/sign.h"

struct s3_vendor {
    const char *name;      /* "aws", "r2", "gcs", "b2", "wasabi", "other" */
    const char *host_ends; /* the endpoint's host ends so; NULL: any other */
    const char *region;    /* where none is configured; NULL: it must be */
    bool path_style;       /* where style is auto */
    /* What its answers say as Server; a server that says so checks If-Match of a DELETE and deletes
     * in one step. NULL: nobody has said so of this one. */
    const char *one_step_server;
};
const struct s3_vendor *rp_s3_vendor_of_host(const char *host);
/* Whether the server at this host, whose answers say this as Server, is known to check If-Match of
 * a DELETE and to delete in one step. By host and header: other servers call themselves the
 * same. */
bool rp_s3_deletes_in_one_step(const char *host, const char *server);
/* Endpoint, region, bucket and style of the options, checked (RP_ECONFIG says what is wrong and
 * what is expected) and split. A bucket name that cannot be part of a host name, or an endpoint
 * that is an address, is addressed by path when style is auto. */
int rp_s3_target_of(const struct rp_s3_options *options, struct rp_arena *arena, struct s3_target *out,
                    struct rp_error *err);

#endif
