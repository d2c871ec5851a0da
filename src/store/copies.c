/* SPDX-License-Identifier: Apache-2.0 */
/* Many copies over a few threads (T11). */
#include <pthread.h>
#include <stdio.h>

#include "base/error.h"
#include "store/backend.h"
#include "store/workers.h"

struct copies {
    struct rp_backend *backend;
    struct rp_copying *items;
    size_t n, next; /* `next` is under the lock, as what follows */
    const struct rp_gate *gate;
    pthread_mutex_t lock;
    struct rp_error failed; /* code 0: the store as a whole did not fail */
};

/* In order: what was begun is always the first so many. NULL: nothing more is. */
static struct rp_copying *take(struct copies *c)
{
    struct rp_copying *item = NULL;
    pthread_mutex_lock(&c->lock);
    if (c->next < c->n && c->failed.code == 0 && rp_gate_is_open(c->gate)) item = &c->items[c->next++];
    pthread_mutex_unlock(&c->lock);
    return item;
}

static void fail(struct copies *c, const struct rp_error *why)
{
    pthread_mutex_lock(&c->lock);
    if (c->failed.code == 0) c->failed = *why;
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *arg)
{
    struct copies *c = arg;
    struct rp_copying *item;
    while ((item = take(c)) != NULL) {
        struct rp_error why = { 0 };
        struct rp_identity source = item->identity;
        item->code = c->backend->ops->copy(c->backend, item->from, &source, item->to, &item->identity, &why);
        if (item->code == 0) continue;
        snprintf(item->note, sizeof item->note, "%.199s", why.text);
        if ((rp_error_fault(item->code) & RP_OF_STORE) != 0) fail(c, &why);
    }
    return NULL;
}

int rp_backend_copies(struct rp_backend *b, struct rp_copying *items, size_t n, const struct rp_gate *gate,
                      struct rp_error *err)
{
    struct copies c = { .backend = b, .items = items, .n = n, .gate = gate, .lock = PTHREAD_MUTEX_INITIALIZER };
    size_t at_once = (size_t)b->ops->copies_at_once;
    for (size_t i = 0; i < n; i++) {
        items[i].code = RP_COPY_NONE;
        items[i].note[0] = '\0';
    }
    rp_work_beside(at_once < n ? at_once : n, work, &c);
    pthread_mutex_destroy(&c.lock);
    return c.failed.code < 0 ? rp_error_copy(err, &c.failed) : 0;
}
