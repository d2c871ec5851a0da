/* SPDX-License-Identifier: Apache-2.0 */
#include "http/api/shapes.h"

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/state.h"
#include "http/server/server.h"

#include <string.h>

/* ---- shapes ---- */

static const struct rp_field why_fields[] = {
    { RP_FIELD("code", TEXT), .required = true, .help = "stable, as in problem+json" },
    { RP_FIELD("message", TEXT), .required = true, .help = "what happened, to what" },
    { RP_FIELD("hint", TEXT), .help = "what to do next" },
};
const struct rp_shape rp_shape_why = RP_SHAPE("why", why_fields, "why something was refused");

static const struct rp_field signed_fields[] = {
    { RP_FIELD("expires", INT), .required = true, .most = INT64_MAX,
      .help = "end of the URL, milliseconds since 1970" },
    { RP_FIELD("signature", SHA256), .required = true, .help = "HMAC-SHA256 of what the URL grants" },
};
const struct rp_shape rp_shape_signed = RP_SHAPE("signed", signed_fields, "what makes a URL its own permission");

static const struct rp_field mark_fields[] = { RP_MARK_FIELDS };
const struct rp_shape rp_shape_mark = RP_SHAPE("mark", mark_fields, "a promise to purge its subject at due_at");

static const char *const confirmation_states[] = { "pending", "asked", "waiting", "yes", "refused", "failed", NULL };

static const struct rp_field try_fields[] = {
    { RP_FIELD("at", TIME), .required = true, .help = "when" },
    { RP_FIELD("status", INT), .most = 999, .required = true, .help = "of HTTP; 0: no answer came" },
    { RP_FIELD("body", TEXT), .help = "the first 1 KiB of the answer" },
    { RP_FIELD("error", TEXT), .help = "why none came" },
};
static const struct rp_shape try_shape = RP_SHAPE("confirmation_try", try_fields, "one call to an outside service");

static const struct rp_field confirmation_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_CONFIRMATION, .required = true, .help = "the idempotency key of its calls" },
    { RP_FIELD("name", TEXT), .required = true, .help = "as configured" },
    { RP_FIELD("state", CHOICE), .choices = confirmation_states, .required = true, .help = "what it has said" },
    { RP_FIELD("attempts", INT), .most = INT64_MAX, .required = true, .help = "calls, since it was last retried" },
    { RP_FIELD("asked_at", TIME), .help = "first" },
    { RP_FIELD("until", TIME), .help = "when it is given up" },
    { RP_FIELD("answered_at", TIME), .help = "last" },
    { RP_FIELD("note", TEXT), .help = "its last answer" },
    { RP_FIELD("tries", LIST), .of = &try_shape, .required = true, .help = "the last 100 calls" },
};
const struct rp_shape rp_shape_confirmation =
    RP_SHAPE("asked_confirmation", confirmation_fields, "what an outside service was asked, and said");

static const struct rp_field mark_shown_fields[] = {
    RP_MARK_FIELDS,
    { RP_FIELD("confirmations", LIST), .of = &rp_shape_confirmation, .required = true,
      .help = "outside services that it needs a yes of, in the order in which they are asked" },
};
const struct rp_shape rp_shape_mark_shown =
    RP_SHAPE("mark_shown", mark_shown_fields, "a mark with what outside services were asked, and said");

static const struct rp_field file_mark_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_MARK, .required = true, .help = "the mark" },
    { RP_FIELD("marked_at", TIME), .help = "when it was made" },
    { RP_FIELD("due_at", TIME), .required = true, .help = "the file is purged then, unless restored" },
    { RP_FIELD("reason", TEXT), .required = true, .help = "as it was given, or abandoned, rollback, ..." },
    { RP_FIELD("restorable", BOOL),
      .help = "false: a service is asked at once, and then it cannot be restored any more" },
};
const struct rp_shape rp_shape_file_mark = RP_SHAPE("file_mark", file_mark_fields, "the mark of a file");

static const struct rp_field processing_fields[] = {
    { RP_FIELD("idempotency_key", TEXT), .required = true, .help = "what the result must name" },
};
static const struct rp_shape processing_shape = RP_SHAPE("processing", processing_fields, "what waits for a processor");

static const struct rp_field left_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_FILE, .required = true, .help = "the file: it can be restored by itself" },
    { RP_FIELD("error", OBJECT), .of = &rp_shape_why, .required = true, .help = "why" },
};
static const struct rp_shape left_shape = RP_SHAPE("not_restored", left_fields, "a file that stays deleted");

static const struct rp_field file_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_FILE, .required = true, .help = "the file" },
    { RP_FIELD("status", CHOICE), .choices = rp_status_names, .required = true, .help = "where it stands" },
    { RP_FIELD("name", TEXT), .most = RP_FILE_NAME_MAX, .required = true, .help = "as it was given" },
    { RP_FIELD("store", TEXT), .required = true, .help = "where its bytes are" },
    { RP_FIELD("key", TEXT), .required = true, .help = "under which key" },
    { RP_FIELD("size", INT), .most = INT64_MAX, .required = true, .help = "bytes" },
    { RP_FIELD("content_type", TEXT), .help = "as it was given" },
    { RP_FIELD("checksum_sha256", SHA256), .help = "as it was promised, and verified when live" },
    { RP_FIELD("etag", TEXT), .help = "the store's" },
    { RP_FIELD("parent", ID), .id = RP_ID_FILE, .help = "deleted and restored together with it" },
    { RP_FIELD("source", ID), .id = RP_ID_FILE, .help = "what it was made from; likewise" },
    { RP_FIELD("transaction", ID), .id = RP_ID_TRANSACTION, .help = "it came with" },
    { RP_FIELD("replaces", ID), .id = RP_ID_FILE, .help = "what its transaction replaces by it" },
    { RP_FIELD("processing", OBJECT), .of = &processing_shape, .help = "while it is scanning" },
    { RP_FIELD("metadata", MAP), .help = "names and values" },
    { RP_FIELD("created_at", TIME), .required = true, .help = "when its upload began" },
    { RP_FIELD("changed_at", TIME), .required = true, .help = "its last change" },
    { RP_FIELD("confirmed_at", TIME), .help = "when its upload was confirmed" },
    { RP_FIELD("deleted_at", TIME), .help = "since when it is deleted" },
    { RP_FIELD("ended_at", TIME), .help = "when it was purged, or expired" },
    { RP_FIELD("mark", OBJECT), .of = &rp_shape_file_mark, .help = "if one waits" },
    { RP_FIELD("not_restored", LIST), .of = &left_shape,
      .help = "after a restore: what was deleted along with it and could not come back" },
};
const struct rp_shape rp_shape_file = RP_SHAPE("file", file_fields, "an upload and what became of it");

static const struct rp_field page_fields[] = { RP_FIELD_LIMIT, RP_FIELD_CURSOR };
const struct rp_shape rp_shape_page = RP_SHAPE("page", page_fields, "which part of a list");

/* ---- pages ---- */

size_t rp_page_limit(const struct rp_request *q)
{
    return (size_t)rp_json_get_int(q->query, "limit", RP_LIST_LIMIT);
}

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const char *rp_cursor_write(struct rp_request *q, json_t *at)
{
    RP_CLEANUP(rp_json_decrefp) json_t *array = at;
    RP_CLEANUP(rp_freep) char *text = array != NULL ? json_dumps(array, JSON_COMPACT) : NULL;
    size_t n = text != NULL ? strlen(text) : 0, to = 0;
    char *out = text != NULL ? rp_arena_alloc(&q->arena, 4 * (n / 3 + 1) + 1) : NULL;
    for (size_t i = 0; out != NULL && i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        unsigned v = (unsigned)(unsigned char)text[i] << 16;
        if (have > 1) v |= (unsigned)(unsigned char)text[i + 1] << 8;
        if (have > 2) v |= (unsigned char)text[i + 2];
        for (size_t k = 0; k <= have; k++)
            out[to++] = letters[(v >> (18 - 6 * k)) & 63];
    }
    return out;
}

/* The bytes; NULL: a letter that is none. */
static char *unfold(struct rp_arena *arena, const char *text, size_t *n)
{
    char *out = rp_arena_alloc(arena, strlen(text) + 1);
    unsigned bits = 0, v = 0;
    *n = 0;
    for (; out != NULL && *text != 0; text++) {
        const char *at = strchr(letters, *text);
        if (at == NULL) return NULL;
        v = (v << 6 | (unsigned)(at - letters)) & 0xFFFFU;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        out[(*n)++] = (char)(v >> bits & 0xFFU);
    }
    return out;
}

int rp_cursor_wrong(struct rp_error *err)
{
    rp_error_set(err, RP_EINVAL, "cursor: it is none of ours");
    return rp_error_hint(err, "give next_cursor of the page before as it was, with the same filters");
}

json_t *rp_cursor_read(struct rp_request *q, struct rp_error *err)
{
    const char *text = rp_json_get_text(q->query, "cursor", NULL);
    struct rp_error ignored = { 0 };
    json_t *array = NULL;
    size_t n = 0;
    if (text == NULL) return NULL;
    const char *bytes = unfold(&q->arena, text, &n);
    if (bytes != NULL && rp_json_parse(bytes, n, &array, &ignored) == 0 && json_is_array(array)) return array;
    json_decref(array);
    rp_cursor_wrong(err);
    return NULL;
}

int rp_cursor_read_id(struct rp_request *q, int64_t *after, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *at = rp_cursor_read(q, err);
    json_int_t id = 0;
    if (at != NULL && json_unpack_ex(at, NULL, JSON_STRICT, "[I]", &id) < 0) rp_cursor_wrong(err);
    *after = id;
    return err->code;
}

const char *rp_cursor_write_id(struct rp_request *q, int64_t id)
{
    return rp_cursor_write(q, json_pack("[I]", (json_int_t)id));
}

const char *rp_cursor_of(struct rp_request *q, enum rp_id_kind kind, int64_t id)
{
    char text[RP_ID_TEXT];
    return rp_arena_strdup(&q->arena, rp_id_format(kind, id, text));
}

void rp_reply_page(struct rp_request *q, int r, const struct rp_error *err, json_t *items, const char *cursor)
{
    if (r == 0) {
        rp_reply_list(q, items, cursor);
        return;
    }
    json_decref(items);
    rp_reply_error(q, err);
}

/* ---- around a change ---- */

void *rp_command_new(struct rp_request *q, size_t size, const struct rp_verb *verb)
{
    RP_ASSERT(size >= sizeof(struct rp_command));
    struct rp_command *command = rp_arena_alloc(&q->arena, size);
    if (command == NULL)
        rp_reply_no_memory(q);
    else
        command->verb = verb;
    return command;
}

const struct rp_upload_rules *rp_request_rules(struct rp_request *q)
{
    const struct rp_config *config = rp_request_config(q);
    struct rp_upload_rules *rules = rp_arena_alloc(&q->arena, sizeof *rules);
    if (rules == NULL) return NULL;
    *rules = (struct rp_upload_rules){ .expire_ms = config->uploads_expire_ms,
                                       .max_size_bytes = config->uploads_max_size,
                                       .max_open_per_tenant = config->uploads_max_open,
                                       .quota_default_bytes = config->quota_default,
                                       .txn_timeout_ms = config->transactions_timeout_ms,
                                       .rollback_grace_ms = config->transactions_rollback_grace_ms,
                                       .scan = config->uploads_scan || config->processor_url[0] != 0 };
    return rules;
}

struct rp_store *const *rp_request_stores(struct rp_request *q, size_t *n)
{
    const struct rp_config *config = rp_request_config(q);
    struct rp_store **stores = rp_arena_array(&q->arena, config->n_stores + 1, sizeof(struct rp_store *));
    *n = 0;
    for (size_t i = 0; stores != NULL && i < config->n_stores; i++) {
        stores[*n] = rp_request_store(q, config->stores[i].name);
        *n += stores[*n] != NULL;
    }
    return stores;
}

void rp_reply_not_found(struct rp_request *q, const char *what, enum rp_id_kind kind, int64_t id)
{
    struct rp_error err = { 0 };
    char text[RP_ID_TEXT];
    rp_error_set(&err, RP_ENOTFOUND, "no %s '%s'", what, rp_id_format(kind, id, text));
    rp_reply_error(q, &err);
}

/* ---- how things look ---- */

json_t *rp_mark_shown(struct rp_request *q, const struct rp_mark *mark)
{
    return rp_mark_line(mark, rp_request_store_name(q, mark->store_id));
}

json_t *rp_file_shown(struct rp_request *q, const struct rp_file *file, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 16);
    struct rp_mark mark;
    struct rp_file_answer answer;
    bool may_wait = file->mark_id != 0 && file->status != RP_FILE_LIVE && file->status != RP_FILE_PURGED &&
                    file->status != RP_FILE_EXPIRED;
    if (may_wait) {
        int r = rp_mark_get(rp_request_catalog(q)->db, file->mark_id, &arena, &mark, err);
        if (r < 0 && r != RP_ENOTFOUND) return NULL;
        may_wait = r == 0 && !rp_state_final(mark.state);
    }
    rp_file_answer_of(file, may_wait ? &mark : NULL, &answer);
    json_t *o = rp_file_json(&answer, rp_request_store_name(q, file->store_id));
    if (o == NULL) rp_error_set(err, RP_ENOMEM, "no memory for a file");
    return o;
}

int rp_confirmers_read(struct rp_request *q, const json_t *names, const struct rp_confirmer_list **out,
                       struct rp_error *err)
{
    const char *texts[RP_CONFIRMATIONS_EACH] = { NULL };
    size_t n = json_array_size(names);
    *out = NULL;
    if (n == 0) return 0;
    struct rp_confirmer_list *by = rp_arena_alloc(&q->arena, sizeof *by);
    if (by == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for confirmations");
    RP_ASSERT(n <= RP_CONFIRMATIONS_EACH); /* the shape's bound */
    for (size_t i = 0; i < n; i++)
        texts[i] = json_string_value(json_array_get(names, i));
    int r = rp_confirmers_find(rp_request_config(q), texts, n, by, err);
    if (r == 0) *out = by;
    return r;
}
