/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests, how fast, and how long to wait: numbers in, numbers out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/s3/wire/parts.h"

static void test_the_limit_grows_with_good_answers(void **state)
{
    struct s3_pace p;
    (void)state;
    rp_s3_pace_init(&p, 0, 1);
    assert_int_equal(p.limit, S3_LIMIT_FIRST);
    for (unsigned i = 0; i < S3_LIMIT_FIRST - 1; i++)
        rp_s3_pace_good(&p);
    assert_int_equal(p.limit, S3_LIMIT_FIRST);
    rp_s3_pace_good(&p);
    assert_int_equal(p.limit, S3_LIMIT_FIRST + 1);
    for (unsigned i = 0; i < S3_LIMIT_FIRST + 1; i++)
        rp_s3_pace_good(&p);
    assert_int_equal(p.limit, S3_LIMIT_FIRST + 2);
    for (int i = 0; i < 100000; i++)
        rp_s3_pace_good(&p);
    assert_int_equal(p.limit, S3_LIMIT_MAX);
}

static void test_it_is_halved_once_a_round_trip(void **state)
{
    struct s3_pace p;
    uint64_t first[8];
    (void)state;
    rp_s3_pace_init(&p, 0, 1);
    for (int i = 0; i < 8; i++)
        first[i] = rp_s3_pace_begin(&p, 0);
    for (int i = 0; i < 8; i++)
        rp_s3_pace_slow(&p, first[i]);
    assert_int_equal(p.limit, S3_LIMIT_FIRST / 2);
    uint64_t later = rp_s3_pace_begin(&p, 0);
    rp_s3_pace_slow(&p, later);
    assert_int_equal(p.limit, S3_LIMIT_FIRST / 4);
    for (int i = 0; i < 10; i++)
        rp_s3_pace_slow(&p, rp_s3_pace_begin(&p, 0));
    assert_int_equal(p.limit, 1);
    rp_s3_pace_good(&p);
    assert_int_equal(p.limit, 2);
}

/* In any second no more than the rate and what a tenth of a second may make up for. */
static void test_the_rate_is_kept(void **state)
{
    static const int64_t rates[] = { 1, 3, 50, 999, 5000 };
    (void)state;
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        struct s3_pace p;
        int64_t now_ms = 1000000, begun = 0;
        rp_s3_pace_init(&p, rates[r], 1);
        while (now_ms < 1000000 + 10000) {
            int64_t wait_ms = rp_s3_pace_wait_ms(&p, now_ms);
            if (wait_ms == 0) {
                (void)rp_s3_pace_begin(&p, now_ms);
                begun++;
            }
            now_ms += wait_ms; /* as told, it may go on then */
            assert_int_equal(wait_ms > 0 ? rp_s3_pace_wait_ms(&p, now_ms) : 0, 0);
        }
        assert_in_range(begun, 10 * rates[r] - 1, 10 * rates[r] + rates[r] / 10 + 2);
    }
}

static void test_no_rate_no_wait(void **state)
{
    struct s3_pace p;
    (void)state;
    rp_s3_pace_init(&p, 0, 1);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rp_s3_pace_wait_ms(&p, 5), 0);
        (void)rp_s3_pace_begin(&p, 5);
    }
}

/* After a long idle time there is no flood. */
static void test_what_was_not_used_is_lost(void **state)
{
    struct s3_pace p;
    int begun = 0;
    (void)state;
    rp_s3_pace_init(&p, 100, 1);
    (void)rp_s3_pace_begin(&p, 1000);
    for (; rp_s3_pace_wait_ms(&p, 3600000) == 0; begun++)
        (void)rp_s3_pace_begin(&p, 3600000);
    assert_in_range(begun, 10, 12);
}

static void test_pauses_double_and_scatter(void **state)
{
    struct s3_pace p;
    (void)state;
    rp_s3_pace_init(&p, 0, 42);
    for (unsigned n = 1; n < 40; n++) {
        int64_t bound_ms = n < 8 ? 100 << (n - 1) : 10000, largest = 0, smallest = INT64_MAX;
        for (int i = 0; i < 400; i++) {
            int64_t pause_ms = rp_s3_pace_pause_ms(&p, n, 0);
            assert_in_range(pause_ms, 0, bound_ms);
            if (pause_ms > largest) largest = pause_ms;
            if (pause_ms < smallest) smallest = pause_ms;
        }
        assert_true(largest > bound_ms * 9 / 10 && smallest < bound_ms / 10); /* full jitter: the whole width is used */
    }
    assert_in_range(rp_s3_pace_pause_ms(&p, 1, 5000), 5000, 5100);
}

static void test_a_seed_decides(void **state)
{
    struct s3_pace a, b, c;
    int differ = 0;
    (void)state;
    rp_s3_pace_init(&a, 0, 7);
    rp_s3_pace_init(&b, 0, 7);
    rp_s3_pace_init(&c, 0, 8);
    for (int i = 0; i < 100; i++) {
        int64_t pause_ms = rp_s3_pace_pause_ms(&a, 8, 0);
        assert_int_equal(rp_s3_pace_pause_ms(&b, 8, 0), pause_ms);
        differ += rp_s3_pace_pause_ms(&c, 8, 0) != pause_ms;
    }
    assert_true(differ > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_limit_grows_with_good_answers),
        cmocka_unit_test(test_it_is_halved_once_a_round_trip),
        cmocka_unit_test(test_the_rate_is_kept),
        cmocka_unit_test(test_no_rate_no_wait),
        cmocka_unit_test(test_what_was_not_used_is_lost),
        cmocka_unit_test(test_pauses_double_and_scatter),
        cmocka_unit_test(test_a_seed_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
