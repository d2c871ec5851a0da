/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - what is valid UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. */
#ifndef RP_BASE_TEXT_UTF8_H
#define RP_BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character that begins at `text`, of which `n` bytes may be read; 0 if none does. */
size_t rp_utf8_length(const char *text, size_t n);
bool rp_utf8_valid(const char *text, size_t n);
/* For "%.*s": of valid text at most so many bytes, whole characters. */
int rp_utf8_cut(const char *text, size_t most);
/* Makes it valid, for a catalog that refuses what is not: a character that was cut at the end goes;
 * any other byte that is of none, and any control character, becomes '.'. */
void rp_utf8_clean(char *text);

#endif
