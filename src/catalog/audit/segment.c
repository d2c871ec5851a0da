/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/audit/segment.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "catalog/statements/statements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE 256

/* ---- read ---- */

static int read_row(const struct rp_value *v, struct rp_segment *out, struct rp_error *err)
{
    *out = (struct rp_segment){ .lane = v[0].i,
                                .from_seq = v[1].i,
                                .to_seq = v[2].i,
                                .first_at_ms = v[5].i,
                                .last_at_ms = v[6].i,
                                .with_details = v[7].i,
                                .bytes = v[9].i,
                                .sealed_at_ms = v[11].i,
                                .run_id = v[12].i };
    int n = snprintf(out->file, sizeof out->file, "%s", v[8].p);
    bool fits = n > 0 && (size_t)n < sizeof out->file && strchr(out->file, '/') == NULL;
    if (!fits || v[3].n != RP_DIGEST_BYTES || v[4].n != RP_DIGEST_BYTES || v[10].n != RP_DIGEST_BYTES)
        return rp_error_set(err, RP_ECORRUPT, "segment %" PRId64 ".%" PRId64 "-%" PRId64 " cannot be read", out->lane,
                            out->from_seq, out->to_seq);
    memcpy(out->before, v[3].p, RP_DIGEST_BYTES);
    memcpy(out->after, v[4].p, RP_DIGEST_BYTES);
    memcpy(out->sha256, v[10].p, RP_DIGEST_BYTES);
    return 0;
}

struct reading {
    rp_segment_fn *fn; /* NULL: only the last one is wanted */
    void *ctx;
    int64_t lane; /* -1: all */
    struct rp_segment last;
    size_t n;
};

static int take_segment(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct reading *reading = ctx;
    int r = read_row(row, &reading->last, err);
    reading->n++;
    if (r < 0 || reading->fn == NULL || (reading->lane >= 0 && reading->last.lane != reading->lane)) return r;
    return reading->fn(reading->ctx, &reading->last, err);
}

static int read_page(struct rp_db *db, struct reading *reading, size_t max, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(reading->last.lane), rp_int(reading->last.to_seq), rp_int((int64_t)max) };
    reading->n = 0;
    int r = rp_db_query(db, RP_SQL(segment_page), args, take_segment, reading, err);
    return r < 0 ? rp_error_wrap(err, r, "read the segments of the audit log") : 0;
}

int rp_segment_page(struct rp_db *db, int64_t after_lane, int64_t after_seq, size_t max, rp_segment_fn *fn, void *ctx,
                    size_t *n, struct rp_error *err)
{
    struct reading reading = { .fn = fn, .ctx = ctx, .lane = -1, .last = { .lane = after_lane, .to_seq = after_seq } };
    int r = read_page(db, &reading, max, err);
    if (r == 0) *n = reading.n;
    return r;
}

int rp_segment_each(struct rp_db *db, int64_t lane, rp_segment_fn *fn, void *ctx, struct rp_error *err)
{
    struct reading reading = { .fn = fn, .ctx = ctx, .lane = lane, .last = { .lane = lane } };
    int r;
    do
        r = read_page(db, &reading, PAGE, err);
    while (r == 0 && reading.n == PAGE && (lane < 0 || reading.last.lane == lane));
    return r;
}

static int get_one(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, struct rp_segment *out,
                   struct rp_error *err)
{
    struct reading reading = { .lane = -1 };
    int r = rp_db_query(db, sql, args, take_segment, &reading, err);
    if (r < 0) return rp_error_wrap(err, r, "read a segment of the audit log");
    *out = reading.last;
    return reading.n > 0 ? 0 : rp_error_set(err, RP_ENOTFOUND, "no segment of the audit log");
}

int rp_segment_last(struct rp_db *db, int64_t lane, struct rp_segment *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(lane);
    int r = get_one(db, RP_SQL(segment_last), &arg, out, err);
    if (r != RP_ENOTFOUND) return r;
    *out = (struct rp_segment){ .lane = lane };
    rp_error_clear(err);
    return 0;
}

int rp_segment_of_row(struct rp_db *db, int64_t lane, int64_t seq, struct rp_segment *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(lane), rp_int(seq) };
    return get_one(db, RP_SQL(segment_of_row), args, out, err);
}

int rp_segment_of_time(struct rp_db *db, int64_t from_ms, int64_t to_ms, rp_segment_fn *fn, void *ctx,
                       struct rp_error *err)
{
    struct rp_value args[] = { rp_int(from_ms), rp_int(to_ms) };
    struct reading reading = { .fn = fn, .ctx = ctx, .lane = -1 };
    return rp_db_query(db, RP_SQL(segment_of_time), args, take_segment, &reading, err);
}

struct lanes {
    struct rp_segment_lane *out;
    size_t n, max;
};

static int take_lane(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct lanes *lanes = ctx;
    if (lanes->n == lanes->max) return rp_error_set(err, RP_ETOOBIG, "more than %zu lanes", lanes->max);
    lanes->out[lanes->n++] = (struct rp_segment_lane){
        .lane = v[0].i, .head_seq = v[1].i, .sealed_seq = v[2].i, .first_seq = v[3].i, .first_at_ms = v[4].i
    };
    return 0;
}

int rp_segment_lanes(struct rp_db *db, struct rp_segment_lane *out, size_t max, size_t *n, struct rp_error *err)
{
    struct lanes lanes = { .out = out, .max = max };
    int r = rp_db_query(db, RP_SQL(segment_lanes), NULL, take_lane, &lanes, err);
    if (r < 0) return rp_error_wrap(err, r, "read how far the audit log is sealed");
    *n = lanes.n;
    return 0;
}

static int take_reader(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_segment_reader *reader = ctx;
    (void)err;
    snprintf(reader->name, sizeof reader->name, "%s", v[0].p);
    reader->seq = v[1].i;
    return 0;
}

int rp_segment_reader(struct rp_db *db, int64_t lane, struct rp_segment_reader *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(lane);
    *out = (struct rp_segment_reader){ .seq = INT64_MAX };
    int r = rp_db_query(db, RP_SQL(segment_reader), &arg, take_reader, out, err);
    return r < 0 ? rp_error_wrap(err, r, "read the cursors of lane %" PRId64, lane) : 0;
}

/* ---- seal ---- */

struct counted {
    int64_t rows, with_details;
};

static int take_counts(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    (void)err;
    *(struct counted *)ctx = (struct counted){ .rows = v[0].i, .with_details = v[1].i };
    return 0;
}

/* Details can only have gone since, and no row can: with as many of both, the rows are what the
 * file says. */
static int check_rows(struct rp_tx *tx, const struct rp_segment *s, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(s->lane), rp_int(s->from_seq), rp_int(s->to_seq) };
    struct counted counted = { 0 };
    int r = rp_db_query(tx->db, RP_SQL(segment_rows), args, take_counts, &counted, err);
    if (r < 0) return r;
    if (counted.rows == s->to_seq - s->from_seq + 1 && counted.with_details == s->with_details) return 0;
    return rp_error_set(err, RP_ECHANGED, "its rows are not as they were exported");
}

static int check_place(struct rp_tx *tx, const struct rp_segment *s, int64_t older_than_ms, struct rp_error *err)
{
    struct rp_segment last;
    struct rp_segment_reader reader;
    int r = rp_segment_last(tx->db, s->lane, &last, err);
    if (r < 0) return r;
    bool follows = s->from_seq == last.to_seq + 1 && memcmp(s->before, last.after, sizeof last.after) == 0;
    if (!follows) return rp_error_set(err, RP_ECHANGED, "the lane was sealed up to row %" PRId64, last.to_seq);
    if (s->last_at_ms >= older_than_ms) return rp_error_set(err, RP_ECHANGED, "its rows are not old enough");
    r = rp_segment_reader(tx->db, s->lane, &reader, err);
    if (r < 0 || reader.seq >= s->to_seq) return r;
    return rp_error_set(err, RP_ECHANGED, "reader '%s' has read up to row %" PRId64, reader.name, reader.seq);
}

static int add_segment(struct rp_tx *tx, const struct rp_segment *s, struct rp_error *err)
{
    struct rp_value args[] = {
        rp_int(s->lane),
        rp_int(s->from_seq),
        rp_int(s->to_seq),
        rp_bytes(s->before, RP_DIGEST_BYTES),
        rp_bytes(s->after, RP_DIGEST_BYTES),
        rp_int(s->first_at_ms),
        rp_int(s->last_at_ms),
        rp_int(s->with_details),
        rp_text(s->file),
        rp_int(s->bytes),
        rp_bytes(s->sha256, RP_DIGEST_BYTES),
        rp_int(tx->late_ms),
        rp_int(s->run_id),
    };
    return rp_db_exec(tx->db, RP_SQL(segment_add), args, NULL, err);
}

static int tell(struct rp_tx *tx, const struct rp_segment *s, const char *actor, struct rp_error *err)
{
    char after[RP_DIGEST_HEX], sha256[RP_DIGEST_HEX], run[RP_ID_TEXT];
    rp_digest_hex(s->after, after);
    rp_digest_hex(s->sha256, sha256);
    json_t *details =
        json_pack("{s:I,s:I,s:I,s:s,s:s,s:s}", "lane", (json_int_t)s->lane, "from", (json_int_t)s->from_seq, "to",
                  (json_int_t)s->to_seq, "after", after, "file", s->file, "sha256", sha256);
    if (s->run_id != 0) rp_json_set(details, "run", json_string(rp_id_format(RP_ID_RUN, s->run_id, run)));
    struct rp_audit_entry entry = { .event = "audit.sealed", .actor = actor, .details = details };
    return rp_tx_audit(tx, &entry, err);
}

int rp_segment_seal(struct rp_tx *tx, const struct rp_segment *s, int64_t older_than_ms, const char *actor,
                    struct rp_error *err)
{
    int64_t sealed = 0;
    RP_ASSERT(s->from_seq > 0 && s->to_seq >= s->from_seq);
    int r = rp_meta_raise(tx->db, "audit_sealed", 0, &sealed, err); /* first: it waits for whoever erases */
    if (r == 0) r = check_place(tx, s, older_than_ms, err);
    if (r == 0) r = check_rows(tx, s, err);
    if (r == 0) r = add_segment(tx, s, err);
    if (r == 0) r = tell(tx, s, actor, err);
    if (r == 0) return 0;
    return rp_error_wrap(err, r, "seal rows %" PRId64 "-%" PRId64 " of lane %" PRId64, s->from_seq, s->to_seq, s->lane);
}

int rp_segment_let_go(struct rp_tx *tx, int64_t lane, int64_t from_seq, int64_t to_seq, int64_t *gone,
                      struct rp_error *err)
{
    struct rp_value args[] = { rp_int(lane), rp_int(from_seq), rp_int(to_seq) };
    int r = rp_db_exec(tx->db, RP_SQL(segment_let_go), args, gone, err);
    return r < 0 ? rp_error_wrap(err, r, "let sealed rows of lane %" PRId64 " go", lane) : 0;
}

int rp_segment_guard_row(struct rp_tx *tx, int64_t lane, int64_t seq, struct rp_error *err)
{
    struct rp_one shared = { 0 };
    struct rp_segment s;
    int r = rp_db_query(tx->db, RP_SQL(segment_share), NULL, rp_one_row, &shared, err);
    if (r == 0) r = rp_segment_of_row(tx->db, lane, seq, &s, err);
    if (r == RP_ENOTFOUND) {
        rp_error_clear(err);
        return 0;
    }
    if (r < 0) return r;
    rp_error_set(err, RP_EGONE, "audit row %" PRId64 ".%" PRId64 " is sealed in %s", lane, seq, s.file);
    return rp_error_hint(err, "its details can be set to null in that file: the chain in it still proves itself");
}
