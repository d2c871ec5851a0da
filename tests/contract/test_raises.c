/* SPDX-License-Identifier: Apache-2.0 */
/* When the owner's epoch is raised and waited for, and what is said of a catalog that is found in
 * another vessel. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "catalog/mark/mark.h"
#include "core/owner/raise.h"
#include "core/owner/vessel.h"
#include "core/purge/purge.h"
#include "core/recover/recover.h"
#include "core/reprieve/reprieve.h"
#include "lib/world.h"

static struct rp_error err;

/* A process with one store. */
struct process {
    struct world *w;
    struct rp_raises *raises;
    struct rp_raise_hook raise_hook;
    int raised;
};

static void raise_here(void *ctx, uint64_t which)
{
    struct process *p = ctx;
    assert_int_equal(which, 1);
    p->raised++;
    rp_raises_begin(p->raises, 0);
    (void)rp_raise(p->raises, 0, p->w->catalog, &p->w->store, &err);
}

static void begin(struct process *p, struct world *w)
{
    *p = (struct process){ .w = w, .raises = rp_raises_new(&w->host_clock) };
    assert_non_null(p->raises);
    rp_raises_set(p->raises, 0, w->store.id, false);
    p->raise_hook = (struct rp_raise_hook){
        .due = rp_raises_due, .note = rp_raises_note, .raise = raise_here, .raises = p->raises, .ctx = p
    };
    w->catalog->raise_hook = &p->raise_hook;
    w->store.raises = p->raises;
}

static void end(struct process *p)
{
    p->w->catalog->raise_hook = NULL;
    p->w->store.raises = NULL;
    rp_raises_free(p->raises);
}

static int64_t record_epoch(struct world *w)
{
    struct rp_owner owner;
    ok(rp_owner_look(w->catalog, &w->store, &owner, &err));
    return owner.there ? owner.epoch : -1;
}

static void mark_and_restore(struct world *w)
{
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    world_put(w, "k", "x");
    ok(rp_mark_get(w->catalog->db, world_mark(w, "k", 5 * RP_DAY_MS).mark_id, &w->arena, &mark, &err));
    ok(rp_reprieve_many(w->catalog, &w->store, &mark, 1, "tester", &answer, &err));
    assert_int_equal(answer.what, RP_REPRIEVE_DONE);
}

static struct rp_raise_state state_of(struct world *w)
{
    struct rp_raise_state state;
    rp_raise_state(&w->store, &state);
    return state;
}

static int64_t boot_ahead_ms;

static int64_t boot_clock(void *ctx)
{
    (void)ctx;
    return rp_time_boot_ms() + boot_ahead_ms;
}

/* A minute of the boot clock: the wall clock may be set while it lasts. */
static void R2_R3_the_first_of_a_minute_waits_and_the_others_are_raised_for_after_it(void **state)
{
    struct world *w = *state;
    struct process p;
    w->host_clock.boot_ms = boot_clock;
    begin(&p, w);
    world_put(w, "other", "x");
    (void)world_mark(w, "other", RP_DAY_MS);
    assert_int_equal(p.raised, 0); /* a mark keeps nothing alive */
    mark_and_restore(w);
    assert_int_equal(p.raised, 1);
    int64_t first = record_epoch(w);
    assert_true(first > 0);
    assert_false(rp_raises_is_pending(p.raises, 0));
    mark_and_restore(w);
    assert_int_equal(p.raised, 1);
    assert_int_equal(record_epoch(w), first);
    assert_true(rp_raises_is_pending(p.raises, 0));
    w->host_ahead_ms += RP_HOUR_MS;
    assert_false(rp_raises_is_time(p.raises, 0));
    w->host_ahead_ms = -RP_HOUR_MS;
    assert_false(rp_raises_is_time(p.raises, 0));
    boot_ahead_ms += RP_MINUTE_MS;
    assert_true(rp_raises_is_time(p.raises, 0));
    ok(rp_raise(p.raises, 0, w->catalog, &w->store, &err));
    assert_true(record_epoch(w) > first);
    assert_false(rp_raises_is_pending(p.raises, 0));
    w->host_ahead_ms = 0;
    (void)world_mark(w, "other", 2 * RP_DAY_MS); /* a later due time keeps it alive for longer */
    assert_int_equal(p.raised, 2);
    end(&p);
}

static int refuse_put(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    (void)key;
    return strcmp(call, "put") == 0 ? rp_error_set(e, RP_EUNAVAILABLE, "the store hangs") : 0;
}

static void R4_a_raise_that_fails_is_owed_until_one_succeeds(void **state)
{
    struct world *w = *state;
    struct process p;
    begin(&p, w);
    world_put(w, "k", "x");
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    ok(rp_mark_get(w->catalog->db, world_mark(w, "k", 5 * RP_DAY_MS).mark_id, &w->arena, &mark, &err));
    w->before = refuse_put;
    ok(rp_reprieve_many(w->catalog, &w->store, &mark, 1, "tester", &answer, &err));
    assert_int_equal(answer.what, RP_REPRIEVE_DONE); /* all the same */
    assert_true(state_of(w).owed_since_ms != 0);
    assert_non_null(strstr(state_of(w).why, "the store hangs"));
    assert_true(rp_raises_is_time(p.raises, 0)); /* to try again */
    assert_int_equal(rp_raises_due(p.raises, &(struct rp_kept){ .everywhere = true }), 0);
    w->before = NULL;
    ok(rp_raise(p.raises, 0, w->catalog, &w->store, &err));
    assert_int_equal(state_of(w).owed_since_ms, 0);
    assert_true(record_epoch(w) > 0);
    end(&p);
}

static void R5_a_raise_at_the_start_that_fails_is_owed(void **state)
{
    struct world *w = *state;
    struct process p;
    begin(&p, w);
    rp_raises_assume(p.raises, 0);
    w->before = refuse_put;
    assert_int_equal(rp_raise(p.raises, 0, w->catalog, &w->store, &err), RP_EUNAVAILABLE);
    assert_true(state_of(w).owed_since_ms != 0);
    assert_true(rp_raises_is_time(p.raises, 0));
    w->before = NULL;
    ok(rp_raise(p.raises, 0, w->catalog, &w->store, &err));
    assert_false(rp_raises_is_pending(p.raises, 0));
    end(&p);
}

static void R5_a_store_that_is_observed_is_left_alone(void **state)
{
    struct world *w = *state;
    struct process p;
    begin(&p, w);
    rp_raises_set(p.raises, 0, 0, true);
    rp_raises_note(p.raises, &(struct rp_kept){ .everywhere = true }, &(struct rp_lane_end){ 0 });
    assert_int_equal(rp_raises_due(p.raises, &(struct rp_kept){ .everywhere = true }), 0);
    assert_false(rp_raises_is_pending(p.raises, 0));
    end(&p);
}

static void set_vessel(struct world *w, const char *text)
{
    world_script(w, "UPDATE meta SET word = '%s' WHERE name = 'vessel:%" PRId64 "'", text, w->store.id);
}

static void V2_a_catalog_in_another_vessel_claims_nothing_until_somebody_says_that_it_moved(void **state)
{
    struct world *w = *state;
    struct rp_owner before;
    char vessel[RP_VESSEL_TEXT];
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    ok(rp_db_vessel(w->catalog->db, "meta", vessel, &err));
    assert_true(vessel[0] != '\0');
    world_put(w, "k", "x");
    (void)world_mark(w, "k", 0);
    set_vessel(w, "another/1/2");
    assert_int_equal(rp_owner_check(w->catalog, &w->store, &err), RP_ENOTOWNER);
    assert_non_null(strstr(err.hint, "recover --moved"));
    assert_int_equal(world_sweep(w)->run.figures.purged, 0);
    /* also one that finds out only when it claims: another connection, in the middle of a sweep */
    struct rp_purge_batch batch;
    int64_t from_ms = 0;
    rp_purge_batch_init(&batch);
    assert_int_equal(rp_purge_claim(w->catalog, &w->store, &w->rules, &w->worker, 10, &from_ms, &batch, &err),
                     RP_ENOTOWNER);
    rp_purge_batch_done(&batch);
    ok(rp_owner_accept_move(w->catalog, &w->store, "test", "tester", &before, &err));
    assert_int_equal(before.ownership, RP_OWNER_MOVED);
    assert_int_equal(world_sweep(w)->run.figures.purged, 1);
}

static struct world *moving; /* its catalog moves before the next transaction */

static int move_it(void *ctx, const char *call, struct rp_error *e)
{
    (void)ctx, (void)e;
    if (moving == NULL || strcmp(call, "begin") != 0) return 0;
    struct world *w = moving;
    moving = NULL;
    set_vessel(w, "another/1/2");
    return 0;
}

static void V2_a_catalog_that_moves_between_the_look_and_the_raise_is_not_taken_for_the_same(void **state)
{
    struct world *w = *state;
    const struct rp_db_fault fault = { .before = move_it };
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    struct rp_catalog *other = world_catalog(w, 1, &fault);
    moving = w;
    assert_int_equal(rp_owner_write(other, &w->store, "test", false, &err), RP_ENOTOWNER);
    assert_null(moving);
    assert_int_equal(rp_owner_check(w->catalog, &w->store, &err), RP_ENOTOWNER);
    rp_catalog_close(other);
}

static void V2_something_that_was_lost_is_not_only_moved(void **state)
{
    struct world *w = *state;
    struct rp_owner before;
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
    set_vessel(w, "another/1/2");
    world_script(w, "UPDATE meta SET number = 1 WHERE name = 'epoch'");
    assert_int_equal(rp_owner_accept_move(w->catalog, &w->store, "test", "tester", &before, &err), RP_ENOTOWNER);
    assert_int_equal(before.ownership, RP_OWNER_AHEAD);
    struct rp_recovery recovery;
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
    ok(rp_owner_check(w->catalog, &w->store, &err)); /* a recovery notes the vessel, too */
}

static void V3_a_later_timeline_is_another_vessel_unless_a_fail_over_loses_nothing(void **state)
{
    (void)state;
    assert_true(rp_vessel_same("server/7/5/16/00000001", "server/7/5/16/00000001", false));
    assert_false(rp_vessel_same("server/7/5/16/00000001", "server/7/5/16/00000002", false));
    assert_true(rp_vessel_same("server/7/5/16/00000001", "server/7/5/16/00000002", true));
    assert_false(rp_vessel_same("server/7/5/16/0000000B", "server/7/5/16/0000000A", true)); /* an old primary */
    assert_false(rp_vessel_same("server/7/5/16/00000001", "server/8/5/16/00000001", true));
    assert_false(rp_vessel_same("server/7/5/16/00000001", "server/7/6/16/00000001", true));
    assert_false(rp_vessel_same("server/7/5/16/00000001", "server/7/5/17/00000001", true));
    assert_true(rp_vessel_same("server/-/5/16/00000001", "server/8/5/16/00000001", false)); /* it may not be read */
    assert_false(rp_vessel_same("file/12/5.0", "file/12/6.0", true));
    assert_false(rp_vessel_same("file/12/5.0", "file/13/5.0", true));
    assert_true(rp_vessel_same("file/12/-", "file/12/6.0", false));
    assert_false(rp_vessel_same("", "file/12/6.0", false));
    assert_false(rp_vessel_same("file/12/6.0", "", false));
    assert_true(rp_vessel_same("", "", false));
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
#define BOTH(fn) ON(0, "sqlite", fn), ON(1, "postgres", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(R2_R3_the_first_of_a_minute_waits_and_the_others_are_raised_for_after_it),
        BOTH(R4_a_raise_that_fails_is_owed_until_one_succeeds),
        BOTH(R5_a_raise_at_the_start_that_fails_is_owed),
        BOTH(R5_a_store_that_is_observed_is_left_alone),
        BOTH(V2_a_catalog_in_another_vessel_claims_nothing_until_somebody_says_that_it_moved),
        BOTH(V2_a_catalog_that_moves_between_the_look_and_the_raise_is_not_taken_for_the_same),
        BOTH(V2_something_that_was_lost_is_not_only_moved),
        cmocka_unit_test(V3_a_later_timeline_is_another_vessel_unless_a_fail_over_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
