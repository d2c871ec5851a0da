/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server with a real client: what it refuses and how, what it bounds, how it describes
 * itself. Tokens, permissions and idempotency are in test_http_access.c, threads in
 * test_http_flow.c. */
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
#include "http/route/route.h"
#include "lib/http.h"

static struct served s;

/* ---- what is refused ---- */

static void test_unknown_paths_and_methods(void **state)
{
    char allow[256];
    (void)state;
    expect(&s, (&(struct call){ .method = "GET", .path = "/v1/nothing", .token = s.admin }), 404, "not_found");
    expect(&s, (&(struct call){ .method = "GET", .path = "/v1/nothing" }), 404, "not_found");
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/", .token = s.admin }), 404, "not_found");
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a/", .token = s.admin }), 404, "not_found");
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/%00", .token = s.admin }), 404, "not_found");
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/%ff", .token = s.admin }), 404, "not_found");
    expect(&s, (&(struct call){ .method = "POST", .path = "/v1/nothing", .body = "{}" }), 404, "not_found");
    struct answer a = http_call(&s, &(struct call){ .method = "DELETE", .path = "/v1/tokens" });
    assert_int_equal(a.status, 405);
    assert_string_equal(answer_header(&a, "Allow", allow), "POST, GET");
    answer_done(&a);
}

static void test_path_segments_are_decoded_once(void **state)
{
    (void)state;
    struct answer a =
        http_call(&s, &(struct call){ .method = "GET", .path = "/trial/echo/a%2Fb%2525", .token = s.admin });
    assert_int_equal(a.status, 200);
    assert_string_equal(rp_json_get_text(a.json, "arg", ""), "a/b%25");
    answer_done(&a);
    a = http_call(&s, &(struct call){ .method = "GET", .path = "/trial/echo/literal", .token = s.admin });
    assert_true(json_is_null(json_object_get(a.json, "arg")));
    answer_done(&a);
}

static void test_bodies_that_are_refused(void **state)
{
    static const struct {
        const char *body, *detail;
    } cases[] = {
        { "{", "json: line 1" },
        { "[]", "the body: expected an object, found a list" },
        { "7", "the body: expected an object, found 7" },
        { "{}", "text: is missing" },
        { "{\"text\":7}", "text: expected a text, found 7" },
        { "{\"text\":\"\"}", "text: expected a text with a number of bytes from 1 to 20" },
        { "{\"text\":\"123456789012345678901\"}", "from 1 to 20" },
        { "{\"text\":\"a\",\"text\":\"b\"}", "duplicate" },
        { "{\"text\":\"a\",\"other\":1}", "other: no such member" },
        { "{\"text\":\"a\",\"number\":6}", "number: expected a number from -5 to 5, found 6" },
        { "{\"text\":\"a\",\"number\":1.5}", "number: expected a whole number, found 1.5" },
        { "{\"text\":\"a\",\"size\":\"10 apples\"}", "size: expected bytes" },
        { "{\"text\":\"a\",\"colour\":\"blue\"}", "colour: expected red or green, found \"blue\"" },
        { "{\"text\":\"a\",\"yes\":\"true\"}", "yes: expected true or false" },
        { "{\"text\":\"a\",\"items\":[{},{\"grace\":7}]}", "items[1].grace: expected a duration such as 5d, found 7" },
        { "{\"text\":\"a\",\"items\":[{\"id\":\"mrk_0000000000001\"}]}", "items[0].id: expected an id such as fil_" },
        { "{\"text\":\"a\",\"metadata\":{\"k\":1}}", "metadata.k: expected a text, found 1" },
        { "{\"text\":\"\xff\"}", "json: line 1" },
        { "{\"text\":\"\\u0000\"}", "json: line 1" },
        { "{\"text\":\"a\"} x", "json: line 1" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer a = http_call(
            &s, &(struct call){ .method = "POST", .path = "/trial/echo", .token = s.admin, .body = cases[i].body });
        const char *detail = rp_json_get_text(a.json, "detail", "");
        if (a.status != 400 || strstr(detail, cases[i].detail) == NULL) {
            print_error("%s: %ld %s\n", cases[i].body, a.status, a.body);
            fail();
        }
        answer_done(&a);
    }
}

static void test_deep_json_is_refused(void **state)
{
    char body[30000] = "{\"text\":\"a\",\"items\":";
    size_t n = strlen(body);
    (void)state;
    memset(body + n, '[', sizeof body - n - 1);
    struct answer a =
        http_call(&s, &(struct call){ .method = "POST", .path = "/trial/echo", .token = s.admin, .body = body });
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(rp_json_get_text(a.json, "detail", ""), "nested deeper"));
    answer_done(&a);
}

static void test_values_are_given_as_the_shape_says(void **state)
{
    (void)state;
    struct answer a = http_call(
        &s, &(struct call){
                .method = "POST",
                .path = "/trial/echo?limit=5&known=true",
                .token = s.admin,
                .body = "{\"text\":\"\\u00e4\",\"size\":\"10MiB\",\"number\":null,\"items\":[{\"grace\":\"5d\"}]}" });
    assert_int_equal(a.status, 200);
    const json_t *body = json_object_get(a.json, "body"), *query = json_object_get(a.json, "query");
    assert_int_equal(rp_json_get_int(body, "size", 0), 10 << 20);
    assert_null(json_object_get(body, "number"));
    assert_int_equal(rp_json_get_int(json_array_get(json_object_get(body, "items"), 0), "grace", 0), 5 * RP_DAY_MS);
    assert_int_equal(rp_json_get_int(query, "limit", 0), 5);
    assert_true(json_is_true(json_object_get(query, "known")));
    answer_done(&a);
}

static void test_queries_that_are_refused(void **state)
{
    static const char *const queries[] = {
        "limit=0", "limit=1001", "limit=x",     "limit=1&limit=2", "other=1",
        "limit=%", "limit=%0",   "known=maybe", "limit=%ff",       "since=yesterday"
    };
    (void)state;
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        char path[80];
        (void)snprintf(path, sizeof path, "/trial/echo/a?%s", queries[i]);
        expect(&s, (&(struct call){ .method = "GET", .path = path, .token = s.admin }), 400, "invalid");
    }
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/gate?any=1", .token = s.admin }), 400, "invalid");
}

static void test_media_type_and_size_of_a_body(void **state)
{
    char *big = calloc(1, 70001);
    (void)state;
    struct call c = {
        .method = "POST", .path = "/trial/echo", .token = s.admin, .body = "{\"text\":\"a\"}", .type = "text/plain"
    };
    expect(&s, &c, 415, "unsupported_media");
    c.type = "";
    expect(&s, &c, 415, "unsupported_media");
    c.type = "Application/JSON; charset=utf-8";
    expect(&s, &c, 200, NULL);
    memset(big, ' ', 70000);
    c.body = big;
    expect(&s, &c, 413, "too_big");
    c.header = "Transfer-Encoding: chunked"; /* the same without saying so first */
    expect(&s, &c, 413, "too_big");
    c = (struct call){ .method = "POST", .path = "/v1/session/end", .token = s.admin, .body = "{}" };
    expect(&s, &c, 400, "invalid");
    free(big);
}

static void test_failures_inside_are_not_told(void **state)
{
    char id[256], log[20000] = "";
    (void)state;
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/trial/broken", .token = s.admin });
    assert_int_equal(a.status, 500);
    assert_null(strstr(a.body, "private"));
    assert_non_null(strstr(answer_header(&a, "Content-Type", id), "application/problem+json"));
    assert_non_null(answer_header(&a, "Request-Id", id));
    assert_string_equal(rp_json_get_text(a.json, "request", ""), id);
    answer_done(&a);
    rp_log_flush(s.log);
    FILE *f = fopen(s.log_file, "r");
    assert_non_null(f);
    (void)!fread(log, 1, sizeof log - 1, f);
    (void)fclose(f);
    assert_non_null(strstr(log, "/srv/private"));
    assert_non_null(strstr(log, id));
}

/* ---- bad manners ---- */

static void test_endless_headers_are_refused_and_others_served(void **state)
{
    char *big = malloc(1 << 20), reply[4096];
    (void)state;
    int fd = http_connect(&s);
    const char *start = "GET /trial/echo/a HTTP/1.1\r\nHost: x\r\nX-Long: ";
    http_write(fd, start, strlen(start));
    memset(big, 'a', 1 << 20);
    http_write(fd, big, 1 << 20);
    (void)http_read(fd, reply, sizeof reply, 12);
    assert_true(reply[0] == '\0' || strncmp(reply, "HTTP/1.1 431", 12) == 0);
    close(fd);
    free(big);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = s.admin }), 200, NULL);
}

static void test_huge_content_length_is_refused_before_the_body(void **state)
{
    static const char *const lengths[] = { "99999999999", "9223372036854775807", "99999999999999999999999", "-1",
                                           "5x" };
    char request[400], reply[4096];
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int fd = http_connect(&s);
        int n = snprintf(request, sizeof request,
                         "POST /trial/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                         "Content-Type: application/json\r\nContent-Length: %s\r\n\r\n",
                         s.admin, lengths[i]);
        http_write(fd, request, (size_t)n);
        (void)http_read(fd, reply, sizeof reply, 12);
        assert_true(strncmp(reply, "HTTP/1.1 4", 10) == 0);
        close(fd);
    }
}

/* Whoever has no URL of ours does not get a body into memory. */
static void test_a_signed_url_is_judged_before_the_body(void **state)
{
    static const char request[] = "POST /trial/judged?limit=7 HTTP/1.1\r\n"
                                  "Host: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
    char reply[4096];
    (void)state;
    int fd = http_connect(&s);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    http_write(fd, request, sizeof request - 1);
    assert_int_equal(poll(&p, 1, 5000), 1);
    (void)http_read(fd, reply, sizeof reply, 12);
    assert_memory_equal(reply, "HTTP/1.1 403", 12);
    close(fd);
}

static void shorten_patience(struct served *served)
{
    served->config.http_timeout_ms = 1000;
}

/* Connections that send a byte now and then hold nobody up, and are ended although they are never
 * silent for long. */
static void test_slow_senders_hold_nobody_up(void **state)
{
    enum { SLOW = 40 };
    int fds[SLOW];
    char reply[256];
    (void)state;
    served_drop(&s);
    trial_begin(&s, DBS_SQLITE_FILE, shorten_patience);
    for (int i = 0; i < SLOW; i++) {
        const char *start = i % 2 == 0 ? "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
                                       : "POST /trial/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n"
                                         "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
        fds[i] = http_connect(&s);
        http_write(fds[i], start, strlen(start));
    }
    bool open = true;
    for (int round = 0; open && round < 100; round++) {
        open = false;
        for (int i = 0; i < SLOW; i++) {
            struct pollfd p = { .fd = fds[i], .events = POLLIN };
            if (poll(&p, 1, 0) == 0) {
                http_write(fds[i], "a", 1);
                open = true;
            }
        }
        expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = s.admin }), 200, NULL);
        if (open) (void)poll(NULL, 0, 100);
    }
    assert_false(open);
    for (int i = 0; i < SLOW; i++) {
        (void)http_read(fds[i], reply, sizeof reply, sizeof reply);
        assert_true(reply[0] == '\0' || strncmp(reply, "HTTP/1.1 4", 10) == 0);
        close(fds[i]);
    }
}

static void test_a_connection_serves_many_requests(void **state)
{
    char request[300], reply[8192];
    (void)state;
    int fd = http_connect(&s);
    int n = snprintf(request, sizeof request,
                     "GET /trial/echo/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n"
                     "GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n"
                     "GET /trial/gate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n",
                     s.admin, s.admin);
    http_write(fd, request, (size_t)n);
    (void)http_read(fd, reply, sizeof reply, sizeof reply);
    const char *first = strstr(reply, "HTTP/1.1 200"), *second = strstr(reply, "HTTP/1.1 404");
    assert_non_null(first);
    assert_non_null(second);
    assert_non_null(strstr(second, "HTTP/1.1 200")); /* refused without a body: the connection goes on */
    close(fd);
}

/* ---- the description ---- */

static void test_openapi_describes_every_route(void **state)
{
    (void)state;
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/openapi.json" });
    assert_int_equal(a.status, 200);
    assert_string_equal(rp_json_get_text(a.json, "openapi", ""), "3.1.0");
    const json_t *paths = json_object_get(a.json, "paths");
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *route = rp_route_at(i);
        char method[16] = "";
        for (size_t k = 0; route->method[k] != '\0'; k++)
            method[k] = (char)(route->method[k] | 0x20);
        const json_t *operation = json_object_get(json_object_get(paths, route->path), method);
        if (operation == NULL) print_error("%s %s\n", route->method, route->path);
        assert_non_null(operation);
        assert_true(json_is_string(json_object_get(operation, "operationId")));
        assert_true(json_is_object(json_object_get(operation, "responses")));
    }
    answer_done(&a);
}

/* Every reference in the document leads somewhere. */
static void follow(const json_t *root, const json_t *value)
{
    const char *name;
    json_t *member;
    size_t i;
    json_array_foreach(value, i, member) follow(root, member);
    json_object_foreach((json_t *)value, name, member)
    {
        if (strcmp(name, "$ref") != 0 || !json_is_string(member)) {
            follow(root, member);
            continue;
        }
        char part[200];
        const json_t *at = root;
        for (const char *p = json_string_value(member) + 2; *p != '\0'; p += p[0] == '/') {
            size_t n = strcspn(p, "/");
            (void)snprintf(part, sizeof part, "%.*s", (int)n, p);
            at = json_object_get(at, part);
            p += n;
        }
        if (at == NULL) print_error("%s leads nowhere\n", json_string_value(member));
        assert_non_null(at);
    }
}

static void test_openapi_has_no_loose_ends(void **state)
{
    (void)state;
    json_t *document = rp_openapi("http://127.0.0.1:8420");
    assert_non_null(document);
    follow(document, document);
    json_decref(document);
}

static void test_every_route_is_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *route = rp_route_at(i);
        bool good = route->handler != NULL && route->summary != NULL && rp_route_status(route) >= 200;
        good =
            good && (route->audience == RP_FOR_EVERYBODY) == (route->scope == 0 && route->audience == RP_FOR_EVERYBODY);
        good = good && (route->answer != NULL || route->media != NULL || route->streams || route->status == 204 ||
                        route->status == 303);
        for (size_t k = 0; k < i; k++)
            good = good && (strcmp(rp_route_at(k)->path, route->path) != 0 ||
                            strcmp(rp_route_at(k)->method, route->method) != 0);
        if (!good) print_error("%s %s lacks something, or is there twice\n", route->method, route->path);
        assert_true(good);
    }
}

static void test_the_page_at_the_root(void **state)
{
    (void)state;
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/" });
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "openapi.json"));
    answer_done(&a);
}

/* ---- where it listens ---- */

static void test_a_public_address_needs_tls_or_a_word(void **state)
{
    struct rp_error err = { 0 };
    struct rp_server *server = NULL;
    struct rp_server_options o = *rp_server_options_of(s.server);
    struct rp_config config = s.config;
    (void)state;
    o.config = &config;
    config.listen = "0.0.0.0:0";
    assert_int_equal(rp_server_start(&o, &server, &err), RP_ECONFIG);
    assert_non_null(strstr(err.hint, "listen_insecure"));
    config.listen_insecure = true;
    ok(rp_server_start(&o, &server, &err));
    rp_server_stop(server, 0);
    config.listen = rp_server_address(s.server);
    assert_true(rp_server_start(&o, &server, &err) < 0);
    assert_non_null(strstr(err.hint, "another program"));
    config.listen = "nonsense";
    assert_int_equal(rp_server_start(&o, &server, &err), RP_ECONFIG);
}

static void with_tls(struct served *served)
{
    char command[600], *path = rp_arena_alloc(&served->arena, 200), *key = rp_arena_alloc(&served->arena, 200);
    (void)snprintf(path, 200, "%s/cert.pem", served->w.dbs.dir);
    (void)snprintf(key, 200, "%s/key.pem", served->w.dbs.dir);
    (void)snprintf(command, sizeof command,
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost "
                   "-keyout %s -out %s 2>/dev/null",
                   key, path);
    assert_int_equal(system(command), 0);
    served->config.tls_certificate = path;
    served->config.tls_key = key;
}

/* This client would take anything. */
static bool connects_with(const char *version)
{
    char command[300];
    (void)snprintf(command, sizeof command,
                   "openssl s_client %s -cipher ALL:@SECLEVEL=0 -connect %s </dev/null >/dev/null 2>&1", version,
                   s.address);
    return system(command) == 0;
}

static void test_tls(void **state)
{
    struct rp_error err = { 0 };
    struct rp_server *server = NULL;
    (void)state;
    served_drop(&s);
    trial_begin(&s, DBS_SQLITE_FILE, with_tls);
    expect(&s, (&(struct call){ .method = "POST", .path = "/trial/count", .token = s.admin, .body = "{}" }), 201, NULL);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/gate", .token = s.admin }), 200, NULL);
    assert_true(connects_with("-tls1_3") && connects_with("-tls1_2"));
    assert_false(connects_with("-tls1_1") || connects_with("-tls1"));
    struct rp_server_options o = *rp_server_options_of(s.server);
    struct rp_config config = s.config;
    o.config = &config;
    config.listen = "127.0.0.1:0";
    config.tls_key = s.log_file;
    assert_true(rp_server_start(&o, &server, &err) < 0);
}

#define test(name) TRIAL(name, &s)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_unknown_paths_and_methods),
        test(test_path_segments_are_decoded_once),
        test(test_bodies_that_are_refused),
        test(test_deep_json_is_refused),
        test(test_values_are_given_as_the_shape_says),
        test(test_queries_that_are_refused),
        test(test_media_type_and_size_of_a_body),
        test(test_failures_inside_are_not_told),
        test(test_endless_headers_are_refused_and_others_served),
        test(test_huge_content_length_is_refused_before_the_body),
        test(test_a_signed_url_is_judged_before_the_body),
        test(test_slow_senders_hold_nobody_up),
        test(test_a_connection_serves_many_requests),
        test(test_openapi_describes_every_route),
        test(test_openapi_has_no_loose_ends),
        test(test_every_route_is_described),
        test(test_the_page_at_the_root),
        test(test_a_public_address_needs_tls_or_a_word),
        test(test_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
