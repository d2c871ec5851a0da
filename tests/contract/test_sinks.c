/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks as readers of the feed (daemon/sinks/sinks.h): what they are told, in which order, after
 * failures, and by which of two nodes. The receivers are functions of the test. On both engines.
 * Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"
#include "catalog/audit/feed.h"
#include "catalog/audit/segment.h"
#include "catalog/writer/writer.h"
#include "daemon/sinks/sinks.h"
#include "lib/dbs.h"

#define LANE        3
#define PATIENCE_MS 20000
#define CALLS_MAX   4000
#define NODES       2
#define LEASE_MS    900

static struct rp_error err;

static void check(int r, int line)
{
    if (r < 0) fprintf(stderr, "line %d: %s\n", line, err.text);
    assert_int_equal(r, 0);
}
#define ok(r) check((r), __LINE__)

/* ---- receivers: a.example and b.example ---- */

struct call {
    char id[64], event[40];
    int number; /* of the change */
    int64_t at_ms;
    long answer;
};

struct receiver {
    struct call calls[CALLS_MAX];
    size_t n;
    long status;      /* what it answers; 0: no connection */
    int refuses;      /* this number of a change, with 422 */
    int64_t retry_ms; /* with every answer that is none of success */
    bool shut;        /* calls wait */
    int inside, most; /* calls under way, and how many there were at most */
};

static struct receiver receivers[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

static long answer_of(const struct receiver *r, int number)
{
    return r->refuses != 0 && number == r->refuses ? 422 : r->status;
}

static int receive(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *why)
{
    struct receiver *r = &receivers[strstr(call->url, "//b.") != NULL];
    const char *number = strstr(call->body, "\"number\":");
    pthread_mutex_lock(&lock);
    r->inside++;
    if (r->inside > r->most) r->most = r->inside;
    pthread_cond_broadcast(&changed);
    while (r->shut)
        pthread_cond_wait(&changed, &lock);
    r->inside--;
    struct call *c = &r->calls[r->n < CALLS_MAX ? r->n++ : CALLS_MAX - 1];
    *c = (struct call){ .number = number != NULL ? atoi(number + 9) : -1, .at_ms = rp_time_boot_ms() };
    snprintf(c->id, sizeof c->id, "%s", call->id);
    snprintf(c->event, sizeof c->event, "%s", call->event);
    c->answer = answer_of(r, c->number);
    *out = (struct rp_hook_answer){ .status = c->answer, .retry_after_ms = r->retry_ms > 0 ? r->retry_ms : -1 };
    long status = c->answer;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (status >= 200 && status < 300) return 0;
    return rp_error_set(why, status == 0 || status >= 500 || status == 429 ? RP_EUNAVAILABLE : RP_EDENIED,
                        "answered %ld", status);
}

static void set_status(struct receiver *r, long status)
{
    pthread_mutex_lock(&lock);
    r->status = status;
    pthread_mutex_unlock(&lock);
}

static void set_shut(struct receiver *r, bool shut)
{
    pthread_mutex_lock(&lock);
    r->shut = shut;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static size_t taken(const struct receiver *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->calls[i].answer == 204;
    return n;
}

/* Until it has taken so many. */
static void wait_for_taken(struct receiver *r, size_t n)
{
    struct timespec until = rp_wait_until(PATIENCE_MS);
    pthread_mutex_lock(&lock);
    while (taken(r) < n && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    size_t got = taken(r);
    pthread_mutex_unlock(&lock);
    if (got < n) fail_msg("%zu of %zu were taken", got, n);
}

static void wait_for_calls(struct receiver *r, size_t n)
{
    struct timespec until = rp_wait_until(PATIENCE_MS);
    pthread_mutex_lock(&lock);
    while (r->n < n && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    size_t got = r->n;
    pthread_mutex_unlock(&lock);
    if (got < n) fail_msg("%zu of %zu calls", got, n);
}

static size_t count_from(const struct receiver *r, int first, int last)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->calls[i].answer == 204 && r->calls[i].number >= first && r->calls[i].number <= last;
    return n;
}

/* Until it has taken that one. */
static void wait_for_number(struct receiver *r, int number)
{
    struct timespec until = rp_wait_until(PATIENCE_MS);
    pthread_mutex_lock(&lock);
    while (count_from(r, number, number) == 0 && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    size_t got = count_from(r, number, number);
    pthread_mutex_unlock(&lock);
    if (got == 0) fail_msg("%d did not come", number);
}

static void wait_until_inside(struct receiver *r, int n)
{
    struct timespec until = rp_wait_until(PATIENCE_MS);
    pthread_mutex_lock(&lock);
    while (r->inside < n && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        continue;
    int got = r->inside;
    pthread_mutex_unlock(&lock);
    assert_true(got >= n);
}

/* K1: none is left out, and none comes before the one before it. Repetitions are allowed, and have
 * the id that the first one had. */
static void expect_in_order(const struct receiver *r, int first, int last)
{
    int seen = first - 1;
    for (size_t i = 0; i < r->n; i++) {
        if (r->calls[i].answer != 204) continue;
        int number = r->calls[i].number;
        if (number > seen + 1) fail_msg("%d after %d", number, seen);
        if (number == seen + 1) seen = number;
        for (size_t j = 0; j < i; j++)
            assert_int_equal(strcmp(r->calls[i].id, r->calls[j].id) == 0, r->calls[j].number == number);
    }
    assert_int_equal(seen, last);
}

/* ---- nodes on one catalog ---- */

struct node {
    struct rp_writers *writers;
    struct rp_feed *feed;
    struct rp_sinks *sinks;
};

struct stage {
    struct dbs dbs;
    struct rp_catalog *catalog;
    struct node nodes[NODES];
    struct rp_sink_config sinks[2];
    struct rp_config config;
    int next; /* number of the next change */
};

static int set_up(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    struct rp_catalog_options options = { .lane = LANE };
    memset(receivers, 0, sizeof receivers);
    receivers[0].status = receivers[1].status = 204;
    dbs_make(&s->dbs, (enum dbs_kind)(uintptr_t)*state, NULL);
    ok(rp_catalog_open(s->dbs.url, &options, &s->catalog, &err));
    s->sinks[0] = (struct rp_sink_config){ .type = "webhook",
                                           .name = "a",
                                           .url = "http://a.example/",
                                           .secret = "",
                                           .secret_old = "",
                                           .events = "file.* mark.purged" };
    s->sinks[1] = s->sinks[0];
    s->sinks[1].name = "b";
    s->sinks[1].url = "http://b.example/";
    s->config = (struct rp_config){ .sinks = s->sinks, .n_sinks = 1, .processor_url = "" };
    s->next = 1;
    *state = s;
    return 0;
}

static void start_node(struct stage *s, int i)
{
    static const char *const names[NODES] = { "one", "two" };
    struct node *n = &s->nodes[i];
    const struct rp_writers_options writers = { .url = s->dbs.url, .n = 1, .first_lane = 100 + i, .queue_max = 16 };
    const struct rp_feed_options feed = { .catalog_url = s->dbs.url };
    ok(rp_writers_start(&writers, &n->writers, &err));
    ok(rp_feed_start(&feed, &n->feed, &err));
    const struct rp_sinks_options sinks = { .config = &s->config,
                                            .feed = n->feed,
                                            .writers = n->writers,
                                            .node = names[i],
                                            .send = receive,
                                            .lease_ms = LEASE_MS,
                                            .refusals = 3 };
    ok(rp_sinks_start(&sinks, &n->sinks, &err));
}

static void stop_node(struct stage *s, int i)
{
    struct node *n = &s->nodes[i];
    rp_sinks_stop(n->sinks);
    if (n->feed != NULL) rp_feed_stop(n->feed);
    if (n->writers != NULL) rp_writers_stop(n->writers);
    *n = (struct node){ 0 };
}

static int tear_down(void **state)
{
    struct stage *s = *state;
    set_shut(&receivers[0], false);
    for (int i = 0; i < NODES; i++)
        stop_node(s, i);
    rp_catalog_close(s->catalog);
    dbs_drop(&s->dbs);
    free(s);
    return 0;
}

struct change {
    const char *event;
    int first, n;
    int64_t age_ms;
};

static int change_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    const struct change *c = ctx;
    int r = 0;
    for (int i = 0; r == 0 && i < c->n; i++) {
        struct rp_audit_entry entry = { .event = c->event,
                                        .actor = "tester",
                                        .details = json_pack("{s:i,s:s}", "number", c->first + i, "name", "a \"b\"") };
        r = rp_tx_audit(tx, &entry, why);
    }
    return r;
}

static void commit(struct stage *s, const char *event, int n)
{
    struct change c = { .event = event, .first = s->next, .n = n };
    ok(rp_catalog_transact(s->catalog, change_tx, &c, &err));
    for (int i = 0; i < NODES; i++)
        if (s->nodes[i].feed != NULL) rp_feed_poke(s->nodes[i].feed);
    s->next += n;
}

static struct rp_feed_lag lag(struct stage *s, const char *reader)
{
    struct rp_feed_lag out = { 0 };
    ok(rp_feed_lag(s->catalog->db, reader, &out, &err));
    return out;
}

/* ---- one node ---- */

static void each_event_that_it_wants_comes_once_and_in_order(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    for (int i = 0; i < 20; i++) {
        commit(s, i % 2 == 0 ? "file.deleted" : "mark.purged", 30);
        struct change noise = { .event = "mark.created", .first = 9000, .n = 20 };
        ok(rp_catalog_transact(s->catalog, change_tx, &noise, &err));
    }
    wait_for_taken(&receivers[0], 600);
    stop_node(s, 0);
    assert_int_equal(receivers[0].n, 600);
    expect_in_order(&receivers[0], 1, 600);
}

static void one_that_is_down_catches_up_and_holds_up_no_other(void **state)
{
    struct stage *s = *state;
    s->config.n_sinks = 2;
    set_status(&receivers[0], 503);
    start_node(s, 0);
    commit(s, "file.deleted", 400);
    wait_for_taken(&receivers[1], 400);
    expect_in_order(&receivers[1], 1, 400);
    assert_true(lag(s, "sink:a").rows >= 400);
    assert_true(lag(s, "sink:a").oldest_at_ms > 0);
    stop_node(s, 0); /* it is down for longer than this daemon lives */
    start_node(s, 0);
    commit(s, "file.deleted", 100);
    wait_for_taken(&receivers[1], 500);
    assert_int_equal(taken(&receivers[0]), 0);
    set_status(&receivers[0], 204);
    wait_for_taken(&receivers[0], 500);
    stop_node(s, 0);
    expect_in_order(&receivers[0], 1, 500);
    assert_int_equal(lag(s, "sink:a").rows, lag(s, "sink:b").rows);
}

static void what_was_not_saved_comes_again_under_its_id(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    ok(rp_db_script(s->dbs.db, "ALTER TABLE feed_cursor RENAME TO hidden;", &err));
    commit(s, "file.deleted", 10);
    wait_for_taken(&receivers[0], 20); /* told, not saved, told */
    stop_node(s, 0);
    ok(rp_db_script(s->dbs.db, "ALTER TABLE hidden RENAME TO feed_cursor;", &err));
    size_t had = receivers[0].n;
    start_node(s, 0);
    wait_for_taken(&receivers[0], had + 10);
    stop_node(s, 0);
    expect_in_order(&receivers[0], 1, 10);
}

/* What was told before a failure does not come again for it. */
static void a_failure_repeats_only_what_was_not_taken(void **state)
{
    struct stage *s = *state;
    receivers[0].refuses = 50; /* in the middle of a batch */
    start_node(s, 0);
    commit(s, "file.deleted", 100);
    wait_for_taken(&receivers[0], 99);
    stop_node(s, 0);
    assert_int_equal(receivers[0].n, 99 + 3);
    for (size_t i = 0; i < receivers[0].n; i++) {
        int expected = i < 50 ? (int)i + 1 : i < 52 ? 50 : (int)i - 1;
        assert_int_equal(receivers[0].calls[i].number, expected);
    }
}

static void an_answer_says_when_to_come_back(void **state)
{
    struct stage *s = *state;
    receivers[0].retry_ms = 1200;
    set_status(&receivers[0], 429);
    start_node(s, 0);
    commit(s, "file.deleted", 1);
    wait_for_calls(&receivers[0], 1);
    set_status(&receivers[0], 204);
    wait_for_taken(&receivers[0], 1);
    assert_true(receivers[0].calls[1].at_ms - receivers[0].calls[0].at_ms >= 1200);
}

/* Where nothing is wanted nothing looks late, and nothing is held back from being sealed. */
static void what_it_does_not_want_is_no_lag(void **state)
{
    struct stage *s = *state;
    struct rp_segment_reader reader;
    const struct timespec moment = { .tv_nsec = 50000000 };
    start_node(s, 0);
    commit(s, "mark.created", 20);
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS;
    do {
        nanosleep(&moment, NULL);
        ok(rp_segment_reader(s->catalog->db, LANE, &reader, &err));
    } while (reader.seq < 20 && rp_time_boot_ms() < end_ms);
    assert_string_equal(reader.name, "sink:a");
    assert_true(reader.seq >= 20);
    assert_int_equal(receivers[0].n, 0);
}

/* ---- two nodes ---- */

static void one_of_two_nodes_delivers(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    start_node(s, 1);
    for (int i = 0; i < 10; i++)
        commit(s, "file.deleted", 30);
    wait_for_taken(&receivers[0], 300);
    stop_node(s, 0); /* it gives its lease back */
    commit(s, "file.deleted", 100);
    wait_for_taken(&receivers[0], 400);
    stop_node(s, 1);
    assert_int_equal(receivers[0].n, 400);
    assert_int_equal(receivers[0].most, 1);
    expect_in_order(&receivers[0], 1, 400);
}

static void a_node_that_hangs_is_taken_over(void **state)
{
    struct stage *s = *state;
    start_node(s, 0);
    commit(s, "file.deleted", 10);
    wait_for_taken(&receivers[0], 10);
    set_shut(&receivers[0], true);
    start_node(s, 1);
    commit(s, "file.deleted", 10);
    wait_until_inside(&receivers[0], 2); /* the second one tells the same event */
    set_shut(&receivers[0], false);
    commit(s, "file.deleted", 10);
    wait_for_number(&receivers[0], 30);
    stop_node(s, 1); /* the first one comes to its turn again, and goes on from there */
    commit(s, "file.deleted", 10);
    wait_for_number(&receivers[0], 40);
    stop_node(s, 0);
    expect_in_order(&receivers[0], 1, 40);
    assert_int_equal(count_from(&receivers[0], 21, 40), 20); /* nobody told what was not its turn to tell */
}

struct taking {
    const char *holder;
    int64_t fence; /* of a renewal; out: of a take */
    int64_t lease_ms;
    bool renew, held;
};

static int taking_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    struct taking *t = ctx;
    return t->renew ? rp_feed_lease_renew(tx, "sink:a", t->fence, t->lease_ms, &t->held, why)
                    : rp_feed_lease_take(tx, "sink:a", t->holder, t->lease_ms, &t->fence, why);
}

static int64_t take(struct stage *s, const char *holder)
{
    struct taking t = { .holder = holder, .lease_ms = RP_HOUR_MS };
    ok(rp_catalog_transact(s->catalog, taking_tx, &t, &err));
    return t.fence;
}

static bool renew(struct stage *s, int64_t fence, int64_t lease_ms)
{
    struct taking t = { .renew = true, .fence = fence, .lease_ms = lease_ms };
    ok(rp_catalog_transact(s->catalog, taking_tx, &t, &err));
    return t.held;
}

static void a_lease_is_one_nodes_until_it_is_over(void **state)
{
    struct stage *s = *state;
    assert_int_equal(take(s, "one"), 1);
    assert_int_equal(take(s, "two"), 0);
    assert_true(renew(s, 1, RP_HOUR_MS));
    assert_int_equal(take(s, "one"), 2); /* an earlier process of the same node */
    assert_false(renew(s, 1, RP_HOUR_MS));
    assert_true(renew(s, 2, 0)); /* given back */
    assert_int_equal(take(s, "two"), 3);
    assert_false(renew(s, 2, RP_HOUR_MS));
}

/* ---- one that nobody configures any more ---- */

struct forgetting {
    const char *reader;
    int64_t before_ms;
    bool forgotten;
};

static int forget_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    struct forgetting *f = ctx;
    return rp_feed_reader_forget(tx, f->reader, tx->db_ms + f->before_ms, &f->forgotten, why);
}

static bool forget(struct stage *s, int64_t before_ms)
{
    struct forgetting f = { .reader = "sink:a", .before_ms = before_ms };
    ok(rp_catalog_transact(s->catalog, forget_tx, &f, &err));
    return f.forgotten;
}

static void it_is_forgotten_once_no_node_works_for_it(void **state)
{
    struct stage *s = *state;
    struct rp_segment_reader reader;
    start_node(s, 0);
    commit(s, "file.deleted", 10);
    wait_for_taken(&receivers[0], 10);
    assert_false(forget(s, 0)); /* somebody does */
    stop_node(s, 0);
    assert_false(forget(s, -RP_MINUTE_MS)); /* did a moment ago */
    assert_true(lag(s, "sink:a").begun);
    assert_true(forget(s, RP_MINUTE_MS));
    assert_false(lag(s, "sink:a").begun);
    ok(rp_segment_reader(s->catalog->db, LANE, &reader, &err));
    assert_string_equal(reader.name, "");
    commit(s, "file.deleted", 10);
    start_node(s, 0); /* configured again: from now on */
    commit(s, "file.deleted", 5);
    wait_for_taken(&receivers[0], 15);
    assert_int_equal(receivers[0].calls[10].number, 21);
}

#define ON(kind, test)                                                                                                 \
    {                                                                                                                  \
        .name = #test " (" #kind ")", .test_func = (test), .setup_func = set_up, .teardown_func = tear_down,           \
        .initial_state = (void *)(uintptr_t)(kind)                                                                     \
    }
#define BOTH(test) ON(DBS_SQLITE_FILE, test), ON(DBS_POSTGRES, test)

int main(void)
{
    rp_wait_init(&changed);
    const struct CMUnitTest tests[] = {
        BOTH(each_event_that_it_wants_comes_once_and_in_order),
        BOTH(one_that_is_down_catches_up_and_holds_up_no_other),
        BOTH(what_was_not_saved_comes_again_under_its_id),
        BOTH(a_failure_repeats_only_what_was_not_taken),
        BOTH(an_answer_says_when_to_come_back),
        BOTH(what_it_does_not_want_is_no_lag),
        BOTH(one_of_two_nodes_delivers),
        BOTH(a_node_that_hangs_is_taken_over),
        BOTH(a_lease_is_one_nodes_until_it_is_over),
        BOTH(it_is_forgotten_once_no_node_works_for_it),
    };
    return cmocka_run_group_tests_name("sinks", tests, NULL, NULL);
}
