/* SPDX-License-Identifier: Apache-2.0 */
/* Outside services must say yes before anything is erased (core/confirm). On both engines. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>

#include "base/text/utf8.h"
#include "catalog/retention.h"
#include "confirm_steps.h"
#include "core/confirm/inner.h"
#include "core/explain.h"
#include "core/hold.h"

#define DAY RP_DAY_MS

/* ---- what an answer means ---- */

static void test_T2_each_answer_means_what_it_is_said_to_mean(void **state)
{
    static const struct {
        long status;
        enum rp_state after;
        const char *confirmed;
    } cases[] = {
        { 200, RP_CHECKING, "Y" }, { 204, RP_CHECKING, "Y" }, { 202, RP_CHECKING, "W" }, { 410, RP_CHECKING, "Y" },
        { 409, RP_DEAD, "R" },     { 423, RP_DEAD, "R" },     { 404, RP_DEAD, "F" },     { 401, RP_DEAD, "F" },
        { 302, RP_DEAD, "F" },     { 500, RP_CHECKING, "A" }, { 503, RP_CHECKING, "A" }, { 429, RP_CHECKING, "A" },
        { 408, RP_CHECKING, "A" }, { 0, RP_CHECKING, "A" },
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct services s;
        char key[16];
        services_make(w, &s);
        snprintf(key, sizeof key, "k%zu", i);
        s.at[CALENDAR].status = cases[i].status;
        s.at[CALENDAR].body = "because";
        put_to_confirm(&s, key, "calendar", NULL);
        assert_int_equal(ask_all(&s).calls, 1);
        if (state_of(&s, key) != cases[i].after || strcmp(confirmed(&s, key), cases[i].confirmed) != 0)
            fail_msg("%ld: state %d, %s", cases[i].status, (int)state_of(&s, key), confirmed(&s, key));
        (void)world_sweep(w);
        bool yes = cases[i].confirmed[0] == 'Y';
        assert_int_equal(world_exists(w, key), !yes);
        assert_int_equal(audited(&s, "mark.asked", key), 1);
        assert_int_equal(audited(&s, "mark.confirmed", key), yes);
        services_drop(&s);
    }
}

static void test_T2_nothing_is_erased_before_the_yes_and_the_dead_letter_has_the_services_words(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    expect_purged(w, 0);
    assert_int_equal(state_of(&s, "k"), RP_MARKED);
    s.at[CALENDAR].status = 409;
    s.at[CALENDAR].body = "the meeting has begun";
    (void)ask_all(&s);
    expect_purged(w, 0);
    struct rp_mark mark = world_newest(w, "k");
    assert_int_equal(mark.state, RP_DEAD);
    assert_non_null(strstr(mark.note, "calendar refused (409): the meeting has begun"));
    assert_true(world_exists(w, "k"));
    services_drop(&s);
}

/* Wherever they are cut: PostgreSQL takes no half of a character. */
static void the_words_of_a_service_may_be_of_any_language_and_length(void **state)
{
    struct world *w = *state;
    struct services s;
    char words[600], key[16];
    services_make(w, &s);
    for (size_t pad = 0; pad < 4; pad++) {
        size_t n = 0;
        for (; n < pad; n++)
            words[n] = 'a';
        for (int i = 0; i < 180; i++)
            n += (size_t)snprintf(words + n, sizeof words - n, "%s", "\xE2\x82\xAC");
        s.at[CALENDAR].status = 409;
        s.at[CALENDAR].body = words;
        snprintf(key, sizeof key, "k%zu", pad);
        put_to_confirm(&s, key, "calendar", NULL);
        assert_int_equal(ask_all(&s).dead, 1);
        struct rp_mark mark = world_newest(w, key);
        assert_int_equal(mark.state, RP_DEAD);
        assert_true(rp_utf8_valid(mark.note, strlen(mark.note)));
        assert_non_null(strstr(mark.note, "\xE2\x82\xAC\xE2\x82\xAC"));
    }
    services_drop(&s);
}

static void test_T2_services_are_asked_in_order_one_at_a_time_with_a_key_of_their_own(void **state)
{
    struct world *w = *state;
    struct services s;
    char first[RP_ID_TEXT];
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", "billing");
    s.at[CALENDAR].status = 500;
    (void)ask_all(&s);
    snprintf(first, sizeof first, "%s", s.at[CALENDAR].id);
    assert_int_equal(s.at[BILLING].calls, 0);
    world_pass(w, RP_MINUTE_MS);
    s.at[CALENDAR].status = 200;
    (void)ask_all(&s);
    assert_string_equal(s.at[CALENDAR].id, first);
    assert_int_equal(s.at[CALENDAR].calls, 2);
    assert_int_equal(s.at[BILLING].calls, 1);
    assert_string_not_equal(s.at[BILLING].id, first);
    assert_non_null(strstr(s.at[BILLING].said, s.at[BILLING].id));
    assert_non_null(strstr(s.at[BILLING].said, "\"subject\":\"main:k\""));
    assert_non_null(strstr(s.at[BILLING].said, "\"answer_url\":\"https://reprieve.example/v1/confirmations/cnf_"));
    expect_purged(w, 1);
    services_drop(&s);
}

/* ---- what is committed when ---- */

/* What the thread of a call has seen: only the test's own thread may end the test. */
static int64_t seen, seen_too;

static void look_while_called(struct services *s, int which)
{
    (void)which;
    seen = world_number(s->w, "SELECT COUNT(*) FROM confirmation WHERE state = 2 AND attempts = 1");
    seen_too = world_number(s->w, "SELECT COUNT(*) FROM mark WHERE state = 2");
}

static void asked_is_committed_before_the_call(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.during = look_while_called;
    put_to_confirm(&s, "k", "calendar", NULL);
    seen = seen_too = 0;
    assert_int_equal(ask_all(&s).yes, 1);
    assert_int_equal(seen, 1);
    assert_int_equal(seen_too, 1);
    services_drop(&s);
}

static struct rp_catalog *other;

/* The lease of whoever calls is over, and another node asks as well. */
static void be_overtaken(struct services *s, int which)
{
    struct rp_asker_pass pass;
    struct rp_error e = { 0 };
    s->during = NULL;
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
    world_pass(s->w, RP_HOUR_MS);
    s->at[which].status = 200;
    struct rp_asker *asker = services_asker(s, other, &e);
    seen = rp_asker_pass(asker, &pass, &e) == 0 ? pass.yes : -1;
    rp_asker_free(asker);
}

static void whoever_has_lost_the_mark_changes_nothing_and_the_key_is_the_same(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    other = world_catalog(w, 3, NULL);
    put_to_confirm(&s, "k", "calendar", NULL);
    s.at[CALENDAR].status = 409; /* what the first one hears */
    s.during = be_overtaken;
    (void)ask_all(&s);
    assert_int_equal(seen, 1);
    assert_int_equal(s.at[CALENDAR].calls, 2);
    assert_string_equal(confirmed(&s, "k"), "Y");
    assert_int_equal(state_of(&s, "k"), RP_CHECKING);
    assert_int_equal(audited(&s, "mark.asked", "k"), 1);
    expect_purged(w, 1);
    rp_catalog_close(other);
    services_drop(&s);
}

/* ---- later ---- */

static void test_T2_a_late_yes_after_a_202(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.at[CALENDAR].status = 202;
    put_to_confirm(&s, "k", "calendar", NULL);
    (void)ask_all(&s);
    assert_string_equal(confirmed(&s, "k"), "W");
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE lease_by IS NOT NULL"), 0);
    assert_int_equal(ask_all(&s).calls, 0);
    int64_t id = confirmation_id(&s, "k", 0);
    assert_int_equal(say_later(&s, id, true), 0);
    assert_int_equal(say_later(&s, id, true), 0);
    assert_int_equal(say_later(&s, id, false), RP_EANSWERED);
    assert_int_equal(audited(&s, "mark.confirmed", "k"), 1);
    expect_purged(w, 1);
    assert_int_equal(say_later(&s, id, true), 0);
    assert_int_equal(say_later(&s, id + 1, true), RP_ENOTFOUND);
    services_drop(&s);
}

static void a_202_is_asked_again_until_the_deadline_and_a_late_yes_brings_the_dead_letter_back(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.at[CALENDAR].status = 202;
    put_to_confirm(&s, "k", "calendar", NULL);
    (void)ask_all(&s);
    world_pass(w, 16 * RP_MINUTE_MS);
    assert_int_equal(ask_all(&s).calls, 1);
    world_pass(w, 3 * DAY);
    assert_int_equal(ask_all(&s).dead, 1);
    assert_int_equal(state_of(&s, "k"), RP_DEAD);
    assert_string_equal(confirmed(&s, "k"), "F");
    assert_int_equal(say_later(&s, confirmation_id(&s, "k", 0), true), 0);
    assert_int_equal(state_of(&s, "k"), RP_CHECKING);
    assert_int_equal(letter_of(&s, "k"), 0);
    expect_purged(w, 1);
    services_drop(&s);
}

static void a_late_no_is_a_dead_letter_and_after_the_end_nobody_waits_for_one(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.at[CALENDAR].status = 202;
    put_to_confirm(&s, "k", "calendar", NULL);
    (void)ask_all(&s);
    int64_t id = confirmation_id(&s, "k", 0);
    assert_int_equal(say_later(&s, id, false), 0);
    assert_int_equal(state_of(&s, "k"), RP_DEAD);
    assert_int_equal(say_later(&s, id, false), 0);
    assert_non_null(strstr(world_newest(w, "k").note, "it is needed"));
    assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
    assert_int_equal(say_later(&s, id, true), RP_EGONE);
    services_drop(&s);
}

static int add_attempts(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    int r = 0;
    (void)ctx;
    for (int n = 0; n < 250 && r == 0; n++)
        r = rp_attempts_add(tx, &(struct rp_attempt){ .mark_id = 77, .body = "", .error = "" }, 1, e);
    return r;
}

static void test_T2_failures_are_retried_for_three_days_and_their_history_is_bounded(void **state)
{
    struct world *w = *state;
    struct services s;
    int passes = 0;
    services_make(w, &s);
    s.at[CALENDAR].status = 503;
    put_to_confirm(&s, "k", "calendar", NULL);
    put_to_confirm(&s, "asked later", "calendar", NULL);
    for (; passes < 100 && state_of(&s, "k") != RP_DEAD; passes++) {
        rp_asker_free(s.asker); /* another process: its breaker is closed */
        s.asker = services_asker(&s, w->catalog, &err);
        (void)ask_all(&s);
        assert_true(world_exists(w, "k"));
        world_pass(w, 2 * RP_HOUR_MS);
    }
    assert_in_range(passes, 36, 40);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM confirmation_attempt WHERE ordinal = 0"),
                     world_number(w, "SELECT SUM(attempts) FROM confirmation"));
    ok(rp_catalog_transact(w->catalog, add_attempts, &s, &err));
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM confirmation_attempt WHERE mark_id = 77"), RP_ATTEMPTS_KEPT);
    assert_int_equal(world_number(w, "SELECT MIN(n) FROM confirmation_attempt WHERE mark_id = 77"),
                     250 - RP_ATTEMPTS_KEPT + 1);
    assert_non_null(strstr(world_newest(w, "k").note, "until its time was over"));
    services_drop(&s);
}

static void retry_after_is_obeyed(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.at[CALENDAR].status = 429;
    s.at[CALENDAR].retry_after_ms = 5 * RP_HOUR_MS;
    put_to_confirm(&s, "k", "calendar", NULL);
    (void)ask_all(&s);
    struct rp_mark mark = world_newest(w, "k");
    int64_t wait = mark.next_at_ms - rp_clock_now_ms(NULL);
    assert_in_range(wait, 5 * RP_HOUR_MS - RP_MINUTE_MS, 5 * RP_HOUR_MS);
    services_drop(&s);
}

/* ---- when ---- */

static void test_T1_now_is_asked_at_once_and_erased_when_it_is_due(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    world_put(w, "k", "x");
    struct rp_mark_answer a = mark_confirmed(&s, "k", 2 * DAY, "mail", NULL);
    assert_true(a.asked_now);
    assert_int_equal(ask_all(&s).yes, 1);
    assert_int_equal(world_restore(w, "k").error.code, RP_ETOOLATE);
    expect_purged(w, 0);
    assert_true(world_exists(w, "k"));
    world_pass(w, 2 * DAY + RP_MINUTE_MS);
    expect_purged(w, 1);
    services_drop(&s);
}

/* C11 */
static void services_that_are_asked_now_come_before_those_that_wait_until_it_is_due(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    world_put(w, "k", "x");
    assert_true(mark_confirmed(&s, "k", 2 * DAY, "calendar", "mail").asked_now);
    assert_int_equal(ask_all(&s).yes, 1);
    assert_int_equal(s.at[MAIL].calls, 1);
    assert_int_equal(s.at[CALENDAR].calls, 0);
    assert_int_equal(ask_all(&s).calls, 0);
    world_pass(w, 2 * DAY + RP_MINUTE_MS);
    assert_int_equal(ask_all(&s).yes, 1);
    assert_int_equal(s.at[CALENDAR].calls, 1);
    expect_purged(w, 1);
    services_drop(&s);
}

/* C11, NO-EARLY: a minute before it is due, with a host that is two minutes ahead. */
static void whoever_waits_until_it_is_due_waits_for_the_earliest_clock(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    world_put(w, "k", "x");
    assert_true(mark_confirmed(&s, "k", 2 * DAY, "calendar", "mail").asked_now);
    world_pass(w, 2 * DAY - RP_MINUTE_MS);
    w->host_ahead_ms = 2 * RP_MINUTE_MS;
    assert_int_equal(ask_all(&s).yes, 1);
    world_script(w, "UPDATE mark SET next_at = next_at - %" PRId64, 3 * RP_MINUTE_MS);
    assert_int_equal(ask_all(&s).calls, 0);
    assert_int_equal(s.at[CALENDAR].calls, 0);
    w->host_ahead_ms = 0;
    world_pass(w, 2 * RP_MINUTE_MS);
    assert_int_equal(ask_all(&s).yes, 1);
    services_drop(&s);
}

/* C10 */
static void nobody_is_asked_about_what_was_replaced(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "replaced", "calendar", NULL);
    world_put(w, "replaced", "something newer");
    put_to_confirm(&s, "gone", "calendar", NULL);
    world_remove(w, "gone");
    put_to_confirm(&s, "there", "calendar", NULL);
    assert_int_equal(ask_all(&s).calls, 2);
    assert_int_equal(state_of(&s, "replaced"), RP_REPRIEVED);
    assert_int_equal(audited(&s, "mark.asked", "replaced"), 0);
    assert_int_equal(audited(&s, "mark.reprieved", "replaced"), 1);
    (void)world_sweep(w);
    assert_true(world_exists(w, "replaced"));
    assert_false(world_exists(w, "there"));
    services_drop(&s);
}

/* C10. Claimed by an asker that ended before it had asked. */
static void nobody_is_asked_about_what_was_replaced_after_a_claim_that_came_to_nothing(void **state)
{
    struct world *w = *state;
    struct services s;
    struct rp_purge_batch batch;
    const struct rp_purge_rules rules = { .batch = 10, .lease_ms = 2 * RP_MINUTE_MS };
    const struct rp_worker gone = { .name = "gone" };
    const struct rp_confirm_claim claim = { .services = "|calendar|" };
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    rp_purge_batch_init(&batch);
    ok(rp_purge_claim_to_confirm(w->catalog, &w->store, &rules, &gone, &claim, 10, &batch, &err));
    assert_int_equal(batch.marks.n, 1);
    rp_purge_batch_done(&batch);
    world_put(w, "k", "something newer");
    world_pass(w, 3 * RP_MINUTE_MS);
    assert_int_equal(ask_all(&s).calls, 0);
    assert_int_equal(state_of(&s, "k"), RP_REPRIEVED);
    services_drop(&s);
}

static void due_is_not_asked_before(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    world_put(w, "k", "x");
    assert_false(mark_confirmed(&s, "k", 2 * DAY, "calendar", NULL).asked_now);
    assert_int_equal(ask_all(&s).calls, 0);
    assert_int_equal(state_of(&s, "k"), RP_MARKED);
    services_drop(&s);
}

/* ---- what keeps it from being asked ---- */

static int hear_nothing(void *ctx, const struct rp_story_line *line, struct rp_error *e)
{
    (void)ctx, (void)line, (void)e;
    return 0;
}

static void what_is_held_is_not_asked_about(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    put_to_confirm(&s, "free", "calendar", NULL);
    struct rp_hold_command hold = {
        .scope = RP_SCOPE_SUBJECT, .store = &w->store, .key = "k", .reason = "audit", .command.actor = "tester"
    };
    ok(ask_hold(w->catalog, &hold, &w->arena, &err));
    assert_int_equal(ask_all(&s).calls, 1);
    assert_int_equal(state_of(&s, "k"), RP_MARKED);
    ok(ask_lift(w->catalog, hold.id, "tester", &err));
    s.at[CALENDAR].status = 500;
    assert_int_equal(ask_all(&s).calls, 1);
    ok(ask_hold(w->catalog, &hold, &w->arena, &err));
    assert_int_equal(hold.claimed_total, 0); /* nobody is at work on it */
    world_pass(w, RP_MINUTE_MS);
    assert_int_equal(ask_all(&s).calls, 0);
    struct rp_story_end end;
    ok(rp_explain(w->catalog, &w->store, "k", &w->arena, &(struct rp_story){ .fn = hear_nothing, .ctx = NULL }, &end,
                  &err));
    assert_non_null(strstr(end.words, "nobody is asked until the hold is lifted"));
    s.at[CALENDAR].status = 200;
    ok(ask_lift(w->catalog, hold.id, "tester", &err));
    assert_int_equal(ask_all(&s).calls, 1);
    w->config.mode = RP_MODE_OBSERVE;
    put_to_confirm(&s, "seen", "calendar", NULL);
    assert_int_equal(ask_all(&s).calls, 0);
    w->config.mode = RP_MODE_PURGE;
    services_drop(&s);
}

/* References that cannot be counted stand for those that are there. */
static void what_is_still_used_is_not_asked_about_and_after_a_yes_it_does_not_go_back(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    world_script(w, "UPDATE mark SET checks = 3");
    assert_int_equal(ask_all(&s).calls, 0);
    assert_int_equal(state_of(&s, "k"), RP_MARKED);
    assert_string_equal(confirmed(&s, "k"), "P");
    world_script(w, "UPDATE mark SET checks = 2, next_at = due_at");
    assert_int_equal(ask_all(&s).yes, 1);
    world_script(w, "UPDATE mark SET checks = 5");
    (void)world_sweep(w);
    assert_int_equal(state_of(&s, "k"), RP_CHECKING);
    assert_true(world_exists(w, "k"));
    assert_int_equal(world_restore(w, "k").error.code, RP_ETOOLATE);
    world_script(w, "UPDATE mark SET checks = 4, next_at = due_at");
    expect_purged(w, 1);
    services_drop(&s);
}

static void put_many_to_confirm(struct services *s, const char *k, int n, const char *service)
{
    for (int i = 0; i < n; i++) {
        char key[16];
        snprintf(key, sizeof key, "%s%02d", k, i);
        put_to_confirm(s, key, service, NULL);
    }
}

static sem_t fast_is_done;

static void hang_until_the_other_is_done(struct services *s, int which)
{
    (void)s;
    struct timespec until;
    if (which != CALENDAR) return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    if (sem_timedwait(&fast_is_done, &until) != 0) seen = -1;
    sem_post(&fast_is_done); /* for the next one that hangs */
}

static void note_that_it_is_done(struct services *s, const char *name)
{
    (void)s;
    if (strcmp(name, "billing") == 0) sem_post(&fast_is_done);
}

static void expect_none_held_up(struct services *s, void (*answered)(struct services *, const char *), int yes)
{
    sem_init(&fast_is_done, 0, 0);
    s->during = hang_until_the_other_is_done;
    s->answered = answered;
    seen = 0;
    assert_int_equal(ask_all(s).yes, yes);
    assert_int_equal(seen, 0);
    sem_destroy(&fast_is_done);
    services_drop(s);
}

static void test_T2_a_service_that_hangs_holds_up_no_other(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_many_to_confirm(&s, "slow", 3, "calendar");
    put_to_confirm(&s, "fast", "billing", NULL);
    expect_none_held_up(&s, note_that_it_is_done, 4);
}

static void test_T2_a_breaker_uses_up_no_attempts(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.at[CALENDAR].status = 503;
    put_many_to_confirm(&s, "k", 20, "calendar");
    put_to_confirm(&s, "other", "billing", NULL);
    assert_int_equal(ask_all(&s).calls, 5 + 1);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE state = 1"), 15);
    assert_int_equal(world_restore(w, "k19").what, RP_REPRIEVE_DONE);
    services_drop(&s);
}

static void have_enough(struct services *s, const char *name)
{
    (void)name;
    s->enough = 1;
}

/* New settings wait for the end of a pass, and work that never ends must not keep them away. */
static void who_has_enough_asks_nothing_new_and_hears_what_is_under_way(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_many_to_confirm(&s, "k", 40, "calendar");
    s.answered = have_enough;
    struct rp_asker_pass pass = ask_all(&s);
    assert_in_range(pass.calls, 1, 2 * RP_BREAKER_AT_ONCE);
    assert_int_equal(pass.yes, pass.calls);
    s.enough = 0;
    s.answered = NULL;
    assert_int_equal(ask_all(&s).yes, 40 - pass.yes);
    services_drop(&s);
}

static int left; /* of those that the fast one is asked about */

static void count_down(struct services *s, const char *name)
{
    if (strcmp(name, "billing") != 0) return;
    s->enough = 1;
    if (--left == 0) sem_post(&fast_is_done);
}

static void a_call_that_hangs_holds_up_no_other_while_settings_wait(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    left = 12; /* more than are called at once at first */
    put_to_confirm(&s, "slow", "calendar", NULL);
    put_many_to_confirm(&s, "fast", left, "billing");
    expect_none_held_up(&s, count_down, 1 + left);
}

static void a_pass_makes_no_more_calls_than_it_may(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_many_to_confirm(&s, "a", 6, "calendar");
    put_many_to_confirm(&s, "b", 3, "billing");
    s.most = 5;
    rp_asker_free(s.asker);
    s.asker = services_asker(&s, w->catalog, &err);
    assert_int_equal(ask_all(&s).calls, 5);
    assert_int_equal(ask_all(&s).calls, 4);
    services_drop(&s);
}

/* The breaker's next probe may go out. */
static struct rp_asker_pass probe(struct services *s)
{
    s->asker->services[CALENDAR].breaker.probe_at_ms = 0;
    return ask_all(s);
}

/* An outage makes few marks too late to be restored: what was asked about before serves as a probe. */
static void test_T2_a_probe_is_about_what_was_asked_before(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    s.at[CALENDAR].status = 503;
    put_many_to_confirm(&s, "k", 20, "calendar");
    assert_int_equal(ask_all(&s).calls, 5);
    for (int i = 0; i < 10; i++) {
        world_pass(w, 2 * RP_HOUR_MS); /* longer than an attempt waits */
        assert_int_equal(probe(&s).calls, 1);
    }
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE state = 1"), 15);
    world_script(w, "UPDATE mark SET next_at = 9000000000000 WHERE state = 2"); /* none of them is due */
    assert_int_equal(probe(&s).calls, 1);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE state = 1"), 14);
    s.at[CALENDAR].status = 200;
    assert_int_equal(probe(&s).yes, 14);
    services_drop(&s);
}

/* ---- dead letters ---- */

static void a_retried_dead_letter_is_asked_anew_with_a_deadline_of_its_own(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    s.at[CALENDAR].status = 404;
    (void)ask_all(&s);
    int64_t before = confirmation_id(&s, "k", 0);
    world_pass(w, 10 * DAY);
    ok(ask_retry(w->catalog, letter_of(&s, "k"), "tester", &err));
    assert_string_equal(confirmed(&s, "k"), "P");
    assert_int_equal(world_restore(w, "k").error.code, RP_ETOOLATE);
    s.at[CALENDAR].status = 500;
    (void)ask_all(&s);
    assert_int_equal(state_of(&s, "k"), RP_CHECKING);
    assert_int_equal(confirmation_id(&s, "k", 0), before);
    services_drop(&s);
}

static struct rp_dead_command retry_all(struct services *s, const char *endpoint, int64_t since_ms)
{
    struct rp_dead_command c = { .command = { .verb = &rp_verb_dead_retry, .actor = "tester" },
                                 .all = true,
                                 .since_ms = since_ms,
                                 .endpoint = endpoint,
                                 .items = rp_arena_array(&s->w->arena, 10, sizeof *c.items),
                                 .max = 10,
                                 .arena = &s->w->arena };
    ok(rp_command_run(s->w->catalog, &c.command));
    return c;
}

static void test_T3_dead_letters_of_one_service_are_retried_together(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "a", "calendar", NULL);
    put_to_confirm(&s, "b", "billing", NULL);
    put_to_confirm(&s, "c", "billing", "calendar");
    s.at[CALENDAR].status = 404;
    s.at[BILLING].status = 409;
    (void)ask_all(&s);
    assert_int_equal(world_count(w, RP_DEAD), 3);
    assert_int_equal(retry_all(&s, "calendar", 0).n, 1);
    assert_int_equal(retry_all(&s, NULL, rp_clock_now_ms(NULL) + DAY).n, 0);
    assert_int_equal(retry_all(&s, "billing", rp_clock_now_ms(NULL) - DAY).n, 2);
    assert_int_equal(world_count(w, RP_CHECKING), 3);
    services_drop(&s);
}

static void test_T3_a_dead_letter_shows_each_attempt(void **state)
{
    struct world *w = *state;
    struct services s;
    json_t *list = NULL;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    s.at[CALENDAR].status = 500;
    s.at[CALENDAR].body = "no \x01 good \xff";
    (void)ask_all(&s);
    world_pass(w, RP_HOUR_MS);
    s.at[CALENDAR].status = 404;
    s.at[CALENDAR].body = "caf\xc3\xa9 unknown";
    (void)ask_all(&s);
    struct rp_mark mark = world_newest(w, "k");
    ok(rp_confirmations_json(w->catalog->db, mark.id, &w->arena, &list, &err));
    json_t *tries = json_object_get(json_array_get(list, 0), "tries");
    assert_int_equal(json_array_size(tries), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(tries, 0), "status")), 500);
    assert_string_equal(json_string_value(json_object_get(json_array_get(tries, 0), "body")), "no . good .");
    assert_string_equal(json_string_value(json_object_get(json_array_get(tries, 1), "body")), "caf\xc3\xa9 unknown");
    json_decref(list);
    services_drop(&s);
}

static const char *try_at(json_t *list, size_t which)
{
    json_t *tries = json_object_get(json_array_get(list, 0), "tries");
    return json_string_value(json_object_get(json_array_get(tries, which), "body"));
}

static void calls_after_a_retry_are_added_to_those_before_it(void **state)
{
    static const char *const words[] = { "first", "second", "no such thing", "again" };
    static const long answers[] = { 500, 500, 404, 500 };
    struct world *w = *state;
    struct services s;
    json_t *list = NULL;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    for (size_t i = 0; i < 4; i++) {
        if (i == 3) ok(ask_retry(w->catalog, letter_of(&s, "k"), "tester", &err));
        s.at[CALENDAR].status = answers[i];
        s.at[CALENDAR].body = words[i];
        assert_int_equal(ask_all(&s).calls, 1);
        world_pass(w, RP_HOUR_MS);
    }
    ok(rp_confirmations_json(w->catalog->db, world_newest(w, "k").id, &w->arena, &list, &err));
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(try_at(list, i), words[i]);
    json_decref(list);
    services_drop(&s);
}

static int remove_mark(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct rp_ids ids = { .at = ctx, .n = 1 };
    int64_t gone = 0;
    return rp_marks_remove(tx, &ids, &gone, e);
}

static void what_was_asked_and_said_goes_with_its_mark(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    put_to_confirm(&s, "stays", "calendar", NULL);
    (void)ask_all(&s);
    expect_purged(w, 2);
    struct rp_mark mark = world_newest(w, "k");
    ok(rp_catalog_transact(w->catalog, remove_mark, &mark.id, &err));
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM confirmation"), 1);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM confirmation_attempt"), 1);
    services_drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_T2_each_answer_means_what_it_is_said_to_mean),
        BOTH(test_T2_nothing_is_erased_before_the_yes_and_the_dead_letter_has_the_services_words),
        BOTH(the_words_of_a_service_may_be_of_any_language_and_length),
        BOTH(test_T2_services_are_asked_in_order_one_at_a_time_with_a_key_of_their_own),
        BOTH(asked_is_committed_before_the_call),
        BOTH(whoever_has_lost_the_mark_changes_nothing_and_the_key_is_the_same),
        BOTH(test_T2_a_late_yes_after_a_202),
        BOTH(a_202_is_asked_again_until_the_deadline_and_a_late_yes_brings_the_dead_letter_back),
        BOTH(a_late_no_is_a_dead_letter_and_after_the_end_nobody_waits_for_one),
        BOTH(test_T2_failures_are_retried_for_three_days_and_their_history_is_bounded),
        BOTH(retry_after_is_obeyed),
        BOTH(test_T1_now_is_asked_at_once_and_erased_when_it_is_due),
        BOTH(services_that_are_asked_now_come_before_those_that_wait_until_it_is_due),
        BOTH(whoever_waits_until_it_is_due_waits_for_the_earliest_clock),
        BOTH(nobody_is_asked_about_what_was_replaced),
        BOTH(nobody_is_asked_about_what_was_replaced_after_a_claim_that_came_to_nothing),
        BOTH(due_is_not_asked_before),
        BOTH(what_is_held_is_not_asked_about),
        BOTH(what_is_still_used_is_not_asked_about_and_after_a_yes_it_does_not_go_back),
        BOTH(test_T2_a_service_that_hangs_holds_up_no_other),
        BOTH(test_T2_a_breaker_uses_up_no_attempts),
        BOTH(who_has_enough_asks_nothing_new_and_hears_what_is_under_way),
        BOTH(a_call_that_hangs_holds_up_no_other_while_settings_wait),
        BOTH(a_pass_makes_no_more_calls_than_it_may),
        BOTH(test_T2_a_probe_is_about_what_was_asked_before),
        BOTH(a_retried_dead_letter_is_asked_anew_with_a_deadline_of_its_own),
        BOTH(test_T3_dead_letters_of_one_service_are_retried_together),
        BOTH(test_T3_a_dead_letter_shows_each_attempt),
        BOTH(calls_after_a_retry_are_added_to_those_before_it),
        BOTH(what_was_asked_and_said_goes_with_its_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
