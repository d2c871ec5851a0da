/* SPDX-License-Identifier: Apache-2.0 */
/* signed_url.h - URLs that are their own permission: whoever holds one may do one thing with one
 * file, for a while.
 *
 *   PUT /v1/uploads/{file}?expires=<epoch ms>&signature=<hex>
 *   GET /v1/content/{file}?expires=<epoch ms>&signature=<hex>
 *
 * G1  The signature is an HMAC-SHA256 over all that is granted: method, file, store, key, size,
 *     content type, checksum, end. So one for another file, or for a file that has changed since,
 *     is none.
 * G2  Keys are 64 hex digits. The first signs, any of them verifies: two are valid while one
 *     replaces the other.
 * G3  Comparing takes the same time whatever differs. */
#ifndef RP_HTTP_CONTENT_SIGNED_URL_H
#define RP_HTTP_CONTENT_SIGNED_URL_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/error.h"
#include "catalog/file/file.h"
#include "config/config.h"

#include <jansson.h>

struct rp_grant {
    const char *method; /* "PUT" or "GET" */
    int64_t file_id;
    const char *store, *key;
    int64_t size_bytes;
    const char *content_type; /* "": none was promised */
    const uint8_t *checksum;  /* 32 bytes, or NULL */
    int64_t expires_at_ms;
};
struct rp_grant rp_grant_of(const char *method, const struct rp_file *file, const char *store, int64_t expires_at_ms);

int rp_grant_sign(const struct rp_grant *grant, const char *key, char out[RP_DIGEST_HEX], struct rp_error *err);
/* `signature` is text from outside: anything. */
bool rp_grant_verify(const struct rp_grant *grant, const char *const *keys, size_t n_keys, const char *signature);

/* What our URLs begin with, without a slash at the end: public_url, or the address that is
 * listened on. NULL: no memory. */
const char *rp_url_base(const struct rp_config *config, const char *address, struct rp_arena *arena);
int rp_signed_url(const struct rp_grant *grant, const char *base, const char *key, struct rp_arena *arena,
                  const char **out, struct rp_error *err);

#endif
