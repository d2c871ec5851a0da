/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - a thread of the daemon's that looks at something every so often, with a session of its
 * own.
 *
 * B1  It looks at once, then every so often, or when something is due that it was told of; new
 *     settings wake it, and are in its session before it looks again.
 * B2  An end wakes it too, and waits for the look under way: who looks for long looks at `stop` in
 *     between.
 * B3  One that looks seldom holds no connection to the catalog in between. If there is none to be
 *     had, it looks the next time. */
#ifndef RP_DAEMON_WATCH_WATCH_H
#define RP_DAEMON_WATCH_WATCH_H

#include "lib/session.h"
#include "metrics/metrics.h"

#include <pthread.h>
#include <signal.h>

struct rp_rooms;
struct rp_trouble;
struct rp_writers;
struct rp_watch;

enum rp_watch_catalog {
    RP_WATCH_ALWAYS,  /* its session has the catalog open */
    RP_WATCH_BRIEFLY, /* only while it looks: B3 */
    RP_WATCH_NEVER,   /* its session has settings and log, and nothing else */
};

/* What is looked at. What it keeps from look to look begins with a struct rp_watch, and is `bytes`
 * long. */
struct rp_watch_kind {
    const char *what; /* for errors: "the watch over restores" */
    int64_t every_ms;
    enum rp_watch_catalog catalog;
    size_t bytes;
    void (*begin)(struct rp_watch *watch); /* before the thread, with its session open; may be NULL, as those below */
    void (*look)(struct rp_watch *watch);  /* not NULL */
    void (*settings)(struct rp_watch *watch); /* after new ones have come into the session */
    void (*end)(struct rp_watch *watch);      /* after the last look */
};

extern const struct rp_watch_kind rp_alert_watch;        /* alerts.c */
extern const struct rp_watch_kind rp_confirmation_watch; /* confirmations.c */
extern const struct rp_watch_kind rp_unconfirmed_watch;  /* confirmations.c: where no service is configured */
extern const struct rp_watch_kind rp_restore_watch;      /* ../carried.c */
extern const struct rp_watch_kind rp_store_watch;        /* buckets.c */
extern const struct rp_watch_kind rp_room_watch;         /* room.c */
extern const struct rp_watch_kind rp_retention_watch;    /* ../carried.c */
extern const struct rp_watch_kind rp_safety_net_watch;   /* ../carried.c */
extern const struct rp_watch_kind rp_import_watch;       /* ../imports.c */
extern const struct rp_watch_kind rp_readers_watch;      /* ../sinks/readers.c */
extern const struct rp_watch_kind rp_sweep_watch;        /* ../sweeper.c */

struct rp_watch_options {
    const struct rp_session *session; /* outlives it; its stores are open */
    struct rp_writers *writers;       /* may be NULL */
    struct rp_metrics *metrics;       /* may be NULL */
    struct rp_rooms *rooms;           /* may be NULL */
    const char *node;
    int lane;
    int64_t every_ms; /* 0: as the kind says */
    const void *with; /* what only this kind needs */
};

struct rp_watch {
    const struct rp_watch_kind *kind;
    struct rp_watch_options options;
    struct rp_session session; /* the thread's */
    char node[64];
    volatile sig_atomic_t stop;   /* atomic: set once */
    volatile sig_atomic_t enough; /* atomic: new settings or an end wait for the look to be over */
    int64_t wait_ms;              /* until the next look: as the kind says, unless this one has said otherwise */
    /* the rest is for watch.c */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t poke;
    /* under the lock */
    const struct rp_config *config; /* new settings, or NULL */
    int64_t wakes_at_ms;            /* of the session's clock; 0: it does not sleep */
    bool poked;
};

int rp_watch_start(const struct rp_watch_kind *kind, const struct rp_watch_options *options, struct rp_watch **out,
                   struct rp_error *err);
bool rp_watch_is_ending(const struct rp_watch *watch);
bool rp_watch_has_enough(const struct rp_watch *watch); /* new settings wait as well */
/* The catalog fails its thread: it is to wait until trouble->until_ms, longer each time. The log hears
 * `event` now and then. */
void rp_watch_catalog_failed(struct rp_watch *watch, struct rp_trouble *trouble, const char *event,
                             const struct rp_error *why);
/* It begins nothing any more. NULL is fine, as below. */
void rp_watch_halt(struct rp_watch *watch);
/* The same, and waits for it. */
void rp_watch_stop(struct rp_watch *watch);
/* Settings changed. `config` outlives it. Any thread. */
void rp_watch_configure(struct rp_watch *watch, const struct rp_config *config);
/* There will be something to see at this moment of the session's clock: it looks no later. Any
 * thread. */
void rp_watch_due(struct rp_watch *watch, int64_t at_ms);

#endif
