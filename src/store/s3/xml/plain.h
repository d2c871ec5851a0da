/* SPDX-License-Identifier: Apache-2.0 */
/* plain.h - the XML that S3 servers really send, taken apart without all of XML: a page of a
 * listing in a third of expat's time.
 *
 * N1  Plain is a document of printable ASCII, tabs and line feeds: one root, which may have one
 *     attribute; elements with names of letters and digits, without attributes, each closed in its
 *     turn, at most S3_PLAIN_DEPTH deep; texts with no more than the five named references; before
 *     it nothing but the usual declaration, after it nothing but blanks.
 * N2  As far as a document is plain, expat calls the same functions with the same names and texts
 *     (in other pieces, it may be). A plain document is well-formed.
 * N3  What is not plain is not wrong: it is expat's to judge. */
#ifndef RP_STORE_S3_PLAIN_H
#define RP_STORE_S3_PLAIN_H

#include <stddef.h>

#define S3_PLAIN_DEPTH 16
#define S3_PLAIN_NAME  64

/* A name is NUL-terminated, a text is not. A negative answer ends it. */
struct s3_plain_fns {
    int (*begin)(void *ctx, const char *name);
    int (*text)(void *ctx, const char *text, size_t n);
    int (*end)(void *ctx);
};

/* 0: all of it was plain. 1: it was not; what came before has been told. Negative: what a function
 * answered. */
int rp_s3_plain_walk(const char *xml, size_t n, const struct s3_plain_fns *fns, void *ctx);

#endif
