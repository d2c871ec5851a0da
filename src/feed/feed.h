/* SPDX-License-Identifier: Apache-2.0 */
/* live_feed.h - the audit log in pages, and a row as the text of an event. One connection, for one thread.
 *
 *   id: 1.120-3.44
 *   event: file.deleted
 *   data: {"at":...,"event":...,"actor":...,"mark"?,"tenant"?, then the members of the row's details} */
#ifndef RP_FEED_FEED_H
#define RP_FEED_FEED_H

#include "base/buf.h"
#include "catalog/audit.h"
#include "feed/cursor.h"

#define RP_FEED_PAGE      256                                        /* rows */
#define RP_FEED_EVENT_MAX ((size_t)128 * 1024 + RP_LIVE_CURSOR_TEXT) /* bytes; details are 64 KiB at most */

struct rp_feed_tenant {
    int64_t id; /* 0: free */
    char name[64];
};

struct rp_feed {
    struct rp_db *db;
    struct rp_arena arena;
    struct rp_audit_row rows[RP_FEED_PAGE];
    size_t n;
    struct rp_feed_tenant *tenants; /* names seen before */
};

int rp_feed_open(const char *url, const struct rp_clock *clock, struct rp_feed **out, struct rp_error *err);
void rp_feed_close(struct rp_feed *feed);
int rp_feed_heads(struct rp_feed *feed, struct rp_live_cursor *out, struct rp_error *err);
/* The next rows of a lane, at most `max` (or a page), into feed->rows; they stay until the next read.
 * A row that was taken out of the log is not among them. */
int rp_feed_read(struct rp_feed *feed, int64_t lane, int64_t after_seq, size_t max, struct rp_error *err);
/* Appends the row as an event; `after` is the cursor with it. */
int rp_feed_text(struct rp_feed *feed, const struct rp_audit_row *row, const struct rp_live_cursor *after,
                 struct rp_buf *out, struct rp_error *err);

#endif
