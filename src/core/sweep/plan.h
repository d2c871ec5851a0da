/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - a dry run: what a sweep would do now. Writes nothing, neither to a store nor to the
 * catalog. */
#ifndef RP_CORE_SWEEP_PLAN_H
#define RP_CORE_SWEEP_PLAN_H

#include "core/sweep/sweep.h"

#include <jansson.h>

#define RP_PLAN_EXAMPLES 10

/* What would happen in one store. */
struct rp_planned {
    struct rp_store *store;
    int64_t marks, bytes; /* due, not held, and no service is asked about them any more */
    int64_t guarded;      /* of these: something is asked right before their purge (core/check) */
    int64_t unconfirmed;  /* services would be asked about these first; up to sweep->limit */
    json_t *examples;     /* the first of the marks, as lists show them */
    int64_t example_due_ms[RP_PLAN_EXAMPLES];
    bool left_out;       /* nothing would happen there, and `why` says so */
    int64_t waiting;     /* how many due marks would be left waiting, for `why` */
    struct rp_error why; /* code 0: nothing would be left */
};

struct rp_plan {
    size_t n;
    struct rp_planned at[RP_STORES_MAX];
};

int rp_plan_make(struct rp_sweep *sweep, struct rp_plan **out, struct rp_error *err);
void rp_plan_freep(struct rp_plan **plan);
/* none, quarantine, purge */
const char *rp_planned_effect(const struct rp_planned *planned);

/* Each mark of `marks`, at most sweep->limit. */
typedef int rp_plan_fn(void *ctx, const struct rp_store *store, const struct rp_mark *mark, struct rp_error *err);
int rp_plan_each(struct rp_sweep *sweep, rp_plan_fn *fn, void *ctx, struct rp_error *err);

#endif
