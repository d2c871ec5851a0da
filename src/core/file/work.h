/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - what the verbs over files share. A round loads and locks its files once, changes them in
 * memory by one decision after the other, and writes them back together.
 *
 * K1  Marks are locked before files, files before tenants, each set with one statement: the order in
 *     which the sweep's claim takes them, so that nobody waits in a ring. (A delete has no mark to
 *     lock, as a rule; where it has, the database breaks the ring.)
 * K2  A decision sees what the decisions before it in the same round have changed.
 * K3  Names are given up before they are taken: one live file a name at every moment.
 * K4  A file becomes live only while what it belongs to (parent, source) lives, or at once with it by
 *     a commit; that is locked. A delete locks its roots before it trusts the list of what belongs to
 *     them. So nothing outlives its owner, whoever else is at work.
 * K5  Everything is loaded before the first decision. Loading moves the slots. */
#ifndef RP_CORE_FILE_WORK_H
#define RP_CORE_FILE_WORK_H

#include "base/buf.h"
#include "core/file/file.h"
#include "core/state.h"

struct rp_file_slot {
    struct rp_file file;
    struct rp_mark *mark; /* its last mark, as the round stands; NULL: not loaded */
    bool born, changed;   /* to be added, to be saved */
    int64_t under;        /* the root of the family that was tagged last, if it is one of it */
    bool held;            /* delete: by a hold */
    bool covered;         /* sweep: an active mark has its key */
};

struct rp_file_work {
    struct rp_tx *tx;
    struct rp_file_slot *slots; /* sorted by id */
    size_t n, max;
    bool families; /* some of them belong to another file */
    /* what is to be written; of each at most one a slot */
    struct rp_move *moves;
    struct rp_extend *extends;
    struct rp_mark *births;
    struct rp_ledger *ledger;
    size_t n_moves, n_extends, n_births, n_ledger;
    struct rp_buf text; /* for the details of audit rows */
};

/* ---- load.c ---- */

enum rp_file_load {
    RP_LOAD_MARKS = 1, /* the last mark of every file; else of those whose mark may still wait */
    RP_LOAD_BELOW = 2, /* and everything that belongs to them */
};
/* Begins a round with these files (doubles are fine), or with those that the commands are about. */
int rp_file_work_load(struct rp_file_work *work, struct rp_tx *tx, const int64_t *ids, size_t n, int what,
                      struct rp_error *err);
int rp_file_work_load_commands(struct rp_file_work *work, struct rp_tx *tx, struct rp_command *const *commands,
                               size_t n, int what, struct rp_error *err);
/* Begins a round with room for n new files. */
int rp_file_work_begin(struct rp_file_work *work, struct rp_tx *tx, size_t n, struct rp_error *err);
void rp_file_work_done(struct rp_file_work *work); /* also the RP_CLEANUP function */
/* Adds what the loaded files of this status belong to, and what they were deleted with. */
int rp_file_work_owners(struct rp_file_work *work, enum rp_status status, struct rp_error *err);
/* Adds whoever holds the names of the loaded files of this status (and transaction, unless it is 0),
 * and what belongs to those. */
int rp_file_work_holders(struct rp_file_work *work, enum rp_status status, int64_t txn_id, struct rp_error *err);
struct rp_file_slot *rp_file_work_find(struct rp_file_work *work, int64_t id);
int rp_file_missing(int64_t file_id, struct rp_error *err); /* RP_ECORRUPT: a mark's file is not there */
/* The file that holds this one's name now, as the round stands; NULL: nobody. */
struct rp_file_slot *rp_file_work_holder(struct rp_file_work *work, const struct rp_file *file);

/* ---- work.c: changes ---- */

/* Decides one command. A refusal is c->command.error; c->changed is false before. */
typedef int rp_file_decide_fn(struct rp_file_work *work, struct rp_file_command *c, struct rp_file_slot *slot,
                              struct rp_error *err);
/* Decides and answers the commands in turn. Those refused with `waits` because what they belong to
 * comes later in the round are decided again, as long as another of them is accepted. 0: none. */
int rp_file_work_each(struct rp_file_work *work, struct rp_command *const *commands, size_t n,
                      rp_file_decide_fn *decide, int waits, struct rp_error *err);

/* One audit row about a file. `extra`: more members (",\"k\":v" or ""). */
int rp_file_work_audit(struct rp_file_work *work, const struct rp_state_by *by, const char *event,
                       const struct rp_file_slot *slot, const char *extra, struct rp_error *err);
void rp_file_work_change(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_status to);
/* The waiting mark of the file ends as reprieved, is due later, or is a new one. */
int rp_file_work_reprieve(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_end how, struct rp_error *err);
int rp_file_work_extend(struct rp_file_work *work, struct rp_file_slot *slot, int64_t due_at_ms, struct rp_error *err);
int rp_file_work_mark(struct rp_file_work *work, struct rp_file_slot *slot, int64_t due_at_ms, const char *reason,
                      const char *actor, struct rp_error *err);
/* A mark for whatever comes to stand under the file's key. The file keeps its own. */
void rp_file_work_mark_late(struct rp_file_work *work, const struct rp_file *file, int64_t due_at_ms,
                            const char *actor);
void rp_file_work_ledger(struct rp_file_work *work, const struct rp_file *file, enum rp_ledger_kind kind,
                         bool was_used);
int rp_file_take_identity(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_identity *identity,
                          struct rp_error *err);
/* Writes everything. RP_ECONFLICT: another writer was faster. */
int rp_file_work_save(struct rp_file_work *work, struct rp_error *err);
/* Copies what an answer shows of a slot into the caller's arena. */
int rp_file_work_answer(const struct rp_file_slot *slot, struct rp_arena *arena, struct rp_file_answer *out,
                        struct rp_error *err);

/* ---- family.c ---- */

/* Is this one of the root's family, as far as it was found? */
typedef bool rp_file_family_fn(struct rp_file_work *work, const struct rp_file_slot *slot, int64_t root_id);
/* Sets `under` of the root, and of those whom `is_of` puts into its family. */
void rp_file_work_tag(struct rp_file_work *work, struct rp_file_slot *root, rp_file_family_fn *is_of);
/* F4: it belongs to the root, however deep. */
rp_file_family_fn rp_file_is_below;

#define RP_FILE_NO_ROOT (-1)
/* K4: what the file belongs to and what does not live, unless that is under this root. NULL: none. */
const struct rp_file_slot *rp_file_gone_owner(struct rp_file_work *work, const struct rp_file *file, int64_t root_id);
/* RP_ENOTLIVE, RP_EOWNERGONE if there is one. */
int rp_file_check_owners(struct rp_file_work *work, const struct rp_file *file, struct rp_error *err);

struct rp_file_deletion {
    struct rp_state_by by;
    const char *reason;
    int64_t due_at_ms;
};
/* The file and what belongs to it becomes `deleted`, each under a mark of its own. */
int rp_file_work_delete(struct rp_file_work *work, struct rp_file_slot *root, const struct rp_file_deletion *deletion,
                        struct rp_error *err);
/* The same with the grace of the store (NULL: it is not configured any more): replaced, rejected. */
int rp_file_work_drop(struct rp_file_work *work, struct rp_file_slot *root, const struct rp_store *store,
                      const char *reason, const char *actor, struct rp_error *err);

/* ---- confirm.c: what a commit does as well ---- */

/* Is what was seen of the object what was promised? */
int rp_seen_check(const struct rp_seen *seen, const struct rp_file *file, struct rp_error *err);
/* F2, F3: the pending file lives as it was seen, and whoever had its name is replaced. */
int rp_file_go_live(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_seen *seen,
                    const struct rp_store *store, const struct rp_upload_rules *rules, const char *actor,
                    struct rp_error *err);

#endif
