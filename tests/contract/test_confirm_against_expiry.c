/* SPDX-License-Identifier: Apache-2.0 */
/* Confirm against expiry, with a daemon's writers and a sweeper on threads of their own. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include "writer_steps.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

#define HOUR  RP_HOUR_MS
#define DUELS 60
#define DUEL  12 /* files a duel */

struct duel {
    struct daemon *d;
    struct rp_catalog *sweeper;
    struct world_steps steps;
    struct rp_purge_rules rules;
    pthread_barrier_t begin, end;
    struct rp_file_command confirms[DUEL];
    int round, swept_r;
    struct rp_error why;
    size_t claimed;
};

static int sweep_once(struct duel *x)
{
    struct world *w = x->d->w;
    struct rp_purge_batch *b = &x->steps.batch;
    int64_t from_ms = 0;
    int r = rp_purge_claim(x->sweeper, &w->store, &x->rules, &w->worker, x->rules.batch, &from_ms, b, &x->why);
    x->claimed = 0;
    for (size_t i = 0; i < b->marks.n && r == 0; i++) /* beside the second marks of earlier duels */
        x->claimed += strcmp(b->marks.at[i].reason, RP_REASON_ABANDONED) == 0;
    if (r < 0 || b->marks.n == 0) return r;
    rp_purge_look(b);
    rp_purge_erase(b);
    return rp_purge_finish(x->sweeper, &x->rules, b, &x->steps.run, &x->why);
}

/* In turn one side gives the other up to three milliseconds: one of them would always win. */
static void hang_back(int round, int side)
{
    static const long starts_ns[] = { 0, 100000, 300000, 3000000 };
    struct timespec start = { .tv_nsec = starts_ns[round / 2 % 4] };
    if (round % 2 == side) nanosleep(&start, NULL);
}

static void *sweep_each(void *arg)
{
    struct duel *x = arg;
    for (int i = 0; i < DUELS; i++) {
        pthread_barrier_wait(&x->begin);
        hang_back(i, 0);
        x->swept_r = sweep_once(x);
        pthread_barrier_wait(&x->end);
    }
    return NULL;
}

static void make_duel(struct duel *x)
{
    struct world *w = x->d->w;
    for (size_t i = 0; i < DUEL; i++) {
        struct rp_file_command *c = &x->confirms[i];
        int64_t id = uploads_begin(w, rp_arena_fmt(&w->arena, "d%d-%zu", x->round, i), "hello");
        uploads_put(w, id, "hello");
        struct rp_file f = uploads_file(w, id);
        *c = uploads_command(w, &rp_verb_confirm, id);
        c->arena = &w->arena; /* one writer a tenant: nobody else uses it meanwhile */
        ok(rp_file_see(&f, &w->store, NULL, &c->seen, &err));
    }
    world_pass(w, 2 * HOUR);
}

/* Exactly one has won each file, both know it, and the object is there if and only if the file
 * lives. */
static size_t judge_duel(struct duel *x)
{
    struct world *w = x->d->w;
    size_t confirmed = 0;
    world_ok(x->swept_r, &x->why, __FILE__, __LINE__);
    for (size_t i = 0; i < DUEL; i++) {
        struct rp_file_command *c = &x->confirms[i];
        struct rp_file f = uploads_file(w, c->file_id);
        bool won = c->command.error.code == 0;
        if (!won) assert_int_equal(c->command.error.code, RP_EEXPIRED);
        assert_int_equal(f.status, won ? RP_FILE_LIVE : RP_FILE_EXPIRED);
        assert_int_equal(world_exists(w, f.key), won);
        confirmed += won;
    }
    assert_int_equal(x->claimed, DUEL - confirmed);
    return confirmed;
}

static void run_duel(struct duel *x)
{
    struct daemon *d = x->d;
    size_t before = d->answered;
    pthread_barrier_wait(&x->begin);
    hang_back(x->round, 1);
    for (size_t i = 0; i < DUEL; i++)
        assert_int_equal(submit(d, &x->confirms[i].command), 0);
    wait_for_answers(d, before + DUEL);
    pthread_barrier_wait(&x->end);
}

static void test_F2_of_confirm_and_expiry_exactly_one_wins(void **state)
{
    struct daemon *d = *state;
    RP_CLEANUP(rp_freep) struct duel *x = calloc(1, sizeof *x);
    size_t confirmed = 0;
    pthread_t sweeper;
    start_writers(d, 1000);
    *x = (struct duel){ .d = d, .sweeper = world_catalog(d->w, 8, NULL), .rules = d->w->rules };
    rp_writers_attach(d->writers, x->sweeper); /* as a daemon's sweeper is */
    rp_writers_attach(d->writers, d->w->catalog);
    world_steps_begin(d->w, x->sweeper, "duel", &x->steps);
    pthread_barrier_init(&x->begin, NULL, 2);
    pthread_barrier_init(&x->end, NULL, 2);
    start(&sweeper, sweep_each, x);
    for (x->round = 0; x->round < DUELS; x->round++) {
        make_duel(x);
        run_duel(x);
        confirmed += judge_duel(x);
    }
    pthread_join(sweeper, NULL);
    print_message("%zu of %d confirmed\n", confirmed, DUELS * DUEL);
    assert_in_range(confirmed, 1, DUELS * DUEL - 1); /* it was a race */
    uploads_expect_quota(d->w, (int64_t)confirmed * 5, 0, 0);
    ok(rp_run_end(x->sweeper, &x->steps.run, "done", &err));
    world_steps_done(&x->steps);
    rp_catalog_close(x->sweeper);
    pthread_barrier_destroy(&x->begin);
    pthread_barrier_destroy(&x->end);
}

int main(void)
{
    const struct CMUnitTest tests[] = { BOTH(test_F2_of_confirm_and_expiry_exactly_one_wins) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
