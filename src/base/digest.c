/* SPDX-License-Identifier: Apache-2.0 */
#include "base/digest.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/text/hex.h"

/* The algorithm is fetched once: OpenSSL 3 looks it up again at every use of EVP_sha256(). */
struct rp_digest {
    EVP_MD_CTX *ctx;
    EVP_MD *md;
    bool open;
};

struct rp_digest *rp_digest_new(void)
{
    struct rp_digest *d = calloc(1, sizeof *d);
    if (d == NULL) return NULL;
    d->ctx = EVP_MD_CTX_new();
    d->md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (d->ctx != NULL && d->md != NULL) return d;
    rp_digest_free(d);
    return NULL;
}

void rp_digest_free(struct rp_digest *d)
{
    if (d == NULL) return;
    EVP_MD_CTX_free(d->ctx);
    EVP_MD_free(d->md);
    free(d);
}

void rp_digest_freep(struct rp_digest **d)
{
    rp_digest_free(*d);
}

/* Over memory, with a fetched algorithm, these calls fail only if misused; a digest that was not
 * made must never look like one, hence the assertions. */
void rp_digest_begin(struct rp_digest *d)
{
    int ok = EVP_DigestInit_ex2(d->ctx, d->md, NULL);
    RP_ASSERT(ok == 1);
    d->open = true;
}

void rp_digest_add(struct rp_digest *d, const void *bytes, size_t n)
{
    RP_ASSERT(d->open);
    if (n == 0) return;
    int ok = EVP_DigestUpdate(d->ctx, bytes, n);
    RP_ASSERT(ok == 1);
}

void rp_digest_add_int(struct rp_digest *d, int64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
    rp_digest_add(d, bytes, sizeof bytes);
}

void rp_digest_end(struct rp_digest *d, uint8_t out[RP_DIGEST_BYTES])
{
    RP_ASSERT(d->open);
    unsigned n = 0;
    int ok = EVP_DigestFinal_ex(d->ctx, out, &n);
    RP_ASSERT(ok == 1 && n == RP_DIGEST_BYTES);
    d->open = false;
}

int rp_digest_of(const void *bytes, size_t n, char hex[RP_DIGEST_HEX])
{
    struct rp_digest *d = rp_digest_new();
    uint8_t digest[RP_DIGEST_BYTES];
    if (d == NULL) return RP_ENOMEM;
    rp_digest_begin(d);
    rp_digest_add(d, bytes, n);
    rp_digest_end(d, digest);
    rp_digest_free(d);
    rp_digest_hex(digest, hex);
    return 0;
}

/* Kept for the life of the process and copied for every use: HMAC() looks up two algorithms each
 * time, which takes longer than what it is called for. */
static EVP_MAC_CTX *keyless;

static void make_keyless(void)
{
    char name[] = "SHA256";
    const OSSL_PARAM how[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                               OSSL_PARAM_construct_end() };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac != NULL ? EVP_MAC_CTX_new(mac) : NULL;
    if (ctx != NULL && EVP_MAC_CTX_set_params(ctx, how) == 1) keyless = ctx;
    if (keyless == NULL) EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
}

int rp_hmac(const void *key, size_t key_n, const void *bytes, size_t n, uint8_t out[RP_DIGEST_BYTES])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t made = 0;
    RP_ASSERT(key_n > 0);
    pthread_once(&once, make_keyless);
    EVP_MAC_CTX *ctx = keyless != NULL ? EVP_MAC_CTX_dup(keyless) : NULL;
    bool ok = ctx != NULL && EVP_MAC_init(ctx, key, key_n, NULL) == 1 && EVP_MAC_update(ctx, bytes, n) == 1 &&
              EVP_MAC_final(ctx, out, &made, RP_DIGEST_BYTES) == 1;
    EVP_MAC_CTX_free(ctx);
    RP_ASSERT(!ok || made == RP_DIGEST_BYTES);
    return ok ? 0 : RP_ENOMEM;
}

void rp_digest_hex(const uint8_t digest[RP_DIGEST_BYTES], char out[RP_DIGEST_HEX])
{
    rp_hex_write(digest, RP_DIGEST_BYTES, out);
}

uint64_t rp_hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (const unsigned char *at = bytes, *end = at + n; at < end; at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t rp_hash_text(uint64_t seed, const char *text)
{
    return rp_hash_bytes(UINT64_C(0xcbf29ce484222325) ^ seed, text, strlen(text));
}
