/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/mark/restore.h"

#include "base/error.h"
#include "base/id.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

static struct rp_value time_or_null(int64_t ms)
{
    return rp_int_or_null(ms >= 0, ms);
}

int rp_restore_add(struct rp_tx *tx, const struct rp_restore_row *row, struct rp_error *err)
{
    const struct rp_restore_filter *f = &row->filter;
    int64_t epoch;
    struct rp_value args[] = { rp_int(row->run_id),
                               rp_int_or_null(f->run_id != 0, f->run_id),
                               rp_int_or_null(f->store_id != 0, f->store_id),
                               rp_text(f->store_id != 0 ? f->prefix : NULL),
                               rp_text(f->reason),
                               rp_text(f->actor),
                               time_or_null(f->since_ms),
                               time_or_null(f->until_ms),
                               rp_int(f->upto_id),
                               rp_text(row->asked_by) };
    int r = rp_meta_raise(tx->db, "hold_epoch", 0, &epoch, err);
    if (r == 0) r = rp_db_exec(tx->db, RP_SQL(restore_add), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "note what a restore is about") : 0;
}

struct reading {
    struct rp_restore_row *row;
    struct rp_arena *arena;
    bool found;
};

static int64_t time_of(const struct rp_value *v)
{
    return v->type == RP_NULL_T ? -1 : v->i;
}

static int read_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct reading *r = ctx;
    bool failed = false;
    r->found = true;
    r->row->filter = (struct rp_restore_filter){ .run_id = v[0].i,
                                                 .store_id = v[1].i,
                                                 .prefix = rp_row_keep(r->arena, &v[2], &failed),
                                                 .reason = rp_row_keep(r->arena, &v[3], &failed),
                                                 .actor = rp_row_keep(r->arena, &v[4], &failed),
                                                 .since_ms = time_of(&v[5]),
                                                 .until_ms = time_of(&v[6]),
                                                 .upto_id = v[7].i };
    r->row->asked_by = rp_row_keep(r->arena, &v[8], &failed);
    r->row->total = v[9].type == RP_NULL_T ? -1 : v[9].i;
    r->row->cursor = (struct rp_restore_cursor){ .stage = v[10].i, .id = v[11].i };
    return failed ? rp_error_set(err, RP_ENOMEM, "no memory for a restore") : 0;
}

int rp_restore_get(struct rp_db *db, int64_t run_id, struct rp_arena *arena, struct rp_restore_row *out,
                   struct rp_error *err)
{
    struct rp_restore_row row = { .run_id = run_id };
    struct reading reading = { .row = &row, .arena = arena };
    struct rp_value arg = rp_int(run_id);
    char text[RP_ID_TEXT];
    int r = rp_db_query(db, RP_SQL(restore_get), &arg, read_row, &reading, err);
    if (r == 0 && !reading.found)
        r = rp_error_set(err, RP_ENOTFOUND, "%s is no restore", rp_id_format(RP_ID_RUN, run_id, text));
    if (r < 0) return rp_error_wrap(err, r, "load what a restore is about");
    *out = row;
    return 0;
}

int rp_restore_counted(struct rp_tx *tx, int64_t run_id, int64_t total, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(run_id), rp_int(total) };
    int r = rp_db_exec(tx->db, RP_SQL(restore_counted), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "note how much a restore is about") : 0;
}

int rp_restore_step(struct rp_tx *tx, int64_t run_id, const struct rp_restore_cursor *cursor, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(run_id), rp_int(cursor->stage), rp_int(cursor->id) };
    int r = rp_db_exec(tx->db, RP_SQL(restore_step), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "note how far a restore is") : 0;
}

int rp_restore_keeps(struct rp_db *db, int64_t store_id, int64_t now_ms, int64_t *n, struct rp_error *err)
{
    const struct rp_value args[] = { rp_int(store_id), rp_int(now_ms) };
    struct rp_one one = { 0 };
    int r = rp_db_query(db, RP_SQL(restore_keeps), args, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "count what open restores keep");
    *n = one.i[0];
    return 0;
}

int rp_marks_these(struct rp_db *db, const int64_t *ids, size_t n, struct rp_marks *out, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(mark_these), out->arena, ids, n);
    int r = rp_rows_query(&rows, db, NULL, rp_marks_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load marks") : 0;
}

int rp_marks_last_id(struct rp_db *db, int64_t *id, struct rp_error *err)
{
    struct rp_one one = { 0 };
    int r = rp_db_query(db, RP_SQL(mark_last_id), NULL, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "look for the newest mark");
    *id = one.i[0];
    return 0;
}
