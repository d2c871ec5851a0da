/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/session.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/assert.h"
#include "catalog/token.h"

static const char purpose[] = "reprieve: changes by cookie";

void rp_session_csrf(const char *secret, char out[RP_DIGEST_HEX])
{
    uint8_t mac[RP_DIGEST_BYTES];
    int r = rp_hmac(secret, strlen(secret), purpose, sizeof purpose - 1, mac);
    RP_ASSERT(r == 0);
    rp_digest_hex(mac, out);
}

bool rp_session_csrf_fits(const char *secret, const char *presented)
{
    char right[RP_DIGEST_HEX];
    if (presented == NULL || strlen(presented) != RP_DIGEST_HEX - 1) return false;
    rp_session_csrf(secret, right);
    return CRYPTO_memcmp(right, presented, RP_DIGEST_HEX - 1) == 0;
}

void rp_session_cookie(const char *secret, bool is_https, const char *path, char out[RP_SESSION_COOKIE_TEXT])
{
    int64_t age_s = secret == NULL ? 0 : RP_TOKEN_SESSION_MS / 1000;
    int n = snprintf(out, RP_SESSION_COOKIE_TEXT, "%s=%s; Path=%s; HttpOnly; SameSite=Strict; Max-Age=%d%s",
                     RP_SESSION_COOKIE, secret == NULL ? "" : secret, path[0] == '\0' ? "/" : path, (int)age_s,
                     is_https ? "; Secure" : "");
    RP_ASSERT(n > 0 && n < RP_SESSION_COOKIE_TEXT);
}
