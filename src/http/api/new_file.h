/* SPDX-License-Identifier: Apache-2.0 */
/* new_file.h - a new file, as POST /v1/files and POST /v1/transactions/{id}/files ask for it: the
 * command that makes it, and the answer with the URL that its bytes go to.
 *
 * The answer is the hot path of the daemon: it is written as text, not built as a tree. */
#ifndef RP_HTTP_API_NEW_FILE_H
#define RP_HTTP_API_NEW_FILE_H

#include "core/file/file.h"
#include "http/server/request.h"

/* The answer: {"id","status":"pending","store","key","upload":{...},"mark":{...}}. */
extern const struct rp_shape rp_shape_new_file;

/* clang-format off */
/* Members of the body that both calls take. */
#define RP_NEW_FILE_FIELDS                                                                                             \
    { RP_FIELD("name", TEXT), .required = true, .least = 1, .most = RP_FILE_NAME_MAX,                   \
      .help = "one live file a tenant and name" },                                                                     \
    { RP_FIELD("size", SIZE), .required = true, .help = "bytes that will come: exactly these" },        \
    { RP_FIELD("content_type", TEXT), .least = 1, .most = RP_FILE_TYPE_MAX,                             \
      .help = "the upload must then carry it" },                                                                       \
    { RP_FIELD("checksum_sha256", SHA256), .help = "verified against the bytes" },                      \
    { RP_FIELD("parent", ID), .id = RP_ID_FILE,                                                         \
      .help = "a file that this one is deleted and restored with" },                                                   \
    { RP_FIELD("source", ID), .id = RP_ID_FILE, .help = "the file it was made from; likewise" },        \
    { RP_FIELD("metadata", MAP), .most = 64, .help = "names and texts, 8 KiB together" }
/* clang-format on */

/* Submits the file that the body describes; ends the handler. `txn_id` 0: none. */
void rp_new_file_submit(struct rp_request *q, int64_t tenant_id, int64_t txn_id);

/* The text of a metadata object, in the request's arena; NULL for NULL. RP_EINVAL over
 * RP_METADATA_MAX. */
int rp_metadata_text(struct rp_request *q, const json_t *map, const char **out, struct rp_error *err);
/* 32 bytes of 64 hex digits that were checked before, in the arena; NULL for NULL, or without
 * memory. */
const uint8_t *rp_checksum_bytes(struct rp_request *q, const char *hex);

#endif
