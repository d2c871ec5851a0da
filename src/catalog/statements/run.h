/* SPDX-License-Identifier: Apache-2.0 */
/* statements/run.h - statements over tables run_lock, run and run_record; joined into RP_STATEMENTS
 * (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_RUN_H
#define RP_CATALOG_STATEMENTS_RUN_H

#define HELD_LOCK       "name, locked_by, locked_at, run_id"
#define HELD_LOCK_TYPES "ssii"
#define RUN_COLUMNS     "id, kind, name, locked_by, fence, started_at, figures"
#define RUN_TYPES       "isssiis"
#define RECORD_COLUMNS  "run_id, kind, name, outcome, started_at, finished_at, body"
#define RECORD_TYPES    "isssiis"

/* clang-format off */
#define RP_STATEMENTS_RUN(X)                                                                                           \
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
    X(lock_held,       "",     NULL,  HELD_LOCK_TYPES,                                                                 \
      "SELECT " HELD_LOCK " FROM run_lock WHERE run_id IS NOT NULL ORDER BY name")                                     \
    X(lock_peek,       "s",    NULL,  HELD_LOCK_TYPES,                                                                 \
      "SELECT " HELD_LOCK " FROM run_lock WHERE name = $1 AND run_id IS NOT NULL")                                     \
                                                                                                                       \
    X(run_add,         RUN_TYPES, NULL, NULL,                                                                          \
      "INSERT INTO run (" RUN_COLUMNS ", open) VALUES ($1, $2, $3, $4, $5, $6, $7, 1)")                                \
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
    X(run_open,        "s",    NULL,  RUN_TYPES,                                                                       \
      "SELECT " RUN_COLUMNS " FROM run WHERE name = $1 AND open IS NOT NULL ORDER BY name, id")                        \
    X(run_open_kind,   "s",    NULL,  "i",                                                                             \
      "SELECT id FROM run WHERE open IS NOT NULL AND kind = $1 ORDER BY name, id")                                     \
    X(run_open_all,    "",     NULL,  RUN_TYPES,                                                                       \
      "SELECT " RUN_COLUMNS " FROM run WHERE open IS NOT NULL ORDER BY name, id")                                      \
    X(run_get,         "i",    NULL,  RUN_TYPES,                                                                       \
      "SELECT " RUN_COLUMNS " FROM run WHERE id = $1 AND open = 1")                                                    \
                                                                                                                       \
    X(record_add,      RECORD_TYPES "i", NULL, NULL,                                                                   \
      "INSERT INTO run_record (" RECORD_COLUMNS ", errors) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")                   \
    X(record_get,      "i",    NULL,  RECORD_TYPES,                                                                    \
      "SELECT " RECORD_COLUMNS " FROM run_record WHERE run_id = $1")                                                   \
    X(record_list,     "ii",   NULL,  RECORD_TYPES,                                                                    \
      "SELECT " RECORD_COLUMNS " FROM run_record WHERE run_id < $1 ORDER BY run_id DESC LIMIT $2")
/* clang-format on */

#endif
