/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h - the verb hold: nothing it covers is claimed until it is lifted. `pause` is a hold on everything. */
#ifndef RP_CORE_HOLD_H
#define RP_CORE_HOLD_H

#include "catalog/hold.h"
#include "core/place.h"

#define RP_HOLD_CLAIMED_MAX 1000

struct rp_hold_request {
    enum rp_scope scope;
    struct rp_place *place; /* subject, prefix */
    const char *key;        /* subject, prefix */
    const char *reason, *actor;
};

struct rp_hold_answer {
    int64_t id, placed_at_ms;
    struct rp_marks claimed; /* covered, but past the claim when the hold was placed: they may still be purged */
};

/* `claimed` is filled from the arena. All places of the catalog are looked at for a hold on everything. */
int rp_hold_place(struct rp_catalog *catalog, const struct rp_hold_request *request, struct rp_arena *arena,
                  struct rp_hold_answer *out, struct rp_error *err);
int rp_hold_remove(struct rp_catalog *catalog, int64_t id, const char *actor, struct rp_error *err);
/* Lifts every hold on everything (`resume`); `lifted` says how many there were. */
int rp_hold_resume(struct rp_catalog *catalog, const char *actor, int64_t *lifted, struct rp_error *err);

#endif
