/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of backend.h, T1 to T10, run against every backend: those on this machine, or, told
 * `buckets`, those on Ceph (tests/lib/with-ceph). */
#include <pthread.h>
#include <stdatomic.h>

#include "store_backends.h"

static void bytes_come_back_as_they_were_put(void **state)
{
    struct rp_backend *s = store_of(state);
    const size_t n = 3 * 1000 * 1000 + 7;
    char *bytes = malloc(n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 31 + i / 257);
    struct rp_identity made, found;
    ok(put_bytes(s, "big", bytes, n, NULL, RP_PUT_REPLACE, &made, &error));
    struct rp_buf got = RP_BUF((size_t)8 << 20);
    const struct rp_sink to = { buf_write, &got };
    ok(rp_backend_get(s, "big", &to, NULL, NULL, &found, &error));
    assert_int_equal(got.len, n);
    assert_memory_equal(got.data, bytes, n);
    assert_true(rp_identity_equal(&made, &found));
    rp_buf_done(&got);
    free(bytes);
    put_text(s, "empty", "");
    expect_text(s, "empty", "");
}

static void put_replaces_and_gives_a_new_identity(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity first = put_text(s, "k", "same");
    until_told_apart(s);
    struct rp_identity second = put_text(s, "k", "same");
    assert_false(rp_identity_equal(&first, &second));
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&second, &now));
    expect_list(s, "", NULL, "k\n");
}

static void an_identity_does_not_come_back_after_delete_and_upload(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity old[200];
    const size_t rounds = backend->whole_seconds ? 3 : 200;
    for (size_t i = 0; i < rounds; i++) {
        until_told_apart(s);
        old[i] = put_text(s, "k", "same");
        for (size_t j = 0; j < i; j++)
            assert_false(rp_identity_equal(&old[i], &old[j]));
        assert_int_equal(remove_one(s, "k", &old[i]), RP_OUT_DELETED);
    }
}

static void put_new_never_overwrites(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity made, untouched = { .etag = "x" };
    ok(put_bytes(s, "k", "one", 3, NULL, RP_PUT_NEW, &made, &error));
    assert_int_equal(put_bytes(s, "k", "two", 3, NULL, RP_PUT_NEW, &untouched, &error), RP_EEXISTS);
    assert_string_equal(untouched.etag, "x");
    expect_text(s, "k", "one");
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&made, &now));
}

static void put_over_takes_the_store_of_exactly_that_upload(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_identity first = put_text(s, "k", "one");
    struct rp_identity over = first, stale = first;
    ok(put_bytes(s, "k", "second", 6, NULL, RP_PUT_OVER, &over, &error));
    expect_text(s, "k", "second");
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&over, &now));
    assert_int_equal(put_bytes(s, "k", "third", 5, NULL, RP_PUT_OVER, &stale, &error), RP_ECHANGED);
    assert_true(rp_identity_equal(&stale, &first));
    expect_text(s, "k", "second");
    ok(put_bytes(s, "k", "fourth", 6, NULL, RP_PUT_OVER, &over,
                 &error)); /* what a put over gave is good for the next one */
    expect_text(s, "k", "fourth");
}

static void put_over_nothing_writes_nothing(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity other = put_text(s, "other", "x"), over = other;
    assert_int_equal(put_bytes(s, "k", "one", 3, NULL, RP_PUT_OVER, &over, &error), RP_ENOTFOUND);
    assert_true(rp_identity_equal(&over, &other));
    expect_absent(s, "k");
    assert_int_equal(remove_one(s, "other", &other), RP_OUT_DELETED);
    assert_int_equal(put_bytes(s, "other", "two", 3, NULL, RP_PUT_OVER, &over, &error), RP_ENOTFOUND);
    expect_absent(s, "other");
}

static int64_t failing_read(void *ctx, void *to, size_t n, struct rp_error *err)
{
    int *calls = ctx;
    memset(to, 'x', n);
    return (*calls)++ < 2 ? (int64_t)n : rp_error_set(err, RP_EUNAVAILABLE, "the source broke");
}

static void a_broken_upload_shows_nothing(void **state)
{
    struct rp_backend *s = store_of(state);
    int calls = 0;
    const struct rp_source from = { failing_read, &calls };
    put_text(s, "old", "old");
    assert_int_equal(rp_backend_put(s, "old", &from, NULL, 0, NULL, &error), RP_EUNAVAILABLE);
    calls = 0;
    assert_int_equal(rp_backend_put(s, "new", &from, NULL, 0, NULL, &error), RP_EUNAVAILABLE);
    expect_text(s, "old", "old");
    expect_absent(s, "new");
    expect_list(s, "", NULL, "old\n");
}

static const struct rp_pair all_headers[] = {
    { "content-type", "image/png" }, { "cache-control", "max-age=60" }, { "content-disposition", "attachment" },
    { "content-encoding", "gzip" },  { "content-language", "de, en" },  { "expires", "Thu, 01 Dec 2026 16:00:00 GMT" },
};
static const struct rp_pair some_user[] = { { "marked_for_deletion", "true" },
                                            { "name", "gr\xc3\xbc\xc3\x9f \"quoted\" \\ \n tab\t" },
                                            { "empty", "" } };

static void expect_pairs(const struct rp_pair *got, size_t n_got, const struct rp_pair *want, size_t n_want)
{
    assert_int_equal(n_got, n_want);
    for (size_t i = 0; i < n_want; i++) {
        size_t j = 0;
        while (j < n_got && strcmp(got[j].name, want[i].name) != 0)
            j++;
        if (j == n_got) fail_msg("'%s' is missing", want[i].name);
        assert_string_equal(got[j].value, want[i].value);
    }
}

static void expect_meta(struct rp_backend *s, const char *key, const struct rp_meta *want)
{
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta got = { 0 };
    ok(rp_backend_get(s, key, NULL, &arena, &got, NULL, &error));
    expect_pairs(got.headers, got.n_headers, want->headers, want->n_headers);
    expect_pairs(got.user, got.n_user, want->user, want->n_user);
    rp_arena_done(&arena);
}

static void headers_and_metadata_are_kept(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_meta meta = { all_headers, 6, some_user, 3 }, none = { 0 };
    struct rp_identity made;
    ok(put_bytes(s, "k", "x", 1, &meta, 0, &made, &error));
    expect_meta(s, "k", &meta);
    put_text(s, "k", "without");
    expect_meta(s, "k", &none);
    ok(put_bytes(s, "k", "y", 1, &meta, 0, &made, &error));
    expect_meta(s, "k", &meta);
    assert_int_equal(remove_one(s, "k", &made), RP_OUT_DELETED);
    put_text(s, "k", "again");
    expect_meta(s, "k", &none);
}

static void metadata_has_limits(void **state)
{
    struct rp_backend *s = store_of(state);
    static char big[RP_META_MAX_BYTES];
    memset(big, 'v', sizeof big - 1);
    struct rp_pair pairs[RP_META_MAX_PAIRS + 1];
    char names[RP_META_MAX_PAIRS + 1][8];
    for (size_t i = 0; i < RP_META_MAX_PAIRS + 1; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        pairs[i] = (struct rp_pair){ names[i], "v" };
    }
    struct rp_meta meta = { .user = pairs, .n_user = RP_META_MAX_PAIRS + 1 };
    assert_int_equal(put_bytes(s, "k", "x", 1, &meta, 0, NULL, &error), RP_ETOOBIG);
    meta.n_user = RP_META_MAX_PAIRS;
    ok(put_bytes(s, "most", "x", 1, &meta, 0, NULL, &error));
    expect_meta(s, "most", &meta);
    meta.n_user = 1;
    pairs[0] = (struct rp_pair){ "n", big };
    ok(put_bytes(s, "k", "x", 1, &meta, 0, NULL, &error));
    expect_meta(s, "k", &meta);
    pairs[0].name = "nn";
    assert_int_equal(put_bytes(s, "j", "x", 1, &meta, 0, NULL, &error), RP_ETOOBIG);
    const struct rp_pair bad[][2] = { { { "Upper", "v" }, { "a", "v" } },
                                      { { "", "v" }, { "a", "v" } },
                                      { { "a", "\xff" }, { "b", "v" } },
                                      { { "a", "v" }, { "a", "w" } } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        meta = (struct rp_meta){ .user = bad[i], .n_user = 2 };
        assert_int_equal(put_bytes(s, "j", "x", 1, &meta, 0, NULL, &error), RP_EINVAL);
    }
    const struct rp_pair header = { "x-unknown", "v" };
    meta = (struct rp_meta){ .headers = &header, .n_headers = 1 };
    assert_int_equal(put_bytes(s, "j", "x", 1, &meta, 0, NULL, &error), RP_EINVAL);
    expect_absent(s, "j");
}

/* Annotations, which every store takes (store.h). */
static void annotate_changes_only_what_it_names(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_meta meta = { all_headers, 6, some_user, 3 };
    struct rp_identity made, wrong;
    ok(put_bytes(s, "k", "bytes", 5, &meta, 0, &made, &error));
    const struct rp_pair changes[] = { { "marked_for_deletion", NULL },
                                       { "deletion_reason", "gr\xc3\xbc\xc3\x9f, \"x\" = 50 %\n" },
                                       { "delete_after", "17" },
                                       { "no", NULL } };
    const struct rp_pair want[] = { some_user[1], some_user[2], changes[1], changes[2] };
    const struct rp_meta changed = { all_headers, 6, want, 4 };
    wrong = made;
    wrong.size_bytes++;
    assert_int_equal(rp_backend_annotate(s, "k", &wrong, changes, 4, &error), RP_ECHANGED);
    assert_int_equal(rp_backend_annotate(s, "none", &made, changes, 4, &error), RP_ENOTFOUND);
    expect_meta(s, "k", &meta);
    ok(rp_backend_annotate(s, "k", &made, changes, 4, &error));
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&made, &now));
    expect_meta(s, "k", &changed);
    expect_text(s, "k", "bytes");
    struct rp_identity bare = put_text(s, "bare", "x");
    const struct rp_pair one = { "delete_after", "b" }, gone = { "delete_after", NULL };
    ok(rp_backend_annotate(s, "bare", &bare, &one, 1, &error));
    expect_meta(s, "bare", &(struct rp_meta){ .user = &one, .n_user = 1 });
    ok(rp_backend_annotate(s, "bare", &bare, &gone, 1, &error));
    expect_meta(s, "bare", &(struct rp_meta){ 0 });
    assert_int_equal(remove_one(s, "bare", &bare), RP_OUT_DELETED);
}

static void annotate_changes_other_fields_or_refuses_them(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_meta meta = { .user = some_user, .n_user = 3 };
    const struct rp_pair changes[] = { { "empty", NULL }, { "name", "other" } };
    const struct rp_pair want[] = { some_user[0], changes[1] };
    struct rp_identity made;
    ok(put_bytes(s, "k", "bytes", 5, &meta, 0, &made, &error));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(rp_backend_annotate(s, "k", &made, &changes[i], 1, &error), backend->by_tags ? RP_EINVAL : 0);
    expect_meta(s, "k", backend->by_tags ? &meta : &(struct rp_meta){ .user = want, .n_user = 2 });
}

static void remove_tells_deleted_gone_and_changed_apart(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity a = put_text(s, "a", "1"), b = put_text(s, "dir/b", "2");
    until_told_apart(s);
    struct rp_identity newer = put_text(s, "dir/b", "2");
    struct rp_item items[] = { { .key = "a", .identity = a },
                               { .key = "dir/b", .identity = b },
                               { .key = "none", .identity = a },
                               { .key = "no/such/dir", .identity = a },
                               { .key = "a", .identity = a } };
    ok(rp_backend_remove(s, items, 5, NULL, &error));
    assert_int_equal(items[0].outcome, RP_OUT_DELETED);
    assert_int_equal(items[1].outcome, overwritten());
    assert_int_equal(items[2].outcome, RP_OUT_GONE);
    assert_int_equal(items[3].outcome, RP_OUT_GONE);
    assert_int_equal(items[4].outcome, RP_OUT_GONE);
    expect_absent(s, "a");
    expect_text(s, "dir/b", "2");
    assert_int_equal(remove_one(s, "dir/b", &newer), RP_OUT_DELETED);
    expect_list(s, "", NULL, "");
}

static bool lets_pass(void *ctx)
{
    return atomic_fetch_sub((atomic_int *)ctx, 1) > 0;
}

/* Names with a line end are deleted one by one everywhere. */
static void a_gate_that_shuts_ends_a_removal(void **state)
{
    struct rp_backend *s = store_of(state);
    enum { N = 5, PASS = 2 };
    const char *const keys[N] = { "a\n1", "b\n2", "c\n3", "d\n4", "e\n5" };
    struct rp_item items[N];
    atomic_int pass = PASS;
    const struct rp_gate gate = { lets_pass, &pass };
    size_t left = 0;
    for (size_t i = 0; i < N; i++)
        items[i] = (struct rp_item){ .key = keys[i], .identity = put_text(s, keys[i], "x") };
    assert_int_equal(rp_backend_remove(s, items, N, &gate, &error), RP_EUNAVAILABLE);
    for (size_t i = 0; i < N; i++)
        assert_int_not_equal(items[i].outcome, RP_OUT_GONE);
    ok(rp_backend_stat(s, items, N, &error));
    for (size_t i = 0; i < N; i++)
        left += items[i].outcome == RP_OUT_FOUND;
    assert_int_equal(left, N - PASS);
}

static void every_part_of_an_identity_counts(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity right = put_text(s, "k", "x"), wrong[4] = { right, right, right, right };
    wrong[0].size_bytes++;
    wrong[1].modified_ms++;
    strcat(wrong[2].etag, "0");
    strcpy(wrong[3].version, "v");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(remove_one(s, "k", &wrong[i]), RP_OUT_CHANGED);
    expect_text(s, "k", "x");
    assert_int_equal(remove_one(s, "k", &right), RP_OUT_DELETED);
}

static void a_batch_of_a_thousand_is_exact(void **state)
{
    struct rp_backend *s = store_of(state);
    enum { N = 1000 };
    struct rp_item *items = calloc(N, sizeof *items);
    static char keys[N][32];
    for (size_t i = 0; i < N; i++) {
        snprintf(keys[i], sizeof keys[i], "d%zu/k%zu", i % 90, i);
        items[i].key = keys[i];
        if (i % 10 != 3) items[i].identity = put_text(s, keys[i], "x");
        if (i % 10 == 7) put_text(s, keys[i], "newer");
    }
    ok(rp_backend_remove(s, items, N, NULL, &error));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(items[i].outcome, i % 10 == 3 ? RP_OUT_GONE : i % 10 == 7 ? overwritten() : RP_OUT_DELETED);
    ok(rp_backend_stat(s, items, N, &error));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(items[i].outcome, i % 10 == 7 ? RP_OUT_FOUND : RP_OUT_GONE);
    free(items);
}

static void copy_takes_everything_along_and_overwrites_nothing(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_meta meta = { all_headers, 6, some_user, 3 };
    const char *const targets[] = { RP_STORE_QUARANTINE "mrk_1", "elsewhere/k" };
    struct rp_identity from, copied, wrong;
    ok(put_bytes(s, "k", "bytes", 5, &meta, 0, &from, &error));
    wrong = from;
    wrong.size_bytes++;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(rp_backend_copy(s, "k", &wrong, targets[i], &copied, &error), RP_ECHANGED);
        assert_int_equal(rp_backend_copy(s, "none", &from, targets[i], &copied, &error), RP_ENOTFOUND);
        expect_absent(s, targets[i]);
        ok(rp_backend_copy(s, "k", &from, targets[i], &copied, &error));
        struct rp_identity now = identity_of(s, targets[i]);
        assert_true(rp_identity_equal(&copied, &now));
        assert_int_equal(rp_backend_copy(s, "k", &from, targets[i], NULL, &error), RP_EEXISTS);
        expect_meta(s, targets[i], &meta);
    }
    assert_int_equal(remove_one(s, "k", &from), RP_OUT_DELETED);
    for (size_t i = 0; i < 2; i++) {
        expect_text(s, targets[i], "bytes");
        expect_meta(s, targets[i], &meta);
    }
}

/* A worker that was thought dead must not purge what was restored since. */
static void what_is_copied_back_has_a_new_identity(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity first = put_text(s, "k", "bytes"), aside, back;
    ok(rp_backend_copy(s, "k", &first, RP_STORE_QUARANTINE "m", &aside, &error));
    assert_int_equal(remove_one(s, "k", &first), RP_OUT_DELETED);
    until_told_apart(s);
    ok(rp_backend_copy(s, RP_STORE_QUARANTINE "m", &aside, "k", &back, &error));
    assert_int_equal(remove_one(s, RP_STORE_QUARANTINE "m", &aside), RP_OUT_DELETED);
    assert_int_equal(remove_one(s, "k", &first), RP_OUT_CHANGED);
    expect_text(s, "k", "bytes");
}

static void bad_keys_are_refused_everywhere(void **state)
{
    struct rp_backend *s = store_of(state);
    char long_key[RP_KEY_MAX + 2];
    memset(long_key, 'k', sizeof long_key);
    long_key[RP_KEY_MAX + 1] = '\0';
    const char *const bad[] = {
        "", long_key, "\xff", "a\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "cut\xe2\x82", "\xc3("
    };
    assert_int_equal(rp_key_check("a\0b", 3, &error), RP_EINVAL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rp_identity id = { .etag = "1-1-1" };
        struct rp_item item = { .key = bad[i], .identity = id };
        assert_int_equal(rp_key_check(bad[i], strlen(bad[i]), &error), RP_EINVAL);
        assert_int_equal(put_bytes(s, bad[i], "x", 1, NULL, 0, NULL, &error), RP_EINVAL);
        assert_int_equal(rp_backend_get(s, bad[i], NULL, NULL, NULL, NULL, &error), RP_EINVAL);
        assert_int_equal(rp_backend_stat(s, &item, 1, &error), RP_EINVAL);
        assert_int_equal(rp_backend_remove(s, &item, 1, NULL, &error), RP_EINVAL);
        assert_int_equal(rp_backend_copy(s, bad[i], &id, "k", NULL, &error), RP_EINVAL);
        assert_int_equal(rp_backend_copy(s, "k", &id, bad[i], NULL, &error), RP_EINVAL);
        assert_int_equal(rp_backend_annotate(s, bad[i], &id, NULL, 0, &error), RP_EINVAL);
    }
    expect_list(s, "", NULL, "");
}

enum { AWKWARD_MAX = 220 };

/* Every ASCII byte alone and inside, paths that lead elsewhere, names that are too long, keys that
 * are each other's directories, characters of two to four bytes. */
static size_t awkward_keys(char **keys)
{
    static const char *const fixed[] = { "..",
                                         "../x",
                                         "/abs",
                                         "a//b",
                                         "a/",
                                         ".",
                                         "./x",
                                         "a/./b",
                                         "a/../b",
                                         "//",
                                         "a",
                                         "a/b",
                                         "a-b",
                                         "a0",
                                         "a/b/c",
                                         "a/b/c/d",
                                         "o/b/1",
                                         "o/b",
                                         "o/b-1",
                                         "o/b.",
                                         "o/b0",
                                         "o/b!/x",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac/uro",
                                         "\xf0\x9f\x98\x80",
                                         ".reprieve",
                                         ".reprieve~",
                                         ".reprieve~a",
                                         "x/.reprieve~y",
                                         "x/.reprieve/keys",
                                         "\xef\xbf\xbf",
                                         "a\\b",
                                         "con:",
                                         "trailing ",
                                         " leading",
                                         "-rf",
                                         "%2e%2e",
                                         "2e2e" };
    size_t n = 0;
    for (int c = 1; c < 128; c++) {
        char key[8];
        snprintf(key, sizeof key, "b/%cz", c);
        keys[n++] = strdup(key);
    }
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        keys[n++] = strdup(fixed[i]);
    const size_t lengths[] = { 245, 246, 255, 256, 300, 1024 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        keys[n] = calloc(1, RP_KEY_MAX + 1);
        memset(keys[n++], 'L', lengths[i]);
        keys[n] = calloc(1, RP_KEY_MAX + 1);
        memset(keys[n], 'M', lengths[i]);
        memcpy(keys[n++], "m/", 2);
    }
    assert_true(n <= AWKWARD_MAX);
    return n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t put_awkward(struct rp_backend *s, char **keys)
{
    size_t n = awkward_keys(keys);
    for (size_t i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, "%zu", i);
        put_text(s, keys[i], text);
    }
    for (size_t i = 0; i < n; i++) {
        char text[24];
        snprintf(text, sizeof text, "%zu", i);
        expect_text(s, keys[i], text);
    }
    qsort(keys, n, sizeof *keys, by_text);
    return n;
}

static void free_keys(char **keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(keys[i]);
}

static int expect_next(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    char ***next = ctx;
    (void)err;
    assert_non_null(**next);
    assert_string_equal(entry->key, **next);
    (*next)++;
    return 0;
}

static void awkward_keys_are_listed_in_byte_order_from_every_cursor(void **state)
{
    struct rp_backend *s = store_of(state);
    char *keys[AWKWARD_MAX + 1] = { 0 };
    size_t n = put_awkward(s, keys);
    for (size_t i = 0; i <= n; i++) {
        char **next = keys + i;
        ok(rp_backend_list(s, "", i ? keys[i - 1] : NULL, expect_next, &next, &error));
        assert_ptr_equal(next, keys + n);
    }
    free_keys(keys, n);
}

static void every_prefix_selects_exactly_its_keys(void **state)
{
    struct rp_backend *s = store_of(state);
    char *keys[AWKWARD_MAX + 1] = { 0 };
    size_t n = put_awkward(s, keys);
    for (size_t i = 0; i < n; i++)
        for (size_t length = 1; length <= strlen(keys[i]) && length < 5; length++) {
            char prefix[8];
            char *expected[AWKWARD_MAX + 1] = { 0 }, **next = expected;
            size_t m = 0;
            snprintf(prefix, sizeof prefix, "%.*s", (int)length, keys[i]);
            for (size_t j = 0; j < n; j++)
                if (strncmp(keys[j], prefix, length) == 0) expected[m++] = keys[j];
            ok(rp_backend_list(s, prefix, NULL, expect_next, &next, &error));
            assert_ptr_equal(next, expected + m);
            next = expected + 1;
            ok(rp_backend_list(s, prefix, expected[0], expect_next, &next, &error));
            assert_ptr_equal(next, expected + m);
        }
    free_keys(keys, n);
}

static void awkward_keys_are_replaced_copied_and_removed_one_by_one(void **state)
{
    struct rp_backend *s = store_of(state);
    char *keys[AWKWARD_MAX + 1] = { 0 };
    size_t n = put_awkward(s, keys);
    for (size_t i = 0; i < n; i++) {
        struct rp_identity old = identity_of(s, keys[i]), copied;
        struct rp_identity newer = put_text(s, keys[i], "newer");
        assert_int_equal(put_bytes(s, keys[i], "x", 1, NULL, RP_PUT_NEW, NULL, &error), RP_EEXISTS);
        assert_int_equal(remove_one(s, keys[i], &old), overwritten());
        ok(rp_backend_copy(s, keys[i], &newer, RP_STORE_QUARANTINE "q", &copied, &error));
        assert_int_equal(remove_one(s, keys[i], &newer), RP_OUT_DELETED);
        expect_absent(s, keys[i]);
        expect_text(s, RP_STORE_QUARANTINE "q", "newer");
        assert_int_equal(remove_one(s, RP_STORE_QUARANTINE "q", &copied), RP_OUT_DELETED);
        char **next = keys + i + 1;
        ok(rp_backend_list(s, "", NULL, expect_next, &next, &error));
        assert_ptr_equal(next, keys + n);
    }
    free_keys(keys, n);
}

static void our_own_keys_are_listed_only_when_asked_for(void **state)
{
    struct rp_backend *s = store_of(state);
    const char *const own[] = { ".reprieve/keys/61",       ".reprieve/meta",     ".reprieve/owner",
                                ".reprieve/quarantine/m1", ".reprieve/tmp/lock", ".reprieve/x" };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        put_text(s, own[i], own[i]);
    put_text(s, ".reprieve", "theirs");
    put_text(s, ".reprieve-not", "theirs");
    put_text(s, "a", "theirs");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        expect_text(s, own[i], own[i]);
    expect_list(s, "", NULL, ".reprieve\n.reprieve-not\na\n");
    expect_list(s, ".rep", NULL, ".reprieve\n.reprieve-not\n");
    expect_list(s, ".reprieve", ".reprieve", ".reprieve-not\n");
    expect_list(s, ".reprieve/", NULL,
                ".reprieve/keys/61\n.reprieve/meta\n.reprieve/owner\n.reprieve/quarantine/m1\n.reprieve/tmp/lock\n"
                ".reprieve/x\n");
    expect_list(s, RP_STORE_QUARANTINE, NULL, ".reprieve/quarantine/m1\n");
    expect_list(s, ".reprieve/", ".reprieve/quarantine/m1", ".reprieve/tmp/lock\n.reprieve/x\n");
}

static void a_prefix_is_not_a_directory(void **state)
{
    struct rp_backend *s = store_of(state);
    put_text(s, "images/1", "x");
    put_text(s, "images2/1", "x");
    put_text(s, "images", "x");
    expect_list(s, "images", NULL, "images\nimages/1\nimages2/1\n");
    expect_list(s, "images/", NULL, "images/1\n");
    expect_list(s, "imagesx", NULL, "");
    expect_list(s, "images/1/", NULL, "");
    expect_list(s, "images/", "images", "images/1\n");
    expect_list(s, "images/", "images0", "");
    expect_list(s, "", "zzz", "");
}

static int fail_third(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    int *n = ctx;
    (void)entry;
    return ++*n == 3 ? rp_error_set(err, RP_EBUSY, "enough") : 0;
}

static void the_receiver_of_a_listing_can_stop_it_or_fail_it(void **state)
{
    struct rp_backend *s = store_of(state);
    for (char key[2] = "a"; key[0] < 'k'; key[0]++)
        put_text(s, key, "x");
    struct listing l = { .text = RP_BUF(4096), .stop_after = 4 };
    ok(rp_backend_list(s, NULL, NULL, listing_add, &l, &error));
    assert_string_equal(rp_buf_text(&l.text), "a\nb\nc\nd\n");
    rp_buf_done(&l.text);
    int n = 0;
    assert_int_equal(rp_backend_list(s, "", NULL, fail_third, &n, &error), RP_EBUSY);
    assert_int_equal(n, 3);
}

static int remove_each(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    (void)err;
    assert_int_equal(remove_one(ctx, entry->key, &entry->identity), RP_OUT_DELETED);
    return 0;
}

static void what_is_listed_can_be_removed_while_it_is_listed(void **state)
{
    struct rp_backend *s = store_of(state);
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "d%d/%d", i % 7, i);
        put_text(s, key, "x");
    }
    ok(rp_backend_list(s, "", NULL, remove_each, s, &error));
    expect_list(s, "", NULL, "");
}

static void probing_reports_the_level_and_leaves_nothing(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_probed probed = { 0 };
    ok(rp_backend_probe(s, false, &probed, &error));
    assert_int_equal(probed.level, backend->level);
    probed = (struct rp_probed){ 0 };
    ok(rp_backend_probe(s, true, &probed, &error));
    assert_int_equal(probed.level, backend->level);
    expect_list(s, ".reprieve/", NULL, "");
    expect_list(s, "", NULL, "");
}

struct worker {
    struct rp_backend *backend;
    int id;
};

static void *work(void *ctx)
{
    struct worker *w = ctx;
    for (int i = 0; i < 60; i++) {
        char key[32];
        snprintf(key, sizeof key, "t%d/k%d", w->id, i % 7);
        struct rp_identity id = put_text(w->backend, key, "x");
        expect_text(w->backend, key, "x");
        if (i % 2) assert_int_equal(remove_one(w->backend, key, &id), RP_OUT_DELETED);
        put_text(w->backend, "shared", "x");
    }
    return NULL;
}

static void several_threads_may_use_one_handle(void **state)
{
    struct worker workers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){ store_of(state), i };
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    expect_text(store_of(state), "shared", "x");
}

static void *put_new(void *ctx)
{
    return put_bytes(ctx, "contested", "x", 1, NULL, RP_PUT_NEW, NULL, NULL) == 0 ? ctx : NULL;
}

static void of_several_put_new_exactly_one_wins(void **state)
{
    struct rp_backend *s = store_of(state);
    for (int round = 0; round < 50; round++) {
        pthread_t threads[4];
        int winners = 0;
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, put_new, s), 0);
        for (int i = 0; i < 4; i++) {
            void *won;
            pthread_join(threads[i], &won);
            winners += won != NULL;
        }
        assert_int_equal(winners, 1);
        struct rp_identity id = identity_of(s, "contested");
        assert_int_equal(remove_one(s, "contested", &id), RP_OUT_DELETED);
    }
}

struct rival {
    struct rp_backend *backend;
    struct rp_identity over;
    char text[16];
    int code;
};

static void *put_over(void *ctx)
{
    struct rival *r = ctx;
    r->code = put_bytes(r->backend, "contested", r->text, strlen(r->text), NULL, RP_PUT_OVER, &r->over, NULL);
    return NULL;
}

static void of_several_put_over_exactly_one_wins(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity now = put_text(s, "contested", "first");
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        struct rival rivals[4];
        const struct rival *winner = NULL;
        for (int i = 0; i < 4; i++) {
            rivals[i] = (struct rival){ .backend = s, .over = now };
            snprintf(rivals[i].text, sizeof rivals[i].text, "%d of %d", i, round);
            assert_int_equal(pthread_create(&threads[i], NULL, put_over, &rivals[i]), 0);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < 4; i++) {
            assert_true(rivals[i].code == 0 || rivals[i].code == RP_ECHANGED);
            if (rivals[i].code < 0) continue;
            assert_null(winner);
            winner = &rivals[i];
        }
        assert_non_null(winner);
        expect_text(s, "contested", winner->text);
        now = identity_of(s, "contested");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(bytes_come_back_as_they_were_put),
        WITH_STORE(put_replaces_and_gives_a_new_identity),
        WITH_STORE(an_identity_does_not_come_back_after_delete_and_upload),
        WITH_STORE(put_new_never_overwrites),
        WITH_STORE(put_over_takes_the_store_of_exactly_that_upload),
        WITH_STORE(put_over_nothing_writes_nothing),
        WITH_STORE(a_broken_upload_shows_nothing),
        WITH_STORE(headers_and_metadata_are_kept),
        WITH_STORE(metadata_has_limits),
        WITH_STORE(annotate_changes_only_what_it_names),
        WITH_STORE(annotate_changes_other_fields_or_refuses_them),
        WITH_STORE(remove_tells_deleted_gone_and_changed_apart),
        WITH_STORE(every_part_of_an_identity_counts),
        WITH_STORE(a_gate_that_shuts_ends_a_removal),
        WITH_STORE(a_batch_of_a_thousand_is_exact),
        WITH_STORE(copy_takes_everything_along_and_overwrites_nothing),
        WITH_STORE(what_is_copied_back_has_a_new_identity),
        WITH_STORE(bad_keys_are_refused_everywhere),
        WITH_STORE(awkward_keys_are_listed_in_byte_order_from_every_cursor),
        WITH_STORE(every_prefix_selects_exactly_its_keys),
        WITH_STORE(awkward_keys_are_replaced_copied_and_removed_one_by_one),
        WITH_STORE(our_own_keys_are_listed_only_when_asked_for),
        WITH_STORE(a_prefix_is_not_a_directory),
        WITH_STORE(the_receiver_of_a_listing_can_stop_it_or_fail_it),
        WITH_STORE(what_is_listed_can_be_removed_while_it_is_listed),
        WITH_STORE(probing_reports_the_level_and_leaves_nothing),
        WITH_STORE(several_threads_may_use_one_handle),
        WITH_STORE(of_several_put_new_exactly_one_wins),
        WITH_STORE(of_several_put_over_exactly_one_wins),
    };
    ON_EVERY_BACKEND(tests, argc > 1 && strcmp(argv[1], "buckets") == 0);
}
