/* SPDX-License-Identifier: Apache-2.0 */
#include "http/content/target.h"

#include "base/assert.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/guarantee.h"
#include "http/content/headers.h"
#include "http/server/server.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

bool rp_target_is_direct(const struct rp_store *store)
{
    return store != NULL && store->backend != NULL && rp_backend_has_presign(store->backend);
}

static int by_the_daemon(struct rp_request *q, const struct rp_grant *grant, struct rp_presigned *out,
                         struct rp_error *err)
{
    const char *base = rp_url_base(rp_request_config(q), rp_server_address(q->server), &q->arena);
    const char *length = rp_arena_fmt(&q->arena, "%" PRId64, grant->size_bytes);
    if (base == NULL || length == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a signed URL");
    *out = (struct rp_presigned){ .headers = { { "Content-Length", length } }, .n_headers = 1 };
    if (grant->content_type[0] != 0)
        out->headers[out->n_headers++] = (struct rp_pair){ "Content-Type", grant->content_type };
    return rp_signed_url(grant, base, rp_server_options_of(q->server)->url_key, &q->arena, &out->url, err);
}

/* Names as people write them, the same for every store: Content-Type, but x-amz-... */
static int show_names(struct rp_arena *arena, struct rp_presigned *p, struct rp_error *err)
{
    for (size_t i = 0; i < p->n_headers; i++) {
        char *name = rp_arena_strdup(arena, p->headers[i].name);
        if (name == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a signed URL");
        p->headers[i].name = name;
        if (strncasecmp(name, "x-", 2) == 0) continue;
        for (bool begins = true; *name != 0; begins = *name++ == '-')
            if (begins && *name >= 'a' && *name <= 'z') *name = (char)(*name - 'a' + 'A');
    }
    return 0;
}

int rp_target_upload(struct rp_request *q, const struct rp_grant *grant, const struct rp_store *store,
                     struct rp_presigned *out, struct rp_error *err)
{
    RP_ASSERT(strcmp(grant->method, "PUT") == 0);
    const struct rp_presign what = { .method = "PUT",
                                     .key = grant->key,
                                     .now_ms = rp_request_now_ms(q),
                                     .ends_at_ms = grant->expires_at_ms,
                                     .size_bytes = grant->size_bytes,
                                     .content_type = grant->content_type,
                                     .checksum = grant->checksum };
    if (!rp_target_is_direct(store)) return by_the_daemon(q, grant, out, err);
    int r = rp_backend_presign(store->backend, &what, &q->arena, out, err);
    if (r == 0) r = show_names(&q->arena, out, err);
    return r < 0 ? rp_error_wrap(err, r, "sign an upload to store '%s'", store->config->name) : 0;
}

int rp_target_may_upload(struct rp_request *q, const struct rp_init *init, struct rp_error *err)
{
    struct rp_presigned unused;
    struct rp_grant grant = { .method = "PUT",
                              .key = "any",
                              .size_bytes = init->size_bytes,
                              .content_type = init->content_type,
                              .checksum = init->checksum,
                              .expires_at_ms = rp_request_now_ms(q) + init->rules->expire_ms };
    if (!rp_target_is_direct(init->store)) return 0;
    if (!rp_guarantee_is_known(init->store)) {
        rp_error_set(err, RP_EBUSY, "store '%s' has not been probed yet", init->store->config->name);
        return rp_error_hint(err, "try again in a moment");
    }
    return rp_target_upload(q, &grant, init->store, &unused, err);
}

json_t *rp_target_json(const struct rp_presigned *target, int64_t ends_at_ms)
{
    char time[RP_TIME_TEXT];
    json_t *headers = json_object();
    for (size_t i = 0; i < target->n_headers; i++)
        rp_json_set(headers, target->headers[i].name, json_string(target->headers[i].value));
    return json_pack("{s:s,s:s,s:o,s:s}", "method", "PUT", "url", target->url, "headers", headers, "expires_at",
                     rp_time_format(ends_at_ms, time));
}

int rp_target_content(struct rp_request *q, const char *method, const struct rp_file *file,
                      const struct rp_store *store, const char **url, struct rp_error *err)
{
    int64_t now_ms = rp_request_now_ms(q);
    const char *name = rp_disposition(file->name, &q->arena);
    struct rp_presigned signed_url = { 0 };
    RP_ASSERT(rp_target_is_direct(store));
    const struct rp_presign what = { .method = method,
                                     .key = file->key,
                                     .now_ms = now_ms,
                                     .ends_at_ms = now_ms + RP_CONTENT_URL_MS,
                                     .content_type = rp_content_type_safe(file->content_type),
                                     .disposition = name != NULL ? name : "attachment" };
    int r = rp_backend_presign(store->backend, &what, &q->arena, &signed_url, err);
    if (r < 0) return rp_error_wrap(err, r, "sign a download from store '%s'", store->config->name);
    *url = signed_url.url;
    return 0;
}
