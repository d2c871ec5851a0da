/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/writer/queue.h"

#include "base/assert.h"
#include "base/time.h"
#include "base/wait.h"

void rp_queue_init(struct rp_queue *q)
{
    pthread_mutex_init(&q->lock, NULL);
    rp_wait_init(&q->work);
    q->last = &q->first;
}

void rp_queue_done(struct rp_queue *q)
{
    RP_ASSERT(q->first == NULL);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
}

void rp_queue_push(struct rp_queue *q, struct rp_command *c)
{
    pthread_mutex_lock(&q->lock);
    RP_ASSERT(!q->stopping);
    c->inner.next = NULL;
    *q->last = c;
    q->last = &c->inner.next;
    if (q->shared)
        pthread_cond_broadcast(&q->work);
    else
        pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

void rp_queue_stop(struct rp_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stopping = true;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
}

static size_t weight_of(const struct rp_command *c)
{
    return c->weight > 0 ? c->weight : 1;
}

/* With the lock: takes what fits, in order of arrival; those that were busy a moment ago are left.
 * `*again_ms`: how long until the first of those may be tried; 0: there are none. */
static size_t collect(struct rp_queue *q, struct rp_command **out, rp_queue_fits_fn *fits, const void *who,
                      int64_t *again_ms)
{
    size_t n = 0, weight = 0;
    int64_t now_ms = rp_time_boot_ms();
    *again_ms = 0;
    struct rp_command **at = &q->first;
    for (bool go_on = true; *at != NULL && go_on && n < RP_WRITER_ROUND_MAX;) {
        struct rp_command *c = *at;
        int64_t left_ms = c->inner.retry_at_ms - now_ms;
        if (left_ms > 0) {
            if (*again_ms == 0 || left_ms < *again_ms) *again_ms = left_ms;
            at = &c->inner.next;
            continue;
        }
        bool heavy = n > 0 && weight + weight_of(c) > RP_WRITER_WEIGHT_MAX;
        if (heavy || !fits(who, out, n, c, &go_on)) {
            go_on = go_on && !heavy;
            at = &c->inner.next;
            continue;
        }
        *at = c->inner.next;
        if (q->last == &c->inner.next) q->last = at;
        c->inner.next = NULL;
        weight += weight_of(c);
        out[n++] = c;
    }
    return n;
}

size_t rp_queue_wait(struct rp_queue *q, struct rp_command **out, rp_queue_fits_fn *fits, const void *who)
{
    size_t n;
    int64_t again_ms;
    while ((n = collect(q, out, fits, who, &again_ms)) == 0 && !(q->first == NULL && q->stopping)) {
        struct timespec soon = rp_wait_until(again_ms);
        if (again_ms == 0)
            pthread_cond_wait(&q->work, &q->lock);
        else
            (void)pthread_cond_timedwait(&q->work, &q->lock, &soon);
    }
    return n;
}

size_t rp_queue_take(struct rp_queue *q, struct rp_command **out, rp_queue_fits_fn *fits)
{
    pthread_mutex_lock(&q->lock);
    size_t n = rp_queue_wait(q, out, fits, NULL);
    pthread_mutex_unlock(&q->lock);
    return n;
}
