/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/orphan.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

int rp_orphans_init(struct rp_orphans *orphans, size_t max, struct rp_arena *arena, struct rp_error *err)
{
    *orphans = (struct rp_orphans){ .at = rp_arena_array(arena, max + 1, sizeof *orphans->at), .arena = arena };
    if (orphans->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu orphans", max);
    orphans->max = max;
    return 0;
}

static struct rp_orphan *add(struct rp_orphans *orphans, const struct rp_value *v, struct rp_error *err)
{
    bool failed = false;
    RP_ASSERT(orphans->n < orphans->max);
    struct rp_orphan *o = &orphans->at[orphans->n];
    *o = (struct rp_orphan){
        .id = v[0].i, .tenant_id = v[1].i, .store_id = v[2].i, .key = rp_row_keep(orphans->arena, &v[3], &failed)
    };
    if (failed) rp_error_set(err, RP_ENOMEM, "no memory for an orphan");
    orphans->n += !failed;
    return failed ? NULL : o;
}

static int file_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_orphan *o = add(ctx, v, err);
    if (o == NULL) return RP_ENOMEM;
    o->status = (enum rp_status)v[4].i;
    o->lost = v[5].i != 0;
    o->has_living = v[6].i != 0;
    return 0;
}

static int child_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_orphan *o = add(ctx, v, err);
    if (o == NULL) return RP_ENOMEM;
    o->owner_id = v[4].i;
    return 0;
}

static int mark_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct rp_orphan *o = add(ctx, v, err);
    if (o == NULL) return RP_ENOMEM;
    o->lost = v[4].i != 0;
    return 0;
}

int rp_orphans_files(struct rp_db *db, enum rp_status status, int64_t after_id, struct rp_orphans *out,
                     struct rp_error *err)
{
    struct rp_value args[] = { rp_int(status), rp_int(after_id), rp_int((int64_t)out->max) };
    return rp_db_query(db, RP_SQL(orphan_files), args, file_row, out, err);
}

int rp_orphans_children(struct rp_db *db, const int64_t *owners, size_t n, struct rp_orphans *out, struct rp_error *err)
{
    struct rp_value limit = rp_int((int64_t)out->max);
    struct rp_rows rows = rp_rows_of_ids(RP_SQL(orphan_children), out->arena, owners, n);
    return rp_rows_query(&rows, db, &limit, child_row, out, err);
}

int rp_orphans_marks(struct rp_db *db, int64_t after_id, struct rp_orphans *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(after_id), rp_int((int64_t)out->max) };
    return rp_db_query(db, RP_SQL(orphan_marks), args, mark_row, out, err);
}

int rp_orphans_dead(struct rp_db *db, int64_t after_id, struct rp_orphans *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(after_id), rp_int((int64_t)out->max) };
    return rp_db_query(db, RP_SQL(orphan_dead), args, mark_row, out, err);
}

static int ask_again(struct rp_db *db, const struct rp_sql *sql, struct rp_arena *arena, const int64_t *ids, size_t n,
                     struct rp_ids *out, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of_ids(sql, arena, ids, n);
    *out = (struct rp_ids){ .at = rp_arena_array(arena, n + 1, sizeof *out->at) };
    if (out->at == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for %zu ids", n);
    return rp_rows_query(&rows, db, NULL, rp_ids_row, out, err);
}

int rp_orphans_lost(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_ids *out,
                    struct rp_error *err)
{
    return ask_again(db, RP_SQL(orphan_lost), arena, ids, n, out, err);
}

int rp_orphans_letterless(struct rp_db *db, struct rp_arena *arena, const int64_t *ids, size_t n, struct rp_ids *out,
                          struct rp_error *err)
{
    return ask_again(db, RP_SQL(orphan_letterless), arena, ids, n, out, err);
}
