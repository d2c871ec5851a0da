/* SPDX-License-Identifier: Apache-2.0 */
/* readers.c - G7: readers of the feed that are far behind. */
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/audit/feed.h"
#include "core/journal.h"
#include "core/safety_net/steps.h"

static void tell(const struct rp_safety_net *net, const char *reader, const struct rp_feed_lag *lag, int64_t now_ms)
{
    struct rp_journal j = { .log = net->catalog->log, .at_ms = now_ms, .actor = net->actor };
    rp_journal_reader_behind(&j, rp_json_object("reader", rp_json_text(reader), "events", json_integer(lag->rows),
                                                "oldest_at", rp_json_time(lag->oldest_at_ms), NULL));
}

struct counting {
    const struct rp_safety_net *net;
    int64_t now_ms, over_ms, behind;
    bool tells;
};

static int count_behind(void *ctx, const char *reader, struct rp_error *err)
{
    struct counting *c = ctx;
    struct rp_feed_lag lag;
    int r = rp_feed_lag(c->net->catalog->db, reader, &lag, err);
    if (r < 0 || lag.oldest_at_ms == 0 || c->now_ms - lag.oldest_at_ms <= c->over_ms) return r;
    c->behind++;
    if (c->tells) tell(c->net, reader, &lag, c->now_ms);
    return 0;
}

int rp_net_count_behind(const struct rp_safety_net *net, bool tells, int64_t *behind, struct rp_error *err)
{
    struct counting c = { .net = net,
                          .now_ms = rp_clock_now_ms(net->catalog->clock),
                          .over_ms = net->config->alerts.sink_lag_over_ms,
                          .tells = tells };
    int r = c.over_ms != 0 ? rp_feed_readers(net->catalog->db, count_behind, &c, err) : 0; /* 0: it is turned off */
    *behind = c.behind;
    return r < 0 ? rp_error_wrap(err, r, "look for readers that are behind") : 0;
}
