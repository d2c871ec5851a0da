/* SPDX-License-Identifier: Apache-2.0 */
/* restore.h - a restore in bulk: which marks a filter is about, and the run that restores them.
 *
 * N1  What fits is found by the narrowest index (run, prefix, reason, time) and held against the
 *     other filters here, in pages of 1,000. Ids alone are kept, of the newest 262,144 at most; if
 *     more fit, they are looked for again once these were handed out: memory does not grow with
 *     what is found.
 * N2  A mark whose object was moved to quarantine is found through its copy there, and given as the
 *     mark it was.
 * N3  Finding changes nothing. A mark may have moved since it was read; the restore itself decides
 *     (reprieve.h).
 * N4  The filter is frozen when the run begins, with the highest id of a mark: what is marked later
 *     is not touched. (Ids follow the latest clock of a node. A mark made by another node may count
 *     as earlier by as much as the clocks of the two differ.)
 * N5  While the run is open nothing that it names is claimed (catalog/mark/restore.h); what was
 *     claimed before is too late, or comes back from quarantine.
 * N6  A batch of up to 1,000 marks is one command: the marks, the run's counts and the place where
 *     the next batch begins change in one transaction. So after a crash at any point nothing is
 *     restored, counted or refused twice.
 * N7  Two restores may work beside each other, also on the same marks: each has a lock of its own
 *     (restore:RUN), because somebody who rescues data must not be told to wait for somebody else
 *     who does. A mark that both name is restored by the one and `already restored` for the other.
 * N8  A run whose worker is gone, or whose lock is stale or was given back, is resumed by whoever
 *     looks first (rp_run_resume): same filter, same place, one record. It is not closed as
 *     failed, for then what it has not reached yet would be claimed.
 * N9  The newest first: marks are handed out from the highest id down, whatever index or store they
 *     were found by; one whose object lies in quarantine by its own id, not by its copy's. So of
 *     several uploads of one key, or several deleted files of one name, the last that can come back
 *     does, and those before it are refused (within a batch: reprieve.h, V9).
 * N10 A copy in quarantine that was marked after the run began (its mark is above the filter's
 *     highest id) is of an object that a sweep had claimed before (N5). Such copies are looked for
 *     last, when everything else was handed out. What a service was asked about, or waits as a dead
 *     letter, is found too: it is decided about like any, and refused or restored with its reason,
 *     not passed over.
 * N11 Where a batch would end between marks of files that were made in one moment, it ends before
 *     them if it can: a child is not refused because its file comes in the next one.
 *
 *   begin    rp_verb_restore_begin     resume    rp_run_resume
 *   each batch, and the end            rp_restore_carry */
#ifndef RP_CORE_RESTORE_H
#define RP_CORE_RESTORE_H

#include "catalog/mark/restore.h"
#include "core/reprieve/reprieve.h"
#include "core/run/carry.h"

#include <signal.h>

/* ---- what fits ---- */

/* From the newest down (N9). The mark is lent until the function returns; 0 to go on, 1 to stop
 * (the walk returns 0), negative to fail. */
typedef int rp_restore_fn(void *ctx, const struct rp_mark *mark, struct rp_error *err);
int rp_restore_each(struct rp_db *db, const struct rp_restore_filter *filter, rp_restore_fn *fn, void *ctx,
                    struct rp_error *err);

#define RP_RESTORE_IDS_MAX ((size_t)1 << 18)

/* A walk over them. */
struct rp_restore_walk {
    struct rp_db *db;
    const struct rp_restore_filter *filter;
    struct rp_restore_cursor cursor; /* behind what was handed out */
    int64_t found;                   /* how many the last look found */
    size_t ids_max;                  /* kept of them: more than 1 */
    /* Called now and then during a look; 0 to go on, 1 to stop, negative to fail. May be NULL. */
    int (*pause)(void *ctx, struct rp_error *err);
    void *ctx;
    /* find.c's */
    int64_t *ids; /* sorted after a look; handed out from their end */
    size_t n, room;
    int64_t floor; /* below this id nothing was kept; 0: all were */
    bool looked;
};
void rp_restore_walk_init(struct rp_restore_walk *walk, struct rp_db *db, const struct rp_restore_filter *filter,
                          const struct rp_restore_cursor *cursor);
void rp_restore_walk_done(struct rp_restore_walk *walk);
/* Looks for what is next in this stage. rp_restore_next does so by itself where it must; the first
 * look tells how many fit. 1: it was stopped. */
int rp_restore_look(struct rp_restore_walk *walk, struct rp_error *err);
/* The next of them, up to 1,000, and the cursor behind them. None: it is over, or (1) was
 * stopped. */
int rp_restore_next(struct rp_restore_walk *walk, struct rp_marks *out, struct rp_error *err);
bool rp_restore_is_over(const struct rp_restore_cursor *cursor);
/* As people wrote it: {"prefix": "STORE:PREFIX", "reason": ...}. NULL without memory. */
json_t *rp_restore_filter_json(struct rp_db *db, const struct rp_restore_filter *filter);

/* ---- the run ---- */

struct rp_restore_command {
    struct rp_command command;
    struct rp_restore_filter filter; /* upto_id is out */
    struct rp_run *run;              /* out */
};
extern const struct rp_verb rp_verb_restore_begin;
/* `name`: of the run, the store's or "all". */
void rp_restore_command_init(struct rp_restore_command *c, const struct rp_restore_filter *filter, const char *name,
                             struct rp_run *run, const struct rp_worker *worker, const char *actor);
/* The same, waited for. */
int rp_restore_begin(struct rp_catalog *catalog, const struct rp_restore_filter *filter, const char *name,
                     const struct rp_worker *worker, const char *actor, struct rp_run *out, struct rp_error *err);

struct rp_restorer {
    struct rp_catalog *catalog;
    struct rp_store *const *stores;
    size_t n_stores;
    const volatile sig_atomic_t *cancel; /* set: the run ends between two batches, `cancelled`; may be NULL */
    const volatile sig_atomic_t *stop;   /* set: it is left between two batches, to be resumed; may be NULL */
    /* After each batch, with the figures so far; run->total is how many marks there are. May be
     * NULL. */
    void (*finished)(void *ctx, const struct rp_run *run, const struct rp_reprieve_item *items, size_t n);
    void *ctx;
};
/* Carries a run that was begun or resumed to its end (core/run/carry.h). `outcome`: done, partial
 * (something was refused), cancelled, failed; NULL: it is still open, because `stop` was set, the
 * catalog cannot be reached (negative), or another worker has it now (negative, run->lost). */
int rp_restore_carry(struct rp_restorer *restorer, struct rp_run *run, const char **outcome, struct rp_error *err);

#endif
