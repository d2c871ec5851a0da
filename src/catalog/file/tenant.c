/* SPDX-License-Identifier: Apache-2.0 */
/* tenant.c - tenants, their counters, and the ledger that the counters sum up. */
#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "catalog/file/file.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tenant_of_row(const struct rp_value *v, struct rp_tenant *out)
{
    *out = (struct rp_tenant){ .id = v[0].i,
                               .has_limit = v[2].type != RP_NULL_T,
                               .limit_bytes = v[2].i,
                               .used_bytes = v[3].i,
                               .reserved_bytes = v[4].i,
                               .open_uploads = v[5].i };
    snprintf(out->name, sizeof out->name, "%s", v[1].p);
}

struct one_tenant {
    struct rp_tenant *out;
    bool found;
};

static int one_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct one_tenant *one = ctx;
    (void)err;
    tenant_of_row(row, one->out);
    one->found = true;
    return 0;
}

static int load_one(struct rp_db *db, const struct rp_sql *sql, const struct rp_value *arg, struct rp_tenant *out,
                    struct rp_error *err)
{
    struct one_tenant one = { .out = out };
    int r = rp_db_query(db, sql, arg, one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "load a tenant");
    return one.found ? 0 : rp_error_set(err, RP_ENOTFOUND, "there is no such tenant");
}

int rp_tenant_find(struct rp_db *db, const char *name, struct rp_tenant *out, struct rp_error *err)
{
    struct rp_value arg = rp_text(name);
    return load_one(db, RP_SQL(tenant_find), &arg, out, err);
}

int rp_tenant_by_id(struct rp_db *db, int64_t id, struct rp_tenant *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    return load_one(db, RP_SQL(tenant_by_id), &arg, out, err);
}

static int check_name(const char *name, struct rp_error *err)
{
    size_t n = strlen(name);
    if (n >= 1 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@") == n &&
        name[0] != '.')
        return 0;
    return rp_error_set(err, RP_EINVAL, "a tenant's name is 1 to 63 of a-z A-Z 0-9 . _ - @ and begins with no dot");
}

int rp_tenant_ensure(struct rp_tx *tx, const char *name, struct rp_tenant *out, struct rp_error *err)
{
    int r = check_name(name, err);
    if (r == 0) r = rp_tenant_find(tx->db, name, out, err);
    if (r != RP_ENOTFOUND) return r;
    struct rp_value args[] = { rp_int(rp_tx_new_id(tx)), rp_text(name) };
    rp_error_clear(err);
    r = rp_db_exec(tx->db, RP_SQL(tenant_make), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "make tenant '%s'", name) : rp_tenant_find(tx->db, name, out, err);
}

struct making {
    const char *name;
    struct rp_tenant *out;
};

static int make_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct making *m = ctx;
    return rp_tenant_ensure(tx, m->name, m->out, err);
}

int rp_tenant_make(struct rp_catalog *catalog, const char *name, struct rp_tenant *out, struct rp_error *err)
{
    struct making making = { .name = name, .out = out };
    int r = check_name(name, err);
    if (r == 0) r = rp_tenant_find(catalog->db, name, out, err);
    if (r != RP_ENOTFOUND) return r;
    rp_error_clear(err);
    return rp_catalog_transact(catalog, make_tx, &making, err);
}

struct each {
    rp_tenant_fn *fn;
    void *ctx;
};

static int each_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    const struct each *each = ctx;
    struct rp_tenant tenant;
    tenant_of_row(row, &tenant);
    return each->fn(each->ctx, &tenant, err);
}

int rp_tenant_each(struct rp_db *db, int64_t after_id, int64_t limit, rp_tenant_fn *fn, void *ctx, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(after_id), rp_int(limit) };
    struct each each = { .fn = fn, .ctx = ctx };
    return rp_db_query(db, RP_SQL(tenant_page), args, each_row, &each, err);
}

/* Sorted, each once, without 0. */
static int sort_ids(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_ids *out, struct rp_error *err)
{
    out->at = rp_arena_array(tx->arena, n + 1, sizeof *out->at);
    out->n = 0;
    if (out->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu tenants", n);
    for (size_t i = 0; i < n; i++)
        if (ids[i] != 0) out->at[out->n++] = ids[i];
    out->n = rp_ids_sort(out->at, out->n);
    return 0;
}

static int query_tenants(struct rp_tx *tx, const struct rp_sql *sql, const struct rp_ids *ids, rp_row_fn *row,
                         void *ctx, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(sql, tx->arena, ids->at, ids->n);
    int r = rp_rows_query(&rows, tx->db, NULL, row, ctx, err);
    return r < 0 ? rp_error_wrap(err, r, "load tenants") : 0;
}

struct tenants {
    struct rp_tenant *at;
    size_t n;
};

static int tenants_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct tenants *tenants = ctx;
    (void)err;
    tenant_of_row(row, &tenants->at[tenants->n++]);
    return 0;
}

int rp_tenants_load(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_tenant *out, size_t *found,
                    struct rp_error *err)
{
    struct tenants tenants = { .at = out };
    struct rp_ids wanted;
    int r = sort_ids(tx, ids, n, &wanted, err);
    if (r == 0) r = query_tenants(tx, RP_SQL(tenant_load), &wanted, tenants_row, &tenants, err);
    if (r == 0) *found = tenants.n;
    return r;
}

/* Which of them a statement answers with, in order of id. */
static int query_ids(struct rp_tx *tx, const struct rp_sql *sql, const struct rp_ids *ids, struct rp_ids *out,
                     struct rp_error *err)
{
    *out = (struct rp_ids){ .at = rp_arena_array(tx->arena, ids->n + 1, sizeof *out->at) };
    if (out->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu tenants", ids->n);
    return query_tenants(tx, sql, ids, rp_ids_row, out, err);
}

int rp_tenants_lock(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_error *err)
{
    struct rp_ids wanted, locked;
    if (rp_db_has_one_writer(tx->db)) return 0;
    int r = sort_ids(tx, ids, n, &wanted, err);
    return r < 0 ? r : query_ids(tx, RP_SQL(tenant_lock), &wanted, &locked, err);
}

int rp_tenants_try_lock(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_ids *busy, struct rp_error *err)
{
    struct rp_ids wanted = { 0 }, locked = { 0 }, others = { 0 };
    *busy = (struct rp_ids){ 0 };
    if (rp_db_has_one_writer(tx->db)) return 0;
    int r = sort_ids(tx, ids, n, &wanted, err);
    if (r == 0) r = query_ids(tx, RP_SQL(tenant_lock_free), &wanted, &locked, err);
    if (r < 0 || locked.n == wanted.n) return r;
    others.at = wanted.at;
    for (size_t i = 0; i < wanted.n; i++)
        if (!rp_ids_contain(locked.at, locked.n, wanted.at[i])) others.at[others.n++] = wanted.at[i];
    /* one that is not there is nobody's, and not busy */
    return query_ids(tx, RP_SQL(tenant_load), &others, busy, err);
}

int rp_tenant_limit(struct rp_tx *tx, int64_t id, bool has_limit, int64_t limit_bytes, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(id), rp_int_or_null(has_limit, limit_bytes) };
    int64_t changed = 0;
    int r = rp_db_exec(tx->db, RP_SQL(tenant_limit), args, &changed, err);
    if (r < 0) return r;
    return changed == 1 ? 0 : rp_error_set(err, RP_ENOTFOUND, "there is no such tenant");
}

/* ---- the ledger ---- */

struct counts {
    int64_t tenant_id, used, reserved, open;
};

static void count(struct counts *c, const struct rp_ledger *row)
{
    switch (row->kind) {
    case RP_LEDGER_RESERVE:
        c->reserved += row->bytes;
        c->open++;
        break;
    case RP_LEDGER_USE:
        c->reserved -= row->bytes;
        c->used += row->bytes;
        c->open--;
        break;
    case RP_LEDGER_REFUND:
        *(row->was_used ? &c->used : &c->reserved) -= row->bytes;
        c->open -= !row->was_used;
        break;
    }
}

static struct counts *counts_of(struct counts *all, size_t *n, int64_t tenant_id)
{
    for (size_t i = 0; i < *n; i++)
        if (all[i].tenant_id == tenant_id) return &all[i];
    all[*n] = (struct counts){ .tenant_id = tenant_id };
    return &all[(*n)++];
}

/* Whoever moves them has locked their tenants (catalog.h, K8). */
static int move_counters(struct rp_tx *tx, const struct counts *counts, size_t n, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(tenant_count), tx->arena, n);
    int64_t changed = 0;
    for (size_t i = 0; i < n; i++) {
        const struct counts *c = &counts[i];
        rp_rows_add(&rows, RP_ROW(rp_int(c->tenant_id), rp_int(c->used), rp_int(c->reserved), rp_int(c->open)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    if (r < 0) return r;
    return changed == (int64_t)n ? 0 : rp_error_set(err, RP_ECORRUPT, "a tenant is gone from the catalog");
}

int rp_ledger_add(struct rp_tx *tx, const struct rp_ledger *ledger, size_t n, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(ledger_add), tx->arena, n);
    struct counts *counts = rp_arena_array(tx->arena, n + 1, sizeof *counts);
    size_t n_counts = 0;
    int64_t changed = 0;
    if (counts == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the ledger");
    for (size_t i = 0; i < n; i++) {
        const struct rp_ledger *row = &ledger[i];
        count(counts_of(counts, &n_counts, row->tenant_id), row);
        rp_rows_add(&rows, RP_ROW(rp_int(row->file_id), rp_int(row->kind), rp_int(row->tenant_id), rp_int(row->bytes),
                                  rp_int(tx->late_ms)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "write the ledger");
    if (changed != (int64_t)rows.n)
        return rp_error_set(err, RP_ECORRUPT, "write the ledger: a file was reserved, used or refunded before");
    r = move_counters(tx, counts, n_counts, err);
    return r < 0 ? rp_error_wrap(err, r, "move the quota's counters") : 0;
}

/* ---- counter = ledger ---- */

/* A tenant as it is counted, and as its ledger sums it up: both of one statement, hence of one
 * moment. */
struct compared {
    struct rp_tenant counted, summed;
};

struct comparing {
    struct compared *at;
    size_t n, max;
    struct rp_arena *arena;
};

static int add_compared(struct comparing *c, const struct rp_value *row, struct rp_error *err)
{
    if (c->n == c->max) {
        size_t max = c->max == 0 ? 64 : c->max * 2;
        struct compared *more = rp_arena_array(c->arena, max, sizeof *more);
        if (more == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu tenants", max);
        if (c->n > 0) memcpy(more, c->at, c->n * sizeof *more);
        c->at = more;
        c->max = max;
    }
    struct compared *t = &c->at[c->n++];
    tenant_of_row(row, &t->counted);
    t->summed = t->counted;
    t->summed.used_bytes = t->summed.reserved_bytes = t->summed.open_uploads = 0;
    return 0;
}

/* A tenant's row, then the sum of its ledger, if it has one. */
static int compared_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct comparing *c = ctx;
    if (row[6].i == 0) return add_compared(c, row, err);
    struct compared *last = c->n > 0 ? &c->at[c->n - 1] : NULL;
    if (last == NULL || last->counted.id != row[0].i)
        return rp_error_set(err, RP_ECORRUPT, "the ledger names a tenant that there is not");
    last->summed.used_bytes = row[7].i;
    last->summed.reserved_bytes = row[8].i;
    last->summed.open_uploads = row[9].i;
    return 0;
}

static int compare(struct rp_tx *tx, int64_t from_id, int64_t upto_id, struct comparing *out, struct rp_error *err)
{
    struct rp_value range[] = { rp_int(from_id), rp_int(upto_id) };
    *out = (struct comparing){ .arena = tx->arena };
    return rp_db_query(tx->db, RP_SQL(tenant_compare), range, compared_row, out, err);
}

static bool is_right(const struct compared *t)
{
    return t->counted.used_bytes == t->summed.used_bytes && t->counted.reserved_bytes == t->summed.reserved_bytes &&
           t->counted.open_uploads == t->summed.open_uploads;
}

static int set_right(struct rp_tx *tx, const struct compared *t, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(t->summed.id), rp_int(t->summed.used_bytes), rp_int(t->summed.reserved_bytes),
                               rp_int(t->summed.open_uploads) };
    return rp_db_exec(tx->db, RP_SQL(tenant_set), args, NULL, err);
}

/* Those that are wrong are locked and only then summed up: nobody moves them between the sum and
 * the repair. */
static int repair_wrong(struct rp_tx *tx, const struct comparing *seen, struct rp_error *err)
{
    int64_t *ids = rp_arena_array(tx->arena, seen->n + 1, sizeof *ids);
    struct comparing again;
    size_t n = 0;
    if (ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu tenants", seen->n);
    for (size_t i = 0; i < seen->n; i++)
        if (!is_right(&seen->at[i])) ids[n++] = seen->at[i].counted.id;
    if (n == 0) return 0;
    int r = rp_tenants_lock(tx, ids, n, err);
    if (r == 0) r = compare(tx, ids[0], ids[n - 1], &again, err);
    for (size_t i = 0, k = 0; r == 0 && k < n && i < again.n; i++) {
        if (again.at[i].counted.id != ids[k]) continue;
        k++;
        if (!is_right(&again.at[i])) r = set_right(tx, &again.at[i], err);
    }
    return r;
}

int rp_quota_rebuild(struct rp_tx *tx, bool repair, rp_quota_fn *fn, void *ctx, struct rp_quota_check *out,
                     struct rp_error *err)
{
    struct comparing seen;
    *out = (struct rp_quota_check){ 0 };
    int r = compare(tx, INT64_MIN, INT64_MAX, &seen, err);
    for (size_t i = 0; r == 0 && i < seen.n; i++) {
        const struct compared *t = &seen.at[i];
        out->tenants++;
        out->wrong += !is_right(t);
        if (fn != NULL) r = fn(ctx, &t->counted, &t->summed, err);
    }
    if (r == 0 && repair) r = repair_wrong(tx, &seen, err);
    return r < 0 ? rp_error_wrap(err, r, "compare the quota with its ledger") : 0;
}
