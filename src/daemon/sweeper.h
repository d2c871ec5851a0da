/* SPDX-License-Identifier: Apache-2.0 */
/* sweeper.h - the daemon's sweeper: one thread that purges what is due, all the time or at the
 * ticks of a schedule.
 *
 * B1  Continuous: it sleeps until the next moment it knows something is due, less than a second,
 *     or until it is told of an earlier one. What came due is purged within a second when
 *     nothing else is to do.
 * B2  Its run stays open for an hour (open_run.h).
 * B3  A store that fails, or may not be purged, is left alone for a while, longer each time up
 *     to a minute; the others go on. A catalog that fails stops everything likewise. Nothing
 *     spins.
 * B4  With a cron line: nothing but the ticks, each run by one daemon of all, under the name
 *     `all`.
 * B5  It gives a sign of life in table node every ten seconds, between batches too: a thread
 *     that hangs does not. */
#ifndef RP_DAEMON_SWEEPER_H
#define RP_DAEMON_SWEEPER_H

#include "lib/session.h"
#include "metrics/metrics.h"

struct rp_writers;
struct rp_sweeper;

struct rp_sweeper_options {
    const struct rp_session *session; /* outlives the sweeper */
    struct rp_writers *writers;       /* may be NULL */
    struct rp_metrics *metrics;       /* may be NULL */
    const char *node;
    int lane;
};

int rp_sweeper_start(const struct rp_sweeper_options *options, struct rp_sweeper **out, struct rp_error *err);
/* Finishes the batches under way, closes the run, ends the thread. NULL is fine. */
void rp_sweeper_stop(struct rp_sweeper *sweeper);

/* Any thread: */

/* It shall stop, and is not waited for: it begins nothing any more. Comes before
 * rp_sweeper_stop, or not at all. NULL is fine. */
void rp_sweeper_halt(struct rp_sweeper *sweeper);
/* Something is due at this moment. */
void rp_sweeper_due(struct rp_sweeper *sweeper, int64_t due_at_ms);
/* Milliseconds since the thread was last seen alive. */
int64_t rp_sweeper_idle_ms(const struct rp_sweeper *sweeper);
/* Settings changed; the stores are the same ones in the same order. `config` outlives the
 * sweeper. */
void rp_sweeper_configure(struct rp_sweeper *sweeper, const struct rp_config *config);

#endif
