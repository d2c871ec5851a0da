/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/alert.h"

#include "base/error.h"
#include "base/id.h"
#include "base/time.h"
#include "catalog/statements/statements.h"

#include <stdio.h>

#define LOOKED_AT_MAX 5000 /* marks of each index; the rest are younger, or are looked at later */

struct each {
    rp_alert_fn *fn;
    rp_held_lock_fn *lock_fn;
    void *ctx;
};

static int alert_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct each *each = ctx;
    struct rp_alert_row row = {
        .raised_at_ms = v[2].i, .cleared_at_ms = v[3].i, .told_at_ms = v[5].i, .tries = v[6].i
    };
    snprintf(row.name, sizeof row.name, "%s", v[0].p);
    snprintf(row.severity, sizeof row.severity, "%s", v[1].p);
    snprintf(row.details, sizeof row.details, "%s", v[4].p);
    return each->fn(each->ctx, &row, err);
}

int rp_alert_each(struct rp_db *db, rp_alert_fn *fn, void *ctx, struct rp_error *err)
{
    struct each each = { .fn = fn, .ctx = ctx };
    int r = rp_db_query(db, RP_SQL(alert_list), NULL, alert_row, &each, err);
    return r < 0 ? rp_error_wrap(err, r, "list alerts") : 0;
}

static int change(struct rp_tx *tx, const struct rp_sql *sql, const struct rp_value *args, const char *name,
                  bool *changed, struct rp_error *err)
{
    int64_t n = 0;
    int r = rp_db_exec(tx->db, sql, args, &n, err);
    if (r < 0) return rp_error_wrap(err, r, "alert '%s'", name);
    *changed = n > 0;
    return 0;
}

int rp_alert_raise(struct rp_tx *tx, const char *name, const char *severity, const char *details, bool *changed,
                   struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_text(severity), rp_int(tx->late_ms), rp_text(details) };
    return change(tx, RP_SQL(alert_raise), args, name, changed, err);
}

int rp_alert_clear(struct rp_tx *tx, const char *name, const char *details, bool *changed, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(tx->late_ms), rp_text(details) };
    return change(tx, RP_SQL(alert_clear), args, name, changed, err);
}

int rp_alert_try(struct rp_tx *tx, const struct rp_alert_row *row, bool *mine, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(row->name), rp_int(row->raised_at_ms),
                               rp_int_or_null(row->cleared_at_ms != 0, row->cleared_at_ms), rp_int(row->tries) };
    return change(tx, RP_SQL(alert_try), args, row->name, mine, err);
}

int rp_alert_told(struct rp_tx *tx, const struct rp_alert_row *row, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(row->name), rp_int(row->raised_at_ms),
                               rp_int_or_null(row->cleared_at_ms != 0, row->cleared_at_ms), rp_int(tx->late_ms) };
    bool changed;
    return change(tx, RP_SQL(alert_told), args, row->name, &changed, err);
}

/* ---- figures ---- */

/* Two indexes hold what can be past due: what waits for its turn, by turn; and what was claimed and
 * failed, whose next turn may be later than now. */
int rp_figure_oldest_due(struct rp_db *db, int64_t store_id, int64_t now_ms, int64_t *oldest_ms, struct rp_error *err)
{
    struct rp_value waiting[] = { rp_int(store_id), rp_int(now_ms + RP_HOUR_MS), rp_int(LOOKED_AT_MAX) };
    struct rp_value claimed[] = { rp_int(store_id), rp_int(LOOKED_AT_MAX) };
    struct rp_one a = { .columns = 2 }, b = { .columns = 2 };
    int r = rp_db_query(db, RP_SQL(figure_overdue), waiting, rp_one_row, &a, err);
    if (r == 0) r = rp_db_query(db, RP_SQL(figure_claimed), claimed, rp_one_row, &b, err);
    if (r < 0) return rp_error_wrap(err, r, "the oldest mark past due");
    int64_t oldest = a.i[0] > 0 ? a.i[1] : 0;
    if (b.i[0] > 0 && (oldest == 0 || b.i[1] < oldest)) oldest = b.i[1];
    *oldest_ms = oldest <= now_ms ? oldest : 0;
    return 0;
}

int rp_figure_runs(struct rp_db *db, int64_t since_ms, struct rp_run_counts *out, struct rp_error *err)
{
    struct rp_value since = rp_int(rp_id_floor(since_ms > 0 ? since_ms : 0));
    struct rp_one runs = { 0 }, errors = { 0 };
    int r = rp_db_query(db, RP_SQL(figure_runs), &since, rp_one_row, &runs, err);
    if (r == 0) r = rp_db_query(db, RP_SQL(figure_run_errors), &since, rp_one_row, &errors, err);
    if (r < 0) return rp_error_wrap(err, r, "count runs");
    *out = (struct rp_run_counts){ .runs = runs.i[0], .errors = errors.i[0] };
    return 0;
}

static int one(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *args, int64_t *out,
               struct rp_error *err)
{
    struct rp_one found = { 0 };
    int r = rp_db_query(db, sql, args, rp_one_row, &found, err);
    if (r == 0) *out = found.i[0];
    return r;
}

int rp_figure_last_run(struct rp_db *db, int64_t *finished_at_ms, struct rp_error *err)
{
    struct rp_value before = rp_int(INT64_MAX);
    return one(db, RP_SQL(figure_last_run), &before, finished_at_ms, err);
}

int rp_figure_last_run_of(struct rp_db *db, const char *kind, const char *name, int64_t *finished_at_ms,
                          struct rp_error *err)
{
    struct rp_value args[] = { rp_text(kind), rp_text(name) };
    int64_t last_ms = 0;
    int r = one(db, RP_SQL(figure_last_run_of), args, &last_ms, err);
    if (r == 0) *finished_at_ms = last_ms;
    return r;
}

int rp_figure_abandoned(struct rp_db *db, int64_t since_ms, int64_t most, int64_t *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(since_ms), rp_int(most) };
    return one(db, RP_SQL(figure_abandoned), args, out, err);
}

static int lock_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct each *each = ctx;
    struct rp_held_lock lock = { .locked_at_ms = v[2].i, .run_id = v[3].i };
    snprintf(lock.name, sizeof lock.name, "%s", v[0].p);
    snprintf(lock.locked_by, sizeof lock.locked_by, "%s", v[1].p);
    return each->lock_fn(each->ctx, &lock, err);
}

int rp_lock_each_held(struct rp_db *db, const char *name, rp_held_lock_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_text(name);
    struct each each = { .lock_fn = fn, .ctx = ctx };
    if (name == NULL) return rp_db_query(db, RP_SQL(lock_held), NULL, lock_row, &each, err);
    return rp_db_query(db, RP_SQL(lock_peek), &arg, lock_row, &each, err);
}
