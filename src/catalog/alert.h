/* SPDX-License-Identifier: Apache-2.0 */
/* alert.h - conditions that hold or held, and the figures that they are judged by (core/alert.h).
 *
 * A1  A row a condition. Raising one that holds already, and clearing one that does not hold,
 *     change nothing and say so: over all daemons a condition is raised once and cleared once.
 * A2  Telling somebody is tried by one daemon at a time: rp_alert_try is a compare-and-set on the
 *     number of tries.
 * A3  Figures are read by indexes and bounded: none costs in proportion to what is stored. */
#ifndef RP_CATALOG_ALERT_H
#define RP_CATALOG_ALERT_H

#include "catalog/catalog.h"

#include <stdbool.h>
#include <stdint.h>

#define RP_ALERT_NAME    48
#define RP_ALERT_DETAILS 2048

struct rp_alert_row {
    char name[RP_ALERT_NAME], severity[16];
    int64_t raised_at_ms, cleared_at_ms; /* cleared 0: it holds */
    char details[RP_ALERT_DETAILS];      /* JSON */
    int64_t told_at_ms;                  /* 0: nobody was told of the last change yet */
    int64_t tries;
};

typedef int rp_alert_fn(void *ctx, const struct rp_alert_row *row, struct rp_error *err);
int rp_alert_each(struct rp_db *db, rp_alert_fn *fn, void *ctx, struct rp_error *err);

int rp_alert_raise(struct rp_tx *tx, const char *name, const char *severity, const char *details, bool *changed,
                   struct rp_error *err);
int rp_alert_clear(struct rp_tx *tx, const char *name, const char *details, bool *changed, struct rp_error *err);
/* *mine: this caller may tell; false: another one does, or has. */
int rp_alert_try(struct rp_tx *tx, const struct rp_alert_row *row, bool *mine, struct rp_error *err);
int rp_alert_told(struct rp_tx *tx, const struct rp_alert_row *row, struct rp_error *err);

/* ---- figures ---- */

/* The oldest due_at of the marks of a store that are past due, among a bounded number of those that
 * wait longest; 0: none is. */
int rp_figure_oldest_due(struct rp_db *db, int64_t store_id, int64_t now_ms, int64_t *oldest_ms, struct rp_error *err);
struct rp_run_counts {
    int64_t runs, errors; /* errors: runs that failed, or had some; stopping at a limit is none */
};
int rp_figure_runs(struct rp_db *db, int64_t since_ms, struct rp_run_counts *out, struct rp_error *err);
int rp_figure_last_run(struct rp_db *db, int64_t *finished_at_ms, struct rp_error *err); /* a sweep's; 0: never */
int rp_figure_last_run_of(struct rp_db *db, const char *kind, const char *name, int64_t *finished_at_ms,
                          struct rp_error *err);
/* Abandoned uploads that were cleaned up since then, counted up to `most`. */
int rp_figure_abandoned(struct rp_db *db, int64_t since_ms, int64_t most, int64_t *out, struct rp_error *err);

struct rp_held_lock {
    char name[128], locked_by[160];
    int64_t locked_at_ms, run_id;
};
typedef int rp_held_lock_fn(void *ctx, const struct rp_held_lock *lock, struct rp_error *err);
/* Every lock that is held now, or (name not NULL) that one. */
int rp_lock_each_held(struct rp_db *db, const char *name, rp_held_lock_fn *fn, void *ctx, struct rp_error *err);

#endif
