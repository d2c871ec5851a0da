/* SPDX-License-Identifier: Apache-2.0 */
/* statements/process.h - statements over table processor_job; joined into RP_STATEMENTS
 * (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_PROCESS_H
#define RP_CATALOG_STATEMENTS_PROCESS_H

#define JOB_COLUMNS "file_id, process_key, action, state, attempts, made_at, next_at, status"
#define JOB_IS(how) "EXISTS (SELECT 1 FROM file f WHERE f.id = processor_job.file_id AND f.status = " how ")"
#define JOB_OF_ROWS "action = " J_PROCESS " AND file_id IN (SELECT column1 FROM (VALUES @ROWS) AS v)"
/* The processor itself said no: there is nothing to stop. */
#define JOB_REJECTED                                                                                                   \
    "EXISTS (SELECT 1 FROM file f JOIN mark m ON m.id = f.mark_id WHERE f.id = processor_job.file_id "                 \
    "AND m.reason = 'rejected')"

/* clang-format off */
#define RP_STATEMENTS_PROCESS(X)                                                                                       \
    X(process_make,    "i",    "i",   NULL,                                                                            \
      "INSERT INTO processor_job (" JOB_COLUMNS ") SELECT f.id, f.process_key, " J_PROCESS ", "                        \
      J_WAITING ", 0, $1, $1, 0 "                                                                                      \
      "FROM (VALUES @ROWS) AS v JOIN file f ON f.id = v.column1 WHERE f.status = " F_SCANNING "                        \
      AND f.process_key IS NOT NULL "                                                                                  \
      "ON CONFLICT (file_id) DO UPDATE SET action = " J_PROCESS ", state = "                                           \
      J_WAITING ", attempts = 0, made_at = excluded.made_at, "                                                         \
      "next_at = excluded.next_at, status = 0 WHERE processor_job.action = " J_CANCEL)                                 \
    X(process_drop,    "",     "i",   NULL,                                                                            \
      "DELETE FROM processor_job WHERE " JOB_OF_ROWS " AND NOT " JOB_IS(F_SCANNING)                                    \
      " AND (attempts = 0 OR " JOB_IS(F_LIVE) " OR " JOB_REJECTED ")")                                                 \
    X(process_cancel,  "i",    "i",   NULL,                                                                            \
      "UPDATE processor_job SET action = " J_CANCEL ", state = "                                                       \
      J_WAITING ", attempts = 0, made_at = $1, next_at = $1, status = 0 "                                              \
      "WHERE " JOB_OF_ROWS " AND NOT " JOB_IS(F_SCANNING))                                                             \
    X(process_missing, "i",    NULL,  "i",                                                                             \
      "SELECT f.id FROM file f WHERE f.status = " F_SCANNING " AND f.process_key IS NOT NULL "                         \
      "AND NOT EXISTS (SELECT 1 FROM processor_job j WHERE j.file_id = f.id AND j.action = "                           \
      J_PROCESS ") ORDER BY f.id LIMIT $1")                                                                            \
    X(process_stray,   "i",    NULL,  "i",                                                                             \
      "SELECT file_id FROM processor_job WHERE action = " J_PROCESS " AND NOT " JOB_IS(F_SCANNING) "                   \
      ORDER BY file_id LIMIT $1")                                                                                      \
    X(process_revive,  "i",    NULL,  NULL,                                                                            \
      "UPDATE processor_job SET state = "                                                                              \
      J_WAITING ", attempts = 0, made_at = $1, next_at = $1 WHERE state = " J_DEAD)                                    \
    X(process_due,     "ii",   NULL,  "isiii",                                                                         \
      "SELECT file_id, process_key, action, attempts, made_at FROM processor_job "                                     \
      "WHERE next_at IS NOT NULL AND next_at <= $1 ORDER BY next_at, file_id LIMIT $2")                                \
    X(process_claim,   "iiiii", NULL, NULL,                                                                            \
      "UPDATE processor_job SET attempts = attempts + 1, next_at = $5 "                                                \
      "WHERE file_id = $1 AND action = $2 AND attempts = $3 AND next_at <= $4")                                        \
    X(process_told,    "iiiiii", NULL, NULL,                                                                           \
      "UPDATE processor_job SET state = $4, next_at = CASE WHEN $4 = " J_WAITING "                                     \
      THEN $5 ELSE NULL END, status = $6 "                                                                             \
      "WHERE file_id = $1 AND action = $2 AND attempts = $3")                                                          \
    X(process_end,     "iii",  NULL,  NULL,                                                                            \
      "DELETE FROM processor_job WHERE file_id = $1 AND action = $2 AND attempts = $3")                                \
    X(process_dead,    "i",    NULL,  "i",                                                                             \
      "SELECT COUNT(*) FROM (SELECT 1 FROM processor_job WHERE state = " J_DEAD " LIMIT $1) AS few")                   \
    X(old_jobs,        "iii",  NULL,  "i",                                                                             \
      "SELECT file_id FROM processor_job WHERE file_id > $2 AND made_at < $1 AND NOT " JOB_IS(F_SCANNING)              \
      " ORDER BY file_id LIMIT $3")                                                                                    \
    X(jobs_remove,     "i",    "i",   NULL,                                                                            \
      "DELETE FROM processor_job WHERE made_at < $1 AND file_id IN (SELECT column1 FROM (VALUES @ROWS) AS v) "         \
      "AND NOT " JOB_IS(F_SCANNING))
/* clang-format on */

#endif
