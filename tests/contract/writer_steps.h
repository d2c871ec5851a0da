/* SPDX-License-Identifier: Apache-2.0 */
/* writer_steps.h - a daemon's writers over a world of their own, and how a test waits for their
 * answers. */
#ifndef RP_TESTS_WRITER_STEPS_H
#define RP_TESTS_WRITER_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/uploads.h"

#define LANE       1
#define TEST_S_MAX 120 /* for one test, under a sanitizer too: an answer that never comes is a failure, not a hang */

static struct rp_error err;

struct daemon {
    struct world *w;
    struct rp_writers *writers;
    size_t preparers; /* 0: as many as the writers think right */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t answered; /* commands */
    bool gate_open;  /* what hold_the_writer waits for */
    size_t at_gate;
    _Atomic size_t committed; /* commands that the callback told of */
};

static inline void note_commit(void *ctx, size_t commands, int64_t due_at_ms)
{
    struct daemon *d = ctx;
    (void)due_at_ms;
    atomic_fetch_add(&d->committed, commands);
}

static inline void start_writers(struct daemon *d, size_t queue_max)
{
    struct rp_writers_options options = { .url = d->w->dbs.url,
                                          .clock = &d->w->host_clock,
                                          .n = d->w->dbs.kind == DBS_POSTGRES ? 4 : 1,
                                          .preparers = d->preparers,
                                          .first_lane = LANE,
                                          .queue_max = queue_max,
                                          .committed = note_commit,
                                          .ctx = d };
    ok(rp_writers_start(&options, &d->writers, &err));
}

static inline int set_up(void **state)
{
    struct daemon *d = calloc(1, sizeof *d);
    alarm(TEST_S_MAX);
    d->w = calloc(1, sizeof *d->w);
    world_make(d->w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    (void)uploads_tenant(d->w, "acme");
    *state = d;
    return 0;
}

static inline int tear_down(void **state)
{
    struct daemon *d = *state;
    d->w->catalog->writers = NULL;
    d->w->catalog->through_writers = false;
    rp_writers_stop(d->writers);
    world_check(d->w);
    world_drop(d->w);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d->w);
    free(d);
    return 0;
}

static inline void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
}

/* done() of every command here. */
static inline void count_answer(struct rp_command *command)
{
    struct daemon *d = command->owner;
    pthread_mutex_lock(&d->lock);
    d->answered++;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static inline void wait_for_answers(struct daemon *d, size_t n)
{
    pthread_mutex_lock(&d->lock);
    while (d->answered < n)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static inline int submit(struct daemon *d, struct rp_command *command)
{
    struct rp_error why = { 0 };
    command->owner = d;
    command->done = count_answer;
    return rp_writers_submit(d->writers, command, &why);
}

/* ---- a gate: while it is closed, what is submitted waits and is one round ---- */

static inline int stand_at_gate(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    struct daemon *d = commands[0]->owner;
    (void)tx, (void)n, (void)e;
    pthread_mutex_lock(&d->lock);
    d->at_gate++;
    pthread_cond_broadcast(&d->changed);
    while (!d->gate_open)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    return 0;
}

static const struct rp_verb verb_gate = { .name = "gate", .run = stand_at_gate };

static inline void close_gate_of(struct daemon *d, struct rp_command *gate, const struct rp_verb *verb,
                                 int64_t tenant_id)
{
    *gate = (struct rp_command){ .verb = verb, .tenant_id = tenant_id, .actor = "tester" };
    d->gate_open = false;
    d->at_gate = 0;
    assert_int_equal(submit(d, gate), 0);
    pthread_mutex_lock(&d->lock);
    while (d->at_gate == 0)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static inline void close_gate(struct daemon *d, struct rp_command *gate, int64_t tenant_id)
{
    close_gate_of(d, gate, &verb_gate, tenant_id);
}

static inline void open_gate(struct daemon *d)
{
    pthread_mutex_lock(&d->lock);
    d->gate_open = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* clang-format off */
#define ON(kind, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(kind) }
#define BOTH(fn) ON(DBS_SQLITE_FILE, "sqlite", fn), ON(DBS_POSTGRES, "postgres", fn)
/* clang-format on */

#endif
