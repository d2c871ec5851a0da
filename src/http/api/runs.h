/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - what the calls about runs lend to others that begin one: the command begins it, the
 * daemon carries it out. */
#ifndef RP_HTTP_API_RUNS_H
#define RP_HTTP_API_RUNS_H

#include "core/run/run.h"
#include "http/server/request.h"

extern const struct rp_shape rp_shape_run;

/* Room for a run, and the worker that it is begun for. RP_EBUSY: there is none now. */
int rp_request_reserve(struct rp_request *q, const struct rp_worker **worker, struct rp_error *err);
/* After the command that began it (q->after): hands it over, or gives the room back. `store`: of
 * a sweep; NULL: all. */
void rp_request_carry(struct rp_request *q, const char *store, const struct rp_run *run);

#endif
