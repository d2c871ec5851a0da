/* SPDX-License-Identifier: Apache-2.0 */
/* live_cursor.h - a place in the audit log: for each lane, the number of the last row that was seen.
 *
 * V1  Lanes stand in order and each once; a lane that is not named is at 0. "1.120-3.44"; nothing seen yet is "0".
 * V2  One text a cursor, so that two are the same exactly if their texts are. Any other spelling is refused.
 * V3  Its sum grows by exactly 1 with every row: it numbers the events of whoever reads them all. */
#ifndef RP_FEED_CURSOR_H
#define RP_FEED_CURSOR_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_error;

#define RP_LIVE_CURSOR_LANES   (RP_LANE_MAX + 1)
#define RP_LIVE_CURSOR_SEQ_MAX INT64_C(1000000000000000)
#define RP_LIVE_CURSOR_TEXT    (RP_LIVE_CURSOR_LANES * 21 + 1) /* "255.1000000000000000-" */

struct rp_live_cursor {
    size_t n;
    struct rp_live_cursor_lane {
        int64_t lane, seq;
    } at[RP_LIVE_CURSOR_LANES];
};

int rp_live_cursor_parse(const char *text, struct rp_live_cursor *out, struct rp_error *err);
/* Returns the length. */
size_t rp_live_cursor_format(const struct rp_live_cursor *cursor, char out[RP_LIVE_CURSOR_TEXT]);
int64_t rp_live_cursor_seq(const struct rp_live_cursor *cursor, int64_t lane);
void rp_live_cursor_set(struct rp_live_cursor *cursor, int64_t lane, int64_t seq); /* 0 takes the lane away */
uint64_t rp_live_cursor_sum(const struct rp_live_cursor *cursor);
/* Whether `a` is nowhere past `b`. */
bool rp_live_cursor_within(const struct rp_live_cursor *a, const struct rp_live_cursor *b);

#endif
