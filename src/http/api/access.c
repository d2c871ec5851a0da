/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, and the console's sign-in. A secret leaves here once, in the answer that made it: what
 * is saved under an idempotency key has none. */
#include "http/api/shapes.h"
#include "http/server/inner.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/token.h"
#include "core/access.h"
#include "http/content/signed_url.h"
#include "http/server/access.h"
#include "http/server/session.h"

static const char *const kind_names[] = { "bearer", "link", "session", NULL };

static const struct rp_field token_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_TOKEN, .required = true },
    { RP_FIELD("kind", CHOICE), .choices = kind_names, .required = true },
    { RP_FIELD("name", TEXT), .required = true },
    { RP_FIELD("tenant", TEXT), .help = "null: an admin token, for all tenants" },
    { RP_FIELD("admin", BOOL), .required = true },
    { RP_FIELD("scopes", TEXTS), .required = true },
    { RP_FIELD("created_at", TIME), .required = true },
    { RP_FIELD("created_by", TEXT), .required = true },
    { RP_FIELD("expires_at", TIME), .help = "null: never" },
    { RP_FIELD("revoked_at", TIME) },
    { RP_FIELD("secret", TEXT), .help = "only in the first answer to the call that made it" },
    { RP_FIELD("sign_in", TEXT), .help = "a link's path, with that of public_url; only where secret is" },
    { RP_FIELD("hint", TEXT) },
};
static const struct rp_shape token_shape = RP_SHAPE("token", token_fields, "who may call, and what for");

static const char *const new_kinds[] = { "bearer", "link", NULL };
static const struct rp_field new_fields[] = {
    { RP_FIELD("name", TEXT), .required = true, .least = 1, .most = RP_TOKEN_NAME_MAX,
      .help = "shown as token:NAME in marks and the audit log" },
    { RP_FIELD("kind", CHOICE), .choices = new_kinds, .help = "bearer unless told; link: signs a browser in, once" },
    { RP_FIELD("tenant", TEXT), .least = 1, .most = 63, .help = "whose files it is for; or admin: true" },
    { RP_FIELD("admin", BOOL), .help = "for all tenants, and for what only admins may" },
    { RP_FIELD("scopes", TEXTS), .required = true, .least = 1, .most = RP_TOKEN_SCOPES,
      .help = "files.read, files.write, marks.read, marks.write, runs.read, runs.write, live, metrics, audit, admin" },
    { RP_FIELD("expires_in", DURATION), .least = 1000, .most = 3650 * RP_DAY_MS, .help = "never unless told" },
};
static const struct rp_shape new_shape = RP_SHAPE("token_request", new_fields, "a token to be made");

static const struct rp_field list_fields[] = {
    { RP_FIELD("limit", INT), .least = 1, .most = 1000, .help = "100 unless told" },
    { RP_FIELD("cursor", ID), .id = RP_ID_TOKEN, .help = "next_cursor of the page before" },
};
static const struct rp_shape list_shape = RP_SHAPE("tokens_query", list_fields, NULL);

/* What browsers reach us under: public_url, or our own address. */
static const char *base_url(struct rp_request *q)
{
    const char *url = rp_url_base(rp_request_config(q), rp_server_address(q->server), &q->arena);
    return url != NULL ? url : "";
}

/* "" at the root. */
static const char *base_path(struct rp_request *q)
{
    const char *host = strstr(base_url(q), "://"), *path = host != NULL ? strchr(host + 3, '/') : NULL;
    return path != NULL ? path : "";
}

static void give_cookie(struct rp_request *q, const char *secret)
{
    char cookie[RP_SESSION_COOKIE_TEXT];
    rp_session_cookie(secret, strncmp(base_url(q), "https:", 6) == 0, base_path(q), cookie);
    rp_reply_header(q, "Set-Cookie", cookie);
}

/* ---- create ---- */

static void reply_created(struct rp_request *q)
{
    const struct rp_token_command *c = (const struct rp_token_command *)q->command;
    json_t *shown = rp_token_json(&c->token), *saved = rp_token_json(&c->token);
    rp_json_set(shown, "secret", json_string(c->secret));
    if (c->token.kind == RP_TOKEN_LINK) {
        rp_json_set(shown, "sign_in", json_sprintf("%s/signin?link=%s", base_path(q), c->secret));
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
    const char *tenant = rp_json_get_text(q->body, "tenant", NULL);
    bool link = strcmp(rp_json_get_text(q->body, "kind", "bearer"), "link") == 0;
    if (admin == (tenant != NULL)) return rp_error_set(err, RP_EINVAL, "a token needs either a tenant, or admin: true");
    c->token.kind = link ? RP_TOKEN_LINK : RP_TOKEN_BEARER;
    c->lasts_ms = rp_json_get_int(q->body, "expires_in", 0);
    if (link && (c->lasts_ms == 0 || c->lasts_ms > RP_TOKEN_LINK_MS)) c->lasts_ms = RP_TOKEN_LINK_MS;
    (void)snprintf(c->token.name, sizeof c->token.name, "%s", rp_json_get_text(q->body, "name", ""));
    (void)snprintf(c->token.tenant, sizeof c->token.tenant, "%s", admin ? "" : tenant);
    int r = read_scopes(q, &c->token.scopes, err);
    if (r == 0 && !admin) r = rp_request_tenant(q, &c->token.tenant_id, err);
    if (r == 0) r = rp_token_secret(c->token.kind, c->secret, err);
    return r;
}

static void create_token(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_token_command *c = rp_command_new(q, sizeof *c, &rp_verb_token_create);
    if (c == NULL) return;
    if (read_new(q, c, &err) < 0)
        rp_reply_error(q, &err);
    else
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
    struct page page = { .items = json_array(), .limit = rp_json_get_int(q->query, "limit", RP_LIST_LIMIT) };
    int64_t after = rp_json_get_int(q->query, "cursor", 0);
    /* One more than is asked for tells whether there is another page. */
    int r = rp_token_list(rp_request_catalog(q)->db, after, page.limit + 1, q->began_ms, add_token, &page, &err);
    bool more = (int64_t)json_array_size(page.items) > page.limit;
    if (more) json_array_remove(page.items, (size_t)page.limit);
    rp_reply_page(q, r, &err, page.items, more ? rp_cursor_of(q, RP_ID_TOKEN, page.last_id) : NULL);
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
    rp_reply_json(q, 200, rp_token_json(&command_of(q)->token));
}

static void revoke_by_id(struct rp_request *q, int64_t id, rp_handler_fn *then)
{
    struct rp_token_command *c = rp_command_new(q, sizeof *c, &rp_verb_token_revoke);
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
    { RP_FIELD("token", ID), .id = RP_ID_TOKEN, .required = true },
    { RP_FIELD("name", TEXT), .required = true },
    { RP_FIELD("tenant", TEXT), .help = "null: an admin" },
    { RP_FIELD("admin", BOOL), .required = true },
    { RP_FIELD("scopes", TEXTS), .required = true },
    { RP_FIELD("expires_at", TIME), .help = "null: never" },
    { RP_FIELD("csrf", TEXT), .help = "for the header X-Reprieve-CSRF; null with a bearer token, which needs none" },
    { RP_FIELD("environment", TEXT) },
};
static const struct rp_shape session_shape = RP_SHAPE("session", session_fields, "who is calling");

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
    give_cookie(q, NULL);
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
    const char *home = rp_arena_fmt(&q->arena, "%s/", base_path(q));
    give_cookie(q, command_of(q)->secret);
    rp_reply_header(q, "Location", home != NULL ? home : "/");
    rp_reply_empty(q, 303);
}

/* A text that is no link, or not any more, changes nothing and takes no turn with the writer. */
static int check_link(struct rp_request *q, const char *link, struct rp_error *err)
{
    uint8_t hash[RP_DIGEST_BYTES];
    struct rp_token token;
    int r = rp_token_secret_like(RP_TOKEN_LINK, link) ? 0 : RP_ENOTFOUND;
    rp_token_hash(link, hash);
    if (r == 0) r = rp_token_find_by_hash(rp_request_catalog(q)->db, hash, &token, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    if (r == 0 && rp_token_valid(&token, q->began_ms)) return 0;
    rp_error_set(err, RP_EUNAUTHORIZED, "this sign-in link is not valid");
    return rp_access_failed(q, err);
}

static void sign_in(struct rp_request *q)
{
    const char *link = rp_json_get_text(q->query, "link", "");
    struct rp_error err = { 0 };
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_header(q, "Referrer-Policy", "no-referrer"); /* the link is in this page's address */
    if (rp_request_is_head(q)) {                          /* who only looks uses nothing up */
        rp_reply_empty(q, 200);
        return;
    }
    struct rp_token_command *c = rp_command_new(q, sizeof *c, &rp_verb_sign_in);
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
    { RP_FIELD("link", TEXT), .required = true, .least = 1, .most = 100, .help = "the one-time secret" },
};
static const struct rp_shape signin_shape = RP_SHAPE("sign_in", signin_fields, NULL);

static const struct rp_route routes[] = {
    { RP_ROUTE("POST", "/v1/tokens", RP_FOR_ADMINS, RP_MAY_ADMINISTER, create_token), .blocks = true,
      .body = &new_shape, .answer = &token_shape, .status = 201,
      .summary = "Makes a token, or a one-time link that signs a browser in.",
      .example = "-X POST -d '{\"name\":\"app\",\"tenant\":\"acme\",\"scopes\":[\"files.read\",\"files.write\"]}'" },
    { RP_ROUTE("GET", "/v1/tokens", RP_FOR_ADMINS, RP_MAY_ADMINISTER, list_tokens), .blocks = true,
      .query = &list_shape, .answer = &token_shape, .many = true,
      .summary = "Tokens, and the sessions and links that are still good; without secrets." },
    { RP_ROUTE("DELETE", "/v1/tokens/{id}", RP_FOR_ADMINS, RP_MAY_ADMINISTER, revoke_token), .answer = &token_shape,
      .errors = "not_found", .summary = "Revokes a token: the next request with it is refused.",
      .example = "-X DELETE" },
    { RP_ROUTE("GET", "/v1/session", RP_FOR_TENANTS, 0, get_session), .blocks = true, .answer = &session_shape,
      .summary = "Who is calling, and the value that a change by a browser's session must carry." },
    { RP_ROUTE("POST", "/v1/session/end", RP_FOR_TENANTS, 0, end_session), .status = 204,
      .summary = "Ends the browser's session.", .example = "-X POST" },
    { RP_ROUTE("GET", "/signin", RP_FOR_EVERYBODY, 0, sign_in), .blocks = true, .query = &signin_shape, .status = 303,
      .errors = "unauthorized rate_limited",
      .summary =
          "Signs a browser in with a one-time link, and leads to the plain page at /. A web console comes later." },
};
const struct rp_routes rp_routes_access = { routes, sizeof routes / sizeof routes[0] };
