/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of files: uploads by signed URL (upload.c), downloads by token or by signed URL. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "core/file/file.h"
#include "http/api/shapes.h"
#include "http/content/content.h"
#include "http/content/headers.h"
#include "http/content/target.h"
#include "http/server/server.h"
#include "http/server/stream.h"
#include "metrics/metrics.h"

/* ---- downloads ---- */

/* How many this process gives out at the moment. */
static struct rp_shares downloads_open = RP_SHARES;

/* Outlives the request: bytes go out after its handler returned. */
struct download {
    struct rp_backend *backend;
    struct rp_object_reader *reader;
    int64_t tenant_id, first, length;
};

static ssize_t give_bytes(void *ctx, uint64_t pos, char *to, size_t max)
{
    const struct download *d = ctx;
    if (pos >= (uint64_t)d->length) return -1;
    uint64_t left = (uint64_t)d->length - pos;
    int64_t n = rp_backend_get_read(d->reader, d->first + (int64_t)pos, to, left < max ? (size_t)left : max, NULL);
    /* The client was told a length: an end before it can only be shown by breaking off. */
    return n > 0 ? (ssize_t)n : -2;
}

static void end_download(void *ctx)
{
    struct download *d = ctx;
    rp_backend_get_close(d->reader);
    rp_shares_give(&downloads_open, d->tenant_id, 1);
    free(d);
}

/* `signed_for`: by a signed URL, which the processor alone is given before a file lives. */
static int is_given_out(const struct rp_file *file, bool signed_for, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    rp_id_format(RP_ID_FILE, file->id, id);
    switch (file->status) {
    case RP_FILE_LIVE:
        return 0;
    case RP_FILE_PENDING:
        return rp_error_set(err, RP_ENOTLIVE, "file '%s' is not confirmed yet", id);
    case RP_FILE_SCANNING:
        if (signed_for) return 0;
        return rp_error_set(err, RP_ENOTLIVE, "file '%s' waits for its processor's result", id);
    case RP_FILE_PURGED:
    case RP_FILE_EXPIRED:
        return rp_error_set(err, RP_EGONE, "file '%s' is %s", id, rp_status_name(file->status));
    default:
        return rp_error_set(err, RP_ENOTFOUND, "no file '%s'", id);
    }
}

/* The object is missing: purged since its file was read, or lost. */
static int say_missing(struct rp_request *q, const struct rp_file *file, struct rp_error *err)
{
    bool signed_for = file->status == RP_FILE_SCANNING;
    struct rp_file now;
    int r = rp_file_get(rp_request_catalog(q)->db, file->id, &q->arena, &now, err);
    if (r < 0 || (r = is_given_out(&now, signed_for, err)) < 0) return r;
    return rp_error_set(err, RP_ECORRUPT, "the file is live, but its store has no object '%s'", file->key);
}

static int open_download(struct rp_request *q, const struct rp_file *file, const struct rp_store *store,
                         struct rp_identity *identity, struct download **out, struct rp_error *err)
{
    int r = rp_content_open(store, err);
    if (r < 0) return r;
    RP_CLEANUP(rp_freep) struct download *d = calloc(1, sizeof *d);
    if (!d) return rp_error_set(err, RP_ENOMEM, "no memory for a download");
    d->backend = store->backend;
    d->tenant_id = file->tenant_id;
    if ((r = rp_content_enter(q, &downloads_open, file->tenant_id, err)) < 0) return r;
    r = rp_backend_get_open(d->backend, file->key, NULL, NULL, identity, &d->reader, err);
    if (r < 0) {
        rp_shares_give(&downloads_open, file->tenant_id, 1);
        return r == RP_ENOTFOUND ? say_missing(q, file, err) : r;
    }
    *out = d;
    d = NULL;
    return 0;
}

static void say_what(struct rp_request *q, const struct rp_file *file)
{
    const char *name = rp_disposition(file->name, &q->arena);
    rp_reply_header(q, "Accept-Ranges", "bytes");
    rp_reply_header(q, "Content-Disposition", name ? name : "attachment");
    rp_reply_header(q, "X-Content-Type-Options", "nosniff");
    rp_reply_header(q, "Content-Security-Policy", "default-src 'none'; sandbox");
}

static void say_which(struct rp_request *q, const char *etag)
{
    const char *quoted = rp_arena_fmt(&q->arena, "\"%s\"", etag);
    if (quoted && etag[0]) rp_reply_header(q, "ETag", quoted);
    rp_reply_header(q, "Cache-Control", "private, no-cache");
}

static void reply_impossible(struct rp_request *q, int64_t size_bytes)
{
    struct rp_error err = { 0 };
    const char *range = rp_arena_fmt(&q->arena, "bytes */%" PRId64, size_bytes);
    if (range) rp_reply_header(q, "Content-Range", range);
    rp_error_set(&err, RP_ERANGE, "the file has %" PRId64 " bytes", size_bytes);
    rp_reply_error(q, &err);
}

static void reply_part(struct rp_request *q, const char *type, int64_t size_bytes, const struct rp_stream_reply *how)
{
    const struct download *d = how->ctx;
    const char *range = rp_arena_fmt(&q->arena, "bytes %" PRId64 "-%" PRId64 "/%" PRId64, d->first,
                                     d->first + d->length - 1, size_bytes);
    if (range) rp_reply_header(q, "Content-Range", range);
    rp_reply_stream(q, 206, type, how);
}

static void reply_bytes(struct rp_request *q, const struct rp_file *file, const struct rp_identity *identity,
                        bool is_part, struct download *d)
{
    const struct rp_stream_reply how = { .size = d->length, .read = give_bytes, .free = end_download, .ctx = d };
    const char *type = rp_content_type_safe(file->content_type);
    say_what(q, file);
    say_which(q, identity->etag);
    if (is_part)
        reply_part(q, type, identity->size_bytes, &how);
    else
        rp_reply_stream(q, 200, type, &how);
}

/* Takes the download over. */
static void reply_object(struct rp_request *q, const struct rp_file *file, const struct rp_identity *identity,
                         struct download *d)
{
    const char *range = rp_request_header(q, "Range"), *if_range = rp_request_header(q, "If-Range");
    if (if_range && !rp_etag_same(if_range, identity->etag)) range = NULL;
    enum rp_range_kind kind = rp_range_parse(range, identity->size_bytes, &d->first, &d->length);
    if (rp_etag_listed(rp_request_header(q, "If-None-Match"), identity->etag)) {
        end_download(d);
        say_which(q, identity->etag);
        rp_reply_empty(q, 304);
    } else if (kind == RP_RANGE_IMPOSSIBLE) {
        end_download(d);
        reply_impossible(q, identity->size_bytes);
    } else {
        reply_bytes(q, file, identity, kind == RP_RANGE_PART, d);
    }
}

/* The URL is signed for the method that will be sent to it. */
static int send_to_store(struct rp_request *q, const struct rp_file *file, const struct rp_store *store,
                         struct rp_error *err)
{
    const char *url = NULL;
    int r = rp_target_content(q, rp_request_is_head(q) ? "HEAD" : "GET", file, store, &url, err);
    if (r < 0) return r;
    rp_reply_header(q, "Location", url);
    rp_reply_header(q, "Cache-Control", "no-store");
    rp_reply_empty(q, 302);
    return 0;
}

static int stream_out(struct rp_request *q, const struct rp_file *file, const struct rp_store *store,
                      struct rp_error *err)
{
    struct rp_identity identity;
    struct download *d = NULL;
    int r = open_download(q, file, store, &identity, &d, err);
    if (r == 0) reply_object(q, file, &identity, d);
    return r;
}

static void give_out(struct rp_request *q, const struct rp_file *file, bool signed_for)
{
    struct rp_error err = { 0 };
    const struct rp_store *store = rp_request_store_of(q, file->store_id);
    int r = is_given_out(file, signed_for, &err);
    if (r == 0) r = rp_target_is_direct(store) ? send_to_store(q, file, store, &err) : stream_out(q, file, store, &err);
    if (r == 0) return;
    if (rp_error_http(r) >= 500) rp_metrics_failure(rp_server_options_of(q->server)->metrics, "download");
    rp_reply_error(q, &err);
}

static void content_by_token(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_file file;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_FILE, &id)) return;
    int r = rp_file_get(rp_request_catalog(q)->db, id, &q->arena, &file, &err);
    bool others = r == 0 && q->who.tenant_id != 0 && file.tenant_id != q->who.tenant_id;
    if (r == RP_ENOTFOUND || others)
        rp_reply_not_found(q, "file", RP_ID_FILE, id);
    else if (r < 0)
        rp_reply_error(q, &err);
    else
        give_out(q, &file, false);
}

static void content_by_signature(struct rp_request *q)
{
    struct rp_file file;
    struct rp_store *store;
    if (rp_content_granted(q, "GET", &file, &store)) give_out(q, &file, true);
}

/* ---- the table ---- */

static const struct rp_field uploaded_fields[] = {
    { RP_FIELD("size", INT), .most = INT64_MAX, .required = true, .help = "bytes stored" },
    { RP_FIELD("etag", TEXT), .required = true, .help = "the store's" },
    { RP_FIELD("checksum_sha256", SHA256), .required = true, .help = "of the bytes stored" },
};
static const struct rp_shape uploaded =
    RP_SHAPE("uploaded", uploaded_fields, "the bytes of a file, as they were stored");

/* clang-format off */
#define CONTENT_ALSO { { .status = 206, .media = "*/*", .help = "the range that was asked for" },                      \
                       { .status = 302, .help = "the store gives its bytes out itself; Location is a URL of it, for a few minutes" }, \
                       { .status = 304, .help = "these are the bytes that the caller has" } }
/* clang-format on */
#define CONTENT_HEADERS "Range If-Range If-None-Match"

static const struct rp_route routes[] = {
    { RP_ROUTE("PUT", "/v1/uploads/{id}", RP_FOR_EVERYBODY, 0, rp_upload_begin), .blocks = true, .streams = true,
      .query = &rp_shape_signed, .answer = &uploaded,
      .errors = "forbidden expired not_pending exists length_required size_mismatch checksum_mismatch "
                "unsupported_media elsewhere full too_slow busy",
      .summary = "Takes the bytes of a pending file; the URL and its headers are upload.url and upload.headers of the "
                 "call that began it. No token.",
      .example = "-X PUT -H 'Content-Type: image/jpeg' --data-binary @cat.jpg \"$UPLOAD_URL\"" },
    { RP_ROUTE("GET", "/v1/files/{id}/content", RP_FOR_TENANTS, RP_MAY_READ_FILES, content_by_token), .blocks = true,
      .media = "*/*", .also = CONTENT_ALSO, .headers = CONTENT_HEADERS, .errors = "not_live gone range",
      .summary = "The bytes of a live file, whole or one range of them (206), with ETag and If-None-Match.",
      .example = "-H 'Range: bytes=0-99'" },
    { RP_ROUTE("GET", "/v1/content/{id}", RP_FOR_EVERYBODY, 0, content_by_signature), .blocks = true, .media = "*/*",
      .also = CONTENT_ALSO, .headers = CONTENT_HEADERS, .query = &rp_shape_signed,
      .errors = "forbidden expired not_live gone range",
      .summary = "The same by a signed URL, without a token, also of a file that is still scanning. Only the processor "
                 "is given such a URL: use the one above.",
      .example = "\"$CONTENT_URL\"" },
};

const struct rp_routes rp_routes_content = { routes, sizeof routes / sizeof routes[0] };
