/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated bucket: each fate of each request, at each kind, and what happens late. */
#include "unit/sim_bucket_world.h"

/* ---- fates of a delete ---- */

struct verdict {
    enum bucket_fate fate;
    enum rp_outcome outcome;
    bool stays;
};

static void each_fate_of_a_delete(void **state)
{
    static const struct verdict verdicts[] = {
        { BUCKET_DONE, RP_OUT_DELETED, false }, { BUCKET_REFUSED, RP_OUT_RETRY, true },
        { BUCKET_DENIED, RP_OUT_DENIED, true }, { BUCKET_LOST, RP_OUT_UNKNOWN, false },
        { BUCKET_LATE, RP_OUT_UNKNOWN, true },  { BUCKET_PARTLY, RP_OUT_DELETED, false },
        { BUCKET_CUT, RP_OUT_RETRY, true },     { BUCKET_FALSE, RP_OUT_DELETED, true },
    };
    (void)state;
    EVERY(kind)
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        struct world w;
        begin(&w, kind);
        put_text(w.one, "k", "bytes");
        struct rp_item item = item_of(&w, "k");
        strike(&w, "delete", verdicts[i].fate);
        ok(remove_item(&w, &item));
        assert_int_equal(item.outcome, verdicts[i].outcome);
        assert_int_equal(bucket_look(w.bucket, "k", NULL), verdicts[i].stays);
        assert_int_equal(w.n_gone, verdicts[i].stays ? 0 : 1);
        assert_int_equal(bucket_late(w.bucket), verdicts[i].fate == BUCKET_LATE);
        end(&w);
    }
}

static void each_fate_of_the_look_before_a_delete(void **state)
{
    static const struct verdict verdicts[] = {
        { BUCKET_REFUSED, RP_OUT_RETRY, true }, { BUCKET_DENIED, RP_OUT_DENIED, true },
        { BUCKET_LOST, RP_OUT_RETRY, true },    { BUCKET_LATE, RP_OUT_RETRY, true },
        { BUCKET_CUT, RP_OUT_RETRY, true },     { BUCKET_FALSE, RP_OUT_DELETED, false },
    };
    (void)state;
    for (enum bucket_kind kind = BUCKET_VERSION; kind < BUCKET_KINDS; kind++)
        for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
            struct world w;
            begin(&w, kind);
            put_text(w.one, "k", "bytes");
            struct rp_item item = item_of(&w, "k");
            strike(&w, kind == BUCKET_VERSION ? "versions" : "head", verdicts[i].fate);
            ok(remove_item(&w, &item));
            assert_int_equal(item.outcome, verdicts[i].outcome);
            assert_int_equal(bucket_look(w.bucket, "k", NULL), verdicts[i].stays);
            assert_int_equal(bucket_late(w.bucket), 0);
            end(&w);
        }
}

static void a_refused_delete_of_many_is_the_calls_own_failure(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct rp_item items[MANY];
        begin(&w, kind);
        make_many(&w, items);
        bucket_remove(w.bucket, "c");
        strike(&w, "delete", BUCKET_REFUSED);
        assert_int_equal(rp_backend_remove(w.one, items, MANY, NULL, &error), RP_EUNAVAILABLE);
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(items[i].outcome, RP_OUT_NONE);
        assert_int_equal(w.n_gone, 0);
        strike(&w, "delete", BUCKET_DENIED);
        ok(rp_backend_remove(w.one, items, MANY, NULL, &error));
        assert_int_equal(items[0].outcome, RP_OUT_DENIED);
        ok(rp_backend_remove(w.one, items, MANY, NULL, &error));
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(items[i].outcome, i == 2 ? RP_OUT_GONE : RP_OUT_DELETED);
        assert_int_equal(w.n_gone, MANY - 1);
        end(&w);
    }
}

static void of_a_partly_answered_delete_every_other_item_is_known(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct rp_item items[MANY];
        size_t happened = 0;
        begin(&w, kind);
        make_many(&w, items);
        strike(&w, "delete", BUCKET_PARTLY);
        ok(rp_backend_remove(w.one, items, MANY, NULL, &error));
        for (size_t i = 0; i < MANY; i++) {
            assert_int_equal(items[i].outcome, i % 2 ? RP_OUT_UNKNOWN : RP_OUT_DELETED);
            bool there = bucket_look(w.bucket, items[i].key, NULL);
            if (i % 2 == 0) assert_false(there);
            happened += i % 2 == 1 && !there;
        }
        assert_int_equal(happened, 2); /* of four: some did, some did not */
        assert_int_equal(w.n_gone, 5 + happened);
        end(&w);
    }
}

static void of_versions_a_partly_answered_delete_takes_the_older_ones_first(void **state)
{
    struct world w;
    struct rp_item items[MANY];
    (void)state;
    begin(&w, BUCKET_VERSION);
    make_many(&w, items);
    uint64_t older = shown(&w, "d").serial;
    make_many(&w, items);
    strike(&w, "delete", BUCKET_PARTLY);
    ok(rp_backend_remove(w.one, items, MANY, NULL, &error));
    assert_int_equal(items[3].outcome, RP_OUT_UNKNOWN);
    assert_true(is_shown(&w, "d", &items[3].identity));
    assert_false(bucket_holds(w.bucket, older));
    assert_int_equal(w.n_gone, 2 * MANY - 2);
    ok(rp_backend_remove(w.one, &items[3], 1, NULL, &error));
    assert_int_equal(items[3].outcome, RP_OUT_DELETED);
    end(&w);
}

/* ---- late ---- */

static struct rp_item send_late(struct world *w)
{
    struct rp_item item = item_of(w, "k");
    w->strikes = "delete";
    w->fate = BUCKET_LATE;
    ok(remove_item(w, &item));
    assert_int_equal(item.outcome, RP_OUT_UNKNOWN);
    assert_int_equal(bucket_late(w->bucket), 1);
    return item;
}

static void a_late_delete_is_judged_when_it_happens(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        put_text(w.one, "k", "old");
        uint64_t old = shown(&w, "k").serial;
        send_late(&w);
        put_text(w.other, "k", "newer");
        uint64_t newer = shown(&w, "k").serial;
        bool window = kind == BUCKET_WINDOW || kind == BUCKET_LIAR;
        assert_int_equal(w.n_gone, 0);
        bucket_settle(w.bucket, 0);
        assert_int_equal(bucket_late(w.bucket), 0);
        assert_int_equal(bucket_holds(w.bucket, newer), !window);
        assert_false(bucket_holds(w.bucket, old));
        assert_int_equal(w.n_gone, window || kind == BUCKET_VERSION ? 1 : 0);
        if (w.n_gone) assert_int_equal(w.gone[0], window ? newer : old);
        assert_int_equal(w.n_overwritten, kind == BUCKET_VERSION ? 0 : 1);
        end(&w);
    }
}

static void a_late_delete_finds_its_object_or_nothing(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        put_text(w.one, "k", "old");
        struct rp_item item = send_late(&w);
        bucket_settle(w.bucket, 0);
        assert_int_equal(w.n_gone, 1);
        assert_false(bucket_look(w.bucket, "k", NULL));
        put_text(w.one, "k", "old");
        item = send_late(&w);
        assert_int_equal(remove_one(w.other, "k", &item.identity), RP_OUT_DELETED);
        bucket_settle(w.bucket, 0);
        assert_int_equal(w.n_gone, 2);
        end(&w);
    }
}

/* Its ids were named before: what came since is not among them, also if it looks the same. */
static void a_late_delete_of_versions_names_them(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_VERSION);
    put_text(w.one, "k", "same");
    put_text(w.one, "k", "same");
    send_late(&w);
    put_text(w.other, "k", "same");
    uint64_t newest = shown(&w, "k").serial;
    bucket_settle(w.bucket, 0);
    assert_int_equal(w.n_gone, 2);
    assert_true(bucket_holds(w.bucket, newest));
    end(&w);
}

static void of_too_many_late_requests_the_oldest_never_happen(void **state)
{
    struct world w;
    char keys[70][16];
    (void)state;
    begin(&w, BUCKET_EXACT);
    for (int i = 0; i < 70; i++) {
        snprintf(keys[i], sizeof keys[i], "k%02d", i);
        put_text(w.one, keys[i], "x");
        struct rp_item item = item_of(&w, keys[i]);
        strike(&w, "delete", BUCKET_LATE);
        ok(remove_item(&w, &item));
    }
    assert_int_equal(bucket_late(w.bucket), 64);
    bucket_settle(w.bucket, 1);
    assert_false(bucket_look(w.bucket, "k07", NULL));
    while (bucket_late(w.bucket) > 0)
        bucket_settle(w.bucket, bucket_late(w.bucket) - 1);
    assert_int_equal(w.n_gone, 64);
    expect_list(w.one, "", NULL, "k00\nk01\nk02\nk03\nk04\nk05\n");
    end(&w);
}

/* The node that sent it has started anew since. */
static void a_late_request_outlives_its_handle(void **state)
{
    struct world w;
    (void)state;
    begin(&w, BUCKET_ETAG);
    put_text(w.one, "k", "old");
    send_late(&w);
    rp_backend_close(w.one);
    w.one = handle(&w, false);
    bucket_settle(w.bucket, 0);
    assert_int_equal(w.n_gone, 1);
    end(&w);
}

/* ---- put, get, stat, list ---- */

static int put_k(struct world *w, int flags, struct rp_identity *out)
{
    error = (struct rp_error){ 0 };
    return put_bytes(w->one, "k", "put", 3, NULL, flags, out, &error);
}

static void each_fate_of_a_put(void **state)
{
    static const struct {
        enum bucket_fate fate;
        int code;
        bool there, later;
    } verdicts[] = {
        { BUCKET_DONE, 0, true, true },
        { BUCKET_REFUSED, RP_EUNAVAILABLE, false, false },
        { BUCKET_DENIED, RP_EDENIED, false, false },
        { BUCKET_LOST, RP_EUNKNOWN, true, true },
        { BUCKET_LATE, RP_EUNKNOWN, false, true },
        { BUCKET_PARTLY, 0, true, true },
        { BUCKET_CUT, RP_EUNAVAILABLE, false, false },
        { BUCKET_FALSE, 0, true, true },
    };
    (void)state;
    EVERY(kind)
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        struct world w;
        struct rp_identity out = { .size_bytes = -1 };
        begin(&w, kind);
        strike(&w, "put", verdicts[i].fate);
        assert_int_equal(put_k(&w, RP_PUT_NEW, &out), verdicts[i].code);
        assert_int_equal(error.code, verdicts[i].code);
        assert_int_equal(out.size_bytes, verdicts[i].code ? -1 : 3);
        assert_int_equal(bucket_look(w.bucket, "k", NULL), verdicts[i].there);
        while (bucket_late(w.bucket) > 0)
            bucket_settle(w.bucket, 0);
        assert_int_equal(bucket_look(w.bucket, "k", NULL), verdicts[i].later);
        end(&w);
    }
}

static void put_new_does_not_overwrite_now_or_late(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        strike(&w, "put", BUCKET_LATE);
        assert_int_equal(put_k(&w, RP_PUT_NEW, NULL), RP_EUNKNOWN);
        bucket_upload(w.bucket, "k", "theirs", NOW_MS, NULL);
        uint64_t theirs = shown(&w, "k").serial;
        assert_int_equal(put_k(&w, RP_PUT_NEW, NULL), RP_EEXISTS);
        bucket_settle(w.bucket, 0);
        assert_int_equal(shown(&w, "k").serial, theirs);
        assert_int_equal(w.n_overwritten, 0);
        strike(&w, "put", BUCKET_LATE);
        assert_int_equal(put_k(&w, RP_PUT_REPLACE, NULL), RP_EUNKNOWN);
        bucket_settle(w.bucket, 0);
        assert_string_equal(shown(&w, "k").text, "put");
        assert_int_equal(bucket_holds(w.bucket, theirs), kind == BUCKET_VERSION);
        assert_int_equal(w.n_overwritten, kind == BUCKET_VERSION ? 0 : 1);
        end(&w);
    }
}

/* Where there is no condition, what is late overwrites whatever stands there: that is what
 * remains. */
static void put_over_replaces_only_what_it_names_now_or_late(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct bucket_object first;
        bool window = kind == BUCKET_WINDOW || kind == BUCKET_LIAR;
        begin(&w, kind);
        bucket_upload(w.bucket, "k", "first", NOW_MS, &first);
        struct rp_identity over = first.identity, stale = first.identity;
        uint64_t requests = bucket_counts(w.bucket).requests;
        assert_int_equal(put_k(&w, RP_PUT_OVER, &over), 0);
        assert_int_equal(bucket_counts(w.bucket).requests - requests, window ? 2 : 1);
        assert_int_equal(put_k(&w, RP_PUT_OVER, &stale), RP_ECHANGED);
        assert_string_equal(shown(&w, "k").text, "put");
        strike(&w, "put", BUCKET_LATE);
        assert_int_equal(put_k(&w, RP_PUT_OVER, &over), RP_EUNKNOWN);
        bucket_upload(w.bucket, "k", "theirs", NOW_MS, NULL);
        bucket_settle(w.bucket, 0);
        assert_string_equal(shown(&w, "k").text, window ? "put" : "theirs");
        while (bucket_remove(w.bucket, "k"))
            ;
        assert_int_equal(put_k(&w, RP_PUT_OVER, &over), RP_ENOTFOUND);
        assert_false(bucket_look(w.bucket, "k", NULL));
        end(&w);
    }
}

static int64_t fail_to_read(void *ctx, void *to, size_t n, struct rp_error *err)
{
    (void)ctx, (void)to, (void)n;
    return rp_error_set(err, RP_EBUSY, "enough");
}

static void a_broken_or_long_upload_is_never_sent(void **state)
{
    struct world w;
    char text[2000];
    (void)state;
    begin(&w, BUCKET_ETAG);
    const struct rp_source broken = { fail_to_read, NULL };
    memset(text, 'x', sizeof text);
    assert_int_equal(rp_backend_put(w.one, "k", &broken, NULL, 0, NULL, &error), RP_EBUSY);
    assert_int_equal(put_bytes(w.one, "k", text, sizeof text, NULL, 0, NULL, &error), RP_ETOOBIG);
    assert_int_equal(w.n_calls, 0);
    put_text(w.one, "k", "");
    expect_text(w.one, "k", "");
    end(&w);
}

static void reads_fail_without_doubt(void **state)
{
    static const enum bucket_fate fates[] = { BUCKET_REFUSED, BUCKET_DENIED, BUCKET_LOST, BUCKET_LATE };
    (void)state;
    for (size_t i = 0; i < sizeof fates / sizeof *fates; i++) {
        struct world w;
        struct rp_item items[MANY];
        begin(&w, BUCKET_WINDOW);
        make_many(&w, items);
        int code = fates[i] == BUCKET_DENIED ? RP_EDENIED : RP_EUNAVAILABLE;
        strike(&w, "get", fates[i]);
        assert_int_equal(rp_backend_get(w.one, "a", NULL, NULL, NULL, NULL, &error), code);
        strike(&w, "clock", fates[i]);
        int64_t clock;
        assert_int_equal(rp_backend_now_ms(w.one, &clock, &error), code);
        strike(&w, "head", fates[i]);
        ok(rp_backend_stat(w.one, items, 1, &error));
        assert_int_equal(items[0].outcome, code == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_RETRY);
        strike(&w, "head", fates[i]);
        assert_int_equal(rp_backend_stat(w.one, items, MANY, &error), code == RP_EDENIED ? 0 : code);
        assert_int_equal(items[1].outcome, code == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_NONE);
        strike(&w, "list", fates[i]);
        struct listing l = { .text = RP_BUF(4096) };
        assert_int_equal(rp_backend_list(w.one, "", NULL, listing_add, &l, &error), code);
        assert_int_equal(l.n, 0);
        rp_buf_done(&l.text);
        assert_int_equal(bucket_late(w.bucket), 0);
        end(&w);
    }
}

static void a_listing_that_is_cut_says_so(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct rp_item items[MANY];
        struct listing l = { .text = RP_BUF(4096) };
        begin(&w, kind);
        make_many(&w, items);
        make_many(&w, items);
        strike(&w, "list", BUCKET_CUT);
        assert_int_equal(rp_backend_list(w.one, "", NULL, listing_add, &l, &error), RP_EUNAVAILABLE);
        assert_string_equal(rp_buf_text(&l.text), "a\nb\nc\nd\n");
        rp_buf_done(&l.text);
        end(&w);
    }
}

static int remove_each(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    (void)err;
    assert_int_equal(remove_one(ctx, entry->key, &entry->identity), RP_OUT_DELETED);
    return 0;
}

static void what_is_listed_can_be_removed_meanwhile(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct rp_item items[MANY];
        begin(&w, kind);
        make_many(&w, items);
        ok(rp_backend_list(w.one, "", NULL, remove_each, w.one, &error));
        expect_list(w.one, "", NULL, "");
        assert_int_equal(w.n_gone, MANY);
        end(&w);
    }
}

/* ---- copy and annotate ---- */

#define ASIDE RP_STORE_QUARANTINE "m"

static int copy_k(struct world *w, const struct rp_identity *expected, struct rp_identity *out)
{
    error = (struct rp_error){ 0 };
    return rp_backend_copy(w->one, "k", expected, ASIDE, out, &error);
}

static void a_copy_keeps_both_conditions(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct rp_identity made;
        begin(&w, kind);
        struct rp_identity old = put_text(w.one, "k", "old");
        ok(copy_k(&w, &old, &made));
        expect_text(w.one, ASIDE, "old");
        assert_true(is_shown(&w, ASIDE, &made));
        assert_true(shown(&w, ASIDE).serial > shown(&w, "k").serial);
        assert_int_equal(copy_k(&w, &old, NULL), RP_EEXISTS);
        bucket_remove(w.bucket, ASIDE);
        put_text(w.one, "k", "newer");
        assert_int_equal(copy_k(&w, &old, NULL), RP_ECHANGED);
        while (bucket_remove(w.bucket, "k"))
            ;
        assert_int_equal(copy_k(&w, &old, NULL), RP_ENOTFOUND);
        end(&w);
    }
}

static void each_fate_of_a_copy(void **state)
{
    static const struct {
        enum bucket_fate fate;
        int code;
        bool there;
    } verdicts[] = {
        { BUCKET_REFUSED, RP_EUNAVAILABLE, false },
        { BUCKET_DENIED, RP_EDENIED, false },
        { BUCKET_LOST, RP_EUNKNOWN, true },
        { BUCKET_LATE, RP_EUNKNOWN, false },
    };
    (void)state;
    EVERY(kind)
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        struct world w;
        begin(&w, kind);
        struct rp_identity old = put_text(w.one, "k", "old");
        strike(&w, "copy", verdicts[i].fate);
        assert_int_equal(copy_k(&w, &old, NULL), verdicts[i].code);
        assert_int_equal(bucket_look(w.bucket, ASIDE, NULL), verdicts[i].there);
        bool late = bucket_late(w.bucket) > 0;
        if (late) bucket_settle(w.bucket, 0);
        assert_int_equal(bucket_look(w.bucket, ASIDE, NULL), verdicts[i].there || late);
        end(&w);
    }
}

static void a_late_copy_is_judged_when_it_happens(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        struct rp_identity old = put_text(w.one, "k", "old");
        strike(&w, "copy", BUCKET_LATE);
        assert_int_equal(copy_k(&w, &old, NULL), RP_EUNKNOWN);
        put_text(w.one, "k", "newer");
        bucket_settle(w.bucket, 0);
        assert_false(bucket_look(w.bucket, ASIDE, NULL));
        end(&w);
    }
}

static const struct rp_pair fields[] = { { "marked_for_deletion", "true" }, { "deletion_reason", "old" } };
static const struct rp_pair no_fields[] = { { "marked_for_deletion", NULL }, { "deletion_reason", NULL } };

static void expect_user(struct rp_backend *s, const char *key, const char *expected)
{
    struct rp_arena arena = RP_ARENA(1 << 16);
    struct rp_meta meta;
    char text[400] = "";
    ok(rp_backend_get(s, key, NULL, &arena, &meta, NULL, &error));
    for (size_t i = 0; i < meta.n_headers; i++)
        snprintf(text + strlen(text), 200, "%s: %s;", meta.headers[i].name, meta.headers[i].value);
    for (size_t i = 0; i < meta.n_user; i++)
        snprintf(text + strlen(text), 200, "%s=%s;", meta.user[i].name, meta.user[i].value);
    assert_string_equal(text, expected);
    rp_arena_done(&arena);
}

static void annotations_lie_beside_and_travel_with_a_copy(void **state)
{
    const struct rp_pair header = { "content-type", "text/plain" }, user = { "by", "ann" }, other = { "by", "bob" };
    const struct rp_meta meta = { &header, 1, &user, 1 };
    (void)state;
    EVERY(kind)
    {
        struct world w;
        struct rp_identity id, before;
        begin(&w, kind);
        ok(put_bytes(w.one, "k", "x", 1, &meta, 0, &id, &error));
        before = id;
        ok(rp_backend_annotate(w.one, "k", &id, fields, 2, &error));
        assert_true(rp_identity_equal(&id, &before));
        assert_true(is_shown(&w, "k", &id));
        expect_user(w.one, "k", "content-type: text/plain;by=ann;marked_for_deletion=true;deletion_reason=old;");
        ok(copy_k(&w, &id, NULL));
        expect_user(w.one, ASIDE, "content-type: text/plain;by=ann;marked_for_deletion=true;deletion_reason=old;");
        ok(rp_backend_annotate(w.one, "k", &id, no_fields, 2, &error));
        expect_user(w.one, "k", "content-type: text/plain;by=ann;");
        int r = rp_backend_annotate(w.one, "k", &id, &other, 1, &error);
        assert_int_equal(r, kind == BUCKET_EXACT ? 0 : RP_EINVAL);
        id.size_bytes++;
        assert_int_equal(rp_backend_annotate(w.one, "k", &id, fields, 2, &error), RP_ECHANGED);
        assert_int_equal(rp_backend_annotate(w.one, "no", &id, fields, 2, &error), RP_ENOTFOUND);
        end(&w);
    }
}

static void each_fate_of_an_annotation(void **state)
{
    (void)state;
    EVERY(kind)
    {
        struct world w;
        begin(&w, kind);
        struct rp_identity id = put_text(w.one, "k", "x");
        strike(&w, "annotate", BUCKET_REFUSED);
        assert_int_equal(rp_backend_annotate(w.one, "k", &id, fields, 2, &error), RP_EUNAVAILABLE);
        expect_user(w.one, "k", "");
        strike(&w, "annotate", BUCKET_LATE);
        assert_int_equal(rp_backend_annotate(w.one, "k", &id, fields, 1, &error), RP_EUNKNOWN);
        expect_user(w.one, "k", "");
        bucket_settle(w.bucket, 0);
        expect_user(w.one, "k", "marked_for_deletion=true;");
        strike(&w, "annotate", BUCKET_LOST);
        assert_int_equal(rp_backend_annotate(w.one, "k", &id, no_fields, 2, &error), RP_EUNKNOWN);
        expect_user(w.one, "k", "");
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fate_of_a_delete),
        cmocka_unit_test(each_fate_of_the_look_before_a_delete),
        cmocka_unit_test(a_refused_delete_of_many_is_the_calls_own_failure),
        cmocka_unit_test(of_a_partly_answered_delete_every_other_item_is_known),
        cmocka_unit_test(of_versions_a_partly_answered_delete_takes_the_older_ones_first),
        cmocka_unit_test(a_late_delete_is_judged_when_it_happens),
        cmocka_unit_test(a_late_delete_finds_its_object_or_nothing),
        cmocka_unit_test(a_late_delete_of_versions_names_them),
        cmocka_unit_test(of_too_many_late_requests_the_oldest_never_happen),
        cmocka_unit_test(a_late_request_outlives_its_handle),
        cmocka_unit_test(each_fate_of_a_put),
        cmocka_unit_test(put_new_does_not_overwrite_now_or_late),
        cmocka_unit_test(put_over_replaces_only_what_it_names_now_or_late),
        cmocka_unit_test(a_broken_or_long_upload_is_never_sent),
        cmocka_unit_test(reads_fail_without_doubt),
        cmocka_unit_test(a_listing_that_is_cut_says_so),
        cmocka_unit_test(what_is_listed_can_be_removed_meanwhile),
        cmocka_unit_test(a_copy_keeps_both_conditions),
        cmocka_unit_test(each_fate_of_a_copy),
        cmocka_unit_test(a_late_copy_is_judged_when_it_happens),
        cmocka_unit_test(annotations_lie_beside_and_travel_with_a_copy),
        cmocka_unit_test(each_fate_of_an_annotation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
