/* SPDX-License-Identifier: Apache-2.0 */
/* quotas.c - how much a tenant may store, and how much it does. A tenant sees its own, an admin
 * all. */
#include "base/id.h"
#include "base/text/json.h"
#include "core/quota.h"
#include "http/api/shapes.h"

#include <string.h>

/* ---- shapes ---- */

static const struct rp_field quota_fields[] = {
    { RP_FIELD("tenant", TEXT), .required = true, .help = "whose" },
    { RP_FIELD("limit", INT), .most = INT64_MAX, .required = true, .help = "bytes; the one in force" },
    { RP_FIELD("default", BOOL), .required = true, .help = "the limit is the configured default" },
    { RP_FIELD("used", INT), .most = INT64_MAX, .required = true, .help = "bytes of confirmed files" },
    { RP_FIELD("reserved", INT), .most = INT64_MAX, .required = true, .help = "bytes of open uploads" },
    { RP_FIELD("available", INT), .most = INT64_MAX, .required = true, .help = "what still fits" },
    { RP_FIELD("open_uploads", INT), .most = INT64_MAX, .required = true, .help = "how many" },
};
static const struct rp_shape quota_shape = RP_SHAPE("quota", quota_fields, "what a tenant may store, and does");

static const struct rp_field set_fields[] = {
    { RP_FIELD("limit", SIZE), .help = "bytes, or such as 10GiB" },
    { RP_FIELD("default", BOOL), .help = "true, instead of a limit: the configured default again" },
};
static const struct rp_shape set_shape = RP_SHAPE("quota_limit", set_fields, "a limit, or none of its own");

/* ---- handlers ---- */

static json_t *quota_json(const struct rp_request *q, const struct rp_tenant *t)
{
    return rp_quota_json(t, rp_request_config(q)->quota_default);
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
    rp_reply_json(q, 200, quota_json(q, &((struct rp_quota_command *)q->command)->out));
}

static void put_quota(struct rp_request *q)
{
    struct rp_error err = { 0 };
    struct rp_quota_command *c = rp_command_new(q, sizeof *c, &rp_verb_quota_set);
    bool by_default = rp_request_bool(q->body, "default");
    int64_t limit = rp_json_get_int(q->body, "limit", -1);
    if (c == NULL) return;
    if ((limit >= 0) == by_default) {
        rp_error_set(&err, RP_EINVAL, "limit: give either a limit or \"default\": true");
        rp_reply_error(q, &err);
        return;
    }
    c->tenant = q->args[0];
    c->own = !by_default;
    c->limit_bytes = limit;
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
    struct page page = { .q = q, .items = json_array(), .limit = rp_page_limit(q) };
    int64_t after;
    int r = rp_cursor_read_id(q, &after, &err);
    if (r == 0) r = rp_tenant_each(rp_request_catalog(q)->db, after, (int64_t)page.limit + 1, add_tenant, &page, &err);
    rp_reply_page(q, r, &err, page.items, page.seen > page.limit ? rp_cursor_write_id(q, page.last_id) : NULL);
}

/* ---- the table ---- */

static const struct rp_route routes[] = {
    { RP_ROUTE("GET", "/v1/quotas", RP_FOR_ADMINS, RP_MAY_ADMINISTER, list_quotas), .blocks = true,
      .query = &rp_shape_page, .answer = &quota_shape, .many = true,
      .summary = "Lists every tenant with what it may store and does." },
    { RP_ROUTE("GET", "/v1/quotas/{tenant}", RP_FOR_TENANTS, RP_MAY_READ_FILES, get_quota), .blocks = true,
      .answer = &quota_shape, .errors = "not_found",
      .summary = "Shows what a tenant may store and does; a tenant sees its own." },
    { RP_ROUTE("PUT", "/v1/quotas/{tenant}", RP_FOR_ADMINS, RP_MAY_ADMINISTER, put_quota), .body = &set_shape,
      .answer = &quota_shape,
      .summary = "Sets a tenant's limit; one below what is used refuses new uploads and deletes nothing.",
      .example = "-X PUT -d '{\"limit\":\"10GiB\"}'" },
};
const struct rp_routes rp_routes_quotas = { routes, sizeof routes / sizeof routes[0] };
