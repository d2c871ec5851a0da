/* SPDX-License-Identifier: Apache-2.0 */
/* Calls out, against a peer on a real socket that answers, refuses, redirects, floods, hangs or breaks off. */
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
                                .secret = "hush",
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
    char signature[RP_HOOK_SIGNATURE];
    (void)state;
    start(&p, ANSWERS, "HTTP/1.1 202 Accepted\r\nContent-Length: 6\r\n\r\nt\nhank");
    assert_int_equal(call(&p, &answer, &err), 0);
    end(&p);
    assert_int_equal(answer.status, 202);
    assert_string_equal(answer.body, "t.hank");
    assert_int_equal(strncmp(p.request, "POST /hunter2 HTTP/1.1\r\n", 24), 0);
    assert_non_null(strstr(p.request, "\r\n\r\n{\"a\":1}"));
    assert_non_null(strstr(p.request, "\r\nReprieve-Event: alert.raised\r\n"));
    rp_hook_sign("hush", 1700000000000, "{\"a\":1}", 7, signature);
    const char *sent = strstr(p.request, "\r\nReprieve-Signature: ");
    assert_non_null(sent);
    assert_int_equal(strncmp(sent + 22, signature, strlen(signature)), 0);
}

static void statuses_say_whether_a_repetition_can_help(void **state)
{
    static const struct {
        const char *answer;
        int code;
    } cases[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0 },
        { "HTTP/1.1 204 No Content\r\n\r\n", 0 },
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

static void other_schemes_are_refused(void **state)
{
    static const char *const urls[] = { "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:1/",
                                        "not a url" };
    struct rp_hook_answer answer;
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct rp_error err = { 0 };
        struct rp_hook_call how = { .url = urls[i], .body = "{}", .body_bytes = 2 };
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
        cmocka_unit_test(statuses_say_whether_a_repetition_can_help),
        cmocka_unit_test(an_endless_answer_is_cut_and_counts_by_its_status),
        cmocka_unit_test(a_peer_that_hangs_is_given_up_in_time),
        cmocka_unit_test(a_connection_that_breaks_or_is_refused_can_be_repeated),
        cmocka_unit_test(other_schemes_are_refused),
        cmocka_unit_test(a_webhook_says_what_it_guarantees),
    };
    /* whoever runs the tests may have a proxy; the peer is on this machine */
    setenv("no_proxy", "*", 1);
    if (rp_hook_start(NULL) < 0) return 1;
    return cmocka_run_group_tests_name("hook", tests, NULL, NULL);
}
