/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/retention.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "catalog/file/file.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

/* ---- by id ---- */

int rp_old_find(struct rp_db *db, const struct rp_old_query *q, struct rp_ids *out, struct rp_error *err)
{
    struct rp_value made_before = rp_int(rp_id_floor(q->before_ms)), before = rp_int(q->before_ms);
    struct rp_value after = rp_int(q->after), limit = rp_int(q->limit);
    const struct rp_value keys[] = { made_before, after, limit }, holds[] = { after, before, limit };
    const struct rp_value tokens[] = { after, before, rp_int(q->sooner_ms), limit };
    const struct rp_value runs[] = { after, made_before, limit }, jobs[] = { before, after, limit };
    const struct {
        const struct rp_sql *sql;
        const struct rp_value *args;
    } kinds[] = { [RP_OLD_KEYS] = { RP_SQL(old_keys), keys },
                  [RP_OLD_HOLDS] = { RP_SQL(old_holds), holds },
                  [RP_OLD_TOKENS] = { RP_SQL(old_tokens), tokens },
                  [RP_OLD_RUNS] = { RP_SQL(old_runs), runs },
                  [RP_OLD_JOBS] = { RP_SQL(old_jobs), jobs } };
    out->n = 0;
    return rp_db_query(db, kinds[q->kind].sql, kinds[q->kind].args, rp_ids_row, out, err);
}

static int remove_ids(struct rp_tx *tx, const struct rp_sql *sql, const struct rp_value *args, const struct rp_ids *ids,
                      int64_t *gone, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(sql, tx->arena, ids->at, ids->n);
    if (gone != NULL) *gone = 0;
    return rp_rows_exec(&rows, tx->db, args, gone, err);
}

int rp_old_remove(struct rp_tx *tx, const struct rp_old_query *q, const struct rp_ids *ids, int64_t *gone,
                  struct rp_error *err)
{
    struct rp_value sooner = rp_int(q->sooner_ms), before = rp_int(q->before_ms);
    int r = 0;
    switch (q->kind) {
    case RP_OLD_KEYS:
        return remove_ids(tx, RP_SQL(keys_remove), NULL, ids, gone, err);
    case RP_OLD_HOLDS:
        return remove_ids(tx, RP_SQL(holds_remove), NULL, ids, gone, err);
    case RP_OLD_TOKENS:
        return remove_ids(tx, RP_SQL(tokens_remove), &sooner, ids, gone, err);
    case RP_OLD_JOBS:
        return remove_ids(tx, RP_SQL(jobs_remove), &before, ids, gone, err);
    case RP_OLD_RUNS:
        r = remove_ids(tx, RP_SQL(restores_remove), NULL, ids, NULL, err);
        return r < 0 ? r : remove_ids(tx, RP_SQL(runs_remove), NULL, ids, gone, err);
    }
    RP_ASSERT(false);
    return RP_EINVAL;
}

int rp_old_locks_remove(struct rp_tx *tx, int64_t before_ms, struct rp_error *err)
{
    struct rp_value arg = rp_int(before_ms);
    return rp_db_exec(tx->db, RP_SQL(locks_remove), &arg, NULL, err);
}

/* ---- marks ---- */

#define REACH "retention_reach"

int rp_retention_reach(struct rp_db *db, int64_t *before_ms, struct rp_error *err)
{
    bool found = false;
    char word[8];
    *before_ms = 0;
    return rp_meta_find(db, REACH, &found, before_ms, word, sizeof word, err);
}

int rp_retention_reached(struct rp_tx *tx, int64_t before_ms, struct rp_error *err)
{
    int64_t known_ms = 0;
    int r = rp_retention_reach(tx->db, &known_ms, err);
    return r < 0 || known_ms >= before_ms ? r : rp_meta_set(tx->db, REACH, before_ms, "", err);
}

int rp_old_marks_init(struct rp_old_marks *marks, size_t max, struct rp_arena *arena, struct rp_error *err)
{
    *marks =
        (struct rp_old_marks){ .at = rp_arena_array(arena, max + 1, sizeof *marks->at), .max = max, .arena = arena };
    return marks->at != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", max);
}

static int old_mark_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_old_marks *marks = ctx;
    bool failed = false;
    RP_ASSERT(marks->n < marks->max);
    marks->at[marks->n++] = (struct rp_old_mark){ .id = v[0].i,
                                                  .store_id = v[1].i,
                                                  .key = rp_row_keep(marks->arena, &v[2], &failed),
                                                  .tenant_id = v[3].i,
                                                  .file_id = v[4].i,
                                                  .original = rp_row_keep(marks->arena, &v[5], &failed),
                                                  .ended_at_ms = v[6].i };
    return failed ? rp_error_set(err, RP_ENOMEM, "no memory for a mark") : 0;
}

int rp_old_marks_page(struct rp_db *db, int64_t before_ms, int64_t after_ms, int64_t after_id, struct rp_old_marks *out,
                      struct rp_error *err)
{
    struct rp_value args[] = { rp_int(before_ms), rp_int(after_ms), rp_int(after_id), rp_int((int64_t)out->max) };
    return rp_db_query(db, RP_SQL(old_marks), args, old_mark_row, out, err);
}

int rp_old_marks_lock(struct rp_tx *tx, int64_t before_ms, const struct rp_ids *ids, struct rp_old_marks *out,
                      struct rp_error *err)
{
    struct rp_value before = rp_int(before_ms);
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(old_marks_lock), tx->arena, ids->at, ids->n);
    return rp_rows_query(&rows, tx->db, &before, old_mark_row, out, err);
}

struct copies {
    rp_copy_fn *fn;
    void *ctx;
};

static int copy_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    const struct copies *c = ctx;
    (void)err;
    return v[2].type != RP_NULL_T ? c->fn(c->ctx, v[0].i, v[1].p, v[2].p) : 0;
}

int rp_old_marks_copies(struct rp_db *db, const struct rp_old_marks *marks, rp_copy_fn *fn, void *ctx,
                        struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(copies_waiting), marks->arena, marks->n);
    struct copies copies = { .fn = fn, .ctx = ctx };
    for (size_t i = 0; i < marks->n; i++)
        rp_rows_add(&rows, RP_ROW(rp_int(marks->at[i].store_id), rp_text(marks->at[i].key)));
    return rp_rows_query(&rows, db, NULL, copy_row, &copies, err);
}

int rp_marks_there(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_ids *out,
                   struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(marks_there), arena, ids, n);
    *out = (struct rp_ids){ .at = rp_arena_array(arena, n + 1, sizeof *out->at) };
    if (out->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu marks", n);
    return rp_rows_query(&rows, db, NULL, rp_ids_row, out, err);
}

struct older {
    rp_older_fn *fn;
    void *ctx;
};

static int older_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    const struct older *older = ctx;
    (void)err;
    return older->fn(older->ctx, v[0].i, v[1].i);
}

int rp_marks_older(struct rp_db *db, struct rp_arena *arena, const struct rp_ids *ids, rp_older_fn *fn, void *ctx,
                   struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(marks_older), arena, ids->at, ids->n);
    struct older older = { .fn = fn, .ctx = ctx };
    return rp_rows_query(&rows, db, NULL, older_row, &older, err);
}

struct removed {
    struct rp_tx *tx;
    int64_t n;
};

static int removed_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct removed *removed = ctx;
    (void)err;
    rp_tx_tally(removed->tx, v[0].i, v[1].i, -1, -v[2].i);
    removed->n++;
    return 0;
}

int rp_marks_remove(struct rp_tx *tx, const struct rp_ids *ids, int64_t *gone, struct rp_error *err)
{
    struct removed removed = { .tx = tx };
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(marks_remove), tx->arena, ids->at, ids->n);
    *gone = 0;
    if (ids->n == 0) return 0;
    int r = remove_ids(tx, RP_SQL(letters_remove), NULL, ids, NULL, err);
    if (r == 0) r = remove_ids(tx, RP_SQL(attempts_remove), NULL, ids, NULL, err);
    if (r == 0) r = remove_ids(tx, RP_SQL(confirmations_remove), NULL, ids, NULL, err);
    if (r == 0) r = rp_rows_query(&rows, tx->db, NULL, removed_row, &removed, err);
    *gone = removed.n;
    if (r == 0 && removed.n != (int64_t)ids->n)
        r = rp_error_set(err, RP_ECORRUPT, "%lld of %zu marks had not ended", (long long)((int64_t)ids->n - removed.n),
                         ids->n);
    return r;
}

/* ---- files ---- */

static int old_file_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_old_files *files = ctx;
    (void)err;
    RP_ASSERT(files->n < files->max);
    files->at[files->n++] = (struct rp_old_file){
        .id = v[0].i, .tenant_id = v[1].i, .txn_id = v[2].i, .changed_at_ms = v[3].i, .may_go = true
    };
    return 0;
}

static int judged_file_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_old_files *files = ctx;
    int r = old_file_row(ctx, v, err);
    files->at[files->n - 1].may_go = v[4].i != 0;
    return r;
}

int rp_old_files_page(struct rp_db *db, int64_t before_ms, int64_t after_ms, int64_t after_id, struct rp_old_files *out,
                      struct rp_error *err)
{
    struct rp_value args[] = { rp_int(before_ms), rp_int(after_ms), rp_int(after_id), rp_int((int64_t)out->max) };
    return rp_db_query(db, RP_SQL(old_files), args, judged_file_row, out, err);
}

/* What there is, and whose it is. */
struct owned {
    int64_t *ids, *tenants;
    size_t n;
};

static int owned_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct owned *owned = ctx;
    (void)err;
    owned->ids[owned->n] = v[0].i;
    owned->tenants[owned->n++] = v[1].i;
    return 0;
}

/* K8: tenants first. What belongs to one that somebody else has locked is left out. */
static int lock_tenants(struct rp_tx *tx, const struct rp_sql *whose, const struct rp_ids *ids, struct rp_ids *free,
                        struct rp_error *err)
{
    struct owned owned = { .ids = rp_arena_array(tx->arena, ids->n + 1, sizeof(int64_t)),
                           .tenants = rp_arena_array(tx->arena, ids->n + 1, sizeof(int64_t)) };
    struct rp_rows rows = rp_rows_of_ids(whose, tx->arena, ids->at, ids->n);
    struct rp_ids busy = { 0 };
    if (owned.ids == NULL || owned.tenants == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for %zu rows", ids->n);
    *free = (struct rp_ids){ .at = owned.ids };
    int r = rp_rows_query(&rows, tx->db, NULL, owned_row, &owned, err);
    if (r == 0) r = rp_tenants_try_lock(tx, owned.tenants, owned.n, &busy, err);
    for (size_t i = 0; i < owned.n && r == 0; i++)
        if (!rp_ids_contain(busy.at, busy.n, owned.tenants[i])) free->at[free->n++] = owned.ids[i];
    return r;
}

int rp_old_files_lock(struct rp_tx *tx, int64_t before_ms, const struct rp_ids *ids, struct rp_old_files *out,
                      struct rp_error *err)
{
    struct rp_value before = rp_int(before_ms);
    struct rp_ids free;
    int r = lock_tenants(tx, RP_SQL(old_files_tenants), ids, &free, err);
    if (r < 0) return r;
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(old_files_lock), tx->arena, free.at, free.n);
    return rp_rows_query(&rows, tx->db, &before, old_file_row, out, err);
}

/* A file's object is its own: no other file ever had its key. */
static int remove_marks_of(struct rp_tx *tx, const struct rp_ids *files, int64_t *gone, struct rp_error *err)
{
    struct removed removed = { .tx = tx };
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(marks_of_files), tx->arena, files->at, files->n);
    int r = remove_ids(tx, RP_SQL(letters_of_files), NULL, files, NULL, err);
    if (r == 0) r = remove_ids(tx, RP_SQL(attempts_of_files), NULL, files, NULL, err);
    if (r == 0) r = remove_ids(tx, RP_SQL(confirmations_of_files), NULL, files, NULL, err);
    if (r == 0) r = rp_rows_query(&rows, tx->db, NULL, removed_row, &removed, err);
    *gone = removed.n;
    return r;
}

int rp_old_files_remove(struct rp_tx *tx, int64_t before_ms, const struct rp_old_files *files, int64_t *marks,
                        struct rp_error *err)
{
    struct rp_ids ids = { .at = rp_arena_array(tx->arena, files->n + 1, sizeof *ids.at) };
    struct rp_ids txns = { .at = rp_arena_array(tx->arena, files->n + 1, sizeof *txns.at) };
    struct rp_value before = rp_int(before_ms);
    int64_t gone = 0;
    *marks = 0;
    if (ids.at == NULL || txns.at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", files->n);
    for (size_t i = 0; i < files->n; i++) {
        ids.at[ids.n++] = files->at[i].id;
        if (files->at[i].txn_id != 0) txns.at[txns.n++] = files->at[i].txn_id;
    }
    if (ids.n == 0) return 0;
    txns.n = rp_ids_sort(txns.at, txns.n);
    int r = remove_marks_of(tx, &ids, marks, err);
    if (r == 0) r = remove_ids(tx, RP_SQL(ledger_remove), NULL, &ids, NULL, err);
    if (r == 0) r = remove_ids(tx, RP_SQL(files_remove), NULL, &ids, &gone, err);
    if (r == 0 && gone != (int64_t)ids.n) r = rp_error_set(err, RP_ECORRUPT, "files that were locked are gone");
    return r < 0 ? r : remove_ids(tx, RP_SQL(txns_remove), &before, &txns, NULL, err);
}

/* ---- transactions ---- */

static int old_txn_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_old_txns *txns = ctx;
    (void)err;
    RP_ASSERT(txns->n < txns->max);
    txns->at[txns->n++] =
        (struct rp_old_txn){ .id = v[0].i, .tenant_id = v[1].i, .members = v[2].i, .over = v[3].i != 0 };
    return 0;
}

int rp_old_txns_page(struct rp_db *db, int64_t before_ms, int64_t after, struct rp_old_txns *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(after), rp_int(rp_id_floor(before_ms)), rp_int((int64_t)out->max),
                               rp_int(before_ms) };
    return rp_db_query(db, RP_SQL(old_txns), args, old_txn_row, out, err);
}

int rp_txns_remove(struct rp_tx *tx, int64_t before_ms, const struct rp_ids *ids, int64_t *gone, struct rp_error *err)
{
    struct rp_value before = rp_int(before_ms);
    struct rp_ids free;
    *gone = 0;
    int r = lock_tenants(tx, RP_SQL(txns_tenants), ids, &free, err);
    return r < 0 ? r : remove_ids(tx, RP_SQL(txns_remove), &before, &free, gone, err);
}
