/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - the small tables: meta, store, tally. */
#include "base/error.h"
#include "catalog/catalog.h"
#include "catalog/statements/statements.h"

#include <stdio.h>
#include <string.h>

struct meta_out {
    int64_t number;
    char *word;
    size_t word_size;
    bool found;
};

static int meta_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct meta_out *out = ctx;
    (void)err;
    out->found = true;
    out->number = row[0].i;
    if (out->word != NULL) snprintf(out->word, out->word_size, "%s", row[1].p);
    return 0;
}

int rp_meta_find(struct rp_db *db, const char *name, bool *found, int64_t *number, char *word, size_t word_size,
                 struct rp_error *err)
{
    struct rp_value arg = rp_text(name);
    struct meta_out out = { .word = word, .word_size = word_size };
    int r = rp_db_query(db, RP_SQL(meta_get), &arg, meta_row, &out, err);
    if (r < 0) return r;
    *found = out.found;
    *number = out.number;
    return 0;
}

static int missing(const char *name, struct rp_error *err)
{
    return rp_error_set(err, RP_ECORRUPT, "the catalog's fact '%s' is missing", name);
}

int rp_meta_get(struct rp_db *db, const char *name, int64_t *number, char *word, size_t word_size, struct rp_error *err)
{
    int64_t there;
    bool found;
    int r = rp_meta_find(db, name, &found, &there, word, word_size, err);
    if (r < 0) return r;
    if (!found) return missing(name, err);
    *number = there;
    return 0;
}

int rp_meta_set(struct rp_db *db, const char *name, int64_t number, const char *word, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(number), rp_text(word) };
    return rp_db_exec(db, RP_SQL(meta_set), args, NULL, err);
}

int rp_meta_fill(struct rp_db *db, const char *name, const char *word, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_text(word) };
    return rp_db_exec(db, RP_SQL(meta_fill), args, NULL, err);
}

int rp_meta_raise(struct rp_db *db, const char *name, int64_t at_least, int64_t *number, struct rp_error *err)
{
    struct rp_value args[] = { rp_text(name), rp_int(at_least) };
    struct rp_one one = { 0 };
    int r = rp_db_query(db, RP_SQL(meta_raise), args, rp_one_row, &one, err);
    if (r < 0) return r;
    if (!one.found) return missing(name, err);
    *number = one.i[0];
    return 0;
}

int rp_meta_each(struct rp_db *db, const char *prefix, rp_row_fn *row, void *ctx, struct rp_error *err)
{
    struct rp_value arg = rp_text(prefix);
    return rp_db_query(db, RP_SQL(meta_each), &arg, row, ctx, err);
}

struct listing {
    struct rp_arena *arena;
    struct rp_store_rows *rows;
    size_t room;
};

static int store_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct listing *l = ctx;
    struct rp_store_rows *rows = l->rows;
    if (rows->n == l->room) {
        if (l->arena == NULL) return rp_error_set(err, RP_ECORRUPT, "the catalog has two stores of one name");
        struct rp_store_row *more = rp_arena_array(l->arena, l->room = 2 * l->room + 16, sizeof *more);
        if (more == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the list of stores");
        if (rows->n > 0) memcpy(more, rows->at, rows->n * sizeof *more);
        rows->at = more;
    }
    struct rp_store_row *p = &rows->at[rows->n++];
    *p = (struct rp_store_row){ .id = row[0].i, .kind = row[1].i, .owned_at = row[3].i };
    snprintf(p->name, sizeof p->name, "%s", row[2].p);
    return 0;
}

int rp_store_list(struct rp_db *db, struct rp_arena *arena, struct rp_store_rows *out, struct rp_error *err)
{
    struct listing l = { .arena = arena, .rows = out };
    *out = (struct rp_store_rows){ 0 };
    return rp_db_query(db, RP_SQL(store_list), NULL, store_row, &l, err);
}

static int name_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    snprintf(ctx, RP_STORE_NAME, "%s", row[0].p);
    return 0;
}

int rp_store_name(struct rp_db *db, int64_t id, char out[RP_STORE_NAME], struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    snprintf(out, RP_STORE_NAME, "?");
    return rp_db_query(db, RP_SQL(store_name), &arg, name_row, out, err);
}

int rp_store_find(struct rp_db *db, const char *name, struct rp_store_row *out, struct rp_error *err)
{
    struct rp_value arg = rp_text(name);
    struct rp_store_rows one = { .at = out };
    struct listing l = { .rows = &one, .room = 1 };
    int r = rp_db_query(db, RP_SQL(store_find), &arg, store_row, &l, err);
    if (r < 0) return r;
    return one.n == 1 ? 0 : rp_error_set(err, RP_ENOTFOUND, "no store '%s' in the catalog", name);
}

int rp_store_get(struct rp_catalog *catalog, int64_t kind, const char *name, struct rp_store_row *out,
                 struct rp_error *err)
{
    struct rp_value args[] = { rp_int(kind), rp_text(name) };
    int r = rp_store_find(catalog->db, name, out, err);
    /* another program may take the same number or the same name at the same moment: look, add, look
     * again */
    for (int try = 0; r == RP_ENOTFOUND && try < 10; try++) {
        r = rp_db_exec(catalog->db, RP_SQL(store_add), args, NULL, err);
        if (r < 0 && r != RP_EBUSY) return rp_error_wrap(err, r, "note store '%s'", name);
        r = rp_store_find(catalog->db, name, out, err);
    }
    if (r == 0) rp_error_clear(err);
    return r;
}

int rp_store_refuse_old(const char *name, struct rp_error *err)
{
    rp_error_set(err, RP_ENOTOWNER, "%s%s%s was renamed since this program has opened it",
                 name != NULL ? "store '" : "a store", name != NULL ? name : "", name != NULL ? "'" : "");
    return rp_error_hint(err, "restart it: with the configuration that has the new name");
}

static int find_locked(struct rp_tx *tx, const struct rp_sql *sql, int64_t id, bool *found, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    struct rp_one one = { 0 };
    int r = rp_db_query(tx->db, sql, &arg, rp_one_row, &one, err);
    *found = one.found;
    return r < 0 ? rp_error_wrap(err, r, "lock a store's row") : 0;
}

int rp_store_share(struct rp_tx *tx, int64_t id, const char *name, struct rp_error *err)
{
    bool found;
    int r = find_locked(tx, RP_SQL(store_share), id, &found, err);
    return r < 0 || found ? r : rp_store_refuse_old(name, err);
}

int rp_store_lock(struct rp_tx *tx, int64_t id, struct rp_error *err)
{
    bool found;
    int r = find_locked(tx, RP_SQL(store_lock), id, &found, err);
    return r < 0 || found ? r : rp_error_set(err, RP_ENOTFOUND, "the store is not in the catalog any more");
}

int rp_store_rename(struct rp_tx *tx, int64_t id, const char *name, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(id), rp_text(name) };
    return rp_db_exec(tx->db, RP_SQL(store_rename), args, NULL, err);
}

#define GONE "store_gone" /* the highest number of a store that was removed */

int rp_store_remove(struct rp_tx *tx, int64_t id, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    int64_t highest = 0;
    bool found;
    int r = rp_meta_find(tx->db, GONE, &found, &highest, NULL, 0, err);
    if (r == 0 && (!found || highest < id)) r = rp_meta_set(tx->db, GONE, id, "", err);
    return r < 0 ? r : rp_db_exec(tx->db, RP_SQL(store_remove), &arg, NULL, err);
}

static int uses_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct rp_store_uses *out = ctx;
    (void)err;
    *out = (struct rp_store_uses){ .holds = row[0].i, .files = row[1].i > 0, .marks = row[2].i > 0 };
    return 0;
}

int rp_store_uses(struct rp_db *db, int64_t id, struct rp_store_uses *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    int r = rp_db_query(db, RP_SQL(store_uses), &arg, uses_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "what hangs on a store") : 0;
}

int rp_store_owned(struct rp_tx *tx, int64_t store_id, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(tx->late_ms) };
    return rp_db_exec(tx->db, RP_SQL(store_owned), args, NULL, err);
}

struct tallies {
    rp_tally_fn *fn;
    void *ctx;
};

static int tally_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct tallies *tallies = ctx;
    const struct rp_tally_row tally = { row[0].i, row[1].i, row[2].i, row[3].i };
    return tallies->fn(tallies->ctx, &tally, err);
}

int rp_tally_each(struct rp_db *db, rp_tally_fn *fn, void *ctx, struct rp_error *err)
{
    struct tallies tallies = { .fn = fn, .ctx = ctx };
    return rp_db_query(db, RP_SQL(tally_sums), NULL, tally_row, &tallies, err);
}
