/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - marks as lists show them: those that wait, in order of time, store by store; or those of
 * one state.
 *
 * One narrow index finds them and the other filters are held against them here, so a page may be
 * short or empty although more follows: the cursor says so. What one call looks at is bounded. */
#ifndef RP_CORE_MARK_LIST_H
#define RP_CORE_MARK_LIST_H

#include "catalog/mark/mark.h"
#include "config/config.h"

struct rp_list_filter {
    int64_t store_id;      /* 0: all */
    const char *reason;    /* NULL: any */
    enum rp_state state;   /* 0: every mark that has not ended and is not dead */
    int64_t due_before_ms; /* -1: any */
    int64_t slack_ms;      /* rp_list_slack_ms */
};
/* How far after due_at the next look at a mark may lie: a lease, a back-off, a recheck. */
int64_t rp_list_slack_ms(const struct rp_config *config);

struct rp_list_cursor {
    int64_t store_id, ms, id; /* after this mark; all zero: from the start */
    bool done;                /* nothing follows */
};

/* Appends to `out` up to its max, after looking at no more than `looked_max` marks, and moves the
 * cursor. */
int rp_marks_list(struct rp_db *db, const struct rp_list_filter *filter, struct rp_list_cursor *cursor,
                  int64_t looked_max, struct rp_marks *out, struct rp_error *err);

#endif
