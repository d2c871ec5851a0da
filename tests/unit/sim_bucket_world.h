/* SPDX-License-Identifier: Apache-2.0 */
/* sim_bucket_world.h - a simulated bucket with two nodes at it, for the tests of the bucket. */
#ifndef RP_TESTS_SIM_BUCKET_WORLD_H
#define RP_TESTS_SIM_BUCKET_WORLD_H

#include "contract/store_steps.h"

#include "../../sim/bucket/bucket.h"

static struct rp_error error;

#define TOLD_MAX  64
#define CALLS_MAX 64
#define NOW_MS    INT64_C(1800000000123)

/* A bucket with two nodes at it; what was told; what the requests to come shall meet. */
struct world {
    struct bucket *bucket;
    struct rp_backend *one, *other;
    int64_t now_ms;
    uint64_t gone[TOLD_MAX], overwritten[TOLD_MAX];
    size_t n_gone, n_overwritten;
    char calls[CALLS_MAX][80]; /* call and key */
    size_t n_calls;
    const char *strikes; /* the call that meets `fate`, once; NULL: none */
    int spared;          /* so many of that call go well before */
    enum bucket_fate fate;
    void (*meanwhile)(struct world *w); /* before the request of `when` happens */
    const char *when;
};

/* The next such call meets this. */
static inline void strike(struct world *w, const char *call, enum bucket_fate fate)
{
    w->strikes = call;
    w->fate = fate;
}

static inline enum bucket_fate request(void *ctx, const char *call, const char *key)
{
    struct world *w = ctx;
    snprintf(w->calls[w->n_calls++ % CALLS_MAX], 80, "%s %s", call, key ? key : "-");
    if (w->when && strcmp(w->when, call) == 0) {
        w->when = NULL;
        w->meanwhile(w);
    }
    if (!w->strikes || strcmp(w->strikes, call) != 0 || w->spared-- > 0) return BUCKET_DONE;
    w->strikes = NULL;
    w->spared = 0;
    return w->fate;
}

static inline void gone(void *ctx, const struct bucket_object *object, bool overwritten)
{
    struct world *w = ctx;
    assert_false(bucket_holds(w->bucket, object->serial));
    assert_int_equal(strlen(object->text), object->identity.size_bytes);
    if (overwritten)
        w->overwritten[w->n_overwritten++ % TOLD_MAX] = object->serial;
    else
        w->gone[w->n_gone++ % TOLD_MAX] = object->serial;
}

static inline int64_t now_ms(void *ctx)
{
    return ((struct world *)ctx)->now_ms;
}

static inline struct rp_backend *handle(struct world *w, bool write_once)
{
    const struct bucket_hooks hooks = { .request = request, .gone = gone, .now_ms = now_ms, .ctx = w };
    struct rp_backend *backend;
    ok(bucket_handle(w->bucket, &hooks, write_once, &backend, &error));
    return backend;
}

static inline void forget(struct world *w)
{
    w->n_gone = w->n_overwritten = w->n_calls = 0;
    w->strikes = w->when = NULL;
    w->spared = 0;
}

static inline void probe_both(struct world *w)
{
    struct rp_probed probed;
    ok(rp_backend_probe(w->one, true, &probed, &error));
    ok(rp_backend_probe(w->other, true, &probed, &error));
}

static inline void begin(struct world *w, enum bucket_kind kind)
{
    *w = (struct world){ .bucket = bucket_new(kind), .now_ms = NOW_MS };
    w->one = handle(w, false);
    w->other = handle(w, false);
    probe_both(w);
    forget(w);
}

static inline void end(struct world *w)
{
    rp_backend_close(w->one);
    rp_backend_close(w->other);
    bucket_free(w->bucket);
}

static inline void expect_calls(const struct world *w, const char *expected)
{
    char all[CALLS_MAX * 80] = "";
    size_t used = 0;
    for (size_t i = 0; i < w->n_calls; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", w->calls[i]);
    assert_string_equal(all, expected);
}

static inline struct bucket_object shown(const struct world *w, const char *key)
{
    struct bucket_object object;
    assert_true(bucket_look(w->bucket, key, &object));
    return object;
}

static inline bool is_shown(const struct world *w, const char *key, const struct rp_identity *identity)
{
    const struct bucket_object object = shown(w, key);
    return rp_identity_equal(&object.identity, identity);
}

static inline struct rp_item item_of(const struct world *w, const char *key)
{
    return (struct rp_item){ .key = key, .identity = shown(w, key).identity };
}

static inline int remove_item(struct world *w, struct rp_item *item)
{
    error = (struct rp_error){ 0 };
    return rp_backend_remove(w->one, item, 1, NULL, &error);
}

#define EVERY(kind) for (enum bucket_kind kind = BUCKET_EXACT; kind < BUCKET_KINDS; kind++)

static inline const char *removal_of(enum bucket_kind kind)
{
    static const char *const calls[BUCKET_KINDS] = { "delete k", "delete k", "versions k, delete k", "head k, delete k",
                                                     "head k, delete k" };
    return calls[kind];
}

enum { MANY = 9 };

static inline void make_many(struct world *w, struct rp_item items[MANY])
{
    static const char *const keys[MANY] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
    for (size_t i = 0; i < MANY; i++) {
        put_text(w->one, keys[i], keys[i]);
        items[i] = item_of(w, keys[i]);
    }
}

#endif
