/* SPDX-License-Identifier: Apache-2.0 */
/* percent.h - %41 is A. Decoding is ours and not the HTTP library's: a segment is decoded after
 * the path was split, and what is no text (a broken escape, NUL, bad UTF-8) is refused instead
 * of passed on. */
#ifndef RP_HTTP_ROUTE_PERCENT_H
#define RP_HTTP_ROUTE_PERCENT_H

#include <stdbool.h>

/* In place. */
bool rp_percent_decode(char *text);

#endif
