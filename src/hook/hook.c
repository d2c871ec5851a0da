/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/hook.h"

#include "base/assert.h"
#include "base/digest.h"
#include "base/error.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct rp_hook_backend *const backends[] = { &rp_hook_webhook };
#define BACKENDS (sizeof backends / sizeof backends[0])

static bool takes(const struct rp_hook_backend *backend, const char *url)
{
    for (const char *const *scheme = backend->schemes; *scheme != NULL; scheme++)
        if (strncasecmp(url, *scheme, strlen(*scheme)) == 0) return true;
    return false;
}

/* NULL: none. */
static const struct rp_hook_backend *backend_of(const char *url)
{
    for (size_t i = 0; i < BACKENDS; i++)
        if (takes(backends[i], url)) return backends[i];
    return NULL;
}

int rp_hook_start(struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < BACKENDS; i++) {
        const struct rp_hook_backend *b = backends[i];
        RP_ASSERT(b->name != NULL && b->schemes != NULL && b->start != NULL && b->send != NULL);
        r = b->start(err);
    }
    return r;
}

int rp_hook_send(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err)
{
    const struct rp_hook_backend *backend = backend_of(call->url);
    *out = (struct rp_hook_answer){ 0 };
    if (backend == NULL) return rp_error_set(err, RP_ECONFIG, "no kind of hook takes this URL");
    return backend->send(call, out, err);
}

unsigned rp_hook_guarantees(const char *url)
{
    const struct rp_hook_backend *backend = backend_of(url);
    return backend == NULL ? 0 : backend->guarantees;
}

void rp_hook_sign(const char *secret, int64_t at_ms, const char *body, size_t n, char out[RP_HOOK_SIGNATURE])
{
    char seconds[24], hex[RP_DIGEST_HEX];
    uint8_t mac[RP_DIGEST_BYTES];
    size_t mac_bytes = 0;
    snprintf(seconds, sizeof seconds, "%" PRId64, at_ms / 1000);
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);
    char sha256[] = "SHA256";
    OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string("digest", sha256, 0), OSSL_PARAM_construct_end() };
    RP_ASSERT(ctx != NULL);
    int ok = EVP_MAC_init(ctx, (const unsigned char *)secret, strlen(secret), params) &&
             EVP_MAC_update(ctx, (const unsigned char *)seconds, strlen(seconds)) &&
             EVP_MAC_update(ctx, (const unsigned char *)".", 1) &&
             EVP_MAC_update(ctx, (const unsigned char *)body, n) && EVP_MAC_final(ctx, mac, &mac_bytes, sizeof mac);
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(hmac);
    RP_ASSERT(ok && mac_bytes == sizeof mac);
    rp_digest_hex(mac, hex);
    snprintf(out, RP_HOOK_SIGNATURE, "t=%s,v1=%s", seconds, hex);
}
