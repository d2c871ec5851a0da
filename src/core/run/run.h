/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - one execution of a sweep, a retention, a safety net or a restore in bulk (later: a policy,
 * a reconcile, ...), its lock, its figures, its one record.
 *
 * U1  A run takes a named lock, renewed with every batch. A lock renewed less than `stale_after_ms`
 *     ago is RP_ERUNNING, with holder and time; an older one, or one whose holder is known to be
 *     dead, is taken over.
 * U2  The lock is fenced: a holder that comes back finds RP_ECHANGED at its next batch and stops.
 * U3  Exactly one record a run, however it ends: a run whose process died gets its record,
 *     `failed`, from whoever takes the lock over, with the figures of its last batch. A restore, a
 *     retention and a safety net are not closed but resumed (restore.h, retention.h, safety_net.h):
 *     the run has another worker then, and the one that lost it ends nothing.
 * U4  Whoever cancels a run sets a flag, which the next batch sees: the run ends there,
 *     `cancelled`. What its batches did stays. A run that nobody works on any more gets its record
 *     at once. */
#ifndef RP_CORE_RUN_RUN_H
#define RP_CORE_RUN_RUN_H

#include "catalog/run.h"
#include "catalog/writer/writer.h"
#include "core/run/figures.h"

#define RP_RUN_SWEEP      "sweep"
#define RP_RUN_RETENTION  "retention"
#define RP_RUN_SAFETY_NET "safety_net"
#define RP_RUN_IMPORT     "import"
#define RP_RUN_RESTORE    "restore" /* its lock is its own: two of them may work beside each other */

/* U3: whether whoever takes a run of this kind over carries it on. */
bool rp_run_is_resumed(const char *kind);

/* Who works: named in locks and leases. */
struct rp_worker {
    char name[160];
    /* Whether a worker of that name can no longer live (its process is gone, on this host). NULL:
     * never known. */
    bool (*is_dead)(const char *name);
};

struct rp_run {
    int64_t id, fence, started_at_ms;
    char kind[24], name[72], lock[96];
    const struct rp_worker *worker;
    struct rp_figures figures;
    const json_t *filter;            /* of a restore: what it is about; lent, may be NULL */
    int64_t total;                   /* what it will have scanned in the end; 0: not known */
    int64_t paced_at_ms, paced_done; /* since when this worker works on it, and what had been scanned then */
    bool lost;                       /* the lock was taken over: change nothing more */
    bool cancelled;                  /* U4: begin no further batch */
};

/* Takes the lock `kind:name` and begins the run, or resumes the one that was left (U3): RP_ERUNNING
 * while another one holds it. */
struct rp_run_command {
    struct rp_command command;
    struct rp_run *run; /* out; lent until the run ends */
    const struct rp_worker *worker;
    int64_t stale_after_ms;
    char locked_by[160]; /* out, with RP_ERUNNING: who holds it, and since when */
    int64_t locked_at_ms;
};
extern const struct rp_verb rp_verb_run_begin;
void rp_run_command_init(struct rp_run_command *c, struct rp_run *run, const char *kind, const char *name,
                         const struct rp_worker *worker, int64_t stale_after_ms, const char *actor);
/* The same, waited for. */
int rp_run_begin(struct rp_catalog *catalog, const char *kind, const char *name, const struct rp_worker *worker,
                 int64_t stale_after_ms, struct rp_run *out, struct rp_error *err);
/* Inside a transaction: begins a run whose lock is its own. `run` has kind and name
 * (rp_run_name). */
int rp_run_start(struct rp_tx *tx, struct rp_run *run, const char *actor, struct rp_error *err);
void rp_run_name(struct rp_run *run, const char *kind, const char *name, const struct rp_worker *worker);
/* Inside a transaction: an open run that nobody works on becomes this worker's, with the figures of
 * its last batch. `taken` false: somebody does. RP_ENOTFOUND, RP_ECHANGED: it has ended. */
int rp_run_take_over(struct rp_tx *tx, int64_t run_id, const struct rp_worker *worker, int64_t stale_after_ms,
                     struct rp_run *out, bool *taken, struct rp_error *err);
/* The run stays open, and whoever comes first takes it over. */
int rp_run_leave(struct rp_catalog *catalog, struct rp_run *run, struct rp_error *err);

/* Inside the transaction that finishes a batch: keeps the figures, renews the lock, looks whether
 * the run was cancelled (run->cancelled). RP_ECHANGED: lost (run->lost). */
int rp_run_step(struct rp_tx *tx, struct rp_run *run, struct rp_error *err);
/* `outcome`: done, partial, failed, cancelled. Writes the record and releases the lock. */
int rp_run_end(struct rp_catalog *catalog, struct rp_run *run, const char *outcome, struct rp_error *err);
/* An outcome as an error's code: done 0, failed what it failed with (`code`; RP_EFAILED if that is
 * not known: 0), else RP_EPARTLY. */
int rp_outcome_code(const char *outcome, int code);

/* U4. RP_ENOTFOUND for a run that is not open. */
struct rp_cancel_command {
    struct rp_command command;
    int64_t run_id;
    const struct rp_worker *worker;
    int64_t stale_after_ms;
    struct rp_arena *arena;
    struct rp_run_row run; /* out: as it stood; texts in the arena */
    bool over;             /* out: nobody worked on it, it has its record */
};
extern const struct rp_verb rp_verb_cancel;

/* For a run that nobody will begin again under its name (a daemon that is gone): if its lock is
 * stale or its holder known to be dead, it gets its record, `failed`, and the lock is freed. */
int rp_run_bury(struct rp_catalog *catalog, const char *kind, const char *name, const struct rp_worker *worker,
                int64_t stale_after_ms, bool *buried, struct rp_error *err);

/* The run's record as INTERFACE shows it; `record` NULL for a dry run that leaves none. */
json_t *rp_run_json(const struct rp_run *run, const char *outcome, bool dry_run, int64_t finished_at_ms);
/* A run that has no record yet, in the record's shape; `interrupted`: its process is gone, and
 * whoever takes its lock next writes the record, or carries it on (U3). NULL with `err`:
 * damaged. */
struct rp_run_row;
json_t *rp_run_open_json(const struct rp_run_row *row, bool interrupted, struct rp_error *err);

#endif
