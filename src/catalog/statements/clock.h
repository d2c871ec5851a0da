/* SPDX-License-Identifier: Apache-2.0 */
/* statements/clock.h - what hosts' clocks said, and the marks that a jump makes due; joined into
 * RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_CLOCK_H
#define RP_CATALOG_STATEMENTS_CLOCK_H

/* Waiting marks of a store that are due by a clock that went from $2 to $3; also those that a service is
 * to be asked about at once. By their due time alone: what is moved is not found again. */
#define MADE_DUE                                                                                                       \
    "store_id = $1 AND next_at IS NOT NULL AND next_at <= $3 AND " MAY_BE_LATER " AND due_at > $2 AND due_at <= $3"
/* Those of them whose grace was counted by the time before. */
#define COUNTED_BEFORE "marked_at <= $2 AND due_at > $2"

/* clang-format off */
#define RP_STATEMENTS_CLOCK(X)                                                                                         \
    X(clock_make,      "ssiii", NULL, NULL,                                                                            \
      "INSERT INTO host_clock (boot_id, host, boot_ms, wall_ms, ahead_ms, noted_at) "                                  \
      "VALUES ($1, $2, $3, $4, 0, $5) ON CONFLICT (boot_id) DO NOTHING")                                               \
    X(clock_forget,    "i",    NULL,  NULL,                                                                            \
      "DELETE FROM host_clock WHERE noted_at < $1")                                                                    \
    X(clock_get,       "s",    NULL,  "iiii",                                                                          \
      "SELECT boot_ms, wall_ms, ahead_ms, noted_at FROM host_clock WHERE boot_id = $1")                                \
    X(clock_note,      "siiiiii", NULL, NULL,                                                                          \
      "UPDATE host_clock SET boot_ms = $2, wall_ms = $3, ahead_ms = $4, noted_at = $5 "                                \
      "WHERE boot_id = $1 AND boot_ms = $6 AND noted_at = $7")                                                         \
    X(clock_set,       "siii", NULL,  NULL,                                                                            \
      "UPDATE host_clock SET boot_ms = $2, wall_ms = $3, ahead_ms = 0, noted_at = $4 WHERE boot_id = $1")              \
    X(clock_worst,     "i",    NULL,  "is",                                                                            \
      "SELECT ahead_ms, host FROM host_clock WHERE noted_at >= $1 ORDER BY ahead_ms DESC LIMIT 1")                     \
    X(lane_lock_all,   "",     NULL,  "i",                                                                             \
      "SELECT lane FROM lane ORDER BY lane @FOR_UPDATE")                                                               \
    X(mark_made_due,   "iii",  NULL,  "ii",                                                                            \
      "SELECT COUNT(*), COUNT(CASE WHEN " COUNTED_BEFORE " THEN 1 END) FROM mark WHERE " MADE_DUE)                     \
    X(mark_to_move,    "iiii", NULL,  MARK_TYPES,                                                                      \
      "SELECT " MARK_COLUMNS " FROM mark WHERE " MADE_DUE " AND " COUNTED_BEFORE                                       \
      " ORDER BY store_id, next_at, id LIMIT $4")
/* clang-format on */

#endif
