/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - an XML document taken apart: rows of named texts, and the texts beside them. What they
 * mean is decided in rows.c and text.c.
 *
 * A shape says which root is expected, which elements at which depth are rows, and which texts are
 * looked for: children of a row, or children of the root. All else is passed over, whatever
 * namespace it is in.
 * P1  RP_ECORRUPT: a DOCTYPE; more than S3_DEPTH_MAX levels; another root; a text that is longer
 *     than S3_TEXT_MAX or has elements in it; a text that stands twice where it is looked for once;
 *     everything that is not well-formed.
 * P2  Rows are handed over while the document is read. A caller that must not act on half a
 *     document keeps them until the end. */
#ifndef RP_STORE_S3_PARSE_H
#define RP_STORE_S3_PARSE_H

#include "base/error.h"
#include "base/text/buf.h"
#include "store/backend.h"

#define S3_DEPTH_MAX 16
#define S3_TEXT_MAX  ((size_t)3 * RP_KEY_MAX + 255) /* a key, all of it escaped, or a token made of one */
#define S3_TEXTS_MAX 8

/* Names of elements; the place of a name is its id. */
struct s3_shape {
    const char *roots[2];
    const char *rows[S3_TEXTS_MAX];
    int row_depth; /* the root is 1 */
    const char *fields[S3_TEXTS_MAX], *heads[S3_TEXTS_MAX];
    const char *cut;     /* words for people: too long they are cut, not refused */
    bool heads_anywhere; /* at any depth, and the first of a name counts */
};

/* Texts by id, NULL: absent. */
struct s3_texts {
    struct rp_buf bytes;
    size_t at[S3_TEXTS_MAX]; /* where in bytes it begins, plus 1 */
};
const char *rp_s3_text(const struct s3_texts *texts, int id);
void rp_s3_texts_done(struct s3_texts *texts); /* also the RP_CLEANUP function */

typedef int s3_row_fn(void *ctx, int row, const struct s3_texts *fields, struct rp_error *err);
/* `heads` begins as zeroes and is to be released in any case. */
int rp_s3_parse(const struct rp_buf *xml, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                struct s3_texts *heads, struct rp_error *err);
/* The same by expat alone: tests hold one against the other. */
int rp_s3_parse_expat(const struct rp_buf *xml, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                      struct s3_texts *heads, struct rp_error *err);

#endif
