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

#include "core/confirm/confirm.h"
#include "core/file/file.h"
#include "core/state.h"
#include "http/server/request.h"

/* A mark as rp_mark_line shows it. */
/* clang-format off */
#define RP_MARK_FIELDS \
    { RP_FIELD("id", ID), .id = RP_ID_MARK, .required = true, .help = "the mark" }, \
    { RP_FIELD("subject", TEXT), .required = true, .help = "STORE:KEY" }, \
    { RP_FIELD("file", ID), .id = RP_ID_FILE, .help = "the file that the object belongs to" }, \
    { RP_FIELD("state", CHOICE), .choices = rp_state_names, .required = true, .help = "where it stands" }, \
    { RP_FIELD("reason", TEXT), .required = true, .help = "as it was given, or abandoned, rollback, ..." }, \
    { RP_FIELD("actor", TEXT), .required = true, .help = "who made it" }, \
    { RP_FIELD("marked_at", TIME), .required = true, .help = "when it was made" }, \
    { RP_FIELD("due_at", TIME), .required = true, .help = "nothing is purged before" }, \
    { RP_FIELD("size", INT), .most = INT64_MAX, .required = true, .help = "bytes" }, \
    { RP_FIELD("outcome", TEXT), .help = "how it ended" }, \
    { RP_FIELD("ended_at", TIME), .help = "when it ended" }, \
    { RP_FIELD("only_if", TEXT), .help = "unreferenced: it was asked when it was marked, too" }, \
    { RP_FIELD("attempts", INT), .most = INT64_MAX, .help = "failed tries so far" }, \
    { RP_FIELD("run", ID), .id = RP_ID_RUN, .help = "the run that purged it" }, \
    { RP_FIELD("note", TEXT), .help = "what the last look at it said" }, \
    { RP_FIELD("asked_again_at", TIME), .help = "when a check that refused it is asked again" }
/* clang-format on */

extern const struct rp_shape rp_shape_why;  /* {"code","message","hint"} inside an answer */
extern const struct rp_shape rp_shape_mark; /* a mark as GET /v1/marks shows it */
extern const struct rp_shape rp_shape_mark_shown;
extern const struct rp_shape rp_shape_confirmation;
extern const struct rp_shape rp_shape_file_mark; /* the mark of a file, in short */
extern const struct rp_shape rp_shape_file;
extern const struct rp_shape rp_shape_signed; /* query of a URL that is its own permission */
extern const struct rp_shape rp_shape_page;   /* query: limit, cursor */

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
/* The services that these texts name, in the arena; NULL: none. RP_EINVAL: one is not configured. */
int rp_confirmers_read(struct rp_request *q, const json_t *names, const struct rp_confirmer_list **out,
                       struct rp_error *err);
/* 404 in the words of P2: "no file 'fil_...'". */
void rp_reply_not_found(struct rp_request *q, const char *what, enum rp_id_kind kind, int64_t id);

/* ---- how things look ---- */

/* A mark as shape `mark` says. */
json_t *rp_mark_shown(struct rp_request *q, const struct rp_mark *mark);
/* A file as it was read, with its mark if one waits; NULL with err filled in. For handlers that
 * may block. */
json_t *rp_file_shown(struct rp_request *q, const struct rp_file *file, struct rp_error *err);

#endif
