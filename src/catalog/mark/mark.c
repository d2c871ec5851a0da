/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/mark/mark.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "base/time.h"
#include "catalog/file/file.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rp_state_final(enum rp_state state)
{
    return state == RP_PURGED || state == RP_REPRIEVED || state == RP_LOST;
}

/* ---- rows ---- */

int rp_marks_init(struct rp_marks *marks, size_t max, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_mark *at = rp_arena_room(arena, max, sizeof *at);
    *marks = (struct rp_marks){ 0 };
    if (at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", max);
    *marks = (struct rp_marks){ .at = at, .max = max, .arena = arena };
    return 0;
}

#define COLUMN(with, column, type, member) AT_##column,
enum { MARK_TABLE(COLUMN, COLUMN, ) };

struct reading {
    const struct rp_value *row;
    struct rp_arena *arena;
    bool failed;
};

#define READ(from, column, type, member) .member = READ_##type(from, AT_##column, member),
#define READ_i(from, at, member)         (__typeof__(((struct rp_mark *)0)->member))(from)->row[at].i
#define READ_s(from, at, member)         rp_row_keep((from)->arena, &(from)->row[at], &(from)->failed)

int rp_marks_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_marks *marks = ctx;
    struct reading from = { .row = row, .arena = marks->arena };
    RP_ASSERT(marks->n < marks->max);
    struct rp_mark m = { MARK_TABLE(READ, READ, &from) };
    if (from.failed) return rp_error_set(err, RP_ENOMEM, "no memory for a mark");
    if (m.state < RP_MARKED || m.state >= RP_STATES)
        return rp_error_set(err, RP_ECORRUPT, "mark %lld is in no state we know (%d)", (long long)m.id, (int)m.state);
    marks->at[marks->n++] = m;
    return 0;
}

/* ---- changes ---- */

#define CLAIM_PAGES 16

int rp_marks_add(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err)
{
    int64_t changed = 0;
    struct rp_rows rows = rp_rows_of(RP_SQL(mark_add), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_mark *m = &marks[i];
        RP_ASSERT(m->state == RP_MARKED && m->due_at_ms >= m->marked_at_ms);
        bool copy = rp_quarantine_is(m->key);
        RP_ASSERT(copy == (m->original != NULL)); /* or a hold on the original would not cover it */
        RP_ASSERT(copy || !m->in_place);
        /* asked about at once (confirmations), or looked at when it is due */
        int64_t next_at_ms = m->next_at_ms != 0 ? m->next_at_ms : m->due_at_ms;
        RP_ASSERT(next_at_ms == m->due_at_ms || (m->checks & RP_CHECK_CONFIRMATIONS) != 0);
        rp_rows_add(&rows,
                    RP_ROW(rp_int(m->id), rp_int(m->store_id), rp_text(m->key), rp_int(1), rp_int(m->state),
                           rp_int(m->state), rp_int(next_at_ms), rp_int(m->due_at_ms), rp_int(m->marked_at_ms),
                           rp_int(m->checks), rp_int(m->tenant_id), rp_int_or_null(m->run_id != 0, m->run_id),
                           rp_int(m->annotated), rp_text(m->etag), rp_text(m->version), rp_int(m->size_bytes),
                           rp_int(m->modified_ms), rp_text(m->reason), rp_text(m->actor),
                           rp_int_or_null(m->file_id != 0, m->file_id), rp_text(m->original), rp_int(m->in_place)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "add marks");
    if (changed != (int64_t)n) return rp_error_set(err, RP_ECONFLICT, "add marks: another writer was faster");
    return 0;
}

int rp_marks_active(struct rp_tx *tx, int64_t store_id, const char *const *keys, size_t n, struct rp_marks *out,
                    struct rp_error *err)
{
    struct rp_value store = rp_int(store_id);
    struct rp_rows rows = rp_rows_of_texts(RP_SQL(mark_active), tx->arena, keys, n);
    int r = rp_rows_query(&rows, tx->db, &store, rp_marks_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load marks") : 0;
}

int rp_marks_newest(struct rp_db *db, int64_t store_id, const char *const *keys, size_t n, bool lock,
                    struct rp_marks *out, struct rp_error *err)
{
    struct rp_value store = rp_int(store_id);
    const struct rp_sql *sql = lock ? RP_SQL(mark_newest_lock) : RP_SQL(mark_newest);
    struct rp_rows rows = rp_rows_of_texts(sql, out->arena, keys, n);
    int r = rp_rows_query(&rows, db, &store, rp_marks_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load marks") : 0;
}

int rp_marks_lock(struct rp_tx *tx, int64_t *ids, size_t n, struct rp_marks *out, struct rp_error *err)
{
    if (n == 0 || (out == NULL && rp_db_has_one_writer(tx->db))) return 0;
    n = rp_ids_sort(ids, n);
    struct rp_rows rows = rp_rows_of_ids(out != NULL ? RP_SQL(mark_lock) : RP_SQL(mark_lock_only), tx->arena, ids, n);
    int r = rp_rows_query(&rows, tx->db, NULL, out != NULL ? rp_marks_row : rp_ignore_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "lock marks") : 0;
}

/* Due marks, looked at without a lock, and whose they are. */
struct candidates {
    int64_t *ids, *tenants;
    size_t n;
    int64_t next_at, id; /* of the last one */
};

static int candidate_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct candidates *c = ctx;
    (void)err;
    c->ids[c->n] = row[0].i;
    c->tenants[c->n++] = row[1].i;
    c->id = row[0].i;
    c->next_at = row[2].i;
    return 0;
}

/* K8: tenants before marks. What belongs to a tenant that somebody else has locked is left for
 * later. */
static int keep_free(struct rp_tx *tx, struct candidates *c, struct rp_error *err)
{
    struct rp_ids busy;
    size_t kept = 0;
    int r = rp_tenants_try_lock(tx, c->tenants, c->n, &busy, err);
    if (r < 0 || busy.n == 0) return r;
    for (size_t i = 0; i < c->n; i++)
        if (!rp_ids_contain(busy.at, busy.n, c->tenants[i])) c->ids[kept++] = c->ids[i];
    c->n = kept;
    return 0;
}

static int claim_ids(struct rp_tx *tx, const struct rp_claim *claim, const struct candidates *c, struct rp_marks *out,
                     struct rp_error *err)
{
    struct rp_value args[] = { rp_int(claim->now_ms), rp_text(claim->lease_by), rp_int(tx->db_ms + claim->lease_ms),
                               rp_int(claim->confirmers != NULL ? RP_CHECK_CONFIRMATIONS : 0), rp_int(claim->asks) };
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(mark_claim), tx->arena, c->ids, c->n);
    return rp_rows_query(&rows, tx->db, args, rp_marks_row, out, err);
}

#define STRAYS_MS RP_DAY_MS /* a service that this process does not know may be known to another one */

static int find_candidates(struct rp_tx *tx, const struct rp_claim *claim, struct candidates *c, struct rp_error *err)
{
    const struct rp_value store = rp_int(claim->store_id), next = rp_int(c->next_at), id = rp_int(c->id);
    const struct rp_value now = rp_int(claim->now_ms - (claim->others ? STRAYS_MS : 0));
    const struct rp_value named = rp_int(claim->named), limit = rp_int(claim->limit);
    const struct rp_value any[] = { store, now, next, id, named, limit };
    const struct rp_value unseen[] = { store, now, next, id, limit };
    const struct rp_value to_confirm[] = {
        store, now, next, id, named, limit, rp_text(claim->confirmers), rp_int(!claim->others), rp_int(claim->asked)
    };
    c->n = 0;
    if (claim->confirmers != NULL)
        return rp_db_query(tx->db, RP_SQL(mark_due_to_confirm), to_confirm, candidate_row, c, err);
    if (claim->unseen) return rp_db_query(tx->db, RP_SQL(mark_due_unseen), unseen, candidate_row, c, err);
    return rp_db_query(tx->db, RP_SQL(mark_due), any, candidate_row, c, err);
}

static int claim_page(struct rp_tx *tx, const struct rp_claim *claim, struct candidates *c, bool *more,
                      struct rp_marks *out, struct rp_error *err)
{
    int r = find_candidates(tx, claim, c, err);
    *more = c->n == (size_t)claim->limit;
    if (r == 0 && c->n > 0) r = keep_free(tx, c, err);
    return r == 0 && c->n > 0 ? claim_ids(tx, claim, c, out, err) : r;
}

int rp_marks_claim(struct rp_tx *tx, const struct rp_claim *claim, struct rp_marks *out, struct rp_error *err)
{
    struct rp_one epoch = { 0 };
    size_t max = (size_t)claim->limit + 1;
    struct candidates c = { .ids = rp_arena_array(tx->arena, max, sizeof *c.ids),
                            .tenants = rp_arena_array(tx->arena, max, sizeof *c.tenants),
                            .next_at = claim->from_ms - 1,
                            .id = INT64_MAX };
    bool more = true;
    RP_ASSERT(claim->limit > 0 && (size_t)claim->limit <= out->max);
    if (c.ids == NULL || c.tenants == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a claim");
    /* under this lock no hold can be placed between the look at the holds and the commit of the
     * claim */
    int r = rp_db_query(tx->db, RP_SQL(hold_epoch_share), NULL, rp_one_row, &epoch, err);
    /* page by page, past the marks of busy tenants; what lies behind so many of them waits for a
     * later claim */
    for (int page = 0; r == 0 && more && out->n == 0 && page < CLAIM_PAGES; page++)
        r = claim_page(tx, claim, &c, &more, out, err);
    return r < 0 ? rp_error_wrap(err, r, "claim due marks") : 0;
}

int rp_marks_unclaim(struct rp_tx *tx, const struct rp_claim *claim, int64_t until_ms, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(claim->store_id), rp_int(until_ms), rp_text(claim->lease_by) };
    return rp_db_exec(tx->db, RP_SQL(mark_unclaim), args, NULL, err);
}

static int by_row_id(const void *a, const void *b)
{
    return rp_id_order(((const struct rp_value *)a)->i, ((const struct rp_value *)b)->i);
}

int rp_marks_renew(struct rp_tx *tx, const struct rp_mark *const *marks, size_t n, int64_t until_ms, size_t *renewed,
                   struct rp_error *err)
{
    int64_t changed = 0;
    struct rp_value until = rp_int(until_ms);
    struct rp_rows rows = rp_rows_of(RP_SQL(mark_renew), tx->arena, n);
    for (size_t i = 0; i < n; i++)
        rp_rows_add(&rows, RP_ROW(rp_int(marks[i]->id), rp_int(marks[i]->fence)));
    if (rows.at != NULL) qsort(rows.at, n, 2 * sizeof *rows.at, by_row_id); /* as rp_marks_move locks them */
    int r = rp_rows_exec(&rows, tx->db, &until, &changed, err);
    *renewed = (size_t)changed;
    return r < 0 ? rp_error_wrap(err, r, "renew leases") : 0;
}

int rp_marks_watch(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err)
{
    int64_t changed = 0;
    struct rp_rows rows = rp_rows_of(RP_SQL(mark_watch), tx->arena, n);
    for (size_t i = 0; i < n; i++)
        rp_rows_add(&rows, RP_ROW(rp_int(marks[i].id), rp_int(marks[i].next_at_ms)));
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "look at marks again");
    return changed == (int64_t)n ? 0 : rp_error_set(err, RP_ECONFLICT, "another writer was faster");
}

struct moved {
    struct rp_move *moves;
    size_t n;
};

static int by_mark_id(const void *a, const void *b)
{
    const struct rp_move *x = a, *y = b;
    return rp_id_order(x->mark->id, y->mark->id);
}

static int moved_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct moved *moved = ctx;
    struct rp_mark mark = { .id = row[0].i };
    struct rp_move wanted = { .mark = &mark };
    (void)err;
    struct rp_move *move = bsearch(&wanted, moved->moves, moved->n, sizeof wanted, by_mark_id);
    RP_ASSERT(move != NULL && !move->done);
    move->done = true;
    return 0;
}

/* Sorted by id, so that two writers lock rows in the same order. */
int rp_marks_move(struct rp_tx *tx, struct rp_move *moves, size_t n, struct rp_error *err)
{
    struct moved moved = { .moves = moves, .n = n };
    struct rp_rows rows = rp_rows_of(RP_SQL(mark_move), tx->arena, n);
    if (n == 0) return 0;
    qsort(moves, n, sizeof *moves, by_mark_id);
    for (size_t i = 0; i < n; i++) {
        const struct rp_move *m = &moves[i];
        bool final = rp_state_final(m->to);
        RP_ASSERT(final == (m->outcome != RP_END_NONE) && (!final || m->next_at_ms == 0));
        moves[i].done = false;
        rp_rows_add(&rows,
                    RP_ROW(rp_int(m->mark->id), rp_int(m->mark->fence), rp_int(m->mark->state), rp_int(m->to),
                           rp_int_or_null(!final, 1), rp_int_or_null(m->next_at_ms != 0, m->next_at_ms),
                           rp_int(m->attempts), rp_int(m->outcome), rp_int_or_null(final, tx->late_ms),
                           rp_row_words(tx->arena, m->note), rp_int(m->refence), rp_int(m->sets), rp_int(m->clears)));
    }
    int r = rp_rows_query(&rows, tx->db, NULL, moved_row, &moved, err);
    return r < 0 ? rp_error_wrap(err, r, "move marks") : 0;
}

struct extended {
    struct rp_extend *extends;
    size_t n;
};

static int extended_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct extended *x = ctx;
    (void)err;
    for (size_t i = 0; i < x->n; i++)
        if (x->extends[i].mark->id == row[0].i) x->extends[i].done = true;
    return 0;
}

int rp_marks_extend(struct rp_tx *tx, struct rp_extend *extends, size_t n, struct rp_error *err)
{
    struct extended x = { .extends = extends, .n = n };
    struct rp_rows rows = rp_rows_of(RP_SQL(mark_extend), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        RP_ASSERT(extends[i].due_at_ms > extends[i].mark->due_at_ms);
        extends[i].done = false;
        rp_rows_add(&rows, RP_ROW(rp_int(extends[i].mark->id), rp_int(extends[i].mark->fence),
                                  rp_int(extends[i].due_at_ms), rp_text(extends[i].reason)));
    }
    int r = rp_rows_query(&rows, tx->db, NULL, extended_row, &x, err);
    return r < 0 ? rp_error_wrap(err, r, "extend marks") : 0;
}

int rp_marks_annotated(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(mark_annotated), tx->arena, ids, n);
    return rp_rows_exec(&rows, tx->db, NULL, NULL, err);
}

int rp_marks_identity(struct rp_tx *tx, const struct rp_mark *marks, size_t n, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(mark_identity), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_mark *m = &marks[i];
        rp_rows_add(&rows, RP_ROW(rp_int(m->id), rp_text(m->etag), rp_text(m->version), rp_int(m->modified_ms)));
    }
    return rp_rows_exec(&rows, tx->db, NULL, NULL, err);
}
