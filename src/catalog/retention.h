/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h - rows of what has ended: which there are, and their removal. What may go, and why,
 * is said by core/retention. Arrays of ids that are filled have room for `limit`. */
#ifndef RP_CATALOG_RETENTION_H
#define RP_CATALOG_RETENTION_H

#include "catalog/catalog.h"
#include "catalog/row.h"

/* Rows of a kind whose ids say when they were made, or that are few: those behind `after` that
 * ended before that moment, by id. */
enum rp_old_kind {
    RP_OLD_KEYS,   /* answers saved under an Idempotency-Key; saved before */
    RP_OLD_HOLDS,  /* lifted */
    RP_OLD_TOKENS, /* revoked or over; links and sessions: before `sooner_ms` */
    RP_OLD_RUNS,   /* runs begun before that have their record, with what restores were about */
    RP_OLD_JOBS,   /* of the processor, of files that scan no more or are gone */
};
struct rp_old_query {
    enum rp_old_kind kind;
    int64_t before_ms, sooner_ms;
    int64_t after, limit;
};
int rp_old_find(struct rp_db *db, const struct rp_old_query *query, struct rp_ids *out, struct rp_error *err);
/* Those that still are such rows. */
int rp_old_remove(struct rp_tx *tx, const struct rp_old_query *query, const struct rp_ids *ids, int64_t *gone,
                  struct rp_error *err);
/* Free locks that nobody has taken since. */
int rp_old_locks_remove(struct rp_tx *tx, int64_t before_ms, struct rp_error *err);

/* ---- marks ---- */

/* Marks that ended before that moment may have been let go; 0: none ever was. */
int rp_retention_reach(struct rp_db *db, int64_t *before_ms, struct rp_error *err);
int rp_retention_reached(struct rp_tx *tx, int64_t before_ms, struct rp_error *err);

struct rp_old_mark {
    int64_t id, store_id;
    const char *key; /* of the arena, like the other text */
    int64_t tenant_id, file_id;
    const char *original; /* NULL: no copy */
    int64_t ended_at_ms;
};
struct rp_old_marks {
    struct rp_old_mark *at;
    size_t n, max;
    struct rp_arena *arena;
};
int rp_old_marks_init(struct rp_old_marks *marks, size_t max, struct rp_arena *arena, struct rp_error *err);
/* A page of marks that ended before that moment, behind the mark (after_ms, after_id), oldest end
 * first. */
int rp_old_marks_page(struct rp_db *db, int64_t before_ms, int64_t after_ms, int64_t after_id, struct rp_old_marks *out,
                      struct rp_error *err);
/* Those of them that nobody else has locked, locked. */
int rp_old_marks_lock(struct rp_tx *tx, int64_t before_ms, const struct rp_ids *ids, struct rp_old_marks *out,
                      struct rp_error *err);
/* Of each of these marks' keys that copies wait of: its store, the key, and the first copy's own
 * key, which sorts like the marks that copies are named by. */
typedef int rp_copy_fn(void *ctx, int64_t store_id, const char *original, const char *key);
int rp_old_marks_copies(struct rp_db *db, const struct rp_old_marks *marks, rp_copy_fn *fn, void *ctx,
                        struct rp_error *err);
/* Which of these marks there are. */
int rp_marks_there(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_ids *out,
                   struct rp_error *err);
/* How many older marks of its subject there are of each of these, up to 1001. */
typedef int rp_older_fn(void *ctx, int64_t id, int64_t older);
int rp_marks_older(struct rp_db *db, struct rp_arena *arena, const struct rp_ids *ids, rp_older_fn *fn, void *ctx,
                   struct rp_error *err);
/* Marks that have ended, and their dead letters; counts them out of the tally. */
int rp_marks_remove(struct rp_tx *tx, const struct rp_ids *ids, int64_t *gone, struct rp_error *err);

/* ---- files and transactions ---- */

struct rp_old_file {
    int64_t id, tenant_id, txn_id, changed_at_ms;
    bool may_go;
};
struct rp_old_files {
    struct rp_old_file *at;
    size_t n, max;
};
/* A page of files that are over and changed last before that moment, behind the file (after_ms,
 * after_id). */
int rp_old_files_page(struct rp_db *db, int64_t before_ms, int64_t after_ms, int64_t after_id, struct rp_old_files *out,
                      struct rp_error *err);
/* Takes their tenants' locks without waiting (K8), and then locks those that may go. */
int rp_old_files_lock(struct rp_tx *tx, int64_t before_ms, const struct rp_ids *ids, struct rp_old_files *out,
                      struct rp_error *err);
/* With their marks, ledger rows, and transactions that have no other members. They must be
 * locked. */
int rp_old_files_remove(struct rp_tx *tx, int64_t before_ms, const struct rp_old_files *files, int64_t *marks,
                        struct rp_error *err);

struct rp_old_txn {
    int64_t id, tenant_id, members;
    bool over; /* it ended, or could no longer be committed, before that moment */
};
struct rp_old_txns {
    struct rp_old_txn *at;
    size_t n, max;
};
/* Transactions begun before that moment, behind `after`. */
int rp_old_txns_page(struct rp_db *db, int64_t before_ms, int64_t after, struct rp_old_txns *out, struct rp_error *err);
/* Those that are over and have no members. What is locked by others stays. */
int rp_txns_remove(struct rp_tx *tx, int64_t before_ms, const struct rp_ids *ids, int64_t *gone, struct rp_error *err);

#endif
