/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - threads for what blocks: look-ups in the catalog, stores. Each has its own connection to
 * the catalog: the first of them from the start, the others when they are first needed. One that
 * gets none leaves its request to those that have theirs. The queue is bounded; the thread that was
 * idle for the shortest time takes the next request, so that few connections are open while there
 * is little to do.
 *
 * L1  A store that does not answer takes no more than RP_POOL_STORE threads, and all stores
 *     together no more than RP_POOL_STORES: the others serve those who need the catalog alone.
 * L2  A request that waits for its store has no thread. It is run from its start when one of those
 *     with that store is back. */
#ifndef RP_HTTP_SERVER_POOL_H
#define RP_HTTP_SERVER_POOL_H

#include "http/server/inner.h"

#define RP_POOL_THREADS   8
#define RP_POOL_STORE     4
#define RP_POOL_STORES    6
#define RP_POOL_QUEUE_MAX 1024
#define RP_POOL_LOOKUPS   2 /* threads that look tokens up */

int rp_pool_start(struct rp_server *server, size_t threads, size_t queue_max, struct rp_pool **out,
                  struct rp_error *err);
/* False: the queue is full, or the pool stops. */
bool rp_pool_push(struct rp_pool *pool, struct rp_request *q);
/* L1, for a request that a thread of the pool runs. False: it is to be pushed again, and waits
 * (L2). */
bool rp_pool_enter(struct rp_pool *pool, struct rp_request *q, int64_t store_id);
/* What still waits is answered 503; what runs is waited for. */
void rp_pool_stop(struct rp_pool *pool);
/* When nobody can push any more. */
void rp_pool_free(struct rp_pool *pool);

#endif
