/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, and the console's sign-in. A secret leaves here once, in the answer that made it: what is kept under an idempotency key has
 * none. */
#include "http/api/shapes.h"
#include "http/server/inner.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/token.h"
#include "core/access.h"
#include "http/server/access.h"
#include "http/server/session.h"

#define PAGE 100

static const char *const kind_names[] = { "bearer", "link", "session", NULL };

static const struct rp_field token_fields[] = {
    { .name = "id", .kind = RP_FIELD_ID, .id = RP_ID_TOKEN, .required = true },
    { .name = "kind", .kind = RP_FIELD_CHOICE, .choices = kind_names, .required = true },
    { .name = "name", .kind = RP_FIELD_TEXT, .required = true },
    { .name = "tenant", .kind = RP_FIELD_TEXT, .help = "null: an admin token, for all tenants" },
    { .name = "admin", .kind = RP_FIELD_BOOL, .required = true },
    { .name = "scopes", .kind = RP_FIELD_TEXTS, .required = true },
    { .name = "created_at", .kind = RP_FIELD_TIME, .required = true },
    { .name = "created_by", .kind = RP_FIELD_TEXT, .required = true },
    { .name = "expires_at", .kind = RP_FIELD_TIME, .help = "null: never" },
    { .name = "revoked_at", .kind = RP_FIELD_TIME },
    { .name = "secret", .kind = RP_FIELD_TEXT, .help = "only in the first answer to the call that made it" },
    { .name = "sign_in", .kind = RP_FIELD_TEXT, .help = "a link's path on this server; only where secret is" },
    { .name = "hint", .kind = RP_FIELD_TEXT },
};
static const struct rp_shape token_shape = RP_SHAPE("Token", token_fields, "Who may call, and what for.");

static const char *const new_kinds[] = { "bearer", "link", NULL };
static const struct rp_field new_fields[] = {
    { .name = "name",
      .kind = RP_FIELD_TEXT,
      .required = true,
      .least = 1,
      .most = RP_TOKEN_NAME_MAX,
      .help = "shown as token:NAME in marks and the audit log" },
    { .name = "kind",
      .kind = RP_FIELD_CHOICE,
      .choices = new_kinds,
      .help = "bearer unless told; link: signs in to the console, once" },
    { .name = "tenant",
      .kind = RP_FIELD_TEXT,
      .least = 1,
      .most = 63,
      .help = "whose files it is for; or admin: true" },
    { .name = "admin", .kind = RP_FIELD_BOOL, .help = "for all tenants, and for what only admins may" },
    { .name = "scopes",
      .kind = RP_FIELD_TEXTS,
      .required = true,
      .least = 1,
      .most = RP_TOKEN_SCOPES,
      .help = "files.read, files.write, marks.read, marks.write, runs.read, runs.write, live, metrics, audit, admin" },
    { .name = "expires_in",
      .kind = RP_FIELD_DURATION,
      .least = 1000,
      .most = 3650 * RP_DAY_MS,
      .help = "never unless told" },
};
static const struct rp_shape new_shape = RP_SHAPE("NewToken", new_fields, "A token to be made.");

static const struct rp_field list_fields[] = {
    { .name = "limit", .kind = RP_FIELD_INT, .least = 1, .most = 1000, .help = "100 unless told" },
    { .name = "cursor", .kind = RP_FIELD_ID, .id = RP_ID_TOKEN, .help = "next_cursor of the page before" },
};
static const struct rp_shape list_shape = RP_SHAPE("TokenQuery", list_fields, NULL);

/* ---- create ---- */

static void reply_created(struct rp_request *q)
{
    const struct rp_token_command *c = (const struct rp_token_command *)q->command;
    if (c->command.error.code < 0) {
        rp_reply_error(q, &c->command.error);
        return;
    }
    json_t *shown = rp_token_json(&c->token), *saved = rp_token_json(&c->token);
    rp_json_set(shown, "secret", json_string(c->secret));
    if (c->token.kind == RP_TOKEN_LINK) {
        char path[80];
        (void)snprintf(path, sizeof path, "/signin?link=%s", c->secret);
        rp_json_set(shown, "sign_in", json_string(path));
    }
    rp_json_set(saved, "secret", json_null());
    rp_json_set(saved, "hint",
                json_string("the secret was in the first answer only; revoke this token and make another"));
    if (q->key != NULL) rp_request_save_instead(q, json_incref(saved));
    json_decref(saved);
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_json(q, 201, shown);
}

static int read_scopes(const struct rp_request *q, unsigned *out, struct rp_error *err)
{
    size_t i;
    json_t *name;
    unsigned bit = 0;
    json_array_foreach(json_object_get(q->body, "scopes"), i, name)
    {
        if (!rp_scope_parse(json_string_value(name), &bit))
            return rp_error_set(err, RP_EINVAL, "scopes[%zu]: '%.40s' is not a scope", i, json_string_value(name));
        *out |= bit;
    }
    return 0;
}

static int read_new(struct rp_request *q, struct rp_token_command *c, struct rp_error *err)
{
    bool admin = rp_request_bool(q->body, "admin");
    const char *tenant = rp_request_text(q->body, "tenant", NULL);
    bool link = strcmp(rp_request_text(q->body, "kind", "bearer"), "link") == 0;
    if (admin == (tenant != NULL)) return rp_error_set(err, RP_EINVAL, "a token needs either a tenant, or admin: true");
    c->token.kind = link ? RP_TOKEN_LINK : RP_TOKEN_BEARER;
    c->lasts_ms = rp_request_int(q->body, "expires_in", 0);
    if (link && (c->lasts_ms == 0 || c->lasts_ms > RP_TOKEN_LINK_MS)) c->lasts_ms = RP_TOKEN_LINK_MS;
    (void)snprintf(c->token.name, sizeof c->token.name, "%s", rp_request_text(q->body, "name", ""));
    (void)snprintf(c->token.tenant, sizeof c->token.tenant, "%s", admin ? "" : tenant);
    int r = read_scopes(q, &c->token.scopes, err);
    if (r == 0 && !admin) r = rp_request_tenant(q, &c->token.tenant_id, err);
    if (r == 0) r = rp_token_secret(c->token.kind, c->secret, err);
    return r;
}

static void create_token(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_token_command *c = rp_arena_alloc(&q->arena, sizeof *c);
    int r = c == NULL ? rp_error_set(&err, RP_ENOMEM, "out of memory") : read_new(q, c, &err);
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    c->command.verb = &rp_verb_token_create;
    rp_request_submit(q, &c->command, reply_created, NULL);
}

/* ---- list and revoke ---- */

struct page {
    json_t *items;
    int64_t limit, last_id;
};

static int add_token(void *ctx, const struct rp_token *token, struct rp_error *err)
{
    struct page *page = ctx;
    if ((int64_t)json_array_size(page->items) < page->limit) page->last_id = token->id;
    if (rp_json_append(page->items, rp_token_json(token)) == 0) return 0;
    return rp_error_set(err, RP_ENOMEM, "out of memory");
}

static void list_tokens(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct page page = { .items = json_array(), .limit = rp_request_int(q->query, "limit", PAGE) };
    char cursor[RP_ID_TEXT];
    int64_t after = rp_request_int(q->query, "cursor", 0);
    /* One more than is asked for tells whether there is another page. */
    int r = rp_token_list(rp_request_catalog(q)->db, after, page.limit + 1, q->began_ms, add_token, &page, &err);
    if (r < 0) {
        json_decref(page.items);
        rp_reply_error(q, &err);
        return;
    }
    bool more = (int64_t)json_array_size(page.items) > page.limit;
    if (more) json_array_remove(page.items, (size_t)page.limit);
    rp_reply_list(q, page.items, more ? rp_id_format(RP_ID_TOKEN, page.last_id, cursor) : NULL);
}

static struct rp_token_command *new_command(struct rp_request *q, const struct rp_verb *verb)
{
    struct rp_token_command *c = rp_arena_alloc(&q->arena, sizeof *c);
    if (c == NULL)
        rp_reply_no_memory(q);
    else
        *c = (struct rp_token_command){ .command = { .verb = verb } };
    return c;
}

static struct rp_token_command *command_of(const struct rp_request *q)
{
    return (struct rp_token_command *)q->command;
}

/* Before the answer goes out: no request that begins later is authorised by it. */
static void forget(struct rp_request *q)
{
    if (q->command->error.code == 0) rp_server_forget_token(q->server, command_of(q)->token.id);
}

static void then_revoked(struct rp_request *q)
{
    if (q->command->error.code < 0)
        rp_reply_error(q, &q->command->error);
    else
        rp_reply_json(q, 200, rp_token_json(&command_of(q)->token));
}

static void revoke_by_id(struct rp_request *q, int64_t id, rp_handler_fn *then)
{
    struct rp_token_command *c = new_command(q, &rp_verb_token_revoke);
    if (c == NULL) return;
    c->token.id = id;
    q->after = forget;
    rp_request_submit(q, &c->command, then, NULL);
}

static void revoke_token(struct rp_request *q)
{
    int64_t id;
    if (rp_request_id(q, 0, RP_ID_TOKEN, &id)) revoke_by_id(q, id, then_revoked);
}

/* ---- sessions ---- */

static const struct rp_field session_fields[] = {
    { .name = "token", .kind = RP_FIELD_ID, .id = RP_ID_TOKEN, .required = true },
    { .name = "name", .kind = RP_FIELD_TEXT, .required = true },
    { .name = "tenant", .kind = RP_FIELD_TEXT, .help = "null: an admin" },
    { .name = "admin", .kind = RP_FIELD_BOOL, .required = true },
    { .name = "scopes", .kind = RP_FIELD_TEXTS, .required = true },
    { .name = "expires_at", .kind = RP_FIELD_TIME, .help = "null: never" },
    { .name = "csrf",
      .kind = RP_FIELD_TEXT,
      .help = "for the header X-Reprieve-CSRF; null with a bearer token, which needs none" },
    { .name = "environment", .kind = RP_FIELD_TEXT },
};
static const struct rp_shape session_shape = RP_SHAPE("Session", session_fields, "Who is calling.");

static void get_session(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_token token;
    char id[RP_ID_TEXT], csrf[RP_DIGEST_HEX];
    if (rp_token_get(rp_request_catalog(q)->db, q->who.token_id, &token, &err) < 0) {
        rp_reply_error(q, &err);
        return;
    }
    if (q->who.by_cookie) rp_session_csrf(rp_access_session(q), csrf);
    json_t *o = json_object();
    rp_json_set(o, "token", json_string(rp_id_format(RP_ID_TOKEN, token.id, id)));
    rp_json_set(o, "name", rp_json_text(token.name));
    rp_json_set(o, "tenant", token.tenant_id == 0 ? json_null() : rp_json_text(token.tenant));
    rp_json_set(o, "admin", json_boolean(token.tenant_id == 0));
    rp_json_set(o, "scopes", rp_token_scopes_json(token.scopes));
    rp_json_set(o, "expires_at", token.expires_at_ms == 0 ? json_null() : rp_json_time(token.expires_at_ms));
    rp_json_set(o, "csrf", q->who.by_cookie ? json_string(csrf) : json_null());
    rp_json_set(o, "environment", rp_json_text(rp_request_config(q)->environment));
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_json(q, 200, o);
}

static void then_signed_out(struct rp_request *q)
{
    char cookie[160];
    if (q->command->error.code < 0) {
        rp_reply_error(q, &q->command->error);
        return;
    }
    rp_session_cookie(NULL, q->server->tls, cookie, sizeof cookie);
    rp_reply_header(q, "Set-Cookie", cookie);
    rp_reply_empty(q, 204);
}

static void end_session(struct rp_request *q)
{
    struct rp_error err = { 0 };
    if (q->who.by_cookie) {
        revoke_by_id(q, q->who.token_id, then_signed_out);
        return;
    }
    rp_error_set(&err, RP_EINVAL, "this call was not made by a session");
    rp_error_hint(&err, "DELETE /v1/tokens/{id} revokes a token");
    rp_reply_error(q, &err);
}

static void then_signed_in(struct rp_request *q)
{
    char cookie[160];
    if (q->command->error.code == RP_EUNAUTHORIZED) rp_access_failed(q);
    if (q->command->error.code < 0) {
        rp_reply_error(q, &q->command->error);
        return;
    }
    rp_session_cookie(command_of(q)->secret, q->server->tls, cookie, sizeof cookie);
    rp_reply_header(q, "Set-Cookie", cookie);
    rp_reply_header(q, "Location", "/");
    rp_reply_empty(q, 303);
}

/* A text that is no link changes nothing and takes no turn with the writer. */
static int check_link(struct rp_request *q, const char *link, struct rp_error *err)
{
    int r = rp_access_may_try(q, err);
    if (r < 0 || rp_token_secret_like(RP_TOKEN_LINK, link)) return r;
    rp_access_failed(q);
    return rp_error_set(err, RP_EUNAUTHORIZED, "this sign-in link is not valid");
}

static void sign_in(struct rp_request *q)
{
    const char *link = rp_request_text(q->query, "link", "");
    struct rp_error err = { 0 };
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_header(q, "Referrer-Policy", "no-referrer"); /* the link is in this page's address */
    struct rp_token_command *c = new_command(q, &rp_verb_sign_in);
    if (c == NULL) return;
    c->link = link;
    int r = check_link(q, link, &err);
    if (r == 0) r = rp_token_secret(RP_TOKEN_SESSION, c->secret, &err);
    if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_request_submit(q, &c->command, then_signed_in, NULL);
}

static const struct rp_field signin_fields[] = {
    { .name = "link", .kind = RP_FIELD_TEXT, .required = true, .least = 1, .most = 100, .help = "the one-time secret" },
};
static const struct rp_shape signin_shape = RP_SHAPE("SignIn", signin_fields, NULL);

static const struct rp_route routes[] = {
    { .method = "POST",
      .path = "/v1/tokens",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_ADMINISTER,
      .blocks = true,
      .handler = create_token,
      .body = &new_shape,
      .answer = &token_shape,
      .status = 201,
      .summary = "Makes a token, or a one-time link that signs in to the console.",
      .example = "-X POST -d '{\"name\":\"app\",\"tenant\":\"acme\",\"scopes\":[\"files.read\",\"files.write\"]}'" },
    { .method = "GET",
      .path = "/v1/tokens",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_ADMINISTER,
      .blocks = true,
      .handler = list_tokens,
      .query = &list_shape,
      .answer = &token_shape,
      .many = true,
      .status = 200,
      .summary = "Tokens, and the sessions and links that are still good; without secrets.",
      .example = "" },
    { .method = "DELETE",
      .path = "/v1/tokens/{id}",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_ADMINISTER,
      .handler = revoke_token,
      .answer = &token_shape,
      .status = 200,
      .summary = "Revokes a token: the next request with it is refused.",
      .example = "-X DELETE" },
    { .method = "GET",
      .path = "/v1/session",
      .audience = RP_FOR_TENANTS,
      .blocks = true,
      .handler = get_session,
      .answer = &session_shape,
      .status = 200,
      .summary = "Who is calling, and the value that changes from the console must carry.",
      .example = "" },
    { .method = "POST",
      .path = "/v1/session/end",
      .audience = RP_FOR_TENANTS,
      .handler = end_session,
      .status = 204,
      .summary = "Signs out of the console.",
      .example = "-X POST" },
    { .method = "GET",
      .path = "/signin",
      .audience = RP_FOR_EVERYBODY,
      .plain = true,
      .handler = sign_in,
      .query = &signin_shape,
      .status = 303,
      .errors = "unauthorized rate_limited",
      .summary = "Opens the console with a one-time link.",
      .example = "" },
};
const struct rp_routes rp_routes_access = { routes, sizeof routes / sizeof routes[0] };
