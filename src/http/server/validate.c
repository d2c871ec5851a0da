/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server/validate.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "catalog/writer/idempotency.h"
#include "http/route/percent.h"
#include "http/route/shape.h"
#include "http/server/inner.h"

/* ---- headers ---- */

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof json - 1;
    if (type == NULL || strncasecmp(type, json, n) != 0) return false;
    return type[n] == '\0' || type[n] == ';' || type[n] == ' ';
}

static int read_length(struct rp_request *q, struct rp_error *err)
{
    const char *length = rp_request_header(q, "Content-Length"), *encoding = rp_request_header(q, "Transfer-Encoding");
    char *end;
    q->inner->chunked = encoding != NULL;
    if (length == NULL) return 0;
    errno = 0;
    q->inner->length = strtoll(length, &end, 10);
    if (errno == 0 && isdigit((unsigned char)length[0]) && *end == '\0') return 0;
    return rp_error_set(err, RP_EINVAL, "Content-Length: expected a number of bytes");
}

static size_t body_max(const struct rp_route *route)
{
    return route->body_max != 0 ? route->body_max : RP_BODY_MAX;
}

/* What the headers promise is counted now, so that a body that has begun can be read to its end. */
static int hold_memory(struct rp_request *q, struct rp_error *err)
{
    struct rp_request_inner *in = q->inner;
    int64_t bytes = in->chunked ? (int64_t)in->body.max : in->length;
    in->holder = q->who.token_id != 0 ? q->who.tenant_id : -1;
    if (!rp_shares_take(&q->server->bodies, RP_BODIES_MAX, in->holder, bytes)) {
        rp_error_set(err, RP_EBUSY, "too many bytes of requests are in memory");
        return rp_error_hint(err, "try again in a moment, or send less in one request");
    }
    in->held_bytes = bytes;
    return 0;
}

/* ---- query ---- */

struct gathering {
    struct rp_request *q;
    struct rp_error *err;
    int code;
};

static int gather(struct gathering *g, const char *raw_name, const char *raw_value)
{
    char *name = rp_arena_strdup(&g->q->arena, raw_name);
    char *value = rp_arena_strdup(&g->q->arena, raw_value == NULL ? "" : raw_value);
    if (name == NULL || value == NULL) return rp_error_set(g->err, RP_ENOMEM, "out of memory");
    if (!rp_percent_decode(name) || !rp_percent_decode(value))
        return rp_error_set(g->err, RP_EINVAL, "the query is not percent-encoded UTF-8");
    if (json_object_get(g->q->query, name) != NULL)
        return rp_error_set(g->err, RP_EINVAL, "%.*s: given twice", rp_utf8_cut(name, 64), name);
    int r = rp_json_set(g->q->query, name, json_string(value));
    return r < 0 ? rp_error_set(g->err, r, "out of memory") : 0;
}

static enum MHD_Result gather_one(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct gathering *g = ctx;
    (void)kind;
    g->code = gather(g, name, value);
    return g->code == 0 ? MHD_YES : MHD_NO;
}

/* For the digest: what was sent, not what it means at this moment ("2d" ago). */
static int keep_raw(struct rp_request *q, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF((size_t)1 << 20);
    if (json_object_size(q->query) == 0 || strcmp(q->route->method, "POST") != 0) return 0;
    int r = rp_json_write(&text, q->query);
    if (r == 0) q->inner->raw_query = rp_arena_copy(&q->arena, text.data, text.len);
    return q->inner->raw_query != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "out of memory");
}

static int take_query(struct rp_request *q, struct rp_error *err)
{
    static const struct rp_shape nothing = { .name = "nothing" };
    struct gathering g = { .q = q, .err = err };
    json_decref(q->query);
    q->query = json_object();
    if (q->query == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    MHD_get_connection_values(q->connection, MHD_GET_ARGUMENT_KIND, gather_one, &g);
    if (g.code < 0) return g.code;
    int r = keep_raw(q, err);
    if (r < 0) return r;
    return rp_shape_take_query(q->route->query != NULL ? q->route->query : &nothing, q->query, q->began_ms, err);
}

/* ---- before the body ---- */

/* A URL that stands for a token is looked at before bytes are held for it. */
static int judge_url(struct rp_request *q, struct rp_error *err)
{
    if (q->route->judge == NULL) return 0;
    int r = take_query(q, err);
    return r < 0 ? r : q->route->judge(q, err);
}

int rp_validate_headers(struct rp_request *q, struct rp_error *err)
{
    struct rp_request_inner *in = q->inner;
    int r = read_length(q, err);
    if (r < 0 || q->route->streams) return r;
    in->body = RP_BUF(body_max(q->route));
    if (in->length > (int64_t)in->body.max) {
        rp_error_set(err, RP_ETOOBIG, "the body has %lld bytes, at most %zu are taken here", (long long)in->length,
                     in->body.max);
        return rp_error_hint(err, "send less in one request, in several if need be; bytes of a file go to upload.url");
    }
    if (in->length <= 0 && !in->chunked) return 0;
    if (q->route->body == NULL) return rp_error_set(err, RP_EINVAL, "this call takes no body");
    if (!is_json(rp_request_header(q, "Content-Type"))) {
        rp_error_set(err, RP_EMEDIA, "the body must be JSON");
        return rp_error_hint(err, "send Content-Type: application/json");
    }
    r = judge_url(q, err);
    return r < 0 ? r : hold_memory(q, err);
}

/* ---- body ---- */

static int take_body(struct rp_request *q, struct rp_error *err)
{
    const struct rp_buf *raw = &q->inner->body;
    if (q->route->streams) return 0;
    if (q->route->body == NULL) return raw->len == 0 ? 0 : rp_error_set(err, RP_EINVAL, "this call takes no body");
    json_decref(q->body);
    q->body = NULL;
    if (raw->len == 0) {
        for (size_t i = 0; i < q->route->body->n_fields; i++)
            if (q->route->body->fields[i].required)
                return rp_error_set(err, RP_EINVAL, "the body: expected an object, found nothing");
        return 0;
    }
    int r = rp_json_parse(raw->data, raw->len, &q->body, err);
    return r < 0 ? r : rp_shape_take(q->route->body, q->body, q->began_ms, err);
}

/* ---- Idempotency-Key ---- */

static int digest(struct rp_request *q, struct rp_error *err)
{
    RP_CLEANUP(rp_digest_freep) struct rp_digest *d = rp_digest_new();
    if (d == NULL) return rp_error_set(err, RP_ENOMEM, "out of memory");
    const char *query = q->inner->raw_query;
    rp_digest_begin(d);
    rp_digest_add(d, q->route->method, strlen(q->route->method) + 1);
    rp_digest_add(d, q->inner->path, strlen(q->inner->path) + 1);
    if (query != NULL) rp_digest_add(d, query, strlen(query) + 1);
    rp_digest_add(d, q->inner->body.data, q->inner->body.len);
    rp_digest_end(d, q->digest);
    return 0;
}

static int take_key(struct rp_request *q, struct rp_error *err)
{
    if (strcmp(q->route->method, "POST") != 0 || q->route->audience == RP_FOR_EVERYBODY) return 0;
    const char *key = rp_request_header(q, "Idempotency-Key");
    if (key == NULL) return 0;
    size_t n = strlen(key);
    bool fits = n >= 1 && n <= RP_IDEMPOTENCY_KEY_MAX;
    for (size_t i = 0; i < n; i++)
        fits = fits && key[i] >= ' ' && key[i] < 0x7f;
    if (!fits)
        return rp_error_set(err, RP_EINVAL, "Idempotency-Key: expected 1 to %d printable ASCII characters",
                            RP_IDEMPOTENCY_KEY_MAX);
    q->key = key;
    return digest(q, err);
}

int rp_validate(struct rp_request *q, struct rp_error *err)
{
    int r = take_query(q, err);
    if (r == 0) r = take_body(q, err);
    if (r == 0) r = take_key(q, err);
    return r;
}
