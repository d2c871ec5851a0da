/* SPDX-License-Identifier: Apache-2.0 */
/* statements/meta.h - statements over table meta; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_META_H
#define RP_CATALOG_STATEMENTS_META_H

/* clang-format off */
#define RP_STATEMENTS_META(X)                                                                                          \
    X(schema_known,    "",     NULL,  "i",                                                                             \
      "SELECT number FROM meta WHERE name = 'schema'")                                                                 \
    X(meta_get,        "s",    NULL,  "is",                                                                            \
      "SELECT number, word FROM meta WHERE name = $1")                                                                 \
    X(meta_set,        "sis",  NULL,  NULL,                                                                            \
      "INSERT INTO meta (name, number, word) VALUES ($1, $2, $3) "                                                     \
      "ON CONFLICT (name) DO UPDATE SET number = excluded.number, word = excluded.word")                               \
    X(meta_raise,      "si",   NULL,  "i",                                                                             \
      "UPDATE meta SET number = CASE WHEN number + 1 > $2 THEN number + 1 ELSE $2 END WHERE name = $1 "                \
      "RETURNING number")                                                                                              \
    X(meta_each,       "s",    NULL,  "sis",                                                                           \
      "SELECT name, number, word FROM meta WHERE substr(name, 1, length($1)) = $1")                                    \
    X(meta_fill,       "ss",   NULL,  NULL,                                                                            \
      "UPDATE meta SET word = $2 WHERE name = $1 AND word = ''")                                                       \
    X(hold_epoch_share, "",    NULL,  "i",                                                                             \
      "SELECT number FROM meta WHERE name = 'hold_epoch' @FOR_SHARE")                                                  \
    X(vessel_forget,   "",     NULL,  NULL,                                                                            \
      "INSERT INTO meta (name, word) SELECT 'vessel:' || id, 'put back' FROM store WHERE true "                        \
      "ON CONFLICT (name) DO UPDATE SET word = excluded.word")
/* clang-format on */

#endif
