/* SPDX-License-Identifier: Apache-2.0 */
/* statements/dead.h - statements over table dead_letter; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_DEAD_H
#define RP_CATALOG_STATEMENTS_DEAD_H

#define DEAD_COLUMNS "id, mark_id, from_state, attempts, error, died_at"
#define DEAD_TYPES   "iiiisi"

/* clang-format off */
#define RP_STATEMENTS_DEAD(X)                                                                                          \
    X(dead_add,        "",     DEAD_TYPES, NULL,                                                                       \
      "INSERT INTO dead_letter (" DEAD_COLUMNS ", open) "                                                              \
      "SELECT column1, column2, column3, column4, column5, column6, 1 FROM (VALUES @ROWS) AS v")                       \
    X(dead_end,        "",     "iiss", NULL,                                                                           \
      "UPDATE dead_letter SET open = NULL, ended_at = v.column2, ended_as = v.column3, ended_by = v.column4 "          \
      "FROM (VALUES @ROWS) AS v WHERE mark_id = v.column1 AND open = 1")                                               \
    X(dead_list,       "iiis", NULL,  DEAD_TYPES,                                                                      \
      "SELECT " DEAD_COLUMNS " FROM dead_letter d WHERE open IS NOT NULL AND id > $1 "                                 \
      "AND died_at >= $3 AND ($4 = '' OR $4 = " NEXT_CONFIRMER("d.mark_id") ") ORDER BY id LIMIT $2")                  \
    X(dead_get,        "i",    NULL,  DEAD_TYPES,                                                                      \
      "SELECT " DEAD_COLUMNS " FROM dead_letter WHERE id = $1 AND open IS NOT NULL")                                   \
    X(dead_of_mark,    "i",    NULL,  DEAD_TYPES,                                                                      \
      "SELECT " DEAD_COLUMNS " FROM dead_letter WHERE mark_id = $1 AND open = 1")                                      \
    X(dead_tenants,    "i",    NULL,  "i",                                                                             \
      "SELECT DISTINCT m.tenant_id FROM dead_letter d JOIN mark m ON m.id = d.mark_id "                                \
      "WHERE d.open IS NOT NULL AND d.id > $1")                                                                        \
    X(dead_tenant,     "",     "i",   "i",                                                                             \
      "SELECT DISTINCT m.tenant_id FROM (VALUES @ROWS) AS v JOIN dead_letter d ON d.id = v.column1 "                   \
      "JOIN mark m ON m.id = d.mark_id")
/* clang-format on */

#endif
