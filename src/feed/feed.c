/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - the feed's thread: follows the log, fills the memory, calls the followers. */
#include "feed/inner.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/time.h"
#include "base/wait.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_MS       200
#define GAP_MS        5   /* between two looks at least, and */
#define CLIENTS_A_MS  100 /* one more ms for so many who joined: each look may wake them all */
#define FAIL_PAUSE_MS 1000
#define RING_EVENTS   16384
#define RING_BYTES    ((size_t)8 * 1024 * 1024)

void rp_feed_say(const struct rp_feed *feed, enum rp_log_level level, const char *event, json_t *fields)
{
    rp_log_event(feed->options.log, level, rp_clock_now_ms(feed->options.clock), event, fields);
}

/* ---- one page of rows ---- */

static void clear_page(struct rp_feed_page *page)
{
    for (size_t i = 0; i < page->n; i++)
        rp_feed_event_drop(page->events[i]);
    page->n = 0;
    page->gap = false;
}

/* The rows in feed->log as events: all of them if page->all, else only those that a follower
 * names. */
static int make_events(struct rp_feed *feed, struct rp_error *err)
{
    struct rp_feed_page *page = &feed->page;
    int r = 0;
    clear_page(page);
    page->head = feed->head;
    for (size_t i = 0; r == 0 && i < feed->log->n; i++) {
        const struct rp_audit_row *row = &feed->log->rows[i];
        if (row->seq != rp_feed_cursor_seq(&page->head, row->lane) + 1) page->gap = true;
        rp_feed_cursor_set(&page->head, row->lane, row->seq);
        if (!page->all && !rp_feed_is_followed(feed, row)) continue;
        r = rp_feed_log_event(feed->log, row, &page->head, &page->events[page->n], err);
        if (r == 0) page->n++;
    }
    return r;
}

/* With the lock. */
static void move_head(struct rp_feed *feed, const struct rp_feed_cursor *head)
{
    feed->head = *head;
    feed->moves++;
    pthread_cond_broadcast(&feed->moved);
}

/* False: it is not published, for somebody has joined since the page was made without all
 * events. */
static bool publish(struct rp_feed *feed)
{
    struct rp_feed_page *page = &feed->page;
    pthread_mutex_lock(&feed->lock);
    bool enough = page->all || feed->joined == 0, hold = page->all && !page->gap;
    if (enough && !hold) rp_ring_reset(&feed->ring, &page->head);
    for (size_t i = 0; enough && hold && i < page->n; i++)
        rp_ring_push(&feed->ring, page->events[i]);
    if (enough) move_head(feed, &page->head);
    pthread_mutex_unlock(&feed->lock);
    return enough;
}

static void log_started_over(struct rp_feed *feed, const char *why)
{
    rp_feed_say(feed, RP_LOG_WARNING, "feed.started_over", json_pack("{s:s}", "why", why));
}

/* Publishes the rows in feed->log and tells the followers. */
static int take_page(struct rp_feed *feed, struct rp_error *err)
{
    pthread_mutex_lock(&feed->followers_lock);
    feed->page.all = atomic_load(&feed->listening) > 0;
    int r = make_events(feed, err);
    if (r == 0 && !publish(feed)) {
        feed->page.all = true;
        r = make_events(feed, err);
        if (r == 0) (void)publish(feed);
    }
    if (r == 0 && feed->page.gap) log_started_over(feed, "a row of the audit log is missing");
    if (r == 0) rp_feed_tell(feed, feed->page.gap);
    clear_page(&feed->page);
    pthread_mutex_unlock(&feed->followers_lock);
    return r;
}

/* ---- one look ---- */

/* F6: nobody's place in memory means anything now. */
static void start_over(struct rp_feed *feed, const struct rp_feed_cursor *head, const char *why)
{
    pthread_mutex_lock(&feed->followers_lock);
    pthread_mutex_lock(&feed->lock);
    rp_ring_reset(&feed->ring, head);
    move_head(feed, head);
    pthread_mutex_unlock(&feed->lock);
    log_started_over(feed, why);
    rp_feed_tell(feed, true);
    pthread_mutex_unlock(&feed->followers_lock);
}

static bool is_stopping(struct rp_feed *feed)
{
    pthread_mutex_lock(&feed->wake_lock);
    bool stopping = feed->stopping;
    pthread_mutex_unlock(&feed->wake_lock);
    return stopping;
}

static int follow_lane(struct rp_feed *feed, int64_t lane, int64_t end, struct rp_error *err)
{
    int64_t seq;
    while ((seq = rp_feed_cursor_seq(&feed->head, lane)) < end && !is_stopping(feed)) {
        int r = rp_feed_log_read(feed->log, lane, seq, RP_FEED_PAGE, err);
        if (r == 0 && feed->log->n > 0) r = take_page(feed, err);
        if (r < 0) return r;
        if (feed->log->n > 0) continue;
        struct rp_feed_cursor head = feed->head;
        rp_feed_cursor_set(&head, lane, end);
        start_over(feed, &head, "the last rows of a lane are missing");
    }
    return 0;
}

static int look(struct rp_feed *feed, struct rp_error *err)
{
    struct rp_feed_cursor ends;
    int r = rp_feed_log_heads(feed->log, &ends, err);
    if (r < 0) return r;
    if (!rp_feed_cursor_within(&feed->head, &ends)) {
        start_over(feed, &ends, "the catalog was rolled back");
        return 0;
    }
    for (size_t i = 0; r == 0 && i < ends.n; i++)
        r = follow_lane(feed, ends.at[i].lane, ends.at[i].seq, err);
    return r;
}

static void looked(struct rp_feed *feed, int r, const struct rp_error *err)
{
    feed->fails = r < 0 ? feed->fails + 1 : 0;
    if (feed->fails == 1) rp_feed_say(feed, RP_LOG_ERROR, "feed.cannot_read", json_pack("{s:s}", "error", err->text));
    pthread_mutex_lock(&feed->followers_lock);
    rp_feed_tell_looked(feed);
    pthread_mutex_unlock(&feed->followers_lock);
}

/* ---- the thread ---- */

/* False: the end. First the least distance to the look before, whatever comes; then until somebody
 * committed. */
static bool wait_for_work(struct rp_feed *feed)
{
    int64_t gap_ms = GAP_MS + (int64_t)(atomic_load(&feed->listening) / CLIENTS_A_MS);
    struct timespec gap = rp_wait_until(feed->fails > 0 ? FAIL_PAUSE_MS : gap_ms), end = rp_wait_until(LOOK_MS);
    pthread_mutex_lock(&feed->wake_lock);
    while (!feed->stopping && pthread_cond_timedwait(&feed->wake, &feed->wake_lock, &gap) == 0)
        continue;
    while (!feed->stopping && !atomic_load(&feed->poked) &&
           pthread_cond_timedwait(&feed->wake, &feed->wake_lock, &end) == 0)
        continue;
    bool go_on = !feed->stopping;
    atomic_store(&feed->poked, false);
    pthread_mutex_unlock(&feed->wake_lock);
    return go_on;
}

static void *follow(void *ctx)
{
    struct rp_feed *feed = ctx;
    while (wait_for_work(feed)) {
        struct rp_error err = { 0 };
        int r = look(feed, &err);
        looked(feed, r, &err);
    }
    return NULL;
}

void rp_feed_poke(struct rp_feed *feed)
{
    if (feed == NULL || atomic_load(&feed->listening) == 0 || atomic_exchange(&feed->poked, true)) return;
    pthread_mutex_lock(&feed->wake_lock);
    pthread_cond_signal(&feed->wake);
    pthread_mutex_unlock(&feed->wake_lock);
}

/* ---- memory ---- */

static void change_joined(struct rp_feed *feed, bool more)
{
    pthread_mutex_lock(&feed->lock);
    RP_ASSERT(more || feed->joined > 0);
    feed->joined = more ? feed->joined + 1 : feed->joined - 1;
    atomic_store(&feed->listening, feed->joined);
    pthread_mutex_unlock(&feed->lock);
}

void rp_feed_join(struct rp_feed *feed)
{
    change_joined(feed, true);
}

void rp_feed_leave(struct rp_feed *feed)
{
    change_joined(feed, false);
}

uint64_t rp_feed_end(struct rp_feed *feed, struct rp_feed_cursor *at)
{
    pthread_mutex_lock(&feed->lock);
    uint64_t next = feed->ring.next;
    if (at != NULL) *at = feed->head;
    pthread_mutex_unlock(&feed->lock);
    return next;
}

bool rp_feed_find(struct rp_feed *feed, const struct rp_feed_cursor *at, uint64_t *next)
{
    pthread_mutex_lock(&feed->lock);
    bool found = rp_ring_find(&feed->ring, at, next);
    pthread_mutex_unlock(&feed->lock);
    return found;
}

bool rp_feed_visit(struct rp_feed *feed, uint64_t *next, rp_feed_visit_fn *fn, void *ctx)
{
    pthread_mutex_lock(&feed->lock);
    bool held = *next >= feed->ring.first;
    while (held && *next < feed->ring.next && fn(ctx, rp_ring_get(&feed->ring, *next)))
        ++*next;
    pthread_mutex_unlock(&feed->lock);
    return held;
}

/* ---- start and stop ---- */

static void init_locks(struct rp_feed *feed)
{
    pthread_mutex_init(&feed->lock, NULL);
    pthread_mutex_init(&feed->followers_lock, NULL);
    pthread_mutex_init(&feed->wake_lock, NULL);
    rp_wait_init(&feed->moved);
    rp_wait_init(&feed->wake);
}

static int begin(struct rp_feed *feed, struct rp_error *err)
{
    const struct rp_feed_options *o = &feed->options;
    if (feed->url == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    int r = rp_feed_log_open(feed, &feed->log, err);
    if (r == 0) r = rp_feed_log_heads(feed->log, &feed->head, err);
    if (r == 0)
        r = rp_ring_init(&feed->ring, o->ring_events > 0 ? o->ring_events : RING_EVENTS,
                         o->ring_bytes > 0 ? o->ring_bytes : RING_BYTES, &feed->head, err);
    if (r < 0) return r;
    r = pthread_create(&feed->thread, NULL, follow, feed);
    feed->has_thread = r == 0;
    return r != 0 ? rp_error_errno(err, r, "start a thread") : 0;
}

int rp_feed_start(const struct rp_feed_options *options, struct rp_feed **out, struct rp_error *err)
{
    struct rp_feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) return rp_error_set(err, RP_ENOMEM, "the feed: out of memory");
    feed->options = *options;
    feed->options.catalog_url = NULL; /* the caller's */
    feed->url = strdup(options->catalog_url);
    init_locks(feed);
    int r = begin(feed, err);
    if (r < 0) {
        rp_feed_stop(feed);
        return rp_error_wrap(err, r, "the feed");
    }
    *out = feed;
    return 0;
}

void rp_feed_stop(struct rp_feed *feed)
{
    if (feed == NULL) return;
    RP_ASSERT(feed->followers == NULL && feed->joined == 0);
    pthread_mutex_lock(&feed->wake_lock);
    feed->stopping = true;
    pthread_cond_broadcast(&feed->wake);
    pthread_mutex_unlock(&feed->wake_lock);
    if (feed->has_thread) pthread_join(feed->thread, NULL);
    if (feed->ring.at != NULL) rp_ring_done(&feed->ring);
    rp_feed_log_close(feed->log);
    pthread_cond_destroy(&feed->moved);
    pthread_cond_destroy(&feed->wake);
    pthread_mutex_destroy(&feed->lock);
    pthread_mutex_destroy(&feed->followers_lock);
    pthread_mutex_destroy(&feed->wake_lock);
    free(feed->url);
    free(feed);
}
