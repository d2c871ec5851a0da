/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, and the console's sign-in. A secret leaves here once, in the answer that made it: what is kept under an idempotency key has
 * none. */
#include "http/server/inner.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/token.h"
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

struct create {
    struct rp_command command;
    struct rp_token token;
    char secret[RP_TOKEN_SECRET];
    int64_t lasts_ms; /* 0: for ever */
};

static int run_create(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct create *c = (struct create *)commands[i];
        c->token.expires_at_ms = c->lasts_ms == 0 ? 0 : tx->late_ms + c->lasts_ms;
        int r = rp_token_create(tx, &c->token, c->secret, c->command.actor, &c->command.error);
        if (r < 0 && r != RP_EINVAL) {
            if (err != NULL) *err = c->command.error;
            return r;
        }
    }
    return 0;
}

static const struct rp_verb verb_create = { .name = "create a token", .run = run_create };

static void reply_created(struct rp_request *q)
{
    const struct create *c = (const struct create *)q->command;
    if (c->command.error.code < 0) {
        rp_reply_error(q, &c->command.error);
        return;
    }
    json_t *shown = rp_token_json(&c->token), *kept = rp_token_json(&c->token);
    rp_json_set(shown, "secret", json_string(c->secret));
    if (c->token.kind == RP_TOKEN_LINK) {
        char path[80];
        (void)snprintf(path, sizeof path, "/signin?link=%s", c->secret);
        rp_json_set(shown, "sign_in", json_string(path));
    }
    rp_json_set(kept, "secret", json_null());
    rp_json_set(kept, "hint",
                json_string("the secret was in the first answer only; revoke this token and make another"));
    if (q->key != NULL) rp_request_keep_instead(q, json_incref(kept));
    json_decref(kept);
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

static int read_new(struct rp_request *q, struct create *c, struct rp_error *err)
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
    struct create *c = rp_arena_alloc(&q->arena, sizeof *c);
    int r = c == NULL ? rp_error_set(&err, RP_ENOMEM, "out of memory") : read_new(q, c, &err);
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    c->command.verb = &verb_create;
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

struct revoke {
    int64_t id;
    const char *actor;
    struct rp_token token;
};

static int revoke_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct revoke *v = ctx;
    return rp_token_revoke(tx, v->id, v->actor, &v->token, err);
}

/* When it returns, no request that begins is authorised by it. */
static int revoke_now(struct rp_request *q, struct revoke *v, struct rp_error *err)
{
    v->actor = q->who.actor;
    int r = rp_catalog_transact(rp_request_catalog(q), revoke_tx, v, err);
    if (r == 0) rp_server_forget_token(q->server, v->id);
    return r;
}

static void revoke_token(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct revoke v = { 0 };
    if (!rp_request_id(q, 0, RP_ID_TOKEN, &v.id)) return;
    if (revoke_now(q, &v, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, rp_token_json(&v.token));
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

static void end_session(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct revoke v = { .id = q->who.token_id };
    char cookie[160];
    if (!q->who.by_cookie) {
        rp_error_set(&err, RP_EINVAL, "this call was not made by a session");
        rp_error_hint(&err, "DELETE /v1/tokens/{id} revokes a token");
        rp_reply_error(q, &err);
        return;
    }
    if (revoke_now(q, &v, &err) < 0) {
        rp_reply_error(q, &err);
        return;
    }
    rp_session_cookie(NULL, q->server->tls, cookie, sizeof cookie);
    rp_reply_header(q, "Set-Cookie", cookie);
    rp_reply_empty(q, 204);
}

struct sign_in {
    const char *link;
    char secret[RP_TOKEN_SECRET];
    struct rp_token session;
};

static int sign_in_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct sign_in *s = ctx;
    return rp_token_use_link(tx, s->link, s->secret, &s->session, err);
}

/* Before the transaction: a text that is no link changes nothing and takes no turn with the writer. */
static int open_session(struct rp_request *q, struct sign_in *s, struct rp_error *err)
{
    if (!rp_token_secret_like(RP_TOKEN_LINK, s->link))
        return rp_error_set(err, RP_EUNAUTHORIZED, "this sign-in link is not valid");
    int r = rp_token_secret(RP_TOKEN_SESSION, s->secret, err);
    return r < 0 ? r : rp_catalog_transact(rp_request_catalog(q), sign_in_tx, s, err);
}

static void sign_in(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct sign_in s = { .link = rp_request_text(q->query, "link", "") };
    char cookie[160];
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_header(q, "Referrer-Policy", "no-referrer"); /* the link is in this page's address */
    int r = rp_access_may_try(q, &err);
    if (r == 0) r = open_session(q, &s, &err);
    if (r == RP_EUNAUTHORIZED) rp_access_failed(q);
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    rp_session_cookie(s.secret, q->server->tls, cookie, sizeof cookie);
    rp_reply_header(q, "Set-Cookie", cookie);
    rp_reply_header(q, "Location", "/");
    rp_reply_empty(q, 303);
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
      .blocks = true,
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
      .blocks = true,
      .handler = end_session,
      .status = 204,
      .summary = "Signs out of the console.",
      .example = "-X POST" },
    { .method = "GET",
      .path = "/signin",
      .audience = RP_FOR_EVERYBODY,
      .blocks = true,
      .plain = true,
      .handler = sign_in,
      .query = &signin_shape,
      .status = 303,
      .errors = "unauthorized rate_limited",
      .summary = "Opens the console with a one-time link.",
      .example = "" },
};
const struct rp_routes rp_routes_access = { routes, sizeof routes / sizeof routes[0] };
