/* SPDX-License-Identifier: Apache-2.0 */
/* restore_run.h - restores in bulk inside the daemon: those that somebody asked for here (runs.h
 * has their threads), and those that somebody began elsewhere and left: a daemon or a command line
 * that was killed or stopped.
 *
 * T1  What was left is looked for (rp_restore_watch) at start and every ten seconds, and carried
 *     on, one at a time.
 * T2  A stop leaves the run between two batches: it stays open, nothing that it names is claimed,
 *     and the next daemon goes on with it. */
#ifndef RP_DAEMON_RESTORE_RUN_H
#define RP_DAEMON_RESTORE_RUN_H

#include "core/reprieve/restore.h"
#include "lib/session.h"
#include "metrics/metrics.h"

/* Carries a run that was begun or resumed to its end, or until `stop` is set. Whether it has ended. */
bool rp_restore_run(struct rp_session *session, struct rp_metrics *metrics, struct rp_run *run,
                    const volatile sig_atomic_t *stop);

#endif
