/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations: as tags where the store has them, for then the bytes and the version stay what they
 * are; else as user metadata, by a copy of the object onto itself, and only where that was seen to
 * replace the metadata (powers.self_copy) and cannot overwrite an upload that came meanwhile: the
 * bucket keeps versions, or its keys are written once. Tags have no condition either: an upload
 * between the two looks gets our tags in the place of its own. That is seen, and they are taken off
 * again; tags that it brought itself are lost. */
#include <string.h>

#include "base/cleanup.h"
#include "store/meta.h"
#include "store/refuse.h"
#include "store/s3/meta.h"
#include "store/s3/s3.h"

#define ARENA_BYTES ((size_t)1 << 20)

struct annotating {
    struct rp_s3 *s3;
    const char *key;
    struct rp_arena arena;
    struct s3_call head; /* the look before */
    struct rp_meta stored;
    struct rp_pair changes[RP_META_MAX_PAIRS];
    size_t n;
    bool versions;
};

static void annotating_done(struct annotating *a)
{
    rp_s3_call_done(&a->head);
    rp_arena_done(&a->arena);
}

/* ---- tags ---- */

static int tags_put(struct rp_s3 *s3, const char *key, const struct rp_identity *identity, const struct rp_pair *tags,
                    size_t n, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", key);
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF((size_t)64 << 10);
    rp_s3_query(&call, "tagging", "");
    if (identity) rp_s3_query_version(&call, identity, rp_s3_powers(s3).versions);
    int r = rp_s3_write_tags(&body, tags, n, err);
    if (r < 0) return r;
    rp_s3_send(&call, NULL, 0, &body);
    return rp_s3_run(s3, &call, err);
}

/* A server that cannot delete the tags of an object may still take none in their place. */
int rp_s3_tags_write(struct rp_s3 *s3, const char *key, const struct rp_identity *identity, const struct rp_pair *tags,
                     size_t n, struct rp_error *err)
{
    if (n > 0) return tags_put(s3, key, identity, tags, n, err);
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("DELETE", key);
    rp_s3_query(&call, "tagging", "");
    if (identity) rp_s3_query_version(&call, identity, rp_s3_powers(s3).versions);
    int r = rp_s3_run(s3, &call, err);
    if (call.status != 405 && call.status != 501) return r;
    rp_error_clear(err);
    return tags_put(s3, key, identity, NULL, 0, err);
}

/* What landed on a newer upload is taken off it. As good as can be: the error is told in any
 * case. */
static void tags_take_back(struct annotating *a, const struct rp_identity *newer)
{
    struct rp_pair *tags = NULL, left[S3_TAGS_MAX];
    size_t n = 0, n_left = 0;
    if (rp_s3_tags_read(a->s3, a->key, newer, &a->arena, &tags, &n, NULL) < 0) return;
    for (size_t i = 0; i < n && n_left < S3_TAGS_MAX; i++)
        if (!rp_pair_find(a->changes, a->n, tags[i].name)) left[n_left++] = tags[i];
    if (n_left < n) rp_s3_tags_write(a->s3, a->key, newer, left, n_left, NULL);
}

/* Ceph gives an object a new time when its tags change. An upload of identical bytes between the
 * two looks cannot be told from that where there are no versions (T2). */
static bool is_same_later(const struct rp_identity *before, const struct rp_identity *now)
{
    struct rp_identity timed = *before;
    timed.modified_ms = now->modified_ms;
    return now->modified_ms >= before->modified_ms && rp_identity_equal(&timed, now);
}

static int by_tags(struct annotating *a, struct rp_identity *identity, struct rp_error *err)
{
    struct rp_pair *tags = NULL, wanted[S3_TAGS_MAX];
    size_t n = 0, n_wanted = 0;
    int r = rp_s3_tags_read(a->s3, a->key, identity, &a->arena, &tags, &n, err);
    if (r < 0) return r;
    r = rp_s3_tags_change(tags, n, &a->stored, a->changes, a->n, &a->arena, wanted, &n_wanted, err);
    if (r < 0 || (n == 0 && n_wanted == 0)) return r;
    if ((r = rp_s3_tags_write(a->s3, a->key, identity, wanted, n_wanted, err)) < 0) return r;
    struct rp_identity now;
    if ((r = rp_s3_identify(a->s3, a->key, "", &now, err)) < 0) return r;
    if (!is_same_later(identity, &now)) {
        if (!a->versions) tags_take_back(a, &now);
        return rp_refuse_changed(a->key, err);
    }
    *identity = now;
    return 0;
}

/* ---- a copy onto itself ---- */

static bool is_changed(void *ctx, const char *name)
{
    const struct annotating *a = ctx;
    return rp_pair_find(a->changes, a->n, name) != NULL;
}

static int by_copy(struct annotating *a, struct rp_identity *identity, struct rp_error *err)
{
    struct s3_headers headers = { 0 };
    struct rp_pair set[RP_META_MAX_PAIRS];
    struct rp_meta added = { .user = set };
    char etag[RP_ETAG_MAX] = "";
    for (size_t i = 0; i < a->n; i++)
        if (a->changes[i].value) set[added.n_user++] = a->changes[i];
    int r = rp_meta_check(&added, err);
    if (r == 0) r = rp_s3_headers_again(&headers, &a->head.headers, is_changed, a, &a->arena, err);
    if (r == 0) r = rp_s3_headers_meta(&headers, &added, &a->arena, err);
    if (r == 0) r = rp_s3_copy_bytes(a->s3, a->key, identity, a->key, &headers, etag, err);
    if (r < 0) return r;
    struct rp_identity now;
    r = rp_s3_identify(a->s3, a->key, "", &now, err);
    if (r < 0) return rp_error_wrap(err, RP_EUNKNOWN, "annotate '%s'", a->key);
    if (now.size_bytes != identity->size_bytes || (etag[0] && strcmp(now.etag, etag) != 0))
        return rp_refuse_changed(a->key, err);
    *identity = now;
    return 0;
}

/* ---- the slot ---- */

/* Annotations by their own names, each once, and none that is away already and shall be. */
static int take_changes(struct annotating *a, const struct rp_pair *changes, size_t n, bool any_name,
                        struct rp_error *err)
{
    for (size_t i = n; i-- > 0;) {
        const char *name = rp_s3_annotation(changes[i].name);
        if (!name && !changes[i].value && !rp_pair_find(a->stored.user, a->stored.n_user, changes[i].name)) continue;
        if (!name && !any_name)
            return rp_error_advise(err, RP_EINVAL,
                                   "the annotations are marked_for_deletion, marked_for_deletion_on, delete_after and "
                                   "deletion_reason",
                                   "'%.64s' is no annotation: a store annotates by tags, which cannot change metadata",
                                   changes[i].name);
        if (!name) name = changes[i].name;
        if (rp_pair_find(a->changes, a->n, name)) continue;
        if (a->n == RP_META_MAX_PAIRS) return rp_error_set(err, RP_ETOOBIG, "more than %d changes", RP_META_MAX_PAIRS);
        a->changes[a->n++] = (struct rp_pair){ name, changes[i].value };
    }
    return 0;
}

static int too_weak(const struct annotating *a, bool self_copy, struct rp_error *err)
{
    if (!self_copy)
        return rp_error_advise(err, RP_EWEAK, "do without annotations; `reprieve doctor` says what was seen",
                               "bucket '%.80s' takes no tags, and a copy of '%s' onto itself may change nothing",
                               a->s3->target.bucket, a->key);
    return rp_error_advise(
        err, RP_EWEAK,
        "turn on versioning, or set `keys: write_once` if no key is ever written twice, or do without annotations",
        "bucket '%.80s' takes no tags and keeps no versions: annotating '%s' could overwrite a newer upload",
        a->s3->target.bucket, a->key);
}

int rp_s3_annotate(struct rp_backend *backend, const char *key, struct rp_identity *identity,
                   const struct rp_pair *changes, size_t n, struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    struct s3_powers powers = rp_s3_powers(s3);
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    RP_CLEANUP(annotating_done)
    struct annotating a = { .s3 = s3,
                            .key = key,
                            .arena = RP_ARENA(ARENA_BYTES),
                            .head = rp_s3_call("HEAD", key),
                            .versions = powers.versions };
    struct rp_identity now;
    if ((r = rp_s3_head(s3, &a.head, &now, err)) < 0) return r;
    if (!rp_identity_equal(&now, identity)) return rp_refuse_changed(key, err);
    if ((r = rp_s3_meta_read(&a.head.headers, &a.arena, &a.stored, err)) < 0) return r;
    if ((r = take_changes(&a, changes, n, !powers.tags, err)) < 0) return r;
    if (a.n == 0) return 0;
    if (powers.tags) return by_tags(&a, identity, err);
    bool spares_newer = powers.versions || (s3->options.write_once && !powers.seen_changed);
    if (!spares_newer || !powers.self_copy) return too_weak(&a, !spares_newer || powers.self_copy, err);
    return by_copy(&a, identity, err);
}
