/* SPDX-License-Identifier: Apache-2.0 */
/* statements/mark.h - statements over table mark, and what is true of which mark; joined into
 * RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_MARK_H
#define RP_CATALOG_STATEMENTS_MARK_H

#include "base/key.h"

/* The columns of a mark in the order that they are read in: X(with, column, type, member of struct
 * rp_mark). `with` is handed through. */
/* clang-format off */
#define MARK_TABLE(FIRST, X, with)                                                                                     \
    FIRST(with, id,          i, id)                                                                                    \
    X(with, store_id,    i, store_id)                                                                                  \
    X(with, key,         s, key)                                                                                       \
    X(with, state,       i, state)                                                                                     \
    X(with, was,         i, was)                                                                                       \
    X(with, next_at,     i, next_at_ms)                                                                                \
    X(with, due_at,      i, due_at_ms)                                                                                 \
    X(with, marked_at,   i, marked_at_ms)                                                                              \
    X(with, fence,       i, fence)                                                                                     \
    X(with, attempts,    i, attempts)                                                                                  \
    X(with, checks,      i, checks)                                                                                    \
    X(with, tenant_id,   i, tenant_id)                                                                                 \
    X(with, run_id,      i, run_id)                                                                                    \
    X(with, etag,        s, etag)                                                                                      \
    X(with, version,     s, version)                                                                                   \
    X(with, size_bytes,  i, size_bytes)                                                                                \
    X(with, modified_ms, i, modified_ms)                                                                               \
    X(with, annotated,   i, annotated)                                                                                 \
    X(with, outcome,     i, outcome)                                                                                   \
    X(with, ended_at,    i, ended_at_ms)                                                                               \
    X(with, reason,      s, reason)                                                                                    \
    X(with, actor,       s, actor)                                                                                     \
    X(with, note,        s, note)                                                                                      \
    X(with, file_id,     i, file_id)                                                                                   \
    X(with, original,    s, original)                                                                                  \
    X(with, in_place,    i, in_place)
/* clang-format on */
#define MARK_FIRST_OF(m, column, type, member) m #column
#define MARK_NEXT_OF(m, column, type, member)  ", " m #column
#define MARK_TYPE_OF(m, column, type, member)  #type
#define MARK_COLUMNS_OF(m)                     MARK_TABLE(MARK_FIRST_OF, MARK_NEXT_OF, m) /* of "m." */
#define MARK_COLUMNS                           MARK_COLUMNS_OF("")
#define MARK_TYPES                             MARK_TABLE(MARK_TYPE_OF, MARK_TYPE_OF, )

/* True for a mark `m` that is not claimed: it is held, or an open restore run names it. */
#define KEPT(m) "(" HELD(m) " OR " RESTORING(m) ")"

/* True for the mark of a copy in quarantine. */
#define IS_COPY(m) "substr(" m ".key, 1, length('" RP_STORE_QUARANTINE "')) = '" RP_STORE_QUARANTINE "'"

/* True for a mark whose object has a key that we named: of a file, or a copy in quarantine. */
#define NAMED(m) "(" m ".file_id IS NOT NULL OR " IS_COPY(m) ")"

/* True for the mark of an upload that was never seen in its store: it is born with it, or waits for
 * what may come late under its key. Nobody asked for it. */
#define UNSEEN(m) m ".file_id IS NOT NULL AND " m ".etag = '' AND " m ".version = '' AND " m ".original IS NULL"

/* True for every other mark: people and rules made it. */
#define ASKED(m) "(" m ".file_id IS NULL OR " m ".etag <> '' OR " m ".version <> '' OR " m ".original IS NOT NULL)"

/* True for a mark whose due time may move: nobody works on it until then, also where all services have
 * said yes. */
#define MAY_BE_LATER                                                                                                   \
    "(state = " M_MARKED " OR (state = " M_CHECKING " AND " TO_CONFIRM("") " = 0 AND next_at = due_at))"

/* The newest mark of each of the keys in a store. */
#define NEWEST_MARKS(how)                                                                                              \
    "SELECT " MARK_COLUMNS " FROM (VALUES @ROWS) AS v JOIN mark ON id = "                                              \
    "(SELECT MAX(x.id) FROM mark x WHERE x.store_id = $1 AND x.key = v.column1)" how

/* clang-format off */
#define RP_STATEMENTS_MARK(X)                                                                                          \
    X(mark_add,        "",     "iisiiiiiiiiiissiissisi", NULL,                                                         \
      "@INSERT mark (id, store_id, key, active, state, was, next_at, due_at, marked_at, checks, tenant_id, "           \
      "run_id, annotated, etag, version, size_bytes, modified_ms, reason, actor, file_id, original, in_place) "        \
      "VALUES @ROWS "                                                                                                  \
      "ON CONFLICT (store_id, key, active) DO NOTHING")                                                                \
    X(mark_due,        "iiiiii", NULL, "iii",                                                                          \
      "SELECT id, tenant_id, next_at FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL "                         \
      "AND next_at <= $2 AND (next_at, id) > ($3, $4) AND state IN " M_ACTIVE " AND ($5 = 0 OR " NAMED("m") ") "       \
      "AND " TO_CONFIRM("") " = 0 AND NOT " KEPT("m") " ORDER BY store_id, next_at, id LIMIT $6")                      \
    X(mark_due_unseen, "iiiii", NULL, "iii",                                                                           \
      "SELECT id, tenant_id, next_at FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL "                         \
      "AND next_at <= $2 AND (next_at, id) > ($3, $4) AND state IN " M_ACTIVE " AND " UNSEEN("m") " "                  \
      "AND " TO_CONFIRM("") " = 0 AND NOT " KEPT("m") " ORDER BY store_id, next_at, id LIMIT $5")                      \
    X(mark_claim,      "isiii", "i",  MARK_TYPES,                                                                      \
      "WITH due AS MATERIALIZED (SELECT id AS due_id FROM (VALUES @ROWS) AS v JOIN mark m ON m.id = v.column1 "        \
      "WHERE m.next_at <= $1 AND m.state IN " M_ACTIVE " AND " TO_CONFIRM("m.") " = $4 "                               \
      "@FOR_UPDATE_OF(m) @SKIP_LOCKED) "                                                                               \
      "UPDATE mark SET was = state, fence = fence + 1, lease_by = $2, next_at = $3, "                                  \
      "state = CASE WHEN state = " M_MARKED " AND (checks > 0 OR ($5 = 1 AND original IS NULL AND "                    \
      ASKED("mark") ")) THEN " M_CHECKING " "                                                                          \
      "WHEN state = " M_MARKED " THEN " M_PURGING " ELSE state END "                                                   \
      "FROM due WHERE id = due.due_id RETURNING " MARK_COLUMNS)                                                        \
    X(mark_due_peek,   "iiii", NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL "                               \
      "AND next_at <= $2 AND (next_at, id) > ($3, $4) AND " TO_CONFIRM("") " = 0 AND NOT " KEPT("m")                   \
      " ORDER BY store_id, next_at, id LIMIT 1000")                                                                    \
    X(mark_move,       "",     "iiiiiiiiisiii", "i",                                                                   \
      "UPDATE mark SET state = v.column4, was = v.column3, active = v.column5, next_at = v.column6, "                  \
      "attempts = v.column7, outcome = v.column8, ended_at = v.column9, note = v.column10, lease_by = NULL, "          \
      "fence = fence + v.column11, checks = (checks | v.column12) & ~v.column13 "                                      \
      "FROM (VALUES @ROWS) AS v WHERE id = v.column1 AND fence = v.column2 AND state = v.column3 RETURNING id")        \
    X(mark_unclaim,    "iis",  NULL,  NULL,                                                                            \
      "UPDATE mark SET next_at = CASE WHEN due_at < $2 THEN due_at ELSE $2 END, lease_by = NULL "                      \
      "WHERE store_id = $1 AND next_at IS NOT NULL "                                                                   \
      "AND next_at = $2 AND lease_by = $3 AND state IN " M_CLAIMED)                                                    \
    X(mark_renew,      "i",    "ii",  NULL,                                                                            \
      "UPDATE mark SET next_at = $1 FROM (VALUES @ROWS) AS v "                                                         \
      "WHERE id = v.column1 AND fence = v.column2 AND state = " M_PURGING)                                             \
    X(mark_extend,     "",     "iiis", "i",                                                                            \
      "UPDATE mark SET due_at = v.column3, next_at = CASE WHEN next_at < due_at THEN next_at ELSE v.column3 END, "     \
      "reason = COALESCE(v.column4, reason) "                                                                          \
      "FROM (VALUES @ROWS) AS v "                                                                                      \
      "WHERE id = v.column1 AND fence = v.column2 AND " MAY_BE_LATER " AND due_at < v.column3 RETURNING id")       \
    X(mark_annotated,  "",     "i",   NULL,                                                                            \
      "UPDATE mark SET annotated = 1 FROM (VALUES @ROWS) AS v WHERE id = v.column1")                                   \
    X(mark_identity,   "",     "issi", NULL,                                                                           \
      "UPDATE mark SET etag = v.column2, version = v.column3, modified_ms = v.column4 FROM (VALUES @ROWS) AS v "       \
      "WHERE id = v.column1 AND state = " M_MARKED)                                                                    \
    X(mark_get,        "i",    NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE id = $1")                                                               \
    X(mark_these,      "",     "i",   MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM (VALUES @ROWS) AS v JOIN mark ON id = v.column1 ORDER BY id DESC")                 \
    X(mark_lock,       "",     "i",   MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM (VALUES @ROWS) AS v JOIN mark ON id = v.column1 "                                  \
      "ORDER BY id @FOR_UPDATE_OF(mark)")                                                                              \
    X(mark_lock_only,  "",     "i",   "i",                                                                             \
      "SELECT id FROM (VALUES @ROWS) AS v JOIN mark ON id = v.column1 ORDER BY id @FOR_UPDATE_OF(mark)")               \
    X(mark_active,     "i",    "s",   MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM (VALUES @ROWS) AS v JOIN mark ON store_id = $1 AND key = v.column1 "               \
      "AND active = 1 ORDER BY id @FOR_UPDATE_OF(mark)")                                                               \
    X(mark_on_older,   "s",    "i",   "i",                                                                             \
      "SELECT m.id FROM (VALUES @ROWS) AS v JOIN mark m ON m.id = v.column1 WHERE EXISTS (SELECT 1 FROM mark q "       \
      "WHERE q.store_id = m.store_id AND q.original = CASE WHEN m.in_place = 1 THEN m.original ELSE m.key END "        \
      "AND q.active = 1 AND q.in_place = 1 AND q.version <> m.version AND q.reason <> $1 "                             \
      "AND ((q.marked_at, q.id) < (m.marked_at, m.id) OR q.modified_ms < m.modified_ms) AND (q.state <> "              \
      M_PURGING " "                                                                                                    \
      "OR ((q.marked_at, q.id) < (m.marked_at, m.id) AND q.modified_ms <= m.modified_ms)))")                           \
    X(mark_hidden_again, "s",  "i",   "i",                                                                             \
      "SELECT m.id FROM (VALUES @ROWS) AS v JOIN mark m ON m.id = v.column1 WHERE EXISTS (SELECT 1 FROM mark q "       \
      "WHERE q.store_id = m.store_id AND q.original = m.original AND q.active = 1 AND q.in_place = 1 "                 \
      "AND q.version = m.version AND q.reason <> $1 AND (q.marked_at, q.id) > (m.marked_at, m.id)) "                   \
      "OR EXISTS (SELECT 1 FROM mark x "                                                                               \
      "WHERE x.store_id = m.store_id AND x.key = m.original AND x.active = 1 AND x.version = m.version)")              \
    X(mark_newest,     "i",    "s",   MARK_TYPES, NEWEST_MARKS(""))                                                    \
    X(mark_newest_lock, "i",   "s",   MARK_TYPES, NEWEST_MARKS(" ORDER BY id @FOR_UPDATE_OF(mark)"))                   \
    X(mark_since_return, "",   "i",   "isiiiii",                                                                       \
      "SELECT o.id, o.key, o.file_id, f.status, o.annotated, (SELECT COUNT(*) FROM mark x "                            \
      "WHERE x.store_id = o.store_id AND x.key = o.key AND x.id > o.id "                                               \
      "AND (x.state IN " M_ERASED " OR (x.state = " M_REPRIEVED " AND x.outcome = " END_SUPERSEDED "))), "             \
      "(SELECT COUNT(*) FROM mark x WHERE x.store_id = o.store_id AND x.key = o.key AND x.active = 1) "                \
      "FROM (VALUES @ROWS) AS v JOIN mark o ON o.id = v.column1 LEFT JOIN file f ON f.id = o.file_id")                 \
    X(mark_history,    "isi",  NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE store_id = $1 AND key = $2 ORDER BY id DESC LIMIT $3")                  \
    X(mark_waiting,    "iiiii", NULL, MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE store_id = $1 AND next_at IS NOT NULL AND next_at <= $2 "               \
      "AND (next_at, id) > ($3, $4) ORDER BY store_id, next_at, id LIMIT $5")                                          \
    X(mark_ended,      "iiii", NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE state = $1 AND ended_at IS NOT NULL "                                   \
      "AND (ended_at, id) < ($2, $3) ORDER BY state DESC, ended_at DESC, id DESC LIMIT $4")                            \
    X(mark_dead,       "ii",   NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE id IN (SELECT d.mark_id FROM dead_letter d WHERE d.open IS NOT NULL "   \
      "AND d.id > 0) AND id > $1 ORDER BY id LIMIT $2")                                                                \
    X(mark_by_prefix,  "isssi", NULL, MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE store_id = $1 AND key >= $2 AND key <= $3 AND key > $4 "                \
      "AND active = 1 ORDER BY store_id, key LIMIT $5")                                                                \
    X(mark_by_reason,  "sii",  NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE reason = $1 AND active IS NOT NULL AND id > $2 "                        \
      "ORDER BY reason, id LIMIT $3")                                                                                  \
    X(mark_by_run,     "iii",  NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE run_id = $1 AND id > $2 ORDER BY run_id, id LIMIT $3")                  \
    X(mark_last_id,    "",     NULL,  "i",                                                                             \
      "SELECT COALESCE(MAX(id), 0) FROM mark")                                                                         \
    X(mark_since,      "ii",   NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE id > $1 ORDER BY id LIMIT $2")                                          \
    X(mark_overdue,    "iii",  NULL,  "iii",                                                                           \
      "SELECT COUNT(*), MIN(due_at), CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM mark m "                        \
      "WHERE store_id = $1 AND next_at IS NOT NULL AND next_at <= $2 AND ($3 = 0 OR NOT " NAMED("m") ")")              \
    X(mark_next,       "ii",   NULL,  "i",                                                                             \
      "SELECT next_at FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL AND ($2 = 0 OR " NAMED("m") ")"          \
      " AND " TO_CONFIRM("") " = 0 ORDER BY store_id, next_at, id LIMIT 1")                                            \
    X(mark_next_unseen, "i",   NULL,  "i",                                                                             \
      "SELECT next_at FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL AND " UNSEEN("m")                        \
      " AND " TO_CONFIRM("") " = 0 ORDER BY store_id, next_at, id LIMIT 1")                                            \
    X(mark_oldest,     "i",    NULL,  "i",                                                                             \
      "SELECT marked_at FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL AND " ASKED("m")                       \
      " ORDER BY store_id, marked_at LIMIT 1")                                                                         \
    X(mark_claimed,    "iii",  NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE store_id = $1 AND state IN " M_CLAIMED " AND id > $2 "                  \
      "AND (lease_by IS NOT NULL OR state = " M_PURGING ") UNION ALL "                                                 \
      "SELECT " MARK_COLUMNS " FROM mark WHERE +store_id = $1 AND id > $2 AND state = " M_DEAD " AND was = "           \
      M_PURGING " "                                                                                                    \
      "AND id IN (SELECT mark_id FROM dead_letter WHERE open IS NOT NULL) ORDER BY 1 LIMIT $3")
/* clang-format on */

#endif
