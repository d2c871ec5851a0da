/* SPDX-License-Identifier: Apache-2.0 */
/* writers.c - the threads of a daemon that carry commands through their steps (writer.h).
 *
 *   submit ──▶ preparers ──▶ a writer ──┬──▶ done()
 *      └─────────────────────▲  ▲       ├──▶ preparers (finish) ──▶ done()
 *                               └───────┴──  stale: prepared once more
 */
#include "catalog/writer/writers.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/time.h"
#include "base/wait.h"
#include "catalog/writer/idempotency.h"

#include <stdlib.h>

#define PREPARERS         4 /* those beyond the first are there for when that hangs with its store (W10) */
#define PREPARER_CACHE_KB 256
#define RETRY_PART        8                   /* a command whose tenant was locked waits an eighth longer each time */
#define BUSY_MS           (30 * RP_SECOND_MS) /* for how long it is tried */

/* ---- on their way ---- */

static struct rp_writer *writer_of(struct rp_writers *all, const struct rp_command *c)
{
    /* ids are times with a number behind (base/id.h): their last bits alone would put all tenants
     * on one writer */
    uint64_t number = c->tenant_id != 0 ? (uint64_t)c->tenant_id : c->spread;
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
    return &all->at[(mixed >> 32) % all->n];
}

static void answer(struct rp_writers *all, struct rp_command *c)
{
    bool last = atomic_fetch_sub(&all->waiting, 1) == 1; /* first: who is told may come back at once */
    c->done(c);                                          /* from here on it may be gone */
    if (!last) return;
    pthread_mutex_lock(&all->lock);
    pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->lock);
}

/* Where a command goes that was run. */
static void pass_on(struct rp_writers *all, struct rp_command *c)
{
    if (c->stale || c->unfinished)
        rp_queue_push(&all->outside, c);
    else
        answer(all, c);
}

/* ---- writers ---- */

static bool has_key(struct rp_command *const *taken, size_t n, const struct rp_command *c)
{
    for (size_t i = 0; i < n; i++)
        if (taken[i]->key != NULL && taken[i]->inner.key_hash == c->inner.key_hash) return true;
    return false;
}

/* A second command with a key of this round stays for the next one; one that wants a round of its
 * own ends this one. */
static bool fits_round(const void *who, struct rp_command *const *taken, size_t n, const struct rp_command *c,
                       bool *go_on)
{
    (void)who;
    if (c->verb->alone) *go_on = false;
    return c->verb->alone ? n == 0 : c->key == NULL || !has_key(taken, n, c);
}

static int64_t first_due(struct rp_command *const *commands, size_t n)
{
    int64_t due = 0;
    for (size_t i = 0; i < n; i++)
        if (commands[i]->due_at_ms != 0 && (due == 0 || commands[i]->due_at_ms < due)) due = commands[i]->due_at_ms;
    return due;
}

static void note(struct rp_writers *all, int code, struct rp_command *const *commands, size_t n)
{
    size_t decided = 0;
    for (size_t i = 0; i < n; i++)
        decided += !commands[i]->inner.busy;
    atomic_fetch_add(&all->rounds, 1);
    atomic_fetch_add(&all->commands, decided);
    if (code <= 0) atomic_store(&all->last_code, code);
    if (code == RP_EFULL) atomic_store(&all->refused_full_ms, rp_time_boot_ms());
    if (code != 0) return;
    atomic_store(&all->last_ok_ms, rp_clock_now_ms(all->options.clock));
    if (decided > 0 && all->options.committed != NULL)
        all->options.committed(all->options.ctx, decided, first_due(commands, n));
}

/* W6. True: the command goes back into the queue. */
static bool tries_again(struct rp_command *c)
{
    int64_t now_ms = rp_time_boot_ms();
    if (!c->inner.busy) c->inner.busy_since_ms = 0;
    if (!c->inner.busy) return false;
    if (c->inner.busy_since_ms == 0) c->inner.busy_since_ms = now_ms;
    c->inner.retry_at_ms = now_ms + RP_RETRY_MS + (now_ms - c->inner.busy_since_ms) / RETRY_PART;
    if (now_ms - c->inner.busy_since_ms < BUSY_MS) return true;
    c->failed = true;
    rp_error_set(&c->error, RP_EBUSY, "somebody else has locked this tenant");
    rp_error_hint(&c->error, "try again; if it lasts, look for a transaction that nobody ends (pg_stat_activity)");
    return false;
}

static void *work_inside(void *arg)
{
    struct rp_writer *w = arg;
    struct rp_command *commands[RP_WRITER_ROUND_MAX];
    for (size_t n; (n = rp_queue_take(&w->queue, commands, fits_round)) > 0;) {
        int r = rp_round_run(w->catalog, commands, n, false);
        RP_CRASHPOINT("writer.committed");
        note(w->all, r, commands, n);
        for (size_t i = 0; i < n; i++) {
            if (tries_again(commands[i]))
                rp_queue_push(&w->queue, commands[i]);
            else
                pass_on(w->all, commands[i]);
        }
    }
    return NULL;
}

/* ---- preparers ---- */

/* Nothing of it can hang with a store: raises are waited for only so long. */
static bool only_raises(const struct rp_command *c)
{
    return c->unfinished && c->verb->finish == NULL;
}

/* W10. No more of them than are needed have a connection: one begins when those before it are
 * busy. */
static bool may_begin(const struct rp_preparer *p, const struct rp_command *c)
{
    const struct rp_writers *all = p->all;
    size_t busy = 0, with_group = 0, share = all->n_preparers > 1 ? all->n_preparers / 2 : 1;
    if (p == &all->preparers[RP_PREPARERS_MAX]) return only_raises(c);
    for (size_t i = 0; i < all->n_preparers; i++) {
        busy += all->preparers[i].busy;
        with_group += all->preparers[i].busy && all->preparers[i].group == c->group;
    }
    return (size_t)(p - all->preparers) <= busy && with_group < share;
}

/* Commands of one verb, about one store, at one step. */
static bool fits_outside(const void *who, struct rp_command *const *taken, size_t n, const struct rp_command *c,
                         bool *go_on)
{
    (void)go_on;
    if (n == 0) return may_begin(who, c);
    return c->verb == taken[0]->verb && c->group == taken[0]->group && c->unfinished == taken[0]->unfinished;
}

static size_t take_outside(struct rp_preparer *p, struct rp_command **out)
{
    struct rp_queue *q = &p->all->outside;
    pthread_mutex_lock(&q->lock);
    if (p->busy) pthread_cond_broadcast(&q->work); /* its place is free */
    p->busy = false;
    size_t n = rp_queue_wait(q, out, fits_outside, p);
    p->busy = n > 0;
    p->group = n > 0 ? out[0]->group : 0;
    if (q->first != NULL) pthread_cond_broadcast(&q->work); /* the next one may begin (may_begin) */
    pthread_mutex_unlock(&q->lock);
    return n;
}

static bool open_catalog(struct rp_preparer *p, struct rp_error *err)
{
    const struct rp_writers_options *o = &p->all->options;
    struct rp_catalog_options how = { .clock = o->clock, .cache_kib = PREPARER_CACHE_KB };
    if (p->catalog != NULL) return true;
    if (rp_catalog_open(o->url, &how, &p->catalog, err) < 0) return false;
    p->catalog->raise_hook = o->raise_hook;
    rp_writers_attach(p->all, p->catalog);
    return true;
}

static void finish(struct rp_preparer *p, struct rp_command **commands, size_t n, bool open)
{
    if (open)
        rp_commands_finish(p->catalog, commands, n);
    else
        rp_commands_raise(p->all->options.raise_hook, commands, n);
    if (!open) RP_CRASHPOINT("command.raised");
    for (size_t i = 0; i < n; i++)
        answer(p->all, commands[i]);
}

static void prepare(struct rp_preparer *p, struct rp_command **commands, size_t n, bool open,
                    const struct rp_error *why)
{
    for (size_t i = 0; i < n; i++)
        commands[i]->second = commands[i]->stale;
    if (open) rp_commands_prepare(p->catalog, commands, n);
    for (size_t i = 0; i < n; i++) {
        struct rp_command *c = commands[i];
        if (open) {
            rp_queue_push(&writer_of(p->all, c)->queue, c);
        } else {
            c->error = *why;
            c->failed = true;
            answer(p->all, c);
        }
    }
}

/* The server may have no connection for another one. */
static void leave_to_first(struct rp_preparer *p, struct rp_command **commands, size_t n)
{
    const struct timespec pause = { .tv_nsec = 200000000 };
    for (size_t i = 0; i < n; i++)
        rp_queue_push(&p->all->outside, commands[i]);
    nanosleep(&pause, NULL);
}

static void *work_outside(void *arg)
{
    struct rp_preparer *p = arg;
    struct rp_command *commands[RP_WRITER_ROUND_MAX];
    bool raises = p == &p->all->preparers[RP_PREPARERS_MAX];
    for (size_t n; (n = take_outside(p, commands)) > 0;) {
        struct rp_error why = { 0 };
        bool open = !raises && open_catalog(p, &why);
        if (!open && !raises && p != &p->all->preparers[0]) {
            leave_to_first(p, commands, n);
            continue;
        }
        if (commands[0]->unfinished)
            finish(p, commands, n, open);
        else
            prepare(p, commands, n, open, &why);
    }
    rp_catalog_close(p->catalog);
    return NULL;
}

/* ---- start and stop ---- */

static int open_writer(struct rp_writers *all, size_t i, struct rp_error *err)
{
    struct rp_writer *w = &all->at[i];
    bool leased = all->options.first_lane == RP_LANE_LEASED;
    struct rp_catalog_options how = { .clock = all->options.clock,
                                      .lane = leased ? RP_LANE_LEASED : all->options.first_lane + (int)i,
                                      .holder = all->options.holder };
    w->all = all;
    rp_queue_init(&w->queue);
    all->n = i + 1;
    int r = rp_catalog_open(all->options.url, &how, &w->catalog, err);
    if (r < 0) return rp_error_wrap(err, r, "writer %zu", i);
    w->catalog->raise_hook = all->options.raise_hook;
    w->running = pthread_create(&w->thread, NULL, work_inside, w) == 0;
    return w->running ? 0 : rp_error_set(err, RP_ENOMEM, "no thread for a writer");
}

static int start_preparers(struct rp_writers *all, struct rp_error *err)
{
    size_t n = all->options.preparers != 0 ? all->options.preparers : PREPARERS;
    RP_ASSERT(n <= RP_PREPARERS_MAX);
    all->n_preparers = n;
    for (size_t i = 0; i <= n; i++) {
        struct rp_preparer *p = &all->preparers[i < n ? i : RP_PREPARERS_MAX];
        p->all = all;
        if (i == 0 && !open_catalog(p, err)) return rp_error_wrap(err, err->code, "prepare commands");
        p->running = pthread_create(&p->thread, NULL, work_outside, p) == 0;
        if (!p->running) return rp_error_set(err, RP_ENOMEM, "no thread to prepare commands");
    }
    return 0;
}

int rp_writers_start(const struct rp_writers_options *options, struct rp_writers **out, struct rp_error *err)
{
    struct rp_writers *all = calloc(1, sizeof *all);
    RP_ASSERT(options->n >= 1 && options->n <= RP_WRITERS_MAX);
    if (all == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the writers");
    all->options = *options;
    rp_queue_init(&all->outside);
    all->outside.shared = true;
    pthread_mutex_init(&all->lock, NULL);
    rp_wait_init(&all->idle);
    int r = 0;
    for (size_t i = 0; i < options->n && r == 0; i++)
        r = open_writer(all, i, err);
    if (r == 0) {
        all->sqlite = rp_db_has_one_writer(all->at[0].catalog->db);
        RP_ASSERT(!all->sqlite || all->n == 1);
        r = start_preparers(all, err);
    }
    if (r < 0) {
        rp_writers_stop(all);
        return r;
    }
    *out = all;
    return 0;
}

void rp_writers_stop(struct rp_writers *all)
{
    if (all == NULL) return;
    pthread_mutex_lock(&all->lock);
    while (atomic_load(&all->waiting) > 0)
        pthread_cond_wait(&all->idle, &all->lock);
    pthread_mutex_unlock(&all->lock);
    rp_queue_stop(&all->outside);
    for (size_t i = 0; i <= RP_PREPARERS_MAX; i++)
        if (all->preparers[i].running) pthread_join(all->preparers[i].thread, NULL);
    for (size_t i = 0; i < all->n; i++)
        rp_queue_stop(&all->at[i].queue);
    for (size_t i = 0; i < all->n; i++) {
        struct rp_writer *w = &all->at[i];
        if (w->running) pthread_join(w->thread, NULL);
        rp_catalog_close(w->catalog);
        rp_queue_done(&w->queue);
    }
    rp_queue_done(&all->outside);
    pthread_cond_destroy(&all->idle);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* ---- submitting ---- */

static int run_change(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct rp_change *c = (struct rp_change *)commands[0];
    RP_ASSERT(n == 1);
    return c->fn(tx, c->ctx, err);
}

const struct rp_verb rp_verb_change = { .name = "", .run = run_change, .alone = true };

int rp_writers_submit(struct rp_writers *all, struct rp_command *command, struct rp_error *err)
{
    RP_ASSERT(command->verb != NULL && command->done != NULL);
    RP_ASSERT(command->key == NULL || command->render != NULL);
    bool ours = command->verb == &rp_verb_change; /* nobody can be told to come back */
    if (atomic_fetch_add(&all->waiting, 1) >= all->options.queue_max && !ours) {
        atomic_fetch_sub(&all->waiting, 1);
        atomic_fetch_add(&all->refused, 1);
        return rp_error_advise(err, RP_EBUSY, "try again in a second", "too many changes wait to be written");
    }
    command->inner.key_hash = command->key != NULL ? rp_key_hash(command->tenant_id, command->key) : 0;
    command->stale = command->unfinished = command->amended = false;
    command->inner.busy_since_ms = command->inner.retry_at_ms = 0;
    rp_queue_push(command->verb->prepare != NULL ? &all->outside : &writer_of(all, command)->queue, command);
    return 0;
}

/* Somebody who waits for one command. */
struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    void (*done)(struct rp_command *command);
    void *owner;
};

static void wake(struct rp_command *command)
{
    struct waiting *w = command->owner;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void rp_writers_carry(struct rp_writers *all, struct rp_command *command)
{
    struct waiting w = { .done = command->done, .owner = command->owner };
    struct rp_error why = { 0 };
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    command->done = wake;
    command->owner = &w;
    if (rp_writers_submit(all, command, &why) < 0) {
        command->error = why;
        command->failed = true;
    } else {
        pthread_mutex_lock(&w.lock);
        while (!w.over)
            pthread_cond_wait(&w.changed, &w.lock);
        pthread_mutex_unlock(&w.lock);
    }
    command->done = w.done;
    command->owner = w.owner;
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
}

int rp_writers_call(struct rp_writers *all, rp_tx_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_change c = { .command = { .verb = &rp_verb_change }, .fn = fn, .ctx = ctx };
    rp_writers_carry(all, &c.command);
    return c.command.error.code < 0 ? rp_error_copy(err, &c.command.error) : 0;
}

void rp_writers_attach(struct rp_writers *all, struct rp_catalog *catalog)
{
    catalog->writers = all;
    catalog->through_writers = all->sqlite || catalog->lane == 0;
}

void rp_writers_state(struct rp_writers *all, struct rp_writers_state *out)
{
    *out = (struct rp_writers_state){ .waiting = atomic_load(&all->waiting),
                                      .rounds = atomic_load(&all->rounds),
                                      .commands = atomic_load(&all->commands),
                                      .refused = atomic_load(&all->refused),
                                      .last_code = atomic_load(&all->last_code),
                                      .last_ok_ms = atomic_load(&all->last_ok_ms),
                                      .refused_full_ms = atomic_load(&all->refused_full_ms) };
}
