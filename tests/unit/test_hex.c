/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/text/hex.h"

static void every_byte_is_written_and_read_again(void **state)
{
    unsigned char all[256], back[256];
    char text[2 * sizeof all + 1];
    (void)state;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)i;
    rp_hex_write(all, sizeof all, text);
    assert_int_equal(strlen(text), 2 * sizeof all);
    assert_memory_equal(text, "000102", 6);
    assert_string_equal(text + sizeof text - 7, "fdfeff");
    assert_true(rp_hex_read(text, sizeof all, back));
    assert_memory_equal(back, all, sizeof all);
    assert_true(rp_hex_read(text, sizeof all, text)); /* where it stands */
    assert_memory_equal(text, all, sizeof all);
    rp_hex_write(all, 0, text);
    assert_string_equal(text, "");
}

static void only_digits_are_read(void **state)
{
    static const char *const bad[] = { "", "0", "0g", "g0", " 0", "0x", "a/", ":a", "@a", "aG", "a`" };
    unsigned char byte;
    (void)state;
    assert_true(rp_hex_read("aF", 1, &byte));
    assert_int_equal(byte, 0xaf);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(rp_hex_read(bad[i], 1, &byte));
}

static void what_was_escaped_is_read(void **state)
{
    char good[] = "a%41+%2b%00z", broken[] = "%4", worse[] = "%4g";
    (void)state;
    assert_int_equal(rp_unescape(good, '%', true), 6);
    assert_memory_equal(good, "aA +\0z", 7);
    assert_int_equal(rp_unescape(broken, '%', false), -1);
    assert_int_equal(rp_unescape(worse, '%', false), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_written_and_read_again),
        cmocka_unit_test(only_digits_are_read),
        cmocka_unit_test(what_was_escaped_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
