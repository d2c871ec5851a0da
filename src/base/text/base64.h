/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes as text, and back (RFC 4648, section 4: with padding). */
#ifndef RP_BASE_TEXT_BASE64_H
#define RP_BASE_TEXT_BASE64_H

#include <stddef.h>
#include <stdint.h>

#define RP_BASE64_TEXT(n)  (((n) + 2) / 3 * 4 + 1) /* of n bytes, NUL included */
#define RP_BASE64_BYTES(n) ((n) / 4 * 3)           /* at most, of a text of n */

void rp_base64(const uint8_t *bytes, size_t n, char *out);
/* How many bytes it is; -1: that is no base64, or written in another way than above. `out` has room
 * for RP_BASE64_BYTES(n); NULL: they are only counted. */
int64_t rp_base64_parse(const char *text, size_t n, uint8_t *out);

#endif
