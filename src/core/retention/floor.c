/* SPDX-License-Identifier: Apache-2.0 */
/* floor.c - where the next run's look begins, so that what has to stay for long is not walked past
 * every night. */
#include "core/retention/steps.h"

int rp_retention_floor_load(struct rp_db *db, const char *name, int64_t *behind, struct rp_error *err)
{
    bool found = false;
    int64_t kept = 0;
    char word[8];
    int r = rp_meta_find(db, name, &found, &kept, word, sizeof word, err);
    if (r == 0) *behind = found ? kept : 0;
    return r;
}

int rp_retention_floor_save(struct rp_tx *tx, const char *name, int64_t first_kept, int64_t seen, struct rp_error *err)
{
    return rp_meta_set(tx->db, name, first_kept != 0 ? first_kept - 1 : seen, "", err);
}
