/* SPDX-License-Identifier: Apache-2.0 */
/* http_trials.h - calls that do what a test of the server wants to see, joined with those of the
 * program. */
#ifndef RP_TESTS_CONTRACT_HTTP_TRIALS_H
#define RP_TESTS_CONTRACT_HTTP_TRIALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "lib/http.h"

/* A server with these calls; everything below is as at the beginning. */
void trial_begin(struct served *s, enum dbs_kind kind, void (*tune)(struct served *s));
/* One for each test, on SQLite: a row of cmocka's table. */
/* clang-format off */
#define TRIAL(test, served) { #test, test, trial_set_up, trial_tear_down, (served) }
/* clang-format on */
int trial_set_up(void **served);
int trial_tear_down(void **served);

/* POST /trial/count and /trial/slow raise the number `trial` of table meta. GET /trial/gate waits
 * until the gate is open, and so does the prepare of /trial/slow. */
void trial_gate(bool open);
extern atomic_int trial_waiting; /* requests that wait at the gate */

/* PUT /trial/upload counts how its streams ended. */
extern atomic_int trial_received, trial_ended, trial_aborted; /* bytes, ends, aborts */
/* Streams of GET /trial/stream that were released. */
extern atomic_int trial_freed, trial_prepared;
/* Commands of POST /trial/count and /trial/slow whose fate was told to `after`; how many of them
 * were not done. */
extern atomic_int trial_followed, trial_refused;

/* Waits for what another thread brings about, without end but that of the test. */
#define until(condition)                                                                                               \
    do {                                                                                                               \
        const struct timespec moment_ = { .tv_nsec = 1000000 };                                                        \
        while (!(condition))                                                                                           \
            nanosleep(&moment_, NULL);                                                                                 \
    } while (0)

#endif
