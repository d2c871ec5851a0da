/* SPDX-License-Identifier: Apache-2.0 */
#include "writer_steps.h"

static const struct rp_verb verb_gate = { .name = "gate", .run = stand_at_gate };

static void note_commit(void *ctx, size_t commands, int64_t due_at_ms)
{
    struct daemon *d = ctx;
    (void)due_at_ms;
    atomic_fetch_add(&d->committed, commands);
}

void start_writers(struct daemon *d, size_t queue_max)
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

int set_up(void **state)
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

int tear_down(void **state)
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

void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
}

/* done() of every command here. */
static void count_answer(struct rp_command *command)
{
    struct daemon *d = command->owner;
    pthread_mutex_lock(&d->lock);
    d->answered++;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void wait_for_answers(struct daemon *d, size_t n)
{
    pthread_mutex_lock(&d->lock);
    while (d->answered < n)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

int submit(struct daemon *d, struct rp_command *command)
{
    struct rp_error why = { 0 };
    command->owner = d;
    command->done = count_answer;
    return rp_writers_submit(d->writers, command, &why);
}

int stand_at_gate(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
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

void close_gate_of(struct daemon *d, struct rp_command *gate, const struct rp_verb *verb, int64_t tenant_id)
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

void close_gate(struct daemon *d, struct rp_command *gate, int64_t tenant_id)
{
    close_gate_of(d, gate, &verb_gate, tenant_id);
}

void open_gate(struct daemon *d)
{
    pthread_mutex_lock(&d->lock);
    d->gate_open = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}
