/* SPDX-License-Identifier: Apache-2.0 */
/* statements/feed.h - statements over table feed_cursor; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_FEED_H
#define RP_CATALOG_STATEMENTS_FEED_H

/* clang-format off */
#define RP_STATEMENTS_FEED(X)                                                                                          \
    X(feed_cursor_load, "s",   NULL,  "ii",                                                                            \
      "SELECT lane, seq FROM feed_cursor WHERE reader = $1 ORDER BY lane")                                             \
    X(feed_cursor_save, "s",   "ii",  NULL,                                                                            \
      "INSERT INTO feed_cursor (reader, lane, seq) "                                                                   \
      "SELECT $1, column1, column2 FROM (VALUES @ROWS) AS v WHERE true "                                               \
      "ON CONFLICT (reader, lane) DO UPDATE SET seq = excluded.seq WHERE feed_cursor.seq < excluded.seq")
/* clang-format on */

#endif
