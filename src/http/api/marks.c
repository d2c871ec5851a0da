/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - marks of objects, and restores of one; of many: restore.c.
 *
 * Objects of stores belong to nobody but the operator: marking them and listing marks is for
 * admins. A tenant sees and restores the marks of its own files. */
#include "http/api/marks.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/confirm/confirm.h"
#include "core/mark/list.h"
#include "core/mark/mark.h"
#include "core/reprieve/reprieve.h"
#include "core/state.h"
#include "http/api/shapes.h"
#include "lib/answer.h"

#include <stdio.h>
#include <string.h>

#define LOOKED_MAX     20000 /* marks that one page of a list may look at */
#define LIST_ARENA_MAX ((size_t)8 << 20)
#define ITEMS_BODY_MAX ((size_t)4 << 20)

/* ---- shapes ---- */

static const char *const markings[] = { "created", "same", "extended", "refused", NULL };
static const char *const restores[] = { "restored", "already_restored", "returned", "refused", NULL };

/* clang-format off */
#define MARK_FIELDS                                                                                                    \
    { RP_FIELD("store", TEXT), .least = 1, .most = 63, .help = "where the object is" },                 \
    { RP_FIELD("key", TEXT), .least = 1, .most = RP_KEY_MAX, .help = "its key" },                       \
    { RP_FIELD("grace", DURATION), .help = "how long it can be restored; the store's if not given" },   \
    { RP_FIELD("at", TIME), .help = "when it is purged; instead of grace" },                            \
    { RP_FIELD("reason", TEXT), .most = RP_REASON_MAX, .help = "for people" },                          \
    { RP_FIELD("if_unreferenced", BOOL), .help = "only if no row names it: asked now, and again later" },\
    { RP_FIELD("annotate", BOOL), .help = "writes the mark on the object as well" },                    \
    { RP_FIELD("confirmations", TEXTS), .most = RP_CONFIRMATIONS_EACH, .help = "services that must say yes first" }
/* clang-format on */

static const struct rp_field item_fields[] = { MARK_FIELDS };
static const struct rp_shape item_shape = RP_SHAPE("mark_item", item_fields, "one object to mark");

static const struct rp_field post_fields[] = {
    MARK_FIELDS,
    { RP_FIELD("items", LIST), .of = &item_shape, .least = 1, .most = RP_MARK_ITEMS_MAX,
      .help = "many objects; what stands beside the list holds for those that say nothing else" },
};
static const struct rp_shape post_shape = RP_SHAPE("mark_request", post_fields, "an object to mark, or many");

static const struct rp_field outcome_fields[] = {
    { RP_FIELD("subject", TEXT), .required = true, .help = "STORE:KEY" },
    { RP_FIELD("outcome", CHOICE), .choices = markings, .required = true, .help = "what was done" },
    { RP_FIELD("mark", ID), .id = RP_ID_MARK, .help = "the mark" },
    { RP_FIELD("marked_at", TIME), .help = "when it was made" },
    { RP_FIELD("due_at", TIME), .help = "nothing is purged before" },
    { RP_FIELD("reason", TEXT), .help = "of a new mark" },
    { RP_FIELD("size", INT), .most = INT64_MAX, .help = "bytes" },
    { RP_FIELD("annotated", BOOL), .help = "it is written on the object" },
    { RP_FIELD("annotation_failed", TEXT), .help = "the mark stands; why the object does not say so" },
    { RP_FIELD("error", OBJECT), .of = &rp_shape_why, .help = "why it was refused" },
    { RP_FIELD("references", INT), .most = INT64_MAX, .help = "rows that name it" },
    { RP_FIELD("restorable", BOOL),
      .help = "false: a service is asked at once, and then it cannot be restored any more" },
};
static const struct rp_shape outcome_shape = RP_SHAPE("mark_outcome", outcome_fields, "what became of one object");

static const struct rp_field outcomes_fields[] = {
    { RP_FIELD("items", LIST), .of = &outcome_shape, .required = true, .help = "the outcome of each" },
};
static const struct rp_shape outcomes_shape = RP_SHAPE("mark_outcomes", outcomes_fields, "what became of many objects");

static const struct rp_field list_fields[] = {
    { RP_FIELD("state", CHOICE), .choices = rp_state_names, .help = "only these; those that wait if not given" },
    { RP_FIELD("store", TEXT), .least = 1, .most = 63, .help = "only of this store" },
    { RP_FIELD("reason", TEXT), .most = RP_REASON_MAX, .help = "only with this reason" },
    { RP_FIELD("due_before", TIME), .help = "only those due before" },
    RP_FIELD_LIMIT,
    RP_FIELD_CURSOR,
};
static const struct rp_shape list_shape = RP_SHAPE("marks_query", list_fields, "which marks");

static const struct rp_field restored_fields[] = {
    { RP_FIELD("mark", ID), .id = RP_ID_MARK, .required = true, .help = "the mark" },
    { RP_FIELD("subject", TEXT), .required = true, .help = "STORE:KEY" },
    { RP_FIELD("reason", TEXT), .required = true, .help = "the mark's" },
    { RP_FIELD("marked_at", TIME), .required = true, .help = "when it was made" },
    { RP_FIELD("due_at", TIME), .required = true, .help = "when it would have been purged" },
    { RP_FIELD("size", INT), .most = INT64_MAX, .required = true, .help = "bytes" },
    { RP_FIELD("outcome", CHOICE), .choices = restores, .required = true, .help = "what was done" },
    { RP_FIELD("dry_run", BOOL), .help = "nothing was changed" },
    { RP_FIELD("annotation_failed", TEXT), .help = "restored, but the object still says it is marked" },
    { RP_FIELD("deleted_already_by", TEXT), .help = "returned from quarantine, but these services had said yes" },
    { RP_FIELD("error", OBJECT), .of = &rp_shape_why, .help = "why it was refused" },
    { RP_FIELD("file", OBJECT), .of = &rp_shape_file, .help = "of a file's mark: as it is now" },
};
const struct rp_shape rp_shape_restored = RP_SHAPE("restored", restored_fields, "what became of one mark");

/* ---- mark ---- */

struct marking {
    struct rp_mark_command command;
    bool listed;              /* under `items` */
    const char **store_names; /* as they were given; NULL: none was */
};

static int check_item(struct rp_request *q, const json_t *in, const json_t *beside, const char *store,
                      struct rp_mark_request *request, struct rp_error *err)
{
    const json_t *confirmations = json_object_get(in, "confirmations");
    if (json_array_size(confirmations) == 0) confirmations = json_object_get(beside, "confirmations");
    if (store == NULL || request->key == NULL)
        return rp_error_set(err, RP_EINVAL, "%s: is missing", store == NULL ? "store" : "key");
    if (request->grace_ms >= 0 && request->at_ms >= 0)
        return rp_error_set(err, RP_EINVAL, "grace and at say the same thing: give one of them");
    return rp_confirmers_read(q, confirmations, &request->confirmations, err);
}

static struct rp_store *find_store(struct rp_request *q, const char *name, struct rp_error *err)
{
    struct rp_store *store = rp_request_store(q, name);
    if (store == NULL) rp_error_set(err, RP_ENOTFOUND, "no store '%.63s'", name);
    return store;
}

/* What an item does not say is as it stands beside the list. */
static void read_item(struct rp_request *q, const json_t *in, const json_t *beside, struct rp_mark_item *item,
                      const char **store_name)
{
    bool timed = json_object_get(in, "grace") != NULL || json_object_get(in, "at") != NULL;
    const json_t *when = timed ? in : beside;
    struct rp_error why = { 0 };
    *store_name = rp_json_get_text(in, "store", rp_json_get_text(beside, "store", NULL));
    item->request = (struct rp_mark_request){
        .key = rp_json_get_text(in, "key", NULL),
        .grace_ms = rp_json_get_int(when, "grace", -1),
        .at_ms = rp_json_get_int(when, "at", -1),
        .reason = rp_json_get_text(in, "reason", rp_json_get_text(beside, "reason", "")),
        .if_unreferenced = rp_request_bool(in, "if_unreferenced") || rp_request_bool(beside, "if_unreferenced"),
        .annotate = rp_request_bool(in, "annotate") || rp_request_bool(beside, "annotate"),
    };
    if (check_item(q, in, beside, *store_name, &item->request, &why) == 0)
        item->store = find_store(q, *store_name, &why);
    if (why.code < 0) rp_mark_item_refuse(item, &why);
}

static json_t *item_json(const struct marking *m, size_t i)
{
    const struct rp_mark_item *item = &m->command.items[i];
    const char *store = m->store_names[i], *key = item->request.key;
    return rp_mark_answer_json(&item->answer, store != NULL ? store : "", key != NULL ? key : "");
}

static void then_marked_one(struct rp_request *q, const struct marking *m)
{
    const struct rp_mark_answer *a = &m->command.items[0].answer;
    if (a->what != RP_MARK_REFUSED)
        rp_reply_json(q, 201, item_json(m, 0));
    else if (a->error.code == RP_EREFERENCED)
        rp_reply_problem(q, &a->error, json_pack("{s:I}", "references", (json_int_t)a->references));
    else
        rp_reply_error(q, &a->error);
}

static void then_marked(struct rp_request *q)
{
    const struct marking *m = (const struct marking *)q->command;
    bool decided = !m->listed && m->command.items[0].answer.error.code == q->command->error.code;
    if (q->command->error.code < 0 && !decided) {
        rp_reply_error(q, &q->command->error); /* the catalog failed */
        return;
    }
    if (!m->listed) {
        then_marked_one(q, m);
        return;
    }
    json_t *items = json_array(), *o = json_object();
    for (size_t i = 0; i < m->command.n; i++)
        rp_json_append(items, item_json(m, i));
    rp_json_set(o, "items", items);
    rp_reply_json(q, 200, o);
}

static void post_marks(struct rp_request *q)
{
    const json_t *list = json_object_get(q->body, "items");
    size_t n = list != NULL ? json_array_size(list) : 1;
    struct marking *m = rp_arena_alloc(&q->arena, sizeof *m);
    struct rp_mark_item *items = rp_arena_array(&q->arena, n, sizeof *items);
    const char **names = rp_arena_array(&q->arena, n, sizeof *names);
    struct rp_error err = { 0 };
    if (m == NULL || items == NULL || names == NULL) {
        rp_reply_no_memory(q);
        return;
    }
    if (list != NULL && json_object_get(q->body, "key") != NULL) {
        rp_error_set(&err, RP_EINVAL, "key: stands in the items, not beside them");
        rp_reply_error(q, &err);
        return;
    }
    for (size_t i = 0; i < n; i++)
        read_item(q, list != NULL ? json_array_get(list, i) : q->body, list != NULL ? q->body : NULL, &items[i],
                  &names[i]);
    rp_mark_command_init(&m->command, items, n, q->who.actor);
    m->listed = list != NULL;
    m->store_names = names;
    q->refused = then_marked;
    rp_request_submit(q, &m->command.command, then_marked, NULL);
}

/* ---- list and look ---- */

static int read_list_query(struct rp_request *q, struct rp_list_filter *filter, struct rp_list_cursor *cursor,
                           struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *at = rp_cursor_read(q, err);
    const char *state = rp_json_get_text(q->query, "state", NULL),
               *store_name = rp_json_get_text(q->query, "store", NULL);
    const struct rp_store *store = store_name != NULL ? rp_request_store(q, store_name) : NULL;
    json_int_t store_id = 0, ms = 0, id = 0;
    struct rp_store_row row = { 0 };
    *filter = (struct rp_list_filter){ .reason = rp_json_get_text(q->query, "reason", NULL),
                                       .due_before_ms = rp_json_get_int(q->query, "due_before", -1),
                                       .slack_ms = rp_list_slack_ms(rp_request_config(q)) };
    *cursor = (struct rp_list_cursor){ 0 };
    if (state != NULL) (void)rp_state_parse(state, &filter->state);
    int r = store_name != NULL && store == NULL ? rp_store_find(rp_request_catalog(q)->db, store_name, &row, err) : 0;
    if (r == RP_ENOTFOUND) return rp_error_set(err, RP_ENOTFOUND, "no store '%.63s'", store_name);
    filter->store_id = store != NULL ? store->id : row.id;
    if (r < 0 || at == NULL) return err->code;
    if (json_unpack_ex(at, NULL, JSON_STRICT, "[III]", &store_id, &ms, &id) < 0) return rp_cursor_wrong(err);
    *cursor = (struct rp_list_cursor){ .store_id = store_id, .ms = ms, .id = id };
    return 0;
}

static void list_marks(struct rp_request *q)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(LIST_ARENA_MAX);
    struct rp_error err = { 0 };
    struct rp_list_filter filter;
    struct rp_list_cursor at;
    struct rp_marks page = { 0 };
    const char *cursor = NULL;
    int r = read_list_query(q, &filter, &at, &err);
    if (r == 0) r = rp_marks_init(&page, rp_page_limit(q), &arena, &err);
    if (r == 0) r = rp_marks_list(rp_request_catalog(q)->db, &filter, &at, LOOKED_MAX, &page, &err);
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    json_t *items = json_array();
    for (size_t i = 0; i < page.n; i++)
        rp_json_append(items, rp_mark_shown(q, &page.at[i]));
    if (!at.done)
        cursor = rp_cursor_write(q, json_pack("[III]", (json_int_t)at.store_id, (json_int_t)at.ms, (json_int_t)at.id));
    rp_reply_list(q, items, cursor);
}

/* The mark of an id, if the caller may know of it. False: answered. */
static bool load_mark(struct rp_request *q, int64_t id, struct rp_mark *out)
{
    struct rp_error err = { 0 };
    int r = rp_mark_get(rp_request_catalog(q)->db, id, &q->arena, out, &err);
    if (r == RP_ENOTFOUND || (r == 0 && q->who.tenant_id != 0 && q->who.tenant_id != out->tenant_id))
        rp_reply_not_found(q, "mark", RP_ID_MARK, id);
    else if (r < 0)
        rp_reply_error(q, &err);
    else
        return true;
    return false;
}

static void get_mark(struct rp_request *q)
{
    struct rp_mark mark;
    int64_t id;
    json_t *confirmations = NULL;
    struct rp_error err = { 0 };
    if (!rp_request_id(q, 0, RP_ID_MARK, &id) || !load_mark(q, id, &mark)) return;
    if (rp_confirmations_json(rp_request_catalog(q)->db, mark.id, &q->arena, &confirmations, &err) < 0) {
        rp_reply_error(q, &err);
        return;
    }
    json_t *o = rp_mark_shown(q, &mark);
    rp_json_set(o, "confirmations", confirmations);
    rp_reply_json(q, 200, o);
}

/* ---- restore one ---- */

struct rp_reprieve_command *rp_restore_command(struct rp_request *q, int64_t tenant_id, int64_t mark_id,
                                               int64_t file_id)
{
    struct rp_reprieve_command *c = rp_arena_alloc(&q->arena, sizeof *c);
    struct rp_reprieve_item *item = rp_arena_alloc(&q->arena, sizeof *item);
    size_t n = 0;
    struct rp_store *const *stores = rp_request_stores(q, &n);
    if (c == NULL || item == NULL || stores == NULL) {
        rp_reply_no_memory(q);
        return NULL;
    }
    item->mark_id = mark_id;
    item->file_id = file_id;
    rp_reprieve_command_init(c, item, 1, q->who.actor, &q->arena);
    c->command.tenant_id = tenant_id;
    c->stores = stores;
    c->n_stores = n;
    return c;
}

json_t *rp_restored_file_json(struct rp_request *q)
{
    const struct rp_reprieve_command *c = (const struct rp_reprieve_command *)q->command;
    const struct rp_reprieve_item *item = c->items;
    char id[RP_ID_TEXT];
    if (item->file == NULL) return NULL;
    json_t *file = rp_file_json(item->file, rp_request_store_name(q, item->mark.store_id)), *left = json_array();
    for (size_t i = 0; i < c->n_family; i++) {
        if (c->family[i].answer.what != RP_REPRIEVE_REFUSED) continue;
        json_t *o = json_object();
        rp_json_set(o, "id", json_string(rp_id_format(RP_ID_FILE, c->family[i].file_id, id)));
        rp_json_set(o, "error", rp_error_json(&c->family[i].answer.error));
        rp_json_append(left, o);
    }
    if (json_array_size(left) > 0)
        rp_json_set(file, "not_restored", left);
    else
        json_decref(left);
    return file;
}

static void then_restored(struct rp_request *q)
{
    const struct rp_reprieve_item *item = ((struct rp_reprieve_command *)q->command)->items;
    const char *store = rp_request_store_name(q, item->mark.store_id);
    json_t *o = rp_reprieve_answer_json(&item->answer, &item->mark, store, false);
    json_t *file = rp_restored_file_json(q);
    if (file != NULL) rp_json_set(o, "file", file);
    rp_reply_json(q, 200, o);
}

static void restore_mark(struct rp_request *q)
{
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_MARK, &id)) return;
    struct rp_reprieve_command *c = rp_restore_command(q, q->who.tenant_id, id, 0);
    if (c != NULL) rp_request_submit(q, &c->command, then_restored, NULL);
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("POST", "/v1/marks", RP_FOR_ADMINS, RP_MAY_WRITE_MARKS, post_marks), .body = &post_shape,
      .answer = &outcome_shape, .status = 201,
      .also = { { .status = 200, .answer = &outcomes_shape, .help = "with `items`: an outcome each, refusals too" } },
      .errors = "not_found still_referenced references_unknown already_marked guarantee_too_weak observe_only "
                "grace_out_of_range is_file held being_erased not_owner changed",
      .body_max = ITEMS_BODY_MAX, .summary = "Marks an object of a store, or up to 1,000 of them.",
      .example =
          "-X POST -d '{\"store\":\"main\",\"key\":\"avatars/7.png\",\"grace\":\"5d\",\"reason\":\"replaced\"}'" },
    { RP_ROUTE("GET", "/v1/marks", RP_FOR_ADMINS, RP_MAY_READ_MARKS, list_marks), .blocks = true, .query = &list_shape,
      .answer = &rp_shape_mark, .many = true, .errors = "not_found",
      .summary = "Lists marks: those that wait in order of time, store by store, or those of one state. A page may be "
                 "short although a cursor says that more follow.",
      .example = "-G -d state=purged -d limit=20" },
    { RP_ROUTE("GET", "/v1/marks/{id}", RP_FOR_TENANTS, RP_MAY_READ_MARKS, get_mark), .blocks = true,
      .answer = &rp_shape_mark_shown, .errors = "not_found",
      .summary = "Shows one mark; a tenant sees those of its own files." },
    { RP_ROUTE("POST", "/v1/marks/{id}/restore", RP_FOR_TENANTS, RP_MAY_WRITE_MARKS, restore_mark),
      .answer = &rp_shape_restored, .errors = "not_found too_late name_taken not_marked owner_deleted changed",
      .summary = "Restores the subject of one mark; a file with what was deleted along with it, also from quarantine.",
      .example = "-X POST" },
};
const struct rp_routes rp_routes_marks = { routes, sizeof routes / sizeof routes[0] };
