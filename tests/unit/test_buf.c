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
#include "base/error.h"
#include "base/text/buf.h"

static void an_unused_buffer_reads_as_empty_text(void **state)
{
    (void)state;
    struct rp_buf b = RP_BUF(10);
    assert_string_equal(rp_buf_text(&b), "");
    rp_buf_clear(&b);
    rp_buf_done(&b);
    assert_string_equal(rp_buf_text(&b), "");
}

static void appends_join_and_stay_terminated(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(100);
    assert_int_equal(rp_buf_str(&b, "ab"), 0);
    assert_int_equal(rp_buf_char(&b, 'c'), 0);
    assert_int_equal(rp_buf_add(&b, "def", 2), 0);
    assert_int_equal(rp_buf_fmt(&b, "-%03d", 7), 0);
    assert_string_equal(rp_buf_text(&b), "abcde-007");
    assert_int_equal(b.len, 9);
}

static void nothing_can_be_appended_from_nowhere(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(0);
    assert_int_equal(rp_buf_add(&b, NULL, 0), 0);
    assert_int_equal(rp_buf_fmt(&b, "%s", ""), 0);
    assert_int_equal(b.len, 0);
    assert_int_equal(rp_buf_char(&b, 'x'), RP_ETOOBIG);
}

static void bytes_may_hold_a_nul(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(10);
    assert_int_equal(rp_buf_add(&b, "a\0b", 3), 0);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 4);
}

static void the_bound_can_be_reached_exactly_by_every_append(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(5);
        assert_int_equal(rp_buf_str(&b, "abcd"), 0);
        int r = way == 0   ? rp_buf_add(&b, "e", 1)
                : way == 1 ? rp_buf_str(&b, "e")
                : way == 2 ? rp_buf_char(&b, 'e')
                           : rp_buf_fmt(&b, "%c", 'e');
        assert_int_equal(r, 0);
        assert_string_equal(rp_buf_text(&b), "abcde");
        assert_in_range(b.cap, 6, 6);
    }
}

static void an_append_past_the_bound_changes_nothing(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(5);
        assert_int_equal(rp_buf_str(&b, "abcd"), 0);
        int r = way == 0 ? rp_buf_add(&b, "ef", 2) : way == 1 ? rp_buf_str(&b, "ef") : rp_buf_fmt(&b, "%s", "ef");
        assert_int_equal(r, RP_ETOOBIG);
        assert_string_equal(rp_buf_text(&b), "abcd");
        assert_int_equal(b.len, 4);
        assert_int_equal(b.failed, RP_ETOOBIG);
    }
}

static void a_length_that_would_wrap_around_is_too_big(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(SIZE_MAX - 1);
    assert_int_equal(rp_buf_char(&b, 'a'), 0);
    assert_int_equal(rp_buf_add(&b, "x", SIZE_MAX - 1), RP_ETOOBIG);
    assert_string_equal(rp_buf_text(&b), "a");
}

static void memory_that_cannot_be_had_is_an_error(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(SIZE_MAX);
    assert_int_equal(rp_buf_char(&b, 'a'), 0);
    assert_int_equal(rp_buf_add(&b, "x", SIZE_MAX - 1), RP_ENOMEM); /* no room for the NUL */
    assert_string_equal(rp_buf_text(&b), "a");
    assert_int_equal(b.failed, RP_ENOMEM);
}

static void the_first_failure_sticks_until_cleared(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(3);
    rp_buf_str(&b, "a");
    rp_buf_str(&b, "too long");
    assert_int_equal(rp_buf_str(&b, "b"), RP_ETOOBIG); /* it would fit, but a text with a hole is no text */
    assert_int_equal(rp_buf_fmt(&b, "b"), RP_ETOOBIG);
    assert_string_equal(rp_buf_text(&b), "a");
    const char *memory = b.data;
    rp_buf_clear(&b);
    assert_int_equal(b.failed, 0);
    assert_int_equal(b.len, 0);
    assert_string_equal(rp_buf_text(&b), "");
    assert_int_equal(rp_buf_str(&b, "xyz"), 0);
    assert_ptr_equal(b.data, memory);
    assert_string_equal(rp_buf_text(&b), "xyz");
}

static void many_small_appends_grow_it_up_to_the_bound_and_no_further(void **state)
{
    (void)state;
    enum { MAX = 100003 };
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(MAX);
    size_t moves = 0, cap = 0;
    for (size_t i = 0; i < MAX; i++) {
        assert_int_equal(rp_buf_char(&b, (char)('a' + i % 26)), 0);
        moves += b.cap != cap;
        cap = b.cap;
    }
    assert_int_equal(b.cap, MAX + 1);
    assert_in_range(moves, 1, 20);
    assert_int_equal(rp_buf_char(&b, 'x'), RP_ETOOBIG);
    for (size_t i = 0; i < MAX; i++)
        assert_int_equal(b.data[i], 'a' + i % 26);
    assert_int_equal(b.data[MAX], '\0');
}

static void done_leaves_a_buffer_that_can_be_used_again(void **state)
{
    (void)state;
    struct rp_buf b = RP_BUF(4);
    rp_buf_str(&b, "too long");
    rp_buf_done(&b);
    assert_null(b.data);
    assert_int_equal(rp_buf_str(&b, "four"), 0);
    rp_buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_buffer_reads_as_empty_text),
        cmocka_unit_test(appends_join_and_stay_terminated),
        cmocka_unit_test(nothing_can_be_appended_from_nowhere),
        cmocka_unit_test(bytes_may_hold_a_nul),
        cmocka_unit_test(the_bound_can_be_reached_exactly_by_every_append),
        cmocka_unit_test(an_append_past_the_bound_changes_nothing),
        cmocka_unit_test(a_length_that_would_wrap_around_is_too_big),
        cmocka_unit_test(memory_that_cannot_be_had_is_an_error),
        cmocka_unit_test(the_first_failure_sticks_until_cleared),
        cmocka_unit_test(many_small_appends_grow_it_up_to_the_bound_and_no_further),
        cmocka_unit_test(done_leaves_a_buffer_that_can_be_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
