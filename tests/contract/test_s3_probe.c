/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe finds out on a real Ceph gateway, and that it leaves nothing behind. */
#include "s3_steps.h"

#include <pthread.h>

#include "store/s3/probe/probe.h"

static struct rp_error error;

static int plain(void **state)
{
    return open_unprobed(state, S3_BUCKET_PLAIN);
}

static int versioned(void **state)
{
    return open_unprobed(state, S3_BUCKET_VERSIONED);
}

static const struct rp_finding *finding(const struct rp_probed *probed, const char *name)
{
    for (size_t i = 0; i < probed->n_findings; i++)
        if (strcmp(probed->findings[i].name, name) == 0) return &probed->findings[i];
    return NULL;
}

static void expect_finding(const struct rp_probed *probed, const char *name, bool holds, const char *says)
{
    const struct rp_finding *found = finding(probed, name);
    if (found == NULL) fail_msg("no finding '%s'", name);
    print_message("  %-20s %-5s %s\n", found->name, found->holds ? "yes" : "no", found->says);
    assert_int_equal(found->holds, holds);
    if (strstr(found->says, says) == NULL) fail_msg("'%s' does not say '%s'", found->says, says);
}

static void ceph_without_versions_is_a_window_and_nothing_stays(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    put_text(f->backend, "mine", "stays");
    ok(rp_backend_probe(f->backend, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    expect_finding(&probed, "versions", false, "overwritten object is gone");
    expect_finding(&probed, "delete by If-Match", false, "ignored");
    expect_finding(&probed, "delete of many", true, "pays no heed to the etag");
    expect_finding(&probed, "list order", true, "bytes");
    expect_finding(&probed, "list current", true, "at once");
    expect_finding(&probed, "put only if new", true, "keeps");
    expect_finding(&probed, "put by If-Match", true, "without quotes");
    expect_finding(&probed, "copy onto itself", true, "metadata");
    expect_finding(&probed, "copy only if new", false, "ignored");
    expect_finding(&probed, "tags", true, "read back");
    expect_finding(&probed, "signed URLs", true, "refused (403)");
    expect_finding(&probed, "clock", true, "");
    assert_null(finding(&probed, "canary removed"));
    assert_int_equal(versions_in(f, ""), 1);
    expect_text(f->backend, "mine", "stays");
    const struct s3_powers powers = rp_s3_powers(rp_s3_of(f->backend));
    assert_true(powers.probed && powers.multi_delete && powers.list_order && powers.put_new &&
                powers.put_if_match_bare);
    assert_false(powers.single_if_match || powers.multi_etag || powers.versions);
}

static void ceph_with_versions_is_of_level_version_and_nothing_stays(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    put_text(f->backend, "mine", "one");
    put_text(f->backend, "mine", "two");
    ok(rp_backend_probe(f->backend, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_VERSION);
    expect_finding(&probed, "versions", true, "its own version");
    expect_finding(&probed, "delete of many", true, "by id");
    assert_null(finding(&probed, "canary removed"));
    assert_int_equal(versions_in(f, ""), 2);
}

static void versions_that_are_suspended_are_none(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    s3_bucket_versioning(&f->bucket, "Suspended");
    ok(rp_backend_probe(f->backend, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    expect_finding(&probed, "versions", false, "Suspended");
    assert_int_equal(versions_in(f, ""), 0);
}

static void write_once_is_exact_until_a_key_is_seen_to_change(void **state)
{
    struct fixture *f = *state;
    struct rp_s3_options options = f->bucket.options;
    struct rp_probed probed;
    struct rp_backend *s;
    options.write_once = true;
    ok(rp_s3_open(&options, &s, &error));
    ok(rp_backend_probe(s, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_EXACT);
    struct rp_identity old = put_text(s, "k", "old");
    put_text(s, "k", "newer");
    assert_int_equal(remove_one(s, "k", &old), RP_OUT_CHANGED);
    ok(rp_backend_probe(s, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    expect_text(s, "k", "newer");
    rp_backend_close(s);
}

static void open_reader(struct fixture *f, struct rp_backend **out)
{
    struct rp_s3_options options = f->bucket.options;
    const struct rp_pair query = { "policy", "" };
    char policy[1024];
    snprintf(
        policy, sizeof policy,
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{\"AWS\":[\"%s\"]},\"Action\":"
        "[\"s3:GetObject\",\"s3:ListBucket\"],\"Resource\":[\"arn:aws:s3:::%s\",\"arn:aws:s3:::%s/*\"]}]}",
        getenv("RP_TEST_S3_READER_ARN"), f->bucket.name, f->bucket.name);
    int status = s3_bucket_request(&f->bucket, "PUT", NULL, &query, 1, NULL, 0, policy, NULL, 0);
    assert_int_equal(status / 100, 2);
    options.access_key = getenv("RP_TEST_S3_READER_ACCESS");
    options.secret_key = getenv("RP_TEST_S3_READER_SECRET");
    ok(rp_s3_open(&options, out, &error));
}

static void a_key_that_may_only_read_is_enough_to_observe(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    struct rp_backend *reader;
    for (int i = 0; i < 12; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        put_text(f->backend, key, "x");
    }
    open_reader(f, &reader);
    ok(rp_backend_probe(reader, false, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    expect_finding(&probed, "list order", true, "12 keys");
    expect_finding(&probed, "versions", false, "");
    expect_finding(&probed, "clock", true, "");
    assert_int_equal(versions_in(f, ""), 12);
    assert_int_equal(rp_backend_probe(reader, true, &probed, &error), RP_EDENIED);
    assert_non_null(strstr(error.hint, S3_CANARY));
    struct rp_identity id = identity_of(reader, "k0");
    assert_int_equal(remove_one(reader, "k0", &id), RP_OUT_DENIED);
    assert_int_equal(versions_in(f, ""), 12);
    rp_backend_close(reader);
}

static void a_reader_sees_that_a_bucket_keeps_versions(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    ok(rp_backend_probe(f->backend, false, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_VERSION);
    expect_finding(&probed, "versions", true, "by its word");
    assert_int_equal(versions_in(f, ""), 0);
    assert_false(rp_s3_powers(rp_s3_of(f->backend)).probed);
}

static void a_readers_probe_forgets_nothing(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    ok(rp_backend_probe(f->backend, true, &probed, &error));
    ok(rp_backend_probe(f->backend, false, &probed, &error));
    assert_true(rp_s3_powers(rp_s3_of(f->backend)).multi_delete);
}

static void *probe_thread(void *ctx)
{
    struct rp_probed probed = { 0 };
    struct rp_error err = { 0 };
    struct rp_backend *s = ctx;
    for (int i = 0; i < 3; i++)
        if (rp_backend_probe(s, true, &probed, &err) < 0 || probed.level != RP_LEVEL_WINDOW ||
            finding(&probed, "canary removed"))
            return "failed";
    return NULL;
}

static void probers_do_not_disturb_each_other(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, probe_thread, f->backend), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(versions_in(f, ""), 0);
}

/* One that a crash left a moment ago may belong to a probe under way. */
static void a_young_canary_of_another_probe_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    put_text(f->backend, S3_CANARY "0123/k", "of another");
    ok(rp_backend_probe(f->backend, true, &probed, &error));
    expect_text(f->backend, S3_CANARY "0123/k", "of another");
}

static void what_a_crash_left_goes_after_an_hour(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    ok(rp_backend_probe(f->backend, false, &probed, &error));
    struct s3_probe probe = { .s3 = rp_s3_of(f->backend), .powers = rp_s3_powers(rp_s3_of(f->backend)) };
    put_text(f->backend, S3_CANARY "0123/k", "left");
    put_text(f->backend, S3_CANARY "0123/j", "left");
    put_text(f->backend, "mine", "stays");
    assert_true(rp_s3_canary_clear_before(&probe, INT64_MAX));
    assert_int_equal(versions_in(f, ""), 1);
    expect_text(f->backend, "mine", "stays");
}

static void a_store_that_is_not_there_is_an_error_and_not_a_level(void **state)
{
    struct fixture *f = *state;
    struct rp_s3_options options = f->bucket.options;
    struct rp_probed probed;
    struct rp_backend *s;
    options.bucket = "no-such-bucket-anywhere";
    ok(rp_s3_open(&options, &s, &error));
    for (int may_write = 0; may_write < 2; may_write++) {
        assert_int_equal(rp_backend_probe(s, may_write, &probed, &error), RP_ECONFIG);
        assert_non_null(strstr(error.text, "no-such-bucket-anywhere"));
        assert_true(error.hint[0]);
    }
    assert_false(rp_s3_powers(rp_s3_of(s)).probed);
    rp_backend_close(s);
}

#define PLAIN(test)     cmocka_unit_test_setup_teardown(test, plain, close_bucket)
#define VERSIONED(test) cmocka_unit_test_setup_teardown(test, versioned, close_bucket)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN(ceph_without_versions_is_a_window_and_nothing_stays),
        VERSIONED(ceph_with_versions_is_of_level_version_and_nothing_stays),
        VERSIONED(versions_that_are_suspended_are_none),
        PLAIN(write_once_is_exact_until_a_key_is_seen_to_change),
        PLAIN(a_key_that_may_only_read_is_enough_to_observe),
        VERSIONED(a_reader_sees_that_a_bucket_keeps_versions),
        PLAIN(a_readers_probe_forgets_nothing),
        PLAIN(probers_do_not_disturb_each_other),
        PLAIN(a_young_canary_of_another_probe_is_left_alone),
        PLAIN(what_a_crash_left_goes_after_an_hour),
        VERSIONED(what_a_crash_left_goes_after_an_hour),
        PLAIN(a_store_that_is_not_there_is_an_error_and_not_a_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
