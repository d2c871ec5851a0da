/* SPDX-License-Identifier: Apache-2.0 */
/* meta.h - headers and user metadata of one object: what is allowed, copies, changes, and the text
 * they are kept as.
 *
 * E1  Header names are the six of backend.h; user names are lower case and not empty; no name
 *     twice; names and values are valid UTF-8; RP_META_MAX_PAIRS and RP_META_MAX_BYTES hold for
 *     both together.
 * E2  The text carries a digest of itself: a damaged one is RP_ECORRUPT, never fewer fields. */
#ifndef RP_STORE_META_H
#define RP_STORE_META_H

#include "store/backend.h"

struct rp_buf;

bool rp_meta_is_header(const char *name, size_t n);
/* The last pair of this name; NULL: none. */
const struct rp_pair *rp_pair_find(const struct rp_pair *pairs, size_t n, const char *name);
int rp_meta_check(const struct rp_meta *meta, struct rp_error *err); /* NULL: no metadata, fine */
bool rp_meta_empty(const struct rp_meta *meta);
int rp_meta_copy(struct rp_arena *arena, const struct rp_meta *from, struct rp_meta *out, struct rp_error *err);
/* `from` with the changes made to its user fields; the result is checked (E1). */
int rp_meta_change(struct rp_arena *arena, const struct rp_meta *from, const struct rp_pair *changes, size_t n,
                   struct rp_meta *out, struct rp_error *err);

#define RP_META_TEXT_MAX (8 * RP_META_MAX_BYTES) /* room for JSON's escapes */
int rp_meta_write(const struct rp_meta *meta, const char *key, struct rp_buf *out, struct rp_error *err);
int rp_meta_parse(const char *text, size_t n, const char *key, struct rp_arena *arena, struct rp_meta *out,
                  struct rp_error *err);

#endif
