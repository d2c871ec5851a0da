/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"

#define CAP_MIN 64

static int fail(struct rp_buf *b, int code)
{
    if (b->failed == 0) b->failed = code;
    return b->failed;
}

/* At least doubles, so that many small appends cost linear time; never holds more than `max` and
 * the NUL. */
static size_t grown_cap(const struct rp_buf *b, size_t need)
{
    size_t most = b->max < SIZE_MAX ? b->max + 1 : SIZE_MAX;
    size_t cap = b->cap < CAP_MIN ? CAP_MIN : b->cap <= most / 2 ? b->cap * 2 : most;
    if (cap > most) cap = most;
    return cap < need ? need : cap;
}

/* Room for n more bytes and the NUL. */
static int reserve(struct rp_buf *b, size_t n)
{
    RP_ASSERT(b->len <= b->max);
    if (b->failed != 0) return b->failed;
    if (n > b->max - b->len) return fail(b, RP_ETOOBIG);
    size_t need = b->len + n;
    if (need == SIZE_MAX) return fail(b, RP_ENOMEM);
    need++;
    if (need <= b->cap) return 0;
    size_t cap = grown_cap(b, need);
    char *data = realloc(b->data, cap);
    if (data == NULL) return fail(b, RP_ENOMEM);
    b->data = data;
    b->cap = cap;
    return 0;
}

int rp_buf_add(struct rp_buf *b, const void *bytes, size_t n)
{
    int r = reserve(b, n);
    if (r < 0) return r;
    if (n > 0) memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int rp_buf_str(struct rp_buf *b, const char *text)
{
    return rp_buf_add(b, text, strlen(text));
}

int rp_buf_char(struct rp_buf *b, char c)
{
    return rp_buf_add(b, &c, 1);
}

/* Measured first: what does not fit must leave no trace. */
int rp_buf_fmt(struct rp_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) return fail(b, RP_EINVAL);
    int r = reserve(b, (size_t)n);
    if (r < 0) return r;
    va_start(args, fmt);
    int again = vsnprintf(b->data + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    RP_ASSERT(again == n);
    b->len += (size_t)n;
    return 0;
}

void rp_buf_clear(struct rp_buf *b)
{
    b->len = 0;
    b->failed = 0;
    if (b->data != NULL) b->data[0] = '\0';
}

const char *rp_buf_text(const struct rp_buf *b)
{
    return b->data != NULL ? b->data : "";
}

void rp_buf_done(struct rp_buf *b)
{
    free(b->data);
    *b = RP_BUF(b->max);
}
