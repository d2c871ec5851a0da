/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way through the server's threads: commands, the pool, streams, many at once,
 * and stopping in the middle of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/text/json.h"
#include "contract/http_trials.h"
#include "http/server/pool.h"
#include "lib/http.h"

static struct served s;

/* ---- commands ---- */

static void test_a_command_is_answered_when_it_is_durable(void **state)
{
    char header[256];
    (void)state;
    struct answer a =
        http_call(&s, &(struct call){ .method = "POST", .path = "/trial/count", .token = s.admin, .body = "{}" });
    assert_int_equal(a.status, 201);
    assert_int_equal(rp_json_get_int(a.json, "count", 0), 1);
    assert_string_equal(answer_header(&a, "X-Trial", header), "counted");
    assert_int_equal(world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'"), 1);
    answer_done(&a);
    a = http_call(
        &s, &(struct call){ .method = "POST", .path = "/trial/count", .token = s.admin, .body = "{\"refuse\":true}" });
    assert_int_equal(a.status, 409);
    assert_string_equal(rp_json_get_text(a.json, "code", ""), "quota_exceeded");
    assert_int_equal(rp_json_get_int(a.json, "limit", 0), 7);
    answer_done(&a);
}

struct crowd {
    CURLM *multi;
    int to_send, under_way;
    int64_t good, bad;
    struct curl_slist *headers;
    char url[200];
};

static size_t drop_body(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes, (void)ctx;
    return size * n;
}

static void send_one(struct crowd *crowd, CURL *c)
{
    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, crowd->url);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, "{}");
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, crowd->headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop_body);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, 20L); /* a stalled connection never answers */
    curl_multi_add_handle(crowd->multi, c);
    crowd->to_send--;
    crowd->under_way++;
}

static void reap(struct crowd *crowd)
{
    int left;
    for (CURLMsg *m = curl_multi_info_read(crowd->multi, &left); m != NULL;
         m = curl_multi_info_read(crowd->multi, &left)) {
        long status = 0;
        CURL *c = m->easy_handle;
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
        bool good = m->data.result == CURLE_OK && status == 201;
        crowd->good += good;
        crowd->bad += !good;
        curl_multi_remove_handle(crowd->multi, c);
        crowd->under_way--;
        if (crowd->to_send > 0)
            send_one(crowd, c);
        else
            curl_easy_cleanup(c);
    }
}

static void test_256_connections_do_not_stall(void **state)
{
    enum { CONNECTIONS = 256, REQUESTS = 8000 };
    struct crowd crowd = { .multi = curl_multi_init(), .to_send = REQUESTS };
    char line[100];
    (void)state;
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s", s.admin);
    crowd.headers = curl_slist_append(NULL, line);
    crowd.headers = curl_slist_append(crowd.headers, "Content-Type: application/json");
    (void)snprintf(crowd.url, sizeof crowd.url, "http://%s/trial/count", rp_server_address(s.server));
    curl_multi_setopt(crowd.multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS);
    for (int i = 0; i < CONNECTIONS; i++)
        send_one(&crowd, curl_easy_init());
    while (crowd.under_way > 0) {
        int running;
        curl_multi_perform(crowd.multi, &running);
        reap(&crowd);
        if (crowd.under_way > 0) curl_multi_poll(crowd.multi, NULL, 0, 100, NULL);
    }
    curl_multi_cleanup(crowd.multi);
    curl_slist_free_all(crowd.headers);
    assert_int_equal(crowd.bad, 0);
    assert_int_equal(crowd.good, REQUESTS);
    assert_int_equal(world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'"), REQUESTS);
}

/* ---- bounds, and stopping ---- */

struct asking {
    pthread_t thread;
    struct call call;
    long status;
    char retry_after[256];
};

static void *ask(void *arg)
{
    struct asking *asking = arg;
    struct answer a = http_call(&s, &asking->call);
    asking->status = a.status;
    if (answer_header(&a, "Retry-After", asking->retry_after) == NULL) asking->retry_after[0] = '\0';
    answer_done(&a);
    return NULL;
}

static void ask_many(struct asking *all, size_t n, struct call call)
{
    for (size_t i = 0; i < n; i++) {
        all[i] = (struct asking){ .call = call };
        assert_int_equal(pthread_create(&all[i].thread, NULL, ask, &all[i]), 0);
    }
}

static size_t join_all(struct asking *all, size_t n, long status)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        pthread_join(all[i].thread, NULL);
        found += all[i].status == status;
    }
    return found;
}

/* One connection each, which is all that is needed to fill the queue: nobody reads the answers
 * yet. */
static void test_a_full_queue_is_503_at_once(void **state)
{
    enum { MANY = RP_POOL_THREADS + RP_POOL_QUEUE_MAX };
    static int fds[MANY];
    char request[200], reply[4096], header[256];
    (void)state;
    int n = snprintf(request, sizeof request, "GET /trial/gate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
                     s.admin);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/gate", .token = s.admin }), 200, NULL);
    trial_gate(false);
    for (int i = 0; i < MANY; i++) {
        fds[i] = http_connect(&s);
        http_write(fds[i], request, (size_t)n);
        if (i < RP_POOL_THREADS) until(trial_waiting == i + 1);
    }
    until(atomic_load(&s.server->open) == MANY);
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/trial/gate", .token = s.admin });
    assert_int_equal(a.status, 503);
    assert_string_equal(answer_header(&a, "Retry-After", header), "1");
    answer_done(&a);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = s.admin }), 200,
           NULL); /* needs no pool */
    trial_gate(true);
    for (int i = 0; i < MANY; i++) {
        (void)http_read(fds[i], reply, sizeof reply, 12);
        assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
        close(fds[i]);
    }
}

static void narrow_queue(struct served *served)
{
    served->queue_max = 1;
}

/* Token and tenant are known by then, so that nothing but the writer can be what is busy. */
static void test_a_full_writer_is_503_and_nothing_is_lost(void **state)
{
    enum { MANY = 64 };
    const struct call count = { .method = "POST", .path = "/trial/count", .token = s.admin, .body = "{}" };
    struct asking all[MANY];
    (void)state;
    served_drop(&s);
    trial_begin(&s, DBS_SQLITE_FILE, narrow_queue);
    expect(&s, &count, 201, NULL);
    ask_many(all, MANY, count);
    size_t made = 1, busy = 0;
    for (size_t i = 0; i < MANY; i++) {
        pthread_join(all[i].thread, NULL);
        made += all[i].status == 201;
        busy += all[i].status == 503;
        if (all[i].status != 201 && all[i].status != 503) fail_msg("answer %zu is %ld", i, all[i].status);
        if (all[i].status == 503) assert_string_equal(all[i].retry_after, "1");
    }
    assert_true(made > 1);
    assert_int_equal(world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'"), (int64_t)made);
    assert_int_equal(trial_followed, MANY + 1); /* what was to follow has followed, also where the queue was full */
    assert_int_equal(trial_refused, (int64_t)busy);
}

/* Nobody reads the answer, but what follows a command does not depend on that. */
static void test_what_follows_a_command_follows_after_a_reset(void **state)
{
    const struct linger reset = { .l_onoff = 1 };
    char request[300];
    (void)state;
    int n = snprintf(request, sizeof request,
                     "POST /trial/slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
                     s.admin);
    trial_gate(false);
    int fd = http_connect(&s);
    http_write(fd, request, (size_t)n);
    until(trial_prepared == 1);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(fd);
    trial_gate(true);
    until(atomic_load(&s.server->open) == 0);
    assert_int_equal(trial_followed, 1);
    assert_int_equal(trial_refused, 0);
    assert_int_equal(world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'"), 1);
}

static void *stop_server(void *arg)
{
    served_stop(&s, *(int64_t *)arg);
    return NULL;
}

static void test_stop_answers_what_was_accepted(void **state)
{
    enum { MANY = 32 };
    struct asking all[MANY];
    pthread_t stopper;
    int64_t patience_ms = 30000;
    (void)state;
    trial_gate(false);
    ask_many(all, MANY, (struct call){ .method = "GET", .path = "/trial/gate", .token = s.admin });
    until(trial_waiting == RP_POOL_THREADS);
    pthread_create(&stopper, NULL, stop_server, &patience_ms);
    trial_gate(true);
    pthread_join(stopper, NULL);
    size_t good = join_all(all, MANY, 200);
    for (size_t i = 0; i < MANY; i++) /* one that had not been accepted is not answered at all */
        assert_true(all[i].status == 200 || all[i].status == 0);
    assert_true(good >= RP_POOL_THREADS);
}

static void test_stop_without_patience_resumes_everybody(void **state)
{
    enum { MANY = 40 };
    struct asking all[MANY], counting[MANY];
    pthread_t stopper;
    int64_t patience_ms = 0;
    (void)state;
    trial_gate(false);
    ask_many(all, MANY, (struct call){ .method = "GET", .path = "/trial/gate", .token = s.admin });
    until(trial_waiting == RP_POOL_THREADS);
    ask_many(counting, MANY, (struct call){ .method = "POST", .path = "/trial/count", .token = s.admin, .body = "{}" });
    pthread_create(&stopper, NULL, stop_server, &patience_ms);
    trial_gate(true);
    pthread_join(stopper, NULL);
    (void)join_all(all, MANY, 200);
    size_t counted = join_all(counting, MANY, 201);
    int64_t rows = world_number(&s.w, "SELECT COALESCE(max(number), 0) FROM meta WHERE name = 'trial'");
    assert_true((int64_t)counted <= rows); /* every one that was told is there */
}

struct hammering {
    pthread_t thread;
    char request[300];
    struct sockaddr_in at;
    atomic_bool *over;
    int64_t told; /* answers 201 */
};

/* Connections that are never idle: the next request is sent as soon as the last is answered, until
 * the server is gone. */
static void *hammer(void *arg)
{
    struct hammering *h = arg;
    char reply[2048];
    while (!atomic_load(h->over)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&h->at, sizeof h->at) == 0) {
            do {
                http_write(fd, h->request, strlen(h->request));
                if (http_read(fd, reply, sizeof reply, 12) < 12) break;
                h->told += strncmp(reply, "HTTP/1.1 201", 12) == 0;
            } while (strstr(reply, "\r\nConnection: close") == NULL);
        }
        close(fd);
    }
    return NULL;
}

static void point_at(struct hammering *h, const struct served *served)
{
    const char *address = rp_server_address(served->server);
    h->at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)) };
    h->at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)snprintf(
        h->request, sizeof h->request,
        "POST /trial/count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
        "Content-Length: 2\r\n\r\n{}",
        served->admin);
}

/* Requests come in while it stops: none is suspended when the HTTP library ends, and none that was
 * told is missing. */
static void test_stop_under_load(void **state)
{
    enum { ROUNDS = 30, CLIENTS = 16 };
    struct rp_error err = { 0 };
    int64_t told = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct hammering all[CLIENTS];
        atomic_bool over = false;
        struct rp_server_options o = *rp_server_options_of(s.server);
        int64_t before = world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'");
        for (int i = 0; i < CLIENTS; i++) {
            all[i] = (struct hammering){ .over = &over };
            point_at(&all[i], &s);
            assert_int_equal(pthread_create(&all[i].thread, NULL, hammer, &all[i]), 0);
        }
        until(world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'") > before + 20);
        rp_server_stop(s.server, round % 2 == 0 ? 0 : 5);
        atomic_store(&over, true);
        for (int i = 0; i < CLIENTS; i++) {
            pthread_join(all[i].thread, NULL);
            told += all[i].told;
        }
        ok(rp_server_start(&o, &s.server, &err));
        (void)snprintf(s.address, sizeof s.address, "%s", rp_server_address(s.server));
    }
    assert_true(told <= world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'"));
    assert_true(told > 20 * ROUNDS / 2);
}

/* ---- streams ---- */

static void test_an_upload_is_taken_as_it_comes(void **state)
{
    char *big = malloc(300001);
    (void)state;
    memset(big, 'x', 300000);
    big[300000] = '\0';
    struct call c = { .method = "PUT", .path = "/trial/upload/a", .body = big, .type = "text/plain" };
    struct answer a = http_call(&s, &c);
    assert_int_equal(a.status, 200);
    assert_int_equal(rp_json_get_int(a.json, "received", 0), 300000);
    answer_done(&a);
    c.path = "/trial/swift/a";
    expect(&s, &c, 200, NULL);
    c.body = "";
    expect(&s, &c, 200, NULL);
    c.path = "/trial/upload/a";
    expect(&s, &c, 200, NULL);
    assert_int_equal(trial_received, 600000);
    assert_int_equal(trial_ended, 4);
    c.path = "/trial/upload/no";
    c.body = big;
    struct answer refused = http_call(&s, &c);
    assert_true(refused.status == 403 || refused.status == 0); /* the connection may be closed while curl still sends */
    answer_done(&refused);
    assert_int_equal(trial_aborted, 0);
    free(big);
}

static void test_a_refused_upload_is_answered_or_closed(void **state)
{
    char *big = malloc(8 << 20);
    (void)state;
    memset(big, 'x', 8 << 20);
    big[10] = '!';
    struct call c = { .method = "PUT", .path = "/trial/upload/a", .body = big, .body_n = 20000, .type = "text/plain" };
    expect(&s, &c, 422, "checksum_mismatch");
    c.body_n = 8 << 20;
    struct answer a = http_call(&s, &c);
    assert_true(a.status == 422 || a.status == 0);
    answer_done(&a);
    assert_int_equal(trial_aborted, 2);
    assert_int_equal(trial_ended, 0);
    assert_true(trial_received < 1 << 20);
    free(big);
}

static void test_an_upload_that_breaks_off_is_aborted(void **state)
{
    const char *start = "PUT /trial/upload/a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nsome of it";
    (void)state;
    int fd = http_connect(&s);
    http_write(fd, start, strlen(start));
    until(trial_received == 10);
    close(fd);
    until(trial_aborted == 1);
    assert_int_equal(trial_ended, 0);
}

static void test_100_continue_comes_after_the_handler(void **state)
{
    static const char wanted[] =
        "PUT /trial/upload/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    static const char unwanted[] =
        "PUT /trial/upload/no HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    char reply[4096];
    (void)state;
    int fd = http_connect(&s);
    http_write(fd, wanted, sizeof wanted - 1);
    (void)http_read(fd, reply, sizeof reply, 25);
    assert_non_null(strstr(reply, "100 Continue"));
    http_write(fd, "abc", 3);
    (void)http_read(fd, reply, sizeof reply, 12);
    assert_non_null(strstr(reply, "HTTP/1.1 200"));
    close(fd);
    fd = http_connect(&s);
    http_write(fd, unwanted, sizeof unwanted - 1);
    (void)http_read(fd, reply, sizeof reply, sizeof reply);
    assert_non_null(strstr(reply, "HTTP/1.1 403"));
    assert_null(strstr(reply, "100 Continue"));
    close(fd);
}

static void test_an_answer_can_be_a_stream(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct answer a = http_call(
            &s, &(struct call){ .method = "GET", .path = known ? "/trial/stream?known=true" : "/trial/stream" });
        assert_int_equal(a.status, 200);
        assert_int_equal(a.n, 100000);
        answer_done(&a);
    }
    struct answer a = http_call(&s, &(struct call){ .method = "HEAD", .path = "/trial/stream?known=true" });
    assert_int_equal(a.status, 200);
    answer_done(&a);
    until(trial_freed == 3);
}

#define test(name) TRIAL(name, &s)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_a_command_is_answered_when_it_is_durable),
        test(test_256_connections_do_not_stall),
        test(test_a_full_queue_is_503_at_once),
        test(test_a_full_writer_is_503_and_nothing_is_lost),
        test(test_what_follows_a_command_follows_after_a_reset),
        test(test_stop_answers_what_was_accepted),
        test(test_stop_without_patience_resumes_everybody),
        test(test_stop_under_load),
        test(test_an_upload_is_taken_as_it_comes),
        test(test_a_refused_upload_is_answered_or_closed),
        test(test_an_upload_that_breaks_off_is_aborted),
        test(test_100_continue_comes_after_the_handler),
        test(test_an_answer_can_be_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
