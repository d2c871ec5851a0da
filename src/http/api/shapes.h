/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h - what several calls share: shapes of answers, pages, names of stores, and what is done
 * around a change.
 *
 * P1  A cursor is opaque: base64url of a JSON array that the list wrote itself. One that is none is
 *     400; a forged one can only name another position in what the caller may see anyway.
 * P2  A subject of another tenant is answered in the very words of one that does not exist
 *     (TENANT). */
#ifndef RP_HTTP_API_SHAPES_H
#define RP_HTTP_API_SHAPES_H

#include "core/file/file.h"
#include "http/server/request.h"

extern const struct rp_shape rp_shape_why;       /* {"code","message","hint"} inside an answer */
extern const struct rp_shape rp_shape_mark;      /* a mark as GET /v1/marks shows it */
extern const struct rp_shape rp_shape_file_mark; /* the mark of a file, in short */
extern const struct rp_shape rp_shape_file;
extern const struct rp_shape rp_shape_page; /* query: limit, cursor */

#define RP_LIST_LIMIT      100
#define RP_LIST_LIMIT_MAX  1000
#define RP_CURSOR_TEXT_MAX 4000

#define RP_FIELD_LIMIT                                                                                                 \
    {                                                                                                                  \
        RP_FIELD("limit", INT), .least = 1, .most = RP_LIST_LIMIT_MAX, .help = "how many at most; 100 if not given"    \
    }
#define RP_FIELD_CURSOR                                                                                                \
    {                                                                                                                  \
        RP_FIELD("cursor", TEXT), .least = 1, .most = RP_CURSOR_TEXT_MAX, .help = "next_cursor of the page before"     \
    }
#define RP_FIELD_TENANT                                                                                                \
    {                                                                                                                  \
        RP_FIELD("tenant", TEXT), .least = 1, .most = 63, .help = "for admin tokens: whose; 'default' if not given"    \
    }

/* ---- pages ---- */

size_t rp_page_limit(const struct rp_request *q);
/* Base64url of the array, which is stolen; in the request's arena; NULL: no memory. */
const char *rp_cursor_write(struct rp_request *q, json_t *at);
/* The array that the query's cursor holds, to be freed; NULL: the query has none, or (err->code)
 * it is none of ours. */
json_t *rp_cursor_read(struct rp_request *q, struct rp_error *err);
/* RP_EINVAL: it holds something else than this list wrote. */
int rp_cursor_wrong(struct rp_error *err);
/* Of lists in order of one id: where the query's cursor goes on, and the cursor after an id. */
int rp_cursor_read_id(struct rp_request *q, int64_t *after, struct rp_error *err);
const char *rp_cursor_write_id(struct rp_request *q, int64_t id);
/* Of lists whose cursor is an id as people see it. */
const char *rp_cursor_of(struct rp_request *q, enum rp_id_kind kind, int64_t id);
/* Ends a list: the error of `r` < 0, or the items, which are stolen in either case. */
void rp_reply_page(struct rp_request *q, int r, const struct rp_error *err, json_t *items, const char *cursor);

/* ---- around a change ---- */

/* A command of `size` bytes that begins with a struct rp_command, the rest of it zero; in the
 * request's arena. NULL: answered. */
void *rp_command_new(struct rp_request *q, size_t size, const struct rp_verb *verb);
/* What the configuration says about uploads, in the request's arena; NULL: no memory. */
const struct rp_upload_rules *rp_request_rules(struct rp_request *q);
/* Every store, as the commands want them; in the arena; NULL: no memory. */
struct rp_store *const *rp_request_stores(struct rp_request *q, size_t *n);
/* 404 in the words of P2: "no file 'fil_...'". */
void rp_reply_not_found(struct rp_request *q, const char *what, enum rp_id_kind kind, int64_t id);

/* ---- how things look ---- */

/* A mark as shape `mark` says. */
json_t *rp_mark_shown(struct rp_request *q, const struct rp_mark *mark);
/* A file as it was read, with its mark if one waits; NULL with err filled in. For handlers that
 * may block. */
json_t *rp_file_shown(struct rp_request *q, const struct rp_file *file, struct rp_error *err);

#endif
