/* SPDX-License-Identifier: Apache-2.0 */
/* statements/audit.h - statements over table audit; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_AUDIT_H
#define RP_CATALOG_STATEMENTS_AUDIT_H

#define AUDIT_COLUMNS "lane, seq, at, event, actor, mark_id, tenant_id, details, digest, hash"
#define AUDIT_TYPES   "iiissiisbb"
#define ITS_TENANT    "(SELECT name FROM tenant WHERE id = tenant_id)"

/* clang-format off */
#define RP_STATEMENTS_AUDIT(X)                                                                                         \
    X(audit_add,       "",     AUDIT_TYPES, NULL,                                                                      \
      "@INSERT audit (" AUDIT_COLUMNS ") VALUES @ROWS")                                                                \
    X(audit_page,      "iii",  NULL,  AUDIT_TYPES "s",                                                                 \
      "SELECT " AUDIT_COLUMNS ", " ITS_TENANT " FROM audit WHERE lane = $1 AND seq > $2 ORDER BY seq LIMIT $3")        \
    X(audit_of_mark,   "i",    NULL,  AUDIT_TYPES "s",                                                                 \
      "SELECT " AUDIT_COLUMNS ", " ITS_TENANT " FROM audit WHERE mark_id = $1 ORDER BY at, lane, seq")                 \
    X(audit_lanes,     "",     NULL,  "i",                                                                             \
      "WITH RECURSIVE l(lane) AS (SELECT MIN(lane) FROM audit UNION ALL "                                              \
      "SELECT (SELECT MIN(a.lane) FROM audit a WHERE a.lane > l.lane) FROM l WHERE l.lane IS NOT NULL) "               \
      "SELECT lane FROM l WHERE lane IS NOT NULL")                                                                     \
    X(audit_first,     "i",    NULL,  "i",                                                                             \
      "SELECT seq FROM audit WHERE lane = $1 ORDER BY seq LIMIT 1")                                                    \
    X(audit_hash_at,   "ii",   NULL,  "b",                                                                             \
      "SELECT hash FROM audit WHERE lane = $1 AND seq = $2")                                                           \
    X(audit_erase,     "ii",   NULL,  NULL,                                                                            \
      "UPDATE audit SET details = NULL WHERE lane = $1 AND seq = $2")
/* clang-format on */

#endif
