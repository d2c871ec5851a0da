/* SPDX-License-Identifier: Apache-2.0 */
/* What the models (models/) found in the rules, mended since: docs/proof.md, "Models". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../sim/bucket/bucket.h"
#include "core/hold.h"
#include "core/owner/owner.h"
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

/* "a" is moved to quarantine in a bucket that cannot tell identical bytes apart, and returned; a delete of it that was sent before is still under
 * way. */
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

/* The delete takes the object all the same; it comes back from its copy before that is erased, and the copy stays until
 * the object was seen again. */
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

static void test_hold_lists_a_dead_letter(void **state)
{
    struct world *w = *state;
    struct rp_hold_command request = {
        .scope = RP_SCOPE_SUBJECT, .store = &w->store, .key = "a", .reason = "", .command.actor = "test"
    };
    world_put(w, "a", "precious");
    world_mark(w, "a", 0);
    world_script(w, "UPDATE mark SET state = 6, was = 3, next_at = NULL");
    world_script(w, "INSERT INTO dead_letter (id, mark_id, from_state, attempts, error, died_at, open) "
                    "SELECT 1, id, 3, 3, 'no answer', 1, 1 FROM mark");
    ok(ask_hold(w->catalog, &request, &w->arena, &err));
    assert_int_equal(request.claimed.n, 1); /* its purge has begun, and a delete of it may be on its way */
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

/* ---- a catalog and its copy ---- */

/* Both in one database, one of them at a time; what they do not share is in meta. */
static void copy_catalog(struct world *w)
{
    world_script(w, "CREATE TABLE meta_of_copy AS SELECT * FROM meta");
}

static void be_the_other(struct world *w)
{
    world_script(w, "CREATE TABLE meta_aside AS SELECT * FROM meta; DELETE FROM meta; "
                    "INSERT INTO meta SELECT * FROM meta_of_copy; DROP TABLE meta_of_copy; "
                    "ALTER TABLE meta_aside RENAME TO meta_of_copy");
}

static int dies_at_the_record(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    if (key == NULL || strcmp(call, "put") != 0 || strcmp(key, RP_STORE_OWNER) != 0) return 0;
    return rp_error_set(e, RP_EUNAVAILABLE, "died");
}

/* However far it counts by itself. */
static void test_a_copy_that_died_before_its_record_is_stopped_by_the_first_ones(void **state)
{
    struct world *w = *state;
    for (int deaths = 1; deaths <= 3; deaths++) {
        ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
        copy_catalog(w);
        be_the_other(w);
        w->before = dies_at_the_record;
        for (int i = 0; i < deaths; i++)
            assert_int_equal(rp_owner_write(w->catalog, &w->store, "test", false, &err), RP_EUNAVAILABLE);
        w->before = NULL;
        be_the_other(w);
        ok(rp_owner_write(w->catalog, &w->store, "test", false, &err));
        be_the_other(w); /* the copy is as far as the record, or further */
        assert_int_equal(rp_owner_check(w->catalog, &w->store, &err), RP_ENOTOWNER);
        assert_int_equal(rp_owner_write(w->catalog, &w->store, "test", false, &err), RP_ENOTOWNER);
        be_the_other(w);
        world_script(w, "DROP TABLE meta_of_copy");
    }
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
        cmocka_unit_test_setup_teardown(test_hold_lists_a_dead_letter, world_set_up, world_leave),
        cmocka_unit_test_setup_teardown(test_a_copy_that_died_before_its_record_is_stopped_by_the_first_ones,
                                        world_set_up, world_leave)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
