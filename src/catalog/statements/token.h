/* SPDX-License-Identifier: Apache-2.0 */
/* statements/token.h - statements over table token; joined into RP_STATEMENTS (statements.h). */
#ifndef RP_CATALOG_STATEMENTS_TOKEN_H
#define RP_CATALOG_STATEMENTS_TOKEN_H

#define TOKEN_SELECT                                                                                                   \
    "SELECT k.id, k.kind, k.name, k.tenant_id, t.name, k.scopes, k.created_at, k.created_by, k.expires_at, "           \
    "k.revoked_at, k.revoked_by FROM token k LEFT JOIN tenant t ON t.id = k.tenant_id "
#define TOKEN_TYPES "iisisiisiis"

/* clang-format off */
#define RP_STATEMENTS_TOKEN(X)                                                                                         \
    X(token_add,       "iibsiiisi", NULL, NULL,                                                                        \
      "INSERT INTO token (id, kind, hash, name, tenant_id, scopes, created_at, created_by, expires_at) "               \
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)")                                                                   \
    X(token_by_hash,   "b",    NULL,  TOKEN_TYPES,                                                                     \
      TOKEN_SELECT "WHERE k.hash = $1")                                                                                \
    X(token_get,       "i",    NULL,  TOKEN_TYPES,                                                                     \
      TOKEN_SELECT "WHERE k.id = $1")                                                                                  \
    X(token_list,      "iii",  NULL,  TOKEN_TYPES,                                                                     \
      TOKEN_SELECT "WHERE k.id > $1 AND (k.kind = " K_BEARER " OR (k.revoked_at IS NULL AND k.expires_at > $2)) "      \
      "ORDER BY k.id LIMIT $3")                                                                                        \
    X(token_any,       "",     NULL,  "i",                                                                             \
      "SELECT id FROM token WHERE kind = " K_BEARER " ORDER BY id LIMIT 1")                                            \
    X(token_revoke,    "iis",  NULL,  "i",                                                                             \
      "UPDATE token SET revoked_at = $2, revoked_by = $3 WHERE id = $1 AND revoked_at IS NULL RETURNING id")           \
    X(token_use_link,  "bi",   NULL,  "isii",                                                                          \
      "UPDATE token SET revoked_at = $2, revoked_by = 'signed in' "                                                    \
      "WHERE hash = $1 AND kind = " K_LINK " AND revoked_at IS NULL AND expires_at > $2 "                              \
      "RETURNING id, name, tenant_id, scopes")
/* clang-format on */

#endif
