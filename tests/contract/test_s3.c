/* SPDX-License-Identifier: Apache-2.0 */
/* What is special to the S3 store, on a real Ceph gateway: beside the contract that test_store
 * runs. */
#include "s3_steps.h"

#include <curl/curl.h>
#include <time.h>

#include "base/digest.h"
#include "base/time.h"

static struct rp_error error;

static void open_other(const struct rp_s3_options *options, struct rp_backend **out)
{
    ok(rp_s3_open(options, out, &error));
}

/* ---- errors say what to do ---- */

static void a_missing_bucket_is_the_stores_trouble_and_nothing_is_gone(void **state)
{
    struct fixture *f = *state;
    struct rp_s3_options options = f->bucket.options;
    struct rp_backend *s;
    options.bucket = "no-such-bucket-here";
    open_other(&options, &s);
    struct rp_item item = { .key = "k" };
    assert_int_equal(rp_backend_stat(s, &item, 1, &error), RP_ECONFIG);
    assert_int_not_equal(item.outcome, RP_OUT_GONE);
    assert_non_null(strstr(error.text, "no-such-bucket-here"));
    assert_non_null(strstr(error.hint, "stores.NAME.bucket"));
    assert_int_equal(rp_backend_get(s, "k", NULL, NULL, NULL, NULL, &error), RP_ECONFIG);
    struct rp_buf got = RP_BUF(1024);
    const struct rp_sink to = { buf_write, &got };
    assert_int_equal(rp_backend_get(s, "k", &to, NULL, NULL, NULL, &error), RP_ECONFIG);
    assert_non_null(strstr(error.text, "NoSuchBucket"));
    assert_int_equal(got.len, 0);
    assert_int_equal(put_bytes(s, "k", "x", 1, NULL, 0, NULL, &error), RP_ECONFIG);
    struct listing l = { .text = RP_BUF(1024) };
    assert_int_equal(rp_backend_list(s, "", NULL, listing_add, &l, &error), RP_ECONFIG);
    struct rp_identity id = { .etag = "x" };
    assert_int_equal(rp_backend_copy(s, "k", &id, "j", NULL, &error), RP_ECONFIG);
    assert_int_equal(rp_backend_annotate(s, "k", &id, NULL, 0, &error), RP_ECONFIG);
    rp_backend_close(s);
}

static void wrong_keys_are_told_apart(void **state)
{
    struct fixture *f = *state;
    struct rp_s3_options options = f->bucket.options;
    struct rp_backend *s;
    options.secret_key = "wrong";
    open_other(&options, &s);
    assert_int_equal(put_bytes(s, "k", "x", 1, NULL, 0, NULL, &error), RP_EDENIED);
    assert_non_null(strstr(error.text, "SignatureDoesNotMatch"));
    assert_non_null(strstr(error.hint, "secret_key"));
    assert_null(strstr(error.text, "wrong"));
    rp_backend_close(s);
    options.access_key = "nobody";
    open_other(&options, &s);
    assert_int_equal(put_bytes(s, "k", "x", 1, NULL, 0, NULL, &error), RP_EDENIED);
    assert_non_null(strstr(error.text, "InvalidAccessKeyId"));
    assert_non_null(strstr(error.hint, "access_key"));
    struct rp_item item = { .key = "k" };
    ok(rp_backend_stat(s, &item, 1, &error));
    assert_int_equal(item.outcome, RP_OUT_DENIED);
    assert_true(item.note[0] != '\0');
    rp_backend_close(s);
}

static void a_server_that_is_not_there_is_unavailable(void **state)
{
    struct fixture *f = *state;
    struct rp_s3_options options = f->bucket.options;
    struct rp_backend *s;
    options.endpoint = "http://127.0.0.1:1";
    options.patience_ms = 300;
    open_other(&options, &s);
    struct rp_item item = { .key = "k" };
    assert_int_equal(rp_backend_stat(s, &item, 1, &error), RP_EUNAVAILABLE);
    assert_int_equal(item.outcome, RP_OUT_UNKNOWN);
    assert_non_null(strstr(error.text, "look at 'k'"));
    int64_t now;
    assert_int_equal(rp_backend_now_ms(s, &now, &error), RP_EUNAVAILABLE);
    rp_backend_close(s);
}

static void the_stores_clock_is_the_servers(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s;
    int64_t now = 0, here = rp_clock_now_ms(&rp_clock_host);
    open_other(&f->bucket.options, &s);
    ok(rp_backend_now_ms(s, &now, &error));
    assert_true(now > here - 5000 && now < here + 5000);
    rp_backend_close(s);
}

/* ---- large objects ---- */

struct pattern {
    size_t at, n, fail_at; /* fail_at 0: never */
};

static char pattern_byte(size_t i)
{
    return (char)(i * 31 + i / 1009);
}

static int64_t pattern_read(void *ctx, void *to, size_t n, struct rp_error *err)
{
    struct pattern *p = ctx;
    if (p->fail_at > 0 && p->at >= p->fail_at) return rp_error_set(err, RP_EBUSY, "the source broke");
    size_t part = p->n - p->at < n ? p->n - p->at : n;
    if (part > 100003) part = 100003;
    for (size_t i = 0; i < part; i++)
        ((char *)to)[i] = pattern_byte(p->at + i);
    p->at += part;
    return (int64_t)part;
}

static int pattern_check(void *ctx, const void *from, size_t n, struct rp_error *err)
{
    struct pattern *p = ctx;
    (void)err;
    for (size_t i = 0; i < n; i++)
        if (((const char *)from)[i] != pattern_byte(p->at + i)) return RP_ECORRUPT;
    p->at += n;
    return 0;
}

static int put_pattern(struct rp_backend *s, const char *key, size_t n, const struct rp_meta *meta, int flags,
                       struct rp_identity *out)
{
    struct pattern p = { .n = n };
    const struct rp_source from = { pattern_read, &p };
    return rp_backend_put(s, key, &from, meta, flags, out, &error);
}

static void expect_pattern(struct rp_backend *s, const char *key, size_t n)
{
    struct pattern p = { 0 };
    const struct rp_sink to = { pattern_check, &p };
    struct rp_identity identity;
    ok(rp_backend_get(s, key, &to, NULL, NULL, &identity, &error));
    assert_int_equal(p.at, n);
    assert_int_equal(identity.size_bytes, n);
}

static int count_partial(void *ctx, const struct rp_partial *partial, struct rp_error *err)
{
    (void)err;
    assert_true(partial->begun_ms > 0);
    ++*(size_t *)ctx;
    return 0;
}

static size_t partials(struct rp_backend *s)
{
    size_t n = 0;
    ok(rp_backend_list_partial(s, "", count_partial, &n, &error));
    return n;
}

static const struct rp_pair some_headers[] = { { "content-type", "image/png" },
                                               { "content-disposition", "attachment; filename=\"a b.png\"" } };
static const struct rp_pair some_user[] = { { "under_score", "1" }, { "name", "gr\xc3\xbc\xc3\x9f" } };
static const struct rp_meta some_meta = { some_headers, 2, some_user, 2 };

static const char *value_of(const struct rp_pair *pairs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(pairs[i].name, name) == 0) return pairs[i].value;
    return NULL;
}

static void expect_some_meta(struct rp_backend *s, const char *key)
{
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta got = { 0 };
    ok(rp_backend_get(s, key, NULL, &arena, &got, NULL, &error));
    for (size_t i = 0; i < 2; i++) {
        const char *header = value_of(got.headers, got.n_headers, some_headers[i].name);
        const char *user = value_of(got.user, got.n_user, some_user[i].name);
        assert_non_null(header);
        assert_non_null(user);
        assert_string_equal(header, some_headers[i].value);
        assert_string_equal(user, some_user[i].value);
    }
    rp_arena_done(&arena);
}

static void sizes_around_a_part_come_back_whole(void **state)
{
    struct rp_backend *s = store_of(state);
    const size_t sizes[] = { S3_PART_BYTES - 1, S3_PART_BYTES, S3_PART_BYTES + 1, 2 * S3_PART_BYTES,
                             3 * S3_PART_BYTES + 17 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rp_identity made;
        ok(put_pattern(s, "k", sizes[i], &some_meta, 0, &made));
        assert_int_equal(made.size_bytes, sizes[i]);
        assert_int_equal(strchr(made.etag, '-') != NULL, sizes[i] > S3_PART_BYTES);
        struct rp_identity now = identity_of(s, "k");
        assert_true(rp_identity_equal(&made, &now));
        expect_pattern(s, "k", sizes[i]);
        expect_some_meta(s, "k");
    }
    assert_int_equal(partials(s), 0);
}

static void a_large_new_object_overwrites_nothing(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity first = put_text(s, "k", "small");
    assert_int_equal(put_pattern(s, "k", S3_PART_BYTES + 5, NULL, RP_PUT_NEW, NULL), RP_EEXISTS);
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&first, &now));
    assert_int_equal(partials(s), 0);
    ok(put_pattern(s, "fresh", S3_PART_BYTES + 5, NULL, RP_PUT_NEW, NULL));
    expect_pattern(s, "fresh", S3_PART_BYTES + 5);
}

static void a_source_that_breaks_in_a_later_part_leaves_no_upload_behind(void **state)
{
    struct rp_backend *s = store_of(state);
    struct pattern p = { .n = 9 * S3_PART_BYTES, .fail_at = 2 * S3_PART_BYTES + 1000 };
    const struct rp_source from = { pattern_read, &p };
    assert_int_equal(rp_backend_put(s, "k", &from, NULL, 0, NULL, &error), RP_EBUSY);
    expect_absent(s, "k");
    assert_int_equal(partials(s), 0);
}

static void a_sink_that_fails_ends_a_get_with_its_own_error(void **state)
{
    struct rp_backend *s = store_of(state);
    put_text(s, "k", "other bytes than the pattern's");
    struct pattern p = { 0 };
    const struct rp_sink to = { pattern_check, &p };
    struct rp_identity untouched = { .etag = "x" };
    assert_int_equal(rp_backend_get(s, "k", &to, NULL, NULL, &untouched, &error), RP_ECORRUPT);
    assert_string_equal(untouched.etag, "x");
}

static void a_copy_in_parts_takes_everything_along(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    struct rp_identity made, copied, now;
    const size_t n = 11 * ((size_t)1 << 20) + 3;
    const char *const key = "dir/a b\xc3\xbc&", *const ambiguous = "dir/a+b";
    const struct rp_pair annotation = { "delete_after", "17" };
    ok(put_pattern(s, key, n, &some_meta, 0, &made));
    ok(rp_backend_annotate(s, key, &made, &annotation, 1, &error));
    rp_s3_of(s)->copy_max = rp_s3_of(s)->copy_part = (int64_t)5 << 20;
    ok(rp_backend_copy(s, key, &made, "copy", &copied, &error));
    assert_non_null(strstr(copied.etag, "-3"));
    now = identity_of(s, "copy");
    assert_true(rp_identity_equal(&copied, &now));
    expect_pattern(s, "copy", n);
    expect_some_meta(s, "copy");
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta meta;
    ok(rp_backend_get(s, "copy", NULL, &arena, &meta, NULL, &error));
    assert_non_null(value_of(meta.user, meta.n_user, "delete_after"));
    rp_arena_reset(&arena);
    const char *const aside = RP_STORE_QUARANTINE "mrk_x"; /* a death before the tags */
    const struct rp_pair tagging = { "tagging", "" };
    ok(rp_backend_copy(s, key, &made, aside, NULL, &error));
    assert_int_equal(s3_bucket_request(&f->bucket, "DELETE", aside, &tagging, 1, NULL, 0, NULL, NULL, 0), 204);
    assert_int_equal(rp_backend_copy(s, key, &made, aside, NULL, &error), RP_EEXISTS);
    ok(rp_backend_get(s, aside, NULL, &arena, &meta, NULL, &error));
    assert_non_null(value_of(meta.user, meta.n_user, "delete_after"));
    rp_arena_done(&arena);
    ok(put_pattern(s, ambiguous, n, NULL, 0, &made));
    assert_int_equal(rp_backend_copy(s, ambiguous, &made, "other", NULL, &error), RP_EWEAK);
    expect_absent(s, "other");
    assert_int_equal(partials(s), 0);
}

/* ---- unfinished uploads ---- */

struct partial_keys {
    struct rp_buf text;
    char upload[S3_UPLOAD_MAX], key[RP_KEY_MAX + 1];
    size_t stop_after, n;
};

static int partial_add(void *ctx, const struct rp_partial *partial, struct rp_error *err)
{
    struct partial_keys *p = ctx;
    (void)err;
    rp_buf_fmt(&p->text, "%s\n", partial->key);
    snprintf(p->upload, sizeof p->upload, "%s", partial->upload);
    snprintf(p->key, sizeof p->key, "%s", partial->key);
    return ++p->n == p->stop_after;
}

static void unfinished_uploads_are_listed_and_aborted(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    const char *const keys[] = { "a", "up%20 x\xc3\xa9&<", "up/1", "up/1" };
    const struct rp_pair uploads = { "uploads", "" };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(s3_bucket_request(&f->bucket, "POST", keys[i], &uploads, 1, NULL, 0, "", NULL, 0), 200);
    struct partial_keys all = { .text = RP_BUF(4096) }, some = { .text = RP_BUF(4096), .stop_after = 1 };
    ok(rp_backend_list_partial(s, NULL, partial_add, &all, &error));
    assert_string_equal(rp_buf_text(&all.text), "a\nup%20 x\xc3\xa9&<\nup/1\nup/1\n");
    ok(rp_backend_list_partial(s, "up", partial_add, &some, &error));
    assert_string_equal(rp_buf_text(&some.text), "up%20 x\xc3\xa9&<\n");
    for (size_t i = 4; i > 0; i--) {
        struct partial_keys last = { .text = RP_BUF(4096) };
        ok(rp_backend_list_partial(s, "", partial_add, &last, &error));
        assert_int_equal(last.n, i);
        ok(rp_backend_abort_partial(s, last.key, last.upload, &error));
        ok(rp_backend_abort_partial(s, last.key, last.upload, &error));
        rp_buf_done(&last.text);
    }
    assert_int_equal(partials(s), 0);
    expect_list(s, "", NULL, "");
    rp_buf_done(&all.text);
    rp_buf_done(&some.text);
}

/* ---- metadata ---- */

static void what_other_programs_wrote_is_read_as_it_is(void **state)
{
    struct fixture *f = *state;
    const struct rp_pair headers[] = { { "x-amz-meta-marked_for_deletion", "true" },
                                       { "x-amz-meta-plain", "as it is" },
                                       { "x-amz-meta-utf", "gr\xc3\xbc" },
                                       { "x-amz-meta-broken", "UTF-8''%zz" },
                                       { "x-amz-tagging", "delete_after=99&other=tag" } };
    assert_int_equal(s3_bucket_request(&f->bucket, "PUT", "k", NULL, 0, headers, 5, "x", NULL, 0), 200);
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta meta;
    ok(rp_backend_get(f->backend, "k", NULL, &arena, &meta, NULL, &error));
    assert_int_equal(meta.n_user, 5);
    assert_string_equal(value_of(meta.user, 5, "marked_for_deletion"), "true");
    assert_string_equal(value_of(meta.user, 5, "plain"), "as it is");
    assert_string_equal(value_of(meta.user, 5, "utf"), "gr\xc3\xbc");
    assert_string_equal(value_of(meta.user, 5, "broken"), "UTF-8''%zz");
    assert_string_equal(value_of(meta.user, 5, "delete_after"), "99");
    rp_arena_done(&arena);
}

static void names_and_values_of_every_kind_come_back(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_pair user[] = {
        { "a_b", "1" }, { "a.c", "  two  spaces " }, { "gr\xc3\xbc\xc3\x9f", "x" }, { "a,d%", "UTF-8''" },
        { "e", "" },    { "f", "%41=\x7f\x01" }
    };
    const struct rp_meta meta = { .user = user, .n_user = 6 };
    ok(put_bytes(s, "k", "x", 1, &meta, 0, NULL, &error));
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta got;
    ok(rp_backend_get(s, "k", NULL, &arena, &got, NULL, &error));
    assert_int_equal(got.n_user, 6);
    for (size_t i = 0; i < 6; i++) {
        const char *value = value_of(got.user, got.n_user, user[i].name);
        if (!value) fail_msg("'%s' is missing", user[i].name);
        assert_string_equal(value, user[i].value);
    }
    rp_arena_done(&arena);
    const struct rp_pair same[] = { { "a_b", "1" }, { "a-b", "2" } };
    const struct rp_meta clash = { .user = same, .n_user = 2 };
    assert_int_equal(put_bytes(s, "k", "x", 1, &clash, 0, NULL, &error), RP_EINVAL);
    const struct rp_pair injected = { "content-type", "a\r\nx-amz-meta-b: c" };
    const struct rp_meta bad = { .headers = &injected, .n_headers = 1 };
    assert_int_equal(put_bytes(s, "k", "x", 1, &bad, 0, NULL, &error), RP_EINVAL);
}

/* ---- annotations ---- */

static const char *annotation_of(struct rp_backend *s, const char *key, const char *name, char out[300])
{
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_meta meta;
    ok(rp_backend_get(s, key, NULL, &arena, &meta, NULL, &error));
    const char *value = value_of(meta.user, meta.n_user, name);
    if (value) snprintf(out, 300, "%s", value);
    rp_arena_done(&arena);
    return value ? out : NULL;
}

/* Ceph dates an object anew when its tags change: seen only when a second has gone by. */
static void next_second(struct rp_backend *s)
{
    const struct timespec pause = { .tv_nsec = 20000000 };
    struct rp_identity first = put_text(s, "clock", "x");
    while (put_text(s, "clock", "x").modified_ms == first.modified_ms)
        nanosleep(&pause, NULL);
}

static void annotations_are_tags_and_leave_other_tags_alone(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    const struct rp_pair tagging = { "tagging", "" }, own = { "x-amz-tagging", "team=blue" };
    char answer[2048], value[300];
    assert_int_equal(s3_bucket_request(&f->bucket, "PUT", "k", NULL, 0, &own, 1, "x", NULL, 0), 200);
    struct rp_identity made = identity_of(s, "k"), before = made;
    const struct rp_pair set[] = { { "marked_for_deletion", "true" },
                                   { "deletion_reason", "gr\xc3\xbc, \"x\" = 50%\n" } };
    next_second(s);
    ok(rp_backend_annotate(s, "k", &made, set, 2, &error));
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&made, &now));
    assert_string_equal(made.etag, before.etag);
    assert_string_equal(made.version, before.version);
    next_second(s);
    assert_string_equal(annotation_of(s, "k", "deletion_reason", value), set[1].value);
    assert_int_equal(s3_bucket_request(&f->bucket, "GET", "k", &tagging, 1, NULL, 0, NULL, answer, sizeof answer), 200);
    assert_non_null(strstr(answer, "<Key>team</Key><Value>blue</Value>"));
    assert_non_null(strstr(answer, "<Key>marked_for_deletion</Key><Value>true</Value>"));
    const struct rp_pair away[] = { { "marked-for-deletion", NULL },
                                    { "deletion_reason", NULL },
                                    { "delete_after", NULL } };
    ok(rp_backend_annotate(s, "k", &made, away, 3, &error));
    assert_null(annotation_of(s, "k", "marked_for_deletion", value));
    assert_int_equal(s3_bucket_request(&f->bucket, "GET", "k", &tagging, 1, NULL, 0, NULL, answer, sizeof answer), 200);
    assert_non_null(strstr(answer, "team"));
    assert_null(strstr(answer, "delet"));
    const struct rp_pair other = { "name", "x" };
    assert_int_equal(rp_backend_annotate(s, "k", &made, &other, 1, &error), RP_EINVAL);
    char big[400];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    const struct rp_pair too_long = { "deletion_reason", big };
    assert_int_equal(rp_backend_annotate(s, "k", &made, &too_long, 1, &error), RP_ETOOBIG);
}

static void an_annotation_in_the_metadata_itself_is_hidden_by_its_tag(void **state)
{
    struct rp_backend *s = store_of(state);
    const struct rp_pair user = { "marked_for_deletion", "true" }, away = { "marked_for_deletion", NULL };
    const struct rp_meta meta = { .user = &user, .n_user = 1 };
    struct rp_identity made;
    char value[300];
    ok(put_bytes(s, "k", "x", 1, &meta, 0, &made, &error));
    assert_string_equal(annotation_of(s, "k", "marked_for_deletion", value), "true");
    ok(rp_backend_annotate(s, "k", &made, &away, 1, &error));
    assert_null(annotation_of(s, "k", "marked_for_deletion", value));
    ok(rp_backend_annotate(s, "k", &made, &user, 1, &error));
    assert_string_equal(annotation_of(s, "k", "marked_for_deletion", value), "true");
}

static void set_tags_power(struct rp_backend *s, bool tags)
{
    struct rp_s3 *s3 = rp_s3_of(s);
    pthread_mutex_lock(&s3->lock);
    s3->powers.tags = tags;
    pthread_mutex_unlock(&s3->lock);
}

static void without_tags_a_versioned_object_is_copied_onto_itself(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity made, before;
    const struct rp_pair set[] = { { "delete_after", "17" }, { "name", "other" } }, away = { "delete_after", NULL };
    char value[300];
    ok(put_bytes(s, "k", "bytes", 5, &some_meta, 0, &made, &error));
    set_tags_power(s, false);
    before = made;
    ok(rp_backend_annotate(s, "k", &made, set, 2, &error));
    assert_false(rp_identity_equal(&made, &before));
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&made, &now));
    expect_text(s, "k", "bytes");
    assert_string_equal(annotation_of(s, "k", "delete_after", value), "17");
    assert_string_equal(annotation_of(s, "k", "name", value), "other");
    assert_string_equal(annotation_of(s, "k", "under_score", value), "1");
    ok(rp_backend_annotate(s, "k", &made, &away, 1, &error));
    assert_null(annotation_of(s, "k", "delete_after", value));
    assert_int_equal(rp_backend_annotate(s, "k", &before, &away, 1, &error), RP_ECHANGED);
}

static void without_tags_and_versions_nothing_is_annotated(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_identity made = put_text(s, "k", "x");
    const struct rp_pair set = { "delete_after", "17" };
    set_tags_power(s, false);
    assert_int_equal(rp_backend_annotate(s, "k", &made, &set, 1, &error), RP_EWEAK);
    assert_non_null(strstr(error.hint, "versioning"));
}

/* ---- versions ---- */

static void entries_of_a_versioned_bucket_name_the_latest_version(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    struct rp_identity first = put_text(s, "b", "one"), second = put_text(s, "b", "two");
    assert_true(first.version[0] && second.version[0]);
    assert_string_not_equal(first.version, second.version);
    put_text(s, "a", "x");
    put_text(s, "gone", "x");
    put_text(s, "z", "x");
    assert_int_equal(s3_bucket_request(&f->bucket, "DELETE", "gone", NULL, 0, NULL, 0, NULL, NULL, 0), 204);
    expect_list(s, "", NULL, "a\nb\nz\n");
    expect_list(s, "", "a", "b\nz\n");
    expect_list(s, "", "b", "z\n");
    expect_absent(s, "gone");
}

/* More versions than a page has entries, so that pages begin and end inside one key. */
static void a_key_with_many_versions_is_listed_once(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    s3_bucket_fill(&f->bucket, NULL, 1100);
    put_text(s, "l", "x");
    expect_list(s, "", NULL, "k\nl\n");
    expect_list(s, "", "k", "l\n");
}

static void what_was_there_before_versioning_has_no_version(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    struct rp_probed probed;
    struct rp_identity old = put_text(s, "k", "old"), copied;
    assert_string_equal(old.version, "");
    s3_bucket_versioning(&f->bucket, "Enabled");
    ok(rp_backend_probe(s, true, &probed, &error));
    assert_int_equal(probed.level, RP_LEVEL_VERSION);
    struct rp_identity now = identity_of(s, "k");
    assert_true(rp_identity_equal(&old, &now));
    ok(rp_backend_copy(s, "k", &old, "copy", &copied, &error));
    assert_true(copied.version[0]);
    const struct rp_pair set = { "delete_after", "17" };
    next_second(s);
    ok(rp_backend_annotate(s, "k", &now, &set, 1, &error));
    char value[300];
    assert_string_equal(annotation_of(s, "k", "delete_after", value), "17");
    put_text(s, "k", "new");
    expect_list(s, "", NULL, "clock\ncopy\nk\n");
    assert_null(annotation_of(s, "k", "delete_after", value));
}

/* Ceph holds an If-Match against the version without an id then, and there is none: it refuses the
 * right etag too. */
static void what_has_a_version_is_written_over_though_versioning_was_suspended(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    struct rp_probed probed;
    for (int probed_again = 0; probed_again < 2; probed_again++) {
        s3_bucket_versioning(&f->bucket, "Enabled");
        ok(rp_backend_probe(s, true, &probed, &error));
        struct rp_identity stale = put_text(s, "k", "first"), over = put_text(s, "k", "second");
        assert_true(over.version[0]);
        s3_bucket_versioning(&f->bucket, "Suspended");
        if (probed_again) ok(rp_backend_probe(s, true, &probed, &error));
        assert_int_equal(put_bytes(s, "k", "stale", 5, NULL, RP_PUT_OVER, &stale, &error), RP_ECHANGED);
        expect_text(s, "k", "second");
        ok(put_bytes(s, "k", "third", 5, NULL, RP_PUT_OVER, &over, &error));
        expect_text(s, "k", "third");
        assert_string_equal(over.version, "");
        ok(put_bytes(s, "k", "fourth", 6, NULL, RP_PUT_OVER, &over, &error));
        expect_text(s, "k", "fourth");
    }
}

/* ---- listings ---- */

static int count_entry(void *ctx, const struct rp_entry *entry, struct rp_error *err)
{
    (void)entry, (void)err;
    ++*(size_t *)ctx;
    return 0;
}

/* Several pages of our own keys in the middle, which must not be read through. */
static void a_listing_of_many_pages_jumps_over_our_own_keys(void **state)
{
    struct fixture *f = *state;
    struct rp_backend *s = f->backend;
    s3_bucket_fill(&f->bucket, RP_STORE_QUARANTINE, 1100);
    s3_bucket_fill(&f->bucket, "k", 20);
    put_text(s, ".a", "x");
    put_text(s, ".reprieve0", "x");
    struct s3_wire_state before, after;
    size_t n = 0, own = 0;
    rp_s3_wire_state(rp_s3_of(s)->wire, &before);
    ok(rp_backend_list(s, "", NULL, count_entry, &n, &error));
    rp_s3_wire_state(rp_s3_of(s)->wire, &after);
    assert_int_equal(n, 20 + 2);
    assert_int_equal(after.requests - before.requests, 2);
    ok(rp_backend_list(s, ".reprieve/", NULL, count_entry, &own, &error));
    assert_int_equal(own, 1100);
}

/* ---- presigned URLs ---- */

static size_t body_take(char *bytes, size_t size, size_t n, void *to)
{
    return rp_buf_add(to, bytes, size * n) == 0 ? size * n : 0;
}

/* As any client would: plain libcurl, with the headers that it was told. */
static long use_url(const char *method, const struct rp_presigned *url, const char *body, size_t skip_header,
                    struct rp_buf *answer)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = NULL;
    long status = 0;
    for (size_t i = 0; i < url->n_headers; i++) {
        char line[400];
        if (i == skip_header || strcmp(url->headers[i].name, "content-length") == 0) continue;
        snprintf(line, sizeof line, "%s: %s", url->headers[i].name, url->headers[i].value);
        headers = curl_slist_append(headers, line);
    }
    headers = curl_slist_append(headers, "Expect:");
    if (body && !strstr(url->headers[1].name, "content-type")) headers = curl_slist_append(headers, "Content-Type:");
    curl_easy_setopt(curl, CURLOPT_URL, url->url);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (body) curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    if (strcmp(method, "HEAD") == 0) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, body_take);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, answer);
    assert_int_equal(curl_easy_perform(curl), CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return status;
}

static struct rp_presigned presign(struct rp_backend *s, const struct rp_presign *what, struct rp_arena *arena)
{
    struct rp_presigned url;
    struct rp_presign full = *what;
    ok(rp_backend_now_ms(s, &full.now_ms, &error));
    if (full.ends_at_ms == 0) full.ends_at_ms = full.now_ms + RP_HOUR_MS;
    ok(rp_backend_presign(s, &full, arena, &url, &error));
    return url;
}

static void a_presigned_put_takes_what_was_promised_and_nothing_else(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_buf answer = RP_BUF((size_t)1 << 20);
    const size_t none = SIZE_MAX;
    const struct rp_presign what = {
        .method = "PUT", .key = "dir/a b+\xc3\xbc", .size_bytes = 5, .content_type = "image/png"
    };
    struct rp_presigned url = presign(s, &what, &arena);
    assert_int_equal(url.n_headers, 3);
    assert_int_equal(use_url("PUT", &url, "bytesX", none, &answer), 403);
    assert_int_equal(use_url("PUT", &url, "bytes", 1, &answer), 403);
    assert_int_equal(use_url("PUT", &url, "bytes", 2, &answer), 403);
    expect_absent(s, what.key);
    assert_int_equal(use_url("PUT", &url, "bytes", none, &answer), 200);
    expect_text(s, what.key, "bytes");
    assert_int_equal(use_url("PUT", &url, "other", none, &answer), 412);
    expect_text(s, what.key, "bytes");
    uint8_t digest[RP_DIGEST_BYTES] = { 1 };
    const struct rp_presign summed = {
        .method = "PUT", .key = "summed", .size_bytes = 5, .content_type = "", .checksum = digest
    };
    url = presign(s, &summed, &arena);
    assert_string_equal(url.headers[1].name, "x-amz-checksum-sha256");
    assert_int_equal(use_url("PUT", &url, "bytes", 1, &answer), 403);
    rp_buf_done(&answer);
    rp_arena_done(&arena);
}

static void a_presigned_url_ends_within_the_last_second(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_presigned url;
    struct rp_presign what = { .method = "GET", .key = "k", .now_ms = 1790000000700, .ends_at_ms = 1790000001700 };
    ok(rp_backend_presign(s, &what, &arena, &url, &error));
    assert_non_null(strstr(url.url, "X-Amz-Expires=1&"));
    what.ends_at_ms = 1790000003100;
    ok(rp_backend_presign(s, &what, &arena, &url, &error));
    assert_non_null(strstr(url.url, "X-Amz-Expires=3&"));
    what.ends_at_ms = what.now_ms;
    assert_int_equal(rp_backend_presign(s, &what, &arena, &url, &error), RP_EINVAL);
    rp_arena_done(&arena);
}

static void a_presigned_get_says_what_it_was_told(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_buf answer = RP_BUF((size_t)1 << 20);
    put_text(s, "dir/../k?x=1", "bytes");
    struct rp_presign what = { .method = "GET",
                               .key = "dir/../k?x=1",
                               .content_type = "text/x-told",
                               .disposition = "attachment; filename=\"a b.txt\"" };
    struct rp_presigned url = presign(s, &what, &arena);
    assert_int_equal(url.n_headers, 0);
    assert_int_equal(use_url("GET", &url, NULL, SIZE_MAX, &answer), 200);
    assert_non_null(strstr(rp_buf_text(&answer), "text/x-told"));
    assert_non_null(strstr(rp_buf_text(&answer), "filename=\"a b.txt\""));
    assert_non_null(strstr(rp_buf_text(&answer), "\r\n\r\nbytes"));
    what.method = "HEAD";
    url = presign(s, &what, &arena);
    assert_int_equal(use_url("HEAD", &url, NULL, SIZE_MAX, &answer), 200);
    rp_buf_done(&answer);
    rp_arena_done(&arena);
}

static void a_url_has_an_end(void **state)
{
    struct rp_backend *s = store_of(state);
    struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_buf answer = RP_BUF((size_t)1 << 20);
    struct rp_presign what = { .method = "GET", .key = "k", .content_type = "" };
    struct rp_presigned url;
    put_text(s, "k", "bytes");
    ok(rp_backend_now_ms(s, &what.now_ms, &error));
    what.ends_at_ms = what.now_ms + 8 * RP_DAY_MS;
    assert_int_equal(rp_backend_presign(s, &what, &arena, &url, &error), RP_EINVAL);
    what.ends_at_ms = what.now_ms;
    assert_int_equal(rp_backend_presign(s, &what, &arena, &url, &error), RP_EINVAL);
    what.now_ms -= RP_HOUR_MS;
    what.ends_at_ms = what.now_ms + 30 * RP_MINUTE_MS;
    ok(rp_backend_presign(s, &what, &arena, &url, &error));
    assert_int_equal(use_url("GET", &url, NULL, SIZE_MAX, &answer), 403);
    const struct rp_presign huge = { .method = "PUT",
                                     .key = "k",
                                     .now_ms = what.now_ms,
                                     .ends_at_ms = what.ends_at_ms,
                                     .size_bytes = INT64_C(6) << 30,
                                     .content_type = "" };
    assert_int_equal(rp_backend_presign(s, &huge, &arena, &url, &error), RP_ETOOBIG);
    rp_buf_done(&answer);
    rp_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_PLAIN(a_missing_bucket_is_the_stores_trouble_and_nothing_is_gone),
        ON_PLAIN(wrong_keys_are_told_apart),
        ON_PLAIN(a_server_that_is_not_there_is_unavailable),
        ON_PLAIN(the_stores_clock_is_the_servers),
        ON_PLAIN(sizes_around_a_part_come_back_whole),
        ON_VERSIONED(sizes_around_a_part_come_back_whole),
        ON_PLAIN(a_large_new_object_overwrites_nothing),
        ON_PLAIN(a_source_that_breaks_in_a_later_part_leaves_no_upload_behind),
        ON_PLAIN(a_sink_that_fails_ends_a_get_with_its_own_error),
        ON_PLAIN(a_copy_in_parts_takes_everything_along),
        ON_VERSIONED(a_copy_in_parts_takes_everything_along),
        ON_PLAIN(unfinished_uploads_are_listed_and_aborted),
        ON_PLAIN(what_other_programs_wrote_is_read_as_it_is),
        ON_PLAIN(names_and_values_of_every_kind_come_back),
        ON_PLAIN(annotations_are_tags_and_leave_other_tags_alone),
        ON_VERSIONED(annotations_are_tags_and_leave_other_tags_alone),
        ON_PLAIN(an_annotation_in_the_metadata_itself_is_hidden_by_its_tag),
        ON_VERSIONED(without_tags_a_versioned_object_is_copied_onto_itself),
        ON_PLAIN(without_tags_and_versions_nothing_is_annotated),
        ON_VERSIONED(entries_of_a_versioned_bucket_name_the_latest_version),
        ON_VERSIONED(a_key_with_many_versions_is_listed_once),
        ON_PLAIN(what_was_there_before_versioning_has_no_version),
        ON_VERSIONED(what_has_a_version_is_written_over_though_versioning_was_suspended),
        ON_PLAIN(a_listing_of_many_pages_jumps_over_our_own_keys),
        ON_PLAIN(a_presigned_put_takes_what_was_promised_and_nothing_else),
        ON_PLAIN(a_presigned_url_ends_within_the_last_second),
        ON_PLAIN(a_presigned_get_says_what_it_was_told),
        ON_PLAIN(a_url_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
