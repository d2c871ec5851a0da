/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - the verbs over tokens: made, revoked, and a link used up for a session
 * (catalog/token.h says what they are). Secrets are made before the command: it may be run
 * again. */
#ifndef RP_CORE_ACCESS_H
#define RP_CORE_ACCESS_H

#include "catalog/token.h"
#include "catalog/writer/writer.h"

struct rp_token_command {
    struct rp_command command;
    struct rp_token token; /* create: kind, name, tenant_id, scopes, expires_at_ms; revoke: id. Out: as it is now */
    char secret[RP_TOKEN_SECRET]; /* create, sign in: of the new one */
    const char *link;             /* sign in: the secret of the link */
    int64_t lasts_ms;             /* create: from now on, instead of expires_at_ms; 0: not given */
    bool ended;                   /* out, revoke: now; not before */
};
extern const struct rp_verb rp_verb_token_create, rp_verb_token_revoke, rp_verb_sign_in;

/* A command that makes this token: draws its secret. */
int rp_token_command_init(struct rp_token_command *c, const struct rp_token *token, const char *actor,
                          struct rp_error *err);

#endif
