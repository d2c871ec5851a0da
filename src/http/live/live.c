/* SPDX-License-Identifier: Apache-2.0 */
/* The hub: follows the feed, wakes clients, starts and stops. */
#include "http/live/inner.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/wait.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define MANY    512 /* clients */
#define CLIENTS 10000
#define IDLE_MS (15 * RP_SECOND_MS)

/* ---- what the feed tells ---- */

static void end_revoked(struct rp_live *live, const struct rp_feed_event *event)
{
    RP_CLEANUP(rp_json_decrefp) json_t *o = NULL;
    struct rp_error err;
    enum rp_id_kind kind;
    int64_t id;
    if (strcmp(event->name, "token.revoked") != 0) return;
    if (rp_json_parse(event->json, event->json_bytes, &o, &err) < 0) return;
    if (rp_id_parse(rp_json_get_text(o, "token", ""), &kind, &id) && kind == RP_ID_TOKEN)
        rp_live_forget_token(live, id);
}

static void forget_texts(struct rp_live *live)
{
    for (size_t i = 0; i < 2; i++) {
        rp_text_drop(&live->hello[i].text);
        rp_text_drop(&live->idle[i].text);
    }
}

/* What was said about the old log must not be said about the new one, and nobody's cursor means
 * anything now. */
static void start_over(struct rp_live *live)
{
    forget_texts(live);
    live->sealed[0] = '\0';
    rp_live_end_all(live);
}

static int deliver(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *all, struct rp_error *err)
{
    struct rp_live *live = ctx;
    (void)all, (void)err;
    pthread_mutex_lock(&live->lock);
    if (batch->started_over)
        start_over(live);
    else
        rp_live_wake(live, batch);
    pthread_mutex_unlock(&live->lock);
    for (size_t i = 0; i < batch->n; i++)
        end_revoked(live, batch->events[i]);
    return 0;
}

/* Thousands of connections leave holes that glibc keeps for each thread apart; what others need
 * then comes on top. */
static void give_back_memory(struct rp_live *live)
{
    size_t clients = atomic_load(&live->listening);
    if (clients > live->most) live->most = clients;
    if (live->most < MANY || clients > live->most / 2) return;
    live->most = clients;
    (void)malloc_trim(0);
}

static void looked(void *ctx)
{
    struct rp_live *live = ctx;
    pthread_mutex_lock(&live->lock);
    live->looks++;
    pthread_cond_broadcast(&live->to_fetch);
    rp_live_tend(live, rp_time_boot_ms());
    pthread_mutex_unlock(&live->lock);
    give_back_memory(live);
}

/* ---- start and stop ---- */

static void set_defaults(struct rp_live_options *o)
{
    if (o->clients_max == 0) o->clients_max = CLIENTS;
    if (o->idle_ms == 0) o->idle_ms = IDLE_MS;
    if (o->life_ms == 0) o->life_ms = RP_HOUR_MS;
}

static int begin(struct rp_live *live, struct rp_error *err)
{
    const struct rp_feed_reader reader = { .deliver = deliver, .looked = looked, .ctx = live };
    int r = pthread_create(&live->fetcher, NULL, rp_live_fetch_thread, live);
    live->has_fetcher = r == 0;
    if (r != 0) return rp_error_errno(err, r, "start a thread");
    return rp_feed_subscribe(live->feed, &reader, &live->follows, err);
}

int rp_live_start(const struct rp_live_options *options, struct rp_live **out, struct rp_error *err)
{
    struct rp_live *live = calloc(1, sizeof *live);
    if (live == NULL) return rp_error_set(err, RP_ENOMEM, "live events: out of memory");
    live->options = *options;
    live->feed = options->feed;
    live->next_end_ms = INT64_MAX;
    rp_seal_init(&live->seal, options->key);
    pthread_mutex_init(&live->lock, NULL);
    rp_wait_init(&live->to_fetch);
    rp_wait_init(&live->fetched);
    set_defaults(&live->options);
    int r = begin(live, err);
    if (r < 0) {
        rp_live_stop(live);
        return rp_error_wrap(err, r, "live events");
    }
    *out = live;
    return 0;
}

void rp_live_end(struct rp_live *live)
{
    if (live == NULL) return;
    pthread_mutex_lock(&live->lock);
    live->ending = true;
    rp_live_end_all(live);
    pthread_cond_broadcast(&live->to_fetch);
    while (live->in_hand != NULL)
        pthread_cond_wait(&live->fetched, &live->lock);
    pthread_mutex_unlock(&live->lock);
}

void rp_live_stop(struct rp_live *live)
{
    if (live == NULL) return;
    rp_live_end(live);
    rp_feed_unsubscribe(live->follows);
    if (live->has_fetcher) pthread_join(live->fetcher, NULL);
    RP_ASSERT(live->n_clients == 0);
    forget_texts(live);
    rp_text_drop(&live->again.text);
    rp_feed_log_close(live->log);
    pthread_cond_destroy(&live->to_fetch);
    pthread_cond_destroy(&live->fetched);
    pthread_mutex_destroy(&live->lock);
    free(live);
}

size_t rp_live_clients(struct rp_live *live)
{
    return live == NULL ? 0 : atomic_load(&live->listening);
}
