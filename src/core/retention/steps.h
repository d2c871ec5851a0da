/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - what a step is, the table of them, and the two halves of each; for the files of this
 * folder. */
#ifndef RP_CORE_RETENTION_STEPS_H
#define RP_CORE_RETENTION_STEPS_H

#include "catalog/retention.h"
#include "catalog/row.h"
#include "core/retention/retention.h"

/* Each step's own; the largest is the first. `first_kept` is the first row that had to stay: floor.c. */
union rp_retention_cursor {
    struct {
        int64_t at_ms, at_id, first_kept_ms, page_ms; /* page_ms: where the last page began */
    } marks;
    struct {
        int64_t at_ms, at_id;
    } files;
    struct {
        int64_t at_id, first_kept_id, begun;
    } txns;
    struct {
        /* `seen`: where the last export of the lane began in this run, which is exported again only
         * if that filled a file; in a dry run the last row seen. */
        int64_t lane, seen;
    } audit;
    struct {
        int64_t after_id;
    } by_age;
};

/* One batch of a step. */
struct rp_retention_batch {
    const struct rp_retention_config *rules;
    const char *actor;
    bool dry_run;      /* nothing is written anywhere */
    int64_t run_id;    /* 0: a dry run */
    int64_t before_ms; /* what ended earlier may go */
    int64_t now_ms;
    int64_t limit;                    /* rows that are looked at, at most */
    union rp_retention_cursor cursor; /* where the step looks next. All 0 at the first batch of a run */
    const void *found;                /* the step's own: what the look found, beside ids; in the arena */
    bool more;                        /* out: it has not looked at all of them yet */
    int64_t gone;                     /* out: rows that were let go, as the figures count them */
    int64_t along;                    /* out: marks that went with them */
};

struct rp_retention_step;
/* R2: the ids of rows that may go, `limit` at most, read without locks; moves the cursor. */
typedef int rp_retention_find_fn(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                                 struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err);
/* R2: those of them that may still go, go. May be run again from its start. Called with none after
 * the last look of a run. */
typedef int rp_retention_let_go_fn(const struct rp_retention_step *step, struct rp_tx *tx,
                                   struct rp_retention_batch *batch, const struct rp_ids *ids, struct rp_error *err);
struct rp_retention_step {
    const char *name; /* in figures, records and audit rows: what goes */
    size_t kept_for;  /* its setting: an int64_t in struct rp_retention_config */
    bool of_marks;    /* marks go with it: whoever finds none must know */
    rp_retention_find_fn *find;
    rp_retention_let_go_fn *let_go;
    enum rp_old_kind kind; /* of rp_retention_find_old, rp_retention_let_go_old */
};

extern const struct rp_retention_step rp_retention_steps[];
extern const size_t rp_retention_steps_count;

/* The first batch of a step in a run; run_id 0: in a dry run. */
struct rp_retention_batch rp_retention_first_batch(const struct rp_retention *retention,
                                                   const struct rp_retention_step *step, int64_t run_id,
                                                   int64_t now_ms);
/* One look: step->find, for a batch of which nothing was found yet. */
int rp_retention_find(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                      struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err);

/* floor.c: where the next run's look begins (a row of meta). *behind 0: at the beginning. */
int rp_retention_floor_load(struct rp_db *db, const char *name, int64_t *behind, struct rp_error *err);
/* At the first that had to stay, or, if none had to (0), behind what was seen. */
int rp_retention_floor_save(struct rp_tx *tx, const char *name, int64_t first_kept, int64_t seen, struct rp_error *err);

/* by_age.c: rows of a kind that age alone lets go. */
rp_retention_find_fn rp_retention_find_old;
rp_retention_let_go_fn rp_retention_let_go_old;
rp_retention_let_go_fn rp_retention_let_go_runs;

rp_retention_find_fn rp_retention_find_audit;
rp_retention_let_go_fn rp_retention_let_go_audit;
rp_retention_find_fn rp_retention_find_files;
rp_retention_let_go_fn rp_retention_let_go_files;
rp_retention_find_fn rp_retention_find_txns;
rp_retention_let_go_fn rp_retention_let_go_txns;
rp_retention_find_fn rp_retention_find_marks;
rp_retention_let_go_fn rp_retention_let_go_marks;

#endif
