/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - uploads and files: begin, confirm, list, look, delete, restore, and the result of their
 * processing.
 *
 * Whose files they are: owned.h. The command of a tenant carries the token's tenant, and the
 * verb answers "no such file" for all others. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "http/api/marks.h"
#include "http/api/new_file.h"
#include "http/api/owned.h"

#include <string.h>

#define LIST_ARENA_MAX ((size_t)24 << 20)
#define DELETED_MAX    ((size_t)4 << 10)
#define LIST_BYTES_MAX ((size_t)4 << 20) /* of names and metadata in one page; a longer one is cut short */

/* ---- shapes ---- */

static const char *const includes[] = { "deleted", NULL };
static const char *const visibilities[] = { "shown", "hidden", NULL };
static const char *const verdicts[] = { "accept", "reject", NULL };

static const struct rp_field init_fields[] = { RP_NEW_FILE_FIELDS, RP_FIELD_TENANT };
static const struct rp_shape init_shape = RP_SHAPE("file_request", init_fields, "a file whose bytes will come");

static const struct rp_field confirm_fields[] = {
    { RP_FIELD("checksum_sha256", SHA256),
      .help = "verified against the bytes; of a file that lives, held against the one that they were "
              "verified with (checksum_mismatch; not_pending if there was none)" },
};
static const struct rp_shape confirm_shape =
    RP_SHAPE("confirmation", confirm_fields, "what the caller knows of the bytes");

static const struct rp_field list_fields[] = {
    { RP_FIELD("status", CHOICE), .choices = rp_status_names, .help = "only these" },
    { RP_FIELD("prefix", TEXT), .most = RP_FILE_NAME_MAX, .help = "of the name: living files only, in order of name" },
    { RP_FIELD("include", CHOICE), .choices = includes, .help = "deleted ones as well, shown or not" },
    RP_FIELD_TENANT,
    RP_FIELD_LIMIT,
    RP_FIELD_CURSOR,
};
static const struct rp_shape list_shape = RP_SHAPE("files_query", list_fields, "which files");

static const struct rp_field delete_fields[] = {
    { RP_FIELD("grace", DURATION), .help = "how long it can be restored; the store's if not given" },
    { RP_FIELD("at", TIME), .help = "when it is purged; instead of grace" },
    { RP_FIELD("reason", TEXT), .most = RP_REASON_MAX, .help = "for people" },
    { RP_FIELD("visibility", CHOICE), .choices = visibilities, .help = "shown: stays listed with status deleted" },
    { RP_FIELD("confirmations", TEXTS), .most = RP_CONFIRMATIONS_EACH,
      .help = "services that must say yes first, with commas" },
};
static const struct rp_shape delete_shape = RP_SHAPE("deletion", delete_fields, "how a file is deleted");

static const struct rp_field deleted_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_FILE, .required = true, .help = "the file" },
    { RP_FIELD("status", CHOICE), .choices = rp_status_names, .required = true, .help = "deleted" },
    { RP_FIELD("mark", OBJECT), .of = &rp_shape_file_mark, .required = true, .help = "when it goes" },
};
static const struct rp_shape deleted_shape =
    RP_SHAPE("deleted_file", deleted_fields, "a file that waits for its purge");

static const struct rp_field result_fields[] = {
    { RP_FIELD("idempotency_key", TEXT), .required = true, .least = 1, .most = 200,
      .help = "as it was given to the processor" },
    { RP_FIELD("verdict", CHOICE), .choices = verdicts, .required = true,
      .help = "accept makes it live, reject deletes it" },
};
static const struct rp_shape result_shape = RP_SHAPE("processing_result", result_fields, "what a processor found");

static const struct rp_field processed_fields[] = {
    { RP_FIELD("changed", BOOL), .required = true, .help = "false: it came late, and nothing was done" },
    { RP_FIELD("file", OBJECT), .of = &rp_shape_file, .required = true, .help = "as it is now" },
};
static const struct rp_shape processed_shape = RP_SHAPE("processed_file", processed_fields, "what became of a result");

/* ---- what they share ---- */

static bool load_tenant(struct rp_request *q, int64_t id, int64_t *tenant_id);
static const struct rp_owned owned_file = { .word = "file", .kind = RP_ID_FILE, .load = load_tenant };

/* The file of an id, if the caller may know of it. False: answered. */
static bool load_file(struct rp_request *q, int64_t id, struct rp_file *out)
{
    struct rp_error err = { 0 };
    int r = rp_file_get(rp_request_catalog(q)->db, id, &q->arena, out, &err);
    return rp_owned_seen(q, &owned_file, id, r, r == 0 ? out->tenant_id : 0, &err);
}

static bool load_tenant(struct rp_request *q, int64_t id, int64_t *tenant_id)
{
    struct rp_file file;
    if (!load_file(q, id, &file)) return false;
    *tenant_id = file.tenant_id;
    return true;
}

/* NULL: answered. */
static struct rp_file_command *new_command(struct rp_request *q, const struct rp_verb *verb, int64_t tenant_id,
                                           int64_t file_id)
{
    struct rp_command_parts parts;
    struct rp_file_command *c = rp_owned_command(q, sizeof *c, verb, tenant_id, &parts);
    if (c == NULL) return NULL;
    c->rules = parts.rules;
    c->stores = parts.stores;
    c->n_stores = parts.n_stores;
    c->arena = &q->arena;
    c->file_id = file_id;
    c->grace_ms = c->at_ms = -1;
    c->reason = "";
    return c;
}

static struct rp_file_command *command_of(const struct rp_request *q)
{
    return (struct rp_file_command *)q->command;
}

static json_t *answer_json(struct rp_request *q)
{
    const struct rp_file_answer *answer = &command_of(q)->answer;
    return rp_file_json(answer, rp_request_store_name(q, answer->file.store_id));
}

static void then_file(struct rp_request *q)
{
    rp_reply_json(q, 200, answer_json(q));
}

/* ---- begin and confirm ---- */

static void post_file(struct rp_request *q)
{
    struct rp_error err = { 0 };
    int64_t tenant_id;
    int r = rp_request_tenant(q, &tenant_id, &err);
    if (r == RP_EBUSY && !rp_request_may_block(q))
        rp_request_later(q);
    else if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_new_file_submit(q, tenant_id, 0);
}

static void confirm_file(struct rp_request *q)
{
    struct rp_file file;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_FILE, &id) || !load_file(q, id, &file)) return;
    if (file.status == RP_FILE_PENDING && !rp_request_enter(q, file.store_id)) return;
    struct rp_file_command *c = new_command(q, &rp_verb_confirm, file.tenant_id, id);
    if (c == NULL) return;
    const char *checksum = rp_json_get_text(q->body, "checksum_sha256", NULL);
    c->checksum = rp_checksum_bytes(q, checksum);
    if (checksum != NULL && c->checksum == NULL) {
        rp_reply_no_memory(q); /* never confirmed unchecked */
        return;
    }
    /* For any other the answer does not hang on its bytes. A store that cannot be asked is a
     * fact like others: the verb decides, after its key was looked up. */
    if (file.status == RP_FILE_PENDING)
        rp_file_see_or_note(&file, rp_request_store_of(q, file.store_id), c->checksum, &c->seen);
    rp_request_submit(q, &c->command, then_file, NULL);
}

/* ---- look and list ---- */

static void get_file(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_file file;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_FILE, &id) || !load_file(q, id, &file)) return;
    json_t *shown = rp_file_shown(q, &file, &err);
    if (shown == NULL)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, shown);
}

/* With a prefix the list is in order of name, else in order of id; the cursor says where in
 * either. */
static int read_list_query(struct rp_request *q, struct rp_files_query *out, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *cursor = rp_cursor_read(q, err);
    const char *status = rp_json_get_text(q->query, "status", NULL), *name = "";
    json_int_t after_id = 0;
    *out = (struct rp_files_query){ .prefix = rp_json_get_text(q->query, "prefix", NULL),
                                    .deleted = rp_json_get_text(q->query, "include", NULL) != NULL };
    if (status != NULL) (void)rp_status_parse(status, &out->status);
    if (out->prefix != NULL && (status != NULL || out->deleted))
        return rp_error_set(err, RP_EINVAL, "prefix: goes with neither status nor include: it lists living files");
    if (cursor == NULL) return err->code;
    if (json_unpack_ex(cursor, NULL, JSON_STRICT, "[Is]", &after_id, &name) < 0) return rp_cursor_wrong(err);
    out->after_id = after_id;
    out->after_name = rp_arena_strdup(&q->arena, name);
    return out->after_name != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for a list");
}

static size_t weight(const struct rp_file *file)
{
    return strlen(file->name) + strlen(file->key) + (file->metadata != NULL ? strlen(file->metadata) : 0);
}

/* One more than is shown was asked for, so that a cursor is given only if something follows. */
static void reply_files(struct rp_request *q, const struct rp_files *page, size_t limit, bool by_name)
{
    struct rp_error err = { 0 };
    json_t *items = json_array();
    const char *cursor = NULL;
    size_t i = 0, bytes = 0;
    for (; i < page->n && i < limit && bytes < LIST_BYTES_MAX; i++) {
        json_t *shown = rp_file_shown(q, &page->at[i], &err);
        if (shown == NULL) break;
        rp_json_append(items, shown);
        bytes += weight(&page->at[i]);
    }
    if (err.code < 0) {
        json_decref(items);
        rp_reply_error(q, &err);
        return;
    }
    if (i < page->n) {
        const struct rp_file *last = &page->at[i - 1];
        cursor = rp_cursor_write(q, json_pack("[Is]", (json_int_t)last->id, by_name ? last->name : ""));
    }
    rp_reply_list(q, items, cursor);
}

static void list_files(struct rp_request *q)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(LIST_ARENA_MAX);
    struct rp_error err = { 0 };
    struct rp_files_query query;
    struct rp_files page = { 0 };
    size_t limit = rp_page_limit(q);
    int r = read_list_query(q, &query, &err);
    if (r == 0) r = rp_request_tenant(q, &query.tenant_id, &err);
    if (r == 0) r = rp_files_init(&page, limit + 1, &arena, &err);
    if (r == 0) r = rp_files_page(rp_request_catalog(q)->db, &query, &page, &err);
    if (r < 0)
        rp_reply_error(q, &err);
    else
        reply_files(q, &page, limit, query.prefix != NULL);
}

/* ---- delete, restore, result ---- */

/* As text, like that of a new file: deletes come as often. */
static void then_deleted(struct rp_request *q)
{
    const struct rp_file_answer *a = &command_of(q)->answer;
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(DELETED_MAX);
    char file[RP_ID_TEXT], mark[RP_ID_TEXT], marked[RP_TIME_TEXT], due[RP_TIME_TEXT];
    rp_buf_fmt(&b, "{\"id\":\"%s\",\"status\":\"%s\"", rp_id_format(RP_ID_FILE, a->file.id, file),
               rp_status_name(a->file.status));
    rp_buf_fmt(&b, ",\"mark\":{\"id\":\"%s\",\"marked_at\":\"%s\",\"due_at\":\"%s\",\"reason\":",
               rp_id_format(RP_ID_MARK, a->mark_id, mark), rp_time_format(a->marked_at_ms, marked),
               rp_time_format(a->due_at_ms, due));
    rp_json_quote(&b, a->mark_reason);
    rp_buf_str(&b, a->asked_now ? ",\"restorable\":false}}" : "}}");
    rp_reply_text(q, 202, "application/json", rp_buf_text(&b));
}

static int read_deletion(struct rp_request *q, struct rp_file_command *c, struct rp_error *err)
{
    const json_t *confirmations = json_object_get(q->query, "confirmations");
    const char *visibility = rp_json_get_text(q->query, "visibility", "hidden");
    c->grace_ms = rp_json_get_int(q->query, "grace", -1);
    c->at_ms = rp_json_get_int(q->query, "at", -1);
    c->reason = rp_json_get_text(q->query, "reason", "");
    c->shown = strcmp(visibility, "shown") == 0;
    if (c->grace_ms >= 0 && c->at_ms >= 0)
        return rp_error_set(err, RP_EINVAL, "grace and at say the same thing: give one of them");
    return rp_confirmers_read(q, confirmations, &c->confirmations, err);
}

static void delete_file(struct rp_request *q)
{
    struct rp_error err = { 0 };
    int64_t id, tenant_id;
    if (!rp_request_id(q, 0, RP_ID_FILE, &id) || !rp_owned_by(q, &owned_file, id, &tenant_id)) return;
    struct rp_file_command *c = new_command(q, &rp_verb_delete, tenant_id, id);
    if (c == NULL) return;
    if (read_deletion(q, c, &err) < 0) {
        rp_reply_error(q, &err);
        return;
    }
    rp_request_submit(q, &c->command, then_deleted, NULL);
}

static void then_restored(struct rp_request *q)
{
    rp_reply_json(q, 200, rp_restored_file_json(q));
}

static void restore_file(struct rp_request *q)
{
    struct rp_file file;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_FILE, &id) || !load_file(q, id, &file)) return;
    struct rp_reprieve_command *c = rp_restore_command(q, file.tenant_id, 0, id);
    if (c != NULL) rp_request_submit(q, &c->command, then_restored, NULL);
}

static void then_processed(struct rp_request *q)
{
    json_t *o = json_object();
    rp_json_set(o, "changed", json_boolean(command_of(q)->event != NULL));
    rp_json_set(o, "file", answer_json(q));
    rp_reply_json(q, 200, o);
}

static void post_result(struct rp_request *q)
{
    int64_t id, tenant_id;
    if (!rp_request_id(q, 0, RP_ID_FILE, &id) || !rp_owned_by(q, &owned_file, id, &tenant_id)) return;
    struct rp_file_command *c = new_command(q, &rp_verb_result, tenant_id, id);
    if (c == NULL) return;
    c->process_key = rp_json_get_text(q->body, "idempotency_key", "");
    c->accept = strcmp(rp_json_get_text(q->body, "verdict", ""), "accept") == 0;
    rp_request_submit(q, &c->command, then_processed, NULL);
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("POST", "/v1/files", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, post_file), .body = &init_shape,
      .answer = &rp_shape_new_file, .status = 201,
      .errors = "quota_exceeded too_many_open too_big observe_only not_found owner_deleted not_owner full",
      .summary = "Begins an upload: reserves quota, and says where the bytes go and until when.",
      .example = "-X POST -d '{\"name\":\"photos/cat.jpg\",\"size\":5,\"content_type\":\"image/jpeg\"}'" },
    { RP_ROUTE("GET", "/v1/files", RP_FOR_TENANTS, RP_MAY_READ_FILES, list_files), .blocks = true, .query = &list_shape,
      .answer = &rp_shape_file, .many = true,
      .summary = "Lists files: those that people see, or those of one status, or by prefix of the name.",
      .example = "-G -d status=deleted -d limit=20" },
    { RP_ROUTE("GET", "/v1/files/{id}", RP_FOR_TENANTS, RP_MAY_READ_FILES, get_file), .blocks = true,
      .answer = &rp_shape_file, .errors = "not_found", .summary = "Shows one file, with its mark if one waits." },
    { RP_ROUTE("POST", "/v1/files/{id}/confirm", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, confirm_file), .blocks = true,
      .body = &confirm_shape, .answer = &rp_shape_file,
      .errors = "not_found not_uploaded not_pending not_live owner_deleted in_transaction expired size_mismatch "
                "checksum_mismatch",
      .summary = "Says that the bytes are there: they are looked at, and the file lives.",
      .example = "-X POST -d '{}'" },
    { RP_ROUTE("DELETE", "/v1/files/{id}", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, delete_file), .query = &delete_shape,
      .answer = &deleted_shape, .status = 202, .errors = "not_found grace_out_of_range already_marked expired gone",
      .summary = "Deletes a file: it is hidden now, purged when the grace is over, and can be restored until then.",
      .example = "-X DELETE" },
    { RP_ROUTE("POST", "/v1/files/{id}/restore", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, restore_file), .blocks = true,
      .answer = &rp_shape_file, .errors = "not_found too_late name_taken not_marked owner_deleted expired",
      .summary = "Brings a deleted file back, with what was deleted along with it, also from quarantine.",
      .example = "-X POST" },
    { RP_ROUTE("POST", "/v1/files/{id}/result", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, post_result), .body = &result_shape,
      .answer = &processed_shape, .errors = "not_found",
      .summary = "A processor's verdict on a file that waits in scanning; one that comes late changes nothing.",
      .example = "-X POST -d '{\"idempotency_key\":\"KEY\",\"verdict\":\"accept\"}'" },
};
const struct rp_routes rp_routes_files = { routes, sizeof routes / sizeof routes[0] };
