/* SPDX-License-Identifier: Apache-2.0 */
/* s3_bucket.h - a bucket of a test's own, and its end with all that is in it: every version, every
 * marker, every unfinished upload.
 *
 * The gateway comes from RP_TEST_S3, RP_TEST_S3_ACCESS and RP_TEST_S3_SECRET (tests/lib/with-ceph
 * sets them). Without them the test process ends with a failure: a contract that was not checked is
 * not kept. What fails in here ends the test. */
#ifndef RP_TESTS_LIB_S3_BUCKET_H
#define RP_TESTS_LIB_S3_BUCKET_H

#include "store/open.h"

struct s3_bucket {
    char name[64];
    struct rp_s3_options options; /* for rp_store_s3_open; strings are borrowed from here and the environment */
};

enum s3_bucket_kind { S3_BUCKET_PLAIN, S3_BUCKET_VERSIONED };
/* `b` must not move afterwards. */
void s3_bucket_make(struct s3_bucket *b, enum s3_bucket_kind kind);
void s3_bucket_versioning(const struct s3_bucket *b, const char *status); /* "Enabled" or "Suspended" */
void s3_bucket_empty(const struct s3_bucket *b);
void s3_bucket_drop(struct s3_bucket *b);
/* n objects PREFIX00000, PREFIX00001, ... of one byte, many at once. prefix NULL: n uploads of the
 * key "k". */
void s3_bucket_fill(const struct s3_bucket *b, const char *prefix, size_t n);
/* A request of the test's own, beside the store: the status, the answer's first bytes in `answer`
 * (may be NULL). */
int s3_bucket_request(const struct s3_bucket *b, const char *method, const char *key, const struct rp_pair *query,
                      size_t n_query, const struct rp_pair *headers, size_t n_headers, const char *body, char *answer,
                      size_t size);

#endif
