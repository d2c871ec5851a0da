/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/cleanup.h"
#include "http/content/headers.h"

static const struct {
    const char *header;
    int64_t size;
    enum rp_range_kind kind;
    int64_t first, length;
} ranges[] = {
    { NULL, 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=0-0", 10, RP_RANGE_PART, 0, 1 },
    { "bytes=2-5", 10, RP_RANGE_PART, 2, 4 },
    { "Bytes=2-5", 10, RP_RANGE_PART, 2, 4 },
    { "bytes= 2-5 ", 10, RP_RANGE_PART, 2, 4 },
    { "bytes=2-", 10, RP_RANGE_PART, 2, 8 },
    { "bytes=9-", 10, RP_RANGE_PART, 9, 1 },
    { "bytes=0-9", 10, RP_RANGE_PART, 0, 10 },
    { "bytes=5-99", 10, RP_RANGE_PART, 5, 5 },
    { "bytes=5-99999999999999999999999", 10, RP_RANGE_PART, 5, 5 },
    { "bytes=-3", 10, RP_RANGE_PART, 7, 3 },
    { "bytes=-10", 10, RP_RANGE_PART, 0, 10 },
    { "bytes=-99999999999999999999", 10, RP_RANGE_PART, 0, 10 },
    { "bytes=10-", 10, RP_RANGE_IMPOSSIBLE, 0, 10 },
    { "bytes=10-11", 10, RP_RANGE_IMPOSSIBLE, 0, 10 },
    { "bytes=99999999999999999999-", 10, RP_RANGE_IMPOSSIBLE, 0, 10 },
    { "bytes=-0", 10, RP_RANGE_IMPOSSIBLE, 0, 10 },
    { "bytes=0-0", 0, RP_RANGE_IMPOSSIBLE, 0, 0 },
    { "bytes=0-", 0, RP_RANGE_IMPOSSIBLE, 0, 0 },
    { "bytes=-1", 0, RP_RANGE_IMPOSSIBLE, 0, 0 },
    { "bytes=5-2", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=-", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes", 10, RP_RANGE_WHOLE, 0, 10 },
    { "", 10, RP_RANGE_WHOLE, 0, 10 },
    { "items=0-1", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=0-1,3-4", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=+1-2", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=1-2x", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=--1", 10, RP_RANGE_WHOLE, 0, 10 },
    { "bytes=0x1-", 10, RP_RANGE_WHOLE, 0, 10 },
};

static void one_range_is_read_and_others_are_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        int64_t first = -1, length = -1;
        enum rp_range_kind kind = rp_range_parse(ranges[i].header, ranges[i].size, &first, &length);
        if (kind != ranges[i].kind || first != ranges[i].first || length != ranges[i].length)
            fail_msg("%s of %ld: kind %d, first %ld, length %ld", ranges[i].header, (long)ranges[i].size, (int)kind,
                     (long)first, (long)length);
    }
}

static void etags_are_compared_whole(void **state)
{
    (void)state;
    assert_true(rp_etag_listed("\"abc\"", "abc"));
    assert_true(rp_etag_listed("\"x\", W/\"abc\" ,\"y\"", "abc"));
    assert_true(rp_etag_listed(" * ", "abc"));
    const char *const wrong[] = { NULL,    "",   "abc",  "\"ab\"",      "\"abcd\"", "\"abc",
                                  "W/abc", "*x", "\"\"", "\"x\" \"y\"", "\"x\"abc", ",\"abc\"" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(rp_etag_listed(wrong[i], "abc"));
    assert_false(rp_etag_listed("*", ""));
    assert_true(rp_etag_same("\"abc\"", "abc"));
    assert_false(rp_etag_same("W/\"abc\"", "abc"));
    assert_false(rp_etag_same("\"abc\", \"d\"", "abc"));
    assert_false(rp_etag_same("Sat, 29 Oct 1994 19:43:31 GMT", "abc"));
    assert_false(rp_etag_same(NULL, "abc"));
}

static void expect_disposition(const char *name, const char *want)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    assert_string_equal(rp_disposition(name, &arena), want);
}

static void a_name_is_given_as_an_attachment_whatever_it_holds(void **state)
{
    (void)state;
    expect_disposition("a.txt", "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt");
    expect_disposition("dir/my file.txt", "attachment; filename=\"my file.txt\"; filename*=UTF-8''my%20file.txt");
    expect_disposition("..\\..\\x", "attachment; filename=\"x\"; filename*=UTF-8''x");
    expect_disposition("gr\xc3\xbc\xc3\x9f", "attachment; filename=\"gr__\"; filename*=UTF-8''gr%C3%BC%C3%9F");
    expect_disposition(
        "a\"; evil=\"\r\nX: y",
        "attachment; filename=\"a__ evil=___X: y\"; filename*=UTF-8''a%22%3B%20evil%3D%22%0D%0AX%3A%20y");
    expect_disposition("", "attachment");
    expect_disposition("folder/", "attachment; filename=\"folder_\"; filename*=UTF-8''folder%2F");
}

static void a_long_name_is_cut_between_characters(void **state)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    char name[600];
    (void)state;
    memset(name, 'a', sizeof name);
    memcpy(name + 254, "\xe2\x82\xac", 3);
    name[sizeof name - 1] = '\0';
    const char *text = rp_disposition(name, &arena);
    assert_null(strchr(strstr(text, "''"), '%'));
    assert_int_equal(strlen(strstr(text, "''") + 2), 254);
}

static void a_type_that_no_header_can_carry_is_bytes(void **state)
{
    (void)state;
    assert_string_equal(rp_content_type_safe("text/plain; charset=utf-8"), "text/plain; charset=utf-8");
    const char *const unsafe[] = { NULL, "", "text", "text/plain\r\nX: y", "text/\x7f", "text/\xc3\xbc" };
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        assert_string_equal(rp_content_type_safe(unsafe[i]), "application/octet-stream");
}

static void a_promised_type_must_be_sent(void **state)
{
    (void)state;
    assert_true(rp_content_type_fits("", "any/thing"));
    assert_true(rp_content_type_fits(NULL, NULL));
    assert_true(rp_content_type_fits("text/plain", " Text/Plain "));
    assert_false(rp_content_type_fits("text/plain", NULL));
    assert_false(rp_content_type_fits("text/plain", "text/plain; charset=utf-8"));
    assert_false(rp_content_type_fits("text/plain", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_range_is_read_and_others_are_ignored),
        cmocka_unit_test(etags_are_compared_whole),
        cmocka_unit_test(a_name_is_given_as_an_attachment_whatever_it_holds),
        cmocka_unit_test(a_long_name_is_cut_between_characters),
        cmocka_unit_test(a_type_that_no_header_can_carry_is_bytes),
        cmocka_unit_test(a_promised_type_must_be_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
