/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void rp_base64(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16;
        if (i + 1 < n) three |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < n) three |= bytes[i + 2];
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
        *out++ = i + 2 < n ? digits[three & 63] : '=';
    }
    *out = '\0';
}

/* -1: none. */
static int value_of(char c)
{
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

int64_t rp_base64_parse(const char *text, size_t n, uint8_t *out)
{
    size_t padding = 0, made = 0;
    if (n % 4 != 0) return -1;
    while (padding < 2 && padding < n && text[n - 1 - padding] == '=')
        padding++;
    uint32_t kept = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < n - padding; i++) {
        int value = value_of(text[i]);
        if (value < 0) return -1;
        kept = kept << 6 | (uint32_t)value;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        if (out != NULL) out[made] = (uint8_t)(kept >> bits & 255);
        made++;
    }
    return (kept & ((1u << bits) - 1)) == 0 ? (int64_t)made : -1; /* bits that say nothing are 0 */
}
