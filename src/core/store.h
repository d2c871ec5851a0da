/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - a configured store as the rules see it. Opened by a surface, lent to the verbs. */
#ifndef RP_CORE_STORE_H
#define RP_CORE_STORE_H

#include "base/error.h"
#include "config/config.h"
#include "store/backend.h"

#include <stdint.h>

struct rp_references;
struct rp_guarantee;
struct rp_raises;

struct rp_store {
    int64_t id;                           /* in the catalog */
    const struct rp_store_config *config; /* name, mode, grace, ... */
    struct rp_backend *backend;           /* NULL: it could not be opened, `closed` says why */
    struct rp_error closed;
    enum rp_level level;              /* where there is no guarantee; ask rp_store_level */
    struct rp_guarantee *guarantee;   /* what is known of its guarantee and its clock (guarantee.h); may be NULL */
    bool borrowed;                    /* store and guarantee are another session's */
    const char *environment;          /* as configured; NULL: any */
    struct rp_references *references; /* NULL: no referenced_by */
    struct rp_raises *raises;         /* of this process (raise.h); may be NULL */
    bool fails_over;                  /* a promoted server has lost nothing (catalog.failover) */
};

/* NULL: none of these is it. */
struct rp_store *rp_store_by_id(struct rp_store *const *stores, size_t n, int64_t id);
/* 0 of an open one; else why it could not be opened. */
int rp_store_refuse_closed(const struct rp_store *store, struct rp_error *err);

#define RP_REASON_MAX 200
#define RP_ACTOR_MAX  120

#endif
