/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/writer/idempotency.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"
#include "catalog/row.h"
#include "catalog/statements/statements.h"

#include <string.h>

/* Mixed well, because parts of it choose an index page; the key itself is compared. */
int64_t rp_key_hash(int64_t tenant_id, const char *key)
{
    uint64_t h = rp_hash_text((uint64_t)tenant_id, key);
    h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (int64_t)(h ^ (h >> 31));
}

struct finding {
    struct rp_saved *keys;
    size_t n;
    struct rp_arena *arena;
};

static int found_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct finding *f = ctx;
    for (size_t i = 0; i < f->n; i++) {
        struct rp_saved *k = &f->keys[i];
        if (k->hash != row[1].i) continue;
        bool same = k->tenant_id == row[0].i && strcmp(k->key, row[2].p) == 0 && row[3].n == RP_DIGEST_BYTES &&
                    memcmp(k->digest, row[3].p, RP_DIGEST_BYTES) == 0;
        k->found = true;
        k->code = same ? 0 : RP_EKEYREUSED;
        k->status = (int)row[4].i;
        k->answer = rp_arena_copy(f->arena, row[5].p, row[5].n);
        if (k->answer == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an answer");
    }
    return 0;
}

int rp_keys_find(struct rp_db *db, struct rp_saved *keys, size_t n, struct rp_arena *arena, struct rp_error *err)
{
    struct rp_rows rows = rp_rows_of(RP_SQL(key_find), arena, n);
    struct finding f = { .keys = keys, .n = n, .arena = arena };
    for (size_t i = 0; i < n; i++) {
        keys[i].found = false;
        keys[i].code = 0;
        rp_rows_add(&rows, RP_ROW(rp_int(keys[i].hash)));
    }
    int r = rp_rows_query(&rows, db, NULL, found_row, &f, err);
    return r < 0 ? rp_error_wrap(err, r, "look for kept answers") : 0;
}

int rp_keys_save(struct rp_tx *tx, struct rp_saved *keys, size_t n, struct rp_error *err)
{
    int64_t changed = 0;
    struct rp_rows rows = rp_rows_of(RP_SQL(key_keep), tx->arena, n);
    for (size_t i = 0; i < n; i++) {
        rp_rows_add(&rows, RP_ROW(rp_int(rp_tx_new_id(tx)), rp_int(keys[i].hash), rp_int(keys[i].tenant_id),
                                  rp_text(keys[i].key), rp_bytes(keys[i].digest, RP_DIGEST_BYTES),
                                  rp_int(keys[i].status), rp_text(keys[i].answer)));
    }
    int r = rp_rows_exec(&rows, tx->db, NULL, &changed, err);
    if (r < 0) return rp_error_wrap(err, r, "keep answers");
    if (changed != (int64_t)n) return rp_error_set(err, RP_ECONFLICT, "keep answers: another writer was faster");
    return 0;
}

int rp_key_amend(struct rp_tx *tx, const struct rp_saved *key, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(key->hash), rp_int(key->tenant_id), rp_bytes(key->digest, RP_DIGEST_BYTES),
                               rp_int(key->status), rp_text(key->answer) };
    int r = rp_db_exec(tx->db, RP_SQL(key_amend), args, NULL, err);
    return r < 0 ? rp_error_wrap(err, r, "amend an answer") : 0;
}
