/* SPDX-License-Identifier: Apache-2.0 */
/* writer_steps.h - a daemon's writers over a world of their own, and how a test waits for their
 * answers. */
#ifndef RP_TESTS_WRITER_STEPS_H
#define RP_TESTS_WRITER_STEPS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/uploads.h"

#define LANE       1
#define TEST_S_MAX 120 /* for one test, under a sanitizer too: an answer that never comes is a failure, not a hang */

static struct rp_error err;

struct daemon {
    struct world *w;
    struct rp_writers *writers;
    size_t preparers; /* 0: as many as the writers think right */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t answered; /* commands */
    bool gate_open;  /* what hold_the_writer waits for */
    size_t at_gate;
    _Atomic size_t committed; /* commands that the callback told of */
};

void start_writers(struct daemon *d, size_t queue_max);
int set_up(void **state);
int tear_down(void **state);
void start(pthread_t *thread, void *(*fn)(void *), void *arg);
void wait_for_answers(struct daemon *d, size_t n);
int submit(struct daemon *d, struct rp_command *command);

/* ---- a gate: while it is closed, what is submitted waits and is one round ---- */

int stand_at_gate(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *e);
void close_gate_of(struct daemon *d, struct rp_command *gate, const struct rp_verb *verb, int64_t tenant_id);
void close_gate(struct daemon *d, struct rp_command *gate, int64_t tenant_id);
void open_gate(struct daemon *d);

/* clang-format off */
#define ON(kind, words, fn) { #fn " on " words, fn, set_up, tear_down, (void *)(uintptr_t)(kind) }
#define BOTH(fn) ON(DBS_SQLITE_FILE, "sqlite", fn), ON(DBS_POSTGRES, "postgres", fn)
/* clang-format on */

#endif
