/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - the store port: objects under keys, and what a store was seen to guarantee.
 *
 * T1  A key is 1 to 1,024 bytes of valid UTF-8 without NUL (rp_key_check). No other rule: "..",
 *     "//", a leading "/" are ordinary bytes of a key, as in S3; a backend maps them so that
 *     nothing escapes its root. Keys under ".reprieve/" are ours: list leaves them out unless asked
 *     for by that prefix.
 * T2  An object's identity is (key, version or etag, size, last modified). Two uploads never share
 *     an identity, except where a store cannot tell identical bytes apart: an S3 bucket without
 *     versions, within one second of its clock.
 * T3  remove() deletes exactly the identity it was given and nothing newer, as far as the store's
 *     level reaches, and reports one outcome an item; what was overwritten is `changed`, or
 *     `deleted` where the store has kept it (level version); what it cannot vouch for is `unknown`,
 *     never `deleted`. When it returns 0, every `deleted` and `gone` is durable.
 * T4  A store-wide failure (unreachable, root missing, read-only) is the call's own negative
 *     return; items are then as they were before or `unknown`. A failure of one object is that
 *     item's outcome.
 * T5  put() shows the new bytes whole or not at all, durable on return, headers and metadata with
 *     them.
 * T6  list() gives keys in byte order, each once, after `after` (exclusive), constant memory; a
 *     listing that cannot be complete is an error, never a short answer.
 * T7  A store handle may be used by several threads at once.
 * T8  A backend may take and give bytes in parts (all put_* and get_* slots, or none of them):
 *     put() and get() are then made of these. A writer or reader is used by one thread at a time.
 *     What a writer took shows with put_commit, as T5 says, or never. put_commit and put_abort end
 *     the writer, whatever they return; get_close ends the reader. The store outlives both.
 * T9  Optional slots are NULL where a store has no such thing: put_*, get_*, presign, list_partial
 *     and abort_partial, now_ms, interrupt, keys_source; hides, hide and show.
 * T10 interrupt() makes every call under way end soon, and every later one fail, as if the store
 *     did not answer any more: RP_EUNAVAILABLE, or `unknown` for what may have been carried out. It
 *     does not wait, may be called from any thread and more than once; only close() is of use after
 *     it.
 * T11 Many copies are one call (rp_backend_copies), as many at a time as the store declares. A gate
 *     is asked right before each copy, each delete and each repetition of one: once it is shut
 *     nothing more is begun. remove() then fails as a whole (RP_EUNAVAILABLE). NULL: it is always
 *     open.
 * T12 A store that keeps versions may hide an object: its key shows nothing, and the object lies
 *     there as it was, with its older versions, ACL and tags, until it is shown again or removed.
 *     Whether it can is known once it was probed (rp_backend_hides); what was hidden can be shown
 *     without that. */
#ifndef RP_STORE_BACKEND_H
#define RP_STORE_BACKEND_H

#include "base/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_arena;
struct rp_error;

#define RP_ETAG_MAX    96
#define RP_VERSION_MAX 128

/* How exactly a delete can name what it deletes (DESIGN section 5), weakest first. */
enum rp_level { RP_LEVEL_WINDOW, RP_LEVEL_ETAG, RP_LEVEL_VERSION, RP_LEVEL_EXACT };
const char *rp_level_name(enum rp_level level);

/* What a probe found out. Findings are for people: what was tried, whether it holds, what was
 * seen. */
#define RP_FINDINGS_MAX        20
#define RP_FINDING_SIGNED_URLS "signed URLs"    /* whether they end; `doctor` looks for it */
#define RP_FINDING_LIFECYCLE   "older versions" /* whether the store itself leaves them alone; likewise */
struct rp_finding {
    const char *name; /* "list order", "delete by If-Match": static */
    bool holds;
    char says[120];
};
struct rp_probed {
    enum rp_level level;
    enum rp_level undeclared; /* where `level` is exact because it was declared: what holds without that */
    struct rp_finding findings[RP_FINDINGS_MAX];
    size_t n_findings;
};

enum rp_outcome {
    RP_OUT_NONE,    /* not asked yet */
    RP_OUT_FOUND,   /* stat: it is there, identity filled in */
    RP_OUT_DELETED, /* it was there with this identity, and is durably gone */
    RP_OUT_GONE,    /* nothing stands under the key */
    RP_OUT_CHANGED, /* another identity stands under the key; left alone */
    RP_OUT_DENIED,  /* permission; a person must act */
    RP_OUT_RETRY,   /* failed, nothing happened: try again */
    RP_OUT_UNKNOWN  /* may or may not have happened: ask again */
};
const char *rp_outcome_name(enum rp_outcome outcome);

struct rp_identity {
    char etag[RP_ETAG_MAX];       /* "" if the store has none */
    char version[RP_VERSION_MAX]; /* "" if the store has none */
    int64_t size_bytes;
    int64_t modified_ms;
};
bool rp_identity_equal(const struct rp_identity *a, const struct rp_identity *b);

struct rp_item {
    const char *key;             /* in; borrowed */
    struct rp_identity identity; /* in for remove, out for stat */
    enum rp_outcome outcome;     /* out */
    char note[120];              /* out: why, for denied, retry and unknown */
};

/* One copy of many. */
struct rp_copying {
    const char *from, *to;       /* in; borrowed */
    struct rp_identity identity; /* in: of the source; out, with code 0: of the copy */
    int code;                    /* out: as copy() returns; RP_COPY_NONE: it was not begun */
    char note[200];              /* out: why, with a negative code */
};
#define RP_COPY_NONE 1

/* Whether something may still be sent. Asked by any thread. */
struct rp_gate {
    bool (*is_open)(void *ctx);
    void *ctx;
};
static inline bool rp_gate_is_open(const struct rp_gate *gate)
{
    return gate == NULL || gate->is_open(gate->ctx);
}

/* Headers: content-type, cache-control, content-disposition, content-encoding, content-language,
 * expires (lower case). User metadata: names in lower case, no prefix. Strings are borrowed on the
 * way in, the arena's on the way out. */
struct rp_pair {
    const char *name, *value;
};
struct rp_meta {
    const struct rp_pair *headers;
    size_t n_headers;
    const struct rp_pair *user;
    size_t n_user;
};
#define RP_META_MAX_BYTES 8192 /* names and values together; over it: RP_ETOOBIG */
#define RP_META_MAX_PAIRS 64

/* Where bytes come from and go to. read: bytes read, 0 at the end, or a negative code. */
struct rp_source {
    int64_t (*read)(void *ctx, void *to, size_t n, struct rp_error *err);
    void *ctx;
};
struct rp_sink {
    int (*write)(void *ctx, const void *from, size_t n, struct rp_error *err);
    void *ctx;
};

/* RP_PUT_OVER: only over the upload whose identity `out` holds on the way in: RP_ECHANGED if
 * another stands there, RP_ENOTFOUND if none does, and nothing is written then. In one step where
 * the store can (a bucket compares etags then: identical bytes are the same upload); one that
 * cannot says so in what its probe found, and looks and compares right before it writes. */
enum rp_put_flags {
    RP_PUT_REPLACE = 0,
    RP_PUT_NEW = 1, /* RP_EEXISTS if the key is taken (If-None-Match: *) */
    RP_PUT_OVER = 2 /* If-Match */
};

/* One entry of a listing; borrowed. Return 0 to go on, 1 to stop (the call returns 0), negative to
 * fail. */
struct rp_entry {
    const char *key;
    struct rp_identity identity;
};
typedef int rp_entry_fn(void *ctx, const struct rp_entry *entry, struct rp_error *err);

/* An upload in parts that nobody has ended: it takes room and shows nowhere. Borrowed; returns as
 * rp_entry_fn. */
struct rp_partial {
    const char *key, *upload;
    int64_t begun_ms;
};
typedef int rp_partial_fn(void *ctx, const struct rp_partial *partial, struct rp_error *err);

/* A URL that is its own permission: whoever holds it may do one thing with one object, for a while,
 * without the daemon. */
struct rp_presign {
    const char *method; /* "PUT", "GET" or "HEAD" (as GET) */
    const char *key;
    int64_t now_ms, ends_at_ms;
    int64_t size_bytes;       /* PUT: exactly so many */
    const char *content_type; /* PUT: "": any. GET: what the answer shall say; "": as stored */
    const uint8_t *checksum;  /* PUT: SHA-256 of the bytes, NULL: not promised */
    const char *disposition;  /* GET: content-disposition of the answer; NULL: as stored */
};
#define RP_PRESIGNED_HEADERS_MAX 6
struct rp_presigned {
    const char *url;                                  /* the arena's, as all of these */
    struct rp_pair headers[RP_PRESIGNED_HEADERS_MAX]; /* which must be sent as they are */
    size_t n_headers;
};

struct rp_backend;

/* A put or a get under way; every backend embeds it first in its own. */
struct rp_object_writer {
    struct rp_backend *backend;
};
struct rp_object_reader {
    struct rp_backend *backend;
};

#define RP_KEYS_SOURCE 64

struct rp_backend_ops {
    const char *type;
    int copies_at_once; /* how many copies gain from being made beside each other; 0: none */
    void (*close)(struct rp_backend *backend);
    /* Find out, by trying where it is allowed to write, what the store guarantees. Without
     * `may_write` nothing is written, and what only a canary could tell is taken for the weakest; a
     * guarantee that the backend itself makes (fs) needs none. What holds is what later calls rely
     * on. */
    int (*probe)(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err);
    int (*put)(struct rp_backend *backend, const char *key, const struct rp_source *from, const struct rp_meta *meta,
               int flags, struct rp_identity *out, struct rp_error *err);
    /* RP_ENOTFOUND if absent. `to` NULL: identity and meta only. */
    int (*get)(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
               struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err);
    int (*stat)(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err);
    int (*list)(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
                struct rp_error *err);
    int (*remove)(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                  struct rp_error *err);
    /* Copy inside the store with headers and metadata; only if the source still has `expected`
     * (else RP_ECHANGED, RP_ENOTFOUND) and never over an existing target (RP_EEXISTS). Durable on
     * return. */
    int (*copy)(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                struct rp_identity *out, struct rp_error *err);
    /* Set (value) or remove (NULL value) user metadata fields, all others as they are, bytes as
     * they are, only if the object still has `identity` (else RP_ECHANGED, RP_ENOTFOUND).
     * `identity` becomes the new one (some stores give the object a new time, or a new version).
     * The fields of annotations (marked_for_deletion, marked_for_deletion_on, delete_after,
     * deletion_reason) any store can change, or it is RP_EWEAK as a whole; one that keeps them as
     * tags refuses to change others (RP_EINVAL). */
    int (*annotate)(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                    const struct rp_pair *changes, size_t n, struct rp_error *err);
    /* In parts (T8). With RP_PUT_NEW a key that is taken is refused here if it can be seen, and by
     * put_commit in any case; with RP_PUT_OVER a key that is not taken. What put_commit compares
     * with is in its `out`. */
    int (*put_open)(struct rp_backend *backend, const char *key, const struct rp_meta *meta, int flags,
                    struct rp_object_writer **out, struct rp_error *err);
    /* Does not wait for the disk. After a failure only put_abort is left. */
    int (*put_write)(struct rp_object_writer *writer, const void *bytes, size_t n, struct rp_error *err);
    int (*put_commit)(struct rp_object_writer *writer, struct rp_identity *out, struct rp_error *err);
    void (*put_abort)(struct rp_object_writer *writer);
    /* The object as it is at this moment, whatever happens to its key later. RP_ENOTFOUND if
     * absent. meta and identity may be NULL. */
    int (*get_open)(struct rp_backend *backend, const char *key, struct rp_arena *arena, struct rp_meta *meta,
                    struct rp_identity *identity, struct rp_object_reader **out, struct rp_error *err);
    /* Up to n bytes from this offset on: how many, 0 at the end, or negative; RP_ECHANGED if
     * somebody wrote into the object. */
    int64_t (*get_read)(struct rp_object_reader *reader, int64_t offset, void *to, size_t n, struct rp_error *err);
    void (*get_close)(struct rp_object_reader *reader);
    /* No I/O. RP_EINVAL where the store cannot bind what is asked for. */
    int (*presign)(struct rp_backend *backend, const struct rp_presign *what, struct rp_arena *arena,
                   struct rp_presigned *out, struct rp_error *err);
    /* In order of key and upload; abort is idempotent (one that is gone: 0). */
    int (*list_partial)(struct rp_backend *backend, const char *prefix, rp_partial_fn *fn, void *ctx,
                        struct rp_error *err);
    int (*abort_partial)(struct rp_backend *backend, const char *key, const char *upload, struct rp_error *err);
    /* The store's own clock; NULL slot: it has none but the host's. */
    int (*now_ms)(struct rp_backend *backend, int64_t *out, struct rp_error *err);
    /* T12. */
    bool (*hides)(struct rp_backend *backend);
    /* Exactly these identities, each key once. FOUND: it is there, and hidden; also if it was
     * before. GONE: it is not there any more. CHANGED: something newer is, and shows itself: where
     * a hide of ours has come down on it, it is shown again. A hide whose end nobody saw may have
     * come down on an upload of since_ms or later; INT64_MAX: there was none. NONE: the gate was
     * shut. */
    int (*hide)(struct rp_backend *backend, struct rp_item *items, const int64_t *since_ms, size_t n,
                const struct rp_gate *gate, struct rp_error *err);
    /* Only if nothing newer is there (RP_EEXISTS), hidden or not. RP_ENOTFOUND: it is not there any
     * more. *made: something was changed, also by a call that fails after it. */
    int (*show)(struct rp_backend *backend, const char *key, const struct rp_identity *identity, bool *made,
                struct rp_error *err);
    /* T10. NULL slot: no call waits for anybody else. */
    void (*interrupt)(struct rp_backend *backend);
    /* Where its keys come from, for people: "environment", "profile media"; never what they are.
     * "": not looked for yet. NULL slot: it needs none. */
    void (*keys_source)(struct rp_backend *backend, char out[RP_KEYS_SOURCE]);
};

/* Every backend embeds this first. */
struct rp_backend {
    const struct rp_backend_ops *ops;
};

/* ---- calls: nobody above this folder touches the table ---- */

static inline int rp_backend_probe(struct rp_backend *b, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    return b->ops->probe(b, may_write, out, err);
}
static inline int rp_backend_put(struct rp_backend *b, const char *key, const struct rp_source *from,
                                 const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err)
{
    return b->ops->put(b, key, from, meta, flags, out, err);
}
static inline int rp_backend_get(struct rp_backend *b, const char *key, const struct rp_sink *to,
                                 struct rp_arena *arena, struct rp_meta *meta, struct rp_identity *identity,
                                 struct rp_error *err)
{
    return b->ops->get(b, key, to, arena, meta, identity, err);
}
static inline int rp_backend_stat(struct rp_backend *b, struct rp_item *items, size_t n, struct rp_error *err)
{
    return b->ops->stat(b, items, n, err);
}
static inline int rp_backend_list(struct rp_backend *b, const char *prefix, const char *after, rp_entry_fn *fn,
                                  void *ctx, struct rp_error *err)
{
    return b->ops->list(b, prefix, after, fn, ctx, err);
}
static inline int rp_backend_remove(struct rp_backend *b, struct rp_item *items, size_t n, const struct rp_gate *gate,
                                    struct rp_error *err)
{
    return b->ops->remove(b, items, n, gate, err);
}
static inline int rp_backend_copy(struct rp_backend *b, const char *from, const struct rp_identity *expected,
                                  const char *to, struct rp_identity *out, struct rp_error *err)
{
    return b->ops->copy(b, from, expected, to, out, err);
}
/* Each as copy() does. Returns negative only if the store as a whole failed: what was not begun
 * then is RP_COPY_NONE. */
int rp_backend_copies(struct rp_backend *b, struct rp_copying *items, size_t n, const struct rp_gate *gate,
                      struct rp_error *err);
static inline int rp_backend_annotate(struct rp_backend *b, const char *key, struct rp_identity *identity,
                                      const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    return b->ops->annotate(b, key, identity, changes, n, err);
}

/* T8, T9 */
static inline bool rp_backend_has_parts(const struct rp_backend *b)
{
    return b->ops->put_open != NULL;
}
static inline int rp_backend_put_open(struct rp_backend *b, const char *key, const struct rp_meta *meta, int flags,
                                      struct rp_object_writer **out, struct rp_error *err)
{
    return b->ops->put_open(b, key, meta, flags, out, err);
}
static inline int rp_backend_put_write(struct rp_object_writer *w, const void *bytes, size_t n, struct rp_error *err)
{
    return w->backend->ops->put_write(w, bytes, n, err);
}
static inline int rp_backend_put_commit(struct rp_object_writer *w, struct rp_identity *out, struct rp_error *err)
{
    return w->backend->ops->put_commit(w, out, err);
}
static inline void rp_backend_put_abort(struct rp_object_writer *w)
{
    w->backend->ops->put_abort(w);
}
static inline int rp_backend_get_open(struct rp_backend *b, const char *key, struct rp_arena *arena,
                                      struct rp_meta *meta, struct rp_identity *identity, struct rp_object_reader **out,
                                      struct rp_error *err)
{
    return b->ops->get_open(b, key, arena, meta, identity, out, err);
}
static inline int64_t rp_backend_get_read(struct rp_object_reader *r, int64_t offset, void *to, size_t n,
                                          struct rp_error *err)
{
    return r->backend->ops->get_read(r, offset, to, n, err);
}
static inline void rp_backend_get_close(struct rp_object_reader *r)
{
    r->backend->ops->get_close(r);
}
static inline bool rp_backend_has_presign(const struct rp_backend *b)
{
    return b->ops->presign != NULL;
}
static inline int rp_backend_presign(struct rp_backend *b, const struct rp_presign *what, struct rp_arena *arena,
                                     struct rp_presigned *out, struct rp_error *err)
{
    return b->ops->presign(b, what, arena, out, err);
}
static inline int rp_backend_list_partial(struct rp_backend *b, const char *prefix, rp_partial_fn *fn, void *ctx,
                                          struct rp_error *err)
{
    return b->ops->list_partial(b, prefix, fn, ctx, err);
}
static inline int rp_backend_abort_partial(struct rp_backend *b, const char *key, const char *upload,
                                           struct rp_error *err)
{
    return b->ops->abort_partial(b, key, upload, err);
}
static inline bool rp_backend_has_clock(const struct rp_backend *b)
{
    return b->ops->now_ms != NULL;
}
static inline int rp_backend_now_ms(struct rp_backend *b, int64_t *out, struct rp_error *err)
{
    return b->ops->now_ms(b, out, err);
}
static inline bool rp_backend_has_interrupt(const struct rp_backend *b)
{
    return b->ops->interrupt != NULL;
}
static inline void rp_backend_interrupt(struct rp_backend *b)
{
    b->ops->interrupt(b);
}

static inline bool rp_backend_has_hiding(const struct rp_backend *b)
{
    return b->ops->hide != NULL;
}
static inline bool rp_backend_hides(struct rp_backend *b)
{
    return rp_backend_has_hiding(b) && b->ops->hides(b);
}
static inline int rp_backend_hide(struct rp_backend *b, struct rp_item *items, const int64_t *since_ms, size_t n,
                                  const struct rp_gate *gate, struct rp_error *err)
{
    return b->ops->hide(b, items, since_ms, n, gate, err);
}
static inline int rp_backend_show(struct rp_backend *b, const char *key, const struct rp_identity *identity, bool *made,
                                  struct rp_error *err)
{
    return b->ops->show(b, key, identity, made, err);
}

static inline bool rp_backend_has_keys(const struct rp_backend *b)
{
    return b->ops->keys_source != NULL;
}
static inline void rp_backend_keys_source(struct rp_backend *b, char out[RP_KEYS_SOURCE])
{
    b->ops->keys_source(b, out);
}

int rp_key_check(const char *key, size_t n, struct rp_error *err);
void rp_backend_close(struct rp_backend *backend);
void rp_backend_closep(struct rp_backend **backend);

#endif
