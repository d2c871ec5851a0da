/* SPDX-License-Identifier: Apache-2.0 */
/* statements/segment.h - statements over table audit_segment, and over the rows that it lets go;
 * joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_SEGMENT_H
#define RP_CATALOG_STATEMENTS_SEGMENT_H

#define SEGMENT_COLUMNS                                                                                                \
    "lane, from_seq, to_seq, hash_before, hash_after, first_at, last_at, with_details, file, bytes, sha256, "          \
    "sealed_at, run_id"
#define SEGMENT_TYPES "iiibbiiisibii"

/* clang-format off */
#define RP_STATEMENTS_SEGMENT(X)                                                                                       \
    X(segment_add,     SEGMENT_TYPES, NULL, NULL,                                                                      \
      "INSERT INTO audit_segment (" SEGMENT_COLUMNS ") "                                                               \
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)")                                               \
    X(segment_page,    "iii",  NULL,  SEGMENT_TYPES,                                                                   \
      "SELECT " SEGMENT_COLUMNS " FROM audit_segment WHERE (lane, to_seq) > ($1, $2) ORDER BY lane, to_seq LIMIT $3")  \
    X(segment_last,    "i",    NULL,  SEGMENT_TYPES,                                                                   \
      "SELECT " SEGMENT_COLUMNS " FROM audit_segment WHERE lane = $1 ORDER BY to_seq DESC LIMIT 1")                    \
    X(segment_of_row,  "ii",   NULL,  SEGMENT_TYPES,                                                                   \
      "SELECT " SEGMENT_COLUMNS " FROM audit_segment WHERE lane = $1 AND to_seq >= $2 AND from_seq <= $2 "             \
      "ORDER BY to_seq LIMIT 1")                                                                                       \
    X(segment_of_time, "ii",   NULL,  SEGMENT_TYPES,                                                                   \
      "SELECT " SEGMENT_COLUMNS " FROM audit_segment WHERE last_at >= $1 AND first_at <= $2 ORDER BY first_at, lane")  \
    X(segment_lanes,   "",     NULL,  "iiiii",                                                                         \
      "SELECT l.lane, l.seq, "                                                                                         \
      "COALESCE((SELECT MAX(s.to_seq) FROM audit_segment s WHERE s.lane = l.lane), 0), "                               \
      "COALESCE((SELECT MIN(a.seq) FROM audit a WHERE a.lane = l.lane), 0), "                                          \
      "COALESCE((SELECT a.at FROM audit a WHERE a.lane = l.lane ORDER BY a.seq LIMIT 1), 0) "                          \
      "FROM lane l ORDER BY l.lane")                                                                                   \
    X(segment_reader,  "i",    NULL,  "si",                                                                            \
      "SELECT r.reader, COALESCE(c.seq, 0) FROM (SELECT DISTINCT reader FROM feed_cursor) AS r "                       \
      "LEFT JOIN feed_cursor c ON c.reader = r.reader AND c.lane = $1 ORDER BY 2, 1 LIMIT 1")                          \
    X(segment_rows,    "iii",  NULL,  "ii",                                                                            \
      "SELECT COUNT(*), COUNT(details) FROM audit WHERE lane = $1 AND seq BETWEEN $2 AND $3")                          \
    X(segment_let_go,  "iii",  NULL,  NULL,                                                                            \
      "DELETE FROM audit WHERE lane = $1 AND seq BETWEEN $2 AND $3")                                                   \
    X(segment_share,   "",     NULL,  "i",                                                                             \
      "SELECT number FROM meta WHERE name = 'audit_sealed' @FOR_SHARE")
/* clang-format on */

#endif
