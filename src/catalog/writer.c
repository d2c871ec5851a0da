/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/writer.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/crashpoint.h"
#include "base/mutant.h"
#include "base/time.h"
#include "catalog/idempotency.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX ((size_t)1 << 20)

/* ---- one round ---- */

struct round {
    struct rp_command **commands; /* in order of arrival, no key twice */
    size_t n;
};

static void clear_answers(struct round *round)
{
    for (size_t i = 0; i < round->n; i++) {
        struct rp_command *c = round->commands[i];
        rp_error_clear(&c->error);
        rp_buf_clear(&c->answer);
        c->answer.max = ANSWER_MAX;
        c->replayed = c->settled = false;
        c->status = 0;
    }
}

/* What of the round has a key, and the command that each belongs to. */
struct keyed {
    struct rp_saved *kept;
    struct rp_command **owners;
    size_t n;
};

static int collect_keys(struct rp_tx *tx, struct round *round, struct keyed *out, struct rp_error *err)
{
    out->kept = rp_arena_array(tx->arena, round->n, sizeof *out->kept);
    out->owners = rp_arena_array(tx->arena, round->n, sizeof(struct rp_command *));
    if (out->kept == NULL || out->owners == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a round");
    for (size_t i = 0; i < round->n; i++) {
        struct rp_command *c = round->commands[i];
        if (c->key == NULL) continue;
        out->owners[out->n] = c;
        out->kept[out->n++] =
            (struct rp_saved){ .tenant_id = c->tenant_id, .hash = c->key_hash, .key = c->key, .digest = c->digest };
    }
    return 0;
}

static int settle(struct rp_command *c, const struct rp_saved *kept, struct rp_error *err)
{
    c->settled = true;
    if (kept->code < 0) {
        rp_error_set(&c->error, kept->code, "this Idempotency-Key was used for another request");
        rp_error_hint(&c->error, "use a new key for every new request");
        return 0;
    }
    c->replayed = true;
    c->status = kept->status;
    int r = rp_buf_str(&c->answer, kept->answer);
    return r < 0 ? rp_error_set(err, r, "repeat the answer of %s", c->verb->name) : 0;
}

static int replay_known(struct rp_tx *tx, struct keyed *keyed, struct rp_error *err)
{
    if (keyed->n == 0) return 0;
    int r = rp_keys_find(tx->db, keyed->kept, keyed->n, tx->arena, err);
    for (size_t i = 0; i < keyed->n && r == 0; i++) {
        if (keyed->kept[i].found) r = settle(keyed->owners[i], &keyed->kept[i], err);
    }
    return r;
}

/* Each verb once, over all of its commands, in the order in which the verbs first appear. */
static int run_verbs(struct rp_tx *tx, struct round *round, struct rp_error *err)
{
    struct rp_command **group = rp_arena_array(tx->arena, round->n, sizeof(struct rp_command *));
    bool *taken = rp_arena_array(tx->arena, round->n, sizeof *taken);
    if (group == NULL || taken == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a round");
    for (size_t i = 0; i < round->n; i++) {
        const struct rp_verb *verb = round->commands[i]->verb;
        size_t n = 0;
        for (size_t j = i; j < round->n; j++) {
            struct rp_command *c = round->commands[j];
            if (taken[j] || c->settled || c->verb != verb) continue;
            taken[j] = true;
            group[n++] = c;
        }
        int r = n > 0 ? verb->run(tx, group, n, err) : 0;
        if (r < 0) return rp_error_wrap(err, r, "%s", verb->name);
    }
    return 0;
}

/* Kept are answers that stand: a failure that a repetition may heal is none. */
static int keep_answers(struct rp_tx *tx, struct keyed *keyed, struct rp_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < keyed->n; i++) {
        struct rp_command *c = keyed->owners[i];
        if (c->settled) continue;
        int r = c->render(c, &c->status, &c->answer);
        if (r < 0) return rp_error_set(err, r, "write the answer of %s", c->verb->name);
        if (rp_error_retry(c->error.code)) continue;
        struct rp_saved kept = keyed->kept[i];
        kept.status = c->status;
        kept.answer = rp_buf_text(&c->answer);
        keyed->kept[n++] = kept;
    }
    return RP_MUTANT(KEY_NOT_KEPT) ? 0 : rp_keys_save(tx, keyed->kept, n, err);
}

static int round_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct round *round = ctx;
    struct keyed keyed = { 0 };
    clear_answers(round);
    int r = collect_keys(tx, round, &keyed, err);
    if (r == 0) r = replay_known(tx, &keyed, err);
    if (r == 0) r = run_verbs(tx, round, err);
    if (r == 0) r = keep_answers(tx, &keyed, err);
    return r;
}

static void fail_all(struct round *round, const struct rp_error *why)
{
    clear_answers(round);
    for (size_t i = 0; i < round->n; i++)
        round->commands[i]->error = *why;
}

/* The database as a whole cannot: one by one would only take longer to find out. */
static bool is_about_the_database(int code)
{
    return code == RP_EUNAVAILABLE || code == RP_EUNKNOWN || code == RP_EBUSY || code == RP_EFULL || code == RP_EDENIED;
}

static int run_round(struct rp_catalog *catalog, struct round *round)
{
    struct rp_error why = { 0 };
    int r = rp_catalog_transact(catalog, round_tx, round, &why);
    if (r == 0) return 0;
    if (round->n == 1 || is_about_the_database(r)) {
        fail_all(round, &why);
        return r;
    }
    for (size_t i = 0; i < round->n; i++) {
        struct round one = { .commands = &round->commands[i], .n = 1 };
        (void)run_round(catalog, &one);
    }
    return 0;
}

int rp_command_run(struct rp_catalog *catalog, struct rp_command *command)
{
    struct round round = { .commands = &command, .n = 1 };
    command->key_hash = command->key != NULL ? rp_key_hash(command->tenant_id, command->key) : 0;
    (void)run_round(catalog, &round);
    return command->error.code;
}

/* ---- the writers ---- */

/* A function that waits for its own transaction. */
struct call {
    rp_tx_fn *fn;
    void *ctx;
    struct rp_error *err;
    int code;
    bool done;
    struct call *next;
};

struct writer {
    struct rp_writers *all;
    struct rp_catalog *catalog;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, called;
    struct rp_command *first, **last;
    struct call *calls, **last_call;
    bool stopping, running;
};

struct rp_writers {
    struct writer at[RP_WRITERS_MAX];
    size_t n;
    bool sqlite;
    size_t queue_max;
    const struct rp_clock *clock;
    void (*committed)(void *ctx, size_t commands);
    void *ctx;
    atomic_size_t waiting;
    atomic_uint_fast64_t rounds, commands, refused;
    atomic_int last_code;
    atomic_int_fast64_t last_ok_ms;
};

static bool has_key(struct rp_command *const *commands, size_t n, const struct rp_command *c)
{
    for (size_t i = 0; i < n; i++) {
        const struct rp_command *other = commands[i];
        if (other->key != NULL && other->key_hash == c->key_hash) return true;
    }
    return false;
}

/* Takes what waits, in order; a second command with a key of this round stays for the next one. */
static size_t take_round(struct writer *w, struct rp_command **out)
{
    size_t n = 0;
    struct rp_command **at = &w->first;
    while (*at != NULL && n < RP_WRITER_ROUND_MAX) {
        struct rp_command *c = *at;
        if (c->key != NULL && has_key(out, n, c)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        if (w->last == &c->next) w->last = at;
        c->next = NULL;
        out[n++] = c;
    }
    return n;
}

static struct call *take_call(struct writer *w)
{
    struct call *call = w->calls;
    if (call == NULL) return NULL;
    w->calls = call->next;
    if (w->calls == NULL) w->last_call = &w->calls;
    return call;
}

static void note(struct rp_writers *all, int code, size_t commands)
{
    atomic_store(&all->last_code, code);
    if (code == 0) atomic_store(&all->last_ok_ms, rp_clock_now_ms(all->clock));
    atomic_fetch_add(&all->rounds, 1);
    atomic_fetch_add(&all->commands, commands);
    if (code == 0 && all->committed != NULL) all->committed(all->ctx, commands);
}

static void do_round(struct writer *w, struct rp_command **commands, size_t n)
{
    struct round round = { .commands = commands, .n = n };
    if (n == 0) return;
    int r = run_round(w->catalog, &round);
    RP_CRASHPOINT("writer.committed");
    note(w->all, r, n);
    atomic_fetch_sub(&w->all->waiting, n);
    for (size_t i = 0; i < n; i++)
        commands[i]->done(commands[i]); /* from here on it may be gone */
}

static void do_call(struct writer *w, struct call *call)
{
    if (call == NULL) return;
    int r = rp_catalog_transact(w->catalog, call->fn, call->ctx, call->err);
    if (r == 0 || is_about_the_database(r)) note(w->all, r, 0);
    pthread_mutex_lock(&w->lock);
    call->code = r;
    call->done = true;
    pthread_cond_broadcast(&w->called);
    pthread_mutex_unlock(&w->lock);
}

static void *work(void *arg)
{
    struct writer *w = arg;
    struct rp_command *commands[RP_WRITER_ROUND_MAX];
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (w->first == NULL && w->calls == NULL && !w->stopping)
            pthread_cond_wait(&w->work, &w->lock);
        size_t n = take_round(w, commands);
        struct call *call = take_call(w);
        bool over = w->stopping && n == 0 && call == NULL;
        pthread_mutex_unlock(&w->lock);
        if (over) return NULL;
        do_round(w, commands, n);
        do_call(w, call);
    }
}

static int open_writer(struct rp_writers *all, size_t i, const struct rp_writers_options *options, struct rp_error *err)
{
    struct writer *w = &all->at[i];
    struct rp_catalog_options how = { .clock = options->clock, .lane = options->first_lane + (int)i };
    w->all = all;
    w->last = &w->first;
    w->last_call = &w->calls;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    pthread_cond_init(&w->called, NULL);
    all->n = i + 1;
    int r = rp_catalog_open(options->url, &how, &w->catalog, err);
    if (r < 0) return rp_error_wrap(err, r, "writer %zu", i);
    w->running = pthread_create(&w->thread, NULL, work, w) == 0;
    return w->running ? 0 : rp_error_set(err, RP_ENOMEM, "no thread for a writer");
}

int rp_writers_start(const struct rp_writers_options *options, struct rp_writers **out, struct rp_error *err)
{
    struct rp_writers *all = calloc(1, sizeof *all);
    RP_ASSERT(options->n >= 1 && options->n <= RP_WRITERS_MAX);
    if (all == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the writers");
    all->queue_max = options->queue_max;
    all->clock = options->clock;
    all->committed = options->committed;
    all->ctx = options->ctx;
    int r = 0;
    for (size_t i = 0; i < options->n && r == 0; i++)
        r = open_writer(all, i, options, err);
    if (r < 0) {
        rp_writers_stop(all);
        return r;
    }
    all->sqlite = strcmp(rp_db_engine(all->at[0].catalog->db), "sqlite") == 0;
    RP_ASSERT(!all->sqlite || all->n == 1);
    *out = all;
    return 0;
}

void rp_writers_stop(struct rp_writers *all)
{
    if (all == NULL) return;
    for (size_t i = 0; i < all->n; i++) {
        struct writer *w = &all->at[i];
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_cond_signal(&w->work);
        pthread_mutex_unlock(&w->lock);
    }
    for (size_t i = 0; i < all->n; i++) {
        struct writer *w = &all->at[i];
        if (w->running) pthread_join(w->thread, NULL);
        RP_ASSERT(w->first == NULL && w->calls == NULL);
        rp_catalog_close(w->catalog);
        pthread_cond_destroy(&w->called);
        pthread_cond_destroy(&w->work);
        pthread_mutex_destroy(&w->lock);
    }
    free(all);
}

/* Ids are times with a number behind (base/id.h): their last bits alone would put all tenants on one writer. */
static struct writer *writer_of(struct rp_writers *all, int64_t tenant_id)
{
    uint64_t mixed = (uint64_t)tenant_id * UINT64_C(0x9e3779b97f4a7c15);
    return &all->at[(mixed >> 32) % all->n];
}

int rp_writers_submit(struct rp_writers *all, struct rp_command *command, struct rp_error *err)
{
    struct writer *w = writer_of(all, command->tenant_id);
    RP_ASSERT(command->verb != NULL && command->done != NULL);
    RP_ASSERT(command->key == NULL || command->render != NULL);
    if (atomic_fetch_add(&all->waiting, 1) >= all->queue_max) {
        atomic_fetch_sub(&all->waiting, 1);
        atomic_fetch_add(&all->refused, 1);
        rp_error_set(err, RP_EBUSY, "too many changes wait to be written");
        return rp_error_hint(err, "try again in a second");
    }
    command->next = NULL;
    command->key_hash = command->key != NULL ? rp_key_hash(command->tenant_id, command->key) : 0;
    pthread_mutex_lock(&w->lock);
    RP_ASSERT(!w->stopping);
    *w->last = command;
    w->last = &command->next;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

int rp_writers_call(struct rp_writers *all, rp_tx_fn *fn, void *ctx, struct rp_error *err)
{
    struct writer *w = &all->at[0];
    struct call call = { .fn = fn, .ctx = ctx, .err = err };
    pthread_mutex_lock(&w->lock);
    RP_ASSERT(!w->stopping);
    *w->last_call = &call;
    w->last_call = &call.next;
    pthread_cond_signal(&w->work);
    while (!call.done)
        pthread_cond_wait(&w->called, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return call.code;
}

static int through(void *writers, rp_tx_fn *fn, void *ctx, struct rp_error *err)
{
    return rp_writers_call(writers, fn, ctx, err);
}

void rp_writers_attach(struct rp_writers *all, struct rp_catalog *catalog)
{
    if (!all->sqlite) return;
    catalog->through = through;
    catalog->writers = all;
}

void rp_writers_state(struct rp_writers *all, struct rp_writers_state *out)
{
    *out = (struct rp_writers_state){ .waiting = atomic_load(&all->waiting),
                                      .rounds = atomic_load(&all->rounds),
                                      .commands = atomic_load(&all->commands),
                                      .refused = atomic_load(&all->refused),
                                      .last_code = atomic_load(&all->last_code),
                                      .last_ok_ms = atomic_load(&all->last_ok_ms) };
}
