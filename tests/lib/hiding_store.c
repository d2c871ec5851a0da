/* SPDX-License-Identifier: Apache-2.0 */
/* A store that keeps versions, as far as hiding goes (backend.h, T12): around one that has one
 * object a key. Each object's etag is its version. A delete marker is an object of the wrapped
 * store, so that it outlives a process: HIDING_MARKERS and the key; it says what it hides. What
 * lies under a marker stands in the wrapped store as before. Nobody may upload over it. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/key.h"
#include "base/text/buf.h"
#include "lib/bytes.h"
#include "lib/stores.h"
#include "store/refuse.h"

struct hiding {
    struct rp_backend base;
    struct rp_backend *inner;
    const bool *blind;
};

static struct rp_backend *inner_of(struct rp_backend *backend)
{
    return ((struct hiding *)(void *)backend)->inner;
}

/* ---- versions ---- */

static void add_version(struct rp_identity *identity)
{
    snprintf(identity->version, sizeof identity->version, "%s", identity->etag);
}

static struct rp_identity without_version(const struct rp_identity *identity)
{
    struct rp_identity bare = *identity;
    bare.version[0] = '\0';
    return bare;
}

/* ---- markers ---- */

struct seen {
    bool found, hidden;
    struct rp_identity identity;
};

static const char *marker_key(const char *key, char out[RP_KEY_MAX + 1])
{
    snprintf(out, RP_KEY_MAX + 1, HIDING_MARKERS "%s", key);
    return out;
}

static int look(struct rp_backend *inner, const char *key, struct seen *out, struct rp_error *err)
{
    char at[RP_KEY_MAX + 1];
    struct rp_error why = { 0 };
    struct rp_identity identity;
    struct rp_item item = { .key = key };
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(1024);
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_sink sink = { .write = bytes_take, .ctx = &text };
    struct rp_meta meta = { 0 };
    int r = rp_backend_stat(inner, &item, 1, err);
    *out = (struct seen){ .found = r == 0 && item.outcome == RP_OUT_FOUND, .identity = item.identity };
    if (r < 0 || !out->found) return r;
    add_version(&out->identity);
    r = rp_backend_get(inner, marker_key(key, at), &sink, &arena, &meta, &identity, &why);
    out->hidden = r == 0 && strcmp(rp_buf_text(&text), item.identity.etag) == 0;
    if (r < 0 && r != RP_ENOTFOUND) return rp_error_set(err, r, "%s", why.text);
    return 0;
}

static int expect_shown(struct rp_backend *inner, const char *key, struct rp_error *err)
{
    struct seen seen;
    int r = look(inner, key, &seen, err);
    return r == 0 && seen.hidden ? rp_refuse_absent(key, err) : r;
}

static int add_marker(struct rp_backend *inner, const char *key, const struct rp_identity *hidden, struct rp_error *err)
{
    char at[RP_KEY_MAX + 1];
    struct bytes text = { hidden->etag, strlen(hidden->etag) };
    const struct rp_source source = { .read = bytes_read, .ctx = &text };
    struct rp_identity made;
    const struct rp_meta meta = { 0 };
    return rp_backend_put(inner, marker_key(key, at), &source, &meta, RP_PUT_REPLACE, &made, err);
}

static int drop_marker(struct rp_backend *inner, const char *key, struct rp_error *err)
{
    char at[RP_KEY_MAX + 1];
    struct rp_item item = { .key = marker_key(key, at) };
    int r = rp_backend_stat(inner, &item, 1, err);
    return r < 0 || item.outcome != RP_OUT_FOUND ? r : rp_backend_remove(inner, &item, 1, NULL, err);
}

/* ---- hide and show ---- */

static bool hiding_hides(struct rp_backend *backend)
{
    return !*((struct hiding *)(void *)backend)->blind;
}

static int hide_one(struct rp_backend *inner, struct rp_item *item, struct rp_error *err)
{
    struct seen seen;
    int r = look(inner, item->key, &seen, err);
    if (r < 0) return r;
    item->outcome = !seen.found                                                  ? RP_OUT_GONE
                    : strcmp(seen.identity.version, item->identity.version) != 0 ? RP_OUT_CHANGED
                                                                                 : RP_OUT_FOUND;
    return item->outcome == RP_OUT_FOUND && !seen.hidden ? add_marker(inner, item->key, &seen.identity, err) : 0;
}

static int hiding_hide(struct rp_backend *backend, struct rp_item *items, const int64_t *since_ms, size_t n,
                       const struct rp_gate *gate, struct rp_error *err)
{
    int r = rp_items_begin(items, n, err);
    (void)since_ms;
    for (size_t i = 0; i < n && r == 0 && rp_gate_is_open(gate); i++)
        r = hide_one(inner_of(backend), &items[i], err);
    return r;
}

static int hiding_show(struct rp_backend *backend, const char *key, const struct rp_identity *identity, bool *made,
                       struct rp_error *err)
{
    struct seen seen;
    *made = false;
    int r = look(inner_of(backend), key, &seen, err);
    if (r < 0) return r;
    if (!seen.found) return rp_refuse_absent(key, err);
    if (strcmp(seen.identity.version, identity->version) != 0) return rp_refuse_taken(key, err);
    *made = seen.hidden;
    return seen.hidden ? drop_marker(inner_of(backend), key, err) : 0;
}

/* ---- everything else ---- */

static void hiding_close(struct rp_backend *backend)
{
    free(backend);
}

static int hiding_probe(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    return rp_backend_probe(inner_of(backend), may_write, out, err);
}

static int hiding_put(struct rp_backend *backend, const char *key, const struct rp_source *from,
                      const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err)
{
    struct seen seen;
    struct rp_identity made = { 0 };
    int r = look(inner_of(backend), key, &seen, err);
    RP_ASSERT(r < 0 || !seen.hidden);
    if (flags & RP_PUT_OVER) made = without_version(out);
    if (r == 0) r = rp_backend_put(inner_of(backend), key, from, meta, flags, &made, err);
    if (r < 0) return r;
    add_version(&made);
    if (out != NULL) *out = made;
    return 0;
}

static int hiding_get(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                      struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    int r = expect_shown(inner_of(backend), key, err);
    if (r == 0) r = rp_backend_get(inner_of(backend), key, to, arena, meta, identity, err);
    if (r == 0 && identity != NULL) add_version(identity);
    return r;
}

static int hiding_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err)
{
    int r = rp_items_begin(items, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct seen seen;
        r = look(inner_of(backend), items[i].key, &seen, err);
        if (r == 0) items[i].outcome = seen.found && !seen.hidden ? RP_OUT_FOUND : RP_OUT_GONE;
        if (r == 0 && items[i].outcome == RP_OUT_FOUND) items[i].identity = seen.identity;
    }
    return r;
}

struct listing {
    struct rp_backend *inner;
    rp_entry_fn *fn;
    void *ctx;
};

static int list_shown(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    const struct listing *l = ctx;
    struct rp_entry shown = *entry;
    struct seen seen;
    int r = look(l->inner, entry->key, &seen, err);
    if (r < 0 || seen.hidden) return r;
    add_version(&shown.identity);
    return l->fn(l->ctx, &shown, err);
}

static int hiding_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
                       struct rp_error *err)
{
    struct listing l = { inner_of(backend), fn, ctx };
    return rp_backend_list(l.inner, prefix, after, list_shown, &l, err);
}

/* The marker goes with what it hides; a death between the two leaves one that hides nothing. */
static int hiding_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                         struct rp_error *err)
{
    int r = rp_items_begin(items, n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_item bare = { .key = items[i].key, .identity = without_version(&items[i].identity) };
        r = rp_backend_remove(inner_of(backend), &bare, 1, gate, err);
        items[i].outcome = bare.outcome;
        bool away = bare.outcome == RP_OUT_DELETED || bare.outcome == RP_OUT_GONE;
        if (r == 0 && away) r = drop_marker(inner_of(backend), items[i].key, err);
    }
    return r;
}

static int hiding_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                       struct rp_identity *out, struct rp_error *err)
{
    const struct rp_identity bare = without_version(expected);
    int r = expect_shown(inner_of(backend), from, err);
    if (r == 0) r = rp_backend_copy(inner_of(backend), from, &bare, to, out, err);
    if (r == 0) add_version(out);
    return r;
}

static int hiding_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                           const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    struct rp_identity bare = without_version(identity);
    int r = expect_shown(inner_of(backend), key, err);
    if (r == 0) r = rp_backend_annotate(inner_of(backend), key, &bare, changes, n, err);
    if (r < 0) return r;
    add_version(&bare);
    *identity = bare;
    return 0;
}

static const struct rp_backend_ops hiding_ops = {
    .type = "hiding",
    .close = hiding_close,
    .probe = hiding_probe,
    .put = hiding_put,
    .get = hiding_get,
    .stat = hiding_stat,
    .list = hiding_list,
    .remove = hiding_remove,
    .copy = hiding_copy,
    .annotate = hiding_annotate,
    .hides = hiding_hides,
    .hide = hiding_hide,
    .show = hiding_show,
};

int rp_backend_hiding_wrap(struct rp_backend *inner, const bool *blind, struct rp_backend **out, struct rp_error *err)
{
    struct hiding *h = calloc(1, sizeof *h);
    if (h == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    *h = (struct hiding){ .base.ops = &hiding_ops, .inner = inner, .blind = blind };
    *out = &h->base;
    return 0;
}
