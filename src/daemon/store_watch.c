/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store_watch.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/writer.h"
#include "core/standing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EVERY_MS     RP_MINUTE_MS
#define PROBE_MS     RP_DAY_MS
#define RETRY_MS     RP_MINUTE_MS
#define RETRY_MOST   RP_HOUR_MS
#define SAY_AGAIN_MS (10 * RP_MINUTE_MS)

/* A bucket as the watch sees it. Moments are of the boot clock; 0: not yet. */
struct spot {
    int64_t next_ms; /* when to probe */
    int failures;
    int said_code;
    int64_t said_at_ms;
};

struct rp_store_watch {
    struct rp_store_watch_options options;
    char node[64];
    struct rp_session session; /* the thread's */
    struct spot spots[RP_STORES_MAX];

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t poke;
    bool stop;                      /* under the lock */
    const struct rp_config *config; /* under the lock: new settings, or NULL */
};

static void say(struct rp_store_watch *w, enum rp_log_level level, const char *event, const char *store, json_t *fields)
{
    rp_json_set(fields, "node", rp_json_text(w->node));
    rp_json_set(fields, "store", json_string(store));
    rp_log_event(w->session.log, level, rp_session_now_ms(&w->session), event, fields);
    rp_log_flush(w->session.log);
}

static void failed(struct rp_store_watch *w, struct spot *spot, const char *store, const struct rp_error *why)
{
    int64_t boot_ms = rp_time_boot_ms(), wait = RETRY_MS;
    for (int i = 0; i < spot->failures && wait < RETRY_MOST; i++)
        wait *= 2;
    spot->failures++;
    spot->next_ms = boot_ms + (wait < RETRY_MOST ? wait : RETRY_MOST);
    if (spot->said_code == why->code && boot_ms - spot->said_at_ms < SAY_AGAIN_MS) return;
    spot->said_code = why->code;
    spot->said_at_ms = boot_ms;
    json_t *o = json_object();
    rp_json_set(o, "code", json_string(rp_error_slug(why->code)));
    rp_json_set(o, "error", rp_json_text(why->text));
    say(w, RP_LOG_ERROR, "store.not_probed", store, o);
}

static void probed(struct rp_store_watch *w, struct spot *spot, const struct rp_place *place)
{
    json_t *o = json_object();
    *spot = (struct spot){ .next_ms = rp_time_boot_ms() + PROBE_MS };
    rp_json_set(o, "guarantee", json_string(rp_level_name(rp_place_level(place))));
    rp_json_set(o, "written", json_boolean(place->config->mode != RP_MODE_OBSERVE));
    say(w, RP_LOG_INFO, "store.probed", place->config->name, o);
}

/* The clock comes first: a bucket that does not answer one request is not asked a dozen. */
static void look_at(struct rp_store_watch *w, size_t i)
{
    const struct rp_store_config *config = &w->session.config.stores[i];
    struct spot *spot = &w->spots[i];
    struct rp_place *place;
    struct rp_error why = { 0 };
    int r = rp_session_place(&w->session, config->name, &place, &why);
    if (r == 0) place->config = config;
    if (r == 0) r = rp_standing_ask_clock(place, w->session.catalog->clock, &why);
    bool opened_up = r == 0 && config->mode != RP_MODE_OBSERVE && !rp_standing_is_known(place) && spot->failures == 0;
    bool due = opened_up || rp_time_boot_ms() >= spot->next_ms;
    if (r == 0 && due) {
        r = rp_standing_probe(w->session.catalog, place, &why);
        if (r == 0) probed(w, spot, place);
    }
    if (r < 0) failed(w, spot, config->name, &why);
}

static bool stopped(struct rp_store_watch *w)
{
    pthread_mutex_lock(&w->lock);
    bool stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    return stop;
}

static void look(struct rp_store_watch *w)
{
    for (size_t i = 0; i < w->session.config.n_stores && !stopped(w); i++)
        if (rp_config_is_s3(&w->session.config.stores[i])) look_at(w, i);
}

static bool sleep_until_next(struct rp_store_watch *w)
{
    struct timespec until;
    int64_t every = w->options.every_ms > 0 ? w->options.every_ms : EVERY_MS;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + every % 1000 * 1000000;
    until.tv_sec += (time_t)(every / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&w->lock);
    while (!w->stop && w->config == NULL && pthread_cond_timedwait(&w->poke, &w->lock, &until) == 0)
        ;
    if (w->config != NULL) w->session.config = *w->config;
    w->config = NULL;
    bool go_on = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

static void *work(void *arg)
{
    struct rp_store_watch *w = arg;
    do
        look(w);
    while (sleep_until_next(w));
    return NULL;
}

static void free_watch(struct rp_store_watch *w)
{
    rp_session_close(&w->session);
    pthread_cond_destroy(&w->poke);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static struct rp_store_watch *new_watch(const struct rp_store_watch_options *options)
{
    struct rp_store_watch *w = calloc(1, sizeof *w);
    pthread_condattr_t monotonic;
    if (w == NULL) return NULL;
    w->options = *options;
    snprintf(w->node, sizeof w->node, "%s", options->node);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->poke, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return w;
}

int rp_store_watch_start(const struct rp_store_watch_options *options, struct rp_store_watch **out,
                         struct rp_error *err)
{
    struct rp_store_watch *w = new_watch(options);
    if (w == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the watch over the stores");
    int r = rp_session_beside(options->session, options->lane, &w->session, err);
    if (r == 0) {
        if (options->writers != NULL) rp_writers_attach(options->writers, w->session.catalog);
        snprintf(w->session.actor, sizeof w->session.actor, "daemon:%s", w->node);
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            r = rp_error_set(err, RP_ENOMEM, "no thread for the watch over the stores");
    }
    if (r < 0) {
        free_watch(w);
        return rp_error_wrap(err, r, "start the watch over the stores");
    }
    *out = w;
    return 0;
}

void rp_store_watch_stop(struct rp_store_watch *w)
{
    if (w == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->poke);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    free_watch(w);
}

void rp_store_watch_configure(struct rp_store_watch *w, const struct rp_config *config)
{
    if (w == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->config = config;
    pthread_cond_signal(&w->poke);
    pthread_mutex_unlock(&w->lock);
}
