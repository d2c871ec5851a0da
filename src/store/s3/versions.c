/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of many keys: pages of the whole listing where the keys stand close together, else a
 * question a key, many at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/s3/span.h"
#include "store/s3/versions.h"

#define WORTH      20   /* a page must settle one key in so many entries */
#define SINGLY_MAX 250  /* calls handed to the wire at a time */
#define FEW        "32" /* entries asked for where one key is meant */

static bool note_version(struct s3_versions *vs, const struct s3_key_versions *key, const char *id, bool marker)
{
    if (vs->n_held == S3_OLDER_MAX) return false;
    struct s3_version *v = &vs->held[vs->n_held++];
    v->key = (size_t)(key - vs->keys);
    v->marker = marker;
    snprintf(v->id, sizeof v->id, "%s", id);
    return true;
}

static void note_markers(struct s3_versions *vs, struct s3_key_versions *key)
{
    for (size_t i = 0; i < key->n_markers; i++)
        note_version(vs, key, key->markers[i], true);
    key->n_markers = 0;
}

/* An identity without a version may come from a listing that names none: then the rest has to
 * fit. */
static bool is_marked(const struct rp_item *item, const struct s3_listed *listed)
{
    struct rp_identity seen = listed->entry.identity;
    if (listed->is_marker) return false;
    if (item->identity.version[0] == '\0') seen.version[0] = '\0';
    return rp_identity_equal(&seen, &item->identity);
}

static void take_marked(struct s3_versions *vs, struct s3_key_versions *key, const char *id)
{
    /* Of two that fit the older one: nothing newer than what was marked may go. */
    vs->n_held = key->first;
    note_markers(vs, key);
    key->found = true;
    key->more = false;
    snprintf(key->id, sizeof key->id, "%s", id);
}

/* What lies above the marked version. */
static void note_top(struct s3_key_versions *key, const struct s3_listed *listed, const char *id)
{
    if (!listed->is_marker && !key->found && !is_marked(key->item, listed)) key->newer = true;
    if (key->objects) return;
    if (!listed->is_marker)
        key->newest_ms = listed->entry.identity.modified_ms;
    else if (key->covers++ == 0)
        snprintf(key->cover, sizeof key->cover, "%s", id);
}

static int take_version(struct s3_versions *vs, struct s3_key_versions *key, const struct s3_listed *listed,
                        struct rp_error *err)
{
    const char *id = listed->entry.identity.version[0] ? listed->entry.identity.version : "null";
    if (listed->is_latest == key->entered) /* the first one, and no other */
        return rp_error_set(err, RP_ECORRUPT, "the versions of '%.60s' are not listed newest first", listed->entry.key);
    key->entered = true;
    note_top(key, listed, id);
    if (listed->is_latest && !listed->is_marker) key->stands = true;
    if (!listed->is_marker) key->objects = true;
    if (is_marked(key->item, listed)) {
        take_marked(vs, key, id);
    } else if (key->found) {
        if (!note_version(vs, key, id, false)) key->more = true;
    } else if (!listed->is_marker) {
        key->n_markers = 0;
    } else if (key->n_markers < S3_MARKERS_MAX) {
        snprintf(key->markers[key->n_markers++], RP_VERSION_MAX, "%s", id);
    }
    return 0;
}

static void begin_key(struct s3_versions *vs, struct s3_key_versions *key)
{
    if (!key->begun) key->first = vs->n_held;
    key->begun = true;
}

/* Markers that lie on nothing are what an interrupted removal leaves behind. */
static void end_key(struct s3_versions *vs)
{
    struct s3_key_versions *key = &vs->keys[vs->at++];
    begin_key(vs, key);
    if (!key->objects) note_markers(vs, key);
    key->read = true;
}

static int take_listed(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct s3_versions *vs = ctx;
    while (vs->at < vs->n && strcmp(vs->keys[vs->at].item->key, listed->entry.key) < 0)
        end_key(vs);
    if (vs->at == vs->n || strcmp(vs->keys[vs->at].item->key, listed->entry.key) != 0) return 0;
    begin_key(vs, &vs->keys[vs->at]);
    return take_version(vs, &vs->keys[vs->at], listed, err);
}

static void forget_from(struct s3_versions *vs, size_t from, size_t held, const struct rp_error *why)
{
    for (size_t i = from; i < vs->n; i++) {
        vs->keys[i] = (struct s3_key_versions){ .item = vs->keys[i].item, .older_sent = vs->keys[i].older_sent };
        snprintf(vs->keys[i].why, sizeof vs->keys[i].why, "%.110s", why->text);
    }
    vs->n_held = held;
    vs->at = from;
}

/* True if the page ended within the versions of a wanted key, and they matter still. */
static bool breaks_off(struct s3_versions *vs, const struct s3_span *span, const struct s3_page *page)
{
    if (!page->truncated) {
        const char *prefix = span->prefix ? span->prefix : "";
        while (vs->at < vs->n && strncmp(vs->keys[vs->at].item->key, prefix, strlen(prefix)) == 0)
            end_key(vs);
        return false;
    }
    if (vs->at == vs->n || !vs->keys[vs->at].begun) return false;
    if (!vs->keys[vs->at].more) return true;
    end_key(vs);
    return false;
}

/* Goes on from a page that was read, until the key that it broke off in is complete. */
static int read_on(struct s3_versions *vs, const struct s3_span *first, struct s3_page *page, size_t *listed,
                   struct rp_error *err)
{
    int r = 0;
    *listed += page->n;
    while (r == 0 && breaks_off(vs, first, page)) {
        const struct s3_page before = *page;
        struct s3_span span = *first;
        if (before.n == 0 || before.next[0] == '\0')
            return rp_error_set(err, RP_ECORRUPT, "a listing of versions is cut off and does not say where");
        span.after = before.next;
        span.after_version = before.next_id;
        span.keys = NULL;
        r = rp_s3_span(vs->s3, &span, page, err);
        *listed += page->n;
    }
    return r;
}

/* True while another walk is worth its while. */
static bool walk(struct s3_versions *vs)
{
    char after[RP_KEY_MAX + 1], keys[S3_NUMBER];
    struct s3_page page = { 0 };
    struct rp_error why = { 0 };
    size_t from = vs->at, held = vs->n_held, listed = 0;
    rp_s3_before(vs->keys[from].item->key, after);
    rp_s3_span_keys(2 * (vs->n - from) + 16, keys);
    const struct s3_span span = { .versions = true, .after = after, .keys = keys, .fn = take_listed, .ctx = vs };
    int r = rp_s3_span(vs->s3, &span, &page, &why);
    if (r == 0) r = read_on(vs, &span, &page, &listed, &why);
    if (r < 0) forget_from(vs, from, held, &why);
    return r == 0 && vs->at > from && (vs->at - from) * WORTH >= listed;
}

/* Its answer may speak for the keys after it too, where they begin alike. */
static int read_single(struct s3_versions *vs, const struct s3_span *span, struct s3_call *call, struct rp_error *err)
{
    struct s3_page page = { 0 };
    struct rp_error why = { 0 };
    size_t from = vs->at, held = vs->n_held, listed = 0;
    int r = rp_s3_span_read(vs->s3, span, call, &page, &why);
    if (r == 0) r = read_on(vs, span, &page, &listed, &why);
    if (r == 0 && vs->at > from) return 0;
    forget_from(vs, from, held, &why);
    vs->at++;
    if (r == 0 || !rp_s3_is_store_wide(r)) return 0;
    rp_error_copy(err, &why);
    return r;
}

static int read_singly(struct s3_versions *vs, struct rp_error *err)
{
    size_t from = vs->at, n = vs->n - from < SINGLY_MAX ? vs->n - from : SINGLY_MAX;
    RP_CLEANUP(rp_freep) struct s3_call *calls = calloc(n, sizeof *calls);
    RP_CLEANUP(rp_freep) struct s3_span *spans = calloc(n, sizeof *spans);
    if (calls == NULL || spans == NULL) return rp_error_set(err, RP_ENOMEM, "list versions: out of memory");
    for (size_t i = 0; i < n; i++) {
        spans[i] = (struct s3_span){
            .versions = true, .prefix = vs->keys[from + i].item->key, .keys = FEW, .fn = take_listed, .ctx = vs
        };
        calls[i] = rp_s3_span_call(&spans[i]);
    }
    int r = rp_s3_wire_run(vs->s3->wire, calls, n, err);
    for (size_t i = 0; i < n; i++) {
        if (r == 0 && vs->at == from + i) r = read_single(vs, &spans[i], &calls[i], err);
        rp_s3_call_done(&calls[i]);
    }
    return r;
}

int rp_s3_versions_read(struct s3_versions *vs, struct rp_error *err)
{
    const struct s3_powers powers = rp_s3_powers(vs->s3);
    vs->at = vs->n_held = 0;
    for (size_t i = 0; i < vs->n; i++) {
        RP_ASSERT(i == 0 || strcmp(vs->keys[i - 1].item->key, vs->keys[i].item->key) < 0);
        vs->keys[i] = (struct s3_key_versions){ .item = vs->keys[i].item, .older_sent = vs->keys[i].older_sent };
    }
    bool walking = powers.list_order && vs->n > 1;
    while (walking && vs->at < vs->n)
        walking = walk(vs);
    int r = 0;
    while (r == 0 && vs->at < vs->n)
        r = read_singly(vs, err);
    return r;
}
