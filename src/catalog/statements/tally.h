/* SPDX-License-Identifier: Apache-2.0 */
/* statements/tally.h - statements over table tally; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_TALLY_H
#define RP_CATALOG_STATEMENTS_TALLY_H

/* clang-format off */
#define RP_STATEMENTS_TALLY(X)                                                                                         \
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
      "GROUP BY store_id, state ORDER BY store_id, state")
/* clang-format on */

#endif
