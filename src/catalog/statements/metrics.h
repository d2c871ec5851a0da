/* SPDX-License-Identifier: Apache-2.0 */
/* statements/metrics.h - figures that are only counted or listed for a look from outside; joined
 * into RP_STATEMENTS (statements.h). Each is read by an index and stops at a bound. */
#ifndef RP_CATALOG_STATEMENTS_METRICS_H
#define RP_CATALOG_STATEMENTS_METRICS_H

/* clang-format off */
#define RP_STATEMENTS_METRICS(X)                                                                                       \
    X(metrics_overdue, "iii",  NULL,  "i",                                                                             \
      "SELECT COUNT(*) FROM (SELECT 1 FROM mark WHERE store_id = $1 AND next_at IS NOT NULL AND next_at <= $2 "        \
      "LIMIT $3) AS few")                                                                                                \
    X(metrics_dead,    "i",    NULL,  "i",                                                                             \
      "SELECT COUNT(*) FROM (SELECT 1 FROM dead_letter WHERE open IS NOT NULL AND id > 0 ORDER BY id LIMIT $1) AS d")                         \
    X(metrics_nodes,   "i",    NULL,  "si",                                                                            \
      "SELECT name, seen_at FROM node ORDER BY seen_at DESC LIMIT $1")                                                 \
    X(metrics_runs,    "i",    NULL,  "ssi",                                                                           \
      "WITH RECURSIVE l(name) AS (SELECT MIN(name) FROM run_record UNION ALL "                                         \
      "SELECT (SELECT MIN(r.name) FROM run_record r WHERE r.name > l.name) FROM l WHERE l.name IS NOT NULL) "          \
      "SELECT (SELECT r.kind FROM run_record r WHERE r.name = l.name ORDER BY r.name DESC, r.run_id DESC LIMIT 1), "   \
      "l.name, "                                                                                                       \
      "(SELECT r.finished_at FROM run_record r WHERE r.name = l.name ORDER BY r.name DESC, r.run_id DESC LIMIT 1) "    \
      "FROM l WHERE l.name IS NOT NULL LIMIT $1")
/* clang-format on */

#endif
