/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several nodes delivers for a durable reader (feed.h, F8). */
#include "feed/inner.h"

#include "base/time.h"
#include "catalog/audit/feed.h"
#include "catalog/writer/writer.h"

#include <string.h>

#define PARTS 3 /* of a lease: after one it is renewed, with two left */

int64_t rp_feed_turn_every_ms(const struct rp_feed_turn *turn)
{
    return turn->lease_ms / PARTS;
}

struct keeping {
    const struct rp_feed_turn *turn;
    int64_t fence; /* ours, if the transaction commits */
    bool took;     /* it is not the one that was renewed */
};

static int keep_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct keeping *k = ctx;
    const struct rp_feed_turn *turn = k->turn;
    bool held = false;
    int r = turn->fence != 0 ? rp_feed_lease_renew(tx, turn->reader, turn->fence, turn->lease_ms, &held, err) : 0;
    k->fence = turn->fence;
    if (r < 0 || held) return r;
    k->took = true;
    return rp_feed_lease_take(tx, turn->reader, turn->holder, turn->lease_ms, &k->fence, err);
}

/* After a take that failed it is another's, as far as we know: the cursor is loaded before anything
 * is delivered. The same holder may take it again at once. */
static int keep(struct rp_feed_turn *turn, struct rp_error *err)
{
    struct keeping k = { .turn = turn };
    int r = rp_writers_call(turn->writers, keep_tx, &k, err);
    if (r == 0)
        turn->fence = k.fence;
    else if (k.took)
        turn->fence = 0;
    return r;
}

/* A look costs no commit. */
static int may_be_taken(const struct rp_feed_turn *turn, struct rp_db *db, bool *out, struct rp_error *err)
{
    struct rp_feed_lease lease;
    int64_t now_ms = 0;
    int r = rp_feed_lease_get(db, turn->reader, &lease, err);
    if (r == 0) r = rp_db_now_ms(db, &now_ms, err);
    if (r < 0) return r;
    *out = lease.until_ms <= now_ms || strcmp(lease.holder, turn->holder) == 0;
    return 0;
}

int rp_feed_turn_keep(struct rp_feed_turn *turn, struct rp_db *db, bool *anew, struct rp_error *err)
{
    int64_t now_ms = rp_time_boot_ms(), before = turn->fence;
    bool free = before != 0;
    *anew = false;
    if (now_ms < turn->look_ms) return 0;
    int r = free ? 0 : may_be_taken(turn, db, &free, err);
    if (r == 0 && free) r = keep(turn, err);
    if (r < 0) {
        if (now_ms - turn->kept_ms >= turn->lease_ms) turn->fence = 0;
        return r;
    }
    turn->kept_ms = now_ms;
    turn->look_ms = now_ms + rp_feed_turn_every_ms(turn) / (turn->fence != 0 ? 1 : 2);
    *anew = turn->fence != 0 && turn->fence != before;
    return 0;
}

static int give_back_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct rp_feed_turn *turn = ctx;
    bool held;
    return rp_feed_lease_renew(tx, turn->reader, turn->fence, 0, &held, err);
}

void rp_feed_turn_give_back(struct rp_feed_turn *turn)
{
    struct rp_error ignored = { 0 };
    if (turn->fence != 0) (void)rp_writers_call(turn->writers, give_back_tx, turn, &ignored);
    turn->fence = 0;
}
