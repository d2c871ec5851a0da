/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of blocks in the order they were made; a reset frees them for use without giving them
 * back. The first free block that is large enough serves, so a round that repeats the one before
 * finds every block where it was. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define BLOCK_MIN ((size_t)1 << 10) /* a request that only waits holds no more: there may be 10,000 of them */
#define BLOCK_MAX ((size_t)1 << 20)

struct rp_arena_block {
    struct rp_arena_block *next;
    size_t cap, used;
    bool busy;
    alignas(max_align_t) char data[];
};

static size_t aligned(size_t n)
{
    const size_t mask = alignof(max_align_t) - 1;
    return (n + mask) & ~mask;
}

static void *take(struct rp_arena *a, size_t size)
{
    struct rp_arena_block *block = a->current;
    if (block == NULL) return NULL;
    size_t start = aligned(block->used);
    if (start > block->cap || size > block->cap - start) return NULL;
    block->used = start + size;
    a->used += size;
    return block->data + start;
}

static struct rp_arena_block *free_block(struct rp_arena *a, size_t size)
{
    struct rp_arena_block *block = a->first;
    while (block != NULL && (block->busy || block->cap < size))
        block = block->next;
    return block;
}

static void drop_free_blocks(struct rp_arena *a)
{
    for (struct rp_arena_block **link = &a->first; *link != NULL;) {
        struct rp_arena_block *block = *link;
        if (block->busy) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        a->held -= block->cap;
        free(block);
    }
}

/* Blocks double, so that a chain stays short. Free blocks that are too small give way before the
 * bound is missed. */
static struct rp_arena_block *new_block(struct rp_arena *a, size_t size)
{
    if (size > a->max - a->held) drop_free_blocks(a);
    size_t room = a->max - a->held;
    if (size > room || size > SIZE_MAX - sizeof(struct rp_arena_block)) return NULL;
    size_t cap = a->held < BLOCK_MIN ? BLOCK_MIN : a->held > BLOCK_MAX ? BLOCK_MAX : a->held;
    if (cap > room) cap = room;
    if (cap < size) cap = size;
    struct rp_arena_block *block = malloc(sizeof *block + cap), **link = &a->first;
    if (block == NULL) return NULL;
    *block = (struct rp_arena_block){ .cap = cap };
    while (*link != NULL)
        link = &(*link)->next;
    *link = block;
    a->held += cap;
    return block;
}

static void *make_room(struct rp_arena *a, size_t size)
{
    RP_ASSERT(a->held <= a->max);
    if (size == 0) size = 1; /* NULL must mean "no memory" and nothing else */
    void *memory = take(a, size);
    if (memory != NULL) return memory;
    struct rp_arena_block *block = free_block(a, size);
    if (block == NULL) block = new_block(a, size);
    if (block == NULL) return NULL;
    block->busy = true;
    block->used = 0;
    a->current = block;
    return take(a, size);
}

void *rp_arena_alloc(struct rp_arena *a, size_t size)
{
    void *memory = make_room(a, size);
    return memory != NULL ? memset(memory, 0, size) : NULL;
}

void *rp_arena_room(struct rp_arena *a, size_t count, size_t size)
{
    size_t total;
    return __builtin_mul_overflow(count, size, &total) ? NULL : make_room(a, total);
}

void *rp_arena_array(struct rp_arena *a, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) return NULL;
    return rp_arena_alloc(a, total);
}

char *rp_arena_copy(struct rp_arena *a, const char *text, size_t n)
{
    if (n == SIZE_MAX) return NULL;
    char *copy = rp_arena_alloc(a, n + 1);
    if (copy != NULL && n > 0) memcpy(copy, text, n);
    return copy;
}

char *rp_arena_strdup(struct rp_arena *a, const char *text)
{
    RP_ASSERT(text != NULL);
    return rp_arena_copy(a, text, strlen(text));
}

char *rp_arena_fmt(struct rp_arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = n < 0 ? NULL : rp_arena_alloc(a, (size_t)n + 1);
    if (text == NULL) return NULL;
    va_start(args, fmt);
    int again = vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    RP_ASSERT(again == n);
    return text;
}

void rp_arena_reset(struct rp_arena *a)
{
    for (struct rp_arena_block *block = a->first; block != NULL; block = block->next)
        block->busy = false;
    a->current = NULL;
    a->used = 0;
}

void rp_arena_done(struct rp_arena *a)
{
    rp_arena_reset(a);
    drop_free_blocks(a);
    RP_ASSERT(a->held == 0);
}
