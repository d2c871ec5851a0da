/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h - the verb hold: nothing it covers is claimed until it is lifted. `pause` is a hold on everything. */
#ifndef RP_CORE_HOLD_H
#define RP_CORE_HOLD_H

#include "catalog/hold.h"
#include "core/store.h"

#define RP_HOLD_CLAIMED_MAX 1000

/* A scope as people write it: "everything", "tenant/NAME", "STORE:KEY", "STORE:PREFIX*" (the prefix may be empty). */
struct rp_scope_name {
    enum rp_scope scope;
    const char *store, *key; /* subject, prefix; of the arena */
    const char *tenant;      /* tenant */
};
int rp_scope_read(const char *text, struct rp_arena *arena, struct rp_scope_name *out, struct rp_error *err);

struct rp_hold_request {
    enum rp_scope scope;
    struct rp_store *store; /* subject, prefix */
    const char *key;        /* subject, prefix */
    int64_t tenant_id;      /* tenant */
    const char *tenant;     /* its name */
    const char *reason, *actor;
};

struct rp_hold_answer {
    int64_t id, placed_at_ms;
    struct rp_marks claimed; /* covered, but past the claim when the hold was placed: they may still be purged */
};

/* `claimed` is filled from the arena. All stores of the catalog are looked at for a hold on everything. */
int rp_hold_put(struct rp_catalog *catalog, const struct rp_hold_request *request, struct rp_arena *arena,
                struct rp_hold_answer *out, struct rp_error *err);
int rp_hold_remove(struct rp_catalog *catalog, int64_t id, const char *actor, struct rp_error *err);
/* Lifts every hold on everything (`resume`); `lifted` says how many there were. */
int rp_hold_resume(struct rp_catalog *catalog, const char *actor, int64_t *lifted, struct rp_error *err);

/* A page of the holds in force, in order of id: those after `after_id`, `max` at most, in the arena. */
struct rp_hold_line {
    struct rp_hold hold;
    const char *tenant; /* the name, for a hold on one */
};
int rp_holds_list(struct rp_db *db, int64_t after_id, size_t max, struct rp_arena *arena, struct rp_hold_line **out,
                  size_t *n, struct rp_error *err);

#endif
