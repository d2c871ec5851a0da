/* SPDX-License-Identifier: Apache-2.0 */
#include "http/api/new_file.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/hex.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/owner/refuse.h"
#include "core/room.h"
#include "http/api/shapes.h"
#include "http/content/target.h"
#include "http/server/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_MAX ((size_t)8 << 10)

/* ---- shapes ---- */

static const char *const born[] = { "pending", NULL };

static const struct rp_field target_fields[] = {
    { RP_FIELD("method", TEXT), .required = true, .help = "PUT" },
    { RP_FIELD("url", TEXT), .required = true,
      .help = "signed: it needs no token; the store's own where it takes bytes itself, else the daemon's" },
    { RP_FIELD("headers", MAP), .required = true, .help = "to be sent as they are" },
    { RP_FIELD("expires_at", TIME), .required = true, .help = "when the URL ends" },
};
static const struct rp_shape target_shape = RP_SHAPE("upload_target", target_fields, "where the bytes go");

static const struct rp_field new_file_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_FILE, .required = true, .help = "the file" },
    { RP_FIELD("status", CHOICE), .choices = born, .required = true, .help = "pending" },
    { RP_FIELD("store", TEXT), .required = true, .help = "where its bytes will be" },
    { RP_FIELD("key", TEXT), .required = true, .help = "under which key" },
    { RP_FIELD("upload", OBJECT), .of = &target_shape, .required = true, .help = "where the bytes go" },
    { RP_FIELD("mark", OBJECT), .of = &rp_shape_file_mark, .required = true,
      .help = "it is purged then, unless it is confirmed or committed first" },
};
const struct rp_shape rp_shape_new_file = RP_SHAPE("new_file", new_file_fields, "a file that waits for its bytes");

/* ---- the command ---- */

const uint8_t *rp_checksum_bytes(struct rp_request *q, const char *hex)
{
    uint8_t *out = hex != NULL ? rp_arena_alloc(&q->arena, RP_DIGEST_BYTES) : NULL;
    bool read = out == NULL || rp_hex_read(hex, RP_DIGEST_BYTES, out);
    RP_ASSERT(read); /* its shape is a digest */
    return out;
}

int rp_metadata_text(struct rp_request *q, const json_t *map, const char **out, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf text = RP_BUF(RP_METADATA_MAX);
    *out = NULL;
    if (map == NULL) return 0;
    int r = rp_json_write(&text, map);
    if (r == RP_ETOOBIG) return rp_error_set(err, RP_EINVAL, "metadata: more than %d bytes as JSON", RP_METADATA_MAX);
    *out = r == 0 ? rp_arena_copy(&q->arena, text.data, text.len) : NULL;
    return *out == NULL ? rp_error_set(err, RP_ENOMEM, "no memory for the metadata") : 0;
}

/* Where uploads go: as configured, or the first store that may be written. */
static int upload_store(struct rp_request *q, const struct rp_store **out, struct rp_error *err)
{
    const struct rp_config *all = rp_request_config(q);
    const struct rp_store_config *config = rp_config_uploads_store(all);
    const struct rp_store *store = config != NULL ? rp_request_store(q, config->name) : NULL;
    if (store == NULL || store->config->mode == RP_MODE_OBSERVE) {
        rp_error_set(err, RP_EOBSERVE, "no store takes uploads");
        return rp_error_hint(err, "every store is in mode observe: give one another mode, or set uploads.store");
    }
    if (store->backend == NULL)
        return rp_error_set(err, RP_EUNAVAILABLE, "store '%s' is not open", store->config->name);
    int r = rp_owner_refuse_name(store, err);
    if (r < 0) return r;
    *out = store;
    return rp_rooms_refuse(rp_server_options_of(q->server)->rooms, (size_t)(config - all->stores), err);
}

static int read_body(struct rp_request *q, struct rp_init *init, struct rp_error *err)
{
    const char *checksum = rp_json_get_text(q->body, "checksum_sha256", NULL);
    init->rules = rp_request_rules(q);
    init->name = rp_json_get_text(q->body, "name", "");
    init->content_type = rp_json_get_text(q->body, "content_type", "");
    init->size_bytes = rp_json_get_int(q->body, "size", 0);
    init->checksum = rp_checksum_bytes(q, checksum);
    init->parent_id = rp_json_get_int(q->body, "parent", 0);
    init->source_id = rp_json_get_int(q->body, "source", 0);
    init->replaces_id = rp_json_get_int(q->body, "replaces", 0);
    if (init->rules == NULL || (checksum != NULL && init->checksum == NULL))
        return rp_error_set(err, RP_ENOMEM, "no memory for an upload");
    /* it becomes a header of answers and of the store: nothing that could begin another one */
    for (const char *c = init->content_type; *c != 0; c++)
        if (*c < 0x20 || *c > 0x7e) return rp_error_set(err, RP_EINVAL, "content_type: only printable ASCII is a type");
    return rp_metadata_text(q, json_object_get(q->body, "metadata"), &init->metadata, err);
}

/* ---- the answer ---- */

static int sign(struct rp_request *q, const struct rp_init *init, struct rp_presigned *target, struct rp_error *err)
{
    struct rp_grant grant = { .method = "PUT",
                              .file_id = init->file_id,
                              .store = init->store->config->name,
                              .key = init->key,
                              .size_bytes = init->size_bytes,
                              .content_type = init->content_type,
                              .checksum = init->checksum,
                              .expires_at_ms = init->url_ends_at_ms };
    return rp_target_upload(q, &grant, init->store, target, err);
}

static void write_target(const struct rp_init *init, const struct rp_presigned *target, struct rp_buf *b)
{
    char time[RP_TIME_TEXT];
    rp_buf_str(b, ",\"upload\":{\"method\":\"PUT\",\"url\":");
    rp_json_quote(b, target->url);
    rp_buf_str(b, ",\"headers\":{");
    for (size_t i = 0; i < target->n_headers; i++) {
        if (i > 0) rp_buf_char(b, ',');
        rp_json_quote(b, target->headers[i].name);
        rp_buf_char(b, ':');
        rp_json_quote(b, target->headers[i].value);
    }
    rp_buf_fmt(b, "},\"expires_at\":\"%s\"}", rp_time_format(init->url_ends_at_ms, time));
}

static int write_answer(struct rp_request *q, const struct rp_init *init, struct rp_buf *b, struct rp_error *err)
{
    char file[RP_ID_TEXT], mark[RP_ID_TEXT], due[RP_TIME_TEXT];
    struct rp_presigned target;
    int r = sign(q, init, &target, err);
    if (r < 0) return r;
    rp_buf_fmt(b, "{\"id\":\"%s\",\"status\":\"pending\",\"store\":\"%s\",\"key\":",
               rp_id_format(RP_ID_FILE, init->file_id, file), init->store->config->name);
    rp_json_quote(b, init->key);
    write_target(init, &target, b);
    rp_buf_fmt(b, ",\"mark\":{\"id\":\"%s\",\"due_at\":\"%s\",\"reason\":\"%s\"}}",
               rp_id_format(RP_ID_MARK, init->mark_id, mark), rp_time_format(init->due_at_ms, due),
               init->txn_id != 0 ? RP_REASON_ROLLBACK : RP_REASON_ABANDONED);
    return b->failed == 0 ? 0 : rp_error_set(err, b->failed, "no memory for the answer");
}

static void reply_refused(struct rp_request *q)
{
    const struct rp_init *init = (const struct rp_init *)q->command;
    const struct rp_tenant *tenant = &init->tenant;
    json_t *more = NULL;
    if (init->command.error.code == RP_EQUOTA)
        more = json_pack("{s:I,s:I,s:I}", "limit", (json_int_t)tenant->limit_bytes, "used",
                         (json_int_t)tenant->used_bytes, "reserved", (json_int_t)tenant->reserved_bytes);
    rp_reply_problem(q, &init->command.error, more);
}

static void then_reply(struct rp_request *q)
{
    const struct rp_init *init = (const struct rp_init *)q->command;
    RP_CLEANUP(rp_buf_done) struct rp_buf answer = RP_BUF(ANSWER_MAX);
    struct rp_error err = { 0 };
    if (write_answer(q, init, &answer, &err) < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_text(q, rp_route_status(q->route), "application/json", rp_buf_text(&answer));
}

/* The promise stands as it was made; only the signature may be of a newer key. */
static int sign_anew(struct rp_request *q, json_t *answer, struct rp_error *err)
{
    struct rp_error ignored = { 0 };
    struct rp_init init = { 0 };
    enum rp_id_kind kind;
    json_t *upload = json_object_get(answer, "upload");
    const char *id = rp_json_get_text(answer, "id", ""), *ends = rp_json_get_text(upload, "expires_at", "");
    struct rp_presigned target;
    init.store = rp_request_store(q, rp_json_get_text(answer, "store", ""));
    snprintf(init.key, sizeof init.key, "%s", rp_json_get_text(answer, "key", ""));
    if (init.store == NULL || read_body(q, &init, &ignored) < 0 || !rp_id_parse(id, &kind, &init.file_id) ||
        rp_time_parse(ends, &init.url_ends_at_ms, &ignored) < 0)
        return 0; /* it stays as it was */
    int r = sign(q, &init, &target, err);
    if (r < 0) return r;
    json_t *anew = rp_target_json(&target, init.url_ends_at_ms);
    if (anew != NULL) rp_json_set(answer, "upload", anew);
    return 0;
}

void rp_new_file_submit(struct rp_request *q, int64_t tenant_id, int64_t txn_id)
{
    struct rp_init *init = rp_command_new(q, sizeof *init, &rp_verb_init);
    struct rp_error err = { 0 };
    if (init == NULL) return;
    init->command.tenant_id = tenant_id;
    init->txn_id = txn_id;
    q->refused = reply_refused;
    int r = read_body(q, init, &err);
    if (r == 0) r = upload_store(q, &init->store, &err);
    if (r == 0) r = rp_target_may_upload(q, init, &err);
    if (r < 0)
        rp_request_refuse(q, &init->command, &err, sign_anew);
    else
        rp_request_submit(q, &init->command, then_reply, sign_anew);
}
