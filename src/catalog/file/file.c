/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/file/file.h"

#include "base/assert.h"
#include "base/digest.h"
#include "base/error.h"
#include "catalog/mark/mark.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

int rp_files_init(struct rp_files *files, size_t max, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_file *at = rp_arena_room(arena, max + 1, sizeof *at);
    if (at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", max);
    *files = (struct rp_files){ .at = at, .max = max, .arena = arena };
    return 0;
}

int rp_files_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_files *files = ctx;
    bool failed = false;
    if (files->n == files->max) return rp_error_set(err, RP_ETOOBIG, "more than %zu files", files->max);
    struct rp_file f = {
        .id = v[0].i,
        .tenant_id = v[1].i,
        .name = rp_row_keep(files->arena, &v[2], &failed),
        .live_name = v[3].type != RP_NULL_T,
        .store_id = v[4].i,
        .key = rp_row_keep(files->arena, &v[5], &failed),
        .status = (enum rp_status)v[6].i,
        .was = (enum rp_status)v[7].i,
        .shown = v[8].i != 0,
        .size_bytes = v[9].i,
        .content_type = rp_row_keep(files->arena, &v[10], &failed),
        .checksum = (const uint8_t *)rp_row_keep(files->arena, &v[11], &failed),
        .etag = rp_row_keep(files->arena, &v[12], &failed),
        .version = rp_row_keep(files->arena, &v[13], &failed),
        .modified_ms = v[14].i,
        .mark_id = v[15].i,
        .parent_id = v[16].i,
        .source_id = v[17].i,
        .txn_id = v[18].i,
        .replaces_id = v[19].i,
        .with_id = v[20].i,
        .url_ends_at_ms = v[21].i,
        .process_key = rp_row_keep(files->arena, &v[22], &failed),
        .metadata = rp_row_keep(files->arena, &v[23], &failed),
        .created_at_ms = v[24].i,
        .changed_at_ms = v[25].i,
        .confirmed_at_ms = v[26].i,
        .deleted_at_ms = v[27].i,
    };
    if (failed) return rp_error_set(err, RP_ENOMEM, "no memory for a file");
    if (f.status < RP_FILE_PENDING || f.status >= RP_STATUSES || (f.checksum != NULL && v[11].n != RP_DIGEST_BYTES))
        return rp_error_set(err, RP_ECORRUPT, "file %lld is damaged in the catalog", (long long)f.id);
    files->at[files->n++] = f;
    return 0;
}

struct rp_file *rp_files_find(const struct rp_files *files, int64_t id)
{
    for (size_t i = 0; i < files->n; i++)
        if (files->at[i].id == id) return &files->at[i];
    return NULL;
}

/* ---- changes ---- */

static struct rp_value or_null(int64_t number)
{
    return rp_int_or_null(number != 0, number);
}

int rp_files_add(struct rp_tx *tx, const struct rp_file *files, size_t n, struct rp_error *err)
{
    int64_t changed = 0;
    struct rp_rows rows = rp_rows_of(RP_SQL(file_add), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_file *f = &files[i];
        rp_rows_add(&rows, RP_ROW(rp_int(f->id), rp_int(f->tenant_id), rp_text(f->name), rp_int(f->store_id),
                                  rp_text(f->key), rp_int(f->status), rp_int(f->was), rp_int(f->size_bytes),
                                  rp_text(f->content_type), rp_bytes(f->checksum, RP_DIGEST_BYTES), rp_text(f->etag),
                                  rp_text(f->version), rp_text(f->metadata), rp_int(f->modified_ms), rp_int(f->mark_id),
                                  or_null(f->parent_id), or_null(f->source_id), or_null(f->txn_id),
                                  or_null(f->replaces_id), rp_int(f->url_ends_at_ms), rp_text(f->process_key),
                                  rp_int(f->created_at_ms), rp_int(f->changed_at_ms)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    RP_ASSERT(r < 0 || changed == (int64_t)n);
    return r < 0 ? rp_error_wrap(err, r, "add files") : 0;
}

int rp_files_lock(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_files *out, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(file_lock), tx->arena, ids, n);
    int r = rp_rows_query(&rows, tx->db, NULL, rp_files_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load files") : 0;
}

int rp_files_living(struct rp_tx *tx, const int64_t *tenants, const char *const *names, size_t n, struct rp_files *out,
                    struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(file_living), tx->arena, n);
    for (size_t i = 0; i < n; i++)
        rp_rows_add(&rows, RP_ROW(rp_int(tenants[i]), rp_text(names[i])));
    int r = rp_rows_query(&rows, tx->db, NULL, rp_files_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load files by name") : 0;
}

struct id_list {
    int64_t *ids;
    size_t n, max;
};

static int id_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct id_list *list = ctx;
    if (list->n == list->max) {
        rp_error_set(err, RP_ETOOBIG, "more than %zu files belong to what is deleted, replaced or restored", list->max);
        return rp_error_hint(err, "delete some of its children or derivatives first, or do less at once");
    }
    list->ids[list->n++] = row[0].i;
    return 0;
}

/* Most files have nothing below them: one statement finds those that do. Then `sql` over these. */
static int query_below(struct rp_db *db, struct rp_arena *arena, const struct rp_sql *sql, const struct rp_value *args,
                       const int64_t *ids, size_t n, rp_row_fn *fn, void *ctx, struct rp_error *err)
{
    struct id_list parents = { .ids = rp_arena_array(arena, n + 1, sizeof(int64_t)), .max = n };
    if (parents.ids == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu files", n);
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(file_any_below), arena, ids, n);
    int r = rp_rows_query(&rows, db, NULL, id_row, &parents, err);
    rows = rp_rows_of_ids(sql, arena, parents.ids, parents.n);
    if (r == 0) r = rp_rows_query(&rows, db, args, fn, ctx, err);
    return r < 0 ? rp_error_wrap(err, r, "load children") : 0;
}

int rp_files_below(struct rp_tx *tx, const int64_t *ids, size_t n, int64_t *out, size_t max, size_t *n_out,
                   struct rp_error *err)
{
    struct id_list below = { .ids = out, .max = max };
    struct rp_value limit = rp_int((int64_t)max + 1);
    int r = query_below(tx->db, tx->arena, RP_SQL(file_below), &limit, ids, n, id_row, &below, err);
    *n_out = below.n;
    return r;
}

struct along {
    rp_file_along_fn *fn;
    void *ctx;
};

static int along_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    const struct along *a = ctx;
    return a->fn(a->ctx, row[0].i, row[1].i, err);
}

int rp_files_along(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, rp_file_along_fn *fn,
                   void *ctx, struct rp_error *err)
{
    struct along along = { .fn = fn, .ctx = ctx };
    return query_below(db, arena, RP_SQL(file_along), NULL, ids, n, along_row, &along, err);
}

int rp_files_marks(struct rp_tx *tx, const int64_t *ids, size_t n, struct rp_marks *out, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(file_marks), tx->arena, ids, n);
    int r = rp_rows_query(&rows, tx->db, NULL, rp_marks_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load the marks of files") : 0;
}

struct owners {
    const char *const *keys;
    int64_t *file_ids;
    size_t n;
};

static int owner_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct owners *o = ctx;
    (void)err;
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->keys[i], row[0].p) == 0) o->file_ids[i] = row[1].i;
    return 0;
}

int rp_files_of_keys(struct rp_db *db, struct rp_arena *arena, int64_t store_id, const char *const *keys, size_t n,
                     int64_t *file_ids, struct rp_error *err)
{
    struct rp_value store = rp_int(store_id);
    struct owners owners = { .keys = keys, .file_ids = file_ids, .n = n };
    struct rp_rows rows = rp_rows_of_texts(RP_SQL(file_of_keys), arena, keys, n);
    for (size_t i = 0; i < n; i++)
        file_ids[i] = 0;
    int r = rp_rows_query(&rows, db, &store, owner_row, &owners, err);
    return r < 0 ? rp_error_wrap(err, r, "look for files") : 0;
}

int rp_files_save(struct rp_tx *tx, const struct rp_file *const *files, size_t n, struct rp_error *err)
{
    int64_t changed = 0;
    struct rp_rows rows = rp_rows_of(RP_SQL(file_save), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        const struct rp_file *f = files[i];
        rp_rows_add(&rows, RP_ROW(rp_int(f->id), rp_int(f->status), rp_int(f->was),
                                  rp_text(f->live_name ? f->name : NULL), rp_int(f->shown), rp_text(f->etag),
                                  rp_text(f->version), rp_int(f->modified_ms), rp_int(f->mark_id), or_null(f->with_id),
                                  rp_text(f->metadata), rp_bytes(f->checksum, RP_DIGEST_BYTES),
                                  rp_int(f->changed_at_ms), or_null(f->confirmed_at_ms), or_null(f->deleted_at_ms)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "save files");
    if (changed != (int64_t)n) return rp_error_set(err, RP_ECORRUPT, "save files: a file is gone from the catalog");
    return 0;
}

/* ---- reading ---- */

int rp_file_get(struct rp_db *db, int64_t id, struct rp_arena *arena, struct rp_file *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    struct rp_files one;
    int r = rp_files_init(&one, 1, arena, err);
    if (r == 0) r = rp_db_query(db, RP_SQL(file_get), &arg, rp_files_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "load a file");
    if (one.n == 0) return rp_error_set(err, RP_ENOTFOUND, "there is no such file");
    *out = one.at[0];
    return 0;
}

static int page_by_name(struct rp_db *db, const struct rp_files_query *q, struct rp_files *out, struct rp_error *err)
{
    char end[RP_PREFIX_END_MAX];
    struct rp_value args[] = { rp_int(q->tenant_id), rp_text(q->prefix), rp_text(rp_key_prefix_end(q->prefix, end)),
                               rp_text(q->after_name != NULL ? q->after_name : ""), rp_int((int64_t)out->max) };
    return rp_db_query(db, RP_SQL(file_by_name), args, rp_files_row, out, err);
}

int rp_files_page(struct rp_db *db, const struct rp_files_query *q, struct rp_files *out, struct rp_error *err)
{
    RP_ASSERT(q->tenant_id != 0);
    out->n = 0;
    int r;
    if (q->prefix != NULL)
        r = page_by_name(db, q, out, err);
    else if (q->status != 0) {
        struct rp_value args[] = { rp_int(q->tenant_id), rp_int(q->status), rp_int(q->after_id),
                                   rp_int((int64_t)out->max) };
        r = rp_db_query(db, RP_SQL(file_status), args, rp_files_row, out, err);
    } else {
        struct rp_value args[] = { rp_int(q->tenant_id), rp_int(q->after_id), rp_int((int64_t)out->max),
                                   rp_int(q->deleted) };
        r = rp_db_query(db, RP_SQL(file_visible), args, rp_files_row, out, err);
    }
    return r < 0 ? rp_error_wrap(err, r, "list files") : 0;
}

int rp_files_members(struct rp_db *db, int64_t txn_id, struct rp_files *out, struct rp_error *err)
{
    struct rp_value id = rp_int(txn_id);
    int r = rp_db_query(db, RP_SQL(file_members), &id, rp_files_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "load members") : 0;
}
