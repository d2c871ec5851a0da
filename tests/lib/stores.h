/* SPDX-License-Identifier: Apache-2.0 */
/* stores.h - stores for tests: one in memory, and one that wraps another and fails where it is told
 * to. Both keep the contract of store/backend.h. */
#ifndef RP_TESTS_LIB_STORES_H
#define RP_TESTS_LIB_STORES_H

#include "store/backend.h"

int rp_memory_open(struct rp_backend **out, struct rp_error *err); /* level exact by serial etags; the host's clock */

/* Wraps a store: asked around every call of the wrapped one that can fail (`call` is the slot's
 * name), and for remove() around every item. `after` lets the effect happen, then reports a failure
 * (remove: the item's outcome becomes `unknown`). Does not take `inner` over. */
struct rp_backend_fault {
    int (*before)(void *ctx, const char *call, const char *key, struct rp_error *err);
    int (*after)(void *ctx, const char *call, const char *key, struct rp_error *err);
    void *ctx;
};
int rp_backend_fault_wrap(struct rp_backend *inner, const struct rp_backend_fault *fault, struct rp_backend **out,
                          struct rp_error *err);

#endif
