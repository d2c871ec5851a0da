/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's memory: one thread asks for the same few sizes millions of times, so what is given back
 * is kept by its size for the next who asks. */
#include <sqlite3.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "memory.h"

void *__real_malloc(size_t n);

#define STEP  64
#define SIZES 128 /* larger ones are the system's */

struct block {
    alignas(max_align_t) size_t size;
    struct block *next; /* while it is free; its user's bytes begin here */
};
#define HEAD offsetof(struct block, next)

static struct block *spare[SIZES];

static int round_up(int n)
{
    return (n + STEP - 1) / STEP * STEP;
}

static struct block *block_of(void *memory)
{
    return (struct block *)(void *)((char *)memory - HEAD);
}

static void *take(int n)
{
    size_t size = (size_t)round_up(n), index = size / STEP;
    struct block *b = index < SIZES ? spare[index] : NULL;
    if (b != NULL)
        spare[index] = b->next;
    else
        b = __real_malloc(HEAD + size); /* no fault of ours meets it */
    if (b == NULL) return NULL;
    b->size = size;
    return (char *)b + HEAD;
}

static void give_back(void *memory)
{
    struct block *b = block_of(memory);
    size_t index = b->size / STEP;
    if (index >= SIZES) {
        free(b);
        return;
    }
    b->next = spare[index];
    spare[index] = b;
}

static int size_of(void *memory)
{
    return memory != NULL ? (int)block_of(memory)->size : 0;
}

static void *resize(void *memory, int n)
{
    if (n <= size_of(memory)) return memory;
    void *larger = take(n);
    if (larger == NULL) return NULL;
    memcpy(larger, memory, (size_t)size_of(memory));
    give_back(memory);
    return larger;
}

static int begin(void *ctx)
{
    (void)ctx;
    return SQLITE_OK;
}

static void end(void *ctx)
{
    (void)ctx;
}

void sim_pool_use(void)
{
    static const struct sqlite3_mem_methods methods = { take, give_back, resize, size_of, round_up, begin, end, NULL };
    int r = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    RP_ASSERT(r == SQLITE_OK);
}
