/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in quarantine, and the marks of what they are copies of, when something comes between: another bucket under the name, a dead
 * letter, a late upload. Found by the simulator (docs/proof.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../sim/bucket/bucket.h"
#include "core/dead.h"
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

/* Its copy's time is over while it is a dead letter; what a late PUT left under its key is not what the retried mark is about. */
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

/* The mark that waits for late PUTs ends before the copy's time is over: the file's bytes are still there. */
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

/* Its URL can be used until its time is over: a mark of what stands there now does not end the one that waits for the rest. */
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

/* Two copies of one file wait: its own, and one of what arrived late. The second is not the file's. */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
