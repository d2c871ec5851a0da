/* SPDX-License-Identifier: Apache-2.0 */
/* How an upload in parts begins and ends, and the etags that its parts foretell. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/hex.h"
#include "store/s3/meta.h"
#include "store/s3/s3.h"

#define MD5_BYTES 16

bool rp_s3_md5_hex(const void *bytes, size_t n, char out[RP_ETAG_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_Digest(bytes, n, digest, &length, EVP_md5(), NULL) != 1 || length != MD5_BYTES) return false;
    rp_hex_write(digest, length, out);
    return true;
}

int rp_s3_upload_begin(struct rp_s3 *s3, const char *key, const struct s3_headers *headers, char out[S3_UPLOAD_MAX],
                       struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("POST", key);
    rp_s3_query(&call, "uploads", "");
    rp_s3_send(&call, headers->pairs, headers->n, NULL);
    int r = rp_s3_run(s3, &call, err);
    if (r < 0) return r;
    return rp_s3_read_text(&call.answer, "InitiateMultipartUploadResult", "UploadId", out, S3_UPLOAD_MAX, err);
}

/* The etag that servers give to an upload in parts: the MD5 of the parts' MD5s, and their number.
 * "": the parts' are none. */
static void foretell_etag_of_parts(const struct s3_part *parts, size_t n, char out[RP_ETAG_MAX])
{
    RP_CLEANUP(rp_freep) unsigned char *digests = malloc(n * MD5_BYTES + 1);
    out[0] = '\0';
    for (size_t i = 0; digests && i < n; i++) {
        if (strlen(parts[i].etag) != 2 * (size_t)MD5_BYTES) return;
        if (!rp_hex_read(parts[i].etag, MD5_BYTES, digests + i * MD5_BYTES)) return;
    }
    if (digests && rp_s3_md5_hex(digests, n * MD5_BYTES, out)) snprintf(out + 2 * (size_t)MD5_BYTES, 8, "-%zu", n);
}

int rp_s3_upload_end(struct rp_s3 *s3, struct s3_call *call, const char *upload, const struct s3_part *parts, size_t n,
                     char etag[RP_ETAG_MAX], struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(S3_ANSWER_MAX);
    foretell_etag_of_parts(parts, n, etag);
    int r = rp_s3_write_parts(&body, parts, n, err);
    if (r < 0) return r;
    rp_s3_query(call, "uploadId", upload);
    rp_s3_send(call, call->message.headers, call->message.n_headers, &body);
    r = rp_s3_run(s3, call, err);
    call->message.body = NULL;
    call->message.body_bytes = 0;
    if (r < 0) return r;
    r = rp_s3_told_etag(call, "CompleteMultipartUploadResult", etag, err);
    if (r < 0) return rp_error_wrap(err, RP_EUNKNOWN, "end an upload in parts of '%s'", call->message.key);
    return 0;
}
