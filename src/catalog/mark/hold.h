/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h - stops on purging. Placing one raises hold_epoch, which every claim reads under a share
 * lock: a claim commits before the hold, and is listed in the hold's answer, or begins after it,
 * and leaves its subjects alone. */
#ifndef RP_CATALOG_HOLD_H
#define RP_CATALOG_HOLD_H

#include "catalog/mark/mark.h"

enum rp_scope { RP_SCOPE_SUBJECT = 1, RP_SCOPE_PREFIX = 2, RP_SCOPE_TENANT = 3, RP_SCOPE_EVERYTHING = 4 };

struct rp_hold {
    int64_t id;
    enum rp_scope scope;
    int64_t store_id;  /* 0: none */
    const char *key;   /* NULL: none */
    int64_t tenant_id; /* 0: none */
    const char *reason, *actor;
    int64_t placed_at_ms;
};

int rp_hold_add(struct rp_tx *tx, const struct rp_hold *hold, struct rp_error *err);
/* RP_ENOTFOUND if there is no such hold, or it was lifted before. */
int rp_hold_lift(struct rp_tx *tx, int64_t id, const char *actor, struct rp_error *err);

typedef int rp_hold_fn(void *ctx, const struct rp_hold *hold, struct rp_error *err);
int rp_hold_each(struct rp_db *db, rp_hold_fn *fn, void *ctx, struct rp_error *err);
/* Whether the hold covers this mark; the statements say the same (HELD; test_holds.c compares). */
bool rp_hold_covers(const struct rp_hold *hold, const struct rp_mark *mark);
/* A page of the marks of a store that are past their claim (checking and leased, purging, or dead
 * since: a delete of it may still be on its way): those after `after_id`, at most as many as `out` has room
 * for. */
int rp_hold_claimed(struct rp_db *db, int64_t store_id, int64_t after_id, struct rp_marks *out, struct rp_error *err);

#endif
