/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.h - answers kept under (tenant, Idempotency-Key). The key's digest is shortened to 64
 * bits for the index; the text stands beside it and is compared, so that two keys with one hash are
 * told apart (the second is refused: RP_EKEYREUSED). */
#ifndef RP_CATALOG_IDEMPOTENCY_H
#define RP_CATALOG_IDEMPOTENCY_H

#include "base/text/buf.h"
#include "catalog/catalog.h"

#define RP_IDEMPOTENCY_KEY_MAX 255

struct rp_saved {
    int64_t tenant_id, hash; /* hash: rp_key_hash of both */
    const char *key;
    const uint8_t *digest; /* of the request */
    /* out of a look-up */
    bool found;
    int code; /* RP_EKEYREUSED: kept for another request */
    int status;
    const char *answer; /* of the arena */
};

int64_t rp_key_hash(int64_t tenant_id, const char *key);
/* Fills the outputs of each. */
int rp_keys_find(struct rp_db *db, struct rp_saved *keys, size_t n, struct rp_arena *arena, struct rp_error *err);
/* Keeps status and answer of each. RP_ECONFLICT: one is kept already. */
int rp_keys_save(struct rp_tx *tx, struct rp_saved *keys, size_t n, struct rp_error *err);
/* Another status and answer for the same request. */
int rp_key_amend(struct rp_tx *tx, const struct rp_saved *key, struct rp_error *err);

#endif
