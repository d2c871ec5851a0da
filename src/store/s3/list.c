/* SPDX-License-Identifier: Apache-2.0 */
/* Listing. A page is read whole, checked and kept before its first entry is handed out, so that a damaged or disordered one gives nothing; the
 * next page is fetched meanwhile (pages.h): once half of the first one's entries are handed out, and from then on while each is read. Pages follow
 * each other by the last key that was read, never by a token: what a token means is the server's secret, and some encode it in ways of their own. In
 * a bucket with versions the entries need version ids, which only the listing of all versions has. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/s3/pages.h"

#define PAGE_ARENA_BYTES ((size_t)2 << 20) /* S3_PAGE_KEYS keys of RP_KEY_MAX, and what blocks leave unused */
#define EMPTY_PAGES_MAX  100               /* truncated pages without entries, one after the other */
/* After every key under ".reprieve/" but those that begin with this very character. */
#define PAST_OWN RP_STORE_OWN "\xf4\x8f\xbf\xbf"

struct listed {
    const char *key;
    struct rp_identity identity;
};

struct listing {
    struct rp_s3 *s3;
    const char *prefix;
    char after[RP_KEY_MAX + 1]; /* only keys above it are given */
    bool own, versions;
    struct s3_from at; /* where the next page begins; a token only after a truncated page without entries */
    /* the page */
    struct rp_arena arena;
    struct listed *entries;
    size_t n, n_read; /* to be given; in the page at all */
    bool truncated, past_own;
    unsigned empty_pages;
    size_t pages; /* read so far */
};

static bool is_own(const char *key)
{
    return strncmp(key, RP_STORE_OWN, strlen(RP_STORE_OWN)) == 0;
}

/* ---- one page ---- */

/* Overwrites the text of every such element; keys cannot be mistaken for one, for their "<" is escaped. */
static void blank(struct rp_buf *answer, const char *tag)
{
    for (char *at = strstr(answer->data, tag); at; at = strstr(at, tag)) {
        at += strlen(tag);
        memset(at, '?', strcspn(at, "<"));
    }
}

void rp_s3_list_clean(struct rp_buf *answer)
{
    static const char *const echoes[] = { "<Prefix>", "<StartAfter>", "<KeyMarker>", "<ContinuationToken>" };
    if (!answer->data) return;
    for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++)
        blank(answer, echoes[i]);
    /* With entries the last of them says where to go on. */
    if (!strstr(answer->data, "<Key>")) return;
    blank(answer, "<NextContinuationToken>");
    blank(answer, "<NextKeyMarker>");
}

static int disordered(const struct listing *l, const char *key, struct rp_error *err)
{
    rp_error_set(err, RP_ECORRUPT, "bucket '%.80s': the listing is not in byte order: '%.100s' after '%.100s'",
                 l->s3->target.bucket, key, l->at.key);
    return rp_error_hint(err,
                         "such a listing cannot be shown to be complete; ask the server's maker for ordered listings");
}

/* Versions of one key follow each other, hence "not below" there; and Ceph begins again with the versions of the marker's own key. */
static int in_order(const struct listing *l, const char *key, struct rp_error *err)
{
    int compared = strcmp(key, l->at.key);
    if (compared < 0 || (compared == 0 && !l->versions)) return disordered(l, key, err);
    if (strncmp(key, l->prefix, strlen(l->prefix)) != 0)
        return rp_error_set(err, RP_ECORRUPT, "bucket '%.80s': the listing of '%.100s' has '%.100s'",
                            l->s3->target.bucket, l->prefix, key);
    return 0;
}

static int take(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct listing *l = ctx;
    const char *key = listed->entry.key;
    int r = in_order(l, key, err);
    if (r < 0) return r;
    if (l->n_read++ == S3_PAGE_KEYS)
        return rp_error_set(err, RP_ECORRUPT, "the listing's page has more than %d entries", S3_PAGE_KEYS);
    snprintf(l->at.key, sizeof l->at.key, "%s", key);
    snprintf(l->at.version, sizeof l->at.version, "%s",
             l->versions && !listed->entry.identity.version[0] ? "null" : listed->entry.identity.version);
    if (strcmp(key, l->after) <= 0 || (is_own(key) && !l->own)) return 0;
    if (l->versions && (listed->is_marker || !listed->is_latest)) return 0;
    struct listed *entry = &l->entries[l->n];
    entry->identity = listed->entry.identity;
    if (!(entry->key = rp_arena_strdup(&l->arena, key))) return rp_error_set(err, RP_ENOMEM, "no memory for a listing");
    l->n++;
    return 0;
}

/* Where the next page begins. A page that is cut and leads nowhere would go round for ever, or hide the rest. */
static int step(struct listing *l, const struct s3_page *page, const char *key, const char *version,
                struct rp_error *err)
{
    l->truncated = page->truncated;
    l->at.token[0] = '\0';
    if (!page->truncated) return 0;
    bool moved = strcmp(l->at.key, key) != 0 || strcmp(l->at.version, version) != 0;
    if (l->n_read == 0 && !l->versions && page->next[0] && ++l->empty_pages < EMPTY_PAGES_MAX) {
        snprintf(l->at.token, sizeof l->at.token, "%s", page->next);
        return 0;
    }
    if (l->n_read == 0 || !moved)
        return rp_error_set(err, RP_ECORRUPT, "bucket '%.80s': the listing says that there is more and does not go on",
                            l->s3->target.bucket);
    l->empty_pages = 0;
    if (is_own(l->at.key) && !l->own && strcmp(l->at.key, PAST_OWN) < 0) {
        snprintf(l->at.key, sizeof l->at.key, "%s", PAST_OWN);
        l->at.version[0] = '\0';
    }
    return 0;
}

static int read_page(struct listing *l, struct rp_buf *answer, struct rp_error *err)
{
    struct s3_page page = { 0 };
    char key[sizeof l->at.key], version[sizeof l->at.version];
    snprintf(key, sizeof key, "%s", l->at.key);
    snprintf(version, sizeof version, "%s", l->at.version);
    rp_arena_reset(&l->arena);
    l->n = l->n_read = 0;
    l->pages++;
    rp_s3_list_clean(answer);
    int r = rp_s3_read_list(rp_buf_text(answer), answer->len, true, take, l, &page, err);
    if (r < 0) return rp_error_wrap(err, r, "list bucket '%.80s'", l->s3->target.bucket);
    return step(l, &page, key, version, err);
}

/* ---- all of them ---- */

/* 1: the receiver has had enough. */
static int give(struct listing *l, struct s3_pages *pages, rp_entry_fn *fn, void *ctx, struct rp_error *err)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->truncated && i == l->n / 2) rp_s3_pages_ahead(pages, &l->at);
        const struct rp_entry entry = { .key = l->entries[i].key, .identity = l->entries[i].identity };
        int r = fn(ctx, &entry, err);
        if (r != 0) return r;
    }
    return 0;
}

static void listing_done(struct listing *l)
{
    rp_arena_done(&l->arena);
    free(l->entries);
}

static int begin(struct listing *l, const char *after, struct rp_error *err)
{
    if (strlen(l->prefix) > RP_KEY_MAX || strlen(after) > RP_KEY_MAX)
        return rp_error_set(err, RP_EINVAL, "a prefix or a cursor has at most %d bytes", RP_KEY_MAX);
    l->own = is_own(l->prefix);
    l->versions = rp_s3_powers(l->s3).versions;
    snprintf(l->after, sizeof l->after, "%s", after);
    bool past = is_own(after) && !l->own && strcmp(after, PAST_OWN) < 0;
    snprintf(l->at.key, sizeof l->at.key, "%s", past ? PAST_OWN : after);
    l->arena = RP_ARENA(PAGE_ARENA_BYTES);
    l->entries = calloc(S3_PAGE_KEYS, sizeof *l->entries);
    return l->entries ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a listing");
}

int rp_s3_list(struct rp_backend *backend, const char *prefix, const char *after, rp_entry_fn *fn, void *ctx,
               struct rp_error *err)
{
    RP_CLEANUP(listing_done) struct listing l = { .s3 = rp_s3_of(backend), .prefix = prefix ? prefix : "" };
    int r = begin(&l, after ? after : "", err);
    if (r < 0) return r;
    RP_CLEANUP(rp_s3_pages_closep) struct s3_pages *pages = NULL;
    if ((r = rp_s3_pages_open(l.s3, l.prefix, l.versions, &pages, err)) < 0) return r;
    do {
        RP_CLEANUP(rp_buf_done) struct rp_buf answer = { 0 };
        if ((r = rp_s3_pages_take(pages, &l.at, l.pages > 0, &answer, err)) < 0) return r;
        if ((r = read_page(&l, &answer, err)) < 0) return r;
        rp_buf_done(&answer);
        if ((r = give(&l, pages, fn, ctx, err)) != 0) return r < 0 ? r : 0;
    } while (l.truncated);
    return 0;
}
