/* SPDX-License-Identifier: Apache-2.0 */
/* statements.h - every statement over our tables, with the types that go in and come out. There is
 * no other SQL over them (schema steps apart). Both engines run this text; src/db/db.h explains the
 * macros.
 *
 * Types: i integer, s text, b bytes. Columns of @ROWS are column1, column2, ... on both engines. */
#ifndef RP_CATALOG_STATEMENTS_H
#define RP_CATALOG_STATEMENTS_H

#include "base/key.h"
#include "catalog/statements/alert.h"
#include "catalog/statements/clock.h"
#include "catalog/statements/confirmation.h"
#include "catalog/statements/feed.h"
#include "catalog/statements/file.h"
#include "catalog/statements/metrics.h"
#include "catalog/statements/names.h"
#include "catalog/statements/orphan.h"
#include "catalog/statements/process.h"
#include "catalog/statements/restore.h"
#include "catalog/statements/retention.h"
#include "catalog/statements/segment.h"
#include "catalog/statements/token.h"
#include "db/db.h"

/* Scopes and kinds of the ledger appear as numbers; tests/unit/test_state.c holds them against the
 * enums. */
#define MARK_COLUMNS                                                                                                   \
    "id, store_id, key, state, was, next_at, due_at, marked_at, fence, attempts, checks, tenant_id, run_id, etag, "    \
    "version, size_bytes, modified_ms, annotated, outcome, ended_at, reason, actor, note, file_id, original, "         \
    "in_place"
#define MARK_TYPES "iisiiiiiiiiiissiiiiisssisi"

/* True for a mark `m` that an active hold covers; a copy in quarantine also by the key that it came
 * from. */
#define ACTIVE_HOLD "EXISTS (SELECT 1 FROM hold h WHERE h.lifted_at IS NULL AND h.scope = "
#define HELD(m)                                                                                                        \
    "(" ACTIVE_HOLD "4)"                                                                                               \
    " OR " ACTIVE_HOLD "1 AND h.store_id = " m ".store_id AND h.key IN (" m ".key, " m ".original))"                   \
    " OR " ACTIVE_HOLD "2 AND h.store_id = " m ".store_id AND (substr(" m ".key, 1, length(h.key)) = h.key"            \
    " OR substr(" m ".original, 1, length(h.key)) = h.key))"                                                           \
    " OR " ACTIVE_HOLD "3 AND h.tenant_id = " m ".tenant_id))"

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

/* The newest mark of each of the keys in a store. */
#define NEWEST_MARKS(how)                                                                                              \
    "SELECT " MARK_COLUMNS " FROM (VALUES @ROWS) AS v JOIN mark ON id = "                                              \
    "(SELECT MAX(x.id) FROM mark x WHERE x.store_id = $1 AND x.key = v.column1)" how

/* clang-format off */
/*     name            params  rows   columns
 *     text */
#define RP_STATEMENTS_MARK(X)                                                                                          \
    X(schema_known,    "",     NULL,  "i",                                                                             \
      "SELECT number FROM meta WHERE name = 'schema'")                                                                 \
    X(meta_get,        "s",    NULL,  "is",                                                                            \
      "SELECT number, word FROM meta WHERE name = $1")                                                                 \
    X(meta_set,        "sis",  NULL,  NULL,                                                                            \
      "INSERT INTO meta (name, number, word) VALUES ($1, $2, $3) "                                                     \
      "ON CONFLICT (name) DO UPDATE SET number = excluded.number, word = excluded.word")                               \
    X(meta_raise,      "si",   NULL,  "i",                                                                             \
      "UPDATE meta SET number = CASE WHEN number + 1 > $2 THEN number + 1 ELSE $2 END WHERE name = $1 "                \
      "RETURNING number")                                                                                              \
    X(meta_each,       "s",    NULL,  "sis",                                                                           \
      "SELECT name, number, word FROM meta WHERE substr(name, 1, length($1)) = $1")                                    \
    X(meta_fill,       "ss",   NULL,  NULL,                                                                            \
      "UPDATE meta SET word = $2 WHERE name = $1 AND word = ''")                                                       \
    X(hold_epoch_share, "",    NULL,  "i",                                                                             \
      "SELECT number FROM meta WHERE name = 'hold_epoch' @FOR_SHARE")                                                  \
                                                                                                                       \
    X(lane_make,       "ib",   NULL,  NULL,                                                                            \
      "INSERT INTO lane (lane, seq, head, last_id, heads_at) VALUES ($1, 0, $2, 0, 0) ON CONFLICT (lane) DO NOTHING")  \
    X(lane_lock,       "is",   NULL,  "ibiiiiiiiii",                                                                   \
      "SELECT seq, head, last_id, heads_at, @NOW_MS, fence, stamp, boot_ms, wall_ms, ahead_ms, noted_at "              \
      "FROM lane LEFT JOIN host_clock ON boot_id = $2 WHERE lane = $1 @FOR_UPDATE_OF(lane)")                           \
    X(lane_stamp,      "i",    NULL,  "ii",                                                                            \
      "SELECT stamp, fence FROM lane WHERE lane = $1 @FOR_UPDATE")                                                     \
    X(lane_save,       "iibiiii", NULL, NULL,                                                                          \
      "UPDATE lane SET seq = $2, head = $3, last_id = $4, heads_at = $5, stamp = $6, leased_until = $7 "               \
      "WHERE lane = $1")                                                                                               \
    X(lane_free,       "s",    NULL,  "i",                                                                             \
      "SELECT lane FROM lane WHERE lane > 0 AND leased_until < @NOW_MS "                                               \
      "ORDER BY CASE WHEN holder = $1 THEN 0 ELSE 1 END, lane LIMIT 1 @FOR_UPDATE @SKIP_LOCKED")                       \
    X(lane_next,       "",     NULL,  "i",                                                                             \
      "SELECT COALESCE(MAX(lane), 0) + 1 FROM lane")                                                                   \
    X(lane_lease,      "isi",  NULL,  "i",                                                                             \
      "UPDATE lane SET holder = $2, fence = fence + 1, leased_until = @NOW_MS + $3 WHERE lane = $1 RETURNING fence")   \
    X(lane_release,    "ii",   NULL,  NULL,                                                                            \
      "UPDATE lane SET leased_until = 0 WHERE lane = $1 AND fence = $2")                                               \
    X(lane_last,       "iib",  NULL,  "i",                                                                             \
      "SELECT seq FROM audit WHERE lane = $1 AND seq = $2 AND hash = $3")                                              \
    X(vessel_forget,   "",     NULL,  NULL,                                                                            \
      "INSERT INTO meta (name, word) SELECT 'vessel:' || id, 'put back' FROM store WHERE true "                        \
      "ON CONFLICT (name) DO UPDATE SET word = excluded.word")                                                         \
    X(lane_list,       "",     NULL,  "iib",                                                                           \
      "SELECT lane, seq, head FROM lane ORDER BY lane")                                                                \
                                                                                                                       \
    X(store_list,      "",     NULL,  "iisi",                                                                          \
      "SELECT id, kind, name, owned_at FROM store ORDER BY id")                                                        \
    X(store_find,      "s",    NULL,  "iisi",                                                                          \
      "SELECT id, kind, name, owned_at FROM store WHERE name = $1")                                                    \
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
      "SELECT (SELECT COUNT(*) FROM hold WHERE lifted_at IS NULL AND scope IN (1, 2) AND store_id = $1), "             \
      "(SELECT COUNT(*) FROM (SELECT id FROM file WHERE store_id = $1 LIMIT 1) AS f), "                                \
      "(SELECT COUNT(*) FROM (SELECT id FROM mark WHERE store_id = $1 LIMIT 1) AS m)")                                 \
    X(store_owned,     "ii",   NULL,  NULL,                                                                            \
      "UPDATE store SET owned_at = $2 WHERE id = $1 AND owned_at IS NULL")                                             \
                                                                                                                       \
    X(audit_add,       "",     "iiissiisbb", NULL,                                                                     \
      "@INSERT audit (lane, seq, at, event, actor, mark_id, tenant_id, details, digest, hash) VALUES @ROWS")           \
    X(audit_page,      "iii",  NULL,  "iiissiisbbs",                                                                   \
      "SELECT lane, seq, at, event, actor, mark_id, tenant_id, details, digest, hash, "                                \
      "(SELECT name FROM tenant WHERE id = tenant_id) FROM audit "                                                     \
      "WHERE lane = $1 AND seq > $2 ORDER BY seq LIMIT $3")                                                            \
    X(audit_of_mark,   "i",    NULL,  "iiissiisbbs",                                                                   \
      "SELECT lane, seq, at, event, actor, mark_id, tenant_id, details, digest, hash, "                                \
      "(SELECT name FROM tenant WHERE id = tenant_id) FROM audit "                                                     \
      "WHERE mark_id = $1 ORDER BY at, lane, seq")                                                                     \
    X(audit_lanes,     "",     NULL,  "i",                                                                             \
      "WITH RECURSIVE l(lane) AS (SELECT MIN(lane) FROM audit UNION ALL "                                              \
      "SELECT (SELECT MIN(a.lane) FROM audit a WHERE a.lane > l.lane) FROM l WHERE l.lane IS NOT NULL) "               \
      "SELECT lane FROM l WHERE lane IS NOT NULL")                                                                     \
    X(audit_first,     "i",    NULL,  "i",                                                                             \
      "SELECT seq FROM audit WHERE lane = $1 ORDER BY seq LIMIT 1")                                                    \
    X(audit_hash_at,   "ii",   NULL,  "b",                                                                             \
      "SELECT hash FROM audit WHERE lane = $1 AND seq = $2")                                                           \
    X(audit_erase,     "ii",   NULL,  NULL,                                                                            \
      "UPDATE audit SET details = NULL WHERE lane = $1 AND seq = $2")                                                  \
                                                                                                                       \
    X(tally_add,       "i",    "iiiiiii", NULL,                                                                        \
      "INSERT INTO tally (lane, store_id, state, marks, bytes, waiting, waiting_bytes, marked_at_s) "                  \
      "SELECT $1, v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, v.column7 "                        \
      "FROM (VALUES @ROWS) AS v WHERE true ON CONFLICT (lane, store_id, state) DO UPDATE "                             \
      "SET marks = tally.marks + excluded.marks, bytes = tally.bytes + excluded.bytes, "                               \
      "waiting = tally.waiting + excluded.waiting, waiting_bytes = tally.waiting_bytes + excluded.waiting_bytes, "     \
      "marked_at_s = tally.marked_at_s + excluded.marked_at_s")                                                        \
    X(tally_waiting,   "i",    NULL,  "iii",                                                                           \
      "SELECT CAST(COALESCE(SUM(waiting), 0) AS BIGINT), CAST(COALESCE(SUM(waiting_bytes), 0) AS BIGINT), "            \
      "CAST(COALESCE(SUM(marked_at_s), 0) AS BIGINT) FROM tally WHERE store_id = $1")                                  \
    X(tally_sums,      "",     NULL,  "iiii",                                                                          \
      "SELECT store_id, state, CAST(SUM(marks) AS BIGINT), CAST(SUM(bytes) AS BIGINT) FROM tally "                     \
      "GROUP BY store_id, state ORDER BY store_id, state")                                                             \
                                                                                                                       \
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
      "AND next_at <= $2 AND (next_at, id) > ($3, $4) AND NOT " KEPT("m")                                              \
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
      "WHERE id = v.column1 AND fence = v.column2 AND state = " M_MARKED " AND due_at < v.column3 RETURNING id")       \
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
      "AND id IN (SELECT mark_id FROM dead_letter WHERE open IS NOT NULL) ORDER BY 1 LIMIT $3")                        \
                                                                                                                       \
    X(hold_add,        "iiisissi", NULL, NULL,                                                                         \
      "INSERT INTO hold (id, scope, store_id, key, tenant_id, reason, actor, placed_at) "                              \
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")                                                                       \
    X(hold_lift,       "iis",  NULL,  "i",                                                                             \
      "UPDATE hold SET lifted_at = $2, lifted_by = $3 WHERE id = $1 AND lifted_at IS NULL RETURNING id")               \
    X(hold_list,       "",     NULL,  "iiisissi",                                                                      \
      "SELECT id, scope, store_id, key, tenant_id, reason, actor, placed_at FROM hold WHERE lifted_at IS NULL "        \
      "ORDER BY id + 0")                                                                                               \
                                                                                                                       \
    X(lock_make,       "ss",   NULL,  NULL,                                                                            \
      "INSERT INTO run_lock (name, locked_by, locked_at, fence) VALUES ($1, $2, 0, 0) ON CONFLICT (name) DO NOTHING")  \
    X(lock_get,        "s",    NULL,  "siii",                                                                          \
      "SELECT locked_by, locked_at, fence, run_id FROM run_lock WHERE name = $1 @FOR_UPDATE")                          \
    X(lock_take,       "ssiii", NULL, NULL,                                                                            \
      "UPDATE run_lock SET locked_by = $2, locked_at = $3, fence = fence + 1, run_id = $4 "                            \
      "WHERE name = $1 AND fence = $5")                                                                                \
    X(lock_renew,      "sii",  NULL,  NULL,                                                                            \
      "UPDATE run_lock SET locked_at = $3 WHERE name = $1 AND fence = $2 AND run_id IS NOT NULL")                      \
    X(lock_release,    "si",   NULL,  NULL,                                                                            \
      "UPDATE run_lock SET run_id = NULL WHERE name = $1 AND fence = $2")                                              \
    X(lock_forget,     "si",   NULL,  NULL,                                                                            \
      "DELETE FROM run_lock WHERE name = $1 AND fence = $2")                                                           \
                                                                                                                       \
    X(run_add,         "isssiis", NULL, NULL,                                                                          \
      "INSERT INTO run (id, kind, name, locked_by, fence, started_at, figures, open) "                                 \
      "VALUES ($1, $2, $3, $4, $5, $6, $7, 1)")                                                                        \
    X(run_progress,    "is",   NULL,  "i",                                                                             \
      "UPDATE run SET figures = $2 WHERE id = $1 AND open = 1 RETURNING COALESCE(cancel, 0)")                          \
    X(run_cancel,      "ii",   NULL,  NULL,                                                                            \
      "UPDATE run SET cancel = $2 WHERE id = $1 AND open = 1")                                                         \
    X(run_cancelled,   "i",    NULL,  "i",                                                                             \
      "SELECT COALESCE(cancel, 0) FROM run WHERE id = $1")                                                             \
    X(run_taken,       "isi",  NULL,  NULL,                                                                            \
      "UPDATE run SET locked_by = $2, fence = $3 WHERE id = $1 AND open = 1")                                          \
    X(run_close,       "i",    NULL,  NULL,                                                                            \
      "UPDATE run SET open = NULL WHERE id = $1 AND open = 1")                                                         \
    X(run_open,        "s",    NULL,  "isssiis",                                                                       \
      "SELECT id, kind, name, locked_by, fence, started_at, figures FROM run WHERE name = $1 AND open IS NOT NULL "    \
      "ORDER BY name, id")                                                                                             \
    X(run_open_kind,   "s",    NULL,  "i",                                                                             \
      "SELECT id FROM run WHERE open IS NOT NULL AND kind = $1 ORDER BY name, id")                                     \
    X(run_open_all,    "",     NULL,  "isssiis",                                                                       \
      "SELECT id, kind, name, locked_by, fence, started_at, figures FROM run WHERE open IS NOT NULL ORDER BY name, id")\
    X(run_get,         "i",    NULL,  "isssiis",                                                                       \
      "SELECT id, kind, name, locked_by, fence, started_at, figures FROM run WHERE id = $1 AND open = 1")              \
    X(record_add,      "isssiisi", NULL, NULL,                                                                         \
      "INSERT INTO run_record (run_id, kind, name, outcome, started_at, finished_at, body, errors) "                   \
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")                                                                       \
    X(record_get,      "i",    NULL,  "isssiis",                                                                       \
      "SELECT run_id, kind, name, outcome, started_at, finished_at, body FROM run_record WHERE run_id = $1")           \
    X(record_list,     "ii",   NULL,  "isssiis",                                                                       \
      "SELECT run_id, kind, name, outcome, started_at, finished_at, body FROM run_record WHERE run_id < $1 "           \
      "ORDER BY run_id DESC LIMIT $2")                                                                                 \
                                                                                                                       \
    X(dead_add,        "",     "iiiisi", NULL,                                                                         \
      "INSERT INTO dead_letter (id, mark_id, from_state, attempts, error, died_at, open) "                             \
      "SELECT column1, column2, column3, column4, column5, column6, 1 FROM (VALUES @ROWS) AS v")                       \
    X(dead_end,        "",     "iiss", NULL,                                                                           \
      "UPDATE dead_letter SET open = NULL, ended_at = v.column2, ended_as = v.column3, ended_by = v.column4 "          \
      "FROM (VALUES @ROWS) AS v WHERE mark_id = v.column1 AND open = 1")                                               \
    X(dead_list,       "iiis", NULL,  "iiiisi",                                                                        \
      "SELECT id, mark_id, from_state, attempts, error, died_at FROM dead_letter d WHERE open IS NOT NULL AND id > $1 "\
      "AND died_at >= $3 AND ($4 = '' OR $4 = " NEXT_CONFIRMER("d.mark_id") ") ORDER BY id LIMIT $2")                  \
    X(dead_get,        "i",    NULL,  "iiiisi",                                                                        \
      "SELECT id, mark_id, from_state, attempts, error, died_at FROM dead_letter WHERE id = $1 AND open IS NOT NULL")  \
    X(dead_of_mark,    "i",    NULL,  "iiiisi",                                                                        \
      "SELECT id, mark_id, from_state, attempts, error, died_at FROM dead_letter WHERE mark_id = $1 AND open = 1")     \
    X(dead_tenants,    "i",    NULL,  "i",                                                                             \
      "SELECT DISTINCT m.tenant_id FROM dead_letter d JOIN mark m ON m.id = d.mark_id "                                \
      "WHERE d.open IS NOT NULL AND d.id > $1")                                                                        \
    X(dead_tenant,     "",     "i",   "i",                                                                             \
      "SELECT DISTINCT m.tenant_id FROM (VALUES @ROWS) AS v JOIN dead_letter d ON d.id = v.column1 "                   \
      "JOIN mark m ON m.id = d.mark_id")
/* clang-format on */

/* Each family of tables has its part of the one table. */
#define RP_STATEMENTS(X)                                                                                               \
    RP_STATEMENTS_MARK(X)                                                                                              \
    RP_STATEMENTS_FILE(X)                                                                                              \
    RP_STATEMENTS_ALERT(X)                                                                                             \
    RP_STATEMENTS_CLOCK(X)                                                                                             \
    RP_STATEMENTS_CONFIRMATION(X)                                                                                      \
    RP_STATEMENTS_FEED(X)                                                                                              \
    RP_STATEMENTS_PROCESS(X)                                                                                           \
    RP_STATEMENTS_METRICS(X)                                                                                           \
    RP_STATEMENTS_ORPHAN(X)                                                                                            \
    RP_STATEMENTS_RESTORE(X)                                                                                           \
    RP_STATEMENTS_RETENTION(X)                                                                                         \
    RP_STATEMENTS_SEGMENT(X)                                                                                           \
    RP_STATEMENTS_TOKEN(X)

enum rp_statement {
#define X(name, params, rows, columns, text) RP_SQL_##name,
    RP_STATEMENTS(X)
#undef X
        RP_SQL_COUNT
};

extern const struct rp_sql rp_statements[RP_SQL_COUNT];

#define RP_SQL(name) (&rp_statements[RP_SQL_##name])

#endif
