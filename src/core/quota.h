/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - how much a tenant may store: looked at, changed, and proved. What uploads reserve, use and give back is core/file.h's.
 * Q1  A limit below what is used takes nothing away: it only refuses what is new.
 * Q2  Every change leaves an audit row: quota.set, quota.rebuilt. */
#ifndef RP_CORE_QUOTA_H
#define RP_CORE_QUOTA_H

#include "catalog/file.h"

#include <jansson.h>

struct rp_quota_limit {
    bool own; /* false: the configured default */
    int64_t bytes;
};
/* Makes the tenant if it is new; *out (may be NULL) is the tenant as it is now. */
int rp_quota_set(struct rp_catalog *catalog, const char *tenant, const struct rp_quota_limit *limit, const char *actor,
                 struct rp_tenant *out, struct rp_error *err);
/* Compares every counter with the sum of its ledger rows (QUOTA-EXACT), and with `repair` sets right what differs. */
int rp_quota_prove(struct rp_catalog *catalog, bool repair, const char *actor, rp_quota_fn *fn, void *ctx,
                   struct rp_quota_check *out, struct rp_error *err);

int64_t rp_quota_limit_of(const struct rp_tenant *tenant, int64_t default_bytes);
/* {"tenant","limit","default","used","reserved","open_uploads"}; `default`: the limit is the configured one. */
json_t *rp_quota_json(const struct rp_tenant *tenant, int64_t default_bytes);

#endif
