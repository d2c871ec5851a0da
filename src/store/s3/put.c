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
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "store/meta.h"
#include "store/s3/meta.h"
#include "store/s3/span.h"

#define META_ARENA_BYTES ((size_t)512 << 10)
#define PARTS_MAX        10000
#define AT_ONCE          2 /* parts under way, and buffers for them */
#define MD5_BYTES        16
#define OURS_MAX         16

struct putting {
    struct rp_s3 *s3;
    const char *key;
    int flags;
    bool put_new;            /* If-None-Match holds */
    struct rp_identity over; /* RP_PUT_OVER: what may be replaced */
    bool by_look;            /* If-Match was refused although that stands there */
    struct s3_headers headers;
    struct rp_arena arena;
    char *buffers[AT_ONCE];
    size_t filled[AT_ONCE];
    bool ended; /* the source has no more */
    int64_t size_bytes;
    int64_t begun_ms; /* whole seconds of the server's clock, as its dates are; 0: not known */
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
    p->size_bytes += (int64_t)p->filled[i];
    return 0;
}

/* ---- what came of it ---- */

static bool md5_hex(const void *bytes, size_t n, char out[RP_ETAG_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_Digest(bytes, n, digest, &length, EVP_md5(), NULL) != 1 || length != MD5_BYTES) return false;
    for (unsigned i = 0; i < length; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", digest[i]);
    return true;
}

static int taken(const struct putting *p, struct rp_error *err)
{
    return rp_error_set(err, RP_EEXISTS, "bucket '%.80s': '%s' exists already", p->s3->target.bucket, p->key);
}

/* What stands there is not what may be replaced. */
static int moved_on(const struct putting *p, bool there, struct rp_error *err)
{
    if (!there) return rp_error_set(err, RP_ENOTFOUND, "bucket '%.80s': no object '%s'", p->s3->target.bucket, p->key);
    return rp_error_set(err, RP_ECHANGED, "bucket '%.80s': '%s' has changed", p->s3->target.bucket, p->key);
}

/* A request that was refused was so because of what stands there: servers say 412 of what is absent
 * as well. */
static int expect_over(const struct putting *p, bool refused, struct rp_error *err)
{
    struct rp_identity there;
    int r = rp_s3_identify(p->s3, p->key, "", &there, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    return r == 0 && !refused && rp_identity_equal(&there, &p->over) ? 0 : moved_on(p, r == 0, err);
}

/* The answer to a PUT has no Last-Modified, hence one more look. Who finds another upload there has
 * been overtaken: this one was whole, and is history; its time is then that of the answer. */
static int identify(const struct putting *p, const struct s3_call *call, const char *etag, struct rp_identity *out,
                    struct rp_error *err)
{
    struct rp_identity made = { .size_bytes = p->size_bytes }, found;
    if (!out) return 0;
    rp_s3_version_of(call, made.version);
    snprintf(made.etag, sizeof made.etag, "%s", etag);
    rp_s3_header_date(call, "date", &made.modified_ms);
    int r = rp_s3_identify(p->s3, p->key, made.version, &found, err);
    if (r == 0 && (!etag[0] || strcmp(found.etag, etag) == 0) && found.size_bytes == p->size_bytes)
        made = found;
    else if (r < 0 && r != RP_ENOTFOUND)
        return rp_error_wrap(err, RP_EUNKNOWN, "'%s' was put, but what it is now cannot be seen", p->key);
    *out = made;
    return 0;
}

/* ---- answers that were lost ---- */

/* By its bytes, and not from before this put: an older object of the same bytes may have other
 * headers. */
static bool is_ours(const struct putting *p, const char *etag, const struct rp_identity *there)
{
    return etag[0] && strcmp(there->etag, etag) == 0 && there->size_bytes == p->size_bytes &&
           there->modified_ms >= p->begun_ms;
}

/* Whether what was put stands there, though no answer said so. `why` is what is known without
 * that. */
static int find_ours(const struct putting *p, const char *etag, int why, struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", p->key);
    struct rp_error unseen = { 0 };
    struct rp_identity there;
    call.patience_ms = rp_s3_patience(p->s3, S3_REACH_MS); /* the call before has used up its own */
    int r = rp_s3_head(p->s3, &call, &there, &unseen);
    bool over = p->flags & RP_PUT_OVER;
    bool known = p->begun_ms > 0 || (p->flags & RP_PUT_NEW) || (over && strcmp(etag, p->over.etag) != 0);
    if (r == 0 && known && is_ours(p, etag, &there)) {
        rp_error_clear(err);
        *out = there;
        return 0;
    }
    if (why == RP_EUNKNOWN) return why;
    if (r == 0 && (p->flags & RP_PUT_NEW)) return taken(p, err);
    if (over && (r == 0 || r == RP_ENOTFOUND)) return moved_on(p, r == 0, err);
    return rp_error_wrap(err, RP_EUNKNOWN, "whether '%s' was put cannot be seen", p->key);
}

/* ---- the first of several ---- */

/* A request that was repeated may have left a version each time. */
struct older {
    const struct putting *p;
    const struct rp_identity *made;
    char ours[OURS_MAX][RP_VERSION_MAX]; /* the one that counts first */
    size_t n, n_max;
    bool found; /* an upload of somebody */
    bool over;  /* and it is what was to be replaced */
};

/* What stands right below our version: nothing or a delete marker means that the key was free. */
static int see_older(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct older *o = ctx;
    const struct rp_identity *below = &listed->entry.identity;
    (void)err;
    if (strcmp(listed->entry.key, o->p->key) != 0) return 1;
    if (strcmp(below->version, o->ours[0]) == 0) return 0;
    if (!listed->is_marker && o->n < o->n_max && is_ours(o->p, o->made->etag, below)) {
        memcpy(o->ours[o->n++], below->version, RP_VERSION_MAX);
        return 0;
    }
    o->found = !listed->is_marker;
    o->over = o->found && strcmp(below->version, o->p->over.version) == 0;
    return 1;
}

static int delete_version(struct rp_s3 *s3, const char *key, const char *version, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("DELETE", key);
    rp_s3_query(&call, "versionId", version);
    int r = rp_s3_run(s3, &call, err);
    return r == RP_ENOTFOUND ? 0 : r;
}

static int list_older(struct older *o, struct rp_error *err)
{
    char limit[S3_NUMBER];
    struct s3_page page = { 0 };
    rp_s3_span_keys(o->n_max + 1, limit);
    const struct s3_span span = { .versions = true,
                                  .prefix = o->p->key,
                                  .after = o->p->key,
                                  .after_version = o->ours[0],
                                  .keys = limit,
                                  .fn = see_older,
                                  .ctx = o };
    return rp_s3_span(o->p->s3, &span, &page, err);
}

/* Oldest first, so that none of them comes to light. */
static int give_way(const struct putting *p, const struct rp_identity *made, unsigned attempts, struct rp_error *err)
{
    struct older older = { .p = p, .made = made, .n = 1, .n_max = attempts < OURS_MAX ? attempts : OURS_MAX };
    bool over = p->flags & RP_PUT_OVER;
    if (!(p->flags & (RP_PUT_NEW | RP_PUT_OVER)) || !made->version[0]) return 0;
    memcpy(older.ours[0], made->version, RP_VERSION_MAX);
    int r = list_older(&older, err);
    if (r >= 0 && (over ? older.over : !older.found)) return 0;
    while (r >= 0 && older.n > 0)
        r = delete_version(p->s3, p->key, older.ours[--older.n], err);
    if (r < 0) return rp_error_wrap(err, RP_EUNKNOWN, "'%s' was put, perhaps over another", p->key);
    return over ? moved_on(p, older.found, err) : taken(p, err);
}

/* ---- the end of both ways ---- */

/* `r` is what the request came to that made the object; `etag` is the object's as the answer says,
 * or by our own reckoning ("": cannot be foretold). */
static int conclude(const struct putting *p, const struct s3_call *call, int r, const char *etag,
                    struct rp_identity *out, struct rp_error *err)
{
    struct rp_identity made = { 0 };
    bool only_new = p->flags & RP_PUT_NEW, over = p->flags & RP_PUT_OVER, repeated = call->attempts > 1;
    bool refused = (r == RP_ECHANGED && (only_new || over)) || (r == RP_ECONFLICT && over);
    if (refused && !repeated) return only_new ? taken(p, err) : expect_over(p, true, err);
    bool lost = r == RP_EUNKNOWN || (repeated && (r == RP_ENOTFOUND || refused));
    if (r < 0 && !lost) return r;
    if (lost && (r = find_ours(p, etag, r, &made, err)) < 0) return r;
    if (!lost) {
        snprintf(made.etag, sizeof made.etag, "%s", etag);
        made.size_bytes = p->size_bytes;
        rp_s3_version_of(call, made.version);
    }
    if ((r = give_way(p, &made, call->attempts, err)) < 0) return r;
    if (!lost) return identify(p, call, made.etag, out, err);
    if (out) *out = made;
    return 0;
}

/* ---- whole ---- */

/* In the request, or looked at right before it: `once`, for what was seen gets older. Where the
 * bucket keeps versions a repetition overwrites nothing, and give_way() sees what it stands on. */
static int add_condition(struct putting *p, bool *once, struct rp_error *err)
{
    struct s3_powers powers = rp_s3_powers(p->s3);
    if (p->flags & RP_PUT_NEW) {
        *once = !p->put_new && !powers.versions;
        return p->put_new ? rp_s3_headers_add(&p->headers, "if-none-match", "*", err)
                          : rp_s3_refuse_taken(p->s3, p->key, err);
    }
    if (!(p->flags & RP_PUT_OVER)) return 0;
    *once = p->by_look || !powers.put_if_match;
    if (*once) return expect_over(p, false, err);
    const char *quote = powers.put_if_match_bare ? "" : "\"";
    const char *etag = rp_arena_fmt(&p->arena, "%s%s%s", quote, p->over.etag, quote);
    return etag ? rp_s3_headers_add(&p->headers, "if-match", etag, err)
                : rp_error_set(err, RP_ENOMEM, "no memory to put '%s'", p->key);
}

static bool is_refused_in_vain(const struct putting *p, const struct s3_call *call, int r)
{
    struct rp_error ignored = { 0 };
    bool conditional = (p->flags & RP_PUT_OVER) && !call->once && call->attempts == 1;
    return r == RP_ECHANGED && conditional && p->over.version[0] && expect_over(p, false, &ignored) == 0;
}

static int put_whole(struct putting *p, struct rp_identity *out, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", p->key);
    char etag[RP_ETAG_MAX] = "";
    int r = add_condition(p, &call.once, err);
    if (r < 0) return r;
    rp_s3_send(&call, p->headers.pairs, p->headers.n, NULL);
    call.message.body = p->buffers[0];
    call.message.body_bytes = p->filled[0];
    r = rp_s3_run(p->s3, &call, err);
    if (is_refused_in_vain(p, &call, r)) {
        p->by_look = true;
        p->headers.n--; /* the condition */
        rp_error_clear(err);
        return put_whole(p, out, err);
    }
    if (r == 0 && !rp_s3_etag_of(&call, etag))
        r = rp_error_set(err, RP_EUNKNOWN, "the answer to the put of '%s' has no etag", p->key);
    if (r < 0 && !md5_hex(p->buffers[0], p->filled[0], etag)) etag[0] = '\0';
    return conclude(p, &call, r, etag, out, err);
}

/* ---- in parts ---- */

int rp_s3_upload_begin(struct rp_s3 *s3, const char *key, const struct s3_headers *headers, char out[S3_UPLOAD_MAX],
                       struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("POST", key);
    rp_s3_query(&call, "uploads", "");
    rp_s3_send(&call, headers->pairs, headers->n, NULL);
    int r = rp_s3_run(s3, &call, err);
    if (r < 0) return r;
    return rp_s3_read_text(&call.answer, "InitiateMultipartUploadResult", "UploadId", out, S3_UPLOAD_MAX, err);
}

/* The etag that servers give to an upload in parts: the MD5 of the parts' MD5s, and their number.
 * "": the parts' are none. */
static void foretell_etag(const struct s3_part *parts, size_t n, char out[RP_ETAG_MAX])
{
    RP_CLEANUP(rp_freep) unsigned char *digests = malloc(n * MD5_BYTES + 1);
    out[0] = '\0';
    for (size_t i = 0; digests && i < n; i++) {
        if (strlen(parts[i].etag) != 2 * (size_t)MD5_BYTES) return;
        for (size_t j = 0; j < MD5_BYTES; j++) {
            const char digits[3] = { parts[i].etag[2 * j], parts[i].etag[2 * j + 1], '\0' };
            char *end;
            digests[i * MD5_BYTES + j] = (unsigned char)strtoul(digits, &end, 16);
            if (end != digits + 2) return;
        }
    }
    if (digests && md5_hex(digests, n * MD5_BYTES, out)) snprintf(out + 2 * (size_t)MD5_BYTES, 8, "-%zu", n);
}

int rp_s3_upload_end(struct rp_s3 *s3, struct s3_call *call, const char *upload, const struct s3_part *parts, size_t n,
                     char etag[RP_ETAG_MAX], struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(S3_ANSWER_MAX);
    foretell_etag(parts, n, etag);
    int r = rp_s3_write_parts(&body, parts, n, err);
    if (r < 0) return r;
    rp_s3_query(call, "uploadId", upload);
    rp_s3_send(call, call->message.headers, call->message.n_headers, &body);
    r = rp_s3_run(s3, call, err);
    call->message.body = NULL;
    call->message.body_bytes = 0;
    if (r < 0) return r;
    r = rp_s3_told_etag(call, "CompleteMultipartUploadResult", etag, err);
    if (r < 0) return rp_error_wrap(err, RP_EUNKNOWN, "end an upload in parts of '%s'", call->message.key);
    return 0;
}

static int room_for_part(struct putting *p, struct rp_error *err)
{
    if (p->n_parts == PARTS_MAX) {
        rp_error_set(err, RP_ETOOBIG, "'%s' is larger than %d parts of %zu MiB", p->key, PARTS_MAX,
                     S3_PART_BYTES >> 20);
        return rp_error_hint(err, "upload it by other means, in larger parts");
    }
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
    if (call->code < 0 || call->status != 200) return rp_s3_error(p->s3, call, err);
    if (!rp_s3_etag_of(call, etag))
        return rp_error_set(err, RP_ECORRUPT, "the answer to a part of '%s' has no etag", p->key);
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
        calls[i] = rp_s3_call("PUT", p->key);
        snprintf(numbers[i], sizeof numbers[i], "%zu", p->n_parts + i + 1);
        rp_s3_query(&calls[i], "partNumber", numbers[i]);
        rp_s3_query(&calls[i], "uploadId", p->upload);
        calls[i].message.body = p->buffers[i];
        calls[i].message.body_bytes = p->filled[i];
    }
    int r = rp_s3_wire_run(p->s3->wire, calls, n, err);
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
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("POST", p->key);
    static const struct rp_pair only_new = { "if-none-match", "*" };
    char etag[RP_ETAG_MAX];
    if (p->flags & RP_PUT_NEW) {
        int r = rp_s3_refuse_taken(p->s3, p->key, err);
        if (r < 0) return r;
        rp_s3_send(&call, &only_new, p->put_new ? 1 : 0, NULL);
        call.once = !rp_s3_powers(p->s3).versions; /* Ceph passes over the condition */
    }
    if (p->flags & RP_PUT_OVER) {
        int r = expect_over(p, false, err);
        if (r < 0) return r;
        call.once = true;
    }
    int r = rp_s3_upload_end(p->s3, &call, p->upload, p->parts, p->n_parts, etag, err);
    return conclude(p, &call, r, etag, out, err);
}

static int put_in_parts(struct putting *p, const struct rp_source *from, struct rp_identity *out, struct rp_error *err)
{
    int r = rp_s3_upload_begin(p->s3, p->key, &p->headers, p->upload, err);
    if (r < 0) return r;
    if ((r = send_all(p, from, err)) == 0) r = complete(p, out, err);
    /* Not if its end may have been carried out: aborting then could only say what is known
     * already. */
    if (r < 0 && r != RP_EUNKNOWN) rp_s3_abort_partial(&p->s3->base, p->key, p->upload, NULL);
    return r;
}

int rp_s3_put(struct rp_backend *backend, const char *key, const struct rp_source *from, const struct rp_meta *meta,
              int flags, struct rp_identity *out, struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0 || (r = rp_meta_check(meta, err)) < 0) return r;
    RP_CLEANUP(putting_done)
    struct putting p = {
        .s3 = s3, .key = key, .flags = flags, .put_new = rp_s3_powers(s3).put_new, .arena = RP_ARENA(META_ARENA_BYTES)
    };
    if (flags & RP_PUT_OVER) p.over = *out;
    if (rp_s3_wire_clock(s3->wire, &p.begun_ms)) p.begun_ms -= p.begun_ms % RP_SECOND_MS;
    if ((r = rp_s3_headers_meta(&p.headers, meta, &p.arena, err)) < 0) return rp_error_wrap(err, r, "put '%s'", key);
    if ((r = fill(&p, 0, from, err)) < 0) return r;
    if (!p.ended && (r = fill(&p, 1, from, err)) < 0) return r;
    return p.filled[1] > 0 ? put_in_parts(&p, from, out, err) : put_whole(&p, out, err);
}
