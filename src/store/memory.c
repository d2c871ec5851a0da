/* SPDX-License-Identifier: Apache-2.0 */
/* A store in memory, for tests of what stands on the port: a sorted array under one lock. Etags are serial numbers,
 * so that no two uploads ever share an identity. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/time.h"
#include "store/meta.h"
#include "store/store.h"

#define OBJECT_MAX_BYTES ((size_t)64 << 20)

struct object {
    char *key;
    struct rp_buf bytes;
    struct rp_arena arena; /* holds what meta points to */
    struct rp_meta meta;
    struct rp_identity identity;
};

struct memory {
    struct rp_store base;
    pthread_mutex_t lock;
    struct object **objects; /* by key */
    size_t n, cap;
    uint64_t serial;
};

static struct memory *of(struct rp_store *store)
{
    return (struct memory *)(void *)store;
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

static void memory_close(struct rp_store *store)
{
    struct memory *m = of(store);
    for (size_t i = 0; i < m->n; i++)
        object_free(m->objects[i]);
    free(m->objects);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static int memory_probe(struct rp_store *store, bool may_write, enum rp_level *level, struct rp_error *err)
{
    (void)store, (void)may_write, (void)err;
    *level = RP_LEVEL_EXACT;
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

static int read_all(struct rp_buf *bytes, const struct rp_source *from, struct rp_error *err)
{
    char chunk[16384];
    for (;;) {
        int64_t n = from->read(from->ctx, chunk, sizeof chunk, err);
        if (n <= 0) return (int)n;
        int r = rp_buf_add(bytes, chunk, (size_t)n);
        if (r < 0) return rp_error_set(err, r, "the object is too big for a store in memory");
    }
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

/* Takes the object over, also on failure. */
static int place(struct memory *m, struct object *taken, int flags, struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(object_freep) struct object *o = taken;
    LOCKED(m);
    size_t i = position(m, o->key);
    bool exists = i < m->n && strcmp(m->objects[i]->key, o->key) == 0;
    if (exists && (flags & RP_PUT_NEW)) return rp_error_set(err, RP_EEXISTS, "'%s' exists already", o->key);
    o->identity.size_bytes = (int64_t)o->bytes.len;
    o->identity.modified_ms = rp_clock_now_ms(&rp_clock_host);
    snprintf(o->identity.etag, sizeof o->identity.etag, "%" PRIu64, ++m->serial);
    if (exists) {
        object_free(m->objects[i]);
        m->objects[i] = o;
    } else if (insert(m, o, err) < 0) {
        return RP_ENOMEM;
    }
    if (out) *out = o->identity;
    o = NULL;
    return 0;
}

static int memory_put(struct rp_store *store, const char *key, const struct rp_source *from, const struct rp_meta *meta,
                      int flags, struct rp_identity *out, struct rp_error *err)
{
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_meta_check(meta, err)) < 0) return r;
    RP_CLEANUP(object_freep) struct object *o = NULL;
    if ((r = object_new(key, meta, &o, err)) < 0 || (r = read_all(&o->bytes, from, err)) < 0) return r;
    struct object *given = o;
    o = NULL;
    return place(of(store), given, flags, out, err);
}

static int not_found(const char *key, struct rp_error *err)
{
    return rp_error_set(err, RP_ENOTFOUND, "no object '%s'", key);
}

/* The bytes are copied under the lock, for the sink may call the store. */
static int memory_get(struct rp_store *store, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                      struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    RP_CLEANUP(rp_buf_done) struct rp_buf bytes = RP_BUF(OBJECT_MAX_BYTES);
    struct rp_meta got = { 0 };
    struct rp_identity found;
    {
        LOCKED(of(store));
        const struct object *o = find(of(store), key);
        if (!o) return not_found(key, err);
        found = o->identity;
        if (meta && (r = rp_meta_copy(arena, &o->meta, &got, err)) < 0) return r;
        if (to && (r = rp_buf_add(&bytes, rp_buf_text(&o->bytes), o->bytes.len)) < 0)
            return rp_error_set(err, r, "no memory to read '%s'", key);
    }
    if (to && bytes.len > 0 && (r = to->write(to->ctx, bytes.data, bytes.len, err)) < 0) return r;
    if (meta) *meta = got;
    if (identity) *identity = found;
    return 0;
}

static int check_keys(const struct rp_item *items, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (rp_key_check(items[i].key, strlen(items[i].key), err) < 0) return RP_EINVAL;
    return 0;
}

static int memory_stat(struct rp_store *store, struct rp_item *items, size_t n, struct rp_error *err)
{
    if (check_keys(items, n, err) < 0) return RP_EINVAL;
    LOCKED(of(store));
    for (size_t i = 0; i < n; i++) {
        const struct object *o = find(of(store), items[i].key);
        items[i].note[0] = '\0';
        items[i].outcome = o ? RP_OUT_FOUND : RP_OUT_GONE;
        if (o) items[i].identity = o->identity;
    }
    return 0;
}

static void remove_one(struct memory *m, struct rp_item *item)
{
    size_t i = position(m, item->key);
    item->note[0] = '\0';
    if (i == m->n || strcmp(m->objects[i]->key, item->key) != 0) {
        item->outcome = RP_OUT_GONE;
    } else if (!rp_identity_equal(&m->objects[i]->identity, &item->identity)) {
        item->outcome = RP_OUT_CHANGED;
    } else {
        object_free(m->objects[i]);
        m->n--;
        memmove(&m->objects[i], &m->objects[i + 1], (m->n - i) * sizeof(struct object *));
        item->outcome = RP_OUT_DELETED;
    }
}

static int memory_remove(struct rp_store *store, struct rp_item *items, size_t n, struct rp_error *err)
{
    if (check_keys(items, n, err) < 0) return RP_EINVAL;
    LOCKED(of(store));
    for (size_t i = 0; i < n; i++)
        remove_one(of(store), &items[i]);
    return 0;
}

/* The next entry that the listing shows; false at the end. */
static bool next_entry(struct memory *m, const char *prefix, char cursor[RP_KEY_MAX + 1], bool *inclusive,
                       struct rp_identity *identity)
{
    bool own = strncmp(prefix, RP_STORE_OWN, strlen(RP_STORE_OWN)) == 0;
    LOCKED(m);
    size_t i = position(m, cursor);
    if (!*inclusive && i < m->n && strcmp(m->objects[i]->key, cursor) == 0) i++;
    *inclusive = false;
    while (!own && i < m->n && strncmp(m->objects[i]->key, RP_STORE_OWN, strlen(RP_STORE_OWN)) == 0)
        i++;
    if (i == m->n || strncmp(m->objects[i]->key, prefix, strlen(prefix)) != 0) return false;
    snprintf(cursor, RP_KEY_MAX + 1, "%s", m->objects[i]->key);
    *identity = m->objects[i]->identity;
    return true;
}

static int memory_list(struct rp_store *store, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
                       struct rp_error *err)
{
    if (!prefix) prefix = "";
    if (!after) after = "";
    if (strlen(prefix) > RP_KEY_MAX || strlen(after) > RP_KEY_MAX)
        return rp_error_set(err, RP_EINVAL, "a prefix or a cursor has at most %d bytes", RP_KEY_MAX);
    char cursor[RP_KEY_MAX + 1];
    bool inclusive = strcmp(after, prefix) < 0;
    snprintf(cursor, sizeof cursor, "%s", inclusive ? prefix : after);
    struct rp_entry entry = { .key = cursor };
    while (next_entry(of(store), prefix, cursor, &inclusive, &entry.identity)) {
        int r = fn(ctx, &entry, err);
        if (r != 0) return r < 0 ? r : 0;
    }
    return 0;
}

static int memory_copy(struct rp_store *store, const char *from, const struct rp_identity *expected, const char *to,
                       struct rp_identity *out, struct rp_error *err)
{
    int r = rp_key_check(from, strlen(from), err);
    if (r < 0 || (r = rp_key_check(to, strlen(to), err)) < 0) return r;
    RP_CLEANUP(object_freep) struct object *copy = NULL;
    {
        LOCKED(of(store));
        const struct object *o = find(of(store), from);
        if (!o) return not_found(from, err);
        if (!rp_identity_equal(&o->identity, expected)) return rp_error_set(err, RP_ECHANGED, "'%s' has changed", from);
        if ((r = object_new(to, &o->meta, &copy, err)) < 0) return r;
        if ((r = rp_buf_add(&copy->bytes, rp_buf_text(&o->bytes), o->bytes.len)) < 0)
            return rp_error_set(err, r, "no memory to copy '%s'", from);
    }
    struct object *given = copy;
    copy = NULL;
    return place(of(store), given, RP_PUT_NEW, out, err);
}

static int memory_annotate(struct rp_store *store, const char *key, struct rp_identity *identity,
                           const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    LOCKED(of(store));
    struct object *o = find(of(store), key);
    if (!o) return not_found(key, err);
    if (!rp_identity_equal(&o->identity, identity)) return rp_error_set(err, RP_ECHANGED, "'%s' has changed", key);
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

static const struct rp_store_ops memory_ops = {
    .type = "memory",
    .close = memory_close,
    .probe = memory_probe,
    .put = memory_put,
    .get = memory_get,
    .stat = memory_stat,
    .list = memory_list,
    .remove = memory_remove,
    .copy = memory_copy,
    .annotate = memory_annotate,
};

int rp_store_memory_open(struct rp_store **out, struct rp_error *err)
{
    struct memory *m = calloc(1, sizeof *m);
    if (!m) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    m->base.ops = &memory_ops;
    int r = pthread_mutex_init(&m->lock, NULL);
    RP_ASSERT(r == 0);
    *out = &m->base;
    return 0;
}
