/* SPDX-License-Identifier: Apache-2.0 */
/* A wall clock that is set is judged by the boot clock (catalog/clock.h, core/clock.h). Host and
 * database have one wall clock here, as SQLite has; scenario clock_jumps does the same with the
 * real ones, and with PostgreSQL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/time.h"
#include "core/clock.h"
#include "lib/world.h"

#define MINUTE RP_MINUTE_MS
#define HOUR   RP_HOUR_MS
#define DAY    RP_DAY_MS

static struct host {
    int64_t passed_ms, booted_at_ms;
    struct rp_boot boot;
} host;

static int64_t boot_ms(void *ctx)
{
    (void)ctx;
    return rp_time_boot_ms() + host.passed_ms;
}

static const struct rp_boot *boot(void *ctx)
{
    (void)ctx;
    return &host.boot;
}

/* The host boots; what its processes knew is gone. */
static void reboot(struct world *w, const char *id)
{
    host = (struct host){ 0 };
    snprintf(host.boot.id, sizeof host.boot.id, "%s", id);
    w->host_clock.boot_ms = boot_ms;
    w->host_clock.boot = boot;
    w->host_clock.booted_at_ms = &host.booted_at_ms;
    w->catalog->clock_known = false;
}

static struct rp_backend *counted;

/* The directory itself: the wrapper that counts calls has a clock, and that one is right. */
static int set_up(void **state)
{
    int r = world_set_up(state);
    struct world *w = *state;
    reboot(w, "first");
    counted = w->store.backend;
    w->store.backend = w->inner;
    return r;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    w->store.backend = counted;
    return world_tear_down(state);
}

static void set_clock(struct world *w, int64_t by_ms)
{
    w->host_ahead_ms += by_ms;
    w->db_ahead_ms += by_ms;
}

static void pass(struct world *w, int64_t ms)
{
    set_clock(w, ms);
    host.passed_ms += ms;
}

static void mark(struct world *w, const char *key, int64_t grace_ms)
{
    world_put(w, key, "x");
    (void)world_mark(w, key, grace_ms);
}

static int64_t ahead_ms(struct world *w)
{
    struct rp_error err = { 0 };
    struct rp_clock_state state;
    ok(rp_clock_look(w->catalog, &state, &err));
    return state.ahead_ms;
}

static void assert_about(int64_t found_ms, int64_t wanted_ms)
{
    assert_true(llabs(found_ms - wanted_ms) < MINUTE);
}

static void test_a_jump_stops_every_claim_and_promises_go_by_the_boot_clock(void **state)
{
    struct world *w = *state;
    mark(w, "old", 5 * DAY);
    int64_t now_ms = rp_clock_now_ms(&w->host_clock);
    set_clock(w, 6 * DAY);
    assert_int_equal(world_sweep(w)->code, RP_ECLOCK);
    assert_about(rp_clock_now_ms(&w->host_clock), now_ms);
    mark(w, "new", 5 * DAY);
    assert_about(world_newest(w, "new").due_at_ms, now_ms + 5 * DAY);
    assert_about(world_newest(w, "new").marked_at_ms, now_ms);
    assert_int_equal(world_restore(w, "new").error.code, 0);
    pass(w, 6 * DAY); /* due by the boot clock as well, and still nothing goes */
    assert_int_equal(world_sweep(w)->code, RP_ECLOCK);
    assert_true(world_exists(w, "old"));
    set_clock(w, -6 * DAY);
    assert_int_equal(world_sweep(w)->code, 0);
    assert_false(world_exists(w, "old"));
}

static void test_small_steps_add_up_and_a_drift_is_followed(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 24 * 10; i++) { /* half a second in 1,000, for ten days */
        pass(w, HOUR);
        set_clock(w, HOUR / 2000);
        assert_int_equal(world_sweep(w)->code, 0);
    }
    assert_true(ahead_ms(w) < MINUTE);
    int steps = 0;
    for (; steps < 5 && world_sweep(w)->code == 0; steps++) {
        pass(w, MINUTE);
        set_clock(w, 4 * MINUTE);
    }
    assert_int_equal(steps, 2);
}

static void test_a_clock_set_back_and_forth_loses_nothing(void **state)
{
    struct world *w = *state;
    world_sweep(w);
    int64_t now_ms = rp_clock_now_ms(&w->host_clock);
    set_clock(w, -6 * DAY);
    mark(w, "k", 5 * DAY);
    assert_about(world_newest(w, "k").due_at_ms, now_ms + 5 * DAY);
    set_clock(w, 6 * DAY);
    assert_int_equal(world_sweep(w)->code, 0);
    assert_true(world_exists(w, "k"));
    pass(w, 5 * DAY + HOUR);
    assert_int_equal(world_sweep(w)->code, 0);
    assert_false(world_exists(w, "k"));
}

static void test_the_clock_of_another_host_is_another_matter(void **state)
{
    struct world *w = *state;
    struct rp_error err = { 0 };
    struct rp_clock_state other;
    world_sweep(w);
    w->host_ahead_ms += 6 * DAY; /* this host alone */
    assert_int_equal(world_sweep(w)->code, RP_ECLOCK);
    const struct rp_clock *mine = w->catalog->clock;
    w->catalog->clock = &rp_clock_host;
    ok(rp_clock_look(w->catalog, &other, &err));
    w->catalog->clock = mine;
    assert_true(llabs(other.ahead_ms) < MINUTE);
    w->host_ahead_ms -= 6 * DAY;
}

static void test_accepted_what_was_promised_by_the_time_before_is_moved(void **state)
{
    struct world *w = *state;
    struct rp_error err = { 0 };
    struct rp_clock_accept accept = { .actor = "test" };
    mark(w, "right", HOUR);
    mark(w, "later", 20 * DAY);
    pass(w, 2 * HOUR);
    reboot(w, "second");
    set_clock(w, -3650 * DAY); /* it starts years behind */
    mark(w, "wrong", 5 * DAY);
    set_clock(w, 3650 * DAY);
    assert_int_equal(world_sweep(w)->code, RP_ECLOCK);
    int64_t later_ms = world_newest(w, "later").due_at_ms, wrong_ms = world_newest(w, "wrong").due_at_ms;
    accept.dry_run = true;
    ok(rp_clock_accept(w->catalog, &accept, &err));
    assert_true(accept.stands && accept.made_due == 2 && accept.moved == 1);
    assert_int_equal(world_sweep(w)->code, RP_ECLOCK);
    accept.dry_run = false;
    ok(rp_clock_accept(w->catalog, &accept, &err));
    assert_true(accept.stands && accept.made_due == 2 && accept.moved == 1);
    assert_about(world_newest(w, "wrong").due_at_ms, wrong_ms + 3650 * DAY);
    assert_int_equal(world_newest(w, "later").due_at_ms, later_ms);
    assert_int_equal(world_sweep(w)->code, 0);
    assert_false(world_exists(w, "right")); /* made before this boot, and due by right */
    assert_true(world_exists(w, "wrong"));
    ok(rp_clock_accept(w->catalog, &accept, &err));
    assert_false(accept.stands);
}

/* What all services have agreed to, and what one is to be asked about at once. */
static void test_accepted_what_services_are_asked_about_at_once_is_moved_too(void **state)
{
    struct world *w = *state;
    struct rp_error err = { 0 };
    struct rp_clock_accept accept = { .actor = "test" };
    mark(w, "agreed", 2 * DAY);
    mark(w, "now", 2 * DAY);
    int64_t due_ms = world_newest(w, "agreed").due_at_ms;
    world_script(w, "UPDATE mark SET state = 2 WHERE key = 'agreed'");
    world_script(w, "UPDATE mark SET checks = 2, next_at = marked_at WHERE key = 'now'");
    mark(w, "left", 20 * DAY); /* still referenced: asked about again in an hour, and not due by the jump */
    int64_t left_ms = world_newest(w, "left").due_at_ms;
    world_script(w, "UPDATE mark SET checks = 2, next_at = marked_at + 3600000 WHERE key = 'left'");
    set_clock(w, 3 * DAY);
    accept.dry_run = true;
    ok(rp_clock_accept(w->catalog, &accept, &err));
    assert_true(accept.made_due == 2 && accept.moved == 2);
    accept.dry_run = false;
    ok(rp_clock_accept(w->catalog, &accept, &err));
    assert_true(accept.made_due == 2 && accept.moved == 2);
    assert_about(world_newest(w, "agreed").due_at_ms, due_ms + 3 * DAY);
    assert_int_equal(world_newest(w, "agreed").next_at_ms, world_newest(w, "agreed").due_at_ms);
    assert_about(world_newest(w, "now").due_at_ms, due_ms + 3 * DAY);
    assert_true(world_newest(w, "now").next_at_ms < due_ms);
    assert_int_equal(world_newest(w, "left").due_at_ms, left_ms);
    world_script(w, "UPDATE mark SET state = 1, checks = 0, next_at = due_at");
}

#define ON(name) cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, (void *)(uintptr_t)WORLD_FILES)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(test_a_jump_stops_every_claim_and_promises_go_by_the_boot_clock),
        ON(test_small_steps_add_up_and_a_drift_is_followed),
        ON(test_a_clock_set_back_and_forth_loses_nothing),
        ON(test_the_clock_of_another_host_is_another_matter),
        ON(test_accepted_what_was_promised_by_the_time_before_is_moved),
        ON(test_accepted_what_services_are_asked_about_at_once_is_moved_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
