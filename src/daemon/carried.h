/* SPDX-License-Identifier: Apache-2.0 */
/* carried.h - restores in bulk, retentions and safety nets inside the daemon: those that somebody
 * asked for here (runs.h has their threads), and those that were begun elsewhere and left: by a
 * daemon or a command line that was killed or stopped.
 *
 * T1  What was left is looked for at start and every so often (rp_restore_watch, ten seconds;
 *     rp_retention_watch and rp_safety_net_watch, a minute), and carried on, one at a time.
 * T2  A stop leaves a run between two batches: it stays open, and the next daemon goes on with it.
 *     Nothing that an open restore names is claimed meanwhile.
 * T3  The day's retention is a tick of a cron line, RP_RETENTION_SCHEDULE, in UTC, taken by one
 *     daemon of all; one that was missed is made up for once. So is a safety net, by the line that is
 *     configured; without one only what was left is carried on. */
#ifndef RP_DAEMON_CARRIED_H
#define RP_DAEMON_CARRIED_H

#include "core/run/run.h"
#include "lib/session.h"
#include "metrics/metrics.h"

#include <signal.h>

/* Carries a restore, a retention or a safety net that was begun or resumed to its end, or until
 * `stop` is set. Whether it has ended. */
bool rp_carried_run(struct rp_session *session, struct rp_metrics *metrics, struct rp_run *run,
                    const volatile sig_atomic_t *stop);
#endif
