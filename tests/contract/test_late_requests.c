/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that act later than anybody waits: a delete that arrives when its object is back from
 * quarantine, an upload whose object has gone. Found by the models (docs/proof.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../sim/bucket/bucket.h"
#include "core/subject/quarantine.h"
#include "lib/ask.h"
#include "lib/uploads.h"
#include "lib/world.h"

static struct rp_error err;
static bool late_deletes;

static enum bucket_fate fate(void *ctx, const char *call, const char *key)
{
    (void)ctx;
    (void)key;
    return late_deletes && strcmp(call, "delete") == 0 ? BUCKET_LATE : BUCKET_DONE;
}

static void gone(void *ctx, const struct bucket_object *object, bool overwritten)
{
    (void)ctx, (void)object, (void)overwritten;
}

static int64_t now(void *ctx)
{
    return rp_clock_now_ms(&((struct world *)ctx)->host_clock);
}

/* "a" is moved to quarantine in a bucket that cannot tell identical bytes apart, and returned; a
 * delete of it that was sent before is still under way. */
static struct bucket *return_before_a_late_delete(struct world *w)
{
    struct world_steps one, two;
    struct bucket *bucket = bucket_new(BUCKET_ETAG);
    const struct bucket_hooks hooks = { .request = fate, .gone = gone, .now_ms = now, .ctx = w };
    struct bucket_object object;
    rp_backend_close(w->store.backend);
    ok(bucket_handle(bucket, &hooks, false, &w->store.backend, &err));
    struct rp_probed probed;
    ok(rp_backend_probe(w->store.backend, true, &probed, &err));
    w->config.mode = RP_MODE_QUARANTINE;
    bucket_upload(bucket, "a", "precious", now(w), NULL);
    world_mark(w, "a", 0);
    world_pass(w, RP_SECOND_MS);

    world_steps_begin(w, w->catalog, "main", &one);
    world_steps_claim(w, w->catalog, &one);
    late_deletes = true; /* copied aside; the delete is sent, and acts later than anybody waits */
    world_steps_erase(w, w->catalog, &one);
    late_deletes = false;
    assert_int_equal(bucket_late(bucket), 1);
    world_pass(w, RP_HOUR_MS); /* the worker is thought dead */
    world_steps_begin(w, w->catalog, "other", &two);
    world_steps_claim(w, w->catalog, &two);
    world_steps_erase(w, w->catalog, &two);
    ok(rp_purge_finish(w->catalog, &w->rules, &two.batch, &two.run, &err));
    ok(rp_run_end(w->catalog, &one.run, "failed", &err));
    ok(rp_run_end(w->catalog, &two.run, "done", &err));
    world_steps_done(&one);
    world_steps_done(&two);
    assert_int_equal(world_newest(w, "a").state, RP_PURGED);
    assert_int_equal(world_restore(w, "a").what, RP_REPRIEVE_RETURNED);
    assert_true(bucket_look(bucket, "a", &object));
    return bucket;
}

static void sweep_after(struct world *w, int64_t ms)
{
    world_pass(w, ms);
    struct rp_sweep_result *r = world_sweep(w);
    assert_int_equal(r->code, 0);
    assert_string_equal(r->outcome, "done");
}

/* The delete takes the object all the same; it comes back from its copy before that is erased, and
 * the copy stays until the object was seen again. */
static void test_what_a_late_delete_took_comes_back_from_its_copy(void **state)
{
    struct world *w = *state;
    struct bucket *bucket = return_before_a_late_delete(w);
    struct bucket_object object;
    char copy[RP_QUARANTINE_KEY];
    rp_quarantine_key(world_newest(w, "a").id, copy);
    bucket_settle(bucket, 0); /* now it acts */
    assert_false(bucket_look(bucket, "a", &object));
    sweep_after(w, 20 * RP_HOUR_MS);
    assert_true(bucket_look(bucket, copy, &object));
    assert_string_equal(object.text, "precious");
    sweep_after(w, 5 * RP_HOUR_MS);
    assert_true(bucket_look(bucket, "a", &object)); /* RESTORE-WINS */
    assert_string_equal(object.text, "precious");
    assert_true(bucket_look(bucket, copy, &object));
    sweep_after(w, 25 * RP_HOUR_MS);
    assert_true(bucket_look(bucket, "a", &object));
    assert_false(bucket_look(bucket, copy, &object));
    assert_int_equal(world_number(w, "SELECT COUNT(*) FROM audit WHERE event = 'object.returned_again'"), 1);
    bucket_free(bucket);
}

/* While it is marked again its copy waits; once that mark is purged, nothing comes back. */
static void test_what_was_marked_again_and_purged_does_not_come_back(void **state)
{
    struct world *w = *state;
    struct bucket *bucket = return_before_a_late_delete(w);
    struct bucket_object object;
    char copy[RP_QUARANTINE_KEY];
    rp_quarantine_key(world_newest(w, "a").id, copy);
    world_mark(w, "a", 3 * RP_DAY_MS);
    bucket_settle(bucket, 0);
    sweep_after(w, 25 * RP_HOUR_MS);
    assert_true(bucket_look(bucket, copy, &object)); /* a restore may still want it */
    assert_false(bucket_look(bucket, "a", &object));
    sweep_after(w, 3 * RP_DAY_MS);
    sweep_after(w, 2 * RP_HOUR_MS);
    assert_false(bucket_look(bucket, "a", &object)); /* erased data does not rise again */
    assert_false(bucket_look(bucket, copy, &object));
    bucket_free(bucket);
}

/* ... and once that mark is reprieved, it comes back: the file would live without bytes. */
static void test_what_was_marked_again_and_restored_comes_back(void **state)
{
    struct world *w = *state;
    struct bucket *bucket = return_before_a_late_delete(w);
    struct bucket_object object;
    world_mark(w, "a", 3 * RP_DAY_MS);
    bucket_settle(bucket, 0);
    sweep_after(w, 25 * RP_HOUR_MS);
    assert_int_equal(world_restore(w, "a").what, RP_REPRIEVE_DONE);
    sweep_after(w, 2 * RP_HOUR_MS);
    assert_true(bucket_look(bucket, "a", &object));
    assert_string_equal(object.text, "precious");
    bucket_free(bucket);
}

/* The URL is used once more, after the object went and before the time of late PUTs is over. */
static void test_a_put_after_the_erasure_is_cleaned_up(void **state)
{
    struct world *w = *state;
    struct world_steps one;
    struct rp_file_command c;
    int64_t id = uploads_live(w, "a", "hello");
    const char *key = uploads_file(w, id).key;
    assert_int_equal(uploads_delete(w, id, 0, &c), 0);
    world_pass(w, RP_SECOND_MS);
    world_steps_begin(w, w->catalog, "lost", &one);
    world_steps_claim(w, w->catalog, &one);
    world_steps_erase(w, w->catalog, &one);
    ok(rp_run_end(w->catalog, &one.run, "failed", &err)); /* it dies before it can finish */
    world_steps_done(&one);
    assert_false(world_exists(w, key));
    world_put(w, key, "hello");
    world_days(w, 4);
    uploads_expect(w, id, RP_FILE_PURGED);
    assert_false(world_exists(w, key)); /* EVENTUAL */
}

static void test_a_put_after_the_move_to_quarantine_is_cleaned_up(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t id = uploads_live(w, "a", "hello");
    const char *key = uploads_file(w, id).key;
    assert_int_equal(uploads_delete(w, id, 0, &c), 0);
    world_pass(w, RP_SECOND_MS);
    assert_int_equal(world_sweep(w)->code, 0);
    assert_false(world_exists(w, key));
    world_put(w, key, "hello");
    world_days(w, 30);
    uploads_expect(w, id, RP_FILE_PURGED);
    assert_false(world_exists(w, key)); /* EVENTUAL */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_a_late_delete_took_comes_back_from_its_copy, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_marked_again_and_purged_does_not_come_back, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_marked_again_and_restored_comes_back, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(test_a_put_after_the_erasure_is_cleaned_up, world_set_up, world_leave),
        cmocka_unit_test_setup_teardown(test_a_put_after_the_move_to_quarantine_is_cleaned_up, world_set_up,
                                        world_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
