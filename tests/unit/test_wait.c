/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/wait.h"

static int64_t in_ns(struct timespec at)
{
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static struct timespec now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at;
}

static void a_moment_is_as_far_away_as_was_said(void **state)
{
    static const int64_t far[] = { 0, 1, 999, 1000, 1001, 59999, INT64_C(86400000) * 365 };
    (void)state;
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        struct timespec before = now(), at = rp_wait_until(far[i]), after = now();
        assert_in_range(at.tv_nsec, 0, 999999999);
        assert_in_range(in_ns(at), in_ns(before) + far[i] * 1000000, in_ns(after) + far[i] * 1000000);
    }
}

static void a_wait_ends_then_and_not_before(void **state)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t nobody;
    (void)state;
    rp_wait_init(&nobody);
    struct timespec at = rp_wait_until(20);
    int r = 0;
    pthread_mutex_lock(&lock);
    while (r == 0)
        r = pthread_cond_timedwait(&nobody, &lock, &at);
    pthread_mutex_unlock(&lock);
    assert_int_equal(r, ETIMEDOUT);
    assert_true(in_ns(now()) >= in_ns(at));
    pthread_cond_destroy(&nobody);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_is_as_far_away_as_was_said),
        cmocka_unit_test(a_wait_ends_then_and_not_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
