/* SPDX-License-Identifier: Apache-2.0 */
/* hex.h - digits, hex digits, and bytes that were written or escaped with them: %41 is A. */
#ifndef RP_BASE_TEXT_HEX_H
#define RP_BASE_TEXT_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool rp_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* 0 to 15; -1: it is none. */
static inline int rp_hex_digit(char c)
{
    if (rp_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Two small digits a byte, then a NUL. */
void rp_hex_write(const void *bytes, size_t n, char *out);
/* 2n digits, of either case, are n bytes; false: one of them is no digit. `out` may be where the
 * text is. */
bool rp_hex_read(const char *text, size_t n, void *out);

/* In place: `escape` and two hex digits are a byte, with `plus` a "+" is a space. Returns the new
 * length, or -1 for a broken escape. The text may have NUL bytes then. */
int64_t rp_unescape(char *text, char escape, bool plus);

#endif
