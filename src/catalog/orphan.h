/* SPDX-License-Identifier: Apache-2.0 */
/* orphan.h - rows that nothing would find any more: which there are. What is done about them is
 * said by core/safety_net. Every look is bounded, takes no locks and reads nothing that lives; what
 * it found is asked again under the tenant's lock. */
#ifndef RP_CATALOG_ORPHAN_H
#define RP_CATALOG_ORPHAN_H

#include "catalog/file/file.h"
#include "catalog/row.h"

struct rp_orphan {
    int64_t id; /* of the file, or of the mark */
    int64_t tenant_id, store_id;
    const char *key;       /* of the arena */
    enum rp_status status; /* of a file of rp_orphans_files */
    bool lost;             /* of those: it waits for a mark, and none waits for it. Of a mark: nobody will look at it,
                            * or it is dead and without a letter */
    bool has_living;       /* of those: it is gone, and what belongs to it lives */
    int64_t owner_id;      /* of a child: what it belongs to, which is gone; 0: it is none */
    /* the rest is the caller's */
    const char *store; /* the name of its store */
    const char *what;  /* is wrong with it */
    bool done;         /* it was mended */
    int64_t due_at_ms; /* of the mark that it got; 0: none */
};
struct rp_orphans {
    struct rp_orphan *at;
    size_t n, max;
    struct rp_arena *arena;
};
int rp_orphans_init(struct rp_orphans *orphans, size_t max, struct rp_arena *arena, struct rp_error *err);

/* A page of at most out->max files of this status (pending, deleted, purged or expired) behind
 * `after_id`: orphans or not. */
int rp_orphans_files(struct rp_db *db, enum rp_status status, int64_t after_id, struct rp_orphans *out,
                     struct rp_error *err);
/* What lives and belongs to one of these; out->max at most. Twice if two of them own it. */
int rp_orphans_children(struct rp_db *db, const int64_t *owners, size_t n, struct rp_orphans *out,
                        struct rp_error *err);
/* Marks that wait and that nobody will look at, behind `after_id`. */
int rp_orphans_marks(struct rp_db *db, int64_t after_id, struct rp_orphans *out, struct rp_error *err);
/* A page of the marks that wait for a person. */
int rp_orphans_dead(struct rp_db *db, int64_t after_id, struct rp_orphans *out, struct rp_error *err);

/* Which of these files (marks) are still so. `out` has room for n. */
int rp_orphans_lost(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_ids *out,
                    struct rp_error *err);
int rp_orphans_letterless(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_ids *out,
                          struct rp_error *err);

#endif
