/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/audit/audit.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/audit/chain.h"
#include "catalog/audit/segment.h"
#include "catalog/statements/statements.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS     10
#define DETAILS_MAX 65536

/* ---- append ---- */

static int grow(struct rp_tx *tx, struct rp_error *err)
{
    size_t cap = tx->cap_audit == 0 ? 64 : tx->cap_audit * 2;
    struct rp_value *rows = rp_arena_array(tx->arena, cap * COLUMNS, sizeof *rows);
    if (rows == NULL) return rp_error_set(err, RP_ETOOBIG, "too many changes in one transaction");
    if (tx->n_audit > 0) memcpy(rows, tx->audit, tx->n_audit * COLUMNS * sizeof *rows);
    tx->audit = rows;
    tx->cap_audit = cap;
    return 0;
}

static int details_text(struct rp_tx *tx, const struct rp_audit_entry *entry, const char **out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(DETAILS_MAX);
    *out = entry->text;
    if (entry->details == NULL && entry->text != NULL) return 0;
    int r = rp_json_write(&text, entry->details);
    if (r < 0) return rp_error_set(err, r, "audit: %s for the details", r == RP_ENOMEM ? "no memory" : "no room");
    *out = rp_arena_copy(tx->arena, text.data, text.len);
    return *out != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "audit: out of memory");
}

static int append(struct rp_tx *tx, const struct rp_audit_entry *entry, struct rp_error *err)
{
    struct rp_audit_row row = { .lane = tx->catalog->lane,
                                .seq = tx->seq + 1,
                                .at_ms = tx->late_ms,
                                .mark_id = entry->mark_id,
                                .tenant_id = entry->tenant_id,
                                .event = entry->event };
    row.actor = rp_arena_strdup(tx->arena, entry->actor);
    uint8_t *digests = rp_arena_alloc(tx->arena, 2 * (size_t)RP_DIGEST_BYTES);
    if (row.actor == NULL || digests == NULL) return rp_error_set(err, RP_ENOMEM, "audit: out of memory");
    int r = details_text(tx, entry, &row.details, err);
    if (r == 0 && tx->n_audit == tx->cap_audit) r = grow(tx, err);
    if (r < 0) return r;
    rp_audit_digest_of(tx->catalog->digest, row.details, row.digest);
    rp_audit_chain(tx->catalog->digest, tx->head, &row, row.hash);
    memcpy(digests, row.digest, RP_DIGEST_BYTES);
    memcpy(digests + RP_DIGEST_BYTES, row.hash, RP_DIGEST_BYTES);
    const struct rp_value values[COLUMNS] = {
        rp_int(row.lane),
        rp_int(row.seq),
        rp_int(row.at_ms),
        rp_text(row.event),
        rp_text(row.actor),
        rp_int_or_null(row.mark_id != 0, row.mark_id),
        rp_int(row.tenant_id),
        rp_text(row.details),
        rp_bytes(digests, RP_DIGEST_BYTES),
        rp_bytes(digests + RP_DIGEST_BYTES, RP_DIGEST_BYTES),
    };
    memcpy(&tx->audit[tx->n_audit * COLUMNS], values, sizeof values);
    tx->n_audit++;
    tx->seq = row.seq;
    memcpy(tx->head, row.hash, RP_DIGEST_BYTES);
    return 0;
}

int rp_tx_audit(struct rp_tx *tx, const struct rp_audit_entry *entry, struct rp_error *err)
{
    RP_ASSERT(strchr(entry->event, '.') != NULL);
    int r = append(tx, entry, err);
    json_decref(entry->details);
    return r;
}

/* ---- heads: each lane's chain tells how far the others were ---- */

struct heads {
    json_t *list;
    int own;
};

static int head_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct heads *heads = ctx;
    char hex[RP_DIGEST_HEX];
    if (row[0].i == heads->own || row[1].i == 0) return 0;
    if (row[2].n != RP_DIGEST_BYTES)
        return rp_error_set(err, RP_ECORRUPT, "lane %lld: its head is no digest", (long long)row[0].i);
    rp_digest_hex((const uint8_t *)row[2].p, hex);
    json_t *head = json_pack("{s:I,s:I,s:s}", "lane", (json_int_t)row[0].i, "seq", (json_int_t)row[1].i, "hash", hex);
    if (rp_json_append(heads->list, head) < 0) return rp_error_set(err, RP_ENOMEM, "audit: out of memory");
    return 0;
}

static int record_heads(struct rp_tx *tx, struct rp_error *err)
{
    struct heads heads = { .list = json_array(), .own = tx->catalog->lane };
    int r = rp_db_query(tx->db, RP_SQL(lane_list), NULL, head_row, &heads, err);
    if (r < 0 || json_array_size(heads.list) == 0) {
        json_decref(heads.list);
        return r;
    }
    struct rp_audit_entry entry = { .event = "audit.heads",
                                    .actor = "reprieve",
                                    .details = json_pack("{s:o}", "heads", heads.list) };
    tx->heads_at = tx->late_ms;
    return rp_tx_audit(tx, &entry, err);
}

int rp_audit_flush(struct rp_tx *tx, struct rp_error *err)
{
    int r = 0;
    if (tx->n_audit == 0) return 0;
    if (tx->late_ms - tx->heads_at >= RP_HOUR_MS) r = record_heads(tx, err);
    if (r == 0) r = rp_db_exec_rows(tx->db, RP_SQL(audit_add), NULL, tx->audit, tx->n_audit, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "append to the audit log") : 0;
}

/* ---- read ---- */

struct reader {
    rp_audit_fn *fn;
    void *ctx;
    int64_t last_seq;
    size_t rows;
};

static int read_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct reader *reader = ctx;
    struct rp_audit_row row = { .lane = v[0].i,
                                .seq = v[1].i,
                                .at_ms = v[2].i,
                                .event = v[3].p,
                                .actor = v[4].p,
                                .mark_id = v[5].type == RP_NULL_T ? 0 : v[5].i,
                                .tenant_id = v[6].i,
                                .details = v[7].type == RP_NULL_T ? NULL : v[7].p,
                                .tenant = v[10].type == RP_NULL_T ? NULL : v[10].p };
    if (v[8].n != RP_DIGEST_BYTES || v[9].n != RP_DIGEST_BYTES)
        return rp_error_set(err, RP_ECORRUPT, "audit row %lld.%lld: no digest", (long long)row.lane,
                            (long long)row.seq);
    memcpy(row.digest, v[8].p, RP_DIGEST_BYTES);
    memcpy(row.hash, v[9].p, RP_DIGEST_BYTES);
    reader->last_seq = row.seq;
    reader->rows++;
    return reader->fn(reader->ctx, &row, err);
}

int rp_audit_row_keep(const struct rp_audit_row *row, struct rp_arena *arena, struct rp_audit_row *out,
                      struct rp_error *err)
{
    const char **const texts[] = { &out->event, &out->actor, &out->details, &out->tenant };
    *out = *row;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i] == NULL) continue;
        *texts[i] = rp_arena_strdup(arena, *texts[i]);
        if (*texts[i] == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the audit log");
    }
    return 0;
}

int rp_audit_of_mark(struct rp_db *db, int64_t mark_id, rp_audit_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_int(mark_id);
    struct reader reader = { .fn = fn, .ctx = ctx };
    return rp_db_query(db, RP_SQL(audit_of_mark), &arg, read_row, &reader, err);
}

int rp_audit_lane(struct rp_db *db, int64_t lane, int64_t after_seq, rp_audit_fn *fn, void *ctx, struct rp_error *err)
{
    const size_t page = 1000;
    struct reader reader = { .fn = fn, .ctx = ctx, .last_seq = after_seq };
    do {
        struct rp_value args[] = { rp_int(lane), rp_int(reader.last_seq), rp_int((int64_t)page) };
        reader.rows = 0;
        int r = rp_db_query(db, RP_SQL(audit_page), args, read_row, &reader, err);
        if (r != 0) return r;
    } while (reader.rows == page);
    return 0;
}

int rp_audit_tail(struct rp_db *db, int64_t lane, int64_t after_seq, size_t max, rp_audit_fn *fn, void *ctx, size_t *n,
                  struct rp_error *err)
{
    struct rp_value args[] = { rp_int(lane), rp_int(after_seq), rp_int((int64_t)max) };
    struct reader reader = { .fn = fn, .ctx = ctx };
    int r = rp_db_query(db, RP_SQL(audit_page), args, read_row, &reader, err);
    if (r == 0) *n = reader.rows;
    return r;
}

struct ends {
    struct rp_audit_head *out;
    size_t n, max;
};

static int end_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct ends *ends = ctx;
    if (ends->n == ends->max) return rp_error_set(err, RP_ETOOBIG, "more than %zu lanes", ends->max);
    ends->out[ends->n++] = (struct rp_audit_head){ .lane = row[0].i, .seq = row[1].i };
    return 0;
}

int rp_audit_heads(struct rp_db *db, struct rp_audit_head *out, size_t max, size_t *n, struct rp_error *err)
{
    struct ends ends = { .out = out, .max = max };
    int r = rp_db_query(db, RP_SQL(lane_list), NULL, end_row, &ends, err);
    if (r == 0) *n = ends.n;
    return r;
}

struct lanes {
    int64_t *out;
    size_t n, max;
};

static int lane_number(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct lanes *lanes = ctx;
    if (lanes->n == lanes->max) return rp_error_set(err, RP_ETOOBIG, "more than %zu lanes", lanes->max);
    lanes->out[lanes->n++] = row[0].i;
    return 0;
}

int rp_audit_lanes(struct rp_db *db, int64_t *out, size_t max, size_t *n, struct rp_error *err)
{
    struct lanes lanes = { .out = out, .max = max };
    int r = rp_db_query(db, RP_SQL(audit_lanes), NULL, lane_number, &lanes, err);
    if (r == 0) *n = lanes.n;
    return r;
}

/* ---- erase ---- */

int rp_audit_erase(struct rp_tx *tx, int64_t lane, int64_t seq, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(lane), rp_int(seq) };
    int64_t changed = 0;
    int r = rp_segment_guard_row(tx, lane, seq, err);
    if (r == 0) r = rp_db_exec(tx->db, RP_SQL(audit_erase), args, &changed, err);
    if (r < 0) return r;
    if (changed == 0) return rp_error_set(err, RP_ENOTFOUND, "no audit row %lld.%lld", (long long)lane, (long long)seq);
    return 0;
}
