/* SPDX-License-Identifier: Apache-2.0 */
#include "core/vessel.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FACT_MAX 40
#define TABLE    "meta"

static const char *fact_of(const struct rp_store *store, char out[FACT_MAX])
{
    snprintf(out, FACT_MAX, "vessel:%" PRId64, store->id);
    return out;
}

int rp_vessel_compare(struct rp_db *db, const struct rp_store *store, bool *moved, struct rp_error *err)
{
    char name[FACT_MAX], noted[RP_VESSEL_TEXT] = "", now[RP_VESSEL_TEXT] = "";
    bool found = false;
    int64_t unused;
    int r = rp_meta_find(db, fact_of(store, name), &found, &unused, noted, sizeof noted, err);
    if (r == 0) r = rp_db_vessel(db, TABLE, now, err);
    if (r < 0) return rp_error_wrap(err, r, "vessel of the catalog");
    *moved = found && !rp_vessel_same(noted, now, store->fails_over);
    return 0;
}

/* One that says less than what was noted is not noted: this connection may not read all of it. */
int rp_vessel_note(struct rp_tx *tx, const struct rp_store *store, struct rp_error *err)
{
    char name[FACT_MAX], noted[RP_VESSEL_TEXT] = "", now[RP_VESSEL_TEXT] = "";
    bool found = false;
    int64_t unused;
    int r = rp_meta_find(tx->db, fact_of(store, name), &found, &unused, noted, sizeof noted, err);
    if (r == 0) r = rp_db_vessel(tx->db, TABLE, now, err);
    if (r < 0) return rp_error_wrap(err, r, "vessel of the catalog");
    bool less = found && strchr(now, '-') != NULL && rp_vessel_same(noted, now, store->fails_over);
    return less || (found && strcmp(noted, now) == 0) ? 0 : rp_meta_set(tx->db, name, 0, now, err);
}

int rp_vessel_refuse(const struct rp_store *store, struct rp_error *err)
{
    const char *name = store->config->name;
    rp_error_set(err, RP_ENOTOWNER, "store '%s': the catalog is not where it was: it was put back, promoted or moved",
                 name);
    return rp_error_hint(err,
                         "nothing of it is purged; if nothing was lost: `reprieve recover --moved %s`, if anything "
                         "may be: `reprieve recover %s`",
                         name, name);
}

int rp_vessel_check(struct rp_tx *tx, const struct rp_store *store, struct rp_error *err)
{
    bool moved = false;
    int r = rp_vessel_compare(tx->db, store, &moved, err);
    return r < 0 || !moved ? r : rp_vessel_refuse(store, err);
}
