/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - what the calls about runs are made of, and what they lend to a restore in bulk.
 *
 * runs.c        records, runs under way, the end of one; the rows of all calls about runs
 * run_start.c   a run that a call begins, or says what it would do
 * run_summary.c runs of some days in sum
 * run_shapes.c  what goes in and out */
#ifndef RP_HTTP_API_RUNS_H
#define RP_HTTP_API_RUNS_H

#include "core/restore/restore.h"
#include "core/run/run.h"
#include "http/server/request.h"

extern const struct rp_shape rp_shape_run, rp_shape_run_request, rp_shape_run_plan, rp_shape_runs_query,
    rp_shape_runs_summary, rp_shape_runs_summary_query;

rp_handler_fn rp_http_start_run, rp_http_summarise_runs;

/* A run that a call begins: the command begins it, the daemon carries it out. */
struct rp_beginning {
    union {
        struct rp_command command; /* of either */
        struct rp_run_command begin;
        struct rp_restore_command restore;
    };
    const char *store; /* of a sweep or an import; NULL: all */
    struct rp_run run;
};
/* With room for a run, and the worker that it is begun for. NULL: answered. */
struct rp_beginning *rp_beginning_new(struct rp_request *q, const struct rp_verb *verb,
                                      const struct rp_worker **worker);
/* Answers 202 with the run, once its command has begun it. */
void rp_beginning_submit(struct rp_request *q, struct rp_beginning *b);

#endif
