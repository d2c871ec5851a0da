/* SPDX-License-Identifier: Apache-2.0 */
/* url.c - a URL by which a service gives its late answer, and nothing else: signed for one
 * confirmation, until its end. */
#include "base/id.h"
#include "base/text/hex.h"
#include "core/confirm/confirm.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

static bool sign(const char *key, int64_t id, int64_t expires_at_ms, char out[RP_DIGEST_HEX])
{
    char text[96], id_text[RP_ID_TEXT];
    uint8_t secret[RP_DIGEST_BYTES], mac[RP_DIGEST_BYTES];
    if (key == NULL || strlen(key) != RP_DIGEST_HEX - 1) return false;
    for (size_t i = 0; i < RP_DIGEST_BYTES; i++) {
        int high = rp_hex_digit(key[2 * i]), low = rp_hex_digit(key[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        secret[i] = (uint8_t)(high << 4 | low);
    }
    snprintf(text, sizeof text, "reprieve confirmation 1 %s %" PRId64, rp_id_format(RP_ID_CONFIRMATION, id, id_text),
             expires_at_ms);
    int r = rp_hmac(secret, sizeof secret, text, strlen(text), mac);
    OPENSSL_cleanse(secret, sizeof secret);
    if (r == 0) rp_digest_hex(mac, out);
    return r == 0;
}

void rp_answer_url(const char *base, const char *key, int64_t confirmation_id, int64_t expires_at_ms,
                   char out[RP_ANSWER_URL])
{
    char signature[RP_DIGEST_HEX], id[RP_ID_TEXT];
    out[0] = 0;
    if (base == NULL || base[0] == 0 || !sign(key, confirmation_id, expires_at_ms, signature)) return;
    int n = snprintf(out, RP_ANSWER_URL, "%s/v1/confirmations/%s?expires=%" PRId64 "&signature=%s", base,
                     rp_id_format(RP_ID_CONFIRMATION, confirmation_id, id), expires_at_ms, signature);
    if (n < 0 || n >= RP_ANSWER_URL) out[0] = 0;
}

bool rp_answer_verify(const char *key, int64_t confirmation_id, int64_t expires_at_ms, const char *signature)
{
    char right[RP_DIGEST_HEX];
    if (signature == NULL || strlen(signature) != RP_DIGEST_HEX - 1) return false;
    if (!sign(key, confirmation_id, expires_at_ms, right)) return false;
    return CRYPTO_memcmp(right, signature, RP_DIGEST_HEX - 1) == 0;
}
