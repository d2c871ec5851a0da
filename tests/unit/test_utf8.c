/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/utf8.h"

static void characters_of_every_length_are_measured(void **state)
{
    (void)state;
    assert_int_equal(rp_utf8_length("a", 1), 1);
    assert_int_equal(rp_utf8_length("\xC2\x80", 2), 2);
    assert_int_equal(rp_utf8_length("\xE0\xA0\x80", 3), 3);
    assert_int_equal(rp_utf8_length("\xEF\xBF\xBF", 3), 3);
    assert_int_equal(rp_utf8_length("\xF0\x90\x80\x80", 4), 4);
    assert_int_equal(rp_utf8_length("\xF4\x8F\xBF\xBF", 4), 4);
    assert_int_equal(rp_utf8_length("", 0), 0);
}

static void what_is_no_character_has_no_length(void **state)
{
    static const char *const bad[] = {
        "\x80",             /* a continuation alone */
        "\xC0\x80",         /* overlong NUL */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xED\xA0\x80",     /* surrogate */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xF4\x90\x80\x80", /* above U+10FFFF */
        "\xF5\x80\x80\x80",
        "\xFF",
        "\xC2",
        "\xE1\x80",
        "\xF1\x80\x80",
        "\xC2"
        "a",
        "\xE1\x80"
        "a",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(rp_utf8_length(bad[i], strlen(bad[i])), 0);
        assert_false(rp_utf8_valid(bad[i], strlen(bad[i])));
    }
}

static void a_text_is_valid_as_a_whole_or_not(void **state)
{
    const char *good = "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80";
    (void)state;
    assert_true(rp_utf8_valid("", 0));
    assert_true(rp_utf8_valid(good, strlen(good)));
    assert_false(rp_utf8_valid(good, strlen(good) - 1)); /* cut in the middle of its last character */
    assert_false(rp_utf8_valid("good\xFF", 5));
}

static void a_cut_is_between_characters(void **state)
{
    (void)state;
    assert_int_equal(rp_utf8_cut("", 4), 0);
    assert_int_equal(rp_utf8_cut("abc", 3), 3);
    assert_int_equal(rp_utf8_cut("abcd", 3), 3);
    assert_int_equal(rp_utf8_cut("ab\xc3\xa9", 4), 4);
    assert_int_equal(rp_utf8_cut("ab\xc3\xa9", 3), 2);
    assert_int_equal(rp_utf8_cut("\xf0\x9f\x98\x80", 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_of_every_length_are_measured),
        cmocka_unit_test(what_is_no_character_has_no_length),
        cmocka_unit_test(a_text_is_valid_as_a_whole_or_not),
        cmocka_unit_test(a_cut_is_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
