/* SPDX-License-Identifier: Apache-2.0 */
/* audit.h - the chained log of every acknowledged change, which is also the outbox.
 *
 * A1  hash = SHA-256(hash of the row before in this lane, lane, seq, at, event, actor, mark,
 *     tenant, digest of details). The first row of a lane follows 32 zero bytes.
 * A2  Details stand beside their digest and can be erased; the chain still proves itself.
 * A3  Once an hour each lane writes the other lanes' heads into its own chain, so that a cut tail
 *     or a dropped lane shows in the others.
 * A4  Rows go only once a sealed segment holds them (segment.h). A lane's chain then begins where
 *     its last segment ends. */
#ifndef RP_CATALOG_AUDIT_H
#define RP_CATALOG_AUDIT_H

#include "catalog/catalog.h"

#include <jansson.h>

struct rp_audit_entry {
    const char *event; /* "mark.created" */
    const char *actor;
    int64_t mark_id; /* 0: none */
    int64_t tenant_id;
    json_t *details; /* an object; stolen. NULL, and no text: there was no memory for it */
    /* The same as JSON text, for those who write many; used without details; lives as long as the
     * transaction. */
    const char *text;
};

/* Append to the transaction under way. */
int rp_tx_audit(struct rp_tx *tx, const struct rp_audit_entry *entry, struct rp_error *err);
/* What rp_catalog_transact calls before it commits. */
int rp_audit_flush(struct rp_tx *tx, struct rp_error *err);

struct rp_audit_row {
    int64_t lane, seq, at_ms, mark_id, tenant_id;
    const char *event, *actor, *details; /* details NULL: erased, or there never were any */
    const char *tenant;                  /* its name; NULL: it is about none, or of one that is gone */
    uint8_t digest[RP_DIGEST_BYTES], hash[RP_DIGEST_BYTES];
};
/* With its texts in this arena. */
int rp_audit_row_keep(const struct rp_audit_row *row, struct rp_arena *arena, struct rp_audit_row *out,
                      struct rp_error *err);
typedef int rp_audit_fn(void *ctx, const struct rp_audit_row *row, struct rp_error *err);

int rp_audit_of_mark(struct rp_db *db, int64_t mark_id, rp_audit_fn *fn, void *ctx, struct rp_error *err);
/* A whole lane, in pages: no long read transaction. */
int rp_audit_lane(struct rp_db *db, int64_t lane, int64_t after_seq, rp_audit_fn *fn, void *ctx, struct rp_error *err);
/* The next rows of a lane, `max` at most; *n says how many there were. */
int rp_audit_tail(struct rp_db *db, int64_t lane, int64_t after_seq, size_t max, rp_audit_fn *fn, void *ctx, size_t *n,
                  struct rp_error *err);
/* Where each lane ends. */
struct rp_audit_head {
    int64_t lane, seq;
};
int rp_audit_heads(struct rp_db *db, struct rp_audit_head *out, size_t max, size_t *n, struct rp_error *err);
/* The newest rows of all lanes, `max` at most, newest first: merged by time, each lane in its own
 * order. `at` says up to which row each lane is given, at first where it ends; afterwards it is
 * moved before what was given (0: nothing is left). */
int rp_audit_newest(struct rp_db *db, struct rp_audit_head *at, size_t n, size_t max, rp_audit_fn *fn, void *ctx,
                    struct rp_error *err);
int rp_audit_lanes(struct rp_db *db, int64_t *out, size_t max, size_t *n, struct rp_error *err);

/* Walks every lane. `broken` says whether a link is wrong, and the rest which and why. */
struct rp_audit_verdict {
    bool broken;
    int64_t lane, seq; /* the first broken link */
    char why[160];
    int64_t rows, erased; /* rows checked; rows whose details were erased */
    size_t lanes;
    int64_t sealed; /* rows that were sealed (segment.h), in so many segments: */
    size_t segments;
    size_t files, files_missing; /* whose files were checked; whose files are not here */
    char missing[128];           /* the first of these */
};
int rp_audit_verify(struct rp_catalog *catalog, struct rp_audit_verdict *out, struct rp_error *err);
/* The same, and the segments' files in that directory: one that is there must be what was sealed.
 * NULL: none is looked at. */
int rp_audit_verify_files(struct rp_catalog *catalog, const char *dir, struct rp_audit_verdict *out,
                          struct rp_error *err);
/* Removes the details of one row; the chain stays whole. RP_EGONE: the row is sealed. */
int rp_audit_erase(struct rp_tx *tx, int64_t lane, int64_t seq, struct rp_error *err);

#endif
