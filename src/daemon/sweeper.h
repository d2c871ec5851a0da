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
 * B4  With a cron line: marks that people and rules made wait for its ticks, each run by one daemon
 *     of all, under the name `all`. Between them it goes on as in B1 with uploads that were never
 *     seen in their store: they expire, and their quota is refunded, within a second.
 * B5  It gives a sign of life in table node every ten seconds, between batches too: a thread
 *     that hangs does not. */
#ifndef RP_DAEMON_SWEEPER_H
#define RP_DAEMON_SWEEPER_H

#include "daemon/watch/watch.h" /* rp_sweep_watch; rp_watch_due tells it when something is due */

/* Milliseconds since the thread was last seen alive. Any thread. */
int64_t rp_sweeper_idle_ms(const struct rp_watch *sweeper);

#endif
