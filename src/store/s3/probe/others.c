/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe finds out about listing, conditional PUTs, copies, tags, URLs that end, and the
 * clock. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/probe/probe.h"
#include "store/s3/remove.h"

/* ---- listing ---- */

/* In byte order. As UTF-16 the last two change places, in a locale's order the case does; a dot, a
 * slash and what lies between. */
static const char *const awkward[] = {
    "order/B",  "order/a b",      "order/a.b",          "order/a/b",
    "order/a0", "order/\xc3\xa9", "order/\xef\xbd\x9e", "order/\xf0\x9f\x98\x80",
};
#define AWKWARD (sizeof awkward / sizeof *awkward)

struct seen {
    struct s3_probe *probe;
    size_t expected; /* the next of `awkward` */
    bool differs;
    const char *key; /* one to be found, and what is found */
    char etag[RP_ETAG_MAX];
    size_t n;
};

static int take_awkward(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct seen *seen = ctx;
    (void)err;
    if (seen->expected == AWKWARD || strcmp(listed->entry.key, rp_s3_canary(seen->probe, awkward[seen->expected])) != 0)
        seen->differs = true;
    else
        seen->expected++;
    return 0;
}

/* The whole folder, or what follows one of the keys: exactly those, in this order, and said to be
 * all. */
static int lists_in_order(struct s3_probe *probe, size_t after, bool *holds, struct rp_error *err)
{
    char prefix[S3_CANARY_KEY];
    struct s3_page page = { 0 };
    struct seen seen = { .probe = probe, .expected = after };
    snprintf(prefix, sizeof prefix, "%.80sorder/", probe->base);
    const struct s3_span span = { .prefix = prefix,
                                  .after = after > 0 ? rp_s3_canary(probe, awkward[after - 1]) : NULL,
                                  .fn = take_awkward,
                                  .ctx = &seen };
    int r = rp_s3_span(probe->s3, &span, &page, err);
    *holds = r == 0 && !seen.differs && seen.expected == AWKWARD && !page.truncated;
    return r == RP_ECORRUPT ? 0 : r;
}

static int take_one(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct seen *seen = ctx;
    (void)err;
    seen->n++;
    if (seen->key && strcmp(listed->entry.key, seen->key) == 0)
        memcpy(seen->etag, listed->entry.identity.etag, sizeof seen->etag);
    return 0;
}

/* "" in `etag`: the listing does not have the key. */
static int listed_etag(struct s3_probe *probe, const char *key, char etag[RP_ETAG_MAX], struct rp_error *err)
{
    struct s3_page page = { 0 };
    struct seen seen = { .probe = probe, .key = key };
    const struct s3_span span = { .prefix = key, .fn = take_one, .ctx = &seen };
    int r = rp_s3_span(probe->s3, &span, &page, err);
    memcpy(etag, seen.etag, sizeof seen.etag);
    return r;
}

/* Written, overwritten, deleted: each time the listing must say so at once. */
static int lists_current(struct s3_probe *probe, bool *holds, struct rp_error *err)
{
    char etag[RP_ETAG_MAX];
    struct rp_identity put;
    const char *key = rp_s3_canary(probe, "list");
    static const char *const texts[] = { "first", "second one" };
    *holds = true;
    for (size_t i = 0; i < 2; i++) {
        int status = rp_s3_try_put(probe, key, texts[i], NULL, NULL, &put, err);
        int r = status < 0 ? status : listed_etag(probe, key, etag, err);
        if (r < 0) return r;
        if (status / 100 != 2 || strcmp(etag, put.etag) != 0) *holds = false;
    }
    int status = rp_s3_try_delete(probe, key, NULL, NULL, err);
    int r = status < 0 ? status : listed_etag(probe, key, etag, err);
    if (r == 0 && (status / 100 != 2 || etag[0])) *holds = false;
    return r;
}

static int list_as_it_is(struct s3_probe *probe, struct rp_error *err)
{
    struct s3_page page = { 0 };
    struct seen seen = { .probe = probe };
    struct rp_error why = { 0 };
    const struct s3_span span = { .fn = take_one, .ctx = &seen };
    int r = rp_s3_span(probe->s3, &span, &page, &why);
    if (r == RP_ECORRUPT)
        rp_s3_finding(probe, "list order", false, "%.110s", why.text);
    else if (r < 0 && err)
        *err = why;
    else if (r == 0)
        rp_s3_finding(probe, "list order", true, "the first %zu keys are in byte order", page.n);
    return r == RP_ECORRUPT ? 0 : r;
}

int rp_s3_probe_list(struct s3_probe *probe, struct rp_error *err)
{
    bool current = false, from = false;
    if (probe->base[0] == '\0') return list_as_it_is(probe, err);
    for (size_t i = 0; i < AWKWARD; i++) {
        int status = rp_s3_try_put(probe, rp_s3_canary(probe, awkward[i]), "x", NULL, NULL, NULL, err);
        if (status < 0) return status;
    }
    int r = lists_in_order(probe, 0, &probe->powers.list_order, err);
    if (r == 0) r = lists_in_order(probe, 3, &from, err);
    if (r == 0) r = lists_current(probe, &current, err);
    if (r < 0) return rp_error_wrap(err, r, "list the canaries");
    rp_s3_finding(probe, "list order", probe->powers.list_order && from, "%s",
                  probe->powers.list_order && from ? "by the bytes of the keys, from any key on"
                                                   : "not by the bytes of the keys: objects are looked at one by one");
    rp_s3_finding(probe, "list current", current, "%s",
                  current ? "shows an upload and a deletion at once"
                          : "lags behind uploads or deletions: objects are looked at one by one");
    probe->powers.list_order &= from;
    probe->powers.list_current = current;
    return 0;
}

/* ---- conditional PUT ---- */

/* By If-None-Match: a PUT, or a copy of `source`. */
static int write_new(struct s3_probe *probe, const char *source, const char *key)
{
    const struct rp_pair headers[] = { { "if-none-match", "*" }, { "x-amz-copy-source", source } };
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", key);
    rp_s3_send(&call, headers, source ? 2 : 1, NULL);
    return rp_s3_try(probe, &call, NULL);
}

/* A key that is taken is kept, one that is free is written. */
static bool keeps_taken(struct s3_probe *probe, const char *source, const char *key, const char *fresh,
                        const char *finding, const char *ignored)
{
    struct rp_identity taken, made;
    bool ready = rp_s3_try_put(probe, key, "taken", NULL, NULL, &taken, NULL) / 100 == 2;
    int status = ready ? write_new(probe, source, key) : 0;
    bool there = ready && rp_s3_canary_is(probe, key, taken.etag);
    bool holds = status == 412 && there && write_new(probe, source, fresh) / 100 == 2 &&
                 rp_s3_try_head(probe, fresh, &made, NULL) == 200;
    rp_s3_finding(probe, finding, holds, "If-None-Match: * %s",
                  holds    ? "keeps a key that is taken"
                  : !there ? ignored
                           : "is not understood");
    return holds;
}

static void probe_put_new(struct s3_probe *probe)
{
    const char *key = rp_s3_canary(probe, "is-taken"), *fresh = rp_s3_canary(probe, "is-fresh");
    probe->powers.put_new =
        keeps_taken(probe, NULL, key, fresh, "put only if new", "is ignored: the object is overwritten");
}

static bool put_if(struct s3_probe *probe, const char *key, const struct rp_identity *now, bool bare)
{
    char wrong[RP_ETAG_MAX + 2], right[RP_ETAG_MAX + 2];
    const char *quote = bare ? "" : "\"";
    snprintf(right, sizeof right, "%s%s%s", quote, now->etag, quote);
    snprintf(wrong, sizeof wrong, "%s%c%.90s%s", quote, now->etag[0] == '0' ? '1' : '0', now->etag + 1, quote);
    return rp_s3_try_put(probe, key, "not me", "if-match", wrong, NULL, NULL) == 412 &&
           rp_s3_canary_is(probe, key, now->etag) &&
           rp_s3_try_put(probe, key, "changed", "if-match", right, NULL, NULL) / 100 == 2;
}

static void probe_put_if_match(struct s3_probe *probe)
{
    struct s3_powers *powers = &probe->powers;
    for (int bare = 0; bare < 2 && !powers->put_if_match; bare++) {
        struct rp_identity now;
        const char *key = rp_s3_canary(probe, bare ? "bare-match" : "match");
        if (rp_s3_try_put(probe, key, "as it was", NULL, NULL, &now, NULL) / 100 != 2) break;
        powers->put_if_match = put_if(probe, key, &now, bare);
        powers->put_if_match_bare = powers->put_if_match && bare;
    }
    rp_s3_finding(probe, "put by If-Match", powers->put_if_match, "%s",
                  powers->put_if_match_bare ? "holds, with the etag without quotes"
                  : powers->put_if_match    ? "another etag is refused, the right one is taken"
                                         : "does not hold: the owner record is looked at right before it is written");
}

void rp_s3_probe_puts(struct s3_probe *probe)
{
    probe_put_new(probe);
    probe_put_if_match(probe);
}

/* ---- copy and tags ---- */

/* The source stands there already. */
static void probe_copy_new(struct s3_probe *probe, const char *source)
{
    const char *key = rp_s3_canary(probe, "taken-copy"), *fresh = rp_s3_canary(probe, "fresh-copy");
    probe->powers.copy_new = keeps_taken(probe, source, key, fresh, "copy only if new",
                                         "is ignored: an object that is returned may overwrite an upload");
}

void rp_s3_probe_copy(struct s3_probe *probe)
{
    struct rp_identity put;
    char meta[16] = "";
    const char *key = rp_s3_canary(probe, "copy");
    RP_CLEANUP(rp_buf_done) struct rp_buf source = RP_BUF(4096);
    rp_s3_encode(&source, probe->s3->target.bucket, false);
    rp_buf_char(&source, '/');
    rp_s3_encode(&source, key, true);
    const struct rp_pair headers[] = { { "x-amz-copy-source", rp_buf_text(&source) },
                                       { "x-amz-metadata-directive", "REPLACE" },
                                       { "x-amz-meta-canary", "sings" } };
    bool ready = rp_s3_try_put(probe, key, "copied", NULL, NULL, &put, NULL) / 100 == 2;
    RP_CLEANUP(rp_s3_call_done) struct s3_call copy = rp_s3_call("PUT", key), head = rp_s3_call("HEAD", key);
    rp_s3_send(&copy, headers, 3, NULL);
    int status = ready ? rp_s3_try(probe, &copy, NULL) : 0;
    if (status == 200 && rp_s3_try(probe, &head, NULL) == 200)
        rp_s3_header(&head, "x-amz-meta-canary", meta, sizeof meta);
    probe->powers.self_copy = strcmp(meta, "sings") == 0 && rp_s3_canary_is(probe, key, put.etag);
    rp_s3_finding(probe, "copy onto itself", probe->powers.self_copy, "%s",
                  probe->powers.self_copy ? "replaces the metadata and keeps the bytes"
                                          : "does not replace the metadata");
    if (ready) probe_copy_new(probe, rp_buf_text(&source));
}

static bool tags_come_back(struct s3_probe *probe, const char *key)
{
    struct rp_pair *pairs = NULL;
    size_t n = 0;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("GET", key);
    rp_s3_query(&call, "tagging", "");
    return rp_s3_try(probe, &call, NULL) == 200 && rp_s3_read_tags(&call.answer, &arena, &pairs, &n, NULL) == 0 &&
           n == 1 && strcmp(pairs[0].name, "canary") == 0 && strcmp(pairs[0].value, "sings") == 0;
}

void rp_s3_probe_tags(struct s3_probe *probe)
{
    struct s3_sum sum;
    const struct rp_pair tag = { "canary", "sings" };
    const char *key = rp_s3_canary(probe, "copy");
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(4096);
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", key);
    int r = rp_s3_write_tags(&body, &tag, 1, NULL);
    rp_s3_query(&call, "tagging", "");
    rp_s3_send_xml(&call, &body, &sum);
    int status = r < 0 ? r : rp_s3_try(probe, &call, NULL);
    probe->powers.tags = status / 100 == 2 && tags_come_back(probe, key);
    rp_s3_finding(probe, "tags", probe->powers.tags, probe->powers.tags ? "written and read back" : "not kept (%d)",
                  status);
}

/* ---- URLs that end ---- */

static size_t swallow(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes, (void)ctx;
    return size * n;
}

/* As somebody without keys would fetch it. 0: no answer. */
static long fetch(struct s3_probe *probe, const char *url)
{
    long status = 0;
    CURL *curl = curl_easy_init();
    if (curl == NULL) return 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    if (probe->s3->options.ca_file && probe->s3->options.ca_file[0])
        curl_easy_setopt(curl, CURLOPT_CAINFO, probe->s3->options.ca_file);
    if (curl_easy_perform(curl) == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    return status;
}

static long fetch_signed(struct s3_probe *probe, const char *key, int64_t signed_at_ms, int64_t lives_s)
{
    const char *url = NULL;
    struct s3_keys keys;
    const struct s3_message message = { .method = "GET", .key = key };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    if (rp_s3_credentials_get(probe->s3->credentials, &keys, NULL) < 0) return 0;
    if (rp_s3_presign(&probe->s3->target, &keys, &message, signed_at_ms, lives_s, &arena, &url, NULL) < 0) return 0;
    return fetch(probe, url);
}

void rp_s3_probe_presign(struct s3_probe *probe)
{
    int64_t now_ms;
    const char *key = rp_s3_canary(probe, "copy");
    if (!rp_s3_wire_clock(probe->s3->wire, &now_ms)) now_ms = rp_clock_now_ms(NULL);
    long live = fetch_signed(probe, key, now_ms, 300);
    long ended = fetch_signed(probe, key, now_ms - 2 * RP_HOUR_MS, 300);
    probe->powers.presign_ends = live == 200 && ended >= 400 && ended < 500;
    rp_s3_finding(probe, S3_SIGNED_URLS, probe->powers.presign_ends,
                  probe->powers.presign_ends ? "one in time is served (%ld), one that has ended is refused (%ld)"
                  : ended / 100 == 2         ? "one in time is answered %ld, and one that has ended is served (%ld)"
                                             : "one in time is answered %ld, one that has ended %ld",
                  live, ended);
}

/* ---- the clock ---- */

void rp_s3_probe_clock(struct s3_probe *probe)
{
    char text[RP_TIME_TEXT];
    int64_t theirs_ms;
    if (!rp_s3_wire_clock(probe->s3->wire, &theirs_ms)) {
        rp_s3_finding(probe, "clock", false, "the server does not tell the time");
        return;
    }
    int64_t apart_ms = theirs_ms - rp_clock_now_ms(NULL), size_ms = apart_ms < 0 ? -apart_ms : apart_ms;
    if (size_ms < 2 * RP_SECOND_MS)
        rp_s3_finding(probe, "clock", true, "as this machine's");
    else
        rp_s3_finding(probe, "clock", size_ms <= 5 * RP_MINUTE_MS, "%s %s this machine's%s",
                      rp_duration_format(size_ms / RP_SECOND_MS * RP_SECOND_MS, text),
                      apart_ms < 0 ? "behind" : "ahead of",
                      size_ms <= 5 * RP_MINUTE_MS ? "" : "; set the clocks (NTP)");
}
