/* SPDX-License-Identifier: Apache-2.0 */
/* Listing.
 *
 * L1  A page is read whole, checked and kept before its first entry is handed out: a damaged or
 *     disordered one gives nothing.
 * L2  Pages follow each other by the last key that was read, never by a token. What a token means
 *     is the server's secret, and some encode it in ways of their own.
 * L3  The next page is fetched while the entries of this one are given: from the second page on at
 *     once, for the first one when half of them are. At most one page is fetched ahead.
 * L4  In a bucket with versions the entries need version ids, which only the listing of all
 *     versions has. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/refuse.h"
#include "store/s3/span.h"

#define PAGE_ARENA_BYTES ((size_t)2 << 20) /* S3_SPAN_MAX keys of RP_KEY_MAX, and what blocks leave unused */
#define EMPTY_PAGES_MAX  100               /* truncated pages without entries, one after the other */
/* After every key under ".reprieve/" but those that begin with this very character. */
#define PAST_OWN RP_STORE_OWN "\xf4\x8f\xbf\xbf"

/* Where a page begins: after this key, and this version of it; or where a token leads. */
struct from {
    char key[RP_KEY_MAX + 1], version[RP_VERSION_MAX];
    char token[sizeof((struct s3_page *)NULL)->next]; /* "": none */
};

struct listing {
    struct rp_s3 *s3;
    const char *prefix;
    char after[RP_KEY_MAX + 1]; /* only keys above it are given */
    bool own, versions;
    struct from at; /* where the next page begins; a token only after a truncated page without entries */
    /* the page */
    struct rp_arena arena;
    struct rp_entry *entries;
    size_t n, n_read; /* to be given; in the page at all */
    bool truncated;
    unsigned empty_pages;
    size_t pages; /* read so far */
    /* the page that is fetched */
    pthread_t thread;
    bool ahead; /* by the thread, which has `call` until it has ended */
    struct s3_call call;
};

/* ---- fetching ---- */

static int take(void *ctx, const struct s3_listed *listed, struct rp_error *err);

static struct s3_span span_of(struct listing *l, const struct from *from)
{
    return (struct s3_span){ .versions = l->versions,
                             .prefix = l->prefix,
                             .after = from->key,
                             .after_version = from->version,
                             .token = from->token,
                             .fn = take,
                             .ctx = l };
}

static int keep(void *ctx, const void *bytes, size_t n, struct rp_error *err)
{
    const int r = rp_buf_add(ctx, bytes, n);
    return r < 0 ? rp_error_set(err, r, "keep a page of a listing") : 0;
}

/* Streamed to this very thread, so that a page wakes no other one. What breaks off is asked for
 * again in the ordinary way, with all patience. */
static void *fetch_page(void *ctx)
{
    struct listing *l = ctx;
    const struct s3_span span = span_of(l, &l->at);
    RP_CLEANUP(rp_buf_done) struct rp_buf page = RP_BUF(S3_ANSWER_MAX);
    const struct rp_sink sink = { .write = keep, .ctx = &page };
    struct s3_call *call = &l->call;
    *call = rp_s3_span_call(&span);
    call->to = &sink;
    const int r = rp_s3_wire_stream(l->s3->wire, call, NULL);
    call->to = NULL;
    if (r == 0 && call->code == 0 && call->status == 200) {
        call->answer = page;
        page = (struct rp_buf){ 0 };
    } else if (r < 0 || call->code < 0) {
        rp_s3_call_done(call);
        if (rp_s3_wire_run(l->s3->wire, call, 1, NULL) < 0) call->code = RP_ENOMEM;
    }
    return NULL;
}

/* From l->at, which stays as it is until the page is read. Where there is no thread to be had the
 * page is fetched when it is needed. */
static void fetch_ahead(struct listing *l)
{
    l->ahead = rp_s3_thread_start(&l->thread, fetch_page, l);
}

/* False: nothing was fetched ahead. */
static bool await(struct listing *l)
{
    const bool ahead = l->ahead;
    if (ahead) pthread_join(l->thread, NULL);
    l->ahead = false;
    return ahead;
}

/* ---- reading ---- */

static int take(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct listing *l = ctx;
    const char *key = listed->entry.key, *version = listed->entry.identity.version;
    if (l->n_read++ == S3_SPAN_MAX)
        return rp_error_set(err, RP_ECORRUPT, "the listing's page has more than %d entries", S3_SPAN_MAX);
    memcpy(l->at.key, key, strlen(key) + 1);
    if (l->versions && !version[0]) version = "null";
    memcpy(l->at.version, version, strlen(version) + 1);
    if (strcmp(key, l->after) <= 0 || (rp_key_is_own(key) && !l->own)) return 0;
    if (l->versions && (listed->is_marker || !listed->is_latest)) return 0;
    struct rp_entry *entry = &l->entries[l->n++];
    *entry = listed->entry;
    entry->key = rp_arena_strdup(&l->arena, key);
    return entry->key ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a listing");
}

/* Where the next page begins. A page that is cut and leads nowhere would go round for ever, or hide
 * the rest. */
static int step(struct listing *l, const struct s3_page *page, const struct from *before, struct rp_error *err)
{
    l->truncated = page->truncated;
    l->at.token[0] = '\0';
    if (!page->truncated) return 0;
    bool moved = strcmp(l->at.key, before->key) != 0 || strcmp(l->at.version, before->version) != 0;
    if (l->n_read == 0 && !l->versions && page->next[0] && ++l->empty_pages < EMPTY_PAGES_MAX) {
        memcpy(l->at.token, page->next, sizeof l->at.token);
        return 0;
    }
    if (l->n_read == 0 || !moved)
        return rp_error_set(err, RP_ECORRUPT, "the listing says that there is more and does not go on");
    l->empty_pages = 0;
    if (rp_key_is_own(l->at.key) && !l->own && strcmp(l->at.key, PAST_OWN) < 0)
        l->at = (struct from){ .key = PAST_OWN };
    return 0;
}

static int read_page(struct listing *l, struct rp_error *err)
{
    const struct from from = l->at;
    const struct s3_span span = span_of(l, &from);
    struct s3_page page = { 0 };
    rp_arena_reset(&l->arena);
    l->n = l->n_read = 0;
    l->pages++;
    int r = rp_s3_span_read(l->s3, &span, &l->call, &page, err);
    return r < 0 ? r : step(l, &page, &from, err);
}

static int next_page(struct listing *l, struct rp_error *err)
{
    if (!await(l)) fetch_page(l);
    bool answered = l->call.code == 0 && l->call.status == 200;
    int r = read_page(l, err);
    rp_s3_call_done(&l->call);
    return r < 0 && answered ? rp_error_wrap(err, r, "list bucket '%.80s'", l->s3->target.bucket) : r;
}

/* ---- giving ---- */

/* 1: the receiver has had enough. */
static int give(struct listing *l, rp_entry_fn *fn, void *ctx, struct rp_error *err)
{
    const size_t ahead = l->pages > 1 ? 0 : l->n / 2;
    for (size_t i = 0; i < l->n; i++) {
        if (l->truncated && i == ahead) fetch_ahead(l);
        int r = fn(ctx, &l->entries[i], err);
        if (r != 0) return r;
    }
    return 0;
}

static void listing_done(struct listing *l)
{
    (void)await(l);
    rp_s3_call_done(&l->call);
    rp_arena_done(&l->arena);
    free(l->entries);
}

static int begin(struct listing *l, const char *after, struct rp_error *err)
{
    if (rp_list_check(l->prefix, after, err) < 0) return RP_EINVAL;
    l->own = rp_key_is_own(l->prefix);
    l->versions = rp_s3_powers(l->s3).versions;
    snprintf(l->after, sizeof l->after, "%s", after);
    bool past = rp_key_is_own(after) && !l->own && strcmp(after, PAST_OWN) < 0;
    snprintf(l->at.key, sizeof l->at.key, "%s", past ? PAST_OWN : after);
    l->arena = RP_ARENA(PAGE_ARENA_BYTES);
    l->entries = calloc(S3_SPAN_MAX, sizeof *l->entries);
    return l->entries ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a listing");
}

int rp_s3_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
               struct rp_error *err)
{
    RP_CLEANUP(listing_done) struct listing l = { .s3 = rp_s3_of(backend), .prefix = prefix ? prefix : "" };
    int r = begin(&l, after ? after : "", err);
    if (r < 0) return r;
    do {
        if ((r = next_page(&l, err)) < 0) return r;
        if ((r = give(&l, fn, ctx, err)) != 0) return r < 0 ? r : 0;
    } while (l.truncated);
    return 0;
}
