/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.h - a simulated bucket: what a store of each level does, request by request, and how it
 * fails and lies.
 *
 * B1  The bucket holds the objects. A handle (struct rp_store) is one node's way to it, and may be
 *     made to point to another bucket.
 * B2  A slot of the port is one or more requests. Before each one the bucket asks hooks.request,
 *     which may let other nodes run and which decides the request's fate. Between the requests of
 *     one slot anything may happen to the objects.
 * B3  Whatever takes bytes away - a delete, an overwrite without versions - is told to hooks.gone
 *     at the moment it happens, also when it happens late (bucket_settle) and when nobody was told.
 * B4  A kind is what a store of that level can do:
 *     exact    as a directory: serial etags; a delete compares and removes in one request; its
 *              clock is the host's (now_ms NULL)
 *     etag     etags are digests of the bytes (identical bytes, identical etag); a delete with
 *              If-Match, in one request
 *     version  every upload is a version. A delete names versions: the marked one and all older
 *              ones, newest last, and the markers on it. One that names none adds a marker (hide),
 *              which can be removed (show)
 *     window   no condition: HEAD, compare, delete: two requests
 *     liar     answers as if it knew If-Match and ignores it: the probe's canary shows that, and
 *              finds level window
 *     All but exact have a clock of their own, shown in whole seconds. As the S3 store does, a
 *     handle deletes by etag only after its own probe saw that hold; until then as at level window.
 *     A copy is one request, with both of its conditions. An upload over another one is one request
 *     where there is a condition (exact; etag and version: by etag), else HEAD, then a put without
 *     one.
 * B5  Deterministic: no pointer, no real clock and no real randomness decides anything. No
 *     threads. */
#ifndef RP_SIM_BUCKET_H
#define RP_SIM_BUCKET_H

#include "store/backend.h"

enum bucket_kind { BUCKET_EXACT, BUCKET_ETAG, BUCKET_VERSION, BUCKET_WINDOW, BUCKET_LIAR, BUCKET_KINDS };
const char *bucket_kind_name(enum bucket_kind kind);
/* An upload over another one, and a delete, can say which one is meant. */
bool bucket_has_condition(enum bucket_kind kind);

/* What becomes of one request. */
enum bucket_fate {
    BUCKET_DONE,    /* it happens, and is answered */
    BUCKET_REFUSED, /* 5xx, slow down: nothing happens (RP_EUNAVAILABLE; a single item: RETRY) */
    BUCKET_DENIED,  /* 403: items are DENIED, another call is RP_EDENIED */
    BUCKET_LOST,    /* it happens, and the answer is lost: UNKNOWN; what only reads: as REFUSED */
    BUCKET_LATE,    /* no answer: UNKNOWN; it happens when bucket_settle says so */
    /* of a delete of many every other item happens and is answered; the rest may happen and is not
     * named. Else: as DONE */
    BUCKET_PARTLY,
    BUCKET_CUT,   /* a listing that ends early and says so (T6: an error); other requests: as REFUSED */
    BUCKET_FALSE, /* says deleted and has not done it; other requests: as DONE */
};

/* One upload as the bucket holds it. `text` is the bytes. */
struct bucket_object {
    const char *key, *text;
    struct rp_identity identity;
    uint64_t serial; /* of the upload: grows, never used twice in a bucket; a copy is an upload */
    bool marker;     /* it is none, but a delete marker */
    bool late;       /* ... that a request left which happened late */
};

struct bucket_hooks {
    enum bucket_fate (*request)(void *ctx, const char *call, const char *key);
    /* `overwritten`: by a newer upload under the same key, else by a delete. May look, and changes
     * nothing. Also of a marker that was deleted by its id. */
    void (*gone)(void *ctx, const struct bucket_object *object, bool overwritten);
    int64_t (*now_ms)(void *ctx);  /* the bucket's clock */
    int64_t (*true_ms)(void *ctx); /* may be NULL */
    void *ctx;
};

struct bucket;
struct bucket *bucket_new(enum bucket_kind kind);
void bucket_free(struct bucket *bucket);
/* Empty again; serials from 1. Handles of before are closed first, or aimed at it again. */
void bucket_clear(struct bucket *bucket, enum bucket_kind kind);

/* A handle; `hooks.ctx` is its node. `write_once`: keys are declared never to be reused (level
 * exact as declared, weaker undeclared). */
int bucket_handle(struct bucket *bucket, const struct bucket_hooks *hooks, bool write_once, struct rp_backend **out,
                  struct rp_error *err);
/* From now on this handle reaches that bucket. */
void bucket_aim(struct rp_backend *handle, struct bucket *bucket);

/* Late requests (BUCKET_LATE), oldest first: how many wait, and let the i-th happen now, judged as
 * the server would now. A delete of many waits item by item. Of more than 64 the oldest never
 * happen. What goes is told to the hooks of the handle that sent it, closed or not. */
size_t bucket_late(const struct bucket *bucket);
/* The key that the i-th is about. */
const char *bucket_late_key(const struct bucket *bucket, size_t i);
/* Those that were sent before that moment (hooks.true_ms) never happen. */
void bucket_forget_late(struct bucket *bucket, int64_t before_ms);
void bucket_settle(struct bucket *bucket, size_t i);

/* ---- looking and tampering from outside: no hooks, no faults ---- */

/* What a user of the bucket does beside us. `out` may be NULL. */
void bucket_upload(struct bucket *bucket, const char *key, const char *text, int64_t now_ms, struct bucket_object *out);
bool bucket_remove(struct bucket *bucket, const char *key); /* the newest; false: nothing there */
/* Where there are versions: a marker on top; the nth version or marker from the top goes (false:
 * there is none); whether one is there, hidden or not. */
void bucket_hide(struct bucket *bucket, const char *key, int64_t now_ms);
bool bucket_remove_nth(struct bucket *bucket, const char *key, size_t nth);
/* The newest upload, whatever lies on it; the marker on top of the key. False: there is none. */
bool bucket_below(const struct bucket *bucket, const char *key, struct bucket_object *out);
bool bucket_marker(const struct bucket *bucket, const char *key, struct bucket_object *out);
bool bucket_has_version(const struct bucket *bucket, const char *key, const char *version);
/* What a GET of the key shows now; false: nothing. Borrowed until the bucket changes. */
bool bucket_look(const struct bucket *bucket, const char *key, struct bucket_object *out);
/* Whether the upload of that serial is still held (also as an older version). */
bool bucket_holds(const struct bucket *bucket, uint64_t serial);
/* Every upload that is held, in order of key, older versions first. Return false to stop. */
void bucket_each(const struct bucket *bucket, bool (*fn)(void *ctx, const struct bucket_object *object), void *ctx);

/* Of the last upload. */
uint64_t bucket_serial(const struct bucket *bucket);

/* What was seen: requests by call, deletes that a lying If-Match let through. */
struct bucket_counts {
    uint64_t requests, puts, deletes, lies;
};
struct bucket_counts bucket_counts(const struct bucket *bucket);

#endif
