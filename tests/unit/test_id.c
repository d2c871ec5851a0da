/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "base/id.h"

#define EPOCH_MS INT64_C(1577836800000)
#define NOW_MS   INT64_C(1794718974123)

static void a_fresh_id_carries_time_and_lane(void **state)
{
    (void)state;
    int64_t id = rp_id_next(0, NOW_MS, 5);
    assert_int_equal(rp_id_time_ms(id), NOW_MS);
    assert_int_equal(id >> 13 & 255, 5);
    assert_int_equal(id & 8191, 0);
}

static void ids_grow_while_the_clock_stands_goes_back_and_jumps(void **state)
{
    (void)state;
    static const int64_t steps[] = { 0, 0, 1, 0, -1, -1000000, 0, 5, 1000001, 0, -NOW_MS, 3600000 };
    int64_t last = 0, now = NOW_MS;
    for (size_t i = 0; i < 12000; i++) {
        now += i % 1000 == 0 ? steps[i / 1000] : 0;
        int64_t id = rp_id_next(last, now, 7);
        assert_true(id > last);
        assert_int_equal(id >> 13 & 255, 7);
        assert_true(rp_id_time_ms(id) >= now);
        last = id;
    }
}

static void more_than_8192_ids_in_a_millisecond_borrow_from_the_next(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int i = 0; i < 8192; i++) {
        int64_t id = rp_id_next(last, NOW_MS, 255);
        assert_true(id > last);
        assert_int_equal(rp_id_time_ms(id), NOW_MS);
        last = id;
    }
    for (int i = 0; i < 8192; i++) {
        int64_t id = rp_id_next(last, NOW_MS, 255);
        assert_true(id > last);
        assert_int_equal(rp_id_time_ms(id), NOW_MS + 1);
        assert_int_equal(id >> 13 & 255, 255); /* the lane is not what overflows */
        last = id;
    }
    assert_int_equal(rp_id_time_ms(rp_id_next(last, NOW_MS, 255)), NOW_MS + 2);
}

static void lanes_never_make_the_same_id(void **state)
{
    (void)state;
    int64_t last[3] = { 0 };
    for (int i = 0; i < 20000; i++)
        for (int lane = 0; lane < 3; lane++) {
            last[lane] = rp_id_next(last[lane], NOW_MS, lane);
            assert_int_equal(last[lane] >> 13 & 255, lane);
        }
}

static void the_beginning_of_time_gives_ids_above_zero(void **state)
{
    (void)state;
    static const int64_t moments[] = { INT64_MIN, -1, 0, EPOCH_MS - 1, EPOCH_MS };
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        assert_true(rp_id_next(0, moments[i], 0) > 0);
        assert_true(rp_id_next(0, moments[i], 9) > 0);
        assert_int_equal(rp_id_time_ms(rp_id_next(0, moments[i], 0)), EPOCH_MS);
    }
}

static void a_clock_past_the_last_millisecond_gives_positive_growing_ids(void **state)
{
    (void)state;
    int64_t first = rp_id_next(0, INT64_MAX, 255), second = rp_id_next(first, INT64_MAX, 255);
    assert_true(first > 0);
    assert_true(second > first);
    assert_int_equal(rp_id_time_ms(first), EPOCH_MS + (INT64_C(1) << 42) - 1);
}

static void the_floor_of_a_moment_divides_ids_by_time(void **state)
{
    (void)state;
    for (int lane = 0; lane <= RP_LANE_MAX; lane += 51) {
        assert_true(rp_id_next(0, NOW_MS, lane) >= rp_id_floor(NOW_MS));
        assert_true(rp_id_next(0, NOW_MS - 1, lane) < rp_id_floor(NOW_MS));
    }
    assert_int_equal(rp_id_floor(NOW_MS), rp_id_next(0, NOW_MS, 0));
    assert_int_equal(rp_id_floor(INT64_MIN), 0);
    assert_int_equal(rp_id_floor(EPOCH_MS), 0);
    assert_int_equal(rp_id_floor(EPOCH_MS + 1), 1 << 21);
    assert_int_equal(rp_id_floor(INT64_MAX), INT64_MAX);
}

static void text_has_the_kinds_prefix_and_reads_back(void **state)
{
    (void)state;
    static const char *const prefixes[] = { "fil_", "mrk_", "txn_", "run_", "evt_", "tok_", "hld_", "ded_", "cnf_" };
    static const int64_t ids[] = { 0, 1, 31, 32, INT64_C(0x123456789abcdef), INT64_MAX - 1, INT64_MAX };
    assert_int_equal(sizeof prefixes / sizeof prefixes[0], RP_ID_KINDS);
    for (int kind = 0; kind < RP_ID_KINDS; kind++)
        for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
            char text[RP_ID_TEXT];
            enum rp_id_kind read_kind = RP_ID_KINDS;
            int64_t read_id = -1;
            assert_ptr_equal(rp_id_format((enum rp_id_kind)kind, ids[i], text), text);
            assert_int_equal(strlen(text), 17);
            assert_memory_equal(text, prefixes[kind], 4);
            assert_true(rp_id_parse(text, &read_kind, &read_id));
            assert_int_equal(read_kind, kind);
            assert_int_equal(read_id, ids[i]);
        }
}

static void known_numbers_have_known_texts(void **state)
{
    (void)state;
    char text[RP_ID_TEXT];
    assert_string_equal(rp_id_format(RP_ID_MARK, 0, text), "mrk_0000000000000");
    assert_string_equal(rp_id_format(RP_ID_MARK, 1023, text), "mrk_00000000000zz");
    assert_string_equal(rp_id_format(RP_ID_MARK, INT64_MAX, text), "mrk_7zzzzzzzzzzzz");
}

static void text_sorts_like_the_number(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        int64_t pair[2];
        for (int k = 0; k < 2; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            pair[k] = (int64_t)(random >> 1);
        }
        if (i % 2 == 0) pair[1] = pair[0] < INT64_MAX ? pair[0] + 1 : 0; /* neighbours too */
        char a[RP_ID_TEXT], b[RP_ID_TEXT];
        int order = strcmp(rp_id_format(RP_ID_FILE, pair[0], a), rp_id_format(RP_ID_FILE, pair[1], b));
        assert_int_equal(order < 0, pair[0] < pair[1]);
        assert_int_equal(order == 0, pair[0] == pair[1]);
    }
}

static void either_case_is_read(void **state)
{
    (void)state;
    enum rp_id_kind kind;
    int64_t id;
    assert_true(rp_id_parse("MRK_00000000000ZZ", &kind, &id));
    assert_int_equal(kind, RP_ID_MARK);
    assert_int_equal(id, 1023);
    assert_true(rp_id_parse("Run_00000000000zZ", &kind, &id));
    assert_int_equal(kind, RP_ID_RUN);
}

static void what_is_no_id_is_refused_and_leaves_the_outputs(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "mrk_",
        "mrk_000000000000",   /* a digit short */
        "mrk_00000000000000", /* a digit long */
        "xyz_0000000000000",  /* no such kind */
        "mrk-0000000000000",
        "mrk_8000000000000", /* 64 bits */
        "mrk_z000000000000",
        "mrk_000000000000i", /* letters that the alphabet leaves out */
        "mrk_000000000000l",
        "mrk_000000000000o",
        "mrk_000000000000u",
        "mrk_ 000000000000",
        "mrk_000000000000 ",
        "mrk_!000000000000",
        "0000000000000mrk_",
        "mrk_00000000000\xC3\xA9",
        "media:photos/cat.jpg",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        enum rp_id_kind kind = RP_ID_HOLD;
        int64_t id = 42;
        assert_false(rp_id_parse(texts[i], &kind, &id));
        assert_int_equal(kind, RP_ID_HOLD);
        assert_int_equal(id, 42);
    }
}

static void ids_are_sorted_each_once_and_found_again(void **state)
{
    (void)state;
    int64_t ids[] = { 7, INT64_MAX, -3, 7, 0, INT64_MIN, 0, 7 };
    static const int64_t sorted[] = { INT64_MIN, -3, 0, 7, INT64_MAX };
    size_t n = rp_ids_sort(ids, sizeof ids / sizeof ids[0]);
    assert_int_equal(n, sizeof sorted / sizeof sorted[0]);
    assert_memory_equal(ids, sorted, sizeof sorted);
    for (size_t i = 0; i < n; i++)
        assert_true(rp_ids_contain(ids, n, sorted[i]));
    assert_false(rp_ids_contain(ids, n, 6));
    assert_int_equal(rp_ids_sort(NULL, 0), 0);
    assert_false(rp_ids_contain(NULL, 0, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_id_carries_time_and_lane),
        cmocka_unit_test(ids_grow_while_the_clock_stands_goes_back_and_jumps),
        cmocka_unit_test(more_than_8192_ids_in_a_millisecond_borrow_from_the_next),
        cmocka_unit_test(lanes_never_make_the_same_id),
        cmocka_unit_test(the_beginning_of_time_gives_ids_above_zero),
        cmocka_unit_test(a_clock_past_the_last_millisecond_gives_positive_growing_ids),
        cmocka_unit_test(the_floor_of_a_moment_divides_ids_by_time),
        cmocka_unit_test(text_has_the_kinds_prefix_and_reads_back),
        cmocka_unit_test(known_numbers_have_known_texts),
        cmocka_unit_test(text_sorts_like_the_number),
        cmocka_unit_test(either_case_is_read),
        cmocka_unit_test(what_is_no_id_is_refused_and_leaves_the_outputs),
        cmocka_unit_test(ids_are_sorted_each_once_and_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
