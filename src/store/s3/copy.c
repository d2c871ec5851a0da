/* SPDX-License-Identifier: Apache-2.0 */
/* Copies inside the bucket, with all headers, metadata and tags. Hardly a condition of a copy can
 * be relied on (Ceph passes over all of them), so both ends are looked at before and after, and
 * If-None-Match is sent where it was seen to hold (powers.copy_new). What remains: an upload to the
 * target between the look at it and the copy is overwritten where the bucket keeps no versions and
 * knows no such condition, or the object is copied in parts. The targets that we choose ourselves
 * (".reprieve/quarantine/") nobody else uploads to. A copy that has no condition and may overwrite
 * an upload is sent once: after an answer that was lost, what stands there is looked at. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/refuse.h"
#include "store/s3/meta.h"
#include "store/s3/s3.h"

#define ARENA_BYTES ((size_t)512 << 10)
#define PARTS_MAX   10000

static int expect(struct rp_s3 *s3, const char *key, const struct rp_identity *expected, struct rp_error *err)
{
    struct rp_identity now;
    int r = rp_s3_identify(s3, key, "", &now, err);
    if (r < 0) return r;
    return rp_identity_equal(&now, expected) ? 0 : rp_refuse_changed(key, err);
}

/* "/bucket/key?versionId=...", as a header wants it. */
static const char *source_of(struct rp_s3 *s3, const char *key, const struct rp_identity *identity,
                             struct rp_arena *arena)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF((size_t)8 << 10);
    rp_buf_fmt(&text, "/%s/", s3->target.bucket);
    rp_s3_encode(&text, key, true);
    if (identity->version[0] || rp_s3_powers(s3).versions) {
        rp_buf_str(&text, "?versionId=");
        rp_s3_encode(&text, identity->version[0] ? identity->version : "null", false);
    }
    return text.failed ? NULL : rp_arena_strdup(arena, rp_buf_text(&text));
}

static int add_source(struct rp_s3 *s3, const char *from, const struct rp_identity *identity, struct rp_arena *arena,
                      struct s3_headers *headers, struct rp_error *err)
{
    const char *source = source_of(s3, from, identity, arena);
    const char *etag = rp_arena_fmt(arena, "\"%s\"", identity->etag);
    if (!source || !etag) return rp_error_set(err, RP_ENOMEM, "no memory to copy '%s'", from);
    int r = rp_s3_headers_add(headers, "x-amz-copy-source", source, err);
    return r < 0 ? r : rp_s3_headers_add(headers, "x-amz-copy-source-if-match", etag, err);
}

static bool may_be_copy(const struct rp_identity *there, const struct rp_identity *identity, const char *etag)
{
    return etag[0] && strcmp(there->etag, etag) == 0 && there->size_bytes == identity->size_bytes;
}

/* Whether a copy stands there, though no answer said so. A copy onto itself cannot be told from
 * what was there before. */
static int find_copy(struct rp_s3 *s3, const char *from, const struct rp_identity *identity, const char *to,
                     const char *etag, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", to);
    struct rp_identity there;
    call.patience_ms = rp_s3_patience(s3, S3_REACH_MS); /* the call before has used up its own */
    if (strcmp(from, to) != 0 && rp_s3_head(s3, &call, &there, NULL) == 0 && may_be_copy(&there, identity, etag)) {
        rp_error_clear(err);
        return 0;
    }
    return rp_error_wrap(err, RP_EUNKNOWN, "whether '%s' was copied cannot be seen", from);
}

/* Without a condition: a repetition could overwrite an upload that came meanwhile. */
static bool is_sent_once(struct rp_s3 *s3, const char *to)
{
    return !rp_s3_powers(s3).versions && !rp_key_is_own(to);
}

/* ---- one request ---- */

/* An etag of several parts does not say what that of a copy in one piece is. */
static void foretell_etag_of_copy(const struct rp_identity *identity, char out[RP_ETAG_MAX])
{
    snprintf(out, RP_ETAG_MAX, "%s", strchr(identity->etag, '-') ? "" : identity->etag);
}

/* 412 is said of either end. Of a request that was repeated the first may have made what stands
 * there now. */
static int judge_refusal(struct rp_s3 *s3, const struct s3_call *refused, const struct rp_identity *identity,
                         const char *to, const char *etag, int why, struct rp_error *err)
{
    struct rp_error unseen = { 0 };
    struct rp_identity there;
    int r = rp_s3_identify(s3, to, "", &there, &unseen);
    if (r == RP_ENOTFOUND) return why;
    if (r < 0) return rp_error_wrap(err, RP_EUNKNOWN, "whether '%s' was copied cannot be seen", to);
    if (refused->attempts <= 1 || !may_be_copy(&there, identity, etag)) return rp_refuse_taken(to, err);
    rp_error_clear(err);
    return 0;
}

static int copy_whole(struct rp_s3 *s3, const char *from, const struct rp_identity *identity, const char *to,
                      const struct s3_headers *anew, struct rp_arena *arena, char etag[RP_ETAG_MAX],
                      struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", to);
    struct s3_headers headers = { 0 };
    if (anew) headers = *anew;
    int r = add_source(s3, from, identity, arena, &headers, err);
    if (r == 0) r = rp_s3_headers_add(&headers, "x-amz-metadata-directive", anew ? "REPLACE" : "COPY", err);
    bool only_new = rp_s3_powers(s3).copy_new && strcmp(from, to) != 0;
    if (r == 0 && only_new) r = rp_s3_headers_add(&headers, "if-none-match", "*", err);
    if (r < 0) return r;
    rp_s3_send(&call, headers.pairs, headers.n, &(struct rp_buf){ 0 });
    call.once = !only_new && is_sent_once(s3, to);
    foretell_etag_of_copy(identity, etag);
    r = rp_s3_run(s3, &call, err);
    if (only_new && (r == RP_ECHANGED || r == RP_ECONFLICT))
        return judge_refusal(s3, &call, identity, to, etag, r, err);
    if (r < 0 && r != RP_EUNKNOWN) return r;
    if (r == 0) /* an error in an answer 200 leaves open what came of it */
        r = rp_s3_told_etag(&call, "CopyObjectResult", etag, err);
    if (r < 0) return find_copy(s3, from, identity, to, etag, err);
    return 0;
}

/* ---- in parts ---- */

struct parts {
    struct rp_s3 *s3;
    const char *from, *to;
    const struct rp_identity *identity;
    char upload[S3_UPLOAD_MAX];
    struct s3_part *parts;
    size_t n;
};

static int copy_part(struct parts *p, int64_t part_bytes, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", p->to);
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(ARENA_BYTES);
    struct s3_headers headers = { 0 };
    char number[24], range[64];
    struct s3_part *part = &p->parts[p->n];
    int64_t begin = (int64_t)p->n * part_bytes, end = begin + part_bytes;
    if (end > p->identity->size_bytes) end = p->identity->size_bytes;
    snprintf(number, sizeof number, "%zu", p->n + 1);
    snprintf(range, sizeof range, "bytes=%" PRId64 "-%" PRId64, begin, end - 1);
    int r = add_source(p->s3, p->from, p->identity, &arena, &headers, err);
    if (r == 0) r = rp_s3_headers_add(&headers, "x-amz-copy-source-range", range, err);
    if (r < 0) return r;
    rp_s3_query(&call, "partNumber", number);
    rp_s3_query(&call, "uploadId", p->upload);
    rp_s3_send(&call, headers.pairs, headers.n, &(struct rp_buf){ 0 });
    if ((r = rp_s3_run(p->s3, &call, err)) < 0) return r;
    part->number = (int)++p->n;
    return rp_s3_told_etag(&call, "CopyPartResult", part->etag, err);
}

static int copy_all_parts(struct parts *p, int64_t part_bytes, char etag[RP_ETAG_MAX], struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("POST", p->to);
    int r = 0;
    while (r == 0 && (int64_t)p->n * part_bytes < p->identity->size_bytes)
        r = copy_part(p, part_bytes, err);
    if (r < 0) return r;
    call.once = is_sent_once(p->s3, p->to);
    r = rp_s3_upload_end(p->s3, &call, p->upload, p->parts, p->n, etag, err);
    bool lost = r == RP_EUNKNOWN || (r == RP_ENOTFOUND && call.attempts > 1);
    return lost ? find_copy(p->s3, p->from, p->identity, p->to, etag, err) : r;
}

/* An upload in parts takes nothing along by itself: `headers` name everything but the tags, which
 * Ceph passes over at its beginning. */
static int copy_in_parts(struct rp_s3 *s3, const char *from, const struct rp_identity *identity, const char *to,
                         const struct s3_headers *headers, char etag[RP_ETAG_MAX], struct rp_error *err)
{
    int64_t part_bytes = s3->copy_part;
    while (identity->size_bytes / part_bytes >= PARTS_MAX)
        part_bytes *= 2;
    RP_CLEANUP(rp_freep) struct s3_part *parts = calloc((size_t)(identity->size_bytes / part_bytes) + 1, sizeof *parts);
    struct parts p = { .s3 = s3, .from = from, .to = to, .identity = identity, .parts = parts };
    if (!parts) return rp_error_set(err, RP_ENOMEM, "no memory to copy '%s'", from);
    int r = rp_s3_upload_begin(s3, to, headers, p.upload, err);
    if (r < 0) return r;
    r = copy_all_parts(&p, part_bytes, etag, err);
    if (r < 0 && r != RP_EUNKNOWN) rp_s3_abort_partial(&s3->base, to, p.upload, NULL);
    return r;
}

/* Ceph 16 decodes the source of a copied part twice: a key with one of these would name another
 * object, or none, and the etags of such a copy cannot show it. */
static int refuse_ambiguous(const char *from, struct rp_error *err)
{
    if (!strpbrk(from, "%+")) return 0;
    rp_error_set(err, RP_EWEAK, "'%s' is too large for one copy, and a copy in parts could take another object for it",
                 from);
    return rp_error_hint(err, "S3 servers disagree about %% and + in the key of a part's source: copy it by other "
                              "means, to a key without them");
}

/* Two requests with two identities could mix two objects: the parts' condition (If-Match, or the
 * version) and the look afterwards are against it. */
static int copy_large(struct rp_s3 *s3, const char *from, const struct rp_identity *identity, const char *to,
                      const struct s3_headers *anew, struct rp_arena *arena, char etag[RP_ETAG_MAX],
                      struct rp_error *err)
{
    struct s3_headers headers = { 0 };
    struct rp_pair *tags = NULL;
    size_t n_tags = 0;
    int r = refuse_ambiguous(from, err);
    if (r < 0) return r;
    if (anew) {
        headers = *anew;
    } else {
        RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", from);
        struct rp_identity now;
        if ((r = rp_s3_head(s3, &call, &now, err)) < 0) return r;
        if (!rp_identity_equal(&now, identity)) return rp_refuse_changed(from, err);
        r = rp_s3_headers_again(&headers, &call.headers, NULL, NULL, arena, err);
    }
    if (r == 0) r = rp_s3_tags_read(s3, from, identity, arena, &tags, &n_tags, err);
    if (r == 0) r = copy_in_parts(s3, from, identity, to, &headers, etag, err);
    return r < 0 || n_tags == 0 ? r : rp_s3_tags_write(s3, to, NULL, tags, n_tags, err);
}

int rp_s3_copy_bytes(struct rp_s3 *s3, const char *from, const struct rp_identity *identity, const char *to,
                     const struct s3_headers *anew, char etag[RP_ETAG_MAX], struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(ARENA_BYTES);
    int r = identity->size_bytes > s3->copy_max ? copy_large(s3, from, identity, to, anew, &arena, etag, err)
                                                : copy_whole(s3, from, identity, to, anew, &arena, etag, err);
    if (r == RP_ENOTFOUND || r == RP_ECHANGED)
        return rp_error_wrap(err, RP_ECHANGED, "'%s' has changed while it was copied", from);
    return r;
}

/* ---- the slot ---- */

/* An etag says what the bytes are only where it was made in one piece at both ends. */
static bool same_bytes(const struct rp_identity *a, const struct rp_identity *b)
{
    if (a->size_bytes != b->size_bytes) return false;
    return strchr(a->etag, '-') || strchr(b->etag, '-') || strcmp(a->etag, b->etag) == 0;
}

static void take_back(struct rp_s3 *s3, const char *key, const struct rp_identity *identity)
{
    struct rp_item item = { .key = key, .identity = *identity };
    rp_s3_remove(&s3->base, &item, 1, NULL, NULL);
}

/* What stands there with another etag than the copy was given is an upload of somebody else, and
 * stays. */
static int verify(struct rp_s3 *s3, const char *from, const struct rp_identity *expected, const char *to,
                  const char *etag, struct rp_identity *out, struct rp_error *err)
{
    struct rp_identity made;
    int r = rp_s3_identify(s3, to, "", &made, err);
    if (r < 0) return rp_error_wrap(err, RP_EUNKNOWN, "copy '%s' to '%s'", from, to);
    if (etag[0] && strcmp(made.etag, etag) != 0)
        return rp_error_set(err, RP_EEXISTS, "'%s' was overwritten while '%s' was copied to it", to, from);
    r = expect(s3, from, expected, err);
    bool same = same_bytes(expected, &made);
    if (r == 0 && same) {
        if (out) *out = made;
        return 0;
    }
    if (r < 0 && r != RP_ECHANGED && r != RP_ENOTFOUND)
        return rp_error_wrap(err, RP_EUNKNOWN, "copy '%s' to '%s'", from, to);
    if (etag[0]) take_back(s3, to, &made);
    return rp_error_set(err, RP_ECHANGED, "'%s' has changed while it was copied", from);
}

/* What stands under one of our own keys is the copy of an earlier attempt. In parts it shows before
 * it has its tags: that attempt may have ended between the two. */
static int complete_tags(struct rp_s3 *s3, const char *from, const struct rp_identity *expected, const char *to,
                         struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(ARENA_BYTES);
    struct rp_error why = { 0 };
    struct rp_pair *tags = NULL;
    size_t n = 0;
    if (!rp_key_is_own(to) || expected->size_bytes <= s3->copy_max) return RP_EEXISTS;
    int r = rp_s3_tags_read(s3, from, expected, &arena, &tags, &n, &why);
    if (r == 0 && n > 0) r = rp_s3_tags_write(s3, to, NULL, tags, n, &why);
    if (r == 0) return RP_EEXISTS;
    rp_error_copy(err, &why);
    return r;
}

int rp_s3_copy(struct rp_backend *backend, const char *from, const struct rp_identity *expected, const char *to,
               struct rp_identity *out, struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    char etag[RP_ETAG_MAX] = "";
    int r = rp_key_check(from, strlen(from), err);
    if (r < 0 || (r = rp_key_check(to, strlen(to), err)) < 0) return r;
    if ((r = expect(s3, from, expected, err)) < 0) return r;
    r = rp_s3_expect_free(s3, to, err);
    if (r < 0) return r == RP_EEXISTS ? complete_tags(s3, from, expected, to, err) : r;
    if ((r = rp_s3_copy_bytes(s3, from, expected, to, NULL, etag, err)) < 0) return r;
    return verify(s3, from, expected, to, etag, out, err);
}
