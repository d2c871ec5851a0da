/* SPDX-License-Identifier: Apache-2.0 */
/* remove.h - removal from a bucket: looking (look.h, versions.h), erasing (erase.h), looking again.
 *
 * R1  A removal has three steps: look (only at level window, or where a server says "deleted" of
 *     what was never there), erase, look again. `deleted` is said only of what the server said it
 *     deleted, or may have deleted, and then was seen to be gone.
 * R2  A page of a listing speaks for the keys from where it was begun up to its last key (to the
 *     end, if it is the last page), and only if it is in order. What it leaves out before an erase
 *     is asked about with a HEAD: an empty listing deletes nothing and makes nothing gone.
 * R3  By key, erasing follows the look at once and in small portions (S3_PORTION): the time between
 *     is the window. Where keys are never written twice (level exact) there is no window, and a
 *     portion is what one request takes. */
#ifndef RP_STORE_S3_REMOVE_H
#define RP_STORE_S3_REMOVE_H

#include "store/s3/s3.h"

#define S3_PORTION       250
#define S3_PORTION_EXACT S3_DELETE_MAX
#define S3_PORTION_HEADS 64 /* where each is looked at by a request of its own */

/* The marked version and all older ones, then the delete markers that directly cover it. Items in
 * order of key. Outcomes are final. */
int rp_s3_remove_versions(struct rp_s3 *s3, struct rp_item **items, size_t n, const struct rp_gate *gate,
                          struct rp_error *err);

/* Those of the items (outcome `none`) whose version a listing has not shown: asked for by HEAD, for
 * an empty listing makes nothing gone. */
struct s3_versions;
int rp_s3_confirm_absent(struct s3_versions *vs, struct rp_error *err);

#endif
