/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - bytes in memory as what a put reads from, and a buffer as what a get writes to. */
#ifndef RP_TESTS_BYTES_H
#define RP_TESTS_BYTES_H

#include <string.h>

#include "base/text/buf.h"
#include "store/backend.h"

struct bytes {
    const char *at;
    size_t left;
};

static inline int64_t bytes_read(void *ctx, void *to, size_t n, struct rp_error *err)
{
    struct bytes *b = ctx;
    (void)err;
    size_t part = b->left < n ? b->left : n;
    memcpy(to, b->at, part);
    b->at += part;
    b->left -= part;
    return (int64_t)part;
}

/* The context is a struct rp_buf. */
static inline int bytes_take(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    (void)err;
    return rp_buf_add(ctx, from, n);
}

#endif
