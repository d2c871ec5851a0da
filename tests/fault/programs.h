/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - what users do in a trial: a world made ready without faults, then steps that a fault
 * may hit. A step that failed, or in which the process died, is given again from its beginning. */
#ifndef RP_TESTS_FAULT_PROGRAMS_H
#define RP_TESTS_FAULT_PROGRAMS_H

#include "fault/trial.h"

#define PROGRAM_STEPS_MAX 4

struct program {
    const char *name;
    void (*configure)(struct trial *t); /* before the world is opened; may be NULL */
    void (*prepare)(struct trial *t);
    int (*steps[PROGRAM_STEPS_MAX])(struct trial *t);
};

/* What programs share: a world is made without failures; two modes of the store; a sweep that may
 * leave something. */
void program_must(int r);
void program_quarantining(struct trial *t);
void program_in_place(struct trial *t);
int program_sweep_partly(struct trial *t);

extern const struct program programs_of_users[], programs_of_sweeps[], programs_of_files[];
extern const size_t programs_of_users_n, programs_of_sweeps_n, programs_of_files_n;

/* A fresh world, made ready and closed; with a directory store it is made once and brought back
 * from then on. */
void program_begin(const struct program *p, struct trial *t);
/* From the step where it is; negative as soon as one fails. */
int program_run(const struct program *p, struct trial *t);

#endif
