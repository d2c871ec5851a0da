/* SPDX-License-Identifier: Apache-2.0 */
/* hex.h - hex digits, and bytes that were escaped with them: %41 is A. */
#ifndef RP_BASE_HEX_H
#define RP_BASE_HEX_H

#include <stdbool.h>
#include <stdint.h>

/* 0 to 15; -1: it is none. */
static inline int rp_hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place: `escape` and two hex digits are a byte, with `plus` a "+" is a space. Returns the new
 * length, or -1 for a broken escape. The text may have NUL bytes then. */
int64_t rp_unescape(char *text, char escape, bool plus);

#endif
