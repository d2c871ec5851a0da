/* SPDX-License-Identifier: Apache-2.0 */
/* statements/hold.h - statements over table hold; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_HOLD_H
#define RP_CATALOG_STATEMENTS_HOLD_H

#define HOLD_COLUMNS "id, scope, store_id, key, tenant_id, reason, actor, placed_at"
#define HOLD_TYPES   "iiisissi"

/* True for a mark `m` that an active hold covers; a copy in quarantine also by the key that it came
 * from. */
#define ACTIVE_HOLD "EXISTS (SELECT 1 FROM hold h WHERE h.lifted_at IS NULL AND h.scope = "
#define HELD(m)                                                                                                        \
    "(" ACTIVE_HOLD H_EVERYTHING ")"                                                                                   \
    " OR " ACTIVE_HOLD H_SUBJECT " AND h.store_id = " m ".store_id AND h.key IN (" m ".key, " m ".original))"          \
    " OR " ACTIVE_HOLD H_PREFIX " AND h.store_id = " m ".store_id AND (substr(" m ".key, 1, length(h.key)) = h.key"    \
    " OR substr(" m ".original, 1, length(h.key)) = h.key))"                                                           \
    " OR " ACTIVE_HOLD H_TENANT " AND h.tenant_id = " m ".tenant_id))"

/* clang-format off */
#define RP_STATEMENTS_HOLD(X)                                                                                          \
    X(hold_add,        HOLD_TYPES, NULL, NULL,                                                                         \
      "INSERT INTO hold (" HOLD_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")                                   \
    X(hold_lift,       "iis",  NULL,  "i",                                                                             \
      "UPDATE hold SET lifted_at = $2, lifted_by = $3 WHERE id = $1 AND lifted_at IS NULL RETURNING id")               \
    X(hold_list,       "",     NULL,  HOLD_TYPES,                                                                      \
      "SELECT " HOLD_COLUMNS " FROM hold WHERE lifted_at IS NULL ORDER BY id + 0")
/* clang-format on */

#endif
