/* SPDX-License-Identifier: Apache-2.0 */
#include "core/access.h"

#include "base/error.h"

/* What is wrong with the request refuses it; everything else fails the round. */
static int refuse(struct rp_command *command, int r, const struct rp_error *why, struct rp_error *err)
{
    bool decided = r == RP_EINVAL || r == RP_ENOTFOUND || r == RP_EUNAUTHORIZED;
    *(decided ? &command->error : err) = *why;
    return decided ? 0 : r;
}

static int run_one(struct rp_tx *tx, struct rp_token_command *c, struct rp_error *err)
{
    const char *actor = c->command.actor;
    if (c->command.verb == &rp_verb_token_revoke) return rp_token_revoke(tx, c->token.id, actor, &c->token, err);
    if (c->command.verb == &rp_verb_sign_in) return rp_token_use_link(tx, c->link, c->secret, &c->token, err);
    if (c->lasts_ms != 0) c->token.expires_at_ms = tx->late_ms + c->lasts_ms;
    return rp_token_create(tx, &c->token, c->secret, actor, err);
}

static int run(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        struct rp_error why = { 0 };
        r = run_one(tx, (struct rp_token_command *)commands[i], &why);
        if (r < 0) r = refuse(commands[i], r, &why, err);
    }
    return r;
}

_Static_assert(offsetof(struct rp_token_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_token_create = { .name = "make a token", .run = run, .alone = true };
const struct rp_verb rp_verb_token_revoke = { .name = "revoke a token", .run = run, .alone = true };
const struct rp_verb rp_verb_sign_in = { .name = "sign in", .run = run, .alone = true };

int rp_token_command_init(struct rp_token_command *c, const struct rp_token *token, const char *actor,
                          struct rp_error *err)
{
    *c = (struct rp_token_command){ .command = { .verb = &rp_verb_token_create, .actor = actor }, .token = *token };
    return rp_token_secret(token->kind, c->secret, err);
}
