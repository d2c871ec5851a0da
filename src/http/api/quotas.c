/* SPDX-License-Identifier: Apache-2.0 */
/* quotas.c - how much a tenant may store, and how much it does. A tenant sees its own, an admin all. */
#include "base/id.h"
#include "base/json.h"
#include "core/quota.h"
#include "http/api/shapes.h"

#include <string.h>

/* ---- shapes ---- */

static const struct rp_field quota_fields[] = {
    { .name = "tenant", .kind = RP_FIELD_TEXT, .required = true, .help = "whose" },
    { .name = "limit", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "bytes; the one in force" },
    { .name = "default", .kind = RP_FIELD_BOOL, .required = true, .help = "the limit is the configured default" },
    { .name = "used", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "bytes of confirmed files" },
    { .name = "reserved", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "bytes of open uploads" },
    { .name = "available", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "what still fits" },
    { .name = "open_uploads", .kind = RP_FIELD_INT, .most = INT64_MAX, .required = true, .help = "how many" },
};
static const struct rp_shape quota_shape = RP_SHAPE("quota", quota_fields, "what a tenant may store, and does");

static const struct rp_field set_fields[] = {
    { .name = "limit", .kind = RP_FIELD_SIZE, .help = "bytes, or such as 10GiB" },
    { .name = "default", .kind = RP_FIELD_BOOL, .help = "true, instead of a limit: the configured default again" },
};
static const struct rp_shape set_shape = RP_SHAPE("quota_limit", set_fields, "a limit, or none of its own");

/* ---- handlers ---- */

static json_t *quota_json(const struct rp_request *q, const struct rp_tenant *t)
{
    int64_t by_default = rp_request_config(q)->quota_default;
    int64_t left = rp_quota_limit_of(t, by_default) - t->used_bytes - t->reserved_bytes;
    json_t *o = rp_quota_json(t, by_default);
    rp_json_set(o, "available", json_integer(left > 0 ? left : 0));
    return o;
}

/* Another tenant's is answered like one that does not exist. */
static void get_quota(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_tenant tenant;
    const char *name = q->args[0];
    bool own = q->who.tenant_id == 0 || strcmp(name, q->who.tenant) == 0;
    int r = own ? rp_tenant_find(rp_request_catalog(q)->db, name, &tenant, &err) : RP_ENOTFOUND;
    if (r == RP_ENOTFOUND) rp_error_set(&err, RP_ENOTFOUND, "no tenant '%.63s'", name);
    if (r < 0)
        rp_reply_error(q, &err);
    else
        rp_reply_json(q, 200, quota_json(q, &tenant));
}

static void then_set(struct rp_request *q)
{
    if (q->command->error.code < 0)
        rp_reply_error(q, &q->command->error);
    else
        rp_reply_json(q, 200, quota_json(q, &((struct rp_quota_command *)q->command)->out));
}

static void put_quota(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_quota_command *c = rp_arena_alloc(&q->arena, sizeof *c);
    bool by_default = rp_request_bool(q->body, "default");
    int64_t limit = rp_request_int(q->body, "limit", -1);
    if (c == NULL) {
        rp_reply_no_memory(q);
        return;
    }
    if ((limit >= 0) == by_default) {
        rp_error_set(&err, RP_EINVAL, "limit: give either a limit or \"default\": true");
        rp_reply_error(q, &err);
        return;
    }
    *c = (struct rp_quota_command){
        .command = { .verb = &rp_verb_quota_set }, .tenant = q->args[0], .own = !by_default, .limit_bytes = limit
    };
    rp_request_submit(q, &c->command, then_set, NULL);
}

struct page {
    const struct rp_request *q;
    json_t *items;
    size_t limit, seen;
    int64_t last_id;
};

static int add_tenant(void *ctx, const struct rp_tenant *tenant, struct rp_error *err)
{
    struct page *page = ctx;
    if (page->seen++ == page->limit) return 0;
    page->last_id = tenant->id;
    if (rp_json_append(page->items, quota_json(page->q, tenant)) == 0) return 0;
    return rp_error_set(err, RP_ENOMEM, "no memory for a list");
}

static void list_quotas(struct rp_request *q)
{
    struct rp_error err = { 0 };
    json_int_t after_id = 0;
    json_t *at = rp_cursor_read(q, &err);
    struct page page = { .q = q, .items = json_array(), .limit = rp_page_limit(q) };
    if (at != NULL && json_unpack_ex(at, NULL, JSON_STRICT, "[I]", &after_id) < 0) rp_cursor_wrong(&err);
    json_decref(at);
    int r = err.code;
    if (r == 0)
        r = rp_tenant_each(rp_request_catalog(q)->db, after_id, (int64_t)page.limit + 1, add_tenant, &page, &err);
    if (r < 0) {
        json_decref(page.items);
        rp_reply_error(q, &err);
        return;
    }
    bool more = page.seen > page.limit;
    rp_reply_list(q, page.items, more ? rp_cursor_write(q, json_pack("[I]", (json_int_t)page.last_id)) : NULL);
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { .method = "GET",
      .path = "/v1/quotas",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_ADMINISTER,
      .blocks = true,
      .handler = list_quotas,
      .query = &rp_shape_page,
      .answer = &quota_shape,
      .many = true,
      .status = 200,
      .errors = "",
      .summary = "Lists every tenant with what it may store and does.",
      .example = "" },
    { .method = "GET",
      .path = "/v1/quotas/{tenant}",
      .audience = RP_FOR_TENANTS,
      .scope = RP_MAY_READ_FILES,
      .blocks = true,
      .handler = get_quota,
      .answer = &quota_shape,
      .status = 200,
      .errors = "not_found",
      .summary = "Shows what a tenant may store and does; a tenant sees its own.",
      .example = "" },
    { .method = "PUT",
      .path = "/v1/quotas/{tenant}",
      .audience = RP_FOR_ADMINS,
      .scope = RP_MAY_ADMINISTER,
      .handler = put_quota,
      .body = &set_shape,
      .answer = &quota_shape,
      .status = 200,
      .errors = "",
      .summary = "Sets a tenant's limit; one below what is used refuses new uploads and deletes nothing.",
      .example = "-X PUT -d '{\"limit\":\"10GiB\"}'" },
};
const struct rp_routes rp_routes_quotas = { routes, sizeof routes / sizeof routes[0] };
