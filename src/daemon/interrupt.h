/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.h - bounds how long a daemon that was told to stop waits for its stores.
 *
 * I1  Calls under way have `after_ms` to end by themselves. What still waits then is ended: it is
 *     unknown whether it was carried out, as after a timeout, and whoever has the mark next asks
 *     again (T10 of store/backend.h).
 * I2  Begun only when everybody who begins new work has been told to stop: later calls fail, and
 *     would count as attempts.
 * I3  Where no thread can be had, nothing is waited for. */
#ifndef RP_DAEMON_INTERRUPT_H
#define RP_DAEMON_INTERRUPT_H

#include "core/store.h"

#include <pthread.h>

struct rp_interrupt {
    const struct rp_store *stores;
    size_t n;
    int64_t after_ms;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool running, over;
};

/* The stores stay open until rp_interrupt_end has returned. */
void rp_interrupt_begin(struct rp_interrupt *interrupt, const struct rp_store *stores, size_t n, int64_t after_ms);
void rp_interrupt_end(struct rp_interrupt *interrupt);

#endif
