/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - rows of the audit log: first sealed into segments, then let go
 * (catalog/audit/segment.h). The look writes the file; the command seals it. */
#include "base/error.h"
#include "base/id.h"
#include "catalog/audit/segment.h"
#include "core/retention/steps.h"

#define EXPORTED INT64_MAX /* cursor.audit.seen: not again in this run */

/* ---- what may go ---- */

static int64_t sealable_to(const struct rp_segment_lane *lane, const struct rp_segment_reader *reader)
{
    return reader->seq < lane->head_seq ? reader->seq : lane->head_seq - 1;
}

struct counting {
    struct rp_ids *out;
    int64_t to_seq, before_ms;
    bool ended;
};

static int count_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct counting *c = ctx;
    (void)err;
    c->ended |= row->seq > c->to_seq || row->at_ms >= c->before_ms;
    if (!c->ended) c->out->at[c->out->n++] = row->seq;
    return 0;
}

static int count_rows(struct rp_db *db, const struct rp_segment_lane *lane, int64_t to_seq,
                      struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    struct counting c = { .out = out, .to_seq = to_seq, .before_ms = batch->before_ms };
    size_t n = 0;
    if (lane->sealed_seq > c.to_seq) c.to_seq = lane->sealed_seq;
    int r = rp_audit_tail(db, lane->lane, batch->cursor.audit.seen, (size_t)batch->limit, count_row, &c, &n, err);
    if (r == 0 && out->n > 0) batch->cursor.audit.seen = out->at[out->n - 1];
    return r;
}

static void find_sealed(const struct rp_segment_lane *lane, const struct rp_retention_batch *batch, struct rp_ids *out)
{
    for (int64_t seq = lane->first_seq; seq <= lane->sealed_seq && out->n < (size_t)batch->limit; seq++)
        out->at[out->n++] = seq;
}

static int export_lane(struct rp_db *db, struct rp_arena *arena, const struct rp_segment_lane *lane, int64_t to_seq,
                       struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    const struct rp_segment_ask ask = {
        .dir = batch->rules->segments, .lane = lane->lane, .to_max = to_seq, .older_than_ms = batch->before_ms
    };
    struct rp_segment *segment = rp_arena_alloc(arena, sizeof *segment);
    if (segment == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a segment");
    if (batch->cursor.audit.seen == EXPORTED) return 0;
    int r = rp_segment_export(db, &ask, segment, err);
    if (r < 0 || segment->to_seq < segment->from_seq) return r;
    bool full =
        segment->to_seq - segment->from_seq + 1 == RP_SEGMENT_ROWS_MAX || segment->bytes >= RP_SEGMENT_BYTES_MAX;
    batch->cursor.audit.seen = full && segment->from_seq > batch->cursor.audit.seen ? segment->from_seq : EXPORTED;
    segment->run_id = batch->run_id;
    batch->found = segment;
    out->at[out->n++] = segment->to_seq;
    return 0;
}

static int look_at_lane(struct rp_db *db, struct rp_arena *arena, const struct rp_segment_lane *lane,
                        struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    struct rp_segment_reader reader;
    bool has_sealed = lane->first_seq > 0 && lane->first_seq <= lane->sealed_seq;
    if (lane->first_seq == 0 || (!has_sealed && lane->first_at_ms >= batch->before_ms)) return 0;
    int r = rp_segment_reader(db, lane->lane, &reader, err);
    if (r < 0) return r;
    int64_t to_seq = sealable_to(lane, &reader);
    if (batch->dry_run) return count_rows(db, lane, to_seq, batch, out, err);
    if (has_sealed) find_sealed(lane, batch, out);
    return has_sealed || to_seq < lane->first_seq ? 0 : export_lane(db, arena, lane, to_seq, batch, out, err);
}

int rp_retention_find_audit(const struct rp_retention_step *step, struct rp_db *db, struct rp_arena *arena,
                            struct rp_retention_batch *batch, struct rp_ids *out, struct rp_error *err)
{
    (void)step;
    size_t n = 0;
    struct rp_segment_lane *lanes = rp_arena_array(arena, RP_LANE_MAX + 1, sizeof *lanes);
    if (lanes == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the lanes");
    int r = rp_segment_lanes(db, lanes, RP_LANE_MAX + 1, &n, err);
    for (size_t i = 0; r == 0 && i < n && out->n == 0; i++) {
        if (lanes[i].lane < batch->cursor.audit.lane) continue;
        if (lanes[i].lane > batch->cursor.audit.lane) batch->cursor.audit.seen = 0;
        batch->cursor.audit.lane = lanes[i].lane;
        r = look_at_lane(db, arena, &lanes[i], batch, out, err);
    }
    batch->more = out->n > 0;
    return r;
}

/* ---- let go ---- */

int rp_retention_let_go_audit(const struct rp_retention_step *step, struct rp_tx *tx, struct rp_retention_batch *batch,
                              const struct rp_ids *ids, struct rp_error *err)
{
    (void)step;
    if (ids->n == 0) return 0;
    if (batch->found == NULL)
        return rp_segment_let_go(tx, batch->cursor.audit.lane, ids->at[0], ids->at[ids->n - 1], &batch->gone, err);
    int r = rp_segment_seal(tx, batch->found, batch->before_ms, batch->actor, err);
    if (r != RP_ECHANGED) return r;
    rp_error_clear(err); /* another run exports it again */
    return 0;
}
