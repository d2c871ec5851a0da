/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"

static void values_are_read_and_written_back_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *text, *written;
    } cases[] = {
        { "{}", "{}" },
        { " { \"b\" : 1 , \"a\" : [ true, null, -2.5 ] }\n", "{\"b\":1,\"a\":[true,null,-2.5]}" },
        { "9223372036854775807", "9223372036854775807" },
        { "\"\\u00e9\\n\"", "\"\xC3\xA9\\n\"" },
        { "null", "null" },
        { "\"[[[[{{{{\\\"[\"", "\"[[[[{{{{\\\"[\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
        RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(1000);
        assert_int_equal(rp_json_parse(cases[i].text, strlen(cases[i].text), &value, NULL), 0);
        assert_int_equal(rp_json_write(&b, value), 0);
        assert_string_equal(rp_buf_text(&b), cases[i].written);
    }
}

static void what_is_no_json_is_refused_with_its_store(void **state)
{
    (void)state;
    static const struct {
        const char *text, *store;
    } cases[] = {
        { "", "line 1, column 0" },
        { "{", "line 1, column 1" },
        { "{\"a\":1,\n \"a\":2}", "line 2, column 4" },
        { "{}x", "line 1, column 3" },
        { "{} {}", "line 1, column 4" },
        { "[1,]", "line 1, column 4" },
        { "{'a':1}", "line 1, column 2" },
        { "[01]", "line 1, column 2" },
        { "[9223372036854775808]", "line 1, column 20" },
        { "[1e999]", "line 1, column 6" },
        { "[\"\\ud800\"]", "line 1, column 9" },
        { "[\"\\u0000\"]", "line 1, column 9" },
        { "[\"a\nb\"]", "line 1, column 3" },
        { "nul", "line 1, column 3" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *value = json_null();
        struct rp_error err = { 0 };
        assert_int_equal(rp_json_parse(cases[i].text, strlen(cases[i].text), &value, &err), RP_EINVAL);
        assert_ptr_equal(value, json_null());
        if (strstr(err.text, cases[i].store) == NULL) fail_msg("%s: %s", cases[i].text, err.text);
    }
}

static void bytes_that_are_not_utf8_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = { "[\"\xFF\"]", "[\"\xC0\x80\"]", "[\"\xED\xA0\x80\"]", "[\"\xF4\x90\x80\x80\"]",
                                         "[\"\xE2\x82\"]" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *value = NULL;
        struct rp_error err = { 0 };
        assert_int_equal(rp_json_parse(texts[i], strlen(texts[i]), &value, &err), RP_EINVAL);
        assert_non_null(strstr(err.text, "line 1, column"));
        assert_null(value);
    }
}

static void the_length_bounds_what_is_read(void **state)
{
    (void)state;
    RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
    assert_int_equal(rp_json_parse("[1]]]]", 3, &value, NULL), 0);
    json_t *other = NULL;
    assert_int_equal(rp_json_parse("[1]\0", 4, &other, NULL), RP_EINVAL);
    assert_null(other);
}

static int parse_nested(size_t depth, const char *open, const char *close, json_t **out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(10000);
    rp_buf_str(&b, "\n");
    for (size_t i = 0; i < depth; i++)
        rp_buf_str(&b, open);
    rp_buf_str(&b, "1");
    for (size_t i = 0; i < depth; i++)
        rp_buf_str(&b, close);
    return rp_json_parse(b.data, b.len, out, err);
}

static void nesting_may_reach_the_limit_and_not_pass_it(void **state)
{
    (void)state;
    static const char *const shapes[][2] = { { "[", "]" }, { "{\"a\":", "}" } };
    for (size_t i = 0; i < 2; i++) {
        RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
        assert_int_equal(parse_nested(RP_JSON_DEPTH_MAX, shapes[i][0], shapes[i][1], &value, NULL), 0);
        json_t *other = NULL;
        struct rp_error err = { 0 };
        assert_int_equal(parse_nested(RP_JSON_DEPTH_MAX + 1, shapes[i][0], shapes[i][1], &other, &err), RP_EINVAL);
        assert_null(other);
        assert_string_equal(err.text, i == 0 ? "json: line 2, column 65: nested deeper than 64"
                                             : "json: line 2, column 321: nested deeper than 64");
    }
}

static void brackets_in_a_string_do_not_count_as_nesting(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(1000);
    rp_buf_str(&b, "[\"\\\"");
    for (int i = 0; i < 2 * RP_JSON_DEPTH_MAX; i++)
        rp_buf_str(&b, "[{");
    rp_buf_str(&b, "\"]");
    RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
    assert_int_equal(rp_json_parse(b.data, b.len, &value, NULL), 0);
}

static void siblings_do_not_count_as_nesting(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(10000);
    rp_buf_str(&b, "[");
    for (int i = 0; i < 500; i++)
        rp_buf_str(&b, "{\"]\\\\\":[]},");
    rp_buf_str(&b, "0]");
    RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
    assert_int_equal(rp_json_parse(b.data, b.len, &value, NULL), 0);
    assert_int_equal(json_array_size(value), 501);
}

static void a_value_that_does_not_fit_leaves_no_half_of_it(void **state)
{
    (void)state;
    RP_CLEANUP(rp_json_decrefp) json_t *value = json_pack("{s:s, s:i}", "name", "cat.jpg", "size", 12);
    static const char written[] = "{\"name\":\"cat.jpg\",\"size\":12}";
    for (size_t max = 2; max < sizeof written + 2; max++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(max);
        rp_buf_str(&b, "x=");
        bool fits = max >= 2 + sizeof written - 1;
        assert_int_equal(rp_json_write(&b, value), fits ? 0 : RP_ETOOBIG);
        assert_string_equal(rp_buf_text(&b), fits ? "x={\"name\":\"cat.jpg\",\"size\":12}" : "x=");
        assert_int_equal(b.failed, fits ? 0 : RP_ETOOBIG);
        assert_int_equal(b.len, strlen(rp_buf_text(&b)));
    }
}

static void a_failed_buffer_stays_as_it_is(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(4);
    rp_buf_str(&b, "ab");
    rp_buf_str(&b, "too long");
    assert_int_equal(rp_json_write(&b, json_true()), RP_ETOOBIG);
    assert_string_equal(rp_buf_text(&b), "ab");
}

static void what_there_was_no_memory_for_is_not_written(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(100);
    rp_buf_str(&b, "x=");
    assert_int_equal(rp_json_write(&b, NULL), RP_ENOMEM);
    assert_string_equal(rp_buf_text(&b), "x=");
    assert_int_equal(b.failed, RP_ENOMEM);
}

/* ---- jansson without memory ---- */

static struct {
    int n, first, last; /* those of its allocations that fail */
} memory;

static void *scarce(size_t n)
{
    memory.n++;
    return memory.n >= memory.first && memory.n <= memory.last ? NULL : malloc(n);
}

/* From now on the first to the last of jansson's allocations fail; 0, 0: none. */
static void refuse(int first, int last)
{
    memory.n = 0;
    memory.first = first;
    memory.last = last;
}

/* As callers build: what `set` and `append` answer is not looked at. */
static json_t *build(void)
{
    json_t *o = json_object(), *list = json_array(), *inner = json_object();
    rp_json_set(inner, "only", json_string("one"));
    rp_json_append(list, json_string("a"));
    for (int i = 0; i < 9; i++) /* past the room that an array begins with */
        rp_json_append(list, json_integer(i));
    rp_json_set(o, "first", rp_json_text("x"));
    rp_json_set(o, "inner", inner);
    rp_json_set(o, "list", list);
    json_t *more = json_object();
    rp_json_set(more, "at", rp_json_time(0));
    rp_json_set(more, "none", rp_json_text(NULL));
    rp_json_merge(o, more);
    json_decref(more);
    return o;
}

static void write_whole_or_not_at_all(int first, int last)
{
    static const char whole[] = "{\"first\":\"x\",\"inner\":{\"only\":\"one\"},\"list\":[\"a\",0,1,2,3,4,5,6,7,8],"
                                "\"at\":\"1970-01-01T00:00:00.000Z\",\"none\":null}";
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(1000);
    refuse(first, last);
    RP_CLEANUP(rp_json_decrefp) json_t *value = build();
    refuse(0, 0);
    int r = rp_json_write(&b, value);
    if (r == 0) assert_string_equal(rp_buf_text(&b), whole);
    if (r < 0) assert_int_equal(r, RP_ENOMEM);
    if (r < 0) assert_int_equal(b.len, 0);
}

static void a_value_that_lost_something_is_not_written(void **state)
{
    (void)state;
    refuse(0, 0);
    json_decref(build());
    int n = memory.n;
    assert_true(n > 20);
    write_whole_or_not_at_all(0, 0);
    for (int first = 1; first <= n; first++)
        for (int last = first; last <= n; last++)
            write_whole_or_not_at_all(first, last);
    write_whole_or_not_at_all(0, 0);
}

static void a_text_that_lost_something_is_not_read(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a name that needs more room than it has at first\":\"and a text that needs even more room"
        " than that, by far\",\"n\":[1234567890123456789,\"\\u00e9 and a tail of some length\",0.12345678901234567]}";
    RP_CLEANUP(rp_json_decrefp) json_t *whole = NULL;
    refuse(0, 0);
    assert_int_equal(rp_json_parse(text, sizeof text - 1, &whole, NULL), 0);
    int n = memory.n, read = 0;
    for (int first = 1; first <= n; first++) {
        for (int last = first; last <= n; last++) {
            RP_CLEANUP(rp_json_decrefp) json_t *value = NULL;
            struct rp_error err = { 0 };
            refuse(first, last);
            int r = rp_json_parse(text, sizeof text - 1, &value, &err);
            refuse(0, 0);
            if (r == 0) assert_true(json_equal(value, whole));
            if (r < 0) assert_int_equal(r, RP_ENOMEM);
            read += r == 0;
        }
    }
    assert_int_equal(read, 0);
}

static void text_becomes_valid_utf8(void **state)
{
    (void)state;
#define BAD "\xEF\xBF\xBD"
    static const struct {
        const char *text, *made;
    } cases[] = {
        { "", "" },
        { "plain", "plain" },
        { "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80" },
        { "a\xFFz", "a" BAD "z" },
        { "\x80", BAD },
        { "\xC3", BAD },
        { "\xC3z", BAD "z" },
        { "\xC0\xAF", BAD BAD },
        { "\xE0\x9F\xBF", BAD BAD BAD },
        { "\xED\xA0\x80", BAD BAD BAD },
        { "\xED\x9F\xBF", "\xED\x9F\xBF" },
        { "\xE2\x82", BAD BAD },
        { "\xF0\x8F\xBF\xBF", BAD BAD BAD BAD },
        { "\xF0\x9F\x98", BAD BAD BAD },
        { "\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF" },
        { "\xF4\x90\x80\x80", BAD BAD BAD BAD },
        { "\xF5\x80\x80\x80", BAD BAD BAD BAD },
        { "\xC3\xA9\xFF\xC3\xA9", "\xC3\xA9" BAD "\xC3\xA9" },
    };
#undef BAD
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        RP_CLEANUP(rp_json_decrefp) json_t *value = rp_json_text(cases[i].text);
        assert_true(json_is_string(value));
        assert_string_equal(json_string_value(value), cases[i].made);
    }
    assert_true(json_is_null(rp_json_text(NULL)));
}

/* jansson is the second opinion on every character of up to three bytes. */
static void repair_and_jansson_agree_on_what_is_valid(void **state)
{
    (void)state;
    for (unsigned bits = 0x010000; bits < 0x1000000; bits += 0x101) {
        const char text[] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits, '!', '\0' };
        json_t *plain = json_string(text), *made = rp_json_text(text);
        assert_non_null(made);
        if (plain != NULL) assert_true(json_equal(plain, made));
        if (plain == NULL) assert_non_null(strstr(json_string_value(made), "\xEF\xBF\xBD"));
        json_decref(plain);
        json_decref(made);
    }
}

static void times_are_written_with_milliseconds(void **state)
{
    (void)state;
    RP_CLEANUP(rp_json_decrefp) json_t *value = rp_json_time(INT64_C(1794718974123));
    assert_string_equal(json_string_value(value), "2026-11-15T05:02:54.123Z");
}

static void set_takes_the_value_over_even_when_it_fails(void **state)
{
    (void)state;
    RP_CLEANUP(rp_json_decrefp) json_t *object = json_object();
    assert_int_equal(rp_json_set(object, "n", json_integer(1)), 0);
    assert_int_equal(rp_json_set(object, "n", json_integer(2)), 0);
    assert_int_equal(rp_json_get_int(object, "n", -1), 2);
    assert_int_equal(rp_json_set(NULL, "x", json_string("leaks if not taken")), RP_ENOMEM);
    assert_int_equal(rp_json_set(object, "\xFF", json_string("leaks if not taken")), RP_EINVAL);
    assert_int_equal(json_object_size(object), 1);
    assert_int_equal(rp_json_set(object, "x", NULL), RP_ENOMEM);
}

static void members_of_another_type_give_the_fallback(void **state)
{
    (void)state;
    RP_CLEANUP(rp_json_decrefp)
    json_t *object = json_pack("{s:s, s:i, s:n, s:f, s:b}", "text", "yes", "int", 7, "none", "real", 1.5, "bool", 1);
    assert_string_equal(rp_json_get_text(object, "text", "no"), "yes");
    assert_int_equal(rp_json_get_int(object, "int", -1), 7);
    static const char *const others[] = { "none", "real", "bool", "absent" };
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(rp_json_get_text(object, others[i], "no"), "no");
        assert_int_equal(rp_json_get_int(object, others[i], -1), -1);
    }
    assert_null(rp_json_get_text(object, "int", NULL));
    assert_int_equal(rp_json_get_int(object, "text", -1), -1);
    assert_string_equal(rp_json_get_text(NULL, "text", "no"), "no");
    assert_int_equal(rp_json_get_int(json_true(), "int", -1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_and_written_back_in_order),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_store),
        cmocka_unit_test(bytes_that_are_not_utf8_are_refused),
        cmocka_unit_test(the_length_bounds_what_is_read),
        cmocka_unit_test(nesting_may_reach_the_limit_and_not_pass_it),
        cmocka_unit_test(brackets_in_a_string_do_not_count_as_nesting),
        cmocka_unit_test(siblings_do_not_count_as_nesting),
        cmocka_unit_test(a_value_that_does_not_fit_leaves_no_half_of_it),
        cmocka_unit_test(a_failed_buffer_stays_as_it_is),
        cmocka_unit_test(what_there_was_no_memory_for_is_not_written),
        cmocka_unit_test(a_value_that_lost_something_is_not_written),
        cmocka_unit_test(a_text_that_lost_something_is_not_read),
        cmocka_unit_test(text_becomes_valid_utf8),
        cmocka_unit_test(repair_and_jansson_agree_on_what_is_valid),
        cmocka_unit_test(times_are_written_with_milliseconds),
        cmocka_unit_test(set_takes_the_value_over_even_when_it_fails),
        cmocka_unit_test(members_of_another_type_give_the_fallback),
    };
    json_set_alloc_funcs(scarce, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
