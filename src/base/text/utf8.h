/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - what is valid UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. */
#ifndef RP_BASE_TEXT_UTF8_H
#define RP_BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character that begins at `text`, of which `n` bytes may be read; 0 if none does. */
size_t rp_utf8_length(const char *text, size_t n);
bool rp_utf8_valid(const char *text, size_t n);

#endif
