/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"

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
