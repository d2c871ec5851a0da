/* SPDX-License-Identifier: Apache-2.0 */
/* The published examples of the algorithm (AWS, "Signature Calculations for the Authorization
 * Header" and "... Query Parameters" of S3), and cases of our own whose signatures were computed
 * apart from this code. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/wire/sign.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TOKEN        "IQoJb3JpZ2luX2VjEJr//token+with/slashes=="

static const struct s3_target aws = {
    .scheme = "https", .host = "s3.amazonaws.com", .bucket = "examplebucket", .region = "us-east-1"
};
static const struct s3_target local = {
    .scheme = "http", .host = "127.0.0.1:9000", .bucket = "my-bucket", .path_style = true, .region = "us-east-1"
};

static struct s3_keys keys_of(const char *token)
{
    struct s3_keys keys = { .access = "AKIAIOSFODNN7EXAMPLE",
                            .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                            .expires_at_ms = INT64_MAX };
    snprintf(keys.token, sizeof keys.token, "%s", token);
    return keys;
}

static int64_t moment(const char *text)
{
    int64_t ms = 0;
    assert_int_equal(rp_time_parse(text, &ms, NULL), 0);
    return ms;
}

static const char *header(const struct s3_signed *s, const char *name)
{
    for (size_t i = 0; i < s->n_headers; i++)
        if (strcmp(s->headers[i].name, name) == 0) return s->headers[i].value;
    return NULL;
}

static struct s3_signed sign(struct rp_arena *arena, const struct s3_target *target, const struct s3_message *message,
                             const char *token)
{
    struct s3_signed out = { 0 };
    struct s3_keys keys = keys_of(token);
    struct rp_error err = { 0 };
    int r = rp_s3_sign(target, &keys, message, moment("2013-05-24T00:00:00Z"), arena, &out, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    return out;
}

static void assert_signature(const struct s3_signed *s, const char *expected)
{
    const char *authorization = header(s, "authorization");
    assert_non_null(authorization);
    const char *signature = strstr(authorization, "Signature=");
    assert_non_null(signature);
    assert_string_equal(signature + strlen("Signature="), expected);
}

static const char *presign(struct rp_arena *arena, const struct s3_target *target, const struct s3_message *message,
                           const char *token, const char *at, int64_t lives_s)
{
    const char *url = NULL;
    struct s3_keys keys = keys_of(token);
    struct rp_error err = { 0 };
    int r = rp_s3_presign(target, &keys, message, moment(at), lives_s, arena, &url, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    return url;
}

static void the_published_get_with_a_range(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const struct rp_pair headers[] = { { "range", "bytes=0-9" } };
    struct s3_signed s =
        sign(&arena, &aws,
             &(struct s3_message){ .method = "GET", .key = "test.txt", .headers = headers, .n_headers = 1 }, "");
    assert_string_equal(s.url, "https://examplebucket.s3.amazonaws.com/test.txt");
    assert_string_equal(header(&s, "host"), "examplebucket.s3.amazonaws.com");
    assert_string_equal(header(&s, "range"), "bytes=0-9");
    assert_string_equal(header(&s, "x-amz-date"), "20130524T000000Z");
    assert_string_equal(header(&s, "x-amz-content-sha256"),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_null(header(&s, "x-amz-security-token"));
    assert_int_equal(s.n_headers, 5);
    assert_string_equal(header(&s, "authorization"),
                        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
                        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void the_published_put(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const struct rp_pair headers[] = { { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
                                       { "date", "Fri, 24 May 2013 00:00:00 GMT" } };
    static const char body[] = "Welcome to Amazon S3.";
    struct s3_signed s = sign(&arena, &aws,
                              &(struct s3_message){ .method = "PUT",
                                                    .key = "test$file.text",
                                                    .headers = headers,
                                                    .n_headers = COUNT(headers),
                                                    .body = body,
                                                    .body_bytes = strlen(body) },
                              "");
    assert_string_equal(s.url, "https://examplebucket.s3.amazonaws.com/test%24file.text");
    assert_string_equal(header(&s, "x-amz-content-sha256"),
                        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
    assert_signature(&s, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void the_published_lifecycle_and_list(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_message lifecycle = { .method = "GET", .query = { { "lifecycle", "" } }, .n_query = 1 };
    struct s3_signed s = sign(&arena, &aws, &lifecycle, "");
    assert_string_equal(s.url, "https://examplebucket.s3.amazonaws.com/?lifecycle=");
    assert_signature(&s, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    struct s3_message list = { .method = "GET", .query = { { "prefix", "J" }, { "max-keys", "2" } }, .n_query = 2 };
    s = sign(&arena, &aws, &list, "");
    assert_string_equal(s.url, "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J");
    assert_signature(&s, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void the_published_url(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const char *url = presign(&arena, &aws, &(struct s3_message){ .method = "GET", .key = "test.txt" }, "",
                              "2013-05-24T00:00:00Z", 86400);
    assert_string_equal(url, "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
                             "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                             "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                             "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

static void keys_go_out_as_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *key, *path, *signature;
    } cases[] = {
        { "..", "..", "fcf6e8554cb5b86c6245a8d1bcb5df5a9861a228641fbb2762ae72fda525fbdc" },
        { "a/../b", "a/../b", "51b7943e0c509b748e0d940d6f17e315d7632bdaf4d098a0bc79974c689a6f5b" },
        { "../../etc/passwd", "../../etc/passwd", "42f3d3ae7477d94967a02c23c34696493d79bb01f620bc3fc272129bbca75add" },
        { "a//b", "a//b", "5f2067a2415f262d1e65c1429dbeb7d334ad8c296da55ad28ddc1240df1a33d0" },
        { "/lead", "/lead", "275b5bbcf0132372472092f66b64b6852698f6a19211e6a34baa4d02f981d586" },
        { "//", "//", "af3c688300efaefa7405419ca2ad4f3c80f5e0e5972cfcf59be8b61c2f6921b6" },
        { "a b", "a%20b", "1c309ab9c0342d7a0fe8b872df506fdb2fb11f146cef34a4ba6b1e79948d9843" },
        { "a+b", "a%2Bb", "fdaaedd98b04501e94a99a1a2fba709b869d6c3cf71099c71a1b0418599a7d48" },
        { "a%20b%", "a%2520b%25", "c03de93d3351cbe3c55fc3778e671ed36e61d0fc2025a52f97bd34b78b7b560e" },
        { "gr\xc3\xb6\xc3\x9f"
          "e/\xe6\x97\xa5\xe6\x9c\xac.txt",
          "gr%C3%B6%C3%9Fe/%E6%97%A5%E6%9C%AC.txt",
          "22ff49ae5074d4d9af48f9931f5e6612923de5fb8df1ae16339195bf27ab73b8" },
        { "~tilde", "~tilde", "9d74f308816fcdb878acbd385d769fdf49e417609589ec82974ec17a8bf51433" },
        { "all!*'()&=;:@,$#?[]\"<>\\^`{}|",
          "all%21%2A%27%28%29%26%3D%3B%3A%40%2C%24%23%3F%5B%5D%22%3C%3E%5C%5E%60%7B%7D%7C",
          "5fdff809ba34074e755cbb88d3bb831e57ad0716b3b8706c3882c78e14ddb04d" },
    };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char url[256];
        struct s3_signed s = sign(&arena, &local, &(struct s3_message){ .method = "GET", .key = cases[i].key }, "");
        snprintf(url, sizeof url, "http://127.0.0.1:9000/my-bucket/%s", cases[i].path);
        assert_string_equal(s.url, url);
        assert_string_equal(header(&s, "host"), "127.0.0.1:9000");
        assert_signature(&s, cases[i].signature);
    }
}

static void the_query_is_in_order_of_its_encoded_bytes(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_message m = { .method = "GET",
                            .query = { { "prefix", "a b" },
                                       { "prefix-b", "" },
                                       { "prefix", "a" },
                                       { "prefix", "a/\xc3\xa9" },
                                       { "Prefix", "z" },
                                       { "~", "1" },
                                       { "a+b", "=" },
                                       { "list-type", "2" },
                                       { "\xc3\xa9", "x" },
                                       { "prefix", "a%" } },
                            .n_query = 10 };
    struct s3_signed s = sign(&arena, &local, &m, "");
    assert_string_equal(s.url, "http://127.0.0.1:9000/my-bucket?%C3%A9=x&Prefix=z&a%2Bb=%3D&list-type=2&prefix=a"
                               "&prefix=a%20b&prefix=a%25&prefix=a%2F%C3%A9&prefix-b=&~=1");
    assert_signature(&s, "f22b1bf4c70f68a4b2abeccfb5231e8a970558da9b466489a0c3b5743fef9ffa");
}

static void blanks_in_values_are_folded_in_the_signature_only(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const struct rp_pair headers[] = { { "x-amz-meta-a", "  two  words   and more " },
                                       { "x-amz-meta-b", "" },
                                       { "cache-control", "\tmax-age=1\t " } };
    struct s3_signed s = sign(&arena, &local,
                              &(struct s3_message){ .method = "PUT",
                                                    .key = "k",
                                                    .headers = headers,
                                                    .n_headers = COUNT(headers),
                                                    .body = "x",
                                                    .body_bytes = 1 },
                              "");
    assert_string_equal(header(&s, "x-amz-meta-a"), "two  words   and more");
    assert_string_equal(header(&s, "x-amz-meta-b"), "");
    assert_string_equal(header(&s, "cache-control"), "max-age=1");
    assert_signature(&s, "3f2f52db3e48a9bf7be8ab7fa966ff686dfe5dd67c069ed4547b9bbaf448d306");
}

static void a_session_token_is_signed_with_the_rest(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const struct s3_message m = { .method = "GET", .key = "test.txt" };
    struct s3_signed s = sign(&arena, &aws, &m, TOKEN);
    assert_string_equal(header(&s, "x-amz-security-token"), TOKEN);
    assert_signature(&s, "c98e01077af94da6591d5bcea3e71a2ad5951d1e5998462ef10e1484ba07d41d");
    const char *url = presign(&arena, &aws, &m, TOKEN, "2013-05-24T00:00:00Z", 600);
    assert_string_equal(
        url, "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
             "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
             "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=600"
             "&X-Amz-Security-Token=IQoJb3JpZ2luX2VjEJr%2F%2Ftoken%2Bwith%2Fslashes%3D%3D&X-Amz-SignedHeaders=host"
             "&X-Amz-Signature=de70bb7dfeb15017f520b7f6020dfcc8045e945cfa3c2e73aea1a6f01d0194e1");
}

static void a_bucket_by_path_and_by_host(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_signed s = sign(&arena, &local, &(struct s3_message){ .method = "PUT" }, "");
    assert_string_equal(s.url, "http://127.0.0.1:9000/my-bucket");
    assert_signature(&s, "17dc1d70b325a0efd42a3b19221dca1c0b8d18e3696e211233b206528f35f098");
    const struct s3_target by_host = {
        .scheme = "https", .host = "s3.example:8443", .bucket = "my-bucket", .region = "eu-x"
    };
    s = sign(&arena, &by_host, &(struct s3_message){ .method = "DELETE" }, "");
    assert_string_equal(s.url, "https://my-bucket.s3.example:8443/");
    assert_string_equal(header(&s, "host"), "my-bucket.s3.example:8443");
    assert_signature(&s, "bbcdd12b458ba809e0a3afe3dbe7932ad5a6acbf9b2597f312b6eb6eb6b0ac85");
}

static void a_url_binds_the_headers_of_its_message(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    const struct rp_pair headers[] = { { "if-none-match", "*" },
                                       { "content-type", "text/plain" },
                                       { "content-length", "5" } };
    const char *url = presign(
        &arena, &local,
        &(struct s3_message){ .method = "PUT", .key = "a b/\xc3\xbc", .headers = headers, .n_headers = COUNT(headers) },
        "", "2026-11-15T23:59:59.999Z", 604800);
    assert_string_equal(url, "http://127.0.0.1:9000/my-bucket/a%20b/%C3%BC?X-Amz-Algorithm=AWS4-HMAC-SHA256"
                             "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20261115%2Fus-east-1%2Fs3%2Faws4_request"
                             "&X-Amz-Date=20261115T235959Z&X-Amz-Expires=604800"
                             "&X-Amz-SignedHeaders=content-length%3Bcontent-type%3Bhost%3Bif-none-match"
                             "&X-Amz-Signature=aa7a7688ac6cbfce745f637343305d2cbbbdec912251a17382bacfcb74c99860");
}

static void a_url_binds_the_query_of_its_message(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_message m = { .method = "GET",
                            .key = "k",
                            .query = { { "versionId", "null" },
                                       { "response-content-disposition", "attachment; filename=\"a b.txt\"" } },
                            .n_query = 2 };
    const char *url = presign(&arena, &local, &m, "", "2013-05-24T00:00:00Z", 1);
    assert_non_null(strstr(url, "&X-Amz-SignedHeaders=host"
                                "&response-content-disposition=attachment%3B%20filename%3D%22a%20b.txt%22"
                                "&versionId=null&X-Amz-Signature="
                                "23003bf6ea1a0727b623de76658b68e3b139f7ea8f7f52d42af69d7e4bd33743"));
}

static void a_url_lives_a_second_to_seven_days(void **state)
{
    (void)state;
    static const int64_t bad[] = { 0, -1, 604801, INT64_MAX, INT64_MIN };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_keys keys = keys_of("");
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct rp_error err = { 0 };
        const char *url = "untouched";
        const struct s3_message m = { .method = "GET", .key = "k" };
        assert_int_equal(rp_s3_presign(&local, &keys, &m, 0, bad[i], &arena, &url, &err), RP_EINVAL);
        assert_string_equal(url, "untouched");
        assert_non_null(strstr(err.hint, "7 days"));
    }
}

static void headers_that_would_say_something_else_are_refused(void **state)
{
    (void)state;
    static const struct rp_pair bad[][2] = {
        { { "x-amz-meta-a", "1\r\nx-amz-acl: public-read" }, { "b", "" } },
        { { "x-amz-meta-a", "nul\x01" }, { "b", "" } },
        { { "x-amz-meta-a: b\r\nc", "1" }, { "b", "" } },
        { { "X-Amz-Meta-A", "1" }, { "b", "" } },
        { { "", "1" }, { "b", "" } },
        { { "b", "1" }, { "b", "2" } },
    };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_keys keys = keys_of("");
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct rp_error err = { 0 };
        struct s3_signed out = { .url = "untouched" };
        const struct s3_message m = { .method = "PUT", .key = "k", .headers = bad[i], .n_headers = 2 };
        assert_int_equal(rp_s3_sign(&local, &keys, &m, 0, &arena, &out, &err), RP_EINVAL);
        assert_string_equal(out.url, "untouched");
        assert_string_not_equal(err.text, "");
    }
}

static void too_much_is_refused(void **state)
{
    (void)state;
    static char value[200000];
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    struct s3_keys keys = keys_of("");
    memset(value, 'x', sizeof value - 1);
    const struct rp_pair header = { "x-amz-meta-a", value };
    struct s3_message m = { .method = "PUT", .key = "k", .headers = &header, .n_headers = 1 };
    struct s3_signed out = { 0 };
    struct rp_error err = { 0 };
    assert_int_equal(rp_s3_sign(&local, &keys, &m, 0, &arena, &out, &err), RP_ETOOBIG);
    m = (struct s3_message){ .method = "PUT", .key = value };
    assert_int_equal(rp_s3_sign(&local, &keys, &m, 0, &arena, &out, &err), RP_ETOOBIG);
    m = (struct s3_message){ .method = "PUT", .key = "k", .query = { { "prefix", value } }, .n_query = 1 };
    assert_int_equal(rp_s3_sign(&local, &keys, &m, 0, &arena, &out, NULL), RP_ETOOBIG);
    assert_null(out.url);
}

/* Wherever the memory ends: no memory, or all of it. */
static void an_arena_that_ends_early_is_no_memory(void **state)
{
    (void)state;
    const struct rp_pair header = { "range", "bytes=0-9" };
    const struct s3_message m = {
        .method = "GET", .key = "k", .query = { { "versionId", "1" } }, .n_query = 1, .headers = &header, .n_headers = 1
    };
    struct s3_keys keys = keys_of(TOKEN);
    size_t refused = 0, signed_ = 0;
    for (size_t max = 0; max <= 16384; max += 64) {
        RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(max), second = RP_ARENA(max);
        struct s3_signed out = { 0 };
        const char *url = NULL;
        int r = rp_s3_sign(&local, &keys, &m, 0, &arena, &out, NULL);
        assert_true(r == 0 ? out.url != NULL : r == RP_ENOMEM && out.url == NULL);
        int u = rp_s3_presign(&local, &keys, &m, 0, 60, &second, &url, NULL);
        assert_true(u == 0 ? url != NULL : u == RP_ENOMEM && url == NULL);
        refused += r < 0 && u < 0;
        signed_ += r == 0 && u == 0;
    }
    assert_true(refused > 0 && signed_ > 0);
}

static void the_longest_keys_and_tokens_fit(void **state)
{
    (void)state;
    static char key[RP_KEY_MAX + 1], token[4096];
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 20);
    memset(key, '%', RP_KEY_MAX);
    memset(token, '/', sizeof token - 1);
    struct s3_message m = { .method = "GET", .key = key };
    struct s3_signed s = sign(&arena, &local, &m, token);
    assert_int_equal(strlen(s.url), strlen("http://127.0.0.1:9000/my-bucket/") + 3 * (size_t)RP_KEY_MAX);
    const char *url = presign(&arena, &local, &m, token, "2013-05-24T00:00:00Z", 60);
    assert_non_null(strstr(url, "&X-Amz-Signature="));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_get_with_a_range),
        cmocka_unit_test(the_published_put),
        cmocka_unit_test(the_published_lifecycle_and_list),
        cmocka_unit_test(the_published_url),
        cmocka_unit_test(keys_go_out_as_they_are),
        cmocka_unit_test(the_query_is_in_order_of_its_encoded_bytes),
        cmocka_unit_test(blanks_in_values_are_folded_in_the_signature_only),
        cmocka_unit_test(a_session_token_is_signed_with_the_rest),
        cmocka_unit_test(a_bucket_by_path_and_by_host),
        cmocka_unit_test(a_url_binds_the_headers_of_its_message),
        cmocka_unit_test(a_url_binds_the_query_of_its_message),
        cmocka_unit_test(a_url_lives_a_second_to_seven_days),
        cmocka_unit_test(headers_that_would_say_something_else_are_refused),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(an_arena_that_ends_early_is_no_memory),
        cmocka_unit_test(the_longest_keys_and_tokens_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
