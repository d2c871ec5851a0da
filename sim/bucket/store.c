/* SPDX-License-Identifier: Apache-2.0 */
/* The handle: what each slot of the port asks of the bucket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "parts.h"

/* ---- requests ---- */

enum bucket_fate bucket_ask(struct bucket_handle *handle, const char *call, const char *key)
{
    struct bucket_counts *counts = &handle->bucket->counts;
    counts->requests++;
    counts->puts += strcmp(call, "put") == 0;
    counts->deletes += strcmp(call, "delete") == 0;
    return handle->hooks.request != NULL ? handle->hooks.request(handle->hooks.ctx, call, key) : BUCKET_DONE;
}

int64_t bucket_now_ms(const struct bucket_hooks *hooks)
{
    return hooks->now_ms != NULL ? hooks->now_ms(hooks->ctx) : 0;
}

int bucket_fail(enum bucket_fate fate, bool reads, const char *call, const char *key, struct rp_error *err)
{
    const char *what = key != NULL ? key : "the bucket";
    switch (fate) {
    case BUCKET_REFUSED:
    case BUCKET_CUT:
        return rp_error_set(err, RP_EUNAVAILABLE, "%s '%.120s': the server says 503", call, what);
    case BUCKET_DENIED:
        return rp_error_set(err, RP_EDENIED, "%s '%.120s': the server says 403", call, what);
    case BUCKET_LOST:
    case BUCKET_LATE:
        return rp_error_set(err, reads ? RP_EUNAVAILABLE : RP_EUNKNOWN, "%s '%.120s': no answer", call, what);
    case BUCKET_DONE:
    case BUCKET_PARTLY:
    case BUCKET_FALSE:
        break;
    }
    return 0;
}

static int check_key(const char *key, struct rp_error *err)
{
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    RP_ASSERT(strlen(key) <= BUCKET_KEY_MAX);
    return 0;
}

int bucket_check_keys(struct rp_item *items, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (check_key(items[i].key, err) < 0) return RP_EINVAL;
    for (size_t i = 0; i < n; i++) {
        items[i].outcome = RP_OUT_NONE;
        items[i].note[0] = '\0';
    }
    return 0;
}

static void say_all(struct rp_item *items, size_t n, enum rp_outcome outcome, const char *note)
{
    for (size_t i = 0; i < n; i++) {
        if (items[i].outcome != RP_OUT_NONE) continue;
        items[i].outcome = outcome;
        snprintf(items[i].note, sizeof items[i].note, "%.119s", note);
    }
}

int bucket_ask_items(struct bucket_handle *handle, const char *call, struct rp_item *items, size_t n,
                     struct rp_error *err)
{
    struct rp_error why = { 0 };
    const char *key = n == 1 ? items[0].key : NULL;
    int r = bucket_fail(bucket_ask(handle, call, key), true, call, key, &why);
    if (r == 0) return 1;
    if (r == RP_EDENIED || n == 1) {
        say_all(items, n, r == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_RETRY, why.text);
        return 0;
    }
    if (err != NULL) *err = why;
    return r;
}

/* ---- put ---- */

static int refused(const struct bucket *bucket, const char *key, int flags, struct rp_error *err)
{
    if (flags & RP_PUT_NEW) return rp_error_set(err, RP_EEXISTS, "'%s' exists already", key);
    if (bucket_newest(bucket, key) == NULL) return rp_error_set(err, RP_ENOTFOUND, "no object '%s'", key);
    return rp_error_set(err, RP_ECHANGED, "'%s' has changed", key);
}

int bucket_put_request(struct bucket_handle *handle, const struct bucket_upload *draft, int flags,
                       struct rp_identity *out, struct rp_error *err)
{
    enum bucket_fate fate = bucket_ask(handle, "put", draft->key);
    int r = bucket_fail(fate, false, "put", draft->key, err);
    if (fate == BUCKET_LATE) {
        struct bucket_request later;
        later.later = BUCKET_LATER_PUT;
        later.hooks = handle->hooks;
        later.upload = *draft;
        later.flags = flags;
        bucket_wait(handle->bucket, &later);
    }
    if (r < 0 && fate != BUCKET_LOST) return r;
    const struct bucket_upload *made =
        bucket_place(handle->bucket, &handle->hooks, draft, flags, bucket_now_ms(&handle->hooks));
    if (r < 0) return r;
    if (made == NULL) return refused(handle->bucket, draft->key, flags, err);
    if (out != NULL) *out = made->identity;
    return 0;
}

static int read_all(const struct rp_source *from, char text[BUCKET_TEXT_MAX + 1], struct rp_error *err)
{
    size_t used = 0;
    for (;;) {
        if (used > BUCKET_TEXT_MAX)
            return rp_error_set(err, RP_ETOOBIG, "a simulated object has at most %d bytes", BUCKET_TEXT_MAX);
        int64_t got = from->read(from->ctx, text + used, BUCKET_TEXT_MAX + 1 - used, err);
        if (got < 0) return (int)got;
        if (got == 0) break;
        used += (size_t)got;
    }
    text[used] = '\0';
    RP_ASSERT(strlen(text) == used);
    return 0;
}

/* Where no condition holds: a look, and then a request that overwrites whatever stands there when
 * it happens. */
static int look_before(struct bucket_handle *handle, const struct bucket_upload *draft, struct rp_error *err)
{
    int r = bucket_fail(bucket_ask(handle, "head", draft->key), true, "head", draft->key, err);
    if (r < 0) return r;
    const struct bucket_upload *upload = bucket_newest(handle->bucket, draft->key);
    if (upload != NULL && rp_identity_equal(&upload->identity, &draft->identity)) return 0;
    return refused(handle->bucket, draft->key, RP_PUT_OVER, err);
}

static int put_slot(struct rp_backend *backend, const char *key, const struct rp_source *from,
                    const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err)
{
    struct bucket_upload draft;
    int r = check_key(key, err);
    if (r == 0) r = bucket_meta_pack(&draft, meta, err);
    if (r == 0) r = read_all(from, draft.text, err);
    if (r < 0) return r;
    bucket_text(draft.key, sizeof draft.key, key);
    draft.identity.etag[0] = draft.identity.version[0] = '\0';
    if (flags & RP_PUT_OVER) draft.identity = *out;
    if ((flags & RP_PUT_OVER) && !bucket_has_condition(bucket_handle_of(backend)->bucket->kind)) {
        if ((r = look_before(bucket_handle_of(backend), &draft, err)) < 0) return r;
        flags = RP_PUT_REPLACE;
    }
    return bucket_put_request(bucket_handle_of(backend), &draft, flags, out, err);
}

/* ---- get, stat, the clock ---- */

static int get_slot(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                    struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    struct rp_meta got = { 0 };
    int r = check_key(key, err);
    if (r == 0) r = bucket_fail(bucket_ask(handle, "get", key), true, "get", key, err);
    if (r < 0) return r;
    const struct bucket_upload *upload = bucket_newest(handle->bucket, key);
    if (upload == NULL) return rp_error_set(err, RP_ENOTFOUND, "no object '%s'", key);
    if (meta != NULL && (r = bucket_meta_unpack(upload, arena, &got, err)) < 0) return r;
    if (to != NULL && (r = to->write(to->ctx, upload->text, (size_t)upload->identity.size_bytes, err)) < 0) return r;
    if (meta != NULL) *meta = got;
    if (identity != NULL) *identity = upload->identity;
    return 0;
}

static int stat_slot(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    if (n == 0) return 0;
    int r = bucket_check_keys(items, n, err);
    if (r == 0) r = bucket_ask_items(handle, "head", items, n, err);
    for (size_t i = 0; i < n && r == 1; i++) {
        const struct bucket_upload *upload = bucket_newest(handle->bucket, items[i].key);
        items[i].outcome = upload != NULL ? RP_OUT_FOUND : RP_OUT_GONE;
        if (upload != NULL) items[i].identity = upload->identity;
    }
    return r < 0 ? r : 0;
}

static int now_slot(struct rp_backend *backend, int64_t *out, struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    int r = bucket_fail(bucket_ask(handle, "clock", NULL), true, "clock", NULL, err);
    if (r < 0) return r;
    int64_t now_ms = bucket_now_ms(&handle->hooks);
    *out = now_ms - (now_ms % 1000 + 1000) % 1000;
    return 0;
}

/* ---- list ---- */

/* The next one that the listing shows after the cursor (or at it); NULL at the end. */
static const struct bucket_upload *next_entry(const struct bucket *bucket, const char *prefix, const char *cursor,
                                              bool inclusive)
{
    bool own = rp_key_is_own(prefix);
    for (size_t i = bucket_position(bucket, cursor, inclusive ? 0 : UINT64_MAX); i < bucket->n; i++) {
        const struct bucket_upload *upload = bucket->order[i];
        if (!own && rp_key_is_own(upload->key)) continue;
        if (strncmp(upload->key, prefix, strlen(prefix)) != 0) return NULL;
        if (bucket_newest(bucket, upload->key) != NULL) return bucket_newest(bucket, upload->key);
    }
    return NULL;
}

static size_t count_entries(const struct bucket *bucket, const char *prefix, const char *cursor, bool inclusive)
{
    size_t n = 0;
    const struct bucket_upload *upload;
    while ((upload = next_entry(bucket, prefix, cursor, inclusive)) != NULL) {
        cursor = upload->key;
        inclusive = false;
        n++;
    }
    return n;
}

/* The receiver may change the bucket: every entry is looked for anew, after the last key. */
static int list_from(struct bucket_handle *handle, const char *prefix, char cursor[RP_KEY_MAX + 1], bool inclusive,
                     size_t most, rp_entry_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_entry entry = { .key = cursor };
    for (size_t given = 0; given < most; given++) {
        const struct bucket_upload *upload = next_entry(handle->bucket, prefix, cursor, inclusive);
        if (upload == NULL) return 1;
        inclusive = false;
        bucket_text(cursor, RP_KEY_MAX + 1, upload->key);
        entry.identity = upload->identity;
        entry.identity.version[0] = '\0'; /* a listing names no versions */
        int r = fn(ctx, &entry, err);
        if (r != 0) return r < 0 ? r : 1;
    }
    return 0;
}

static int list_slot(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
                     struct rp_error *err)
{
    struct bucket_handle *handle = bucket_handle_of(backend);
    char cursor[RP_KEY_MAX + 1];
    size_t most = SIZE_MAX;
    if (prefix == NULL) prefix = "";
    if (after == NULL) after = "";
    if (strlen(prefix) > RP_KEY_MAX || strlen(after) > RP_KEY_MAX)
        return rp_error_set(err, RP_EINVAL, "a prefix or a cursor has at most %d bytes", RP_KEY_MAX);
    bool inclusive = strcmp(after, prefix) < 0;
    bucket_text(cursor, sizeof cursor, inclusive ? prefix : after);
    enum bucket_fate fate = bucket_ask(handle, "list", prefix);
    if (fate == BUCKET_CUT)
        most = count_entries(handle->bucket, prefix, cursor, inclusive) / 2;
    else if (bucket_fail(fate, true, "list", prefix, err) < 0)
        return bucket_fail(fate, true, "list", prefix, err);
    int r = list_from(handle, prefix, cursor, inclusive, most, fn, ctx, err);
    if (r != 0) return r < 0 ? r : 0;
    return rp_error_set(err, RP_EUNAVAILABLE, "list '%.120s': the listing broke off after %zu keys", prefix, most);
}

/* ---- handles ---- */

static void close_slot(struct rp_backend *backend)
{
    free(bucket_handle_of(backend));
}

#define SLOTS                                                                                                          \
    .close = close_slot, .probe = bucket_probe_slot, .put = put_slot, .get = get_slot, .stat = stat_slot,              \
    .list = list_slot, .remove = bucket_remove_slot, .copy = bucket_copy_slot, .annotate = bucket_annotate_slot

static const struct rp_backend_ops host_clock_ops = { .type = "bucket", SLOTS };
static const struct rp_backend_ops own_clock_ops = { .type = "bucket", SLOTS, .now_ms = now_slot };
static const struct rp_backend_ops version_ops = {
    .type = "bucket", SLOTS, .now_ms = now_slot, .hides = rp_s3_hides, .hide = rp_s3_hide, .show = rp_s3_show
};

void bucket_aim(struct rp_backend *handle, struct bucket *bucket)
{
    struct bucket_handle *h = bucket_handle_of(handle);
    if (h->bucket == NULL || h->bucket->kind != bucket->kind) h->probed = false;
    h->bucket = bucket;
    h->base.ops = bucket->kind == BUCKET_EXACT     ? &host_clock_ops
                  : bucket->kind == BUCKET_VERSION ? &version_ops
                                                   : &own_clock_ops;
    h->s3.wire = (struct s3_wire *)(void *)h;
}

int bucket_handle(struct bucket *bucket, const struct bucket_hooks *hooks, bool write_once, struct rp_backend **out,
                  struct rp_error *err)
{
    struct bucket_handle *handle = calloc(1, sizeof *handle);
    if (handle == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a handle");
    handle->hooks = *hooks;
    handle->write_once = write_once;
    bucket_aim(&handle->base, bucket);
    *out = &handle->base;
    return 0;
}
