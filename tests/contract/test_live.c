/* SPDX-License-Identifier: Apache-2.0 */
/* Live events, over real connections of the HTTP library: what was committed arrives, once, in the
 * order of its lane, whatever happens to the connection. On both engines. Needs PostgreSQL: run
 * under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/segment.h"
#include "catalog/token.h"
#include "http/live/seal.h"
#include "live_steps.h"

static void expect_numbers(const char *stream, int first, size_t n)
{
    assert_int_equal(event_client_expect_from(stream, first), n);
}

/* As a browser does it: comes back with the last id when a stream ends, until it has heard of `n`
 * numbers, which must follow each other from `first` on. */
static void hear_all(const struct stage *s, const char *query, const char *from, int first, size_t n)
{
    char id[RP_FEED_CURSOR_TEXT];
    int64_t end_ms = rp_time_boot_ms() + PATIENCE_MS;
    size_t have = 0;
    snprintf(id, sizeof id, "%s", from);
    while (have < n && rp_time_boot_ms() < end_ms) {
        struct event_client e = event_client_open(s->port, query, id);
        bool over = false;
        for (size_t idle = 0; !over && idle < 3 && rp_time_boot_ms() < end_ms;) {
            size_t had = e.len;
            event_client_listen(&e, 100);
            idle = e.len > had ? 0 : idle + 1;
            over = e.closed || (e.len >= 5 && memcmp(e.text + e.len - 5, "0\r\n\r\n", 5) == 0);
        }
        char *stream = event_client_stream(&e, NULL);
        size_t whole = event_client_occurs(stream, "}\n\n");
        if (whole > 0) {
            event_client_cut(stream, whole);
            event_client_last_id(stream, id);
            have += event_client_expect_from(stream, first + (int)have);
        }
        free(stream);
        event_client_close(&e);
    }
    assert_int_equal(have, n);
}

/* ---- the tests ---- */

static void hello_comes_at_once_and_an_event_as_it_is_promised(void **state)
{
    struct stage *s = *state;
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client e = event_client_open(s->port, "", NULL);
    char *hello = event_client_until(&e, "retry: 2000\n", 1);
    assert_non_null(strstr(hello, ": hello\n"));
    assert_non_null(strstr(hello, "\nid: "));
    free(hello);
    commit(s, 1, s->tenants[0], 7, 1);
    char *stream = event_client_until(&e, "event: file.deleted\n", 1);
    const char *data = strstr(stream, "\ndata: ") + 7;
    RP_CLEANUP(rp_json_decrefp) json_t *o = NULL;
    ok(rp_json_parse(data, strcspn(data, "\n"), &o, &err));
    assert_string_equal(rp_json_get_text(o, "event", ""), "file.deleted");
    assert_string_equal(rp_json_get_text(o, "actor", ""), "token:\"ada\"");
    assert_string_equal(rp_json_get_text(o, "tenant", ""), "acme");
    assert_string_equal(rp_json_get_text(o, "name", ""), "a\nb");
    assert_int_equal(rp_json_get_int(o, "number", 0), 7);
    assert_memory_equal(rp_json_get_text(o, "mark", ""), "mrk_", 4);
    int64_t at_ms = 0;
    ok(rp_time_parse(rp_json_get_text(o, "at", ""), &at_ms, &err));
    free(stream);
    event_client_close(&e);
}

struct committer {
    struct stage *s;
    int lane, n;
};

static void *commit_many(void *ctx)
{
    struct committer *c = ctx;
    for (int i = 0; i < c->n; i++)
        commit(c->s, c->lane, 0, c->lane * 10000 + i, 1);
    return NULL;
}

static void every_lane_comes_whole_and_in_order(void **state)
{
    struct stage *s = *state;
    enum { EACH = 100 };
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client clients[3];
    pthread_t threads[LANES];
    struct committer committers[LANES];
    for (int i = 0; i < 3; i++) {
        clients[i] = event_client_open(s->port, "", NULL);
        free(event_client_until(&clients[i], "hello", 1));
    }
    int64_t before = s->seen;
    for (int i = 0; i < LANES; i++) {
        committers[i] = (struct committer){ .s = s, .lane = i, .n = EACH };
        assert_int_equal(pthread_create(&threads[i], NULL, commit_many, &committers[i]), 0);
    }
    for (int i = 0; i < LANES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) {
        char *stream = event_client_until(&clients[i], "\nevent: file.deleted", (size_t)LANES * EACH);
        int got[LANES * EACH + 50], next[LANES] = { 0 };
        size_t n = event_client_numbers(stream, got, sizeof got / sizeof got[0]);
        for (size_t j = 0; j < n; j++) {
            assert_int_equal(got[j] % 10000, next[got[j] / 10000]++);
        }
        for (int j = 0; j < LANES; j++)
            assert_int_equal(next[j], EACH);
        free(stream);
        event_client_close(&clients[i]);
    }
    wait_for_seen(s, before + (int64_t)LANES * EACH);
}

/* Cut anywhere, gone on from the last id: together they are the whole. `ring` decides from
 * where. */
static void goes_on(struct stage *s, size_t ring, int n, int cut)
{
    char id[RP_FEED_CURSOR_TEXT];
    s->ring_events = ring;
    stage_live(s, (struct rp_live_options){ 0 });
    for (int i = 0; i < n; i += 25)
        commit(s, (i / 25) % LANES, 0, i, 25);
    wait_for_seen(s, n);
    struct event_client first = event_client_open(s->port, "", NULL);
    char *hello = event_client_until(&first, "hello", 1);
    event_client_last_id(hello, id);
    free(hello);
    for (int i = 0; i < n; i += 25) {
        commit(s, 0, 0, 100000 + i, 25);
        if (i == 0) {
            char *begun = event_client_until(&first, "\nevent: file.deleted", 25);
            event_client_cut(begun, (size_t)cut);
            event_client_last_id(begun, id);
            expect_numbers(begun, 100000, (size_t)cut);
            free(begun);
            event_client_close(&first);
        }
    }
    hear_all(s, "", id, 100000 + cut, (size_t)(n - cut));
}

static void goes_on_from_memory(void **state)
{
    goes_on(*state, 4096, 100, 10);
}

static void goes_on_from_the_catalog(void **state)
{
    goes_on(*state, 64, 1000, 10);
}

static void goes_on_after_a_restart(void **state)
{
    struct stage *s = *state;
    char id[RP_FEED_CURSOR_TEXT];
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client e = event_client_open(s->port, "", NULL);
    char *hello = event_client_until(&e, "hello", 1);
    event_client_last_id(hello, id);
    free(hello);
    event_client_close(&e);
    stage_off(s);
    for (int lane = 1; lane < LANES; lane++) /* three new lanes, which the id does not name */
        commit(s, lane, 0, lane * 1000, 300);
    stage_live(s, (struct rp_live_options){ 0 });
    e = event_client_open(s->port, "", id);
    char *stream = event_client_until(&e, "\nevent: file.deleted", 900);
    int got[1000], next[LANES] = { 0 };
    size_t n = event_client_numbers(stream, got, 1000);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(got[i] % 1000, next[got[i] / 1000]++);
    assert_int_equal(next[1] + next[2] + next[3], 900);
    free(stream);
    event_client_close(&e);
}

/* Every lane has its first row and knows the others; afterwards a change is one row. */
static void begin_lanes(struct stage *s, struct rp_feed_cursor *at)
{
    char id[RP_FEED_CURSOR_TEXT];
    for (int round = 0; round < 2; round++)
        for (int lane = 0; lane < LANES; lane++)
            commit(s, lane, 0, 0, 1);
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client e = event_client_open(s->port, "", NULL);
    char *hello = event_client_until(&e, "hello", 1);
    event_client_last_id(hello, id);
    ok(rp_feed_cursor_parse(id, at, &err));
    free(hello);
    event_client_close(&e);
}

/* Another node may have read the same lanes in another order: its ids are places that this one
 * never was at. */
static void an_id_of_another_node_is_as_good(void **state)
{
    struct stage *s = *state;
    struct rp_feed_cursor at;
    char id[RP_FEED_CURSOR_TEXT];
    begin_lanes(s, &at);
    struct event_client here = event_client_open(s->port, "", NULL); /* so that the ring holds what comes */
    free(event_client_until(&here, "hello", 1));
    const int order[] = { 1, 2, 1, 2 };
    for (int i = 0; i < 4; i++) {
        char number[32];
        commit(s, order[i], 0, order[i] * 10 + i, 1);
        snprintf(number, sizeof number, "\"number\":%d,", order[i] * 10 + i);
        free(event_client_until(&here, number, 1));
    }
    /* 10 and 12 seen, nothing of lane 2. */
    rp_feed_cursor_set(&at, 1, rp_feed_cursor_seq(&at, 1) + 2);
    rp_feed_cursor_format(&at, id);
    struct event_client e = event_client_open(s->port, "", id);
    char *stream = event_client_until(&e, "\nevent: file.deleted", 2);
    int got[4];
    assert_int_equal(event_client_numbers(stream, got, 4), 2);
    assert_int_equal(got[0], 21);
    assert_int_equal(got[1], 23);
    free(stream);
    commit(s, 3, 0, 35, 1);
    stream = event_client_until(&e, "\nevent: file.deleted", 3);
    assert_int_equal(event_client_numbers(stream, got, 4), 3);
    assert_int_equal(got[2], 35);
    free(stream);
    event_client_close(&e);
    event_client_close(&here);
}

/* It has seen what the reader here has not come to yet. */
static void an_id_may_be_ahead_of_the_reader(void **state)
{
    struct stage *s = *state;
    struct rp_feed_cursor at;
    char id[RP_FEED_CURSOR_TEXT];
    begin_lanes(s, &at);
    for (int i = 0; i < 5; i++) {
        struct change c = { .first = i, .n = 1 };
        ok(rp_catalog_transact(s->catalogs[1], change_tx, &c, &err));
        rp_feed_cursor_set(&at, 1, rp_feed_cursor_seq(&at, 1) + 1);
        rp_feed_cursor_format(&at, id);
        struct event_client e = event_client_open(s->port, "", id);
        free(event_client_until(&e, "hello", 1));
        commit(s, 2, 0, 100 + i, 1);
        rp_feed_cursor_set(&at, 2, rp_feed_cursor_seq(&at, 2) + 1);
        char *stream = event_client_until(&e, "\nevent: file.deleted", 1);
        expect_numbers(stream, 100 + i, 1);
        assert_null(strstr(stream, "rolled back"));
        free(stream);
        event_client_close(&e);
    }
}

static void a_tenant_hears_of_its_own_only(void **state)
{
    struct stage *s = *state;
    char id[RP_FEED_CURSOR_TEXT], query[64];
    s->ring_events = 64;
    stage_live(s, (struct rp_live_options){ 0 });
    snprintf(query, sizeof query, "?tenant=%lld", (long long)s->tenants[0]);
    struct event_client e = event_client_open(s->port, query, NULL);
    char *hello = event_client_until(&e, "hello", 1);
    event_client_last_id(hello, id);
    free(hello);
    for (int i = 0; i < 30; i++) {
        commit(s, 0, s->tenants[1], 5000 + i * 10, 10);
        commit(s, 0, 0, 6000 + i, 1);
        commit(s, 0, s->tenants[0], i, 1);
    }
    hear_all(s, query, id, 0, 30); /* from the catalog, or what the ring still has */
    event_client_until_quiet(&e);
    char *stream = event_client_stream(&e, NULL);
    event_client_expect_from(stream, 0);
    assert_null(strstr(stream, "zenith"));
    free(stream);
    event_client_close(&e);
}

static void who_does_not_read_is_left_behind_alone(void **state)
{
    struct stage *s = *state;
    char id[RP_FEED_CURSOR_TEXT];
    char *padding = calloc(1, 40001);
    memset(padding, 'x', 40000);
    s->ring_events = 64;
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client slow = event_client_open(s->port, "", NULL), quick = event_client_open(s->port, "", NULL);
    int small = 16384;
    setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    char *hello = event_client_until(&slow, "hello", 1);
    event_client_last_id(hello, id);
    free(hello);
    free(event_client_until(&quick, "hello", 1));
    int n = 0;
    for (; n < 200; n += 10) { /* 8 MB: more than the sockets take by themselves */
        struct change c = { .first = n, .n = 10, .padding = padding };
        ok(rp_catalog_transact(s->catalogs[0], change_tx, &c, &err));
        rp_feed_poke(s->feed);
        free(event_client_until(&quick, "\nevent: file.deleted", 10));
        /* Heard; forget it. */
        quick.len = (size_t)(strstr(quick.text, "\r\n\r\n") + 4 - quick.text);
        quick.text[quick.len] = '\0';
    }
    int large = 1 << 20; /* a small window is slow to empty */
    setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    event_client_until_over(&slow);
    char *stream = event_client_stream(&slow, NULL);
    size_t whole = event_client_occurs(stream, "\"}\n\n");
    assert_true(whole < (size_t)n);
    if (whole > 0) {
        event_client_cut(stream, whole);
        event_client_last_id(stream, id);
    }
    free(stream);
    event_client_close(&slow);
    hear_all(s, "", id, (int)whole, (size_t)n - whole);
    free(padding);
    event_client_close(&quick);
}

static void an_idle_client_hears_a_comment_with_the_id_to_go_on_from(void **state)
{
    struct stage *s = *state;
    char id[RP_FEED_CURSOR_TEXT], cursor[RP_FEED_CURSOR_TEXT] = "", query[64];
    struct rp_seal seal;
    rp_seal_init(&seal, SEAL_KEY);
    stage_live(s, (struct rp_live_options){ .idle_ms = 50 });
    snprintf(query, sizeof query, "?tenant=%lld", (long long)s->tenants[0]);
    struct event_client e = event_client_open(s->port, query, NULL);
    free(event_client_until(&e, ": idle\n", 2));
    commit(s, 2, s->tenants[1], 1, 20); /* not its own */
    for (size_t n = 3; strstr(cursor, "2.20") == NULL; n++) {
        char *stream = event_client_until(&e, ": idle\n", n);
        event_client_last_id(stream, id);
        ok(rp_seal_open(&seal, id, cursor, &err));
        assert_null(strstr(stream, "file.deleted"));
        free(stream);
        assert_true(n < 200);
    }
    event_client_close(&e);
    wait_for_clients(s, 0); /* its end is noticed by the same comment */
}

static void an_id_past_the_end_goes_on_from_the_end(void **state)
{
    struct stage *s = *state;
    stage_live(s, (struct rp_live_options){ 0 });
    commit(s, 1, 0, 1, 3);
    struct event_client e = event_client_open(s->port, "", "1.999999-200.5");
    char *stream = event_client_until(&e, ": the catalog was rolled back", 1);
    assert_null(strstr(stream, "\"number\":3"));
    free(stream);
    commit(s, 1, 0, 42, 1);
    free(event_client_until(&e, "\"number\":42", 1));
    event_client_close(&e);
}

static void a_catalog_that_went_back_ends_the_streams(void **state)
{
    struct stage *s = *state;
    char id[RP_FEED_CURSOR_TEXT];
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client e = event_client_open(s->port, "", NULL);
    free(event_client_until(&e, "hello", 1));
    commit(s, 1, 0, 1, 3);
    char *stream = event_client_until(&e, "\"number\":3", 1);
    event_client_last_id(stream, id);
    free(stream);
    ok(rp_db_script(s->dbs.db, "UPDATE lane SET seq = seq - 2 WHERE lane = 1;", &err));
    event_client_until_over(&e);
    event_client_close(&e);
    e = event_client_open(s->port, "", id);
    free(event_client_until(&e, ": the catalog was rolled back", 1));
    event_client_close(&e);
}

static int seal_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    struct rp_segment *segment = ctx;
    int64_t gone = 0;
    int r = rp_segment_seal(tx, segment, INT64_MAX, "tester", why);
    return r < 0 ? r : rp_segment_let_go(tx, segment->lane, segment->from_seq, segment->to_seq, &gone, why);
}

/* Sealed and gone while the client was away: it is told, once, and goes on. */
static void expect_reset(struct stage *s, const char *query, const char *after)
{
    char id[RP_FEED_CURSOR_TEXT];
    struct event_client e = event_client_open(s->port, query, after);
    char *stream = event_client_until(&e, "\nevent: reset\n", 1);
    assert_non_null(strstr(stream, "id: "));
    assert_null(strstr(stream, "\"number\":2,"));
    event_client_last_id(stream, id);
    free(stream);
    event_client_close(&e);
    commit(s, 1, s->tenants[0], 77, 1);
    e = event_client_open(s->port, query, id);
    stream = event_client_until(&e, "\"number\":77", 1);
    assert_null(strstr(stream, "event: reset"));
    free(stream);
    event_client_close(&e);
}

static void who_comes_back_after_its_rows_were_sealed_is_told(void **state)
{
    struct stage *s = *state;
    char segments[160], query[64], tenants_id[RP_FEED_CURSOR_TEXT];
    s->ring_events = 8;
    stage_live(s, (struct rp_live_options){ 0 });
    snprintf(query, sizeof query, "?tenant=%lld", (long long)s->tenants[0]);
    snprintf(segments, sizeof segments, "%s/segments", s->dbs.dir);
    struct event_client e = event_client_open(s->port, query, NULL);
    char *hello = event_client_until(&e, "hello", 1);
    event_client_last_id(hello, tenants_id);
    free(hello);
    event_client_close(&e);
    commit(s, 1, s->tenants[0], 1, 20);
    const struct rp_segment_ask ask = { .dir = segments, .lane = 1, .to_max = 10, .older_than_ms = INT64_MAX };
    struct rp_segment segment;
    ok(rp_segment_export(s->dbs.db, &ask, &segment, &err));
    ok(rp_catalog_transact(s->catalogs[0], seal_tx, &segment, &err));
    expect_reset(s, "", "1.3");
    expect_reset(s, query, tenants_id);
    char path[RP_SEGMENT_PATH];
    ok(rp_segment_path(segments, segment.file, path, &err));
    assert_int_equal(unlink(path) + rmdir(segments), 0);
}

static void no_more_than_so_many(void **state)
{
    struct stage *s = *state;
    stage_live(s, (struct rp_live_options){ .clients_max = 2, .idle_ms = 50 });
    struct event_client a = event_client_open(s->port, "", NULL), b = event_client_open(s->port, "", NULL);
    free(event_client_until(&a, "hello", 1));
    free(event_client_until(&b, "hello", 1));
    struct event_client c = event_client_open(s->port, "", NULL);
    while (strstr(c.text, "\r\n\r\n") == NULL && !c.closed)
        event_client_listen(&c, 100);
    assert_non_null(strstr(c.text, " 503 "));
    event_client_close(&c);
    event_client_close(&a);
    wait_for_clients(s, 1);
    c = event_client_open(s->port, "", NULL);
    free(event_client_until(&c, "hello", 1));
    event_client_close(&c);
    event_client_close(&b);
}

static void what_is_no_id_is_refused(void **state)
{
    struct stage *s = *state;
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client e = event_client_open(s->port, "", "nonsense");
    while (strstr(e.text, "\r\n\r\n") == NULL && !e.closed)
        event_client_listen(&e, 100);
    assert_non_null(strstr(e.text, " 400 "));
    event_client_close(&e);
    assert_int_equal(rp_live_clients(s->live), 0);
}

struct token_change {
    struct rp_token token;
    char secret[RP_TOKEN_SECRET];
};

static int token_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    struct token_change *c = ctx;
    return rp_token_create(tx, &c->token, c->secret, "test", why);
}

static int revoke_tx(struct rp_tx *tx, void *ctx, struct rp_error *why)
{
    struct token_change *c = ctx;
    return rp_token_revoke(tx, c->token.id, "test", NULL, why);
}

/* By whomever: nobody tells the hub, it reads it. */
static void a_revoked_token_is_not_listened_with(void **state)
{
    struct stage *s = *state;
    struct token_change c = { .token = { .kind = RP_TOKEN_BEARER, .name = "clients", .scopes = 1 } };
    char query[64];
    ok(rp_token_secret(RP_TOKEN_BEARER, c.secret, &err));
    ok(rp_catalog_transact(s->catalogs[0], token_tx, &c, &err));
    snprintf(query, sizeof query, "?token=%lld", (long long)c.token.id);
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client revoked = event_client_open(s->port, query, NULL),
                        other = event_client_open(s->port, "?token=8", NULL);
    free(event_client_until(&revoked, "hello", 1));
    free(event_client_until(&other, "hello", 1));
    ok(rp_catalog_transact(s->catalogs[2], revoke_tx, &c, &err));
    event_client_until_over(&revoked);
    commit(s, 0, 0, 1, 1);
    free(event_client_until(&other, "\"number\":1", 1));
    event_client_close(&revoked);
    event_client_close(&other);
}

/* By its expiry, also while events keep coming. */
static void a_stream_ends_with_its_token(void **state)
{
    struct stage *s = *state;
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client idle = event_client_open(s->port, "?expires_in=700", NULL),
                        busy = event_client_open(s->port, "?expires_in=700", NULL),
                        other = event_client_open(s->port, "?expires_in=600000", NULL);
    free(event_client_until(&idle, "hello", 1));
    free(event_client_until(&other, "hello", 1));
    bool over = false;
    int64_t late_ms = rp_time_boot_ms() + PATIENCE_MS;
    for (int i = 0; !over; i++) {
        assert_true(rp_time_boot_ms() < late_ms);
        commit(s, 0, 0, i, 1);
        event_client_listen(&busy, 50);
        free(event_client_stream(&busy, &over));
    }
    event_client_until_over(&idle);
    event_client_listen(&other, 0);
    free(event_client_stream(&other, &over));
    assert_false(over);
    event_client_close(&idle);
    event_client_close(&busy);
    event_client_close(&other);
}

/* Rows of the log are those of all: their number is not told to a tenant, and it cannot ask for
 * it. */
static void ids_of_a_tenant_count_nothing(void **state)
{
    struct stage *s = *state;
    char id[RP_FEED_CURSOR_TEXT], query[64];
    struct rp_feed_cursor cursor;
    stage_live(s, (struct rp_live_options){ .idle_ms = 100 });
    commit(s, 0, s->tenants[1], 0, 7);
    snprintf(query, sizeof query, "?tenant=%lld", (long long)s->tenants[0]);
    struct event_client e = event_client_open(s->port, query, NULL);
    free(event_client_until(&e, "hello", 1));
    for (int i = 0; i < 3; i++) { /* of hello, of an event, of a pause */
        if (i == 1) commit(s, 0, s->tenants[0], 1, 1);
        char *stream = event_client_until(&e, i == 0 ? "id: " : i == 1 ? "\"number\":1" : ": idle", 1);
        assert_null(strstr(stream, "id: 0."));
        event_client_last_id(stream, id);
        assert_int_equal(rp_feed_cursor_parse(id, &cursor, &err), RP_EINVAL);
        free(stream);
    }
    event_client_close(&e);
    struct event_client plain = event_client_open(s->port, query, "0.3");
    while (strstr(plain.text, "\r\n\r\n") == NULL && !plain.closed)
        event_client_listen(&plain, 100);
    assert_non_null(strstr(plain.text, " 400 "));
    event_client_close(&plain);
}

static void a_stream_has_its_time(void **state)
{
    struct stage *s = *state;
    stage_live(s, (struct rp_live_options){ .idle_ms = 20, .life_ms = 1000 });
    struct event_client e = event_client_open(s->port, "", NULL);
    event_client_until_over(&e);
    char *stream = event_client_stream(&e, NULL);
    assert_non_null(strstr(stream, ": idle\n"));
    free(stream);
    event_client_close(&e);
}

/* Many at once, in every state, while everything ends: nobody is left suspended, which would end
 * the process. */
static void the_end_reaches_everybody(void **state)
{
    struct stage *s = *state;
    enum { CLIENTS = 200 };
    struct event_client clients[CLIENTS];
    s->ring_events = 64;
    stage_live(s, (struct rp_live_options){ 0 });
    commit(s, 0, 0, 0, 500);
    commit(s, 0, 0, 0, 500);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = event_client_open(s->port, "", i % 2 == 0 ? NULL : "0.1");
    for (int i = 0; i < CLIENTS; i += 2)
        free(event_client_until(&clients[i], "hello", 1));
    commit(s, 1, 0, 0, 100);
    rp_live_end(s->live);
    for (int i = 0; i < CLIENTS; i += 2)
        event_client_until_over(&clients[i]);
    struct event_client late = event_client_open(s->port, "", NULL);
    while (strstr(late.text, "\r\n\r\n") == NULL && !late.closed)
        event_client_listen(&late, 100);
    assert_non_null(strstr(late.text, " 503 "));
    event_client_close(&late);
    stage_off(s);
    for (int i = 0; i < CLIENTS; i++)
        event_client_close(&clients[i]);
}

static void what_others_commit_comes_without_a_word(void **state)
{
    struct stage *s = *state;
    stage_live(s, (struct rp_live_options){ 0 });
    struct event_client e = event_client_open(s->port, "", NULL);
    free(event_client_until(&e, "hello", 1));
    struct change c = { .first = 9, .n = 1 };
    ok(rp_catalog_transact(s->catalogs[3], change_tx, &c, &err));
    free(event_client_until(&e, "\"number\":9", 1));
    event_client_close(&e);
}

#define ON(kind, test)                                                                                                 \
    {                                                                                                                  \
        .name = #test " (" #kind ")", .test_func = (test), .setup_func = set_up, .teardown_func = tear_down,           \
        .initial_state = (void *)(uintptr_t)(kind)                                                                     \
    }
#define BOTH(test) ON(DBS_SQLITE_FILE, test), ON(DBS_POSTGRES, test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(hello_comes_at_once_and_an_event_as_it_is_promised),
        BOTH(every_lane_comes_whole_and_in_order),
        BOTH(goes_on_from_memory),
        BOTH(goes_on_from_the_catalog),
        BOTH(goes_on_after_a_restart),
        BOTH(an_id_of_another_node_is_as_good),
        BOTH(an_id_may_be_ahead_of_the_reader),
        BOTH(a_tenant_hears_of_its_own_only),
        BOTH(who_does_not_read_is_left_behind_alone),
        BOTH(an_idle_client_hears_a_comment_with_the_id_to_go_on_from),
        BOTH(an_id_past_the_end_goes_on_from_the_end),
        BOTH(a_catalog_that_went_back_ends_the_streams),
        BOTH(who_comes_back_after_its_rows_were_sealed_is_told),
        BOTH(no_more_than_so_many),
        BOTH(what_is_no_id_is_refused),
        BOTH(a_revoked_token_is_not_listened_with),
        BOTH(a_stream_has_its_time),
        ON(DBS_SQLITE_FILE, a_stream_ends_with_its_token),
        ON(DBS_SQLITE_FILE, ids_of_a_tenant_count_nothing),
        BOTH(the_end_reaches_everybody),
        BOTH(what_others_commit_comes_without_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
