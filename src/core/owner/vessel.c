/* SPDX-License-Identifier: Apache-2.0 */
/* vessel.c - whether the catalog still lies where it did, and each lane ends where this process left it. */
#include "core/owner/vessel.h"

#include "base/error.h"
#include "catalog/writer/lane.h"
#include "core/owner/facts.h"
#include "core/owner/raise.h"
#include "core/owner/refuse.h"

#include <string.h>

#define TABLE "meta"

struct vessel {
    char name[RP_OWNER_FACT_MAX];
    bool found;
    char noted[RP_VESSEL_TEXT], now[RP_VESSEL_TEXT];
};

static int look(struct rp_db *db, const struct rp_store *store, struct vessel *out, struct rp_error *err)
{
    int64_t unused;
    *out = (struct vessel){ .found = false };
    rp_owner_fact(RP_OWNER_VESSEL, store->id, out->name);
    int r = rp_meta_find(db, out->name, &out->found, &unused, out->noted, sizeof out->noted, err);
    if (r == 0) r = rp_db_vessel(db, TABLE, out->now, err);
    return r < 0 ? rp_error_wrap(err, r, "place of the catalog") : 0;
}

int rp_vessel_compare(struct rp_db *db, const struct rp_store *store, bool *moved, struct rp_error *err)
{
    struct vessel v;
    int r = look(db, store, &v, err);
    if (r == 0) *moved = v.found && !rp_vessel_same(v.noted, v.now, store->fails_over);
    return r;
}

/* One that says less than what was noted is not noted: this connection may not read all of it. */
int rp_vessel_note(struct rp_tx *tx, const struct rp_store *store, struct rp_error *err)
{
    struct vessel v;
    int r = look(tx->db, store, &v, err);
    if (r < 0) return r;
    bool less = v.found && strchr(v.now, '-') != NULL && rp_vessel_same(v.noted, v.now, store->fails_over);
    return less || (v.found && strcmp(v.noted, v.now) == 0) ? 0 : rp_meta_set(tx->db, v.name, 0, v.now, err);
}

/* raise.h, R8. */
static int check_lane_ends(struct rp_tx *tx, const struct rp_store *store, bool *unchanged, struct rp_error *err)
{
    struct rp_lane_end ends[RP_LANE_ENDS_MAX];
    size_t n = store->raises != NULL ? rp_raises_lane_ends(store->raises, ends) : 0;
    int r = 0;
    *unchanged = true;
    for (size_t i = 0; i < n && r == 0 && *unchanged; i++) {
        r = rp_lane_is_unchanged(tx->db, &ends[i], unchanged, err);
        if (r == 0 && !*unchanged) rp_lane_doubt(tx->catalog, &ends[i]);
    }
    return r;
}

int rp_vessel_check(struct rp_tx *tx, const struct rp_store *store, struct rp_error *err)
{
    bool moved = false, unchanged = true;
    int r = rp_vessel_compare(tx->db, store, &moved, err);
    if (r == 0 && !moved) r = check_lane_ends(tx, store, &unchanged, err);
    return r < 0 || (!moved && unchanged) ? r : rp_owner_refuse_vessel(store, err);
}
