/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory of one request or one batch, released all at once.
 * Allocations are zeroed (but for rp_arena_room) and aligned for any type; the total is bounded;
 * NULL when over it. rp_arena_reset keeps the blocks, so that a loop over batches allocates only in
 * its first round. */
#ifndef RP_BASE_ARENA_H
#define RP_BASE_ARENA_H

#include <stddef.h>

struct rp_arena_block;

struct rp_arena {
    struct rp_arena_block *first, *current;
    size_t used, max; /* bytes handed out since the last reset; bound on the bytes held */
    size_t held;
};

#define RP_ARENA(max_bytes) ((struct rp_arena){ .max = (max_bytes) })

void *rp_arena_alloc(struct rp_arena *a, size_t size);
void *rp_arena_array(struct rp_arena *a, size_t count, size_t size); /* NULL on overflow too */
/* Not zeroed: for much that is mostly never used, and written whole where it is. */
void *rp_arena_room(struct rp_arena *a, size_t count, size_t size);
char *rp_arena_copy(struct rp_arena *a, const char *text, size_t n); /* NUL-terminated copy */
char *rp_arena_strdup(struct rp_arena *a, const char *text);
char *rp_arena_fmt(struct rp_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rp_arena_reset(struct rp_arena *a);
void rp_arena_done(struct rp_arena *a); /* also the RP_CLEANUP function */

#endif
