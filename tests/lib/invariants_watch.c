/* SPDX-License-Identifier: Apache-2.0 */
/* The watch: a store that asks the catalog, over another connection, whether each delete was
 * decided. */
#include "lib/invariants.h"

#include "base/assert.h"
#include "base/error.h"
#include "core/subject/quarantine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watch {
    struct rp_backend base;
    struct rp_backend_ops ops; /* without the slots that the wrapped one lacks */
    struct rp_backend *inner;
    const struct inv_world *world;
    const char *deny;
};

static struct watch *of(struct rp_backend *backend)
{
    return (struct watch *)(void *)backend;
}

static const struct rp_sql intent = {
    .name = "intent",
    /* an upload that nobody confirmed has a mark without identity: what stands under its key is its
     * own */
    .text = "SELECT state, due_at FROM mark WHERE store_id = $1 "
            "AND (key = $2 OR (in_place = 1 AND original = $2 AND $4 = 1)) AND (etag = $3 OR (etag = '' AND file_id IS "
            "NOT NULL)) ORDER BY id DESC LIMIT 1",
    .params = "issi",
    .columns = "ii",
};

struct found {
    int64_t state, due_at_ms;
};

static int keep(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    *(struct found *)ctx = (struct found){ .state = row[0].i, .due_at_ms = row[1].i };
    return 0;
}

static void saw(const struct inv_world *w, const char *name, const char *key, const char *what)
{
    if (w->known->seen[0] == '\0') snprintf(w->known->seen, sizeof w->known->seen, "%s: %s: %s", name, key, what);
}

/* A restore that came too late takes back the copy that it made itself; no upload ever had that
 * identity. */
static bool is_own_copy(const struct inv_world *w, const struct rp_item *item)
{
    if (w->known->returning_id == 0) return false;
    for (size_t i = 0; i < w->known->n; i++)
        if (strcmp(w->known->subjects[i].etag, item->identity.etag) == 0) return false;
    for (size_t i = 0; i < w->known->n_files; i++)
        if (strcmp(w->known->files[i].etag, item->identity.etag) == 0) return false;
    return true;
}

/* Once purging, always decided: a worker that wakes up late may find that another one has
 * finished. */
static bool was_decided(int64_t state)
{
    return state == RP_PURGING || state == RP_PURGED || state == RP_DEAD || state == RP_LOST;
}

/* What is hidden is erased by a mark of its own. */
static void look(const struct inv_world *w, const struct rp_item *item, bool erased)
{
    struct rp_error err = { 0 };
    struct found f = { 0 };
    struct rp_value args[] = { rp_int(w->store_id), rp_text(item->key), rp_text(item->identity.etag), rp_int(erased) };
    int r = rp_db_query(w->catalog->db, &intent, args, keep, &f, &err);
    RP_ASSERT(r == 0);
    const struct inv_known *k = w->known;
    int64_t early = k->host_ms < k->db_ms ? k->host_ms : k->db_ms;
    if (k->store_ms < early) early = k->store_ms;
    w->known->removes++;
    if (!was_decided(f.state) && is_own_copy(w, item)) return;
    if (!was_decided(f.state)) saw(w, "INTENT-FIRST", item->key, "deleted while its mark was not durably purging");
    if (f.due_at_ms > early) saw(w, "NO-EARLY", item->key, "deleted before it was due on every clock");
}

static int watch_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                        struct rp_error *err)
{
    struct watch *w = of(backend);
    for (size_t i = 0; i < n; i++) {
        int r = 0;
        look(w->world, &items[i], true);
        if (strcmp(items[i].key, w->deny) != 0)
            r = rp_backend_remove(w->inner, &items[i], 1, gate, err);
        else {
            items[i].outcome = RP_OUT_DENIED;
            snprintf(items[i].note, sizeof items[i].note, "the test refuses it");
        }
        if (r < 0) return r;
    }
    return 0;
}

static bool watch_hides(struct rp_backend *backend)
{
    return rp_backend_hides(of(backend)->inner);
}

static int watch_hide(struct rp_backend *backend, struct rp_item *items, const int64_t *since_ms, size_t n,
                      const struct rp_gate *gate, struct rp_error *err)
{
    struct watch *w = of(backend);
    for (size_t i = 0; i < n; i++) {
        int r = 0;
        look(w->world, &items[i], false);
        if (strcmp(items[i].key, w->deny) != 0)
            r = rp_backend_hide(w->inner, &items[i], &since_ms[i], 1, gate, err);
        else
            items[i].outcome = RP_OUT_DENIED;
        if (r < 0) return r;
    }
    return 0;
}

static int watch_show(struct rp_backend *backend, const char *key, const struct rp_identity *identity, bool *made,
                      struct rp_error *err)
{
    return rp_backend_show(of(backend)->inner, key, identity, made, err);
}

static int watch_probe(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    return of(backend)->inner->ops->probe(of(backend)->inner, may_write, out, err);
}

static int watch_put(struct rp_backend *backend, const char *key, const struct rp_source *from,
                     const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err)
{
    return of(backend)->inner->ops->put(of(backend)->inner, key, from, meta, flags, out, err);
}

static int watch_get(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                     struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    return of(backend)->inner->ops->get(of(backend)->inner, key, to, arena, meta, identity, err);
}

static int watch_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err)
{
    return of(backend)->inner->ops->stat(of(backend)->inner, items, n, err);
}

static int watch_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
                      struct rp_error *err)
{
    return of(backend)->inner->ops->list(of(backend)->inner, prefix, after, fn, ctx, err);
}

static int watch_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                      struct rp_identity *out, struct rp_error *err)
{
    return of(backend)->inner->ops->copy(of(backend)->inner, from, expected, to, out, err);
}

static int watch_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                          const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    return of(backend)->inner->ops->annotate(of(backend)->inner, key, identity, changes, n, err);
}

static int watch_now_ms(struct rp_backend *backend, int64_t *out, struct rp_error *err)
{
    (void)err;
    *out = of(backend)->world->known->store_ms;
    return 0;
}

static void watch_close(struct rp_backend *backend)
{
    free(of(backend));
}

static const struct rp_backend_ops watch_ops = {
    .type = "watch",
    .close = watch_close,
    .probe = watch_probe,
    .put = watch_put,
    .get = watch_get,
    .stat = watch_stat,
    .list = watch_list,
    .remove = watch_remove,
    .copy = watch_copy,
    .annotate = watch_annotate,
    .now_ms = watch_now_ms,
    .hides = watch_hides,
    .hide = watch_hide,
    .show = watch_show,
};

int inv_watch_wrap(const struct inv_world *world, struct rp_backend *inner, const char *deny, struct rp_backend **out)
{
    struct watch *w = calloc(1, sizeof *w);
    if (w == NULL) return RP_ENOMEM;
    *w = (struct watch){ .ops = watch_ops, .inner = inner, .world = world, .deny = deny };
    if (!rp_backend_has_hiding(inner)) w->ops.hides = NULL, w->ops.hide = NULL, w->ops.show = NULL;
    w->base.ops = &w->ops;
    *out = &w->base;
    return 0;
}
