/* SPDX-License-Identifier: Apache-2.0 */
/* Many calls at once over the wire to S3: from many threads, under a limit and a rate, in streams,
 * and closed in the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "contract/s3_peer.h"

/* ---- many threads ---- */

#define THREADS 8
#define ROUNDS  3
#define CALLS   40

/* The path back as the body; one in seven fails first. */
static bool echo(struct peer *peer, int fd, const struct request *r)
{
    char path[256];
    (void)peer;
    if (sscanf(r->head, "%*s %255s", path) != 1) return false;
    if (r->number % 7 == 3)
        peer_reply(fd, r->number % 2 == 0 ? 500 : 503, "", "");
    else if (r->number % 31 == 5)
        return false; /* closed without a word */
    else
        peer_reply(fd, 200, "", path);
    return true;
}

struct caller {
    struct trial *t;
    int number, wrong;
    pthread_t thread;
};

static int run_round(struct caller *c, int round)
{
    struct s3_call calls[CALLS];
    char keys[CALLS][64], path[80];
    struct rp_error err = { 0 };
    int wrong = 0;
    for (int i = 0; i < CALLS; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%d/%d/%d", c->number, round, i);
        calls[i] = trial_call("GET", keys[i]);
    }
    wrong += rp_s3_wire_run(c->t->wire, calls, CALLS, &err) != 0;
    for (int i = 0; i < CALLS; i++) {
        (void)snprintf(path, sizeof path, "/bucket/%.63s", keys[i]);
        wrong += calls[i].code != 0 || calls[i].status != 200 || strcmp(rp_buf_text(&calls[i].answer), path) != 0;
        rp_s3_call_done(&calls[i]);
    }
    return wrong;
}

static void *call_often(void *arg)
{
    struct caller *c = arg;
    for (int round = 0; round < ROUNDS; round++)
        c->wrong += run_round(c, round);
    return NULL;
}

static void test_each_call_gets_its_own_answer(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    struct caller callers[THREADS];
    t->peer.answer = echo;
    t->wire_options.patience_ms = 120000;
    trial_open(t);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){ .t = t, .number = i };
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    struct s3_wire_state s = trial_state(t);
    assert_int_equal(s.under_way, 0);
    assert_true(s.requests >= THREADS * ROUNDS * CALLS);
    assert_int_equal(s.requests - s.repeated, THREADS * ROUNDS * CALLS);
    assert_true(t->peer.under_way_max <= S3_LIMIT_MAX);
    trial_close(t);
}

struct single {
    struct trial *t;
    struct s3_call call;
    pthread_t thread;
};

static void *run_single(void *arg)
{
    struct single *s = arg;
    struct rp_error err = { 0 };
    if (rp_s3_wire_run(s->t->wire, &s->call, 1, &err) != 0) abort();
    return NULL;
}

struct crowd {
    atomic_bool single_seen;
    atomic_uint crowd_seen, before_single;
    sem_t entered;
};

/* The crowd is answered slowly until the single one was seen. */
static bool watch_the_order(struct peer *peer, int fd, const struct request *r)
{
    struct crowd *c = peer->ctx;
    if (strstr(r->head, "/single") != NULL) {
        atomic_store(&c->before_single, atomic_load(&c->crowd_seen));
        atomic_store(&c->single_seen, true);
    } else if (atomic_fetch_add(&c->crowd_seen, 1) == 0) {
        sem_wait(&c->entered);
    } else if (!atomic_load(&c->single_seen)) {
        struct timespec pause = { .tv_nsec = 20000000 };
        (void)nanosleep(&pause, NULL);
    }
    peer_reply(fd, 200, "", "");
    return true;
}

static void test_a_crowd_does_not_hold_up_a_single_call(void **state)
{
    (void)state;
    enum { N = 600 };
    static struct s3_call calls[N];
    struct rp_error err = { 0 };
    struct crowd crowd = { .single_seen = false };
    struct trial *t = calloc(1, sizeof *t);
    struct single single = { .t = t, .call = trial_call("GET", "single") };
    assert_int_equal(sem_init(&crowd.entered, 0, 0), 0);
    t->peer.answer = watch_the_order;
    t->peer.ctx = &crowd;
    t->wire_options.patience_ms = 120000;
    trial_open(t);
    for (int i = 0; i < N; i++)
        calls[i] = trial_call("GET", "crowd");
    assert_int_equal(pthread_create(&single.thread, NULL, run_single, &single), 0);
    sem_post(&crowd.entered);
    assert_int_equal(rp_s3_wire_run(t->wire, calls, N, &err), 0);
    pthread_join(single.thread, NULL);
    assert_int_equal(single.call.code, 0);
    assert_true(atomic_load(&crowd.before_single) < N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(calls[i].code, 0);
        rp_s3_call_done(&calls[i]);
    }
    rp_s3_call_done(&single.call);
    sem_destroy(&crowd.entered);
    trial_close(t);
}

/* ---- limit and rate ---- */

/* The first eight are held until they are all there, then refused together. */
static bool refuse_the_first_eight(struct peer *peer, int fd, const struct request *r)
{
    if (r->number >= 8) {
        peer_reply(fd, 200, "", "");
        return true;
    }
    if (!peer_wait_requests(peer, 8)) return false;
    peer_reply(fd, 503, "", "<Error><Code>SlowDown</Code></Error>");
    return true;
}

static void run_many(struct trial *t, size_t n)
{
    struct rp_error err = { 0 };
    struct s3_call *calls = calloc(n, sizeof *calls);
    for (size_t i = 0; i < n; i++)
        calls[i] = trial_call("HEAD", "k");
    assert_int_equal(rp_s3_wire_run(t->wire, calls, n, &err), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(calls[i].code, 0);
        rp_s3_call_done(&calls[i]);
    }
    free(calls);
}

static void test_the_limit_halves_and_grows(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    t->peer.answer = refuse_the_first_eight;
    trial_open(t);
    assert_int_equal(trial_state(t).limit, S3_LIMIT_FIRST);
    run_many(t, 8);
    struct s3_wire_state s = trial_state(t);
    assert_int_equal(t->peer.under_way_max, 8);
    assert_int_equal(s.slowed, 8);
    assert_int_equal(s.repeated, 8);
    assert_int_equal(s.limit, 5); /* halved once, not eight times; then 4 good answers of 8, and 4 of 5 */
    run_many(t, 1);
    assert_int_equal(trial_state(t).limit, 6);
    run_many(t, 3000);
    assert_int_equal(trial_state(t).limit, S3_LIMIT_MAX);
    trial_close(t);
}

static void test_the_rate_is_kept(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    static const struct step ok = { REPLY("200 OK", "0", ""), false };
    t->peer.steps = &ok;
    t->peer.n_steps = 1;
    t->wire_options.requests_per_second = 40;
    trial_open(t);
    int64_t begun_ms = rp_time_boot_ms();
    run_many(t, 50);
    assert_true(rp_time_boot_ms() - begun_ms >= 1000); /* 50 at 40 a second, but for those of the first tenth */
    trial_close(t);
}

/* What waits for its turn has patience too. */
static void test_patience_ends_in_the_queue(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    static const struct step hangs = { NULL, false };
    struct rp_error err = { 0 };
    struct s3_call calls[20];
    t->peer.steps = &hangs;
    t->peer.n_steps = 1;
    t->wire_options.patience_ms = 2000;
    trial_open(t);
    for (int i = 0; i < 20; i++)
        calls[i] = trial_call("PUT", "k");
    assert_int_equal(rp_s3_wire_run(t->wire, calls, 20, &err), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(calls[i].code, calls[i].attempts > 0 ? RP_EUNKNOWN : RP_EUNAVAILABLE);
        assert_string_not_equal(calls[i].note, "");
        rp_s3_call_done(&calls[i]);
    }
    assert_int_equal(peer_requests(&t->peer), 8);
    trial_close(t);
}

/* ---- streams ---- */

struct basin {
    char bytes[4096];
    size_t n;
    int fails_with;
    int64_t first_ms; /* so long does the first write take */
    sem_t *waits_for;
    sem_t *tells;
};

static int sink(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    struct basin *b = ctx;
    if (b->tells != NULL) sem_post(b->tells);
    if (b->waits_for != NULL) sem_wait(b->waits_for);
    struct timespec pause = { .tv_sec = b->first_ms / 1000, .tv_nsec = b->first_ms % 1000 * 1000000 };
    if (b->n == 0) (void)nanosleep(&pause, NULL);
    if (b->fails_with < 0) return rp_error_set(err, b->fails_with, "the basin is full");
    if (n > sizeof b->bytes - b->n) n = sizeof b->bytes - b->n;
    memcpy(b->bytes + b->n, from, n);
    b->n += n;
    return 0;
}

static struct trial *streaming(const struct step *steps, size_t n)
{
    struct trial *t = calloc(1, sizeof *t);
    t->peer.steps = steps;
    t->peer.n_steps = n;
    trial_open(t);
    return t;
}

static void test_a_stream_goes_into_the_sink(void **state)
{
    (void)state;
    static const struct step steps[] = { { REPLY("500 Oh", "3", "bad"), false },
                                         { "", true },
                                         { REPLY("206 Part", "5", "hello"), false },
                                         { REPLY("404 No", "4", "what"), false } };
    struct trial *t = streaming(steps, 4);
    struct basin basin = { .n = 0 };
    struct rp_sink to = { .write = sink, .ctx = &basin };
    struct s3_call call = trial_call("GET", "k");
    struct rp_error err = { 0 };
    char value[8];
    call.to = &to;
    assert_int_equal(rp_s3_wire_stream(t->wire, &call, &err), 0);
    assert_int_equal(call.code, 0);
    assert_int_equal(call.status, 206);
    assert_memory_equal(basin.bytes, "hello", 5);
    assert_int_equal(basin.n, 5);
    assert_int_equal(call.answer.len, 0);
    assert_string_equal(rp_s3_header(&call, "x-test", value, sizeof value), "yes");
    assert_int_equal(rp_s3_wire_stream(t->wire, &call, &err), 0);
    assert_int_equal(call.status, 404); /* of which nothing is the object's */
    assert_int_equal(basin.n, 5);
    assert_string_equal(rp_buf_text(&call.answer), "what");
    assert_int_equal(peer_requests(&t->peer), 4);
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_no_repetition_after_the_first_byte(void **state)
{
    (void)state;
    static const struct step steps[] = { { "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel", true },
                                         { REPLY("200 OK", "5", "hello"), false } };
    struct trial *t = streaming(steps, 2);
    struct basin basin = { .n = 0 };
    struct rp_sink to = { .write = sink, .ctx = &basin };
    struct s3_call call = trial_call("GET", "k");
    struct rp_error err = { 0 };
    call.to = &to;
    assert_int_equal(rp_s3_wire_stream(t->wire, &call, &err), 0);
    assert_int_equal(call.code, RP_EUNAVAILABLE);
    assert_non_null(strstr(call.note, "3 bytes"));
    assert_int_equal(basin.n, 3);
    assert_int_equal(peer_requests(&t->peer), 1);
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_the_sinks_error_is_handed_on(void **state)
{
    (void)state;
    static const struct step ok = { REPLY("200 OK", "5", "hello"), false };
    struct trial *t = streaming(&ok, 1);
    struct basin basin = { .fails_with = RP_EFULL };
    struct rp_sink to = { .write = sink, .ctx = &basin };
    struct s3_call call = trial_call("GET", "k");
    struct rp_error err = { 0 };
    call.to = &to;
    assert_int_equal(rp_s3_wire_stream(t->wire, &call, &err), 0);
    assert_int_equal(call.code, RP_EFULL);
    assert_string_equal(call.note, "the basin is full");
    assert_string_equal(err.text, "the basin is full");
    assert_int_equal(peer_requests(&t->peer), 1);
    rp_s3_call_done(&call);
    trial_close(t);
}

static void *run_stream(void *arg)
{
    struct single *s = arg;
    struct rp_error err = { 0 };
    if (rp_s3_wire_stream(s->t->wire, &s->call, &err) != 0) abort();
    return NULL;
}

static void test_a_slow_sink_holds_nobody_up(void **state)
{
    (void)state;
    enum { SLOW = 12 }; /* more than the limit */
    static const struct step ok = { REPLY("200 OK", "5", "hello"), false };
    struct trial *t = streaming(&ok, 1);
    struct basin basins[SLOW];
    struct rp_sink sinks[SLOW];
    struct single streams[SLOW];
    sem_t go, there;
    assert_int_equal(sem_init(&go, 0, 0) + sem_init(&there, 0, 0), 0);
    for (int i = 0; i < SLOW; i++) {
        basins[i] = (struct basin){ .waits_for = &go, .tells = &there };
        sinks[i] = (struct rp_sink){ .write = sink, .ctx = &basins[i] };
        streams[i] = (struct single){ .t = t, .call = trial_call("GET", "k") };
        streams[i].call.to = &sinks[i];
        assert_int_equal(pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]), 0);
    }
    for (int i = 0; i < SLOW; i++)
        sem_wait(&there);
    run_many(t, 100); /* while all of them stand still */
    for (int i = 0; i < SLOW; i++)
        sem_post(&go);
    for (int i = 0; i < SLOW; i++) {
        pthread_join(streams[i].thread, NULL);
        assert_int_equal(streams[i].call.code, 0);
        assert_memory_equal(basins[i].bytes, "hello", 5);
        rp_s3_call_done(&streams[i].call);
    }
    sem_destroy(&go);
    sem_destroy(&there);
    trial_close(t);
}

/* However long the sink takes, the server was not silent. */
static void test_a_slow_sink_is_not_silence(void **state)
{
    (void)state;
    static char body[600000];
    struct trial *t = calloc(1, sizeof *t);
    static struct step much;
    struct basin basin = { .first_ms = 2500 };
    struct rp_sink to = { .write = sink, .ctx = &basin };
    struct s3_call call = trial_call("GET", "k");
    struct rp_error err = { 0 };
    int head = snprintf(body, sizeof body, "HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n");
    memset(body + head, 'x', 500000);
    much.raw = body;
    t->peer.steps = &much;
    t->peer.n_steps = 1;
    t->wire_options.timeout_ms = 1000;
    t->wire_options.patience_ms = 60000;
    trial_open(t);
    call.to = &to;
    assert_int_equal(rp_s3_wire_stream(t->wire, &call, &err), 0);
    assert_int_equal(call.code, 0);
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_a_silent_stream_ends(void **state)
{
    (void)state;
    static const struct step hangs = { NULL, false };
    struct trial *t = streaming(&hangs, 1);
    struct basin basin = { .n = 0 };
    struct rp_sink to = { .write = sink, .ctx = &basin };
    struct s3_call call = trial_call("GET", "k");
    struct rp_error err = { 0 };
    call.to = &to;
    call.patience_ms = 300;
    assert_int_equal(rp_s3_wire_stream(t->wire, &call, &err), 0);
    assert_int_equal(call.code, RP_EUNAVAILABLE);
    assert_int_equal(call.attempts, 1);
    rp_s3_call_done(&call);
    trial_close(t);
}

/* ---- close ---- */

/* The wire is there and does nothing any more. */
static void expect_no_more(struct trial *t, const struct rp_sink *to)
{
    struct rp_error err = { 0 };
    unsigned before = peer_requests(&t->peer);
    struct s3_call call = trial_call("DELETE", "k"), stream = trial_call("GET", "k");
    call.patience_ms = stream.patience_ms = 600000;
    stream.to = to;
    assert_int_equal(rp_s3_wire_run(t->wire, &call, 1, &err), 0);
    assert_int_equal(rp_s3_wire_stream(t->wire, &stream, &err), 0);
    assert_int_equal(call.code, RP_EUNAVAILABLE);
    assert_int_equal(stream.code, RP_EUNAVAILABLE);
    assert_int_equal(peer_requests(&t->peer), before);
    rp_s3_call_done(&call);
    rp_s3_call_done(&stream);
}

static void expect_end_of_what_is_under_way(bool interrupted)
{
    static const char *const methods[] = { "GET", "PUT", "DELETE", "HEAD", "GET" };
    static const int codes[] = { RP_EUNAVAILABLE, RP_EUNKNOWN, RP_EUNKNOWN, RP_EUNAVAILABLE, RP_EUNAVAILABLE };
    enum { N = sizeof methods / sizeof methods[0] };
    static const struct step hangs = { NULL, false };
    struct trial *t = streaming(&hangs, 1);
    struct basin basin = { .n = 0 };
    struct rp_sink to = { .write = sink, .ctx = &basin };
    struct single callers[N];
    for (int i = 0; i < N; i++) {
        callers[i] = (struct single){ .t = t, .call = trial_call(methods[i], "k") };
        callers[i].call.once = i == 2;
        callers[i].call.to = &to;
        callers[i].call.patience_ms = 600000;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, i == N - 1 ? run_stream : run_single, &callers[i]),
                         0);
    }
    assert_true(peer_wait_requests(&t->peer, N));
    if (interrupted) {
        rp_s3_wire_interrupt(t->wire);
        rp_s3_wire_interrupt(t->wire);
    } else {
        rp_s3_wire_close(t->wire);
        t->wire = NULL;
    }
    for (int i = 0; i < N; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].call.code, codes[i]);
        assert_non_null(strstr(callers[i].call.note, "closed"));
        rp_s3_call_done(&callers[i].call);
    }
    assert_int_equal(peer_requests(&t->peer), N);
    if (interrupted) expect_no_more(t, &to);
    trial_close(t);
}

static void test_closing_ends_what_is_under_way(void **state)
{
    (void)state;
    expect_end_of_what_is_under_way(false);
}

static void test_interrupting_ends_what_is_under_way(void **state)
{
    (void)state;
    expect_end_of_what_is_under_way(true);
}

struct group {
    struct trial *t;
    struct s3_call *calls;
    size_t n;
};

static void *run_group(void *arg)
{
    struct group *g = arg;
    struct rp_error err = { 0 };
    if (rp_s3_wire_run(g->t->wire, g->calls, g->n, &err) != 0) abort();
    return NULL;
}

/* Under way, paused and waiting for their turn, all at once. */
static void test_closing_ends_a_crowd(void **state)
{
    (void)state;
    enum { N = 200 };
    static const struct step steps[] = { { REPLY("503 Oh", "0", ""), false },
                                         { REPLY("503 Oh", "0", ""), false },
                                         { NULL, false } };
    static struct s3_call calls[N];
    struct group group = { .t = streaming(steps, 3), .calls = calls, .n = N };
    pthread_t runner;
    for (int i = 0; i < N; i++) {
        calls[i] = trial_call("GET", "k");
        calls[i].patience_ms = 600000;
    }
    assert_int_equal(pthread_create(&runner, NULL, run_group, &group), 0);
    assert_true(peer_wait_requests(&group.t->peer, 8));
    rp_s3_wire_close(group.t->wire);
    group.t->wire = NULL;
    pthread_join(runner, NULL);
    for (int i = 0; i < N; i++) {
        assert_int_equal(calls[i].code, RP_EUNAVAILABLE);
        rp_s3_call_done(&calls[i]);
    }
    trial_close(group.t);
}

static int alone(void **state)
{
    (void)state;
    return setenv("no_proxy", "*", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_gets_its_own_answer),
        cmocka_unit_test(test_a_crowd_does_not_hold_up_a_single_call),
        cmocka_unit_test(test_the_limit_halves_and_grows),
        cmocka_unit_test(test_the_rate_is_kept),
        cmocka_unit_test(test_patience_ends_in_the_queue),
        cmocka_unit_test(test_a_stream_goes_into_the_sink),
        cmocka_unit_test(test_no_repetition_after_the_first_byte),
        cmocka_unit_test(test_the_sinks_error_is_handed_on),
        cmocka_unit_test(test_a_slow_sink_holds_nobody_up),
        cmocka_unit_test(test_a_slow_sink_is_not_silence),
        cmocka_unit_test(test_a_silent_stream_ends),
        cmocka_unit_test(test_closing_ends_what_is_under_way),
        cmocka_unit_test(test_interrupting_ends_what_is_under_way),
        cmocka_unit_test(test_closing_ends_a_crowd),
    };
    return cmocka_run_group_tests(tests, alone, NULL);
}
