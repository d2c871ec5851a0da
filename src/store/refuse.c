/* SPDX-License-Identifier: Apache-2.0 */
#include "store/refuse.h"

#include <string.h>

#include "base/error.h"
#include "store/backend.h"

int rp_refuse_absent(const char *key, struct rp_error *err)
{
    return rp_error_set(err, RP_ENOTFOUND, "no object '%s'", key);
}

int rp_refuse_changed(const char *key, struct rp_error *err)
{
    return rp_error_set(err, RP_ECHANGED, "'%s' has changed", key);
}

int rp_refuse_taken(const char *key, struct rp_error *err)
{
    return rp_error_set(err, RP_EEXISTS, "'%s' exists already", key);
}

int rp_refuse_own(const char *store, const char *key, struct rp_error *err)
{
    return rp_error_set(err, RP_EINVAL, "%s:%s: keys under " RP_STORE_OWN " are Reprieve's own", store, key);
}

int rp_items_begin(struct rp_item *items, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (rp_key_check(items[i].key, strlen(items[i].key), err) < 0) return RP_EINVAL;
    for (size_t i = 0; i < n; i++) {
        items[i].outcome = RP_OUT_NONE;
        items[i].note[0] = '\0';
    }
    return 0;
}

int rp_list_check(const char *prefix, const char *after, struct rp_error *err)
{
    if (strlen(prefix) <= RP_KEY_MAX && strlen(after) <= RP_KEY_MAX) return 0;
    return rp_error_set(err, RP_EINVAL, "a prefix or a cursor has at most %d bytes", RP_KEY_MAX);
}
