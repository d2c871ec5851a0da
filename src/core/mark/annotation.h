/* SPDX-License-Identifier: Apache-2.0 */
/* annotation.h - the mark as other tools can see it: user metadata on the object itself. It
 * informs; the catalog decides.
 * N1  Written after the commit of a mark that says so (mark.annotated), removed before the commit
 *     that ends the mark and leaves the object (a restore, a dead letter that is given up): a crash
 *     leaves a mark without annotation, never an annotation without mark, which `import` would take
 *     for a new one. The two may meet: whoever has written looks whether the mark has ended
 *     meanwhile, and whoever has restored looks for an annotation once more.
 * N2  Only our own fields are written and removed, whatever else changed meanwhile.
 * N3  A store may make another upload of the object by annotating it: its new identity becomes the
 *     mark's. After a crash between the two the sweep takes the object for a newer upload and
 *     leaves it: nothing is lost, and `import` finds it.
 * N4  How a store annotates depends on what it was seen to do: one that this process has not probed
 *     is probed first (guarantee.h). */
#ifndef RP_CORE_ANNOTATION_H
#define RP_CORE_ANNOTATION_H

#include "core/store.h"

/* The fields. */
#define RP_ANNOTATION_MARKED       "marked_for_deletion"
#define RP_ANNOTATION_MARKED_ON    "marked_for_deletion_on"
#define RP_ANNOTATION_DELETE_AFTER "delete_after"
#define RP_ANNOTATION_REASON       "deletion_reason"

#define RP_ANNOTATE_NOTE 120 /* why an annotation could not be written, or removed */

struct rp_catalog;
struct rp_error;
struct rp_mark;

struct rp_annotation {
    int64_t marked_at_ms, due_at_ms;
    const char *reason;
};

/* `identity` becomes the object's new one: it is then for the caller to have its mark say so. */
int rp_annotation_write(struct rp_catalog *catalog, struct rp_store *store, const char *key,
                        struct rp_identity *identity, const struct rp_annotation *annotation, struct rp_error *err);
int rp_annotation_remove(struct rp_catalog *catalog, struct rp_store *store, const char *key,
                         const struct rp_identity *identity, struct rp_error *err);
/* The same for a purge: it has found out before that it may write to this store, and how. */
int rp_annotation_take_off(struct rp_store *store, const char *key, const struct rp_identity *identity,
                           struct rp_error *err);
/* N1, of a mark that ends or has ended. An object that changed or went carries none of ours. A store
 * that fails must not keep anybody from rescuing data: `note` says why; "": it is gone. `store` NULL:
 * it is not configured any more. */
void rp_annotation_end(struct rp_catalog *catalog, struct rp_store *store, const struct rp_mark *mark,
                       char note[RP_ANNOTATE_NOTE]);

#endif
