/* SPDX-License-Identifier: Apache-2.0 */
/* The fault wrapper when it fails: before the effect and after it, an item and the whole call. */
#include "store_steps.h"

#include "lib/stores.h"

static struct rp_error error;

struct plan {
    const char *call, *key; /* NULL key: the call itself, not one of its items */
    int before, after;
};

static bool hits(const struct plan *plan, const char *call, const char *key)
{
    if (strcmp(call, plan->call) != 0) return false;
    return plan->key && key ? strcmp(plan->key, key) == 0 : plan->key == key;
}

static int fault_before(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    const struct plan *plan = ctx;
    return plan->before && hits(plan, call, key) ? rp_error_set(err, plan->before, "as planned") : 0;
}

static int fault_after(void *ctx, const char *call, const char *key, struct rp_error *err)
{
    const struct plan *plan = ctx;
    return plan->after && hits(plan, call, key) ? rp_error_set(err, plan->after, "as planned") : 0;
}

struct faulty {
    struct rp_backend *inner, *outer;
    struct plan plan;
    struct rp_item items[3];
};

static void faulty_open(struct faulty *f, const struct plan *plan)
{
    const struct rp_backend_fault fault = { fault_before, fault_after, &f->plan };
    static const char *const keys[] = { "a", "b", "c" };
    *f = (struct faulty){ .plan = *plan };
    ok(rp_memory_open(&f->inner, &error));
    ok(rp_backend_fault_wrap(f->inner, &fault, &f->outer, &error));
    for (size_t i = 0; i < 3; i++)
        f->items[i] = (struct rp_item){ .key = keys[i], .identity = put_text(f->inner, keys[i], "x") };
}

static void faulty_close(struct faulty *f)
{
    rp_backend_close(f->outer);
    rp_backend_close(f->inner);
}

static void a_fault_before_an_item_spares_only_that_one(void **state)
{
    struct faulty f;
    (void)state;
    for (int code = 0; code < 2; code++) {
        faulty_open(&f, &(struct plan){ "remove", "b", .before = code ? RP_EDENIED : RP_EUNAVAILABLE });
        ok(rp_backend_remove(f.outer, f.items, 3, NULL, &error));
        assert_int_equal(f.items[0].outcome, RP_OUT_DELETED);
        assert_int_equal(f.items[1].outcome, code ? RP_OUT_DENIED : RP_OUT_RETRY);
        assert_string_equal(f.items[1].note, "as planned");
        assert_int_equal(f.items[2].outcome, RP_OUT_DELETED);
        expect_list(f.inner, "", NULL, "b\n");
        faulty_close(&f);
    }
}

static void a_fault_after_an_item_makes_it_unknown(void **state)
{
    struct faulty f;
    (void)state;
    faulty_open(&f, &(struct plan){ "remove", "b", .after = RP_EUNAVAILABLE });
    ok(rp_backend_remove(f.outer, f.items, 3, NULL, &error));
    assert_int_equal(f.items[0].outcome, RP_OUT_DELETED);
    assert_int_equal(f.items[1].outcome, RP_OUT_UNKNOWN);
    expect_list(f.inner, "", NULL, "");
    faulty_close(&f);
}

static void a_fault_of_the_whole_remove_is_its_return(void **state)
{
    struct faulty f;
    (void)state;
    faulty_open(&f, &(struct plan){ "remove", NULL, .before = RP_EUNAVAILABLE });
    assert_int_equal(rp_backend_remove(f.outer, f.items, 3, NULL, &error), RP_EUNAVAILABLE);
    expect_list(f.inner, "", NULL, "a\nb\nc\n");
    f.plan = (struct plan){ "remove", NULL, .after = RP_EUNAVAILABLE };
    assert_int_equal(rp_backend_remove(f.outer, f.items, 3, NULL, &error), RP_EUNAVAILABLE);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(f.items[i].outcome, RP_OUT_UNKNOWN);
    expect_list(f.inner, "", NULL, "");
    faulty_close(&f);
}

static void a_fault_after_the_effect_leaves_outputs_untouched(void **state)
{
    struct faulty f;
    struct rp_identity out = { .etag = "untouched" };
    (void)state;
    faulty_open(&f, &(struct plan){ "put", "new", .after = RP_EUNKNOWN });
    assert_int_equal(put_bytes(f.outer, "new", "x", 1, NULL, 0, &out, &error), RP_EUNKNOWN);
    assert_string_equal(out.etag, "untouched");
    expect_text(f.inner, "new", "x");
    f.plan = (struct plan){ "copy", "a", .after = RP_EUNKNOWN };
    assert_int_equal(rp_backend_copy(f.outer, "a", &f.items[0].identity, "z", &out, &error), RP_EUNKNOWN);
    assert_string_equal(out.etag, "untouched");
    expect_text(f.inner, "z", "x");
    f.plan = (struct plan){ "get", "a", .before = RP_EUNAVAILABLE };
    assert_int_equal(rp_backend_get(f.outer, "a", NULL, NULL, NULL, &out, &error), RP_EUNAVAILABLE);
    assert_string_equal(out.etag, "untouched");
    faulty_close(&f);
}

/* T9: what a store does not have, its wrapper has not either. */
static void a_wrapped_store_has_no_more_than_it_had(void **state)
{
    const struct rp_backend_fault none = { 0 };
    struct rp_backend *inner, *wrapped;
    char root[64];
    (void)state;
    tree_make(root, sizeof root, "/tmp");
    ok(rp_fs_open(root, false, &inner, &error));
    ok(rp_backend_fault_wrap(inner, &none, &wrapped, &error));
    assert_false(rp_backend_has_clock(wrapped) || rp_backend_has_interrupt(wrapped));
    assert_false(rp_backend_has_presign(wrapped) || rp_backend_has_keys(wrapped));
    assert_true(rp_backend_has_parts(wrapped));
    rp_backend_close(wrapped);
    rp_backend_close(inner);
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_before_an_item_spares_only_that_one),
        cmocka_unit_test(a_fault_after_an_item_makes_it_unknown),
        cmocka_unit_test(a_fault_of_the_whole_remove_is_its_return),
        cmocka_unit_test(a_fault_after_the_effect_leaves_outputs_untouched),
        cmocka_unit_test(a_wrapped_store_has_no_more_than_it_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
