/* SPDX-License-Identifier: Apache-2.0 */
/* The single requests that a probe is made of, and its tidying up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/erase.h"
#include "store/s3/probe/probe.h"
#include "store/s3/span.h"

#define PATIENCE_MS (10 * RP_SECOND_MS)
#define CLEAR_TRIES 3
#define UNANSWERED  2

const char *rp_s3_canary(struct s3_probe *probe, const char *name)
{
    char key[S3_CANARY_KEY];
    int n = snprintf(key, sizeof key, "%s%s", probe->base, name);
    RP_ASSERT(n > 0 && (size_t)n < sizeof key);
    for (size_t i = 0; i < probe->n_made; i++) {
        size_t made = strlen(probe->made[i]), common = (size_t)n < made ? (size_t)n : made;
        if (strcmp(probe->made[i], key) == 0) return probe->made[i];
        RP_ASSERT(strncmp(probe->made[i], key, common) != 0); /* P5 */
    }
    RP_ASSERT(probe->n_made < S3_CANARIES_MAX);
    memcpy(probe->made[probe->n_made], key, sizeof key);
    return probe->made[probe->n_made++];
}

/* Repeated, a condition would be judged against what the first attempt has done. */
static bool has_condition(const struct s3_call *call)
{
    for (size_t i = 0; i < call->message.n_headers; i++)
        if (strncmp(call->message.headers[i].name, "if-", 3) == 0) return true;
    return strcmp(call->message.method, "POST") == 0;
}

bool rp_s3_is_given_up(const struct s3_probe *probe)
{
    return probe->unanswered >= UNANSWERED;
}

int rp_s3_try(struct s3_probe *probe, struct s3_call *call, struct rp_error *err)
{
    const char *key = call->message.key, *method = call->message.method;
    bool writes = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
    RP_ASSERT(!writes || key == NULL || strncmp(key, S3_CANARY, strlen(S3_CANARY)) == 0);
    if (rp_s3_is_given_up(probe))
        return rp_error_set(err, RP_EUNAVAILABLE, "bucket '%s': the server does not answer any more",
                            probe->s3->target.bucket);
    call->patience_ms = rp_s3_patience(probe->s3, PATIENCE_MS);
    call->once = has_condition(call);
    int r = rp_s3_wire_run(probe->s3->wire, call, 1, err);
    if (r < 0) return r;
    probe->unanswered = call->code < 0 && call->status == 0 ? probe->unanswered + 1 : 0;
    return call->code < 0 ? rp_s3_error(probe->s3, call, err) : call->status;
}

int rp_s3_try_put(struct s3_probe *probe, const char *key, const char *text, const char *header, const char *value,
                  struct rp_identity *out, struct rp_error *err)
{
    const struct rp_pair pair = { header, value };
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", key);
    rp_s3_send(&call, &pair, header ? 1 : 0, NULL);
    call.message.body = text;
    call.message.body_bytes = strlen(text);
    int r = rp_s3_try(probe, &call, err);
    if (r < 0 || !out) return r;
    *out = (struct rp_identity){ 0 };
    rp_s3_version_of(&call, out->version);
    (void)rp_s3_etag_of(&call, out->etag);
    return r;
}

int rp_s3_try_delete(struct s3_probe *probe, const char *key, const char *if_match, const char *version,
                     struct rp_error *err)
{
    char quoted[RP_ETAG_MAX + 2];
    const struct rp_pair pair = { "if-match", quoted };
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("DELETE", key);
    snprintf(quoted, sizeof quoted, "\"%s\"", if_match ? if_match : "");
    rp_s3_send(&call, &pair, if_match ? 1 : 0, NULL);
    if (version) rp_s3_query(&call, "versionId", version);
    return rp_s3_try(probe, &call, err);
}

int rp_s3_try_head(struct s3_probe *probe, const char *key, struct rp_identity *out)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", key);
    int r = rp_s3_try(probe, &call, NULL);
    if (r != 200) return r;
    int read = rp_s3_identity(&call, out, NULL);
    return read < 0 ? read : r;
}

bool rp_s3_canary_is(struct s3_probe *probe, const char *key, const char *etag)
{
    struct rp_identity seen;
    int status = rp_s3_try_head(probe, key, &seen);
    return etag[0] ? status == 200 && strcmp(seen.etag, etag) == 0 : status == 404;
}

/* ---- tidying up ---- */

struct left {
    struct rp_item *items;
    char (*keys)[RP_KEY_MAX + 1];
    size_t n;
    int64_t before_ms;
};

static int take_left(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct left *left = ctx;
    (void)err;
    if (listed->entry.identity.modified_ms >= left->before_ms || left->n == S3_SPAN_MAX) return 0;
    struct rp_item *item = &left->items[left->n];
    memcpy(left->keys[left->n], listed->entry.key, strlen(listed->entry.key) + 1);
    *item = (struct rp_item){ .key = left->keys[left->n++], .identity = listed->entry.identity };
    if (item->identity.version[0] == '\0') memcpy(item->identity.version, "null", 5);
    return 0;
}

static bool erase(struct s3_probe *probe, struct rp_item *items, size_t n, bool versions)
{
    size_t left = n;
    for (int tries = 0; left > 0 && tries < CLEAR_TRIES; tries++) {
        size_t kept = 0;
        if (rp_s3_erase(probe->s3, items, left, versions ? S3_BY_VERSION : S3_BY_KEY, NULL, NULL) < 0) return false;
        for (size_t i = 0; i < left; i++)
            if (items[i].outcome != RP_OUT_DELETED && items[i].outcome != RP_OUT_GONE) items[kept++] = items[i];
        left = kept;
    }
    return left == 0;
}

/* Where versions are suspended a delete by key still leaves a marker. */
static bool keeps_versions(const struct s3_probe *probe)
{
    return probe->powers.versions || strcmp(probe->versioning, "Suspended") == 0;
}

/* One page at most; another one next time. */
static bool clear_listed(struct s3_probe *probe, const char *prefix, int64_t before_ms)
{
    struct s3_page page = { 0 };
    RP_CLEANUP(rp_freep) struct rp_item *items = calloc(S3_SPAN_MAX, sizeof *items);
    RP_CLEANUP(rp_freep) void *keys = calloc(S3_SPAN_MAX, RP_KEY_MAX + 1);
    struct left left = { .items = items, .keys = keys, .before_ms = before_ms };
    if (items == NULL || keys == NULL) return false;
    bool versions = keeps_versions(probe);
    const struct s3_span span = {
        .versions = versions, .any_order = true, .prefix = prefix, .fn = take_left, .ctx = &left
    };
    if (rp_s3_span(probe->s3, &span, &page, NULL) < 0) return false;
    return erase(probe, items, left.n, versions);
}

bool rp_s3_canary_clear_before(struct s3_probe *probe, int64_t before_ms)
{
    return clear_listed(probe, S3_CANARY, before_ms);
}

static bool clear_made(struct s3_probe *probe)
{
    struct rp_item items[S3_CANARIES_MAX];
    if (keeps_versions(probe)) return clear_listed(probe, probe->base, INT64_MAX);
    for (size_t i = 0; i < probe->n_made; i++)
        items[i] = (struct rp_item){ .key = probe->made[i] };
    return erase(probe, items, probe->n_made, false);
}

bool rp_s3_canary_clear(struct s3_probe *probe)
{
    int64_t now_ms;
    if (rp_s3_is_given_up(probe)) return false;
    bool cleared = clear_made(probe);
    if (rp_s3_wire_clock(probe->s3->wire, &now_ms)) (void)rp_s3_canary_clear_before(probe, now_ms - RP_HOUR_MS);
    return cleared;
}
