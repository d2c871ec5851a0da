/* SPDX-License-Identifier: Apache-2.0 */
/* statements/restore.h - statements over table restore_run; joined into RP_STATEMENTS
 * (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_RESTORE_H
#define RP_CATALOG_STATEMENTS_RESTORE_H

/* True for a mark `m` that an open restore run names. A copy in quarantine has the run that moved
 * it there, and no copy tells the reason, actor and time of the mark that it stands for: all copies
 * of the stores in question count. A copy without a run was returned, and is nobody's. */
#define RESTORING(m)                                                                                                   \
    "EXISTS (SELECT 1 FROM restore_run r WHERE r.open IS NOT NULL"                                                     \
    " AND (r.store_id IS NULL OR r.store_id = " m ".store_id) AND (r.of_run IS NULL OR r.of_run = " m ".run_id)"       \
    " AND ((" IS_COPY(m) " AND " m ".run_id IS NOT NULL)"                                                              \
                         " OR (" m ".id <= r.upto_id AND (r.prefix IS NULL OR substr(" m                               \
                         ".key, 1, length(r.prefix)) = r.prefix)"                                                      \
                         " AND (r.reason IS NULL OR r.reason = " m ".reason) AND (r.actor IS NULL OR r.actor = " m     \
                         ".actor)"                                                                                     \
                         " AND (r.since IS NULL OR r.since <= " m ".marked_at) AND (r.until IS NULL OR r.until > " m   \
                         ".marked_at))))"

/* clang-format off */
#define RP_STATEMENTS_RESTORE(X)                                                                                       \
    X(restore_add,     "iiisssiiis", NULL, NULL,                                                                       \
      "INSERT INTO restore_run (run_id, of_run, store_id, prefix, reason, actor, since, until, upto_id, asked_by, "    \
      "open) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)")                                                     \
    X(restore_get,     "i",    NULL,  "iisssiiisiii",                                                                 \
      "SELECT of_run, store_id, prefix, reason, actor, since, until, upto_id, asked_by, total, stage, cursor_id "      \
      "FROM restore_run WHERE run_id = $1")                                                                 \
    X(restore_counted, "ii",   NULL,  NULL,                                                                            \
      "UPDATE restore_run SET total = $2 WHERE run_id = $1")                                                           \
    X(restore_step,    "iii",  NULL,  NULL,                                                                            \
      "UPDATE restore_run SET stage = $2, cursor_id = $3 WHERE run_id = $1")                          \
    X(restore_close,   "i",    NULL,  NULL,                                                                            \
      "UPDATE restore_run SET open = NULL WHERE run_id = $1 AND open IS NOT NULL")                                     \
    X(restore_keeps,   "ii",   NULL,  "i",                                                                             \
      "SELECT COUNT(*) FROM mark m WHERE store_id = $1 AND next_at IS NOT NULL AND next_at <= $2 AND " RESTORING("m"))
/* clang-format on */

#endif
