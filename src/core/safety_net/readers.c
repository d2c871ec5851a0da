/* SPDX-License-Identifier: Apache-2.0 */
/* readers.c - G7: readers of the feed that are far behind. */
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/audit/feed.h"
#include "core/journal.h"
#include "core/safety_net/inner.h"

#include <stdio.h>
#include <string.h>

#define READERS_MAX 64 /* of a look */

struct readers {
    char names[READERS_MAX][RP_FEED_READER];
    size_t n;
};

static int add_reader(void *ctx, const char *reader, int64_t until_ms, struct rp_error *err)
{
    struct readers *all = ctx;
    (void)until_ms, (void)err;
    if (all->n < READERS_MAX) snprintf(all->names[all->n++], RP_FEED_READER, "%s", reader);
    return 0;
}

static void tell(const struct rp_safety_net *net, const char *reader, const struct rp_feed_lag *lag, int64_t now_ms)
{
    struct rp_journal j = { .log = net->catalog->log, .at_ms = now_ms, .actor = net->actor };
    rp_journal_reader_behind(&j, rp_json_object("reader", rp_json_text(reader), "events", json_integer(lag->rows),
                                                "oldest_at", rp_json_time(lag->oldest_at_ms), NULL));
}

int rp_net_count_behind(const struct rp_safety_net *net, bool tells, int64_t *behind, struct rp_error *err)
{
    struct rp_db *db = net->catalog->db;
    int64_t now_ms = rp_clock_now_ms(net->catalog->clock);
    int64_t over_ms = net->config->alerts.sink_lag_over_ms;
    struct readers all = { .n = 0 };
    int r = over_ms != 0 ? rp_feed_readers(db, add_reader, &all, err) : 0; /* 0: the alert is turned off */
    *behind = 0;
    for (size_t i = 0; i < all.n && r == 0; i++) {
        struct rp_feed_lag lag;
        r = rp_feed_lag(db, all.names[i], &lag, err);
        if (r < 0 || lag.oldest_at_ms == 0 || now_ms - lag.oldest_at_ms <= over_ms) continue;
        ++*behind;
        if (tells) tell(net, all.names[i], &lag, now_ms);
    }
    return r < 0 ? rp_error_wrap(err, r, "look for readers that are behind") : 0;
}
