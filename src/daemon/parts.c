/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a daemon: how each is made, in which order they start and end, and what they tell
 * each other. */
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/writer/writer.h"
#include "daemon/inner.h"
#include "daemon/interrupt.h"
#include "hook/hook.h"
#include "http/route/route.h"
#include "lib/url_key.h"

#include <string.h>

#define QUEUE_MAX        16384 /* commands that wait for a writer */
#define RING_EVENTS      8192
#define RING_BYTES       ((size_t)4 << 20)
#define LIVE_CLIENTS_MAX 20000

/* ---- what the parts tell each other ---- */

static void committed(void *ctx, size_t commands, int64_t due_at_ms)
{
    struct rp_daemon *d = ctx;
    rp_feed_poke(d->feed);
    rp_metrics_round(d->metrics, commands);
    if (due_at_ms == 0) return;
    pthread_mutex_lock(&d->lock); /* it is not freed meanwhile */
    if (d->sweeper != NULL) rp_watch_due(d->sweeper, due_at_ms);
    if (d->asker != NULL) rp_watch_due(d->asker, due_at_ms);
    pthread_mutex_unlock(&d->lock);
}

/* A token was revoked, on this node, another one, or by the command line. */
static void forget_tokens(struct rp_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    if (d->server != NULL) rp_server_forget_token(d->server, 0);
    pthread_mutex_unlock(&d->lock);
}

/* Whoever has found it out: what a store guarantees is other than it was. */
static void tell_store(struct rp_daemon *d, const struct rp_feed_event *event)
{
    json_t *o = NULL;
    struct rp_error ignored = { 0 };
    if (rp_json_parse(event->json, event->json_bytes, &o, &ignored) < 0) o = json_object();
    (void)json_object_del(o, "actor");
    rp_daemon_log(d, RP_LOG_WARNING, event->name, o);
}

#define REVOKED "token.revoked"
static const char *const followed[] = { REVOKED, "store.level_changed", "store.keys_changed", NULL };

static int follow(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *all, struct rp_error *err)
{
    (void)all, (void)err;
    for (size_t i = 0; i < batch->n; i++) {
        if (strcmp(batch->events[i]->name, REVOKED) == 0)
            forget_tokens(ctx);
        else
            tell_store(ctx, batch->events[i]);
    }
    return 0;
}

static int reserve_run(void *ctx, const struct rp_worker **worker, struct rp_error *err)
{
    struct rp_daemon *d = ctx;
    *worker = &d->session.worker;
    return rp_runs_reserve(d->runs, err);
}

static void start_run(void *ctx, const char *store, const char *actor, const struct rp_run *begun)
{
    struct rp_daemon *d = ctx;
    rp_runs_start(d->runs, store, actor, begun);
}

static int64_t sweeper_idle_ms(void *ctx)
{
    const struct rp_daemon *d = ctx;
    return rp_sweeper_idle_ms(d->sweeper);
}

/* ---- how each is made ---- */

/* SQLite has one writer and this is its only daemon: one lane. Else each connection that writes
 * leases its own. */
static int lane_of(const struct rp_daemon *d)
{
    return rp_daemon_is_sqlite(d) ? 1 : RP_LANE_LEASED;
}

/* The writers and everybody beside them need its hook; its threads need the writers. */
static int make_raiser(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_raiser_options options = { .session = &d->session, .node = d->node, .lane = lane_of(d) };
    int r = rp_raiser_new(&options, &d->raiser, err);
    if (r == 0) d->session.catalog->raise_hook = rp_raiser_hook(d->raiser);
    return r;
}

static int start_feed(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_feed_options feed = { .catalog_url = d->session.config.catalog_url,
                                          .log = d->session.log,
                                          .clock = d->session.catalog->clock,
                                          .ring_events = RING_EVENTS,
                                          .ring_bytes = RING_BYTES };
    const struct rp_feed_reader reader = { .want = { .names = followed }, .deliver = follow, .ctx = d };
    int r = rp_feed_start(&feed, &d->feed, err);
    return r < 0 ? r : rp_feed_subscribe(d->feed, &reader, &d->follows, err);
}

static int start_live(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_live_options live = {
        .feed = d->feed,
        .log = d->session.log,
        .clock = d->session.catalog->clock,
        .key = d->url_key,
        .clients_max = LIVE_CLIENTS_MAX,
    };
    return rp_live_start(&live, &d->live, err);
}

static int start_writers(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_config *config = &d->session.config;
    const struct rp_writers_options writers = { .url = config->catalog_url,
                                                .n = rp_daemon_is_sqlite(d) ? 1 : (size_t)config->writers,
                                                .first_lane = lane_of(d),
                                                .holder = d->session.actor,
                                                .queue_max = QUEUE_MAX,
                                                .clock = d->session.catalog->clock,
                                                .committed = committed,
                                                .ctx = d,
                                                .raise_hook = rp_raiser_hook(d->raiser) };
    int r = rp_writers_start(&writers, &d->writers, err);
    if (r == 0) rp_writers_attach(d->writers, d->session.catalog);
    return r;
}

static int open_stores(struct rp_daemon *d, struct rp_error *err)
{
    struct rp_store *stores[RP_STORES_MAX];
    size_t n;
    int r = rp_session_stores(&d->session, stores, &n, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        if (stores[i]->backend != NULL) continue;
        json_t *o = rp_json_object("store", json_string(stores[i]->config->name), "error",
                                   rp_json_text(stores[i]->closed.text), NULL);
        rp_daemon_log(d, RP_LOG_ERROR, "store.closed", o);
    }
    return r;
}

static int start_runs(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_runs_options runs = {
        .session = &d->session, .writers = d->writers, .metrics = d->metrics, .lane = lane_of(d)
    };
    return rp_runs_new(&runs, &d->runs, err);
}

static struct rp_watch_options watch_options(struct rp_daemon *d, int lane)
{
    return (struct rp_watch_options){ .session = &d->session,
                                      .writers = d->writers,
                                      .metrics = d->metrics,
                                      .rooms = &d->rooms,
                                      .node = d->node,
                                      .lane = lane };
}

/* One of those that the writers look at. */
static int start_told(struct rp_daemon *d, const struct rp_watch_kind *kind, int lane, struct rp_watch **which,
                      struct rp_error *err)
{
    const struct rp_watch_options options = watch_options(d, lane);
    struct rp_watch *watch = NULL;
    int r = rp_watch_start(kind, &options, &watch, err);
    pthread_mutex_lock(&d->lock);
    *which = watch;
    pthread_mutex_unlock(&d->lock);
    return r;
}

static void stop_told(struct rp_daemon *d, struct rp_watch **which)
{
    pthread_mutex_lock(&d->lock);
    struct rp_watch *watch = *which;
    *which = NULL;
    pthread_mutex_unlock(&d->lock);
    rp_watch_stop(watch);
}

static int start_sweeper(struct rp_daemon *d, struct rp_error *err)
{
    return start_told(d, &rp_sweep_watch, lane_of(d), &d->sweeper, err);
}

static int start_asker(struct rp_daemon *d, struct rp_error *err)
{
    return d->session.config.n_confirmers > 0 ? start_told(d, &rp_confirmation_watch, lane_of(d), &d->asker, err)
                                              : start_told(d, &rp_unconfirmed_watch, 0, &d->asker, err);
}

static bool has_bucket(const struct rp_config *config)
{
    for (size_t i = 0; i < config->n_stores; i++)
        if (rp_config_is_s3(&config->stores[i])) return true;
    return false;
}

static int start_watches(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_watch_kind *const kinds[RP_WATCHES] = {
        &rp_room_watch,      &rp_restore_watch,
        &rp_retention_watch, &rp_safety_net_watch,
        &rp_import_watch,    &rp_alert_watch,
        &rp_readers_watch,   has_bucket(&d->session.config) ? &rp_store_watch : NULL
    };
    const struct rp_watch_options options = watch_options(d, 0);
    int r = 0;
    for (size_t i = 0; i < RP_WATCHES && r == 0; i++)
        if (kinds[i] != NULL) r = rp_watch_start(kinds[i], &options, &d->watches[i], err);
    return r;
}

static int start_server(struct rp_daemon *d, struct rp_error *err)
{
    struct rp_server *server = NULL;
    struct rp_server_options options = {
        .config = &d->session.config,
        .catalog_url = d->session.config.catalog_url,
        .writers = d->writers,
        .stores = d->session.stores,
        .n_stores = d->session.config.n_stores,
        .log = d->session.log,
        .clock = d->session.catalog->clock,
        .metrics = d->metrics,
        .rooms = &d->rooms,
        .live = d->live,
        .beside = { .ctx = d, .reserve_run = reserve_run, .start_run = start_run, .sweeper_idle_ms = sweeper_idle_ms },
        .url_key = d->url_key
    };
    int r = rp_server_start(&options, &server, err);
    if (r < 0) return r;
    pthread_mutex_lock(&d->lock);
    d->server = server;
    pthread_mutex_unlock(&d->lock);
    return 0;
}

/* Their figures are known before anybody asks for them. */
static void watch_sinks(struct rp_daemon *d)
{
    const struct rp_config *config = &d->session.config;
    const struct rp_metrics_sinks sinks = { .at = d->sinks_watched,
                                            .n = config->n_sinks,
                                            .processor = config->processor_url[0] != 0 };
    for (size_t i = 0; i < config->n_sinks; i++)
        d->sinks_watched[i] =
            (struct rp_metrics_sink){ .name = config->sinks[i].name,
                                      .reader = rp_sink_reader(&config->sinks[i], d->sink_readers[i]) };
    rp_metrics_watch_sinks(d->metrics, &sinks);
}

static int start_sinks(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_sinks_options sinks = { .config = &d->session.config,
                                            .feed = d->feed,
                                            .writers = d->writers,
                                            .metrics = d->metrics,
                                            .log = d->session.log,
                                            .clock = d->session.catalog->clock,
                                            .node = d->node };
    watch_sinks(d);
    return rp_sinks_start(&sinks, &d->sinks, err);
}

/* After the server, whose address stands in what the processor is told. */
static int start_processor(struct rp_daemon *d, struct rp_error *err)
{
    const struct rp_processor_options processor = { .session = &d->session,
                                                    .feed = d->feed,
                                                    .writers = d->writers,
                                                    .metrics = d->metrics,
                                                    .node = d->node,
                                                    .address = rp_server_address(d->server),
                                                    .url_key = d->url_key };
    return d->session.config.processor_url[0] != 0 ? rp_processor_start(&processor, &d->processor, err) : 0;
}

static void stop_server(struct rp_daemon *d)
{
    pthread_mutex_lock(&d->lock);
    struct rp_server *server = d->server;
    d->server = NULL;
    pthread_mutex_unlock(&d->lock);
    rp_live_end(d->live);
    if (server != NULL) rp_server_stop(server, RP_PATIENCE_MS);
}

/* ---- all of them ---- */

/* Nothing is written before the writers are there: the session's own lane is the command lines'. */
int rp_parts_start(struct rp_daemon *d, struct rp_welcome *welcome, struct rp_error *err)
{
    int r = rp_hook_start(err);
    if (r == 0) r = rp_metrics_new(rp_route_for_metrics, &d->metrics, err);
    if (r == 0) r = make_raiser(d, err);
    if (r == 0) r = start_feed(d, err);
    if (r == 0) r = start_writers(d, err);
    if (r == 0) r = rp_url_key(d->session.catalog, d->url_key, err);
    if (r == 0) r = start_live(d, err);
    if (r == 0) r = open_stores(d, err);
    if (r == 0) r = rp_welcome_tokens(d, welcome, err);
    if (r == 0) r = rp_raiser_start(d->raiser, d->writers, err);
    if (r == 0) r = start_runs(d, err);
    if (r == 0) r = start_sweeper(d, err);
    if (r == 0) r = start_asker(d, err);
    if (r == 0) r = start_watches(d, err);
    if (r == 0) r = start_sinks(d, err);
    if (r == 0) r = start_server(d, err);
    if (r == 0) r = start_processor(d, err);
    return r;
}

/* Who begins work by itself is told to begin no more. Then they end from the last to the first:
 * nobody asks somebody who is gone. What never started is NULL. */
void rp_parts_stop(struct rp_daemon *d)
{
    struct rp_interrupt interrupt;
    for (size_t i = 0; i < RP_WATCHES; i++)
        rp_watch_halt(d->watches[i]);
    rp_watch_halt(d->sweeper);
    rp_watch_halt(d->asker);
    rp_runs_halt(d->runs);
    rp_sinks_halt(d->sinks);
    rp_processor_halt(d->processor);
    rp_interrupt_begin(&interrupt, d->session.stores, d->session.config.n_stores, RP_STORES_MS);
    stop_server(d);
    for (size_t i = 0; i < RP_WATCHES; i++)
        rp_watch_stop(d->watches[i]);
    stop_told(d, &d->asker);
    stop_told(d, &d->sweeper);
    rp_sinks_stop(d->sinks);
    rp_processor_stop(d->processor);
    rp_runs_stop(d->runs);
    rp_raiser_stop(d->raiser);
    rp_interrupt_end(&interrupt);
    rp_writers_stop(d->writers);
    rp_live_stop(d->live);
    rp_feed_unsubscribe(d->follows);
    rp_feed_stop(d->feed);
    rp_metrics_free(d->metrics);
    rp_rooms_done(&d->rooms);
}
