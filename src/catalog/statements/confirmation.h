/* SPDX-License-Identifier: Apache-2.0 */
/* statements/confirmation.h - statements over tables confirmation and confirmation_attempt, and the
 * due marks that wait for one; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_CONFIRMATION_H
#define RP_CATALOG_STATEMENTS_CONFIRMATION_H

#define CONFIRMATION_COLUMNS                                                                                           \
    "c.id, c.mark_id, c.ordinal, c.name, c.state, c.attempts, c.asked_at, c.until_at, c.answered_at, c.note"
#define CONFIRMATION_TYPES "iiisiiiiis"

/* Bits of mark.checks: RP_CHECK_CONFIRMATIONS. */
#define TO_CONFIRM(m) "(" m "checks & " CHECK_CONFIRMATIONS ")"

/* Who is to be asked next about the mark of this id. */
#define NEXT_CONFIRMER(id)                                                                                             \
    "(SELECT c.name FROM confirmation c WHERE c.mark_id = " id " AND c.state <> " C_YES " ORDER BY c.ordinal LIMIT 1)"

/* attempt_add: $1 how many of each confirmation stay. They are counted here, for a retry of the
 * mark begins `attempts` of table confirmation anew. mark_due_to_confirm: $1 store, $2 now, $3 and
 * $4 the next_at and id behind which to go on, $5 1: only those of NAMED, $6 how many, $7
 * "|calendar|mail|": services, $8 whether the one to be asked next is (1) or is not (0) among
 * them, $9 1: only what somebody was asked about before. mark_count_to_confirm: $1 store, $2 now, $3 1:
 * only those of NAMED, $4 at most so many. */
/* clang-format off */
#define RP_STATEMENTS_CONFIRMATION(X)                                                                                  \
    X(confirmation_add, "",    "iiis", NULL,                                                                           \
      "INSERT INTO confirmation (id, mark_id, ordinal, name, state) "                                                  \
      "SELECT column1, column2, column3, column4, " C_PENDING " FROM (VALUES @ROWS) AS v")                             \
    X(confirmation_get, "i",   NULL,  CONFIRMATION_TYPES,                                                              \
      "SELECT " CONFIRMATION_COLUMNS " FROM confirmation c WHERE c.id = $1")                                           \
    X(confirmation_of, "",     "i",   CONFIRMATION_TYPES,                                                              \
      "SELECT " CONFIRMATION_COLUMNS " FROM (VALUES @ROWS) AS v JOIN confirmation c ON c.mark_id = v.column1 "         \
      "ORDER BY c.mark_id, c.ordinal")                                                                                 \
    X(confirmation_save, "",   "iiiiiis", NULL,                                                                        \
      "UPDATE confirmation SET state = v.column2, attempts = v.column3, asked_at = v.column4, "                        \
      "until_at = v.column5, answered_at = v.column6, note = v.column7 "                                               \
      "FROM (VALUES @ROWS) AS v WHERE id = v.column1")                                                                 \
    X(confirmation_forget, "i", NULL, NULL,                                                                            \
      "UPDATE confirmation SET state = " C_PENDING ", attempts = 0, until_at = NULL "                                  \
      "WHERE state NOT IN (" C_PENDING ", " C_YES ") AND mark_id IN (SELECT m.id FROM dead_letter d "                  \
      "JOIN mark m ON m.id = d.mark_id WHERE d.open IS NOT NULL AND m.store_id = $1 AND m.was = " M_CHECKING ")")      \
    X(attempt_add,     "i",    "iiiiss", NULL,                                                                         \
      "INSERT INTO confirmation_attempt (mark_id, ordinal, slot, n, at, status, body, error) "                         \
      "SELECT column1, column2, nth % $1, nth, column3, column4, column5, column6 FROM (SELECT v.*, 1 + COALESCE("     \
      "(SELECT MAX(n) FROM confirmation_attempt WHERE mark_id = v.column1 AND ordinal = v.column2), 0) AS nth "        \
      "FROM (VALUES @ROWS) AS v) AS made WHERE true ON CONFLICT (mark_id, ordinal, slot) DO UPDATE SET "               \
      "n = excluded.n, at = excluded.at, status = excluded.status, body = excluded.body, error = excluded.error")      \
    X(attempts_of,     "i",    NULL,  "iiiiss",                                                                        \
      "SELECT ordinal, n, at, status, body, error FROM confirmation_attempt WHERE mark_id = $1 ORDER BY ordinal, n")   \
    X(mark_due_to_confirm, "iiiiiisii", NULL, "iii",                                                                   \
      "SELECT id, tenant_id, next_at FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL "                         \
      "AND next_at <= $2 AND (next_at, id) > ($3, $4) AND state IN " M_TO_ASK_ABOUT " "                                \
      "AND ($9 = 0 OR state = " M_CHECKING ") AND ($5 = 0 OR " NAMED("m") ") "                                         \
      "AND " TO_CONFIRM("") " <> 0 AND NOT " KEPT("m") " AND $8 = CASE WHEN "                                          \
      "replace($7, '|' || " NEXT_CONFIRMER("m.id") " || '|', '') <> $7 THEN 1 ELSE 0 END "                             \
      "ORDER BY store_id, next_at, id LIMIT $6")                                                                       \
    X(mark_next_to_confirm, "i", NULL, "i",                                                                            \
      "SELECT next_at FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL AND " TO_CONFIRM("") " <> 0 "            \
      "ORDER BY store_id, next_at, id LIMIT 1")                                                                        \
    X(mark_count_to_confirm, "iiii", NULL, "i",                                                                        \
      "SELECT COUNT(*) FROM (SELECT 1 FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL AND next_at <= $2 "      \
      "AND state IN " M_TO_ASK_ABOUT " AND ($3 = 0 OR " NAMED("m") ") AND " TO_CONFIRM("") " <> 0 "                    \
      "AND NOT " KEPT("m") " ORDER BY store_id, next_at, id LIMIT $4) AS few")                                         \
    X(confirmations_remove, "", "i",  NULL,                                                                            \
      "DELETE FROM confirmation WHERE mark_id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                           \
    X(attempts_remove, "",     "i",   NULL,                                                                            \
      "DELETE FROM confirmation_attempt WHERE mark_id IN (SELECT column1 FROM (VALUES @ROWS) AS v)")                   \
    X(confirmations_of_files, "", "i", NULL,                                                                           \
      "DELETE FROM confirmation WHERE mark_id IN (" MARKS_OF_FILES ")")                                                \
    X(attempts_of_files, "",   "i",   NULL,                                                                            \
      "DELETE FROM confirmation_attempt WHERE mark_id IN (" MARKS_OF_FILES ")")
/* clang-format on */

#endif
