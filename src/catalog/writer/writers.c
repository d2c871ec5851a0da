/* SPDX-License-Identifier: Apache-2.0 */
/* writers.c - the threads of a daemon that carry commands through their steps (writer.h).
 *
 *   submit ──▶ preparers ──▶ a writer ──┬──▶ done()
 *      └─────────────────────▲  ▲       ├──▶ preparers (finish) ──▶ done()
 *                               └───────┴──  stale: prepared once more
 */
#include "catalog/writer/writer.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/time.h"
#include "base/wait.h"
#include "catalog/writer/idempotency.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PREPARERS_MAX     8
#define PREPARERS         4 /* those beyond the first are there for when that hangs with its store (W10) */
#define PREPARER_CACHE_KB 256
#define RETRY_MS          5                   /* until a command whose tenant was locked is tried again, and ... */
#define RETRY_PART        8                   /* ... this part of how long it has waited */
#define BUSY_MS           (30 * RP_SECOND_MS) /* for how long it is tried */
#define LOOK_MS           RP_SECOND_MS

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct rp_command *first, **last;
    bool stopping;
    bool shared; /* by threads that may not all take the same */
};

/* A change of our own, which nobody is answered for. */
struct change {
    struct rp_command command;
    rp_tx_fn *fn;
    void *ctx;
};

struct writer {
    struct rp_writers *all;
    struct change look; /* with `looking` under the lock of all: whether it can write */
    bool looking;
    int64_t look_began_ms, look_ahead_ms;
    bool answered; /* one look; what the last one found: */
    int64_t ahead_ms;
    int look_code;
    struct rp_catalog *catalog;
    pthread_t thread;
    struct queue queue;
    bool running;
};

struct preparer {
    struct rp_writers *all;
    struct rp_catalog *catalog; /* of the first from the start, else NULL: not opened yet */
    pthread_t thread;
    bool running;
    bool busy; /* under the lock of `outside`, with */
    int64_t group;
};

struct rp_writers {
    struct writer at[RP_WRITERS_MAX];
    size_t n;
    struct preparer preparers[PREPARERS_MAX + 1]; /* the last one only has epochs raised (W10) */
    size_t n_preparers;
    struct queue outside; /* commands to prepare or to finish */
    bool sqlite;
    struct rp_writers_options options;
    atomic_size_t waiting;
    atomic_uint_fast64_t rounds, commands, refused;
    atomic_int last_code;
    atomic_int_fast64_t last_ok_ms, refused_full_ms;
    pthread_mutex_t lock; /* of `idle` */
    pthread_cond_t idle;  /* nothing is under way; or a look has come back */
};

/* ---- queues ---- */

static void queue_init(struct queue *q)
{
    pthread_mutex_init(&q->lock, NULL);
    rp_wait_init(&q->work);
    q->last = &q->first;
}

static void queue_done(struct queue *q)
{
    RP_ASSERT(q->first == NULL);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
}

static void push(struct queue *q, struct rp_command *c)
{
    pthread_mutex_lock(&q->lock);
    RP_ASSERT(!q->stopping);
    c->next = NULL;
    *q->last = c;
    q->last = &c->next;
    if (q->shared)
        pthread_cond_broadcast(&q->work);
    else
        pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

static void stop_queue(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stopping = true;
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->lock);
}

static size_t weight_of(const struct rp_command *c)
{
    return c->weight > 0 ? c->weight : 1;
}

/* Whether the command may join those that were taken already, and whether one behind it may be looked at. */
typedef bool fits_fn(const void *who, struct rp_command *const *taken, size_t n, const struct rp_command *c,
                     bool *go_on);

/* With the lock: takes what fits, in order of arrival; those that were busy a moment ago are left. */
static size_t collect(struct queue *q, struct rp_command **out, fits_fn *fits, const void *who)
{
    size_t n = 0, weight = 0;
    int64_t now_ms = rp_time_boot_ms();
    struct rp_command **at = &q->first;
    for (bool go_on = true; *at != NULL && go_on && n < RP_WRITER_ROUND_MAX;) {
        struct rp_command *c = *at;
        if (c->retry_at_ms > now_ms) {
            at = &c->next;
            continue;
        }
        bool heavy = n > 0 && weight + weight_of(c) > RP_WRITER_WEIGHT_MAX;
        if (heavy || !fits(who, out, n, c, &go_on)) {
            go_on = go_on && !heavy;
            at = &c->next;
            continue;
        }
        *at = c->next;
        if (q->last == &c->next) q->last = at;
        c->next = NULL;
        weight += weight_of(c);
        out[n++] = c;
    }
    return n;
}

/* With the lock: when there is something; 0 when the queue stops. */
static size_t wait_and_collect(struct queue *q, struct rp_command **out, fits_fn *fits, const void *who)
{
    size_t n;
    while ((n = collect(q, out, fits, who)) == 0 && !(q->first == NULL && q->stopping)) {
        struct timespec soon = rp_wait_until(RETRY_MS);
        if (q->first == NULL)
            pthread_cond_wait(&q->work, &q->lock);
        else
            (void)pthread_cond_timedwait(&q->work, &q->lock, &soon);
    }
    return n;
}

static size_t take(struct queue *q, struct rp_command **out, fits_fn *fits)
{
    pthread_mutex_lock(&q->lock);
    size_t n = wait_and_collect(q, out, fits, NULL);
    pthread_mutex_unlock(&q->lock);
    return n;
}

/* ---- on their way ---- */

static struct writer *writer_of(struct rp_writers *all, const struct rp_command *c)
{
    /* ids are times with a number behind (base/id.h): their last bits alone would put all tenants on one writer */
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
        push(&all->outside, c);
    else
        answer(all, c);
}

/* ---- writers ---- */

static bool has_key(struct rp_command *const *taken, size_t n, const struct rp_command *c)
{
    for (size_t i = 0; i < n; i++)
        if (taken[i]->key != NULL && taken[i]->key_hash == c->key_hash) return true;
    return false;
}

/* A second command with a key of this round stays for the next one; one that wants a round of its own ends this one. */
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
        decided += !commands[i]->busy;
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
    if (!c->busy) return false;
    if (c->busy_since_ms == 0) c->busy_since_ms = now_ms;
    c->retry_at_ms = now_ms + RETRY_MS + (now_ms - c->busy_since_ms) / RETRY_PART;
    if (now_ms - c->busy_since_ms < BUSY_MS) return true;
    c->failed = true;
    rp_error_set(&c->error, RP_EBUSY, "somebody else has locked this tenant");
    rp_error_hint(&c->error, "try again; if it lasts, look for a transaction that nobody ends (pg_stat_activity)");
    return false;
}

static void *work_inside(void *arg)
{
    struct writer *w = arg;
    struct rp_command *commands[RP_WRITER_ROUND_MAX];
    for (size_t n; (n = take(&w->queue, commands, fits_round)) > 0;) {
        int r = rp_round_run(w->catalog, commands, n, false);
        RP_CRASHPOINT("writer.committed");
        note(w->all, r, commands, n);
        for (size_t i = 0; i < n; i++) {
            if (tries_again(commands[i]))
                push(&w->queue, commands[i]);
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

/* W10. No more of them than are needed have a connection: one begins when those before it are busy. */
static bool may_begin(const struct preparer *p, const struct rp_command *c)
{
    const struct rp_writers *all = p->all;
    size_t busy = 0, with_group = 0, share = all->n_preparers > 1 ? all->n_preparers / 2 : 1;
    if (p == &all->preparers[PREPARERS_MAX]) return only_raises(c);
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

static size_t take_outside(struct preparer *p, struct rp_command **out)
{
    struct queue *q = &p->all->outside;
    pthread_mutex_lock(&q->lock);
    if (p->busy) pthread_cond_broadcast(&q->work); /* its place is free */
    p->busy = false;
    size_t n = wait_and_collect(q, out, fits_outside, p);
    p->busy = n > 0;
    p->group = n > 0 ? out[0]->group : 0;
    pthread_mutex_unlock(&q->lock);
    return n;
}

static bool open_catalog(struct preparer *p, struct rp_error *err)
{
    const struct rp_writers_options *o = &p->all->options;
    struct rp_catalog_options how = { .clock = o->clock, .cache_kib = PREPARER_CACHE_KB };
    if (p->catalog != NULL) return true;
    if (rp_catalog_open(o->url, &how, &p->catalog, err) < 0) return false;
    p->catalog->raise_hook = o->raise_hook;
    rp_writers_attach(p->all, p->catalog);
    return true;
}

static void finish(struct preparer *p, struct rp_command **commands, size_t n, bool open)
{
    if (open)
        rp_commands_finish(p->catalog, commands, n);
    else
        rp_commands_raise(p->all->options.raise_hook, commands, n);
    if (!open) RP_CRASHPOINT("command.raised");
    for (size_t i = 0; i < n; i++)
        answer(p->all, commands[i]);
}

static void prepare(struct preparer *p, struct rp_command **commands, size_t n, bool open, const struct rp_error *why)
{
    for (size_t i = 0; i < n; i++)
        commands[i]->second = commands[i]->stale;
    if (open) rp_commands_prepare(p->catalog, commands, n);
    for (size_t i = 0; i < n; i++) {
        struct rp_command *c = commands[i];
        if (open) {
            push(&writer_of(p->all, c)->queue, c);
        } else {
            c->error = *why;
            c->failed = true;
            answer(p->all, c);
        }
    }
}

/* The server may have no connection for another one. */
static void leave_to_first(struct preparer *p, struct rp_command **commands, size_t n)
{
    const struct timespec pause = { .tv_nsec = 200000000 };
    for (size_t i = 0; i < n; i++)
        push(&p->all->outside, commands[i]);
    nanosleep(&pause, NULL);
}

static void *work_outside(void *arg)
{
    struct preparer *p = arg;
    struct rp_command *commands[RP_WRITER_ROUND_MAX];
    bool raises = p == &p->all->preparers[PREPARERS_MAX];
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
    struct writer *w = &all->at[i];
    bool leased = all->options.first_lane == RP_LANE_LEASED;
    struct rp_catalog_options how = { .clock = all->options.clock,
                                      .lane = leased ? RP_LANE_LEASED : all->options.first_lane + (int)i,
                                      .holder = all->options.holder };
    w->all = all;
    queue_init(&w->queue);
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
    RP_ASSERT(n <= PREPARERS_MAX);
    all->n_preparers = n;
    for (size_t i = 0; i <= n; i++) {
        struct preparer *p = &all->preparers[i < n ? i : PREPARERS_MAX];
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
    queue_init(&all->outside);
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
    stop_queue(&all->outside);
    for (size_t i = 0; i <= PREPARERS_MAX; i++)
        if (all->preparers[i].running) pthread_join(all->preparers[i].thread, NULL);
    for (size_t i = 0; i < all->n; i++)
        stop_queue(&all->at[i].queue);
    for (size_t i = 0; i < all->n; i++) {
        struct writer *w = &all->at[i];
        if (w->running) pthread_join(w->thread, NULL);
        rp_catalog_close(w->catalog);
        queue_done(&w->queue);
    }
    queue_done(&all->outside);
    pthread_cond_destroy(&all->idle);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* ---- submitting ---- */

static int run_change(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct change *c = (struct change *)commands[0];
    RP_ASSERT(n == 1);
    return c->fn(tx, c->ctx, err);
}

static const struct rp_verb verb_change = { .name = "", .run = run_change, .alone = true };

int rp_writers_submit(struct rp_writers *all, struct rp_command *command, struct rp_error *err)
{
    RP_ASSERT(command->verb != NULL && command->done != NULL);
    RP_ASSERT(command->key == NULL || command->render != NULL);
    bool ours = command->verb == &verb_change; /* nobody can be told to come back */
    if (atomic_fetch_add(&all->waiting, 1) >= all->options.queue_max && !ours) {
        atomic_fetch_sub(&all->waiting, 1);
        atomic_fetch_add(&all->refused, 1);
        rp_error_set(err, RP_EBUSY, "too many changes wait to be written");
        return rp_error_hint(err, "try again in a second");
    }
    command->key_hash = command->key != NULL ? rp_key_hash(command->tenant_id, command->key) : 0;
    command->stale = command->unfinished = command->amended = false;
    command->busy_since_ms = command->retry_at_ms = 0;
    push(command->verb->prepare != NULL ? &all->outside : &writer_of(all, command)->queue, command);
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
    struct change c = { .command = { .verb = &verb_change }, .fn = fn, .ctx = ctx };
    rp_writers_carry(all, &c.command);
    if (c.command.error.code < 0) *err = c.command.error;
    return c.command.error.code;
}

void rp_writers_attach(struct rp_writers *all, struct rp_catalog *catalog)
{
    catalog->writers = all;
    catalog->through_writers = all->sqlite || catalog->lane == 0;
}

/* ---- looking ---- */

/* The transaction around it is the write: it keeps the lane's row. It has judged the clock. */
static int write_nothing(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = tx->ahead_ms;
    return 0;
}

static void look_done(struct rp_command *command)
{
    struct writer *w = command->owner;
    pthread_mutex_lock(&w->all->lock);
    w->looking = false;
    w->look_code = command->error.code;
    if (w->look_code == 0) w->ahead_ms = w->look_ahead_ms;
    w->answered = w->answered || w->look_code == 0;
    pthread_cond_broadcast(&w->all->idle);
    pthread_mutex_unlock(&w->all->lock);
}

static void look(struct writer *w)
{
    pthread_mutex_lock(&w->all->lock);
    bool again = !w->looking;
    w->looking = true;
    if (again) w->look_began_ms = rp_time_boot_ms();
    pthread_mutex_unlock(&w->all->lock);
    if (!again) return;
    w->look = (struct change){ .command = { .verb = &verb_change, .done = look_done, .owner = w },
                               .fn = write_nothing,
                               .ctx = &w->look_ahead_ms };
    atomic_fetch_add(&w->all->waiting, 1);
    push(&w->queue, &w->look.command);
}

static bool is_looking(const struct rp_writers *all)
{
    bool any = false;
    for (size_t i = 0; i < all->n; i++)
        any |= all->at[i].looking;
    return any;
}

void rp_writers_look(struct rp_writers *all, struct rp_writers_look *out)
{
    struct timespec end = rp_wait_until(LOOK_MS);
    int64_t now_ms;
    *out = (struct rp_writers_look){ 0 };
    for (size_t i = 0; i < all->n; i++)
        look(&all->at[i]);
    pthread_mutex_lock(&all->lock);
    for (int r = 0; r == 0 && is_looking(all);)
        r = pthread_cond_timedwait(&all->idle, &all->lock, &end);
    now_ms = rp_time_boot_ms();
    for (size_t i = 0; i < all->n; i++) {
        const struct writer *w = &all->at[i];
        if (!w->looking && out->code == 0) out->code = w->look_code;
        if (w->answered) out->ahead_ms = w->ahead_ms;
        out->judged = out->judged || w->answered;
        if (w->looking && now_ms - w->look_began_ms >= out->waits_ms) out->waits_ms = now_ms - w->look_began_ms + 1;
    }
    pthread_mutex_unlock(&all->lock);
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
