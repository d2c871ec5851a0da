/* SPDX-License-Identifier: Apache-2.0 */
/* sign.h - requests to S3 and how they are signed (AWS Signature Version 4). Pure: no I/O, no clock
 * of its own.
 *
 * G1  A message holds raw bytes: the key as it is, names and values of the query as they are.
 *     Encoding (RFC 3986, each byte but A-Z a-z 0-9 - . _ ~, "/" kept in the path only, never
 *     normalised) happens here and nowhere else.
 * G2  Header names are lower case. host, x-amz-date, x-amz-content-sha256, x-amz-security-token and
 *     authorization are added by signing and never in a message. Every header of a message is
 *     signed.
 * G3  A body's SHA-256 is part of the signature. */
#ifndef RP_STORE_S3_SIGN_H
#define RP_STORE_S3_SIGN_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "store/backend.h"

#include <stdint.h>

/* What speaks for us. */
struct s3_keys {
    char access[256], secret[256];
    char token[4096];      /* "": none */
    int64_t expires_at_ms; /* INT64_MAX: never */
};

/* Where requests go. */
struct s3_target {
    const char *scheme; /* "http" or "https" */
    const char *host;   /* with ":port" unless it is the scheme's own */
    const char *bucket;
    bool path_style; /* host/bucket/key; else bucket.host/key */
    const char *region;
};

#define S3_QUERY_MAX 12
struct s3_message {
    const char *method;
    const char *key; /* NULL: the bucket itself */
    struct rp_pair query[S3_QUERY_MAX];
    size_t n_query;
    const struct rp_pair *headers;
    size_t n_headers;
    const void *body; /* NULL: none */
    size_t body_bytes;
};

/* Appends the percent-encoded text. */
void rp_s3_encode(struct rp_buf *out, const char *text, bool keep_slashes);
bool rp_s3_has_control(const char *text); /* a control character, tabs among them */

/* `headers` are all that must be sent, host and authorization among them. */
struct s3_signed {
    const char *url;
    const struct rp_pair *headers;
    size_t n_headers;
};
int rp_s3_sign(const struct s3_target *target, const struct s3_keys *keys, const struct s3_message *message,
               int64_t now_ms, struct rp_arena *arena, struct s3_signed *out, struct rp_error *err);

/* The same in a URL, for `lives_s` seconds (1 to 604,800, else RP_EINVAL) from now_ms on; the body
 * stays unsigned. The message's headers are signed: whoever uses the URL must send them as they
 * are. */
int rp_s3_presign(const struct s3_target *target, const struct s3_keys *keys, const struct s3_message *message,
                  int64_t now_ms, int64_t lives_s, struct rp_arena *arena, const char **url, struct rp_error *err);

#endif
