/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_audit.c - `audit`: the newest rows, the proof that the chain is whole, and all of it as
 * JSON lines. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/audit/audit.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NEWEST 20

/* ---- the newest ---- */

struct newest {
    json_t *rows[NEWEST]; /* newest first */
    int64_t at_ms[NEWEST];
    size_t n;
};

static void newest_done(struct newest *newest)
{
    for (size_t i = 0; i < newest->n; i++)
        json_decref(newest->rows[i]);
}

static int take_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct newest *newest = ctx;
    (void)err;
    newest->at_ms[newest->n] = row->at_ms;
    newest->rows[newest->n++] = rp_audit_json(row);
    return 0;
}

/* Rows are about a mark's subject, a store, a hold or a run. */
static const char *subject_of(const json_t *details)
{
    static const char *const names[] = { "subject", "store", "hold", "id" };
    const char *text = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && text == NULL; i++)
        text = rp_json_get_text(details, names[i], NULL);
    return text != NULL ? text : "";
}

static void show_newest(struct rp_cli *cli, const struct newest *newest)
{
    static const struct rp_column columns[] = { { "AT", false, false },
                                                { "EVENT", false, false },
                                                { "SUBJECT", false, true },
                                                { "BY", false, true },
                                                { "MARK", false, false } };
    struct rp_list l;
    char when[RP_WHEN_TEXT];
    RP_LIST_INIT(&l, cli, columns, "the audit log is empty");
    for (size_t i = newest->n; i-- > 0;) {
        const json_t *o = newest->rows[i];
        const char *cells[] = { rp_show_when(newest->at_ms[i], l.now_ms, when), rp_json_get_text(o, "event", ""),
                                subject_of(json_object_get(o, "details")), rp_json_get_text(o, "actor", ""),
                                rp_json_get_text(o, "mark", "") };
        rp_list_row(&l, json_incref(newest->rows[i]), cells);
    }
    (void)rp_list_end(&l, 0);
}

static int show_audit(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(newest_done) struct newest newest = { .n = 0 };
    struct rp_audit_head heads[RP_LANE_MAX + 1];
    size_t n = 0;
    struct rp_db *db = cli->session.catalog->db;
    int r = rp_audit_heads(db, heads, RP_LANE_MAX + 1, &n, err);
    if (r == 0) r = rp_audit_newest(db, heads, n, NEWEST, take_row, &newest, err);
    if (r == 0) show_newest(cli, &newest);
    return r;
}

/* ---- verify ---- */

static int verify_audit(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_audit_verdict v = { 0 };
    int r = rp_audit_verify(cli->session.catalog, &v, err);
    if (r < 0) return r;
    if (v.broken) {
        rp_emit(cli, rp_audit_verdict_json(&v));
        rp_error_set(err, RP_EFAILED, "the audit log is broken at lane %" PRId64 ", row %" PRId64 ": %s", v.lane, v.seq,
                     v.why);
        return rp_error_hint(err, "someone changed the catalog by hand, or it was damaged; a backup tells which");
    }
    rp_tell(cli, rp_audit_verdict_json(&v),
            "ok: %zu %s, %" PRId64 " rows, %" PRId64 " with erased details; every link holds\n", v.lanes,
            v.lanes == 1 ? "lane" : "lanes", v.rows, v.erased);
    return 0;
}

/* ---- export ---- */

static int export_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    (void)ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *o = rp_audit_json(row);
    if (json_dumpf(o, stdout, JSON_COMPACT | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0)) < 0 ||
        fputc('\n', stdout) == EOF)
        return rp_error_set(err, RP_EFAILED, "the export could not be written");
    return 0;
}

static int export_audit(struct rp_cli *cli, struct rp_error *err)
{
    int64_t lanes[RP_LANE_MAX + 1], only = -1;
    size_t n = 0;
    struct rp_db *db = cli->session.catalog->db;
    int r = rp_args_number(&cli->args, "lane", &only, err);
    if (r == 0) r = rp_audit_lanes(db, lanes, RP_LANE_MAX + 1, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        if (only < 0 || only == lanes[i]) r = rp_audit_lane(db, lanes[i], 0, export_row, NULL, err);
    return r;
}

static int check_lane(struct rp_cli *cli, struct rp_error *err)
{
    bool given = rp_args_has(&cli->args, "lane");
    return given ? rp_error_set(err, RP_EINVAL, "--lane goes with `audit export`") : 0;
}

static int check_verify(struct rp_cli *cli, struct rp_error *err)
{
    cli->patient = true;
    return check_lane(cli, err);
}

int rp_cmd_audit(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_cli_verb verbs[] = {
        { "", 0, 0, NULL, check_lane, show_audit },
        { "verify", 0, 0, NULL, check_verify, verify_audit },
        { "export", 0, 0, NULL, NULL, export_audit },
    };
    return RP_CLI_VERBS(cli, verbs, "verify, export", err);
}
