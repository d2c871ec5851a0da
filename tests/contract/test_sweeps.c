/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep when something is wrong: another owner, a missing mount, a run that died, a store that fails, clocks that
 * disagree. On both engines, with objects in memory and in a directory. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/text/json.h"
#include "core/dead.h"
#include "core/recover/recover.h"
#include "core/state.h"
#include "lib/ask.h"
#include "store/open.h"
#include "sweep_steps.h"

#define MINUTE RP_MINUTE_MS
#define HOUR   RP_HOUR_MS
#define DAY    RP_DAY_MS

/* ---- whose store it is ---- */

static void expect_owner(struct world *w, enum rp_ownership ownership)
{
    struct rp_owner owner;
    ok(rp_owner_look(w->catalog, &w->store, &owner, &err));
    assert_int_equal(owner.ownership, ownership);
}

static void test_S6_the_first_sweep_makes_the_store_ours_and_each_raises_the_epoch(void **state)
{
    struct world *w = *state;
    struct rp_owner first, second;
    expect_owner(w, RP_OWNER_NONE);
    (void)world_sweep(w);
    ok(rp_owner_look(w->catalog, &w->store, &first, &err));
    assert_int_equal(first.ownership, RP_OWNER_OURS);
    assert_string_equal(first.catalog, w->catalog->id);
    assert_string_equal(first.environment, "test");
    (void)world_sweep(w);
    ok(rp_owner_look(w->catalog, &w->store, &second, &err));
    assert_int_equal(second.ownership, RP_OWNER_OURS);
    assert_true(second.epoch > first.epoch);
    ok(rp_owner_write(w->catalog, &w->store, "test", true, &err)); /* raised a moment ago: not again */
    struct rp_owner third;
    ok(rp_owner_look(w->catalog, &w->store, &third, &err));
    assert_int_equal(third.epoch, second.epoch);
    world_pass(w, 2 * MINUTE);
    ok(rp_owner_write(w->catalog, &w->store, "test", true, &err));
    ok(rp_owner_look(w->catalog, &w->store, &third, &err));
    assert_true(third.epoch > second.epoch);
}

/* The world's store under another catalog. */
static struct rp_sweep_result *sweep_as(struct world *w, struct rp_catalog *catalog)
{
    struct rp_catalog *own = w->catalog;
    struct rp_store_row row;
    int64_t id = w->store.id;
    ok(rp_store_get(catalog, RP_STORE_STORE, "main", &row, &err));
    w->catalog = catalog;
    w->store.id = row.id;
    if (world_exists(w, "k")) (void)world_mark(w, "k", 0);
    struct rp_sweep_result *r = world_sweep(w);
    w->catalog = own;
    w->store.id = id;
    return r;
}

static void test_S6_another_catalog_purges_nothing(void **state)
{
    struct world *w = *state;
    struct dbs other;
    struct rp_catalog *catalog;
    (void)world_sweep(w);
    world_put(w, "k", "x");
    dbs_make(&other, w->dbs.kind, NULL);
    ok(rp_catalog_open(other.url, &(struct rp_catalog_options){ .lane = 0 }, &catalog, &err));
    struct rp_sweep_result *r = sweep_as(w, catalog);
    assert_string_equal(r->outcome, "partial");
    assert_non_null(strstr(r->run.figures.errors[0], w->catalog->id)); /* says whose it is */
    assert_int_equal(r->run.figures.skipped, 1);
    assert_int_equal(w->removed, 0);
    assert_true(world_exists(w, "k"));
    rp_catalog_close(catalog);
    dbs_drop(&other);
    put_due(w, "k");
    expect_purged(w, 1); /* the owner goes on */
}

/* As a backup tool does it; a script of ours would be in a transaction, where VACUUM is not allowed. */
static void copy_catalog(struct world *w)
{
    char sql[128];
    const struct rp_sql vacuum = { .name = "copy", .text = sql, .params = "" };
    snprintf(sql, sizeof sql, "VACUUM INTO '%s/copy.db'", w->dbs.dir);
    ok(rp_db_exec(w->dbs.db, &vacuum, NULL, NULL, &err));
}

/* A file copy of the catalog has the same id: whichever of the two works first stops the other. */
static void test_S6_a_copy_of_the_catalog_stops_as_soon_as_the_original_goes_on(void **state)
{
    struct world *w = *state;
    char url[128];
    struct rp_catalog *copy;
    (void)world_sweep(w);
    copy_catalog(w);
    snprintf(url, sizeof url, "sqlite:%s/copy.db", w->dbs.dir);
    ok(rp_catalog_open(url, &(struct rp_catalog_options){ .lane = 0 }, &copy, &err));
    assert_string_equal(copy->id, w->catalog->id);
    (void)world_sweep(w);
    world_put(w, "k", "x");
    struct rp_sweep_result *r = sweep_as(w, copy);
    assert_string_equal(r->outcome, "partial");
    assert_non_null(strstr(r->run.figures.errors[0], "restored from a backup"));
    assert_true(world_exists(w, "k"));
    rp_catalog_close(copy);
    put_due(w, "k");
    expect_purged(w, 1);
}

static void test_S6_a_copy_that_works_first_stops_the_original(void **state)
{
    struct world *w = *state;
    char url[128];
    struct rp_catalog *copy;
    (void)world_sweep(w);
    copy_catalog(w);
    snprintf(url, sizeof url, "sqlite:%s/copy.db", w->dbs.dir);
    ok(rp_catalog_open(url, &(struct rp_catalog_options){ .lane = 0 }, &copy, &err));
    assert_string_equal(sweep_as(w, copy)->outcome, "partial"); /* it is not where it was */
    struct rp_owner before;
    ok(rp_owner_accept_move(copy, &w->store, "test", "tester", &before, &err));
    assert_string_equal(sweep_as(w, copy)->outcome, "done");
    rp_catalog_close(copy);
    put_due(w, "k");
    expect_nothing_purged(w, "restored from a backup");
    assert_true(world_exists(w, "k"));
}

static void test_S6_a_catalog_restored_from_a_backup_purges_nothing_until_it_recovers(void **state)
{
    struct world *w = *state;
    struct rp_recovery recovery;
    for (int i = 0; i < 3; i++)
        (void)world_sweep(w);
    put_due(w, "k");
    world_put(w, "later", "x");
    (void)world_mark(w, "later", 5 * DAY);
    world_script(w, "UPDATE meta SET number = 1 WHERE name = 'epoch'"); /* as it was in the backup */
    expect_owner(w, RP_OWNER_AHEAD);
    expect_nothing_purged(w, "restored from a backup");
    assert_int_equal(world_count(w, RP_MARKED), 2);
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", true, &recovery, &err)); /* a dry run */
    assert_int_equal(recovery.waiting, 2);
    assert_int_equal(recovery.present, 2);
    assert_int_equal(recovery.reprieved, 0);
    expect_owner(w, RP_OWNER_AHEAD);
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
    assert_int_equal(recovery.reprieved, 2);
    expect_owner(w, RP_OWNER_OURS);
    assert_int_equal(world_newest(w, "k").outcome, RP_END_RECOVERED);
    world_pass(w, 10 * DAY);
    expect_purged(w, 0);
    assert_true(world_exists(w, "k") && world_exists(w, "later"));
    put_due(w, "k");
    expect_purged(w, 1);
}

static void test_S6_a_recovery_keeps_what_was_begun_and_what_can_still_be_returned(void **state)
{
    struct world *w = *state;
    struct rp_recovery recovery;
    struct world_steps s;
    w->config.mode = RP_MODE_QUARANTINE;
    put_due(w, "aside");
    expect_purged(w, 1);
    put_due(w, "begun");
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(s.batch.marks.n, 1);
    ok(rp_run_end(w->catalog, &s.run, "failed", &err));
    world_put(w, "waiting", "x");
    (void)world_mark(w, "waiting", DAY);
    world_put(w, "waiting", "newer");
    world_script(w, "UPDATE meta SET number = 1 WHERE name = 'epoch'");
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
    assert_int_equal(recovery.reprieved, 1);
    assert_int_equal(recovery.changed, 1);
    assert_int_equal(world_newest(w, "begun").state, RP_PURGING);
    world_pass(w, HOUR);
    expect_purged(w, 1);
    assert_false(world_exists(w, "begun"));
    assert_int_equal(world_restore(w, "aside").what, RP_REPRIEVE_RETURNED);
    assert_true(world_exists(w, "aside"));
    world_steps_done(&s);
}

static void test_S6_a_store_without_its_record_is_not_purged(void **state)
{
    struct world *w = *state;
    struct rp_recovery recovery;
    (void)world_sweep(w);
    put_due(w, "k");
    world_remove(w, RP_STORE_OWNER);
    expect_owner(w, RP_OWNER_GONE);
    expect_nothing_purged(w, "owner record is gone");
    assert_false(world_exists(w, RP_STORE_OWNER)); /* and none is written on the quiet */
    world_put(w, RP_STORE_OWNER, "not json");
    expect_owner(w, RP_OWNER_DAMAGED);
    expect_nothing_purged(w, "damaged");
    assert_true(world_exists(w, "k"));
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
    expect_owner(w, RP_OWNER_OURS);
}

/* ---- a mount that is not there ---- */

static void test_an_emptied_store_is_never_taken_for_already_gone(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    put_due(w, "k");
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    world_remove(w, "k");
    world_remove(w, RP_STORE_OWNER);
    world_steps_erase(w, w->catalog, &s);
    assert_int_equal(s.batch.store_error.code, RP_EUNAVAILABLE);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    ok(rp_run_end(w->catalog, &s.run, "partial", &err));
    struct rp_mark m = world_newest(w, "k");
    assert_int_equal(m.state, RP_PURGING);
    assert_int_equal(m.attempts, 0);
    assert_int_equal(s.run.figures.already_gone, 0);
    world_steps_done(&s);
}

static void test_an_empty_mount_point_purges_nothing_and_the_mounted_one_goes_on(void **state)
{
    struct world *w = *state;
    char away[128];
    put_due(w, "k");
    (void)world_sweep(w);
    put_due(w, "k");
    snprintf(away, sizeof away, "%s.away", w->root);
    assert_int_equal(rename(w->root, away), 0);
    assert_int_equal(mkdir(w->root, 0700), 0);
    expect_nothing_purged(w, "store");
    struct rp_backend *empty = NULL, *mounted = w->inner; /* a process started while it is unmounted */
    ok(rp_fs_open(w->root, false, &empty, &err));
    struct rp_backend *seen = w->store.backend;
    w->store.backend = empty;
    expect_nothing_purged(w, "owner record is gone");
    w->store.backend = seen;
    rp_backend_close(empty);
    assert_ptr_equal(w->inner, mounted);
    assert_int_equal(rmdir(w->root), 0); /* nothing was written there */
    assert_int_equal(rename(away, w->root), 0);
    assert_true(world_exists(w, "k"));
    expect_purged(w, 1);
}

/* ---- runs and their lock ---- */

static void test_C1_a_second_run_is_told_who_holds_the_lock_and_since_when(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    struct rp_sweep_result *r = rp_arena_alloc(&w->arena, sizeof *r);
    world_steps_begin(w, w->catalog, "main", &s);
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    assert_int_equal(rp_sweep_run(&sweeper, r, &err), RP_ERUNNING);
    assert_non_null(strstr(err.text, "locked_by worker"));
    assert_non_null(strstr(err.text, "locked_at 20"));
    world_pass(w, 29 * MINUTE);
    assert_int_equal(rp_sweep_run(&sweeper, r, &err), RP_ERUNNING);
    world_steps_claim(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err)); /* a batch, though of nothing, renews it */
    world_pass(w, 29 * MINUTE);
    assert_int_equal(rp_sweep_run(&sweeper, r, &err), RP_ERUNNING);
    ok(rp_run_end(w->catalog, &s.run, "done", &err));
    ok(rp_sweep_run(&sweeper, r, &err)); /* released: at once */
    sweeper.name = "another";
    ok(rp_sweep_run(&sweeper, r, &err));
    world_steps_done(&s);
}

static int64_t records(struct world *w, int64_t run_id, const char *outcome)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM run_record WHERE run_id = %lld AND outcome = '%s'",
             (long long)run_id, outcome);
    return world_number(w, sql);
}

static void test_C1_FENCED_a_holder_that_lost_its_lock_changes_nothing(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    put_due(w, "a");
    put_due(w, "b");
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    assert_int_equal(s.batch.marks.n, 2);
    world_pass(w, 31 * MINUTE); /* lock and leases are stale */
    expect_purged(w, 2);
    assert_int_equal(records(w, s.run.id, "failed"), 1);
    int64_t audits = world_number(w, "SELECT count(*) FROM audit");
    world_put(w, "a", "uploaded again");
    world_steps_erase(w, w->catalog, &s);
    assert_int_equal(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err), RP_ECHANGED);
    assert_true(s.run.lost);
    ok(rp_run_end(w->catalog, &s.run, "done", &err));
    assert_int_equal(records(w, s.run.id, "failed"), 1);
    assert_int_equal(records(w, s.run.id, "done"), 0);
    assert_int_equal(world_number(w, "SELECT count(*) FROM audit"), audits);
    assert_string_equal(world_text(w, "a"), "uploaded again");
    world_steps_done(&s);
}

static bool everyone_is_dead(const char *name)
{
    return strcmp(name, "worker") == 0;
}

static void test_C1_the_run_of_a_dead_process_is_taken_over_at_once_and_gets_its_record(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    world_put_many(w, 5, 1);
    world_mark_many(w, 5, 0);
    w->rules.batch = 3;
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    world_steps_erase(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    struct rp_worker heir = { .name = "heir", .is_dead = everyone_is_dead };
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    struct rp_sweep_result *r = rp_arena_alloc(&w->arena, sizeof *r);
    sweeper.by.worker = &heir;
    ok(rp_sweep_run(&sweeper, r, &err));
    assert_int_equal(r->run.figures.purged, 2);
    assert_int_equal(records(w, s.run.id, "failed"), 1);
    assert_int_equal(records(w, r->run.id, "done"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE body LIKE '%\"purged\":3%'"), 1);
    world_steps_done(&s);
}

/* ---- a store that fails ---- */

struct trouble {
    const char *call, *key; /* key NULL: the call as a whole */
    int code;
};

static int make_trouble(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    const struct trouble *t = ctx;
    bool hit = strcmp(call, t->call) == 0 && (t->key == NULL ? key == NULL : key != NULL && strcmp(key, t->key) == 0);
    return hit ? rp_error_set(e, t->code, "told to fail") : 0;
}

static void test_M12_an_outage_uses_up_no_attempt_and_everything_is_purged_after_it(void **state)
{
    struct world *w = *state;
    const struct trouble outages[] = { { "remove", NULL, RP_EUNAVAILABLE },
                                       { "get", RP_STORE_OWNER, RP_EUNAVAILABLE },
                                       { "put", RP_STORE_OWNER, RP_EUNAVAILABLE } };
    world_put_many(w, 250, 1);
    world_mark_many(w, 250, 0);
    for (int round = 0; round < 9; round++) {
        struct trouble now = outages[round % 3];
        w->before = make_trouble;
        w->ctx = &now;
        expect_nothing_purged(w, "told to fail");
        assert_int_equal(world_number(w, "SELECT max(attempts) FROM mark"), 0);
        world_pass(w, 2 * MINUTE);
    }
    w->before = NULL;
    assert_int_equal(world_count(w, RP_DEAD), 0);
    expect_purged(w, 250);
}

static void fail_until_dead(struct world *w, struct trouble *trouble)
{
    w->before = make_trouble;
    w->ctx = trouble;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_newest(w, trouble->key).state == RP_DEAD, false);
        (void)world_sweep(w);
        world_pass(w, HOUR);
    }
    struct rp_mark m = world_newest(w, trouble->key);
    assert_int_equal(m.state, RP_DEAD);
    assert_int_equal(m.attempts, 3);
    assert_non_null(strstr(m.note, "told to fail"));
    w->before = NULL;
}

static int first_letter(void *ctx, const struct rp_dead *dead, struct rp_error *e)
{
    (void)e;
    *(int64_t *)ctx = dead->id;
    return 0;
}

static int64_t letter(struct world *w)
{
    int64_t id = 0;
    ok(rp_dead_each(w->catalog->db, 0, 10, first_letter, &id, &err));
    assert_true(id != 0);
    return id;
}

static void test_used_up_attempts_make_a_dead_letter_that_can_be_retried(void **state)
{
    struct world *w = *state;
    struct trouble denied = { "remove", "bad", RP_EDENIED };
    put_due(w, "bad");
    put_due(w, "good");
    fail_until_dead(w, &denied);
    assert_int_equal(world_newest(w, "good").state, RP_PURGED);
    expect_purged(w, 0); /* the dead wait for a person */
    assert_int_equal(world_restore(w, "bad").error.code, RP_ETOOLATE);
    int64_t id = letter(w);
    ok(ask_retry(w->catalog, id, "tester", &err));
    assert_int_equal(ask_retry(w->catalog, id, "tester", &err), RP_ENOTFOUND);
    assert_int_equal(world_newest(w, "bad").attempts, 0);
    int64_t ended_at = world_number(w, "SELECT ended_at FROM dead_letter");
    fail_until_dead(w, &denied);
    ok(ask_retry(w->catalog, letter(w), "another", &err)); /* ends the second letter, and the first no second time */
    assert_int_equal(world_number(w, "SELECT ended_at FROM dead_letter WHERE ended_by = 'tester'"), ended_at);
    expect_purged(w, 1);
    assert_false(world_exists(w, "bad"));
    put_due(w, "bad");
    fail_until_dead(w, &denied); /* another life, another letter */
}

static void test_a_dead_letter_that_is_kept_ends_as_lost_once_its_purge_had_begun(void **state)
{
    struct world *w = *state;
    struct trouble denied = { "remove", "bad", RP_EUNKNOWN };
    enum rp_state as;
    put_due(w, "bad");
    fail_until_dead(w, &denied);
    ok(ask_keep(w->catalog, letter(w), "tester", &as, &err));
    assert_int_equal(as, RP_LOST);
    assert_int_equal(world_newest(w, "bad").outcome, RP_END_KEPT);
    expect_purged(w, 0);
    assert_true(world_exists(w, "bad"));
}

static int die_while_checking(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct rp_move move = { .mark = ctx, .to = RP_DEAD, .attempts = 3, .note = "told to die" };
    return rp_state_move(tx, &(struct rp_state_by){ .store = "main", .actor = "tester" }, &move, 1, e);
}

static void test_a_mark_that_died_while_it_was_checked_ends_reprieved(void **state)
{
    struct world *w = *state;
    for (int by_restore = 0; by_restore < 2; by_restore++) {
        struct world_steps s;
        enum rp_state as;
        put_due(w, "k");
        world_script(w, "UPDATE mark SET checks = 1 WHERE active = 1");
        world_steps_begin(w, w->catalog, "main", &s);
        world_steps_claim(w, w->catalog, &s);
        assert_int_equal(s.batch.marks.at[0].state, RP_CHECKING);
        ok(rp_catalog_transact(w->catalog, die_while_checking, &s.batch.marks.at[0], &err));
        ok(rp_run_end(w->catalog, &s.run, "partial", &err));
        if (by_restore) {
            assert_int_equal(world_restore(w, "k").what, RP_REPRIEVE_DONE);
        } else {
            ok(ask_keep(w->catalog, letter(w), "tester", &as, &err));
            assert_int_equal(as, RP_REPRIEVED);
        }
        assert_true(world_exists(w, "k"));
        world_check(w);
        world_steps_done(&s);
    }
}

/* ---- clocks ---- */

static size_t claimed(struct world *w, int code)
{
    struct world_steps s = { .from_ms = 0 };
    rp_purge_batch_init(&s.batch);
    int r = rp_purge_claim(w->catalog, &w->store, &w->rules, &w->worker, 10, &s.from_ms, &s.batch, &err);
    assert_int_equal(r, code);
    size_t n = s.batch.marks.n;
    rp_purge_release(w->catalog, &s.batch, "tester");
    world_steps_done(&s);
    return n;
}

static volatile sig_atomic_t enough;

static void have_enough(void *ctx, const struct rp_purge_batch *batch, const struct rp_run *run)
{
    (void)ctx, (void)batch, (void)run;
    enough = 1;
}

static void a_sweep_that_has_enough_claims_no_more(void **state)
{
    struct world *w = *state;
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    struct rp_run run = { 0 };
    struct rp_sweep_pass pass;
    const char *outcome;
    sweeper.by.rules.batch = 2;
    sweeper.finished = have_enough;
    sweeper.by.enough = &enough;
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%02d", i);
        put_due(w, key);
    }
    enough = 0;
    ok(rp_sweep_pass(&sweeper, &w->store, &run, &pass, &err));
    assert_in_range(pass.claimed, 2, 18);
    assert_int_equal(run.figures.purged, pass.claimed);
    ok(rp_sweep_close(&sweeper, &run, &outcome, &err));
    assert_string_equal(outcome, "done"); /* what it had begun, it has done */
    expect_purged(w, 20 - pass.claimed);
}

static void test_clocks_that_disagree_stop_every_claim(void **state)
{
    struct world *w = *state;
    put_due(w, "k");
    world_pass(w, DAY);
    const int64_t apart[] = { 6 * MINUTE, -6 * MINUTE };
    for (size_t i = 0; i < 2; i++) {
        w->host_ahead_ms = apart[i];
        assert_int_equal(claimed(w, RP_ECLOCK), 0);
        expect_nothing_purged(w, "apart");
        assert_int_equal(world_newest(w, "k").state, RP_MARKED);
    }
    w->host_ahead_ms = 0;
    expect_purged(w, 1);
}

static void test_NO_EARLY_a_mark_is_due_only_when_the_slowest_clock_says_so(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "x");
    (void)world_mark(w, "k", 2 * MINUTE);
    w->host_ahead_ms = 4 * MINUTE; /* the host is fast: database and store are not there yet */
    assert_int_equal(claimed(w, 0), 0);
    w->host_ahead_ms = 0;
    world_pass(w, 3 * MINUTE);
    w->host_ahead_ms = -4 * MINUTE; /* the host is slow */
    assert_int_equal(claimed(w, 0), 0);
    w->host_ahead_ms = 0;
    assert_int_equal(claimed(w, 0), 1);
}

static void test_a_promise_counts_from_the_fastest_clock(void **state)
{
    struct world *w = *state;
    world_put(w, "k", "x");
    int64_t now = rp_clock_now_ms(&rp_clock_host);
    w->host_ahead_ms = -4 * MINUTE;
    struct rp_mark_answer a = world_mark(w, "k", DAY);
    assert_true(a.due_at_ms >= now + DAY); /* a slow host shortens nothing */
    w->host_ahead_ms = 4 * MINUTE;
    world_put(w, "j", "x");
    a = world_mark(w, "j", DAY);
    assert_true(a.due_at_ms >= now + DAY + 4 * MINUTE);
    w->host_ahead_ms = 0;
}

/* clang-format off */
int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_S6_the_first_sweep_makes_the_store_ours_and_each_raises_the_epoch),
        ALL(test_S6_another_catalog_purges_nothing),
        ON(2, "sqlite, fs", test_S6_a_copy_of_the_catalog_stops_as_soon_as_the_original_goes_on),
        ON(2, "sqlite, fs", test_S6_a_copy_that_works_first_stops_the_original),
        ALL(test_S6_a_catalog_restored_from_a_backup_purges_nothing_until_it_recovers),
        ALL(test_S6_a_recovery_keeps_what_was_begun_and_what_can_still_be_returned),
        ALL(test_S6_a_store_without_its_record_is_not_purged),
        ALL(test_an_emptied_store_is_never_taken_for_already_gone),
        ON(2, "sqlite, fs", test_an_empty_mount_point_purges_nothing_and_the_mounted_one_goes_on),
        ON(3, "postgres, fs", test_an_empty_mount_point_purges_nothing_and_the_mounted_one_goes_on),
        BOTH(test_C1_a_second_run_is_told_who_holds_the_lock_and_since_when),
        ALL(test_C1_FENCED_a_holder_that_lost_its_lock_changes_nothing),
        BOTH(test_C1_the_run_of_a_dead_process_is_taken_over_at_once_and_gets_its_record),
        ALL(test_M12_an_outage_uses_up_no_attempt_and_everything_is_purged_after_it),
        ALL(test_used_up_attempts_make_a_dead_letter_that_can_be_retried),
        ALL(test_a_dead_letter_that_is_kept_ends_as_lost_once_its_purge_had_begun),
        BOTH(test_a_mark_that_died_while_it_was_checked_ends_reprieved),
        ALL(a_sweep_that_has_enough_claims_no_more),
        ALL(test_clocks_that_disagree_stop_every_claim),
        ALL(test_NO_EARLY_a_mark_is_due_only_when_the_slowest_clock_says_so),
        BOTH(test_a_promise_counts_from_the_fastest_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
