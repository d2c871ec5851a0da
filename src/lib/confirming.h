/* SPDX-License-Identifier: Apache-2.0 */
/* confirming.h - an asker (core/confirm) with a session's settings, whose calls go through the port
 * for calls out. For the daemon's watch, and for a sweep of the command line or of the library. */
#ifndef RP_LIB_CONFIRMING_H
#define RP_LIB_CONFIRMING_H

#include "core/confirm/confirm.h"
#include "lib/session.h"

/* Stores, stop and whom to tell are left to the caller. Its texts are the session's
 * and the arena's. rp_hook_start was called. */
int rp_confirming_options(struct rp_session *session, struct rp_arena *arena, struct rp_asker_options *out,
                          struct rp_error *err);

/* Asks whatever may be asked now, before a sweep: what all services agree to is purged in that very
 * sweep. Of `sweep` its stores, its limit and its stop. */
int rp_confirming_pass(struct rp_session *session, const struct rp_sweep *sweep, struct rp_asker_pass *out,
                       struct rp_error *err);

#endif
