/* SPDX-License-Identifier: Apache-2.0 */
#include "http/live/seal.h"

#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/text/hex.h"

#define BYTES_MAX (RP_LIVE_ID_TEXT / 2)

static void derive(const char *secret, const char *purpose, uint8_t out[RP_DIGEST_BYTES])
{
    int r = rp_hmac(secret, strlen(secret), purpose, strlen(purpose), out);
    RP_ASSERT(r == 0);
}

void rp_seal_init(struct rp_seal *seal, const char *secret)
{
    seal->on = secret != NULL;
    if (!seal->on) return;
    derive(secret, "reprieve: ids of events, their HMAC", seal->mac_key);
    derive(secret, "reprieve: ids of events, their cipher", seal->key);
}

/* Both ways. */
static void encrypt(const struct rp_seal *seal, const uint8_t mac[RP_SEAL_MAC], uint8_t *bytes, size_t n)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int out = 0;
    int ok = ctx != NULL && EVP_EncryptInit_ex(ctx, EVP_aes_256_ctr(), NULL, seal->key, mac) == 1 &&
             EVP_EncryptUpdate(ctx, bytes, &out, bytes, (int)n) == 1;
    RP_ASSERT(ok && (size_t)out == n);
    EVP_CIPHER_CTX_free(ctx);
}

static void authenticate(const struct rp_seal *seal, const uint8_t *bytes, size_t n, uint8_t mac[RP_SEAL_MAC])
{
    uint8_t whole[RP_DIGEST_BYTES];
    int r = rp_hmac(seal->mac_key, sizeof seal->mac_key, bytes, n, whole);
    RP_ASSERT(r == 0);
    memcpy(mac, whole, RP_SEAL_MAC);
}

const char *rp_seal_close(const struct rp_seal *seal, const char *cursor, char out[RP_LIVE_ID_TEXT])
{
    uint8_t bytes[BYTES_MAX] = { 0 };
    size_t n = (strlen(cursor) / RP_SEAL_BLOCK + 1) * RP_SEAL_BLOCK; /* with a NUL at least */
    RP_ASSERT(seal->on && RP_SEAL_MAC + n <= sizeof bytes);
    (void)snprintf((char *)bytes + RP_SEAL_MAC, n, "%s", cursor);
    authenticate(seal, bytes + RP_SEAL_MAC, n, bytes);
    encrypt(seal, bytes, bytes + RP_SEAL_MAC, n);
    rp_hex_write(bytes, RP_SEAL_MAC + n, out);
    return out;
}

int rp_seal_open(const struct rp_seal *seal, const char *id, char cursor[RP_FEED_CURSOR_TEXT], struct rp_error *err)
{
    uint8_t bytes[BYTES_MAX], mac[RP_SEAL_MAC];
    size_t digits = strlen(id), n = digits / 2 - RP_SEAL_MAC;
    bool ok = digits % 2 == 0 && digits / 2 > RP_SEAL_MAC && n % RP_SEAL_BLOCK == 0 && digits / 2 <= sizeof bytes &&
              rp_hex_read(id, digits / 2, bytes);
    if (ok) {
        encrypt(seal, bytes, bytes + RP_SEAL_MAC, n);
        authenticate(seal, bytes + RP_SEAL_MAC, n, mac);
        ok = CRYPTO_memcmp(mac, bytes, RP_SEAL_MAC) == 0;
    }
    if (!ok) {
        rp_error_set(err, RP_EINVAL, "Last-Event-ID is not an id of this stream");
        return rp_error_hint(err, "leave it away to listen from now on");
    }
    RP_ASSERT(memchr(bytes + RP_SEAL_MAC, '\0', n) != NULL &&
              strlen((char *)bytes + RP_SEAL_MAC) < RP_FEED_CURSOR_TEXT);
    (void)snprintf(cursor, RP_FEED_CURSOR_TEXT, "%s", (char *)bytes + RP_SEAL_MAC);
    return 0;
}
