/* SPDX-License-Identifier: Apache-2.0 */
/* cursor.c - a place in the log, and its one text. */
#include "feed/cursor.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* A number without sign or leading zero, at most `most`; `*text` is moved past it. */
static bool take_number(const char **text, int64_t most, int64_t *out)
{
    const char *p = *text;
    int64_t value = 0;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9')) return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > most) return false;
    }
    *text = p;
    *out = value;
    return true;
}

static bool take_lane(const char **text, struct rp_feed_cursor *cursor)
{
    int64_t lane, seq;
    if (!take_number(text, RP_LANE_MAX, &lane) || **text != '.') return false;
    (*text)++;
    if (!take_number(text, RP_FEED_CURSOR_SEQ_MAX, &seq) || seq == 0) return false;
    if (cursor->n > 0 && cursor->at[cursor->n - 1].lane >= lane) return false;
    cursor->at[cursor->n].lane = lane;
    cursor->at[cursor->n++].seq = seq;
    return true;
}

int rp_feed_cursor_parse(const char *text, struct rp_feed_cursor *out, struct rp_error *err)
{
    struct rp_feed_cursor cursor = { .n = 0 };
    bool fine = strcmp(text, "0") == 0;
    for (const char *p = text; !fine && take_lane(&p, &cursor);) {
        fine = *p == '\0';
        if (*p++ != '-') break;
    }
    if (!fine)
        return rp_error_advise(err, RP_EINVAL,
                               "give the id of an event as it was received, such as 1.120-3.44, or none at all",
                               "this is no event id");
    *out = cursor;
    return 0;
}

size_t rp_feed_cursor_format(const struct rp_feed_cursor *cursor, char out[RP_FEED_CURSOR_TEXT])
{
    size_t len = 0;
    for (size_t i = 0; i < cursor->n; i++)
        len += (size_t)snprintf(out + len, RP_FEED_CURSOR_TEXT - len, "%s%lld.%lld", i > 0 ? "-" : "",
                                (long long)cursor->at[i].lane, (long long)cursor->at[i].seq);
    if (cursor->n == 0) len = (size_t)snprintf(out, RP_FEED_CURSOR_TEXT, "0");
    RP_ASSERT(len < RP_FEED_CURSOR_TEXT);
    return len;
}

/* Where the lane stands, or would stand. */
static size_t slot_of(const struct rp_feed_cursor *cursor, int64_t lane)
{
    size_t i = 0;
    while (i < cursor->n && cursor->at[i].lane < lane)
        i++;
    return i;
}

static bool has_lane(const struct rp_feed_cursor *cursor, size_t slot, int64_t lane)
{
    return slot < cursor->n && cursor->at[slot].lane == lane;
}

int64_t rp_feed_cursor_seq(const struct rp_feed_cursor *cursor, int64_t lane)
{
    size_t i = slot_of(cursor, lane);
    return has_lane(cursor, i, lane) ? cursor->at[i].seq : 0;
}

void rp_feed_cursor_set(struct rp_feed_cursor *cursor, int64_t lane, int64_t seq)
{
    size_t i = slot_of(cursor, lane);
    bool there = has_lane(cursor, i, lane);
    RP_ASSERT(lane >= 0 && lane <= RP_LANE_MAX && seq >= 0 && seq <= RP_FEED_CURSOR_SEQ_MAX);
    if (!there && seq == 0) return;
    if (!there) {
        memmove(&cursor->at[i + 1], &cursor->at[i], (cursor->n++ - i) * sizeof cursor->at[0]);
    } else if (seq == 0) {
        memmove(&cursor->at[i], &cursor->at[i + 1], (--cursor->n - i) * sizeof cursor->at[0]);
        return;
    }
    cursor->at[i] = (struct rp_audit_head){ .lane = lane, .seq = seq };
}

void rp_feed_cursor_from(struct rp_feed_cursor *cursor, const struct rp_audit_head *heads, size_t n)
{
    cursor->n = 0;
    for (size_t i = 0; i < n; i++)
        rp_feed_cursor_set(cursor, heads[i].lane, heads[i].seq);
}

uint64_t rp_feed_cursor_sum(const struct rp_feed_cursor *cursor)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < cursor->n; i++)
        sum += (uint64_t)cursor->at[i].seq;
    return sum;
}

bool rp_feed_cursor_within(const struct rp_feed_cursor *a, const struct rp_feed_cursor *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].seq > rp_feed_cursor_seq(b, a->at[i].lane)) return false;
    return true;
}
