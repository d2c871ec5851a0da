/* SPDX-License-Identifier: Apache-2.0 */
/* s3_steps.h - what the tests on a real S3 server share: a bucket of a test's own with a store on
 * it, made before it and gone after it. */
#ifndef RP_TESTS_S3_STEPS_H
#define RP_TESTS_S3_STEPS_H

#include "store_steps.h"

#include "lib/s3_bucket.h"
#include "store/s3/s3.h"

struct fixture {
    struct s3_bucket bucket;
    struct rp_backend *backend;
};

static inline struct rp_backend *store_of(void **state)
{
    return ((struct fixture *)*state)->backend;
}

static inline int open_unprobed(void **state, enum s3_bucket_kind kind)
{
    struct rp_error error = { 0 };
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    s3_bucket_make(&f->bucket, kind);
    ok(rp_s3_open(&f->bucket.options, &f->backend, &error));
    return 0;
}

static inline int open_probed(void **state, enum s3_bucket_kind kind)
{
    struct rp_error error = { 0 };
    struct rp_probed probed;
    (void)open_unprobed(state, kind);
    ok(store_of(state)->ops->probe(store_of(state), true, &probed, &error));
    return 0;
}

static inline int open_plain(void **state)
{
    return open_probed(state, S3_BUCKET_PLAIN);
}

static inline int open_versioned(void **state)
{
    return open_probed(state, S3_BUCKET_VERSIONED);
}

static inline int close_bucket(void **state)
{
    struct fixture *f = *state;
    rp_backend_close(f->backend);
    s3_bucket_drop(&f->bucket);
    free(f);
    return 0;
}

/* How many versions and markers begin with `prefix`: the bucket's own listing, up to one page. */
static inline size_t versions_in(struct fixture *f, const char *prefix)
{
    static char answer[1 << 20];
    const struct rp_pair query[] = { { "versions", "" }, { "prefix", prefix } };
    size_t n = 0;
    assert_int_equal(s3_bucket_request(&f->bucket, "GET", NULL, query, 2, NULL, 0, NULL, answer, sizeof answer), 200);
    for (const char *at = answer; (at = strstr(at, "<VersionId>")); at++)
        n++;
    return n;
}

#define ON_PLAIN(test)     cmocka_unit_test_setup_teardown(test, open_plain, close_bucket)
#define ON_VERSIONED(test) cmocka_unit_test_setup_teardown(test, open_versioned, close_bucket)

#endif
