/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_token.c - `token`: who may call the daemon. A secret is shown once, when it is made. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/file/file.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/access.h"

#include <stdio.h>
#include <string.h>

#define PAGE 200

/* ---- list ---- */

static void scopes_text(unsigned scopes, char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    if (scopes == RP_TOKEN_SCOPES_ALL) {
        snprintf(out, size, "all");
        return;
    }
    for (unsigned i = 0; i < RP_TOKEN_SCOPES && n < size; i++)
        if (scopes & (1U << i))
            n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? "," : "", rp_token_scope_names[i]);
}

static int list_row(void *ctx, const struct rp_token *token, struct rp_error *err)
{
    struct rp_list *l = ctx;
    char id[RP_ID_TEXT], scopes[256], until[RP_WHEN_TEXT] = "never";
    (void)err;
    l->last_id = token->id;
    scopes_text(token->scopes, scopes, sizeof scopes);
    if (token->expires_at_ms != 0) rp_show_when(token->expires_at_ms, l->now_ms, until);
    if (token->revoked_at_ms != 0) snprintf(until, sizeof until, "revoked");
    const char *cells[] = {
        rp_id_format(RP_ID_TOKEN, token->id, id),          token->name, rp_token_kind_name(token->kind),
        token->tenant_id == 0 ? "(admin)" : token->tenant, scopes,      until
    };
    rp_list_row(l, l->cli->json ? rp_token_json(token) : NULL, cells);
    return 0;
}

int rp_cmd_token(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_COLUMN("TOKEN"),  RP_COLUMN("NAME"),  RP_COLUMN("KIND"),
                                                RP_COLUMN("TENANT"), RP_TEXTS("SCOPES"), RP_COLUMN("EXPIRES") };
    struct rp_list l;
    int64_t before;
    int r = 0;
    RP_LIST_INIT(&l, cli, columns, "no tokens; `reprieve token create NAME` makes one");
    do {
        before = l.shown;
        r = rp_token_list(cli->session.catalog->db, l.last_id, PAGE, l.now_ms, list_row, &l, err);
    } while (r == 0 && l.shown - before == PAGE);
    return rp_list_end(&l, r);
}

/* ---- create ---- */

static int read_options(struct rp_cli *cli, struct rp_token *token, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    const char *tenant = rp_args_text(args, "tenant"), *scopes = rp_args_text(args, "scopes");
    struct rp_tenant found;
    int r = rp_args_when(args, "expires", rp_session_now_ms(&cli->session), 1, &token->expires_at_ms, err);
    if (r == 0 && token->expires_at_ms != 0 && token->expires_at_ms <= rp_session_now_ms(&cli->session))
        r = rp_error_set(err, RP_EINVAL, "--expires: the moment has passed");
    if (r == 0)
        r = rp_token_scopes_parse(scopes != NULL   ? scopes
                                  : tenant != NULL ? "files.read,files.write,live"
                                                   : "all",
                                  &token->scopes, err);
    if (r < 0 || tenant == NULL) return r;
    r = rp_tenant_make(cli->session.catalog, tenant, &found, err);
    if (r < 0) return r;
    token->tenant_id = found.id;
    snprintf(token->tenant, sizeof token->tenant, "%s", found.name);
    return 0;
}

static int make_token(struct rp_cli *cli, const struct rp_token *token, struct rp_token_command *c,
                      struct rp_error *err)
{
    int r = rp_token_command_init(c, token, cli->session.actor, err);
    return r < 0 ? r : rp_cli_run(cli, &c->command, err);
}

int rp_cmd_token_create(struct rp_cli *cli, struct rp_error *err)
{
    const char *name = cli->args.words[1];
    struct rp_token token = { .kind = RP_TOKEN_BEARER };
    struct rp_token_command c;
    char id[RP_ID_TEXT];
    if (strlen(name) > RP_TOKEN_NAME_MAX)
        return rp_error_set(err, RP_EINVAL, "the name has %zu bytes; %d are allowed", strlen(name), RP_TOKEN_NAME_MAX);
    snprintf(token.name, sizeof token.name, "%s", name);
    int r = read_options(cli, &token, err);
    if (r == 0) r = make_token(cli, &token, &c, err);
    if (r < 0) return r;
    json_t *o = rp_token_json(&c.token);
    rp_json_set(o, "secret", json_string(c.secret));
    rp_emit(cli, o);
    if (cli->json) return 0;
    printf("%s\n", c.secret); /* what was asked for: also with --quiet */
    rp_say_beside(cli, "%s  %s; it is shown this once\n", rp_id_format(RP_ID_TOKEN, c.token.id, id), name);
    return 0;
}

/* ---- a link to sign in with ---- */

static void address_of(const struct rp_config *config, char *out, size_t size)
{
    if (config->public_url[0] != 0)
        snprintf(out, size, "%s", config->public_url);
    else
        snprintf(out, size, "%s://%s", config->tls_certificate[0] != 0 ? "https" : "http", config->listen);
    for (size_t n = strlen(out); n > 0 && out[n - 1] == '/';)
        out[--n] = 0;
}

int rp_cmd_token_link(struct rp_cli *cli, struct rp_error *err)
{
    char url[2100];
    struct rp_token token = { .kind = RP_TOKEN_LINK,
                              .name = "sign-in",
                              .scopes = RP_TOKEN_SCOPES_ALL,
                              .expires_at_ms = rp_session_now_ms(&cli->session) + RP_TOKEN_LINK_MS };
    struct rp_token_command c;
    int r = make_token(cli, &token, &c, err);
    if (r < 0) return r;
    address_of(&cli->session.config, url, sizeof url);
    rp_emit(cli, json_pack("{s:o,s:o}", "sign_in", json_sprintf("%s/signin?link=%s", url, c.secret), "expires_at",
                           rp_json_time(c.token.expires_at_ms)));
    if (cli->json) return 0;
    printf("%s/signin?link=%s\n", url, c.secret);
    rp_say_beside(cli, "works once, within 15 minutes\n");
    return 0;
}

/* ---- revoke ---- */

int rp_cmd_token_revoke(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_token_command c = { .command = { .verb = &rp_verb_token_revoke } };
    char id[RP_ID_TEXT];
    int r = rp_cli_id(cli->args.words[1], RP_ID_TOKEN, &c.token.id, err);
    if (r == 0) r = rp_cli_run(cli, &c.command, err);
    if (r == RP_ENOTFOUND) rp_error_hint(err, "`reprieve token` lists the tokens");
    if (r < 0) return r;
    rp_tell(cli, rp_token_json(&c.token), "%s  revoked; every daemon refuses it within a second\n",
            rp_id_format(RP_ID_TOKEN, c.token.id, id));
    return 0;
}
