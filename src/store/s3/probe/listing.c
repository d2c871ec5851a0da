/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe finds out about listing: in byte order, from any key on, and at once. */
#include <stdio.h>
#include <string.h>

#include "store/s3/probe/probe.h"
#include "store/s3/span.h"

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
    else if (r < 0)
        rp_error_copy(err, &why);
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
