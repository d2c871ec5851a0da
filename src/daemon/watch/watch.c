/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/watch/watch.h"

#include "base/assert.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/trouble.h"
#include "base/wait.h"
#include "catalog/writer/writer.h"

#include <stdio.h>
#include <stdlib.h>

#define CATALOG_WAIT_MS (RP_MINUTE_MS / 2) /* at most, while the catalog fails */

bool rp_watch_is_ending(const struct rp_watch *w)
{
    return __atomic_load_n(&w->stop, __ATOMIC_RELAXED) != 0;
}

bool rp_watch_has_enough(const struct rp_watch *w)
{
    return __atomic_load_n(&w->enough, __ATOMIC_RELAXED) != 0;
}

void rp_watch_catalog_failed(struct rp_watch *w, struct rp_trouble *trouble, const char *event,
                             const struct rp_error *why)
{
    rp_metrics_failure(w->options.metrics, "catalog");
    if (!rp_trouble_again(trouble, why->code, rp_time_boot_ms(), RP_SECOND_MS, CATALOG_WAIT_MS)) return;
    json_t *o = rp_json_object("node", rp_json_text(w->node), "code", json_string(rp_error_slug(why->code)), "error",
                               rp_json_text(why->text), NULL);
    rp_session_log(&w->session, RP_LOG_ERROR, event, o);
}

static void sleep_until_next(struct rp_watch *w)
{
    pthread_mutex_lock(&w->lock);
    struct timespec until = rp_wait_until(w->wait_ms > 0 ? w->wait_ms : 0);
    w->wakes_at_ms = rp_session_now_ms(&w->session) + w->wait_ms;
    while (w->wait_ms > 0 && !rp_watch_is_ending(w) && !w->poked &&
           pthread_cond_timedwait(&w->poke, &w->lock, &until) == 0)
        ;
    const struct rp_config *config = w->config;
    w->config = NULL;
    __atomic_store_n(&w->enough, w->stop, __ATOMIC_RELAXED);
    w->wakes_at_ms = 0;
    w->poked = false;
    pthread_mutex_unlock(&w->lock);
    if (config == NULL) return;
    RP_ASSERT(config->n_stores == w->session.config.n_stores);
    w->session.config = *config;
    if (w->kind->settings != NULL) w->kind->settings(w);
}

/* Settings and log, and nothing that is open. */
static struct rp_session bare_session(const struct rp_watch *w, const struct rp_config *config)
{
    const struct rp_session *of = w->options.session;
    return (struct rp_session){ .config = *config, .log = of->log, .of = of };
}

/* The settings are those of the last reload, not those that the daemon started with. */
static int open_session(struct rp_watch *w, struct rp_error *err)
{
    const struct rp_config config = w->session.config;
    int r = rp_session_beside(w->options.session, w->options.lane, &w->session, err);
    w->session.config = config;
    if (r == 0 && w->options.writers != NULL) rp_writers_attach(w->options.writers, w->session.catalog);
    snprintf(w->session.actor, sizeof w->session.actor, "daemon:%s", w->node);
    return r;
}

static void close_session(struct rp_watch *w)
{
    const struct rp_config config = w->session.config;
    rp_session_close(&w->session);
    w->session = bare_session(w, &config);
}

/* B3 */
static void look_briefly(struct rp_watch *w)
{
    struct rp_error why = { 0 };
    int r = open_session(w, &why);
    if (r == 0)
        w->kind->look(w);
    else if (w->options.metrics != NULL)
        rp_metrics_failure(w->options.metrics, "catalog");
    close_session(w);
}

static void *work(void *arg)
{
    struct rp_watch *w = arg;
    for (; !rp_watch_is_ending(w); sleep_until_next(w)) {
        w->wait_ms = w->options.every_ms;
        if (w->kind->catalog == RP_WATCH_BRIEFLY)
            look_briefly(w);
        else
            w->kind->look(w);
    }
    if (w->kind->end != NULL) w->kind->end(w);
    return NULL;
}

static void free_watch(struct rp_watch *w)
{
    rp_session_close(&w->session);
    pthread_cond_destroy(&w->poke);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static int begin(struct rp_watch *w, struct rp_error *err)
{
    w->session = bare_session(w, &w->options.session->config);
    int r = w->kind->catalog == RP_WATCH_ALWAYS ? open_session(w, err) : 0;
    if (r < 0) return r;
    if (w->kind->begin != NULL) w->kind->begin(w);
    return pthread_create(&w->thread, NULL, work, w) == 0 ? 0 : rp_error_set(err, RP_ENOMEM, "no thread");
}

int rp_watch_start(const struct rp_watch_kind *kind, const struct rp_watch_options *options, struct rp_watch **out,
                   struct rp_error *err)
{
    RP_ASSERT(kind->bytes >= sizeof(struct rp_watch));
    struct rp_watch *w = calloc(1, kind->bytes);
    if (w == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %s", kind->what);
    w->kind = kind;
    w->options = *options;
    if (w->options.every_ms == 0) w->options.every_ms = kind->every_ms;
    snprintf(w->node, sizeof w->node, "%s", options->node);
    pthread_mutex_init(&w->lock, NULL);
    rp_wait_init(&w->poke);
    int r = begin(w, err);
    if (r < 0) {
        free_watch(w);
        return rp_error_wrap(err, r, "start %s", kind->what);
    }
    *out = w;
    return 0;
}

void rp_watch_halt(struct rp_watch *w)
{
    if (w == NULL) return;
    pthread_mutex_lock(&w->lock);
    __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&w->enough, 1, __ATOMIC_RELAXED);
    pthread_cond_signal(&w->poke);
    pthread_mutex_unlock(&w->lock);
}

void rp_watch_stop(struct rp_watch *w)
{
    if (w == NULL) return;
    rp_watch_halt(w);
    pthread_join(w->thread, NULL);
    free_watch(w);
}

void rp_watch_configure(struct rp_watch *w, const struct rp_config *config)
{
    if (w == NULL) return;
    pthread_mutex_lock(&w->lock);
    w->config = config;
    __atomic_store_n(&w->enough, 1, __ATOMIC_RELAXED);
    w->poked = true;
    pthread_cond_signal(&w->poke);
    pthread_mutex_unlock(&w->lock);
}

void rp_watch_due(struct rp_watch *w, int64_t at_ms)
{
    /* the daemon's session, for this one's may be opened and closed meanwhile; it will have looked by then */
    if (at_ms > rp_session_now_ms(w->options.session) + w->options.every_ms) return;
    pthread_mutex_lock(&w->lock);
    if (w->wakes_at_ms == 0 || at_ms < w->wakes_at_ms) {
        w->poked = true;
        pthread_cond_signal(&w->poke);
    }
    pthread_mutex_unlock(&w->lock);
}
