/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in quarantine, and the marks of what they are copies of, when something comes between:
 * another bucket under the name, a dead letter, a late upload. Found by the simulator
 * (docs/proof.md). And files whose objects are gone, or whose purge was given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../sim/bucket/bucket.h"
#include "core/dead.h"
#include "core/recover/recover.h"
#include "lib/ask.h"
#include "lib/uploads.h"
#include "lib/world.h"

static struct rp_error err;
static bool denies;
static struct bucket *instead; /* not NULL: where the store's name leads from its next delete on */

static enum bucket_fate fate(void *ctx, const char *call, const char *key)
{
    const struct world *w = ctx;
    (void)key;
    if (strcmp(call, "delete") != 0) return BUCKET_DONE;
    if (instead != NULL) bucket_aim(w->store.backend, instead);
    return denies ? BUCKET_DENIED : BUCKET_DONE;
}

static void gone(void *ctx, const struct bucket_object *object, bool overwritten)
{
    (void)ctx, (void)object, (void)overwritten;
}

static int64_t now(void *ctx)
{
    return rp_clock_now_ms(&((struct world *)ctx)->host_clock);
}

/* The world's store is this bucket from now on. */
static void use_bucket(struct world *w, struct bucket *bucket)
{
    const struct bucket_hooks hooks = { .request = fate, .gone = gone, .now_ms = now, .ctx = w };
    struct rp_probed probed;
    rp_backend_close(w->store.backend);
    ok(bucket_handle(bucket, &hooks, false, &w->store.backend, &err));
    ok(rp_backend_probe(w->store.backend, true, &probed, &err));
}

/* A bucket says "deleted" of what it never had. */
static void test_what_another_bucket_calls_deleted_is_not_purged(void **state)
{
    struct world *w = *state;
    struct world_steps one;
    struct bucket *bucket = bucket_new(BUCKET_WINDOW), *elsewhere = bucket_new(BUCKET_WINDOW);
    struct bucket_object object;
    use_bucket(w, bucket);
    w->config.allow_window_deletes = true;
    assert_int_equal(world_sweep(w)->code, 0); /* it is ours */
    bucket_upload(bucket, "a", "bytes", now(w), NULL);
    world_mark(w, "a", 0);
    world_pass(w, RP_SECOND_MS);
    world_steps_begin(w, w->catalog, "main", &one);
    world_steps_claim(w, w->catalog, &one);
    instead = elsewhere;
    world_steps_erase(w, w->catalog, &one);
    instead = NULL;
    bucket_aim(w->store.backend, bucket);
    ok(rp_purge_finish(w->catalog, &w->rules, &one.batch, &one.run, &err));
    ok(rp_run_end(w->catalog, &one.run, "done", &err));
    assert_int_equal(world_newest(w, "a").state, RP_PURGING);
    assert_true(bucket_look(bucket, "a", &object));
    world_pass(w, RP_HOUR_MS);
    assert_int_equal(world_sweep(w)->code, 0);
    assert_int_equal(world_newest(w, "a").state, RP_PURGED);
    assert_false(bucket_look(bucket, "a", &object));
    world_steps_done(&one);
    bucket_free(elsewhere);
    bucket_free(bucket);
}

/* Its copy's time is over while it is a dead letter; what a late PUT left under its key is not what
 * the retried mark is about. */
static void test_a_dead_letter_that_outlives_its_copy_leaves_nothing_behind(void **state)
{
    struct world *w = *state;
    struct bucket *bucket = bucket_new(BUCKET_VERSION);
    struct bucket_object object;
    struct rp_file_command c;
    char key[RP_KEY_MAX + 1];
    use_bucket(w, bucket);
    w->config.mode = RP_MODE_QUARANTINE;
    w->rules.max_attempts = 1;
    int64_t id = uploads_begin(w, "a", "hello");
    snprintf(key, sizeof key, "%s", uploads_file(w, id).key);
    bucket_upload(bucket, key, "hello", now(w), NULL);
    assert_int_equal(uploads_confirm(w, id, NULL, &c), 0);
    assert_int_equal(uploads_delete(w, id, 0, &c), 0);
    world_pass(w, RP_SECOND_MS);
    denies = true;
    (void)world_sweep(w);
    denies = false;
    assert_int_equal(world_newest(w, key).state, RP_DEAD);
    assert_true(bucket_remove(bucket, key)); /* as if the delete had acted after all */
    bucket_upload(bucket, key, "late!", now(w), NULL);
    world_days(w, 30);
    uploads_expect(w, id, RP_FILE_PURGED);
    ok(ask_retry(w->catalog, world_number(w, "SELECT id FROM dead_letter"), "tester", &err));
    world_days(w, 30);
    assert_false(bucket_look(bucket, key, &object)); /* EVENTUAL */
    bucket_free(bucket);
}

/* The mark that waits for late PUTs ends before the copy's time is over: the file's bytes are still
 * there. */
static void test_a_file_whose_copy_waits_in_quarantine_is_not_purged(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    w->config.mode = RP_MODE_QUARANTINE;
    w->config.quarantine_ms = 20 * RP_DAY_MS;
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hello");
    assert_int_equal(uploads_delete(w, id, 0, &c), 0);
    world_days(w, 10);
    uploads_expect(w, id, RP_FILE_DELETED);
    uploads_expect_quota(w, 0, 5, 1);
    world_days(w, 20);
    uploads_expect(w, id, RP_FILE_PURGED);
    uploads_expect_quota(w, 0, 0, 0);
}

/* Its URL can be used until its time is over: a mark of what stands there now does not end the one
 * that waits for the rest. */
static void test_a_mark_by_key_does_not_end_the_one_that_waits_for_late_uploads(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_begin(w, "a", "hello");
    char key[RP_KEY_MAX + 1];
    snprintf(key, sizeof key, "%s", uploads_file(w, id).key);
    world_pass(w, 2 * RP_HOUR_MS);
    assert_int_equal(world_sweep(w)->code, 0);
    uploads_expect(w, id, RP_FILE_EXPIRED);
    int64_t waits = world_newest(w, key).id;
    world_put(w, key, "first");
    struct rp_mark_answer again = world_mark(w, key, -1);
    assert_int_equal(again.what, RP_MARK_SAME);
    assert_int_equal(again.mark_id, waits);
    world_put(w, key, "second");
    world_days(w, 4);
    assert_false(world_exists(w, key)); /* EVENTUAL */
}

/* Two copies of one file wait: its own, and one of what arrived late. The second is not the
 * file's. */
static void test_a_file_is_not_purged_with_the_copy_of_a_late_upload(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    w->config.mode = RP_MODE_QUARANTINE;
    w->config.quarantine_ms = 20 * RP_DAY_MS;
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hello");
    assert_int_equal(uploads_delete(w, id, 0, &c), 0);
    world_pass(w, 2 * RP_HOUR_MS);
    assert_int_equal(world_sweep(w)->code, 0); /* its own copy */
    int64_t own = uploads_file(w, id).mark_id;
    uploads_put(w, id, "again");
    w->config.quarantine_ms = RP_DAY_MS;
    world_days(w, 5);
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM mark WHERE key LIKE '.reprieve/quarantine/%' AND state = 4"),
                     1);
    uploads_expect(w, id, RP_FILE_DELETED);
    assert_int_equal(uploads_file(w, id).mark_id, own);
}

/* ---- what was given up, and what is gone ---- */

static int deny_delete(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    return strcmp(call, "remove") == 0 && key != NULL ? rp_error_set(e, RP_EDENIED, "denied") : 0;
}

/* Deleted, and its purge was given up. */
static int64_t given_up(struct world *w, const char *name)
{
    struct rp_file_command c;
    enum rp_state as;
    int64_t id = uploads_live(w, name, "hello");
    assert_int_equal(uploads_delete(w, id, RP_DAY_MS, &c), 0);
    w->before = deny_delete;
    for (int i = 0; i < 4; i++) {
        world_pass(w, 2 * RP_DAY_MS);
        (void)world_sweep(w);
    }
    w->before = NULL;
    ok(ask_keep(w->catalog, world_number(w, "SELECT id FROM dead_letter WHERE open = 1"), "tester", &as, &err));
    assert_int_equal(as, RP_LOST);
    uploads_expect(w, id, RP_FILE_DELETED);
    return id;
}

static int restore_file(struct world *w, int64_t id)
{
    struct rp_reprieve_item item = { .file_id = id };
    struct rp_reprieve_command c;
    rp_reprieve_command_init(&c, &item, 1, "tester", &w->arena);
    c.command.tenant_id = uploads_tenant(w, "acme");
    c.stores = w->stores;
    c.n_stores = 1;
    return rp_command_run(w->catalog, &c.command);
}

static void test_X8_a_file_whose_purge_was_given_up_can_be_restored_or_deleted_again(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t kept = given_up(w, "kept"), gone = given_up(w, "gone"), unwanted = given_up(w, "unwanted");
    world_remove(w, uploads_file(w, gone).key);
    assert_int_equal(restore_file(w, kept), 0);
    uploads_expect(w, kept, RP_FILE_LIVE);
    assert_int_equal(restore_file(w, gone), RP_ETOOLATE);
    uploads_expect(w, gone, RP_FILE_DELETED);
    uploads_expect_quota(w, 15, 0, 0);
    assert_int_equal(uploads_delete(w, unwanted, RP_DAY_MS, &c), 0);
    assert_non_null(c.event);
    assert_int_equal(uploads_delete(w, gone, RP_DAY_MS, &c), 0);
    world_pass(w, 2 * RP_DAY_MS);
    world_swept(w, 1); /* the other one was gone */
    uploads_expect(w, unwanted, RP_FILE_PURGED);
    uploads_expect(w, gone, RP_FILE_PURGED);
    uploads_expect_quota(w, 5, 0, 0);
    assert_int_equal(uploads_delete(w, kept, RP_DAY_MS, &c), 0);
    world_pass(w, 2 * RP_DAY_MS);
    world_swept(w, 1);
    uploads_expect_quota(w, 0, 0, 0);
}

static int fail_look(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx, (void)key;
    return strcmp(call, "stat") == 0 ? rp_error_set(e, RP_EUNAVAILABLE, "the store is away") : 0;
}

/* As after a roll-back: its mark waits again, and the sweep of the other catalog has been. */
static void test_V8_a_file_whose_object_is_gone_is_not_restored(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "root", "hello"), child = uploads_child(w, "child", root, 0);
    int64_t gone = uploads_live(w, "gone", "hello"), away = uploads_live(w, "away", "hello");
    assert_int_equal(uploads_delete(w, root, RP_DAY_MS, &c), 0);
    assert_int_equal(uploads_delete(w, gone, RP_DAY_MS, &c), 0);
    assert_int_equal(uploads_delete(w, away, RP_DAY_MS, &c), 0);
    world_remove(w, uploads_file(w, gone).key);
    assert_int_equal(restore_file(w, gone), RP_ETOOLATE);
    uploads_expect(w, gone, RP_FILE_DELETED);
    assert_int_equal(restore_file(w, root), 0);
    uploads_expect(w, child, RP_FILE_LIVE);
    w->before = fail_look;
    assert_int_equal(restore_file(w, away), 0); /* a rescue does not wait for a store */
    uploads_expect(w, away, RP_FILE_LIVE);
    w->before = NULL;
    world_pass(w, 2 * RP_DAY_MS);
    world_swept(w, 0); /* it was gone */
    uploads_expect(w, gone, RP_FILE_PURGED);
}

/* catalog.h, K8. Whoever has locked the tenant may lock its marks next: a recovery that had locked
 * them first would wait for the tenant, and both for ever. */
static void test_K8_a_recovery_changes_no_marks_of_a_tenant_that_is_locked(void **state)
{
    struct world *w = *state;
    struct rp_recovery recovery;
    struct rp_file_command c;
    int64_t id = uploads_live(w, "a", "x");
    assert_int_equal(uploads_delete(w, id, RP_DAY_MS, &c), 0);
    ok(rp_db_script(w->catalog->db, "SET lock_timeout = 50", &err));
    ok(rp_db_begin(w->dbs.db, true, &err));
    world_script(w, "SELECT id FROM tenant FOR UPDATE");
    assert_int_equal(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err), RP_EBUSY);
    world_script(w, "SELECT id FROM mark FOR UPDATE NOWAIT");
    ok(rp_db_commit(w->dbs.db, &err));
    ok(rp_owner_recover(w->catalog, &w->store, "test", "tester", false, &recovery, &err));
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit WHERE event = 'mark.extended'"), 1);
}

/* Two versions of one key wait hidden in quarantine: how they lie by their marks and by the bucket's
 * times, and which of them waits for the other. */
static int64_t waits_on_older(struct world *w, int64_t of, int older_marked, int newer_marked, int older_state)
{
    struct rp_arena arena = RP_ARENA(1 << 20);
    int64_t out = 0;
    size_t n = 0;
    world_script(w, "UPDATE mark SET original = 'k', in_place = 1, version = 'v' || key, modified_ms = 1000");
    world_script(w, "UPDATE mark SET marked_at = %d, state = %d WHERE key = 'a'", older_marked, older_state);
    world_script(w, "UPDATE mark SET marked_at = %d, state = 3, modified_ms = 2000 WHERE key = 'b'", newer_marked);
    ok(rp_marks_on_older(w->catalog->db, &of, 1, "returned", &arena, &out, &n, &err));
    rp_arena_done(&arena);
    return n == 0 ? 0 : out;
}

static void test_S9_a_version_waits_for_an_older_one_whose_mark_a_clock_ahead_has_made(void **state)
{
    struct world *w = *state;
    world_put(w, "a", "first");
    world_put(w, "b", "second");
    int64_t older = world_mark(w, "a", -1).mark_id, newer = world_mark(w, "b", -1).mark_id;
    assert_int_equal(waits_on_older(w, newer, 10, 20, RP_MARKED), newer);
    assert_int_equal(waits_on_older(w, newer, 10, 20, RP_PURGING), newer); /* the older one goes first */
    assert_int_equal(waits_on_older(w, older, 10, 20, RP_PURGING), 0);
    assert_int_equal(waits_on_older(w, newer, 30, 20, RP_MARKED), newer); /* the clock was set back since */
    assert_int_equal(waits_on_older(w, newer, 30, 20, RP_PURGING), 0);    /* nor do they wait for each other */
    assert_int_equal(waits_on_older(w, older, 30, 20, RP_PURGING), 0);
}

/* Each engine once, each store once. */
#define ON(which, words, fn)                                                                                           \
    {                                                                                                                  \
#fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which)                                \
    }
#define ALL(fn) ON(WORLD_POSTGRES, "postgres, memory", fn), ON(WORLD_FILES, "sqlite, fs", fn)
/* Rows are changed by hand: no figure fits them afterwards. */
#define EDITED(which, words, fn)                                                                                       \
    {                                                                                                                  \
#fn " on " words, fn, world_set_up, world_leave, (void *)(uintptr_t)(which)                                    \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_another_bucket_calls_deleted_is_not_purged, world_set_up,
                                        world_leave),
        cmocka_unit_test_setup_teardown(test_a_dead_letter_that_outlives_its_copy_leaves_nothing_behind, world_set_up,
                                        world_leave),
        cmocka_unit_test_setup_teardown(test_a_mark_by_key_does_not_end_the_one_that_waits_for_late_uploads,
                                        world_set_up, world_leave),
        cmocka_unit_test_setup_teardown(test_a_file_is_not_purged_with_the_copy_of_a_late_upload, world_set_up,
                                        world_leave),
        cmocka_unit_test_setup_teardown(test_a_file_whose_copy_waits_in_quarantine_is_not_purged, world_set_up,
                                        world_leave),
        ALL(test_X8_a_file_whose_purge_was_given_up_can_be_restored_or_deleted_again),
        ALL(test_V8_a_file_whose_object_is_gone_is_not_restored),
        EDITED(WORLD_POSTGRES, "postgres", test_S9_a_version_waits_for_an_older_one_whose_mark_a_clock_ahead_has_made),
        EDITED(WORLD_FILES, "sqlite", test_S9_a_version_waits_for_an_older_one_whose_mark_a_clock_ahead_has_made),
        ON(WORLD_POSTGRES, "postgres, memory", test_K8_a_recovery_changes_no_marks_of_a_tenant_that_is_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
