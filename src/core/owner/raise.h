/* SPDX-License-Identifier: Apache-2.0 */
/* raise.h - when the owner's epoch is raised, so that a catalog put back from a backup is behind
 * (owner.h, O1).
 *
 * A process has one struct rp_raises, shared by its sessions and threads. For each store, known by
 * its index in the configuration, it counts how often something was kept alive there, and how much
 * of that the last raise came after. A raise is *pending* while there is something that it did not
 * come after; *due* if an answer waits for it; *owed* if it failed or took too long.
 *
 * R1  Whatever keeps something alive notes it in its transaction (catalog.h, K6), and once that is
 *     committed here.
 * R2  The first of a minute is *due*: its answer waits until the epoch is raised. A backup made
 *     before it is behind by the time that anybody can rely on the answer.
 * R3  What is kept alive within that minute is raised for when the minute is over, or when the
 *     process ends.
 * R4  A raise that failed, or took longer than an answer waits, is *owed*: it is tried again until
 *     it succeeds, and shown. No other answer waits for it before the minute of R2 is over.
 * R5  A daemon also raises before its stop, and at its start, for what a process before it may have
 *     kept alive: that is owed like all else. In mode observe nothing is read, written or owed.
 * R6  Whose store it is, as the last raise or look found it, is kept here for those who show it.
 * R7  While its owner record was found to be gone or another's, nothing that is uploaded there
 *     becomes live: what we see is an empty mount point or another bucket, and the bytes would not
 *     be in ours.
 * R8  What was kept alive since the last raise is known to this process alone: the epoch would not
 *     tell if the catalog were put back to before it, which may happen while it is open. So the
 *     process remembers how each lane was left, and every claim looks whether it is still so
 *     (vessel.h, V2). A catalog that is found to have moved was noticed: all of that is forgotten.
 * R9  While the record is known to be another store's of this catalog, nothing is made under this
 *     name: no hold, no mark, no file. It would be about another row than what lies there.
 */
#ifndef RP_CORE_RAISE_H
#define RP_CORE_RAISE_H

#include "catalog/catalog.h"
#include "core/owner/owner.h"
#include "core/store.h"

struct rp_raises;

struct rp_raises *rp_raises_new(const struct rp_clock *clock); /* NULL: no memory */
void rp_raises_free(struct rp_raises *raises);
/* A store of the configuration; id 0: it has no number in the catalog yet. Also when its mode has
 * changed. */
void rp_raises_set(struct rp_raises *raises, size_t index, int64_t store_id, bool observed);

/* R2 and R1, as struct rp_raise_hook wants them: `ctx` is a struct rp_raises. */
uint64_t rp_raises_due(void *ctx, const struct rp_kept *kept);
void rp_raises_note(void *ctx, const struct rp_kept *kept, const struct rp_lane_end *end);
/* R8. */
#define RP_LANE_ENDS_MAX 32
size_t rp_raises_lane_ends(struct rp_raises *raises, struct rp_lane_end out[RP_LANE_ENDS_MAX]);

/* R5: as if something were kept alive now. */
void rp_raises_assume(struct rp_raises *raises, size_t index);
bool rp_raises_is_pending(struct rp_raises *raises, size_t index);
/* R3, R4: it is time to raise without being asked. */
bool rp_raises_is_time(struct rp_raises *raises, size_t index);
/* R2, R3: a minute begins. Whoever comes within it does not wait. */
void rp_raises_begin(struct rp_raises *raises, size_t index);
/* R4: nobody waits any longer. */
void rp_raises_owe(struct rp_raises *raises, size_t index, const char *why);
/* Raises now, for whatever was kept alive before this call. If it fails it is owed, or the store is
 * not ours. */
int rp_raise(struct rp_raises *raises, size_t index, struct rp_catalog *catalog, struct rp_store *store,
             struct rp_error *err);
/* R6: only looks. */
int rp_raises_look(struct rp_raises *raises, size_t index, struct rp_catalog *catalog, struct rp_store *store,
                   struct rp_error *err);

/* ---- asked of a store; rp_raises_* are for whoever raises ---- */

struct rp_raise_state {
    bool known; /* somebody has looked whose store it is */
    enum rp_ownership ownership;
    int64_t owed_since_ms; /* 0: no raise is owed */
    char why[160];         /* it is owed */
};
/* Nothing is known where the process counts nothing. */
void rp_raise_state(const struct rp_store *store, struct rp_raise_state *out);
/* Known, and to be purged by another: purging stopped. */
bool rp_raise_is_lost(const struct rp_raise_state *state);

#endif
