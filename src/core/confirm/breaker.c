/* SPDX-License-Identifier: Apache-2.0 */
#include "core/confirm/breaker.h"

#include "base/time.h"

#define PROBE_FIRST_MS (10 * RP_SECOND_MS)
#define PROBE_MOST_MS  (5 * RP_MINUTE_MS)

static int most(const struct rp_breaker *b)
{
    int against = b->failures > b->doubts ? b->failures : b->doubts;
    if (b->known && b->failures == 0) return RP_BREAKER_AT_ONCE;
    return RP_BREAKER_OPENS_AFTER - against;
}

int rp_breaker_room(const struct rp_breaker *b, int under_way, int64_t now_ms)
{
    int room = most(b) - under_way;
    if (b->open) room = under_way == 0 && now_ms >= b->probe_at_ms ? 1 : 0;
    return room > 0 ? room : 0;
}

/* A failure of a call that began before it opened is no probe's. */
static void fail(struct rp_breaker *b, int64_t now_ms)
{
    if (b->open && now_ms < b->probe_at_ms) return;
    b->wait_ms = b->open ? 2 * b->wait_ms : PROBE_FIRST_MS;
    if (b->wait_ms > PROBE_MOST_MS) b->wait_ms = PROBE_MOST_MS;
    b->open = true;
    b->probe_at_ms = now_ms + b->wait_ms;
}

void rp_breaker_heard(struct rp_breaker *b, enum rp_meaning meaning, int64_t now_ms)
{
    bool failure = meaning == RP_MEANS_AGAIN, doubt = meaning == RP_MEANS_GONE || meaning == RP_MEANS_NEVER;
    if (!failure && !doubt) b->known = true;
    if (b->known) b->doubts = 0;
    if (!failure) b->failures = 0;
    if (doubt && !b->known && b->doubts < RP_BREAKER_OPENS_AFTER) b->doubts++;
    if (failure && b->failures < RP_BREAKER_OPENS_AFTER) b->failures++;
    bool suspect = doubt && b->doubts >= RP_BREAKER_OPENS_AFTER;
    if (suspect || b->failures >= RP_BREAKER_OPENS_AFTER || (failure && b->open))
        fail(b, now_ms);
    else if (!failure)
        b->open = false;
}
