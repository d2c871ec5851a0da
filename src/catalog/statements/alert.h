/* SPDX-License-Identifier: Apache-2.0 */
/* statements/alert.h - statements over tables alert, schedule and node, and the figures that alerts
 * are judged by; joined into RP_STATEMENTS (statements.h). Every figure is read by an index and
 * bounded: none costs in proportion to what is stored. */
#ifndef RP_CATALOG_STATEMENTS_ALERT_H
#define RP_CATALOG_STATEMENTS_ALERT_H

/* clang-format off */
#define RP_STATEMENTS_ALERT(X)                                                                                         \
    X(alert_list,      "",     NULL,  "ssiisii",                                                                       \
      "SELECT name, severity, raised_at, cleared_at, details, told_at, tries FROM alert ORDER BY name")                \
    X(alert_raise,     "ssis", NULL,  NULL,                                                                            \
      "INSERT INTO alert (name, severity, raised_at, details) VALUES ($1, $2, $3, $4) "                                \
      "ON CONFLICT (name) DO UPDATE SET severity = excluded.severity, raised_at = excluded.raised_at, "                \
      "cleared_at = NULL, details = excluded.details, told_at = NULL, tries = 0 WHERE alert.cleared_at IS NOT NULL")   \
    X(alert_clear,     "sis",  NULL,  NULL,                                                                            \
      "UPDATE alert SET cleared_at = $2, details = $3, told_at = NULL, tries = 0 "                                     \
      "WHERE name = $1 AND cleared_at IS NULL")                                                                        \
    X(alert_try,       "siii", NULL,  NULL,                                                                            \
      "UPDATE alert SET tries = tries + 1 WHERE name = $1 AND raised_at = $2 "                                         \
      "AND cleared_at IS NOT DISTINCT FROM $3 AND tries = $4 AND told_at IS NULL")                                     \
    X(alert_told,      "siii", NULL,  NULL,                                                                            \
      "UPDATE alert SET told_at = $4 WHERE name = $1 AND raised_at = $2 "                                              \
      "AND cleared_at IS NOT DISTINCT FROM $3 AND told_at IS NULL")                                                    \
                                                                                                                       \
    X(figure_overdue,  "iii",  NULL,  "ii",                                                                            \
      "SELECT COUNT(*), MIN(due_at) FROM (SELECT due_at FROM mark WHERE store_id = $1 AND next_at IS NOT NULL "        \
      "AND next_at <= $2 ORDER BY store_id, next_at, id LIMIT $3) AS few")                                             \
    X(figure_claimed,  "ii",   NULL,  "ii",                                                                            \
      "SELECT COUNT(*), MIN(due_at) FROM (SELECT due_at FROM mark WHERE store_id = $1 AND state IN " M_CLAIMED " "     \
      "ORDER BY store_id, id LIMIT $2) AS few")                                                                        \
    X(figure_runs,     "i",    NULL,  "i",                                                                             \
      "SELECT COUNT(*) FROM run_record WHERE run_id >= $1")                                                            \
    X(figure_run_errors, "i",  NULL,  "i",                                                                             \
      "SELECT COUNT(*) FROM run_record WHERE run_id >= $1 "                                                            \
      "AND COALESCE(errors, CASE outcome WHEN 'done' THEN 0 ELSE 1 END) > 0")                                          \
    X(figure_last_run, "i",    NULL,  "i",                                                                             \
      "SELECT finished_at FROM run_record WHERE run_id < $1 AND kind = 'sweep' ORDER BY run_id DESC LIMIT 1")          \
    X(figure_last_run_of, "ss", NULL, "i",                                                                             \
      "SELECT finished_at FROM (SELECT kind, name, finished_at FROM run_record WHERE (kind, name, run_id) < "          \
      "($1, $2, 9223372036854775807) ORDER BY kind DESC, name DESC, run_id DESC LIMIT 1) AS newest "                   \
      "WHERE kind = $1 AND name = $2")                                                                                 \
    X(figure_abandoned, "ii",  NULL,  "i",                                                                             \
      "SELECT COUNT(*) FROM (SELECT 1 FROM mark WHERE state = " M_PURGED "                                             \
      AND reason = 'abandoned' AND ended_at > $1 "                                                                     \
      "ORDER BY ended_at LIMIT $2) AS few")                                                                            \
    X(node_seen,       "sii",  NULL,  NULL,                                                                            \
      "INSERT INTO node (name, seen_at, started_at) VALUES ($1, $2, $3) "                                              \
      "ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, started_at = excluded.started_at")                 \
    X(node_newest,     "",     NULL,  "i",                                                                             \
      "SELECT MAX(seen_at) FROM node")                                                                                 \
    X(node_forget,     "i",    NULL,  NULL,                                                                            \
      "DELETE FROM node WHERE seen_at < $1")                                                                           \
    X(schedule_make,   "si",   NULL,  NULL,                                                                            \
      "INSERT INTO schedule (name, tick_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")                            \
    X(schedule_get,    "s",    NULL,  "i",                                                                             \
      "SELECT tick_at FROM schedule WHERE name = $1")                                                                  \
    X(schedule_take,   "sii",  NULL,  NULL,                                                                            \
      "UPDATE schedule SET tick_at = $3 WHERE name = $1 AND tick_at = $2")
/* clang-format on */

#endif
