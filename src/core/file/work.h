/* SPDX-License-Identifier: Apache-2.0 */
/* file_work.h - what the verbs over files share: the files of a round and their marks, loaded and locked once, changed in memory
 * by one decision after the other, written back together.
 *
 * K1  Marks are locked before files, files before tenants, each set with one statement: the order in which the sweep's claim takes
 *     them, so that nobody waits in a ring. (A delete has no mark to lock, as a rule; where it has, the database breaks the ring.)
 * K2  A decision sees what the decisions before it in the same round have changed.
 * K3  Names are given up before they are taken: one live file a name at every moment.
 * K4  A file becomes live only while what it belongs to (parent, source) lives, or at once with it by a commit; that is locked. A delete
 *     locks its roots before it trusts the list of what belongs to them. So nothing outlives its owner, whoever else is at work. */
#ifndef RP_CORE_FILE_WORK_H
#define RP_CORE_FILE_WORK_H

#include "base/buf.h"
#include "core/file/file.h"

struct rp_file_slot {
    struct rp_file file;
    struct rp_mark *mark; /* its last mark; NULL: not loaded */
    bool changed;
    int64_t under; /* scratch: the root whose family was looked at last, if it belongs there */
};

struct rp_file_work {
    struct rp_tx *tx;
    struct rp_file_slot *slots; /* sorted by id up to `n_sorted`, then those that came later */
    size_t n, n_sorted, max;
    bool families; /* some of them belong to another file */
    struct rp_marks marks;
    struct rp_move *moves;
    struct rp_mark *adds;
    struct rp_ledger *ledger;
    size_t n_moves, n_adds, n_ledger;
    struct rp_buf text; /* for the details of audit rows */
};

enum rp_file_load {
    RP_LOAD_MARKS =
        1, /* the last mark of every file; else only of those whose mark may still wait (pending, deleted) */
    RP_LOAD_BELOW = 2, /* and everything that belongs to them */
};
/* Loads these files (doubles are fine). `more`: room for files that come later. */
int rp_file_work_load(struct rp_file_work *work, struct rp_tx *tx, const int64_t *ids, size_t n, int what, size_t more,
                      struct rp_error *err);
void rp_file_work_done(struct rp_file_work *work); /* also the RP_CLEANUP function */
struct rp_file_slot *rp_file_work_find(struct rp_file_work *work, int64_t id);
/* Adds these files, none of which is loaded, within the room for later ones. Doubles are fine. */
int rp_file_work_add(struct rp_file_work *work, int64_t *ids, size_t n, struct rp_error *err);
/* What those of them with this status belong to, up to two more for each, within the room for later ones. */
int rp_file_work_owners(struct rp_file_work *work, enum rp_status of, struct rp_error *err);
/* K4: RP_ENOTLIVE, RP_EOWNERGONE unless it may live now. */
int rp_file_check_owners(struct rp_file_work *work, const struct rp_file *file, struct rp_error *err);
/* Living files of these names that were not among the loaded ones, and what belongs to them. */
int rp_file_work_living(struct rp_file_work *work, const int64_t *tenants, const char *const *names, size_t n,
                        struct rp_error *err);
/* The file that holds this name now, as the round stands; NULL: nobody. */
struct rp_file_slot *rp_file_work_holder(struct rp_file_work *work, int64_t tenant_id, const char *name);

/* One audit row about a file. `store` is its store's name, `extra` more members (", \"k\":v" or ""). */
int rp_file_work_audit(struct rp_file_work *work, const char *event, const char *actor, const char *store,
                       const struct rp_file_slot *slot, const char *extra, struct rp_error *err);
void rp_file_work_change(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_status to);
/* The waiting mark of the file ends as reprieved. */
int rp_file_work_reprieve(struct rp_file_work *work, struct rp_file_slot *slot, enum rp_end how, struct rp_error *err);
/* A new mark on the file's object. */
struct rp_mark_make {
    int64_t due_at_ms;
    const char *reason, *actor;
};
int rp_file_work_mark(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_mark_make *make,
                      struct rp_error *err);
void rp_file_work_ledger(struct rp_file_work *work, const struct rp_file *file, enum rp_ledger_kind kind,
                         bool was_used);
/* Writes everything back. */
int rp_file_work_save(struct rp_file_work *work, struct rp_error *err);

/* A living file and what belongs to it becomes `deleted`, each under a mark of its own. Used by delete, replace and reject. */
int rp_file_work_delete(struct rp_file_work *work, struct rp_file_slot *root, const char *store,
                        const struct rp_mark_make *make, struct rp_error *err);

/* Sets `under` of every loaded file that belongs to this one, however deep. */
void rp_file_work_tag(struct rp_file_work *work, int64_t root_id);

/* Steps that a confirm and a transaction's commit share (upload.c). */
int rp_seen_check(const struct rp_seen *seen, const struct rp_file *file, struct rp_error *err);
int rp_file_take_seen(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_seen *seen,
                      struct rp_error *err);
/* RP_ENAMETAKEN: whoever has the name is what the file belongs to. */
int rp_file_check_holder(struct rp_file_work *work, const struct rp_file_slot *slot, struct rp_error *err);
int rp_file_replace_holder(struct rp_file_work *work, const struct rp_file_slot *slot, const struct rp_store *store,
                           const char *actor, struct rp_error *err);
int rp_file_go_live(struct rp_file_work *work, struct rp_file_slot *slot, const struct rp_store *store,
                    const struct rp_upload_rules *rules, const char *actor, struct rp_error *err);

const struct rp_store *rp_store_of_file(struct rp_store *const *stores, size_t n, const struct rp_file *file);
/* Copies what an answer shows of a slot into the caller's arena. */
int rp_file_work_answer(const struct rp_file_slot *slot, struct rp_arena *arena, struct rp_file_answer *out,
                        struct rp_error *err);

#endif
