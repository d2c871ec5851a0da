/* SPDX-License-Identifier: Apache-2.0 */
#include "core/quota.h"

#include "base/error.h"
#include "base/json.h"
#include "catalog/audit.h"

int64_t rp_quota_limit_of(const struct rp_tenant *tenant, int64_t default_bytes)
{
    return tenant->has_limit ? tenant->limit_bytes : default_bytes;
}

json_t *rp_quota_json(const struct rp_tenant *tenant, int64_t default_bytes)
{
    json_t *o = json_object();
    rp_json_set(o, "tenant", rp_json_text(tenant->name));
    rp_json_set(o, "limit", json_integer(rp_quota_limit_of(tenant, default_bytes)));
    rp_json_set(o, "default", json_boolean(!tenant->has_limit));
    rp_json_set(o, "used", json_integer(tenant->used_bytes));
    rp_json_set(o, "reserved", json_integer(tenant->reserved_bytes));
    rp_json_set(o, "open_uploads", json_integer(tenant->open_uploads));
    return o;
}

struct setting {
    const struct rp_tenant *tenant;
    const struct rp_quota_limit *limit;
    const char *actor;
};

static int set_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    const struct setting *s = ctx;
    int r = rp_tenant_limit(tx, s->tenant->id, s->limit->own, s->limit->bytes, err);
    if (r < 0) return r;
    struct rp_audit_entry entry = {
        .event = "quota.set", .actor = s->actor, .tenant_id = s->tenant->id, .details = json_object()
    };
    rp_json_set(entry.details, "tenant", rp_json_text(s->tenant->name));
    rp_json_set(entry.details, "limit", s->limit->own ? json_integer(s->limit->bytes) : json_null());
    return rp_tx_audit(tx, &entry, err);
}

int rp_quota_set(struct rp_catalog *catalog, const char *tenant, const struct rp_quota_limit *limit, const char *actor,
                 struct rp_tenant *out, struct rp_error *err)
{
    struct rp_tenant found;
    struct setting setting = { .tenant = &found, .limit = limit, .actor = actor };
    int r = rp_tenant_make(catalog, tenant, &found, err);
    if (r == 0) r = rp_catalog_transact(catalog, set_tx, &setting, err);
    if (r < 0) return rp_error_wrap(err, r, "quota of '%.63s'", tenant);
    return out != NULL ? rp_tenant_by_id(catalog->db, found.id, out, err) : 0;
}

struct proving {
    bool repair;
    const char *actor;
    rp_quota_fn *fn;
    void *ctx;
    struct rp_quota_check check;
};

static int prove_tx(struct rp_tx *tx, void *ctx, struct rp_error *err)
{
    struct proving *p = ctx;
    int r = rp_quota_rebuild(tx, p->repair, p->fn, p->ctx, &p->check, err);
    if (r < 0 || !p->repair || p->check.wrong == 0) return r;
    struct rp_audit_entry entry = { .event = "quota.rebuilt",
                                    .actor = p->actor,
                                    .details = json_pack("{s:I,s:I}", "tenants", (json_int_t)p->check.tenants, "wrong",
                                                         (json_int_t)p->check.wrong) };
    return rp_tx_audit(tx, &entry, err);
}

int rp_quota_prove(struct rp_catalog *catalog, bool repair, const char *actor, rp_quota_fn *fn, void *ctx,
                   struct rp_quota_check *out, struct rp_error *err)
{
    struct proving p = { .repair = repair, .actor = actor, .fn = fn, .ctx = ctx };
    int r = rp_catalog_transact(catalog, prove_tx, &p, err);
    if (r < 0) return rp_error_wrap(err, r, "compare quotas with the ledger");
    *out = p.check;
    return 0;
}
