/* SPDX-License-Identifier: Apache-2.0 */
/* segment.h - sealed segments: the parts of the audit log that stand in files, so that their rows
 * may go.
 *
 * S1  A segment is a row of audit_segment: the rows from..to of one lane, the chain's hash before
 *     and after them, and the file that holds them with its SHA-256. It begins where the lane's
 *     segment before it ends; the first at 1. It is never changed and never goes.
 * S2  The file comes first: written, synced, and read back. Then the segment's row, in one
 *     transaction with the audit row `audit.sealed` that tells of it. Only then do the rows go, in
 *     order; the database lets no other go.
 * S3  After a crash there is a file without a segment, which is written again under the same name;
 *     or a segment with rows left, which go on going.
 * S4  A segment ends before its lane's last row, and never past the cursor of a durable reader
 *     (feed.h).
 * S5  A chain that is broken is not sealed.
 * S6  Details that were erased are not in the file. Who seals and who erases wait for each other;
 *     what is sealed can be erased here no more. */
#ifndef RP_CATALOG_AUDIT_SEGMENT_H
#define RP_CATALOG_AUDIT_SEGMENT_H

#include "catalog/audit/audit.h"
#include "catalog/audit/feed.h"

#define RP_SEGMENT_ROWS_MAX  INT64_C(100000)
#define RP_SEGMENT_BYTES_MAX (INT64_C(64) << 20) /* of its file, and what the last row is longer */
#define RP_SEGMENT_FILE      128                 /* a name without a directory */
#define RP_SEGMENT_PATH      4096                /* with it */

struct rp_segment {
    int64_t lane, from_seq, to_seq;
    uint8_t before[RP_DIGEST_BYTES], after[RP_DIGEST_BYTES]; /* the chain's hash */
    int64_t first_at_ms, last_at_ms;                         /* the earliest and the latest of its rows */
    int64_t with_details;                                    /* rows whose details are in the file */
    char file[RP_SEGMENT_FILE];
    int64_t bytes;
    uint8_t sha256[RP_DIGEST_BYTES]; /* of the file */
    int64_t sealed_at_ms, run_id;
};
typedef int rp_segment_fn(void *ctx, const struct rp_segment *segment, struct rp_error *err);

/* ---- rows of audit_segment ---- */

/* The next ones, `max` at most, in order of lane and rows; *n says how many there were. */
int rp_segment_page(struct rp_db *db, int64_t after_lane, int64_t after_seq, size_t max, rp_segment_fn *fn, void *ctx,
                    size_t *n, struct rp_error *err);
/* All of them. `lane`: -1 for all. */
int rp_segment_each(struct rp_db *db, int64_t lane, rp_segment_fn *fn, void *ctx, struct rp_error *err);
/* The last one of a lane. It has none: `out` is what the first one follows, up to row 0. */
int rp_segment_last(struct rp_db *db, int64_t lane, struct rp_segment *out, struct rp_error *err);
/* The one that covers a row. RP_ENOTFOUND: none does. */
int rp_segment_of_row(struct rp_db *db, int64_t lane, int64_t seq, struct rp_segment *out, struct rp_error *err);
/* Those with rows of this time, as far as times in different lanes can be compared. */
int rp_segment_of_time(struct rp_db *db, int64_t from_ms, int64_t to_ms, rp_segment_fn *fn, void *ctx,
                       struct rp_error *err);
/* How far each lane is. */
struct rp_segment_lane {
    int64_t lane, head_seq;
    int64_t sealed_seq;             /* the last row that is sealed; 0: none */
    int64_t first_seq, first_at_ms; /* the first row that is there; 0: none */
};
int rp_segment_lanes(struct rp_db *db, struct rp_segment_lane *out, size_t max, size_t *n, struct rp_error *err);
/* S4: the durable reader that is least far in this lane. "": there is none, and `seq` has no
 * bound. */
struct rp_segment_reader {
    char name[RP_FEED_READER];
    int64_t seq;
};
int rp_segment_reader(struct rp_db *db, int64_t lane, struct rp_segment_reader *out, struct rp_error *err);

/* Adds the segment and its audit row, if it still follows the last one, still ends before every
 * cursor, is older than `older_than_ms` and its rows are as they were exported. RP_ECHANGED: not so
 * any more. */
int rp_segment_seal(struct rp_tx *tx, const struct rp_segment *segment, int64_t older_than_ms, const char *actor,
                    struct rp_error *err);
/* Lets rows of a lane go, from..to. */
int rp_segment_let_go(struct rp_tx *tx, int64_t lane, int64_t from_seq, int64_t to_seq, int64_t *gone,
                      struct rp_error *err);
/* S6: nothing is sealed until the transaction ends. RP_EGONE: the row is sealed already. */
int rp_segment_guard_row(struct rp_tx *tx, int64_t lane, int64_t seq, struct rp_error *err);

/* ---- files ----
 *
 * JSON, one object a line, all that the hashes cover (docs/audit.md has the procedure):
 *   {"segment":1,"catalog":"cat_...","lane":3,"from":1,"before":"<hex>"}
 *   {"seq":1,"at":<ms>,"event":"...","actor":"...","mark":<number, 0: none>,"tenant":<number>,
 *    "details":"<text as it was hashed>" or null,"digest":"<hex>","hash":"<hex>"}    one a row
 *   {"to":500,"rows":500,"after":"<hex>"} */

/* The rows after the lane's last segment, into a file in `dir`, which is made if it is not
 * there. */
struct rp_segment_ask {
    const char *dir;
    int64_t lane;
    int64_t to_max;              /* not past this row */
    int64_t older_than_ms;       /* ends before the first row that is not older */
    int64_t rows_max, bytes_max; /* 0: as above */
};
/* `out` is what is to be sealed. Ends before it begins (to_seq < from_seq): there is nothing, and
 * no file. RP_ECORRUPT: S5. RP_EBUSY: somebody else exports this lane. */
int rp_segment_export(struct rp_db *db, const struct rp_segment_ask *ask, struct rp_segment *out, struct rp_error *err);

/* Reads a file and proves it by itself. RP_ECORRUPT: `err` names the first line that is wrong. */
struct rp_segment_file {
    struct rp_segment segment; /* lane, rows, hashes, times, bytes, SHA-256 */
    char catalog[40];
    int64_t erased;
};
int rp_segment_read(const char *path, rp_audit_fn *fn, void *ctx, struct rp_segment_file *out, struct rp_error *err);
/* The SHA-256 of a file, whatever is in it. */
int rp_segment_sum(const char *path, uint8_t out[RP_DIGEST_BYTES], struct rp_error *err);
/* RP_EINVAL: too long. */
int rp_segment_path(const char *dir, const char *file, char out[RP_SEGMENT_PATH], struct rp_error *err);

#endif
