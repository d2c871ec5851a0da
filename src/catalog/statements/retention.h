/* SPDX-License-Identifier: Apache-2.0 */
/* statements/retention.h - rows of what has ended long ago: found, looked at again, and removed;
 * joined into RP_STATEMENTS (statements.h). What is found is found by an index, a page at a time;
 * what is removed is named by id. */
#ifndef RP_CATALOG_STATEMENTS_RETENTION_H
#define RP_CATALOG_STATEMENTS_RETENTION_H

#define OLD_MARK       "id, store_id, key, tenant_id, file_id, original, ended_at"
#define OLD_MARK_TYPES "iisiisi"
/* A page of marks that ended in this state before $1, behind ($2, $3). */
#define OLD_MARKS(state)                                                                                               \
    "SELECT * FROM (SELECT " OLD_MARK " FROM mark WHERE state = " state " AND ended_at IS NOT NULL AND ended_at < $1 " \
    "AND (ended_at, id) > ($2, $3) ORDER BY state, ended_at, id LIMIT $4) AS m" state

/* A mark `m` waits, or ended at $1 or later. */
#define TOO_YOUNG(m) "(" m ".active = 1 OR " m ".ended_at >= $1)"
#define OLD_FILE     "o.id, o.tenant_id, o.txn_id, o.changed_at"
#define OVER(f)      f "status IN " F_OVER " AND " f "shown = 0 AND " f "changed_at < $1"
/* A transaction `t` ended, or could no longer be committed, before that moment. */
#define TXN_OLD(t, before)                                                                                             \
    "(" t ".ends_at < " before " OR (" t ".state IN " T_ENDED " AND " t ".changed_at < " before "))"
#define ITS_TXN_IS_OLD "NOT EXISTS (SELECT 1 FROM txn t WHERE t.id = o.txn_id AND NOT " TXN_OLD("t", "$1") ")"
#define NO_YOUNG_MARK(of)                                                                                              \
    "NOT EXISTS (SELECT 1 FROM mark m WHERE m.store_id = o.store_id AND m." of " = o.key AND " TOO_YOUNG("m") ")"
#define REFUNDED "EXISTS (SELECT 1 FROM ledger l WHERE l.file_id = o.id AND l.kind = " L_REFUND ")"
/* True for a file `o` that is over: nothing belongs to it, its marks and those of its copies are
 * old, its bytes were given back, and its transaction is old. */
#define FILE_MAY_GO                                                                                                    \
    "NOT EXISTS (SELECT 1 FROM file c WHERE c.parent_id = o.id) "                                                      \
    "AND NOT EXISTS (SELECT 1 FROM file c WHERE c.source_id = o.id) "                                                  \
    "AND " NO_YOUNG_MARK("key") " AND " NO_YOUNG_MARK("original") " AND " REFUNDED " AND " ITS_TXN_IS_OLD

/* Marks of files, and of their copies. */
#define MARKS_OF_FILES                                                                                                 \
    "WITH o AS MATERIALIZED (SELECT x.store_id, x.key FROM (VALUES @ROWS) AS v JOIN file x ON x.id = v.column1) "      \
    "SELECT m.id FROM o JOIN mark m ON m.store_id = o.store_id AND m.key = o.key UNION "                               \
    "SELECT m.id FROM o JOIN mark m ON m.store_id = o.store_id AND m.original = o.key"

/* marks_older counts no further than a batch (RP_RETENTION_BATCH) can have of them. In
 * copies_waiting: `|| ''` keeps both engines from walking along an index of keys to the first of
 * them. */
/* clang-format off */
#define RP_STATEMENTS_RETENTION(X)                                                                                     \
    X(old_keys,        "iii",  NULL,  "i",                                                                             \
      "SELECT id FROM idempotency WHERE id < $1 AND id > $2 ORDER BY id LIMIT $3")                                     \
    X(keys_remove,     "",     "i",   NULL,                                                                            \
      "DELETE FROM idempotency WHERE id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                                 \
                                                                                                                       \
    X(old_marks,       "iiii", NULL,  OLD_MARK_TYPES,                                                                  \
      OLD_MARKS(M_PURGED) " UNION ALL " OLD_MARKS(M_REPRIEVED) " UNION ALL " OLD_MARKS(M_LOST)                         \
      " ORDER BY 7, 1 LIMIT $4")                                                                                       \
    X(old_marks_lock,  "i",    "i",   OLD_MARK_TYPES,                                                                  \
      "SELECT " OLD_MARK " FROM (VALUES @ROWS) AS v JOIN mark ON id = v.column1 "                                      \
      "WHERE active IS NULL AND ended_at < $1 ORDER BY id @FOR_UPDATE_OF(mark) @SKIP_LOCKED")                          \
    X(copies_waiting,  "",     "is",  "iss",                                                                           \
      "SELECT v.column1, v.column2, (SELECT MIN(q.key || '') FROM mark q WHERE q.store_id = v.column1 "                \
      "AND q.original = v.column2 AND q.active = 1) FROM (VALUES @ROWS) AS v")                                         \
    X(marks_there,     "",     "i",   "i",                                                                             \
      "SELECT id FROM (VALUES @ROWS) AS v JOIN mark ON id = v.column1")                                                \
    X(marks_older,     "",     "i",   "ii",                                                                            \
      "SELECT m.id, (SELECT COUNT(*) FROM (SELECT 1 FROM mark q WHERE q.store_id = m.store_id AND q.key = m.key "      \
      "AND q.id < m.id LIMIT 1001) AS few) FROM (VALUES @ROWS) AS v JOIN mark m ON m.id = v.column1")                  \
    X(letters_remove,  "",     "i",   NULL,                                                                            \
      "DELETE FROM dead_letter WHERE mark_id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                            \
    X(marks_remove,    "",     "i",   "iii",                                                                           \
      "DELETE FROM mark WHERE active IS NULL AND id IN (SELECT column1 FROM (VALUES @ROWS) AS v) "                     \
      "RETURNING store_id, state, size_bytes")                                                                         \
                                                                                                                       \
    X(old_files,       "iiii", NULL,  "iiiii",                                                                         \
      "SELECT " OLD_FILE ", CASE WHEN " FILE_MAY_GO " THEN 1 ELSE 0 END FROM (SELECT * FROM file WHERE " OVER("")      \
      " AND (changed_at, id) > ($2, $3) ORDER BY changed_at, id LIMIT $4) AS o ORDER BY o.changed_at, o.id")           \
    X(old_files_tenants, "",   "i",   "ii",                                                                            \
      "SELECT f.id, f.tenant_id FROM (VALUES @ROWS) AS v JOIN file f ON f.id = v.column1")                             \
    X(old_files_lock,  "i",    "i",   "iiii",                                                                          \
      "SELECT " OLD_FILE " FROM (VALUES @ROWS) AS v JOIN file o ON o.id = v.column1 "                                  \
      "WHERE " OVER("o.") " AND " FILE_MAY_GO " ORDER BY o.id @FOR_UPDATE_OF(o)")                                      \
    X(letters_of_files, "",    "i",   NULL,                                                                            \
      "DELETE FROM dead_letter WHERE mark_id IN (" MARKS_OF_FILES ")")                                                 \
    X(marks_of_files,  "",     "i",   "iii",                                                                           \
      "DELETE FROM mark WHERE active IS NULL AND id IN (" MARKS_OF_FILES ") RETURNING store_id, state, size_bytes")    \
    X(ledger_remove,   "",     "i",   NULL,                                                                            \
      "DELETE FROM ledger WHERE file_id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                                 \
    X(files_remove,    "",     "i",   NULL,                                                                            \
      "DELETE FROM file WHERE id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                                        \
                                                                                                                       \
    X(old_txns,        "iiii", NULL,  "iiii",                                                                          \
      "SELECT id, tenant_id, members, CASE WHEN " TXN_OLD("txn", "$4") " THEN 1 ELSE 0 END FROM txn "                  \
      "WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3")                                                                \
    X(txns_remove,     "i",    "i",   NULL,                                                                            \
      "DELETE FROM txn WHERE id IN (SELECT column1 FROM (VALUES @ROWS) AS v) AND " TXN_OLD("txn", "$1") " "            \
      "AND NOT EXISTS (SELECT 1 FROM file f WHERE f.txn_id = txn.id)")                                                 \
    X(txns_tenants,    "",     "i",   "ii",                                                                            \
      "SELECT t.id, t.tenant_id FROM (VALUES @ROWS) AS v JOIN txn t ON t.id = v.column1")                              \
                                                                                                                       \
    X(old_holds,       "iii",  NULL,  "i",                                                                             \
      "SELECT id FROM hold WHERE id > $1 AND lifted_at < $2 ORDER BY id LIMIT $3")                                     \
    X(holds_remove,    "",     "i",   NULL,                                                                            \
      "DELETE FROM hold WHERE lifted_at IS NOT NULL AND id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")              \
    X(old_tokens,      "iiii", NULL,  "i",                                                                             \
      "SELECT id FROM token WHERE id > $1 AND (revoked_at < CASE WHEN kind = " K_BEARER " THEN $2 ELSE $3 END "        \
      "OR expires_at < CASE WHEN kind = " K_BEARER " THEN $2 ELSE $3 END) ORDER BY id LIMIT $4")                       \
    X(tokens_remove,   "i",    "i",   NULL,                                                                            \
      "DELETE FROM token WHERE (revoked_at < $1 OR expires_at < $1) "                                                  \
      "AND id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                                                           \
    X(old_runs,        "iii",  NULL,  "i",                                                                             \
      "SELECT id FROM run WHERE id > $1 AND id < $2 AND open IS NULL ORDER BY id LIMIT $3")                            \
    X(runs_remove,     "",     "i",   NULL,                                                                            \
      "DELETE FROM run WHERE open IS NULL AND id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                        \
    X(restores_remove, "",     "i",   NULL,                                                                            \
      "DELETE FROM restore_run WHERE open IS NULL AND run_id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")            \
    X(locks_remove,    "i",    NULL,  NULL,                                                                            \
      "DELETE FROM run_lock WHERE run_id IS NULL AND locked_at < $1")
/* clang-format on */

#endif
