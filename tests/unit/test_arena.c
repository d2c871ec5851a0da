/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdalign.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"

static void allocations_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(1 << 20);
    for (int round = 0; round < 3; round++) {
        unsigned char *last = NULL;
        size_t last_size = 0;
        for (size_t size = 1; size < 300; size++) {
            unsigned char *p = rp_arena_alloc(&a, size);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            for (size_t i = 0; i < last_size; i++)
                assert_int_equal(last[i], 0xAA);
            memset(p, 0xAA, size);
            last = p;
            last_size = size;
        }
        rp_arena_reset(&a); /* what was dirtied must come back zeroed */
    }
}

static void an_allocation_of_nothing_is_not_a_failure(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(1000);
    void *one = rp_arena_alloc(&a, 0), *two = rp_arena_array(&a, 0, 8);
    assert_non_null(one);
    assert_non_null(two);
    assert_ptr_not_equal(one, two);
}

static void the_bound_can_be_reached_exactly(void **state)
{
    (void)state;
    static const size_t bounds[] = { 1, 100, 4096, 4097, 1 << 20, (1 << 20) + 1, 3 << 20 };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(bounds[i]);
        assert_null(rp_arena_alloc(&a, bounds[i] + 1));
        assert_non_null(rp_arena_alloc(&a, bounds[i]));
        assert_int_equal(a.used, bounds[i]);
        assert_int_equal(a.held, bounds[i]);
        assert_null(rp_arena_alloc(&a, 1));
        assert_int_equal(a.used, bounds[i]);
    }
}

static void an_arena_without_room_gives_nothing(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(0);
    assert_null(rp_arena_alloc(&a, 0));
    assert_null(rp_arena_strdup(&a, ""));
    assert_int_equal(a.held, 0);
}

static void small_allocations_never_hold_more_than_the_bound(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(100000);
    size_t count = 0;
    while (rp_arena_alloc(&a, 16) != NULL) {
        count++;
        assert_true(a.held <= a.max);
    }
    assert_int_equal(a.used, count * 16);
    assert_in_range(a.used, 99900, 100000);
}

static void sizes_that_overflow_give_nothing(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(SIZE_MAX);
    assert_null(rp_arena_array(&a, SIZE_MAX / 2 + 1, 2));
    assert_null(rp_arena_alloc(&a, SIZE_MAX));
    assert_null(rp_arena_copy(&a, "x", SIZE_MAX));
    assert_non_null(rp_arena_alloc(&a, 8));
    assert_null(rp_arena_alloc(&a, SIZE_MAX - 7)); /* the end of the block must not wrap around */
    assert_int_equal(a.used, 8);
}

static void texts_are_copied_and_terminated(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(1000);
    char source[] = "hello";
    char *copy = rp_arena_copy(&a, source, 4), *all = rp_arena_strdup(&a, source);
    source[0] = 'J';
    assert_string_equal(copy, "hell");
    assert_string_equal(all, "hello");
    assert_string_equal(rp_arena_copy(&a, NULL, 0), "");
    assert_string_equal(rp_arena_fmt(&a, "%s/%d", "run", 12), "run/12");
    assert_null(rp_arena_fmt(&a, "%1000d", 1));
    assert_string_equal(rp_arena_fmt(&a, "%s", ""), "");
}

static void array_gives_room_for_every_element(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(100000);
    int64_t *numbers = rp_arena_array(&a, 10000, sizeof *numbers);
    assert_non_null(numbers);
    for (int i = 0; i < 10000; i++)
        numbers[i] = i;
    assert_int_equal(a.used, 80000);
}

static void fill(struct rp_arena *a, const size_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *p = rp_arena_alloc(a, sizes[i]);
        assert_non_null(p);
        memset(p, 1, sizes[i]);
    }
}

static void rounds_after_a_reset_hold_no_more_than_the_first(void **state)
{
    (void)state;
    static const size_t sizes[] = { 10, 5000, 3000, 100000, 7, 2000000, 64 };
    static const size_t turned[] = { 2000000, 64, 100000, 3000, 7, 5000, 10 };
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(8 << 20);
    fill(&a, sizes, 7);
    size_t held = a.held;
    for (int round = 0; round < 10; round++) {
        rp_arena_reset(&a);
        assert_int_equal(a.used, 0);
        fill(&a, round % 2 == 0 ? sizes : turned, 7);
        assert_int_equal(a.held, held);
    }
}

static void small_kept_blocks_give_way_to_a_large_one(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena a = RP_ARENA(100000);
    while (rp_arena_alloc(&a, 100) != NULL)
        ;
    rp_arena_reset(&a);
    char *small = rp_arena_strdup(&a, "kept");
    char *large = rp_arena_alloc(&a, 90000);
    assert_non_null(large);
    assert_true(a.held <= a.max);
    assert_string_equal(small, "kept");
}

static void done_leaves_an_arena_that_can_be_used_again(void **state)
{
    (void)state;
    struct rp_arena a = RP_ARENA(5000);
    rp_arena_alloc(&a, 5000);
    rp_arena_done(&a);
    assert_int_equal(a.held, 0);
    assert_int_equal(a.used, 0);
    assert_null(a.first);
    assert_non_null(rp_arena_alloc(&a, 5000));
    rp_arena_done(&a);
    rp_arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_zeroed_and_apart),
        cmocka_unit_test(an_allocation_of_nothing_is_not_a_failure),
        cmocka_unit_test(the_bound_can_be_reached_exactly),
        cmocka_unit_test(an_arena_without_room_gives_nothing),
        cmocka_unit_test(small_allocations_never_hold_more_than_the_bound),
        cmocka_unit_test(sizes_that_overflow_give_nothing),
        cmocka_unit_test(texts_are_copied_and_terminated),
        cmocka_unit_test(array_gives_room_for_every_element),
        cmocka_unit_test(rounds_after_a_reset_hold_no_more_than_the_first),
        cmocka_unit_test(small_kept_blocks_give_way_to_a_large_one),
        cmocka_unit_test(done_leaves_an_arena_that_can_be_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
