/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/slow_clients.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/wait.h"
#include "http/server/inner.h"

struct rp_slow_client {
    struct rp_slow_client *next, *previous;
    int fd;
    _Atomic int64_t since_us; /* 0: nothing is waited for */
};

struct rp_slow_clients {
    int64_t patience_us;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows; held while a socket is shut, so that its number is still its own */
    pthread_cond_t stop;
    bool stopping;
    struct rp_slow_client *first;
};

static void end_the_slow(struct rp_slow_clients *clients, int64_t now_us)
{
    for (struct rp_slow_client *client = clients->first; client != NULL; client = client->next) {
        int64_t since = atomic_load_explicit(&client->since_us, memory_order_relaxed);
        if (since != 0 && now_us - since > clients->patience_us) (void)shutdown(client->fd, SHUT_RDWR);
    }
}

static void *watch(void *arg)
{
    struct rp_slow_clients *clients = arg;
    int64_t step_ms = clients->patience_us < 4000000 ? clients->patience_us / 4000 : 1000;
    pthread_mutex_lock(&clients->lock);
    while (!clients->stopping) {
        struct timespec until = rp_wait_until(step_ms);
        pthread_cond_timedwait(&clients->stop, &clients->lock, &until);
        end_the_slow(clients, rp_monotonic_us());
    }
    pthread_mutex_unlock(&clients->lock);
    return NULL;
}

int rp_slow_clients_start(int64_t patience_ms, struct rp_slow_clients **out, struct rp_error *err)
{
    struct rp_slow_clients *clients = calloc(1, sizeof *clients);
    if (clients == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the watch over connections");
    RP_ASSERT(patience_ms > 0);
    clients->patience_us = patience_ms * 1000;
    pthread_mutex_init(&clients->lock, NULL);
    rp_wait_init(&clients->stop);
    if (pthread_create(&clients->thread, NULL, watch, clients) != 0) {
        free(clients);
        return rp_error_set(err, RP_ENOMEM, "no thread for the watch over connections");
    }
    *out = clients;
    return 0;
}

void rp_slow_clients_stop(struct rp_slow_clients *clients)
{
    if (clients == NULL) return;
    pthread_mutex_lock(&clients->lock);
    clients->stopping = true;
    pthread_cond_signal(&clients->stop);
    pthread_mutex_unlock(&clients->lock);
    pthread_join(clients->thread, NULL);
    RP_ASSERT(clients->first == NULL);
    pthread_cond_destroy(&clients->stop);
    pthread_mutex_destroy(&clients->lock);
    free(clients);
}

struct rp_slow_client *rp_slow_clients_add(struct rp_slow_clients *clients, int fd)
{
    struct rp_slow_client *client = calloc(1, sizeof *client);
    if (client == NULL) return NULL;
    client->fd = fd;
    rp_slow_client_awaits(client, true);
    pthread_mutex_lock(&clients->lock);
    client->next = clients->first;
    if (clients->first != NULL) clients->first->previous = client;
    clients->first = client;
    pthread_mutex_unlock(&clients->lock);
    return client;
}

void rp_slow_clients_remove(struct rp_slow_clients *clients, struct rp_slow_client *client)
{
    if (client == NULL) return;
    pthread_mutex_lock(&clients->lock);
    if (client->next != NULL) client->next->previous = client->previous;
    if (client->previous != NULL)
        client->previous->next = client->next;
    else
        clients->first = client->next;
    pthread_mutex_unlock(&clients->lock);
    free(client);
}

void rp_slow_client_awaits(struct rp_slow_client *client, bool awaits)
{
    if (client == NULL) return;
    atomic_store_explicit(&client->since_us, awaits ? rp_monotonic_us() : 0, memory_order_relaxed);
}
