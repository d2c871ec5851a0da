/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - what is due in one store, batch by batch. For the files of this folder. */
#ifndef RP_CORE_SWEEP_PASS_H
#define RP_CORE_SWEEP_PASS_H

#include "core/sweep/sweep.h"

/* Batches, of which several are with the store at a time. */
struct rp_batches;
struct rp_batches *rp_batches_new(struct rp_error *err); /* NULL: RP_ENOMEM */
void rp_batches_freep(struct rp_batches **batches);

struct rp_pass {
    struct rp_sweep *sweep;
    struct rp_store *store;
    struct rp_run *run;
    int64_t left;                /* how many marks this run may still claim */
    int64_t from_ms;             /* where the next claim begins */
    int64_t total;               /* becomes the run's with the first claim; 0: it has its own */
    struct rp_error store_error; /* code 0: the store as a whole did not fail */
};
/* Negative: the catalog. Whatever was claimed is finished before, as far as that is possible. */
int rp_pass_run(struct rp_pass *pass, struct rp_batches *batches, struct rp_error *err);

/* ---- sweep.c ---- */

int rp_sweep_begin(struct rp_sweep *sweep, struct rp_run *run, struct rp_error *err);
/* Of a run that did not fail. */
const char *rp_sweep_outcome(const struct rp_run *run, bool stopped);

/* ---- figures.c ---- */

int64_t rp_sweep_count_due(struct rp_sweep *sweep, const struct rp_store *store);
int64_t rp_sweep_count_due_up_to(struct rp_sweep *sweep, const struct rp_store *store, int64_t most);
/* What is due in all stores, as far as this run may go: run->total. */
void rp_sweep_count_total(struct rp_sweep *sweep, struct rp_run *run);
/* What still waits at its end. */
void rp_sweep_count_waiting(struct rp_sweep *sweep, struct rp_run *run);

#endif
