/* SPDX-License-Identifier: Apache-2.0 */
/* s3.h - the S3 store from the inside: what its files share. The port is backend.h, requests go
 * through wire/wire.h.
 *
 * An identity here is (etag without quotes, version id or "", size, last modified in whole
 * seconds): a HEAD says no more. An object of a bucket that never had versions, and the version
 * "null", have the version "".
 *
 *   file              what
 *   s3.c              open, close, now_ms, interrupt, the table of slots
 *   get.c             get, stat
 *   put.c             put (in parts above S3_PART_BYTES)
 *   list.c            list
 *   partial.c         list_partial, abort_partial
 *   copy.c            copy
 *   annotate.c        annotate (tags, or a copy onto itself)
 *   presign.c         presign
 *   remove.c          remove; with versions: remove_versions.c
 *   hide.c            hide, show
 *   span.* look.* versions.*  looking: a page of a listing, many identities, many versions
 *   erase.*           deletes as they are sent
 *   meta.h            metadata as headers and tags, and back
 *   probe/            probe
 *   request.c         a request begun, its answer judged
 *   wire/             requests carried
 *   xml/              what servers answer, and what we send
 *   credentials/      where the keys come from
 *
 * S1  What remove may do depends on what the probe saw to hold (struct s3_powers), never on the
 *     vendor's name:
 *       version  the marked version and all older ones, by version id, newest last; nothing else
 *                can be hit
 *       etag     DELETE with If-Match (or with the etag in a multi-object delete, if that was seen
 *                to hold). Where nobody vouches that the server checks and deletes in one step, the
 *                requests are the same and the level is window: the server's own time between the
 *                two
 *       else     looked at (rp_s3_look), compared, and those that fit deleted at once: the time
 *                between is the window
 *     A DELETE without version or If-Match is never sent twice: `once` (wire.h, W2). It is
 *     `unknown` then, and asked about later.
 * S2  A key that the answer to a multi-object delete does not name is `unknown`. "Deleted" for a
 *     key that was looked at and found absent is `gone`. An object that a HEAD answers 404 is gone;
 *     403 without the right to list means nothing: denied.
 * S3  Without a probe that could write, powers are the weakest. An unversioned bucket that becomes
 *     versioned, or the other way round, is noticed at the next probe; until then a DELETE without
 *     version id in a versioned bucket only adds a marker: nothing is lost.
 * S4  With write_once the level is exact. Objects are still looked at before they are deleted, and
 *     one that was changed ends it: powers.seen_changed. */
#ifndef RP_STORE_S3_H
#define RP_STORE_S3_H

#include "base/arena.h"
#include "store/open.h"
#include "store/s3/credentials/credentials.h"
#include "store/s3/wire/sign.h"
#include "store/s3/wire/wire.h"
#include "store/s3/xml/xml.h"

#include <pthread.h>
#include <stdio.h>

#define S3_PART_BYTES ((size_t)8 << 20)
#define S3_COPY_MAX   ((int64_t)5 << 30) /* bytes that one copy request takes */
#define S3_COPY_PART  ((int64_t)1 << 30)
#define S3_DELETE_MAX 1000
#define S3_ANSWER_MAX ((size_t)8 << 20)
#define S3_CANARY     RP_STORE_OWN "canary/"

/* What was seen to hold. */
struct s3_powers {
    bool probed;                      /* by writing */
    bool versions;                    /* the bucket keeps versions */
    bool versions_go;                 /* and one can be deleted by its id */
    bool markers;                     /* and a delete marker hides one, is listed above it, and can be removed */
    bool single_if_match, multi_etag; /* a delete of another etag is refused, of this one done */
    bool one_step_deletes;            /* the same in a race, and by somebody's word; a race alone proves nothing */
    bool multi_delete;                /* answers per key */
    bool multi_versions;              /* the same by version, and hides no upload that comes meanwhile */
    bool put_new;                     /* If-None-Match: * is refused if the key is taken */
    bool put_if_match;
    bool list_order, list_current; /* bytewise; shows an overwrite at once */
    bool self_copy, tags, presign_ends;
    bool put_if_match_bare; /* If-Match of a PUT holds with the etag without quotes */
    bool absent_told;       /* a DELETE with If-Match of a key that is absent is not answered as done */
    bool copy_new;          /* as put_new, of a copy in one request */
    bool seen_changed;      /* S4 */
};

struct rp_s3 {
    struct rp_backend base;
    struct rp_arena arena; /* of what never changes: the target, copies of the options */
    struct rp_s3_options options;
    struct s3_target target;
    struct s3_credentials *credentials;
    struct s3_wire *wire;
    int64_t copy_max, copy_part; /* S3_COPY_MAX and S3_COPY_PART; tests have smaller ones */
    bool tells_markers[2];       /* atomic: answers have named a delete marker: to one delete, to many */
    pthread_mutex_t lock;        /* of what follows */
    struct s3_powers powers;
    int64_t clock_boot_ms; /* when the server was last asked for its clock; 0: never */
};

static inline struct rp_s3 *rp_s3_of(struct rp_backend *backend)
{
    return (struct rp_s3 *)backend;
}
struct s3_powers rp_s3_powers(struct rp_s3 *s3); /* as of now */
/* So much patience, or the store's own if that is less. */
static inline int64_t rp_s3_patience(const struct rp_s3 *s3, int64_t ms)
{
    return s3->options.patience_ms < ms ? s3->options.patience_ms : ms;
}
#define S3_REACH_MS ((int64_t)5000) /* where somebody waits to hear whether the server is there at all */
/* Whether the server answers at all, asked with little patience: the status of any answer below
 * 500, or negative. */
int rp_s3_reach(struct rp_s3 *s3, struct rp_error *err);

/* What is answered about one item. */
static inline void rp_s3_say(struct rp_item *item, enum rp_outcome outcome, const char *note)
{
    item->outcome = outcome;
    snprintf(item->note, sizeof item->note, "%.*s", (int)sizeof item->note - 1, note);
}

/* ---- request.c ---- */

/* A call with method and key, nothing else yet. */
struct s3_call rp_s3_call(const char *method, const char *key);
void rp_s3_query(struct s3_call *call, const char *name, const char *value);
/* What goes with it; borrowed. `body` NULL: nothing. */
void rp_s3_send(struct s3_call *call, const struct rp_pair *headers, size_t n, const struct rp_buf *body);
/* Runs one call. 0: status 2xx. Else the error, from the status and the error document: 404
 * RP_ENOTFOUND, 403 RP_EDENIED, 412 RP_ECHANGED, NoSuchBucket and redirects RP_ECONFIG, 5xx as the
 * wire says, ... The text says what was tried on what, the server's code and message, and what to
 * do. */
int rp_s3_run(struct rp_s3 *s3, struct s3_call *call, struct rp_error *err);
/* The error of a call that was run and whose status is not 2xx. */
int rp_s3_error(struct rp_s3 *s3, const struct s3_call *call, struct rp_error *err);
/* From the headers of a HEAD, GET or PUT. RP_ECORRUPT if there is no etag or no date. */
int rp_s3_identity(const struct s3_call *call, struct rp_identity *out, struct rp_error *err);
/* Whether a failure is about the store as a whole (T4): unreachable, no such bucket, no keys. */
bool rp_s3_is_store_wide(int code);
/* A HEAD has no error document: 404 may mean that the bucket itself is gone. RP_ECONFIG then. Ask
 * before taking 404 for `gone`. */
int rp_s3_bucket_check(struct rp_s3 *s3, struct rp_error *err);
/* Runs a HEAD. RP_ENOTFOUND only if the bucket is there. The answer's headers stay in the call. */
int rp_s3_head(struct rp_s3 *s3, struct s3_call *call, struct rp_identity *out, struct rp_error *err);
/* The same for who needs nothing else of the answer; version "": what stands there now. */
int rp_s3_identify(struct rp_s3 *s3, const char *key, const char *version, struct rp_identity *out,
                   struct rp_error *err);
/* RP_EEXISTS if the key shows an object. */
int rp_s3_expect_free(struct rp_s3 *s3, const char *key, struct rp_error *err);
/* versionId of this identity, "null" for the version "" where the bucket keeps versions, nothing
 * where it does not. */
void rp_s3_query_version(struct s3_call *call, const struct rp_identity *identity, bool versions);
void rp_s3_version_of(const struct s3_call *call, char out[RP_VERSION_MAX]); /* x-amz-version-id; "" for "null" */
void rp_s3_etag_bare(const char *etag, char out[RP_ETAG_MAX]);               /* without quotes */
bool rp_s3_etag_of(const struct s3_call *call, char out[RP_ETAG_MAX]);       /* likewise; false: the answer has none */
/* The etag in a document that is the answer; an empty one leaves `out` as it is. */
int rp_s3_told_etag(const struct s3_call *call, const char *root, char out[RP_ETAG_MAX], struct rp_error *err);

/* ---- get.c ---- */

/* HEADs, many at once: outcome and identity an item. */
int rp_s3_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err);
int rp_s3_get(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
              struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err);
int rp_s3_tags_read(struct rp_s3 *s3, const char *key, const struct rp_identity *identity, struct rp_arena *arena,
                    struct rp_pair **out, size_t *n, struct rp_error *err);

/* ---- upload.c ---- */

/* The etag that servers give to bytes in one piece. False: MD5 is not to be had. */
bool rp_s3_md5_hex(const void *bytes, size_t n, char out[RP_ETAG_MAX]);
/* An upload in parts, also of copies. The caller aborts what it began and does not end. */
struct s3_headers;
int rp_s3_upload_begin(struct rp_s3 *s3, const char *key, const struct s3_headers *headers, char out[S3_UPLOAD_MAX],
                       struct rp_error *err);
/* `call` is a POST of the key. `etag` is that of the object as the answer says; without one as the
 * parts foretell it ("": they do not). An error in an answer 200, or no such upload in answer to a
 * repeated request (RP_ENOTFOUND), leaves open what came of it. */
int rp_s3_upload_end(struct rp_s3 *s3, struct s3_call *call, const char *upload, const struct s3_part *parts, size_t n,
                     char etag[RP_ETAG_MAX], struct rp_error *err);

/* ---- annotate.c ---- */

/* All tags anew. identity NULL: of what stands there now. */
int rp_s3_tags_write(struct rp_s3 *s3, const char *key, const struct rp_identity *identity, const struct rp_pair *tags,
                     size_t n, struct rp_error *err);

/* ---- copy.c ---- */

/* The bytes, in as many requests as it takes; `anew`: with these headers and metadata instead of
 * its own. Looks at neither end, unless the answer was lost; RP_ECHANGED if the source is not there
 * as `identity` says, RP_EEXISTS if the target is taken and the server minds (powers.copy_new; not
 * of a copy onto itself). `etag` is the copy's; "" if nobody says. */
int rp_s3_copy_bytes(struct rp_s3 *s3, const char *from, const struct rp_identity *identity, const char *to,
                     const struct s3_headers *anew, char etag[RP_ETAG_MAX], struct rp_error *err);

/* ---- the other slots, as backend.h has them ---- */

int rp_s3_put(struct rp_backend *backend, const char *key, const struct rp_source *from, const struct rp_meta *meta,
              int flags, struct rp_identity *out, struct rp_error *err);
int rp_s3_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
               struct rp_error *err);
int rp_s3_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                 struct rp_error *err);
bool rp_s3_hides(struct rp_backend *backend);
int rp_s3_hide(struct rp_backend *backend, struct rp_item *items, const int64_t *since_ms, size_t n,
               const struct rp_gate *gate, struct rp_error *err);
int rp_s3_show(struct rp_backend *backend, const char *key, const struct rp_identity *identity, bool *made,
               struct rp_error *err);
int rp_s3_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
               struct rp_identity *out, struct rp_error *err);
int rp_s3_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                   const struct rp_pair *changes, size_t n, struct rp_error *err);
int rp_s3_probe(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err);
int rp_s3_presign_slot(struct rp_backend *backend, const struct rp_presign *what, struct rp_arena *arena,
                       struct rp_presigned *out, struct rp_error *err);
int rp_s3_list_partial(struct rp_backend *backend, const char *prefix, rp_partial_fn *fn, void *ctx,
                       struct rp_error *err);
int rp_s3_abort_partial(struct rp_backend *backend, const char *key, const char *upload, struct rp_error *err);

#endif
