/* SPDX-License-Identifier: Apache-2.0 */
/* Hiding and showing where the bucket keeps versions. It is the S3 store's own code that does it
 * (src/store/s3/hide.c, versions.c): the linker hands us the requests that it makes of a server
 * (--wrap), and the simulated bucket answers them. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "parts.h"
#include "store/s3/erase.h"
#include "store/s3/span.h"

struct s3_powers __wrap_rp_s3_powers(struct rp_s3 *s3);
int __wrap_rp_s3_wire_run(struct s3_wire *wire, struct s3_call *calls, size_t n, struct rp_error *err);
int __wrap_rp_s3_span_read(struct rp_s3 *s3, const struct s3_span *span, struct s3_call *call, struct s3_page *page,
                           struct rp_error *err);
int __wrap_rp_s3_error(struct rp_s3 *s3, const struct s3_call *call, struct rp_error *err);
int __wrap_rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, const struct rp_gate *gate,
                       struct rp_error *err);

static struct bucket_handle *handle_of(struct rp_s3 *s3)
{
    return bucket_handle_of(&s3->base);
}

/* K3 */
struct s3_powers __wrap_rp_s3_powers(struct rp_s3 *s3)
{
    const struct bucket_handle *handle = handle_of(s3);
    bool versions = handle->bucket->kind == BUCKET_VERSION && handle->probed && handle->seen == RP_LEVEL_VERSION;
    return (struct s3_powers){ .probed = handle->probed, .versions = versions, .markers = versions };
}

/* ---- looking ---- */

static const char *query_of(const struct s3_call *call, const char *name)
{
    for (size_t i = 0; i < call->message.n_query; i++)
        if (strcmp(call->message.query[i].name, name) == 0) return call->message.query[i].value;
    return NULL;
}

/* A HEAD of a version. */
static int status_of(const struct bucket *bucket, const struct s3_call *call)
{
    const char *id = query_of(call, "versionId");
    RP_ASSERT(id != NULL);
    const struct bucket_upload *held = bucket_held(bucket, call->message.key, bucket_serial_of(id));
    return held == NULL ? 404 : held->marker ? 405 : 200;
}

int __wrap_rp_s3_wire_run(struct s3_wire *wire, struct s3_call *calls, size_t n, struct rp_error *err)
{
    struct bucket_handle *handle = (struct bucket_handle *)(void *)wire;
    struct rp_error why = { 0 };
    bool head = n > 0 && strcmp(calls[0].message.method, "HEAD") == 0;
    (void)err;
    if (n == 0) return 0;
    int r = bucket_fail(bucket_ask(handle, head ? "head" : "versions", NULL), true, "look", NULL, &why);
    for (size_t i = 0; i < n; i++) {
        calls[i].code = r == RP_EDENIED ? 0 : r;
        calls[i].status = r < 0 ? 403 : head ? status_of(handle->bucket, &calls[i]) : 200;
        bucket_text(calls[i].note, sizeof calls[i].note, r < 0 ? "the server says 503" : "");
    }
    return 0;
}

int __wrap_rp_s3_error(struct rp_s3 *s3, const struct s3_call *call, struct rp_error *err)
{
    (void)s3;
    int code = call->code < 0 ? call->code : call->status == 403 ? RP_EDENIED : RP_ENOTFOUND;
    return rp_error_set(err, code, "the server says %d", call->code < 0 ? 503 : call->status);
}

static int list_one(const struct bucket_upload *upload, bool latest, const struct s3_span *span, struct rp_error *err)
{
    const struct s3_listed listed = { .entry = { .key = upload->key, .identity = upload->identity },
                                      .is_latest = latest,
                                      .is_marker = upload->marker };
    return span->fn(span->ctx, &listed, err);
}

/* By key, newest first; all on one page. */
int __wrap_rp_s3_span_read(struct rp_s3 *s3, const struct s3_span *span, struct s3_call *call, struct s3_page *page,
                           struct rp_error *err)
{
    const struct bucket *bucket = handle_of(s3)->bucket;
    size_t prefix = strlen(span->prefix), i = bucket_position(bucket, span->prefix, 0);
    if (call->code < 0 || call->status != 200) return __wrap_rp_s3_error(s3, call, err);
    page->truncated = false;
    page->n = 0;
    while (i < bucket->n && strncmp(bucket->order[i]->key, span->prefix, prefix) == 0) {
        size_t end = bucket_position(bucket, bucket->order[i]->key, UINT64_MAX);
        for (size_t k = end; k > i; k--, page->n++) {
            int r = list_one(bucket->order[k - 1], k == end, span, err);
            if (r < 0) return r;
        }
        i = end;
    }
    return 0;
}

/* ---- deleting ---- */

static void act(struct bucket_handle *handle, struct rp_item *item, enum s3_by by, bool late)
{
    enum bucket_by how = by == S3_BY_KEY ? BUCKET_BY_MARKER : BUCKET_BY_ID;
    uint64_t serial = by == S3_BY_KEY ? 0 : bucket_serial_of(item->identity.version);
    if (!late) {
        item->outcome = bucket_erase(handle->bucket, &handle->hooks, how, item->key, &item->identity, serial);
        if (how == BUCKET_BY_MARKER) item->identity = bucket_top(handle->bucket, item->key)->identity;
        return;
    }
    struct bucket_request request = { .later = BUCKET_LATER_ERASE, .hooks = handle->hooks, .by = how };
    request.serial = serial;
    bucket_text(request.upload.key, sizeof request.upload.key, item->key);
    bucket_wait(handle->bucket, &request);
}

/* `nth` of those that one request is about. */
static void erase_one(struct bucket_handle *handle, struct rp_item *item, enum s3_by by, enum bucket_fate fate,
                      size_t nth)
{
    bool partly = fate == BUCKET_PARTLY && nth % 2 == 1;
    if (fate == BUCKET_REFUSED || fate == BUCKET_CUT)
        rp_s3_say(item, RP_OUT_RETRY, "the server says 503");
    else if (fate == BUCKET_DENIED)
        rp_s3_say(item, RP_OUT_DENIED, "the server says 403");
    else if (fate == BUCKET_FALSE)
        rp_s3_say(item, RP_OUT_DELETED, "");
    else if (!partly || nth % 4 == 1)
        act(handle, item, by, fate == BUCKET_LATE);
    if (fate == BUCKET_LOST || fate == BUCKET_LATE || partly) rp_s3_say(item, RP_OUT_UNKNOWN, "no answer");
}

int __wrap_rp_s3_erase(struct rp_s3 *s3, struct rp_item *items, size_t n, enum s3_by by, const struct rp_gate *gate,
                       struct rp_error *err)
{
    struct bucket_handle *handle = handle_of(s3);
    RP_ASSERT(by != S3_BY_ETAG);
    if (n == 0) return 0;
    if (!rp_gate_is_open(gate)) {
        for (size_t i = 0; i < n; i++)
            rp_s3_say(&items[i], RP_OUT_RETRY, "not sent: its time is over");
        return rp_error_set(err, RP_EUNAVAILABLE, "not sent: its time is over");
    }
    enum bucket_fate fate = bucket_ask(handle, by == S3_BY_KEY ? "hide" : "show", n == 1 ? items[0].key : NULL);
    for (size_t i = 0; i < n; i++)
        erase_one(handle, &items[i], by, fate, i);
    return 0;
}
