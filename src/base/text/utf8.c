/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/utf8.h"

#include <string.h>

size_t rp_utf8_length(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    if (n == 0) return 0;
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    size_t length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (length > n) return 0;
    unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if (p[i] < 0x80 || p[i] > 0xbf) return 0;
    return length;
}

bool rp_utf8_valid(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t length = rp_utf8_length(text + i, n - i);
        if (length == 0) return false;
        i += length;
    }
    return true;
}

int rp_utf8_cut(const char *text, size_t most)
{
    size_t n = strnlen(text, most + 1);
    if (n <= most) return (int)n;
    for (n = most; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
        n--;
    return (int)n;
}

/* Whether a character begins here whose last bytes are missing. */
static bool is_cut(const char *text, size_t n)
{
    char whole[4] = { 0 };
    memcpy(whole, text, n < sizeof whole ? n : sizeof whole);
    for (size_t i = n; i < sizeof whole; i++)
        whole[i] = (char)0x80;
    return n < sizeof whole && rp_utf8_length(whole, sizeof whole) > n;
}

void rp_utf8_clean(char *text)
{
    for (size_t n = strlen(text); n > 0;) {
        size_t length = rp_utf8_length(text, n);
        if (length == 0 && is_cut(text, n)) {
            *text = 0;
            return;
        }
        if (length == 0 || (unsigned char)*text < ' ' || *text == 0x7f) *text = '.';
        length = length > 0 ? length : 1;
        text += length;
        n -= length;
    }
}
