/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - which of several nodes delivers for a durable reader (feed.h, F8). */
#include "feed/inner.h"

#include "base/time.h"
#include "catalog/audit/feed.h"
#include "catalog/writer/writer.h"

#include <string.h>

#define PARTS 3 /* of a lease: after one it is renewed, with two left */

int64_t rp_feed_tenure_every_ms(const struct rp_feed_tenure *tenure)
{
    return tenure->lease_ms / PARTS;
}

struct keeping {
    const struct rp_feed_tenure *tenure;
    int64_t fence; /* ours, if the transaction commits */
    bool took;     /* it is not the one that was renewed */
};

static int keep_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct keeping *k = ctx;
    const struct rp_feed_tenure *tenure = k->tenure;
    bool held = false;
    int r =
        tenure->fence != 0 ? rp_feed_lease_renew(tx, tenure->reader, tenure->fence, tenure->lease_ms, &held, err) : 0;
    k->fence = tenure->fence;
    if (r < 0 || held) return r;
    k->took = true;
    return rp_feed_lease_take(tx, tenure->reader, tenure->holder, tenure->lease_ms, &k->fence, err);
}

/* After a take that failed it is another's, as far as we know: the cursor is loaded before anything
 * is delivered. The same holder may take it again at once. */
static int keep(struct rp_feed_tenure *tenure, struct rp_error *err)
{
    struct keeping k = { .tenure = tenure };
    int r = rp_writers_call(tenure->writers, keep_tx, &k, err);
    if (r == 0)
        tenure->fence = k.fence;
    else if (k.took)
        tenure->fence = 0;
    return r;
}

/* A look costs no commit. */
static int may_be_taken(const struct rp_feed_tenure *tenure, struct rp_db *db, bool *out, struct rp_error *err)
{
    struct rp_feed_lease lease;
    int64_t now_ms = 0;
    int r = rp_feed_lease_get(db, tenure->reader, &lease, err);
    if (r == 0) r = rp_db_now_ms(db, &now_ms, err);
    if (r < 0) return r;
    *out = lease.until_ms <= now_ms || strcmp(lease.holder, tenure->holder) == 0;
    return 0;
}

int rp_feed_tenure_keep(struct rp_feed_tenure *tenure, struct rp_db *db, bool *anew, struct rp_error *err)
{
    int64_t now_ms = rp_clock_boot_ms(tenure->clock), before = tenure->fence;
    bool free = before != 0;
    *anew = false;
    if (now_ms < tenure->look_ms) return 0;
    int r = free ? 0 : may_be_taken(tenure, db, &free, err);
    if (r == 0 && free) r = keep(tenure, err);
    if (r < 0) {
        if (now_ms - tenure->kept_ms >= tenure->lease_ms) tenure->fence = 0;
        return r;
    }
    tenure->kept_ms = now_ms;
    tenure->look_ms = now_ms + rp_feed_tenure_every_ms(tenure) / (tenure->fence != 0 ? 1 : 2);
    *anew = tenure->fence != 0 && tenure->fence != before;
    return 0;
}

static int give_back_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct rp_feed_tenure *tenure = ctx;
    bool held;
    return rp_feed_lease_renew(tx, tenure->reader, tenure->fence, 0, &held, err);
}

void rp_feed_tenure_give_back(struct rp_feed_tenure *tenure)
{
    struct rp_error ignored = { 0 };
    if (tenure->fence != 0) (void)rp_writers_call(tenure->writers, give_back_tx, tenure, &ignored);
    tenure->fence = 0;
}
