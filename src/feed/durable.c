/* SPDX-License-Identifier: Apache-2.0 */
/* durable.c - readers with a name: each in a thread of its own, from the cursor that was saved last
 * (feed.h, F3, F8). */
#include "feed/inner.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/time.h"
#include "base/wait.h"
#include "catalog/audit/feed.h"
#include "catalog/writer/writer.h"

#include <stdlib.h>

#define BATCH_BYTES    ((size_t)1024 * 1024) /* one event alone may be larger */
#define AHEAD_MS       250                   /* a wait for the feed to read that far */
#define PAUSE_FIRST_MS 100                   /* after a failure; then twice as long each time */
#define PAUSE_MOST_MS  RP_MINUTE_MS
#define PASSED_MOST    1000 /* rows that are not wanted, between two saves, and */
#define PASSED_MS      (10 * RP_SECOND_MS)
#define SAID_MS        RP_MINUTE_MS /* between two lines that say the same */

struct rp_feed_durable {
    struct rp_feed *feed;
    struct rp_feed_reader reader;
    pthread_t thread;
    bool stopping; /* under the feed's lock */
    struct rp_feed_log *log;
    struct rp_feed_cursor at;
    uint64_t saved; /* sum of the cursor that was saved last */
    uint64_t moves; /* of the feed's head, when it was last looked at */
    int64_t pause_ms;
    int64_t again_ms, saved_ms, said_ms; /* on the boot clock: no delivery before; the last save; the last complaint */
    struct rp_feed_tenure tenure;        /* F8; without a holder: always ours */
    struct rp_feed_event *events[RP_FEED_PAGE];
    size_t n, bytes;
};

/* When the next step is due. */
struct due {
    int64_t in_ms;
    bool or_when_moved; /* before that, if the head moves */
};

static int64_t boot_ms(const struct rp_feed_durable *d)
{
    return rp_clock_boot_ms(d->feed->options.clock);
}

/* `member` (NULL: none) is said beside the reader's name. */
static void say(const struct rp_feed_durable *d, enum rp_log_level level, const char *event, const char *member,
                const char *text)
{
    json_t *fields = rp_json_object("reader", rp_json_text(d->reader.name), NULL);
    if (member != NULL) rp_json_set(fields, member, rp_json_text(text));
    rp_feed_say(d->feed, level, event, fields);
}

/* ---- the cursor ---- */

static int save_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct rp_feed_durable *d = ctx;
    /* Says that there is such a reader, also in an empty log. */
    static const struct rp_audit_head nowhere = { 0 };
    return rp_feed_cursor_save(tx, d->reader.name, d->at.n > 0 ? d->at.at : &nowhere, d->at.n > 0 ? d->at.n : 1, err);
}

static int save(struct rp_feed_durable *d, struct rp_error *err)
{
    int r = rp_writers_call(d->reader.writers, save_tx, d, err);
    if (r == 0) d->saved = rp_feed_cursor_sum(&d->at);
    if (r == 0) d->saved_ms = boot_ms(d);
    return r;
}

/* Where it ended. A reader of a new name begins at the end of the log, and that is saved before
 * anything else happens. */
static int load(struct rp_feed_durable *d, struct rp_error *err)
{
    struct rp_audit_head kept[RP_FEED_CURSOR_LANES];
    size_t n = 0;
    int r = rp_feed_cursor_load(d->log->db, d->reader.name, kept, RP_FEED_CURSOR_LANES, &n, err);
    if (r < 0) return r;
    if (n == 0) {
        r = rp_feed_log_heads(d->log, &d->at, err);
        return r < 0 ? r : save(d, err);
    }
    rp_feed_cursor_from(&d->at, kept, n);
    d->saved = rp_feed_cursor_sum(&d->at);
    return 0;
}

/* ---- one step ---- */

static bool keep(void *ctx, struct rp_feed_event *event)
{
    struct rp_feed_durable *d = ctx;
    if (d->n == RP_FEED_PAGE || (d->n > 0 && d->bytes + event->json_bytes > BATCH_BYTES)) return false;
    rp_feed_event_hold(event);
    d->events[d->n++] = event;
    d->bytes += event->json_bytes;
    return true;
}

static bool keep_if_wanted(void *ctx, struct rp_feed_event *event)
{
    struct rp_feed_durable *d = ctx;
    if (rp_feed_wants(&d->reader.want, event->tenant_id, event->name) && !keep(d, event)) return false;
    rp_feed_cursor_set(&d->at, event->lane, event->seq);
    return true;
}

/* The next events, from memory if it holds them; the cursor is moved past them. */
static int collect(struct rp_feed_durable *d, struct rp_feed_caught *caught, struct rp_error *err)
{
    uint64_t next;
    if (rp_feed_find(d->feed, &d->at, &next) && rp_feed_visit(d->feed, &next, keep_if_wanted, d)) return 0;
    return rp_feed_catch_up(d->feed, d->log, &d->reader.want, &d->at, keep, d, caught, err);
}

static void drop_events(struct rp_feed_durable *d)
{
    for (size_t i = 0; i < d->n; i++)
        rp_feed_event_drop(d->events[i]);
    d->n = d->bytes = 0;
}

/* The rest of them comes again. An event's id is the cursor with it. */
static void go_back(struct rp_feed_durable *d, const struct rp_feed_cursor *before, size_t dealt)
{
    struct rp_error ignored = { 0 };
    d->at = *before;
    int r = dealt > 0 ? rp_feed_cursor_parse(d->events[dealt - 1]->id, &d->at, &ignored) : 0;
    RP_ASSERT(r == 0); /* an id of ours */
}

/* What was passed over is saved by and by: nothing holds back the sealing of the log, or looks late
 * (rp_feed_lag), because of events that nobody wants. */
static bool is_passed_due(const struct rp_feed_durable *d)
{
    uint64_t sum = rp_feed_cursor_sum(&d->at), passed = sum > d->saved ? sum - d->saved : 0;
    return passed >= PASSED_MOST || (passed > 0 && boot_ms(d) - d->saved_ms >= PASSED_MS);
}

/* F3: delivered, then saved. F6: after a catalog that was rolled back the cursor is saved where it
 * goes on. */
static int deliver(struct rp_feed_durable *d, const struct rp_feed_cursor *before, bool rolled_back,
                   struct rp_error *err)
{
    struct rp_feed_dealt dealt = { .partly = false };
    struct rp_error why = { 0 };
    struct rp_feed_batch batch = { .events = d->events, .n = d->n };
    int r = d->n > 0 ? d->reader.deliver(d->reader.ctx, &batch, &dealt, err) : 0;
    size_t n = dealt.partly ? dealt.n : r == 0 ? d->n : 0;
    RP_ASSERT(n <= d->n);
    if (n < d->n) go_back(d, before, n);
    if (n > 0) d->pause_ms = 0;
    bool due = n > 0 || (r == 0 && n == d->n && rolled_back) || (r == 0 && is_passed_due(d));
    int saved = due ? save(d, r == 0 ? err : &why) : 0;
    if (saved < 0) d->at = *before;
    if (r < 0) d->again_ms = boot_ms(d) + dealt.again_ms;
    return r < 0 ? r : saved;
}

static struct due failed(struct rp_feed_durable *d, const struct rp_error *err)
{
    int64_t now_ms = boot_ms(d);
    if (d->pause_ms == 0 && (d->said_ms == 0 || now_ms - d->said_ms >= SAID_MS)) {
        say(d, RP_LOG_ERROR, "feed.reader_waits", "error", err->text);
        d->said_ms = now_ms;
    }
    d->pause_ms = d->pause_ms == 0 ? PAUSE_FIRST_MS : 2 * d->pause_ms;
    if (d->pause_ms > PAUSE_MOST_MS) d->pause_ms = PAUSE_MOST_MS;
    if (d->again_ms < now_ms + d->pause_ms) d->again_ms = now_ms + d->pause_ms;
    return (struct due){ .in_ms = d->again_ms - now_ms };
}

static void say_caught(struct rp_feed_durable *d, const struct rp_feed_caught *caught)
{
    if (caught->missed) say(d, RP_LOG_ERROR, "feed.reader_missed", NULL, NULL);
    if (caught->rolled_back)
        say(d, RP_LOG_WARNING, "feed.reader_went_back", "why",
            "the catalog was rolled back: it goes on from the end of the log");
}

static struct due step(struct rp_feed_durable *d)
{
    struct rp_feed_cursor before = d->at;
    struct rp_feed_caught caught = { 0 };
    struct rp_error err = { 0 };
    int r = collect(d, &caught, &err);
    if (r < 0) d->at = before;
    if (r == 0) r = deliver(d, &before, caught.rolled_back, &err);
    drop_events(d);
    if (r < 0) return failed(d, &err);
    d->pause_ms = 0;
    say_caught(d, &caught);
    if (caught.ahead) return (struct due){ .in_ms = AHEAD_MS };
    if (rp_feed_cursor_within(&d->at, &before)) return (struct due){ .in_ms = PASSED_MS, .or_when_moved = true };
    return (struct due){ .in_ms = 0 };
}

/* ---- on which node ---- */

/* F8. Whoever has the lease anew goes on from where the one before ended. */
static int keep_tenure(struct rp_feed_durable *d, bool *ours, struct rp_error *err)
{
    bool anew = false;
    *ours = true;
    if (d->tenure.holder == NULL) return 0;
    int r = rp_feed_tenure_keep(&d->tenure, d->log->db, &anew, err);
    if (r == 0 && anew) r = load(d, err);
    if (r < 0 && anew) rp_feed_tenure_give_back(&d->tenure);
    if (r == 0 && anew) say(d, RP_LOG_INFO, "feed.reader_begins", "node", d->tenure.holder);
    *ours = d->tenure.fence != 0;
    return r;
}

/* The lease is renewed in time, whatever the step waits for. */
static struct due for_lease(const struct rp_feed_durable *d, struct due due)
{
    int64_t most_ms = d->tenure.holder != NULL ? rp_feed_tenure_every_ms(&d->tenure) : due.in_ms;
    if (due.in_ms > most_ms) due.in_ms = most_ms;
    return due;
}

static struct due step_if_ours(struct rp_feed_durable *d)
{
    struct rp_error err = { 0 };
    bool ours;
    int r = keep_tenure(d, &ours, &err);
    int64_t left_ms = d->again_ms - boot_ms(d);
    if (r < 0) return for_lease(d, failed(d, &err));
    if (!ours) return (struct due){ .in_ms = rp_feed_tenure_every_ms(&d->tenure) / 2 };
    return for_lease(d, left_ms > 0 ? (struct due){ .in_ms = left_ms } : step(d));
}

/* False: the end. */
static bool wait_for_step(struct rp_feed_durable *d, struct due due)
{
    struct rp_feed *feed = d->feed;
    struct timespec until = rp_wait_until(due.in_ms);
    pthread_mutex_lock(&feed->lock);
    while (!d->stopping && due.in_ms > 0 && !(due.or_when_moved && feed->moves != d->moves) &&
           pthread_cond_timedwait(&feed->moved, &feed->lock, &until) == 0)
        continue;
    d->moves = feed->moves;
    bool go_on = !d->stopping;
    pthread_mutex_unlock(&feed->lock);
    return go_on;
}

static void *read_on(void *ctx)
{
    struct rp_feed_durable *d = ctx;
    struct due due = { .in_ms = 0 };
    while (wait_for_step(d, due))
        due = step_if_ours(d);
    return NULL;
}

/* ---- start and stop ---- */

/* One that is new begins here, on whichever node. */
static int begin(struct rp_feed_durable *d, struct rp_error *err)
{
    bool ours;
    int r = rp_feed_log_open(d->feed, &d->log, err);
    if (r == 0) r = d->reader.holder != NULL ? keep_tenure(d, &ours, err) : load(d, err);
    if (r < 0) return r;
    rp_feed_join(d->feed);
    r = pthread_create(&d->thread, NULL, read_on, d);
    if (r == 0) return 0;
    rp_feed_leave(d->feed);
    return rp_error_errno(err, r, "start a thread");
}

int rp_feed_durable_start(struct rp_feed *feed, const struct rp_feed_reader *reader, struct rp_feed_durable **out,
                          struct rp_error *err)
{
    struct rp_feed_durable *d = calloc(1, sizeof *d);
    RP_ASSERT(reader->name != NULL && reader->writers != NULL);
    if (d == NULL) return rp_error_set(err, RP_ENOMEM, "reader '%s' of the feed: out of memory", reader->name);
    d->feed = feed;
    d->reader = *reader;
    d->tenure = (struct rp_feed_tenure){ .reader = reader->name,
                                         .holder = reader->holder,
                                         .writers = reader->writers,
                                         .clock = feed->options.clock,
                                         .lease_ms = reader->lease_ms > 0 ? reader->lease_ms : RP_FEED_LEASE_MS };
    int r = begin(d, err);
    if (r == 0) {
        *out = d;
        return 0;
    }
    rp_feed_log_close(d->log);
    free(d);
    return rp_error_wrap(err, r, "reader '%s' of the feed", reader->name);
}

void rp_feed_durable_stop(struct rp_feed_durable *d)
{
    pthread_mutex_lock(&d->feed->lock);
    d->stopping = true;
    pthread_cond_broadcast(&d->feed->moved);
    pthread_mutex_unlock(&d->feed->lock);
    pthread_join(d->thread, NULL);
    rp_feed_tenure_give_back(&d->tenure);
    rp_feed_leave(d->feed);
    rp_feed_log_close(d->log);
    free(d);
}
