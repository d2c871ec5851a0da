/* SPDX-License-Identifier: Apache-2.0 */
/* What a store is known to guarantee, and what follows: probes and who pays for them, a promise
 * about keys that is broken, a store that is too weak for plain objects but not for files, clocks.
 * The level is forced and the probe lies as a test wants it. On both engines. Needs PostgreSQL: run
 * under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/guarantee.h"
#include "core/subject/quarantine.h"
#include "core/sweep/plan.h"
#include "lib/uploads.h"

#define HOUR RP_HOUR_MS
#define DAY  RP_DAY_MS

static struct rp_error err;

/* The world's store, with a probe and a clock that say what a test likes. */
static struct rp_backend_ops lying;
static struct {
    enum rp_level level, undeclared, looked; /* looked: without a canary */
    _Atomic int canaries, looks;
    int code;
    int64_t ahead_ms;
    int clock_code;
} lies;

static int lie_about_level(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *e)
{
    (void)backend;
    if (may_write)
        lies.canaries++;
    else
        lies.looks++;
    if (lies.code < 0) return rp_error_set(e, lies.code, "nobody answers");
    *out = (struct rp_probed){ .level = may_write ? lies.level : lies.looked, .undeclared = lies.undeclared };
    out->findings[out->n_findings++] = (struct rp_finding){ .name = "list order", .holds = true };
    return 0;
}

static int lie_about_time(struct rp_backend *backend, int64_t *out, struct rp_error *e)
{
    (void)backend;
    if (lies.clock_code < 0) return rp_error_set(e, lies.clock_code, "nobody answers");
    *out = rp_clock_now_ms(NULL) + lies.ahead_ms;
    return 0;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    world_make(w, (enum dbs_kind)(uintptr_t)*state, WORLD_MEMORY);
    memset(&lies, 0, sizeof lies);
    lying = *w->store.backend->ops;
    lying.probe = lie_about_level;
    lying.now_ms = NULL;
    w->store.backend->ops = &lying;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    rp_guarantee_free(w->store.guarantee);
    world_check(w);
    world_drop(w);
    free(w);
    return 0;
}

static void stand(struct world *w, enum rp_level level, bool settled)
{
    rp_guarantee_free(w->store.guarantee);
    w->store.guarantee = rp_guarantee_new(level, settled);
    assert_non_null(w->store.guarantee);
    ok(rp_guarantee_load(w->catalog->db, &w->store, &err));
}

static int64_t audited(struct world *w, const char *event)
{
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM audit WHERE event = '%s'", event);
    return world_number(w, sql);
}

static struct rp_mark_answer mark(struct world *w, const char *key)
{
    return world_mark(w, key, 0);
}

/* ---- who pays for a probe ---- */

static void test_a_sweep_probes_once_a_process_and_the_catalog_remembers(void **state)
{
    struct world *w = *state;
    lies.level = RP_LEVEL_VERSION;
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
    (void)world_sweep(w);
    (void)world_sweep(w);
    assert_int_equal(lies.canaries, 1);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_VERSION);
    struct rp_probed probed;
    assert_true(rp_guarantee_probed(&w->store, &probed));
    assert_int_equal(probed.n_findings, 1);
    /* another process: a mark makes do with what is remembered, a sweep does not */
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_VERSION);
    assert_false(rp_guarantee_probed(&w->store, &probed));
    world_put(w, "k", "x");
    assert_int_equal(mark(w, "k").what, RP_MARK_CREATED);
    assert_int_equal(lies.canaries, 1);
    (void)world_sweep(w);
    assert_int_equal(lies.canaries, 2);
    assert_int_equal(audited(w, "store.level_changed"), 0);
}

static void test_a_mark_probes_where_nobody_has_within_a_day(void **state)
{
    struct world *w = *state;
    lies.level = RP_LEVEL_ETAG;
    stand(w, RP_LEVEL_WINDOW, false);
    world_put(w, "k", "x");
    assert_int_equal(mark(w, "k").what, RP_MARK_CREATED);
    assert_int_equal(lies.canaries, 1);
    world_script(w, "UPDATE meta SET number = number - %lld WHERE name LIKE 'level:%%'", (long long)(DAY + 1));
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(world_mark(w, "k", -1).what, RP_MARK_SAME);
    assert_int_equal(lies.canaries, 2);
    /* a store that does not answer refuses the mark, and is asked again by the next one */
    stand(w, RP_LEVEL_WINDOW, false);
    world_script(w, "UPDATE meta SET number = 1 WHERE name LIKE 'level:%%'");
    stand(w, RP_LEVEL_WINDOW, false);
    lies.code = RP_EUNAVAILABLE;
    struct rp_mark_request request = { .key = "k", .grace_ms = -1, .at_ms = -1, .reason = "" };
    struct rp_mark_answer answer;
    ok(rp_mark_many(w->catalog, &w->store, &request, 1, "t", false, &answer, &err));
    assert_int_equal(answer.error.code, RP_EUNAVAILABLE);
    lies.code = 0;
    ok(rp_mark_many(w->catalog, &w->store, &request, 1, "t", false, &answer, &err));
    assert_int_equal(answer.error.code, 0);
}

static void *sure(void *arg)
{
    struct world *w = arg;
    struct rp_catalog *catalog = world_catalog(w, 0, NULL);
    struct rp_error why = { 0 };
    intptr_t r = rp_guarantee_ensure(catalog, &w->store, RP_GUARANTEE_SWEEP, &why);
    rp_catalog_close(catalog);
    return (void *)r;
}

static void test_threads_that_share_a_store_share_one_probe(void **state)
{
    struct world *w = *state;
    pthread_t threads[4];
    lies.level = RP_LEVEL_ETAG;
    stand(w, RP_LEVEL_WINDOW, false);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sure, w), 0);
    for (size_t i = 0; i < 4; i++) {
        void *r;
        pthread_join(threads[i], &r);
        assert_null(r);
    }
    assert_int_equal(lies.canaries, 1);
}

static void test_a_settled_store_and_one_in_mode_observe_get_no_canary(void **state)
{
    struct world *w = *state;
    stand(w, RP_LEVEL_ETAG, true);
    world_put(w, "k", "x");
    (void)mark(w, "k");
    (void)world_sweep(w);
    assert_int_equal(lies.canaries + lies.looks, 0);
    stand(w, RP_LEVEL_WINDOW, false);
    w->config.mode = RP_MODE_OBSERVE;
    int64_t puts = w->calls[WORLD_PUT], annotations = w->calls[WORLD_ANNOTATE];
    world_put(w, "o", "x");
    /* nobody knows how it deletes, and nothing is deleted: a mark is not refused */
    assert_int_equal(mark(w, "o").what, RP_MARK_CREATED);
    (void)world_sweep(w);
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    assert_int_equal(rp_sweeper_may_purge(&sweeper.by, &w->store, &err), RP_EOBSERVE);
    ok(rp_guarantee_probe(w->catalog, &w->store, &err)); /* the doctor, and the daemon every day */
    assert_int_equal(lies.canaries, 0);
    assert_int_equal(lies.looks, 1);
    assert_int_equal(w->calls[WORLD_PUT], puts);
    assert_int_equal(w->calls[WORLD_ANNOTATE], annotations);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM meta WHERE name LIKE 'level:%'"), 0);
}

static void test_a_dry_run_looks_and_writes_nothing(void **state)
{
    struct world *w = *state;
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    lies.level = RP_LEVEL_ETAG;
    stand(w, RP_LEVEL_WINDOW, false);
    int64_t puts = w->calls[WORLD_PUT];
    ok(rp_sweeper_may_purge(&sweeper.by, &w->store, &err));
    assert_int_equal(lies.canaries, 0);
    assert_int_equal(lies.looks, 1);
    assert_int_equal(w->calls[WORLD_PUT], puts);
}

static void test_a_change_of_level_has_its_audit_row(void **state)
{
    struct world *w = *state;
    lies.level = RP_LEVEL_VERSION;
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    assert_int_equal(audited(w, "store.level_changed"), 0);
    lies.level = RP_LEVEL_WINDOW;
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    assert_int_equal(audited(w, "store.level_changed"), 1);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit WHERE event = 'store.level_changed' AND details LIKE "
                                     "'%\"from\":\"version\"%' AND details LIKE '%\"to\":\"window\"%'"),
                     1);
    assert_true(rp_store_is_weak(&w->store));
}

static int note_tx(struct rp_tx *tx, void *store, struct rp_error *e)
{
    return rp_guarantee_note_changed(tx, store, "k", "another", e);
}

static void test_what_was_seen_counts_before_what_is_remembered(void **state)
{
    struct world *w = *state;
    lies.level = RP_LEVEL_VERSION;
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_guarantee_probed_at_ms(&w->store), 0);
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    int64_t at_ms = rp_guarantee_probed_at_ms(&w->store);
    assert_true(at_ms > 0);
    /* another process remembers otherwise */
    world_script(w, "UPDATE meta SET word = 'etag', number = 1 WHERE name LIKE 'level:%%'");
    ok(rp_guarantee_load(w->catalog->db, &w->store, &err));
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_VERSION);
    assert_int_equal(rp_guarantee_probed_at_ms(&w->store), at_ms);
    stand(w, RP_LEVEL_WINDOW, true); /* settled: the memory is another's */
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
    /* who may only look knows less than what is remembered, and more than nothing */
    stand(w, RP_LEVEL_WINDOW, false);
    w->config.mode = RP_MODE_OBSERVE;
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_ETAG);
    world_script(w, "DELETE FROM meta WHERE name LIKE 'level:%%'");
    stand(w, RP_LEVEL_WINDOW, false);
    lies.looked = RP_LEVEL_VERSION;
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_VERSION);
    assert_int_equal(lies.canaries, 1);
}

static void test_to_look_what_is_remembered_will_do(void **state)
{
    struct world *w = *state;
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_guarantee_ensure(w->catalog, &w->store, RP_GUARANTEE_LOOK, &err));
    assert_int_equal(lies.looks, 0);
    /* but not to mark, what was seen on a day that is yet to come */
    world_script(w, "UPDATE meta SET number = number + %lld WHERE name LIKE 'level:%%'", (long long)DAY);
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_guarantee_ensure(w->catalog, &w->store, RP_GUARANTEE_MARK, &err));
    assert_int_equal(lies.canaries, 2);
}

/* Who looks or probes learns of it, though no mark and no sweep of this process saw it. */
static void test_a_broken_promise_is_learned_on_the_way(void **state)
{
    struct world *w = *state;
    w->config.keys = RP_KEYS_WRITE_ONCE;
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_catalog_transact(w->catalog, note_tx, &w->store, &err));
    ok(rp_catalog_transact(w->catalog, note_tx, &w->store, &err));
    assert_int_equal(audited(w, "store.keys_changed"), 1);
    assert_int_equal(rp_guarantee_changed_at_ms(&w->store), 0);
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    assert_true(rp_guarantee_changed_at_ms(&w->store) > 0);
    rp_guarantee_revoke(&w->store, 0);
    ok(rp_guarantee_ensure(w->catalog, &w->store, RP_GUARANTEE_LOOK, &err));
    assert_true(rp_guarantee_changed_at_ms(&w->store) > 0);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
}

/* Nobody has looked and nobody will: what the configuration says is all there is. */
static void test_a_store_of_which_nothing_was_noted_is_what_its_backend_says(void **state)
{
    struct world *w = *state;
    struct rp_probed probed;
    w->store.level = RP_LEVEL_ETAG;
    assert_null(w->store.guarantee);
    ok(rp_guarantee_load(w->catalog->db, &w->store, &err));
    ok(rp_guarantee_ensure(w->catalog, &w->store, RP_GUARANTEE_SWEEP, &err));
    ok(rp_guarantee_ask_clock(&w->store, NULL, &err));
    assert_int_equal(lies.canaries + lies.looks, 0);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_ETAG);
    assert_true(rp_guarantee_is_known(&w->store));
    assert_false(rp_guarantee_probed(&w->store, &probed));
    assert_int_equal(rp_guarantee_probed_at_ms(&w->store), 0);
    assert_int_equal(rp_guarantee_changed_at_ms(&w->store), 0);
    assert_true(rp_guarantee_clock_ahead_ms(&w->store) == RP_CLOCK_UNKNOWN);
    w->config.keys = RP_KEYS_WRITE_ONCE;
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_EXACT);
}

static void test_a_level_that_this_program_does_not_know_is_asked_for_again(void **state)
{
    struct world *w = *state;
    lies.level = RP_LEVEL_VERSION;
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    world_script(w, "UPDATE meta SET word = 'better' WHERE name LIKE 'level:%%'"); /* a later program's */
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
    assert_int_equal(rp_guarantee_probed_at_ms(&w->store), 0);
    ok(rp_guarantee_ensure(w->catalog, &w->store, RP_GUARANTEE_MARK, &err));
    assert_int_equal(lies.canaries, 2);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_VERSION);
}

static void test_in_mode_observe_it_is_looked_at_and_nothing_is_sure(void **state)
{
    struct world *w = *state;
    lies.looked = RP_LEVEL_VERSION;
    w->config.mode = RP_MODE_OBSERVE;
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_guarantee_ensure(w->catalog, &w->store, RP_GUARANTEE_LOOK, &err));
    assert_int_equal(lies.looks, 1);
    assert_int_equal(lies.canaries, 0);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_VERSION);
    assert_false(rp_guarantee_is_known(&w->store));
    w->config.mode = RP_MODE_PURGE;
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    assert_true(rp_guarantee_is_known(&w->store));
    stand(w, RP_LEVEL_ETAG, true);
    assert_true(rp_guarantee_is_known(&w->store));
}

/* Probes while somebody else finds out that he has to, and before he comes to it. */
static int64_t probe_meanwhile(void *ctx)
{
    struct world *w = ctx;
    if (lies.canaries == 0) ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    return rp_clock_now_ms(&w->host_clock);
}

static void test_who_waited_for_a_probe_makes_none(void **state)
{
    struct world *w = *state;
    const struct rp_clock slow = { .now_ms = probe_meanwhile, .ctx = w };
    struct rp_catalog *catalog = world_catalog(w, 1, NULL);
    lies.level = RP_LEVEL_ETAG;
    stand(w, RP_LEVEL_WINDOW, false);
    catalog->clock = &slow;
    ok(rp_guarantee_ensure(catalog, &w->store, RP_GUARANTEE_SWEEP, &err));
    assert_int_equal(lies.canaries, 1);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_ETAG);
    rp_catalog_close(catalog);
}

static void test_a_store_that_is_closed_is_not_asked_the_time(void **state)
{
    struct world *w = *state;
    struct rp_backend *backend = w->store.backend;
    lying.now_ms = lie_about_time;
    stand(w, RP_LEVEL_ETAG, true);
    w->store.backend = NULL;
    ok(rp_guarantee_ask_clock(&w->store, NULL, &err));
    assert_true(rp_guarantee_clock_ahead_ms(&w->store) == RP_CLOCK_UNKNOWN);
    w->store.backend = backend;
}

/* ---- a store that is too weak for plain objects ---- */

static void test_only_what_we_named_is_swept_in_a_weak_store(void **state)
{
    struct world *w = *state;
    stand(w, RP_LEVEL_ETAG, true);
    world_put(w, "plain", "x");
    (void)mark(w, "plain");
    stand(w, RP_LEVEL_WINDOW, true);
    world_put(w, "other", "x");
    struct rp_mark_answer refused = mark(w, "other");
    assert_int_equal(refused.what, RP_MARK_REFUSED);
    assert_int_equal(refused.error.code, RP_EWEAK);
    int64_t abandoned = uploads_begin(w, "a", "never confirmed");
    uploads_put(w, abandoned, "never confirmed");
    int64_t deleted = uploads_live(w, "b", "deleted");
    int64_t txn = uploads_txn_begin(w), member = uploads_member(w, txn, "c", "rolled back", 0);
    struct rp_file_command command;
    assert_int_equal(uploads_delete(w, deleted, 0, &command), 0);
    world_pass(w, 30 * DAY);
    struct rp_sweep_result *r = world_sweep(w);
    assert_string_equal(r->outcome, "partial");
    assert_int_equal(r->code, RP_EWEAK);
    assert_int_equal(r->run.figures.purged, 3);
    assert_int_equal(r->run.figures.skipped, 1);
    assert_non_null(strstr(r->run.figures.errors[0], "cannot delete exactly"));
    uploads_expect(w, abandoned, RP_FILE_EXPIRED);
    uploads_expect(w, deleted, RP_FILE_PURGED);
    uploads_expect(w, member, RP_FILE_EXPIRED);
    assert_true(world_exists(w, "plain"));
    assert_int_equal(world_newest(w, "plain").state, RP_MARKED);
    w->config.allow_window_deletes = true;
    assert_string_equal(world_sweep(w)->outcome, "done");
    assert_false(world_exists(w, "plain"));
}

static int count_planned(void *ctx, const struct rp_store *store, const struct rp_mark *m, struct rp_error *e)
{
    (void)store;
    (void)e;
    assert_true(rp_mark_is_named(m));
    ++*(int *)ctx;
    return 0;
}

static void test_a_copy_in_quarantine_is_erased_in_a_weak_store(void **state)
{
    struct world *w = *state;
    stand(w, RP_LEVEL_ETAG, true);
    w->config.mode = RP_MODE_QUARANTINE;
    world_put(w, "k", "x");
    int64_t id = mark(w, "k").mark_id;
    (void)world_sweep(w);
    char key[RP_QUARANTINE_KEY];
    assert_true(world_exists(w, rp_quarantine_key(id, key)));
    stand(w, RP_LEVEL_WINDOW, true);
    world_pass(w, 8 * DAY);
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    int planned = 0;
    ok(rp_plan_each(&sweeper, count_planned, &planned, &err));
    assert_int_equal(planned, 1);
    assert_string_equal(world_sweep(w)->outcome, "done");
    assert_false(world_exists(w, key));
}

static void test_a_pass_over_a_weak_store_does_not_spin_and_a_plan_says_the_same(void **state)
{
    struct world *w = *state;
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    struct rp_sweep_pass pass;
    struct rp_run run = { 0 };
    int64_t next = -1;
    stand(w, RP_LEVEL_ETAG, true);
    world_put(w, "plain", "x");
    (void)mark(w, "plain");
    stand(w, RP_LEVEL_WINDOW, true);
    ok(rp_sweep_pass(&sweeper, &w->store, &run, &pass, &err));
    assert_int_equal(pass.claimed, 0);
    assert_int_equal(pass.why.code, 0);
    assert_int_equal(run.id, 0); /* nothing was claimed: no run was begun */
    ok(rp_marks_next(w->catalog->db, w->store.id, true, &next, &err));
    assert_int_equal(next, 0); /* nothing to wake up for */
    struct rp_error why = { 0 };
    assert_int_equal(rp_sweep_count_too_weak(&sweeper, &w->store, &why), 1);
    assert_int_equal(why.code, RP_EWEAK);
    int64_t file = uploads_begin(w, "a", "x");
    uploads_put(w, file, "x");
    world_pass(w, 2 * HOUR);
    int planned = 0;
    ok(rp_plan_each(&sweeper, count_planned, &planned, &err));
    assert_int_equal(planned, 1);
    ok(rp_marks_next(w->catalog->db, w->store.id, true, &next, &err));
    assert_true(next > 0);
    ok(rp_sweep_pass(&sweeper, &w->store, &run, &pass, &err));
    assert_int_equal(pass.claimed, 1);
    const char *outcome;
    ok(rp_sweep_close(&sweeper, &run, &outcome, &err));
    assert_true(world_exists(w, "plain"));
}

/* ---- keys: write_once ---- */

static void test_write_once_is_exact_until_a_sweep_sees_a_changed_object(void **state)
{
    struct world *w = *state;
    lies.level = RP_LEVEL_EXACT;
    lies.undeclared = RP_LEVEL_WINDOW;
    w->config.keys = RP_KEYS_WRITE_ONCE;
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_EXACT);
    world_put(w, "k", "old");
    world_put(w, "later", "x");
    (void)mark(w, "k");
    (void)world_sweep(w);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_EXACT);
    world_put(w, "k", "old");
    (void)mark(w, "k");
    (void)world_mark(w, "later", HOUR);
    world_put(w, "k", "newer");
    (void)world_sweep(w);
    assert_string_equal(world_text(w, "k"), "newer");
    assert_int_equal(audited(w, "store.keys_changed"), 1);
    assert_true(rp_guarantee_changed_at_ms(&w->store) > 0);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
    world_pass(w, 2 * HOUR);
    assert_int_equal(world_sweep(w)->code, RP_EWEAK);
    assert_true(world_exists(w, "later"));
    /* for good, and for every process: the catalog remembers */
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
    assert_int_equal(mark(w, "k").error.code, RP_EWEAK);
    assert_int_equal(audited(w, "store.keys_changed"), 1);
}

static void test_write_once_ends_when_a_mark_finds_another_upload(void **state)
{
    struct world *w = *state;
    w->config.keys = RP_KEYS_WRITE_ONCE;
    stand(w, RP_LEVEL_WINDOW, true);
    world_put(w, "k", "old");
    (void)world_mark(w, "k", HOUR);
    assert_int_equal(world_mark(w, "k", -1).what, RP_MARK_SAME);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_EXACT);
    world_put(w, "k", "newer");
    assert_int_equal(world_mark(w, "k", HOUR).what, RP_MARK_REPLACED);
    assert_int_equal(audited(w, "store.keys_changed"), 1);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
    assert_true(rp_store_is_weak(&w->store));
}

/* What another process has seen counts at the next claim. */
static void test_a_promise_that_another_process_saw_broken_ends_here_too(void **state)
{
    struct world *w = *state;
    w->config.keys = RP_KEYS_WRITE_ONCE;
    stand(w, RP_LEVEL_WINDOW, true);
    world_put(w, "k", "x");
    (void)mark(w, "k");
    ok(rp_catalog_transact(w->catalog, note_tx, &w->store, &err));
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_EXACT);
    assert_int_equal(world_sweep(w)->code, RP_EWEAK);
    assert_true(world_exists(w, "k"));
}

static void test_another_bucket_under_the_same_name_begins_anew(void **state)
{
    struct world *w = *state;
    lies.level = RP_LEVEL_VERSION;
    w->config.bucket = "first";
    stand(w, RP_LEVEL_WINDOW, false);
    ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_VERSION);
    w->config.bucket = "second";
    stand(w, RP_LEVEL_WINDOW, false);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
    assert_int_equal(rp_guarantee_probed_at_ms(&w->store), 0);
    /* nor is the same bucket elsewhere the same, nor one whose name ends where another's begins */
    static const char *const others[][2] = { { "https://one", "first" }, { "x", "yz" }, { "xy", "z" } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        w->config.endpoint = others[i][0];
        w->config.bucket = others[i][1];
        stand(w, RP_LEVEL_WINDOW, false);
        assert_int_equal(rp_store_level(&w->store), RP_LEVEL_WINDOW);
        ok(rp_guarantee_probe(w->catalog, &w->store, &err));
    }
}

static void test_a_file_whose_object_changed_breaks_no_promise(void **state)
{
    struct world *w = *state;
    struct rp_file_command command;
    w->config.keys = RP_KEYS_WRITE_ONCE;
    stand(w, RP_LEVEL_WINDOW, true);
    int64_t file = uploads_live(w, "a", "x");
    assert_int_equal(uploads_delete(w, file, 0, &command), 0);
    world_put(w, uploads_file(w, file).key, "y");
    (void)world_sweep(w);
    assert_int_equal(audited(w, "store.keys_changed"), 0);
    assert_int_equal(rp_store_level(&w->store), RP_LEVEL_EXACT);
}

static void test_keys_that_are_reused_break_no_promise(void **state)
{
    struct world *w = *state;
    stand(w, RP_LEVEL_ETAG, true);
    world_put(w, "k", "old");
    (void)mark(w, "k");
    world_put(w, "k", "newer");
    (void)world_sweep(w);
    assert_string_equal(world_text(w, "k"), "newer");
    assert_int_equal(audited(w, "store.keys_changed"), 0);
}

/* ---- clocks ---- */

static void test_X7_a_store_whose_clock_is_off_is_not_swept_and_named(void **state)
{
    struct world *w = *state;
    lying.now_ms = lie_about_time;
    stand(w, RP_LEVEL_ETAG, true);
    world_put(w, "k", "x");
    (void)mark(w, "k");
    ok(rp_guarantee_ask_clock(&w->store, NULL, &err));
    assert_int_equal(rp_guarantee_clock_ahead_ms(&w->store), 0); /* told between two looks at ours */
    lies.ahead_ms = -6 * RP_MINUTE_MS;
    ok(rp_guarantee_ask_clock(&w->store, NULL, &err));
    assert_true(llabs(rp_guarantee_clock_ahead_ms(&w->store) - lies.ahead_ms) < 10 * RP_SECOND_MS);
    lies.ahead_ms = 6 * RP_MINUTE_MS;
    ok(rp_guarantee_ask_clock(&w->store, NULL, &err));
    assert_true(llabs(rp_guarantee_clock_ahead_ms(&w->store) - lies.ahead_ms) < 10 * RP_SECOND_MS);
    struct rp_sweep_result *r = world_sweep(w);
    assert_int_equal(r->code, RP_ECLOCK);
    assert_non_null(strstr(r->run.figures.errors[0], "the clock of store 'main'"));
    assert_true(world_exists(w, "k"));
    lies.ahead_ms = 4 * RP_MINUTE_MS;
    assert_string_equal(world_sweep(w)->outcome, "done");
    assert_false(world_exists(w, "k"));
}

/* The store's trouble, not the catalog's: the others go on. */
static void test_a_store_that_cannot_be_asked_the_time_is_left_alone(void **state)
{
    struct world *w = *state;
    struct rp_sweep sweeper = world_sweeper(w, w->catalog, "main");
    struct rp_sweep_pass pass;
    struct rp_run run = { 0 };
    lying.now_ms = lie_about_time;
    stand(w, RP_LEVEL_ETAG, true);
    world_put(w, "k", "x");
    (void)mark(w, "k");
    lies.clock_code = RP_EUNAVAILABLE;
    assert_int_equal(rp_guarantee_ask_clock(&w->store, NULL, &err), RP_EUNAVAILABLE);
    assert_true(rp_guarantee_clock_ahead_ms(&w->store) == RP_CLOCK_UNKNOWN);
    ok(rp_sweep_pass(&sweeper, &w->store, &run, &pass, &err));
    assert_int_equal(pass.why.code, RP_EUNAVAILABLE);
    assert_int_equal(run.id, 0);
    assert_string_equal(world_sweep(w)->outcome, "partial");
    lies.clock_code = 0;
    assert_string_equal(world_sweep(w)->outcome, "done");
}

#define ON(test, kind)                                                                                                 \
    {                                                                                                                  \
#test " on " #kind, test, set_up, tear_down, (void *)(uintptr_t)(kind)                                         \
    }
#define BOTH(test) ON(test, DBS_SQLITE_FILE), ON(test, DBS_POSTGRES)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_a_sweep_probes_once_a_process_and_the_catalog_remembers),
        BOTH(test_a_mark_probes_where_nobody_has_within_a_day),
        BOTH(test_threads_that_share_a_store_share_one_probe),
        BOTH(test_a_settled_store_and_one_in_mode_observe_get_no_canary),
        BOTH(test_a_dry_run_looks_and_writes_nothing),
        BOTH(test_a_change_of_level_has_its_audit_row),
        BOTH(test_what_was_seen_counts_before_what_is_remembered),
        BOTH(test_to_look_what_is_remembered_will_do),
        BOTH(test_a_broken_promise_is_learned_on_the_way),
        BOTH(test_a_store_of_which_nothing_was_noted_is_what_its_backend_says),
        BOTH(test_a_level_that_this_program_does_not_know_is_asked_for_again),
        BOTH(test_in_mode_observe_it_is_looked_at_and_nothing_is_sure),
        BOTH(test_who_waited_for_a_probe_makes_none),
        BOTH(test_a_store_that_is_closed_is_not_asked_the_time),
        BOTH(test_only_what_we_named_is_swept_in_a_weak_store),
        BOTH(test_a_copy_in_quarantine_is_erased_in_a_weak_store),
        BOTH(test_a_pass_over_a_weak_store_does_not_spin_and_a_plan_says_the_same),
        BOTH(test_write_once_is_exact_until_a_sweep_sees_a_changed_object),
        BOTH(test_write_once_ends_when_a_mark_finds_another_upload),
        BOTH(test_a_promise_that_another_process_saw_broken_ends_here_too),
        BOTH(test_another_bucket_under_the_same_name_begins_anew),
        BOTH(test_a_file_whose_object_changed_breaks_no_promise),
        BOTH(test_keys_that_are_reused_break_no_promise),
        BOTH(test_X7_a_store_whose_clock_is_off_is_not_swept_and_named),
        BOTH(test_a_store_that_cannot_be_asked_the_time_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
