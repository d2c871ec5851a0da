/* SPDX-License-Identifier: Apache-2.0 */
/* store_backends.h - every backend of the store port, and a fresh store of the one that is
 * tried. */
#ifndef RP_TESTS_STORE_BACKENDS_H
#define RP_TESTS_STORE_BACKENDS_H

#include "store_steps.h"

#include <time.h>

#include "lib/s3_bucket.h"
#include "lib/stores.h"

static struct rp_error error;

struct backend {
    const char *name;
    enum rp_level level;
    bool faulty; /* wrapped by a fault injector that never fails */
    bool directory;
    bool s3;
    enum s3_bucket_kind bucket;
    bool whole_seconds; /* identical bytes within one second have one identity (T2) */
    bool keeps_old;     /* what was overwritten can still be removed, by its identity */
    bool by_tags;       /* annotates by tags: no other field can be changed */
};

static const struct backend backends[] = {
    { .name = "fs", .level = RP_LEVEL_ETAG, .directory = true },
    { .name = "memory", .level = RP_LEVEL_EXACT },
    { .name = "memory behind a fault wrapper without faults", .level = RP_LEVEL_EXACT, .faulty = true },
    { .name = "s3 without versions", .level = RP_LEVEL_WINDOW, .s3 = true, .whole_seconds = true, .by_tags = true },
    { .name = "s3 with versions",
      .level = RP_LEVEL_VERSION,
      .s3 = true,
      .bucket = S3_BUCKET_VERSIONED,
      .keeps_old = true,
      .by_tags = true },
};

static const struct backend *backend;

struct fixture {
    struct rp_backend *backend, *inner;
    char root[64];
    struct s3_bucket bucket;
};

static inline int no_fault(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    (void)ctx, (void)call, (void)key, (void)err;
    return 0;
}

/* One bucket for all tests of a backend, emptied after each. Probed, for what a store may rely on
 * it knows from that. */
static struct fixture in_bucket;

static inline int open_s3(void **state)
{
    struct rp_probed probed;
    (void)state;
    if (!backend->s3) return 0;
    s3_bucket_make(&in_bucket.bucket, backend->bucket);
    ok(rp_s3_open(&in_bucket.bucket.options, &in_bucket.backend, &error));
    ok(rp_backend_probe(in_bucket.backend, true, &probed, &error));
    return 0;
}

static inline int close_s3(void **state)
{
    (void)state;
    if (!backend->s3) return 0;
    rp_backend_close(in_bucket.backend);
    s3_bucket_drop(&in_bucket.bucket);
    return 0;
}

static inline int open_store(void **state)
{
    if (backend->s3) {
        *state = &in_bucket;
        return 0;
    }
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (backend->directory) {
        tree_make(f->root, sizeof f->root, "/tmp");
        ok(rp_fs_open(f->root, false, &f->backend, &error));
        return 0;
    }
    ok(rp_memory_open(&f->backend, &error));
    if (backend->faulty) {
        const struct rp_backend_fault fault = { no_fault, no_fault, NULL };
        f->inner = f->backend;
        ok(rp_backend_fault_wrap(f->inner, &fault, &f->backend, &error));
    }
    return 0;
}

static inline int close_store(void **state)
{
    struct fixture *f = *state;
    if (backend->s3) {
        s3_bucket_empty(&f->bucket);
        return 0;
    }
    rp_backend_close(f->backend);
    rp_backend_close(f->inner);
    if (f->root[0]) tree_remove(f->root);
    free(f);
    return 0;
}

static inline struct rp_backend *store_of(void **state)
{
    return ((struct fixture *)*state)->backend;
}

/* What remove() says of an identity that was overwritten. Either way the newer one stays. */
static inline enum rp_outcome overwritten(void)
{
    return backend->keeps_old ? RP_OUT_DELETED : RP_OUT_CHANGED;
}

/* The second in which the store puts what is put now. */
static inline int64_t second_of(struct rp_backend *s)
{
    static const char key[] = RP_STORE_OWN "second";
    struct rp_identity made = put_text(s, key, "");
    assert_int_equal(remove_one(s, key, &made), RP_OUT_DELETED);
    return made.modified_ms;
}

/* Returns when an upload of the same bytes can be told from the last one: at once, or in the next
 * second of the store's clock (T2). */
static inline void until_told_apart(struct rp_backend *s)
{
    const struct timespec pause = { .tv_nsec = 20000000 };
    int64_t begun, now;
    if (!backend->whole_seconds) return;
    begun = second_of(s);
    do {
        nanosleep(&pause, NULL);
        now = second_of(s);
    } while (now == begun);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, open_store, close_store)

/* The last line of main: the backends here, or those in a bucket. */
#define ON_EVERY_BACKEND(tests, buckets)                                                                               \
    int failed = 0;                                                                                                    \
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {                                                  \
        backend = &backends[i];                                                                                        \
        if (backend->s3 != (buckets)) continue;                                                                        \
        failed += cmocka_run_group_tests_name(backend->name, tests, open_s3, close_s3);                                \
    }                                                                                                                  \
    return failed

#endif
