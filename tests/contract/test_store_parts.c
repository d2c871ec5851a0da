/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in parts (store.h, T8), against every backend that has them, and against the wrapper that
 * fails. */
#include <pthread.h>

#include "store_backends.h"

static struct rp_object_writer *begin(struct rp_backend *s, const char *key, int flags)
{
    struct rp_object_writer *w = NULL;
    ok(rp_backend_put_open(s, key, NULL, flags, &w, &error));
    assert_ptr_equal(w->backend, s);
    return w;
}

static void add(struct rp_object_writer *w, const char *text)
{
    ok(rp_backend_put_write(w, text, strlen(text), &error));
}

static struct rp_object_reader *begin_reading(struct rp_backend *s, const char *key, struct rp_identity *identity)
{
    struct rp_object_reader *r = NULL;
    ok(rp_backend_get_open(s, key, NULL, NULL, identity, &r, &error));
    assert_ptr_equal(r->backend, s);
    return r;
}

static void expect_part(struct rp_object_reader *r, int64_t offset, size_t n, const char *text)
{
    char got[64];
    assert_true(n <= sizeof got);
    assert_int_equal(rp_backend_get_read(r, offset, got, n, &error), strlen(text));
    assert_memory_equal(got, text, strlen(text));
}

/* Files under a directory store's .reprieve/tmp but the lock; 0 for others. */
static size_t left_over(void **state)
{
    const struct fixture *f = *state;
    char command[160], line[32] = "0";
    if (!f->root[0]) return 0;
    snprintf(command, sizeof command, "find %s/.reprieve/tmp -type f ! -name lock | wc -l", f->root);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof line, out));
    pclose(out);
    return (size_t)strtoul(line, NULL, 10);
}

static void parts_show_whole_with_the_commit(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity made, found;
    struct rp_object_writer *w = begin(s, "dir/k", RP_PUT_NEW);
    add(w, "one ");
    add(w, "");
    expect_absent(s, "dir/k");
    expect_list(s, "", NULL, "");
    add(w, "two");
    expect_absent(s, "dir/k");
    ok(rp_backend_put_commit(w, &made, &error));
    expect_text(s, "dir/k", "one two");
    found = identity_of(s, "dir/k");
    assert_true(rp_identity_equal(&made, &found));
    assert_int_equal(made.size_bytes, 7);
    ok(rp_backend_put_commit(begin(s, "empty", 0), NULL, &error));
    expect_text(s, "empty", "");
    assert_int_equal(left_over(state), 0);
}

static void what_is_aborted_never_was(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity before = put_text(s, "k", "old");
    struct rp_object_writer *w = begin(s, "k", RP_PUT_REPLACE), *other = begin(s, "fresh", RP_PUT_NEW);
    add(w, "new");
    rp_backend_put_abort(w);
    rp_backend_put_abort(other);
    expect_text(s, "k", "old");
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&before, &now));
    expect_list(s, "", NULL, "k\n");
    assert_int_equal(left_over(state), 0);
}

static void metadata_given_at_the_opening_is_kept_by_the_writer(void **state)
{
    struct rp_backend *s = store_of(state);
    char name[] = "content-type", value[] = "image/png", user[] = "a", user_value[] = "b", key[] = "k";
    struct rp_pair header = { name, value }, field = { user, user_value };
    const struct rp_meta meta = { &header, 1, &field, 1 };
    struct rp_object_writer *w = NULL;
    ok(rp_backend_put_open(s, key, &meta, 0, &w, &error));
    memset(name, 'x', sizeof name - 1);
    memset(value, 'x', sizeof value - 1);
    memset(user, 'x', sizeof user - 1);
    key[0] = 'j';
    field = header = (struct rp_pair){ "gone", "gone" };
    ok(rp_backend_put_commit(w, NULL, &error));
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta got = { 0 };
    struct rp_identity identity;
    struct rp_object_reader *r = NULL;
    ok(rp_backend_get_open(s, "k", &arena, &got, &identity, &r, &error));
    rp_backend_get_close(r);
    assert_int_equal(got.n_headers, 1);
    assert_string_equal(got.headers[0].name, "content-type");
    assert_string_equal(got.headers[0].value, "image/png");
    assert_int_equal(got.n_user, 1);
    assert_string_equal(got.user[0].value, "b");
    rp_arena_done(&arena);
}

static void a_new_key_is_refused_early_and_late(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_object_writer *first = begin(s, "k", RP_PUT_NEW), *second = begin(s, "k", RP_PUT_NEW), *third = NULL;
    struct rp_identity untouched = { .etag = "x" };
    add(first, "first");
    add(second, "second");
    ok(rp_backend_put_commit(second, NULL, &error));
    assert_int_equal(rp_backend_put_commit(first, &untouched, &error), RP_EEXISTS);
    assert_string_equal(untouched.etag, "x");
    assert_int_equal(rp_backend_put_open(s, "k", NULL, RP_PUT_NEW, &third, &error), RP_EEXISTS);
    assert_null(third);
    expect_text(s, "k", "second");
    assert_int_equal(left_over(state), 0);
}

static void a_put_over_is_judged_at_its_end(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_identity old = put_text(s, "k", "old");
    struct rp_object_writer *first = begin(s, "k", RP_PUT_OVER), *second = begin(s, "k", RP_PUT_OVER), *third = NULL;
    struct rp_identity over = old, stale = old;
    add(first, "first");
    add(second, "second");
    ok(rp_backend_put_commit(second, &over, &error));
    assert_int_equal(rp_backend_put_commit(first, &stale, &error), RP_ECHANGED);
    assert_true(rp_identity_equal(&stale, &old));
    expect_text(s, "k", "second");
    first = begin(s, "k", RP_PUT_OVER);
    add(first, "first");
    assert_int_equal(remove_one(s, "k", &over), RP_OUT_DELETED);
    assert_int_equal(rp_backend_put_commit(first, &over, &error), RP_ENOTFOUND);
    expect_absent(s, "k");
    assert_int_equal(rp_backend_put_open(s, "k", NULL, RP_PUT_OVER, &third, &error), RP_ENOTFOUND);
    assert_null(third);
    assert_int_equal(left_over(state), 0);
}

static void bad_openings_are_refused(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_object_writer *w = NULL;
    struct rp_object_reader *r = NULL;
    const struct rp_pair header = { "x-unknown", "v" };
    const struct rp_meta meta = { .headers = &header, .n_headers = 1 };
    assert_int_equal(rp_backend_put_open(s, "", NULL, 0, &w, &error), RP_EINVAL);
    assert_int_equal(rp_backend_put_open(s, "k", &meta, 0, &w, &error), RP_EINVAL);
    assert_int_equal(rp_backend_get_open(s, "", NULL, NULL, NULL, &r, &error), RP_EINVAL);
    assert_int_equal(rp_backend_get_open(s, "none", NULL, NULL, NULL, &r, &error), RP_ENOTFOUND);
    assert_null(w);
    assert_null(r);
}

static void any_part_can_be_read_in_any_order(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity made = put_text(s, "k", "0123456789"), found;
    struct rp_object_reader *r = begin_reading(s, "k", &found);
    assert_true(rp_identity_equal(&made, &found));
    expect_part(r, 7, 2, "78");
    expect_part(r, 0, 4, "0123");
    expect_part(r, 8, 64, "89");
    expect_part(r, 10, 64, "");
    expect_part(r, INT64_C(1) << 40, 64, "");
    expect_part(r, 3, 0, "");
    rp_backend_get_close(r);
}

static void a_reader_keeps_what_it_opened(void **state)
{
    struct rp_backend *s = store_of(state);
    put_text(s, "k", "before");
    struct rp_object_reader *r = begin_reading(s, "k", NULL);
    struct rp_identity second = put_text(s, "k", "after!");
    expect_part(r, 0, 64, "before");
    struct rp_object_reader *again = begin_reading(s, "k", NULL);
    assert_int_equal(remove_one(s, "k", &second), RP_OUT_DELETED);
    expect_part(r, 2, 64, "fore");
    expect_part(again, 0, 64, "after!");
    rp_backend_get_close(r);
    rp_backend_get_close(again);
    expect_absent(s, "k");
}

static void *commit_new(void *ctx)
{
    struct rp_object_writer *w = ctx;
    return rp_backend_put_commit(w, NULL, NULL) == 0 ? ctx : NULL;
}

static void of_several_commits_of_a_new_key_exactly_one_wins(void **state)
{
    struct rp_backend *s = store_of(state);
    for (int round = 0; round < 50; round++) {
        struct rp_object_writer *writers[4];
        pthread_t threads[4];
        int winners = 0;
        for (int i = 0; i < 4; i++)
            add(writers[i] = begin(s, "contested", RP_PUT_NEW), "x");
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, commit_new, writers[i]), 0);
        for (int i = 0; i < 4; i++) {
            void *won;
            pthread_join(threads[i], &won);
            winners += won != NULL;
        }
        assert_int_equal(winners, 1);
        struct rp_identity id = identity_of(s, "contested");
        assert_int_equal(remove_one(s, "contested", &id), RP_OUT_DELETED);
    }
    assert_int_equal(left_over(state), 0);
}

/* ---- the wrapper that fails ---- */

struct plan {
    const char *call;
    int before, after;
    int asked;
};

static int plan_before(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    struct plan *plan = ctx;
    if (strcmp(call, plan->call) != 0) return 0;
    assert_string_equal(key, "k");
    plan->asked++;
    return plan->before ? rp_error_set(err, plan->before, "as planned") : 0;
}

static int plan_after(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    struct plan *plan = ctx;
    (void)key;
    return plan->after && strcmp(call, plan->call) == 0 ? rp_error_set(err, plan->after, "as planned") : 0;
}

struct failing {
    struct rp_backend *inner, *outer;
    struct plan plan;
};

static void failing_open(struct failing *f, const struct plan *plan)
{
    *f = (struct failing){ .plan = *plan };
    const struct rp_backend_fault fault = { plan_before, plan_after, &f->plan };
    ok(rp_memory_open(&f->inner, &error));
    ok(rp_backend_fault_wrap(f->inner, &fault, &f->outer, &error));
}

static void failing_close(struct failing *f)
{
    assert_true(f->plan.asked > 0);
    rp_backend_close(f->outer);
    rp_backend_close(f->inner);
}

static int put_in_parts(struct rp_backend *s, struct rp_identity *out)
{
    struct rp_object_writer *w;
    int r = rp_backend_put_open(s, "k", NULL, 0, &w, &error);
    if (r < 0) return r;
    if ((r = rp_backend_put_write(w, "x", 1, &error)) < 0) {
        rp_backend_put_abort(w);
        return r;
    }
    return rp_backend_put_commit(w, out, &error);
}

static void a_fault_in_a_put_shows_nothing_unless_it_comes_after_the_commit(void **state)
{
    static const char *const calls[] = { "put_open", "put_write", "put_commit" };
    struct failing f;
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int late = 0; late < 2; late++) {
            struct rp_identity out = { .etag = "untouched" };
            failing_open(&f, &(struct plan){ .call = calls[i],
                                             .before = late ? 0 : RP_EUNAVAILABLE,
                                             .after = late ? RP_EUNKNOWN : 0 });
            assert_int_equal(put_in_parts(f.outer, &out), late ? RP_EUNKNOWN : RP_EUNAVAILABLE);
            assert_string_equal(out.etag, "untouched");
            expect_list(f.inner, "", NULL, late && i == 2 ? "k\n" : "");
            failing_close(&f);
        }
}

static void a_fault_in_a_get_is_its_answer(void **state)
{
    struct failing f;
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct rp_object_reader *r = NULL;
        char got[4];
        failing_open(&f, &(struct plan){ .call = "get_open",
                                         .before = late ? 0 : RP_EUNAVAILABLE,
                                         .after = late ? RP_EUNKNOWN : 0 });
        put_text(f.inner, "k", "x");
        int want = late ? RP_EUNKNOWN : RP_EUNAVAILABLE;
        assert_int_equal(rp_backend_get_open(f.outer, "k", NULL, NULL, NULL, &r, &error), want);
        assert_null(r);
        f.plan.call = "get_read";
        ok(rp_backend_get_open(f.outer, "k", NULL, NULL, NULL, &r, &error));
        assert_int_equal(rp_backend_get_read(r, 0, got, 1, &error), want);
        rp_backend_get_close(r);
        failing_close(&f);
    }
}

static void a_store_without_parts_stays_without_them_when_it_is_wrapped(void **state)
{
    struct failing f;
    (void)state;
    failing_open(&f, &(struct plan){ .call = "put" });
    const struct rp_backend_ops *whole = f.inner->ops;
    struct rp_backend_ops bare = *whole;
    bare.put_open = NULL;
    const struct rp_backend_fault fault = { plan_before, plan_after, &f.plan };
    struct rp_backend *wrapped;
    f.inner->ops = &bare;
    ok(rp_backend_fault_wrap(f.inner, &fault, &wrapped, &error));
    assert_null(wrapped->ops->put_open);
    assert_null(wrapped->ops->put_commit);
    assert_null(wrapped->ops->get_open);
    assert_non_null(wrapped->ops->put);
    rp_backend_close(wrapped);
    f.inner->ops = whole;
    f.plan.asked = 1;
    failing_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(parts_show_whole_with_the_commit),
        WITH_STORE(what_is_aborted_never_was),
        WITH_STORE(metadata_given_at_the_opening_is_kept_by_the_writer),
        WITH_STORE(a_new_key_is_refused_early_and_late),
        WITH_STORE(a_put_over_is_judged_at_its_end),
        WITH_STORE(bad_openings_are_refused),
        WITH_STORE(any_part_can_be_read_in_any_order),
        WITH_STORE(a_reader_keeps_what_it_opened),
        WITH_STORE(of_several_commits_of_a_new_key_exactly_one_wins),
        cmocka_unit_test(a_fault_in_a_put_shows_nothing_unless_it_comes_after_the_commit),
        cmocka_unit_test(a_fault_in_a_get_is_its_answer),
        cmocka_unit_test(a_store_without_parts_stays_without_them_when_it_is_wrapped),
    };
    ON_EVERY_BACKEND(tests, false);
}
