/* SPDX-License-Identifier: Apache-2.0 */
/* references.h - is this object still used? Asked before a purge, and by a mark that is to be
 * made only if not.
 *
 * G1  Every entry of the store's `referenced_by` list is asked, one statement each for a whole
 *     batch of keys.
 * G2  A look-up that failed, timed out or answered nonsense never counts as "unreferenced": the
 *     call fails.
 * G3  Nothing is written to the user's databases: connections are read-only. Any thread may ask.
 * They are another database than the catalog, so a reference made after the question is not
 * seen: a window, as docs/guarantees.md says. */
#ifndef RP_CORE_CHECK_REFERENCES_H
#define RP_CORE_CHECK_REFERENCES_H

#include "config/config.h"

struct rp_error;
struct rp_references;

/* Connects nothing yet. `config` and its texts must outlive it. NULL in *out if the store has no
 * list. */
int rp_references_new(const struct rp_config *config, const struct rp_store_config *store, struct rp_references **out,
                      struct rp_error *err);
void rp_references_free(struct rp_references *refs);
/* counts[i]: in how many rows keys[i] is named. */
int rp_references_count(struct rp_references *refs, const char *const *keys, size_t n, int64_t *counts,
                        struct rp_error *err);
/* Opens every database and prepares every question: what `doctor` does. */
int rp_references_check(struct rp_references *refs, struct rp_error *err);

#endif
