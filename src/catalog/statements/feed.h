/* SPDX-License-Identifier: Apache-2.0 */
/* statements/feed.h - statements over tables feed_cursor and feed_lease; joined into
 * RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_FEED_H
#define RP_CATALOG_STATEMENTS_FEED_H

/* clang-format off */
#define RP_STATEMENTS_FEED(X)                                                                                          \
    X(feed_cursor_load, "s",   NULL,  "ii",                                                                            \
      "SELECT lane, seq FROM feed_cursor WHERE reader = $1 ORDER BY lane")                                             \
    X(feed_cursor_save, "s",   "ii",  NULL,                                                                            \
      "INSERT INTO feed_cursor (reader, lane, seq) "                                                                   \
      "SELECT $1, column1, column2 FROM (VALUES @ROWS) AS v WHERE true "                                               \
      "ON CONFLICT (reader, lane) DO UPDATE SET seq = excluded.seq WHERE feed_cursor.seq < excluded.seq")              \
    X(feed_lag, "s",   NULL,  "ii",                                                                                    \
      "SELECT l.seq - COALESCE(c.seq, 0), COALESCE((SELECT MIN(a.at) FROM audit a WHERE a.lane = l.lane "              \
      "AND a.seq = COALESCE(c.seq, 0) + 1), 0) FROM lane l "                                                           \
      "LEFT JOIN feed_cursor c ON c.reader = $1 AND c.lane = l.lane WHERE l.seq > COALESCE(c.seq, 0)")                 \
    X(feed_readers, "si",    NULL,  "s",                                                                               \
      "SELECT DISTINCT reader FROM feed_cursor WHERE reader > $1 ORDER BY reader LIMIT $2")                            \
    X(feed_cursor_remove, "s", NULL,  NULL,                                                                            \
      "DELETE FROM feed_cursor WHERE reader = $1")                                                                     \
                                                                                                                       \
    X(feed_lease_get, "s",   NULL,  "sii",                                                                             \
      "SELECT holder, fence, until_at FROM feed_lease WHERE reader = $1")                                              \
    X(feed_lease_take, "ssii", NULL, NULL,                                                                             \
      "INSERT INTO feed_lease (reader, holder, fence, until_at) VALUES ($1, $2, 1, $4) "                               \
      "ON CONFLICT (reader) DO UPDATE SET holder = excluded.holder, fence = feed_lease.fence + 1, "                    \
      "until_at = excluded.until_at WHERE feed_lease.until_at <= $3 OR feed_lease.holder = excluded.holder")           \
    X(feed_lease_renew, "sii", NULL, NULL,                                                                             \
      "UPDATE feed_lease SET until_at = $3 WHERE reader = $1 AND fence = $2")                                          \
    X(feed_lease_remove, "si", NULL, NULL,                                                                             \
      "DELETE FROM feed_lease WHERE reader = $1 AND until_at < $2")
/* clang-format on */

#endif
