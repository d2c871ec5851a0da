/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.h - many runs, in several processes, and what is said about them. Each returns the exit
 * code. */
#ifndef RP_SIM_CROWD_H
#define RP_SIM_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#define CROWD_JOBS_MAX 16

struct crowd_plan {
    uint64_t first, last, without, steps;
    int jobs;
    bool trace, all_met, go_on;
    const char *mutant; /* NULL: all of them */
    const char *known;  /* a list of mutants and the seeds that caught them; NULL: none */
};

int crowd_one(const struct crowd_plan *plan);
/* last UINT64_MAX: until a signal. */
int crowd_many(const struct crowd_plan *plan);
int crowd_mutants(const struct crowd_plan *plan);

#endif
