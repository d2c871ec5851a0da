/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/watch/watch.h"

#include "base/assert.h"
#include "base/wait.h"
#include "catalog/writer/writer.h"

#include <stdio.h>
#include <stdlib.h>

bool rp_watch_is_ending(const struct rp_watch *w)
{
    return __atomic_load_n(&w->stop, __ATOMIC_RELAXED) != 0;
}

static void sleep_until_next(struct rp_watch *w)
{
    struct timespec until = rp_wait_until(w->options.every_ms);
    pthread_mutex_lock(&w->lock);
    while (!rp_watch_is_ending(w) && w->config == NULL && pthread_cond_timedwait(&w->poke, &w->lock, &until) == 0)
        ;
    if (w->config != NULL) w->session.config = *w->config;
    w->config = NULL;
    pthread_mutex_unlock(&w->lock);
}

static void *work(void *arg)
{
    struct rp_watch *w = arg;
    for (; !rp_watch_is_ending(w); sleep_until_next(w))
        w->kind->look(w);
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
    const struct rp_session *of = w->options.session;
    w->session = (struct rp_session){ .config = of->config, .log = of->log, .of = of };
    int r = w->kind->no_catalog ? 0 : rp_session_beside(of, w->options.lane, &w->session, err);
    if (r < 0) return r;
    if (w->session.catalog != NULL && w->options.writers != NULL)
        rp_writers_attach(w->options.writers, w->session.catalog);
    snprintf(w->session.actor, sizeof w->session.actor, "daemon:%s", w->node);
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
    pthread_cond_signal(&w->poke);
    pthread_mutex_unlock(&w->lock);
}
