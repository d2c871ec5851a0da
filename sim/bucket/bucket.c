/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "base/assert.h"
#include "parts.h"

const char *bucket_kind_name(enum bucket_kind kind)
{
    static const char *const names[BUCKET_KINDS] = { "exact", "etag", "version", "window", "liar" };
    RP_ASSERT((size_t)kind < BUCKET_KINDS);
    return names[kind];
}

bool bucket_has_condition(enum bucket_kind kind)
{
    return kind != BUCKET_WINDOW && kind != BUCKET_LIAR;
}

/* ---- places ---- */

/* All of them at once: what is never used is never touched, and nothing is allocated while a run
 * counts allocations. */
struct bucket *bucket_new(enum bucket_kind kind)
{
    struct bucket *bucket = calloc(1, sizeof *bucket);
    RP_ASSERT(bucket != NULL);
    bucket->uploads = calloc(BUCKET_UPLOADS_MAX, sizeof *bucket->uploads);
    bucket->requests = calloc(BUCKET_LATE_MAX, sizeof *bucket->requests);
    RP_ASSERT(bucket->uploads != NULL && bucket->requests != NULL);
    for (size_t i = 0; i < BUCKET_UPLOADS_MAX; i++)
        bucket->order[i] = &bucket->uploads[i];
    for (size_t i = 0; i < BUCKET_LATE_MAX; i++)
        bucket->late[i] = &bucket->requests[i];
    bucket_clear(bucket, kind);
    return bucket;
}

void bucket_free(struct bucket *bucket)
{
    if (bucket == NULL) return;
    free(bucket->uploads);
    free(bucket->requests);
    free(bucket);
}

void bucket_clear(struct bucket *bucket, enum bucket_kind kind)
{
    RP_ASSERT((size_t)kind < BUCKET_KINDS);
    bucket->kind = kind;
    bucket->serial = bucket->canaries = 0;
    bucket->n = bucket->n_late = 0;
    bucket->counts = (struct bucket_counts){ 0 };
}

/* ---- order ---- */

size_t bucket_position(const struct bucket *bucket, const char *key, uint64_t serial)
{
    size_t low = 0, high = bucket->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int compared = strcmp(bucket->order[middle]->key, key);
        if (compared < 0 || (compared == 0 && bucket->order[middle]->serial < serial))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct bucket_upload *bucket_held(const struct bucket *bucket, const char *key, uint64_t serial)
{
    size_t i = bucket_position(bucket, key, serial);
    bool there = i < bucket->n && bucket->order[i]->serial == serial && strcmp(bucket->order[i]->key, key) == 0;
    return there ? bucket->order[i] : NULL;
}

struct bucket_upload *bucket_top(const struct bucket *bucket, const char *key)
{
    size_t after = bucket_position(bucket, key, UINT64_MAX);
    if (after == 0 || strcmp(bucket->order[after - 1]->key, key) != 0) return NULL;
    return bucket->order[after - 1];
}

struct bucket_upload *bucket_newest(const struct bucket *bucket, const char *key)
{
    struct bucket_upload *top = bucket_top(bucket, key);
    return top == NULL || top->marker ? NULL : top;
}

static struct bucket_upload *take_place(struct bucket *bucket, const char *key, uint64_t serial)
{
    RP_ASSERT(bucket->n < BUCKET_UPLOADS_MAX);
    size_t i = bucket_position(bucket, key, serial);
    struct bucket_upload *taken = bucket->order[bucket->n];
    memmove(&bucket->order[i + 1], &bucket->order[i], (bucket->n - i) * sizeof(struct bucket_upload *));
    bucket->order[i] = taken;
    bucket->n++;
    return taken;
}

static struct bucket_upload *give_place(struct bucket *bucket, size_t i)
{
    struct bucket_upload *given = bucket->order[i];
    RP_ASSERT(i < bucket->n);
    bucket->n--;
    memmove(&bucket->order[i], &bucket->order[i + 1], (bucket->n - i) * sizeof(struct bucket_upload *));
    bucket->order[bucket->n] = given;
    return given;
}

static struct bucket_object show(const struct bucket_upload *upload)
{
    return (struct bucket_object){ .key = upload->key,
                                   .text = upload->text,
                                   .identity = upload->identity,
                                   .serial = upload->serial,
                                   .marker = upload->marker,
                                   .late = upload->late };
}

/* The place is spare already, and keeps the bytes until the next upload: hooks.gone reads them and
 * uploads nothing. */
static void drop(struct bucket *bucket, const struct bucket_hooks *hooks, size_t i, bool overwritten)
{
    const struct bucket_object object = show(give_place(bucket, i));
    if (hooks != NULL && hooks->gone != NULL) hooks->gone(hooks->ctx, &object, overwritten);
}

/* ---- uploads ---- */

void bucket_text(char *to, size_t size, const char *from)
{
    size_t n = strlen(from);
    RP_ASSERT(n < size);
    memcpy(to, from, n + 1);
}

uint64_t bucket_serial_of(const char *version)
{
    return strtoull(version, NULL, 16);
}

static void hex(uint64_t number, char out[16])
{
    for (int i = 15; i >= 0; i--, number >>= 4)
        out[i] = "0123456789abcdef"[number & 15];
}

/* As a digest: by the bytes alone. */
static void digest(const char *text, char out[RP_ETAG_MAX])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    hex(rp_random_mix(h), out);
    hex(rp_random_mix(~h), out + 16);
    out[32] = '\0';
}

static void identify(const struct bucket *bucket, struct bucket_upload *upload, int64_t now_ms)
{
    struct rp_identity *identity = &upload->identity;
    bool exact = bucket->kind == BUCKET_EXACT;
    identity->size_bytes = (int64_t)strlen(upload->text);
    identity->modified_ms = exact ? now_ms : now_ms - (now_ms % 1000 + 1000) % 1000;
    identity->version[0] = '\0';
    if (exact) {
        hex(upload->serial, identity->etag);
        identity->etag[16] = '\0';
    } else {
        digest(upload->text, identity->etag);
    }
    if (bucket->kind != BUCKET_VERSION) return;
    hex(upload->serial, identity->version); /* of one length: later ones are greater as text, too */
    identity->version[16] = '\0';
}

/* The condition of an upload over another one: a bucket compares etags, a directory all of it. */
static bool stands(const struct bucket *bucket, const struct bucket_upload *upload, const struct rp_identity *expected)
{
    if (upload == NULL) return false;
    if (bucket->kind == BUCKET_EXACT) return rp_identity_equal(&upload->identity, expected);
    return strcmp(upload->identity.etag, expected->etag) == 0;
}

struct bucket_upload *bucket_place(struct bucket *bucket, const struct bucket_hooks *hooks,
                                   const struct bucket_upload *draft, int flags, int64_t now_ms)
{
    const struct bucket_upload *before = bucket_newest(bucket, draft->key);
    if (before != NULL && (flags & RP_PUT_NEW)) return NULL;
    if ((flags & RP_PUT_OVER) && !stands(bucket, before, &draft->identity)) return NULL;
    struct bucket_upload *upload = take_place(bucket, draft->key, ++bucket->serial);
    upload->serial = bucket->serial;
    upload->marker = upload->late = false;
    upload->meta_bytes = draft->meta_bytes;
    bucket_text(upload->key, sizeof upload->key, draft->key);
    bucket_text(upload->text, sizeof upload->text, draft->text);
    memcpy(upload->meta, draft->meta, draft->meta_bytes);
    identify(bucket, upload, now_ms);
    if (before != NULL && bucket->kind != BUCKET_VERSION)
        drop(bucket, hooks, bucket_position(bucket, draft->key, before->serial), true);
    return upload;
}

const struct bucket_upload *bucket_version(const struct bucket *bucket, const char *key,
                                           const struct rp_identity *identity)
{
    for (size_t i = bucket_position(bucket, key, 0); i < bucket->n; i++) {
        const struct bucket_upload *upload = bucket->order[i];
        if (strcmp(upload->key, key) != 0) break;
        if (upload->marker) continue;
        struct rp_identity seen = upload->identity;
        if (identity->version[0] == '\0') seen.version[0] = '\0';
        if (rp_identity_equal(&seen, identity)) return upload;
    }
    return NULL;
}

/* ---- erasing ---- */

/* Newest last. A server says "deleted" also of a version that is away already. */
static void drop_versions(struct bucket *bucket, const struct bucket_hooks *hooks, const char *key, uint64_t serial)
{
    size_t i = bucket_position(bucket, key, 0);
    while (i < bucket->n && bucket->order[i]->serial <= serial && strcmp(bucket->order[i]->key, key) == 0)
        drop(bucket, bucket->order[i]->marker ? NULL : hooks, i, false);
    while (i < bucket->n && bucket->order[i]->marker && strcmp(bucket->order[i]->key, key) == 0)
        drop(bucket, NULL, i, false);
}

static void add_marker(struct bucket *bucket, const char *key, int64_t now_ms)
{
    struct bucket_upload *marker = take_place(bucket, key, ++bucket->serial);
    marker->serial = bucket->serial;
    marker->marker = true;
    marker->late = false;
    marker->meta_bytes = 0;
    bucket_text(marker->key, sizeof marker->key, key);
    marker->text[0] = '\0';
    identify(bucket, marker, now_ms);
}

static void drop_one(struct bucket *bucket, const struct bucket_hooks *hooks, const char *key, uint64_t serial)
{
    if (bucket_held(bucket, key, serial) != NULL) drop(bucket, hooks, bucket_position(bucket, key, serial), false);
}

static bool fits(struct bucket *bucket, enum bucket_by by, const struct rp_identity *identity,
                 const struct bucket_upload *upload)
{
    if (by == BUCKET_BY_KEY) return true;
    if (by == BUCKET_BY_IDENTITY) return rp_identity_equal(identity, &upload->identity);
    if (strcmp(identity->etag, upload->identity.etag) == 0) return true;
    if (bucket->kind == BUCKET_LIAR) bucket->counts.lies++;
    return bucket->kind == BUCKET_LIAR;
}

enum rp_outcome bucket_erase(struct bucket *bucket, const struct bucket_hooks *hooks, enum bucket_by by,
                             const char *key, const struct rp_identity *identity, uint64_t serial)
{
    if (by == BUCKET_BY_SERIAL) drop_versions(bucket, hooks, key, serial);
    if (by == BUCKET_BY_ID) drop_one(bucket, hooks, key, serial);
    if (by == BUCKET_BY_MARKER) add_marker(bucket, key, bucket_now_ms(hooks));
    if (by == BUCKET_BY_SERIAL || by == BUCKET_BY_ID || by == BUCKET_BY_MARKER) return RP_OUT_DELETED;
    if (by == BUCKET_BY_ETAG && bucket->kind == BUCKET_WINDOW) return RP_OUT_RETRY;
    const struct bucket_upload *upload = bucket_newest(bucket, key);
    if (upload == NULL) return by == BUCKET_BY_KEY ? RP_OUT_DELETED : RP_OUT_GONE;
    if (!fits(bucket, by, identity, upload)) return RP_OUT_CHANGED;
    drop(bucket, hooks, bucket_position(bucket, key, upload->serial), false);
    return RP_OUT_DELETED;
}

/* ---- from outside ---- */

void bucket_upload(struct bucket *bucket, const char *key, const char *text, int64_t now_ms, struct bucket_object *out)
{
    struct bucket_upload draft;
    bucket_text(draft.key, sizeof draft.key, key);
    bucket_text(draft.text, sizeof draft.text, text);
    draft.meta_bytes = 0;
    const struct bucket_upload *made = bucket_place(bucket, NULL, &draft, RP_PUT_REPLACE, now_ms);
    if (out != NULL) *out = show(made);
}

bool bucket_remove(struct bucket *bucket, const char *key)
{
    const struct bucket_upload *upload = bucket_newest(bucket, key);
    if (upload == NULL) return false;
    drop(bucket, NULL, bucket_position(bucket, key, upload->serial), false);
    return true;
}

void bucket_hide(struct bucket *bucket, const char *key, int64_t now_ms)
{
    RP_ASSERT(bucket->kind == BUCKET_VERSION);
    add_marker(bucket, key, now_ms);
}

bool bucket_remove_nth(struct bucket *bucket, const char *key, size_t nth)
{
    size_t after = bucket_position(bucket, key, UINT64_MAX);
    if (after < nth + 1 || strcmp(bucket->order[after - nth - 1]->key, key) != 0) return false;
    drop(bucket, NULL, after - nth - 1, false);
    return true;
}

bool bucket_below(const struct bucket *bucket, const char *key, struct bucket_object *out)
{
    for (size_t i = bucket_position(bucket, key, UINT64_MAX); i-- > 0 && strcmp(bucket->order[i]->key, key) == 0;) {
        if (bucket->order[i]->marker) continue;
        *out = show(bucket->order[i]);
        return true;
    }
    return false;
}

bool bucket_marker(const struct bucket *bucket, const char *key, struct bucket_object *out)
{
    const struct bucket_upload *top = bucket_top(bucket, key);
    if (top == NULL || !top->marker) return false;
    *out = show(top);
    return true;
}

bool bucket_has_version(const struct bucket *bucket, const char *key, const char *version)
{
    return bucket_held(bucket, key, bucket_serial_of(version)) != NULL;
}

bool bucket_look(const struct bucket *bucket, const char *key, struct bucket_object *out)
{
    const struct bucket_upload *upload = bucket_newest(bucket, key);
    if (upload != NULL && out != NULL) *out = show(upload);
    return upload != NULL;
}

bool bucket_holds(const struct bucket *bucket, uint64_t serial)
{
    for (size_t i = 0; i < bucket->n; i++)
        if (bucket->order[i]->serial == serial) return true;
    return false;
}

void bucket_each(const struct bucket *bucket, bool (*fn)(void *ctx, const struct bucket_object *object), void *ctx)
{
    for (size_t i = 0; i < bucket->n; i++) {
        if (bucket->order[i]->marker) continue;
        const struct bucket_object object = show(bucket->order[i]);
        if (!fn(ctx, &object)) return;
    }
}

uint64_t bucket_serial(const struct bucket *bucket)
{
    return bucket->serial;
}

struct bucket_counts bucket_counts(const struct bucket *bucket)
{
    return bucket->counts;
}
