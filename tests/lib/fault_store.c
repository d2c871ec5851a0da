/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails when it is told to, and is the wrapped one otherwise. Outputs go through
 * locals: a failure after the effect leaves them untouched, as one of a real store would. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "lib/stores.h"

struct fault {
    struct rp_backend base;
    struct rp_backend *inner;
    struct rp_backend_fault ask;
    struct rp_backend_ops ops; /* without the slots that the wrapped one lacks */
};

static struct fault *of(struct rp_backend *backend)
{
    return (struct fault *)(void *)backend;
}

static int before(struct fault *f, const char *call, const char *key, struct rp_error *err)
{
    return f->ask.before ? f->ask.before(f->ask.ctx, call, key, err) : 0;
}

static int after(struct fault *f, const char *call, const char *key, struct rp_error *err)
{
    return f->ask.after ? f->ask.after(f->ask.ctx, call, key, err) : 0;
}

static void fault_close(struct rp_backend *backend)
{
    free(of(backend));
}

static int fault_probe(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    struct fault *f = of(backend);
    struct rp_probed found = { 0 };
    int r = before(f, "probe", NULL, err);
    if (r < 0 || (r = f->inner->ops->probe(f->inner, may_write, &found, err)) < 0) return r;
    if ((r = after(f, "probe", NULL, err)) < 0) return r;
    *out = found;
    return 0;
}

static int fault_put(struct rp_backend *backend, const char *key, const struct rp_source *from,
                     const struct rp_meta *meta, int flags, struct rp_identity *out, struct rp_error *err)
{
    struct fault *f = of(backend);
    struct rp_identity made;
    if (flags & RP_PUT_OVER) made = *out;
    int r = before(f, "put", key, err);
    if (r < 0 || (r = f->inner->ops->put(f->inner, key, from, meta, flags, &made, err)) < 0) return r;
    if ((r = after(f, "put", key, err)) < 0) return r;
    if (out) *out = made;
    return 0;
}

static int fault_get(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
                     struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    struct fault *f = of(backend);
    struct rp_meta got = { 0 };
    struct rp_identity found;
    int r = before(f, "get", key, err);
    if (r < 0 || (r = f->inner->ops->get(f->inner, key, to, arena, meta ? &got : NULL, &found, err)) < 0) return r;
    if ((r = after(f, "get", key, err)) < 0) return r;
    if (meta) *meta = got;
    if (identity) *identity = found;
    return 0;
}

static int fault_list(struct rp_backend *backend, const char *prefix, const char *from, rp_entry_fn *fn, void *ctx,
                      struct rp_error *err)
{
    struct fault *f = of(backend);
    int r = before(f, "list", prefix, err);
    if (r < 0 || (r = f->inner->ops->list(f->inner, prefix, from, fn, ctx, err)) < 0) return r;
    return after(f, "list", prefix, err);
}

static int fault_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
                      struct rp_identity *out, struct rp_error *err)
{
    struct fault *f = of(backend);
    struct rp_identity made;
    int r = before(f, "copy", from, err);
    if (r < 0 || (r = f->inner->ops->copy(f->inner, from, expected, to, &made, err)) < 0) return r;
    if ((r = after(f, "copy", from, err)) < 0) return r;
    if (out) *out = made;
    return 0;
}

static int fault_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                          const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    struct fault *f = of(backend);
    struct rp_identity now = *identity;
    int r = before(f, "annotate", key, err);
    if (r < 0 || (r = f->inner->ops->annotate(f->inner, key, &now, changes, n, err)) < 0) return r;
    if ((r = after(f, "annotate", key, err)) < 0) return r;
    *identity = now;
    return 0;
}

static int fault_now_ms(struct rp_backend *backend, int64_t *out, struct rp_error *err)
{
    struct fault *f = of(backend);
    int64_t now = 0;
    int r = before(f, "now_ms", NULL, err);
    if (r < 0 || (r = f->inner->ops->now_ms(f->inner, &now, err)) < 0) return r;
    if ((r = after(f, "now_ms", NULL, err)) < 0) return r;
    *out = now;
    return 0;
}

static void fault_interrupt(struct rp_backend *backend)
{
    struct fault *f = of(backend);
    f->inner->ops->interrupt(f->inner);
}

static void fault_keys_source(struct rp_backend *backend, char out[RP_KEYS_SOURCE])
{
    struct fault *f = of(backend);
    f->inner->ops->keys_source(f->inner, out);
}

static int fault_presign(struct rp_backend *backend, const struct rp_presign *what, struct rp_arena *arena,
                         struct rp_presigned *out, struct rp_error *err)
{
    struct fault *f = of(backend);
    return f->inner->ops->presign(f->inner, what, arena, out, err); /* no I/O: nothing that could fail */
}

static int fault_list_partial(struct rp_backend *backend, const char *prefix, rp_partial_fn *fn, void *ctx,
                              struct rp_error *err)
{
    struct fault *f = of(backend);
    int r = before(f, "list_partial", prefix, err);
    if (r < 0 || (r = f->inner->ops->list_partial(f->inner, prefix, fn, ctx, err)) < 0) return r;
    return after(f, "list_partial", prefix, err);
}

static int fault_abort_partial(struct rp_backend *backend, const char *key, const char *upload, struct rp_error *err)
{
    struct fault *f = of(backend);
    int r = before(f, "abort_partial", key, err);
    if (r < 0 || (r = f->inner->ops->abort_partial(f->inner, key, upload, err)) < 0) return r;
    return after(f, "abort_partial", key, err);
}

static const char *only_key(const struct rp_item *items, size_t n)
{
    return n == 1 ? items[0].key : NULL;
}

static void doubt(struct rp_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].outcome != RP_OUT_NONE) items[i].outcome = RP_OUT_UNKNOWN;
}

static int fault_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err)
{
    struct fault *f = of(backend);
    int r = before(f, "stat", only_key(items, n), err);
    if (r < 0 || (r = f->inner->ops->stat(f->inner, items, n, err)) < 0) return r;
    if ((r = after(f, "stat", only_key(items, n), err)) < 0) doubt(items, n);
    return r;
}

/* Items that are refused before their effect never reach the wrapped store; the others stay one
 * batch. */
static size_t let_through(struct fault *f, const char *call, struct rp_item *items, size_t n, size_t *through)
{
    size_t passed = 0;
    for (size_t i = 0; i < n; i++) {
        struct rp_error why = { 0 };
        items[i].note[0] = '\0';
        items[i].outcome = RP_OUT_NONE;
        int r = before(f, call, items[i].key, &why);
        if (r == 0) {
            through[passed++] = i;
            continue;
        }
        items[i].outcome = r == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_RETRY;
        snprintf(items[i].note, sizeof items[i].note, "%.119s", why.text);
    }
    return passed;
}

static void give_back(struct fault *f, const char *call, struct rp_item *items, const struct rp_item *done,
                      const size_t *through, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_item *item = &items[through[i]];
        struct rp_error why = { 0 };
        *item = done[i];
        if (after(f, call, item->key, &why) == 0) continue;
        item->outcome = RP_OUT_UNKNOWN;
        snprintf(item->note, sizeof item->note, "%.119s", why.text);
    }
}

static int fault_remove(struct rp_backend *backend, struct rp_item *items, size_t n, const struct rp_gate *gate,
                        struct rp_error *err)
{
    struct fault *f = of(backend);
    int r = before(f, "remove", NULL, err);
    if (r < 0) return r;
    RP_CLEANUP(rp_freep) size_t *through = calloc(n + 1, sizeof *through);
    RP_CLEANUP(rp_freep) struct rp_item *batch = calloc(n + 1, sizeof *batch);
    if (!through || !batch) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of %zu", n);
    size_t passed = let_through(f, "remove", items, n, through);
    for (size_t i = 0; i < passed; i++)
        batch[i] = items[through[i]];
    r = f->inner->ops->remove(f->inner, batch, passed, gate, err);
    give_back(f, "remove", items, batch, through, passed);
    if (r < 0) return r;
    if ((r = after(f, "remove", NULL, err)) < 0) doubt(items, n);
    return r;
}

static bool fault_hides(struct rp_backend *backend)
{
    return rp_backend_hides(of(backend)->inner); /* no I/O */
}

static int fault_hide(struct rp_backend *backend, struct rp_item *items, const int64_t *since_ms, size_t n,
                      const struct rp_gate *gate, struct rp_error *err)
{
    struct fault *f = of(backend);
    int r = before(f, "hide", NULL, err);
    if (r < 0) return r;
    RP_CLEANUP(rp_freep) size_t *through = calloc(n + 1, sizeof *through);
    RP_CLEANUP(rp_freep) int64_t *since = calloc(n + 1, sizeof *since);
    RP_CLEANUP(rp_freep) struct rp_item *batch = calloc(n + 1, sizeof *batch);
    if (!through || !since || !batch) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of %zu", n);
    size_t passed = let_through(f, "hide", items, n, through);
    for (size_t i = 0; i < passed; i++) {
        batch[i] = items[through[i]];
        since[i] = since_ms[through[i]];
    }
    r = rp_backend_hide(f->inner, batch, since, passed, gate, err);
    give_back(f, "hide", items, batch, through, passed);
    if (r < 0) return r;
    if ((r = after(f, "hide", NULL, err)) < 0) doubt(items, n);
    return r;
}

static int fault_show(struct rp_backend *backend, const char *key, const struct rp_identity *identity, bool *made,
                      struct rp_error *err)
{
    struct fault *f = of(backend);
    int r = before(f, "show", key, err);
    if (r < 0 || (r = rp_backend_show(f->inner, key, identity, made, err)) < 0) return r;
    return after(f, "show", key, err);
}

struct writer {
    struct rp_object_writer base;
    struct rp_object_writer *inner;
    int flags;
    char key[RP_KEY_MAX + 1];
};

struct reader {
    struct rp_object_reader base;
    struct rp_object_reader *inner;
    char key[RP_KEY_MAX + 1];
};

static int fault_put_open(struct rp_backend *backend, const char *key, const struct rp_meta *meta, int flags,
                          struct rp_object_writer **out, struct rp_error *err)
{
    struct fault *f = of(backend);
    RP_CLEANUP(rp_freep) struct writer *w = calloc(1, sizeof *w);
    if (!w) return rp_error_set(err, RP_ENOMEM, "no memory to write an object");
    *w = (struct writer){ .base.backend = backend, .flags = flags };
    snprintf(w->key, sizeof w->key, "%s", key);
    int r = before(f, "put_open", key, err);
    if (r < 0 || (r = f->inner->ops->put_open(f->inner, key, meta, flags, &w->inner, err)) < 0) return r;
    if ((r = after(f, "put_open", key, err)) < 0) {
        f->inner->ops->put_abort(w->inner);
        return r;
    }
    *out = &w->base;
    w = NULL;
    return 0;
}

static int fault_put_write(struct rp_object_writer *writer, const void *bytes, size_t n, struct rp_error *err)
{
    struct fault *f = of(writer->backend);
    struct writer *w = (struct writer *)(void *)writer;
    int r = before(f, "put_write", w->key, err);
    if (r < 0 || (r = f->inner->ops->put_write(w->inner, bytes, n, err)) < 0) return r;
    return after(f, "put_write", w->key, err);
}

static int fault_put_commit(struct rp_object_writer *writer, struct rp_identity *out, struct rp_error *err)
{
    struct fault *f = of(writer->backend);
    RP_CLEANUP(rp_freep) struct writer *w = (struct writer *)(void *)writer;
    struct rp_identity made;
    if (w->flags & RP_PUT_OVER) made = *out;
    int r = before(f, "put_commit", w->key, err);
    if (r < 0) {
        f->inner->ops->put_abort(w->inner);
        return r;
    }
    if ((r = f->inner->ops->put_commit(w->inner, &made, err)) < 0) return r;
    if ((r = after(f, "put_commit", w->key, err)) < 0) return r;
    if (out) *out = made;
    return 0;
}

static void fault_put_abort(struct rp_object_writer *writer)
{
    struct fault *f = of(writer->backend);
    f->inner->ops->put_abort(((struct writer *)(void *)writer)->inner);
    free(writer);
}

static int fault_get_open(struct rp_backend *backend, const char *key, struct rp_arena *arena, struct rp_meta *meta,
                          struct rp_identity *identity, struct rp_object_reader **out, struct rp_error *err)
{
    struct fault *f = of(backend);
    struct rp_meta got = { 0 };
    struct rp_identity found;
    RP_CLEANUP(rp_freep) struct reader *r = calloc(1, sizeof *r);
    if (!r) return rp_error_set(err, RP_ENOMEM, "no memory to read an object");
    *r = (struct reader){ .base.backend = backend };
    snprintf(r->key, sizeof r->key, "%s", key);
    int code = before(f, "get_open", key, err);
    if (code == 0) code = f->inner->ops->get_open(f->inner, key, arena, meta ? &got : NULL, &found, &r->inner, err);
    if (code < 0) return code;
    if ((code = after(f, "get_open", key, err)) < 0) {
        f->inner->ops->get_close(r->inner);
        return code;
    }
    if (meta) *meta = got;
    if (identity) *identity = found;
    *out = &r->base;
    r = NULL;
    return 0;
}

static int64_t fault_get_read(struct rp_object_reader *reader, int64_t offset, void *to, size_t n, struct rp_error *err)
{
    struct fault *f = of(reader->backend);
    struct reader *r = (struct reader *)(void *)reader;
    int code = before(f, "get_read", r->key, err);
    if (code < 0) return code;
    int64_t got = f->inner->ops->get_read(r->inner, offset, to, n, err);
    if (got >= 0 && (code = after(f, "get_read", r->key, err)) < 0) return code;
    return got;
}

static void fault_get_close(struct rp_object_reader *reader)
{
    struct fault *f = of(reader->backend);
    f->inner->ops->get_close(((struct reader *)(void *)reader)->inner);
    free(reader);
}

static const struct rp_backend_ops fault_ops = {
    .type = "fault",
    .close = fault_close,
    .probe = fault_probe,
    .put = fault_put,
    .get = fault_get,
    .stat = fault_stat,
    .list = fault_list,
    .remove = fault_remove,
    .copy = fault_copy,
    .annotate = fault_annotate,
    .now_ms = fault_now_ms,
    .hides = fault_hides,
    .hide = fault_hide,
    .show = fault_show,
    .put_open = fault_put_open,
    .put_write = fault_put_write,
    .put_commit = fault_put_commit,
    .put_abort = fault_put_abort,
    .get_open = fault_get_open,
    .get_read = fault_get_read,
    .get_close = fault_get_close,
    .presign = fault_presign,
    .list_partial = fault_list_partial,
    .abort_partial = fault_abort_partial,
    .interrupt = fault_interrupt,
    .keys_source = fault_keys_source,
};

static struct rp_backend_ops ops_around(const struct rp_backend *inner)
{
    struct rp_backend_ops ops = fault_ops;
    if (!inner->ops->put_open) {
        ops.put_open = NULL, ops.put_write = NULL, ops.put_commit = NULL, ops.put_abort = NULL;
        ops.get_open = NULL, ops.get_read = NULL, ops.get_close = NULL;
    }
    if (!inner->ops->now_ms) ops.now_ms = NULL;
    if (!inner->ops->hide) ops.hides = NULL, ops.hide = NULL, ops.show = NULL;
    if (!inner->ops->keys_source) ops.keys_source = NULL;
    if (!inner->ops->presign) ops.presign = NULL;
    if (!inner->ops->list_partial) ops.list_partial = NULL;
    if (!inner->ops->abort_partial) ops.abort_partial = NULL;
    if (!inner->ops->interrupt) ops.interrupt = NULL;
    ops.copies_at_once = inner->ops->copies_at_once;
    return ops;
}

int rp_backend_fault_wrap(struct rp_backend *inner, const struct rp_backend_fault *fault, struct rp_backend **out,
                          struct rp_error *err)
{
    RP_ASSERT(inner && fault);
    struct fault *f = calloc(1, sizeof *f);
    if (!f) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    f->ops = ops_around(inner);
    f->base.ops = &f->ops;
    f->inner = inner;
    f->ask = *fault;
    *out = &f->base;
    return 0;
}
