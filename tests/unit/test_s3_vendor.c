/* SPDX-License-Identifier: Apache-2.0 */
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
#include "store/s3/wire/vendor.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void hosts_tell_their_vendor(void **state)
{
    (void)state;
    static const struct {
        const char *host, *name;
    } cases[] = {
        { "s3.eu-central-1.amazonaws.com", "aws" },
        { "S3.EU-CENTRAL-1.AMAZONAWS.COM", "aws" },
        { "s3.cn-north-1.amazonaws.com.cn", "aws" },
        { "s3.amazonaws.com:8443", "aws" },
        { "0123456789abcdef.r2.cloudflarestorage.com", "r2" },
        { "0123456789abcdef.eu.r2.cloudflarestorage.com", "r2" },
        { "storage.googleapis.com", "gcs" },
        { "s3.us-west-004.backblazeb2.com", "b2" },
        { "s3.wasabisys.com", "wasabi" },
        { "amazonaws.com.example.org", "other" },
        { "notamazonaws.com", "other" },
        { "127.0.0.1:9000", "other" },
        { "[::1]:9000", "other" },
        { "", "other" },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(rp_s3_vendor_of_host(cases[i].host)->name, cases[i].name);
}

struct expected {
    struct rp_s3_options in;
    const char *scheme, *host, *region, *vendor;
    bool path_style;
};

static void check_target(const struct expected *e)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct s3_target t = { 0 };
    struct rp_error err = { 0 };
    int r = rp_s3_target_of(&e->in, &arena, &t, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    assert_string_equal(t.scheme, e->scheme);
    assert_string_equal(t.host, e->host);
    assert_string_equal(t.region, e->region);
    assert_string_equal(t.bucket, e->in.bucket);
    assert_string_equal(rp_s3_vendor_of_host(t.host)->name, e->vendor);
    assert_int_equal(t.path_style, e->path_style);
    assert_ptr_not_equal(t.bucket, e->in.bucket);
}

#define IN(e, r, b, s)                                                                                                 \
    {                                                                                                                  \
        .endpoint = (e), .region = (r), .bucket = (b), .style = (s)                                                    \
    }

static void endpoints_of_vendors(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct expected cases[] = {
        { IN("", "eu-central-1", "media", "auto"), "https", "s3.eu-central-1.amazonaws.com", "eu-central-1", "aws", false },
        { IN("", "cn-north-1", "media", "auto"), "https", "s3.cn-north-1.amazonaws.com.cn", "cn-north-1", "aws", false },
        { IN(NULL, "eu-west-1", "media", NULL), "https", "s3.eu-west-1.amazonaws.com", "eu-west-1", "aws", false },
        { IN("https://s3.eu-west-1.amazonaws.com/", "", "media", ""), "https", "s3.eu-west-1.amazonaws.com", "eu-west-1", "aws", false },
        { IN("https://s3.dualstack.eu-west-1.amazonaws.com", "", "media", ""), "https", "s3.dualstack.eu-west-1.amazonaws.com", "eu-west-1", "aws", false },
        { IN("https://s3.amazonaws.com", "", "media", "auto"), "https", "s3.amazonaws.com", "us-east-1", "aws", false },
        { IN("https://abc.r2.cloudflarestorage.com", "", "media", "auto"), "https", "abc.r2.cloudflarestorage.com", "auto", "r2", true },
        { IN("https://storage.googleapis.com", "", "media", "auto"), "https", "storage.googleapis.com", "auto", "gcs", true },
        { IN("https://s3.us-west-004.backblazeb2.com", "", "media", "auto"), "https", "s3.us-west-004.backblazeb2.com", "us-west-004", "b2", false },
        { IN("https://s3.wasabisys.com", "", "media", "auto"), "https", "s3.wasabisys.com", "us-east-1", "wasabi", false },
        { IN("https://s3.eu-central-2.wasabisys.com", "", "media", "auto"), "https", "s3.eu-central-2.wasabisys.com", "eu-central-2", "wasabi", false },
        { IN("https://s3.eu-west-1.amazonaws.com", "eu-north-1", "media", "auto"), "https", "s3.eu-west-1.amazonaws.com", "eu-north-1", "aws", false },
        { IN("HTTPS://Minio.Example.org:9000", "", "media", "auto"), "https", "minio.example.org:9000", "us-east-1", "other", true },
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++)
        check_target(&cases[i]);
}

static void hosts_ports_and_styles(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct expected cases[] = {
        { IN("http://127.0.0.1:8000", "", "media", "auto"), "http", "127.0.0.1:8000", "us-east-1", "other", true },
        { IN("http://[::1]:8000", "", "media", "auto"), "http", "[::1]:8000", "us-east-1", "other", true },
        { IN("http://[::1]", "", "media", "auto"), "http", "[::1]", "us-east-1", "other", true },
        { IN("http://minio_1:80", "", "media", "auto"), "http", "minio_1", "us-east-1", "other", true },
        { IN("https://s3.example:443/", "garage", "media", "auto"), "https", "s3.example", "garage", "other", true },
        { IN("https://s3.example:80", "", "media", "auto"), "https", "s3.example:80", "us-east-1", "other", true },
        { IN("https://s3.example:65535", "", "media", "host"), "https", "s3.example:65535", "us-east-1", "other", false },
        { IN("", "eu-west-1", "media", "path"), "https", "s3.eu-west-1.amazonaws.com", "eu-west-1", "aws", true },
        { IN("", "eu-west-1", "me.dia", "auto"), "https", "s3.eu-west-1.amazonaws.com", "eu-west-1", "aws", true },
        { IN("", "eu-west-1", "me.dia", "host"), "https", "s3.eu-west-1.amazonaws.com", "eu-west-1", "aws", false },
        { IN("http://s3.eu-west-1.amazonaws.com", "", "me.dia", "auto"), "http", "s3.eu-west-1.amazonaws.com", "eu-west-1", "aws", false },
        { IN("", "us-east-1", "Old_Bucket", "auto"), "https", "s3.us-east-1.amazonaws.com", "us-east-1", "aws", true },
        { IN("", "us-east-1", "192.168.5.4", "auto"), "https", "s3.us-east-1.amazonaws.com", "us-east-1", "aws", true },
    };
    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++)
        check_target(&cases[i]);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        struct rp_s3_options in;
        const char *says, *hints;
    } cases[] = {
        { IN("", "", "media", "auto"), "neither endpoint nor region", "eu-central-1" },
        { IN("minio:9000", "", "media", "auto"), "no scheme", "https://HOST" },
        { IN("s3.example.org", "", "media", "auto"), "no scheme", "https://HOST" },
        { IN("s3://media", "", "media", "auto"), "scheme must be https or http", "https://HOST" },
        { IN("https://s3.example.org/media", "", "media", "auto"), "it has a path", "the bucket has its own setting" },
        { IN("https://s3.example.org/?x=1", "", "media", "auto"), "it has a query", "https://HOST" },
        { IN("https://s3.example.org#x", "", "media", "auto"), "it has a query", "https://HOST" },
        { IN("https://key:hush@s3.example.org", "", "media", "auto"), "user name or password", "access_key" },
        { IN("https://", "", "media", "auto"), "no host", "https://HOST" },
        { IN("https://:9000", "", "media", "auto"), "not a host name", "https://HOST" },
        { IN("https://a..b", "", "media", "auto"), "not a host name", "https://HOST" },
        { IN("https://a b", "", "media", "auto"), "not a host name", "https://HOST" },
        { IN("https://[::1", "", "media", "auto"), "not a host name", "https://HOST" },
        { IN("https://[::1]x", "", "media", "auto"), "not a host name", "https://HOST" },
        { IN("https://[]", "", "media", "auto"), "not a host name", "https://HOST" },
        { IN("https://h:", "", "media", "auto"), "port is not a number", "https://HOST" },
        { IN("https://h:x", "", "media", "auto"), "port is not a number", "https://HOST" },
        { IN("https://h:0", "", "media", "auto"), "no such port", "https://HOST" },
        { IN("https://h:65536", "", "media", "auto"), "no such port", "https://HOST" },
        { IN("https://h:999999", "", "media", "auto"), "port is not a number", "https://HOST" },
        { IN("https://media.s3.eu-west-1.amazonaws.com", "", "media", "auto"), "bucket in it", "leave the bucket out" },
        { IN("https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com", "", "media", "auto"), "no region", "region" },
        { IN("https://f004.backblazeb2.com", "", "media", "auto"), "no region", "region" },
        { IN("https://h", "eu/west", "media", "auto"), "region \"eu/west\"", "" },
        { IN("https://h", "", "", "auto"), "no bucket", "bucket" },
        { IN("https://h", "", NULL, "auto"), "no bucket", "bucket" },
        { IN("https://h", "", "ab", "auto"), "cannot be the name of a bucket", "3 to 255" },
        { IN("https://h", "", "s3://media", "auto"), "cannot be the name of a bucket", "without s3://" },
        { IN("https://h", "", "media/prefix", "auto"), "cannot be the name of a bucket", "without a prefix" },
        { IN("https://h", "", "...", "auto"), "cannot be the name of a bucket", "3 to 255" },
        { IN("https://h", "", "media", "virtual"), "must be auto, path or host", "" },
        { IN("https://h", "", "Old_Bucket", "host"), "is not a host name", "path or auto" },
        { IN("http://127.0.0.1:9000", "", "media", "host"), "is not a host name", "path or auto" },
    };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct s3_target t = { .host = "untouched" };
        struct rp_error err = { 0 };
        assert_int_equal(rp_s3_target_of(&cases[i].in, &arena, &t, &err), RP_ECONFIG);
        if (strstr(err.text, cases[i].says) == NULL || strstr(err.hint, cases[i].hints) == NULL)
            fail_msg("case %zu: \"%s\" (%s)", i, err.text, err.hint);
        assert_null(strstr(err.text, "hush"));
        assert_string_equal(t.host, "untouched");
    }
}

static void long_names_are_refused(void **state)
{
    (void)state;
    static char endpoint[600], name[300];
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(1 << 16);
    struct s3_target t = { 0 };
    memset(name, 'a', sizeof name - 1);
    snprintf(endpoint, sizeof endpoint, "https://%s", name);
    struct rp_s3_options options = IN(endpoint, "", "media", "auto");
    assert_int_equal(rp_s3_target_of(&options, &arena, &t, NULL), RP_ECONFIG);
    options = (struct rp_s3_options)IN("https://h", name, "media", "auto");
    assert_int_equal(rp_s3_target_of(&options, &arena, &t, NULL), RP_ECONFIG);
    options = (struct rp_s3_options)IN("", name, "media", "auto");
    assert_int_equal(rp_s3_target_of(&options, &arena, &t, NULL), RP_ECONFIG);
    options = (struct rp_s3_options)IN("https://h", "", name, "auto");
    assert_int_equal(rp_s3_target_of(&options, &arena, &t, NULL), RP_ECONFIG);
    struct rp_arena none = RP_ARENA(0);
    options = (struct rp_s3_options)IN("https://h", "", "media", "auto");
    assert_int_equal(rp_s3_target_of(&options, &none, &t, NULL), RP_ENOMEM);
    rp_arena_done(&none);
}

/* By host and by what the answers say: either alone may be anybody. */
static void only_who_is_documented_deletes_in_one_step(void **state)
{
    (void)state;
    assert_true(rp_s3_deletes_in_one_step("s3.eu-central-1.amazonaws.com", "AmazonS3"));
    assert_true(rp_s3_deletes_in_one_step("s3.cn-north-1.amazonaws.com.cn", "AmazonS3"));
    assert_false(rp_s3_deletes_in_one_step("s3.eu-central-1.amazonaws.com", ""));
    assert_false(rp_s3_deletes_in_one_step("s3.example.org", "AmazonS3"));
    assert_false(rp_s3_deletes_in_one_step("account.r2.cloudflarestorage.com", "cloudflare"));
    assert_false(rp_s3_deletes_in_one_step("127.0.0.1:9000", "MinIO"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_tell_their_vendor), cmocka_unit_test(endpoints_of_vendors),
        cmocka_unit_test(hosts_ports_and_styles),  cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(long_names_are_refused),  cmocka_unit_test(only_who_is_documented_deletes_in_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
