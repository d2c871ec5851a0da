/* SPDX-License-Identifier: Apache-2.0 */
/* catch_up.c - from a cursor that memory does not hold towards one that it does. */
#include "feed/inner.h"

#define ROWS_LEAST  4 /* a read; as many as the one before had room for */
#define ROWS_MOST   200
#define ROWS_A_CALL 2000 /* whoever's events they are */

struct catching_up {
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
        log->catch_up_rows = taken < ROWS_LEAST ? ROWS_LEAST : taken;
    else
        log->catch_up_rows = log->catch_up_rows * 2 < ROWS_MOST ? log->catch_up_rows * 2 : ROWS_MOST;
}

static int take_row(struct catching_up *c, const struct rp_audit_row *row, struct rp_error *err)
{
    int64_t before = rp_feed_cursor_seq(c->at, row->lane);
    struct rp_feed_event *event = NULL;
    bool wanted = rp_feed_wants(c->want, row->tenant_id, row->event);
    rp_feed_cursor_set(c->at, row->lane, row->seq);
    c->rows++;
    int r = wanted ? rp_feed_log_event(c->log, row, c->at, &event, err) : 0;
    if (r == 0 && wanted) c->full = !c->fn(c->ctx, event);
    if (r < 0 || c->full) rp_feed_cursor_set(c->at, row->lane, before);
    if (r == 0 && !c->full && row->seq != before + 1) c->missed = true;
    if (event != NULL) rp_feed_event_drop(event);
    return r;
}

/* One read of a lane. */
static int take_page(struct catching_up *c, int64_t lane, int64_t end, struct rp_error *err)
{
    int64_t seq = rp_feed_cursor_seq(c->at, lane), most = (int64_t)c->log->catch_up_rows;
    int r = rp_feed_log_read(c->log, lane, seq, (size_t)(end - seq < most ? end - seq : most), err);
    size_t taken = 0;
    if (r < 0) return r;
    while (r == 0 && !c->full && taken < c->log->n && c->log->rows[taken].seq <= end) {
        r = take_row(c, &c->log->rows[taken], err);
        if (r == 0 && !c->full) taken++;
    }
    /* Rows were taken out of the log: nothing more comes up to the end. */
    if (r == 0 && !c->full && (taken < c->log->n || taken == 0)) {
        c->missed |= rp_feed_cursor_seq(c->at, lane) < end;
        rp_feed_cursor_set(c->at, lane, end);
    }
    learn(c->log, taken);
    return r;
}

/* The reader has seen what the feed has not: rows that another node told it of, or rows of a
 * catalog that was rolled back since. */
static int look_past_head(struct catching_up *c, struct rp_feed_caught *out, struct rp_error *err)
{
    struct rp_feed_cursor ends;
    int r = rp_feed_log_heads(c->log, &ends, err);
    if (r < 0) return r;
    for (size_t i = c->at->n; i-- > 0;) {
        int64_t end = rp_feed_cursor_seq(&ends, c->at->at[i].lane);
        if (c->at->at[i].seq <= end) continue;
        rp_feed_cursor_set(c->at, c->at->at[i].lane, end);
        out->rolled_back = true;
    }
    out->ahead = !rp_feed_cursor_within(c->at, &c->head);
    return 0;
}

int rp_feed_catch_up(struct rp_feed *feed, struct rp_feed_log *log, const struct rp_feed_want *want,
                     struct rp_feed_cursor *at, rp_feed_visit_fn *fn, void *ctx, struct rp_feed_caught *out,
                     struct rp_error *err)
{
    struct catching_up c = { .log = log, .want = want, .at = at, .fn = fn, .ctx = ctx };
    int r = 0;
    *out = (struct rp_feed_caught){ 0 };
    (void)rp_feed_end(feed, &c.head);
    if (!rp_feed_cursor_within(at, &c.head)) r = look_past_head(&c, out, err);
    if (r < 0 || out->ahead) return r;
    for (size_t i = 0; r == 0 && i < c.head.n; i++) {
        int64_t lane = c.head.at[i].lane, end = c.head.at[i].seq;
        while (r == 0 && rp_feed_cursor_seq(at, lane) < end && !c.full && c.rows < ROWS_A_CALL)
            r = take_page(&c, lane, end, err);
    }
    out->missed = c.missed;
    return r;
}
