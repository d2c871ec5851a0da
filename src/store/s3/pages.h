/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - the pages of a listing as they come, unread; the next one fetched while this one is read.
 *
 * G1  A page is asked for by where it begins. What was fetched ahead from anywhere else is thrown away: a guess can cost a request, never a key.
 * G2  At most one page waits, and one is under way.
 * G3  Who wants more gets the next page by guess: from the last key of this one by the look of its bytes (rp_s3_guess_last_key).
 * G4  A page is streamed to the thread that fetches it, so that the way from one page to the next leads through no other thread; what breaks
 *     off is asked for again in the ordinary way, with all patience. */
#ifndef RP_STORE_S3_PAGES_H
#define RP_STORE_S3_PAGES_H

#include "store/s3/s3.h"

#define S3_PAGE_KEYS 1000

/* After this key, and this version of it; or where a token leads. */
struct s3_from {
    char key[RP_KEY_MAX + 1], version[RP_VERSION_MAX];
    char token[3 * RP_KEY_MAX + 256]; /* "": none */
};

struct s3_pages;
/* `prefix` outlives it. */
int rp_s3_pages_open(struct rp_s3 *s3, const char *prefix, bool versions, struct s3_pages **out, struct rp_error *err);
void rp_s3_pages_closep(struct s3_pages **pages); /* waits for what is under way */
/* The page; its bytes are the caller's, who releases them in any case. `more`: G3. */
int rp_s3_pages_take(struct s3_pages *pages, const struct s3_from *from, bool more, struct rp_buf *answer,
                     struct rp_error *err);
/* Begins to fetch it, for the next rp_s3_pages_take. */
void rp_s3_pages_ahead(struct s3_pages *pages, const struct s3_from *from);

#endif
