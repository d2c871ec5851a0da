/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds that fail. When the database as a whole cannot, all commands of a round are told at once;
 * anything else may be one command's fault, and each is run by itself. A verb of the test's own
 * fails as it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/writer/writer.h"
#include "lib/uploads.h"

#define COMMANDS 3

static struct rp_error err;

/* ---- a verb that fails as it is told ---- */

static struct failing {
    int code, runs, commands; /* what it says; how often it ran, over how many commands in all */
    int spare;                /* with this many commands it does not fail */
} verb;

static int run_verb(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e)
{
    (void)tx, (void)commands;
    verb.runs++;
    verb.commands += (int)n;
    return verb.code < 0 && (int)n != verb.spare ? rp_error_set(e, verb.code, "as told") : 0;
}

static const struct rp_verb rp_verb_test = { .name = "test", .run = run_verb };

/* ---- writers that can be stopped for a moment ---- */

struct scene {
    struct world w;
    struct rp_writers *writers;
    struct rp_command commands[COMMANDS];
    sem_t inside, go_on, answered;
    pthread_t thread;
    int call_code;
};

static int wait_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct scene *s = ctx;
    (void)tx, (void)e;
    sem_post(&s->inside);
    sem_wait(&s->go_on);
    return 0;
}

static void *call_and_wait(void *arg)
{
    struct scene *s = arg;
    struct rp_error why = { 0 };
    s->call_code = rp_writers_call(s->writers, wait_tx, s, &why);
    return NULL;
}

static void count_answer(struct rp_command *command)
{
    struct scene *s = command->owner;
    sem_post(&s->answered);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    if (s == NULL) return -1;
    world_make(&s->w, DBS_SQLITE_FILE, WORLD_MEMORY);
    struct rp_writers_options options = {
        .url = s->w.dbs.url, .clock = &s->w.host_clock, .n = 1, .first_lane = 3, .queue_max = 100
    };
    ok(rp_writers_start(&options, &s->writers, &err));
    sem_init(&s->inside, 0, 0);
    sem_init(&s->go_on, 0, 0);
    sem_init(&s->answered, 0, 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    rp_writers_stop(s->writers);
    world_check(&s->w);
    world_drop(&s->w);
    sem_destroy(&s->inside);
    sem_destroy(&s->go_on);
    sem_destroy(&s->answered);
    free(s);
    return 0;
}

/* All of them in one round: the writer is held up until they wait. */
static void run_round(struct scene *s)
{
    assert_int_equal(pthread_create(&s->thread, NULL, call_and_wait, s), 0);
    sem_wait(&s->inside);
    for (size_t i = 0; i < COMMANDS; i++)
        ok(rp_writers_submit(s->writers, &s->commands[i], &err));
    sem_post(&s->go_on);
    for (size_t i = 0; i < COMMANDS; i++)
        sem_wait(&s->answered);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->call_code, 0);
}

static void make_commands(struct scene *s)
{
    for (size_t i = 0; i < COMMANDS; i++)
        s->commands[i] = (struct rp_command){
            .verb = &rp_verb_test, .tenant_id = 1, .actor = "tester", .done = count_answer, .owner = s
        };
}

static int last_code(struct scene *s)
{
    struct rp_writers_state state;
    rp_writers_state(s->writers, &state);
    return state.last_code;
}

static void when_the_database_cannot_all_are_told_and_none_is_tried_alone(void **state)
{
    static const int codes[] = { RP_EFULL, RP_EDENIED, RP_EUNKNOWN, RP_EUNAVAILABLE, RP_EBUSY };
    struct scene *s = *state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        make_commands(s);
        verb = (struct failing){ .code = codes[i] };
        run_round(s);
        assert_int_equal(verb.commands, verb.runs * COMMANDS);
        if (!rp_error_retry(codes[i])) assert_int_equal(verb.runs, 1);
        for (size_t k = 0; k < COMMANDS; k++)
            assert_int_equal(s->commands[k].error.code, codes[i]);
        assert_int_equal(last_code(s), codes[i]);
    }
}

static void what_may_be_one_commands_fault_is_tried_one_by_one(void **state)
{
    struct scene *s = *state;
    make_commands(s);
    verb = (struct failing){ .code = RP_EFAILED, .spare = 1 };
    run_round(s);
    assert_int_equal(verb.runs, 1 + COMMANDS);
    for (size_t k = 0; k < COMMANDS; k++)
        assert_int_equal(s->commands[k].error.code, 0);
    assert_int_equal(last_code(s), 0);
}

static int render(struct rp_command *command, int *status, struct rp_buf *answer)
{
    (void)command;
    *status = 200;
    return rp_buf_str(answer, "done");
}

/* The keys of a round are told apart from commands that have none. */
static void a_key_beside_commands_without_one_is_of_the_same_round(void **state)
{
    struct scene *s = *state;
    struct rp_writers_state before, after;
    make_commands(s);
    verb = (struct failing){ 0 };
    s->commands[1].key = "key";
    s->commands[1].render = render;
    rp_writers_state(s->writers, &before);
    run_round(s);
    rp_writers_state(s->writers, &after);
    assert_int_equal(verb.runs, 1);
    assert_int_equal(verb.commands, COMMANDS);
    assert_int_equal(after.rounds - before.rounds, 2); /* the call that held it up, and the round */
    assert_int_equal(s->commands[1].status, 200);
    for (size_t i = 0; i < COMMANDS; i++)
        rp_buf_done(&s->commands[i].answer);
}

static int fail_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    const int *code = ctx;
    (void)tx;
    return *code < 0 ? rp_error_set(e, *code, "as told") : 0;
}

/* A function that refuses says nothing about the database; one that could not write does, until the
 * next that could. */
static void what_a_call_says_about_the_database_is_kept(void **state)
{
    static const struct {
        int code, kept;
    } cases[] = { { RP_EINVAL, 0 }, { RP_EFULL, RP_EFULL }, { RP_EINVAL, RP_EFULL }, { 0, 0 } };
    struct scene *s = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = cases[i].code;
        assert_int_equal(rp_writers_call(s->writers, fail_tx, &code, &err), cases[i].code);
        assert_int_equal(last_code(s), cases[i].kept);
    }
}

static void writers_without_a_database_do_not_start(void **state)
{
    struct rp_writers_options options = {
        .url = "postgres://127.0.0.1:1/nobody", .n = 2, .first_lane = 3, .queue_max = 100
    };
    struct rp_writers *writers = NULL;
    (void)state;
    assert_int_equal(rp_writers_start(&options, &writers, &err), RP_EUNAVAILABLE);
    assert_null(writers);
    assert_non_null(strstr(err.text, "writer 0"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(when_the_database_cannot_all_are_told_and_none_is_tried_alone),
        TEST(what_may_be_one_commands_fault_is_tried_one_by_one),
        TEST(a_key_beside_commands_without_one_is_of_the_same_round),
        TEST(what_a_call_says_about_the_database_is_kept),
        cmocka_unit_test(writers_without_a_database_do_not_start),
    };
    return cmocka_run_group_tests_name("rounds that fail", tests, NULL, NULL);
}
