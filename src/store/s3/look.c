/* SPDX-License-Identifier: Apache-2.0 */
/* The identities of many keys with few requests: pages of a listing where the keys stand close together, HEADs for the rest. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "store/s3/remove.h"

#define PAGES_FROM 8  /* fewer keys than this are asked about one by one */
#define WORTH      20 /* a page must settle one key in so many that it lists */

struct look {
    struct rp_s3 *s3;
    struct rp_item **order; /* by key */
    size_t n, at;           /* those before `at` are settled */
    size_t next;            /* within the page under way */
    char last[RP_KEY_MAX + 1];
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

/* True while another page is worth its while. */
static bool read_page(struct look *look)
{
    char after[RP_KEY_MAX + 1];
    struct s3_page page = { 0 };
    char keys[S3_NUMBER];
    size_t from = look->at;
    rp_s3_span_keys(2 * (look->n - look->at) + 16, keys);
    rp_s3_before(look->order[from]->key, after);
    look->next = from;
    look->last[0] = '\0';
    const struct s3_span span = {
        .prefix = "", .after = after, .after_version = "", .keys = keys, .fn = take_listed, .ctx = look
    };
    if (rp_s3_span(look->s3, &span, &page, NULL) < 0) {
        forget_from(look, from);
        return false;
    }
    settle_page(look, &page);
    return (look->at - from) * WORTH >= page.n && look->at > from;
}

static void read_pages(struct look *look)
{
    while (look->at < look->n && read_page(look))
        ;
}

/* By HEAD those that are not settled; those not shown too, unless their absence is expected. */
static int ask_rest(struct look *look, bool absence_expected, struct rp_error *err)
{
    size_t n = 0;
    RP_CLEANUP(rp_freep) struct rp_item *asked = calloc(look->n, sizeof *asked);
    if (asked == NULL) return rp_error_set(err, RP_ENOMEM, "look at %zu keys: out of memory", look->n);
    for (size_t i = 0; i < look->n; i++) {
        struct rp_item *item = look->order[i];
        if (item->outcome == RP_OUT_GONE && !absence_expected) item->outcome = RP_OUT_NONE;
        if (item->outcome == RP_OUT_NONE) asked[n++].key = item->key;
    }
    if (n == 0) return 0;
    int r = rp_s3_stat(&look->s3->base, asked, n, err);
    n = 0;
    for (size_t i = 0; i < look->n; i++)
        if (look->order[i]->outcome == RP_OUT_NONE) *look->order[i] = asked[n++];
    return r;
}

static int look_at(struct rp_s3 *s3, struct rp_item *items, size_t n, bool absence_expected, struct rp_error *err)
{
    const struct s3_powers powers = rp_s3_powers(s3);
    if (n == 0) return 0;
    RP_CLEANUP(rp_freep) struct rp_item **order = calloc(n, sizeof *order);
    if (order == NULL) return rp_error_set(err, RP_ENOMEM, "look at %zu keys: out of memory", n);
    for (size_t i = 0; i < n; i++) {
        order[i] = &items[i];
        items[i].outcome = RP_OUT_NONE;
        items[i].note[0] = '\0';
    }
    qsort(order, n, sizeof *order, by_key);
    struct look look = { .s3 = s3, .order = order, .n = n };
    /* A listing names no versions. */
    if (powers.list_order && powers.list_current && !powers.versions && n >= PAGES_FROM) read_pages(&look);
    return ask_rest(&look, absence_expected, err);
}

int rp_s3_look(struct rp_s3 *s3, struct rp_item *items, size_t n, struct rp_error *err)
{
    return look_at(s3, items, n, false, err);
}

int rp_s3_look_again(struct rp_s3 *s3, struct rp_item *items, size_t n, struct rp_error *err)
{
    return look_at(s3, items, n, true, err);
}
