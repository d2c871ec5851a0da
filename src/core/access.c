/* SPDX-License-Identifier: Apache-2.0 */
#include "core/access.h"

#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "core/journal.h"

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
    if (c->command.verb == &rp_verb_token_revoke) {
        int r = rp_token_revoke(tx, c->token.id, actor, &c->token, err);
        c->ended = r == 0 && c->token.revoked_at_ms == tx->late_ms;
        return r;
    }
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

/* A sign-in makes a session. */
static void write_log(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_token_command *c = (const struct rp_token_command *)command;
    const struct rp_token *token = &c->token;
    bool revoke = command->verb == &rp_verb_token_revoke;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    char id[RP_ID_TEXT];
    if (command->error.code < 0 || (revoke && !c->ended)) return;
    json_t *o = json_object();
    rp_json_set(o, "token", json_string(rp_id_format(RP_ID_TOKEN, token->id, id)));
    rp_json_set(o, "kind", json_string(rp_token_kind_name(token->kind)));
    rp_json_set(o, "name", rp_json_text(token->name));
    if (token->tenant_id != 0) rp_json_set(o, "tenant", rp_json_text(token->tenant));
    rp_journal_change(&j, revoke ? "token.revoked" : "token.created", o);
}

_Static_assert(offsetof(struct rp_token_command, command) == 0, "a command is the first member");
const struct rp_verb rp_verb_token_create = { .name = "make a token", .run = run, .log = write_log, .alone = true };
const struct rp_verb rp_verb_token_revoke = { .name = "revoke a token", .run = run, .log = write_log, .alone = true };
const struct rp_verb rp_verb_sign_in = { .name = "sign in", .run = run, .log = write_log, .alone = true };

int rp_token_command_init(struct rp_token_command *c, const struct rp_token *token, const char *actor,
                          struct rp_error *err)
{
    *c = (struct rp_token_command){ .command = { .verb = &rp_verb_token_create, .actor = actor }, .token = *token };
    return rp_token_secret(token->kind, c->secret, err);
}
