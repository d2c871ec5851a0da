/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - for every n: the n-th call of the database or the store fails - before its effect, after
 * it, from there on, or together with the process. Then everything is opened again, the user gives
 * the command again, time passes, and every invariant must hold.
 *
 * P1  The loop ends one past the last point, and says so if that was not the last: none is left
 *     out.
 * P2  Worlds that a fault leaves alike (trial_fingerprint) heal alike, and are healed and judged
 *     once.
 * P3  The shipped build runs every fault at every point. Under the address sanitizer one in
 *     thirteen of them is run (a prime: over the points every kind of fault gets its turn), and every call
 *     of a port with every kind of fault at least once. */
#ifndef RP_TESTS_FAULT_LOOP_H
#define RP_TESTS_FAULT_LOOP_H

#include "fault/programs.h"

/* One test a program; `filter` (may be NULL) is a pattern of names. */
int loop_main(const char *title, const struct program *programs, size_t n, const char *filter);

#endif
