/* SPDX-License-Identifier: Apache-2.0 */
/* meta.h - headers and user metadata of an object as the headers of a request, and back;
 * annotations as tags, and back. Pure.
 *
 * M1  A user field NAME is the header x-amz-meta-NAME. Its value stands there as it is if it is
 *     printable ASCII, not empty, with no space at an end and no two in a row (signing folds
 *     those), and does not begin with "UTF-8''". Else it is written as RFC 8187 has it: "UTF-8''",
 *     then every byte but printable ASCII without % and space as %XX.
 * M2  Some servers (Ceph) give x-amz-meta-a_b back as x-amz-meta-a-b. Names that are more than a-z,
 *     0-9 and "-" stand therefore once more, in the field reprieve-names, percent-encoded and
 *     separated by commas; in header names what HTTP has no place for is "-". Two names that look
 *     the same then: RP_EINVAL. Annotations need no entry there: their dashes are read as
 *     underscores.
 * M3  What others wrote is taken as it is; bytes that are no UTF-8 are read as ISO 8859-1.
 * M4  The six headers go as they are; one with a control character is RP_EINVAL. A content-type
 *     "binary/octet-stream" is what servers say if there is none, and is read as none.
 * M5  An annotation as a tag: its value as it is if it has only what every server allows in a tag
 *     (letters and digits of ASCII, space + - . _ : / @), else "=utf-8=" and then every other byte
 *     as =XX; above 256 characters RP_ETOOBIG. A tag outranks the user field of its name; one with
 *     an empty value says that the field is not there. */
#ifndef RP_STORE_S3_META_H
#define RP_STORE_S3_META_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "store/backend.h"

#define S3_META_PREFIX "x-amz-meta-"
#define S3_TAGS_MAX    10

/* Headers of a request under construction. */
#define S3_HEADERS_MAX (RP_META_MAX_PAIRS + 16)
struct s3_headers {
    struct rp_pair pairs[S3_HEADERS_MAX];
    size_t n;
};
/* Strings are borrowed. RP_ETOOBIG above S3_HEADERS_MAX. */
int rp_s3_headers_add(struct s3_headers *headers, const char *name, const char *value, struct rp_error *err);
int rp_s3_headers_meta(struct s3_headers *headers, const struct rp_meta *meta, struct rp_arena *arena,
                       struct rp_error *err);
/* Of an answer ("name: value\n" each). */
int rp_s3_meta_read(const struct rp_buf *answer, struct rp_arena *arena, struct rp_meta *out, struct rp_error *err);
/* All that an object carries, spelled as the answer spells it, for a copy that must name everything
 * anew; user fields for which `skip` is true are left out (NULL: none are). */
int rp_s3_headers_again(struct s3_headers *headers, const struct rp_buf *answer,
                        bool (*skip)(void *ctx, const char *name), void *ctx, struct rp_arena *arena,
                        struct rp_error *err);

/* The name among the four of annotations that this one is (M2); NULL: none. */
const char *rp_s3_annotation(const char *name);
/* Tags with the changes made, all of them to annotations. `stored`: what the user metadata itself
 * has. */
int rp_s3_tags_change(const struct rp_pair *tags, size_t n_tags, const struct rp_meta *stored,
                      const struct rp_pair *changes, size_t n_changes, struct rp_arena *arena,
                      struct rp_pair out[S3_TAGS_MAX], size_t *n_out, struct rp_error *err);
/* Annotations among the tags, put into the metadata. */
int rp_s3_tags_merge(struct rp_meta *meta, const struct rp_pair *tags, size_t n_tags, struct rp_arena *arena,
                     struct rp_error *err);

#endif
