/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pulse.h"

#include "base/assert.h"
#include "base/wait.h"
#include "catalog/writer.h"

#include <stdio.h>

static bool sleep_until_next(struct rp_pulse *p)
{
    struct timespec until = rp_wait_until(p->options.every_ms);
    pthread_mutex_lock(&p->lock);
    while (!p->stop && p->config == NULL && pthread_cond_timedwait(&p->poke, &p->lock, &until) == 0)
        ;
    if (p->config != NULL) p->session.config = *p->config;
    p->config = NULL;
    bool go_on = !p->stop;
    pthread_mutex_unlock(&p->lock);
    return go_on;
}

static void *work(void *arg)
{
    struct rp_pulse *p = arg;
    do
        p->options.look(p->options.ctx);
    while (sleep_until_next(p));
    return NULL;
}

static void done(struct rp_pulse *p)
{
    rp_session_close(&p->session);
    pthread_cond_destroy(&p->poke);
    pthread_mutex_destroy(&p->lock);
}

int rp_pulse_start(struct rp_pulse *p, const struct rp_pulse_options *options, struct rp_error *err)
{
    RP_ASSERT(options->look != NULL && options->every_ms > 0);
    *p = (struct rp_pulse){ .options = *options };
    snprintf(p->node, sizeof p->node, "%s", options->node);
    pthread_mutex_init(&p->lock, NULL);
    rp_wait_init(&p->poke);
    int r = rp_session_beside(options->session, options->lane, &p->session, err);
    if (r == 0) {
        if (options->writers != NULL) rp_writers_attach(options->writers, p->session.catalog);
        snprintf(p->session.actor, sizeof p->session.actor, "daemon:%s", p->node);
        if (pthread_create(&p->thread, NULL, work, p) != 0) r = rp_error_set(err, RP_ENOMEM, "no thread");
    }
    if (r == 0) return 0;
    done(p);
    return rp_error_wrap(err, r, "start %s", options->what);
}

void rp_pulse_stop(struct rp_pulse *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->poke);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    done(p);
}

void rp_pulse_configure(struct rp_pulse *p, const struct rp_config *config)
{
    pthread_mutex_lock(&p->lock);
    p->config = config;
    pthread_cond_signal(&p->poke);
    pthread_mutex_unlock(&p->lock);
}

bool rp_pulse_is_ending(struct rp_pulse *p)
{
    pthread_mutex_lock(&p->lock);
    bool stop = p->stop;
    pthread_mutex_unlock(&p->lock);
    return stop;
}
