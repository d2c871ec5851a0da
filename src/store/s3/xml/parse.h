/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - an XML document taken apart: rows of named texts, and the texts beside them. What the texts mean is xml.c's.
 *
 * A shape says which root is expected, which elements at which depth are rows, and which texts are looked for: children of a row, or
 * children of the root. All else is passed over, whatever namespace it is in.
 * P1  A DOCTYPE, more than S3_DEPTH_MAX levels, another root, a text longer than S3_TEXT_MAX or with elements in it, a text that stands
 *     twice where it is looked for once, and everything that is not well-formed: RP_ECORRUPT.
 * P2  Rows are handed over while the document is read: who must not act on half a document keeps them until the end. */
#ifndef RP_STORE_S3_PARSE_H
#define RP_STORE_S3_PARSE_H

#include "base/buf.h"
#include "base/error.h"
#include "store/backend.h"

#define S3_DEPTH_MAX 16
#define S3_TEXT_MAX  ((size_t)3 * RP_KEY_MAX + 255) /* a key, all of it escaped, or a token made of one */
#define S3_TEXTS_MAX 8

struct s3_element {
    const char *name; /* NULL ends a table */
    int id;           /* of a text: its place, below S3_TEXTS_MAX */
    bool cut;         /* words for people: one that is too long is cut, not refused */
};
struct s3_shape {
    const char *roots[2];
    const struct s3_element *rows; /* NULL: none */
    int row_depth;                 /* the root is 1 */
    const struct s3_element *fields, *heads;
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
int rp_s3_parse(const char *xml, size_t n, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                struct s3_texts *heads, struct rp_error *err);
/* The same by expat alone, which rp_s3_parse leaves out for what is plain (plain.h): tests hold one against the other. */
int rp_s3_parse_expat(const char *xml, size_t n, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                      struct s3_texts *heads, struct rp_error *err);

#endif
