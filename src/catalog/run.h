/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - runs, their named locks and their deletion records (one a run, written once). */
#ifndef RP_CATALOG_RUN_H
#define RP_CATALOG_RUN_H

#include "catalog/catalog.h"

struct rp_lock_row {
    char locked_by[160];
    int64_t locked_at_ms, fence;
    int64_t run_id; /* 0: free */
};
/* Reads the lock's row, made if it is not there, and holds it until the transaction ends. */
int rp_lock_get(struct rp_tx *tx, const char *name, struct rp_lock_row *out, struct rp_error *err);
/* `lock` is what rp_lock_get read in this transaction. The new fence is lock->fence + 1. */
int rp_lock_take(struct rp_tx *tx, const char *name, const struct rp_lock_row *lock, const char *worker, int64_t run_id,
                 struct rp_error *err);
/* RP_ECHANGED: the lock is no longer ours. */
int rp_lock_renew(struct rp_tx *tx, const char *name, int64_t fence, struct rp_error *err);
int rp_lock_release(struct rp_tx *tx, const char *name, int64_t fence, struct rp_error *err);
/* The same for a lock that nobody will take again. */
int rp_lock_forget(struct rp_tx *tx, const char *name, int64_t fence, struct rp_error *err);

struct rp_run_row {
    int64_t id;
    const char *kind, *name, *locked_by; /* borrowed or of an arena, as the function says */
    int64_t fence, started_at_ms;
    const char *figures; /* JSON */
};
struct rp_record_row {
    int64_t run_id;
    const char *kind, *name, *outcome;
    int64_t started_at_ms, finished_at_ms;
    const char *body; /* JSON */
    int64_t errors;   /* written, not read */
};
typedef int rp_run_fn(void *ctx, const struct rp_run_row *row, struct rp_error *err);
typedef int rp_record_fn(void *ctx, const struct rp_record_row *row, struct rp_error *err);

int rp_run_add(struct rp_tx *tx, const struct rp_run_row *run, struct rp_error *err);
/* `cancelled`: somebody asked to end it between two batches. RP_ECHANGED: it was closed. */
int rp_run_progress(struct rp_tx *tx, int64_t run_id, const char *figures, bool *cancelled, struct rp_error *err);
/* RP_ENOTFOUND: it is not open. */
int rp_run_cancel(struct rp_tx *tx, int64_t run_id, struct rp_error *err);
int rp_run_is_cancelled(struct rp_db *db, int64_t run_id, bool *out, struct rp_error *err);
/* An open run is another worker's from now on. RP_ECHANGED: it was closed. */
int rp_run_taken(struct rp_tx *tx, const struct rp_run_row *run, struct rp_error *err);
/* Writes the record and closes the run, and the filter of a restore with it; RP_EEXISTS if it has
 * its record already. */
int rp_run_record(struct rp_tx *tx, const struct rp_record_row *record, struct rp_error *err);
/* A run without a record; RP_ENOTFOUND otherwise. */
int rp_run_get_open(struct rp_db *db, int64_t run_id, rp_run_fn *fn, void *ctx, struct rp_error *err);
/* Runs without a record, of one name or (NULL) of all. */
int rp_run_each_open(struct rp_db *db, const char *lock, rp_run_fn *fn, void *ctx, struct rp_error *err);
/* The ids of those of a kind, the oldest of a name first; at most `max`. */
int rp_run_list_open(struct rp_db *db, const char *kind, int64_t *ids, size_t max, size_t *n, struct rp_error *err);
int rp_record_get(struct rp_db *db, int64_t run_id, rp_record_fn *fn, void *ctx, struct rp_error *err);
/* The one or the other; each function may be NULL: only whether there is such a run. One that ends
 * meanwhile is found as a record. RP_ENOTFOUND: there never was one. */
int rp_run_find(struct rp_db *db, int64_t run_id, rp_run_fn *open, rp_record_fn *ended, void *ctx,
                struct rp_error *err);
int rp_record_each(struct rp_db *db, int64_t before_id, int64_t limit, rp_record_fn *fn, void *ctx,
                   struct rp_error *err);

#endif
