/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - the newest events in memory: a ring of events that are held. */
#include "feed/ring.h"

#include "base/assert.h"
#include "base/error.h"
#include "feed/inner.h"

#include <stdlib.h>
#include <string.h>

static struct rp_feed_event **slot(const struct rp_ring *ring, uint64_t number)
{
    return &ring->at[number % ring->cap];
}

static size_t bytes_of(const struct rp_feed_event *event)
{
    return event->json_bytes + strlen(event->id);
}

int rp_ring_init(struct rp_ring *ring, size_t events, size_t bytes, const struct rp_feed_cursor *begin,
                 struct rp_error *err)
{
    *ring = (struct rp_ring){ .cap = events, .bytes_max = bytes };
    RP_ASSERT(events > 0);
    ring->at = calloc(events, sizeof(struct rp_feed_event *));
    if (ring->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the newest events");
    rp_ring_reset(ring, begin);
    return 0;
}

static void drop_first(struct rp_ring *ring)
{
    struct rp_feed_event **oldest = slot(ring, ring->first++);
    rp_feed_cursor_set(&ring->floor, (*oldest)->lane, (*oldest)->seq);
    ring->bytes -= bytes_of(*oldest);
    rp_feed_event_drop(*oldest);
    *oldest = NULL;
}

void rp_ring_reset(struct rp_ring *ring, const struct rp_feed_cursor *begin)
{
    while (ring->first < ring->next)
        drop_first(ring);
    ring->floor = *begin;
    ring->first = ring->next = rp_feed_cursor_sum(begin) + 1;
}

void rp_ring_done(struct rp_ring *ring)
{
    while (ring->first < ring->next)
        drop_first(ring);
    free(ring->at);
    *ring = (struct rp_ring){ 0 };
}

void rp_ring_push(struct rp_ring *ring, struct rp_feed_event *event)
{
    RP_ASSERT(event->number == ring->next);
    while (ring->first < ring->next &&
           (ring->next - ring->first == ring->cap || ring->bytes + bytes_of(event) > ring->bytes_max))
        drop_first(ring);
    rp_feed_event_hold(event);
    *slot(ring, ring->next++) = event;
    ring->bytes += bytes_of(event);
}

struct rp_feed_event *rp_ring_get(const struct rp_ring *ring, uint64_t number)
{
    RP_ASSERT(number >= ring->first && number < ring->next);
    return *slot(ring, number);
}

static bool is_at(const struct rp_ring *ring, uint64_t number, const struct rp_feed_cursor *cursor)
{
    char text[RP_FEED_CURSOR_TEXT];
    rp_feed_cursor_format(cursor, text);
    return strcmp(rp_ring_get(ring, number)->id, text) == 0;
}

bool rp_ring_find(const struct rp_ring *ring, const struct rp_feed_cursor *cursor, uint64_t *next)
{
    uint64_t number = rp_feed_cursor_sum(cursor);
    if (number + 1 < ring->first || number >= ring->next) return false;
    if (number + 1 == ring->first) {
        /* Of equal sums, the same. */
        if (!rp_feed_cursor_within(cursor, &ring->floor)) return false;
    } else if (!is_at(ring, number, cursor)) {
        return false;
    }
    *next = number + 1;
    return true;
}
