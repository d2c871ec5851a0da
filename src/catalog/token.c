/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/token.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/evp.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "catalog/statements/statements.h"

#define SECRET_BYTES 32
#define PREFIX       4

const char *const rp_token_scope_names[RP_TOKEN_SCOPES] = {
    "files.read", "files.write", "marks.read", "marks.write", "runs.read",
    "runs.write", "live",        "metrics",    "audit",       "admin",
};

static const struct {
    const char *name, *prefix;
} kinds[] = {
    [RP_TOKEN_BEARER] = { "bearer", "rpt_" },
    [RP_TOKEN_LINK] = { "link", "rpl_" },
    [RP_TOKEN_SESSION] = { "session", "rps_" },
};

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const char *rp_token_kind_name(enum rp_token_kind kind)
{
    RP_ASSERT(kind >= RP_TOKEN_BEARER && kind <= RP_TOKEN_SESSION);
    return kinds[kind].name;
}

/* ---- scopes ---- */

static bool scope_bit(const char *word, size_t n, unsigned *bits)
{
    for (unsigned i = 0; i < RP_TOKEN_SCOPES; i++) {
        if (strlen(rp_token_scope_names[i]) != n || memcmp(rp_token_scope_names[i], word, n) != 0) continue;
        *bits |= 1U << i;
        return true;
    }
    return false;
}

int rp_token_scopes_parse(const char *list, unsigned *out, struct rp_error *err)
{
    unsigned bits = 0;
    bool all = strcmp(list, "all") == 0;
    if (all) bits = RP_TOKEN_SCOPES_ALL;
    for (const char *p = list; !all; p++) {
        size_t n = strcspn(p, ",");
        if (!scope_bit(p, n, &bits)) {
            rp_error_set(err, RP_EINVAL, "'%.*s' is not a scope", (int)(n < 40 ? n : 40), p);
            rp_error_hint(err,
                          "all, or some of files.read, files.write, marks.read, marks.write, runs.read, runs.write, "
                          "live, metrics, audit, admin");
            return RP_EINVAL;
        }
        p += n;
        if (*p == '\0') break;
    }
    *out = bits;
    return 0;
}

json_t *rp_token_scopes_json(unsigned scopes)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < RP_TOKEN_SCOPES; i++)
        if (scopes & 1U << i) rp_json_append(list, json_string(rp_token_scope_names[i]));
    return list;
}

/* ---- secrets ---- */

int rp_token_secret(enum rp_token_kind kind, char out[RP_TOKEN_SECRET], struct rp_error *err)
{
    uint8_t bytes[SECRET_BYTES + 1] = { 0 }; /* one more: 43 digits have 258 bits */
    _Static_assert(PREFIX + 43 + 1 == RP_TOKEN_SECRET, "a secret's text fits");
    if (getrandom(bytes, SECRET_BYTES, 0) != SECRET_BYTES) return rp_error_errno(err, errno, "make a secret");
    memcpy(out, kinds[kind].prefix, PREFIX);
    for (unsigned i = 0; i < 43; i++) {
        unsigned at = i * 6 / 8, shift = 10 - i * 6 % 8;
        unsigned pair = (unsigned)bytes[at] << 8 | bytes[at + 1];
        out[PREFIX + i] = digits[pair >> shift & 63];
    }
    out[RP_TOKEN_SECRET - 1] = '\0';
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

bool rp_token_secret_like(enum rp_token_kind kind, const char *text)
{
    if (strnlen(text, RP_TOKEN_SECRET) != RP_TOKEN_SECRET - 1) return false;
    return memcmp(text, kinds[kind].prefix, PREFIX) == 0 &&
           strspn(text + PREFIX, digits) == RP_TOKEN_SECRET - 1 - PREFIX;
}

/* Fetched once: it is asked for at every request, and OpenSSL 3 looks it up again at every use of
 * EVP_sha256(). */
static pthread_once_t fetched = PTHREAD_ONCE_INIT;
static EVP_MD *sha256;

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    RP_ASSERT(sha256 != NULL);
}

void rp_token_hash(const char *secret, uint8_t out[RP_DIGEST_BYTES])
{
    unsigned n = 0;
    pthread_once(&fetched, fetch_sha256);
    int ok = EVP_Digest(secret, strlen(secret), out, &n, sha256, NULL);
    RP_ASSERT(ok == 1 && n == RP_DIGEST_BYTES); /* a hash that was not made must never look like one */
}

/* ---- changes ---- */

static int check_name(const char *name, struct rp_error *err)
{
    size_t n = strnlen(name, RP_TOKEN_NAME_MAX + 1);
    bool fits = n > 0 && n <= RP_TOKEN_NAME_MAX && rp_utf8_valid(name, n);
    for (size_t i = 0; i < n; i++)
        fits = fits && (unsigned char)name[i] >= ' ' && name[i] != 0x7f;
    if (fits) return 0;
    return rp_error_set(err, RP_EINVAL, "a token's name has 1 to %d bytes, and no control characters",
                        RP_TOKEN_NAME_MAX);
}

static int audit(struct rp_tx *tx, const char *event, const struct rp_token *token, const char *actor, int64_t link_id,
                 struct rp_error *err)
{
    char id[RP_ID_TEXT];
    json_t *details = json_object();
    rp_json_set(details, "token", json_string(rp_id_format(RP_ID_TOKEN, token->id, id)));
    rp_json_set(details, "kind", json_string(rp_token_kind_name(token->kind)));
    rp_json_set(details, "name", rp_json_text(token->name));
    rp_json_set(details, "scopes", rp_token_scopes_json(token->scopes));
    if (token->expires_at_ms != 0) rp_json_set(details, "expires_at", rp_json_time(token->expires_at_ms));
    if (link_id != 0) rp_json_set(details, "link", json_string(rp_id_format(RP_ID_TOKEN, link_id, id)));
    struct rp_audit_entry entry = { .event = event, .actor = actor, .tenant_id = token->tenant_id, .details = details };
    return rp_tx_audit(tx, &entry, err);
}

static int add(struct rp_tx *tx, struct rp_token *token, const char *secret, const char *actor, int64_t link_id,
               struct rp_error *err)
{
    uint8_t hash[RP_DIGEST_BYTES];
    rp_token_hash(secret, hash);
    token->id = rp_tx_new_id(tx);
    token->created_at_ms = tx->late_ms;
    token->revoked_at_ms = 0;
    (void)snprintf(token->created_by, sizeof token->created_by, "%s", actor);
    struct rp_value args[] = {
        rp_int(token->id),
        rp_int(token->kind),
        rp_bytes(hash, sizeof hash),
        rp_text(token->name),
        rp_int(token->tenant_id),
        rp_int(token->scopes),
        rp_int(token->created_at_ms),
        rp_text(token->created_by),
        rp_int_or_null(token->expires_at_ms != 0, token->expires_at_ms),
    };
    int r = rp_db_exec(tx->db, RP_SQL(token_add), args, NULL, err);
    if (r == 0) r = audit(tx, "token.created", token, actor, link_id, err);
    return r < 0 ? rp_error_wrap(err, r, "create a token") : 0;
}

int rp_token_create(struct rp_tx *tx, struct rp_token *token, const char *secret, const char *actor,
                    struct rp_error *err)
{
    RP_ASSERT(rp_token_secret_like(token->kind, secret));
    int r = check_name(token->name, err);
    if (r == 0 && (token->scopes == 0 || (token->scopes & ~RP_TOKEN_SCOPES_ALL) != 0))
        r = rp_error_set(err, RP_EINVAL, "a token needs at least one scope");
    if (r == 0 && token->expires_at_ms != 0 && token->expires_at_ms <= tx->late_ms)
        r = rp_error_set(err, RP_EINVAL, "a token cannot expire in the past");
    return r < 0 ? r : add(tx, token, secret, actor, 0, err);
}

int rp_token_revoke(struct rp_tx *tx, int64_t id, const char *actor, struct rp_token *out, struct rp_error *err)
{
    struct rp_value args[] = { rp_int(id), rp_int(tx->late_ms), rp_text(actor) };
    struct rp_one one = { 0 };
    struct rp_token token = { 0 };
    int r = rp_db_query(tx->db, RP_SQL(token_revoke), args, rp_one_row, &one, err);
    if (r == 0) r = rp_token_get(tx->db, id, &token, err);
    if (r == 0 && one.found) r = audit(tx, "token.revoked", &token, actor, 0, err);
    if (r < 0) return rp_error_wrap(err, r, "revoke a token");
    if (out != NULL) *out = token;
    return 0;
}

struct used {
    struct rp_token *session;
    int64_t link_id; /* 0: none */
};

static int used_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct used *used = ctx;
    (void)err;
    used->link_id = v[0].i;
    (void)snprintf(used->session->name, sizeof used->session->name, "%s", v[1].p);
    used->session->tenant_id = v[2].i;
    used->session->scopes = (unsigned)v[3].i;
    return 0;
}

int rp_token_use_link(struct rp_tx *tx, const char *link, const char *secret, struct rp_token *session,
                      struct rp_error *err)
{
    RP_ASSERT(rp_token_secret_like(RP_TOKEN_SESSION, secret));
    struct used used = { .session = session };
    uint8_t hash[RP_DIGEST_BYTES];
    *session = (struct rp_token){ .kind = RP_TOKEN_SESSION, .expires_at_ms = tx->late_ms + RP_TOKEN_SESSION_MS };
    if (rp_token_secret_like(RP_TOKEN_LINK, link)) {
        rp_token_hash(link, hash);
        struct rp_value args[] = { rp_bytes(hash, sizeof hash), rp_int(tx->late_ms) };
        int r = rp_db_query(tx->db, RP_SQL(token_use_link), args, used_row, &used, err);
        if (r < 0) return rp_error_wrap(err, r, "use a sign-in link");
    }
    if (used.link_id != 0) return add(tx, session, secret, "sign-in", used.link_id, err);
    rp_error_set(err, RP_EUNAUTHORIZED, "this sign-in link is not valid, or was used already");
    rp_error_hint(err, "links work once and for 15 minutes; POST /v1/tokens with kind link makes a new one");
    return RP_EUNAUTHORIZED;
}

/* ---- reading ---- */

struct each {
    rp_token_fn *fn;
    void *ctx;
};

static int each_row(void *ctx, const struct rp_value *v, struct rp_error *err)
{
    struct each *each = ctx;
    struct rp_token token = { .id = v[0].i,
                              .kind = (enum rp_token_kind)v[1].i,
                              .tenant_id = v[3].i,
                              .scopes = (unsigned)v[5].i,
                              .created_at_ms = v[6].i,
                              .expires_at_ms = v[8].i,
                              .revoked_at_ms = v[9].i };
    (void)snprintf(token.name, sizeof token.name, "%s", v[2].p);
    (void)snprintf(token.tenant, sizeof token.tenant, "%s", v[4].type == RP_NULL_T ? "" : v[4].p);
    (void)snprintf(token.created_by, sizeof token.created_by, "%s", v[7].p);
    (void)snprintf(token.revoked_by, sizeof token.revoked_by, "%s", v[10].type == RP_NULL_T ? "" : v[10].p);
    if (token.kind < RP_TOKEN_BEARER || token.kind > RP_TOKEN_SESSION)
        return rp_error_set(err, RP_ECORRUPT, "token %" PRId64 " is of kind %d", token.id, (int)token.kind);
    return each->fn(each->ctx, &token, err);
}

static int keep_one(void *ctx, const struct rp_token *token, struct rp_error *err)
{
    (void)err;
    *(struct rp_token *)ctx = *token;
    return 0;
}

int rp_token_find_by_hash(struct rp_db *db, const uint8_t hash[RP_DIGEST_BYTES], struct rp_token *out,
                          struct rp_error *err)
{
    struct rp_value arg = rp_bytes(hash, RP_DIGEST_BYTES);
    struct rp_token found = { 0 };
    struct each each = { .fn = keep_one, .ctx = &found };
    int r = rp_db_query(db, RP_SQL(token_by_hash), &arg, each_row, &each, err);
    if (r < 0) return rp_error_wrap(err, r, "look for a token");
    if (found.id == 0) return rp_error_set(err, RP_ENOTFOUND, "no such token");
    *out = found;
    return 0;
}

int rp_token_get(struct rp_db *db, int64_t id, struct rp_token *out, struct rp_error *err)
{
    struct rp_value arg = rp_int(id);
    struct rp_token found = { 0 };
    struct each each = { .fn = keep_one, .ctx = &found };
    char text[RP_ID_TEXT];
    int r = rp_db_query(db, RP_SQL(token_get), &arg, each_row, &each, err);
    if (r < 0) return rp_error_wrap(err, r, "look for a token");
    if (found.id == 0) return rp_error_set(err, RP_ENOTFOUND, "no token %s", rp_id_format(RP_ID_TOKEN, id, text));
    *out = found;
    return 0;
}

bool rp_token_valid(const struct rp_token *token, int64_t now_ms)
{
    return token->revoked_at_ms == 0 && (token->expires_at_ms == 0 || now_ms < token->expires_at_ms);
}

int rp_token_list(struct rp_db *db, int64_t after_id, int64_t limit, int64_t now_ms, rp_token_fn *fn, void *ctx,
                  struct rp_error *err)
{
    struct rp_value args[] = { rp_int(after_id), rp_int(now_ms), rp_int(limit) };
    struct each each = { .fn = fn, .ctx = ctx };
    int r = rp_db_query(db, RP_SQL(token_list), args, each_row, &each, err);
    return r < 0 ? rp_error_wrap(err, r, "list tokens") : 0;
}

int rp_token_any(struct rp_db *db, bool *any, struct rp_error *err)
{
    struct rp_one one = { 0 };
    int r = rp_db_query(db, RP_SQL(token_any), NULL, rp_one_row, &one, err);
    if (r < 0) return rp_error_wrap(err, r, "look for tokens");
    *any = one.found;
    return 0;
}

json_t *rp_token_json(const struct rp_token *token)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_TOKEN, token->id, id)));
    rp_json_set(o, "kind", json_string(rp_token_kind_name(token->kind)));
    rp_json_set(o, "name", rp_json_text(token->name));
    rp_json_set(o, "tenant", token->tenant_id == 0 ? json_null() : rp_json_text(token->tenant));
    rp_json_set(o, "admin", json_boolean(token->tenant_id == 0));
    rp_json_set(o, "scopes", rp_token_scopes_json(token->scopes));
    rp_json_set(o, "created_at", rp_json_time(token->created_at_ms));
    rp_json_set(o, "created_by", rp_json_text(token->created_by));
    rp_json_set(o, "expires_at", token->expires_at_ms == 0 ? json_null() : rp_json_time(token->expires_at_ms));
    rp_json_set(o, "revoked_at", token->revoked_at_ms == 0 ? json_null() : rp_json_time(token->revoked_at_ms));
    return o;
}
