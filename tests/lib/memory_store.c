/* SPDX-License-Identifier: Apache-2.0 */
/* A store in memory, for tests of what stands on the port: a sorted array under one lock. Etags are
 * serial numbers, so that no two uploads ever share an identity. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/time.h"
#include "lib/stores.h"
#include "store/meta.h"
#include "store/refuse.h"
#include "store/whole.h"

#define OBJECT_MAX_BYTES ((size_t)64 << 20)

struct object {
    char *key;
    struct rp_buf bytes;
    struct rp_arena arena; /* holds what meta points to */
    struct rp_meta meta;
    struct rp_identity identity;
    unsigned readers; /* under the store's lock; whoever is last frees what is no longer shown */
    bool hidden;
};

struct memory {
    struct rp_backend base;
    pthread_mutex_t lock;
    struct object **objects; /* by key */
    size_t n, cap;
    uint64_t serial;
};

static struct memory *of(struct rp_backend *backend)
{
    return (struct memory *)(void *)backend;
}

static void object_free(struct object *o)
{
    if (!o) return;
    free(o->key);
    rp_buf_done(&o->bytes);
    rp_arena_done(&o->arena);
    free(o);
}

static void object_freep(struct object **o)
{
    object_free(*o);
}

/* Takes an object out of sight, under the lock. */
static void object_hide(struct object *o)
{
    o->hidden = true;
    if (o->readers == 0) object_free(o);
}

static void unlockp(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}

#define LOCKED(m)                                                                                                      \
    RP_CLEANUP(unlockp) pthread_mutex_t *locked = &(m)->lock;                                                          \
    pthread_mutex_lock(locked)

/* Index of the first object whose key is not below `key`. */
static size_t position(const struct memory *m, const char *key)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(m->objects[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct object *find(const struct memory *m, const char *key)
{
    size_t i = position(m, key);
    return i < m->n && strcmp(m->objects[i]->key, key) == 0 ? m->objects[i] : NULL;
}

static void memory_close(struct rp_backend *backend)
{
    struct memory *m = of(backend);
    for (size_t i = 0; i < m->n; i++)
        object_free(m->objects[i]);
    free(m->objects);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static int memory_probe(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    (void)backend, (void)may_write, (void)err;
    *out = (struct rp_probed){ .level = RP_LEVEL_EXACT };
    return 0;
}

static int object_new(const char *key, const struct rp_meta *meta, struct object **out, struct rp_error *err)
{
    RP_CLEANUP(object_freep) struct object *o = calloc(1, sizeof *o);
    if (!o || !(o->key = strdup(key))) return rp_error_set(err, RP_ENOMEM, "no memory for an object");
    o->bytes = RP_BUF(OBJECT_MAX_BYTES);
    o->arena = RP_ARENA((size_t)1 << 20);
    if (meta && rp_meta_copy(&o->arena, meta, &o->meta, err) < 0) return RP_ENOMEM;
    *out = o;
    o = NULL;
    return 0;
}

static int insert(struct memory *m, struct object *o, struct rp_error *err)
{
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 64;
        struct object **grown = reallocarray(m->objects, cap, sizeof(struct object *));
        if (!grown) return rp_error_set(err, RP_ENOMEM, "no memory for %zu objects", cap);
        m->objects = grown;
        m->cap = cap;
    }
    size_t i = position(m, o->key);
    memmove(&m->objects[i + 1], &m->objects[i], (m->n - i) * sizeof(struct object *));
    m->objects[i] = o;
    m->n++;
    return 0;
}

static int not_found(const char *key, struct rp_error *err)
{
    return rp_refuse_absent(key, err);
}

/* Takes the object over, also on failure. */
static int insert_or_replace(struct memory *m, struct object *taken, int flags, struct rp_identity *out,
                             struct rp_error *err)
{
    RP_CLEANUP(object_freep) struct object *o = taken;
    LOCKED(m);
    size_t i = position(m, o->key);
    bool exists = i < m->n && strcmp(m->objects[i]->key, o->key) == 0;
    if (exists && (flags & RP_PUT_NEW)) return rp_refuse_taken(o->key, err);
    if (flags & RP_PUT_OVER) {
        if (!exists) return not_found(o->key, err);
        if (!rp_identity_equal(&m->objects[i]->identity, out)) return rp_refuse_changed(o->key, err);
    }
    o->identity.size_bytes = (int64_t)o->bytes.len;
    o->identity.modified_ms = rp_clock_now_ms(&rp_clock_host);
    snprintf(o->identity.etag, sizeof o->identity.etag, "%" PRIu64, ++m->serial);
    if (exists) {
        object_hide(m->objects[i]);
        m->objects[i] = o;
    } else if (insert(m, o, err) < 0) {
        return RP_ENOMEM;
    }
    if (out) *out = o->identity;
    o = NULL;
    return 0;
}

struct writer {
    struct rp_object_writer base;
    struct object *object;
    int flags;
};

static struct object *writer_end(struct rp_object_writer *writer)
{
    struct object *o = ((struct writer *)(void *)writer)->object;
    free(writer);
    return o;
}

static bool is_taken(struct memory *m, const char *key)
{
    LOCKED(m);
    return find(m, key) != NULL;
}

static int memory_put_open(struct rp_backend *backend, const char *key, const struct rp_meta *meta, int flags,
                           struct rp_object_writer **out, struct rp_error *err)
{
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_meta_check(meta, err)) < 0) return r;
    if ((flags & RP_PUT_NEW) && is_taken(of(backend), key)) return rp_refuse_taken(key, err);
    if ((flags & RP_PUT_OVER) && !is_taken(of(backend), key)) return not_found(key, err);
    RP_CLEANUP(rp_freep) struct writer *w = calloc(1, sizeof *w);
    if (!w) return rp_error_set(err, RP_ENOMEM, "no memory to write an object");
    *w = (struct writer){ .base.backend = backend, .flags = flags };
    if ((r = object_new(key, meta, &w->object, err)) < 0) return r;
    *out = &w->base;
    w = NULL;
    return 0;
}

static int memory_put_write(struct rp_object_writer *writer, const void *bytes, size_t n, struct rp_error *err)
{
    int r = rp_buf_add(&((struct writer *)(void *)writer)->object->bytes, bytes, n);
    return r < 0 ? rp_error_set(err, r, "the object is too big for a store in memory") : 0;
}

static int memory_put_commit(struct rp_object_writer *writer, struct rp_identity *out, struct rp_error *err)
{
    struct memory *m = of(writer->backend);
    int flags = ((struct writer *)(void *)writer)->flags;
    return insert_or_replace(m, writer_end(writer), flags, out, err);
}

static void memory_put_abort(struct rp_object_writer *writer)
{
    object_free(writer_end(writer));
}

struct reader {
    struct rp_object_reader base;
    struct object *object;
};

static int memory_get_open(struct rp_backend *backend, const char *key, struct rp_arena *arena, struct rp_meta *meta,
                           struct rp_identity *identity, struct rp_object_reader **out, struct rp_error *err)
{
    struct rp_meta got = { 0 };
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    RP_CLEANUP(rp_freep) struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) return rp_error_set(err, RP_ENOMEM, "no memory to read an object");
    LOCKED(of(backend));
    struct object *o = find(of(backend), key);
    if (!o) return not_found(key, err);
    if (meta && (r = rp_meta_copy(arena, &o->meta, &got, err)) < 0) return r;
    if (meta) *meta = got;
    if (identity) *identity = o->identity;
    o->readers++;
    *reader = (struct reader){ .base.backend = backend, .object = o };
    *out = &reader->base;
    reader = NULL;
    return 0;
}

/* Without the lock: nothing changes the bytes of an object that was shown. */
static int64_t memory_get_read(struct rp_object_reader *reader, int64_t offset, void *to, size_t n,
                               struct rp_error *err)
{
    const struct rp_buf *bytes = &((struct reader *)(void *)reader)->object->bytes;
    (void)err;
    if (offset >= (int64_t)bytes->len) return 0;
    size_t left = bytes->len - (size_t)offset, part = left < n ? left : n;
    memcpy(to, bytes->data + offset, part);
    return (int64_t)part;
}

static void memory_get_close(struct rp_object_reader *reader)
{
    struct object *o = ((struct reader *)(void *)reader)->object;
    LOCKED(of(reader->backend));
    free(reader);
    if (--o->readers == 0 && o->hidden) object_free(o);
}

static int memory_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err)
{
    if (rp_items_begin(items, n, err) < 0) return RP_EINVAL;
    LOCKED(of(backend));
    for (size_t i = 0; i < n; i++) {
        const struct object *o = find(of(backend), items[i].key);
        items[i].outcome = o ? RP_OUT_FOUND : RP_OUT_GONE;
        if (o) items[i].identity = o->identity;
    }
    return 0;
}

static void remove_one(struct memory *m, struct rp_item *item)
{
    size_t i = position(m, item->key);
    if (i == m->n || strcmp(m->objects[i]->key, item->key) != 0) {
        item->outcome = RP_OUT_GONE;
    } else if (!rp_identity_equal(&m->objects[i]->identity, &item->identity)) {
        item->outcome = RP_OUT_CHANGED;
    } else {
        object_hide(m->objects[i]);
        m->n--;
        memmove(&m->objects[i], &m->objects[i + 1], (m->n - i) * sizeof(struct object *));
        item->outcome = RP_OUT_DELETED;
    }
}

static int memory_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                         struct rp_error *err)
{
    if (rp_items_begin(items, n, err) < 0) return RP_EINVAL;
    LOCKED(of(backend));
    for (size_t i = 0; i < n; i++) {
        if (!rp_gate_is_open(gate)) return rp_error_set(err, RP_EUNAVAILABLE, "the gate is shut");
        remove_one(of(backend), &items[i]);
    }
    return 0;
}

/* The next entry that the listing shows; false at the end. */
static bool next_entry(struct memory *m, const char *prefix, char cursor[RP_KEY_MAX + 1], bool *inclusive,
                       struct rp_identity *identity)
{
    bool own = rp_key_is_own(prefix);
    LOCKED(m);
    size_t i = position(m, cursor);
    if (!*inclusive && i < m->n && strcmp(m->objects[i]->key, cursor) == 0) i++;
    *inclusive = false;
    while (!own && i < m->n && rp_key_is_own(m->objects[i]->key))
        i++;
    if (i == m->n || strncmp(m->objects[i]->key, prefix, strlen(prefix)) != 0) return false;
    snprintf(cursor, RP_KEY_MAX + 1, "%s", m->objects[i]->key);
    *identity = m->objects[i]->identity;
    return true;
}

static int memory_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
                       struct rp_error *err)
{
    if (!prefix) prefix = "";
    if (!after) after = "";
    if (rp_list_check(prefix, after, err) < 0) return RP_EINVAL;
    char cursor[RP_KEY_MAX + 1];
    bool inclusive = strcmp(after, prefix) < 0;
    snprintf(cursor, sizeof cursor, "%s", inclusive ? prefix : after);
    struct rp_entry entry = { .key = cursor };
    while (next_entry(of(backend), prefix, cursor, &inclusive, &entry.identity)) {
        int r = fn(ctx, &entry, err);
        if (r != 0) return r < 0 ? r : 0;
    }
    return 0;
}

static int memory_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                       struct rp_identity *out, struct rp_error *err)
{
    int r = rp_key_check(from, strlen(from), err);
    if (r < 0 || (r = rp_key_check(to, strlen(to), err)) < 0) return r;
    RP_CLEANUP(object_freep) struct object *copy = NULL;
    {
        LOCKED(of(backend));
        const struct object *o = find(of(backend), from);
        if (!o) return not_found(from, err);
        if (!rp_identity_equal(&o->identity, expected)) return rp_refuse_changed(from, err);
        if ((r = object_new(to, &o->meta, &copy, err)) < 0) return r;
        if ((r = rp_buf_add(&copy->bytes, rp_buf_text(&o->bytes), o->bytes.len)) < 0)
            return rp_error_set(err, r, "no memory to copy '%s'", from);
    }
    struct object *given = copy;
    copy = NULL;
    return insert_or_replace(of(backend), given, RP_PUT_NEW, out, err);
}

static int memory_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                           const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    LOCKED(of(backend));
    struct object *o = find(of(backend), key);
    if (!o) return not_found(key, err);
    if (!rp_identity_equal(&o->identity, identity)) return rp_refuse_changed(key, err);
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta changed;
    if ((r = rp_meta_change(&arena, &o->meta, changes, n, &changed, err)) < 0) {
        rp_arena_done(&arena);
        return r;
    }
    rp_arena_done(&o->arena);
    o->arena = arena;
    o->meta = changed;
    return 0;
}

static int memory_now_ms(struct rp_backend *backend, int64_t *out, struct rp_error *err)
{
    (void)backend, (void)err;
    *out = rp_clock_now_ms(&rp_clock_host);
    return 0;
}

static const struct rp_backend_ops memory_ops = {
    .type = "memory",
    .close = memory_close,
    .probe = memory_probe,
    .put = rp_backend_put_whole,
    .get = rp_backend_get_whole,
    .stat = memory_stat,
    .list = memory_list,
    .remove = memory_remove,
    .copy = memory_copy,
    .copies_at_once = 4,
    .annotate = memory_annotate,
    .now_ms = memory_now_ms,
    .put_open = memory_put_open,
    .put_write = memory_put_write,
    .put_commit = memory_put_commit,
    .put_abort = memory_put_abort,
    .get_open = memory_get_open,
    .get_read = memory_get_read,
    .get_close = memory_get_close,
};

int rp_memory_open(struct rp_backend **out, struct rp_error *err)
{
    struct memory *m = calloc(1, sizeof *m);
    if (!m) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    m->base.ops = &memory_ops;
    int r = pthread_mutex_init(&m->lock, NULL);
    RP_ASSERT(r == 0);
    *out = &m->base;
    return 0;
}
