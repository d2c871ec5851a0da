/* SPDX-License-Identifier: Apache-2.0 */
/* pulse.h - a thread of the daemon's that looks at something every so often, with a session of its own.
 *
 * B1  It looks at once, then every so often; new settings wake it, and are in its session before it looks again.
 * B2  An end wakes it too, and waits for the look under way: who looks for long asks rp_pulse_is_ending in between. */
#ifndef RP_DAEMON_PULSE_H
#define RP_DAEMON_PULSE_H

#include "lib/session.h"

#include <pthread.h>

struct rp_writers;

struct rp_pulse_options {
    const char *what;                 /* for errors: "the watch" */
    const struct rp_session *session; /* outlives it */
    struct rp_writers *writers;       /* may be NULL */
    const char *node;
    int lane;
    int64_t every_ms;
    void (*look)(void *ctx);
    void *ctx;
};

struct rp_pulse {
    struct rp_session session; /* the thread's */
    char node[64];
    /* the rest is its own */
    struct rp_pulse_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t poke;
    bool stop;                      /* under the lock */
    const struct rp_config *config; /* under the lock: new settings, or NULL */
};

/* After a failure nothing is left to be ended. */
int rp_pulse_start(struct rp_pulse *pulse, const struct rp_pulse_options *options, struct rp_error *err);
void rp_pulse_stop(struct rp_pulse *pulse);
/* `config` outlives it. Any thread. */
void rp_pulse_configure(struct rp_pulse *pulse, const struct rp_config *config);
bool rp_pulse_is_ending(struct rp_pulse *pulse);

#endif
