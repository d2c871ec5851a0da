/* SPDX-License-Identifier: Apache-2.0 */
/* The linker hands us every allocation of our own code (--wrap); the libraries keep theirs. */
#include <stdlib.h>

#include "base/error.h"
#include "base/text/buf.h"
#include "db/dialect.h"
#include "memory.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static int64_t left;

static bool fails(void)
{
    if (left == 0 || --left > 0) return false;
    return true;
}

void sim_memory_fail(int64_t nth)
{
    left = nth;
}

/* A text is translated once a process, so that no fault may depend on whether it was. */
int __real_rp_dialect_translate(const struct rp_dialect *dialect, const char *text, size_t n_params, const char *rows,
                                size_t n_rows, struct rp_buf *out, struct rp_error *err);
int __wrap_rp_dialect_translate(const struct rp_dialect *dialect, const char *text, size_t n_params, const char *rows,
                                size_t n_rows, struct rp_buf *out, struct rp_error *err);
int __wrap_rp_dialect_translate(const struct rp_dialect *dialect, const char *text, size_t n_params, const char *rows,
                                size_t n_rows, struct rp_buf *out, struct rp_error *err)
{
    int64_t kept = left;
    left = 0;
    int r = __real_rp_dialect_translate(dialect, text, n_params, rows, n_rows, out, err);
    left = kept;
    return r;
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
