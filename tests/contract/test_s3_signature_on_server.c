/* SPDX-License-Identifier: Apache-2.0 */
/* Signed requests as a real server judges them (RP_TEST_S3, see tests/lib/with-ceph): carried by
 * plain libcurl, so that nothing but the signature is on trial. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/wire/sign.h"
#include "store/s3/wire/vendor.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rp_arena lasting = RP_ARENA(1 << 20);
static struct s3_target target;
static char connect_to[300]; /* the server, whatever host the URL names */
static struct s3_keys keys = { .expires_at_ms = INT64_MAX };
static char bucket[64];

static const char *needed(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL || value[0] == 0)
        fail_msg("%s is not set: run this beside a server, by tests/lib/with-ceph", name);
    return value;
}

struct answer {
    long status; /* 0: none */
    struct rp_buf body, headers;
};

static void answer_done(struct answer *a)
{
    rp_buf_done(&a->body);
    rp_buf_done(&a->headers);
}

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    return rp_buf_add(ctx, bytes, size * n) < 0 ? 0 : size * n;
}

static struct answer carry(const char *method, const char *url, const struct rp_pair *headers, size_t n_headers,
                           const char *body)
{
    struct answer a = { .body = RP_BUF(1 << 20), .headers = RP_BUF(1 << 16) };
    CURL *curl = curl_easy_init();
    struct curl_slist *list = curl_slist_append(NULL, "Expect:"), *at = curl_slist_append(NULL, connect_to);
    list = curl_slist_append(list, "Content-Type:");
    for (size_t i = 0; i < n_headers; i++) {
        char line[8192];
        /* An empty header is written with a semicolon; a colon would take it away. */
        snprintf(line, sizeof line, headers[i].value[0] != 0 ? "%s: %s" : "%s;", headers[i].name, headers[i].value);
        list = curl_slist_append(list, line);
    }
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CONNECT_TO, at);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (body != NULL) curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    if (body != NULL) curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    if (strcmp(method, "HEAD") == 0) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &a.body);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &a.headers);
    if (curl_easy_perform(curl) == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &a.status);
    curl_slist_free_all(list);
    curl_slist_free_all(at);
    curl_easy_cleanup(curl);
    return a;
}

static struct answer carry_at(const struct s3_message *message, const struct s3_keys *with, int64_t now_ms)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_signed s;
    assert_int_equal(rp_s3_sign(&target, with, message, now_ms, &arena, &s, NULL), 0);
    return carry(message->method, s.url, s.headers, s.n_headers, message->body);
}

static void expect_(const struct s3_message *message, long status, const char *body, int line)
{
    RP_CLEANUP(answer_done) struct answer a = carry_at(message, &keys, rp_clock_now_ms(NULL));
    if (a.status != status)
        fail_msg("line %d: %s %s: %ld instead of %ld: %s", line, message->method, message->key, a.status, status,
                 rp_buf_text(&a.body));
    if (body != NULL) assert_string_equal(rp_buf_text(&a.body), body);
}
#define expect(status, body, ...) expect_(&(struct s3_message){ __VA_ARGS__ }, status, body, __LINE__)

static int open_bucket(void **state)
{
    (void)state;
    snprintf(bucket, sizeof bucket, "signed-%d-%lld", (int)getpid(), (long long)(rp_clock_now_ms(NULL) % 1000000));
    const struct rp_s3_options options = {
        .endpoint = needed("RP_TEST_S3"), .region = "", .bucket = bucket, .style = "auto"
    };
    struct rp_error err = { 0 };
    if (rp_s3_target_of(&options, &lasting, &target, &err) < 0) fail_msg("%s", err.text);
    snprintf(connect_to, sizeof connect_to, "::%s", target.host);
    snprintf(keys.access, sizeof keys.access, "%s", needed("RP_TEST_S3_ACCESS"));
    snprintf(keys.secret, sizeof keys.secret, "%s", needed("RP_TEST_S3_SECRET"));
    expect(200, NULL, .method = "PUT");
    return 0;
}

static int close_bucket(void **state)
{
    (void)state;
    expect(204, NULL, .method = "DELETE"); /* every test leaves it empty */
    rp_arena_done(&lasting);
    return 0;
}

static const char *const awkward[] = {
    "plain",
    "..",
    "a/../b",
    "../../etc/passwd",
    "./a/./b",
    "a//b",
    "/lead",
    "//",
    "trailing/",
    "a b",
    "a+b",
    "a%20b%",
    "a%2Fb",
    "gr\xc3\xb6\xc3\x9f/\xe6\x97\xa5\xe6\x9c\xac.txt",
    "\xf0\x9f\x97\x91",
    "~tilde",
    "all!*'()&=;:@,$#?[]\"<>\\^`{}|",
    "line\nbreak\ttab",
    "?query=1&x",
    "#fragment",
};

static void awkward_keys_are_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(awkward); i++) {
        /* The key is the body: what comes back stood under this key and no other. */
        expect(200, NULL, .method = "PUT", .key = awkward[i], .body = awkward[i], .body_bytes = strlen(awkward[i]));
    }
    for (size_t i = 0; i < COUNT(awkward); i++)
        expect(200, awkward[i], .method = "GET", .key = awkward[i]);
    for (size_t i = 0; i < COUNT(awkward); i++)
        expect(204, NULL, .method = "DELETE", .key = awkward[i]);
    expect(404, NULL, .method = "GET", .key = "plain");
}

static void awkward_keys_are_accepted_in_urls(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(awkward); i++) {
        RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
        const char *put = NULL, *get = NULL;
        const struct rp_pair type = { "content-type", "text/x-awkward" };
        const struct s3_message m = { .method = "PUT", .key = awkward[i], .headers = &type, .n_headers = 1 };
        const struct s3_message g = {
            .method = "GET", .key = awkward[i], .query = { { "response-content-type", "a/b; c=\"d e\"" } }, .n_query = 1
        };
        int64_t now_ms = rp_clock_now_ms(NULL);
        assert_int_equal(rp_s3_presign(&target, &keys, &m, now_ms, 60, &arena, &put, NULL), 0);
        assert_int_equal(rp_s3_presign(&target, &keys, &g, now_ms, 60, &arena, &get, NULL), 0);
        RP_CLEANUP(answer_done) struct answer refused = carry("PUT", put, NULL, 0, "x");
        assert_int_equal(refused.status, 403); /* without the header that was signed */
        RP_CLEANUP(answer_done) struct answer done = carry("PUT", put, &type, 1, "by url");
        assert_int_equal(done.status, 200);
        RP_CLEANUP(answer_done) struct answer got = carry("GET", get, NULL, 0, NULL);
        assert_int_equal(got.status, 200);
        assert_string_equal(rp_buf_text(&got.body), "by url");
        assert_non_null(strcasestr(rp_buf_text(&got.headers), "content-type: a/b; c=\"d e\""));
        expect(204, NULL, .method = "DELETE", .key = awkward[i]);
    }
}

static void queries_are_accepted(void **state)
{
    (void)state;
    expect(200, NULL, .method = "GET", .query = { { "uploads", "" } }, .n_query = 1);
    expect(200, NULL, .method = "GET",
           .query = { { "start-after", "a b+c/\xc3\xa9%~" },
                      { "prefix", "//../ &=?" },
                      { "list-type", "2" },
                      { "max-keys", "7" },
                      { "encoding-type", "url" },
                      { "delimiter", "" } },
           .n_query = 6);
}

static void headers_are_accepted(void **state)
{
    (void)state;
    const struct rp_pair headers[] = {
        { "x-amz-meta-plain", "  a value, with blanks around  " },
        { "x-amz-meta-inside", "two  and   three" },
        { "x-amz-meta-signs", "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~" },
        { "x-amz-meta-utf8", "gr\xc3\xb6\xc3\x9f"
                             "e" },
        { "cache-control", "max-age=60, public" },
        { "content-type", "text/plain; charset=utf-8" },
    };
    expect(200, NULL, .method = "PUT", .key = "k", .headers = headers, .n_headers = COUNT(headers), .body = "x",
           .body_bytes = 1);
    RP_CLEANUP(answer_done)
    struct answer a = carry_at(&(struct s3_message){ .method = "HEAD", .key = "k" }, &keys, rp_clock_now_ms(NULL));
    assert_int_equal(a.status, 200);
    assert_non_null(strcasestr(rp_buf_text(&a.headers), "x-amz-meta-plain: a value, with blanks around\r\n"));
    assert_non_null(strcasestr(rp_buf_text(&a.headers), "x-amz-meta-inside: two  and   three\r\n"));
    assert_non_null(strcasestr(rp_buf_text(&a.headers), "x-amz-meta-utf8: gr\xc3\xb6\xc3\x9f"
                                                        "e\r\n"));
    expect(204, NULL, .method = "DELETE", .key = "k");
}

/* A gateway that knows no name of its own takes the whole host for the bucket. */
static void a_bucket_in_the_host_is_accepted(void **state)
{
    (void)state;
    const struct s3_target by_path = target;
    char whole[128], host[64];
    snprintf(whole, sizeof whole, "%s.store.test", bucket);
    snprintf(host, sizeof host, "store.test%s", strchr(by_path.host, ':'));
    target.bucket = whole;
    expect(200, NULL, .method = "PUT");
    target.bucket = bucket;
    target.host = host;
    target.path_style = false;
    for (size_t i = 0; i < COUNT(awkward); i++)
        expect(200, NULL, .method = "PUT", .key = awkward[i], .body = awkward[i], .body_bytes = strlen(awkward[i]));
    expect(200, NULL, .method = "GET", .query = { { "list-type", "2" }, { "prefix", "a b" } }, .n_query = 2);
    for (size_t i = 0; i < COUNT(awkward); i++) {
        expect(200, awkward[i], .method = "GET", .key = awkward[i]);
        expect(204, NULL, .method = "DELETE", .key = awkward[i]);
    }
    expect(204, NULL, .method = "DELETE");
    target = by_path;
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    struct s3_keys wrong = keys;
    wrong.secret[0] = wrong.secret[0] == 'x' ? 'y' : 'x';
    const struct s3_message list = { .method = "GET" };
    int64_t now_ms = rp_clock_now_ms(NULL);
    RP_CLEANUP(answer_done) struct answer a = carry_at(&list, &wrong, now_ms);
    assert_int_equal(a.status, 403);
    assert_non_null(strstr(rp_buf_text(&a.body), "SignatureDoesNotMatch"));
    RP_CLEANUP(answer_done) struct answer b = carry_at(&list, &keys, now_ms - RP_HOUR_MS);
    assert_int_equal(b.status, 403);
    assert_non_null(strstr(rp_buf_text(&b.body), "RequestTimeTooSkewed"));
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const char *url = NULL;
    assert_int_equal(rp_s3_presign(&target, &keys, &list, now_ms - RP_MINUTE_MS, 30, &arena, &url, NULL), 0);
    RP_CLEANUP(answer_done) struct answer c = carry("GET", url, NULL, 0, NULL);
    assert_int_equal(c.status, 403);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(awkward_keys_are_accepted),
        cmocka_unit_test(awkward_keys_are_accepted_in_urls),
        cmocka_unit_test(queries_are_accepted),
        cmocka_unit_test(headers_are_accepted),
        cmocka_unit_test(a_bucket_in_the_host_is_accepted),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failed = cmocka_run_group_tests(tests, open_bucket, close_bucket);
    curl_global_cleanup();
    return failed;
}
