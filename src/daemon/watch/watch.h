/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - a thread of the daemon's that looks at something every so often, with a session of its own.
 *
 * B1  It looks at once, then every so often; new settings wake it, and are in its session before it looks again.
 * B2  An end wakes it too, and waits for the look under way: who looks for long looks at `stop` in between. */
#ifndef RP_DAEMON_WATCH_WATCH_H
#define RP_DAEMON_WATCH_WATCH_H

#include "lib/session.h"
#include "metrics/metrics.h"

#include <pthread.h>
#include <signal.h>

struct rp_rooms;
struct rp_writers;
struct rp_watch;

/* What is looked at. What it keeps from look to look begins with a struct rp_watch, and is `bytes` long. */
struct rp_watch_kind {
    const char *what; /* for errors: "the watch over restores" */
    int64_t every_ms;
    bool no_catalog; /* its session has settings and log, and nothing else */
    size_t bytes;
    void (*look)(struct rp_watch *watch);
};

extern const struct rp_watch_kind rp_alert_watch;   /* alerts.c */
extern const struct rp_watch_kind rp_restore_watch; /* ../restore_run.c */
extern const struct rp_watch_kind rp_store_watch;   /* buckets.c */
extern const struct rp_watch_kind rp_room_watch;    /* room.c */

struct rp_watch_options {
    const struct rp_session *session; /* outlives it; its stores are open */
    struct rp_writers *writers;       /* may be NULL */
    struct rp_metrics *metrics;       /* may be NULL */
    struct rp_rooms *rooms;           /* may be NULL */
    const char *node;
    int lane;
    int64_t every_ms; /* 0: as the kind says */
};

struct rp_watch {
    const struct rp_watch_kind *kind;
    struct rp_watch_options options;
    struct rp_session session; /* the thread's */
    char node[64];
    volatile sig_atomic_t stop; /* atomic: set once */
    /* the rest is for watch.c */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t poke;
    const struct rp_config *config; /* under the lock: new settings, or NULL */
};

int rp_watch_start(const struct rp_watch_kind *kind, const struct rp_watch_options *options, struct rp_watch **out,
                   struct rp_error *err);
bool rp_watch_is_ending(const struct rp_watch *watch);
/* It begins nothing any more. NULL is fine, as below. */
void rp_watch_halt(struct rp_watch *watch);
/* The same, and waits for it. */
void rp_watch_stop(struct rp_watch *watch);
/* Settings changed. `config` outlives it. Any thread. */
void rp_watch_configure(struct rp_watch *watch, const struct rp_config *config);

#endif
