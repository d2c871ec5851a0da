/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - who may call: bearer tokens, one-time sign-in links, sessions of the console.
 *
 * T1  A secret is 256 random bits behind a prefix that says its kind. It is shown once, by whoever
 *     made it; the catalog has its SHA-256 only, and the audit log and the listing have neither.
 * T2  A token ends by expiry or by revocation; both are final. A link ends with its first use,
 *     which makes a session of the same tenant and scopes in the same transaction.
 * T3  What was changed is audited as token.created and token.revoked, with the token's id in
 *     `details`. */
#ifndef RP_CATALOG_TOKEN_H
#define RP_CATALOG_TOKEN_H

#include "catalog/catalog.h"

#include <jansson.h>

/* The same numbers stand in the catalog: never renumber. */
enum rp_token_kind { RP_TOKEN_BEARER = 1, RP_TOKEN_LINK = 2, RP_TOKEN_SESSION = 3 };

#define RP_TOKEN_NAME_MAX   64
#define RP_TOKEN_SECRET     48                  /* bytes of a secret's text, NUL included: prefix and 43 of base64url */
#define RP_TOKEN_LINK_MS    ((int64_t)900000)   /* a sign-in link: 15 minutes */
#define RP_TOKEN_SESSION_MS ((int64_t)43200000) /* a session: 12 hours */

struct rp_token {
    int64_t id;
    enum rp_token_kind kind;
    char name[RP_TOKEN_NAME_MAX + 1];
    int64_t tenant_id; /* 0: admin */
    char tenant[64];   /* its name, of rows that were read; "" for an admin */
    unsigned scopes;   /* bits as in rp_token_scope_names */
    int64_t created_at_ms;
    char created_by[128];
    int64_t expires_at_ms; /* 0: never */
    int64_t revoked_at_ms; /* 0: not */
    char revoked_by[128];
};

/* What a token may do; the bit's number is the index. http/route.h has a name for each bit. */
#define RP_TOKEN_SCOPES     10
#define RP_TOKEN_SCOPES_ALL ((1U << RP_TOKEN_SCOPES) - 1)
extern const char *const rp_token_scope_names[RP_TOKEN_SCOPES];
/* "files.read,files.write", or "all". RP_EINVAL names the word that is none. */
int rp_token_scopes_parse(const char *list, unsigned *out, struct rp_error *err);
json_t *rp_token_scopes_json(unsigned scopes); /* ["files.read", ...] */
const char *rp_token_kind_name(enum rp_token_kind kind);

/* A new secret of this kind. */
int rp_token_secret(enum rp_token_kind kind, char out[RP_TOKEN_SECRET], struct rp_error *err);
/* Whether the text has the form of such a secret: asked before anything is looked up. */
bool rp_token_secret_like(enum rp_token_kind kind, const char *text);
void rp_token_hash(const char *secret, uint8_t out[RP_DIGEST_BYTES]);

/* Takes kind, name, tenant_id, scopes and expires_at_ms; sets id, created_at_ms and created_by.
 * RP_EINVAL: a name that is empty, too long or has control characters. The secret is made before
 * the transaction (K3). */
int rp_token_create(struct rp_tx *tx, struct rp_token *token, const char *secret, const char *actor,
                    struct rp_error *err);
/* RP_ENOTFOUND: no such token. One that is revoked already stays as it is; *out (may be NULL) is
 * the token as it is now. */
int rp_token_revoke(struct rp_tx *tx, int64_t id, const char *actor, struct rp_token *out, struct rp_error *err);
/* The session that this link opens, under `secret` (a new one of kind session). RP_EUNAUTHORIZED:
 * unknown, used or expired, which look alike. */
int rp_token_use_link(struct rp_tx *tx, const char *link, const char *secret, struct rp_token *session,
                      struct rp_error *err);

/* RP_ENOTFOUND: none. Expired and revoked ones are found too: rp_token_valid says what they are
 * worth. */
int rp_token_find_by_hash(struct rp_db *db, const uint8_t hash[RP_DIGEST_BYTES], struct rp_token *out,
                          struct rp_error *err);
int rp_token_get(struct rp_db *db, int64_t id, struct rp_token *out, struct rp_error *err);
bool rp_token_valid(const struct rp_token *token, int64_t now_ms);

typedef int rp_token_fn(void *ctx, const struct rp_token *token, struct rp_error *err);
/* In order of id. Sessions and links that are over are left out: there may be many. */
int rp_token_list(struct rp_db *db, int64_t after_id, int64_t limit, int64_t now_ms, rp_token_fn *fn, void *ctx,
                  struct rp_error *err);
/* Whether any bearer token was ever made: a new catalog gets its first one by itself. */
int rp_token_any(struct rp_db *db, bool *any, struct rp_error *err);

/* {"id","kind","name","tenant","admin","scopes","created_at","created_by","expires_at",
 * "revoked_at"} */
json_t *rp_token_json(const struct rp_token *token);

#endif
