/* SPDX-License-Identifier: Apache-2.0 */
/* catalog.h - our tables: opened, kept at one schema, changed in transactions that leave an audit
 * row a change.
 *
 * K1  An empty database becomes a catalog; one at an older schema is refused until `migrate`; one
 *     at a newer schema, or one that holds other tables, is refused (RP_ESCHEMA).
 * K2  Every change goes through rp_catalog_commit: it locks the lane's row, runs the caller's
 *     function, appends the audit rows, tallies and the lane's new head in the same transaction,
 *     and commits (AUDITED).
 * K3  The function may be run again from its start: when another writer was faster, the database
 *     was busy, or a lost commit turned out not to have happened. It must not keep anything of an
 *     earlier run.
 * K4  Every commit writes a random number into the lane's row. A commit whose outcome is unknown is
 *     looked for by a transaction that locks this row, which waits until the lost one has ended,
 *     compares the number, and itself commits without a warning. Only if that cannot be had,
 *     RP_EUNKNOWN is returned. Every verb can then be repeated: it is idempotent.
 * K5  Times: late_ms is the latest of the clocks we see (promises are counted from it), early_ms
 *     the earliest (a purge needs it past due). Leases and locks are on the database's clock. A
 *     clock that jumped counts as what the boot clock says (clock.h).
 * K6  What keeps something alive is noted in its transaction (rp_tx_keep), and told to the raise
 *     hook once it may be committed: a catalog that is put back from an earlier backup has
 *     forgotten it (core/owner/raise.h).
 * K7  A change has one deadline, from its first try to the answer of its COMMIT.
 * K8  Rows are locked in one order, so that nobody waits in a ring: the lane; the hold epoch;
 *     tenants; marks; files; the run; each by id. What belongs to a tenant is changed only under
 *     the tenant's lock. A store's row is shared by whoever writes there, before the epoch is
 *     raised; alone it is locked by a rename, and by the raise that first owns it, which have their
 *     lane and nothing else.
 * K9  A SQLite catalog whose disk is full gives its reserve up (base/reserve.h) and tries again. */
#ifndef RP_CATALOG_CATALOG_H
#define RP_CATALOG_CATALOG_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/reserve.h"
#include "db/db.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_clock;
struct rp_log;
struct rp_writers;
struct rp_error;
struct rp_tx;

typedef int rp_tx_fn(struct rp_tx *tx, void *ctx, struct rp_error *err);

/* K6: the stores in which a transaction kept something alive. */
#define RP_KEPT_MAX 16
struct rp_kept {
    int64_t stores[RP_KEPT_MAX];
    size_t n;
    bool everywhere; /* in any store */
};

/* A lane as a commit of ours left it (lane.h, L4). */
struct rp_lane_end {
    bool known;
    int lane;
    int64_t stamp, seq;
    int64_t at_ms; /* of the boot clock */
    uint8_t head[RP_DIGEST_BYTES];
};

/* K6: who sees to it that a catalog put back is noticed. Stores are bits of a mask, the hook's
 * own. */
struct rp_raise_hook {
    /* The raises that the answers of a transaction have to wait for; 0: none. Cheap; inside the
     * transaction. */
    uint64_t (*due)(void *raises, const struct rp_kept *kept);
    /* It is committed, or may be. `end`: how it left its lane; not known unless it is
     * committed. */
    void (*note)(void *raises, const struct rp_kept *kept, const struct rp_lane_end *end);
    /* Has these raises made, or gives up waiting for them. After `note`; may block, for a bounded
     * time. */
    void (*raise)(void *ctx, uint64_t which);
    void *raises; /* of `due` and `note` */
    void *ctx;    /* of `raise` */
};

struct rp_catalog {
    struct rp_db *db;
    const struct rp_clock *clock;
    struct rp_digest *digest;
    struct rp_arena arena; /* of the transaction under way */
    int lane;
    char id[40]; /* names this catalog in owner records */
    bool lane_known, clock_known;
    bool leases; /* lane.h, L1 */
    int64_t lane_fence;
    struct rp_lane_end end; /* lane.h, L4 */
    bool doubted;           /* it may have been put back since: to be asked in the next transaction */
    char holder[64];
    int64_t patience_ms;        /* K7 */
    struct rp_log *log;         /* where commands say what they did (writer.h, W9); may be NULL */
    struct rp_writers *writers; /* of the daemon that this belongs to (rp_writers_attach); NULL: it writes itself */
    bool through_writers;       /* also what is no command goes through them */
    const struct rp_raise_hook *raise_hook; /* of this process; may be NULL */
    char *reserve;                          /* K9; NULL: none */
    int64_t looked_epoch;                   /* as the last look at an owner record saw it (core/owner/owner.h, O6) */
};

#define RP_LANE_LEASED  (-1)
#define RP_SETTLE_TRIES 20 /* K4 */

struct rp_catalog_options {
    const struct rp_clock *clock; /* NULL: the host's */
    int lane;                     /* RP_LANE_LEASED: one of its own (lane.h) */
    const char *holder;           /* of a leased lane: the node's name */
    bool migrate;                 /* bring an older schema up to date */
    bool patient;                 /* what it asks for may take ten minutes: verify, rebuild, migrate */
    int64_t cache_kib;            /* as in struct rp_db_options: for one of many connections */
};

int rp_catalog_open(const char *url, const struct rp_catalog_options *options, struct rp_catalog **out,
                    struct rp_error *err);
/* The same over an open connection, which is taken over (also on failure). */
int rp_catalog_adopt(struct rp_db *db, const struct rp_catalog_options *options, struct rp_catalog **out,
                     struct rp_error *err);
void rp_catalog_close(struct rp_catalog *catalog);
/* K9: the file beside it. False: no SQLite file. */
bool rp_catalog_reserve(const char *url, char out[RP_RESERVE_PATH]);
void rp_catalog_closep(struct rp_catalog **catalog);

/* The schema that this program knows, and the one that a database is at (0: empty). */
int rp_catalog_schema_known(void);
int rp_catalog_schema_of(struct rp_db *db, int *out, struct rp_error *err);

/* ---- one transaction ---- */

struct rp_tally_change {
    int64_t store_id, state, marks, bytes;
    int64_t waiting, waiting_bytes, marked_at_s;
};

#define RP_TALLY_CHANGES_MAX 512

/* What a host's clocks said together (clock.h). */
struct rp_anchor {
    bool known;
    int64_t boot_ms, wall_ms;
    int64_t ahead_ms, noted_at_ms; /* what others were told, and when */
};

struct rp_tx {
    struct rp_catalog *catalog;
    struct rp_db *db;
    struct rp_arena *arena; /* lives until the transaction ends */
    int64_t host_ms, db_ms, late_ms, early_ms;
    int64_t wall_ms, boot_ms; /* the host's clocks as they were read */
    int64_t ahead_ms;         /* of the wall clock: more than 5 minutes are a jump */
    struct rp_anchor anchor;
    int64_t seq, last_id, heads_at; /* the lane, as it will be */
    int64_t stamp, stamp_before;    /* K4: this commit's, and that of the one before */
    uint8_t head[RP_DIGEST_BYTES];
    struct rp_value *audit; /* rows waiting to be appended */
    size_t n_audit, cap_audit;
    struct rp_kept kept;
    struct rp_tally_change tally[RP_TALLY_CHANGES_MAX];
    size_t n_tally;
};

/* A change of our own, which nobody waits for an answer of (what people ask for is a command:
 * writer.h). What the function allocates in tx->arena, and what it reads there, is gone when this
 * returns. */
int rp_catalog_transact(struct rp_catalog *catalog, rp_tx_fn *fn, void *ctx, struct rp_error *err);
/* The same on this very connection. For the writers, and for rp_catalog_transact. */
int rp_catalog_commit(struct rp_catalog *catalog, rp_tx_fn *fn, void *ctx, struct rp_error *err);

int64_t rp_tx_new_id(struct rp_tx *tx);
void rp_tx_tally(struct rp_tx *tx, int64_t store_id, int64_t state, int64_t marks, int64_t bytes);
/* Of those just tallied, these wait and were asked for; `marked_at_s`: the sum of their times. */
void rp_tx_tally_waiting(struct rp_tx *tx, int64_t store_id, int64_t state, int64_t marks, int64_t bytes,
                         int64_t marked_at_s);
/* K6. 0: in any store. */
void rp_tx_keep(struct rp_tx *tx, int64_t store_id);

/* ---- small facts ---- */

int rp_meta_get(struct rp_db *db, const char *name, int64_t *number, char *word, size_t word_size,
                struct rp_error *err);
/* The same for one that may be missing. */
int rp_meta_find(struct rp_db *db, const char *name, bool *found, int64_t *number, char *word, size_t word_size,
                 struct rp_error *err);
int rp_meta_set(struct rp_db *db, const char *name, int64_t number, const char *word, struct rp_error *err);
/* The word of one that has none yet; another's stays. Read it back: whoever was first has set
 * it. */
int rp_meta_fill(struct rp_db *db, const char *name, const char *word, struct rp_error *err);
/* number = max(number + 1, at_least), returned. */
int rp_meta_raise(struct rp_db *db, const char *name, int64_t at_least, int64_t *number, struct rp_error *err);
/* All whose names begin so: name, number, word. */
int rp_meta_each(struct rp_db *db, const char *prefix, rp_row_fn *row, void *ctx, struct rp_error *err);

/* 64 random bits in hexadecimal: no other catalog draws the same, nor does a copy of this one. */
#define RP_STAMP_TEXT 17
int rp_stamp_draw(char out[RP_STAMP_TEXT], struct rp_error *err);

struct rp_store_row {
    int64_t id, kind, owned_at; /* owned_at 0: never */
    char name[64];
};
#define RP_STORE_STORE 1
/* Finds the store, or makes it. */
int rp_store_get(struct rp_catalog *catalog, int64_t kind, const char *name, struct rp_store_row *out,
                 struct rp_error *err);
int rp_store_find(struct rp_db *db, const char *name, struct rp_store_row *out, struct rp_error *err);
/* "?" for a number that is none. */
#define RP_STORE_NAME 64
int rp_store_name(struct rp_db *db, int64_t id, char out[RP_STORE_NAME], struct rp_error *err);
/* All of them in order of id, also those that no configuration names any more; in the arena. */
struct rp_store_rows {
    struct rp_store_row *at;
    size_t n;
};
int rp_store_list(struct rp_db *db, struct rp_arena *arena, struct rp_store_rows *out, struct rp_error *err);

/* Locked until the transaction ends: it is not removed meanwhile. Whoever writes what hangs on a
 * store asks for it. RP_ENOTOWNER (rp_store_refuse_old): it is not there any more. `name` may be
 * NULL. */
int rp_store_share(struct rp_tx *tx, int64_t id, const char *name, struct rp_error *err);
int rp_store_refuse_old(const char *name, struct rp_error *err);
/* Locked, so that nobody else writes what hangs on it. RP_ENOTFOUND. */
int rp_store_lock(struct rp_tx *tx, int64_t id, struct rp_error *err);
int rp_store_rename(struct rp_tx *tx, int64_t id, const char *name, struct rp_error *err);
/* Its number is not given to another. */
int rp_store_remove(struct rp_tx *tx, int64_t id, struct rp_error *err);
/* What hangs on a store, with what has ended and was not let go yet. */
struct rp_store_uses {
    int64_t holds; /* in force */
    bool files, marks;
};
int rp_store_uses(struct rp_db *db, int64_t id, struct rp_store_uses *out, struct rp_error *err);

/* Notes that our owner record stands in that store. */
int rp_store_owned(struct rp_tx *tx, int64_t store_id, struct rp_error *err);

struct rp_tally_row {
    int64_t store_id, state, marks, bytes;
};
typedef int rp_tally_fn(void *ctx, const struct rp_tally_row *row, struct rp_error *err);
int rp_tally_each(struct rp_db *db, rp_tally_fn *fn, void *ctx, struct rp_error *err);

/* For queries that return one row of integers: a row function that keeps the first row. */
struct rp_one {
    int64_t i[2];
    int columns; /* 2: both; else there is one */
    bool found;
};
rp_row_fn rp_one_row;

#endif
