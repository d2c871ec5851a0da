/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h - what several calls share: shapes of answers, pages, names of stores, and what is done around a change.
 *
 * P1  A cursor is opaque: base64url of a JSON array that the list wrote itself. One that is none is 400; a forged one can
 *     only name another position in what the caller may see anyway.
 * P2  A subject of another tenant is answered in the very words of one that does not exist (TENANT). */
#ifndef RP_HTTP_API_SHAPES_H
#define RP_HTTP_API_SHAPES_H

#include "core/file/file.h"
#include "core/journal.h"
#include "http/server/request.h"

extern const struct rp_shape rp_shape_why;       /* {"code","message","hint"} inside an answer */
extern const struct rp_shape rp_shape_mark;      /* a mark as GET /v1/marks shows it */
extern const struct rp_shape rp_shape_file_mark; /* the mark of a file, in short */
extern const struct rp_shape rp_shape_file;
extern const struct rp_shape rp_shape_page;   /* query: limit, cursor */
extern const struct rp_shape rp_shape_tenant; /* query or body: tenant */

#define RP_LIST_LIMIT      100
#define RP_LIST_LIMIT_MAX  1000
#define RP_CURSOR_TEXT_MAX 4000

#define RP_FIELD_LIMIT                                                                                                 \
    {                                                                                                                  \
        .name = "limit", .kind = RP_FIELD_INT, .least = 1, .most = RP_LIST_LIMIT_MAX,                                  \
        .help = "how many at most; 100 if not given"                                                                   \
    }
#define RP_FIELD_CURSOR                                                                                                \
    {                                                                                                                  \
        .name = "cursor", .kind = RP_FIELD_TEXT, .least = 1, .most = RP_CURSOR_TEXT_MAX,                               \
        .help = "next_cursor of the page before"                                                                       \
    }
#define RP_FIELD_TENANT                                                                                                \
    {                                                                                                                  \
        .name = "tenant", .kind = RP_FIELD_TEXT, .least = 1, .most = 63,                                               \
        .help = "for admin tokens: whose; 'default' if not given"                                                      \
    }

/* ---- pages ---- */

size_t rp_page_limit(const struct rp_request *q);
/* Base64url of the array, which is stolen; in the request's arena; NULL: no memory. */
const char *rp_cursor_write(struct rp_request *q, json_t *at);
/* The array that the query's cursor holds, to be freed; NULL: the query has none, or (err->code) it is none of ours. */
json_t *rp_cursor_read(struct rp_request *q, struct rp_error *err);
/* RP_EINVAL: it holds something else than this list wrote. */
int rp_cursor_wrong(struct rp_error *err);

/* ---- around a change ---- */

int64_t rp_request_now_ms(const struct rp_request *q);
struct rp_journal rp_request_journal(const struct rp_request *q);
/* What the configuration says about uploads, in the request's arena; NULL: no memory. */
const struct rp_upload_rules *rp_request_rules(struct rp_request *q);
/* Every store, as the commands want them; in the arena; NULL: no memory. */
struct rp_store *const *rp_request_stores(struct rp_request *q, size_t *n);
/* 404 in the words of P2: "no file 'fil_...'". */
void rp_reply_not_found(struct rp_request *q, const char *what, enum rp_id_kind kind, int64_t id);
void rp_reply_no_memory(struct rp_request *q);

/* ---- how things look ---- */

/* The store's name, also of one that is no longer configured. */
const char *rp_request_store_name(struct rp_request *q, int64_t store_id);
/* A mark as shape `mark` says. */
json_t *rp_mark_shown(struct rp_request *q, const struct rp_mark *mark);
/* A file as it was read, with its mark if one waits; NULL with err filled in. For handlers that may block. */
json_t *rp_file_shown(struct rp_request *q, const struct rp_file *file, struct rp_error *err);

#endif
