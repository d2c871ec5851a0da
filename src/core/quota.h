/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - how much a tenant may store: looked at, changed, and proved. What uploads reserve, use
 * and give back is core/file/file.h's.
 * Q1  A limit below what is used takes nothing away: it only refuses what is new.
 * Q2  Every change leaves an audit row: quota.set, quota.rebuilt. */
#ifndef RP_CORE_QUOTA_H
#define RP_CORE_QUOTA_H

#include "catalog/file/file.h"
#include "catalog/writer/writer.h"

#include <jansson.h>

/* A tenant's own limit; it is made if it is new. */
struct rp_quota_command {
    struct rp_command command;
    const char *tenant;
    bool own; /* false: the configured default */
    int64_t limit_bytes;
    struct rp_tenant out; /* as it is now */
};
extern const struct rp_verb rp_verb_quota_set;

/* Compares every counter with the sum of its ledger rows (QUOTA-EXACT), and with `repair` sets
 * right what differs. */
struct rp_quota_proof {
    struct rp_command command;
    bool repair;
    rp_quota_fn *fn; /* told of each tenant, perhaps again from the start */
    void *ctx;
    struct rp_quota_check out;
};
extern const struct rp_verb rp_verb_quota_prove;

int64_t rp_quota_limit_of(const struct rp_tenant *tenant, int64_t default_bytes);
/* {"tenant","limit","default","used","reserved","available","open_uploads"}; `default`: the limit
 * is the configured one. */
json_t *rp_quota_json(const struct rp_tenant *tenant, int64_t default_bytes);

#endif
