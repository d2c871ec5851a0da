/* SPDX-License-Identifier: Apache-2.0 */
/* framing.h - whether a request can be read in one way only.
 *
 * A proxy before us may find the end of a request, its host or its headers elsewhere than the HTTP
 * library does; then one client's bytes become another's request. What could be read in two ways is
 * refused with 400 and ends the connection:
 *
 * F1  Content-Length, Transfer-Encoding and Host come once; not the first two together; a coding
 *     other than chunked, or one in HTTP/1.0.
 * F2  Names are tokens, values have no control characters but the tab.
 * F3  What the library hands over is the whole of the bytes that came: no NUL has cut anything
 *     short, no line was folded into another or ends without CR LF, one space stands between the
 *     words of the request line.
 *
 * What is inside a chunked body (extensions, ends of lines, trailers) cannot be seen here; so its
 * connection is closed after the answer. */
#ifndef RP_HTTP_SERVER_FRAMING_H
#define RP_HTTP_SERVER_FRAMING_H

#include "http/server/inner.h"

/* The HTTP library's look at the request line, before it takes the address apart: whether the
 * version comes behind it. Else the request's context is one that rp_framing_is_cut. */
void *rp_framing_line(void *cls, const char *address, struct MHD_Connection *connection);
bool rp_framing_is_cut(const void *context);
/* In the HTTP library's first call for a request, with what it hands over. */
int rp_framing_check(const struct rp_request *q, const char *version, struct rp_error *err);

#endif
