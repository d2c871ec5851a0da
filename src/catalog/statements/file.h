/* SPDX-License-Identifier: Apache-2.0 */
/* statements/file.h - the statements over files, tenants, the ledger, transactions and idempotency
 * keys.
 * Included by statements.h, which explains the columns. */
#ifndef RP_CATALOG_STATEMENTS_FILE_H
#define RP_CATALOG_STATEMENTS_FILE_H

#define FILE_COLUMNS                                                                                                   \
    "id, tenant_id, name, live_name, store_id, key, status, was, shown, size_bytes, content_type, checksum, etag, "    \
    "version, modified_ms, mark_id, parent_id, source_id, txn_id, replaces_id, deleted_with, url_ends_at, "            \
    "process_key, metadata, created_at, changed_at, confirmed_at, deleted_at"
#define FILE_TYPES "iissisiiiisbssiiiiiiiissiiii"
#define F_COLUMNS                                                                                                      \
    "f.id, f.tenant_id, f.name, f.live_name, f.store_id, f.key, f.status, f.was, f.shown, f.size_bytes, "              \
    "f.content_type, f.checksum, f.etag, f.version, f.modified_ms, f.mark_id, f.parent_id, f.source_id, f.txn_id, "    \
    "f.replaces_id, f.deleted_with, f.url_ends_at, f.process_key, f.metadata, f.created_at, f.changed_at, "            \
    "f.confirmed_at, f.deleted_at"
/* True for a file that has not ended; below one that has ended nothing lives (core/file/file.h,
 * F4). */
#define NOT_OVER(f) f ".status < " F_PURGED
#define FILE_PAGE(status, which, as)                                                                                   \
    "SELECT * FROM (SELECT " FILE_COLUMNS " FROM file WHERE tenant_id = $1 AND status = " status " AND " which         \
    "id > $2 ORDER BY tenant_id, status, id LIMIT $3) AS " as
#define TENANT_COLUMNS "id, name, limit_bytes, used_bytes, reserved_bytes, open_uploads"
#define TENANT_TYPES   "isiiii"

/* What `file_below` walks along, and the step down: each arm of the OR has its index. */
#define BELOW "child.id, child.status, child.deleted_with"
#define BELOW_OF(b)                                                                                                    \
    "(child.parent_id = " b ".id AND " NOT_OVER("child") ") OR (child.source_id = " b ".id AND " NOT_OVER("child") ")"

/* clang-format off */
#define RP_STATEMENTS_FILE(X)                                                                                          \
    X(file_add,        "",     "iisisiiisbsssiiiiiiisii", NULL,                                                        \
      "@INSERT file (id, tenant_id, name, store_id, key, status, was, size_bytes, content_type, checksum, etag, "      \
      "version, metadata, modified_ms, mark_id, parent_id, source_id, txn_id, replaces_id, url_ends_at, process_key, " \
      "created_at, changed_at) VALUES @ROWS")                                                                          \
    X(file_lock,       "",     "i",   FILE_TYPES,                                                                      \
      "SELECT " F_COLUMNS " FROM (VALUES @ROWS) AS v JOIN file f ON f.id = v.column1 "                                 \
      "ORDER BY f.id @FOR_UPDATE_OF(f)")                                                                               \
    X(file_living,     "",     "is",  FILE_TYPES,                                                                      \
      "SELECT " F_COLUMNS " FROM (VALUES @ROWS) AS v JOIN file f ON f.tenant_id = v.column1 "                          \
      "AND f.live_name = v.column2 ORDER BY f.id @FOR_UPDATE_OF(f)")                                                   \
    X(file_marks,      "",     "i",   MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS_OF("m.") " FROM (VALUES @ROWS) AS v JOIN file f ON f.id = v.column1 "                     \
      "JOIN mark m ON m.id = f.mark_id ORDER BY m.id @FOR_UPDATE_OF(m)")                                               \
    X(file_below,      "i",    "i",   "i",                                                                             \
      "WITH RECURSIVE up(id) AS (VALUES @ROWS), below(id, status, deleted_with) AS ("                                  \
      "SELECT " BELOW " FROM up JOIN file child ON child.parent_id = up.id AND " NOT_OVER("child") " UNION "           \
      "SELECT " BELOW " FROM up JOIN file child ON child.source_id = up.id AND " NOT_OVER("child") " UNION "           \
      "SELECT " BELOW " FROM below b JOIN file child ON " BELOW_OF("b") ") "                                           \
      "SELECT id FROM below WHERE status < " F_DELETED " OR deleted_with IN (SELECT id FROM up) LIMIT $1")             \
    X(file_along,      "",     "i",   "ii",                                                                            \
      "WITH RECURSIVE up(id) AS (VALUES @ROWS), below(root, id) AS ("                                                  \
      "SELECT up.id, child.id FROM up JOIN file child ON child.parent_id = up.id AND " NOT_OVER("child") " UNION "     \
      "SELECT up.id, child.id FROM up JOIN file child ON child.source_id = up.id AND " NOT_OVER("child") " UNION "     \
      "SELECT b.root, child.id FROM below b JOIN file child ON " BELOW_OF("b") ") "                                    \
      "SELECT b.root, f.id FROM below b JOIN file f ON f.id = b.id JOIN file r ON r.id = b.root "                      \
      "JOIN mark m ON m.id = f.mark_id WHERE f.status = " F_DELETED " AND f.was <> " F_PENDING " "                     \
      "AND (f.deleted_with = r.id OR f.deleted_with = r.deleted_with) "                                                \
      "AND (m.state <> " M_MARKED " OR " IS_COPY("m") ") "                                                             \
      "ORDER BY f.id")                                                                                                 \
    X(file_any_below,  "",     "i",   "i",                                                                             \
      "SELECT v.column1 FROM (VALUES @ROWS) AS v "                                                                     \
      "WHERE COALESCE((SELECT child.id FROM file child WHERE child.parent_id = v.column1 "                             \
      "AND " NOT_OVER("child") " LIMIT 1), (SELECT child.id FROM file child WHERE child.source_id = v.column1 "        \
      "AND " NOT_OVER("child") " LIMIT 1)) IS NOT NULL")                                                               \
    X(file_members,    "i",    NULL,  FILE_TYPES,                                                                      \
      "SELECT " FILE_COLUMNS " FROM file WHERE txn_id = $1 ORDER BY id LIMIT 1001")                                    \
    X(file_of_keys,    "i",    "s",   "si",                                                                            \
      "SELECT f.key, f.id FROM (VALUES @ROWS) AS v JOIN file f ON f.store_id = $1 AND f.key = v.column1 "              \
      "WHERE " NOT_OVER("f"))                                                                                          \
    X(file_save,       "",     "iiisissiiisbiii", NULL,                                                                \
      "UPDATE file SET status = v.column2, was = v.column3, live_name = v.column4, shown = v.column5, "                \
      "etag = v.column6, version = v.column7, modified_ms = v.column8, mark_id = v.column9, "                          \
      "deleted_with = v.column10, metadata = v.column11, checksum = v.column12, changed_at = v.column13, "             \
      "confirmed_at = v.column14, deleted_at = v.column15 "                                                            \
      "FROM (VALUES @ROWS) AS v WHERE id = v.column1")                                                                 \
    X(file_get,        "i",    NULL,  FILE_TYPES,                                                                      \
      "SELECT " FILE_COLUMNS " FROM file WHERE id = $1")                                                               \
    X(file_status,     "iiii", NULL,  FILE_TYPES,                                                                      \
      "SELECT " FILE_COLUMNS " FROM file WHERE tenant_id = $1 AND status = $2 AND id > $3 "                            \
      "ORDER BY tenant_id, status, id LIMIT $4")                                                                       \
    X(file_visible,    "iiii", NULL,  FILE_TYPES,                                                                      \
      FILE_PAGE(F_SCANNING, "", "a") " UNION ALL "                                                                     \
      FILE_PAGE(F_LIVE, "", "b") " UNION ALL "                                                                         \
      FILE_PAGE(F_DELETED, "$4 = 1 AND ", "c") " UNION ALL "                                                           \
      FILE_PAGE(F_DELETED, "$4 = 0 AND shown = 1 AND ", "d") " UNION ALL "                                             \
      FILE_PAGE(F_PURGED, "shown = 1 AND ", "e") " ORDER BY 1 LIMIT $3")                                               \
    X(file_by_name,    "isssi", NULL, FILE_TYPES,                                                                      \
      "SELECT " FILE_COLUMNS " FROM file WHERE tenant_id = $1 AND live_name IS NOT NULL AND live_name >= $2 "          \
      "AND live_name <= $3 AND live_name > $4 ORDER BY tenant_id, live_name LIMIT $5")                                 \
                                                                                                                       \
    X(tenant_make,     "is",   NULL,  NULL,                                                                            \
      "INSERT INTO tenant (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")                                   \
    X(tenant_find,     "s",    NULL,  TENANT_TYPES,                                                                    \
      "SELECT " TENANT_COLUMNS " FROM tenant WHERE name = $1")                                                         \
    X(tenant_by_id,    "i",    NULL,  TENANT_TYPES,                                                                    \
      "SELECT " TENANT_COLUMNS " FROM tenant WHERE id = $1")                                                           \
    X(tenant_page,     "ii",   NULL,  TENANT_TYPES,                                                                    \
      "SELECT " TENANT_COLUMNS " FROM tenant WHERE id > $1 ORDER BY id LIMIT $2")                                      \
    X(tenant_lock,     "",     "i",   "i",                                                                             \
      "SELECT id FROM (VALUES @ROWS) AS v JOIN tenant ON id = v.column1 ORDER BY id @FOR_UPDATE_OF(tenant)")           \
    X(tenant_lock_free, "",    "i",   "i",                                                                             \
      "SELECT id FROM (VALUES @ROWS) AS v JOIN tenant ON id = v.column1 ORDER BY id "                                  \
      "@FOR_UPDATE_OF(tenant) @SKIP_LOCKED")                                                                           \
    X(tenant_load,     "",     "i",   TENANT_TYPES,                                                                    \
      "SELECT " TENANT_COLUMNS " FROM (VALUES @ROWS) AS v JOIN tenant ON id = v.column1 ORDER BY id")                  \
    X(tenant_limit,    "ii",   NULL,  NULL,                                                                            \
      "UPDATE tenant SET limit_bytes = $2 WHERE id = $1")                                                              \
    X(tenant_count,    "",     "iiii", NULL,                                                                           \
      "UPDATE tenant SET used_bytes = used_bytes + v.column2, reserved_bytes = reserved_bytes + v.column3, "           \
      "open_uploads = open_uploads + v.column4 FROM (VALUES @ROWS) AS v WHERE id = v.column1")                         \
    X(tenant_set,      "iiii", NULL,  NULL,                                                                            \
      "UPDATE tenant SET used_bytes = $2, reserved_bytes = $3, open_uploads = $4 WHERE id = $1")                       \
    X(tenant_compare,  "ii",   NULL,  "isiiiiiiii",                                                                    \
      "WITH summed(tenant_id, used, reserved, open) AS MATERIALIZED (SELECT tenant_id, "                               \
      "CAST(COALESCE(SUM(CASE WHEN used > 0 THEN bytes ELSE 0 END), 0) AS BIGINT), "                                   \
      "CAST(COALESCE(SUM(CASE WHEN used = 0 THEN bytes ELSE 0 END), 0) AS BIGINT), "                                   \
      "CAST(COALESCE(SUM(CASE WHEN used = 0 AND refunds = 0 THEN 1 ELSE 0 END), 0) AS BIGINT) FROM "                   \
      "(SELECT tenant_id, file_id, MAX(CASE WHEN kind = " L_USE " THEN 1 ELSE 0 END) AS used, "                        \
      "MAX(CASE WHEN kind = " L_REFUND " THEN 1 ELSE 0 END) AS refunds, "                                              \
      "SUM(CASE kind WHEN " L_RESERVE " THEN bytes WHEN " L_REFUND " THEN -bytes ELSE 0 END) AS bytes FROM ledger "    \
      "WHERE tenant_id >= $1 AND tenant_id <= $2 GROUP BY tenant_id, file_id) AS per_file GROUP BY tenant_id) "        \
      "SELECT " TENANT_COLUMNS ", 0, 0, 0, 0 FROM tenant WHERE id >= $1 AND id <= $2 UNION ALL "                       \
      "SELECT tenant_id, '', NULL, 0, 0, 0, 1, used, reserved, open FROM summed ORDER BY 1, 7")                        \
    X(ledger_add,      "",     "iiiii", NULL,                                                                          \
      "@INSERT ledger (file_id, kind, tenant_id, bytes, at) VALUES @ROWS ON CONFLICT (file_id, kind) DO NOTHING")      \
                                                                                                                       \
    X(txn_add,         "iiiisi", NULL, NULL,                                                                           \
      "INSERT INTO txn (id, tenant_id, state, members, ends_at, actor, created_at, changed_at) "                       \
      "VALUES ($1, $2, $3, 0, $4, $5, $6, $6)")                                                                        \
    X(txn_lock,        "",     "i",   "iiiiiii",                                                                       \
      "SELECT id, tenant_id, state, members, ends_at, created_at, changed_at FROM (VALUES @ROWS) AS v "                \
      "JOIN txn ON id = v.column1 ORDER BY id @FOR_UPDATE_OF(txn)")                                                    \
    X(txn_save,        "",     "iiii", NULL,                                                                           \
      "UPDATE txn SET state = v.column2, members = v.column3, changed_at = v.column4 FROM (VALUES @ROWS) AS v "        \
      "WHERE id = v.column1")                                                                                          \
    X(txn_get,         "i",    NULL,  "iiiiiii",                                                                       \
      "SELECT id, tenant_id, state, members, ends_at, created_at, changed_at FROM txn WHERE id = $1")                  \
                                                                                                                       \
    X(key_find,        "",     "i",   "iisbis",                                                                        \
      "SELECT k.tenant_id, k.key_hash, k.key, k.body_digest, k.status, k.answer FROM (VALUES @ROWS) AS v "             \
      "JOIN idempotency k ON k.key_hash = v.column1")                                                                  \
    X(key_keep,        "",     "iiisbis", NULL,                                                                        \
      "INSERT INTO idempotency (id, key_hash, tenant_id, key, body_digest, status, answer) VALUES @ROWS "              \
      "ON CONFLICT (key_hash) DO NOTHING")                                                                             \
    X(key_amend,       "iibis", NULL, NULL,                                                                            \
      "UPDATE idempotency SET status = $4, answer = $5 WHERE key_hash = $1 AND tenant_id = $2 AND body_digest = $3")
/* clang-format on */

#endif
