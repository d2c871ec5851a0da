/* SPDX-License-Identifier: Apache-2.0 */
/* From a cursor that memory does not hold towards one that it does. */
#include "feed/inner.h"

#define ROWS_LEAST  4 /* a read; as many as the one before had room for */
#define ROWS_MOST   200
#define ROWS_A_CALL 2000 /* whoever's events they are */

struct turn {
    struct rp_feed_log *log;
    const struct rp_feed_want *want;
    struct rp_feed_cursor *at, head; /* head: the feed's when the call began */
    rp_feed_visit_fn *fn;
    void *ctx;
    size_t rows;
    bool full;   /* an event was not taken */
    bool missed; /* rows were gone that should have come */
};

/* Large events fill a reader's room with few rows: the next read does not fetch many to throw them
 * away. */
static void learn(struct rp_feed_log *log, size_t taken)
{
    if (taken < log->n)
        log->most = taken < ROWS_LEAST ? ROWS_LEAST : taken;
    else
        log->most = log->most * 2 < ROWS_MOST ? log->most * 2 : ROWS_MOST;
}

static int take_row(struct turn *t, const struct rp_audit_row *row, struct rp_error *err)
{
    int64_t before = rp_feed_cursor_seq(t->at, row->lane);
    struct rp_feed_event *event = NULL;
    bool wanted = rp_feed_wants(t->want, row->tenant_id, row->event);
    rp_feed_cursor_set(t->at, row->lane, row->seq);
    t->rows++;
    int r = wanted ? rp_feed_log_event(t->log, row, t->at, &event, err) : 0;
    if (r == 0 && wanted) t->full = !t->fn(t->ctx, event);
    if (r < 0 || t->full) rp_feed_cursor_set(t->at, row->lane, before);
    if (r == 0 && !t->full && row->seq != before + 1) t->missed = true;
    if (event != NULL) rp_feed_event_drop(event);
    return r;
}

/* One read of a lane. */
static int take_page(struct turn *t, int64_t lane, int64_t end, struct rp_error *err)
{
    int64_t seq = rp_feed_cursor_seq(t->at, lane), most = (int64_t)t->log->most;
    int r = rp_feed_log_read(t->log, lane, seq, (size_t)(end - seq < most ? end - seq : most), err);
    size_t taken = 0;
    if (r < 0) return r;
    while (r == 0 && !t->full && taken < t->log->n && t->log->rows[taken].seq <= end) {
        r = take_row(t, &t->log->rows[taken], err);
        if (r == 0 && !t->full) taken++;
    }
    /* Rows were taken out of the log: nothing more comes up to the end. */
    if (r == 0 && !t->full && (taken < t->log->n || taken == 0)) {
        t->missed |= rp_feed_cursor_seq(t->at, lane) < end;
        rp_feed_cursor_set(t->at, lane, end);
    }
    learn(t->log, taken);
    return r;
}

/* The reader has seen what the feed has not: rows that another node told it of, or rows of a
 * catalog that was rolled back since. */
static int look_past_head(struct turn *t, struct rp_feed_caught *out, struct rp_error *err)
{
    struct rp_feed_cursor ends;
    int r = rp_feed_log_heads(t->log, &ends, err);
    if (r < 0) return r;
    for (size_t i = t->at->n; i-- > 0;) {
        int64_t end = rp_feed_cursor_seq(&ends, t->at->at[i].lane);
        if (t->at->at[i].seq <= end) continue;
        rp_feed_cursor_set(t->at, t->at->at[i].lane, end);
        out->rolled_back = true;
    }
    out->ahead = !rp_feed_cursor_within(t->at, &t->head);
    return 0;
}

int rp_feed_catch_up(struct rp_feed *feed, struct rp_feed_log *log, const struct rp_feed_want *want,
                     struct rp_feed_cursor *at, rp_feed_visit_fn *fn, void *ctx, struct rp_feed_caught *out,
                     struct rp_error *err)
{
    struct turn t = { .log = log, .want = want, .at = at, .fn = fn, .ctx = ctx };
    int r = 0;
    *out = (struct rp_feed_caught){ 0 };
    (void)rp_feed_end(feed, &t.head);
    if (!rp_feed_cursor_within(at, &t.head)) r = look_past_head(&t, out, err);
    if (r < 0 || out->ahead) return r;
    for (size_t i = 0; r == 0 && i < t.head.n; i++) {
        int64_t lane = t.head.at[i].lane, end = t.head.at[i].seq;
        while (r == 0 && rp_feed_cursor_seq(at, lane) < end && !t.full && t.rows < ROWS_A_CALL)
            r = take_page(&t, lane, end, err);
    }
    out->missed = t.missed;
    return r;
}
