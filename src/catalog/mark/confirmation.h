/* SPDX-License-Identifier: Apache-2.0 */
/* confirmation.h - the rows of tables confirmation and confirmation_attempt: which outside services
 * must say yes before a mark's subject is erased, and what each was asked and said. What an answer
 * means is decided above (core/confirm). A mark's rows are changed by whoever has its mark: claimed,
 * or locked. */
#ifndef RP_CATALOG_CONFIRMATION_H
#define RP_CATALOG_CONFIRMATION_H

#include "catalog/mark/mark.h"

#define RP_CONFIRMATIONS_EACH 8   /* of one mark */
#define RP_ATTEMPTS_KEPT      100 /* of one confirmation: the last ones; three days of them are about 80 */
#define RP_ATTEMPT_BODY       1024

/* The same numbers stand in the catalog: never renumber. */
enum rp_confirmation_state {
    RP_CONFIRM_PENDING = 1, /* never asked */
    RP_CONFIRM_ASKED = 2,   /* committed before each call */
    RP_CONFIRM_WAITING = 3, /* it has answered: not yet */
    RP_CONFIRM_YES = 4,
    RP_CONFIRM_REFUSED = 5,
    RP_CONFIRM_FAILED = 6,
    RP_CONFIRM_STATES
};

struct rp_confirmation {
    int64_t id, mark_id, ordinal;
    const char *name;
    enum rp_confirmation_state state;
    int64_t attempts, asked_at_ms, until_at_ms, answered_at_ms; /* 0: not yet */
    const char *note;                                           /* may be NULL */
};

struct rp_confirmations {
    struct rp_confirmation *at;
    size_t n, max;
    struct rp_arena *arena;
};

/* `rows`: id, mark_id, ordinal and name; pending. */
int rp_confirmations_add(struct rp_tx *tx, const struct rp_confirmation *rows, size_t n, struct rp_error *err);
int rp_confirmations_save(struct rp_tx *tx, const struct rp_confirmation *rows, size_t n, struct rp_error *err);
/* Open dead letters of a store: what services said of them but yes is forgotten. */
int rp_confirmations_forget(struct rp_tx *tx, int64_t store_id, struct rp_error *err);
/* Those of these marks, by mark and in order; in the arena. */
int rp_confirmations_of(struct rp_db *db, const int64_t *mark_ids, size_t n, struct rp_arena *arena,
                        struct rp_confirmations *out, struct rp_error *err);
/* RP_ENOTFOUND */
int rp_confirmation_get(struct rp_db *db, int64_t id, struct rp_arena *arena, struct rp_confirmation *out,
                        struct rp_error *err);

struct rp_attempt {
    int64_t mark_id, ordinal;
    int64_t n;                /* when it is read: counted from 1 on, and on over retries of the mark */
    int64_t at_ms, status;    /* status 0: no answer came */
    const char *body, *error; /* "" */
};
/* At most one of each confirmation. The newest of each stay. */
int rp_attempts_add(struct rp_tx *tx, const struct rp_attempt *attempts, size_t n, struct rp_error *err);
/* Of a mark, by confirmation and in order. */
typedef int rp_attempt_fn(void *ctx, const struct rp_attempt *attempt, struct rp_error *err);
int rp_attempts_each(struct rp_db *db, int64_t mark_id, rp_attempt_fn *fn, void *ctx, struct rp_error *err);

#endif
