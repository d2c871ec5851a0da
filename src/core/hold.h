/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h - the verb hold: nothing it covers is claimed until it is lifted. `pause` is a hold on
 * everything. */
#ifndef RP_CORE_HOLD_H
#define RP_CORE_HOLD_H

#include "catalog/mark/hold.h"
#include "catalog/writer/writer.h"
#include "core/store.h"

#define RP_HOLD_CLAIMED_MAX 1000 /* that an answer lists */

/* A scope as people write it: "everything", "tenant/NAME", "STORE:KEY", "STORE:PREFIX*" (the prefix
 * may be empty). A * anywhere else is refused. */
struct rp_scope_name {
    enum rp_scope scope;
    const char *store, *key; /* subject, prefix; of the arena */
    const char *tenant;      /* tenant */
};
int rp_scope_read(const char *text, struct rp_arena *arena, struct rp_scope_name *out, struct rp_error *err);
#define RP_SCOPE_TEXT (RP_KEY_MAX + 80)
const char *rp_scope_text(const struct rp_hold *hold, const char *store, const char *tenant, char out[RP_SCOPE_TEXT]);

struct rp_hold_command {
    struct rp_command command;
    /* add */
    enum rp_scope scope;
    struct rp_store *store; /* subject, prefix */
    const char *key;        /* subject, prefix */
    const char *tenant;     /* tenant: its name */
    const char *reason;
    struct rp_arena *arena; /* of what is out */
    /* lift */
    int64_t id; /* out of add */
    /* out */
    int64_t placed_at_ms;
    struct rp_marks claimed; /* add: covered, but past the claim when it was placed; they may still be purged */
    int64_t claimed_total;   /* how many there are, listed or not */
    int64_t lifted;          /* resume: how many there were */
};
/* Lift: RP_ENOTFOUND without such a hold in force. Resume lifts every hold on everything. */
extern const struct rp_verb rp_verb_hold_add, rp_verb_hold_lift, rp_verb_resume;

/* A page of the holds in force, in order of id: those after `after_id`, `max` at most, in the
 * arena. */
struct rp_hold_line {
    struct rp_hold hold;
    const char *tenant; /* the name, for a hold on one */
};
int rp_holds_list(struct rp_db *db, int64_t after_id, size_t max, struct rp_arena *arena, struct rp_hold_line **out,
                  size_t *n, struct rp_error *err);

#endif
