/* SPDX-License-Identifier: Apache-2.0 */
/* xml.h - what S3 servers answer, and the bodies that we send. Every text from outside is bounded.
 *
 * X1  A document that is not complete, not of the expected kind, has a DOCTYPE, is nested deeper
 *     than 16, or has a key that is no key (T1 of backend.h) or longer than its field is
 *     RP_ECORRUPT, and names what was wrong; nothing of it counts as read.
 * X2  Elements and attributes that are not known are passed over, in any namespace. Texts may come
 *     in any number of pieces.
 * X3  With encoding-type=url keys are decoded here; a broken escape is RP_ECORRUPT. A listing of
 *     objects or versions that was asked for it and does not say <EncodingType>url</EncodingType>
 *     is taken as it is: decoded, its keys would be others. (Ceph says so there, and not of
 *     uploads.)
 * X4  The version "null" is "" (s3.h), read and, where versions are to be named, written.
 * X5  Rows are handed over when the whole document was seen to be right; a page that is not the
 *     last and names no next one is RP_ECORRUPT. */
#ifndef RP_STORE_S3_XML_H
#define RP_STORE_S3_XML_H

#include "base/error.h"
#include "base/text/buf.h"
#include "store/backend.h"

#define S3_UPLOAD_MAX 1024

/* One object, version or delete marker of a listing. Etags without quotes; modified_ms cut to whole
 * seconds, for that is all that a HEAD says. Returns as rp_entry_fn; 1 stops reading and is handed
 * on. */
struct s3_listed {
    struct rp_entry entry;
    bool is_latest, is_marker; /* versions only */
};
typedef int s3_listed_fn(void *ctx, const struct s3_listed *listed, struct rp_error *err);
struct s3_page {
    bool truncated;
    char next[3 * RP_KEY_MAX + 256]; /* continuation token, or the next key marker: as it is to be sent, not escaped */
    char next_id[S3_UPLOAD_MAX];     /* the next version or upload marker */
    size_t n;
};
/* ListObjectsV2, and ListObjectVersions; asked for with encoding-type=url. */
int rp_s3_read_list(const struct rp_buf *xml, s3_listed_fn *fn, void *ctx, struct s3_page *page, struct rp_error *err);
int rp_s3_read_partials(const struct rp_buf *xml, rp_partial_fn *fn, void *ctx, struct s3_page *page,
                        struct rp_error *err);

/* Of a multi-object delete: one call for each key that the answer names. code "": deleted. */
struct s3_deleted {
    const char *key, *version; /* version "": none named */
    const char *code, *message;
    const char *marker; /* the delete marker that was made; "": none, or it is not told */
};
typedef int s3_deleted_fn(void *ctx, const struct s3_deleted *deleted, struct rp_error *err);
int rp_s3_read_deleted(const struct rp_buf *xml, s3_deleted_fn *fn, void *ctx, struct rp_error *err);

/* An error document. Never fails: what cannot be read is an empty code. */
struct s3_fault {
    char code[64], message[160], region[64], endpoint[128];
};
void rp_s3_read_fault(const struct rp_buf *xml, struct s3_fault *out);

/* The text of the first element of this name: UploadId, ETag, LastModified, Status (of a versioning
 * configuration; absent: ""). The root must be `root`. A document whose root is Error is RP_EFAILED
 * with its code and message: a copy can fail after it was answered 200. */
int rp_s3_read_text(const struct rp_buf *xml, const char *root, const char *element, char *out, size_t size,
                    struct rp_error *err);
/* <Tagging>: pairs in the arena. */
int rp_s3_read_tags(const struct rp_buf *xml, struct rp_arena *arena, struct rp_pair **out, size_t *n_out,
                    struct rp_error *err);

/* Bodies. A key that XML cannot carry (control characters) is RP_EINVAL. */
int rp_s3_write_delete(struct rp_buf *out, struct rp_item *const *items, size_t n, bool versions, bool etags,
                       struct rp_error *err);
int rp_s3_write_tags(struct rp_buf *out, const struct rp_pair *pairs, size_t n, struct rp_error *err);
struct s3_part {
    int number;
    char etag[RP_ETAG_MAX];
};
int rp_s3_write_parts(struct rp_buf *out, const struct s3_part *parts, size_t n, struct rp_error *err);

#endif
