/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/starve.h"

#include <execinfo.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/assert.h"

#define FRAMES     12
#define OWN_FRAMES 3 /* of the stack: what counts the allocation */

static _Thread_local struct {
    bool armed, struck;
    int n, refuse;
    uint64_t *sites;
} memory;

static uint64_t hash_calls(void)
{
    void *frames[FRAMES + OWN_FRAMES];
    int n = backtrace(frames, FRAMES + OWN_FRAMES);
    uint64_t hash = 14695981039346656037U;
    for (int i = OWN_FRAMES; i < n; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 1099511628211U;
    return hash;
}

static __attribute__((noinline)) bool refused(void)
{
    if (!memory.armed) return false;
    memory.n++;
    RP_ASSERT(memory.n < STARVE_MAX);
    if (memory.sites != NULL) memory.sites[memory.n] = hash_calls();
    if (memory.n != memory.refuse) return false;
    memory.struck = true;
    return true;
}

#define REFUSABLE(type, name, params, args)                                                                            \
    type __real_##name params;                                                                                         \
    type __wrap_##name params;                                                                                         \
    type __wrap_##name params                                                                                          \
    {                                                                                                                  \
        return refused() ? NULL : __real_##name args;                                                                  \
    }

REFUSABLE(void *, malloc, (size_t n), (n))
REFUSABLE(void *, calloc, (size_t n, size_t size), (n, size))
REFUSABLE(void *, realloc, (void *old, size_t n), (old, n))
REFUSABLE(char *, strdup, (const char *text), (text))
REFUSABLE(void *, rp_arena_alloc, (struct rp_arena * a, size_t size), (a, size))
REFUSABLE(void *, rp_arena_array, (struct rp_arena * a, size_t n, size_t size), (a, n, size))
REFUSABLE(char *, rp_arena_copy, (struct rp_arena * a, const char *text, size_t n), (a, text, n))
REFUSABLE(char *, rp_arena_strdup, (struct rp_arena * a, const char *text), (a, text))

char *__wrap_rp_arena_fmt(struct rp_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *__wrap_rp_arena_fmt(struct rp_arena *a, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    if (refused()) return NULL;
    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    char *kept = n >= 0 ? __real_rp_arena_copy(a, text, (size_t)n) : NULL;
    free(text);
    return kept;
}

void starve_arm(int refuse)
{
    memory.n = 0;
    memory.refuse = refuse;
    memory.struck = false;
    memory.armed = true;
}

void starve_pause(void)
{
    memory.armed = false;
}

void starve_resume(void)
{
    memory.armed = true;
}

int starve_disarm(void)
{
    memory.armed = false;
    memory.sites = NULL;
    return memory.n;
}

bool starve_struck(void)
{
    return memory.struck;
}

void starve_note(uint64_t *sites)
{
    void *frame[1];
    (void)backtrace(frame, 1); /* loads what it needs now, not in the middle of an allocation */
    memory.sites = sites;
}

void starve_json(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
}
