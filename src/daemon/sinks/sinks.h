/* SPDX-License-Identifier: Apache-2.0 */
/* sinks.h - what happens, told to the webhooks under `events_out`: each a durable reader of the
 * feed (feed/feed.h) with a thread, a connection and a cursor of its own.
 *
 * K1  In the order of the feed, one event a call, each at least once. An event that comes again has
 *     the same webhook-id.
 * K2  A sink that is down waits where it is: later each time up to a minute, or as long as its
 *     Retry-After says. It holds up no other sink. What follows from an answer: answer.h.
 * K3  Over all nodes one delivers for a sink at a time (feed.h, F8).
 * K4  A sink is its name: with another name it begins anew, at the moment at which it does.
 *     Whoever is not configured any more holds back the sealing of the log for a day, then its
 *     cursor is forgotten (rp_readers_watch). */
#ifndef RP_DAEMON_SINKS_SINKS_H
#define RP_DAEMON_SINKS_SINKS_H

#include "catalog/audit/feed.h"
#include "config/config.h"
#include "feed/feed.h"
#include "hook/hook.h"
#include "metrics/metrics.h"

struct rp_sinks;

/* As rp_hook_send. */
typedef int rp_hook_send_fn(const struct rp_hook_call *call, struct rp_hook_answer *out, struct rp_error *err);

struct rp_sinks_options {
    const struct rp_config *config; /* outlives it */
    struct rp_feed *feed;
    struct rp_writers *writers;
    struct rp_metrics *metrics; /* may be NULL */
    struct rp_log *log;
    const struct rp_clock *clock;
    const char *node;
    rp_hook_send_fn *send; /* NULL: rp_hook_send */
    int64_t lease_ms;      /* 0: the feed's */
    int64_t refusals;      /* 0: RP_SINK_REFUSALS */
};

int rp_sinks_start(const struct rp_sinks_options *options, struct rp_sinks **out, struct rp_error *err);
/* New secrets and networks. `config` outlives the sinks. Any thread. NULL is fine, as below. */
void rp_sinks_configure(struct rp_sinks *sinks, const struct rp_config *config);
/* No further call is begun. */
void rp_sinks_halt(struct rp_sinks *sinks);
/* Waits for the calls under way. Before the writers end. */
void rp_sinks_stop(struct rp_sinks *sinks);

/* The name of a sink's reader. */
const char *rp_sink_reader(const struct rp_sink_config *sink, char out[RP_FEED_READER]);

#endif
