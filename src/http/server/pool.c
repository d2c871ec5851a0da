/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/text/json.h"
#include "base/time.h"

#define AGAIN_MS  RP_SECOND_MS
#define CACHE_KIB 256 /* of each thread; the kernel keeps the rest of the catalog once for all of them */

struct worker {
    struct rp_pool *pool;
    pthread_t thread;
    pthread_cond_t work;
    struct rp_catalog *catalog; /* NULL: not opened yet */
    struct worker *next_idle;
    bool called;      /* taken off the idle list: there is something to do */
    bool connected;   /* it has its catalog */
    int64_t again_ms; /* it got none: when it may ask again */
};

struct rp_pool {
    struct rp_server *server;
    pthread_mutex_t lock; /* of everything below */
    struct rp_request *first, **last;
    size_t waiting, waiting_max, connected;
    struct worker *idle;            /* the one that was busy last comes first */
    int64_t inside[RP_POOL_STORES]; /* L1: the store of each request that was let in; 0: a free place */
    bool stopping;
    size_t n; /* threads that run */
    struct worker workers[];
};

/* A catalog that is not there now may be there later: asked again at every request. */
static bool open_catalog(struct worker *w, struct rp_error *err)
{
    const struct rp_server_options *o = &w->pool->server->options;
    struct rp_catalog_options how = { .clock = o->clock, .cache_kib = CACHE_KIB };
    if (w->catalog != NULL) return true;
    if (rp_catalog_open(o->catalog_url, &how, &w->catalog, err) < 0) return false;
    rp_writers_attach(o->writers, w->catalog);
    w->catalog->log = o->log;
    pthread_mutex_lock(&w->pool->lock);
    w->connected = true;
    w->pool->connected++;
    pthread_mutex_unlock(&w->pool->lock);
    return true;
}

/* ---- stores (L1), with the lock ---- */

static bool let_in(struct rp_pool *pool, int64_t store)
{
    int64_t *room = NULL;
    size_t with_it = 0;
    for (size_t i = 0; i < RP_POOL_STORES; i++) {
        with_it += pool->inside[i] == store;
        if (pool->inside[i] == 0) room = &pool->inside[i];
    }
    if (room == NULL || with_it >= RP_POOL_STORE) return false;
    *room = store;
    return true;
}

static void let_out(struct rp_pool *pool, int64_t store)
{
    size_t i = 0;
    while (i < RP_POOL_STORES && pool->inside[i] != store)
        i++;
    RP_ASSERT(i < RP_POOL_STORES);
    pool->inside[i] = 0;
}

bool rp_pool_enter(struct rp_pool *pool, struct rp_request *q, int64_t store_id)
{
    struct rp_request_inner *in = q->inner;
    RP_ASSERT(store_id != 0);
    if (in->inside && in->store == store_id) return true;
    pthread_mutex_lock(&pool->lock);
    if (in->inside) let_out(pool, in->store);
    in->store = store_id;
    in->inside = let_in(pool, store_id);
    pthread_mutex_unlock(&pool->lock);
    return in->inside;
}

/* ---- threads ---- */

/* With the lock. Who has a connection comes first; who got none asks again now and then. */
static bool may_serve(const struct worker *w)
{
    return w->connected || w->pool->connected == 0 || rp_time_boot_ms() >= w->again_ms;
}

/* With the lock. Nobody, if all who may are busy: they look for more when they are done. */
static void call_one(struct rp_pool *pool)
{
    struct worker **at = &pool->idle;
    while (*at != NULL && !may_serve(*at))
        at = &(*at)->next_idle;
    struct worker *w = *at;
    if (w == NULL) return;
    *at = w->next_idle;
    w->called = true;
    pthread_cond_signal(&w->work);
}

/* The server may have no connection for another thread: the request goes back to the head of the
 * queue. */
static bool leave_to_others(struct worker *w, struct rp_request *q)
{
    struct rp_pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    bool left = pool->connected > 0 && !pool->stopping;
    if (left) {
        q->inner->next = pool->first;
        if (pool->first == NULL) pool->last = &q->inner->next;
        pool->first = q;
        pool->waiting++;
        w->again_ms = rp_time_boot_ms() + AGAIN_MS;
        call_one(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return left;
}

static void leave(struct rp_pool *pool, int64_t store)
{
    pthread_mutex_lock(&pool->lock);
    let_out(pool, store);
    if (pool->first != NULL) call_one(pool);
    pthread_mutex_unlock(&pool->lock);
}

static void serve(struct worker *w, struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_request_inner *in = q->inner;
    bool open = open_catalog(w, &err);
    if (open) rp_request_run(q, w->catalog);
    int64_t store = in->inside ? in->store : 0;
    in->inside = false;
    if (open)
        (void)rp_request_settle(q); /* from here on it may be gone */
    else if (!leave_to_others(w, q))
        (void)rp_request_give_up(q, &err);
    if (store != 0) leave(w->pool, store);
}

/* The first one whose store lets it in. */
static struct rp_request *take(struct rp_pool *pool)
{
    for (struct rp_request **at = &pool->first; *at != NULL; at = &(*at)->inner->next) {
        struct rp_request *q = *at;
        struct rp_request_inner *in = q->inner;
        if (in->store != 0 && !let_in(pool, in->store)) continue;
        in->inside = in->store != 0;
        *at = in->next;
        if (pool->last == &in->next) pool->last = at;
        pool->waiting--;
        return q;
    }
    return NULL;
}

static struct rp_request *wait_for_one(struct worker *w)
{
    struct rp_pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    struct rp_request *q = pool->stopping || !may_serve(w) ? NULL : take(pool);
    while (q == NULL && !pool->stopping) {
        w->called = false;
        w->next_idle = pool->idle;
        pool->idle = w;
        while (!w->called)
            pthread_cond_wait(&w->work, &pool->lock);
        q = pool->stopping ? NULL : take(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return q;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (struct rp_request *q = wait_for_one(w); q != NULL; q = wait_for_one(w))
        serve(w, q);
    rp_catalog_close(w->catalog);
    return NULL;
}

bool rp_pool_push(struct rp_pool *pool, struct rp_request *q)
{
    bool taken = false;
    pthread_mutex_lock(&pool->lock);
    if (!pool->stopping && pool->waiting < pool->waiting_max) {
        q->inner->next = NULL;
        *pool->last = q;
        pool->last = &q->inner->next;
        pool->waiting++;
        call_one(pool);
        taken = true;
    }
    pthread_mutex_unlock(&pool->lock);
    return taken;
}

int rp_pool_start(struct rp_server *server, size_t threads, size_t queue_max, struct rp_pool **out,
                  struct rp_error *err)
{
    struct rp_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->workers[0]);
    if (pool == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the threads of the server");
    pool->server = server;
    pool->waiting_max = queue_max;
    pool->last = &pool->first;
    pthread_mutex_init(&pool->lock, NULL);
    pool->workers[0].pool = pool;
    int r = open_catalog(&pool->workers[0], err) ? 0 : err->code; /* one of them must have it */
    for (size_t i = 0; i < threads && r == 0; i++) {
        struct worker *w = &pool->workers[i];
        w->pool = pool;
        pthread_cond_init(&w->work, NULL);
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            r = rp_error_set(err, RP_ENOMEM, "no thread for the server");
        else
            pool->n = i + 1;
    }
    if (r == 0) {
        *out = pool;
        return 0;
    }
    if (pool->n == 0) rp_catalog_close(pool->workers[0].catalog);
    rp_pool_stop(pool);
    rp_pool_free(pool);
    return r;
}

void rp_pool_stop(struct rp_pool *pool)
{
    if (pool == NULL) return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    for (; pool->idle != NULL; pool->idle = pool->idle->next_idle) {
        pool->idle->called = true;
        pthread_cond_signal(&pool->idle->work);
    }
    struct rp_request *left = pool->first;
    pool->first = NULL;
    pthread_mutex_unlock(&pool->lock);
    for (struct rp_request *q = left, *next; q != NULL; q = next) {
        struct rp_error why = { 0 };
        next = q->inner->next;
        rp_error_set(&why, RP_EBUSY, "the server stops");
        (void)rp_request_give_up(q, &why);
    }
    for (; pool->n > 0; pool->n--)
        pthread_join(pool->workers[pool->n - 1].thread, NULL);
}

void rp_pool_free(struct rp_pool *pool)
{
    if (pool == NULL) return;
    RP_ASSERT(pool->n == 0 && pool->first == NULL);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
