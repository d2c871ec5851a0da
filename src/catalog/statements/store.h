/* SPDX-License-Identifier: Apache-2.0 */
/* statements/store.h - statements over table store; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_STORE_H
#define RP_CATALOG_STATEMENTS_STORE_H

#define STORE_COLUMNS "id, kind, name, owned_at"
#define STORE_TYPES   "iisi"

/* clang-format off */
#define RP_STATEMENTS_STORE(X)                                                                                         \
    X(store_list,      "",     NULL,  STORE_TYPES,                                                                     \
      "SELECT " STORE_COLUMNS " FROM store ORDER BY id")                                                               \
    X(store_find,      "s",    NULL,  STORE_TYPES,                                                                     \
      "SELECT " STORE_COLUMNS " FROM store WHERE name = $1")                                                           \
    X(store_name,      "i",    NULL,  "s",                                                                             \
      "SELECT name FROM store WHERE id = $1")                                                                          \
    X(store_add,       "is",   NULL,  NULL,                                                                            \
      "INSERT INTO store (id, kind, name) SELECT MAX(id) + 1, $1, $2 FROM (SELECT COALESCE(MAX(id), 0) AS id "         \
      "FROM store UNION ALL SELECT number FROM meta WHERE name = 'store_gone') AS known WHERE true "                   \
      "ON CONFLICT DO NOTHING")                                                                                        \
    X(store_share,     "i",    NULL,  "i",                                                                             \
      "SELECT id FROM store WHERE id = $1 @FOR_SHARE")                                                                 \
    X(store_lock,      "i",    NULL,  "i",                                                                             \
      "SELECT id FROM store WHERE id = $1 @FOR_UPDATE")                                                                \
    X(store_rename,    "is",   NULL,  NULL,                                                                            \
      "UPDATE store SET name = $2 WHERE id = $1")                                                                      \
    X(store_remove,    "i",    NULL,  NULL,                                                                            \
      "DELETE FROM store WHERE id = $1")                                                                               \
    X(store_uses,      "i",    NULL,  "iii",                                                                           \
      "SELECT (SELECT COUNT(*) FROM hold WHERE lifted_at IS NULL AND scope IN " H_OF_A_STORE " AND store_id = $1), "   \
      "(SELECT COUNT(*) FROM (SELECT id FROM file WHERE store_id = $1 LIMIT 1) AS f), "                                \
      "(SELECT COUNT(*) FROM (SELECT id FROM mark WHERE store_id = $1 LIMIT 1) AS m)")                                 \
    X(store_owned,     "ii",   NULL,  NULL,                                                                            \
      "UPDATE store SET owned_at = $2 WHERE id = $1 AND owned_at IS NULL")
/* clang-format on */

#endif
