/* SPDX-License-Identifier: Apache-2.0 */
/* uploads.h - the verbs over files, as one call each, in a world. Commands run on w->catalog, in a
 * transaction of their own, as the tester of tenant "acme" unless a test says otherwise. What must
 * succeed ends the test when it does not. */
#ifndef RP_TESTS_LIB_UPLOADS_H
#define RP_TESTS_LIB_UPLOADS_H

#include "core/file/transaction.h"
#include "core/reprieve/reprieve.h"
#include "lib/world.h"

int64_t uploads_tenant(struct world *w, const char *name); /* made if it is not there */
struct rp_tenant uploads_quota(struct world *w, const char *name);
void uploads_limit(struct world *w, const char *name, int64_t limit_bytes);

/* An init of tenant acme, ready to be changed and run. */
struct rp_init uploads_init(struct world *w, const char *name, int64_t size_bytes);
/* It is done, and gives the new file's id. */
int64_t uploads_begin(struct world *w, const char *name, const char *text);
/* The PUT. */
void uploads_put(struct world *w, int64_t file_id, const char *text);
/* Begun, put and confirmed. */
int64_t uploads_live(struct world *w, const char *name, const char *text);
int64_t uploads_child(struct world *w, const char *name, int64_t parent_id, int64_t source_id);

/* A command on a file; `event` and `answer` are its outputs. */
struct rp_file_command uploads_command(struct world *w, const struct rp_verb *verb, int64_t file_id);
/* Looks at the object and confirms. The code of the refusal, or 0. */
int uploads_confirm(struct world *w, int64_t file_id, const uint8_t *checksum, struct rp_file_command *out);
int uploads_delete(struct world *w, int64_t file_id, int64_t grace_ms, struct rp_file_command *out);
int uploads_restore(struct world *w, int64_t file_id, struct rp_file_command *out);
/* A restore of a mark by this tenant, ready to be run. */
struct rp_reprieve_command uploads_restore_as(struct world *w, struct rp_reprieve_item *item, const char *tenant);

struct rp_file uploads_file(struct world *w, int64_t file_id);
struct rp_mark uploads_mark(struct world *w, int64_t file_id); /* its last */
/* Somebody's script: that mark is gone, and the tally knows. */
void uploads_lose_mark(struct world *w, int64_t file_id);
void uploads_expect(struct world *w, int64_t file_id, enum rp_status status);
void uploads_expect_quota(struct world *w, int64_t used_bytes, int64_t reserved_bytes, int64_t open);
void uploads_digest(struct world *w, const char *text, uint8_t out[RP_DIGEST_BYTES]);

/* ---- transactions ---- */

struct rp_txn_command uploads_txn(struct world *w, const struct rp_verb *verb, int64_t txn_id);
int64_t uploads_txn_begin(struct world *w);
/* A member, put as well. */
int64_t uploads_member(struct world *w, int64_t txn_id, const char *name, const char *text, int64_t replaces_id);
/* Looks at every member and commits. */
int uploads_commit(struct world *w, int64_t txn_id, struct rp_txn_command *out);
/* Looks at every member there is now. */
void uploads_see(struct world *w, struct rp_txn_command *command);

#endif
