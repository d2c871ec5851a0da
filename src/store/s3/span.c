/* SPDX-License-Identifier: Apache-2.0 */
/* One page of a listing, begun where the caller says: what a look at many keys and a removal by
 * versions are made of. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/s3/span.h"

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* Overwrites the text of every such element; keys cannot be mistaken for one, for their "<" is
 * escaped. */
static void blank(struct rp_buf *answer, const char *tag)
{
    for (char *at = strstr(answer->data, tag); at; at = strstr(at, tag)) {
        at += strlen(tag);
        memset(at, '?', strcspn(at, "<"));
    }
}

/* Ceph says back what a listing was asked for, and where it goes on, with bytes that no XML may
 * have. These texts are taken out of the answer. Keys (escaped by encoding-type=url) stay, so that
 * pages follow each other by the last of them. */
static void clean(struct rp_buf *answer)
{
    static const char *const echoes[] = { "<Prefix>", "<StartAfter>", "<KeyMarker>", "<ContinuationToken>" };
    if (!answer->data) return;
    for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++)
        blank(answer, echoes[i]);
    if (!strstr(answer->data, "<Key>")) return;
    blank(answer, "<NextContinuationToken>");
    blank(answer, "<NextKeyMarker>");
}

/* A page must go forward, or what it leaves out means nothing. */
struct ordered {
    const struct s3_span *span;
    char last[RP_KEY_MAX + 1];
};

/* Versions of one key follow each other, and Ceph begins again with those of the marker's own
 * key. */
static int in_order(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct ordered *o = ctx;
    const char *key = listed->entry.key, *prefix = text_of(o->span->prefix);
    int compared = strcmp(key, o->last);
    if (!o->span->any_order && (compared < 0 || (compared == 0 && !o->span->versions)))
        return rp_error_advise(err, RP_ECORRUPT,
                               "such a listing cannot be shown to be complete; ask the server's maker for ordered "
                               "listings",
                               "the listing is not in byte order: '%.100s' after '%.100s'", key, o->last);
    if (strncmp(key, prefix, strlen(prefix)) != 0)
        return rp_error_set(err, RP_ECORRUPT, "the listing of '%.100s' has '%.100s'", prefix, key);
    memcpy(o->last, key, strlen(key) + 1);
    return o->span->fn(o->span->ctx, listed, err);
}

static void add_query(struct s3_call *call, const char *name, const char *value)
{
    if (value && value[0]) rp_s3_query(call, name, value);
}

struct s3_call rp_s3_span_call(const struct s3_span *span)
{
    struct s3_call call = rp_s3_call("GET", NULL);
    bool by_token = text_of(span->token)[0];
    rp_s3_query(&call, span->versions ? "versions" : "list-type", span->versions ? "" : "2");
    rp_s3_query(&call, "encoding-type", "url");
    rp_s3_query(&call, "max-keys", span->keys ? span->keys : S3_SPAN_ALL);
    add_query(&call, "prefix", span->prefix);
    add_query(&call, "continuation-token", span->token);
    if (!by_token) add_query(&call, span->versions ? "key-marker" : "start-after", span->after);
    if (!by_token) add_query(&call, "version-id-marker", span->after_version);
    return call;
}

int rp_s3_span_read(struct rp_s3 *s3, const struct s3_span *span, struct s3_call *call, struct s3_page *page,
                    struct rp_error *err)
{
    struct ordered o = { .span = span };
    if (call->code < 0 || call->status != 200) return rp_s3_error(s3, call, err);
    snprintf(o.last, sizeof o.last, "%s", text_of(span->after));
    clean(&call->answer);
    int r = rp_s3_read_list(&call->answer, in_order, &o, page, err);
    /* the marker that the server names is this key, but for bytes that its XML could not carry */
    if (r >= 0 && page->truncated && page->n > 0) snprintf(page->next, sizeof page->next, "%s", o.last);
    return r < 0 ? r : 0;
}

int rp_s3_span(struct rp_s3 *s3, const struct s3_span *span, struct s3_page *page, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_span_call(span);
    int r = rp_s3_wire_run(s3->wire, &call, 1, err);
    return r < 0 ? r : rp_s3_span_read(s3, span, &call, page, err);
}

void rp_s3_span_keys(size_t wanted, char out[S3_NUMBER])
{
    snprintf(out, S3_NUMBER, "%zu", wanted < S3_SPAN_MAX ? wanted : S3_SPAN_MAX);
}

void rp_s3_before(const char *key, char out[RP_KEY_MAX + 1])
{
    size_t n = strlen(key);
    RP_ASSERT(n > 0 && n <= RP_KEY_MAX);
    memcpy(out, key, n + 1);
    unsigned char last = (unsigned char)out[n - 1];
    if (last > '!' && last < 0x7f) {
        out[n - 1] = (char)(last - 1);
        if (n < RP_KEY_MAX) memcpy(out + n, "~", 2);
        return;
    }
    do
        n--;
    while (n > 0 && ((unsigned char)out[n] & 0xc0) == 0x80);
    out[n] = '\0';
}
