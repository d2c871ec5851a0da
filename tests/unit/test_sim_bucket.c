/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated bucket: what each kind does while nothing fails, and between two requests. What the
 * simulator proves rests on it. */
#include "unit/sim_bucket_world.h"

/* ---- identities ---- */

static void identities_are_those_of_the_kind(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        struct rp_identity a = put_text(w.one, "a", "same"), b = put_text(w.one, "b", "same");
        struct rp_identity again = put_text(w.other, "a", "same");
        bool digests = kind != BUCKET_EXACT, versions = kind == BUCKET_VERSION;
        assert_int_equal(strcmp(a.etag, b.etag) == 0, digests);
        assert_int_equal(strcmp(a.etag, again.etag) == 0, digests);
        assert_int_equal(a.version[0] != '\0', versions);
        assert_int_equal(strcmp(a.version, again.version) < 0, versions);
        assert_int_equal(a.modified_ms, digests ? NOW_MS / 1000 * 1000 : NOW_MS);
        assert_int_equal(rp_identity_equal(&a, &again), digests && !versions);
        assert_int_equal(w.one->ops->now_ms != NULL, digests);
        if (w.one->ops->now_ms != NULL) {
            int64_t clock = 0;
            ok(rp_backend_now_ms(w.one, &clock, &error));
            assert_int_equal(clock, NOW_MS / 1000 * 1000);
        }
        assert_int_equal(w.n_overwritten, versions ? 0 : 1);
        end(&w);
    }
}

static bool add_line(void *ctx, const struct bucket_object *object)
{
    char *text = ctx;
    size_t used = strlen(text);
    snprintf(text + used, 400 - used, "%s=%s\n", object->key, object->text);
    return used < 200;
}

static int is_without_version(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    (void)ctx, (void)err;
    assert_string_equal(entry->identity.version, "");
    assert_int_equal(entry->identity.size_bytes, 1);
    return 0;
}

static void uploads_are_shown_in_order_and_older_versions_first(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        char text[400] = "";
        begin(&w, kind);
        bucket_upload(w.bucket, "b", "1", NOW_MS, NULL);
        bucket_upload(w.bucket, "a/x", "2", NOW_MS, NULL);
        bucket_upload(w.bucket, "b", "3", NOW_MS, NULL);
        bucket_upload(w.bucket, "a", "4", NOW_MS, NULL);
        bucket_upload(w.bucket, "a-", "5", NOW_MS, NULL);
        put_text(w.one, ".reprieve/owner", "6");
        put_text(w.one, ".reprieve", "7");
        bucket_each(w.bucket, add_line, text);
        assert_string_equal(text, kind == BUCKET_VERSION
                                      ? ".reprieve=7\n.reprieve/owner=6\na=4\na-=5\na/x=2\nb=1\nb=3\n"
                                      : ".reprieve=7\n.reprieve/owner=6\na=4\na-=5\na/x=2\nb=3\n");
        expect_list(w.one, NULL, NULL, ".reprieve\na\na-\na/x\nb\n");
        expect_list(w.one, "a", NULL, "a\na-\na/x\n");
        expect_list(w.one, "a", "a-", "a/x\n");
        expect_list(w.one, ".reprieve/", NULL, ".reprieve/owner\n");
        expect_list(w.one, "b", "b", "");
        expect_text(w.one, "b", "3");
        ok(rp_backend_list(w.one, "", NULL, is_without_version, NULL, &error));
        end(&w);
    }
}

static void a_cleared_bucket_is_empty_and_counts_anew(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_VERSION);
    put_text(w.one, "k", "x");
    struct rp_item item = item_of(&w, "k");
    strike(&w, "delete", BUCKET_LATE);
    ok(remove_item(&w, &item));
    assert_int_equal(bucket_late(w.bucket), 1);
    bucket_clear(w.bucket, BUCKET_EXACT);
    assert_int_equal(bucket_late(w.bucket), 0);
    assert_false(bucket_look(w.bucket, "k", NULL));
    assert_int_equal(bucket_counts(w.bucket).requests, 0);
    bucket_aim(w.one, w.bucket);
    assert_null(w.one->ops->now_ms);
    put_text(w.one, "k", "x");
    assert_int_equal(shown(&w, "k").serial, 1);
    end(&w);
}

/* ---- remove, undisturbed ---- */

static void remove_tells_deleted_changed_and_gone_apart(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        struct rp_identity old = put_text(w.one, "k", "old");
        uint64_t serial = shown(&w, "k").serial;
        forget(&w);
        assert_int_equal(remove_one(w.one, "k", &old), RP_OUT_DELETED);
        expect_calls(&w, removal_of(kind));
        assert_int_equal(w.n_gone, 1);
        assert_int_equal(w.gone[0], serial);
        assert_false(bucket_holds(w.bucket, serial));
        assert_int_equal(remove_one(w.one, "k", &old), RP_OUT_GONE);
        put_text(w.one, "k", "newer");
        assert_int_equal(remove_one(w.one, "k", &old), RP_OUT_CHANGED);
        expect_text(w.one, "k", "newer");
        assert_int_equal(w.n_gone, 1);
        end(&w);
    }
}

static void of_two_equal_items_the_second_is_gone(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        put_text(w.one, "k", "old");
        struct rp_item items[] = { item_of(&w, "k"), item_of(&w, "k") };
        ok(rp_backend_remove(w.one, items, 2, NULL, &error));
        assert_int_equal(items[0].outcome, RP_OUT_DELETED);
        assert_int_equal(items[1].outcome, RP_OUT_GONE);
        assert_int_equal(w.n_gone, 1);
        end(&w);
    }
}

static void a_version_goes_with_all_older_ones_newest_last(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_VERSION);
    uint64_t serials[4];
    struct rp_identity marked = { 0 };
    for (int i = 0; i < 4; i++) {
        struct rp_identity made = put_text(w.one, "k", "same");
        if (i == 2) marked = made;
        serials[i] = shown(&w, "k").serial;
    }
    put_text(w.one, "j", "x");
    put_text(w.one, "l", "x");
    assert_int_equal(remove_one(w.one, "k", &marked), RP_OUT_DELETED);
    assert_int_equal(w.n_gone, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(w.gone[i], serials[i]);
    assert_true(bucket_holds(w.bucket, serials[3]));
    assert_int_equal(shown(&w, "k").serial, serials[3]);
    assert_int_equal(remove_one(w.one, "k", &marked), RP_OUT_CHANGED);
    expect_list(w.one, "", NULL, "j\nk\nl\n");
    end(&w);
}

/* A listing names no versions: of those that fit the oldest is meant. */
static void an_identity_without_a_version_means_the_oldest_that_fits(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_VERSION);
    struct rp_identity marked = put_text(w.one, "k", "same");
    put_text(w.one, "k", "same");
    marked.version[0] = '\0';
    assert_int_equal(remove_one(w.one, "k", &marked), RP_OUT_DELETED);
    expect_text(w.one, "k", "same");
    marked.size_bytes++;
    assert_int_equal(remove_one(w.one, "k", &marked), RP_OUT_CHANGED);
    end(&w);
}

static void at_etag_only_the_bytes_count(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_ETAG);
    struct rp_identity marked = put_text(w.one, "k", "same");
    w.now_ms += 60000;
    put_text(w.other, "k", "same");
    assert_int_equal(remove_one(w.one, "k", &marked), RP_OUT_DELETED); /* what remains at this level */
    end(&w);
    begin(&w, BUCKET_WINDOW);
    marked = put_text(w.one, "k", "same");
    w.now_ms += 60000;
    put_text(w.other, "k", "same");
    assert_int_equal(remove_one(w.one, "k", &marked), RP_OUT_CHANGED); /* a look sees the time as well */
    end(&w);
}

/* ---- the time between two requests ---- */

static void other_node_uploads(struct world *w)
{
    put_text(w->other, "k", "newer");
}

static void other_node_removes(struct world *w)
{
    struct rp_identity there = shown(w, "k").identity;
    assert_int_equal(remove_one(w->other, "k", &there), RP_OUT_DELETED);
}

static void an_upload_between_look_and_delete_is_lost_at_window_only(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        struct rp_identity marked = put_text(w.one, "k", "old");
        bool window = kind == BUCKET_WINDOW || kind == BUCKET_LIAR, version = kind == BUCKET_VERSION;
        w.when = "delete";
        w.meanwhile = other_node_uploads;
        assert_int_equal(remove_one(w.one, "k", &marked), window || version ? RP_OUT_DELETED : RP_OUT_CHANGED);
        assert_int_equal(bucket_look(w.bucket, "k", NULL), !window);
        assert_int_equal(w.n_gone, window || version ? 1 : 0);
        end(&w);
    }
}

static void what_another_node_deletes_meanwhile_is_told_once(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        struct rp_identity marked = put_text(w.one, "k", "old");
        bool looked = kind >= BUCKET_VERSION; /* the server says "deleted" of what is away */
        w.when = "delete";
        w.meanwhile = other_node_removes;
        assert_int_equal(remove_one(w.one, "k", &marked), looked ? RP_OUT_DELETED : RP_OUT_GONE);
        assert_int_equal(w.n_gone, 1);
        end(&w);
    }
}

/* ---- probe ---- */

static const enum rp_level level_of[BUCKET_KINDS] = { RP_LEVEL_EXACT, RP_LEVEL_ETAG, RP_LEVEL_VERSION, RP_LEVEL_WINDOW,
                                                      RP_LEVEL_WINDOW };

static void a_probe_finds_what_the_kind_really_does(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w = { .bucket = bucket_new(kind), .now_ms = NOW_MS };
        struct rp_probed probed;
        w.one = handle(&w, false);
        w.other = handle(&w, true);
        ok(rp_backend_probe(w.one, false, &probed, &error));
        assert_int_equal(probed.level, kind == BUCKET_EXACT ? RP_LEVEL_EXACT : RP_LEVEL_WINDOW);
        assert_int_equal(bucket_counts(w.bucket).puts, 0);
        ok(rp_backend_probe(w.one, true, &probed, &error));
        assert_int_equal(probed.level, level_of[kind]);
        assert_int_equal(probed.undeclared, level_of[kind]);
        ok(rp_backend_probe(w.one, false, &probed, &error)); /* what was seen is not forgotten */
        assert_int_equal(probed.level, level_of[kind]);
        ok(rp_backend_probe(w.other, true, &probed, &error));
        assert_int_equal(probed.level, RP_LEVEL_EXACT);
        assert_int_equal(probed.undeclared, level_of[kind]);
        assert_int_equal(bucket_counts(w.bucket).lies, kind == BUCKET_LIAR ? 2 : 0);
        expect_list(w.one, ".reprieve/", NULL, "");
        expect_list(w.one, "", NULL, "");
        end(&w);
    }
}

static void keys_written_once_count_until_one_has_changed(void **state)
{
    struct world w = { .bucket = bucket_new(BUCKET_WINDOW), .now_ms = NOW_MS };
    struct rp_probed probed;
    (void)state;
    w.one = handle(&w, true);
    struct rp_identity old = put_text(w.one, "k", "old");
    put_text(w.one, "k", "newer");
    assert_int_equal(remove_one(w.one, "k", &old), RP_OUT_CHANGED);
    ok(rp_backend_probe(w.one, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    end(&w);
}

static void without_a_probe_of_its_own_a_handle_looks_first(void **state)
{
    struct world w;
    struct rp_probed probed;
    (void)state;
    begin(&w, BUCKET_ETAG);
    rp_backend_close(w.one);
    w.one = handle(&w, false);
    struct rp_identity id = put_text(w.one, "k", "x");
    forget(&w);
    assert_int_equal(remove_one(w.one, "k", &id), RP_OUT_DELETED);
    expect_calls(&w, "head k, delete k");
    ok(rp_backend_probe(w.one, true, &probed, &error));
    put_text(w.one, "k", "x");
    forget(&w);
    assert_int_equal(remove_one(w.one, "k", &id), RP_OUT_DELETED);
    expect_calls(&w, "delete k");
    end(&w);
}

/* Weaker than the truth at most; what is left of the canary goes with a later probe. */
static void disturb_probe(enum bucket_kind kind, const char *call, int spared, enum bucket_fate fate)
{
    struct world w;
    struct rp_probed probed = { .level = RP_LEVEL_WINDOW };
    begin(&w, kind);
    w.strikes = call;
    w.spared = spared;
    w.fate = fate;
    int r = rp_backend_probe(w.one, true, &probed, &error);
    bool lied = fate == BUCKET_FALSE && strcmp(call, "delete") == 0 && w.strikes == NULL;
    assert_true(r <= 0 && probed.level <= level_of[kind]);
    if (lied && kind == BUCKET_ETAG && spared < 2) assert_int_equal(probed.level, RP_LEVEL_WINDOW);
    while (bucket_late(w.bucket) > 0)
        bucket_settle(w.bucket, 0);
    forget(&w);
    w.now_ms += 2 * 3600 * 1000;
    ok(rp_backend_probe(w.one, true, &probed, &error));
    assert_int_equal(probed.level, level_of[kind]);
    expect_list(w.one, ".reprieve/", NULL, "");
    end(&w);
}

static void a_disturbed_probe_never_finds_too_much(void **state)
{
    static const char *const calls[] = { "put", "delete", "head", "probe" };
    (void)state;
    EVERY(kind)
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int spared = 0; spared < 3; spared++)
            for (enum bucket_fate fate = BUCKET_REFUSED; fate <= BUCKET_FALSE; fate++)
                disturb_probe(kind, calls[i], spared, fate);
}

/* ---- the rest ---- */

static void a_handle_can_be_aimed_at_another_bucket(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_ETAG);
    struct bucket *elsewhere = bucket_new(BUCKET_ETAG);
    struct rp_identity id = put_text(w.one, "k", "x");
    bucket_aim(w.one, elsewhere);
    expect_absent(w.one, "k");
    forget(&w);
    assert_int_equal(remove_one(w.one, "k", &id), RP_OUT_GONE);
    expect_calls(&w, "delete k"); /* it still relies on what it saw */
    expect_text(w.other, "k", "x");
    bucket_aim(w.one, w.bucket);
    expect_text(w.one, "k", "x");
    end(&w);
    bucket_free(elsewhere);
}

static void tampering_is_nobodys_request(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct bucket_object made;
        begin(&w, kind);
        bucket_upload(w.bucket, "k", "1", NOW_MS, &made);
        uint64_t first = made.serial;
        bucket_upload(w.bucket, "k", "2", NOW_MS, &made);
        assert_string_equal(made.text, "2");
        assert_int_equal(bucket_holds(w.bucket, first), kind == BUCKET_VERSION);
        assert_true(bucket_remove(w.bucket, "k"));
        assert_int_equal(bucket_remove(w.bucket, "k"), kind == BUCKET_VERSION);
        assert_false(bucket_remove(w.bucket, "k"));
        assert_int_equal(w.n_calls + w.n_gone + w.n_overwritten, 0);
        end(&w);
    }
}

static void requests_are_counted(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_WINDOW);
    struct bucket_counts before = bucket_counts(w.bucket);
    struct rp_identity id = put_text(w.one, "k", "x");
    assert_int_equal(remove_one(w.one, "k", &id), RP_OUT_DELETED);
    struct bucket_counts now = bucket_counts(w.bucket);
    assert_int_equal(now.requests - before.requests, 3);
    assert_int_equal(now.puts - before.puts, 1);
    assert_int_equal(now.deletes - before.deletes, 1);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities_are_those_of_the_kind),
        cmocka_unit_test(uploads_are_shown_in_order_and_older_versions_first),
        cmocka_unit_test(a_cleared_bucket_is_empty_and_counts_anew),
        cmocka_unit_test(remove_tells_deleted_changed_and_gone_apart),
        cmocka_unit_test(of_two_equal_items_the_second_is_gone),
        cmocka_unit_test(a_version_goes_with_all_older_ones_newest_last),
        cmocka_unit_test(an_identity_without_a_version_means_the_oldest_that_fits),
        cmocka_unit_test(at_etag_only_the_bytes_count),
        cmocka_unit_test(an_upload_between_look_and_delete_is_lost_at_window_only),
        cmocka_unit_test(what_another_node_deletes_meanwhile_is_told_once),
        cmocka_unit_test(a_probe_finds_what_the_kind_really_does),
        cmocka_unit_test(keys_written_once_count_until_one_has_changed),
        cmocka_unit_test(without_a_probe_of_its_own_a_handle_looks_first),
        cmocka_unit_test(a_disturbed_probe_never_finds_too_much),
        cmocka_unit_test(a_handle_can_be_aimed_at_another_bucket),
        cmocka_unit_test(tampering_is_nobodys_request),
        cmocka_unit_test(requests_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
