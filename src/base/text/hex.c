/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/hex.h"

void rp_hex_write(const void *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *at = bytes, *end = at + n; at < end; at++) {
        *out++ = digits[*at >> 4];
        *out++ = digits[*at & 15];
    }
    *out = '\0';
}

bool rp_hex_read(const char *text, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++) {
        int high = rp_hex_digit(text[2 * i]), low = high < 0 ? -1 : rp_hex_digit(text[2 * i + 1]);
        if (low < 0) return false;
        ((unsigned char *)out)[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

int64_t rp_unescape(char *text, char escape, bool plus)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != escape) {
            *to++ = plus && *from == '+' ? ' ' : *from;
            continue;
        }
        const int high = rp_hex_digit(from[1]), low = high < 0 ? -1 : rp_hex_digit(from[2]);
        if (low < 0) return -1;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return to - text;
}
