/* SPDX-License-Identifier: Apache-2.0 */
/* raiser.h - the daemon's threads that raise the owner's epochs (core/owner/raise.h) and look whose
 * the stores are.
 *
 * A1  One thread a store: a bucket that hangs holds up no other store. An answer waits for it 2 s
 *     at most; then the raise is owed.
 * A2  It raises at the start, when an answer waits for it, when a minute in which something was
 *     kept alive is over, when a raise is owed (after 1 s at first, 30 s at most), and at the end.
 * A3  In between it looks every 20 s, and every 5 s at a store that is not ours. That a store is
 *     not ours any more, and that it is ours again, is told by the log, by /readyz and by an alert.
 *     A start does not wait for any of this.
 * A4  It opens a connection for each of these moments, and keeps none.
 * A5  In mode observe it does nothing.
 * A6  The last raise opens buckets of its own, as those of the session may have been interrupted by
 *     then, and has RP_LAST_RAISE_MS. */
#ifndef RP_DAEMON_RAISER_H
#define RP_DAEMON_RAISER_H

#include "lib/session.h"

#define RP_LAST_RAISE_MS INT64_C(4000)

struct rp_writers;
struct rp_raiser;

struct rp_raiser_options {
    const struct rp_session *session; /* outlives it */
    const char *node;
    int lane;
    int64_t every_ms, wait_ms; /* looks, and how long an answer waits; 0: as above */
};

int rp_raiser_new(const struct rp_raiser_options *options, struct rp_raiser **out, struct rp_error *err);
/* For the writers and every session beside. Before the threads run nobody waits. */
const struct rp_raise_hook *rp_raiser_hook(const struct rp_raiser *raiser);
/* The stores of the session are open. `writers` may be NULL. */
int rp_raiser_start(struct rp_raiser *raiser, struct rp_writers *writers, struct rp_error *err);
/* A last raise, then the threads end. Before the writers do. NULL is fine. */
void rp_raiser_stop(struct rp_raiser *raiser);
/* After the writers. NULL is fine. */
void rp_raiser_free(struct rp_raiser *raiser);
/* Settings changed. `config` outlives it. Any thread. */
void rp_raiser_configure(struct rp_raiser *raiser, const struct rp_config *config);

#endif
