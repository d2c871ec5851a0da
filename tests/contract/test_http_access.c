/* SPDX-License-Identifier: Apache-2.0 */
/* Who may call what: tokens, scopes, tenants, sessions of the console, idempotency keys; over every
 * row of the route table. Needs PostgreSQL: run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "contract/http_trials.h"
#include "http/route/shape.h"
#include "http/server/auth.h"
#include "lib/http.h"

static struct served s;

static int set_up(void **state)
{
    trial_begin(&s, (uintptr_t)*state == 1 ? DBS_POSTGRES : DBS_SQLITE_FILE, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    served_drop(&s);
    return 0;
}

/* ---- every row of the table, as everybody ---- */

/* A path that fits the row; no such thing is there. */
static void path_of(const struct rp_route *route, char *out, size_t size)
{
    size_t n = 0;
    for (const char *p = route->path; *p != '\0' && n + 8 < size;) {
        if (*p != '{') {
            out[n++] = *p++;
            continue;
        }
        n += (size_t)snprintf(out + n, size - n, "nothing");
        p += strcspn(p, "}") + 1;
    }
    out[n] = '\0';
}

static struct answer try_as(const struct rp_route *route, const char *token)
{
    char path[200];
    path_of(route, path, sizeof path);
    return http_call(&s, &(struct call){ .method = route->method,
                                         .path = path,
                                         .token = token,
                                         .body = route->body != NULL ? "{\"no such\":1}" : NULL });
}

static void expect_as(const char *who, const struct rp_route *route, const char *token, long status, const char *code)
{
    struct answer a = try_as(route, token);
    if (a.status != status || strcmp(rp_json_get_text(a.json, "code", ""), code) != 0) {
        print_error("%s: %s %s: expected %ld %s, found %ld: %.300s\n", who, route->method, route->path, status, code,
                    a.status, a.body);
        fail();
    }
    char header[256];
    if (status == 401) assert_non_null(answer_header(&a, "WWW-Authenticate", header));
    answer_done(&a);
}

/* Whoever may, is not refused for who they are; what they ask for may well be wrong. */
static void expect_let_in(const char *who, const struct rp_route *route, const char *token)
{
    struct answer a = try_as(route, token);
    if (a.status == 401 || a.status == 403 || a.status == 0 || a.status >= 500) {
        print_error("%s: %s %s: found %ld: %.300s\n", who, route->method, route->path, a.status, a.body);
        fail();
    }
    answer_done(&a);
}

static int revoke_it(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    return rp_token_revoke(tx, *(int64_t *)ctx, "tester", NULL, err);
}

static void revoke_behind_the_server(int64_t id)
{
    struct rp_error err = { 0 };
    ok(rp_catalog_transact(s.w.catalog, revoke_it, &id, &err));
    rp_server_forget_token(s.server, id); /* as whoever follows the audit log does */
}

/* Its answer never ends, or is a failure on purpose. */
static bool is_special(const struct rp_route *route)
{
    return strcmp(route->path, "/v1/live") == 0 || strcmp(route->path, "/trial/broken") == 0;
}

static void test_every_route_as_everybody(void **state)
{
    char all[RP_TOKEN_SECRET], revoked[RP_TOKEN_SECRET], expired[RP_TOKEN_SECRET], wrong[RP_TOKEN_SECRET];
    struct rp_error err = { 0 };
    (void)state;
    served_token(&s, "acme", RP_MAY_ALL, 0, all);
    int64_t gone = served_token(&s, NULL, RP_MAY_ALL, 0, revoked);
    expect(&s, (&(struct call){ .method = "GET", .path = "/v1/session", .token = revoked }), 200, NULL);
    revoke_behind_the_server(gone);
    int64_t old = served_token(&s, NULL, RP_MAY_ALL, RP_HOUR_MS, expired);
    world_script(&s.w, "UPDATE token SET expires_at = 1 WHERE id = %lld;", (long long)old);
    ok(rp_token_secret(RP_TOKEN_BEARER, wrong, &err));
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *route = rp_route_at(i);
        char lacking[RP_TOKEN_SECRET];
        if (route->audience == RP_FOR_EVERYBODY) continue;
        expect_as("nobody", route, NULL, 401, "unauthorized");
        expect_as("a guesser", route, "rpt_guess", 401, "unauthorized");
        rp_server_forget_token(s.server, 0);
        if (i % 8 == 0) { /* failures are counted, so that guessing is slow */
            expect_as("a stranger", route, wrong, 401, "unauthorized");
            expect_as("a revoked token", route, revoked, 401, "unauthorized");
            expect_as("an expired token", route, expired, 401, "unauthorized");
        }
        served_token(&s, NULL, RP_MAY_ALL & ~route->scope, 0, lacking);
        if (route->scope != 0) expect_as("a token without the scope", route, lacking, 403, "forbidden");
        if (route->audience == RP_FOR_ADMINS) expect_as("a tenant", route, all, 403, "forbidden");
        if (is_special(route)) continue;
        if (route->audience == RP_FOR_TENANTS) expect_let_in("a tenant", route, all);
        expect_let_in("an admin", route, s.admin);
    }
}

static void test_unknown_expired_and_revoked_look_alike(void **state)
{
    char secrets[3][RP_TOKEN_SECRET], *bodies[3];
    struct rp_error err = { 0 };
    (void)state;
    ok(rp_token_secret(RP_TOKEN_BEARER, secrets[0], &err));
    revoke_behind_the_server(served_token(&s, NULL, RP_MAY_ALL, 0, secrets[1]));
    int64_t old = served_token(&s, NULL, RP_MAY_ALL, RP_HOUR_MS, secrets[2]);
    world_script(&s.w, "UPDATE token SET expires_at = 1 WHERE id = %lld;", (long long)old);
    for (int i = 0; i < 3; i++) {
        struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/v1/session", .token = secrets[i] });
        assert_int_equal(a.status, 401);
        bodies[i] = strdup(a.body);
        answer_done(&a);
    }
    assert_string_equal(bodies[0], bodies[1]);
    assert_string_equal(bodies[0], bodies[2]);
    for (int i = 0; i < 3; i++)
        free(bodies[i]);
}

static void test_guessing_is_slow(void **state)
{
    struct rp_error err = { 0 };
    int refused = 0;
    (void)state;
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = s.admin }), 200, NULL);
    for (int i = 0; i < 4 * RP_FAILURES_PER_SECOND; i++) {
        char secret[RP_TOKEN_SECRET];
        ok(rp_token_secret(RP_TOKEN_BEARER, secret, &err));
        struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/trial/echo/a", .token = secret });
        assert_true(a.status == 401 || a.status == 429);
        refused += a.status == 429;
        answer_done(&a);
    }
    assert_true(refused > 0);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = s.admin }), 200,
           NULL); /* known ones go on */
    char unseen[RP_TOKEN_SECRET];
    served_token(&s, "acme", RP_MAY_ALL, 0, unseen); /* and others are not locked out by a guesser */
    struct call call = { .method = "GET", .path = "/trial/echo/a", .token = unseen, .from = "127.0.0.2" };
    expect(&s, &call, 200, NULL);
}

/* Half a minute later one request asks the catalog again, and the others go on with what is
 * known. */
static void test_a_token_is_asked_about_again(void **state)
{
    enum { SECOND_US = 1000000 };
    const struct rp_token token = { .id = 7, .name = "seven", .scopes = RP_MAY_ALL };
    const uint8_t hash[RP_DIGEST_BYTES] = { 1 };
    struct rp_principal who = { 0 };
    struct rp_error err = { 0 };
    struct rp_tokens *tokens = NULL;
    (void)state;
    ok(rp_tokens_new(0, &tokens, &err));
    assert_int_equal(rp_tokens_find(tokens, hash, 0, 1, &who), RP_TOKEN_UNKNOWN);
    rp_tokens_put(tokens, rp_tokens_ticket(tokens), hash, 0, &token);
    assert_int_equal(rp_tokens_find(tokens, hash, 29 * SECOND_US, 1, &who), RP_TOKEN_FOUND);
    assert_int_equal(rp_tokens_find(tokens, hash, 31 * SECOND_US, 1, &who), RP_TOKEN_STALE);
    assert_int_equal(who.token_id, 7);
    assert_int_equal(rp_tokens_find(tokens, hash, 32 * SECOND_US, 1, &who), RP_TOKEN_FOUND);
    assert_int_equal(rp_tokens_find(tokens, hash, 37 * SECOND_US, 1, &who), RP_TOKEN_STALE);
    assert_int_equal(rp_tokens_find(tokens, hash, (int64_t)301 * SECOND_US, 1, &who), RP_TOKEN_UNKNOWN);
    rp_tokens_free(tokens);
}

/* Revoked while a request was asking the catalog about it: what that request learned is out of
 * date. */
static void test_a_token_that_is_forgotten_while_it_is_looked_up_stays_unknown(void **state)
{
    const struct rp_token token = { .id = 7, .name = "seven", .scopes = RP_MAY_ALL };
    const uint8_t hash[RP_DIGEST_BYTES] = { 1 };
    struct rp_principal who = { 0 };
    struct rp_error err = { 0 };
    struct rp_tokens *tokens = NULL;
    (void)state;
    ok(rp_tokens_new(0, &tokens, &err));
    uint64_t ticket = rp_tokens_ticket(tokens);
    rp_tokens_forget(tokens, token.id);
    rp_tokens_put(tokens, ticket, hash, 0, &token);
    assert_int_equal(rp_tokens_find(tokens, hash, 1, 1, &who), RP_TOKEN_UNKNOWN);
    rp_tokens_put(tokens, rp_tokens_ticket(tokens), hash, 0, &token);
    assert_int_equal(rp_tokens_find(tokens, hash, 1, 1, &who), RP_TOKEN_FOUND);
    rp_tokens_free(tokens);
}

static void test_requests_a_second_are_limited_for_each_token(void **state)
{
    char other[RP_TOKEN_SECRET], header[256];
    int limited = 0;
    struct rp_config changed = s.config;
    (void)state;
    changed.http_requests_per_second = 5;
    rp_server_configure(s.server, &changed, &s.w.store); /* as SIGHUP does */
    served_token(&s, NULL, RP_MAY_ALL, 0, other);
    for (int i = 0; i < 30; i++) {
        struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = "/trial/echo/a", .token = s.admin });
        assert_true(a.status == 200 || a.status == 429);
        if (a.status == 429) {
            limited++;
            assert_string_equal(rp_json_get_text(a.json, "code", ""), "rate_limited");
            assert_string_equal(answer_header(&a, "Retry-After", header), "1");
        }
        answer_done(&a);
    }
    assert_true(limited > 0);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = other }), 200, NULL);
}

/* ---- tokens ---- */

static json_t *made(const struct call *call, long status)
{
    struct answer a = http_call(&s, call);
    if (a.status != status) print_error("%s %s: %ld %s\n", call->method, call->path, a.status, a.body);
    assert_int_equal(a.status, status);
    json_t *json = json_incref(a.json);
    answer_done(&a);
    return json;
}

static void test_the_life_of_a_token(void **state)
{
    char path[80];
    struct rp_error err = { 0 };
    (void)state;
    json_t *token = made(&(struct call){ .method = "POST",
                                         .path = "/v1/tokens",
                                         .token = s.admin,
                                         .body = "{\"name\":\"app\",\"tenant\":\"acme\",\"scopes\":[\"files.read\"],"
                                                 "\"expires_in\":\"30d\"}" },
                         201);
    const char *secret = rp_json_get_text(token, "secret", "");
    assert_int_equal(strlen(secret), RP_TOKEN_SECRET - 1);
    assert_string_equal(rp_json_get_text(token, "tenant", ""), "acme");
    json_t *session = made(&(struct call){ .method = "GET", .path = "/v1/session", .token = secret }, 200);
    assert_string_equal(rp_json_get_text(session, "tenant", ""), "acme");
    json_decref(session);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = secret }), 200, NULL);
    expect(&s, (&(struct call){ .method = "POST", .path = "/trial/count", .token = secret, .body = "{}" }), 403,
           "forbidden");
    expect(&s, (&(struct call){ .method = "GET", .path = "/v1/tokens", .token = secret }), 403, "forbidden");
    (void)snprintf(path, sizeof path, "/v1/tokens/%s", rp_json_get_text(token, "id", ""));
    for (int i = 0; i < 2; i++) /* again: the same */
        expect(&s, (&(struct call){ .method = "DELETE", .path = path, .token = s.admin }), 200, NULL);
    expect(&s, (&(struct call){ .method = "GET", .path = "/trial/echo/a", .token = secret }), 401, "unauthorized");
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM audit WHERE event = 'token.revoked'"), 1);
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM audit WHERE event = 'token.created'"), 2);
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM audit WHERE details LIKE '%rpt_%'"), 0);
    json_t *list = made(&(struct call){ .method = "GET", .path = "/v1/tokens?limit=1", .token = s.admin }, 200);
    assert_null(
        strstr(json_string_value(json_object_get(json_array_get(json_object_get(list, "items"), 0), "name")), "rpt_"));
    const char *cursor = rp_json_get_text(list, "next_cursor", NULL);
    assert_non_null(cursor);
    (void)snprintf(path, sizeof path, "/v1/tokens?limit=10&cursor=%s", cursor);
    json_t *rest = made(&(struct call){ .method = "GET", .path = path, .token = s.admin }, 200);
    assert_int_equal(json_array_size(json_object_get(rest, "items")), 1);
    assert_true(json_is_null(json_object_get(rest, "next_cursor")));
    for (size_t i = 0; i < rp_route_count(); i++) {
        const struct rp_route *route = rp_route_at(i);
        if (strcmp(route->path, "/v1/tokens") != 0) continue;
        ok(rp_shape_check_answer(route, strcmp(route->method, "GET") == 0 ? rest : token, &err));
    }
    json_decref(rest);
    json_decref(list);
    json_decref(token);
}

static void test_tokens_that_are_refused(void **state)
{
    static const char *const bodies[] = {
        "{\"name\":\"a\",\"scopes\":[\"files.read\"]}",
        "{\"name\":\"a\",\"scopes\":[\"files.read\"],\"tenant\":\"t\",\"admin\":true}",
        "{\"name\":\"a\",\"scopes\":[],\"tenant\":\"t\"}",
        "{\"name\":\"a\",\"scopes\":[\"everything\"],\"tenant\":\"t\"}",
        "{\"name\":\"\",\"scopes\":[\"files.read\"],\"tenant\":\"t\"}",
        "{\"name\":\"a\\nb\",\"scopes\":[\"files.read\"],\"tenant\":\"t\"}",
        "{\"name\":\"a\",\"scopes\":[\"files.read\"],\"tenant\":\"no such name!\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        expect(&s, (&(struct call){ .method = "POST", .path = "/v1/tokens", .token = s.admin, .body = bodies[i] }), 400,
               "invalid");
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM token"), 1);
    expect(&s, (&(struct call){ .method = "DELETE", .path = "/v1/tokens/tok_0000000000001", .token = s.admin }), 404,
           "not_found");
    expect(&s, (&(struct call){ .method = "DELETE", .path = "/v1/tokens/fil_0000000000001", .token = s.admin }), 404,
           "not_found");
}

static void test_a_replayed_token_has_no_secret(void **state)
{
    const struct call call = { .method = "POST",
                               .path = "/v1/tokens",
                               .token = s.admin,
                               .key = "once",
                               .body = "{\"name\":\"app\",\"admin\":true,\"scopes\":[\"metrics\"]}" };
    (void)state;
    json_t *first = made(&call, 201), *again = made(&call, 201);
    assert_string_equal(rp_json_get_text(first, "id", "a"), rp_json_get_text(again, "id", "b"));
    assert_non_null(rp_json_get_text(first, "secret", NULL));
    assert_true(json_is_null(json_object_get(again, "secret")));
    assert_non_null(rp_json_get_text(again, "hint", NULL));
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM idempotency WHERE answer LIKE '%rpt_%'"), 0);
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM token"), 2);
    json_decref(first);
    json_decref(again);
}

/* ---- tenants ---- */

static void test_a_tenant_stays_in_its_own(void **state)
{
    char acme[RP_TOKEN_SECRET];
    (void)state;
    served_token(&s, "acme", RP_MAY_ALL, 0, acme);
    served_token(&s, "other", RP_MAY_ALL, 0, acme + 0); /* its name exists */
    served_token(&s, "acme", RP_MAY_ALL, 0, acme);
    struct call c = { .method = "POST", .path = "/trial/count", .token = acme, .body = "{}" };
    expect(&s, &c, 201, NULL);
    c.body = "{\"tenant\":\"acme\"}";
    expect(&s, &c, 201, NULL);
    c.body = "{\"tenant\":\"other\"}";
    struct answer known = http_call(&s, &c);
    c.body = "{\"tenant\":\"nobody\"}";
    struct answer unknown = http_call(&s, &c);
    assert_int_equal(known.status, 403);
    assert_string_equal(known.body, unknown.body);
    answer_done(&known);
    answer_done(&unknown);
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM tenant WHERE name = 'nobody'"), 0);
    c.token = s.admin; /* who may name any, and make it */
    expect(&s, &c, 201, NULL);
    expect(&s, &c, 201, NULL);
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM tenant WHERE name = 'nobody'"), 1);
    c.body = "{\"tenant\":\"a b\"}";
    expect(&s, &c, 400, "invalid");
}

/* ---- the console's sign-in ---- */

static void cookie_of(const struct answer *a, char out[300])
{
    char header[256];
    assert_non_null(answer_header(a, "Set-Cookie", header));
    (void)snprintf(out, 300, "Cookie: %.*s", (int)strcspn(header, ";"), header);
    assert_non_null(strstr(header, "HttpOnly"));
    assert_non_null(strstr(header, "SameSite=Strict"));
    assert_null(strstr(header, "Secure"));
}

static void test_signing_in_and_out(void **state)
{
    char link[RP_TOKEN_SECRET], path[120], cookie[300], with_csrf[500], location[256];
    (void)state;
    served_secret(&s, RP_TOKEN_LINK, NULL, RP_MAY_ALL, RP_TOKEN_LINK_MS, link);
    (void)snprintf(path, sizeof path, "/signin?link=%s", link);
    struct answer a = http_call(&s, &(struct call){ .method = "GET", .path = path });
    assert_int_equal(a.status, 303);
    assert_string_equal(answer_header(&a, "Location", location), "/");
    cookie_of(&a, cookie);
    answer_done(&a);
    expect(&s, (&(struct call){ .method = "GET", .path = path }), 401, "unauthorized"); /* once */
    json_t *session = made(&(struct call){ .method = "GET", .path = "/v1/session", .header = cookie }, 200);
    (void)snprintf(with_csrf, sizeof with_csrf, "%s\r\nX-Reprieve-CSRF: %s", cookie,
                   rp_json_get_text(session, "csrf", ""));
    json_decref(session);
    struct call change = { .method = "POST", .path = "/trial/count", .header = cookie, .body = "{}" };
    expect(&s, &change, 403, "forbidden");
    change.header = with_csrf;
    expect(&s, &change, 201, NULL);
    with_csrf[strlen(with_csrf) - 1] ^= 1;
    expect(&s, &change, 403, "forbidden");
    with_csrf[strlen(with_csrf) - 1] ^= 1;
    expect(&s,
           (&(struct call){
               .method = "GET", .path = "/v1/session", .token = cookie + strlen("Cookie: reprieve_session=") }),
           401, "unauthorized"); /* a session's secret is no bearer token */
    expect(&s, (&(struct call){ .method = "POST", .path = "/v1/session/end", .header = with_csrf }), 204, NULL);
    expect(&s, (&(struct call){ .method = "GET", .path = "/v1/session", .header = cookie }), 401, "unauthorized");
}

static void test_links_that_do_not_open(void **state)
{
    char link[RP_TOKEN_SECRET], path[120];
    (void)state;
    int64_t id = served_secret(&s, RP_TOKEN_LINK, NULL, RP_MAY_ALL, RP_TOKEN_LINK_MS, link);
    (void)snprintf(path, sizeof path, "/signin?link=%s", s.admin); /* a token is no link */
    expect(&s, (&(struct call){ .method = "GET", .path = path }), 401, "unauthorized");
    expect(&s, (&(struct call){ .method = "GET", .path = "/signin?link=x" }), 401, "unauthorized");
    expect(&s, (&(struct call){ .method = "GET", .path = "/signin" }), 400, "invalid");
    expect(&s, (&(struct call){ .method = "GET", .path = "/v1/session", .token = link }), 401, "unauthorized");
    world_script(&s.w, "UPDATE token SET expires_at = 1 WHERE id = %lld;", (long long)id);
    (void)snprintf(path, sizeof path, "/signin?link=%s", link);
    expect(&s, (&(struct call){ .method = "GET", .path = path }), 401, "unauthorized");
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM token WHERE kind = 3"), 0);
}

/* ---- idempotency ---- */

static void expect_count(const struct call *call, long status, int64_t count, bool replayed)
{
    char header[256];
    struct answer a = http_call(&s, call);
    if (a.status != status) print_error("%ld %s\n", a.status, a.body);
    assert_int_equal(a.status, status);
    if (count != 0) assert_int_equal(rp_json_get_int(a.json, "count", 0), count);
    assert_true((answer_header(&a, "Idempotent-Replayed", header) != NULL) == replayed);
    answer_done(&a);
}

static void test_a_key_gives_the_same_answer(void **state)
{
    struct call c = { .method = "POST", .path = "/trial/count", .token = s.admin, .key = "k1", .body = "{}" };
    char other[RP_TOKEN_SECRET];
    (void)state;
    expect_count(&c, 201, 1, false);
    expect_count(&c, 201, 1, true);
    c.body = "{\"freshen\":false}";
    expect(&s, &c, 422, "key_reused");
    c.body = "{}";
    c.path = "/trial/slow"; /* the same key for another call */
    struct answer a = http_call(&s, &c);
    assert_true(a.status == 422 ||
                a.status == 200); /* an admin's keys are those of the tenant that the call is about */
    answer_done(&a);
    c.path = "/trial/count";
    c.key = "k2";
    c.body = "{\"refuse\":true}"; /* a refusal is an answer too */
    expect_count(&c, 409, 0, false);
    expect_count(&c, 409, 0, true);
    c.key = "k3";
    c.body = "{\"freshen\":true}";
    expect_count(&c, 201, 0, false);
    a = http_call(&s, &c);
    assert_true(json_is_true(json_object_get(a.json, "fresh")));
    answer_done(&a);
    served_token(&s, "acme", RP_MAY_ALL, 0, other); /* another tenant's key is another key */
    c = (struct call){ .method = "POST", .path = "/trial/count", .token = other, .key = "k1", .body = "{}" };
    expect_count(&c, 201, 0, false);
}

/* What is repeated is the answer as it was after the last step, and no step is taken again. */
static void test_a_key_of_a_command_with_steps_outside(void **state)
{
    struct call c = { .method = "POST", .path = "/trial/slow", .token = s.admin, .key = "s1", .body = "{}" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        expect_count(&c, 200, 1, i > 0);
        struct answer a = http_call(&s, &c);
        assert_true(json_is_true(json_object_get(a.json, "finished")));
        answer_done(&a);
        assert_int_equal(trial_prepared, 1);
    }
    c.body = "{\"refuse\":false}";
    expect(&s, &c, 422, "key_reused");
    assert_int_equal(world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'"), 1);
}

static void test_keys_that_are_refused(void **state)
{
    char key[300];
    (void)state;
    memset(key, 'k', sizeof key);
    key[256] = '\0';
    struct call c = { .method = "POST", .path = "/trial/count", .token = s.admin, .key = key, .body = "{}" };
    expect(&s, &c, 400, "invalid");
    key[255] = '\0';
    expect(&s, &c, 201, NULL);
    c.key = "\xc3\xa4";
    expect(&s, &c, 400, "invalid");
}

static void test_a_key_is_kept_over_a_restart(void **state)
{
    struct call c = { .method = "POST", .path = "/trial/count", .token = s.admin, .key = "k1", .body = "{}" };
    struct rp_error err = { 0 };
    (void)state;
    expect_count(&c, 201, 1, false);
    struct rp_server_options o = *rp_server_options_of(s.server);
    rp_server_stop(s.server, 1000);
    ok(rp_server_start(&o, &s.server, &err));
    (void)snprintf(s.address, sizeof s.address, "%s", rp_server_address(s.server));
    expect_count(&c, 201, 1, true);
}

/* What was promised stays, also when it would not be promised any more. */
static void test_a_key_is_looked_up_before_anything_is_refused(void **state)
{
    struct call c = {
        .method = "POST", .path = "/v1/files", .token = s.admin, .key = "f1", .body = "{\"name\":\"a\",\"size\":1}"
    };
    (void)state;
    expect_count(&c, 201, 0, false);
    s.config.uploads_store = "nowhere";
    expect_count(&c, 201, 0, true);
    c.key = "f2";
    expect(&s, &c, 409, "observe_only");
}

/* The change and its answer are one transaction: without the one there is not the other. */
static void test_what_cannot_be_kept_is_not_done(void **state)
{
    struct call c = { .method = "POST", .path = "/trial/slow", .token = s.admin, .key = "s1", .body = "{}" };
    bool sqlite = s.w.dbs.kind != DBS_POSTGRES;
    (void)state;
    world_script(&s.w, "%s",
                 sqlite ? "CREATE TRIGGER full BEFORE INSERT ON idempotency BEGIN SELECT RAISE(FAIL, 'full'); END"
                        : "ALTER TABLE idempotency ADD CONSTRAINT full_up CHECK (status > 999)");
    struct answer a = http_call(&s, &c);
    assert_true(a.status >= 400);
    answer_done(&a);
    assert_int_equal(world_number(&s.w, "SELECT count(*) FROM audit WHERE event = 'trial.counted'"), 0);
    world_script(&s.w, "%s", sqlite ? "DROP TRIGGER full" : "ALTER TABLE idempotency DROP CONSTRAINT full_up");
    expect_count(&c, 200, 1, false);
    expect_count(&c, 200, 1, true);
}

static void *send_key(void *arg)
{
    struct answer a = http_call(&s, arg);
    intptr_t status = a.status;
    answer_done(&a);
    return (void *)status;
}

static void test_one_key_at_the_same_time_counts_once(void **state)
{
    enum { MANY = 24 };
    static const char *const paths[] = { "/trial/count", "/trial/slow" };
    pthread_t threads[MANY];
    (void)state;
    for (int64_t p = 0; p < 2; p++) {
        struct call c = { .method = "POST", .path = paths[p], .token = s.admin, .key = paths[p], .body = "{}" };
        for (int i = 0; i < MANY; i++)
            pthread_create(&threads[i], NULL, send_key, &c);
        for (int i = 0; i < MANY; i++) {
            void *status;
            pthread_join(threads[i], &status);
            assert_int_equal((intptr_t)status, p == 0 ? 201 : 200);
        }
        assert_int_equal(world_number(&s.w, "SELECT number FROM meta WHERE name = 'trial'"), p + 1);
    }
}

#define on(name, which)                                                                                                \
    {                                                                                                                  \
#name, name, set_up, tear_down, (void *)(uintptr_t)(which)                                                     \
    }
#define both(name) on(name, 0), on(name, 1)

int main(void)
{
    const struct CMUnitTest tests[] = {
        both(test_every_route_as_everybody),
        both(test_unknown_expired_and_revoked_look_alike),
        on(test_guessing_is_slow, 0),
        on(test_a_token_is_asked_about_again, 0),
        on(test_a_token_that_is_forgotten_while_it_is_looked_up_stays_unknown, 0),
        on(test_requests_a_second_are_limited_for_each_token, 0),
        both(test_the_life_of_a_token),
        both(test_tokens_that_are_refused),
        both(test_a_replayed_token_has_no_secret),
        both(test_a_tenant_stays_in_its_own),
        both(test_signing_in_and_out),
        both(test_links_that_do_not_open),
        both(test_a_key_gives_the_same_answer),
        both(test_a_key_of_a_command_with_steps_outside),
        on(test_keys_that_are_refused, 0),
        both(test_a_key_is_kept_over_a_restart),
        on(test_a_key_is_looked_up_before_anything_is_refused, 0),
        both(test_what_cannot_be_kept_is_not_done),
        both(test_one_key_at_the_same_time_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
