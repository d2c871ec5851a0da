/* SPDX-License-Identifier: Apache-2.0 */
/* remove.h - what looking and removing share inside the S3 store.
 *
 * R1  A removal has three steps: look (only at level window, or where a server says "deleted" of
 *     what was never there), erase, look again. `deleted` is said only of what the server said it
 *     deleted, or may have deleted, and then was seen to be gone.
 * R2  A page of a listing speaks for the keys from where it was begun up to its last key (to the
 *     end, if it is the last page), and only if it is in order. What it leaves out before an erase
 *     is asked about with a HEAD: an empty listing deletes nothing and makes nothing gone.
 * R3  By key, erasing follows the look at once and in small portions (S3_PORTION): the time between
 *     is the window. Where keys are never written twice (level exact) there is no window, and a
 *     portion is what one request takes. */
#ifndef RP_STORE_S3_REMOVE_H
#define RP_STORE_S3_REMOVE_H

#include "store/s3/s3.h"

#include <stdio.h>

#define S3_SPAN_MAX      1000
#define S3_SPAN_ALL      "1000"
#define S3_PORTION       250
#define S3_PORTION_EXACT S3_DELETE_MAX
#define S3_PORTION_HEADS 64 /* where each is looked at by a request of its own */

static inline void rp_s3_say(struct rp_item *item, enum rp_outcome outcome, const char *note)
{
    item->outcome = outcome;
    snprintf(item->note, sizeof item->note, "%.*s", (int)sizeof item->note - 1, note);
}

/* ---- span.c ---- */

/* Up to `keys` keys with this prefix, after `after` (and after_version of it: versions only) or
 * from where the token leads, each handed to fn in order. All borrowed; NULL or "": none. */
struct s3_span {
    bool versions;
    bool any_order; /* nothing follows from what is left out: some servers list all markers after all versions */
    const char *prefix, *after, *after_version, *token;
    const char *keys; /* NULL: S3_SPAN_MAX */
    s3_listed_fn *fn;
    void *ctx;
};
#define S3_NUMBER 24
void rp_s3_span_keys(size_t wanted, char out[S3_NUMBER]); /* S3_SPAN_MAX at most */
struct s3_call rp_s3_span_call(const struct s3_span *span);
int rp_s3_span_read(struct rp_s3 *s3, const struct s3_span *span, struct s3_call *call, struct s3_page *page,
                    struct rp_error *err);
/* Both of them for one page. */
int rp_s3_span(struct rp_s3 *s3, const struct s3_span *span, struct s3_page *page, struct rp_error *err);
/* A text shortly before this key, so that a listing after it begins with the key. */
void rp_s3_before(const char *key, char out[RP_KEY_MAX + 1]);

/* ---- look.c ---- */

/* How many keys that nobody asked about stood among so many of ours in the pages read so far: how
 * long the next page must be. Nothing else follows from it. Begins as zeroes. */
struct s3_crowd {
    size_t others, ours;
};
/* As rp_s3_stat; where many of the keys stand close together, pages of a listing (if list_current
 * and list_order hold) instead of a HEAD each. `absent`: the server said that it has deleted them.
 * What a complete listing does not show is then gone without another question, and where all of
 * them are gone a page of a few keys says so. */
int rp_s3_look(struct rp_s3 *s3, struct rp_item *items, size_t n, bool absent, struct s3_crowd *crowd,
               struct rp_error *err);

/* ---- erase.c ---- */

/* S3_BY_VERSION: identity.version, "null" for the one without. S3_BY_ETAG: identity.etag, by
 * If-Match. */
enum s3_by { S3_BY_KEY, S3_BY_VERSION, S3_BY_ETAG };
/* Sends the deletes. Outcomes are what the server said: deleted, gone (no such key), changed (the
 * etag did not fit), denied, retry (refused), unknown. Negative: a failure of the store as a whole;
 * the items are then retry or unknown. Each key (and version) once. */
int rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, struct rp_error *err);

/* Sends XML. Servers want to see that such a body arrived whole: by MD5 or, where that is forbidden
 * here, the newer way. `sum` outlives the call. */
struct s3_sum {
    char text[64];
    struct rp_pair headers[2];
};
void rp_s3_send_xml(struct s3_call *call, const struct rp_buf *body, struct s3_sum *sum);

/* ---- versions.c ---- */

#define S3_OLDER_MAX  4096 /* versions held at a time */
#define S3_COVERS_MAX 8

struct s3_version {
    size_t plan;
    bool cover; /* a marker that lies directly on the marked version, or on nothing */
    char id[RP_VERSION_MAX];
};
/* What is known of the versions under one item's key. */
struct s3_plan {
    struct rp_item *item;
    bool older_sent; /* the caller's: all older ones were sent off */
    bool read;       /* all that follows is known; else `why` */
    bool found;      /* the marked version is there */
    bool stands;     /* the key shows an object */
    bool objects;    /* there are versions that are no markers */
    bool more;       /* not all older versions are held */
    char id[RP_VERSION_MAX];
    char why[120];
    /* while it is read */
    bool begun, entered;
    size_t first;
    char run[S3_COVERS_MAX][RP_VERSION_MAX];
    size_t n_run;
};
struct s3_versions {
    struct rp_s3 *s3;
    struct s3_plan *plans; /* by key, each key once */
    size_t n;
    struct s3_version *held; /* S3_OLDER_MAX places: the older ones, and the covers, of each plan */
    size_t n_held;
    size_t at; /* the first plan not read */
};
/* Reads the versions of every plan's key. Negative: a failure of the store as a whole. */
int rp_s3_versions_read(struct s3_versions *vs, struct rp_error *err);

/* ---- remove_versions.c ---- */

/* The marked version and all older ones, then the delete markers that directly cover it. Items in
 * order of key. Outcomes are final. */
int rp_s3_remove_versions(struct rp_s3 *s3, struct rp_item **items, size_t n, struct rp_error *err);

#endif
