/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - the console's sign-in: a cookie that scripts cannot read, and what a change by cookie
 * must show beside it.
 *
 * A session is a token (catalog/token.h, kind session) whose secret is in an HttpOnly,
 * SameSite=Strict cookie. A page of another site can make a browser send the cookie, but can
 * neither read GET /v1/session nor set a header of its own: a change needs the header
 * X-Reprieve-CSRF with the value that GET /v1/session gives, an HMAC under the secret. */
#ifndef RP_HTTP_SERVER_SESSION_H
#define RP_HTTP_SERVER_SESSION_H

#include "base/digest.h"

#include <stdbool.h>
#include <stddef.h>

#define RP_SESSION_COOKIE "reprieve_session"
#define RP_CSRF_HEADER    "X-Reprieve-CSRF"

void rp_session_csrf(const char *secret, char out[RP_DIGEST_HEX]);
bool rp_session_csrf_fits(const char *secret, const char *presented); /* presented may be NULL */
/* The Set-Cookie header; a NULL secret ends the cookie. `path` is the one that the console is
 * reached under, "" at the root. */
#define RP_SESSION_COOKIE_TEXT 2400
void rp_session_cookie(const char *secret, bool is_https, const char *path, char out[RP_SESSION_COOKIE_TEXT]);

#endif
