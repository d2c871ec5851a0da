/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of commands (catalog/writer/writer.h, W7 to W9): prepare, run, finish, on a caller's
 * own thread and in a daemon. And what the verbs mark and restore do when their subject moves on
 * between two steps. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include "writer_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "catalog/writer/idempotency.h"

#define MANY 50

/* ---- a verb that counts its steps ---- */

struct counted {
    struct rp_command command;
    int prepared, ran, finished; /* how often */
    int64_t seen;                /* by prepare: the number `world` */
    int64_t ran_with;            /* the `seen` that was decided with */
    int64_t found;               /* by finish: the number `trial`, over another connection if there is one */
    bool wants_finish;
    size_t together; /* in how large a round it was run */
};

static atomic_int world_moves;       /* how often the world moves on between prepare and run */
static atomic_int prepare_calls;     /* not commands: calls */
static atomic_size_t prepared_most;  /* commands of one call */
static atomic_int mixed;             /* calls that saw two groups */
static atomic_llong world, sequence; /* what prepare looks at; which command was run when */

static void prepare_counted(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    (void)catalog;
    prepare_calls++;
    if (n > prepared_most) prepared_most = n;
    for (size_t i = 0; i < n; i++) {
        struct counted *c = (struct counted *)commands[i];
        c->prepared++;
        c->seen = world;
        mixed += commands[i]->group != commands[0]->group;
    }
}

static int run_counted(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    int64_t number;
    if (world_moves > 0) {
        world_moves--;
        world++;
    }
    for (size_t i = 0; i < n; i++) {
        struct counted *c = (struct counted *)commands[i];
        c->ran++;
        c->together = n;
        c->command.stale = c->seen != world && !c->command.second;
        if (c->command.stale) continue;
        c->ran_with = c->seen;
        c->command.unfinished = c->wants_finish;
        int r = rp_meta_raise(tx->db, "trial", 0, &number, e);
        if (r < 0) return r;
    }
    return 0;
}

static void finish_counted(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct counted *c = (struct counted *)commands[i];
        struct rp_error ignored = { 0 };
        c->finished++;
        (void)rp_meta_get(catalog->db, "trial", &c->found, NULL, 0, &ignored);
        c->command.amended = true;
    }
}

static const struct rp_verb verb_counted = {
    .name = "counted", .prepare = prepare_counted, .run = run_counted, .finish = finish_counted
};

static int render_counted(struct rp_command *command, int *status, struct rp_buf *answer)
{
    const struct counted *c = (const struct counted *)command;
    *status = 200;
    return rp_buf_fmt(answer, "saw %" PRId64 ", finished %d", c->ran_with, c->finished);
}

static struct counted counted(int64_t group, const char *key)
{
    return (struct counted){
        .command = { .verb = &verb_counted, .group = group, .actor = "tester", .key = key, .render = render_counted }
    };
}

static void begin(struct daemon *d)
{
    world_moves = prepare_calls = mixed = 0;
    prepared_most = 0;
    world = sequence = 0;
    ok(rp_meta_set(d->w->dbs.db, "trial", 0, "", &err));
}

static int64_t changes(struct daemon *d)
{
    return world_number(d->w, "SELECT number FROM meta WHERE name = 'trial'");
}

/* Each way in turn: on this thread, and through writers. */
static void each_way(struct daemon *d, void (*fn)(struct daemon *d))
{
    begin(d);
    fn(d);
    start_writers(d, 1000);
    rp_writers_attach(d->writers, d->w->catalog);
    begin(d);
    world_script(d->w, "DELETE FROM idempotency");
    fn(d);
}

/* ---- prepare ---- */

static void stand_outside(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    (void)catalog;
    (void)stand_at_gate(NULL, commands, n, NULL);
}

static int run_nothing(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    (void)tx, (void)commands, (void)n, (void)e;
    return 0;
}

static const struct rp_verb verb_gate_outside = { .name = "gate", .prepare = stand_outside, .run = run_nothing };

static void test_W7_prepare_runs_once_for_all_that_wait_of_one_verb_and_group(void **state)
{
    struct daemon *d = *state;
    struct counted *c = rp_arena_array(&d->w->arena, MANY, sizeof *c);
    struct rp_command gate;
    d->preparers = 1;
    start_writers(d, 1000);
    begin(d);
    close_gate_of(d, &gate, &verb_gate_outside, 0);
    for (size_t i = 0; i < MANY; i++) {
        c[i] = counted(i % 5 == 0 ? 2 : 1, NULL);
        assert_int_equal(submit(d, &c[i].command), 0);
    }
    open_gate(d);
    wait_for_answers(d, MANY + 1);
    assert_int_equal(prepare_calls, 2);
    assert_int_equal(prepared_most, MANY - MANY / 5);
    assert_int_equal(mixed, 0);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(c[i].prepared == 1 && c[i].ran == 1 && c[i].command.error.code == 0, true);
    assert_int_equal(changes(d), MANY);
}

static void wait_at_gate(struct daemon *d, size_t n)
{
    pthread_mutex_lock(&d->lock);
    while (d->at_gate < n)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static void test_W10_a_store_that_hangs_leaves_the_others_their_threads(void **state)
{
    struct daemon *d = *state;
    struct rp_command hung[6];
    struct counted other = counted(8, NULL), several = counted(RP_GROUP_SEVERAL, NULL);
    start_writers(d, 1000);
    begin(d);
    for (size_t i = 0; i < 6; i++) {
        hung[i] = (struct rp_command){ .verb = &verb_gate_outside, .group = 7, .actor = "tester" };
        assert_int_equal(submit(d, &hung[i]), 0);
        if (i < 2) wait_at_gate(d, i + 1); /* or both would be prepared together */
    }
    assert_int_equal(submit(d, &other.command), 0);
    assert_int_equal(submit(d, &several.command), 0);
    wait_for_answers(d, 2);
    assert_int_equal(other.prepared + several.prepared, 2);
    assert_int_equal(d->at_gate, 2);
    open_gate(d);
    wait_for_answers(d, 8);
}

/* Of the whole process. */
static long sleeps_in(int64_t ms)
{
    struct rusage before, after;
    const struct timespec pause = { .tv_nsec = (long)ms * 1000000 };
    getrusage(RUSAGE_SELF, &before);
    nanosleep(&pause, NULL);
    getrusage(RUSAGE_SELF, &after);
    return after.ru_nvcsw - before.ru_nvcsw;
}

static void test_W10_threads_that_may_take_nothing_sleep_while_a_store_hangs(void **state)
{
    struct daemon *d = *state;
    struct rp_command hung[6];
    start_writers(d, 1000);
    begin(d);
    for (size_t i = 0; i < 6; i++) {
        hung[i] = (struct rp_command){ .verb = &verb_gate_outside, .group = 7, .actor = "tester" };
        assert_int_equal(submit(d, &hung[i]), 0);
        if (i < 2) wait_at_gate(d, i + 1);
    }
    (void)sleeps_in(20); /* all have seen what waits */
    long sleeps = sleeps_in(300);
    open_gate(d);
    wait_for_answers(d, 6);
    assert_in_range(sleeps, 0, 30);
}

/* The second of two stores finds a thread that nobody but the first one's can wake. */
static void test_W10_each_of_several_stores_that_are_asked_at_once_has_a_thread(void **state)
{
    struct daemon *d = *state;
    struct rp_command asked[3];
    start_writers(d, 1000);
    begin(d);
    for (size_t i = 0; i < 3; i++) {
        asked[i] = (struct rp_command){ .verb = &verb_gate_outside, .group = 7 + (int64_t)i, .actor = "tester" };
        assert_int_equal(submit(d, &asked[i]), 0);
    }
    wait_at_gate(d, 3);
    open_gate(d);
    wait_for_answers(d, 3);
}

#define LONG_ANSWER ((size_t)2 << 20)

static int render_long(struct rp_command *command, int *status, struct rp_buf *answer)
{
    int r = 0;
    (void)command;
    *status = 200;
    for (size_t n = 0; n < LONG_ANSWER && r == 0; n += 64)
        r = rp_buf_fmt(answer, "%063d,", 7);
    return r;
}

static void run_a_long_answer_twice(struct daemon *d)
{
    struct counted first = counted(1, "long"), again = counted(1, "long");
    first.command.render = again.command.render = render_long;
    assert_int_equal(rp_command_run(d->w->catalog, &first.command), 0);
    assert_int_equal(rp_command_run(d->w->catalog, &again.command), 0);
    assert_true(again.command.replayed);
    assert_int_equal(again.command.answer.len, LONG_ANSWER);
    assert_int_equal(changes(d), 1);
    rp_buf_done(&first.command.answer);
    rp_buf_done(&again.command.answer);
}

static void test_W4_a_long_answer_is_kept_and_repeated(void **state)
{
    each_way(*state, run_a_long_answer_twice);
}

static void run_a_key_twice(struct daemon *d)
{
    struct counted first = counted(1, "k"), again = counted(1, "k"), other = counted(1, "k");
    other.command.digest[0] = 1;
    assert_int_equal(rp_command_run(d->w->catalog, &first.command), 0);
    assert_int_equal(first.prepared, 1);
    assert_int_equal(rp_command_run(d->w->catalog, &again.command), 0);
    assert_true(again.command.replayed);
    assert_int_equal(again.prepared + again.ran + again.finished, 0);
    assert_string_equal(rp_buf_text(&again.command.answer), "saw 0, finished 0");
    assert_int_equal(rp_command_run(d->w->catalog, &other.command), RP_EKEYREUSED);
    assert_int_equal(other.prepared + other.ran, 0);
    assert_int_equal(changes(d), 1);
    rp_buf_done(&first.command.answer);
    rp_buf_done(&again.command.answer);
    rp_buf_done(&other.command.answer);
}

static void test_W7_a_key_whose_answer_is_known_is_not_prepared(void **state)
{
    each_way(*state, run_a_key_twice);
}

/* The look-up before prepare finds an answer, the one inside the round does not. */
static struct daemon *forgetful;

static void forget_keys(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    prepare_counted(catalog, commands, n);
    if (n > 1) world_script(forgetful->w, "DELETE FROM idempotency");
}

static const struct rp_verb verb_forgets = {
    .name = "forgets", .prepare = forget_keys, .run = run_counted, .finish = finish_counted
};

static void test_W7_a_command_whose_answer_was_forgotten_meanwhile_is_prepared_before_it_is_run(void **state)
{
    struct daemon *d = *state;
    struct counted first = counted(1, "k"), again = counted(1, "k"), others[2] = { counted(1, NULL), counted(1, NULL) };
    struct rp_command *together[] = { &others[0].command, &again.command, &others[1].command };
    begin(d);
    forgetful = d;
    for (size_t i = 0; i < 3; i++)
        together[i]->verb = &verb_forgets;
    assert_int_equal(rp_command_run(d->w->catalog, &first.command), 0);
    again.command.inner.key_hash = first.command.inner.key_hash;
    rp_commands_prepare(d->w->catalog, together, 3); /* as a preparer does */
    assert_int_equal(again.prepared, 0);
    assert_int_equal(rp_round_run(d->w->catalog, together, 3, true), 0);
    assert_true(again.command.stale);
    assert_int_equal(again.ran, 0);
    assert_int_equal(others[0].ran + others[1].ran, 2);
    assert_int_equal(rp_command_run(d->w->catalog, &again.command), 0);
    assert_int_equal(again.prepared == 1 && again.ran == 1 && !again.command.replayed, true);
    rp_buf_done(&first.command.answer);
    rp_buf_done(&again.command.answer);
}

/* ---- stale ---- */

static void run_in_a_moving_world(struct daemon *d, int moves)
{
    struct counted c = counted(1, moves == 1 ? "once" : "always");
    int64_t before = world, done = changes(d);
    world_moves = moves;
    assert_int_equal(rp_command_run(d->w->catalog, &c.command), 0);
    assert_int_equal(c.prepared, 2);
    assert_int_equal(c.ran, 2);
    assert_true(c.command.second);
    assert_int_equal(c.ran_with, before + 1); /* what the second look saw */
    assert_int_equal(changes(d), done + 1);
    assert_int_equal(world_number(d->w, "SELECT count(*) FROM idempotency WHERE answer LIKE 'saw%'"), moves);
    rp_buf_done(&c.command.answer);
}

static void run_once_and_twice_stale(struct daemon *d)
{
    run_in_a_moving_world(d, 1);
    run_in_a_moving_world(d, 2); /* stale by the second look too: run decides all the same */
    struct counted calm = counted(1, NULL);
    assert_int_equal(rp_command_run(d->w->catalog, &calm.command), 0);
    assert_int_equal(calm.prepared == 1 && calm.ran == 1 && !calm.command.second, true);
}

static void test_W7_a_stale_command_is_prepared_and_run_exactly_once_more(void **state)
{
    each_way(*state, run_once_and_twice_stale);
}

/* ---- finish ---- */

static void run_with_and_without_finish(struct daemon *d)
{
    struct counted plain = counted(1, "plain"), asks = counted(1, "asks"), again = counted(1, "asks");
    asks.wants_finish = again.wants_finish = true;
    assert_int_equal(rp_command_run(d->w->catalog, &plain.command), 0);
    assert_int_equal(plain.finished, 0);
    assert_string_equal(rp_buf_text(&plain.command.answer), "saw 0, finished 0");
    assert_int_equal(rp_command_run(d->w->catalog, &asks.command), 0);
    assert_int_equal(asks.finished, 1);
    assert_int_equal(asks.found, 2); /* what run changed was committed */
    assert_string_equal(rp_buf_text(&asks.command.answer), "saw 0, finished 1");
    assert_int_equal(rp_command_run(d->w->catalog, &again.command), 0);
    assert_true(again.command.replayed);
    assert_int_equal(again.finished, 0);
    assert_string_equal(rp_buf_text(&again.command.answer), "saw 0, finished 1");
    rp_buf_done(&plain.command.answer);
    rp_buf_done(&asks.command.answer);
    rp_buf_done(&again.command.answer);
}

static void test_W8_finish_runs_if_it_was_asked_for_after_the_commit_and_its_answer_is_repeated(void **state)
{
    each_way(*state, run_with_and_without_finish);
}

static int fail_run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    (void)tx, (void)n;
    commands[0]->unfinished = commands[0]->stale = true;
    return rp_error_set(e, RP_EFAILED, "no");
}

static const struct rp_verb verb_fails = {
    .name = "fails", .prepare = prepare_counted, .run = fail_run, .finish = finish_counted
};

static void run_a_failure(struct daemon *d)
{
    struct counted c = counted(1, NULL);
    c.command.verb = &verb_fails;
    assert_int_equal(rp_command_run(d->w->catalog, &c.command), RP_EFAILED);
    assert_true(c.command.failed);
    assert_int_equal(c.prepared == 1 && c.finished == 0, true);
}

static void test_W8_what_was_not_run_is_not_finished(void **state)
{
    each_way(*state, run_a_failure);
}

/* ---- rounds ---- */

struct ordered {
    struct rp_command command;
    int64_t at; /* which of all it was */
    size_t together;
};

static int run_ordered(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    (void)tx, (void)e;
    for (size_t i = 0; i < n; i++) {
        struct ordered *c = (struct ordered *)commands[i];
        c->at = ++sequence;
        c->together = n;
    }
    return 0;
}

static const struct rp_verb verb_ordered = { .name = "ordered", .run = run_ordered };
static const struct rp_verb verb_alone = { .name = "alone", .run = run_ordered, .alone = true };

/* Submits them while the gate is closed; `rounds` are the commits that they took. */
static void run_behind_the_gate(struct daemon *d, struct ordered *c, size_t n, uint64_t rounds)
{
    struct rp_command gate;
    struct rp_writers_state before, after;
    begin(d);
    start_writers(d, 1000);
    close_gate(d, &gate, 7);
    rp_writers_state(d->writers, &before);
    for (size_t i = 0; i < n; i++) {
        c[i].command.tenant_id = 7;
        assert_int_equal(submit(d, &c[i].command), 0);
    }
    open_gate(d);
    wait_for_answers(d, n + 1);
    rp_writers_state(d->writers, &after);
    assert_int_equal(after.rounds, before.rounds + 1 + rounds);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(c[i].at, i + 1); /* in order of arrival */
}

static void test_a_command_of_a_verb_that_is_alone_has_a_round_of_its_own(void **state)
{
    struct ordered c[7];
    for (size_t i = 0; i < 7; i++)
        c[i] = (struct ordered){ .command = { .verb = i == 3 || i == 4 ? &verb_alone : &verb_ordered } };
    run_behind_the_gate(*state, c, 7, 4);
    static const size_t together[] = { 3, 3, 3, 1, 1, 2, 2 };
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(c[i].together, together[i]);
}

static void test_a_heavy_command_has_its_turn_and_holds_nobody_up_for_more(void **state)
{
    struct ordered c[9];
    for (size_t i = 0; i < 9; i++)
        c[i] = (struct ordered){ .command = { .verb = &verb_ordered } };
    c[3].command.weight = c[6].command.weight = RP_WRITER_WEIGHT_MAX + 1000; /* more than a round takes */
    run_behind_the_gate(*state, c, 9, 5);
    static const size_t together[] = { 3, 3, 3, 1, 2, 2, 1, 2, 2 };
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(c[i].together, together[i]);
}

/* ---- changes of our own ---- */

struct changing {
    struct rp_catalog *catalog;
    atomic_bool begun;
    int r;
};

static int raise_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    int64_t number;
    (void)ctx;
    return rp_meta_raise(tx->db, "trial", 0, &number, e);
}

static void *change(void *arg)
{
    struct changing *c = arg;
    struct rp_error why = { 0 };
    c->begun = true;
    c->r = rp_catalog_transact(c->catalog, raise_tx, NULL, &why);
    return NULL;
}

static void test_W5_a_change_of_our_own_waits_where_a_command_is_refused(void **state)
{
    struct daemon *d = *state;
    struct changing c = { .catalog = world_catalog(d->w, 9, NULL) };
    struct ordered extra = { .command = { .verb = &verb_ordered } }, fills = extra;
    struct rp_writers_state s = { 0 };
    struct rp_command gate;
    pthread_t thread;
    begin(d);
    start_writers(d, 2);
    rp_writers_attach(d->writers, c.catalog);
    close_gate(d, &gate, 0);
    assert_int_equal(submit(d, &fills.command), 0);
    assert_int_equal(submit(d, &extra.command), RP_EBUSY);
    start(&thread, change, &c);
    while (d->w->dbs.kind != DBS_POSTGRES && s.waiting < 3) /* there it has its own lane */
        rp_writers_state(d->writers, &s);
    open_gate(d);
    pthread_join(thread, NULL);
    wait_for_answers(d, 2);
    assert_int_equal(c.r, 0);
    assert_int_equal(changes(d), 1);
    rp_catalog_close(c.catalog);
}

/* ---- marks and restores whose subject moves on ---- */

/* Called once, between prepare and run. */
static void (*meddle)(struct world *w);
static struct world *meddled;

static void meddle_now(void)
{
    void (*fn)(struct world * w) = meddle;
    meddle = NULL;
    if (fn != NULL) fn(meddled);
}

static void prepare_mark(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    rp_verb_mark.prepare(catalog, commands, n);
    meddle_now();
}

static void prepare_restore(struct rp_catalog *catalog, struct rp_command *const *commands, size_t n)
{
    rp_verb_reprieve.prepare(catalog, commands, n);
    meddle_now();
}

static void sweep(struct world *w)
{
    struct rp_catalog *other = world_catalog(w, 9, NULL);
    struct rp_sweep sweeper = world_sweeper(w, other, "other");
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    ok(rp_sweep_run(&sweeper, result, &err));
    assert_int_equal(result->run.figures.purged, 1);
    rp_catalog_close(other);
}

static void upload(struct world *w)
{
    sweep(w);
    world_put(w, "k", "newer bytes");
}

static struct rp_mark_answer mark_meddled(struct world *w, void (*fn)(struct world *w))
{
    struct rp_verb verb = rp_verb_mark;
    struct rp_mark_item item = { .store = &w->store,
                                 .request = { .key = "k", .grace_ms = -1, .at_ms = -1, .reason = "again" } };
    struct rp_mark_command c;
    verb.prepare = prepare_mark;
    rp_mark_command_init(&c, &item, 1, "tester");
    c.command.verb = &verb;
    meddled = w;
    meddle = fn;
    int r = rp_command_run(w->catalog, &c.command);
    assert_int_equal(r, item.answer.error.code);
    assert_true(c.command.second);
    return item.answer;
}

/* R7: the object went with the mark that it had; nothing is marked that is gone. */
static void mark_what_another_mark_takes(struct daemon *d)
{
    struct world *w = d->w;
    int64_t marks = world_number(w, "SELECT count(*) FROM mark");
    world_put(w, "k", "bytes");
    assert_int_equal(world_mark(w, "k", 0).what, RP_MARK_CREATED);
    assert_int_equal(mark_meddled(w, sweep).error.code, RP_ENOTFOUND);
    assert_false(world_exists(w, "k"));
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), marks + 1);
    world_put(w, "k", "bytes");
    assert_int_equal(world_mark(w, "k", 0).what, RP_MARK_CREATED);
    struct rp_mark_answer a = mark_meddled(w, upload); /* and one that is new is marked as what it is */
    assert_int_equal(a.what, RP_MARK_CREATED);
    assert_int_equal(a.size_bytes, strlen("newer bytes"));
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
}

static void test_R7_what_another_mark_has_just_taken_is_not_marked(void **state)
{
    each_way(*state, mark_what_another_mark_takes);
}

static void restore_what_was_moved_aside(struct daemon *d)
{
    struct world *w = d->w;
    struct rp_verb verb = rp_verb_reprieve;
    struct rp_reprieve_item item = { .store = &w->store, .key = "k" };
    struct rp_reprieve_command c;
    w->config.mode = RP_MODE_QUARANTINE;
    w->config.quarantine_ms = RP_DAY_MS;
    world_put(w, "k", "precious");
    assert_int_equal(world_mark(w, "k", 0).what, RP_MARK_CREATED);
    verb.prepare = prepare_restore;
    rp_reprieve_command_init(&c, &item, 1, "tester", &w->arena);
    c.command.verb = &verb;
    meddled = w;
    meddle = sweep;
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    assert_true(c.command.second);
    assert_int_equal(item.answer.what, RP_REPRIEVE_RETURNED);
    assert_string_equal(world_text(w, "k"), "precious");
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_ALREADY);
}

static void test_V5_what_was_moved_to_quarantine_meanwhile_is_returned(void **state)
{
    each_way(*state, restore_what_was_moved_aside);
}

/* clang-format off */
int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_W10_a_store_that_hangs_leaves_the_others_their_threads),
        BOTH(test_W10_threads_that_may_take_nothing_sleep_while_a_store_hangs),
        BOTH(test_W10_each_of_several_stores_that_are_asked_at_once_has_a_thread),
        BOTH(test_W4_a_long_answer_is_kept_and_repeated),
        BOTH(test_W7_prepare_runs_once_for_all_that_wait_of_one_verb_and_group),
        BOTH(test_W7_a_key_whose_answer_is_known_is_not_prepared),
        BOTH(test_W7_a_command_whose_answer_was_forgotten_meanwhile_is_prepared_before_it_is_run),
        BOTH(test_W7_a_stale_command_is_prepared_and_run_exactly_once_more),
        BOTH(test_W8_finish_runs_if_it_was_asked_for_after_the_commit_and_its_answer_is_repeated),
        BOTH(test_W8_what_was_not_run_is_not_finished),
        BOTH(test_a_command_of_a_verb_that_is_alone_has_a_round_of_its_own),
        BOTH(test_a_heavy_command_has_its_turn_and_holds_nobody_up_for_more),
        BOTH(test_W5_a_change_of_our_own_waits_where_a_command_is_refused),
        BOTH(test_R7_what_another_mark_has_just_taken_is_not_marked),
        BOTH(test_V5_what_was_moved_to_quarantine_meanwhile_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
