/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_quota.c - `quota`: what tenants use and may use; `rebuild` proves the counters against the
 * ledger. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/text/size.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/quota.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE 500

static int list_row(void *ctx, const struct rp_tenant *tenant, struct rp_error *err)
{
    struct rp_list *l = ctx;
    int64_t fallback = l->cli->session.config.quota_default;
    char limit[RP_SIZE_TEXT], used[RP_SIZE_TEXT], reserved[RP_SIZE_TEXT], open[24];
    (void)err;
    l->last_id = tenant->id;
    snprintf(open, sizeof open, "%" PRId64, tenant->open_uploads);
    const char *cells[] = { tenant->name,
                            rp_show_size(tenant->used_bytes, used),
                            rp_show_size(tenant->reserved_bytes, reserved),
                            rp_show_size(rp_quota_limit_of(tenant, fallback), limit),
                            tenant->has_limit ? "own" : "default",
                            open };
    rp_list_row(l, l->cli->json ? rp_quota_json(tenant, fallback) : NULL, cells);
    return 0;
}

int rp_cmd_quota(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_TEXTS("TENANT"),  RP_NUMBERS("USED"), RP_NUMBERS("RESERVED"),
                                                RP_NUMBERS("LIMIT"), RP_COLUMN("SET"),   RP_NUMBERS("OPEN UPLOADS") };
    struct rp_list l;
    int64_t before;
    int r = 0;
    RP_LIST_INIT(&l, cli, columns, "no tenants yet");
    do {
        before = l.shown;
        r = rp_tenant_each(cli->session.catalog->db, l.last_id, PAGE, list_row, &l, err);
    } while (r == 0 && l.shown - before == PAGE);
    return rp_list_end(&l, r);
}

int rp_cmd_quota_set(struct rp_cli *cli, struct rp_error *err)
{
    const char *text = cli->args.words[2];
    struct rp_quota_command c = { .command = { .verb = &rp_verb_quota_set },
                                  .tenant = cli->args.words[1],
                                  .own = strcmp(text, "default") != 0 };
    char size[RP_SIZE_TEXT];
    int r = c.own ? rp_size_parse(text, &c.limit_bytes, err) : 0;
    if (r < 0) return rp_error_hint(err, "LIMIT is a size, or `default` for the configured one");
    r = rp_cli_run(cli, &c.command, err);
    if (r < 0) return r;
    int64_t fallback = cli->session.config.quota_default;
    rp_tell(cli, rp_quota_json(&c.out, fallback), "%s may store %s\n", c.out.name,
            rp_show_size(rp_quota_limit_of(&c.out, fallback), size));
    return 0;
}

/* ---- rebuild ---- */

static json_t *counts_json(const struct rp_tenant *t)
{
    return json_pack("{s:I,s:I,s:I}", "used", (json_int_t)t->used_bytes, "reserved", (json_int_t)t->reserved_bytes,
                     "open_uploads", (json_int_t)t->open_uploads);
}

/* By tenant, told when it is over: the comparison may begin anew. */
static int keep_difference(void *ctx, const struct rp_tenant *counted, const struct rp_tenant *summed,
                           struct rp_error *err)
{
    json_t *found = ctx;
    if (counted->used_bytes == summed->used_bytes && counted->reserved_bytes == summed->reserved_bytes &&
        counted->open_uploads == summed->open_uploads)
        return 0;
    json_t *o = rp_json_object("tenant", rp_json_text(counted->name), "counted", counts_json(counted), "ledger",
                               counts_json(summed), NULL);
    return rp_json_set(found, counted->name, o) < 0 ? rp_error_set(err, RP_ENOMEM, "out of memory") : 0;
}

static void show_difference(const struct rp_cli *cli, json_t *o)
{
    const json_t *counted = json_object_get(o, "counted"), *ledger = json_object_get(o, "ledger");
    rp_tell(cli, json_incref(o),
            "%s  counted %" PRId64 " used, %" PRId64 " reserved; the ledger says %" PRId64 " and %" PRId64 "\n",
            rp_json_get_text(o, "tenant", ""), rp_json_get_int(counted, "used", 0),
            rp_json_get_int(counted, "reserved", 0), rp_json_get_int(ledger, "used", 0),
            rp_json_get_int(ledger, "reserved", 0));
}

int rp_cmd_quota_rebuild(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *found = json_object();
    bool dry_run = rp_args_has(&cli->args, "dry-run");
    struct rp_quota_proof proof = {
        .command = { .verb = &rp_verb_quota_prove }, .repair = !dry_run, .fn = keep_difference, .ctx = found
    };
    const struct rp_quota_check *check = &proof.out;
    const char *name;
    json_t *difference;
    int r = rp_cli_run(cli, &proof.command, err);
    if (r < 0) return r;
    json_object_foreach(found, name, difference) show_difference(cli, difference);
    rp_tell(cli,
            json_pack("{s:I,s:I,s:b}", "tenants", (json_int_t)check->tenants, "wrong", (json_int_t)check->wrong,
                      "repaired", !dry_run && check->wrong > 0),
            "%" PRId64 " %s, %" PRId64 " wrong%s\n", check->tenants, check->tenants == 1 ? "tenant" : "tenants",
            check->wrong, check->wrong == 0 || dry_run ? "" : "; set right");
    return dry_run && check->wrong > 0 ? rp_error_exit(RP_EFAILED) : 0;
}
