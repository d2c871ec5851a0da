/* SPDX-License-Identifier: Apache-2.0 */
/* imports.h - annotations of a store become marks, because a person asked (runs.h) or at a tick.
 *
 * I1  An import is not carried on: one that a stop ends is partial.
 * I2  Each store's cron line ticks in UTC; a tick is taken by one daemon of all, and one that was
 *     missed is made up for once (rp_import_watch, a minute). */
#ifndef RP_DAEMON_IMPORTS_H
#define RP_DAEMON_IMPORTS_H

#include "core/run/run.h"
#include "lib/session.h"
#include "metrics/metrics.h"

#include <signal.h>

/* Carries an import that was begun to its end, with its record and its lines in the log. Negative:
 * the store is not there, and the run is still open. */
int rp_imports_run(struct rp_session *session, struct rp_metrics *metrics, const char *store, struct rp_run *run,
                   const volatile sig_atomic_t *stop, struct rp_error *err);

#endif
