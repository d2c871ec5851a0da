/* SPDX-License-Identifier: Apache-2.0 */
/* restore.h - what a restore run is about (its filter, fixed when it began) and how far it has
 * come. While the run is open no claim takes what the filter names (statements/restore.h,
 * RESTORING). Adding one raises hold_epoch as a hold does (hold.h): a claim commits before, or
 * leaves these marks alone. */
#ifndef RP_CATALOG_RESTORE_H
#define RP_CATALOG_RESTORE_H

#include "catalog/catalog.h"
#include "catalog/mark/mark.h"

struct rp_restore_filter {
    int64_t run_id;   /* marks that this run made, and what it moved to quarantine; 0: none */
    int64_t store_id; /* with prefix; 0: none */
    const char *prefix;
    const char *reason, *actor; /* NULL: none */
    int64_t since_ms, until_ms; /* -1: none */
    int64_t upto_id;            /* no mark with a higher id; 0: none */
};

/* Where a walk over what fits stands; zeroed: at its begin. It goes down: what is left of the stage
 * has lower ids, 0 is all of it. The stages are core/restore/restore.h's. */
struct rp_restore_cursor {
    int64_t stage, id;
};

struct rp_restore_row {
    int64_t run_id;
    struct rp_restore_filter filter;
    const char *asked_by;
    int64_t total; /* how many marks fitted; -1: not counted yet */
    struct rp_restore_cursor cursor;
};

int rp_restore_add(struct rp_tx *tx, const struct rp_restore_row *row, struct rp_error *err);
/* Texts in the arena. */
int rp_restore_get(struct rp_db *db, int64_t run_id, struct rp_arena *arena, struct rp_restore_row *out,
                   struct rp_error *err);
int rp_restore_counted(struct rp_tx *tx, int64_t run_id, int64_t total, struct rp_error *err);
int rp_restore_step(struct rp_tx *tx, int64_t run_id, const struct rp_restore_cursor *cursor, struct rp_error *err);
/* How many marks of a store are due and wait for restores that are open. Reads every due mark. */
int rp_restore_keeps(struct rp_db *db, int64_t store_id, int64_t now_ms, int64_t *n, struct rp_error *err);
/* Those of these marks that there are, from the highest id down: so `ids` is sorted as well. */
int rp_marks_these(struct rp_db *db, const int64_t *ids, size_t n, struct rp_marks *out, struct rp_error *err);
/* The highest id of a mark; 0: there is none. */
int rp_marks_last_id(struct rp_db *db, int64_t *id, struct rp_error *err);

#endif
