/* SPDX-License-Identifier: Apache-2.0 */
/* cursor.h - a place in the audit log: for each lane, the number of the last row that was seen.
 *
 * V1  Lanes stand in order and each once; a lane that is not named is at 0. As text: "1.120-3.44",
 *     and "0" for a place before everything.
 * V2  A cursor has one text, so that two are the same exactly if their texts are. Any other
 *     spelling is refused.
 * V3  Its sum grows by exactly 1 with every row, so it numbers the events of whoever reads them
 *     all. */
#ifndef RP_FEED_CURSOR_H
#define RP_FEED_CURSOR_H

#include "base/id.h"
#include "catalog/audit/audit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_error;

#define RP_FEED_CURSOR_LANES   (RP_LANE_MAX + 1)
#define RP_FEED_CURSOR_SEQ_MAX INT64_C(1000000000000000)
#define RP_FEED_CURSOR_TEXT    (RP_FEED_CURSOR_LANES * 21 + 1) /* "255.1000000000000000-" */

struct rp_feed_cursor {
    size_t n;
    struct rp_audit_head at[RP_FEED_CURSOR_LANES];
};

int rp_feed_cursor_parse(const char *text, struct rp_feed_cursor *out, struct rp_error *err);
/* Returns the length. */
size_t rp_feed_cursor_format(const struct rp_feed_cursor *cursor, char out[RP_FEED_CURSOR_TEXT]);
int64_t rp_feed_cursor_seq(const struct rp_feed_cursor *cursor, int64_t lane);
/* 0 takes the lane away. */
void rp_feed_cursor_set(struct rp_feed_cursor *cursor, int64_t lane, int64_t seq);
uint64_t rp_feed_cursor_sum(const struct rp_feed_cursor *cursor);
/* Of lanes in any order; some may be at 0. */
void rp_feed_cursor_from(struct rp_feed_cursor *cursor, const struct rp_audit_head *heads, size_t n);
/* Whether `a` is nowhere past `b`. */
bool rp_feed_cursor_within(const struct rp_feed_cursor *a, const struct rp_feed_cursor *b);

#endif
