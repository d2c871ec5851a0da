/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part of a purge: what the store's word and a check's answer mean for a mark, and how
 * long it waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/time.h"
#include "core/purge/purge.h"
#include "core/subject/subject.h"

#define NOW      INT64_C(1790000000000)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- the store's word ---- */

static const struct rp_purge_rules rules = { .max_attempts = 3, .retry_first_ms = 10000, .retry_most_ms = 3600000 };

struct judged {
    enum rp_outcome outcome;
    bool copied, store_failed;
    int64_t attempts; /* before */
    enum rp_state to;
    enum rp_end end;
    int64_t attempts_after;
};

static void expect_judged(const struct judged *c, size_t number)
{
    struct rp_mark mark = { .key = "k", .state = RP_PURGING, .attempts = c->attempts };
    enum rp_purge_status before = c->copied ? RP_ITEM_COPIED : RP_ITEM_CLAIMED;
    struct rp_purge_item item = { .mark = &mark, .status = rp_purge_status_after(before, c->outcome) };
    struct rp_move move = rp_purge_judge(&item, c->store_failed, &rules, NOW, 12345);
    if (move.to != c->to || move.outcome != c->end || move.attempts != c->attempts_after) fail_msg("case %zu", number);
    assert_ptr_equal(move.mark, &mark);
    assert_false(move.refence);
    if (move.to == RP_PURGING)
        assert_true(move.next_at_ms > NOW && move.next_at_ms <= NOW + 2 * rules.retry_most_ms);
    else
        assert_int_equal(move.next_at_ms, 0);
    if (move.outcome == RP_END_NONE) assert_non_null(move.note);
}

static void test_what_the_stores_word_means_for_a_mark(void **state)
{
    (void)state;
    const struct judged cases[] = {
        /* clang-format off */
        { RP_OUT_DELETED, false, false, 0, RP_PURGED,  RP_END_ERASED,      0 },
        { RP_OUT_DELETED, false, false, 2, RP_PURGED,  RP_END_ERASED,      2 },
        { RP_OUT_DELETED, false, true,  0, RP_PURGED,  RP_END_ERASED,      0 }, /* one it vouches for, before it failed */
        { RP_OUT_DELETED, true,  false, 0, RP_PURGED,  RP_END_QUARANTINED, 0 },
        { RP_OUT_DELETED, true,  true,  0, RP_PURGED,  RP_END_QUARANTINED, 0 },
        { RP_OUT_GONE,    false, false, 0, RP_PURGED,  RP_END_GONE,        0 },
        { RP_OUT_GONE,    true,  false, 0, RP_PURGED,  RP_END_QUARANTINED, 0 }, /* an earlier attempt got that far */
        { RP_OUT_GONE,    false, true,  0, RP_PURGING, RP_END_NONE,        0 }, /* "gone" from a failing store proves nothing */
        { RP_OUT_GONE,    true,  true,  2, RP_PURGING, RP_END_NONE,        2 },
        { RP_OUT_CHANGED, false, false, 0, RP_REPRIEVED, RP_END_SUPERSEDED, 0 },
        { RP_OUT_CHANGED, true,  false, 0, RP_PURGED,  RP_END_QUARANTINED, 0 },
        { RP_OUT_CHANGED, false, true,  0, RP_PURGING, RP_END_NONE,        0 },
        { RP_OUT_RETRY,   false, false, 0, RP_PURGING, RP_END_NONE,        1 },
        { RP_OUT_RETRY,   true,  false, 1, RP_PURGING, RP_END_NONE,        2 },
        { RP_OUT_RETRY,   false, false, 2, RP_DEAD,    RP_END_NONE,        3 },
        { RP_OUT_RETRY,   false, true,  2, RP_PURGING, RP_END_NONE,        2 },
        { RP_OUT_DENIED,  false, false, 0, RP_PURGING, RP_END_NONE,        1 },
        { RP_OUT_DENIED,  false, false, 2, RP_DEAD,    RP_END_NONE,        3 },
        { RP_OUT_DENIED,  true,  false, 7, RP_DEAD,    RP_END_NONE,        8 }, /* the limit was lowered meanwhile */
        { RP_OUT_UNKNOWN, false, false, 0, RP_PURGING, RP_END_NONE,        1 },
        { RP_OUT_UNKNOWN, true,  false, 0, RP_PURGING, RP_END_NONE,        1 },
        { RP_OUT_UNKNOWN, false, false, 2, RP_DEAD,    RP_END_NONE,        3 },
        { RP_OUT_UNKNOWN, false, true,  2, RP_PURGING, RP_END_NONE,        2 },
        { RP_OUT_NONE,    false, true,  0, RP_PURGING, RP_END_NONE,        0 },
        { RP_OUT_NONE,    false, false, 0, RP_PURGING, RP_END_NONE,        1 }, /* never asked is never "deleted" */
        { RP_OUT_FOUND,   false, false, 0, RP_PURGING, RP_END_NONE,        1 },
        /* clang-format on */
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_judged(&cases[i], i);
}

static void test_waiting_doubles_up_to_the_most_and_is_spread_by_half(void **state)
{
    (void)state;
    const uint64_t randoms[] = { 0, 1, 4999, 5000, 9999, 10000, 12345678901, UINT64_MAX - 1, UINT64_MAX };
    for (int64_t failures = 1; failures <= 70; failures++) {
        int64_t wait = rules.retry_most_ms, least = INT64_MAX, most = 0;
        if (failures <= 9) wait = rules.retry_first_ms << (failures - 1); /* 10 s << 9 is over the hour */
        for (size_t i = 0; i < COUNT(randoms); i++) {
            int64_t ms = rp_purge_backoff_ms(&rules, failures, randoms[i]);
            assert_in_range(ms, wait / 2, wait / 2 + wait);
            if (ms < least) least = ms;
            if (ms > most) most = ms;
        }
        assert_true(most > least); /* two workers do not come back in step */
    }
    assert_int_equal(rp_purge_backoff_ms(&rules, 1, 0), 5000);
    assert_int_equal(rp_purge_backoff_ms(&rules, 1, 10000), 15000);
    struct rp_purge_rules short_most = { .retry_first_ms = 10000, .retry_most_ms = 4000 };
    assert_in_range(rp_purge_backoff_ms(&short_most, 1, 77), 2000, 6000);
}

/* Nothing but what the store vouches for ends a mark, and no status is both open and an end. */
static void test_a_status_is_open_or_an_end_or_neither(void **state)
{
    (void)state;
    for (int s = 0; s < RP_ITEMS; s++)
        assert_false(rp_purge_is_open((enum rp_purge_status)s) && rp_purge_is_end((enum rp_purge_status)s));
    assert_true(rp_purge_is_open(RP_ITEM_CLAIMED) && rp_purge_is_open(RP_ITEM_COPIED));
    const enum rp_purge_status neither[] = { RP_ITEM_KEPT, RP_ITEM_FAILED, RP_ITEM_UNKNOWN, RP_ITEM_DAMAGED };
    for (size_t i = 0; i < COUNT(neither); i++)
        assert_false(rp_purge_is_open(neither[i]) || rp_purge_is_end(neither[i]));
}

/* ---- checks ---- */

static void test_only_a_yes_lets_a_mark_pass(void **state)
{
    (void)state;
    struct rp_mark mark = { .key = "k", .state = RP_CHECKING, .attempts = 2, .next_at_ms = NOW + 5 };
    struct rp_check_answer answer = { .says = RP_SAYS_YES, .note = "why" };
    struct rp_move move = rp_purge_decide_check(&mark, &answer, &rules, NOW, 0);
    assert_int_equal(move.to, RP_PURGING);
    assert_int_equal(move.next_at_ms, NOW + 5); /* the lease that it was claimed with */
    assert_null(move.note);
    answer.says = RP_SAYS_NO;
    move = rp_purge_decide_check(&mark, &answer, &rules, NOW, 0);
    assert_int_equal(move.to, RP_MARKED);
    assert_int_equal(move.next_at_ms, NOW + RP_HOUR_MS);
    assert_string_equal(move.note, "why");
    answer.says = RP_SAYS_UNKNOWN;
    move = rp_purge_decide_check(&mark, &answer, &rules, NOW, 0);
    assert_int_equal(move.to, RP_MARKED);
    assert_int_equal(move.next_at_ms, NOW + 5000); /* sooner: it may just have been unreachable */
    assert_int_equal(move.attempts, 2);
}

/* A check that cannot be asked, one that this version does not have, and none at all where there
 * must be one. */
static void test_a_check_that_nobody_can_answer_is_no_yes(void **state)
{
    (void)state;
    struct rp_store_config config = { .name = "main" };
    struct rp_store store = { .config = &config }; /* no referenced_by */
    struct rp_mark marks[] = { { .key = "a", .checks = RP_CHECK_REFERENCES },
                               { .key = "b", .checks = 1 << 30 },
                               { .key = "c" } };
    const struct rp_mark *asked[] = { &marks[0], &marks[1], &marks[2] };
    struct rp_check_answer answers[COUNT(marks)];
    struct rp_arena arena = RP_ARENA(1 << 16), none = RP_ARENA(1);
    struct rp_error err = { 0 };
    assert_int_equal(rp_check_ask(&store, asked, COUNT(marks), &arena, answers, &err), RP_ECONFIG);
    for (size_t i = 0; i < COUNT(marks); i++)
        assert_int_equal(answers[i].says, RP_SAYS_UNKNOWN);
    assert_non_null(strstr(answers[0].note, "no referenced_by"));
    assert_non_null(strstr(answers[1].note, "does not know"));
    assert_int_equal(rp_check_ask(&store, asked, 1, &none, answers, &err), RP_ENOMEM);
    assert_int_equal(answers[0].says, RP_SAYS_UNKNOWN);
    rp_arena_done(&arena);
}

static void test_every_check_has_a_name_and_a_bit_of_its_own(void **state)
{
    (void)state;
    int64_t seen = 0;
    for (size_t i = 0; i < RP_CHECKS; i++) {
        assert_true(rp_checks[i].bit > 0 && (rp_checks[i].bit & (rp_checks[i].bit - 1)) == 0);
        assert_int_equal(seen & rp_checks[i].bit, 0);
        seen |= rp_checks[i].bit;
        assert_non_null(rp_checks[i].ask);
        assert_string_equal(rp_check_name(rp_checks[i].bit), rp_checks[i].name);
    }
}

/* ---- subjects ---- */

static void test_every_kind_of_subject_fills_the_stores_half(void **state)
{
    (void)state;
    const struct rp_subject_kind *const kinds[] = { &rp_subject_object, &rp_subject_file };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        assert_non_null(kinds[i]->name);
        assert_true(kinds[i]->clock && kinds[i]->look && kinds[i]->quarantine && kinds[i]->bring_back &&
                    kinds[i]->erase && kinds[i]->confirm);
    }
    assert_ptr_equal(rp_subject_of(&(struct rp_mark){ .file_id = 7 }), &rp_subject_file);
    assert_ptr_equal(rp_subject_of(&(struct rp_mark){ .id = 7 }), &rp_subject_object);
}

static void test_the_key_of_a_copy_names_its_mark(void **state)
{
    (void)state;
    char key[RP_QUARANTINE_KEY];
    int64_t id = 0;
    assert_true(rp_quarantine_original(rp_quarantine_key(INT64_C(123456789), key), &id));
    assert_int_equal(id, 123456789);
    assert_true(rp_quarantine_is(key));
    const char *const others[] = { "k", RP_STORE_OWNER, RP_STORE_QUARANTINE, RP_STORE_QUARANTINE "x" };
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(rp_quarantine_original(others[i], &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_stores_word_means_for_a_mark),
        cmocka_unit_test(test_waiting_doubles_up_to_the_most_and_is_spread_by_half),
        cmocka_unit_test(test_a_status_is_open_or_an_end_or_neither),
        cmocka_unit_test(test_only_a_yes_lets_a_mark_pass),
        cmocka_unit_test(test_a_check_that_nobody_can_answer_is_no_yes),
        cmocka_unit_test(test_every_check_has_a_name_and_a_bit_of_its_own),
        cmocka_unit_test(test_every_kind_of_subject_fills_the_stores_half),
        cmocka_unit_test(test_the_key_of_a_copy_names_its_mark),
    };
    return cmocka_run_group_tests_name("purge", tests, NULL, NULL);
}
