/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - verbs as calls that wait, for whoever has one change to make: returns the command's code,
 * `err` says why. */
#ifndef RP_TESTS_LIB_ASK_H
#define RP_TESTS_LIB_ASK_H

#include "core/dead.h"
#include "core/hold.h"
#include "core/mark/mark.h"
#include "core/quota.h"

int ask_run(struct rp_catalog *catalog, struct rp_command *command, struct rp_error *err);

/* The hold as it is described; what is out of it lies in the arena. */
int ask_hold(struct rp_catalog *catalog, struct rp_hold_command *hold, struct rp_arena *arena, struct rp_error *err);
int ask_lift(struct rp_catalog *catalog, int64_t hold_id, const char *actor, struct rp_error *err);
int ask_resume(struct rp_catalog *catalog, const char *actor, int64_t *lifted, struct rp_error *err);

int ask_retry(struct rp_catalog *catalog, int64_t letter_id, const char *actor, struct rp_error *err);
int ask_keep(struct rp_catalog *catalog, int64_t letter_id, const char *actor, enum rp_state *as, struct rp_error *err);

/* limit_bytes -1: the configured one. */
int ask_quota(struct rp_catalog *catalog, const char *tenant, int64_t limit_bytes, const char *actor,
              struct rp_error *err);
int ask_proof(struct rp_catalog *catalog, bool repair, rp_quota_fn *fn, void *ctx, struct rp_quota_check *out,
              struct rp_error *err);

/* The newest mark of a subject, as it is now. RP_ENOTFOUND: it never had one. */
int ask_newest(struct rp_catalog *catalog, const struct rp_store *store, const char *key, struct rp_arena *arena,
               struct rp_mark *out, struct rp_error *err);

#endif
