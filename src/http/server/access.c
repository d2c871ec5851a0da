/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/access.h"

#include <string.h>
#include <strings.h>

#include "base/time.h"
#include "http/server/auth.h"
#include "http/server/inner.h"
#include "http/server/session.h"

static const char *bearer(const struct rp_request *q)
{
    const char *header = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Authorization");
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0) return NULL;
    header += 7;
    return header + strspn(header, " ");
}

const char *rp_access_session(const struct rp_request *q)
{
    return MHD_lookup_connection_value(q->connection, MHD_COOKIE_KIND, RP_SESSION_COOKIE);
}

static int refuse(struct rp_error *err)
{
    rp_error_set(err, RP_EUNAUTHORIZED, "a valid token is needed");
    return rp_error_hint(err, "send Authorization: Bearer with a token; `reprieve token create` makes one");
}

static int too_many(struct rp_error *err, const char *of)
{
    return rp_error_set(err, RP_ERATE, "too many %s a second", of);
}

static const struct sockaddr *peer(const struct rp_request *q)
{
    return MHD_get_connection_info(q->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

int rp_access_failed(const struct rp_request *q, struct rp_error *err)
{
    return rp_tokens_failed(q->server->tokens, peer(q)) ? err->code : too_many(err, "failed attempts");
}

/* Whom the catalog knows under this hash. */
static int ask(struct rp_request *q, struct rp_db *db, const uint8_t hash[RP_DIGEST_BYTES], struct rp_error *err)
{
    struct rp_tokens *tokens = q->server->tokens;
    struct rp_token token;
    uint64_t ticket = rp_tokens_ticket(tokens);
    int r = rp_token_find_by_hash(db, hash, &token, err);
    if (r < 0 && r != RP_ENOTFOUND) return r;
    if (r < 0 || !rp_token_valid(&token, q->began_ms)) {
        rp_tokens_drop(tokens, hash);
        (void)refuse(err);
        return rp_access_failed(q, err);
    }
    rp_tokens_put(tokens, ticket, hash, rp_monotonic_us(), &token);
    rp_principal_of(&token, &q->who);
    return 0;
}

/* A token that was good a moment ago stays so while the catalog cannot be asked (auth.h, A2). */
static int ask_again(struct rp_request *q, struct rp_db *db, const uint8_t hash[RP_DIGEST_BYTES], struct rp_error *err)
{
    int r = ask(q, db, hash, err);
    return r < 0 && r != RP_EUNAUTHORIZED && r != RP_ERATE ? 0 : r;
}

static int to_the_catalog(struct rp_error *err)
{
    return rp_error_set(err, RP_EUNKNOWN, "the catalog knows");
}

static int identify(struct rp_request *q, struct rp_db *db, struct rp_error *err)
{
    uint8_t hash[RP_DIGEST_BYTES];
    const char *secret = bearer(q);
    bool by_cookie = secret == NULL;
    if (by_cookie) secret = rp_access_session(q);
    if (secret == NULL || !rp_token_secret_like(by_cookie ? RP_TOKEN_SESSION : RP_TOKEN_BEARER, secret))
        return refuse(err);
    rp_token_hash(secret, hash);
    struct rp_request_inner *in = q->inner;
    if (!in->asks_again) {
        enum rp_token_found found = rp_tokens_find(q->server->tokens, hash, rp_monotonic_us(), q->began_ms, &q->who);
        if (found == RP_TOKEN_LIMITED) return too_many(err, "requests");
        in->asks_again = found == RP_TOKEN_STALE;
        q->who.by_cookie = by_cookie;
        if (found == RP_TOKEN_FOUND) return 0;
    }
    if (db == NULL) return to_the_catalog(err);
    int r = in->asks_again ? ask_again(q, db, hash, err) : ask(q, db, hash, err);
    q->who.by_cookie = by_cookie;
    return r;
}

static bool is_change(const struct rp_request *q)
{
    return strcmp(q->route->method, "GET") != 0;
}

static int allow(const struct rp_request *q, struct rp_error *err)
{
    const struct rp_route *route = q->route;
    if (route->audience == RP_FOR_ADMINS && q->who.tenant_id != 0) {
        rp_error_set(err, RP_EFORBIDDEN, "this needs an admin token");
        return rp_error_hint(err, "`reprieve token create NAME` makes one");
    }
    if ((route->scope & ~q->who.scopes) != 0) {
        const char *scope = rp_scope_name((enum rp_scope_bit)route->scope);
        rp_error_set(err, RP_EFORBIDDEN, "this needs a token with the scope %s", scope);
        return rp_error_hint(err, "`reprieve token create NAME --scopes %s` makes one", scope);
    }
    if (!q->who.by_cookie || !is_change(q)) return 0;
    const char *shown = MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, RP_CSRF_HEADER);
    if (rp_session_csrf_fits(rp_access_session(q), shown)) return 0;
    rp_error_set(err, RP_EFORBIDDEN, "a change from the console needs the header " RP_CSRF_HEADER);
    return rp_error_hint(err, "GET /v1/session gives its value");
}

int rp_access_check(struct rp_request *q, struct rp_db *db, struct rp_error *err)
{
    if (q->route->audience == RP_FOR_EVERYBODY) return 0;
    int r = identify(q, db, err);
    return r < 0 ? r : allow(q, err);
}
