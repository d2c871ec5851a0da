/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h - SHA-256 by OpenSSL, in the shapes that the project needs. */
#ifndef RP_BASE_DIGEST_H
#define RP_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define RP_DIGEST_BYTES 32
#define RP_DIGEST_HEX   65

/* One context for many digests (making one each time costs more than hashing a short text). */
struct rp_digest;
struct rp_digest *rp_digest_new(void);
void rp_digest_free(struct rp_digest *d);
void rp_digest_freep(struct rp_digest **d);
void rp_digest_begin(struct rp_digest *d);
void rp_digest_add(struct rp_digest *d, const void *bytes, size_t n);
void rp_digest_add_int(struct rp_digest *d, int64_t value); /* 8 bytes, big endian */
void rp_digest_end(struct rp_digest *d, uint8_t out[RP_DIGEST_BYTES]);

/* Of these bytes alone, in hex. RP_ENOMEM, or 0. */
int rp_digest_of(const void *bytes, size_t n, char hex[RP_DIGEST_HEX]);

/* HMAC-SHA256 (RFC 2104). Any thread. RP_ENOMEM, or 0. */
int rp_hmac(const void *key, size_t key_n, const void *bytes, size_t n, uint8_t out[RP_DIGEST_BYTES]);

void rp_digest_hex(const uint8_t digest[RP_DIGEST_BYTES], char out[RP_DIGEST_HEX]);

/* FNV-1a: spread is all that is asked of it. rp_hash_bytes goes on from a hash. */
uint64_t rp_hash_bytes(uint64_t hash, const void *bytes, size_t n);
uint64_t rp_hash_text(uint64_t seed, const char *text);

#endif
