/* SPDX-License-Identifier: Apache-2.0 */
/* What the dry run of a sweep says of marks that outside services are asked about (core/sweep/plan.h). On
 * both engines. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "confirm_steps.h"
#include "core/hold.h"
#include "core/sweep/plan.h"
#include "lib/answer.h"

static struct rp_plan *plan_of(struct world *w)
{
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    struct rp_plan *plan = NULL;
    ok(rp_plan_make(&sweeper, &plan, &err));
    assert_int_equal(plan->n, 1);
    return plan;
}

static void what_waits_for_a_service_is_not_planned_and_counted_apart(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "agreed", "calendar", NULL);
    assert_int_equal(ask_all(&s).yes, 1);
    world_put(w, "plain", "x");
    (void)world_mark(w, "plain", 0);
    put_to_confirm(&s, "due", "calendar", NULL);
    world_put(w, "now", "x");
    (void)mark_confirmed(&s, "now", 2 * RP_DAY_MS, "mail", NULL);
    world_put(w, "early", "x");
    (void)mark_confirmed(&s, "early", 2 * RP_DAY_MS, "calendar", NULL);
    RP_CLEANUP(rp_plan_freep) struct rp_plan *plan = plan_of(w);
    assert_int_equal(plan->at[0].marks, 2);
    assert_int_equal(plan->at[0].unconfirmed, 2);
    assert_int_equal(plan->at[0].guarded, 0);
    assert_int_equal(ask_all(&s).calls, 2);
    assert_int_equal(world_swept(w, 3)->run.figures.scanned, 3);
    services_drop(&s);
}

/* Also of a mark that has no check but what services say. */
static void a_plan_can_always_be_written(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "agreed", "calendar", NULL);
    assert_int_equal(ask_all(&s).yes, 1);
    put_to_confirm(&s, "due", "calendar", NULL);
    RP_CLEANUP(rp_plan_freep) struct rp_plan *plan = plan_of(w);
    RP_CLEANUP(rp_json_decrefp) json_t *o = rp_plan_json(plan, "main");
    char *text = json_dumps(o, 0);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"guard\": null"));
    assert_non_null(strstr(text, "\"unconfirmed\": 1"));
    free(text);
    services_drop(&s);
}

static void what_is_held_is_not_counted(void **state)
{
    struct world *w = *state;
    struct services s;
    services_make(w, &s);
    put_to_confirm(&s, "held", "calendar", NULL);
    put_to_confirm(&s, "free", "calendar", NULL);
    struct rp_hold_command hold = {
        .scope = RP_SCOPE_SUBJECT, .store = &w->store, .key = "held", .reason = "audit", .command.actor = "tester"
    };
    ok(ask_hold(w->catalog, &hold, &w->arena, &err));
    RP_CLEANUP(rp_plan_freep) struct rp_plan *plan = plan_of(w);
    assert_int_equal(plan->at[0].marks, 0);
    assert_int_equal(plan->at[0].unconfirmed, 1);
    services_drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_waits_for_a_service_is_not_planned_and_counted_apart),
        BOTH(a_plan_can_always_be_written),
        BOTH(what_is_held_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
