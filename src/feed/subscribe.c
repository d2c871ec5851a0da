/* SPDX-License-Identifier: Apache-2.0 */
/* subscribe.c - a reader joins the feed: a follower, or a durable reader if it has a name. */
#include "feed/inner.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdlib.h>

/* One of the two. */
struct rp_feed_subscription {
    struct rp_feed_follower *follower;
    struct rp_feed_durable *durable;
};

int rp_feed_subscribe(struct rp_feed *feed, const struct rp_feed_reader *reader, struct rp_feed_subscription **out,
                      struct rp_error *err)
{
    struct rp_feed_subscription *s = calloc(1, sizeof *s);
    RP_ASSERT(reader->deliver != NULL);
    if (s == NULL) return rp_error_set(err, RP_ENOMEM, "a reader of the feed: out of memory");
    int r = reader->name != NULL ? rp_feed_durable_start(feed, reader, &s->durable, err)
                                 : rp_feed_follower_add(feed, reader, &s->follower, err);
    if (r < 0) {
        free(s);
        return r;
    }
    *out = s;
    return 0;
}

void rp_feed_unsubscribe(struct rp_feed_subscription *s)
{
    if (s == NULL) return;
    if (s->durable != NULL)
        rp_feed_durable_stop(s->durable);
    else
        rp_feed_follower_remove(s->follower);
    free(s);
}
