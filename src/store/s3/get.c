/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: one object with its metadata, and the identities of many. Nothing here writes. How
 * metadata stands in headers and tags: meta.h. */
#include <string.h>

#include "base/cleanup.h"
#include "store/refuse.h"
#include "store/s3/meta.h"
#include "store/s3/s3.h"

/* Who asks for the owner record waits to hear whether the store is there at all. 0: the wire's
 * own. */
static int64_t patience_for(const struct rp_s3 *s3, const char *key)
{
    return strcmp(key, RP_STORE_OWNER) == 0 ? rp_s3_patience(s3, S3_REACH_MS) : 0;
}

static int stream(struct rp_s3 *s3, struct s3_call *call, const struct rp_sink *to, struct rp_identity *identity,
                  struct rp_error *err)
{
    call->to = to;
    int r = rp_s3_wire_stream(s3->wire, call, err);
    if (r < 0) return r;
    if (call->sink_failed) return call->code; /* err is the sink's */
    if (call->code < 0 || call->status != 200) return rp_s3_error(s3, call, err);
    if ((r = rp_s3_identity(call, identity, err)) < 0) return r;
    if (call->sunk_bytes != identity->size_bytes)
        return rp_error_set(err, RP_EUNAVAILABLE, "bucket '%.80s': read '%s': the answer broke off", s3->target.bucket,
                            call->message.key);
    return 0;
}

int rp_s3_tags_read(struct rp_s3 *s3, const char *key, const struct rp_identity *identity, struct rp_arena *arena,
                    struct rp_pair **out, size_t *n, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("GET", key);
    rp_s3_query(&call, "tagging", "");
    rp_s3_query_version(&call, identity, rp_s3_powers(s3).versions);
    int r = rp_s3_run(s3, &call, err);
    if (r == 0) r = rp_s3_read_tags(&call.answer, arena, out, n, err);
    return r < 0 ? rp_error_wrap(err, r, "tags of '%s'", key) : 0;
}

static bool has_tags(const struct s3_call *call)
{
    char count[16];
    return rp_s3_header(call, "x-amz-tagging-count", count, sizeof count) && strcmp(count, "0") != 0;
}

/* Tags are read by a request of their own. If the object was replaced in between they are
 * another's: then what was read is history, and its annotation with it. */
static int add_tags(struct rp_s3 *s3, const char *key, const struct rp_identity *identity, struct rp_arena *arena,
                    struct rp_meta *meta, struct rp_error *err)
{
    struct rp_pair *tags = NULL;
    size_t n = 0;
    int r = rp_s3_tags_read(s3, key, identity, arena, &tags, &n, err);
    if (r == RP_ENOTFOUND) return 0;
    if (r < 0) return r;
    if (!identity->version[0]) {
        struct rp_identity now;
        r = rp_s3_identify(s3, key, "", &now, err);
        if (r == RP_ENOTFOUND || (r == 0 && !rp_identity_equal(&now, identity))) return 0;
        if (r < 0) return r;
    }
    return rp_s3_tags_merge(meta, tags, n, arena, err);
}

int rp_s3_get(struct rp_backend *backend, const char *key, const struct rp_sink *to, struct rp_arena *arena,
              struct rp_meta *meta, struct rp_identity *identity, struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    struct rp_identity found = { 0 };
    struct rp_meta read = { 0 };
    int r = rp_key_check(key, strlen(key), err);
    if (r < 0) return r;
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call(to ? "GET" : "HEAD", key);
    call.patience_ms = patience_for(s3, key);
    r = to ? stream(s3, &call, to, &found, err) : rp_s3_head(s3, &call, &found, err);
    if (r < 0) return r;
    if (meta && (r = rp_s3_meta_read(&call.headers, arena, &read, err)) < 0) return r;
    if (meta && has_tags(&call) && (r = add_tags(s3, key, &found, arena, &read, err)) < 0) return r;
    if (meta) *meta = read;
    if (identity) *identity = found;
    return 0;
}

/* ---- many ---- */

#define STAT_CHUNK 256 /* calls that are made at once; the wire decides how many of them are under way */

/* What one HEAD says. Negative: about the store as a whole. */
static int item_judge(struct rp_s3 *s3, const struct s3_call *call, struct rp_item *item, struct rp_error *err)
{
    struct rp_error why = { 0 };
    if (call->code == 0 && call->status == 200) {
        int r = rp_s3_identity(call, &item->identity, &why);
        rp_s3_say(item, r == 0 ? RP_OUT_FOUND : RP_OUT_RETRY, why.text);
        return 0;
    }
    int r = rp_s3_error(s3, call, &why);
    if (call->code < 0 || rp_s3_is_store_wide(r)) return rp_error_copy(err, &why);
    if (r == RP_ENOTFOUND)
        rp_s3_say(item, RP_OUT_GONE, "");
    else
        rp_s3_say(item, r == RP_EDENIED ? RP_OUT_DENIED : RP_OUT_RETRY, why.text);
    return 0;
}

static int stat_chunk(struct rp_s3 *s3, struct s3_call *calls, struct rp_item *items, size_t n, bool *any_gone,
                      struct rp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        calls[i] = rp_s3_call("HEAD", items[i].key);
        calls[i].patience_ms = patience_for(s3, items[i].key);
    }
    int r = rp_s3_wire_run(s3->wire, calls, n, err);
    for (size_t i = 0; i < n; i++) {
        if (r == 0) r = item_judge(s3, &calls[i], &items[i], err);
        if (r == 0) *any_gone |= items[i].outcome == RP_OUT_GONE;
        rp_s3_call_done(&calls[i]);
    }
    return r;
}

static int stat_all(struct rp_s3 *s3, struct rp_item *items, size_t n, struct rp_error *err)
{
    bool any_gone = false;
    RP_CLEANUP(rp_freep) struct s3_call *calls = calloc(n < STAT_CHUNK ? n : STAT_CHUNK, sizeof *calls);
    if (!calls) return rp_error_set(err, RP_ENOMEM, "no memory to look at %zu objects", n);
    for (size_t at = 0; at < n; at += STAT_CHUNK) {
        int r = stat_chunk(s3, calls, items + at, n - at < STAT_CHUNK ? n - at : STAT_CHUNK, &any_gone, err);
        if (r < 0) return r;
    }
    return any_gone ? rp_s3_bucket_check(s3, err) : 0;
}

int rp_s3_stat(struct rp_backend *backend, struct rp_item *items, size_t n, struct rp_error *err)
{
    if (rp_items_begin(items, n, err) < 0) return RP_EINVAL;
    int r = n > 0 ? stat_all(rp_s3_of(backend), items, n, err) : 0;
    for (size_t i = 0; r < 0 && i < n; i++)
        items[i].outcome = RP_OUT_UNKNOWN;
    return r;
}
