/* SPDX-License-Identifier: Apache-2.0 */
/* Removing from a real Ceph gateway, by version and by looking first: exactly what was marked, and
 * the truth about it. */
#include "s3_steps.h"

#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/look.h"
#include "store/s3/remove.h"

static struct rp_error error;

static void set_powers(struct rp_backend *s, void (*change)(struct s3_powers *powers))
{
    struct rp_s3 *s3 = rp_s3_of(s);
    pthread_mutex_lock(&s3->lock);
    change(&s3->powers);
    pthread_mutex_unlock(&s3->lock);
}

static void no_lists(struct s3_powers *powers)
{
    powers->list_order = powers->list_current = false;
}

static void no_multi(struct s3_powers *powers)
{
    powers->multi_delete = false;
}

/* ---- many objects at once ---- */

#define KEY_BYTES 48
struct objects {
    char (*keys)[KEY_BYTES];
    struct rp_identity *identities;
    size_t n;
};

static int take_entry(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    struct objects *o = ctx;
    (void)err;
    snprintf(o->keys[o->n], KEY_BYTES, "%s", entry->key);
    o->identities[o->n++] = entry->identity;
    return 0;
}

/* In two strokes: all of them are written at once, beside each other, and one listing tells what
 * they are. */
static void put_many(struct fixture *f, struct objects *objects, const char *prefix, size_t n)
{
    *objects = (struct objects){ calloc(n, KEY_BYTES), calloc(n, sizeof(struct rp_identity)), 0 };
    s3_bucket_fill(&f->bucket, prefix, n);
    ok(rp_backend_list(f->backend, prefix, NULL, take_entry, objects, &error));
    assert_int_equal(objects->n, n);
}

static void objects_done(struct objects *objects)
{
    free(objects->keys);
    free(objects->identities);
}

/* Every `step`-th, in an order of its own. */
static struct rp_item *items_of(const struct objects *objects, size_t step, size_t *n)
{
    *n = (objects->n + step - 1) / step;
    struct rp_item *items = calloc(*n, sizeof *items);
    for (size_t i = 0; i < *n; i++) {
        size_t at = (i * 7919 % *n) * step;
        items[i] = (struct rp_item){ .key = objects->keys[at], .identity = objects->identities[at] };
    }
    return items;
}

static void count(const struct rp_item *items, size_t n, size_t counts[8])
{
    memset(counts, 0, 8 * sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        counts[items[i].outcome]++;
        if (items[i].note[0])
            print_message("  %s: %s: %s\n", items[i].key, rp_outcome_name(items[i].outcome), items[i].note);
    }
}

static size_t keys_in(struct rp_backend *s, const char *prefix)
{
    struct listing l = { .text = RP_BUF((size_t)16 << 20) };
    ok(rp_backend_list(s, prefix, NULL, listing_add, &l, &error));
    rp_buf_done(&l.text);
    return l.n;
}

static void remove_every(struct rp_backend *s, struct objects *objects, size_t step, const char *what)
{
    size_t n, counts[8], before = keys_in(s, "");
    struct rp_item *items = items_of(objects, step, &n);
    struct s3_wire_state from, to;
    rp_s3_wire_state(rp_s3_of(s)->wire, &from);
    int64_t begun_ms = rp_time_boot_ms();
    ok(rp_backend_remove(s, items, n, NULL, &error));
    int64_t took_ms = rp_time_boot_ms() - begun_ms;
    rp_s3_wire_state(rp_s3_of(s)->wire, &to);
    count(items, n, counts);
    print_message("  %s: %zu objects in %lld ms, %llu requests\n", what, n, (long long)took_ms,
                  (unsigned long long)(to.requests - from.requests));
    assert_int_equal(counts[RP_OUT_DELETED], n);
    assert_int_equal(keys_in(s, ""), before - n);
    ok(rp_backend_remove(s, items, n, NULL, &error));
    count(items, n, counts);
    assert_int_equal(counts[RP_OUT_GONE], n);
    free(items);
}

/* Takes those out that remove_every has removed. */
static void keep_rest(struct objects *objects, size_t step)
{
    size_t kept = 0;
    for (size_t i = 0; i < objects->n; i++) {
        if (i % step == 0) continue;
        memmove(objects->keys[kept], objects->keys[i], KEY_BYTES);
        objects->identities[kept++] = objects->identities[i];
    }
    objects->n = kept;
}

/* First some that stand far apart, which are looked at one by one, then the others, in few
 * requests. */
static void remove_few_then_all(struct fixture *f, size_t n)
{
    struct objects objects;
    put_many(f, &objects, "k", n);
    remove_every(f->backend, &objects, 100, "one in a hundred");
    assert_int_equal(keys_in(f->backend, ""), n - (n + 99) / 100);
    keep_rest(&objects, 100);
    remove_every(f->backend, &objects, 1, "side by side");
    assert_int_equal(keys_in(f->backend, ""), 0);
    objects_done(&objects);
}

static void few_among_many_and_more_than_a_request_takes(void **state)
{
    remove_few_then_all(*state, S3_DELETE_MAX + 20);
}

static void few_among_many_and_all_by_version(void **state)
{
    remove_few_then_all(*state, 300);
}

static void nothing_needs_a_listing_or_many_in_one_request(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    struct objects objects;
    set_powers(s, no_lists);
    put_many(f, &objects, "heads/", S3_PORTION_HEADS + 20);
    remove_every(s, &objects, 1, "with HEADs");
    objects_done(&objects);
    set_powers(s, no_multi);
    put_many(f, &objects, "singles/", S3_PORTION_HEADS + 20);
    remove_every(s, &objects, 1, "with HEADs and DELETEs");
    objects_done(&objects);
}

static void what_has_changed_stays(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    struct objects objects;
    size_t n, counts[8];
    put_many(f, &objects, "k", 300);
    for (size_t i = 0; i < 300; i += 10)
        put_text(s, objects.keys[i], "y"); /* as long as the other */
    struct rp_item *items = items_of(&objects, 1, &n);
    ok(rp_backend_remove(s, items, n, NULL, &error));
    count(items, n, counts);
    assert_int_equal(counts[RP_OUT_CHANGED], 30);
    assert_int_equal(counts[RP_OUT_DELETED], 270);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(items[i].outcome, strtoul(items[i].key + 1, NULL, 10) % 10 ? RP_OUT_DELETED : RP_OUT_CHANGED);
    for (size_t i = 0; i < 300; i += 10)
        expect_text(s, objects.keys[i], "y");
    assert_int_equal(keys_in(s, ""), 30);
    free(items);
    objects_done(&objects);
}

static void a_look_says_what_heads_say(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    struct objects objects;
    enum { N = 260 };
    struct rp_item looked[N] = { 0 }, stated[N] = { 0 };
    static char keys[N][64];
    put_many(f, &objects, "look/", 200);
    for (size_t i = 0; i < N; i++) {
        snprintf(keys[i], sizeof keys[i], "%s", i < 200 ? objects.keys[i] : i < 230 ? "" : "zz/absent");
        if (i >= 200 && i < 230) snprintf(keys[i], sizeof keys[i], "look/00%03zu.5", i - 150);
        if (i >= 230) snprintf(keys[i], sizeof keys[i], "%c-absent%zu", i % 2 ? 'a' : 'z', i);
        looked[(i * 101) % N].key = stated[(i * 101) % N].key = keys[i];
    }
    ok(rp_s3_look(rp_s3_of(s), looked, N, false, &(struct s3_density){ 0 }, &error));
    ok(rp_s3_stat(s, stated, N, &error));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(looked[i].outcome, stated[i].outcome);
        if (looked[i].outcome == RP_OUT_FOUND) assert_true(rp_identity_equal(&looked[i].identity, &stated[i].identity));
    }
    objects_done(&objects);
}

static void keys_that_xml_cannot_carry_go_one_by_one(void **state)
{
    struct rp_backend *s = store_of(state);
    static const char *const keys[] = { "plain",          "a\001b", "new\nline", "carriage\rreturn", "tab\tbed",
                                        "<&>\"'",         " led",   "trailed ",  "\xef\xbf\xbf",     "del\x7f",
                                        "%41+%2f?a=b&c#", "a//b",   "/lead",     "\xf0\x9f\x98\x80", "dir/" };
    enum { N = sizeof keys / sizeof *keys };
    struct rp_item items[N];
    for (size_t i = 0; i < N; i++)
        items[i] = (struct rp_item){ .key = keys[i], .identity = put_text(s, keys[i], "x") };
    put_text(s, "control", "stays");
    ok(rp_backend_remove(s, items, N, NULL, &error));
    for (size_t i = 0; i < N; i++)
        if (items[i].outcome != RP_OUT_DELETED)
            fail_msg("'%s': %s: %s", keys[i], rp_outcome_name(items[i].outcome), items[i].note);
    expect_list(s, "", NULL, "control\n");
}

static void a_key_twice_in_one_call(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity old = put_text(s, "k", "old"), now = put_text(s, "k", "now!");
    struct rp_item items[] = { { .key = "k", .identity = now },
                               { .key = "k", .identity = old },
                               { .key = "k", .identity = now } };
    ok(rp_backend_remove(s, items, 3, NULL, &error));
    assert_int_equal(items[0].outcome, RP_OUT_DELETED);
    assert_true(items[1].outcome == RP_OUT_CHANGED || items[1].outcome == RP_OUT_GONE);
    assert_int_equal(items[2].outcome, RP_OUT_GONE);
    expect_absent(s, "k");
}

static void an_unreachable_store_fails_as_a_whole(void **state)
{
    struct fixture *f = *state;
    struct rp_s3_options options = f->bucket.options;
    struct rp_backend *s;
    options.endpoint = "http://127.0.0.1:9";
    options.patience_ms = 300;
    ok(rp_s3_open(&options, &s, &error));
    struct rp_item items[] = { { .key = "a" }, { .key = "b" } };
    assert_true(rp_backend_remove(s, items, 2, NULL, &error) < 0);
    for (size_t i = 0; i < 2; i++)
        assert_true(items[i].outcome == RP_OUT_NONE || items[i].outcome == RP_OUT_UNKNOWN ||
                    items[i].outcome == RP_OUT_RETRY);
    rp_backend_close(s);
}

/* ---- versions ---- */

static void plain_delete(struct fixture *f, const char *key)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("DELETE", key);
    ok(rp_s3_run(rp_s3_of(f->backend), &call, &error));
}

static void the_marked_version_and_all_older_ones_go(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id[4];
    static const char *const texts[] = { "one", "two", "three", "four" };
    for (size_t i = 0; i < 4; i++)
        id[i] = put_text(f->backend, "k", texts[i]);
    put_text(f->backend, "k2", "neighbour");
    assert_true(id[0].version[0] && strcmp(id[0].version, id[1].version) != 0);
    assert_int_equal(remove_one(f->backend, "k", &id[2]), RP_OUT_DELETED);
    assert_int_equal(versions_in(f, "k"), 2); /* "four", and that of k2 */
    expect_text(f->backend, "k", "four");
    assert_int_equal(remove_one(f->backend, "k", &id[1]), RP_OUT_CHANGED);
    assert_int_equal(remove_one(f->backend, "k", &id[3]), RP_OUT_DELETED);
    assert_int_equal(remove_one(f->backend, "k", &id[3]), RP_OUT_GONE);
    assert_int_equal(versions_in(f, "k"), 1);
    expect_text(f->backend, "k2", "neighbour");
}

static void delete_markers_go_with_what_they_cover(void **state)
{
    struct fixture *f = *state;
    struct rp_identity one = put_text(f->backend, "k", "one"), two;
    plain_delete(f, "k");
    two = put_text(f->backend, "k", "two");
    plain_delete(f, "k");
    assert_int_equal(versions_in(f, "k"), 4);
    assert_int_equal(remove_one(f->backend, "k", &one), RP_OUT_DELETED);
    assert_int_equal(versions_in(f, "k"), 2); /* "two" and its marker */
    assert_int_equal(remove_one(f->backend, "k", &two), RP_OUT_DELETED);
    assert_int_equal(versions_in(f, "k"), 0);
}

/* What an interrupted removal leaves: its markers, with nothing under them. */
static void markers_on_nothing_are_cleared(void **state)
{
    struct fixture *f = *state;
    struct rp_identity one = put_text(f->backend, "k", "one");
    const struct rp_pair query = { "versionId", one.version };
    plain_delete(f, "k");
    assert_int_equal(s3_bucket_request(&f->bucket, "DELETE", "k", &query, 1, NULL, 0, NULL, NULL, 0), 204);
    assert_int_equal(versions_in(f, "k"), 1);
    assert_int_equal(remove_one(f->backend, "k", &one), RP_OUT_GONE);
    assert_int_equal(versions_in(f, "k"), 0);
}

static void an_object_from_before_the_versions_goes_too(void **state)
{
    struct fixture *f = *state;
    struct rp_probed probed;
    struct rp_identity old = put_text(f->backend, "k", "old");
    assert_string_equal(old.version, "");
    s3_bucket_versioning(&f->bucket, "Enabled");
    ok(rp_backend_probe(f->backend, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_VERSION);
    put_text(f->backend, "k", "newer");
    assert_int_equal(remove_one(f->backend, "k", &old), RP_OUT_DELETED);
    assert_int_equal(versions_in(f, "k"), 1);
    expect_text(f->backend, "k", "newer");
}

/* S3 of s3/s3.h: until the next probe notices, only a marker is added. */
static void versions_that_nobody_has_noticed_lose_nothing(void **state)
{
    struct fixture *f = *state;
    s3_bucket_versioning(&f->bucket, "Enabled");
    struct rp_identity id = put_text(f->backend, "k", "bytes");
    id.version[0] = '\0';
    remove_one(f->backend, "k", &id);
    assert_true(versions_in(f, "k") >= 1);
}

/* A listing names no versions. */
static void an_identity_without_a_version_is_found_by_the_rest(void **state)
{
    struct fixture *f = *state;
    struct rp_identity id = put_text(f->backend, "k", "bytes"), other = id;
    id.version[0] = other.version[0] = '\0';
    other.size_bytes++;
    assert_int_equal(remove_one(f->backend, "k", &other), RP_OUT_CHANGED);
    assert_int_equal(remove_one(f->backend, "k", &id), RP_OUT_DELETED);
    assert_int_equal(versions_in(f, "k"), 0);
}

static void a_key_with_a_thousand_versions(void **state)
{
    struct fixture *f = *state;
    s3_bucket_fill(&f->bucket, NULL, 1010);
    struct rp_identity last = identity_of(f->backend, "k");
    put_text(f->backend, "k", "newer");
    put_text(f->backend, "k0", "neighbour");
    assert_int_equal(remove_one(f->backend, "k", &last), RP_OUT_DELETED);
    assert_int_equal(versions_in(f, "k"), 2);
    expect_text(f->backend, "k", "newer");
}

static void two_versions_of_a_key_in_one_call(void **state)
{
    struct fixture *f = *state;
    struct rp_identity one = put_text(f->backend, "k", "one"), two = put_text(f->backend, "k", "two");
    struct rp_item items[] = { { .key = "k", .identity = two }, { .key = "k", .identity = one } };
    ok(rp_backend_remove(f->backend, items, 2, NULL, &error));
    assert_int_equal(items[0].outcome, RP_OUT_DELETED);
    assert_int_equal(items[1].outcome, RP_OUT_GONE);
    assert_int_equal(versions_in(f, "k"), 0);
}

static void no_versions_are_left_of_many(void **state)
{
    struct fixture *f = *state;
    struct objects objects;
    put_many(f, &objects, "v", 260);
    for (size_t i = 0; i < 260; i += 2)
        plain_delete(f, objects.keys[i]);
    size_t n, counts[8];
    struct rp_item *items = items_of(&objects, 1, &n);
    ok(rp_backend_remove(f->backend, items, n, NULL, &error));
    count(items, n, counts);
    assert_int_equal(counts[RP_OUT_DELETED], n);
    assert_int_equal(versions_in(f, ""), 0);
    free(items);
    objects_done(&objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_PLAIN(few_among_many_and_more_than_a_request_takes),
        ON_PLAIN(nothing_needs_a_listing_or_many_in_one_request),
        ON_PLAIN(what_has_changed_stays),
        ON_PLAIN(a_look_says_what_heads_say),
        ON_PLAIN(keys_that_xml_cannot_carry_go_one_by_one),
        ON_VERSIONED(keys_that_xml_cannot_carry_go_one_by_one),
        ON_PLAIN(a_key_twice_in_one_call),
        ON_PLAIN(an_unreachable_store_fails_as_a_whole),
        ON_VERSIONED(few_among_many_and_all_by_version),
        ON_VERSIONED(the_marked_version_and_all_older_ones_go),
        ON_VERSIONED(delete_markers_go_with_what_they_cover),
        ON_VERSIONED(markers_on_nothing_are_cleared),
        ON_PLAIN(an_object_from_before_the_versions_goes_too),
        ON_PLAIN(versions_that_nobody_has_noticed_lose_nothing),
        ON_VERSIONED(an_identity_without_a_version_is_found_by_the_rest),
        ON_VERSIONED(a_key_with_a_thousand_versions),
        ON_VERSIONED(two_versions_of_a_key_in_one_call),
        ON_VERSIONED(no_versions_are_left_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
