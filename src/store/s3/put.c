/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: one PUT up to S3_PART_BYTES, an upload in parts above it. The SHA-256 of every body is
 * signed, so that the server refuses bytes that changed on the way. A PUT that has to be repeated
 * puts the same bytes again.
 *
 * RP_PUT_NEW holds where If-None-Match was seen to hold (powers.put_new), and then for one PUT
 * only: Ceph ends an upload in parts over whatever stands there. Otherwise the key is looked at
 * right before; what remains is the time between. Where the bucket keeps versions nothing remains:
 * an upload that came to stand on another one is deleted again, by its version (Ceph lets every one
 * of several such uploads at once succeed).
 *
 * RP_PUT_OVER likewise: with If-Match where that was seen to hold (powers.put_if_match) and for one
 * PUT only; otherwise a look, and a request that is sent once. Where the bucket keeps versions, an
 * upload that did not come to stand right on that one is deleted again as well. Once versioning is
 * suspended, Ceph holds If-Match against the version without an id only: what has one is written
 * over by a look as well. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "store/meta.h"
#include "store/s3/meta.h"
#include "store/s3/put.h"

#define META_ARENA_BYTES ((size_t)512 << 10)
#define PARTS_MAX        10000
#define AT_ONCE          2 /* parts under way, and buffers for them */

struct putting {
    struct s3_put put;
    bool put_new; /* If-None-Match holds */
    bool by_look; /* If-Match was refused although that stands there */
    struct s3_headers headers;
    struct rp_arena arena;
    char *buffers[AT_ONCE];
    size_t filled[AT_ONCE];
    bool ended; /* the source has no more */
    /* in parts */
    char upload[S3_UPLOAD_MAX];
    struct s3_part *parts;
    size_t n_parts, cap_parts;
};

static void putting_done(struct putting *p)
{
    for (size_t i = 0; i < AT_ONCE; i++)
        free(p->buffers[i]);
    free(p->parts);
    rp_arena_done(&p->arena);
}

static int fill(struct putting *p, size_t i, const struct rp_source *from, struct rp_error *err)
{
    p->filled[i] = 0;
    if (!p->buffers[i] && !(p->buffers[i] = malloc(S3_PART_BYTES)))
        return rp_error_set(err, RP_ENOMEM, "no memory to write an object");
    while (!p->ended && p->filled[i] < S3_PART_BYTES) {
        int64_t n = from->read(from->ctx, p->buffers[i] + p->filled[i], S3_PART_BYTES - p->filled[i], err);
        if (n < 0) return (int)n;
        RP_ASSERT((size_t)n <= S3_PART_BYTES - p->filled[i]);
        p->filled[i] += (size_t)n;
        p->ended = n == 0;
    }
    p->put.size_bytes += (int64_t)p->filled[i];
    return 0;
}

/* ---- whole ---- */

/* In the request, or looked at right before it: `once`, for what was seen gets older. Where the
 * bucket keeps versions a repetition overwrites nothing, and give_way() sees what it stands on. */
static int add_condition(struct putting *p, bool *once, struct rp_error *err)
{
    struct s3_powers powers = rp_s3_powers(p->put.s3);
    if (p->put.flags & RP_PUT_NEW) {
        *once = !p->put_new && !powers.versions;
        return p->put_new ? rp_s3_headers_add(&p->headers, "if-none-match", "*", err)
                          : rp_s3_expect_free(p->put.s3, p->put.key, err);
    }
    if (!(p->put.flags & RP_PUT_OVER)) return 0;
    *once = p->by_look || !powers.put_if_match;
    if (*once) return rp_s3_put_expect_over(&p->put, false, err);
    const char *quote = powers.put_if_match_bare ? "" : "\"";
    const char *etag = rp_arena_fmt(&p->arena, "%s%s%s", quote, p->put.over.etag, quote);
    return etag ? rp_s3_headers_add(&p->headers, "if-match", etag, err)
                : rp_error_set(err, RP_ENOMEM, "no memory to put '%s'", p->put.key);
}

static bool is_refused_in_vain(const struct putting *p, const struct s3_call *call, int r)
{
    struct rp_error ignored = { 0 };
    bool conditional = (p->put.flags & RP_PUT_OVER) && !call->once && call->attempts == 1;
    return r == RP_ECHANGED && conditional && p->put.over.version[0] &&
           rp_s3_put_expect_over(&p->put, false, &ignored) == 0;
}

static int put_whole(struct putting *p, struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", p->put.key);
    char etag[RP_ETAG_MAX] = "";
    int r = add_condition(p, &call.once, err);
    if (r < 0) return r;
    rp_s3_send(&call, p->headers.pairs, p->headers.n, NULL);
    call.message.body = p->buffers[0];
    call.message.body_bytes = p->filled[0];
    r = rp_s3_run(p->put.s3, &call, err);
    if (is_refused_in_vain(p, &call, r)) {
        p->by_look = true;
        p->headers.n--; /* the condition */
        rp_error_clear(err);
        return put_whole(p, out, err);
    }
    if (r == 0 && !rp_s3_etag_of(&call, etag))
        r = rp_error_set(err, RP_EUNKNOWN, "the answer to the put of '%s' has no etag", p->put.key);
    if (r < 0 && !rp_s3_md5_hex(p->buffers[0], p->filled[0], etag)) etag[0] = '\0';
    return rp_s3_put_conclude(&p->put, &call, r, etag, out, err);
}

/* ---- in parts ---- */

static int room_for_part(struct putting *p, struct rp_error *err)
{
    if (p->n_parts == PARTS_MAX)
        return rp_error_advise(err, RP_ETOOBIG, "upload it by other means, in larger parts",
                               "'%s' is larger than %d parts of %zu MiB", p->put.key, PARTS_MAX, S3_PART_BYTES >> 20);
    if (p->n_parts < p->cap_parts) return 0;
    size_t cap = p->cap_parts ? 2 * p->cap_parts : 16;
    struct s3_part *grown = reallocarray(p->parts, cap, sizeof *grown);
    if (!grown) return rp_error_set(err, RP_ENOMEM, "no memory for an upload in parts");
    p->parts = grown;
    p->cap_parts = cap;
    return 0;
}

static int part_judge(struct putting *p, const struct s3_call *call, struct rp_error *err)
{
    char etag[RP_ETAG_MAX];
    if (call->code < 0 || call->status != 200) return rp_s3_error(p->put.s3, call, err);
    if (!rp_s3_etag_of(call, etag))
        return rp_error_set(err, RP_ECORRUPT, "the answer to a part of '%s' has no etag", p->put.key);
    int r = room_for_part(p, err);
    if (r < 0) return r;
    struct s3_part *part = &p->parts[p->n_parts++];
    part->number = (int)p->n_parts;
    memcpy(part->etag, etag, sizeof part->etag);
    return 0;
}

static int send_parts(struct putting *p, size_t n, struct rp_error *err)
{
    struct s3_call calls[AT_ONCE];
    char numbers[AT_ONCE][24];
    for (size_t i = 0; i < n; i++) {
        calls[i] = rp_s3_call("PUT", p->put.key);
        snprintf(numbers[i], sizeof numbers[i], "%zu", p->n_parts + i + 1);
        rp_s3_query(&calls[i], "partNumber", numbers[i]);
        rp_s3_query(&calls[i], "uploadId", p->upload);
        calls[i].message.body = p->buffers[i];
        calls[i].message.body_bytes = p->filled[i];
    }
    int r = rp_s3_wire_run(p->put.s3->wire, calls, n, err);
    for (size_t i = 0; i < n; i++) {
        if (r == 0) r = part_judge(p, &calls[i], err);
        rp_s3_call_done(&calls[i]);
    }
    return r;
}

/* Two buffers are full when this begins. */
static int send_all(struct putting *p, const struct rp_source *from, struct rp_error *err)
{
    for (;;) {
        size_t n = p->filled[1] > 0 ? 2 : 1;
        int r = send_parts(p, n, err);
        if (r < 0 || p->ended) return r;
        if ((r = fill(p, 0, from, err)) < 0 || (r = fill(p, 1, from, err)) < 0) return r;
        if (p->filled[0] == 0) return 0;
    }
}

static int complete(struct putting *p, struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("POST", p->put.key);
    static const struct rp_pair only_new = { "if-none-match", "*" };
    char etag[RP_ETAG_MAX];
    if (p->put.flags & RP_PUT_NEW) {
        int r = rp_s3_expect_free(p->put.s3, p->put.key, err);
        if (r < 0) return r;
        rp_s3_send(&call, &only_new, p->put_new ? 1 : 0, NULL);
        call.once = !rp_s3_powers(p->put.s3).versions; /* Ceph passes over the condition */
    }
    if (p->put.flags & RP_PUT_OVER) {
        int r = rp_s3_put_expect_over(&p->put, false, err);
        if (r < 0) return r;
        call.once = true;
    }
    int r = rp_s3_upload_end(p->put.s3, &call, p->upload, p->parts, p->n_parts, etag, err);
    return rp_s3_put_conclude(&p->put, &call, r, etag, out, err);
}

static int put_in_parts(struct putting *p, const struct rp_source *from, struct rp_identity *out, struct rp_error *err)
{
    int r = rp_s3_upload_begin(p->put.s3, p->put.key, &p->headers, p->upload, err);
    if (r < 0) return r;
    if ((r = send_all(p, from, err)) == 0) r = complete(p, out, err);
    /* Not if its end may have been carried out: aborting then could only say what is known
     * already. */
    if (r < 0 && r != RP_EUNKNOWN) rp_s3_abort_partial(&p->put.s3->base, p->put.key, p->upload, NULL);
    return r;
}

int rp_s3_put(struct rp_backend *backend, const char *key, const struct rp_source *from, const struct rp_meta *meta,
              int flags, struct rp_identity *out, struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_meta_check(meta, err)) < 0) return r;
    RP_CLEANUP(putting_done)
    struct putting p = { .put = { .s3 = s3, .key = key, .flags = flags },
                         .put_new = rp_s3_powers(s3).put_new,
                         .arena = RP_ARENA(META_ARENA_BYTES) };
    if (flags & RP_PUT_OVER) p.put.over = *out;
    if (rp_s3_wire_clock(s3->wire, &p.put.begun_ms)) p.put.begun_ms -= p.put.begun_ms % RP_SECOND_MS;
    if ((r = rp_s3_headers_meta(&p.headers, meta, &p.arena, err)) < 0) return rp_error_wrap(err, r, "put '%s'", key);
    if ((r = fill(&p, 0, from, err)) < 0) return r;
    if (!p.ended && (r = fill(&p, 1, from, err)) < 0) return r;
    return p.filled[1] > 0 ? put_in_parts(&p, from, out, err) : put_whole(&p, out, err);
}
