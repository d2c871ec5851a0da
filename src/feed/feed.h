/* SPDX-License-Identifier: Apache-2.0 */
/* feed.h - the audit log read as an outbox.
 *
 * Every change leaves a row in the audit log, in its own transaction. The feed hands these rows to
 * readers as events: to live clients, to the daemon itself, to webhooks and the processor. Nobody
 * who makes a change waits for a reader.
 *
 * F1  Order: the events of a lane come in the order of that lane, and none is left out. Between
 *     lanes there is no order.
 * F2  A cursor (cursor.h) is a place in the log: what is before it was dealt with. A reader may
 *     stop at any event and go on from its cursor later, in this process or in another one.
 * F3  A durable reader gets every event at least once. Its cursor is kept in the catalog under its
 *     name and is saved after deliver() has dealt with them. If the process ends in between, the
 *     same events come again. If deliver() fails, those that it has not dealt with come again too:
 *     later each time, after a minute at most, unless it says itself when.
 * F4  The newest events are held in memory, bounded in number and in bytes; older ones are read
 *     from the catalog. While nobody has joined, none is held and none is made.
 * F5  One thread reads the log. This process's commits wake it (rp_feed_poke); for those of others
 *     it looks every 200 ms.
 * F6  When the log is not what it was (the catalog was rolled back, rows are missing), memory is
 *     forgotten and followers are told. A cursor past the end of a lane goes on from that end.
 * F7  Rows that were sealed may be gone (catalog/audit/segment.h), but never while a durable reader
 *     has them before it. Whoever keeps a cursor of its own and comes back too late is told that it
 *     missed some.
 * F8  Of a durable reader that several nodes have under one name, one delivers at a time: the one
 *     that has the lease (catalog/audit/feed.h). It ends where another one begins, from the cursor
 *     that was saved last; one that froze meanwhile may deliver a few events more, twice.
 *
 * Two kinds of reader, by rp_feed_subscribe:
 *   a follower        has no name. The feed's own thread calls it, so it must not block. It begins
 *                     now.
 *   a durable reader  has a name. A thread of its own calls it, and it may block. It begins
 *                     where it ended; the first time, now.
 * Who serves many clients follows, joins once for each client, and reads memory (rp_feed_visit) or
 * the catalog (rp_feed_catch_up) from each client's own cursor. */
#ifndef RP_FEED_FEED_H
#define RP_FEED_FEED_H

#include "base/log.h"
#include "base/time.h"
#include "feed/cursor.h"

#include <stdatomic.h>

struct rp_clock;
struct rp_feed;
struct rp_writers;

struct rp_feed_options {
    const char *catalog_url;
    const struct rp_clock *clock;
    struct rp_log *log;
    size_t ring_events, ring_bytes; /* held in memory at most; 0: 16384, 8 MiB */
};

int rp_feed_start(const struct rp_feed_options *options, struct rp_feed **out, struct rp_error *err);
void rp_feed_stop(struct rp_feed *feed); /* after all have unsubscribed; NULL is fine */
/* Something was committed; cheap, from any thread; NULL is fine. */
void rp_feed_poke(struct rp_feed *feed);

/* ---- events ---- */

#define RP_FEED_JSON_MAX ((size_t)128 * 1024) /* bytes of one event; details are 64 KiB at most */

struct rp_feed_event {
    int64_t lane, seq, at_ms, tenant_id;
    uint64_t number;  /* in memory: one more than the event before it (cursor.h, V3) */
    const char *id;   /* the cursor after it, as text */
    const char *name; /* "file.deleted" */
    /* One line: {"at","event","actor","mark"?,"tenant"?, then the row's details}. */
    const char *json;
    size_t json_bytes;     /* without the NUL */
    _Atomic unsigned refs; /* the feed's */
};

/* What a reader wants to hear of. */
struct rp_feed_want {
    int64_t tenant_id;        /* 0: events of all */
    const char *const *names; /* of events, NULL at the end; NULL: all */
};

/* ---- readers ---- */

/* Lives until deliver() returns. */
struct rp_feed_batch {
    struct rp_feed_event *const *events;
    size_t n;
    bool started_over; /* F6; for followers */
};

/* What a durable reader may say of a batch; {0} to begin with. */
struct rp_feed_dealt {
    bool partly; /* only the first `n` were dealt with; else all if it returns 0, none if it fails */
    size_t n;
    int64_t again_ms; /* after a failure the next try waits for so long at least */
};

struct rp_feed_reader {
    const char *name; /* NULL: a follower */
    struct rp_feed_want want;
    /* What a follower returns is not looked at. One that wants all names gets events only while
     * somebody has joined. */
    int (*deliver)(void *ctx, const struct rp_feed_batch *batch, struct rp_feed_dealt *out, struct rp_error *err);
    /* A follower's: after each look at the log, whatever was found; may be NULL. */
    void (*looked)(void *ctx);
    void *ctx;
    struct rp_writers *writers; /* a durable reader's: its cursor is saved through them */
    /* F8: the node. NULL: nobody else reads under this name. While it has the lease deliver() is
     * called again and again: one call should not take longer than a third of it. */
    const char *holder;
    int64_t lease_ms; /* 0: RP_FEED_LEASE_MS */
};
#define RP_FEED_LEASE_MS (30 * RP_SECOND_MS)

/* `reader` is copied; what it points to stays until the end. */
struct rp_feed_subscription;
int rp_feed_subscribe(struct rp_feed *feed, const struct rp_feed_reader *reader, struct rp_feed_subscription **out,
                      struct rp_error *err);
/* Waits until deliver() is not being called any more. NULL is fine. */
void rp_feed_unsubscribe(struct rp_feed_subscription *subscription);

/* ---- for who keeps the cursors of many clients ---- */

/* From now on, until it leaves, events are held in memory for this client. */
void rp_feed_join(struct rp_feed *feed);
void rp_feed_leave(struct rp_feed *feed);
/* The number of the event that comes next; `at` (may be NULL) is the cursor before it. */
uint64_t rp_feed_end(struct rp_feed *feed, struct rp_feed_cursor *at);
/* Whether memory holds everything after this cursor: `next` is then the number to go on with. */
bool rp_feed_find(struct rp_feed *feed, const struct rp_feed_cursor *at, uint64_t *next);

/* True: the event was taken. False: it was not, and no more is wanted now. Called under a lock: it
 * must not block. */
typedef bool rp_feed_visit_fn(void *ctx, struct rp_feed_event *event);
/* The events in memory from *next on, which is moved past those that were taken. False: *next is
 * not held any more. */
bool rp_feed_visit(struct rp_feed *feed, uint64_t *next, rp_feed_visit_fn *fn, void *ctx);

/* The log in the catalog, on a connection of its own; for one thread. */
struct rp_feed_log;
int rp_feed_log_open(struct rp_feed *feed, struct rp_feed_log **out, struct rp_error *err);
void rp_feed_log_close(struct rp_feed_log *log);

struct rp_feed_caught {
    bool rolled_back; /* the cursor was past the end of a lane, and goes on from there (F6) */
    bool missed;      /* rows after the cursor are gone; it goes on behind them (F7) */
    bool ahead;       /* it is past what the feed has read: ask again after its next look */
};
/* The next events after *at, from the catalog, towards what is in memory. *at is moved past those
 * that were taken or are not wanted. Ends after a bounded number of rows. */
int rp_feed_catch_up(struct rp_feed *feed, struct rp_feed_log *log, const struct rp_feed_want *want,
                     struct rp_feed_cursor *at, rp_feed_visit_fn *fn, void *ctx, struct rp_feed_caught *out,
                     struct rp_error *err);

#endif
