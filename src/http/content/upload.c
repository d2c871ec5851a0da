/* SPDX-License-Identifier: Apache-2.0 */
/* PUT /v1/uploads/{id}: the bytes of a pending file, from the connection into the store. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/time.h"
#include "core/file/file.h"
#include "core/owner/refuse.h"
#include "core/room.h"
#include "http/content/content.h"
#include "http/content/headers.h"
#include "http/content/target.h"
#include "http/server/server.h"
#include "http/server/stream.h"
#include "metrics/metrics.h"

#define LOOK_BYTES ((int64_t)1 << 20) /* how often the disk is asked */

/* How many this process takes at the moment. */
static struct rp_shares uploads_open = RP_SHARES;

/* Lives from the headers to the end of the body, in the request's arena. */
struct upload {
    struct rp_stream stream;
    struct rp_backend *backend;
    struct rp_object_writer *writer;
    struct rp_digest *digest;
    const struct rp_config *config;
    const struct rp_store_config *store;
    struct rp_error failed; /* the bytes that still come are read and dropped, so that there is an answer */
    int64_t file_id, tenant_id, promised, received;
    int64_t looked_ms, looked_at; /* O6: when, and how much had come then */
    bool has_checksum;
    uint8_t checksum[RP_DIGEST_BYTES];
};

static struct upload *upload_of(const struct rp_request *q)
{
    return q->stream->ctx;
}

static int is_pending(const struct rp_file *file, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    if (file->status == RP_FILE_PENDING) return 0;
    rp_id_format(RP_ID_FILE, file->id, id);
    if (file->status == RP_FILE_EXPIRED || file->status == RP_FILE_PURGED) {
        rp_error_set(err, RP_EEXPIRED, "the upload of '%s' was not confirmed in time", id);
        return rp_error_hint(err, "begin a new upload");
    }
    return rp_error_set(err, RP_ENOTPENDING, "file '%s' is %s, not pending", id, rp_status_name(file->status));
}

static int size_differs(int64_t sent, int64_t promised, struct rp_error *err)
{
    return rp_error_set(err, RP_ESIZE, "the body has %" PRId64 " bytes, %" PRId64 " were promised", sent, promised);
}

/* Whether what the headers announce is what was promised. */
static int announced(const struct rp_request *q, const struct rp_file *file, struct rp_error *err)
{
    int64_t length = rp_request_length(q);
    const char *type = rp_request_header(q, "Content-Type");
    if (length < 0) {
        rp_error_set(err, RP_ELENGTH, "an upload needs the header Content-Length");
        return rp_error_hint(err, "send the body in one piece, not chunked");
    }
    if (length != file->size_bytes) return size_differs(length, file->size_bytes, err);
    if (rp_content_type_fits(file->content_type, type)) return 0;
    rp_error_set(err, RP_EMEDIA, "Content-Type is '%.200s', '%s' was promised", type != NULL ? type : "",
                 file->content_type);
    return rp_error_hint(err, "send the headers that the upload's answer names");
}

/* What to do about a key that was written before; other outcomes pass through. */
static int say_exists(int r, int64_t file_id, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    if (r != RP_EEXISTS) return r;
    rp_error_set(err, RP_EEXISTS, "the bytes of '%s' are there already", rp_id_format(RP_ID_FILE, file_id, id));
    return rp_error_hint(err, "confirm it: POST /v1/files/%s/confirm", id);
}

static int open_writer(struct upload *u, const struct rp_file *file, struct rp_error *err)
{
    const char *type = file->content_type != NULL ? file->content_type : "";
    const struct rp_pair header = { "content-type", type };
    const struct rp_meta meta = { .headers = &header, .n_headers = type[0] != 0 ? 1 : 0 };
    if ((u->digest = rp_digest_new()) == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an upload");
    rp_digest_begin(u->digest);
    int r = rp_backend_put_open(u->backend, file->key, &meta, RP_PUT_NEW, &u->writer, err);
    if (r < 0) rp_digest_free(u->digest);
    return say_exists(r, file->id, err);
}

static void close_upload(struct upload *u)
{
    rp_digest_free(u->digest);
    rp_shares_give(&uploads_open, u->tenant_id, 1);
}

static int keeps_pace(const struct rp_request *q, struct upload *u, struct rp_error *err)
{
    int64_t timeout_ms = rp_request_config(q)->http_timeout_ms, now_ms = rp_time_boot_ms();
    int64_t took_ms = now_ms - u->looked_ms, came = u->received - u->looked_at;
    if (took_ms < timeout_ms) return 0;
    if (came < RP_CONTENT_SLOWEST * took_ms / RP_SECOND_MS) {
        rp_error_set(err, RP_ESLOW, "%" PRId64 " bytes came in %" PRId64 " s", came, took_ms / RP_SECOND_MS);
        return rp_error_hint(err, "send at least %d bytes a second; the upload may begin again", RP_CONTENT_SLOWEST);
    }
    u->looked_ms = now_ms;
    u->looked_at = u->received;
    return 0;
}

static void drop_bytes(struct upload *u)
{
    if (u->writer != NULL) rp_backend_put_abort(u->writer);
    u->writer = NULL;
}

/* The disk may fill up meanwhile; its last blocks are not for uploads (core/room.h). */
static int write_bytes(struct upload *u, const void *data, size_t n, struct rp_error *err)
{
    bool look = (u->received + (int64_t)n) / LOOK_BYTES != u->received / LOOK_BYTES;
    int r = look ? rp_room_refuse(u->config, u->store, (int64_t)n, err) : 0;
    return r < 0 ? r : rp_backend_put_write(u->writer, data, n, err);
}

/* On the connection's thread. What was written of an upload that fails is given back at once. */
static int take_bytes(struct rp_request *q, const void *data, size_t n, struct rp_error *err)
{
    struct upload *u = upload_of(q);
    if (n > (size_t)(u->promised - u->received)) return size_differs(u->received + (int64_t)n, u->promised, err);
    if (u->writer != NULL && write_bytes(u, data, n, &u->failed) < 0) drop_bytes(u);
    if (u->writer != NULL) rp_digest_add(u->digest, data, n);
    u->received += (int64_t)n;
    return u->received < u->promised ? keeps_pace(q, u, err) : 0;
}

static void give_up(struct rp_request *q)
{
    struct upload *u = upload_of(q);
    drop_bytes(u);
    close_upload(u);
}

/* The file may have expired while the bytes came. */
static int still_pending(struct rp_request *q, int64_t file_id, struct rp_error *err)
{
    struct rp_file file;
    int r = rp_file_get(rp_request_catalog(q)->db, file_id, &q->arena, &file, err);
    return r < 0 ? r : is_pending(&file, err);
}

static int arrived(struct rp_request *q, struct upload *u, uint8_t digest[RP_DIGEST_BYTES], struct rp_error *err)
{
    rp_digest_end(u->digest, digest);
    if (u->failed.code < 0) {
        *err = u->failed;
        return err->code;
    }
    if (u->received != u->promised) return size_differs(u->received, u->promised, err);
    if (u->has_checksum && memcmp(digest, u->checksum, RP_DIGEST_BYTES) != 0) {
        char sent[RP_DIGEST_HEX];
        rp_digest_hex(digest, sent);
        return rp_error_set(err, RP_ECHECKSUM, "the body's SHA-256 is %s, another was promised", sent);
    }
    return still_pending(q, u->file_id, err);
}

static int store_it(struct rp_request *q, struct upload *u, uint8_t digest[RP_DIGEST_BYTES], struct rp_identity *made,
                    struct rp_error *err)
{
    int r = arrived(q, u, digest, err);
    if (r == 0) return say_exists(rp_backend_put_commit(u->writer, made, err), u->file_id, err);
    drop_bytes(u);
    return r;
}

static void failed(struct rp_request *q, const struct rp_error *err)
{
    if (rp_error_http(err->code) >= 500) rp_metrics_failure(rp_server_options_of(q->server)->metrics, "upload");
    rp_reply_error(q, err);
}

/* On a thread of the pool: the store syncs what it shows. */
static void finish(struct rp_request *q)
{
    struct upload *u = upload_of(q);
    struct rp_error err = { 0 };
    struct rp_identity made = { 0 };
    uint8_t digest[RP_DIGEST_BYTES];
    char hex[RP_DIGEST_HEX];
    int r = store_it(q, u, digest, &made, &err);
    close_upload(u);
    if (r < 0) {
        failed(q, &err);
        return;
    }
    rp_digest_hex(digest, hex);
    rp_reply_json(
        q, 200,
        json_pack("{s:I,s:s,s:s}", "size", (json_int_t)made.size_bytes, "etag", made.etag, "checksum_sha256", hex));
}

static int upload_new(struct rp_request *q, const struct rp_file *file, const struct rp_store *store,
                      struct upload **out, struct rp_error *err)
{
    struct upload *u = rp_arena_alloc(&q->arena, sizeof *u);
    if (u == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an upload");
    *u = (struct upload){
        .stream = { .bytes = take_bytes, .end = finish, .abort = give_up, .ctx = u },
        .backend = store->backend,
        .config = rp_request_config(q),
        .store = store->config,
        .file_id = file->id,
        .tenant_id = file->tenant_id,
        .looked_ms = rp_time_boot_ms(),
        .promised = file->size_bytes,
        .has_checksum = file->checksum != NULL,
    };
    if (file->checksum) memcpy(u->checksum, file->checksum, sizeof u->checksum);
    int r = rp_content_enter(q, &uploads_open, file->tenant_id, err);
    if (r < 0) return r;
    if ((r = open_writer(u, file, err)) < 0) {
        rp_shares_give(&uploads_open, file->tenant_id, 1);
        return r;
    }
    *out = u;
    return 0;
}

static int may_begin(const struct rp_request *q, const struct rp_file *file, const struct rp_store *store,
                     struct rp_error *err)
{
    int r = is_pending(file, err);
    if (r < 0) return r;
    if (file->url_ends_at_ms <= rp_request_now_ms(q)) {
        rp_error_set(err, RP_EEXPIRED, "the upload's URL has ended");
        return rp_error_hint(err, "begin a new upload");
    }
    if ((r = announced(q, file, err)) < 0 || rp_target_is_direct(store)) return r;
    r = rp_content_open(store, err);
    if (r == 0) r = rp_room_refuse(rp_request_config(q), store->config, file->size_bytes, err);
    return r < 0 ? r : rp_owner_refuse_bytes(store, err);
}

/* The URL is one of a time when the store took its bytes through the daemon. */
static void reply_elsewhere(struct rp_request *q, const struct rp_file *file, const struct rp_store *store)
{
    struct rp_error err = { 0 };
    struct rp_presigned target;
    char id[RP_ID_TEXT];
    struct rp_grant grant = rp_grant_of("PUT", file, store->config->name, file->url_ends_at_ms);
    if (rp_target_upload(q, &grant, store, &target, &err) < 0) {
        failed(q, &err);
        return;
    }
    rp_error_set(&err, RP_EELSEWHERE, "the bytes of '%s' go to the store itself",
                 rp_id_format(RP_ID_FILE, file->id, id));
    rp_error_hint(&err, "send them to upload.url of this answer, with its headers");
    rp_reply_problem(q, &err, json_pack("{s:o*}", "upload", rp_target_json(&target, file->url_ends_at_ms)));
}

void rp_upload_begin(struct rp_request *q)
{
    struct rp_file file;
    struct rp_store *store;
    struct upload *u = NULL;
    struct rp_error err = { 0 };
    if (!rp_content_granted(q, "PUT", &file, &store)) return;
    int r = may_begin(q, &file, store, &err);
    if (r == 0 && rp_target_is_direct(store)) {
        reply_elsewhere(q, &file, store);
        return;
    }
    if (r == 0) r = upload_new(q, &file, store, &u, &err);
    if (r < 0)
        failed(q, &err);
    else
        rp_request_receive(q, &u->stream);
}
