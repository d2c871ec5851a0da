/* SPDX-License-Identifier: Apache-2.0 */
/* health.h - whether this process can do its work: the catalog takes writes, the stores answer, the
 * sweeper lives.
 *
 * R1  A look is kept for a while (the catalog 1 s, stores 5 s), so that asking often costs nothing.
 * R2  One caller looks, the others get the last answer: a catalog or store that hangs holds up one
 *     thread and no more. A look that has not come back for 5 s counts as failed. */
#ifndef RP_METRICS_HEALTH_H
#define RP_METRICS_HEALTH_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_health;
struct rp_rooms;
struct rp_store;
struct rp_writers;

struct rp_health_store {
    bool ok;
    const char *why; /* of a few constant texts; NULL if ok */
};
struct rp_health_state {
    bool catalog_ok;
    const char *catalog_why;
    int64_t catalog_age_ms; /* since it last took a write; -1: never */
    int64_t clock_ahead_ms; /* of what the boot clock says, then (catalog/clock.h) */
    struct rp_health_store stores[RP_STORES_MAX];
    size_t n_stores;
};

struct rp_health *rp_health_new(void);
void rp_health_free(struct rp_health *health);
/* May block. */
void rp_health_look(struct rp_health *health, struct rp_writers *writers, struct rp_store *stores, size_t n_stores,
                    struct rp_health_state *out);

/* A full disk is a reason not to be ready (core/room.h). */
void rp_health_room(struct rp_health_state *state, struct rp_rooms *rooms);

#endif
