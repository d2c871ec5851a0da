/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - what backends do alike: put() and get() of one that works in parts (T8), and what a
 * call begins with, what is said of an object. */
#ifndef RP_STORE_WHOLE_H
#define RP_STORE_WHOLE_H

#include "store/backend.h"

int rp_backend_put_whole(struct rp_backend *backend, const char *key, const struct rp_source *from,
                         const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err);
int rp_backend_get_whole(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                         struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err);

/* What is said of one object, with its code: RP_ENOTFOUND, RP_ECHANGED, RP_EEXISTS. */
int rp_no_object(const char *key, struct rp_error *err);
int rp_has_changed(const char *key, struct rp_error *err);
int rp_is_taken(const char *key, struct rp_error *err);

/* Many items: every key must be one; none has an outcome or a note yet. */
int rp_items_begin(struct rp_item *items, size_t n, struct rp_error *err);
/* A listing: how long a prefix and a cursor may be. */
int rp_list_check(const char *prefix, const char *after, struct rp_error *err);
bool rp_key_is_own(const char *key); /* also of a prefix: all under it are ours (T1) */

#endif
