/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - the question asked before a purge: is this object still used?
 *
 * G1  Every entry of the store's `referenced_by` list is asked, one statement each for a whole batch of keys.
 * G2  A look-up that failed, timed out or answered nonsense never counts as "unreferenced": the call fails.
 * G3  Nothing is written to the user's databases: connections are read-only.
 * The guard reads another database than the catalog, so a reference made after the question is not seen: a window, as
 * docs/guarantees.md says. */
#ifndef RP_CORE_GUARD_H
#define RP_CORE_GUARD_H

#include "config/config.h"

struct rp_error;
struct rp_guard;

/* Connects nothing yet. `config` and its texts must outlive the guard. NULL in *out if the store has no references. */
int rp_guard_new(const struct rp_config *config, const struct rp_store_config *store, struct rp_guard **out,
                 struct rp_error *err);
void rp_guard_free(struct rp_guard *guard);
/* counts[i]: in how many rows keys[i] is named. */
int rp_guard_count(struct rp_guard *guard, const char *const *keys, size_t n, int64_t *counts, struct rp_error *err);
/* Opens every database and prepares every question: what `doctor` does. */
int rp_guard_check(struct rp_guard *guard, struct rp_error *err);

#endif
