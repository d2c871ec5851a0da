/* SPDX-License-Identifier: Apache-2.0 */
/* Who is told: followers in the feed's thread, durable readers each in a thread of its own. */
#include "feed/inner.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"
#include "catalog/audit/feed.h"
#include "catalog/writer/writer.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES    ((size_t)1024 * 1024) /* a durable reader's; one event alone may be larger */
#define AHEAD_MS       250                   /* a wait for the feed to read that far */
#define PAUSE_FIRST_MS 100                   /* after a failure; then twice as long each time */
#define PAUSE_MOST_MS  RP_MINUTE_MS
#define PASSED_MOST    1000 /* rows that are not wanted, between two saves */

/* For a durable reader's next step. */
#define AT_ONCE    INT64_C(0)
#define WHEN_MOVED INT64_C(-1)

struct rp_feed_subscription {
    struct rp_feed *feed;
    struct rp_feed_reader reader;
    struct rp_feed_subscription *next; /* follower */

    /* The rest is a durable reader's. */
    pthread_t thread;
    bool stopping; /* under the feed's lock */
    struct rp_feed_log *log;
    struct rp_feed_cursor at;
    uint64_t saved; /* sum of the cursor that was saved last */
    uint64_t moves; /* of the feed's head, when it was last looked at */
    int64_t pause_ms;
    struct rp_feed_event *events[RP_FEED_PAGE];
    size_t n, bytes;
};

/* ---- followers ---- */

bool rp_feed_is_followed(const struct rp_feed *feed, const struct rp_audit_row *row)
{
    for (const struct rp_feed_subscription *s = feed->followers; s != NULL; s = s->next)
        if (s->reader.want.names != NULL && rp_feed_wants(&s->reader.want, row->tenant_id, row->event)) return true;
    return false;
}

static void tell_follower(const struct rp_feed_subscription *s, const struct rp_feed_page *page, bool started_over)
{
    struct rp_feed_event *wanted[RP_FEED_PAGE];
    struct rp_feed_batch batch = { .events = wanted, .started_over = started_over };
    struct rp_error ignored = { 0 };
    bool complete = page->all || s->reader.want.names != NULL;
    for (size_t i = 0; complete && i < page->n; i++)
        if (rp_feed_wants(&s->reader.want, page->events[i]->tenant_id, page->events[i]->name))
            wanted[batch.n++] = page->events[i];
    if (batch.n > 0 || started_over) (void)s->reader.deliver(s->reader.ctx, &batch, &ignored);
}

void rp_feed_tell(struct rp_feed *feed, bool started_over)
{
    for (struct rp_feed_subscription *s = feed->followers; s != NULL; s = s->next)
        tell_follower(s, &feed->page, started_over);
}

void rp_feed_tell_looked(struct rp_feed *feed)
{
    for (struct rp_feed_subscription *s = feed->followers; s != NULL; s = s->next)
        if (s->reader.looked != NULL) s->reader.looked(s->reader.ctx);
}

static void add_follower(struct rp_feed_subscription *s)
{
    pthread_mutex_lock(&s->feed->turns);
    s->next = s->feed->followers;
    s->feed->followers = s;
    pthread_mutex_unlock(&s->feed->turns);
}

static void remove_follower(struct rp_feed_subscription *s)
{
    pthread_mutex_lock(&s->feed->turns);
    struct rp_feed_subscription **link = &s->feed->followers;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    pthread_mutex_unlock(&s->feed->turns);
}

/* ---- durable readers: their cursor ---- */

static int save_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct rp_feed_subscription *s = ctx;
    /* Says that there is such a reader, also in an empty log. */
    static const struct rp_audit_head nowhere = { 0 };
    return rp_feed_cursor_save(tx, s->reader.name, s->at.n > 0 ? s->at.at : &nowhere, s->at.n > 0 ? s->at.n : 1, err);
}

static int save(struct rp_feed_subscription *s, struct rp_error *err)
{
    int r = rp_writers_call(s->reader.writers, save_tx, s, err);
    if (r == 0) s->saved = rp_feed_cursor_sum(&s->at);
    return r;
}

/* Where it ended. A reader of a new name begins at the end of the log, and that is saved before
 * anything else happens. */
static int load(struct rp_feed_subscription *s, struct rp_error *err)
{
    struct rp_audit_head kept[RP_FEED_CURSOR_LANES];
    size_t n = 0;
    int r = rp_feed_cursor_load(s->log->db, s->reader.name, kept, RP_FEED_CURSOR_LANES, &n, err);
    if (r < 0) return r;
    if (n == 0) {
        r = rp_feed_log_heads(s->log, &s->at, err);
        return r < 0 ? r : save(s, err);
    }
    rp_feed_cursor_from(&s->at, kept, n);
    s->saved = rp_feed_cursor_sum(&s->at);
    return 0;
}

/* ---- durable readers: one step ---- */

static bool keep(void *ctx, struct rp_feed_event *event)
{
    struct rp_feed_subscription *s = ctx;
    if (s->n == RP_FEED_PAGE || (s->n > 0 && s->bytes + event->json_bytes > BATCH_BYTES)) return false;
    rp_feed_event_hold(event);
    s->events[s->n++] = event;
    s->bytes += event->json_bytes;
    return true;
}

static bool keep_if_wanted(void *ctx, struct rp_feed_event *event)
{
    struct rp_feed_subscription *s = ctx;
    if (rp_feed_wants(&s->reader.want, event->tenant_id, event->name) && !keep(s, event)) return false;
    rp_feed_cursor_set(&s->at, event->lane, event->seq);
    return true;
}

/* The next events, from memory if it holds them; the cursor is moved past them. */
static int collect(struct rp_feed_subscription *s, struct rp_feed_caught *caught, struct rp_error *err)
{
    uint64_t next;
    if (rp_feed_find(s->feed, &s->at, &next) && rp_feed_visit(s->feed, &next, keep_if_wanted, s)) return 0;
    return rp_feed_catch_up(s->feed, s->log, &s->reader.want, &s->at, keep, s, caught, err);
}

static void drop_events(struct rp_feed_subscription *s)
{
    for (size_t i = 0; i < s->n; i++)
        rp_feed_event_drop(s->events[i]);
    s->n = s->bytes = 0;
}

/* F3: delivered, then saved. */
static int deliver(struct rp_feed_subscription *s, struct rp_error *err)
{
    struct rp_feed_batch batch = { .events = s->events, .n = s->n };
    int r = s->n > 0 ? s->reader.deliver(s->reader.ctx, &batch, err) : 0;
    bool is_due = s->n > 0 || rp_feed_cursor_sum(&s->at) - s->saved >= PASSED_MOST;
    return r == 0 && is_due ? save(s, err) : r;
}

static int64_t failed(struct rp_feed_subscription *s, const struct rp_error *err)
{
    if (s->pause_ms == 0)
        rp_log_event(s->feed->options.log, RP_LOG_ERROR, rp_clock_now_ms(s->feed->options.clock), "feed.reader_waits",
                     json_pack("{s:s,s:s}", "reader", s->reader.name, "error", err->text));
    s->pause_ms = s->pause_ms == 0 ? PAUSE_FIRST_MS : 2 * s->pause_ms;
    if (s->pause_ms > PAUSE_MOST_MS) s->pause_ms = PAUSE_MOST_MS;
    return s->pause_ms;
}

/* Returns when the next step is due. */
static int64_t step(struct rp_feed_subscription *s)
{
    struct rp_feed_cursor before = s->at;
    struct rp_feed_caught caught = { 0 };
    struct rp_error err = { 0 };
    int r = collect(s, &caught, &err);
    if (r == 0) r = deliver(s, &err);
    drop_events(s);
    if (r < 0) {
        s->at = before;
        return failed(s, &err);
    }
    s->pause_ms = 0;
    if (caught.ahead) return AHEAD_MS;
    return rp_feed_cursor_within(&s->at, &before) ? WHEN_MOVED : AT_ONCE;
}

/* False: the end. */
static bool wait_for_step(struct rp_feed_subscription *s, int64_t due)
{
    struct rp_feed *feed = s->feed;
    struct timespec until = rp_wait_until(due > 0 ? due : 0);
    pthread_mutex_lock(&feed->lock);
    while (!s->stopping && due == WHEN_MOVED && feed->moves == s->moves)
        pthread_cond_wait(&feed->moved, &feed->lock);
    while (!s->stopping && due > 0 && pthread_cond_timedwait(&feed->moved, &feed->lock, &until) == 0)
        continue;
    s->moves = feed->moves;
    bool go_on = !s->stopping;
    pthread_mutex_unlock(&feed->lock);
    return go_on;
}

static void *read_on(void *ctx)
{
    struct rp_feed_subscription *s = ctx;
    int64_t due = AT_ONCE;
    while (wait_for_step(s, due))
        due = step(s);
    return NULL;
}

/* ---- subscribe ---- */

static int begin_durable(struct rp_feed_subscription *s, struct rp_error *err)
{
    RP_ASSERT(s->reader.writers != NULL);
    int r = rp_feed_log_open(s->feed, &s->log, err);
    if (r == 0) r = load(s, err);
    if (r < 0) return r;
    rp_feed_join(s->feed);
    r = pthread_create(&s->thread, NULL, read_on, s);
    if (r == 0) return 0;
    rp_feed_leave(s->feed);
    return rp_error_errno(err, r, "start a thread");
}

static void end_durable(struct rp_feed_subscription *s)
{
    pthread_mutex_lock(&s->feed->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->feed->moved);
    pthread_mutex_unlock(&s->feed->lock);
    pthread_join(s->thread, NULL);
    rp_feed_leave(s->feed);
}

int rp_feed_subscribe(struct rp_feed *feed, const struct rp_feed_reader *reader, struct rp_feed_subscription **out,
                      struct rp_error *err)
{
    struct rp_feed_subscription *s = calloc(1, sizeof *s);
    if (s == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    RP_ASSERT(reader->deliver != NULL);
    s->feed = feed;
    s->reader = *reader;
    int r = reader->name != NULL ? begin_durable(s, err) : 0;
    if (r < 0) {
        rp_feed_log_close(s->log);
        free(s);
        return rp_error_wrap(err, r, "reader '%s' of the feed", reader->name);
    }
    if (reader->name == NULL) add_follower(s);
    *out = s;
    return 0;
}

void rp_feed_unsubscribe(struct rp_feed_subscription *s)
{
    if (s == NULL) return;
    if (s->reader.name != NULL)
        end_durable(s);
    else
        remove_follower(s);
    rp_feed_log_close(s->log);
    free(s);
}
