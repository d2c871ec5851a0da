/* SPDX-License-Identifier: Apache-2.0 */
/* Hiding objects of a real Ceph gateway under delete markers, and showing them again: what users do
 * between our look and our delete, answers that are lost, and markers that others made. */
#include "s3_steps.h"

#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/erase.h"

static struct rp_error error;

/* ---- what comes between ---- */

/* Of the next deletes without a version: what happens before and after them, whether they are
 * carried out, and what the store hears of them. */
static struct between {
    void (*before)(struct fixture *f), (*after)(struct fixture *f);
    struct fixture *f;
    bool swallowed, unknown;
    int sent;
} between;

int __real_rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, const struct rp_gate *gate,
                       struct rp_error *err);
int __wrap_rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, const struct rp_gate *gate,
                       struct rp_error *err);
int __wrap_rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, const struct rp_gate *gate,
                       struct rp_error *err)
{
    if (by != S3_BY_KEY) return __real_rp_s3_erase(s3, items, n, by, gate, err);
    between.sent++;
    if (between.before != NULL) between.before(between.f);
    int r = between.swallowed ? 0 : __real_rp_s3_erase(s3, items, n, by, gate, err);
    for (size_t i = 0; i < n && between.unknown; i++)
        items[i].outcome = RP_OUT_UNKNOWN;
    if (between.after != NULL) between.after(between.f);
    return r;
}

static int open_quiet(void **state)
{
    between = (struct between){ 0 };
    int r = open_versioned(state);
    between.sent = 0; /* the probe has deleted its own */
    return r;
}

/* ---- steps ---- */

static const int64_t no_earlier[] = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };

static enum rp_outcome hide_since(struct fixture *f, const char *key, const struct rp_identity *id, int64_t since_ms)
{
    struct rp_item item = { .key = key, .identity = *id };
    ok(rp_backend_hide(f->backend, &item, &since_ms, 1, NULL, &error));
    return item.outcome;
}

/* As a first attempt does. */
static enum rp_outcome hide(struct fixture *f, const char *key, const struct rp_identity *id)
{
    return hide_since(f, key, id, INT64_MAX);
}

static int show(struct fixture *f, const char *key, const struct rp_identity *id, bool *made)
{
    return rp_backend_show(f->backend, key, id, made, &error);
}

/* A HEAD like anybody's. */
static void expect_hidden(struct fixture *f, const char *key)
{
    assert_int_equal(s3_bucket_request(&f->bucket, "HEAD", key, NULL, 0, NULL, 0, NULL, NULL, 0), 404);
}

/* A user's own. */
static void delete_plainly(struct fixture *f, const char *key)
{
    assert_int_equal(s3_bucket_request(&f->bucket, "DELETE", key, NULL, 0, NULL, 0, NULL, NULL, 0), 204);
}

static void upload_newer(struct fixture *f)
{
    put_text(f->backend, "k", "newer");
}

static void upload_and_delete_newer(struct fixture *f)
{
    put_text(f->backend, "k", "newer");
    delete_plainly(f, "k");
}

/* ---- tests ---- */

static void what_is_hidden_lies_there_and_is_shown_again(void **state)
{
    struct fixture *f = *state;
    bool made = true;
    put_text(f->backend, "k", "older");
    struct rp_identity id = put_text(f->backend, "k", "bytes");
    assert_true(rp_backend_hides(f->backend));
    assert_int_equal(hide(f, "k", &id), RP_OUT_FOUND);
    expect_hidden(f, "k");
    assert_int_equal(versions_in(f, "k"), 3);
    assert_int_equal(hide(f, "k", &id), RP_OUT_FOUND);
    assert_int_equal(versions_in(f, "k"), 3); /* no second marker */
    assert_int_equal(between.sent, 1);
    ok(show(f, "k", &id, &made));
    assert_true(made);
    expect_text(f->backend, "k", "bytes");
    assert_int_equal(versions_in(f, "k"), 2);
    ok(show(f, "k", &id, &made));
    assert_false(made);
    assert_int_equal(hide(f, "k", &id), RP_OUT_FOUND);
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_DELETED);
    assert_int_equal(versions_in(f, "k"), 0);
    assert_int_equal(hide(f, "k", &id), RP_OUT_GONE);
    assert_int_equal(show(f, "k", &id, &made), RP_ENOTFOUND);
}

static void each_of_many_gets_its_own_answer(void **state)
{
    struct fixture *f = *state;
    struct rp_identity stays = put_text(f->backend, "a", "1"), changes = put_text(f->backend, "aa", "2");
    struct rp_identity goes = put_text(f->backend, "b", "3"), hidden = put_text(f->backend, "c", "4");
    put_text(f->backend, "aa", "newer");
    put_text(f->backend, "aaa", "a neighbour");
    delete_plainly(f, "c");
    assert_int_equal(remove_one(f->backend, "b", &goes), RP_OUT_DELETED);
    struct rp_item items[] = { { .key = "c", .identity = hidden },
                               { .key = "a", .identity = stays },
                               { .key = "b", .identity = goes },
                               { .key = "aa", .identity = changes } };
    ok(rp_backend_hide(f->backend, items, no_earlier, 4, NULL, &error));
    assert_int_equal(items[0].outcome, RP_OUT_FOUND);
    assert_int_equal(items[1].outcome, RP_OUT_FOUND);
    assert_int_equal(items[2].outcome, RP_OUT_GONE);
    assert_int_equal(items[3].outcome, RP_OUT_CHANGED);
    expect_hidden(f, "a");
    expect_text(f->backend, "aa", "newer");
    expect_text(f->backend, "aaa", "a neighbour");
    assert_int_equal(versions_in(f, "c"), 2); /* its user's marker was enough */
}

/* A DELETE without a version hides whatever is newest when it arrives. */
static void an_upload_before_our_delete_shows_itself_again(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id = put_text(f->backend, "k", "bytes");
    between = (struct between){ .before = upload_newer, .f = f };
    assert_int_equal(hide(f, "k", &id), RP_OUT_CHANGED);
    expect_text(f->backend, "k", "newer");
    assert_int_equal(versions_in(f, "k"), 2);
    struct rp_identity other = put_text(f->backend, "k", "newest");
    between.unknown = true;
    assert_int_equal(hide(f, "k", &other), RP_OUT_CHANGED);
    expect_text(f->backend, "k", "newer");
}

/* Its user wants it hidden, and has made the only marker on it: Ceph makes none on another one. A
 * server that has told of its markers tells of each. */
static void an_upload_that_its_user_has_deleted_stays_so(void **state)
{
    struct fixture *f = *state;
    struct rp_item items[] = { { .key = "k", .identity = put_text(f->backend, "k", "bytes") },
                               { .key = "other", .identity = put_text(f->backend, "other", "bytes") } };
    between = (struct between){ .before = upload_and_delete_newer, .f = f };
    ok(rp_backend_hide(f->backend, items, no_earlier, 2, NULL, &error));
    assert_int_equal(items[0].outcome, RP_OUT_CHANGED);
    assert_int_equal(items[1].outcome, RP_OUT_FOUND);
    expect_hidden(f, "k");
    struct rp_identity newest = put_text(f->backend, "k", "newest");
    between = (struct between){ .after = upload_and_delete_newer, .f = f };
    assert_int_equal(hide(f, "k", &newest), RP_OUT_CHANGED);
    expect_hidden(f, "k");
}

static void an_answer_that_is_lost_is_looked_up(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id = put_text(f->backend, "k", "bytes");
    between = (struct between){ .swallowed = true, .unknown = true };
    assert_int_equal(hide(f, "k", &id), RP_OUT_UNKNOWN);
    expect_text(f->backend, "k", "bytes");
    between = (struct between){ .unknown = true };
    assert_int_equal(hide(f, "k", &id), RP_OUT_FOUND);
    expect_hidden(f, "k");
}

/* The marker of an attempt that nobody saw the end of came late, and lies on what was uploaded
 * meanwhile. What was uploaded and deleted before that attempt is its user's. */
static void a_late_marker_of_ours_goes_and_a_users_own_stays(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id = put_text(f->backend, "k", "bytes");
    struct rp_identity newer = put_text(f->backend, "k", "newer");
    delete_plainly(f, "k");
    assert_int_equal(hide_since(f, "k", &id, INT64_MAX), RP_OUT_CHANGED);
    expect_hidden(f, "k");
    assert_int_equal(hide_since(f, "k", &id, newer.modified_ms + RP_MINUTE_MS), RP_OUT_CHANGED);
    expect_hidden(f, "k");
    assert_int_equal(hide_since(f, "k", &id, newer.modified_ms), RP_OUT_CHANGED);
    expect_text(f->backend, "k", "newer");
    assert_int_equal(between.sent, 0);
    assert_int_equal(versions_in(f, "k"), 2);
}

static void nothing_is_shown_below_something_newer(void **state)
{
    struct fixture *f = *state;
    bool made = true;
    struct rp_identity id = put_text(f->backend, "k", "bytes");
    assert_int_equal(hide(f, "k", &id), RP_OUT_FOUND);
    upload_newer(f);
    assert_int_equal(show(f, "k", &id, &made), RP_EEXISTS);
    delete_plainly(f, "k");
    assert_int_equal(show(f, "k", &id, &made), RP_EEXISTS);
    assert_false(made);
    expect_hidden(f, "k");
    assert_int_equal(versions_in(f, "k"), 4);
}

static bool is_shut(void *ctx)
{
    (void)ctx;
    return false;
}

static void behind_a_shut_gate_nothing_is_sent(void **state)
{
    struct fixture *f = *state;
    const struct rp_gate gate = { .is_open = is_shut };
    struct rp_item item = { .key = "k", .identity = put_text(f->backend, "k", "bytes") };
    ok(rp_backend_hide(f->backend, &item, no_earlier, 1, &gate, &error));
    assert_int_equal(item.outcome, RP_OUT_NONE);
    assert_int_equal(between.sent, 0);
    expect_text(f->backend, "k", "bytes");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_quiet, close_bucket)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_hidden_lies_there_and_is_shown_again),
        TEST(each_of_many_gets_its_own_answer),
        TEST(an_upload_before_our_delete_shows_itself_again),
        TEST(an_upload_that_its_user_has_deleted_stays_so),
        TEST(an_answer_that_is_lost_is_looked_up),
        TEST(a_late_marker_of_ours_goes_and_a_users_own_stays),
        TEST(nothing_is_shown_below_something_newer),
        TEST(behind_a_shut_gate_nothing_is_sent),
    };
    return cmocka_run_group_tests_name("s3_hide", tests, NULL, NULL);
}
