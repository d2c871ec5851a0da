/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/text/base64.h"

/* RFC 4648, section 10, and bytes whose text has every kind of digit. */
static const struct {
    const char *bytes;
    size_t n;
    const char *text;
} pairs[] = { { "", 0, "" },
              { "f", 1, "Zg==" },
              { "fo", 2, "Zm8=" },
              { "foo", 3, "Zm9v" },
              { "foob", 4, "Zm9vYg==" },
              { "fooba", 5, "Zm9vYmE=" },
              { "foobar", 6, "Zm9vYmFy" },
              { "\xff\xef\xbe", 3, "/+++" },
              { "\0\0", 2, "AAA=" } };

static void bytes_and_text_are_each_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[32];
        uint8_t bytes[32];
        rp_base64((const uint8_t *)pairs[i].bytes, pairs[i].n, text);
        assert_string_equal(text, pairs[i].text);
        assert_int_equal(strlen(text) + 1, RP_BASE64_TEXT(pairs[i].n));
        assert_int_equal(rp_base64_parse(text, strlen(text), bytes), pairs[i].n);
        assert_memory_equal(bytes, pairs[i].bytes, pairs[i].n);
        assert_int_equal(rp_base64_parse(text, strlen(text), NULL), pairs[i].n);
        assert_true(pairs[i].n <= RP_BASE64_BYTES(strlen(text)));
    }
}

static void what_is_written_in_another_way_is_none(void **state)
{
    static const char *const texts[] = { "Z",      "Zg",    "Zg=",      "Zm9",
                                         "Zg==\n", " Zg==", "Zh==",     "Zm9=",
                                         "====",   "Z===",  "=Zg=",     "Zg=v",
                                         "Zm-_",   "Zm 9",  "Zg==Zg==", "Zm9v\xc3\xa4\x78\x78" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (rp_base64_parse(texts[i], strlen(texts[i]), NULL) >= 0) fail_msg("%s was read", texts[i]);
    assert_int_equal(rp_base64_parse("Zm\0v", 4, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_text_are_each_others),
        cmocka_unit_test(what_is_written_in_another_way_is_none),
    };
    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
