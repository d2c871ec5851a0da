/* SPDX-License-Identifier: Apache-2.0 */
/* What is pure of confirmations: breaker, answers, and the URL of a late one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/time.h"
#include "core/confirm/breaker.h"
#include "core/confirm/confirm.h"

#define S RP_SECOND_MS

static void hear(struct rp_breaker *b, enum rp_meaning meaning, int times, int64_t now_ms)
{
    for (int i = 0; i < times; i++)
        rp_breaker_heard(b, meaning, now_ms);
}

static void five_failures_in_a_row_open_it_and_not_with_an_answer_between_them(void **state)
{
    struct rp_breaker b = { 0 };
    (void)state;
    hear(&b, RP_MEANS_AGAIN, 4, 0);
    assert_false(b.open);
    assert_int_equal(rp_breaker_room(&b, 0, 0), 1);
    for (enum rp_meaning answer = RP_MEANS_YES; answer < RP_MEANS_AGAIN; answer++) {
        hear(&b, answer, 1, 0);
        hear(&b, RP_MEANS_AGAIN, 4, 0);
        assert_false(b.open);
    }
    hear(&b, RP_MEANS_AGAIN, 1, 0);
    assert_true(b.open);
}

static void gone_and_never_alone_open_it_and_of_a_known_service_not(void **state)
{
    struct rp_breaker b = { 0 }, agreed = { 0 };
    (void)state;
    hear(&b, RP_MEANS_GONE, 2, 0);
    hear(&b, RP_MEANS_NEVER, 2, 0);
    assert_int_equal(rp_breaker_room(&b, 0, 0), 1);
    hear(&b, RP_MEANS_GONE, 1, 0);
    assert_true(b.open);
    hear(&b, RP_MEANS_GONE, 1, 11 * S);
    assert_true(b.open);
    hear(&b, RP_MEANS_LATER, 1, 60 * S);
    assert_false(b.open);
    hear(&agreed, RP_MEANS_REFUSED, 1, 0);
    hear(&agreed, RP_MEANS_GONE, 100, 0);
    hear(&agreed, RP_MEANS_NEVER, 100, 0);
    assert_false(agreed.open);
    assert_int_equal(rp_breaker_room(&agreed, 0, 0), RP_BREAKER_AT_ONCE);
}

static void it_is_probed_one_at_a_time_each_five_minutes_at_least_and_heals(void **state)
{
    struct rp_breaker b = { 0 };
    int64_t now = 0, waits[8];
    (void)state;
    hear(&b, RP_MEANS_AGAIN, 5, now);
    for (int i = 0; i < 8; i++) {
        waits[i] = b.probe_at_ms - now;
        assert_int_equal(rp_breaker_room(&b, 0, b.probe_at_ms - 1), 0);
        assert_int_equal(rp_breaker_room(&b, 1, b.probe_at_ms), 0);
        assert_int_equal(rp_breaker_room(&b, 0, b.probe_at_ms), 1);
        now = b.probe_at_ms;
        hear(&b, RP_MEANS_AGAIN, 1, now);
    }
    assert_int_equal(waits[0], 10 * S);
    assert_int_equal(waits[1], 20 * S);
    assert_int_equal(waits[7], 300 * S);
    hear(&b, RP_MEANS_AGAIN, 3, now + 1); /* of calls that began before it opened: no probes */
    assert_int_equal(b.probe_at_ms, now + 300 * S);
    hear(&b, RP_MEANS_REFUSED, 1, b.probe_at_ms);
    assert_false(b.open);
    hear(&b, RP_MEANS_AGAIN, 5, now);
    assert_int_equal(b.wait_ms, 10 * S);
}

/* ---- decisions ---- */

static const struct rp_mark mark = { .id = 1, .state = RP_CHECKING, .due_at_ms = 1000 * S };

static struct rp_confirm_decision decide(enum rp_meaning meaning, int64_t attempts, int64_t retry_after_ms,
                                         int64_t now_ms, bool last, uint64_t random)
{
    const struct rp_confirmation asked = { .id = 2,
                                           .mark_id = 1,
                                           .name = "calendar",
                                           .state = RP_CONFIRM_ASKED,
                                           .attempts = attempts,
                                           .asked_at_ms = 1,
                                           .until_at_ms = 3 * RP_DAY_MS };
    const struct rp_heard heard = { .meaning = meaning, .status = 500, .retry_after_ms = retry_after_ms, .words = "" };
    struct rp_confirm_decision d;
    rp_confirm_decide(&mark, &asked, last, &heard, now_ms, random, &d);
    return d;
}

static void attempts_are_further_and_further_apart_up_to_an_hour(void **state)
{
    (void)state;
    for (int64_t attempts = 1; attempts < 40; attempts++) {
        int64_t middle = attempts < 10 ? 10 * S << (attempts - 1) : RP_HOUR_MS;
        if (middle > RP_HOUR_MS) middle = RP_HOUR_MS;
        struct rp_confirm_decision least = decide(RP_MEANS_AGAIN, attempts, -1, S, true, 0);
        struct rp_confirm_decision most = decide(RP_MEANS_AGAIN, attempts, -1, S, true, (uint64_t)middle);
        assert_int_equal(least.move.next_at_ms, S + middle / 2);
        assert_int_equal(most.move.next_at_ms, S + middle / 2 + middle);
    }
}

static void the_last_attempt_is_at_the_deadline_and_none_after_it(void **state)
{
    (void)state;
    int64_t until = 3 * RP_DAY_MS;
    assert_int_equal(decide(RP_MEANS_AGAIN, 9, 30 * RP_DAY_MS, S, true, 0).move.next_at_ms, until);
    assert_int_equal(decide(RP_MEANS_LATER, 9, -1, until - S, true, 0).move.next_at_ms, until);
    assert_int_equal(decide(RP_MEANS_AGAIN, 9, -1, until - 1, true, 0).move.to, RP_CHECKING);
    assert_int_equal(decide(RP_MEANS_AGAIN, 9, -1, until, true, 0).move.to, RP_DEAD);
    assert_int_equal(decide(RP_MEANS_LATER, 9, -1, until, true, 0).move.to, RP_DEAD);
    assert_int_equal(decide(RP_MEANS_YES, 9, -1, until + 1, true, 0).move.to, RP_CHECKING);
}

static void retry_after_counts_where_it_is_longer_and_after_a_202_also_where_it_is_shorter(void **state)
{
    (void)state;
    assert_int_equal(decide(RP_MEANS_AGAIN, 1, 60 * S, S, true, 0).move.next_at_ms, 61 * S);
    assert_int_equal(decide(RP_MEANS_AGAIN, 1, 0, S, true, 0).move.next_at_ms, 6 * S);
    assert_int_equal(decide(RP_MEANS_LATER, 1, 60 * S, S, true, 0).move.next_at_ms, 61 * S);
    assert_int_equal(decide(RP_MEANS_LATER, 1, 0, S, true, 0).move.next_at_ms, 2 * S);
    assert_int_equal(decide(RP_MEANS_LATER, 1, -1, S, true, 0).move.next_at_ms, S + 15 * RP_MINUTE_MS);
}

static void the_last_yes_gives_the_mark_to_the_sweep_when_it_is_due(void **state)
{
    (void)state;
    struct rp_confirm_decision first = decide(RP_MEANS_YES, 1, -1, S, false, 0),
                               last = decide(RP_MEANS_GONE, 1, -1, S, true, 0);
    assert_int_equal(first.move.sets, RP_CHECK_AGREED);
    assert_int_equal(first.move.clears, 0);
    assert_int_equal(first.move.next_at_ms, S);
    assert_int_equal(last.move.clears, RP_CHECK_CONFIRMATIONS);
    assert_int_equal(last.move.next_at_ms, mark.due_at_ms);
    assert_int_equal(decide(RP_MEANS_YES, 1, -1, 2000 * S, true, 0).move.next_at_ms, 2000 * S);
}

/* ---- URLs of late answers ---- */

static void a_url_is_good_for_one_confirmation_until_its_end(void **state)
{
    char key[RP_DIGEST_HEX], other[RP_DIGEST_HEX], url[RP_ANSWER_URL];
    (void)state;
    memset(key, 'a', sizeof key - 1);
    memset(other, 'b', sizeof other - 1);
    key[sizeof key - 1] = other[sizeof other - 1] = 0;
    rp_answer_url("https://r.example", key, 77, 12345, url);
    assert_non_null(strstr(url, "https://r.example/v1/confirmations/cnf_"));
    assert_non_null(strstr(url, "?expires=12345&signature="));
    const char *signature = strstr(url, "signature=") + 10;
    assert_true(rp_answer_verify(key, 77, 12345, signature));
    assert_false(rp_answer_verify(key, 78, 12345, signature));
    assert_false(rp_answer_verify(key, 77, 12346, signature));
    assert_false(rp_answer_verify(other, 77, 12345, signature));
    assert_false(rp_answer_verify(key, 77, 12345, "00"));
    assert_false(rp_answer_verify(key, 77, 12345, NULL));
    rp_answer_url("", key, 77, 12345, url);
    assert_string_equal(url, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_failures_in_a_row_open_it_and_not_with_an_answer_between_them),
        cmocka_unit_test(gone_and_never_alone_open_it_and_of_a_known_service_not),
        cmocka_unit_test(it_is_probed_one_at_a_time_each_five_minutes_at_least_and_heals),
        cmocka_unit_test(attempts_are_further_and_further_apart_up_to_an_hour),
        cmocka_unit_test(the_last_attempt_is_at_the_deadline_and_none_after_it),
        cmocka_unit_test(retry_after_counts_where_it_is_longer_and_after_a_202_also_where_it_is_shorter),
        cmocka_unit_test(the_last_yes_gives_the_mark_to_the_sweep_when_it_is_due),
        cmocka_unit_test(a_url_is_good_for_one_confirmation_until_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
