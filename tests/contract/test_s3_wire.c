/* SPDX-License-Identifier: Apache-2.0 */
/* One call at a time over the wire to S3: answers of all kinds, repetition and its bounds, clocks
 * and keys that are refused, TLS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "contract/s3_peer.h"

#define OK   REPLY("200 OK", "5", "hello")
#define SLOW "<Error><Code>SlowDown</Code><Message>less</Message></Error>"

static struct trial *scripted(const struct step *steps, size_t n)
{
    struct trial *t = calloc(1, sizeof *t);
    t->peer.steps = steps;
    t->peer.n_steps = n;
    trial_open(t);
    return t;
}
#define SAYS(text)                                                                                                     \
    {                                                                                                                  \
        .raw = (text), .closes = false                                                                                 \
    }
#define SCRIPT(...)                                                                                                    \
    scripted((struct step[]){ __VA_ARGS__ }, sizeof((struct step[]){ __VA_ARGS__ }) / sizeof(struct step))

/* ---- answers ---- */

static void test_an_answer_is_handed_on(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS("HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 05:02:54 GMT\r\n"
                                  "ETag:   \"abc\"  \r\nX-Empty:\r\nContent-Length: 5\r\n\r\nhello"));
    struct s3_call call = trial_call("GET", "a key/with ../dots");
    char value[64];
    int64_t now_ms;
    assert_false(rp_s3_wire_clock(t->wire, &now_ms));
    run_expecting(t, &call, 0, 200);
    assert_string_equal(rp_buf_text(&call.answer), "hello");
    assert_string_equal(rp_s3_header(&call, "etag", value, sizeof value), "\"abc\"");
    assert_string_equal(rp_s3_header(&call, "x-empty", value, sizeof value), "");
    assert_string_equal(rp_s3_header(&call, "etag", value, 3), "\"a");
    assert_null(rp_s3_header(&call, "eta", value, sizeof value));
    assert_int_equal(call.attempts, 1);
    assert_true(rp_s3_wire_clock(t->wire, &now_ms));
    assert_true(now_ms >= INT64_C(1794718974000) && now_ms < INT64_C(1794718974000) + 60000);
    rp_s3_call_done(&call);
    trial_close(t);
}

static bool tell_request(struct peer *peer, int fd, const struct request *r)
{
    char expect[512], type[512], body[1200];
    (void)peer;
    (void)snprintf(body, sizeof body, "%.*s|%s|%s|%zu", (int)strcspn(r->head, "\r"), r->head,
                   request_header(r, "expect", expect), request_header(r, "content-type", type), r->body_bytes);
    peer_reply(fd, 200, "", strncmp(r->head, "HEAD", 4) == 0 ? "" : body);
    return true;
}

/* The path goes out as it was signed, nothing is added that was not. */
static void test_requests_go_out_as_they_are(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    static char large[2 << 20];
    t->peer.answer = tell_request;
    trial_open(t);
    struct s3_call put = trial_call("PUT", "a/../b"), post = trial_call("POST", NULL), head = trial_call("HEAD", "k"),
                   erase = trial_call("DELETE", "k");
    put.message.body = large;
    put.message.body_bytes = sizeof large;
    run_expecting(t, &put, 0, 200);
    assert_string_equal(rp_buf_text(&put.answer), "PUT /bucket/a/../b HTTP/1.1|||2097152");
    run_expecting(t, &post, 0, 200);
    assert_non_null(strstr(rp_buf_text(&post.answer), " HTTP/1.1|||0"));
    run_expecting(t, &head, 0, 200);
    run_expecting(t, &erase, 0, 200);
    assert_non_null(strstr(rp_buf_text(&erase.answer), "DELETE /bucket/k HTTP/1.1|||0"));
    rp_s3_call_done(&put);
    rp_s3_call_done(&post);
    rp_s3_call_done(&head);
    rp_s3_call_done(&erase);
    trial_close(t);
}

static void test_refusals_are_answers(void **state)
{
    (void)state;
    struct trial *t =
        SCRIPT(SAYS(REPLY("404 No", "0", "")), SAYS(REPLY("301 There", "0", "")), SAYS(REPLY("412 No", "0", "")),
               SAYS(REPLY("403 No", "0", "")), SAYS(REPLY("304 No", "0", "")), SAYS(REPLY("400 No", "0", "")));
    static const int statuses[] = { 404, 301, 412, 403, 304, 400 };
    struct s3_call call = trial_call("GET", "k");
    for (size_t i = 0; i < 6; i++) {
        call.once = i % 2 == 0;
        run_expecting(t, &call, 0, statuses[i]);
        assert_int_equal(call.attempts, 1);
    }
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_chunks_and_announcements(void **state)
{
    (void)state;
    struct trial *t =
        SCRIPT(SAYS("HTTP/1.1 100 Continue\r\nx-early: yes\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"));
    struct s3_call call = trial_call("GET", "k");
    char value[8];
    run_expecting(t, &call, 0, 200);
    assert_string_equal(rp_buf_text(&call.answer), "hello");
    assert_null(rp_s3_header(&call, "x-early", value, sizeof value));
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_connections_are_kept(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS(OK));
    struct s3_call call = trial_call("GET", "k");
    for (int i = 0; i < 30; i++)
        run_expecting(t, &call, 0, 200);
    assert_int_equal(peer_requests(&t->peer), 30);
    assert_int_equal(peer_connections(&t->peer), 1);
    rp_s3_call_done(&call);
    trial_close(t);
}

/* ---- bounds ---- */

static bool flood(struct peer *peer, int fd, const struct request *r)
{
    static const size_t n = 300000;
    char *block = malloc(n + 1);
    memset(block, 'x', n);
    block[n] = '\0';
    (void)r;
    if (peer->ctx != NULL) { /* headers */
        peer_send(fd, "HTTP/1.1 200 OK\r\n");
        for (size_t at = 0; at < n; at += 10000) {
            peer_send(fd, "x-much: ");
            block[at + 9000] = '\0';
            peer_send(fd, block + at);
            peer_send(fd, "\r\n");
        }
        peer_send(fd, "Content-Length: 0\r\n\r\n");
    } else {
        peer_reply(fd, 200, "", block);
    }
    free(block);
    return false;
}

static void test_answers_are_bounded(void **state)
{
    (void)state;
    for (int headers = 0; headers < 2; headers++) {
        struct trial *t = calloc(1, sizeof *t);
        t->peer.answer = flood;
        t->peer.ctx = headers ? t : NULL;
        trial_open(t);
        struct s3_call get = trial_call("GET", "k"), erase = trial_call("DELETE", "k");
        get.answer_max = erase.answer_max = 1000;
        erase.once = true;
        run_expecting(t, &get, RP_ETOOBIG, 0);
        run_expecting(t, &erase, RP_EUNKNOWN, 0);
        assert_int_equal(peer_requests(&t->peer), 2);
        rp_s3_call_done(&get);
        rp_s3_call_done(&erase);
        trial_close(t);
    }
}

static void test_error_documents_have_room(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS(REPLY("404 No", "5", "<Err>")));
    struct s3_call call = trial_call("DELETE", "k");
    call.answer_max = 0;
    run_expecting(t, &call, 0, 404);
    assert_string_equal(rp_buf_text(&call.answer), "<Err>");
    rp_s3_call_done(&call);
    trial_close(t);
}

/* ---- repetition ---- */

static void test_what_the_server_could_not_do_is_repeated(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS(REPLY("500 Oh", "0", "")), SAYS(REPLY("502 Oh", "0", "")),
                             SAYS(REPLY("429 Oh", "0", "")), SAYS("HTTP/1.1 503 Oh\r\nContent-Length: 59\r\n\r\n" SLOW),
                             SAYS("HTTP/1.1 400 Oh\r\nContent-Length: 59\r\n\r\n" SLOW), SAYS(OK));
    struct s3_call call = trial_call("PUT", "k");
    assert_int_equal(strlen(SLOW), 59);
    run_expecting(t, &call, 0, 200);
    assert_int_equal(call.attempts, 6);
    assert_string_equal(rp_buf_text(&call.answer), "hello");
    assert_string_equal(call.note, "");
    struct s3_wire_state s = trial_state(t);
    assert_int_equal(s.requests, 6);
    assert_int_equal(s.repeated, 5);
    assert_int_equal(s.slowed, 3);
    assert_int_equal(s.under_way, 0);
    rp_s3_call_done(&call);
    trial_close(t);
}

/* Answers that are none. */
static const struct step broken[] = {
    { "", true },                              /* read, closed */
    { "HTTP/1.1 200 OK\r\nContent-Le", true }, /* half a head */
    { "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Le", true },
    { "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", true },   /* half a body */
    { "\x16\x03\x01 garbage \x01\x02\r\n\r\n and more", true },       /* another protocol */
    { "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", true }, /* no number */
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhe", true },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", true }, /* no last chunk */
};
#define N_BROKEN (sizeof broken / sizeof broken[0])

static void test_broken_answers_are_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_BROKEN; i++) {
        struct trial *t = scripted((struct step[]){ broken[i], { OK, false } }, 2);
        struct s3_call call = trial_call("GET", "k");
        run_expecting(t, &call, 0, 200);
        assert_int_equal(call.attempts, 2);
        assert_string_equal(rp_buf_text(&call.answer), "hello");
        rp_s3_call_done(&call);
        trial_close(t);
    }
}

static bool not_the_first_two(struct peer *peer, unsigned connection)
{
    (void)peer;
    return connection >= 2;
}

static void test_closed_before_reading_is_repeated(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    static const struct step ok = { OK, false };
    t->peer.steps = &ok;
    t->peer.n_steps = 1;
    t->peer.welcome = not_the_first_two;
    trial_open(t);
    struct s3_call call = trial_call("GET", "k");
    run_expecting(t, &call, 0, 200);
    assert_int_equal(call.attempts, 3);
    rp_s3_call_done(&call);
    trial_close(t);
}

/* ---- once ---- */

static void test_once_means_once(void **state)
{
    (void)state;
    static const struct step others[] = { { REPLY("500 Oh", "0", ""), false },
                                          { "HTTP/1.1 503 Oh\r\nContent-Length: 59\r\n\r\n" SLOW, false } };
    for (size_t i = 0; i < N_BROKEN + 2; i++) {
        struct trial *t = scripted(i < N_BROKEN ? &broken[i] : &others[i - N_BROKEN], 1);
        struct s3_call call = trial_call("DELETE", "k");
        call.once = true;
        run_expecting(t, &call, RP_EUNKNOWN, 0);
        assert_int_equal(peer_requests(&t->peer), 1);
        assert_string_not_equal(call.note, "");
        rp_s3_call_done(&call);
        trial_close(t);
    }
}

/* libcurl would send it again by itself: the kept connection is closed instead of an answer. */
static void test_once_on_a_kept_connection(void **state)
{
    (void)state;
    struct trial *t = SCRIPT({ OK, false }, { "", true }, { OK, false });
    struct s3_call get = trial_call("GET", "k"), erase = trial_call("DELETE", "k");
    erase.once = true;
    run_expecting(t, &get, 0, 200);
    run_expecting(t, &erase, RP_EUNKNOWN, 0);
    assert_int_equal(peer_requests(&t->peer), 2);
    rp_s3_call_done(&get);
    rp_s3_call_done(&erase);
    trial_close(t);
}

static void test_once_and_too_many_requests(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS(REPLY("429 Oh", "0", "")), SAYS(OK));
    struct s3_call call = trial_call("DELETE", "k");
    call.once = true;
    run_expecting(t, &call, RP_EUNAVAILABLE, 0);
    assert_int_equal(peer_requests(&t->peer), 1);
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS(OK));
    struct s3_call call = trial_call("DELETE", "k");
    (void)shutdown(t->peer.fd, SHUT_RDWR);
    call.once = true;
    call.patience_ms = 1000;
    run_expecting(t, &call, RP_EUNAVAILABLE, 0);
    assert_true(call.attempts >= 2); /* nothing was sent: it may be tried again */
    assert_non_null(strstr(call.note, "127.0.0.1"));
    rp_s3_call_done(&call);
    trial_close(t);
}

/* ---- patience ---- */

static void test_silence_ends(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        bool once;
        int code;
    } cases[] = { { "GET", false, RP_EUNAVAILABLE }, { "PUT", false, RP_EUNKNOWN }, { "DELETE", true, RP_EUNKNOWN } };
    struct trial *t = SCRIPT({ NULL, false });
    for (size_t i = 0; i < 3; i++) {
        struct s3_call call = trial_call(cases[i].method, "k");
        call.once = cases[i].once;
        call.patience_ms = 300;
        int64_t begun_ms = rp_time_boot_ms();
        run_expecting(t, &call, cases[i].code, 0);
        assert_int_equal(call.attempts, 1);
        assert_true(rp_time_boot_ms() - begun_ms >= 290);
        rp_s3_call_done(&call);
    }
    assert_int_equal(peer_requests(&t->peer), 3);
    trial_close(t);
}

/* An attempt has its own time, so that a second one may find the server awake. */
static void test_an_attempt_ends_before_patience(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    static const struct step steps[] = { { NULL, false }, { OK, false } };
    t->peer.steps = steps;
    t->peer.n_steps = 2;
    t->wire_options.timeout_ms = 500;
    t->wire_options.patience_ms = 60000;
    trial_open(t);
    struct s3_call call = trial_call("GET", "k");
    run_expecting(t, &call, 0, 200);
    assert_true(call.attempts >= 2);
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_patience_ends_repetition(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS(REPLY("503 Oh", "0", "")));
    struct s3_call get = trial_call("GET", "k"), put = trial_call("PUT", "k");
    get.patience_ms = put.patience_ms = 1200;
    run_expecting(t, &get, RP_EUNAVAILABLE, 0);
    assert_string_not_equal(get.note, "");
    assert_true(get.attempts >= 2);
    run_expecting(t, &put, RP_EUNKNOWN, 0);
    assert_in_range(peer_requests(&t->peer), 2, get.attempts + put.attempts);
    rp_s3_call_done(&get);
    rp_s3_call_done(&put);
    trial_close(t);
}

static void test_what_a_server_does_not_have_is_not_asked_for_again(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS(REPLY("501 No", "0", "")));
    struct s3_call call = trial_call("DELETE", "k");
    run_expecting(t, &call, 0, 501);
    assert_int_equal(peer_requests(&t->peer), 1);
    rp_s3_call_done(&call);
    trial_close(t);
}

/* A pause that the server asks for and that patience does not have ends the call at once. */
static void test_retry_after_is_heard(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS("HTTP/1.1 503 Oh\r\nRetry-After: 25\r\nContent-Length: 0\r\n\r\n"));
    struct s3_call call = trial_call("GET", "k");
    run_expecting(t, &call, RP_EUNAVAILABLE, 0);
    assert_int_equal(call.attempts, 1);
    assert_int_equal(call.status, 503);
    assert_string_equal(call.note, "answered 503");
    rp_s3_call_done(&call);
    trial_close(t);
}

/* ---- clock and keys ---- */

#define SERVER_MS INT64_C(1794718974000) /* 2026-11-15T05:02:54Z */

static int64_t three_hours_late(void *ctx)
{
    (void)ctx;
    return SERVER_MS - 3 * RP_HOUR_MS;
}

static bool mind_the_clock(struct peer *peer, int fd, const struct request *r)
{
    static const char date[] = "Date: Sun, 15 Nov 2026 05:02:54 GMT\r\n";
    char signed_at[512];
    (void)peer;
    bool fits = strncmp(request_header(r, "x-amz-date", signed_at), "20261115T05", 11) == 0;
    bool is_head = strncmp(r->head, "HEAD", 4) == 0;
    peer_reply(fd, fits ? 200 : 403, date, is_head || fits ? "" : "<Error><Code>RequestTimeTooSkewed</Code></Error>");
    return true;
}

static void test_a_wrong_clock_is_corrected(void **state)
{
    (void)state;
    static const struct rp_clock clock = { .now_ms = three_hours_late };
    static const char *const methods[] = { "GET", "HEAD", "DELETE" };
    for (size_t i = 0; i < 3; i++) {
        struct trial *t = calloc(1, sizeof *t);
        t->peer.answer = mind_the_clock;
        t->wire_options.clock = &clock;
        trial_open(t);
        struct s3_call call = trial_call(methods[i], "k");
        call.once = i == 2; /* refused is not carried out */
        run_expecting(t, &call, 0, 200);
        assert_int_equal(call.attempts, 2);
        run_expecting(t, &call, 0, 200);
        assert_int_equal(call.attempts, 1);
        rp_s3_call_done(&call);
        trial_close(t);
    }
}

static void test_a_clock_that_cannot_be_right(void **state)
{
    (void)state;
    struct trial *t = SCRIPT(SAYS("HTTP/1.1 403 No\r\nDate: Sun, 15 Nov 2026 05:02:54 GMT\r\nContent-Length: 48\r\n\r\n"
                                  "<Error><Code>RequestTimeTooSkewed</Code></Error>"));
    struct s3_call call = trial_call("GET", "k");
    run_expecting(t, &call, 0, 403);
    assert_int_equal(call.attempts, 2);
    rp_s3_call_done(&call);
    trial_close(t);
}

/* A clock that a test moves. */
static int64_t moved(void *ctx)
{
    return rp_clock_now_ms(NULL) + atomic_load((atomic_llong *)ctx);
}

static void write_keys(const char *path, const char *access)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "[default]\naws_access_key_id = %s\naws_secret_access_key = secret\n", access);
    assert_int_equal(fclose(f), 0);
}

/* A wire whose keys are in a file of the test's own, and may change there; the first are OLD. */
static struct trial *open_with_a_profile(char *path, const struct rp_clock *clock, peer_answer_fn *answer)
{
    int fd = mkstemp(path);
    struct trial *t = calloc(1, sizeof *t);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1), 0);
    write_keys(path, "OLD");
    t->peer.answer = answer;
    t->wire_options.clock = clock;
    t->options.access_key = t->options.secret_key = "";
    trial_open(t);
    return t;
}

static void close_with_a_profile(struct trial *t, const char *path)
{
    trial_close(t);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials", 1), 0);
}

static bool refuse_old_keys(struct peer *peer, int fd, const struct request *r)
{
    char authorization[512];
    bool old = strstr(request_header(r, "authorization", authorization), "Credential=OLD/") != NULL;
    bool refused = old && r->number > 0;
    (void)peer;
    peer_reply(fd, refused ? 403 : 200, "", refused ? "<Error><Code>InvalidAccessKeyId</Code></Error>" : "");
    return true;
}

static void test_refused_keys_are_fetched_anew(void **state)
{
    (void)state;
    char path[] = "/tmp/rp-keys-XXXXXX";
    atomic_llong later_ms = 0;
    const struct rp_clock clock = { .now_ms = moved, .ctx = &later_ms };
    struct trial *t = open_with_a_profile(path, &clock, refuse_old_keys);
    struct s3_call call = trial_call("DELETE", "k");
    call.once = true;
    run_expecting(t, &call, 0, 200);
    write_keys(path, "NEW"); /* however short after the first were fetched */
    run_expecting(t, &call, 0, 200);
    assert_int_equal(call.attempts, 2);
    run_expecting(t, &call, 0, 200);
    assert_int_equal(call.attempts, 1);
    rp_s3_call_done(&call);
    close_with_a_profile(t, path);
}

static bool want_the_third(struct peer *peer, int fd, const struct request *r)
{
    char authorization[512];
    bool third = strstr(request_header(r, "authorization", authorization), "Credential=THIRD/") != NULL;
    (void)peer;
    peer_reply(fd, third ? 200 : 403, "", third ? "" : "<Error><Code>InvalidAccessKeyId</Code></Error>");
    return true;
}

static void test_refused_keys_are_not_fetched_all_the_time(void **state)
{
    (void)state;
    char path[] = "/tmp/rp-keys-XXXXXX";
    atomic_llong later_ms = 0;
    const struct rp_clock clock = { .now_ms = moved, .ctx = &later_ms };
    struct trial *t = open_with_a_profile(path, &clock, want_the_third);
    struct s3_call call = trial_call("GET", "k");
    run_expecting(t, &call, 0, 403); /* fetched anew, in vain */
    write_keys(path, "THIRD");
    run_expecting(t, &call, 0, 403);
    atomic_store(&later_ms, 2 * RP_MINUTE_MS);
    run_expecting(t, &call, 0, 200);
    rp_s3_call_done(&call);
    close_with_a_profile(t, path);
}

static void test_keys_that_stay_refused(void **state)
{
    (void)state;
    struct trial *t =
        SCRIPT(SAYS("HTTP/1.1 400 No\r\nContent-Length: 40\r\n\r\n<Error><Code>ExpiredToken</Code></Error>"));
    struct s3_call call = trial_call("GET", "k");
    run_expecting(t, &call, 0, 400);
    assert_int_equal(call.attempts, 2);
    rp_s3_call_done(&call);
    trial_close(t);
}

static void test_no_keys(void **state)
{
    (void)state;
    struct trial *t = calloc(1, sizeof *t);
    static const struct step ok = { OK, false };
    t->peer.steps = &ok;
    t->peer.n_steps = 1;
    t->options.access_key = t->options.secret_key = "";
    trial_open(t);
    struct s3_call call = trial_call("GET", "k");
    run_expecting(t, &call, RP_EDENIED, 0);
    assert_string_not_equal(call.note, "");
    assert_int_equal(peer_requests(&t->peer), 0);
    rp_s3_call_done(&call);
    trial_close(t);
}

/* ---- TLS ---- */

struct tls_server {
    char dir[32], cert[64], key[64], host[32];
    pid_t pid;
};

static pid_t spawn(const char *const argv[], int *out)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid;
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    assert_int_equal(posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *out = ends[0];
    return pid;
}

static void tls_start(struct tls_server *s)
{
    int out, status;
    char line[256];
    strcpy(s->dir, "/tmp/rp-tls-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    (void)snprintf(s->cert, sizeof s->cert, "%s/cert", s->dir);
    (void)snprintf(s->key, sizeof s->key, "%s/key", s->dir);
    pid_t pid =
        spawn((const char *[]){ "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                                "-nodes", "-keyout", s->key, "-out", s->cert, "-days", "2", "-subj", "/CN=peer",
                                "-addext", "subjectAltName=IP:127.0.0.1", NULL },
              &out);
    close(out);
    assert_true(waitpid(pid, &status, 0) == pid && status == 0);
    s->pid = spawn((const char *[]){ "timeout", "120", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                                     s->cert, "-key", s->key, "-www", NULL },
                   &out);
    FILE *f = fdopen(out, "r");
    s->host[0] = '\0';
    while (s->host[0] == '\0' && fgets(line, sizeof line, f) != NULL)
        (void)sscanf(line, "ACCEPT %31s", s->host);
    assert_string_not_equal(s->host, "");
    (void)fclose(f);
}

static void tls_stop(struct tls_server *s)
{
    assert_int_equal(kill(s->pid, SIGTERM), 0); /* timeout hands it on; without us it ends by itself */
    assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
    (void)unlink(s->cert);
    (void)unlink(s->key);
    (void)rmdir(s->dir);
}

static void tls_call(const struct tls_server *s, const char *ca_file, struct s3_call *call)
{
    struct rp_error err = { 0 };
    struct rp_s3_options keys = { .access_key = "A", .secret_key = "b", .session_token = "", .profile = "" };
    struct s3_wire_options options = { .target = { "https", s->host, "bucket", true, "us-east-1" },
                                       .ca_file = ca_file,
                                       .timeout_ms = 10000,
                                       .patience_ms = 20000 };
    struct s3_wire *wire;
    assert_int_equal(rp_s3_credentials_new(&keys, NULL, &options.credentials, &err), 0);
    assert_int_equal(rp_s3_wire_open(&options, &wire, &err), 0);
    assert_int_equal(rp_s3_wire_run(wire, call, 1, &err), 0);
    rp_s3_wire_close(wire);
    rp_s3_credentials_free(options.credentials);
}

static void test_tls_wants_a_known_authority(void **state)
{
    (void)state;
    struct tls_server s;
    tls_start(&s);
    struct s3_call call = trial_call("GET", "k");
    tls_call(&s, "", &call);
    assert_int_equal(call.code, RP_ECONFIG);
    assert_int_equal(call.attempts, 1);
    assert_non_null(strstr(call.note, "TLS"));
    tls_call(&s, s.cert, &call);
    assert_int_equal(call.code, 0);
    assert_int_equal(call.status, 200);
    rp_s3_call_done(&call);
    tls_stop(&s);
}

static void test_no_such_ca_file(void **state)
{
    (void)state;
    struct rp_error err = { 0 };
    struct rp_s3_options keys = { .access_key = "A", .secret_key = "b", .session_token = "", .profile = "" };
    struct s3_wire_options options = { .target = { "https", "127.0.0.1:1", "bucket", true, "us-east-1" },
                                       .ca_file = "/nowhere/ca.pem",
                                       .timeout_ms = 10000,
                                       .patience_ms = 20000 };
    struct s3_wire *wire = NULL;
    assert_int_equal(rp_s3_credentials_new(&keys, NULL, &options.credentials, &err), 0);
    assert_int_equal(rp_s3_wire_open(&options, &wire, &err), RP_ECONFIG);
    assert_null(wire);
    assert_non_null(strstr(err.text, "/nowhere/ca.pem"));
    rp_s3_credentials_free(options.credentials);
}

static void test_no_such_host(void **state)
{
    (void)state;
    struct tls_server nowhere = { .host = "nowhere..invalid" }; /* which needs no name server to be wrong */
    struct s3_call call = trial_call("GET", "k");
    tls_call(&nowhere, "", &call);
    assert_int_equal(call.code, RP_ECONFIG);
    assert_non_null(strstr(call.note, "nowhere..invalid"));
    rp_s3_call_done(&call);
}

/* What the machine has must not answer for what a test set up. */
static int alone(void **state)
{
    (void)state;
    static const char *const names[] = { "AWS_ACCESS_KEY_ID",
                                         "AWS_SECRET_ACCESS_KEY",
                                         "AWS_SESSION_TOKEN",
                                         "AWS_PROFILE",
                                         "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                         "AWS_CONTAINER_CREDENTIALS_FULL_URI" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    return setenv("no_proxy", "*", 1) + setenv("AWS_EC2_METADATA_DISABLED", "true", 1) +
           setenv("AWS_CONFIG_FILE", "/nowhere/config", 1) +
           setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_handed_on),
        cmocka_unit_test(test_requests_go_out_as_they_are),
        cmocka_unit_test(test_refusals_are_answers),
        cmocka_unit_test(test_chunks_and_announcements),
        cmocka_unit_test(test_connections_are_kept),
        cmocka_unit_test(test_answers_are_bounded),
        cmocka_unit_test(test_error_documents_have_room),
        cmocka_unit_test(test_what_the_server_could_not_do_is_repeated),
        cmocka_unit_test(test_broken_answers_are_repeated),
        cmocka_unit_test(test_closed_before_reading_is_repeated),
        cmocka_unit_test(test_once_means_once),
        cmocka_unit_test(test_once_on_a_kept_connection),
        cmocka_unit_test(test_once_and_too_many_requests),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_silence_ends),
        cmocka_unit_test(test_an_attempt_ends_before_patience),
        cmocka_unit_test(test_what_a_server_does_not_have_is_not_asked_for_again),
        cmocka_unit_test(test_patience_ends_repetition),
        cmocka_unit_test(test_retry_after_is_heard),
        cmocka_unit_test(test_a_wrong_clock_is_corrected),
        cmocka_unit_test(test_a_clock_that_cannot_be_right),
        cmocka_unit_test(test_refused_keys_are_fetched_anew),
        cmocka_unit_test(test_refused_keys_are_not_fetched_all_the_time),
        cmocka_unit_test(test_keys_that_stay_refused),
        cmocka_unit_test(test_no_keys),
        cmocka_unit_test(test_tls_wants_a_known_authority),
        cmocka_unit_test(test_no_such_ca_file),
        cmocka_unit_test(test_no_such_host),
    };
    return cmocka_run_group_tests(tests, alone, NULL);
}
