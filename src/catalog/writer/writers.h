/* SPDX-License-Identifier: Apache-2.0 */
/* writers.h - the threads of a daemon that carry commands, as writers.c and look.c see them. */
#ifndef RP_CATALOG_WRITERS_H
#define RP_CATALOG_WRITERS_H

#include "catalog/writer/queue.h"

#include <stdatomic.h>

#define RP_PREPARERS_MAX 8

/* A change of our own, which nobody is answered for. */
struct rp_change {
    struct rp_command command;
    rp_tx_fn *fn;
    void *ctx;
};

struct rp_writer {
    struct rp_writers *all;
    struct rp_change look; /* with `looking` under the lock of all: whether it can write */
    bool looking;
    int64_t look_began_ms, look_ahead_ms;
    bool answered; /* one look; what the last one found: */
    int64_t ahead_ms;
    int look_code;
    struct rp_catalog *catalog;
    pthread_t thread;
    struct rp_queue queue;
    bool running;
};

struct rp_preparer {
    struct rp_writers *all;
    struct rp_catalog *catalog; /* of the first from the start, else NULL: not opened yet */
    pthread_t thread;
    bool running;
    bool busy; /* under the lock of `outside`, with */
    int64_t group;
};

struct rp_writers {
    struct rp_writer at[RP_WRITERS_MAX];
    size_t n;
    struct rp_preparer preparers[RP_PREPARERS_MAX + 1]; /* the last one only has epochs raised (W10) */
    size_t n_preparers;
    struct rp_queue outside; /* commands to prepare or to finish */
    bool sqlite;
    struct rp_writers_options options;
    atomic_size_t waiting;
    atomic_uint_fast64_t rounds, commands, refused;
    atomic_int last_code;
    atomic_int_fast64_t last_ok_ms, refused_full_ms;
    pthread_mutex_t lock; /* of `idle` */
    pthread_cond_t idle;  /* nothing is under way; or a look has come back */
};

extern const struct rp_verb rp_verb_change; /* of struct rp_change */

#endif
