/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3/wire/sign.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX    ((size_t)128 << 10) /* of a canonical request, and of a URL */
#define LIVES_S_MAX 604800
#define ADDED_MAX   6 /* headers or query parameters that signing adds */
#define STAMP_TEXT  17
#define ALGORITHM   "AWS4-HMAC-SHA256"

/* What one signature is made of. */
struct signing {
    const struct s3_target *target;
    const struct s3_keys *keys;
    const struct s3_message *message;
    struct rp_arena *arena;
    char stamp[STAMP_TEXT]; /* 20130524T000000Z */
    const char *scope;      /* 20130524/us-east-1/s3/aws4_request */
    const char *host, *path, *query;
    struct rp_pair *headers; /* signed, in order */
    size_t n_headers;
    const char *names; /* of the headers: host;range;x-amz-date */
    char payload[RP_DIGEST_HEX];
    char signature[RP_DIGEST_HEX];
};

static int no_memory(struct rp_error *err)
{
    return rp_error_set(err, RP_ENOMEM, "sign a request: out of memory");
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

void rp_s3_encode(struct rp_buf *out, const char *text, bool keep_slashes)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *c = (const unsigned char *)text; *c != 0;) {
        const unsigned char *start = c;
        while (is_unreserved(*c) || (keep_slashes && *c == '/'))
            c++;
        rp_buf_add(out, start, (size_t)(c - start));
        if (*c == 0) return;
        const char escaped[3] = { '%', digits[*c >> 4], digits[*c & 15] };
        rp_buf_add(out, escaped, sizeof escaped);
        c++;
    }
}

bool rp_s3_has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) return true;
    return false;
}

static int too_big(struct rp_error *err)
{
    return rp_error_set(err, RP_ETOOBIG, "sign a request: more than %zu bytes of key, query and headers", TEXT_MAX);
}

/* The buffer's text, in the arena. */
static int keep(struct signing *s, const struct rp_buf *b, const char **out, struct rp_error *err)
{
    if (b->failed == RP_ETOOBIG) return too_big(err);
    const char *text = b->failed < 0 ? NULL : rp_arena_copy(s->arena, rp_buf_text(b), b->len);
    if (text == NULL) return no_memory(err);
    *out = text;
    return 0;
}

static int encoded(struct signing *s, const char *text, const char **out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(TEXT_MAX);
    rp_s3_encode(&b, text, false);
    return keep(s, &b, out, err);
}

/* Names decide, then values: comparing "name=value" as one text would put "a-b=" before "a=". */
static int compare_pairs(const void *a, const void *b)
{
    const struct rp_pair *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    return names != 0 ? names : strcmp(x->value, y->value);
}

static int make_query(struct signing *s, const struct rp_pair *added, size_t n_added, struct rp_error *err)
{
    struct rp_pair pairs[S3_QUERY_MAX + ADDED_MAX];
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(TEXT_MAX);
    const struct s3_message *m = s->message;
    size_t n = m->n_query + n_added;
    RP_ASSERT(m->n_query <= S3_QUERY_MAX && n_added <= ADDED_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct rp_pair *raw = i < m->n_query ? &m->query[i] : &added[i - m->n_query];
        int r = encoded(s, raw->name, &pairs[i].name, err);
        if (r == 0) r = encoded(s, raw->value, &pairs[i].value, err);
        if (r < 0) return r;
    }
    qsort(pairs, n, sizeof pairs[0], compare_pairs);
    for (size_t i = 0; i < n; i++)
        rp_buf_fmt(&b, "%s%s=%s", i > 0 ? "&" : "", pairs[i].name, pairs[i].value);
    return keep(s, &b, &s->query, err);
}

static int make_path(struct signing *s, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(TEXT_MAX);
    const char *key = s->message->key;
    if (s->target->path_style) {
        rp_buf_char(&b, '/');
        rp_s3_encode(&b, s->target->bucket, false);
    }
    if (key != NULL || !s->target->path_style) rp_buf_char(&b, '/');
    if (key != NULL) rp_s3_encode(&b, key, true);
    int r = keep(s, &b, &s->path, err);
    if (r < 0) return r;
    s->host = s->target->path_style ? rp_arena_strdup(s->arena, s->target->host)
                                    : rp_arena_fmt(s->arena, "%s.%s", s->target->bucket, s->target->host);
    return s->host == NULL ? no_memory(err) : 0;
}

static bool is_ours(const char *name)
{
    static const char *const ours[] = { "host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token",
                                        "authorization" };
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strcmp(name, ours[i]) == 0) return true;
    return false;
}

/* A line break in a value would be a header of its own, and one that nobody signed. */
static int check_header(const struct rp_pair *header, struct rp_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
    RP_ASSERT(!is_ours(header->name));
    if (header->name[0] == 0 || header->name[strspn(header->name, letters)] != 0)
        return rp_error_set(err, RP_EINVAL, "\"%s\" cannot be the name of a header", header->name);
    for (const unsigned char *c = (const unsigned char *)header->value; *c != 0; c++)
        if ((*c < ' ' && *c != '\t') || *c == 0x7f)
            return rp_error_set(err, RP_EINVAL, "header %s: its value has a control character", header->name);
    return 0;
}

/* Without the blanks around it, which HTTP does not carry either. */
static const char *trimmed(struct rp_arena *arena, const char *value)
{
    value += strspn(value, " \t");
    size_t n = strlen(value);
    while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
        n--;
    return rp_arena_copy(arena, value, n);
}

/* The message's headers and the added ones, in order. */
static int make_headers(struct signing *s, const struct rp_pair *added, size_t n_added, struct rp_error *err)
{
    const struct s3_message *m = s->message;
    RP_CLEANUP(rp_buf_done) struct rp_buf names = RP_BUF(TEXT_MAX);
    RP_ASSERT(n_added <= ADDED_MAX);
    s->headers = rp_arena_array(s->arena, m->n_headers + ADDED_MAX, sizeof s->headers[0]);
    if (s->headers == NULL) return no_memory(err);
    for (size_t i = 0; i < m->n_headers; i++) {
        int r = check_header(&m->headers[i], err);
        if (r < 0) return r;
        struct rp_pair *to = &s->headers[s->n_headers++];
        to->name = rp_arena_strdup(s->arena, m->headers[i].name);
        to->value = trimmed(s->arena, m->headers[i].value);
        if (to->name == NULL || to->value == NULL) return no_memory(err);
    }
    for (size_t i = 0; i < n_added; i++)
        s->headers[s->n_headers++] = added[i];
    qsort(s->headers, s->n_headers, sizeof s->headers[0], compare_pairs);
    for (size_t i = 0; i < s->n_headers; i++) {
        if (i > 0 && strcmp(s->headers[i - 1].name, s->headers[i].name) == 0)
            return rp_error_set(err, RP_EINVAL, "header %s is there twice", s->headers[i].name);
        rp_buf_fmt(&names, "%s%s", i > 0 ? ";" : "", s->headers[i].name);
    }
    return keep(s, &names, &s->names, err);
}

/* Blanks in a row count as one, in the signature only. */
static void add_folded(struct rp_buf *out, const char *value)
{
    for (const char *c = value; *c != 0; c++)
        if (*c != ' ' || c[1] != ' ') rp_buf_char(out, *c);
}

static int hash(const void *bytes, size_t n, char out[RP_DIGEST_HEX], struct rp_error *err)
{
    return rp_digest_of(bytes, n, out) < 0 ? no_memory(err) : 0;
}

static int hash_request(const struct signing *s, const char *payload, char out[RP_DIGEST_HEX], struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(TEXT_MAX);
    rp_buf_fmt(&b, "%s\n%s\n%s\n", s->message->method, s->path, s->query);
    for (size_t i = 0; i < s->n_headers; i++) {
        rp_buf_fmt(&b, "%s:", s->headers[i].name);
        add_folded(&b, s->headers[i].value);
        rp_buf_char(&b, '\n');
    }
    rp_buf_fmt(&b, "\n%s\n%s", s->names, payload);
    if (b.failed == RP_ETOOBIG) return too_big(err);
    return b.failed < 0 ? no_memory(err) : hash(b.data, b.len, out, err);
}

static bool chain(uint8_t key[RP_DIGEST_BYTES], const char *text)
{
    uint8_t next[RP_DIGEST_BYTES];
    if (rp_hmac(key, RP_DIGEST_BYTES, text, strlen(text), next) < 0) return false;
    memcpy(key, next, sizeof next);
    explicit_bzero(next, sizeof next);
    return true;
}

static int sign_hash(struct signing *s, const char hashed[RP_DIGEST_HEX], struct rp_error *err)
{
    char secret[4 + sizeof s->keys->secret], day[9];
    uint8_t key[RP_DIGEST_BYTES];
    const char *text = rp_arena_fmt(s->arena, ALGORITHM "\n%s\n%s\n%s", s->stamp, s->scope, hashed);
    if (text == NULL) return no_memory(err);
    snprintf(day, sizeof day, "%.8s", s->stamp);
    snprintf(secret, sizeof secret, "AWS4%s", s->keys->secret);
    bool ok = rp_hmac(secret, strlen(secret), day, strlen(day), key) == 0 && chain(key, s->target->region) &&
              chain(key, "s3") && chain(key, "aws4_request") && chain(key, text);
    if (ok) rp_digest_hex(key, s->signature);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(key, sizeof key);
    return ok ? 0 : no_memory(err);
}

static int begin(struct signing *s, int64_t now_ms, struct rp_error *err)
{
    RP_ASSERT(now_ms >= 0 && now_ms <= RP_TIME_MAX_MS);
    struct rp_date date = rp_date_of_day(now_ms / RP_DAY_MS);
    int second = (int)(now_ms % RP_DAY_MS / RP_SECOND_MS);
    char stamp[48];
    snprintf(stamp, sizeof stamp, "%04d%02d%02dT%02d%02d%02dZ", date.year, date.month, date.day, second / 3600,
             second / 60 % 60, second % 60);
    memcpy(s->stamp, stamp, sizeof s->stamp);
    RP_ASSERT(s->stamp[STAMP_TEXT - 1] == '\0');
    s->scope = rp_arena_fmt(s->arena, "%.8s/%s/s3/aws4_request", s->stamp, s->target->region);
    return s->scope == NULL ? no_memory(err) : make_path(s, err);
}

static int finish(struct signing *s, struct s3_signed *out, struct rp_error *err)
{
    struct rp_pair *authorization = &s->headers[s->n_headers];
    authorization->name = "authorization";
    authorization->value = rp_arena_fmt(s->arena, ALGORITHM " Credential=%s/%s,SignedHeaders=%s,Signature=%s",
                                        s->keys->access, s->scope, s->names, s->signature);
    const char *url = rp_arena_fmt(s->arena, "%s://%s%s%s%s", s->target->scheme, s->host, s->path,
                                   s->query[0] != 0 ? "?" : "", s->query);
    if (authorization->value == NULL || url == NULL) return no_memory(err);
    *out = (struct s3_signed){ .url = url, .headers = s->headers, .n_headers = s->n_headers + 1 };
    return 0;
}

int rp_s3_sign(const struct s3_target *target, const struct s3_keys *keys, const struct s3_message *message,
               int64_t now_ms, struct rp_arena *arena, struct s3_signed *out, struct rp_error *err)
{
    struct signing s = { .target = target, .keys = keys, .message = message, .arena = arena };
    struct rp_pair added[ADDED_MAX];
    char hashed[RP_DIGEST_HEX];
    size_t n = 0;
    int r = begin(&s, now_ms, err);
    if (r == 0) r = hash(message->body, message->body == NULL ? 0 : message->body_bytes, s.payload, err);
    if (r < 0) return r;
    added[n++] = (struct rp_pair){ "host", s.host };
    added[n++] = (struct rp_pair){ "x-amz-content-sha256", rp_arena_strdup(arena, s.payload) };
    added[n++] = (struct rp_pair){ "x-amz-date", rp_arena_strdup(arena, s.stamp) };
    if (keys->token[0] != 0)
        added[n++] = (struct rp_pair){ "x-amz-security-token", rp_arena_strdup(arena, keys->token) };
    for (size_t i = 0; i < n; i++)
        if (added[i].value == NULL) return no_memory(err);
    r = make_query(&s, NULL, 0, err);
    if (r == 0) r = make_headers(&s, added, n, err);
    if (r == 0) r = hash_request(&s, s.payload, hashed, err);
    if (r == 0) r = sign_hash(&s, hashed, err);
    return r < 0 ? r : finish(&s, out, err);
}

/* The parameters that stand for the headers of rp_s3_sign. */
static int add_parameters(struct signing *s, int64_t lives_s, struct rp_error *err)
{
    struct rp_pair added[ADDED_MAX];
    size_t n = 0;
    added[n++] = (struct rp_pair){ "X-Amz-Algorithm", ALGORITHM };
    added[n++] = (struct rp_pair){ "X-Amz-Credential", rp_arena_fmt(s->arena, "%s/%s", s->keys->access, s->scope) };
    added[n++] = (struct rp_pair){ "X-Amz-Date", s->stamp };
    added[n++] = (struct rp_pair){ "X-Amz-Expires", rp_arena_fmt(s->arena, "%" PRId64, lives_s) };
    added[n++] = (struct rp_pair){ "X-Amz-SignedHeaders", s->names };
    if (s->keys->token[0] != 0) added[n++] = (struct rp_pair){ "X-Amz-Security-Token", s->keys->token };
    for (size_t i = 0; i < n; i++)
        if (added[i].value == NULL) return no_memory(err);
    return make_query(s, added, n, err);
}

int rp_s3_presign(const struct s3_target *target, const struct s3_keys *keys, const struct s3_message *message,
                  int64_t now_ms, int64_t lives_s, struct rp_arena *arena, const char **url, struct rp_error *err)
{
    struct signing s = { .target = target, .keys = keys, .message = message, .arena = arena };
    char hashed[RP_DIGEST_HEX];
    if (lives_s < 1 || lives_s > LIVES_S_MAX) {
        rp_error_set(err, RP_EINVAL, "a signed URL cannot live for %" PRId64 " seconds", lives_s);
        rp_error_hint(err, "ask for 1 to %d seconds (7 days)", LIVES_S_MAX);
        return RP_EINVAL;
    }
    int r = begin(&s, now_ms, err);
    if (r < 0) return r;
    const struct rp_pair host = { "host", s.host };
    r = make_headers(&s, &host, 1, err);
    if (r == 0) r = add_parameters(&s, lives_s, err);
    if (r == 0) r = hash_request(&s, "UNSIGNED-PAYLOAD", hashed, err);
    if (r == 0) r = sign_hash(&s, hashed, err);
    if (r < 0) return r;
    const char *made =
        rp_arena_fmt(arena, "%s://%s%s?%s&X-Amz-Signature=%s", target->scheme, s.host, s.path, s.query, s.signature);
    if (made == NULL) return no_memory(err);
    *url = made;
    return 0;
}
