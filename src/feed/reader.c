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
#define PASSED_MOST    1000 /* rows that are not wanted, between two saves, and */
#define PASSED_MS      (10 * RP_SECOND_MS)
#define SAID_MS        RP_MINUTE_MS /* between two lines that say the same */

/* For a durable reader's next step: after so many ms, or, if the head moves, before that. */
#define AT_ONCE    INT64_C(0)
#define WHEN_MOVED (-PASSED_MS)

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
    int64_t again_ms, saved_ms, said_ms; /* on the boot clock: no delivery before; the last save; the last complaint */
    struct rp_feed_turn turn;            /* F8; without a holder: always ours */
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
    if (r == 0) s->saved_ms = rp_time_boot_ms();
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

/* The rest of them comes again. An event's id is the cursor with it. */
static void go_back(struct rp_feed_subscription *s, const struct rp_feed_cursor *before, size_t dealt)
{
    struct rp_error ignored = { 0 };
    s->at = *before;
    int r = dealt > 0 ? rp_feed_cursor_parse(s->events[dealt - 1]->id, &s->at, &ignored) : 0;
    RP_ASSERT(r == 0); /* an id of ours */
}

/* What was passed over is saved by and by: nothing holds back the sealing of the log, or looks late
 * (rp_feed_lag), because of events that nobody wants. */
static bool is_passed_due(const struct rp_feed_subscription *s)
{
    uint64_t passed = rp_feed_cursor_sum(&s->at) - s->saved;
    return passed >= PASSED_MOST || (passed > 0 && rp_time_boot_ms() - s->saved_ms >= PASSED_MS);
}

/* F3: delivered, then saved. */
static int deliver(struct rp_feed_subscription *s, const struct rp_feed_cursor *before, struct rp_error *err)
{
    size_t dealt = RP_FEED_UNSAID;
    int64_t again_ms = 0;
    struct rp_error why = { 0 };
    struct rp_feed_batch batch = { .events = s->events, .n = s->n, .dealt = &dealt, .again_ms = &again_ms };
    int r = s->n > 0 ? s->reader.deliver(s->reader.ctx, &batch, err) : 0;
    if (dealt == RP_FEED_UNSAID) dealt = r == 0 ? s->n : 0;
    RP_ASSERT(dealt <= s->n);
    if (dealt < s->n) go_back(s, before, dealt);
    if (dealt > 0) s->pause_ms = 0;
    int saved = dealt > 0 || (r == 0 && is_passed_due(s)) ? save(s, r == 0 ? err : &why) : 0;
    if (saved < 0) s->at = *before;
    if (r < 0) s->again_ms = rp_time_boot_ms() + again_ms;
    return r < 0 ? r : saved;
}

static int64_t failed(struct rp_feed_subscription *s, const struct rp_error *err)
{
    int64_t now_ms = rp_time_boot_ms();
    if (s->pause_ms == 0 && (s->said_ms == 0 || now_ms - s->said_ms >= SAID_MS)) {
        rp_log_event(s->feed->options.log, RP_LOG_ERROR, rp_clock_now_ms(s->feed->options.clock), "feed.reader_waits",
                     json_pack("{s:s,s:s}", "reader", s->reader.name, "error", err->text));
        s->said_ms = now_ms;
    }
    s->pause_ms = s->pause_ms == 0 ? PAUSE_FIRST_MS : 2 * s->pause_ms;
    if (s->pause_ms > PAUSE_MOST_MS) s->pause_ms = PAUSE_MOST_MS;
    if (s->again_ms < now_ms + s->pause_ms) s->again_ms = now_ms + s->pause_ms;
    return s->again_ms - now_ms;
}

/* Returns when the next step is due. */
static int64_t step(struct rp_feed_subscription *s)
{
    struct rp_feed_cursor before = s->at;
    struct rp_feed_caught caught = { 0 };
    struct rp_error err = { 0 };
    int r = collect(s, &caught, &err);
    if (r < 0) s->at = before;
    if (r == 0) r = deliver(s, &before, &err);
    drop_events(s);
    if (r < 0) return failed(s, &err);
    s->pause_ms = 0;
    if (caught.missed)
        rp_log_event(s->feed->options.log, RP_LOG_ERROR, rp_clock_now_ms(s->feed->options.clock), "feed.reader_missed",
                     json_pack("{s:s}", "reader", s->reader.name));
    if (caught.ahead) return AHEAD_MS;
    return rp_feed_cursor_within(&s->at, &before) ? WHEN_MOVED : AT_ONCE;
}

/* ---- durable readers: whose turn it is ---- */

/* F8. Whoever has the lease anew goes on from where the one before ended. */
static int take_turn(struct rp_feed_subscription *s, bool *mine, struct rp_error *err)
{
    bool anew = false;
    *mine = true;
    if (s->turn.holder == NULL) return 0;
    int r = rp_feed_turn_keep(&s->turn, s->log->db, &anew, err);
    if (r == 0 && anew) r = load(s, err);
    if (r < 0 && anew) rp_feed_turn_give_back(&s->turn);
    if (r == 0 && anew)
        rp_log_event(s->feed->options.log, RP_LOG_INFO, rp_clock_now_ms(s->feed->options.clock), "feed.reader_begins",
                     json_pack("{s:s,s:s}", "reader", s->reader.name, "node", s->turn.holder));
    *mine = s->turn.fence != 0;
    return r;
}

/* The lease is renewed also while nothing may be delivered. */
static int64_t no_longer(const struct rp_feed_subscription *s, int64_t wait_ms)
{
    int64_t most = s->turn.holder != NULL ? rp_feed_turn_every_ms(&s->turn) : INT64_MAX;
    if (wait_ms < 0) return -wait_ms > most ? -most : wait_ms;
    return wait_ms > most ? most : wait_ms;
}

/* Returns when the next one is due. */
static int64_t step_in_turn(struct rp_feed_subscription *s)
{
    struct rp_error err = { 0 };
    bool mine;
    int r = take_turn(s, &mine, &err);
    int64_t left_ms = s->again_ms - rp_time_boot_ms();
    if (r < 0) return no_longer(s, failed(s, &err));
    if (!mine) return rp_feed_turn_every_ms(&s->turn) / 2;
    return no_longer(s, left_ms > 0 ? left_ms : step(s));
}

/* False: the end. */
static bool wait_for_step(struct rp_feed_subscription *s, int64_t due)
{
    struct rp_feed *feed = s->feed;
    struct timespec until = rp_wait_until(due < 0 ? -due : due);
    pthread_mutex_lock(&feed->lock);
    while (!s->stopping && due != AT_ONCE && (due > 0 || feed->moves == s->moves) &&
           pthread_cond_timedwait(&feed->moved, &feed->lock, &until) == 0)
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
        due = step_in_turn(s);
    return NULL;
}

/* ---- subscribe ---- */

/* One that is new begins here, on whichever node. */
static int begin_durable(struct rp_feed_subscription *s, struct rp_error *err)
{
    const struct rp_feed_reader *reader = &s->reader;
    bool mine;
    RP_ASSERT(reader->writers != NULL);
    s->turn = (struct rp_feed_turn){ .reader = reader->name,
                                     .holder = reader->holder,
                                     .writers = reader->writers,
                                     .lease_ms = reader->lease_ms > 0 ? reader->lease_ms : RP_FEED_LEASE_MS };
    int r = rp_feed_log_open(s->feed, &s->log, err);
    if (r == 0) r = reader->holder != NULL ? take_turn(s, &mine, err) : load(s, err);
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
    rp_feed_turn_give_back(&s->turn);
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
