/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - what the verbs over files share. A round loads and locks its files once, changes them in
 * memory by one decision after the other, and writes what has changed.
 *
 * K1  Whoever changes files or their marks has locked their tenants (catalog.h, K8): so nobody
 *     waits in a ring for what is locked here, each set with one statement and by id.
 * K2  A decision sees what the decisions before it in the same round have changed.
 * K3  Names are given up before they are taken: one live file a name at every moment.
 * K4  A file becomes live only while what it belongs to (parent, source) lives, or at once with it
 *     by a commit; that is locked. A delete locks its roots before it trusts the list of what
 *     belongs to them. So nothing outlives its owner, whoever else is at work.
 * K5  Everything is loaded before the first decision. Loading moves the slots. */
#ifndef RP_CORE_FILE_WORK_H
#define RP_CORE_FILE_WORK_H

#include "base/text/buf.h"
#include "core/file/file.h"
#include "core/state.h"

struct rp_slot {
    struct rp_file file;
    struct rp_mark mark, loaded_mark; /* its last: as the round stands, as loaded; id 0: none */
    enum rp_end reprieved;            /* how the loaded one ends; 0: it does not */
    bool born, changed;               /* the file is to be added, to be saved */
    enum rp_ledger_kind owed;         /* the ledger row that it is to get; 0: none */
    bool was_used;                    /* a refund: of used bytes */
    int64_t late_due_at_ms;           /* its key is to get a second mark, due then; 0: none */
    const char *late_actor;
    const struct rp_confirmer_list *confirmers; /* of its new mark; NULL: none */
    const char *note;                           /* of its reprieved mark; NULL: none */
    int64_t under;                              /* the root of the family that was tagged last, if it is one of it */
    size_t below[2], next[2]; /* lists of slots, from 1 on: its children and derivatives; others of its owners' */
    struct rp_slot *tagged;   /* the one that was tagged after it */
    struct rp_slot *marked;   /* the one that this decision has marked before it */
    bool covered;             /* sweep: an active mark has its key */
    const struct rp_file_return *returned; /* restore: as its command says */
    bool is_back;                          /* and it lives with that */
    bool kept;                             /* restore: as its command says */
};

struct rp_work {
    struct rp_tx *tx;
    struct rp_slot *slots; /* sorted by id */
    size_t n, max;
    bool families; /* some of them belong to another file */
    /* the decision that is made: in which store (NULL: not configured any more), by whom; and all
     * stores, for others of the family may be in another one */
    const struct rp_store *store;
    struct rp_store *const *stores;
    size_t n_stores;
    struct rp_state_by by;
    struct rp_slot *marked;                     /* what it has marked, the last first; rp_work_told begins anew */
    const struct rp_confirmer_list *confirmers; /* of new marks of this decision; NULL: none */
    struct rp_buf text;                         /* for the details of audit rows */
};

/* ---- load.c ---- */

enum rp_work_load {
    RP_LOAD_MARKS = 1, /* the last mark of every file; else of those whose mark may still wait */
    RP_LOAD_BELOW = 2, /* and everything that belongs to them */
};
/* Begins a round with these files (doubles are fine), or with those that the commands are about. */
int rp_work_load(struct rp_work *work, struct rp_tx *tx, const int64_t *ids, size_t n, int what, struct rp_error *err);
int rp_work_load_commands(struct rp_work *work, struct rp_tx *tx, struct rp_command *const *commands, size_t n,
                          int what, struct rp_error *err);
/* Begins a round with room for n new files. */
int rp_work_begin(struct rp_work *work, struct rp_tx *tx, size_t n, struct rp_error *err);
void rp_work_done(struct rp_work *work); /* also the RP_CLEANUP function */
/* Adds what the loaded files of this status belong to, and what they were deleted with. */
int rp_work_owners(struct rp_work *work, enum rp_status status, struct rp_error *err);
/* Adds whoever holds the names of the loaded files of this status (and transaction, unless it is
 * 0); and what belongs to those that would be replaced: the others are pending. */
int rp_work_holders(struct rp_work *work, enum rp_status status, int64_t txn_id, struct rp_error *err);
struct rp_slot *rp_work_find(struct rp_work *work, int64_t id);
/* RP_ECORRUPT: a mark's file is not there. */
int rp_work_missing(int64_t file_id, struct rp_error *err);
/* The file that holds this one's name now, as the round stands; NULL: nobody. */
struct rp_slot *rp_work_holder(struct rp_work *work, const struct rp_file *file);
/* An array in the round's memory, not zeroed. NULL: RP_ENOMEM is set. */
void *rp_work_room(struct rp_tx *tx, size_t n, size_t size, struct rp_error *err);

/* ---- work.c ---- */

/* Decides one command; work->store and work->by are set. A refusal is c->command.error. */
typedef int rp_work_decide_fn(struct rp_work *work, struct rp_file_command *c, struct rp_slot *slot,
                              struct rp_error *err);
/* Decides and answers the commands in turn. Those refused with `waits` because what they belong to
 * comes later in the round are decided again, as long as another of them is accepted. 0: none. */
int rp_work_each(struct rp_work *work, struct rp_command *const *commands, size_t n, rp_work_decide_fn *decide,
                 int waits, struct rp_error *err);
/* Whose decision is next. */
void rp_work_turn(struct rp_work *work, struct rp_store *const *stores, size_t n, const struct rp_file *file,
                  const char *actor);
/* One audit row about a file. `extra`: more members (",\"k\":v" or ""). */
int rp_work_audit(struct rp_work *work, const char *event, const struct rp_slot *slot, const char *extra,
                  struct rp_error *err);
/* file.deleted: with the time of what deleted it. */
int rp_work_audit_deleted(struct rp_work *work, const struct rp_slot *slot, struct rp_error *err);
void rp_work_change(struct rp_work *work, struct rp_slot *slot, enum rp_status to);
/* A new mark on the file's object. */
void rp_work_mark(struct rp_work *work, struct rp_slot *slot, int64_t due_at_ms, const char *reason);
/* Its waiting mark ends; or a dead letter that nothing was erased of, and its letter is closed. */
void rp_work_reprieve(struct rp_slot *slot, enum rp_end how);
int rp_work_identity(struct rp_work *work, struct rp_slot *slot, const struct rp_identity *identity,
                     struct rp_error *err);
/* Writes what has changed. RP_ECONFLICT: another writer was faster. */
int rp_work_save(struct rp_work *work, struct rp_error *err);
/* Copies what an answer shows of a slot into the caller's arena. */
int rp_work_answer(const struct rp_slot *slot, struct rp_arena *arena, struct rp_file_answer *out,
                   struct rp_error *err);

/* For the log: the marks that the decision made, but that of `own` (NULL: none is), in the order
 * they were made. Where there is no room for all of them, the first are left out. */
struct rp_file_marked *rp_work_told(struct rp_work *work, const struct rp_slot *own, struct rp_arena *arena);

/* ---- family.c ---- */

/* For load.c: who belongs to whom, after the slots have moved. */
void rp_work_link(struct rp_work *work);
/* Is this one of the root's family, as far as it was found? */
typedef bool rp_family_fn(struct rp_work *work, const struct rp_slot *slot, int64_t root_id);
/* Sets `under` of the root and of what belongs to it, however deep (F4); of those only whom `is_of`
 * puts into its family, and what belongs to them. NULL: all. */
void rp_work_tag(struct rp_work *work, struct rp_slot *root, rp_family_fn *is_of);

#define RP_FAMILY_NONE (-1)
/* K4: what the file belongs to and what does not live, unless that is under this root. NULL:
 * none. */
const struct rp_slot *rp_work_gone_owner(struct rp_work *work, const struct rp_file *file, int64_t root_id);
/* RP_ENOTLIVE, RP_EOWNERGONE if there is one. */
int rp_work_check_owners(struct rp_work *work, const struct rp_file *file, struct rp_error *err);
/* RP_ETOOBIG: more would go along with this one than one delete takes. For the decision; the others
 * of the round are as they are decided so far (K2). */
int rp_work_check_along(struct rp_work *work, struct rp_slot *root, struct rp_error *err);
/* The file and what belongs to it becomes `deleted`, each under a mark of its own. */
int rp_work_delete(struct rp_work *work, struct rp_slot *root, int64_t due_at_ms, const char *reason,
                   struct rp_error *err);
/* One of them, by itself, as deleted along with that root. */
int rp_work_delete_one(struct rp_work *work, struct rp_slot *slot, int64_t root_id, int64_t due_at_ms,
                       const char *reason, struct rp_error *err);
/* All of them with the store's grace: replaced, rejected. */
int rp_work_drop(struct rp_work *work, struct rp_slot *root, const char *reason, struct rp_error *err);

/* ---- confirm.c: what a commit does as well ---- */

/* Is what was seen of the object what was promised? */
int rp_seen_check(const struct rp_seen *seen, const struct rp_file *file, struct rp_error *err);
/* F2, F3: the pending file lives as it was seen, and whoever had its name is replaced. */
int rp_work_go_live(struct rp_work *work, struct rp_slot *slot, const struct rp_seen *seen,
                    const struct rp_upload_rules *rules, struct rp_error *err);

#endif
