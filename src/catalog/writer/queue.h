/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - commands that wait for a thread, in order of arrival. */
#ifndef RP_CATALOG_QUEUE_H
#define RP_CATALOG_QUEUE_H

#include "catalog/writer/writer.h"

#include <pthread.h>

#define RP_RETRY_MS 5 /* until a command whose tenant was locked is tried again, at the soonest */

struct rp_queue {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct rp_command *first, **last;
    bool stopping;
    bool shared; /* by threads that may not all take the same */
};

void rp_queue_init(struct rp_queue *q);
void rp_queue_done(struct rp_queue *q); /* an empty one */
void rp_queue_push(struct rp_queue *q, struct rp_command *c);
void rp_queue_stop(struct rp_queue *q);

/* Whether the command may join those that were taken already, and whether one behind it may be
 * looked at. */
typedef bool rp_queue_fits_fn(const void *who, struct rp_command *const *taken, size_t n, const struct rp_command *c,
                              bool *go_on);
/* What fits, when there is something; 0 when the queue stops. */
size_t rp_queue_take(struct rp_queue *q, struct rp_command **out, rp_queue_fits_fn *fits);
/* The same by who holds the queue's lock. */
size_t rp_queue_wait(struct rp_queue *q, struct rp_command **out, rp_queue_fits_fn *fits, const void *who);

#endif
