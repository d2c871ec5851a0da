/* SPDX-License-Identifier: Apache-2.0 */
/* fault_db.h - a database over another one that fails where it is told to. */
#ifndef RP_TESTS_FAULT_DB_H
#define RP_TESTS_FAULT_DB_H

#include "db/db.h"

/* Wraps an open database: `before`/`after` are asked around every driver call and may return a
 * negative code to inject. `after` lets the effect happen and then reports a failure (for a commit:
 * RP_EUNKNOWN). Takes `inner` over - unless it is nested: then `inner` stays the caller's and may
 * be wrapped many times, and a transaction is a savepoint in it: only one at a time (SQLite). What
 * stands around it is the caller's to take back. */
struct rp_db_fault {
    int (*before)(void *ctx, const char *call, struct rp_error *err);
    int (*after)(void *ctx, const char *call, struct rp_error *err);
    void *ctx;
    bool nested;
};
int rp_db_fault_wrap(struct rp_db *inner, const struct rp_db_fault *fault, struct rp_db **out, struct rp_error *err);

#endif
