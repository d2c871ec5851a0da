/* SPDX-License-Identifier: Apache-2.0 */
#include "core/quota.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text/json.h"
#include "catalog/audit/audit.h"
#include "core/journal.h"

int64_t rp_quota_limit_of(const struct rp_tenant *tenant, int64_t default_bytes)
{
    return tenant->has_limit ? tenant->limit_bytes : default_bytes;
}

json_t *rp_quota_json(const struct rp_tenant *tenant, int64_t default_bytes)
{
    int64_t limit = rp_quota_limit_of(tenant, default_bytes);
    int64_t left = limit - tenant->used_bytes - tenant->reserved_bytes;
    json_t *o = json_object();
    rp_json_set(o, "tenant", rp_json_text(tenant->name));
    rp_json_set(o, "limit", json_integer(limit));
    rp_json_set(o, "default", json_boolean(!tenant->has_limit));
    rp_json_set(o, "used", json_integer(tenant->used_bytes));
    rp_json_set(o, "reserved", json_integer(tenant->reserved_bytes));
    rp_json_set(o, "available", json_integer(left > 0 ? left : 0));
    rp_json_set(o, "open_uploads", json_integer(tenant->open_uploads));
    return o;
}

static int set_one(struct rp_tx *tx, struct rp_quota_command *c, struct rp_error *err)
{
    struct rp_error why = { 0 };
    int r = rp_tenant_ensure(tx, c->tenant, &c->out, &why);
    if (r == RP_EINVAL) c->command.error = why;
    if (r < 0) {
        *err = why;
        return r == RP_EINVAL ? 0 : r;
    }
    r = rp_tenant_limit(tx, c->out.id, c->own, c->limit_bytes, err);
    c->out.has_limit = c->own;
    c->out.limit_bytes = c->own ? c->limit_bytes : 0;
    if (r < 0) return r;
    struct rp_audit_entry entry = {
        .event = "quota.set", .actor = c->command.actor, .tenant_id = c->out.id, .details = json_object()
    };
    rp_json_set(entry.details, "tenant", rp_json_text(c->out.name));
    rp_json_set(entry.details, "limit", c->own ? json_integer(c->limit_bytes) : json_null());
    return rp_tx_audit(tx, &entry, err);
}

static int run_set(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = set_one(tx, (struct rp_quota_command *)commands[i], err);
    return r;
}

static int add_locks(struct rp_tx *tx, const struct rp_command *command, struct rp_locks *out, struct rp_error *err)
{
    struct rp_tenant tenant = { 0 };
    struct rp_error ignored = { 0 }; /* one that is not there yet is made by run */
    int r = rp_tenant_find(tx->db, ((const struct rp_quota_command *)command)->tenant, &tenant, &ignored);
    if (r < 0 && r != RP_ENOTFOUND) *err = ignored;
    rp_locks_tenant(out, tenant.id);
    return r == RP_ENOTFOUND ? 0 : r;
}

static void log_set(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_quota_command *c = (const struct rp_quota_command *)command;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    if (command->error.code < 0) return;
    json_t *o = rp_quota_json(&c->out, 0);
    if (!c->own) rp_json_set(o, "limit", json_null());
    rp_journal_change(&j, "quota.set", o);
}

const struct rp_verb rp_verb_quota_set = { .name = "quota", .locks = add_locks, .run = run_set, .log = log_set };

static int run_prove(struct rp_tx *tx, struct rp_command *const *commands, size_t n, struct rp_error *err)
{
    struct rp_quota_proof *p = (struct rp_quota_proof *)commands[0];
    RP_ASSERT(n == 1);
    int r = rp_quota_rebuild(tx, p->repair, p->fn, p->ctx, &p->out, err);
    if (r < 0 || !p->repair || p->out.wrong == 0) return r;
    struct rp_audit_entry entry = { .event = "quota.rebuilt",
                                    .actor = p->command.actor,
                                    .details = json_pack("{s:I,s:I}", "tenants", (json_int_t)p->out.tenants, "wrong",
                                                         (json_int_t)p->out.wrong) };
    return rp_tx_audit(tx, &entry, err);
}

static void log_proof(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    const struct rp_quota_proof *p = (const struct rp_quota_proof *)command;
    if (command->error.code < 0 || !p->repair || p->out.wrong == 0) return;
    struct rp_journal j = rp_journal_of(command, log, at_ms);
    rp_journal_change(
        &j, "quota.rebuilt",
        rp_json_object("tenants", json_integer(p->out.tenants), "wrong", json_integer(p->out.wrong), NULL));
}

const struct rp_verb rp_verb_quota_prove = {
    .name = "compare quotas with the ledger", .run = run_prove, .log = log_proof, .alone = true
};
