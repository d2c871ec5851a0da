/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - the identities of many keys with few requests. */
#ifndef RP_STORE_S3_LOOK_H
#define RP_STORE_S3_LOOK_H

#include "store/s3/s3.h"

/* How many keys that nobody asked about stood among so many of ours in the pages read so far: how
 * long the next page must be. Nothing else follows from it. Begins as zeroes. */
struct s3_density {
    size_t others, ours;
};
/* As rp_s3_stat; where many of the keys stand close together, pages of a listing (if list_current
 * and list_order hold) instead of a HEAD each. `absent`: the server said that it has deleted them.
 * What a complete listing does not show is then gone without another question, and where all of
 * them are gone a page of a few keys says so. */
int rp_s3_look(struct rp_s3 *s3, struct rp_item *items, size_t n, bool absent, struct s3_density *density,
               struct rp_error *err);

#endif
