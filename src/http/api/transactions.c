/* SPDX-License-Identifier: Apache-2.0 */
/* transactions.c - many files that appear together or not at all: begin, add, commit, abort,
 * look. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "core/file/transaction.h"
#include "core/room.h"
#include "http/api/new_file.h"
#include "http/api/owned.h"
#include "http/server/server.h"

#include <stdlib.h>

#define MEMBERS_ARENA_MAX ((size_t)24 << 20)
#define COME_BACK         1 /* of see_members */

/* ---- shapes ---- */

static const char *const states[] = { "open", "committed", "aborted", "expired", NULL };

static const struct rp_field begin_fields[] = {
    { RP_FIELD("timeout", DURATION), .least = 1000, .most = INT64_C(30) * 24 * 3600 * 1000,
      .help = "not committed by then, it never will be; the configured one if not given" },
    RP_FIELD_TENANT,
};
static const struct rp_shape begin_shape = RP_SHAPE("transaction_request", begin_fields, "a transaction to begin");

static const struct rp_field add_fields[] = {
    RP_NEW_FILE_FIELDS,
    { RP_FIELD("replaces", ID), .id = RP_ID_FILE, .help = "a live file that the commit marks" },
};
static const struct rp_shape add_shape = RP_SHAPE("member_request", add_fields, "a file of a transaction");

static const struct rp_field member_metadata_fields[] = {
    { RP_FIELD("file", ID), .id = RP_ID_FILE, .required = true, .help = "a member" },
    { RP_FIELD("values", MAP), .required = true, .most = 64, .help = "names and texts" },
};
static const struct rp_shape member_metadata_shape =
    RP_SHAPE("member_metadata", member_metadata_fields, "what is written with the commit");

static const struct rp_field commit_fields[] = {
    { RP_FIELD("metadata", LIST), .of = &member_metadata_shape, .most = RP_TXN_MEMBERS_MAX,
      .help = "of the members it names" },
};
static const struct rp_shape commit_shape = RP_SHAPE("commit", commit_fields, "what is written with the commit");

static const struct rp_field txn_fields[] = {
    { RP_FIELD("id", ID), .id = RP_ID_TRANSACTION, .required = true, .help = "the transaction" },
    { RP_FIELD("state", CHOICE), .choices = states, .required = true,
      .help = "expired: neither committed nor aborted in time" },
    { RP_FIELD("members", INT), .most = RP_TXN_MEMBERS_MAX, .required = true, .help = "how many files" },
    { RP_FIELD("created_at", TIME), .required = true, .help = "when it began" },
    { RP_FIELD("changed_at", TIME), .required = true, .help = "its last change" },
    { RP_FIELD("ends_at", TIME), .required = true, .help = "it can be committed until then" },
    { RP_FIELD("files", LIST), .of = &rp_shape_file, .most = RP_TXN_MEMBERS_MAX,
      .help = "its members, where they are asked for" },
};
static const struct rp_shape txn_shape = RP_SHAPE("transaction", txn_fields, "files that appear together");

/* ---- what they share ---- */

static bool load_tenant(struct rp_request *q, int64_t id, int64_t *tenant_id);
static const struct rp_owned owned_txn = { .word = "transaction", .kind = RP_ID_TRANSACTION, .load = load_tenant };

/* False: answered. */
static bool load_txn(struct rp_request *q, int64_t id, struct rp_txn *out)
{
    struct rp_error err = { 0 };
    int r = rp_txn_get(rp_request_catalog(q)->db, id, out, &err);
    return rp_owned_seen(q, &owned_txn, id, r, r == 0 ? out->tenant_id : 0, &err);
}

static bool load_tenant(struct rp_request *q, int64_t id, int64_t *tenant_id)
{
    struct rp_txn txn;
    if (!load_txn(q, id, &txn)) return false;
    *tenant_id = txn.tenant_id;
    return true;
}

static struct rp_txn_command *new_command(struct rp_request *q, const struct rp_verb *verb, int64_t tenant_id,
                                          int64_t txn_id)
{
    struct rp_command_parts parts;
    struct rp_txn_command *c = rp_owned_command(q, sizeof *c, verb, tenant_id, &parts);
    if (c == NULL) return NULL;
    c->rules = parts.rules;
    c->stores = parts.stores;
    c->n_stores = parts.n_stores;
    c->arena = &q->arena;
    c->txn_id = txn_id;
    c->timeout_ms = -1;
    return c;
}

static struct rp_txn_command *command_of(const struct rp_request *q)
{
    return (struct rp_txn_command *)q->command;
}

static json_t *txn_json(const struct rp_request *q, const struct rp_txn *txn)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_TRANSACTION, txn->id, id)));
    rp_json_set(o, "state", json_string(rp_txn_state_name(txn, rp_request_now_ms(q))));
    rp_json_set(o, "members", json_integer(txn->members));
    rp_json_set(o, "created_at", rp_json_time(txn->created_at_ms));
    rp_json_set(o, "changed_at", rp_json_time(txn->changed_at_ms));
    rp_json_set(o, "ends_at", rp_json_time(txn->ends_at_ms));
    return o;
}

static void then_txn(struct rp_request *q)
{
    rp_reply_json(q, rp_route_status(q->route), txn_json(q, &command_of(q)->txn));
}

/* ---- begin, add, abort ---- */

static void begin_txn(struct rp_request *q)
{
    struct rp_error err = { 0 };
    int64_t tenant_id;
    int r = rp_request_tenant(q, &tenant_id, &err);
    if (r == RP_EBUSY && !rp_request_may_block(q)) {
        rp_request_later(q);
        return;
    }
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    struct rp_txn_command *c = new_command(q, &rp_verb_txn_begin, tenant_id, 0);
    if (c == NULL) return;
    c->timeout_ms = rp_json_get_int(q->body, "timeout", -1);
    if (rp_rooms_refuse(rp_server_options_of(q->server)->rooms, RP_ROOM_CATALOG, &err) < 0)
        rp_request_refuse(q, &c->command, &err, NULL);
    else
        rp_request_submit(q, &c->command, then_txn, NULL);
}

static void add_file(struct rp_request *q)
{
    int64_t id, tenant_id;
    if (!rp_request_id(q, 0, RP_ID_TRANSACTION, &id) || !rp_owned_by(q, &owned_txn, id, &tenant_id)) return;
    rp_new_file_submit(q, tenant_id, id);
}

static void abort_txn(struct rp_request *q)
{
    int64_t id, tenant_id;
    if (!rp_request_id(q, 0, RP_ID_TRANSACTION, &id) || !rp_owned_by(q, &owned_txn, id, &tenant_id)) return;
    struct rp_txn_command *c = new_command(q, &rp_verb_txn_abort, tenant_id, id);
    if (c == NULL) return;
    rp_request_submit(q, &c->command, then_txn, NULL);
}

/* ---- commit ---- */

static json_t *missing_json(const struct rp_txn_command *c)
{
    json_t *list = json_array(), *o = json_object();
    char id[RP_ID_TEXT];
    for (size_t i = 0; i < c->n_missing; i++)
        rp_json_append(list, json_string(rp_id_format(RP_ID_FILE, c->missing[i], id)));
    rp_json_set(o, "files", list);
    return o;
}

static void not_committed(struct rp_request *q)
{
    const struct rp_txn_command *c = command_of(q);
    rp_reply_problem(q, &c->command.error, c->n_missing > 0 ? missing_json(c) : NULL);
}

static void then_committed(struct rp_request *q)
{
    const struct rp_txn_command *c = command_of(q);
    json_t *o = txn_json(q, &c->txn), *files = json_array();
    for (size_t i = 0; i < c->n_members; i++)
        rp_json_append(files, rp_file_json(&c->members[i], rp_request_store_name(q, c->members[i].file.store_id)));
    rp_json_set(o, "files", files);
    rp_reply_json(q, 200, o);
}

static int read_metadata(struct rp_request *q, struct rp_txn_command *c, struct rp_error *err)
{
    const json_t *list = json_object_get(q->body, "metadata");
    size_t n = json_array_size(list);
    struct rp_txn_metadata *out = rp_arena_array(&q->arena, n + 1, sizeof *out);
    int r = out != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "no memory for the metadata");
    for (size_t i = 0; i < n && r == 0; i++) {
        const json_t *item = json_array_get(list, i);
        out[i].file_id = rp_json_get_int(item, "file", 0);
        r = rp_metadata_text(q, json_object_get(item, "values"), &out[i].json, err);
    }
    c->metadata = out;
    c->n_metadata = n;
    return r;
}

static size_t count_of_store(const struct rp_files *files, size_t from)
{
    size_t n = 1;
    while (from + n < files->n && files->at[from + n].store_id == files->at[from].store_id)
        n++;
    return n;
}

/* By store. The one that has let the request in comes first: where it goes elsewhere before, it would
 * lose its place, and wait again. */
static int by_store(const void *a, const void *b, void *inside)
{
    const struct rp_file *x = a, *y = b;
    const int64_t *first = inside;
    if (x->store_id == y->store_id) return 0;
    if (x->store_id == *first || y->store_id == *first) return x->store_id == *first ? -1 : 1;
    return x->store_id < y->store_id ? -1 : 1;
}

/* COME_BACK: one of their stores has no place now; the handler is run again when it has. */
static int see_members(struct rp_request *q, struct rp_txn_command *c, struct rp_files *members, struct rp_error *err)
{
    struct rp_seen *seen = rp_arena_array(&q->arena, members->n + 1, sizeof *seen);
    int64_t inside = rp_request_inside(q);
    int r = 0;
    if (seen == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the members");
    c->seen = seen;
    if (members->n > 1) qsort_r(members->at, members->n, sizeof *members->at, by_store, &inside);
    for (size_t i = 0, n; i < members->n && r == 0; i += n) {
        n = count_of_store(members, i);
        struct rp_files these = { .at = &members->at[i], .n = n };
        size_t n_seen;
        if (!rp_request_enter(q, these.at[0].store_id)) return COME_BACK;
        r = rp_files_see(&these, c->stores, c->n_stores, &seen[c->n_seen], &n_seen, err);
        c->n_seen += n_seen;
    }
    return r;
}

/* Every member's object is looked at before the one transaction that makes them all visible. */
static int prepare_commit(struct rp_request *q, struct rp_txn_command *c, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(MEMBERS_ARENA_MAX);
    struct rp_files members;
    int r = rp_files_init(&members, RP_TXN_MEMBERS_MAX + 1, &arena, err);
    if (r == 0) r = rp_files_members(rp_request_catalog(q)->db, c->txn_id, &members, err);
    if (r == 0) r = see_members(q, c, &members, err);
    return r != 0 ? r : read_metadata(q, c, err);
}

static void commit_txn(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_txn txn;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_TRANSACTION, &id) || !load_txn(q, id, &txn)) return;
    struct rp_txn_command *c = new_command(q, &rp_verb_txn_commit, txn.tenant_id, id);
    if (c == NULL) return;
    int r = prepare_commit(q, c, &err);
    if (r < 0) rp_reply_error(q, &err);
    if (r != 0) return;
    q->refused = not_committed;
    rp_request_submit(q, &c->command, then_committed, NULL);
}

/* ---- look ---- */

static void get_txn(struct rp_request *q)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(MEMBERS_ARENA_MAX);
    struct rp_error err = { 0 };
    struct rp_files members;
    struct rp_txn txn;
    int64_t id;
    if (!rp_request_id(q, 0, RP_ID_TRANSACTION, &id) || !load_txn(q, id, &txn)) return;
    RP_CLEANUP(rp_json_decrefp) json_t *files = json_array();
    int r = rp_files_init(&members, RP_TXN_MEMBERS_MAX + 1, &arena, &err);
    if (r == 0) r = rp_files_members(rp_request_catalog(q)->db, id, &members, &err);
    for (size_t i = 0; r == 0 && i < members.n; i++) {
        json_t *shown = rp_file_shown(q, &members.at[i], &err);
        r = shown != NULL ? rp_json_append(files, shown) : err.code;
    }
    if (r < 0) {
        rp_reply_error(q, &err);
        return;
    }
    json_t *o = txn_json(q, &txn);
    rp_json_set(o, "files", json_incref(files));
    rp_reply_json(q, 200, o);
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("POST", "/v1/transactions", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, begin_txn), .body = &begin_shape,
      .answer = &txn_shape, .status = 201, .errors = "full",
      .summary = "Begins a transaction: its files appear together, when it is committed, or not at all.",
      .example = "-X POST -d '{\"timeout\":\"30m\"}'" },
    { RP_ROUTE("POST", "/v1/transactions/{id}/files", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, add_file), .body = &add_shape,
      .answer = &rp_shape_new_file, .status = 201,
      .errors = "not_found not_open expired quota_exceeded too_many_open too_big observe_only not_owner full",
      .summary = "Begins an upload that belongs to a transaction, and may replace a live file.",
      .example = "-X POST -d '{\"name\":\"album/1.jpg\",\"size\":5}'" },
    { RP_ROUTE("POST", "/v1/transactions/{id}/commit", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, commit_txn), .blocks = true,
      .body = &commit_shape, .answer = &txn_shape,
      .errors = "not_found not_uploaded not_pending not_live owner_deleted size_mismatch checksum_mismatch changed "
                "not_open expired",
      .body_max = (size_t)8 << 20,
      .summary =
          "Makes every file of the transaction live and marks what they replace, in one step. A refusal lists the "
          "files it is about, and nothing was changed.",
      .example = "-X POST -d '{}'" },
    { RP_ROUTE("POST", "/v1/transactions/{id}/abort", RP_FOR_TENANTS, RP_MAY_WRITE_FILES, abort_txn),
      .answer = &txn_shape, .errors = "not_found not_open",
      .summary = "Gives a transaction up: its files are purged after the rollback grace, all others stay as they are.",
      .example = "-X POST" },
    { RP_ROUTE("GET", "/v1/transactions/{id}", RP_FOR_TENANTS, RP_MAY_READ_FILES, get_txn), .blocks = true,
      .answer = &txn_shape, .errors = "not_found", .summary = "Shows a transaction and its files." },
};
const struct rp_routes rp_routes_transactions = { routes, sizeof routes / sizeof routes[0] };
