/* SPDX-License-Identifier: Apache-2.0 */
/* The identities of many keys with few requests: pages of a listing where the keys stand close
 * together, HEADs for the rest. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/refuse.h"
#include "store/s3/look.h"
#include "store/s3/span.h"

#define PAGES_FROM 8  /* fewer keys than this are asked about one by one */
#define WORTH      20 /* a page must settle one key in so many that it lists */
#define SPARE      8  /* keys that a page has room for beyond what is expected */

struct look {
    struct rp_s3 *s3;
    struct rp_item **order; /* by key */
    size_t n, at;           /* those before `at` are settled */
    size_t next, found;     /* within the page under way */
    char last[RP_KEY_MAX + 1];
    bool absent; /* what the page is expected to show of them: nothing */
    struct s3_density *density;
};

static int by_key(const void *a, const void *b)
{
    return strcmp((*(struct rp_item *const *)a)->key, (*(struct rp_item *const *)b)->key);
}

static int take_listed(void *ctx, const struct s3_listed *listed, struct rp_error *err)
{
    struct look *look = ctx;
    const char *key = listed->entry.key;
    (void)err;
    memcpy(look->last, key, strlen(key) + 1);
    while (look->next < look->n && strcmp(look->order[look->next]->key, key) < 0)
        look->next++;
    for (; look->next < look->n && strcmp(look->order[look->next]->key, key) == 0; look->next++) {
        look->order[look->next]->outcome = RP_OUT_FOUND;
        look->order[look->next]->identity = listed->entry.identity;
        look->found++;
    }
    return 0;
}

static void forget_from(struct look *look, size_t from)
{
    for (size_t i = from; i < look->n; i++)
        look->order[i]->outcome = RP_OUT_NONE;
}

/* Those that the page speaks for and does not show. */
static void settle_page(struct look *look, const struct s3_page *page)
{
    size_t end = look->at;
    while (end < look->n && (!page->truncated || strcmp(look->order[end]->key, look->last) <= 0))
        end++;
    for (size_t i = look->at; i < end; i++)
        if (look->order[i]->outcome == RP_OUT_NONE) look->order[i]->outcome = RP_OUT_GONE;
    look->at = end;
}

/* As many keys as it takes up to the last of ours, if what is left stands as close together as what
 * was seen: a server's work is what it lists. */
static size_t page_keys(const struct look *look)
{
    const struct s3_density *density = look->density;
    size_t left = look->n - look->at;
    size_t others = density->ours > 0 ? left * density->others / density->ours : left / 16;
    return (look->absent ? 0 : left) + others + SPARE;
}

/* True while another page is worth its while. */
static bool read_page(struct look *look)
{
    char after[RP_KEY_MAX + 1];
    struct s3_page page = { 0 };
    char keys[S3_NUMBER];
    size_t from = look->at;
    rp_s3_span_keys(page_keys(look), keys);
    rp_s3_before(look->order[from]->key, after);
    look->next = from;
    look->found = 0;
    look->last[0] = '\0';
    const struct s3_span span = { .after = after, .keys = keys, .fn = take_listed, .ctx = look };
    if (rp_s3_span(look->s3, &span, &page, NULL) < 0) {
        forget_from(look, from);
        return false;
    }
    settle_page(look, &page);
    look->density->ours += look->at - from;
    look->density->others += page.n > look->found ? page.n - look->found : 0;
    return (look->at - from) * WORTH >= page.n && look->at > from;
}

static void read_pages(struct look *look)
{
    while (look->at < look->n && read_page(look))
        ;
}

/* By HEAD those that are not settled; those not shown too, unless their absence is expected. */
static int ask_rest(struct look *look, struct rp_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < look->n; i++) {
        struct rp_item *item = look->order[i];
        if (item->outcome == RP_OUT_GONE && !look->absent) item->outcome = RP_OUT_NONE;
        n += item->outcome == RP_OUT_NONE;
    }
    if (n == 0) return 0;
    RP_CLEANUP(rp_freep) struct rp_item *asked = calloc(n, sizeof *asked);
    if (asked == NULL) return rp_error_set(err, RP_ENOMEM, "look at %zu keys: out of memory", n);
    n = 0;
    for (size_t i = 0; i < look->n; i++)
        if (look->order[i]->outcome == RP_OUT_NONE) asked[n++].key = look->order[i]->key;
    int r = rp_s3_stat(&look->s3->base, asked, n, err);
    n = 0;
    for (size_t i = 0; i < look->n; i++)
        if (look->order[i]->outcome == RP_OUT_NONE) *look->order[i] = asked[n++];
    return r;
}

int rp_s3_look(struct rp_s3 *s3, struct rp_item *items, size_t n, bool absent, struct s3_density *density,
               struct rp_error *err)
{
    const struct s3_powers powers = rp_s3_powers(s3);
    if (n == 0) return 0;
    RP_CLEANUP(rp_freep) struct rp_item **order = calloc(n, sizeof *order);
    if (order == NULL) return rp_error_set(err, RP_ENOMEM, "look at %zu keys: out of memory", n);
    if (rp_items_begin(items, n, err) < 0) return RP_EINVAL;
    for (size_t i = 0; i < n; i++)
        order[i] = &items[i];
    qsort(order, n, sizeof *order, by_key);
    struct look look = { .s3 = s3, .order = order, .n = n, .absent = absent, .density = density };
    /* A listing names no versions. */
    if (powers.list_order && powers.list_current && !powers.versions && n >= PAGES_FROM) read_pages(&look);
    return ask_rest(&look, err);
}
