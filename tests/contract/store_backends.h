/* SPDX-License-Identifier: Apache-2.0 */
/* store_backends.h - every backend of the store port, and a fresh store of the one that is tried. */
#ifndef RP_TESTS_STORE_BACKENDS_H
#define RP_TESTS_STORE_BACKENDS_H

#include "store_steps.h"

static struct rp_error error;

struct backend {
    const char *name;
    enum rp_level level;
    bool faulty; /* wrapped by a fault injector that never fails */
    bool directory;
};

static const struct backend backends[] = {
    { .name = "fs", .level = RP_LEVEL_ETAG, .directory = true },
    { .name = "memory", .level = RP_LEVEL_EXACT },
    { .name = "memory behind a fault wrapper without faults", .level = RP_LEVEL_EXACT, .faulty = true },
};

static const struct backend *backend;

struct fixture {
    struct rp_store *store, *inner;
    char root[64];
};

static inline int no_fault(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    (void)ctx, (void)call, (void)key, (void)err;
    return 0;
}

static inline int open_store(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    if (backend->directory) {
        tree_make(f->root, sizeof f->root, "/tmp");
        ok(rp_store_fs_open(f->root, false, &f->store, &error));
        return 0;
    }
    ok(rp_store_memory_open(&f->store, &error));
    if (backend->faulty) {
        const struct rp_store_fault fault = { no_fault, no_fault, NULL };
        f->inner = f->store;
        ok(rp_store_fault_wrap(f->inner, &fault, &f->store, &error));
    }
    return 0;
}

static inline int close_store(void **state)
{
    struct fixture *f = *state;
    rp_store_close(f->store);
    rp_store_close(f->inner);
    if (f->root[0]) tree_remove(f->root);
    free(f);
    return 0;
}

static inline struct rp_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, open_store, close_store)

/* The last line of main. */
#define ON_EVERY_BACKEND(tests)                                                                                        \
    int failed = 0;                                                                                                    \
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {                                                  \
        backend = &backends[i];                                                                                        \
        failed += cmocka_run_group_tests_name(backend->name, tests, NULL, NULL);                                       \
    }                                                                                                                  \
    return failed

#endif
