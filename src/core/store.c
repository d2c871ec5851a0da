/* SPDX-License-Identifier: Apache-2.0 */
#include "core/store.h"

struct rp_store *rp_store_by_id(struct rp_store *const *stores, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (stores[i]->id == id) return stores[i];
    return NULL;
}

int rp_store_refuse_closed(const struct rp_store *store, struct rp_error *err)
{
    if (store->backend != NULL) return 0;
    if (store->closed.code == 0)
        return rp_error_set(err, RP_EUNAVAILABLE, "store '%s' is not open", store->config->name);
    *err = store->closed;
    return err->code;
}
