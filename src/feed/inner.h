/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what the files of the feed share.
 *
 * Locks, in the order in which they are taken: `followers_lock` (held while they are called), a
 * follower's own, `lock` (memory and head). `wake_lock` is taken alone. */
#ifndef RP_FEED_INNER_H
#define RP_FEED_INNER_H

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "feed/feed.h"
#include "feed/ring.h"

#include <pthread.h>

#define RP_FEED_PAGE 256 /* rows, and events of a batch */

/* ---- log.c: the audit log in pages, and a row as an event ---- */

struct rp_feed_log {
    struct rp_db *db;
    struct rp_arena arena;
    struct rp_audit_row rows[RP_FEED_PAGE]; /* of the last read */
    size_t n;
    size_t catch_up_rows; /* that the next read of rp_feed_catch_up asks for */
    struct rp_buf json;   /* one event's, while it is written */
};

int rp_feed_log_heads(struct rp_feed_log *log, struct rp_feed_cursor *out, struct rp_error *err);
/* The next rows of a lane, at most `max` (or a page), into log->rows, where they stay until the
 * next read. A row that was taken out of the log is not among them. */
int rp_feed_log_read(struct rp_feed_log *log, int64_t lane, int64_t after_seq, size_t max, struct rp_error *err);
/* `after`: the cursor with it. The event is held once, by the caller. */
int rp_feed_log_event(struct rp_feed_log *log, const struct rp_audit_row *row, const struct rp_feed_cursor *after,
                      struct rp_feed_event **out, struct rp_error *err);
void rp_feed_event_hold(struct rp_feed_event *event);
void rp_feed_event_drop(struct rp_feed_event *event);

bool rp_feed_wants(const struct rp_feed_want *want, int64_t tenant_id, const char *name);

/* ---- feed.c ---- */

/* A page of rows on its way into memory and to the followers. */
struct rp_feed_page {
    struct rp_feed_cursor head; /* after it */
    struct rp_feed_event *events[RP_FEED_PAGE];
    size_t n;
    bool all; /* every row is among them, not only those that a follower names */
    bool gap; /* a row is missing in it */
};

struct rp_feed_follower;

struct rp_feed {
    struct rp_feed_options options;
    char *url;

    pthread_mutex_t lock;
    pthread_cond_t moved; /* with the head, or a durable reader is to end */
    struct rp_ring ring;
    /* What was read. Only the feed's thread changes it, and may look at it without the lock. */
    struct rp_feed_cursor head;
    uint64_t moves; /* of the head */
    size_t joined;

    pthread_mutex_t followers_lock;
    struct rp_feed_follower *followers;

    _Atomic bool poked;
    _Atomic size_t listening; /* `joined`, for who holds no lock */
    pthread_mutex_t wake_lock;
    pthread_cond_t wake;
    bool stopping;

    struct rp_feed_log *log; /* these four are the thread's */
    struct rp_feed_page page;
    int fails; /* looks in a row that failed */
    pthread_t thread;
    bool has_thread;
};

/* Into the log; takes `fields`. */
void rp_feed_say(const struct rp_feed *feed, enum rp_log_level level, const char *event, json_t *fields);

/* ---- lease.c: whether a durable reader may deliver (F8) ---- */

struct rp_feed_tenure {
    const char *reader, *holder;
    struct rp_writers *writers;
    const struct rp_clock *clock;
    int64_t lease_ms;
    int64_t fence;            /* 0: it is another's, as far as we know */
    int64_t kept_ms, look_ms; /* on the boot clock: when it was renewed; when to look again */
};
/* Takes the lease, or renews it if a third of it is over. *anew: it was another's before, or may
 * have been. */
int rp_feed_tenure_keep(struct rp_feed_tenure *tenure, struct rp_db *db, bool *anew, struct rp_error *err);
/* It is called as often at least. */
int64_t rp_feed_tenure_every_ms(const struct rp_feed_tenure *tenure);
void rp_feed_tenure_give_back(struct rp_feed_tenure *tenure);

/* ---- follower.c ---- */

int rp_feed_follower_add(struct rp_feed *feed, const struct rp_feed_reader *reader, struct rp_feed_follower **out,
                         struct rp_error *err);
void rp_feed_follower_remove(struct rp_feed_follower *follower);
/* With `followers_lock`: */
bool rp_feed_is_followed(const struct rp_feed *feed, const struct rp_audit_row *row); /* by name */
void rp_feed_tell(struct rp_feed *feed, bool started_over);                           /* feed->page */
void rp_feed_tell_looked(struct rp_feed *feed);

/* ---- durable.c ---- */

struct rp_feed_durable;
int rp_feed_durable_start(struct rp_feed *feed, const struct rp_feed_reader *reader, struct rp_feed_durable **out,
                          struct rp_error *err);
void rp_feed_durable_stop(struct rp_feed_durable *durable);

#endif
