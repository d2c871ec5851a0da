/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the simulated bucket from the inside: what its files share.
 *
 *   bucket.c    the uploads in order, placing and erasing them, tampering from outside
 *   meta.c      headers and user metadata of an upload
 *   late.c      requests that happen later
 *   store.c     the handle, the slots put, get, stat, list, now_ms
 *   copy.c      copy and annotate
 *   remove.c    remove: request by request, as the level goes
 *   probe.c     probe: the canary
 *   versions.c  hide and show: what the S3 store's own code asks of a server
 *
 * K1  Nothing that is owned is held across hooks.request, and no pointer into the bucket: other
 *     nodes may run there, and this one may never come back.
 * K2  What an erase or an upload does is decided when it happens (bucket_erase, bucket_place), at
 *     once or late.
 * K3  A handle relies on what its own probe saw, as the S3 store does: until then it deletes by key
 *     after a look. */
#ifndef RP_SIM_BUCKET_PARTS_H
#define RP_SIM_BUCKET_PARTS_H

#include "bucket.h"
#include "store/s3/s3.h"

#define BUCKET_KEY_MAX     160
#define BUCKET_TEXT_MAX    512 /* an owner record has some 300 bytes */
#define BUCKET_META_MAX    640
#define BUCKET_PAIRS_MAX   16
#define BUCKET_LATE_MAX    64
#define BUCKET_UPLOADS_MAX 8192
#define BUCKET_CANARY      RP_STORE_OWN "canary/"

struct bucket_upload {
    struct rp_identity identity;
    uint64_t serial;
    bool marker, late; /* it is none: it hides what lies below it; and was made by a late request */
    size_t meta_bytes;
    char key[BUCKET_KEY_MAX + 1];
    char text[BUCKET_TEXT_MAX + 1];
    char meta[BUCKET_META_MAX]; /* 'h' or 'u', name, NUL, value, NUL; and so on */
};

enum bucket_later { BUCKET_LATER_PUT, BUCKET_LATER_ERASE, BUCKET_LATER_COPY, BUCKET_LATER_ANNOTATE };

/* How a delete names what it deletes. BY_SERIAL: that version of the key, all older ones, and the
 * markers on it; BY_ID: that version or marker alone. BY_MARKER deletes nothing: it adds a marker. */
enum bucket_by { BUCKET_BY_IDENTITY, BUCKET_BY_ETAG, BUCKET_BY_SERIAL, BUCKET_BY_KEY, BUCKET_BY_ID, BUCKET_BY_MARKER };

/* A request that waits. Also the form in which one is handed over at all. */
struct bucket_request {
    enum bucket_later later;
    struct bucket_hooks hooks; /* of who sent it */
    /* put: what, and over which identity; erase, annotate: key and identity; copy: the target's
     * key, the source's identity */
    struct bucket_upload upload;
    int64_t sent_at_ms;
    int flags;
    enum bucket_by by;
    uint64_t serial;
    char from[BUCKET_KEY_MAX + 1];
};

struct bucket {
    enum bucket_kind kind;
    uint64_t serial, canaries;
    struct bucket_counts counts;
    size_t n, n_late;
    struct bucket_upload *uploads;
    struct bucket_request *requests;
    struct bucket_request *late[BUCKET_LATE_MAX];    /* the first n_late wait, oldest first; the rest spare */
    struct bucket_upload *order[BUCKET_UPLOADS_MAX]; /* the first n by key and serial; the rest spare */
};

struct bucket_handle {
    union {
        struct rp_backend base;
        struct rp_s3 s3; /* of which only what versions.c wants is filled in */
    };
    struct bucket *bucket;
    struct bucket_hooks hooks;
    bool write_once, seen_changed;
    bool probed; /* by writing */
    enum rp_level seen;
};

static inline struct bucket_handle *bucket_handle_of(struct rp_backend *backend)
{
    return (struct bucket_handle *)(void *)backend;
}

/* ---- bucket.c ---- */

void bucket_text(char *to, size_t size, const char *from); /* asserts that it fits */
uint64_t bucket_serial_of(const char *version);            /* a version's id is its serial in hexadecimal */
/* Of all uploads under the key the newest, if no marker lies on it; NULL: none. */
struct bucket_upload *bucket_newest(const struct bucket *bucket, const char *key);
/* That upload or marker; NULL: it is not held. */
struct bucket_upload *bucket_held(const struct bucket *bucket, const char *key, uint64_t serial);
/* The first in order that is not before (key, serial). */
size_t bucket_position(const struct bucket *bucket, const char *key, uint64_t serial);
/* An upload of this draft's key, text and metadata at this moment of the bucket's clock. NULL:
 * RP_PUT_NEW, and the key is taken; or RP_PUT_OVER, and what stands there is not what the draft's
 * identity says. */
struct bucket_upload *bucket_place(struct bucket *bucket, const struct bucket_hooks *hooks,
                                   const struct bucket_upload *draft, int flags, int64_t now_ms);
/* What the server says: deleted, gone, changed, or retry where it knows no such condition. */
enum rp_outcome bucket_erase(struct bucket *bucket, const struct bucket_hooks *hooks, enum bucket_by by,
                             const char *key, const struct rp_identity *identity, uint64_t serial);
/* The one that a delete by version has to name; of those that fit an identity without a version the
 * oldest. NULL: none. */
const struct bucket_upload *bucket_version(const struct bucket *bucket, const char *key,
                                           const struct rp_identity *identity);

/* What lies on top, a marker too; NULL: nothing. */
struct bucket_upload *bucket_top(const struct bucket *bucket, const char *key);

/* ---- meta.c ---- */

int bucket_meta_pack(struct bucket_upload *upload, const struct rp_meta *meta, struct rp_error *err);
int bucket_meta_unpack(const struct bucket_upload *upload, struct rp_arena *arena, struct rp_meta *out,
                       struct rp_error *err);
bool bucket_meta_has(const struct bucket_upload *upload, const char *name); /* among the user's */
/* `to` has the metadata of `from` with the changes made. They may be the same one. */
int bucket_meta_change(struct bucket_upload *to, const struct bucket_upload *from, const struct rp_pair *changes,
                       size_t n, struct rp_error *err);

/* ---- late.c ---- */

/* The oldest is dropped where too many wait: it never happens. */
void bucket_wait(struct bucket *bucket, const struct bucket_request *request);
/* The source as expected, the target not taken, in one: 0, RP_ENOTFOUND, RP_ECHANGED or RP_EEXISTS. */
int bucket_copy_now(struct bucket *bucket, const struct bucket_request *request, struct rp_identity *out);
/* 0, RP_ENOTFOUND or RP_ECHANGED. */
int bucket_annotate_now(struct bucket *bucket, const struct bucket_request *request);

/* ---- store.c ---- */

enum bucket_fate bucket_ask(struct bucket_handle *handle, const char *call, const char *key);
/* Of a request that changes something, or of one that only reads: RP_EUNKNOWN where it may have
 * happened. 0: it was answered. */
int bucket_fail(enum bucket_fate fate, bool reads, const char *call, const char *key, struct rp_error *err);
int64_t bucket_now_ms(const struct bucket_hooks *hooks);
/* One look at many keys for stat and remove: 1: it was answered, 0: every item that is NONE has its
 * outcome, or negative. */
int bucket_ask_items(struct bucket_handle *handle, const char *call, struct rp_item *items, size_t n,
                     struct rp_error *err);
int bucket_check_keys(struct rp_item *items, size_t n, struct rp_error *err);
int bucket_put_request(struct bucket_handle *handle, const struct bucket_upload *draft, int flags,
                       struct rp_identity *out, struct rp_error *err);

/* ---- slots ---- */

int bucket_copy_slot(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                     struct rp_identity *out, struct rp_error *err);
int bucket_annotate_slot(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                         const struct rp_pair *changes, size_t n, struct rp_error *err);
int bucket_remove_slot(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                       struct rp_error *err);
int bucket_probe_slot(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err);

#endif
