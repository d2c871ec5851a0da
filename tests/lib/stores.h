/* SPDX-License-Identifier: Apache-2.0 */
/* stores.h - stores for tests: one in memory, one that wraps another and fails where it is told to,
 * and one that hides what another holds. All keep the contract of store/backend.h. */
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

/* Wraps a store: it hides in place (T12), and each object has a version, its etag. Markers are
 * objects of the wrapped store: this and the key. `blind`: while it is set the store was not seen
 * to hide. Only whole objects. Does not take `inner` over. */
#define HIDING_MARKERS RP_STORE_OWN "hidden/"
int rp_backend_hiding_wrap(struct rp_backend *inner, const bool *blind, struct rp_backend **out, struct rp_error *err);

#endif
