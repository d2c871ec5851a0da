/* SPDX-License-Identifier: Apache-2.0 */
/* annotation.h - the mark as other tools can see it: user metadata on the object itself. It
 * informs; the catalog decides.
 * N1  Written after the commit of a mark that says so (mark.annotated), removed before the
 *     reprieve's: a crash leaves a mark without annotation, never an annotation without mark.
 * N2  Only our own fields are written and removed, whatever else changed meanwhile.
 * N3  A store may make another upload of the object by annotating it: its new identity becomes the
 *     mark's. After a crash between the two the sweep takes the object for a newer upload and
 *     leaves it: nothing is lost, and `import` finds it.
 * N4  How a store annotates depends on what it was seen to do: one that this process has not probed
 *     is probed first (guarantee.h). */
#ifndef RP_CORE_ANNOTATION_H
#define RP_CORE_ANNOTATION_H

#include "core/store.h"

struct rp_catalog;
struct rp_error;

struct rp_annotation {
    int64_t marked_at_ms, due_at_ms;
    const char *reason;
};

/* `identity` becomes the object's new one: it is then for the caller to have its mark say so. */
int rp_annotation_write(struct rp_catalog *catalog, struct rp_store *store, const char *key,
                        struct rp_identity *identity, const struct rp_annotation *annotation, struct rp_error *err);
/* `catalog` NULL: what the store guarantees is known. */
int rp_annotation_remove(struct rp_catalog *catalog, struct rp_store *store, const char *key,
                         const struct rp_identity *identity, struct rp_error *err);

#endif
