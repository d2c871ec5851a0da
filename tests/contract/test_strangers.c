/* SPDX-License-Identifier: Apache-2.0 */
/* What strangers, and tenants beside each other, may not do: fill memory before they are known,
 * lock others out, hold every upload, send what a proxy reads differently. docs/security.md names
 * these tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/json.h"
#include "contract/http_trials.h"
#include "http/server/auth.h"
#include "lib/http.h"

#define MIB        (1 << 20)
#define BODIES_MIB 64 /* of all bodies in memory */
#define LARGE_MIB  8  /* of a body of POST /v1/transactions/{id}/commit */
#define UPLOADS    16 /* at once */
#define TIMEOUT_MS 1000

static struct served s;

static void few_and_short(struct served *served)
{
    served->config.http_connections_max = 4 * UPLOADS;
    served->config.http_timeout_ms = TIMEOUT_MS;
}

/* Sends these bytes on a connection of their own; what comes back, until `enough` bytes or the
 * end. */
static int begin(const char *text)
{
    int fd = http_connect(&s);
    http_write(fd, text, strlen(text));
    return fd;
}

static int status_of(const char *reply)
{
    return strncmp(reply, "HTTP/1.1 ", 9) == 0 ? atoi(reply + 9) : 0;
}

static int read_status(int fd, char *reply, size_t size)
{
    (void)http_read(fd, reply, size, size - 1);
    return status_of(reply);
}

/* ---- bodies and credentials ---- */

static int begin_body(const char *token, const char *path, long bytes, const char *more)
{
    char head[600];
    (void)snprintf(head, sizeof head,
                   "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                   "Content-Length: %ld\r\n%s\r\n",
                   path, token, bytes, more);
    return begin(head);
}

/* Not a byte of the body was sent: the headers alone are answered. */
static void nobody_sends_a_body_before_its_credentials_are_known(void **state)
{
    static const char *const more[] = { "", "Expect: 100-continue\r\n" };
    struct rp_error err = { 0 };
    char secret[RP_TOKEN_SECRET], weak[RP_TOKEN_SECRET], reply[2048];
    (void)state;
    ok(rp_token_secret(RP_TOKEN_BEARER, secret, &err));
    served_token(&s, "acme", RP_MAY_LISTEN, 0, weak);
    for (size_t i = 0; i < 2; i++) {
        int fd = begin_body(secret, "/trial/echo", 1000, more[i]);
        assert_int_equal(read_status(fd, reply, sizeof reply), 401);
        close(fd);
        fd = begin_body(weak, "/trial/echo", 1000, more[i]);
        assert_int_equal(read_status(fd, reply, sizeof reply), 403);
        close(fd);
    }
}

/* A token that the server has not seen yet is asked about before its body; then the body is
 * taken. */
static void a_token_seen_for_the_first_time_is_let_in_with_its_body(void **state)
{
    char unseen[RP_TOKEN_SECRET], reply[2048];
    const char *body = "{\"text\":\"a\"}";
    (void)state;
    for (int pause_ms = 0; pause_ms <= 50; pause_ms += 50) {
        served_token(&s, "acme", RP_MAY_ALL, 0, unseen);
        int fd = begin_body(unseen, "/trial/echo", (long)strlen(body), "Connection: close\r\n");
        (void)poll(NULL, 0, pause_ms); /* the body comes with the headers, and long after */
        http_write(fd, body, strlen(body));
        assert_int_equal(read_status(fd, reply, sizeof reply), 200);
        close(fd);
    }
}

static void guess(int times)
{
    struct rp_error err = { 0 };
    char secret[RP_TOKEN_SECRET];
    for (int i = 0; i < times; i++) {
        ok(rp_token_secret(RP_TOKEN_BEARER, secret, &err));
        struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/trial/echo/a", .token = secret });
        assert_true(a.status == 401 || a.status == 429);
        answer_done(&a);
    }
}

/* Behind a proxy all have one address: what others try there is no reason to refuse a valid token
 * or link. */
static void a_valid_token_is_never_refused_for_what_others_try(void **state)
{
    char unseen[RP_TOKEN_SECRET], link[RP_TOKEN_SECRET], path[200];
    (void)state;
    served_token(&s, "acme", RP_MAY_ALL, 0, unseen);
    served_secret(&s, RP_TOKEN_LINK, NULL, RP_MAY_ALL, 60000, link);
    (void)snprintf(path, sizeof path, "/signin?link=%s", link);
    guess(4 * RP_FAILURES_PER_SECOND);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = unseen }), 200, NULL);
    expect(&s, (&(struct call){ .method = "GET", .path = path }), 303, NULL);
}

static double metric(const char *name)
{
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/metrics", .token = s.admin });
    char line[100];
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(a.body, line);
    assert_non_null(at);
    double value = strtod(at + strlen(line), NULL);
    answer_done(&a);
    return value;
}

/* What is promised is counted before it comes. One tenant has half of it at most; the other is
 * served beside it. */
static void bodies_in_memory_are_bounded_for_all_and_for_each(void **state)
{
    enum { MOST = BODIES_MIB / LARGE_MIB / 2 };
    int fds[MOST];
    char one[RP_TOKEN_SECRET], other[RP_TOKEN_SECRET], reply[2048];
    const char *path = "/v1/transactions/txn_1/commit";
    (void)state;
    served_token(&s, "one", RP_MAY_ALL, 0, one);
    served_token(&s, "other", RP_MAY_ALL, 0, other);
    for (int i = 0; i < MOST; i++)
        fds[i] = begin_body(one, path, LARGE_MIB * MIB, "");
    until((int)metric("reprieve_http_body_bytes") == MOST * LARGE_MIB * MIB);
    int fd = begin_body(one, path, LARGE_MIB * MIB, "");
    assert_int_equal(read_status(fd, reply, sizeof reply), 503);
    assert_non_null(strstr(reply, "Retry-After: 1"));
    close(fd);
    fd = begin_body(other, path, LARGE_MIB * MIB, "");
    until((int)metric("reprieve_http_body_bytes") == (MOST + 1) * LARGE_MIB * MIB);
    close(fd);
    expect(&s, (&(struct call){ .method = "POST", .path = "/trial/echo", .token = other, .body = "{\"text\":\"a\"}" }),
           200, NULL);
    for (int i = 0; i < MOST; i++)
        close(fds[i]);
    until((int)metric("reprieve_http_body_bytes") == 0);
}

/* ---- uploads ---- */

/* The path of an upload that this tenant has begun. */
static void begin_file(const char *token, const char *name, long size, char out[512])
{
    char request[200];
    (void)snprintf(request, sizeof request, "{\"name\":\"%s\",\"size\":%ld}", name, size);
    struct answer a =
        http_call(&s, &(struct call){ .method = "POST", .path = "/v1/files", .token = token, .body = request });
    assert_int_equal(a.status, 201);
    const char *url = rp_json_get_text(json_object_get(a.json, "upload"), "url", "");
    assert_non_null(strstr(url, "/v1/uploads/"));
    (void)snprintf(out, 512, "%s", strstr(url, "/v1/uploads/"));
    answer_done(&a);
}

static int begin_put(const char *path, long size)
{
    char head[700], reply[100];
    (void)snprintf(head, sizeof head,
                   "PUT %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %ld\r\n\r\n", path, size);
    int fd = begin(head);
    (void)http_read(fd, reply, sizeof reply, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
    if (status_of(reply) == 100) return fd;
    close(fd);
    return -status_of(reply);
}

static void one_tenant_does_not_hold_every_upload(void **state)
{
    enum { SIZE = 100000 };
    char one[RP_TOKEN_SECRET], other[RP_TOKEN_SECRET], path[512], name[20];
    int fds[UPLOADS], n = 0;
    (void)state;
    served_drop(&s);
    trial_begin(&s, DBS_SQLITE_FILE, few_and_short);
    served_token(&s, "one", RP_MAY_ALL, 0, one);
    served_token(&s, "other", RP_MAY_ALL, 0, other);
    for (int fd = 0; fd >= 0; n++) {
        (void)snprintf(name, sizeof name, "f%d", n);
        begin_file(one, name, SIZE, path);
        fd = fds[n] = begin_put(path, SIZE);
    }
    assert_int_equal(fds[--n], -503);
    assert_int_equal(n, UPLOADS / 2);
    begin_file(other, "g", SIZE, path);
    fds[n] = begin_put(path, SIZE);
    assert_true(fds[n] > 0);
    for (int i = 0; i <= n; i++)
        close(fds[i]);
}

/* A byte now and then keeps a connection, but no upload: it ends with 408 although it is never
 * silent for long. */
static void an_upload_that_drips_ends_with_408(void **state)
{
    char path[512], reply[2048];
    (void)state;
    served_drop(&s);
    trial_begin(&s, DBS_SQLITE_FILE, few_and_short);
    begin_file(s.admin, "drip", 100000, path);
    int fd = begin_put(path, 100000);
    assert_true(fd > 0);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    for (int i = 0; i < 100 && poll(&p, 1, TIMEOUT_MS / 5) == 0; i++)
        http_write(fd, "a", 1);
    assert_int_equal(read_status(fd, reply, sizeof reply), 408);
    assert_non_null(strstr(reply, "\"code\":\"too_slow\""));
    close(fd);
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/healthz" });
    assert_int_equal(a.status, 200);
    answer_done(&a);
}

/* ---- requests that can be read in two ways ---- */

struct raw {
    const char *bytes;
    size_t n;
};
#define RAW(text)                                                                                                      \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }
#define GET "GET /healthz HTTP/1.1\r\n"
#define PUT "PUT /trial/swift/a HTTP/1.1\r\nHost: x\r\n"

static const struct raw two_ways[] = {
    RAW(PUT "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    RAW(PUT "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
    RAW(PUT "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    RAW(PUT "Content-Length: 5\r\ncontent-length: 7\r\n\r\nhello"),
    RAW(PUT "Content-Length: 5, 5\r\n\r\nhello"),
    RAW(PUT "Content-Length : 5\r\n\r\nhello"),
    RAW(PUT "Content-Length\t: 5\r\n\r\nhello"),
    RAW(PUT "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    RAW(PUT "Transfer-Encoding: gzip\r\n\r\nhello"),
    RAW(PUT "Transfer-Encoding: identity\r\n\r\nhello"),
    RAW(PUT "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    RAW(PUT "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    RAW(PUT "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
    RAW(PUT "Transfer-Encoding: \013chunked\r\n\r\n0\r\n\r\n"),
    RAW("PUT /trial/swift/a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    RAW(GET "Host: x\r\nHost: x\r\n\r\n"),
    RAW(GET "Host: x\r\nhost: y\r\n\r\n"),
    RAW(GET "Host : x\r\n\r\n"),
    RAW(GET "\r\n"),
    /* folded */
    RAW(GET "Host: x\r\nX-A: b\r\n c\r\n\r\n"),
    RAW(GET "Host: x\r\nX-A:          b\r\n\tc\r\n\r\n"),
    RAW(GET "Host: x\r\nX-A: b\r\n \r\n\r\n"),
    RAW(GET " X-A: b\r\nHost: x\r\n\r\n"),
    RAW(PUT "Content-Length:\r\n 5\r\n\r\nhello"),
    /* NUL */
    RAW(GET "Host: x\r\nX-A: b\0c\r\n\r\n"),
    RAW(GET "Host: x\r\nX-A: b\0\r\n\r\n"),
    RAW(GET "X-A: b\0\r\nHost: x\r\n\r\n"),
    RAW(GET "Host: x\r\nX\0A: b\r\n\r\n"),
    RAW(GET "Host: x\r\n\0X-A: b\r\n\r\n"),
    RAW(GET "Host: x\r\nX-A: b\r\n\0\r\n\r\n"),
    RAW(PUT "Content-Length: 0\r\n\0Transfer-Encoding: chunked\r\n\r\n"),
    RAW("GET /healthz\0 HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET /healthz\0/v1 HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET /healthz?\0a=1 HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET /trial/stream?limit=1\0 HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET /trial/stream?limit=1\0&limit=2 HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GE\0T /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET\0 /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET /healthz HTTP/1.1\0\r\nHost: x\r\n\r\n"),
    /* ends of lines, other characters that end them elsewhere */
    RAW("GET /healthz HTTP/1.1\nHost: x\r\n\r\n"),
    RAW(GET "Host: x\nX-A: b\r\n\r\n"),
    RAW(GET "Host: x\r\nX-A: b\n\r\n"),
    RAW(GET "Host: x\r\n\n"),
    RAW(GET "Host: x\r\nX-A: b\rX-B: c\r\n\r\n"),
    RAW(GET "Host: x\r\nX-A: b\033c\r\n\r\n"),
    RAW(GET "Host: x\r\nX A: b\r\n\r\n"),
    RAW(GET "Host: x\r\n: b\r\n\r\n"),
    RAW(GET "Host: x\r\nX-\303\244: b\r\n\r\n"),
    RAW("GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET\t/healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET /healthz x HTTP/1.1\r\nHost: x\r\n\r\n"),
    RAW("GET /health\rz HTTP/1.1\r\nHost: x\r\n\r\n"),
};

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        n++;
    return n;
}

/* Each is refused, or the connection just ends; nothing that follows on it is read as a request. */
static void what_a_proxy_may_read_differently_ends_the_connection(void **state)
{
    static const char next[] = "GET /v1/nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char reply[4096];
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof two_ways / sizeof two_ways[0]; i++) {
        int fd = http_connect(&s);
        http_write(fd, two_ways[i].bytes, two_ways[i].n);
        http_write(fd, next, sizeof next - 1);
        (void)http_read(fd, reply, sizeof reply, sizeof reply - 1);
        close(fd);
        if ((reply[0] == '\0' || status_of(reply) == 400) && count(reply, "HTTP/1.1 404") == 0) continue;
        print_error("%zu: %.60s: %s\n", i, two_ways[i].bytes, reply);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* The same look lets ordinary requests pass, however they are cut into pieces, and as many as come
 * on one connection. */
static void ordinary_requests_pass_in_any_pieces(void **state)
{
    enum { REFUSED = 2 }; /* without a token: 401, and the connection goes on */
    static const char *const ordinary[] = {
        GET "Host: x\r\n\r\n",
        GET "Host:x\r\nX-Empty:\r\nX-Spaces:   a b  \t \r\nAccept: a/b;q=0.5, */*\r\nCookie: a=b; c=\"d\"; e\r\n\r\n",
        "GET /trial/echo/a?limit=3&known&&since=1%64+x& HTTP/1.1\r\nHost: x\r\n\r\n",
        "HEAD /healthz? HTTP/1.1\r\nHost: x\r\n\r\n",
        "\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nX-Utf8: \303\244\r\n\r\n",
    };
    char many[5000], reply[65536];
    int n = snprintf(many, sizeof many, GET "Host: x\r\n");
    (void)state;
    for (int i = 0; i < 40; i++)
        n += snprintf(many + n, sizeof many - (size_t)n, "X-Header-%d: %.*s\r\n", i, i,
                      "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
    (void)snprintf(many + n, sizeof many - (size_t)n, "\r\n");
    for (size_t piece = 1; piece < 6000; piece = piece * 7 + 1) {
        int fd = http_connect(&s);
        size_t asked = 0;
        for (size_t i = 0; i <= sizeof ordinary / sizeof ordinary[0]; i++) {
            const char *text = i == sizeof ordinary / sizeof ordinary[0] ? many : ordinary[i];
            asked += i != REFUSED;
            for (size_t at = 0, left; (left = strlen(text + at)) > 0; at += left < piece ? left : piece)
                http_write(fd, text + at, left < piece ? left : piece);
        }
        const char *last = GET "Host: x\r\nConnection: close\r\n\r\n";
        http_write(fd, last, strlen(last));
        (void)http_read(fd, reply, sizeof reply, sizeof reply - 1);
        close(fd);
        assert_int_equal(count(reply, "HTTP/1.1 401"), 1);
        if (count(reply, "HTTP/1.1 200") != asked + 1) print_error("pieces of %zu: %s\n", piece, reply);
        assert_int_equal(count(reply, "HTTP/1.1 200"), asked + 1);
    }
}

/* Where a chunked body ends, a proxy may see otherwise: nothing that follows it is read. */
static void a_connection_ends_with_a_chunked_body(void **state)
{
    static const char chunked[] =
        PUT "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n" GET "Host: x\r\n\r\n";
    char reply[4096];
    (void)state;
    int fd = begin(chunked);
    (void)http_read(fd, reply, sizeof reply, sizeof reply - 1);
    assert_int_equal(status_of(reply), 200);
    assert_int_equal(count(reply, "HTTP/1.1 "), 1);
    close(fd);
}

/* ---- the console and what everybody may ask ---- */

static void behind_a_proxy(struct served *served)
{
    served->config.public_url = "https://example.org/reprieve/";
}

static void make_link(char path[200])
{
    char link[RP_TOKEN_SECRET];
    served_secret(&s, RP_TOKEN_LINK, NULL, RP_MAY_ALL, 60000, link);
    (void)snprintf(path, 200, "/signin?link=%s", link);
}

static void behind_https_a_cookie_is_secure_and_the_path_is_kept(void **state)
{
    static const char body[] = "{\"name\":\"a\",\"kind\":\"link\",\"admin\":true,\"scopes\":[\"admin\"]}";
    char path[200], header[256];
    (void)state;
    make_link(path);
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = path });
    assert_null(strstr(answer_header(&a, "Set-Cookie", header), "Secure"));
    assert_non_null(strstr(answer_header(&a, "Set-Cookie", header), "Path=/;"));
    answer_done(&a);
    served_drop(&s);
    trial_begin(&s, DBS_SQLITE_FILE, behind_a_proxy);
    make_link(path);
    a = http_call(&s, &(struct call){ .method = "GET", .path = path });
    assert_int_equal(a.status, 303);
    assert_string_equal(answer_header(&a, "Location", header), "/reprieve/");
    assert_non_null(strstr(answer_header(&a, "Set-Cookie", header), "; Secure"));
    assert_non_null(strstr(header, "Path=/reprieve;"));
    answer_done(&a);
    a = http_call(&s, &(struct call){ .method = "POST", .path = "/v1/tokens", .token = s.admin, .body = body });
    assert_int_equal(a.status, 201);
    assert_memory_equal(rp_json_get_text(a.json, "sign_in", ""), "/reprieve/signin?link=", 22);
    answer_done(&a);
}

/* What looks before it fetches, as mail programs do, takes no link away. */
static void head_uses_up_no_link(void **state)
{
    char path[200];
    (void)state;
    make_link(path);
    expect(&s, (&(struct call){ .method = "HEAD", .path = path }), 200, NULL);
    expect(&s, (&(struct call){ .method = "GET", .path = path }), 303, NULL);
    expect(&s, (&(struct call){ .method = "GET", .path = path }), 401, NULL);
}

/* Nobody needs a token to ask: so nothing there counts what tenants do. */
static void readyz_counts_nothing_of_tenants(void **state)
{
    static const char *const said[] = { "status", "catalog", "stores", "sweeper", "clock" };
    (void)state;
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/readyz" });
    assert_int_equal(json_object_size(a.json), sizeof said / sizeof said[0]);
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        assert_non_null(json_object_get(a.json, said[i]));
    answer_done(&a);
}

#define test(name) TRIAL(name, &s)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(nobody_sends_a_body_before_its_credentials_are_known),
        test(a_token_seen_for_the_first_time_is_let_in_with_its_body),
        test(a_valid_token_is_never_refused_for_what_others_try),
        test(bodies_in_memory_are_bounded_for_all_and_for_each),
        test(one_tenant_does_not_hold_every_upload),
        test(an_upload_that_drips_ends_with_408),
        test(what_a_proxy_may_read_differently_ends_the_connection),
        test(ordinary_requests_pass_in_any_pieces),
        test(a_connection_ends_with_a_chunked_body),
        test(behind_https_a_cookie_is_secure_and_the_path_is_kept),
        test(head_uses_up_no_link),
        test(readyz_counts_nothing_of_tenants),
    };
    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
