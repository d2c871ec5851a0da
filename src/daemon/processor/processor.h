/* SPDX-License-Identifier: Apache-2.0 */
/* processor.h - who looks at uploads before they live (setting `processor`): told of each that
 * waits in `scanning`, and of each that it need not finish.
 *
 * U1  Two steps, so that one upload whose call fails holds up none behind it: a durable reader of
 *     the feed makes jobs (catalog/file/process.h), and a watch calls those that are due, a few
 *     side by side, from whichever node.
 * U2  A call is made at least once, and its attempts are bounded (call.h). Nothing of it is part of
 *     a delete: that is committed before anybody hears of it.
 * U3  What no event told of is found at the start and every hour: uploads that waited before there
 *     was a processor. Dead jobs begin anew at the start: whoever mended the processor restarts.
 * U4  The URL given is a signed GET of the content, for a day, made anew for each call. */
#ifndef RP_DAEMON_PROCESSOR_PROCESSOR_H
#define RP_DAEMON_PROCESSOR_PROCESSOR_H

#include "daemon/sinks/sinks.h"
#include "daemon/watch/watch.h"

struct rp_processor;

#define RP_PROCESSOR_READER "processor"

struct rp_processor_options {
    const struct rp_session *session; /* outlives it; its stores are open */
    struct rp_feed *feed;
    struct rp_writers *writers;
    struct rp_metrics *metrics; /* may be NULL */
    const char *node;
    const char *address;   /* that the server listens on */
    const char *url_key;   /* signs URLs */
    rp_hook_send_fn *send; /* NULL: rp_hook_send */
    int64_t every_ms;      /* 0: 2 s */
};

int rp_processor_start(const struct rp_processor_options *options, struct rp_processor **out, struct rp_error *err);
/* Settings changed. `config` outlives it. Any thread. NULL is fine, as below. */
void rp_processor_configure(struct rp_processor *processor, const struct rp_config *config);
/* No further call is begun. */
void rp_processor_halt(struct rp_processor *processor);
void rp_processor_stop(struct rp_processor *processor);

#endif
