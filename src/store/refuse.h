/* SPDX-License-Identifier: Apache-2.0 */
/* refuse.h - what every backend refuses, in the same words: calls that ask too much, objects that
 * are not what the call said. Each sets the error and returns its code. */
#ifndef RP_STORE_REFUSE_H
#define RP_STORE_REFUSE_H

#include <stddef.h>

struct rp_error;
struct rp_item;

int rp_refuse_absent(const char *key, struct rp_error *err);  /* RP_ENOTFOUND */
int rp_refuse_changed(const char *key, struct rp_error *err); /* RP_ECHANGED */
int rp_refuse_taken(const char *key, struct rp_error *err);   /* RP_EEXISTS */
/* For callers of the port: a key that is ours (T1) is nobody's to name. RP_EINVAL. */
int rp_refuse_own(const char *store, const char *key, struct rp_error *err);

/* Many items: every key must be one; none has an outcome or a note yet. */
int rp_items_begin(struct rp_item *items, size_t n, struct rp_error *err);
/* A listing: how long a prefix and a cursor may be. */
int rp_list_check(const char *prefix, const char *after, struct rp_error *err);

#endif
