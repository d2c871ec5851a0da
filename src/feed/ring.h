/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - the newest events, for all readers at once.
 *
 * G1  Events are numbered without gaps by the sum of the cursor after each (cursor.h, V3).
 * G2  Bounded in events and in bytes: the oldest go first. `floor` is the cursor before the first
 *     one that is held.
 * G3  Not thread-safe: its owner's lock guards it. */
#ifndef RP_FEED_RING_H
#define RP_FEED_RING_H

#include "feed/cursor.h"

struct rp_feed_event;

struct rp_ring {
    struct rp_feed_event **at;
    size_t cap, bytes, bytes_max;
    uint64_t first, next; /* numbers: of the oldest that is held, and of the next to come */
    struct rp_feed_cursor floor;
};

int rp_ring_init(struct rp_ring *ring, size_t events, size_t bytes, const struct rp_feed_cursor *begin,
                 struct rp_error *err);
void rp_ring_done(struct rp_ring *ring);
/* Forgets everything and goes on from here. */
void rp_ring_reset(struct rp_ring *ring, const struct rp_feed_cursor *begin);
/* Holds it; its number must be ring->next. */
void rp_ring_push(struct rp_ring *ring, struct rp_feed_event *event);
struct rp_feed_event *rp_ring_get(const struct rp_ring *ring, uint64_t number);
/* The number of the event that follows this cursor, if everything after it is held. False: it is
 * not, or the cursor is none that the feed passed. */
bool rp_ring_find(const struct rp_ring *ring, const struct rp_feed_cursor *cursor, uint64_t *next);

#endif
