/* SPDX-License-Identifier: Apache-2.0 */
/* Which services are asked about a mark: those that it was born with. On both engines. Needs
 * PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "confirm_steps.h"
#include "core/confirm/inner.h"

#define DAY RP_DAY_MS

static void an_unknown_service_is_refused_with_those_that_there_are(void **state)
{
    static const char *const names[] = { "calender" };
    struct world *w = *state;
    struct services s;
    struct rp_confirmer_list by;
    struct rp_error why = { 0 };
    services_make(w, &s);
    assert_int_equal(rp_confirmers_find(&s.config, names, 1, &by, &why), RP_EINVAL);
    assert_non_null(strstr(why.text, "calender"));
    assert_non_null(strstr(why.hint, "calendar, billing, mail"));
    services_drop(&s);
}

static void marked_again_it_keeps_its_confirmations_and_gets_no_others(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "k", "calendar", NULL);
    assert_int_equal(mark_confirmed(&s, "k", -1, "calendar", NULL).what, RP_MARK_SAME);
    struct rp_mark_answer a = mark_confirmed(&s, "k", -1, "calendar", "billing");
    assert_int_equal(a.error.code, RP_EMARKED);
    assert_non_null(strstr(a.error.text, "billing"));
    struct rp_mark_answer extended = world_mark(w, "k", DAY);
    assert_int_equal(extended.what, RP_MARK_EXTENDED);
    assert_false(extended.asked_now);
    assert_string_equal(confirmed(&s, "k"), "P");
    services_drop(&s);
}

/* Two requests for one key in one commit are answered as one after the other: the second one may
 * name fewer services, not others, and extends it. */
static void marked_again_in_one_round_it_is_answered_as_in_two(void **state)
{
    static const struct {
        const char *second[2];
        enum rp_marking what;
    } cases[] = { { { "billing", NULL }, RP_MARK_EXTENDED },
                  { { "billing", "calendar" }, RP_MARK_EXTENDED },
                  { { NULL, NULL }, RP_MARK_EXTENDED },
                  { { "mail", NULL }, RP_MARK_REFUSED } };
    static const char *const first[] = { "calendar", "billing" };
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[16];
        struct rp_confirmer_list by[2] = { 0 };
        struct rp_mark_item items[2];
        struct rp_mark_command c[2];
        struct rp_command *round[] = { &c[0].command, &c[1].command };
        snprintf(key, sizeof key, "k%zu", i);
        world_put(w, key, "x");
        ok(rp_confirmers_find(&s.config, first, 2, &by[0], &err));
        size_t n = cases[i].second[0] == NULL ? 0 : cases[i].second[1] == NULL ? 1 : 2;
        ok(rp_confirmers_find(&s.config, cases[i].second, n, &by[1], &err));
        for (int k = 0; k < 2; k++) {
            items[k] = (struct rp_mark_item){
                .store = &w->store,
                .request = { .key = key, .grace_ms = (k + 1) * DAY, .at_ms = -1, .reason = "", .confirmations = &by[k] }
            };
            rp_mark_command_init(&c[k], &items[k], 1, "tester");
        }
        rp_commands_prepare(w->catalog, round, 2);
        ok(rp_round_run(w->catalog, round, 2, true));
        assert_int_equal(items[0].answer.what, RP_MARK_CREATED);
        assert_int_equal(items[1].answer.what, cases[i].what);
        assert_false(items[1].answer.asked_now);
        assert_int_equal(items[1].answer.due_at_ms > items[0].answer.due_at_ms, cases[i].what == RP_MARK_EXTENDED);
        struct rp_mark mark = world_newest(w, key);
        assert_false(rp_mark_is_asked_now(&mark));
        assert_string_equal(confirmed(&s, key), "PP");
    }
    services_drop(&s);
}

/* A key that stands twice in one request is answered as in two, unless both ask for the same. */
static void one_request_promises_nothing_that_its_mark_does_not_keep(void **state)
{
    static const char *const first[] = { "calendar" }, *const second[] = { "billing" };
    struct world *w = *state;
    struct services s;
    struct rp_confirmer_list by[2];
    struct rp_mark_answer a[2];
    services_make(w, &s);
    ok(rp_confirmers_find(&s.config, first, 1, &by[0], &err));
    ok(rp_confirmers_find(&s.config, second, 1, &by[1], &err));
    const struct rp_mark_request plain = { .key = "k", .grace_ms = DAY, .at_ms = -1, .reason = "" };
    struct rp_mark_request q[2] = { plain, plain };
    world_put(w, "k", "x");
    ok(rp_mark_many(w->catalog, &w->store, q, 2, "tester", false, a, &err));
    assert_int_equal(a[0].what == RP_MARK_CREATED && a[1].what == RP_MARK_CREATED, true);
    world_put(w, "l", "x");
    q[0].key = q[1].key = "l";
    q[1].confirmations = &by[0];
    for (int dry = 1; dry >= 0; dry--) {
        ok(rp_mark_many(w->catalog, &w->store, q, 2, "tester", dry == 1, a, &err));
        assert_int_equal(a[0].what, RP_MARK_CREATED);
        assert_int_equal(a[1].error.code, RP_EMARKED);
    }
    world_put(w, "m", "x");
    q[0].key = q[1].key = "m";
    q[0].confirmations = &by[0];
    q[1].confirmations = &by[1];
    ok(rp_mark_many(w->catalog, &w->store, q, 2, "tester", false, a, &err));
    assert_int_equal(a[1].error.code, RP_EMARKED);
    world_put(w, "n", "x");
    q[0] = q[1] = plain;
    q[0].key = q[1].key = "n";
    q[1].grace_ms = 5 * DAY;
    ok(rp_mark_many(w->catalog, &w->store, q, 2, "tester", false, a, &err));
    assert_int_equal(a[1].what, RP_MARK_EXTENDED);
    assert_int_equal(world_newest(w, "n").due_at_ms, a[1].due_at_ms);
    assert_int_equal(a[1].due_at_ms - a[0].due_at_ms, 4 * DAY);
    services_drop(&s);
}

static void a_service_that_is_not_configured_any_more_makes_a_dead_letter(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "k", "billing", NULL);
    put_to_confirm(&s, "l", "calendar", NULL);
    rp_asker_free(s.asker);
    s.config.n_confirmers = 1;
    s.asker = services_asker(&s, w->catalog, &err);
    assert_int_equal(ask_all(&s).yes, 1);
    assert_int_equal(state_of(&s, "k"), RP_MARKED); /* another node may know it */
    world_pass(w, DAY + RP_MINUTE_MS);
    rp_asker_free(s.asker); /* one that has not just looked for such marks in vain */
    s.asker = services_asker(&s, w->catalog, &err);
    (void)ask_all(&s);
    assert_int_equal(state_of(&s, "k"), RP_DEAD);
    assert_non_null(strstr(world_newest(w, "k").note, "'billing' is not configured any more"));
    expect_purged(w, 1);
    services_drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(an_unknown_service_is_refused_with_those_that_there_are),
        BOTH(marked_again_it_keeps_its_confirmations_and_gets_no_others),
        BOTH(one_request_promises_nothing_that_its_mark_does_not_keep),
        BOTH(marked_again_in_one_round_it_is_answered_as_in_two),
        BOTH(a_service_that_is_not_configured_any_more_makes_a_dead_letter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
