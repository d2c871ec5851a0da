/* SPDX-License-Identifier: Apache-2.0 */
/* live_ring.h - the last events, as the text that clients get, for all of them at once.
 *
 * G1  Events are numbered without gaps by the sum of the cursor after each (live_cursor.h, V3).
 * G2  Bounded in events and in bytes: the oldest go first. `floor` is the cursor before the first one that is held.
 * G3  Not thread-safe: its owner's lock guards it. */
#ifndef RP_FEED_RING_H
#define RP_FEED_RING_H

#include "feed/cursor.h"

struct rp_ring_event {
    int64_t lane, seq, tenant_id;
    char *text; /* "id: CURSOR\nevent: ..."; the ring's once it was pushed */
    size_t len;
};

struct rp_ring {
    struct rp_ring_event *at;
    size_t cap, bytes, bytes_max;
    uint64_t first, next; /* numbers: of the oldest that is held, and of the next to come */
    struct rp_live_cursor floor;
};

int rp_ring_init(struct rp_ring *ring, size_t events, size_t bytes, const struct rp_live_cursor *begin,
                 struct rp_error *err);
void rp_ring_done(struct rp_ring *ring);
/* Forgets everything and goes on from here. */
void rp_ring_reset(struct rp_ring *ring, const struct rp_live_cursor *begin);
void rp_ring_push(struct rp_ring *ring, const struct rp_ring_event *event);
const struct rp_ring_event *rp_ring_get(const struct rp_ring *ring, uint64_t number);
/* The number of the event that follows this cursor, if the ring holds everything after it. False: it does not, or the cursor is
 * none that its reader passed. */
bool rp_ring_find(const struct rp_ring *ring, const struct rp_live_cursor *cursor, uint64_t *next);

#endif
