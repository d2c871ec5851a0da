/* SPDX-License-Identifier: Apache-2.0 */
/* Calls out, against a peer on a real socket that answers, refuses, redirects, floods, hangs or
 * breaks off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/time.h"
#include "hook/hook.h"
#include "lib/hook_peer.h"

enum manner { ANSWERS, FLOODS, HANGS, BREAKS_OFF };

struct peer {
    int fd;
    pthread_t thread;
    char url[64];
    enum manner manner;
    const char *answer; /* the whole of it, headers too */
    char request[8192];
};

static size_t read_request(int fd, char *out, size_t size)
{
    size_t n = 0;
    const char *end = NULL;
    while (n + 1 < size) {
        ssize_t got = read(fd, out + n, size - 1 - n);
        if (got <= 0) break;
        n += (size_t)got;
        out[n] = 0;
        const char *length = strstr(out, "Content-Length: ");
        end = strstr(out, "\r\n\r\n");
        if (end != NULL && length != NULL && strlen(end + 4) >= strtoul(length + 16, NULL, 10)) break;
    }
    return n;
}

static void flood(int fd)
{
    char block[4096];
    memset(block, 'x', sizeof block);
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    if (write(fd, head, sizeof head - 1) < 0) return;
    for (int i = 0; i < 250000 && send(fd, block, sizeof block, MSG_NOSIGNAL) > 0; i++)
        ;
}

static void *serve(void *arg)
{
    struct peer *p = arg;
    char more;
    int fd = accept(p->fd, NULL, NULL);
    if (fd < 0) return NULL;
    (void)read_request(fd, p->request, sizeof p->request);
    if (p->manner == ANSWERS) (void)!write(fd, p->answer, strlen(p->answer));
    if (p->manner == FLOODS) flood(fd);
    if (p->manner == HANGS) (void)!read(fd, &more, 1); /* until the other side gives up */
    close(fd);
    return NULL;
}

static void start(struct peer *p, enum manner manner, const char *answer)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    *p = (struct peer){ .manner = manner, .answer = answer };
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(p->fd >= 0);
    assert_int_equal(bind(p->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(p->fd, 4), 0);
    assert_int_equal(getsockname(p->fd, (struct sockaddr *)&at, &n), 0);
    snprintf(p->url, sizeof p->url, "http://127.0.0.1:%u/hunter2", (unsigned)ntohs(at.sin_port));
    assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
}

static void end(struct peer *p)
{
    shutdown(p->fd, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->fd);
}

static int call(const struct peer *p, struct rp_hook_answer *answer, struct rp_error *err)
{
    struct rp_hook_call how = { .url = p->url,
                                .secrets = { "hush" },
                                .id = "msg_1",
                                .allow = "127.0.0.0/8",
                                .event = "alert.raised",
                                .body = "{\"a\":1}",
                                .body_bytes = 7,
                                .at_ms = 1700000000000,
                                .connect_ms = 2000,
                                .timeout_ms = 2000 };
    return rp_hook_send(&how, answer, err);
}

static int call_once(enum manner manner, const char *words, struct rp_hook_answer *answer, struct rp_error *err)
{
    struct peer p;
    start(&p, manner, words);
    *err = (struct rp_error){ 0 };
    int r = call(&p, answer, err);
    end(&p);
    assert_null(strstr(err->text, "hunter2")); /* neither URL nor secret stands in an error */
    assert_null(strstr(err->text, "hush"));
    return r;
}

static void a_call_carries_body_event_and_signature(void **state)
{
    struct peer p;
    struct rp_hook_answer answer;
    struct rp_error err = { 0 };
    (void)state;
    start(&p, ANSWERS, "HTTP/1.1 202 Accepted\r\nContent-Length: 7\r\n\r\nt\nhan\ak");
    assert_int_equal(call(&p, &answer, &err), 0);
    end(&p);
    assert_int_equal(answer.status, 202);
    assert_string_equal(answer.body, "t han.k");
    assert_int_equal(strncmp(p.request, "POST /hunter2 HTTP/1.1\r\n", 24), 0);
    assert_non_null(strstr(p.request, "\r\n\r\n{\"a\":1}"));
    assert_non_null(strstr(p.request, "\r\nReprieve-Event: alert.raised\r\n"));
    assert_non_null(strstr(p.request, "\r\nwebhook-id: msg_1\r\n"));
    assert_non_null(strstr(p.request, "\r\nwebhook-timestamp: 1700000000\r\n"));
    /* printf 'msg_1.1700000000.{"a":1}' | openssl dgst -sha256 -hmac hush -binary | base64 */
    assert_non_null(strstr(p.request, "\r\nwebhook-signature: v1,AUsQlz2Q4YBxs5LUS1wPEUXMUcO8FK9zktz1otvkkmU=\r\n"));
}

/* ---- signatures ---- */

#define BODY "{\"test\": 2432232314}"

static struct rp_hook_call example(const char *first, const char *second)
{
    return (struct rp_hook_call){ .secrets = { first, second },
                                  .id = "msg_p5jXN8AQM9LWM0D4loKWxJek",
                                  .body = BODY,
                                  .body_bytes = sizeof BODY - 1,
                                  .at_ms = INT64_C(1614265330999) };
}

/* The key, the message and the signature stand in the specification's own test. */
static void a_signature_is_the_specifications(void **state)
{
    static const char secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    static const char theirs[] = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    static const char raw[] = "v1,CyVCjOtga/p1bhnGx2aBxN4pSXneruddhYBmNE/2Cbw=";
    char out[RP_HOOK_SIGNATURE], both[RP_HOOK_SIGNATURE];
    struct rp_error err = { 0 };
    struct rp_hook_call call = example(secret, NULL);
    (void)state;
    assert_int_equal(rp_hook_sign(&call, out, &err), 0);
    assert_string_equal(out, theirs);
    call = example("", secret);
    assert_int_equal(rp_hook_sign(&call, out, &err), 0);
    assert_string_equal(out, theirs);
    call = example(secret, "hush"); /* while receivers change */
    assert_int_equal(rp_hook_sign(&call, out, &err), 0);
    snprintf(both, sizeof both, "%s %s", theirs, raw);
    assert_string_equal(out, both);
    call = example("", NULL);
    assert_int_equal(rp_hook_sign(&call, out, &err), 0);
    assert_string_equal(out, "");
}

static void a_secret_that_cannot_be_read_sends_nothing(void **state)
{
    static const char *const secrets[] = { "whsec_", "whsec_?", "whsec_MfK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS=" };
    (void)state;
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        struct rp_hook_call call = example(secrets[i], "hush");
        struct rp_hook_answer answer;
        struct rp_error err = { 0 };
        call.url = "http://127.0.0.1:9/";
        call.allow = "127.0.0.0/8";
        assert_int_equal(rp_hook_send(&call, &answer, &err), RP_ECONFIG);
        assert_null(strstr(err.text, "MfK"));
    }
}

static void a_message_needs_an_id(void **state)
{
    static const char *const ids[] = { NULL, "", "a b", "a.b", "a\r\nX: y", "\xc3\xa4" };
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct rp_hook_call call = example("hush", NULL);
        struct rp_hook_answer answer;
        struct rp_error err = { 0 };
        call.url = "http://127.0.0.1:9/";
        call.id = ids[i];
        assert_int_equal(rp_hook_send(&call, &answer, &err), RP_EINVAL);
    }
}

/* ---- answers ---- */

static void statuses_say_whether_a_repetition_can_help(void **state)
{
    static const struct {
        const char *answer;
        int code;
    } cases[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0 },
        { "HTTP/1.1 204 No Content\r\n\r\n", 0 },
        { "HTTP/1.1 200 OK\nContent-Length: 0\n\n", 0 },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: 1\r\n\r\n", 0 },
        { "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 0 },
        { "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", RP_EUNAVAILABLE },
        { "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", RP_EUNAVAILABLE },
        { "HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n", RP_EUNAVAILABLE },
        { "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n", RP_EDENIED },
        { "HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n", RP_EDENIED },
        /* a redirect is followed nowhere, also not to a file */
        { "HTTP/1.1 302 There\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", RP_EDENIED },
        { "HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", RP_EDENIED },
        { "nonsense\r\n\r\n", RP_EUNAVAILABLE },
    };
    struct rp_hook_answer answer;
    struct rp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(call_once(ANSWERS, cases[i].answer, &answer, &err), cases[i].code);
}

static void an_endless_answer_is_cut_and_counts_by_its_status(void **state)
{
    struct rp_hook_answer answer;
    struct rp_error err;
    (void)state;
    assert_int_equal(call_once(FLOODS, NULL, &answer, &err), 0);
    assert_int_equal(strlen(answer.body), RP_HOOK_ANSWER_MAX);
    assert_true(answer.cut);
}

static void a_peer_that_hangs_is_given_up_in_time(void **state)
{
    struct rp_hook_answer answer;
    struct rp_error err;
    int64_t began_ms = rp_time_boot_ms();
    (void)state;
    assert_int_equal(call_once(HANGS, NULL, &answer, &err), RP_EUNAVAILABLE);
    assert_true(rp_time_boot_ms() - began_ms < 20 * RP_SECOND_MS);
    assert_int_equal(answer.status, 0);
}

static void a_connection_that_breaks_or_is_refused_can_be_repeated(void **state)
{
    struct rp_hook_answer answer;
    struct rp_error err;
    struct peer p;
    (void)state;
    assert_int_equal(call_once(BREAKS_OFF, NULL, &answer, &err), RP_EUNAVAILABLE);
    start(&p, ANSWERS, "");
    end(&p);
    assert_int_equal(call(&p, &answer, &err), RP_EUNAVAILABLE);
}

/* A yes that broke off may have been followed by anything. */
static void what_breaks_off_is_no_answer(void **state)
{
    static const char *const begun[] = { "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
                                         "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                                         "HTTP/1.1 410 Gone\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
                                         "HTTP/1.1 200 OK\r\n",
                                         "HTTP/1.1 200 OK",
                                         "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n",
                                         "HTTP/1.1 200 OK\r\nContent-Le",
                                         "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n" };
    (void)state;
    for (size_t i = 0; i < sizeof begun / sizeof begun[0]; i++) {
        struct rp_hook_answer answer;
        struct rp_error err;
        assert_int_equal(call_once(ANSWERS, begun[i], &answer, &err), RP_EUNAVAILABLE);
        assert_int_equal(answer.status, 0);
    }
}

static void a_call_that_hangs_ends_with_who_makes_it(void **state)
{
    static const volatile sig_atomic_t stop = 1;
    struct rp_hook_answer answer;
    struct rp_error err = { 0 };
    struct peer p;
    (void)state;
    start(&p, HANGS, NULL);
    const struct rp_hook_call c = { .url = p.url,
                                    .id = "evt_1",
                                    .body = "{}",
                                    .body_bytes = 2,
                                    .timeout_ms = 10 * RP_MINUTE_MS,
                                    .allow = "127.0.0.0/8",
                                    .stop = &stop };
    alarm(60); /* it would end much later */
    assert_int_equal(rp_hook_send(&c, &answer, &err), RP_EUNAVAILABLE);
    alarm(0);
    end(&p);
}

static void an_answer_may_say_when_to_come_back(void **state)
{
    static const struct {
        const char *headers;
        int64_t ms;
    } cases[] = {
        { "", -1 },
        { "Retry-After: 0\r\n", 0 },
        { "Retry-After: 7\r\n", 7000 },
        { "retry-after:  120 \r\n", 120000 },
        { "Retry-After: 86400\r\n", RP_DAY_MS },
        { "Retry-After: 000010\r\n", 10000 },
        { "Retry-After: 86401\r\n", RP_DAY_MS },
        { "Retry-After: 99999999999999999999999\r\n", RP_DAY_MS },
        { "Retry-After: soon\r\n", -1 },
        { "Retry-After: \r\n", -1 },
        /* by the peer's own clock, which may be wrong */
        { "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:29:30 GMT\r\n", 90000 },
        { "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2015 07:27:00 GMT\r\n", 0 },
        { "Date: Wed, 21 Oct 2015 07:28:00 GMT\r\nRetry-After: Wed, 21 Oct 2065 07:28:00 GMT\r\n", RP_DAY_MS },
        /* by ours, 2023-11-14T22:13:20Z in call() */
        { "Retry-After: Tue, 14 Nov 2023 22:13:50 GMT\r\n", 30000 },
        { "Date: nonsense\r\nRetry-After: Tue, 14 Nov 2023 22:13:50 GMT\r\n", 30000 },
    };
    struct rp_hook_answer answer;
    struct rp_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[300];
        snprintf(text, sizeof text, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n%s\r\n", cases[i].headers);
        assert_int_equal(call_once(ANSWERS, text, &answer, &err), RP_EUNAVAILABLE);
        assert_int_equal(answer.retry_after_ms, cases[i].ms);
        assert_false(answer.cut);
    }
}

static const char *thanks(void *ctx, const char *request, const char *body)
{
    (void)ctx, (void)request, (void)body;
    return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
}

static void a_line_keeps_its_connection(void **state)
{
    struct hook_peer p;
    struct rp_hook_line line = { 0 };
    struct rp_hook_answer answer;
    struct rp_error err = { 0 };
    (void)state;
    hook_peer_start(&p, thanks, NULL);
    for (int i = 0; i < 10; i++) {
        struct rp_hook_call call = example("hush", NULL);
        call.url = p.url;
        call.allow = HOOK_PEER_NETWORK;
        call.line = i < 7 ? &line : NULL;
        assert_int_equal(rp_hook_send(&call, &answer, &err), 0);
        assert_string_equal(answer.body, "ok");
        if (i == 6) rp_hook_line_done(&line);
    }
    hook_peer_stop(&p);
    assert_int_equal(p.requests, 10);
    assert_int_equal(p.connections, 1 + 3);
    rp_hook_line_done(&line); /* of none */
}

/* A connection from before is no way around what is not allowed any more. */
static void a_line_is_hung_up_when_less_is_allowed(void **state)
{
    struct hook_peer p;
    struct rp_hook_line line = { 0 };
    struct rp_hook_answer answer;
    struct rp_error err = { 0 };
    struct rp_hook_call call = example("hush", NULL);
    (void)state;
    hook_peer_start(&p, thanks, NULL);
    call.url = p.url;
    call.line = &line;
    call.allow = HOOK_PEER_NETWORK;
    assert_int_equal(rp_hook_send(&call, &answer, &err), 0);
    call.allow = "";
    assert_int_equal(rp_hook_send(&call, &answer, &err), RP_EDENIED);
    rp_hook_line_done(&line);
    hook_peer_stop(&p);
    assert_int_equal(p.requests, 1);
}

static void our_own_network_is_not_called_unless_it_is_allowed(void **state)
{
    struct hook_peer p;
    struct rp_hook_answer answer;
    struct rp_hook_call call = example("hush", NULL);
    (void)state;
    hook_peer_start(&p, thanks, NULL);
    call.url = p.url;
    for (size_t i = 0; i < 3; i++) {
        static const char *const allowed[] = { NULL, "", "10.0.0.0/8 ::1/128" };
        struct rp_error err = { 0 };
        call.allow = allowed[i];
        assert_int_equal(rp_hook_send(&call, &answer, &err), RP_EDENIED);
        assert_null(strstr(err.text, "hunter2"));
        assert_null(strstr(err.text, "127.0.0.1")); /* whose address it is, is not said */
        assert_non_null(strstr(err.hint, "outbound: { allow: [\"127.0.0.0/8\"] }"));
    }
    hook_peer_stop(&p);
    assert_int_equal(p.connections, 0);
}

static void a_user_in_the_url_is_refused(void **state)
{
    struct rp_hook_answer answer;
    struct rp_error err = { 0 };
    struct rp_hook_call call = example("hush", NULL);
    (void)state;
    call.url = "http://hunter2:hunter2@127.0.0.1:9/";
    call.allow = "127.0.0.0/8";
    assert_int_equal(rp_hook_send(&call, &answer, &err), RP_ECONFIG);
    assert_null(strstr(err.text, "hunter2"));
}

static void other_schemes_are_refused(void **state)
{
    static const char *const urls[] = { "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:1/",
                                        "not a url" };
    struct rp_hook_answer answer;
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct rp_error err = { 0 };
        struct rp_hook_call how = { .url = urls[i], .id = "msg_1", .body = "{}", .body_bytes = 2 };
        assert_int_equal(rp_hook_send(&how, &answer, &err), RP_ECONFIG);
        assert_int_equal(answer.status, 0);
        assert_int_equal(rp_hook_guarantees(urls[i]), 0);
    }
}

static void a_webhook_says_what_it_guarantees(void **state)
{
    (void)state;
    assert_int_equal(rp_hook_guarantees("http://127.0.0.1/"), RP_HOOK_ANSWERS | RP_HOOK_SIGNS);
    assert_int_equal(rp_hook_guarantees("HTTPS://example.org/"), RP_HOOK_ANSWERS | RP_HOOK_SIGNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_carries_body_event_and_signature),
        cmocka_unit_test(a_signature_is_the_specifications),
        cmocka_unit_test(a_secret_that_cannot_be_read_sends_nothing),
        cmocka_unit_test(a_message_needs_an_id),
        cmocka_unit_test(an_answer_may_say_when_to_come_back),
        cmocka_unit_test(a_line_keeps_its_connection),
        cmocka_unit_test(a_line_is_hung_up_when_less_is_allowed),
        cmocka_unit_test(our_own_network_is_not_called_unless_it_is_allowed),
        cmocka_unit_test(a_user_in_the_url_is_refused),
        cmocka_unit_test(statuses_say_whether_a_repetition_can_help),
        cmocka_unit_test(an_endless_answer_is_cut_and_counts_by_its_status),
        cmocka_unit_test(a_peer_that_hangs_is_given_up_in_time),
        cmocka_unit_test(what_breaks_off_is_no_answer),
        cmocka_unit_test(a_call_that_hangs_ends_with_who_makes_it),
        cmocka_unit_test(a_connection_that_breaks_or_is_refused_can_be_repeated),
        cmocka_unit_test(other_schemes_are_refused),
        cmocka_unit_test(a_webhook_says_what_it_guarantees),
    };
    if (rp_hook_start(NULL) < 0) return 1;
    return cmocka_run_group_tests_name("hook", tests, NULL, NULL);
}
