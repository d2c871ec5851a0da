/* SPDX-License-Identifier: Apache-2.0 */
/* statements/orphan.h - what nothing would find any more: files without their mark, children of
 * what is gone, marks that nobody looks at; joined into RP_STATEMENTS (statements.h). Every look
 * is a page of an index that holds nothing that lives. */
#ifndef RP_CATALOG_STATEMENTS_ORPHAN_H
#define RP_CATALOG_STATEMENTS_ORPHAN_H

/* Whether there is one, asked row by row: of EXISTS PostgreSQL may make a table of all there are. */
#define NONE(select)  "(" select " LIMIT 1) IS NULL"
#define SOME(select)  "(" select " LIMIT 1) IS NOT NULL"
#define LIVING(owner) "SELECT child.id FROM file child WHERE child." owner " AND child.status IN " F_LIVING
/* True for a file `f` that waits for a mark, and none waits for it: its last one has ended, or is
 * not there. Not if a person has given that one up, nor while another mark waits under
 * the file's key. A mark that says it is another file's is no case that a new one would mend. */
#define LOST_ITS_MARK(f)                                                                                               \
    f ".status IN (" F_PENDING ", " F_DELETED ") AND " NONE(                                                           \
        "SELECT m.id FROM mark m WHERE m.id = " f ".mark_id AND (m.active = 1 OR m.outcome = " END_KEPT " "            \
        "OR m.file_id IS NULL OR m.file_id <> " f                                                                      \
        ".id)") " AND " NONE("SELECT k.id FROM mark k WHERE k.store_id = " f ".store_id AND k.key = " f                \
                             ".key AND k.active = 1") " AND " SOME("SELECT s.id FROM store s WHERE s.id = " f          \
                                                                   ".store_id")
/* True for a file `f` that is gone, and something that belongs to it lives. */
#define HAS_LIVING(f)                                                                                                  \
    f ".status IN " F_GONE " AND (" SOME(LIVING("parent_id = " f ".id")) " OR " SOME(LIVING("source_id = " f ".id")) ")"
/* True for a mark `m` that waits for a person, and no letter says so. */
#define LOST_ITS_LETTER(m)                                                                                             \
    m ".state = " M_DEAD " AND " m ".was IN " M_CLAIMED                                                                \
      " AND " NONE("SELECT d.id FROM dead_letter d WHERE d.mark_id = " m ".id AND d.open = 1")

/* Each status has an index of its own: of an index for all of them neither engine takes the next page
 * without walking over those before, or over what lives. */
#define GONE_PAGE(s)                                                                                                   \
    "SELECT * FROM (SELECT * FROM file WHERE status + 0 = " s " AND $1 = " s                                           \
    " AND id > $2 ORDER BY id LIMIT $3) AS of" s

/* clang-format off */
#define RP_STATEMENTS_ORPHAN(X)                                                                                        \
    X(orphan_files,    "iii",  NULL,  "iiisiii",                                                                       \
      "SELECT id, tenant_id, store_id, key, status, CASE WHEN " LOST_ITS_MARK("page") " THEN 1 ELSE 0 END, "           \
      "CASE WHEN " HAS_LIVING("page") " THEN 1 ELSE 0 END FROM (" GONE_PAGE(F_PENDING) " UNION ALL "                   \
      GONE_PAGE(F_DELETED)                                                                                             \
      " UNION ALL " GONE_PAGE(F_PURGED) " UNION ALL " GONE_PAGE(F_EXPIRED) ") AS page ORDER BY id")                    \
    X(orphan_lost,     "",     "i",   "i",                                                                             \
      "SELECT f.id FROM (VALUES @ROWS) AS v JOIN file f ON f.id = v.column1 WHERE " LOST_ITS_MARK("f"))                \
    X(orphan_children, "i",    "i",   "iiisi",                                                                         \
      "WITH v(column1) AS (VALUES @ROWS) "                                                                             \
      "SELECT child.id, child.tenant_id, child.store_id, child.key, v.column1 FROM v "                                 \
      "JOIN file child ON child.parent_id = v.column1 AND child.status IN " F_LIVING " UNION ALL "                     \
      "SELECT child.id, child.tenant_id, child.store_id, child.key, v.column1 FROM v "                                 \
      "JOIN file child ON child.source_id = v.column1 AND child.status IN " F_LIVING " LIMIT $1")                      \
    X(orphan_marks,    "ii",   NULL,  "iiisi",                                                                         \
      "SELECT id, tenant_id, store_id, key, 1 FROM mark WHERE next_at IS NULL AND active = 1 "                         \
      "AND state IN " M_ACTIVE " AND id > $1 ORDER BY id LIMIT $2")                                                    \
    X(orphan_dead,     "ii",   NULL,  "iiisi",                                                                         \
      "SELECT id, tenant_id, store_id, key, CASE WHEN " LOST_ITS_LETTER("page") " THEN 1 ELSE 0 END "                  \
      "FROM (SELECT * FROM mark WHERE state = " M_DEAD " AND id > $1 ORDER BY id LIMIT $2) AS page ORDER BY id")       \
    X(orphan_letterless, "",   "i",   "i",                                                                             \
      "SELECT m.id FROM (VALUES @ROWS) AS v JOIN mark m ON m.id = v.column1 WHERE " LOST_ITS_LETTER("m"))              \
    X(mark_watch,      "",     "ii",  NULL,                                                                            \
      "UPDATE mark SET next_at = v.column2 FROM (VALUES @ROWS) AS v WHERE id = v.column1 AND next_at IS NULL "         \
      "AND active = 1 AND state IN " M_ACTIVE)
/* clang-format on */

#endif
