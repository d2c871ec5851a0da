/* SPDX-License-Identifier: Apache-2.0 */
/* store_watch.h - the daemon's look at its buckets: what they guarantee, at start and once a day, and how their clocks go, every minute.
 *
 * P1  One thread of its own: a bucket that hangs holds up the looks at the others, and nothing else. A start does not wait for it.
 * P2  A bucket that does not answer is asked again, after a minute at first and an hour at most; the trouble is in the log once in ten
 *     minutes. It is open all the same: who needs it is told.
 * P3  In mode observe it is only read. Once its mode lets it be written, it is probed at the next look.
 * P4  Directories need none of it: their guarantee is the program's own, their clock the host's. */
#ifndef RP_DAEMON_STORE_WATCH_H
#define RP_DAEMON_STORE_WATCH_H

#include "lib/session.h"

struct rp_writers;
struct rp_store_watch;

struct rp_store_watch_options {
    const struct rp_session *session; /* outlives the watch; its stores are open */
    struct rp_writers *writers;       /* may be NULL */
    const char *node;
    int lane;
    int64_t every_ms; /* 0: a minute */
};

int rp_store_watch_start(const struct rp_store_watch_options *options, struct rp_store_watch **out,
                         struct rp_error *err);
void rp_store_watch_stop(struct rp_store_watch *watch); /* NULL is fine */
/* Settings changed. `config` outlives the watch. Any thread. */
void rp_store_watch_configure(struct rp_store_watch *watch, const struct rp_config *config);

#endif
