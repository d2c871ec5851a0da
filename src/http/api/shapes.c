/* SPDX-License-Identifier: Apache-2.0 */
#include "http/api/shapes.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/json.h"
#include "base/time.h"
#include "core/state.h"
#include "http/server/server.h"

#include <string.h>

#define WAKE_WITHIN_MS (2 * RP_SECOND_MS)

/* ---- shapes ---- */

static const char *const statuses[] = { "pending", "scanning", "live", "deleted", "purged", "expired", NULL };
static const char *const states[] = { "marked", "checking", "purging", "purged", "reprieved", "dead", "lost", NULL };

static const struct rp_field why_fields[] = {
    { .name = "code", .kind = RP_FIELD_TEXT, .required = true, .help = "stable, as in problem+json" },
    { .name = "message", .kind = RP_FIELD_TEXT, .required = true, .help = "what happened, to what" },
    { .name = "hint", .kind = RP_FIELD_TEXT, .help = "what to do next" },
};
const struct rp_shape rp_shape_why = RP_SHAPE("why", why_fields, "why something was refused");

static const struct rp_field mark_fields[] = {
    { .name = "id", .kind = RP_FIELD_ID, .id = RP_ID_MARK, .required = true, .help = "the mark" },
    { .name = "subject", .kind = RP_FIELD_TEXT, .required = true, .help = "STORE:KEY" },
    { .name = "file", .kind = RP_FIELD_ID, .id = RP_ID_FILE, .help = "the file that the object belongs to" },
    { .name = "state", .kind = RP_FIELD_CHOICE, .choices = states, .required = true, .help = "where it stands" },
    { .name = "reason",
      .kind = RP_FIELD_TEXT,
      .required = true,
      .help = "as it was given, or abandoned, rollback, ..." },
    { .name = "actor", .kind = RP_FIELD_TEXT, .required = true, .help = "who made it" },
    { .name = "marked_at", .kind = RP_FIELD_TIME, .required = true, .help = "when it was made" },
    { .name = "due_at", .kind = RP_FIELD_TIME, .required = true, .help = "nothing is purged before" },
    { .name = "size", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "bytes" },
    { .name = "outcome", .kind = RP_FIELD_TEXT, .help = "how it ended" },
    { .name = "ended_at", .kind = RP_FIELD_TIME, .help = "when it ended" },
    { .name = "only_if", .kind = RP_FIELD_TEXT, .help = "unreferenced: asked again before the purge" },
    { .name = "attempts", .kind = RP_FIELD_INT, .most = INT64_MAX, .help = "failed tries so far" },
    { .name = "run", .kind = RP_FIELD_ID, .id = RP_ID_RUN, .help = "the run that purged it" },
    { .name = "note", .kind = RP_FIELD_TEXT, .help = "what the last look at it said" },
};
const struct rp_shape rp_shape_mark = RP_SHAPE("mark", mark_fields, "a promise to purge its subject at due_at");

static const struct rp_field file_mark_fields[] = {
    { .name = "id", .kind = RP_FIELD_ID, .id = RP_ID_MARK, .required = true, .help = "the mark" },
    { .name = "marked_at", .kind = RP_FIELD_TIME, .help = "when it was made" },
    { .name = "due_at", .kind = RP_FIELD_TIME, .required = true, .help = "the file is purged then, unless restored" },
    { .name = "reason",
      .kind = RP_FIELD_TEXT,
      .required = true,
      .help = "as it was given, or abandoned, rollback, ..." },
};
const struct rp_shape rp_shape_file_mark = RP_SHAPE("file_mark", file_mark_fields, "the mark of a file");

static const struct rp_field processing_fields[] = {
    { .name = "idempotency_key", .kind = RP_FIELD_TEXT, .required = true, .help = "what the result must name" },
};
static const struct rp_shape processing_shape = RP_SHAPE("processing", processing_fields, "what waits for a processor");

static const struct rp_field file_fields[] = {
    { .name = "id", .kind = RP_FIELD_ID, .id = RP_ID_FILE, .required = true, .help = "the file" },
    { .name = "status", .kind = RP_FIELD_CHOICE, .choices = statuses, .required = true, .help = "where it stands" },
    { .name = "name", .kind = RP_FIELD_TEXT, .most = RP_FILE_NAME_MAX, .required = true, .help = "as it was given" },
    { .name = "store", .kind = RP_FIELD_TEXT, .required = true, .help = "where its bytes are" },
    { .name = "key", .kind = RP_FIELD_TEXT, .required = true, .help = "under which key" },
    { .name = "size", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "bytes" },
    { .name = "content_type", .kind = RP_FIELD_TEXT, .help = "as it was given" },
    { .name = "checksum_sha256", .kind = RP_FIELD_SHA256, .help = "as it was promised, and verified when live" },
    { .name = "etag", .kind = RP_FIELD_TEXT, .help = "the store's" },
    { .name = "parent", .kind = RP_FIELD_ID, .id = RP_ID_FILE, .help = "deleted and restored together with it" },
    { .name = "source", .kind = RP_FIELD_ID, .id = RP_ID_FILE, .help = "what it was made from; likewise" },
    { .name = "transaction", .kind = RP_FIELD_ID, .id = RP_ID_TRANSACTION, .help = "it came with" },
    { .name = "replaces", .kind = RP_FIELD_ID, .id = RP_ID_FILE, .help = "what its transaction replaces by it" },
    { .name = "processing", .kind = RP_FIELD_OBJECT, .of = &processing_shape, .help = "while it is scanning" },
    { .name = "metadata", .kind = RP_FIELD_ANY, .help = "names and values" },
    { .name = "created_at", .kind = RP_FIELD_TIME, .required = true, .help = "when its upload began" },
    { .name = "changed_at", .kind = RP_FIELD_TIME, .required = true, .help = "its last change" },
    { .name = "mark", .kind = RP_FIELD_OBJECT, .of = &rp_shape_file_mark, .help = "if one waits" },
};
const struct rp_shape rp_shape_file = RP_SHAPE("file", file_fields, "an upload and what became of it");

static const struct rp_field page_fields[] = { RP_FIELD_LIMIT, RP_FIELD_CURSOR };
const struct rp_shape rp_shape_page = RP_SHAPE("page", page_fields, "which part of a list");

static const struct rp_field tenant_fields[] = { RP_FIELD_TENANT };
const struct rp_shape rp_shape_tenant = RP_SHAPE("of_tenant", tenant_fields, "whose");

/* ---- pages ---- */

size_t rp_page_limit(const struct rp_request *q)
{
    return (size_t)rp_request_int(q->query, "limit", RP_LIST_LIMIT);
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
    const char *text = rp_request_text(q->query, "cursor", NULL);
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

/* ---- around a change ---- */

int64_t rp_request_now_ms(const struct rp_request *q)
{
    return rp_clock_now_ms(rp_server_options_of(q->server)->clock);
}

struct rp_journal rp_request_journal(const struct rp_request *q)
{
    return (struct rp_journal){ .log = rp_server_options_of(q->server)->log,
                                .at_ms = rp_request_now_ms(q),
                                .actor = q->who.actor };
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
                                       .scan = config->uploads_scan };
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

void rp_reply_no_memory(struct rp_request *q)
{
    struct rp_error err = { 0 };
    rp_error_set(&err, RP_ENOMEM, "no memory for this request");
    rp_reply_error(q, &err);
}

/* ---- how things look ---- */

static const char *recorded_name(struct rp_request *q, int64_t store_id)
{
    struct rp_error ignored = { 0 };
    char *name = rp_arena_alloc(&q->arena, RP_STORE_NAME);
    if (name == NULL || !rp_request_may_block(q)) return "?";
    return rp_store_name(rp_request_catalog(q)->db, store_id, name, &ignored) == 0 ? name : "?";
}

const char *rp_request_store_name(struct rp_request *q, int64_t store_id)
{
    const struct rp_store *store = rp_request_store_of(q, store_id);
    return store != NULL ? store->config->name : recorded_name(q, store_id);
}

json_t *rp_mark_shown(struct rp_request *q, const struct rp_mark *mark)
{
    RP_CLEANUP(rp_json_decrefp) json_t *line = rp_mark_line(mark, rp_request_store_name(q, mark->store_id));
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_MARK, mark->id, id)));
    (void)json_object_del(line, "mark");
    if (mark->file_id != 0) rp_json_set(o, "file", json_string(rp_id_format(RP_ID_FILE, mark->file_id, id)));
    (void)rp_json_merge(o, line);
    return o;
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
