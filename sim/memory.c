/* SPDX-License-Identifier: Apache-2.0 */
/* The linker hands us every allocation of our own code (--wrap); the libraries keep theirs. */
#include <stdlib.h>

#include "sim.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static int64_t left;
static bool failed;

static bool fails(void)
{
    if (left == 0 || --left > 0) return false;
    failed = true;
    return true;
}

void sim_memory_fail(int64_t nth)
{
    left = nth;
    failed = false;
}

bool sim_memory_failed(void)
{
    return failed;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}
