/* SPDX-License-Identifier: Apache-2.0 */
/* undo.h - which marks a restore in bulk is about: those that wait, or lie in quarantine, and fit every given filter.
 *
 * N1  What fits is found by the narrowest index (run, prefix, reason, time) and held against the other filters here, in pages of
 *     1,000: memory does not grow with what is found.
 * N2  A mark whose object was moved to quarantine is found through its copy there, and given as the mark it was.
 * N3  Nothing is changed here. A mark may have moved since it was read; the restore itself decides (reprieve.h). */
#ifndef RP_CORE_UNDO_H
#define RP_CORE_UNDO_H

#include "core/reprieve.h"

struct rp_undo_filter {
    int64_t run_id;   /* 0: none */
    int64_t store_id; /* with prefix; 0: none */
    const char *prefix;
    const char *reason, *actor; /* NULL: none */
    int64_t since_ms, until_ms; /* -1: none */
};

/* The mark is lent until the function returns; 0 to go on, 1 to stop (the walk returns 0), negative to fail. */
typedef int rp_undo_fn(void *ctx, const struct rp_mark *mark, struct rp_error *err);
int rp_undo_each(struct rp_db *db, const struct rp_undo_filter *filter, rp_undo_fn *fn, void *ctx,
                 struct rp_error *err);

#endif
