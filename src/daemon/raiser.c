/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/raiser.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/trouble.h"
#include "base/wait.h"
#include "catalog/writer/writer.h"
#include "core/owner/raise.h"
#include "daemon/interrupt.h"

#include <pthread.h>
#include <stdlib.h>

#define EVERY_MS   (20 * RP_SECOND_MS)
#define TICK_MS    RP_SECOND_MS
#define WAIT_MS    (2 * RP_SECOND_MS)
#define RETRY_MS   RP_SECOND_MS
#define RETRY_MOST (30 * RP_SECOND_MS)

/* A store's thread. What is asked of it and answered is under the raiser's lock. */
struct watched {
    struct rp_raiser *raiser;
    size_t slot;
    pthread_t thread;
    bool running;
    uint64_t asked, served; /* raises: the last one asked for, and the last one that was tried, however it ended */
    struct rp_trouble trouble;
    int64_t look_at_ms; /* of the boot clock */
    bool lost;          /* it was said that it is not ours */
};

struct rp_raiser {
    struct rp_raiser_options options;
    struct rp_writers *writers;
    struct rp_raise_hook raise_hook;
    struct watched at[RP_STORES_MAX];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running, stop;
    const struct rp_config *config; /* the settings in force */
};

/* ---- who waits ---- */

static void ask(struct rp_raiser *r, uint64_t which, uint64_t number[RP_STORES_MAX])
{
    for (size_t i = 0; i < RP_STORES_MAX; i++) {
        if ((which >> i & 1) == 0) continue;
        rp_raises_begin(r->options.session->raises, i);
        number[i] = ++r->at[i].asked;
    }
    pthread_cond_broadcast(&r->changed);
}

static bool all_served(const struct rp_raiser *r, uint64_t which, const uint64_t number[RP_STORES_MAX])
{
    for (size_t i = 0; i < RP_STORES_MAX; i++)
        if ((which >> i & 1) != 0 && r->at[i].served < number[i]) return false;
    return true;
}

static void wait_for(void *ctx, uint64_t which)
{
    struct rp_raiser *r = ctx;
    uint64_t number[RP_STORES_MAX] = { 0 };
    struct timespec until = rp_wait_until(r->options.wait_ms);
    pthread_mutex_lock(&r->lock);
    if (r->running && !r->stop) {
        ask(r, which, number);
        while (!all_served(r, which, number) && pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0)
            ;
    }
    for (size_t i = 0; i < RP_STORES_MAX; i++)
        if (r->at[i].served < number[i])
            rp_raises_owe(r->options.session->raises, i, "the store takes longer than an answer waits");
    pthread_mutex_unlock(&r->lock);
}

/* ---- a store ---- */

static void say(struct watched *w, enum rp_log_level level, const char *event, const struct rp_error *why)
{
    const struct rp_session *s = w->raiser->options.session;
    json_t *o = rp_json_object("node", rp_json_text(w->raiser->options.node), "store",
                               json_string(s->config.stores[w->slot].name), NULL);
    if (why != NULL) rp_json_set(o, "code", json_string(rp_error_slug(why->code)));
    if (why != NULL) rp_json_set(o, "error", rp_json_text(why->text));
    rp_session_log(s, level, event, o);
}

enum task { NOTHING, LOOK, RAISE, LAST_RAISE };

/* A6 */
static int raise_in_time(struct rp_session *s, size_t slot, struct rp_store *store, struct rp_error *err)
{
    struct rp_interrupt interrupt;
    rp_interrupt_begin(&interrupt, store, 1, RP_LAST_RAISE_MS);
    int r = rp_raise(s->raises, slot, s->catalog, store, err);
    rp_interrupt_end(&interrupt);
    return r;
}

/* A4 */
static int act(struct watched *w, const struct rp_store_config *config, enum task task, struct rp_error *err)
{
    struct rp_raiser *r = w->raiser;
    RP_CLEANUP(rp_session_close) struct rp_session s = { 0 };
    struct rp_store *store = NULL;
    int code = rp_session_beside(r->options.session, r->options.lane, &s, err);
    s.own_buckets = task == LAST_RAISE;
    if (code == 0 && r->writers != NULL) rp_writers_attach(r->writers, s.catalog);
    if (code == 0) code = rp_session_store(&s, config->name, &store, err);
    if (code != 0) {
        rp_raises_owe(r->options.session->raises, w->slot, err->text);
        return code;
    }
    store->config = config;
    if (task == LAST_RAISE) return raise_in_time(&s, w->slot, store, err);
    return task == RAISE ? rp_raise(s.raises, w->slot, s.catalog, store, err)
                         : rp_raises_look(s.raises, w->slot, s.catalog, store, err);
}

/* A3 */
static void tell_owner(struct watched *w)
{
    struct rp_raise_state state;
    rp_raise_state(&w->raiser->options.session->stores[w->slot], &state);
    bool lost = rp_raise_is_lost(&state);
    if (lost == w->lost) return;
    w->lost = lost;
    struct rp_error why = { 0 };
    if (lost) rp_error_set(&why, RP_ENOTOWNER, "the store: %s", rp_ownership_text(state.ownership));
    say(w, lost ? RP_LOG_ERROR : RP_LOG_INFO, lost ? "store.not_ours" : "store.ours_again", lost ? &why : NULL);
}

static void tend(struct watched *w, const struct rp_store_config *config, enum task task)
{
    struct rp_error why = { 0 };
    if (config->mode == RP_MODE_OBSERVE) return;
    if (act(w, config, task, &why) == 0)
        rp_trouble_over(&w->trouble);
    else if (rp_trouble_again(&w->trouble, why.code, rp_time_boot_ms(), RETRY_MS, RETRY_MOST) &&
             why.code != RP_ENOTOWNER)
        say(w, RP_LOG_WARNING, task == LOOK ? "store.owner_unknown" : "store.raise_owed", &why);
    tell_owner(w);
}

/* With the lock. */
static enum task next_task(struct watched *w)
{
    int64_t now_ms = rp_time_boot_ms();
    bool patient = w->trouble.failures > 0 && now_ms < w->trouble.until_ms;
    if (w->served < w->asked) return RAISE;
    if (!patient && rp_raises_is_time(w->raiser->options.session->raises, w->slot)) {
        rp_raises_begin(w->raiser->options.session->raises, w->slot);
        return RAISE;
    }
    return !patient && now_ms >= w->look_at_ms ? LOOK : NOTHING;
}

static void *work(void *arg)
{
    struct watched *w = arg;
    struct rp_raiser *r = w->raiser;
    pthread_mutex_lock(&r->lock);
    for (enum task task = NOTHING; task != LAST_RAISE;) {
        struct timespec tick = rp_wait_until(TICK_MS);
        task = r->stop ? LAST_RAISE : next_task(w);
        if (task == NOTHING) {
            pthread_cond_timedwait(&r->changed, &r->lock, &tick);
            continue;
        }
        uint64_t asked = w->asked;
        const struct rp_store_config *config = &r->config->stores[w->slot];
        pthread_mutex_unlock(&r->lock);
        tend(w, config, task);
        pthread_mutex_lock(&r->lock);
        w->served = asked;
        if (config == &r->config->stores[w->slot]) /* else it is looked at anew (rp_raiser_configure) */
            w->look_at_ms = rp_time_boot_ms() + r->options.every_ms / (w->lost ? 4 : 1);
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- start and stop ---- */

int rp_raiser_new(const struct rp_raiser_options *options, struct rp_raiser **out, struct rp_error *err)
{
    struct rp_raiser *r = calloc(1, sizeof *r);
    if (r == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the raises of epochs");
    r->options = *options;
    if (r->options.every_ms == 0) r->options.every_ms = EVERY_MS;
    if (r->options.wait_ms == 0) r->options.wait_ms = WAIT_MS;
    r->config = &options->session->config;
    r->raise_hook = (struct rp_raise_hook){
        .due = rp_raises_due, .note = rp_raises_note, .raise = wait_for, .raises = options->session->raises, .ctx = r
    };
    pthread_mutex_init(&r->lock, NULL);
    rp_wait_init(&r->changed);
    *out = r;
    return 0;
}

const struct rp_raise_hook *rp_raiser_hook(const struct rp_raiser *r)
{
    return &r->raise_hook;
}

int rp_raiser_start(struct rp_raiser *r, struct rp_writers *writers, struct rp_error *err)
{
    int code = 0;
    r->writers = writers;
    pthread_mutex_lock(&r->lock);
    r->running = true;
    for (size_t i = 0; i < r->config->n_stores && code == 0; i++) {
        struct watched *w = &r->at[i];
        *w = (struct watched){ .raiser = r, .slot = i, .asked = 1 }; /* A2: at the start */
        rp_raises_assume(r->options.session->raises, i);
        w->running = pthread_create(&w->thread, NULL, work, w) == 0;
        if (!w->running) code = rp_error_set(err, RP_ENOMEM, "no thread to raise epochs");
    }
    pthread_mutex_unlock(&r->lock);
    return code;
}

void rp_raiser_stop(struct rp_raiser *r)
{
    if (r == NULL) return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < RP_STORES_MAX; i++)
        if (r->at[i].running) pthread_join(r->at[i].thread, NULL);
}

void rp_raiser_free(struct rp_raiser *r)
{
    if (r == NULL) return;
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void rp_raiser_configure(struct rp_raiser *r, const struct rp_config *config)
{
    for (size_t i = 0; i < config->n_stores; i++)
        rp_raises_set(r->options.session->raises, i, 0, config->stores[i].mode == RP_MODE_OBSERVE);
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < config->n_stores; i++) {
        if (r->config->stores[i].mode == RP_MODE_OBSERVE) rp_raises_assume(r->options.session->raises, i);
        r->at[i].look_at_ms = 0;
    }
    r->config = config;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}
