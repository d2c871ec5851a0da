/* SPDX-License-Identifier: Apache-2.0 */
/* statements/lane.h - statements over table lane; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_LANE_H
#define RP_CATALOG_STATEMENTS_LANE_H

/* clang-format off */
#define RP_STATEMENTS_LANE(X)                                                                                          \
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
    X(lane_list,       "",     NULL,  "iib",                                                                           \
      "SELECT lane, seq, head FROM lane ORDER BY lane")
/* clang-format on */

#endif
