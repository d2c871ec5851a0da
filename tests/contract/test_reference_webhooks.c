/* SPDX-License-Identifier: Apache-2.0 */
/* References counted by a user's server: only its 200 with {"references": N} is an answer. The server is a real socket on
 * this machine. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "core/check/references.h"
#include "core/check/waits.h"
#include "lib/ask.h"
#include "lib/hook_peer.h"
#include "sweep_steps.h"

#define HOUR       RP_HOUR_MS
#define OK(body)   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" LONG(body)
#define LONG(body) "Connection: close\r\n\r\n" body

/* A server that counts: what it says of each key. */
struct counter {
    struct hook_peer peer;
    struct rp_reference reference;
    struct rp_config config;
    const char *of_k, *of_others; /* whole answers */
    int64_t takes_ms;             /* by the fake clock, each time */
    char keys[64][80];            /* asked about */
    int n_keys;
    struct rp_clock clock;
    int64_t ahead_ms; /* of the boot clock; atomic */
    struct rp_waits *waits;
    int left_alone, answers; /* how often somebody was told so */
};

static const char none[] = "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{\"references\": 0}\n";
static const char two[] = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"references\":2}";
static const char oh[] = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";

static const char *count(void *ctx, const char *request, const char *body)
{
    struct counter *c = ctx;
    char *key = c->keys[c->n_keys++ % 64];
    (void)request;
    if (sscanf(body, "{\"store\":\"main\",\"key\":\"%79[^\"]\"}", key) != 1) return oh;
    __atomic_add_fetch(&c->ahead_ms, c->takes_ms, __ATOMIC_RELAXED);
    return strcmp(key, "k") == 0 ? c->of_k : c->of_others;
}

static int64_t boot_now(void *ctx)
{
    return rp_time_boot_ms() + __atomic_load_n(&((struct counter *)ctx)->ahead_ms, __ATOMIC_RELAXED);
}

static int64_t now(void *ctx)
{
    (void)ctx;
    return rp_clock_wall_ms(NULL);
}

static void told(void *ctx, const struct rp_whom *whom, int64_t left_ms, const struct rp_error *why)
{
    struct counter *c = ctx;
    assert_string_equal(whom->kind, "webhook");
    assert_string_equal(whom->name, "main[0]");
    assert_true((left_ms > 0) == (why != NULL));
    c->left_alone += why != NULL;
    c->answers += why == NULL;
}

static void counter_make(struct world *w, struct counter *c)
{
    *c = (struct counter){ .of_k = none, .of_others = none, .clock = { .now_ms = now, .boot_ms = boot_now, .ctx = c } };
    hook_peer_start(&c->peer, count, c);
    c->reference = (struct rp_reference){ .webhook = c->peer.url, .secret = "hush", .secret_old = "" };
    c->config = (struct rp_config){ .outbound_allow = HOOK_PEER_NETWORK };
    w->config.referenced_by = &c->reference;
    w->config.n_referenced_by = 1;
    ok(rp_references_new(&c->config, &w->config, &w->store.references, &err));
    c->waits = rp_waits_new(&c->clock);
    assert_non_null(c->waits);
    rp_waits_tell(c->waits, told, c);
    rp_references_use(w->store.references, c->waits);
}

static void counter_drop(struct world *w, struct counter *c)
{
    rp_references_free(w->store.references);
    w->store.references = NULL;
    rp_waits_free(c->waits);
    hook_peer_stop(&c->peer);
}

static struct rp_mark_answer mark_unreferenced(struct world *w, const char *key)
{
    struct rp_mark_request q = { .key = key, .grace_ms = 0, .at_ms = -1, .reason = "", .if_unreferenced = true };
    struct rp_mark_answer answer;
    ok(rp_mark_many(w->catalog, &w->store, &q, 1, "tester", false, &answer, &err));
    return answer;
}

static void put_guarded(struct world *w, const char *key)
{
    world_put(w, key, "x");
    assert_int_equal(mark_unreferenced(w, key).what, RP_MARK_CREATED);
}

static void test_M6_a_server_counts_references_before_a_mark_and_before_its_purge(void **state)
{
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    world_put(w, "other", "x");
    c.of_others = two;
    struct rp_mark_answer a = mark_unreferenced(w, "other");
    assert_int_equal(a.error.code, RP_EREFERENCED);
    assert_int_equal(a.references, 2);
    assert_non_null(strstr(a.error.text, "is still referenced by 2 rows (webhook referenced_by[0])"));
    assert_non_null(strstr(c.peer.request, "\r\nReprieve-Event: references\r\n"));
    assert_non_null(strstr(c.peer.request, "\r\nwebhook-signature: v1,"));
    put_guarded(w, "k");
    c.of_k = two;
    expect_purged(w, 0);
    assert_string_equal(world_newest(w, "k").note, "still referenced by 2 rows (webhook referenced_by[0])");
    c.of_k = none;
    world_pass(w, 2 * HOUR);
    expect_purged(w, 1);
    assert_false(world_exists(w, "k"));
    counter_drop(w, &c);
}

static void test_M6_only_200_and_a_number_is_an_answer(void **state)
{
    static const char *const answers[] = {
        OK("{\"references\": -1}"),
        OK("{\"references\": 0.0}"),
        OK("{\"references\": 1e0}"),
        OK("{\"references\": \"0\"}"),
        OK("{\"references\": null}"),
        OK("{\"references\": false}"),
        OK("{\"references\": [0]}"),
        OK("{\"references\": 99999999999999999999}"),
        OK("{\"references\": 0"),
        OK("{\"references\": 0} x"),
        OK("{\"references\": 1, \"references\": 0}"),
        OK("{\"reference\": 0}"),
        OK("{\"References\": 0}"),
        OK("{\"a\": {\"references\": 0}}"),
        OK("[{\"references\": 0}]"),
        OK("{}"),
        OK("0"),
        OK("null"),
        OK("\"references\""),
        OK(""),
        OK("<html>{\"references\": 0}</html>"),
        "HTTP/1.1 201 Created\r\n" LONG("{\"references\": 0}"),
        "HTTP/1.1 202 Accepted\r\n" LONG("{\"references\": 0}"),
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:9/\r\n" LONG("{\"references\": 0}"),
        "HTTP/1.1 404 No\r\n" LONG("{\"references\": 0}"),
        "HTTP/1.1 500 Oh\r\n" LONG("{\"references\": 0}"),
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{\"references\": 0}",
        "nonsense",
        NULL,
    };
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    put_guarded(w, "k");
    world_put(w, "other", "x");
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        /* the server closes, whatever it says, as the bytes of an answer may have no other end */
        c.of_k = c.of_others = answers[i];
        expect_nothing_purged(w, "references of store 'main' in webhook referenced_by[0]: ");
        assert_int_equal(world_newest(w, "k").state, RP_MARKED);
        assert_int_equal(world_newest(w, "k").attempts, 0);
        assert_int_equal(mark_unreferenced(w, "other").error.code, RP_EUNAVAILABLE);
        world_pass(w, 2 * HOUR);
        __atomic_add_fetch(&c.ahead_ms, 2 * HOUR, __ATOMIC_RELAXED); /* it may have been left alone */
    }
    assert_true(world_exists(w, "k"));
    c.of_k = none;
    expect_purged(w, 1);
    counter_drop(w, &c);
}

static void test_M6_an_answer_without_an_end_is_none(void **state)
{
    struct world *w = *state;
    struct counter c;
    char flood[4096];
    counter_make(w, &c);
    put_guarded(w, "k");
    int n = snprintf(flood, sizeof flood, "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n{\"references\": 0}");
    memset(flood + n, ' ', 2983);
    flood[n + 2983] = 0;
    c.of_k = flood;
    expect_nothing_purged(w, "its answer is too long");
    assert_true(world_exists(w, "k"));
    counter_drop(w, &c);
}

static void test_M6_a_key_that_fails_does_not_keep_the_others(void **state)
{
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    put_guarded(w, "a");
    put_guarded(w, "k");
    put_guarded(w, "z");
    c.of_k = oh;
    struct rp_sweep_result *r = world_sweep(w);
    assert_int_equal(r->run.figures.purged, 2);
    assert_true(world_exists(w, "k"));
    assert_non_null(strstr(world_newest(w, "k").note, "webhook: answered with status 500"));
    assert_int_equal(world_newest(w, "k").attempts, 0);
    assert_int_equal(c.left_alone, 0);
    counter_drop(w, &c);
}

static void test_M6_many_keys_are_asked_on_one_connection(void **state)
{
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    for (int i = 0; i < 50; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        put_guarded(w, key);
    }
    int before = c.peer.connections;
    expect_purged(w, 50);
    assert_int_equal(c.peer.connections - before, 1);
    counter_drop(w, &c);
}

static void test_M6_a_server_of_our_own_network_is_not_asked_unless_it_is_allowed(void **state)
{
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    put_guarded(w, "k");
    int before = c.peer.connections;
    rp_references_allow(w->store.references, "10.0.0.0/8");
    expect_nothing_purged(w, "outbound: { allow: [\"127.0.0.0/8\"] }");
    assert_int_equal(c.peer.connections, before);
    assert_true(world_exists(w, "k"));
    rp_references_allow(w->store.references, HOOK_PEER_NETWORK);
    world_pass(w, 2 * HOUR);
    expect_purged(w, 1);
    counter_drop(w, &c);
}

/* ---- a server that does not answer ---- */

static void test_M12_a_server_that_fails_is_not_asked_for_every_key(void **state)
{
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        put_guarded(w, key);
    }
    int before = c.n_keys;
    c.of_others = oh;
    expect_nothing_purged(w, "webhook: answered with status 500");
    assert_int_equal(c.n_keys - before, 3);
    assert_int_equal(c.left_alone, 1);
    world_pass(w, 2 * HOUR);
    expect_nothing_purged(w, "webhook 'main[0]' is left alone for now");
    assert_int_equal(c.n_keys - before, 3);
    c.of_others = none;
    world_pass(w, 2 * HOUR);
    __atomic_add_fetch(&c.ahead_ms, HOUR, __ATOMIC_RELAXED);
    expect_purged(w, 20);
    assert_int_equal(c.answers, 1);
    counter_drop(w, &c);
}

static void test_M12_a_server_that_hangs_is_given_up_and_left_alone(void **state)
{
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    put_guarded(w, "k");
    put_guarded(w, "other");
    int before = c.n_keys;
    c.of_k = c.of_others = "";
    int64_t began_ms = rp_time_boot_ms();
    expect_nothing_purged(w, "references of store 'main' in webhook referenced_by[0]");
    assert_true(rp_time_boot_ms() - began_ms < 9 * RP_SECOND_MS);
    assert_int_equal(c.n_keys - before, 1);
    assert_int_equal(c.left_alone, 1);
    assert_true(rp_references_left_alone_ms(w->store.references, NULL) > 40 * RP_SECOND_MS);
    put_due(w, "plain"); /* it has to be counted as well */
    expect_nothing_purged(w, "is left alone for now");
    c.of_k = c.of_others = none;
    assert_int_equal(mark_unreferenced(w, "k").what, RP_MARK_EXTENDED); /* a person is answered */
    assert_int_equal(rp_references_left_alone_ms(w->store.references, NULL), 0);
    world_pass(w, 2 * HOUR);
    expect_purged(w, 3);
    counter_drop(w, &c);
}

static void test_M12_a_slow_server_takes_ten_seconds_of_a_sweep(void **state)
{
    struct world *w = *state;
    struct counter c;
    counter_make(w, &c);
    for (int i = 0; i < 10; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", i);
        put_guarded(w, key);
    }
    int before = c.n_keys;
    c.takes_ms = 4 * RP_SECOND_MS;
    struct rp_sweep_result *r = world_sweep(w);
    assert_int_equal(c.n_keys - before, 3);
    assert_int_equal(r->run.figures.purged, 3); /* what was answered counts */
    assert_int_equal(c.left_alone, 1);
    c.takes_ms = RP_SECOND_MS / 2; /* slow, but no longer so slow that it is left alone */
    __atomic_add_fetch(&c.ahead_ms, HOUR, __ATOMIC_RELAXED);
    world_pass(w, 2 * HOUR);
    expect_purged(w, 7);
    assert_int_equal(c.left_alone, 1);
    counter_drop(w, &c);
}

/* ---- two servers ---- */

struct two {
    struct counter first, second;
    struct rp_reference references[2];
    struct rp_waits *waits;
    struct rp_references *of_store;
};

static void two_make(struct world *w, struct two *t)
{
    struct counter *of[] = { &t->first, &t->second };
    for (size_t i = 0; i < 2; i++) {
        *of[i] = (struct counter){ .of_k = none, .of_others = none };
        hook_peer_start(&of[i]->peer, count, of[i]);
        t->references[i] = (struct rp_reference){ .webhook = of[i]->peer.url, .secret = "hush", .secret_old = "" };
    }
    t->first.config = (struct rp_config){ .outbound_allow = HOOK_PEER_NETWORK };
    struct rp_store_config store = w->config;
    store.referenced_by = t->references;
    store.n_referenced_by = 2;
    ok(rp_references_new(&t->first.config, &store, &t->of_store, &err));
    t->waits = rp_waits_new(&rp_clock_host);
    assert_non_null(t->waits);
    rp_references_use(t->of_store, t->waits);
}

static void two_drop(struct two *t)
{
    rp_references_free(t->of_store);
    rp_waits_free(t->waits);
    hook_peer_stop(&t->first.peer);
    hook_peer_stop(&t->second.peer);
}

static void test_M6_what_one_server_names_is_referenced_whatever_another_says(void **state)
{
    const char *const keys[] = { "k", "other" };
    struct rp_referenced found[2];
    struct two t;
    two_make(*state, &t);
    t.first.of_k = two;
    t.second.of_k = t.second.of_others = oh;
    ok(rp_references_count(t.of_store, keys, 2, found, &err));
    assert_int_equal(found[0].rows, 2);
    assert_string_equal(found[0].first, "webhook referenced_by[0]");
    assert_int_equal(found[1].rows, -1);
    assert_int_equal(t.second.n_keys, 1); /* it is not asked about what is known to be used */
    two_drop(&t);
}

/* Of a key that is not known the text names the place, if there is one. */
static void test_M6_where_several_servers_fail_the_text_says_so(void **state)
{
    const char *const keys[] = { "k", "other" };
    struct rp_referenced found[2];
    struct two t;
    two_make(*state, &t);
    t.second.of_k = oh;
    ok(rp_references_count(t.of_store, keys, 2, found, &err));
    assert_non_null(strstr(err.text, "references of store 'main' in webhook referenced_by[1]: "));
    t.first.of_others = oh;
    assert_int_equal(rp_references_count(t.of_store, keys, 2, found, &err), RP_EUNAVAILABLE);
    assert_non_null(strstr(err.text, "in one of its places, such as webhook referenced_by[0]: "));
    two_drop(&t);
}

static void test_M12_the_reason_for_the_longest_wait_is_told(void **state)
{
    const char *const keys[] = { "k", "1", "2", "3" };
    struct rp_referenced found[4];
    struct two t;
    two_make(*state, &t);
    t.first.of_others = oh;
    ok(rp_references_count(t.of_store, keys, 4, found, &err));
    t.second.of_k = "no HTTP\r\n\r\n";
    (void)rp_references_count(t.of_store, keys, 4, found, &err); /* the first one fails for the second time */
    assert_true(rp_references_left_alone_ms(t.of_store, &err) > 5 * RP_SECOND_MS);
    assert_non_null(strstr(err.text, "webhook 'main[0]' is left alone"));
    two_drop(&t);
}

/* clang-format off */
int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_M6_a_server_counts_references_before_a_mark_and_before_its_purge),
        BOTH(test_M6_only_200_and_a_number_is_an_answer),
        ON(0, "sqlite, memory", test_M6_an_answer_without_an_end_is_none),
        BOTH(test_M6_a_key_that_fails_does_not_keep_the_others),
        ON(0, "sqlite, memory", test_M6_many_keys_are_asked_on_one_connection),
        ON(0, "sqlite, memory", test_M6_a_server_of_our_own_network_is_not_asked_unless_it_is_allowed),
        ON(0, "sqlite, memory", test_M6_what_one_server_names_is_referenced_whatever_another_says),
        ON(0, "sqlite, memory", test_M6_where_several_servers_fail_the_text_says_so),
        ON(0, "sqlite, memory", test_M12_the_reason_for_the_longest_wait_is_told),
        ON(0, "sqlite, memory", test_M12_a_server_that_fails_is_not_asked_for_every_key),
        ON(0, "sqlite, memory", test_M12_a_server_that_hangs_is_given_up_and_left_alone),
        ON(0, "sqlite, memory", test_M12_a_slow_server_takes_ten_seconds_of_a_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
