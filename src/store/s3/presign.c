/* SPDX-License-Identifier: Apache-2.0 */
/* URLs that are their own permission. A PUT is bound to its length and type, to a key that is not
 * taken where that was seen to hold, and to the checksum by x-amz-checksum-sha256: AWS and MinIO
 * refuse other bytes, Ceph 16 keeps the header's promise to nobody, so that who confirms the upload
 * reads the bytes. Only where URLs were seen to end (powers.presign_ends). */
#include <inttypes.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "store/s3/s3.h"

#define PUT_MAX_BYTES ((int64_t)5 << 30) /* of one request; all servers agree */

static void push(struct rp_presigned *p, const char *name, const char *value)
{
    RP_ASSERT(p->n_headers < RP_PRESIGNED_HEADERS_MAX);
    p->headers[p->n_headers++] = (struct rp_pair){ name, value };
}

static const char *base64(const uint8_t digest[RP_DIGEST_BYTES], struct rp_arena *arena)
{
    char *text = rp_arena_alloc(arena, 4 * ((RP_DIGEST_BYTES + 2) / 3) + 1);
    if (text) EVP_EncodeBlock((unsigned char *)text, digest, RP_DIGEST_BYTES);
    return text;
}

static int bind_put(const struct rp_presign *what, bool put_new, struct rp_arena *arena, struct rp_presigned *out,
                    struct rp_error *err)
{
    if (what->size_bytes < 0 || what->size_bytes > PUT_MAX_BYTES)
        return rp_error_set(err, RP_ETOOBIG, "one PUT to S3 takes 5 GiB at most, not %" PRId64 " bytes",
                            what->size_bytes);
    const char *length = rp_arena_fmt(arena, "%" PRId64, what->size_bytes);
    const char *type = what->content_type ? rp_arena_strdup(arena, what->content_type) : "";
    const char *sum = what->checksum ? base64(what->checksum, arena) : "";
    if (!length || !type || !sum) return rp_error_set(err, RP_ENOMEM, "no memory to sign a URL");
    push(out, "content-length", length);
    if (type[0]) push(out, "content-type", type);
    if (sum[0]) push(out, "x-amz-checksum-sha256", sum);
    if (put_new) push(out, "if-none-match", "*");
    return 0;
}

static void bind_get(const struct rp_presign *what, struct s3_message *message)
{
    if (what->content_type && what->content_type[0])
        message->query[message->n_query++] = (struct rp_pair){ "response-content-type", what->content_type };
    if (what->disposition)
        message->query[message->n_query++] = (struct rp_pair){ "response-content-disposition", what->disposition };
}

/* The second mark of an upload counts on its URL's end (DESIGN section 5), and whoever is given a
 * download for five minutes shall not have it for ever. What was not tried yet is taken for good in
 * a download only. */
static int refuse_endless(struct rp_s3 *s3, bool put, struct rp_error *err)
{
    const struct s3_powers powers = rp_s3_powers(s3);
    if (powers.presign_ends || (!put && !powers.probed)) return 0;
    return rp_error_advise(err, RP_EWEAK, "`reprieve doctor` probes the store and says what it saw of signed URLs",
                           "bucket '%.80s' was not seen to refuse a signed URL that has ended", s3->target.bucket);
}

/* The signature's date has whole seconds, and the life counts from it: so the URL ends with
 * `ends_at_ms`, or less than a second before. */
static int64_t life_s(const struct rp_presign *what)
{
    return (what->ends_at_ms - what->now_ms / 1000 * 1000) / 1000;
}

static int check(const struct rp_presign *what, struct rp_error *err)
{
    int r = rp_key_check(what->key, strlen(what->key), err);
    if (r < 0) return r;
    if ((what->content_type && rp_s3_has_control(what->content_type)) ||
        (what->disposition && rp_s3_has_control(what->disposition)))
        return rp_error_set(err, RP_EINVAL, "a header of '%s' has a control character", what->key);
    return 0;
}

int rp_s3_presign_slot(struct rp_backend *backend, const struct rp_presign *what, struct rp_arena *arena,
                       struct rp_presigned *out, struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    struct rp_presigned made = { 0 };
    struct s3_keys keys;
    struct s3_message message = { .method = what->method, .key = what->key };
    bool put = strcmp(what->method, "PUT") == 0;
    RP_ASSERT(put || strcmp(what->method, "GET") == 0 || strcmp(what->method, "HEAD") == 0);
    int r = check(what, err);
    if (r < 0 || (r = refuse_endless(s3, put, err)) < 0) return r;
    if (put)
        r = bind_put(what, rp_s3_powers(s3).put_new, arena, &made, err);
    else
        bind_get(what, &message);
    if (r < 0 || (r = rp_s3_credentials_get(s3->credentials, &keys, err)) < 0) return r;
    message.headers = made.headers;
    message.n_headers = made.n_headers;
    r = rp_s3_presign(&s3->target, &keys, &message, what->now_ms, life_s(what), arena, &made.url, err);
    explicit_bzero(&keys, sizeof keys);
    if (r < 0) return r;
    *out = made;
    return 0;
}
