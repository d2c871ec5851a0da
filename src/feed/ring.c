/* SPDX-License-Identifier: Apache-2.0 */
#include "feed/ring.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static struct rp_ring_event *slot(const struct rp_ring *ring, uint64_t number)
{
    return &ring->at[number % ring->cap];
}

int rp_ring_init(struct rp_ring *ring, size_t events, size_t bytes, const struct rp_live_cursor *begin,
                 struct rp_error *err)
{
    *ring = (struct rp_ring){ .cap = events, .bytes_max = bytes };
    RP_ASSERT(events > 0);
    ring->at = calloc(events, sizeof *ring->at);
    if (ring->at == NULL) return rp_error_set(err, RP_ENOMEM, "live events: out of memory");
    rp_ring_reset(ring, begin);
    return 0;
}

static void drop_first(struct rp_ring *ring)
{
    struct rp_ring_event *oldest = slot(ring, ring->first);
    rp_live_cursor_set(&ring->floor, oldest->lane, oldest->seq);
    ring->bytes -= oldest->len;
    free(oldest->text);
    *oldest = (struct rp_ring_event){ 0 };
    ring->first++;
}

void rp_ring_reset(struct rp_ring *ring, const struct rp_live_cursor *begin)
{
    while (ring->first < ring->next)
        drop_first(ring);
    ring->floor = *begin;
    ring->first = ring->next = rp_live_cursor_sum(begin) + 1;
}

void rp_ring_done(struct rp_ring *ring)
{
    while (ring->first < ring->next)
        drop_first(ring);
    free(ring->at);
    *ring = (struct rp_ring){ 0 };
}

void rp_ring_push(struct rp_ring *ring, const struct rp_ring_event *event)
{
    while (ring->first < ring->next &&
           (ring->next - ring->first == ring->cap || ring->bytes + event->len > ring->bytes_max))
        drop_first(ring);
    *slot(ring, ring->next++) = *event;
    ring->bytes += event->len;
}

const struct rp_ring_event *rp_ring_get(const struct rp_ring *ring, uint64_t number)
{
    RP_ASSERT(number >= ring->first && number < ring->next);
    return slot(ring, number);
}

static bool is_at(const struct rp_ring *ring, uint64_t number, const struct rp_live_cursor *cursor)
{
    char text[RP_LIVE_CURSOR_TEXT];
    size_t n = rp_live_cursor_format(cursor, text);
    const struct rp_ring_event *event = slot(ring, number);
    return event->len > n + 4 && memcmp(event->text + 4, text, n) == 0 && event->text[4 + n] == '\n';
}

bool rp_ring_find(const struct rp_ring *ring, const struct rp_live_cursor *cursor, uint64_t *next)
{
    uint64_t number = rp_live_cursor_sum(cursor);
    if (number + 1 < ring->first || number >= ring->next) return false;
    if (number + 1 == ring->first) {
        if (!rp_live_cursor_within(cursor, &ring->floor)) return false; /* of equal sums, the same */
    } else if (!is_at(ring, number, cursor)) {
        return false;
    }
    *next = number + 1;
    return true;
}
