/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/interrupt.h"

#include "base/assert.h"
#include "base/wait.h"
#include "store/backend.h"

#include <errno.h>

static bool can_wait(const struct rp_store *store)
{
    return store->backend != NULL && rp_backend_has_interrupt(store->backend);
}

static void interrupt_all(const struct rp_interrupt *interrupt)
{
    for (size_t i = 0; i < interrupt->n; i++)
        if (can_wait(&interrupt->stores[i])) rp_backend_interrupt(interrupt->stores[i].backend);
}

static void *wait_and_interrupt(void *ctx)
{
    struct rp_interrupt *interrupt = ctx;
    struct timespec at = rp_wait_until(interrupt->after_ms);
    pthread_mutex_lock(&interrupt->lock);
    int r = 0;
    while (!interrupt->over && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&interrupt->changed, &interrupt->lock, &at);
    bool over = interrupt->over;
    pthread_mutex_unlock(&interrupt->lock);
    if (!over) interrupt_all(interrupt);
    return NULL;
}

void rp_interrupt_begin(struct rp_interrupt *interrupt, const struct rp_store *stores, size_t n, int64_t after_ms)
{
    bool any = false;
    *interrupt = (struct rp_interrupt){ .stores = stores, .n = n, .after_ms = after_ms };
    RP_ASSERT(pthread_mutex_init(&interrupt->lock, NULL) == 0);
    rp_wait_init(&interrupt->changed);
    for (size_t i = 0; i < n; i++)
        any = any || can_wait(&stores[i]);
    if (!any) return;
    interrupt->running = pthread_create(&interrupt->thread, NULL, wait_and_interrupt, interrupt) == 0;
    if (!interrupt->running) interrupt_all(interrupt);
}

void rp_interrupt_end(struct rp_interrupt *interrupt)
{
    pthread_mutex_lock(&interrupt->lock);
    interrupt->over = true;
    pthread_cond_signal(&interrupt->changed);
    pthread_mutex_unlock(&interrupt->lock);
    if (interrupt->running) pthread_join(interrupt->thread, NULL);
    pthread_cond_destroy(&interrupt->changed);
    pthread_mutex_destroy(&interrupt->lock);
}
