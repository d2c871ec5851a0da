/* SPDX-License-Identifier: Apache-2.0 */
/* span.h - a page of a listing, asked for and read: the only place that lists. */
#ifndef RP_STORE_S3_SPAN_H
#define RP_STORE_S3_SPAN_H

#include "store/s3/s3.h"

#define S3_SPAN_MAX 1000
#define S3_SPAN_ALL "1000"

/* Up to `keys` keys with this prefix, after `after` (and after_version of it: versions only) or
 * from where the token leads, each handed to fn in order. All borrowed; NULL or "": none. */
struct s3_span {
    bool versions;
    bool any_order; /* nothing follows from what is left out: some servers list all markers after all versions */
    const char *prefix, *after, *after_version, *token;
    const char *keys; /* NULL: S3_SPAN_MAX */
    s3_listed_fn *fn;
    void *ctx;
};
#define S3_NUMBER 24
void rp_s3_span_keys(size_t wanted, char out[S3_NUMBER]); /* S3_SPAN_MAX at most */
struct s3_call rp_s3_span_call(const struct s3_span *span);
int rp_s3_span_read(struct rp_s3 *s3, const struct s3_span *span, struct s3_call *call, struct s3_page *page,
                    struct rp_error *err);
/* Both of them for one page. */
int rp_s3_span(struct rp_s3 *s3, const struct s3_span *span, struct s3_page *page, struct rp_error *err);
/* A text shortly before this key, so that a listing after it begins with the key. */
void rp_s3_before(const char *key, char out[RP_KEY_MAX + 1]);

#endif
