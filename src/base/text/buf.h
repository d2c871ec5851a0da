/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - a byte buffer that grows up to a maximum and says so when it is full.
 *
 * B1  `data` is NUL-terminated at all times once something was appended (NUL not counted in len);
 *     rp_buf_text() is never NULL.
 * B2  An append that would pass `max` changes nothing and returns RP_ETOOBIG; no memory: RP_ENOMEM.
 * B3  A failure sticks: `failed` holds the first code, so that a row of appends is checked once;
 *     appends after it return it and change nothing. */
#ifndef RP_BASE_TEXT_BUF_H
#define RP_BASE_TEXT_BUF_H

#include <stddef.h>
#include <stdint.h>

struct rp_buf {
    char *data;
    size_t len, cap, max;
    int failed;
};

#define RP_BUF(max_bytes) ((struct rp_buf){ .max = (max_bytes) })

int rp_buf_add(struct rp_buf *b, const void *bytes, size_t n);
int rp_buf_str(struct rp_buf *b, const char *text);
int rp_buf_char(struct rp_buf *b, char c);
int rp_buf_fmt(struct rp_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rp_buf_clear(struct rp_buf *b); /* empty it, keep the memory, forget the failure */
const char *rp_buf_text(const struct rp_buf *b);
void rp_buf_done(struct rp_buf *b); /* also the RP_CLEANUP function of a `struct rp_buf` on the stack */

#endif
