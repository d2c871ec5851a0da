/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/mark/hold.h"

#include "base/error.h"
#include "base/id.h"
#include "base/time.h"
#include "catalog/statements/statements.h"

#include <string.h>

int rp_hold_add(struct rp_tx *tx, const struct rp_hold *hold, struct rp_error *err)
{
    int64_t epoch;
    struct rp_value args[] = {
        rp_int(hold->id),
        rp_int(hold->scope),
        rp_int_or_null(hold->store_id != 0, hold->store_id),
        rp_text(hold->key),
        rp_int_or_null(hold->tenant_id != 0, hold->tenant_id),
        rp_text(hold->reason),
        rp_text(hold->actor),
        rp_int(hold->placed_at_ms),
    };
    int r = rp_meta_raise(tx->db, "hold_epoch", 0, &epoch, err);
    if (r == 0) r = rp_db_exec(tx->db, RP_SQL(hold_add), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "place a hold") : 0;
}

int rp_hold_lift(struct rp_tx *tx, int64_t id, const char *actor, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(id), rp_int(tx->late_ms), rp_text(actor) };
    struct rp_one one = { 0 };
    char text[RP_ID_TEXT];
    int r = rp_db_query(tx->db, RP_SQL(hold_lift), args, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "lift a hold");
    if (one.found) return 0;
    rp_error_set(err, RP_ENOTFOUND, "no hold %s in force", rp_id_format(RP_ID_HOLD, id, text));
    rp_error_hint(err, "`reprieve hold` lists them");
    return RP_ENOTFOUND;
}

static bool covers_key(const struct rp_hold *hold, const char *key)
{
    if (key == NULL) return false;
    return hold->scope == RP_SCOPE_PREFIX ? strncmp(hold->key, key, strlen(hold->key)) == 0
                                          : strcmp(hold->key, key) == 0;
}

bool rp_hold_covers(const struct rp_hold *hold, const struct rp_mark *mark)
{
    switch (hold->scope) {
    case RP_SCOPE_SUBJECT:
    case RP_SCOPE_PREFIX:
        return hold->store_id == mark->store_id && (covers_key(hold, mark->key) || covers_key(hold, mark->original));
    case RP_SCOPE_TENANT:
        return hold->tenant_id == mark->tenant_id;
    default:
        return true;
    }
}

struct each {
    rp_hold_fn *fn;
    void *ctx;
};

static int each_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct each *each = ctx;
    struct rp_hold hold = { .id = v[0].i,
                            .scope = (enum rp_scope)v[1].i,
                            .store_id = v[2].i,
                            .key = v[3].type == RP_NULL_T ? NULL : v[3].p,
                            .tenant_id = v[4].i,
                            .reason = v[5].p,
                            .actor = v[6].p,
                            .placed_at_ms = v[7].i };
    return each->fn(each->ctx, &hold, err);
}

int rp_hold_each(struct rp_db *db, rp_hold_fn *fn, void *ctx, struct rp_error *err)
{
    struct each each = { .fn = fn, .ctx = ctx };
    return rp_db_query(db, RP_SQL(hold_list), NULL, each_row, &each, err);
}

int rp_hold_claimed(struct rp_db *db, int64_t store_id, int64_t after_id, struct rp_marks *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(store_id), rp_int(after_id), rp_int((int64_t)(out->max - out->n)) };
    if (out->n == out->max) return 0;
    int r = rp_db_query(db, RP_SQL(mark_claimed), args, rp_marks_row, out, err);
    return r < 0 ? rp_error_wrap(err, r, "look for claimed marks") : 0;
}
