/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/run.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "catalog/statements/statements.h"

#include <stdio.h>

/* ---- locks ---- */

struct lock_out {
    struct rp_lock_row *row;
    bool found;
};

static int lock_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct lock_out *out = ctx;
    (void)err;
    out->found = true;
    *out->row = (struct rp_lock_row){ .locked_at_ms = v[1].i, .fence = v[2].i, .run_id = v[3].i };
    snprintf(out->row->locked_by, sizeof out->row->locked_by, "%s", v[0].p);
    return 0;
}

int rp_lock_get(struct rp_tx *tx, const char *name, struct rp_lock_row *out, struct rp_error *err)
{
    struct rp_value make[] = { rp_text(name), rp_text("") };
    struct lock_out lock = { .row = out };
    int r = rp_db_exec(tx->db, RP_SQL(lock_make), make, NULL, err);
    if (r == 0) r = rp_db_query(tx->db, RP_SQL(lock_get), make, lock_row, &lock, err);
    if (r == 0 && !lock.found) r = rp_error_set(err, RP_ECONFLICT, "the row is gone");
    return r < 0 ? rp_error_wrap(err, r, "lock '%s'", name) : 0;
}

int rp_lock_take(struct rp_tx *tx, const char *name, const struct rp_lock_row *lock, const char *worker, int64_t run_id,
                 struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_text(worker), rp_int(tx->db_ms), rp_int(run_id), rp_int(lock->fence) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(lock_take), args, &changed, err);
    RP_ASSERT(r < 0 || changed == 1); /* held since rp_lock_get */
    return r < 0 ? rp_error_wrap(err, r, "take lock '%s'", name) : 0;
}

int rp_lock_renew(struct rp_tx *tx, const char *name, int64_t fence, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(fence), rp_int(tx->db_ms) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(lock_renew), args, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "renew lock '%s'", name);
    if (changed == 0) return rp_error_set(err, RP_ECHANGED, "lock '%s' was taken over by another run", name);
    return 0;
}

int rp_lock_release(struct rp_tx *tx, const char *name, int64_t fence, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(fence) };
    int r = rp_db_exec(tx->db, RP_SQL(lock_release), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "release lock '%s'", name) : 0;
}

int rp_lock_forget(struct rp_tx *tx, const char *name, int64_t fence, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(fence) };
    int r = rp_db_exec(tx->db, RP_SQL(lock_forget), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "forget lock '%s'", name) : 0;
}

/* ---- runs ---- */

int rp_run_add(struct rp_tx *tx, const struct rp_run_row *run, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(run->id),         rp_text(run->kind), rp_text(run->name),
                               rp_text(run->locked_by), rp_int(run->fence), rp_int(run->started_at_ms),
                               rp_text(run->figures) };
    int r = rp_db_exec(tx->db, RP_SQL(run_add), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "begin a run") : 0;
}

int rp_run_progress(struct rp_tx *tx, int64_t run_id, const char *figures, bool *cancelled, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(run_id), rp_text(figures) };
    struct rp_one one = { 0 };
    int r = rp_db_query(tx->db, RP_SQL(run_progress), args, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "note a run's progress");
    if (!one.found) return rp_error_set(err, RP_ECHANGED, "the run was closed by another one");
    *cancelled = one.i[0] != 0;
    return 0;
}

static int refuse_ended(int64_t run_id, struct rp_error *err)
{
    char text[RP_ID_TEXT];
    rp_error_set(err, RP_ENOTFOUND, "run %s is not under way", rp_id_format(RP_ID_RUN, run_id, text));
    return rp_error_hint(err, "`reprieve runs` lists those that are, and how the others ended");
}

int rp_run_cancel(struct rp_tx *tx, int64_t run_id, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(run_id), rp_int(tx->late_ms) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(run_cancel), args, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "cancel a run");
    return changed > 0 ? 0 : refuse_ended(run_id, err);
}

int rp_run_is_cancelled(struct rp_db *db, int64_t run_id, bool *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(run_id);
    struct rp_one one = { 0 };
    int r = rp_db_query(db, RP_SQL(run_cancelled), &arg, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "look whether a run was cancelled");
    *out = one.i[0] != 0;
    return 0;
}

int rp_run_taken(struct rp_tx *tx, const struct rp_run_row *run, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(run->id), rp_text(run->locked_by), rp_int(run->fence) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(run_taken), args, &changed, err);
    if (r == 0 && changed == 0) r = rp_error_set(err, RP_ECHANGED, "it has ended meanwhile");
    return r < 0 ? rp_error_wrap(err, r, "take a run over") : 0;
}

int rp_run_record(struct rp_tx *tx, const struct rp_record_row *record, struct rp_error *err)
{
    struct rp_value id = rp_int(record->run_id);
    struct rp_value args[] = { id,
                               rp_text(record->kind),
                               rp_text(record->name),
                               rp_text(record->outcome),
                               rp_int(record->started_at_ms),
                               rp_int(record->finished_at_ms),
                               rp_text(record->body),
                               rp_int(record->errors) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(run_close), &id, &changed, err);
    if (r == 0 && changed == 0) return rp_error_set(err, RP_EEXISTS, "the run has its record already");
    if (r == 0) r = rp_db_exec(tx->db, RP_SQL(restore_close), &id, NULL, err);
    if (r == 0) r = rp_db_exec(tx->db, RP_SQL(record_add), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "write a run's record") : 0;
}

struct each_run {
    rp_run_fn *fn;
    rp_record_fn *record_fn;
    void *ctx;
    bool found;
};

static int run_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct each_run *each = ctx;
    struct rp_run_row row = { .id = v[0].i,
                              .kind = v[1].p,
                              .name = v[2].p,
                              .locked_by = v[3].p,
                              .fence = v[4].i,
                              .started_at_ms = v[5].i,
                              .figures = v[6].p };
    each->found = true;
    return each->fn(each->ctx, &row, err);
}

static int record_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct each_run *each = ctx;
    struct rp_record_row row = { .run_id = v[0].i,
                                 .kind = v[1].p,
                                 .name = v[2].p,
                                 .outcome = v[3].p,
                                 .started_at_ms = v[4].i,
                                 .finished_at_ms = v[5].i,
                                 .body = v[6].p };
    each->found = true;
    return each->record_fn(each->ctx, &row, err);
}

int rp_run_get_open(struct rp_db *db, int64_t run_id, rp_run_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_int(run_id);
    struct each_run each = { .fn = fn, .ctx = ctx };
    int r = rp_db_query(db, RP_SQL(run_get), &arg, run_row, &each, err);
    return r < 0 || each.found ? r : refuse_ended(run_id, err);
}

int rp_run_each_open(struct rp_db *db, const char *lock, rp_run_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_text(lock);
    struct each_run each = { .fn = fn, .ctx = ctx };
    if (lock == NULL) return rp_db_query(db, RP_SQL(run_open_all), NULL, run_row, &each, err);
    return rp_db_query(db, RP_SQL(run_open), &arg, run_row, &each, err);
}

struct listing {
    int64_t *ids;
    size_t n, max;
};

static int keep_id(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct listing *l = ctx;
    (void)err;
    if (l->n < l->max) l->ids[l->n++] = v[0].i;
    return 0;
}

int rp_run_list_open(struct rp_db *db, const char *kind, int64_t *ids, size_t max, size_t *n, struct rp_error *err)
{
    const struct rp_value arg = rp_text(kind);
    struct listing l = { .ids = ids, .max = max };
    int r = rp_db_query(db, RP_SQL(run_open_kind), &arg, keep_id, &l, err);
    *n = l.n;
    return r < 0 ? rp_error_wrap(err, r, "list open runs") : 0;
}

int rp_record_get(struct rp_db *db, int64_t run_id, rp_record_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_int(run_id);
    struct each_run each = { .record_fn = fn, .ctx = ctx };
    char text[RP_ID_TEXT];
    int r = rp_db_query(db, RP_SQL(record_get), &arg, record_row, &each, err);
    if (r < 0 || each.found) return r;
    return rp_error_set(err, RP_ENOTFOUND, "no record of run %s", rp_id_format(RP_ID_RUN, run_id, text));
}

static int nothing_open(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    (void)ctx, (void)row, (void)err;
    return 0;
}

static int nothing_ended(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    (void)ctx, (void)row, (void)err;
    return 0;
}

int rp_run_find(struct rp_db *db, int64_t run_id, rp_run_fn *open, rp_record_fn *ended, void *ctx, struct rp_error *err)
{
    int r = rp_run_get_open(db, run_id, open != NULL ? open : nothing_open, ctx, err);
    if (r != RP_ENOTFOUND) return r;
    rp_error_clear(err);
    return rp_record_get(db, run_id, ended != NULL ? ended : nothing_ended, ctx, err);
}

int rp_record_each(struct rp_db *db, int64_t before_id, int64_t limit, rp_record_fn *fn, void *ctx,
                   struct rp_error *err)
{
    struct rp_value args[] = { rp_int(before_id), rp_int(limit) };
    struct each_run each = { .record_fn = fn, .ctx = ctx };
    return rp_db_query(db, RP_SQL(record_list), args, record_row, &each, err);
}
