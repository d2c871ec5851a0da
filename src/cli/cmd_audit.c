/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_audit.c - `audit`: the newest rows, the proof that the chain is whole, and all of it as JSON lines. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/audit.h"
#include "catalog/statements.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NEWEST 20

/* ---- the newest ---- */

/* The lanes have no common order: the last rows of each are put in order of time, and the last of those are shown. */
struct newest {
    json_t *rows[NEWEST]; /* oldest first */
    int64_t at_ms[NEWEST];
    size_t n;
};

static void newest_done(struct newest *newest)
{
    for (size_t i = 0; i < newest->n; i++)
        json_decref(newest->rows[i]);
}

static int keep_newest(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    struct newest *k = ctx;
    size_t at = k->n;
    (void)err;
    while (at > 0 && k->at_ms[at - 1] > row->at_ms)
        at--;
    if (k->n == NEWEST && at == 0) return 0;
    if (k->n == NEWEST) {
        json_decref(k->rows[0]);
        memmove(&k->rows[0], &k->rows[1], (NEWEST - 1) * sizeof k->rows[0]);
        memmove(&k->at_ms[0], &k->at_ms[1], (NEWEST - 1) * sizeof k->at_ms[0]);
        k->n--;
        at--;
    }
    memmove(&k->rows[at + 1], &k->rows[at], (k->n - at) * sizeof k->rows[0]);
    memmove(&k->at_ms[at + 1], &k->at_ms[at], (k->n - at) * sizeof k->at_ms[0]);
    k->rows[at] = rp_audit_json(row);
    k->at_ms[at] = row->at_ms;
    k->n++;
    return 0;
}

struct heads {
    int64_t lane[RP_LANE_MAX + 1], seq[RP_LANE_MAX + 1];
    size_t n;
};

static int keep_head(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    struct heads *heads = ctx;
    (void)err;
    if (heads->n > RP_LANE_MAX) return 0;
    heads->lane[heads->n] = row[0].i;
    heads->seq[heads->n++] = row[1].i;
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
    RP_CLEANUP(rp_table_done) struct rp_table table;
    char when[RP_WHEN_TEXT];
    rp_table_init(&table, stdout, columns, 5);
    for (size_t i = 0; i < newest->n; i++) {
        const json_t *o = newest->rows[i];
        const char *cells[] = { rp_show_when(newest->at_ms[i], rp_session_now_ms(&cli->session), when),
                                rp_json_get_text(o, "event", ""), subject_of(json_object_get(o, "details")),
                                rp_json_get_text(o, "actor", ""), rp_json_get_text(o, "mark", "") };
        if (cli->json)
            rp_emit(cli, json_incref(newest->rows[i]));
        else
            rp_table_row(&table, cells);
    }
    rp_table_end(&table);
    if (newest->n == 0) rp_say(cli, "the audit log is empty\n");
}

static int show_audit(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(newest_done) struct newest newest = { .n = 0 };
    struct heads heads = { .n = 0 };
    struct rp_db *db = cli->session.catalog->db;
    int r = rp_db_query(db, RP_SQL(lane_list), NULL, keep_head, &heads, err);
    for (size_t i = 0; i < heads.n && r == 0; i++)
        r = rp_audit_lane(db, heads.lane[i], heads.seq[i] > NEWEST ? heads.seq[i] - NEWEST : 0, keep_newest, &newest,
                          err);
    if (r == 0) show_newest(cli, &newest);
    return r;
}

/* ---- verify ---- */

static int verify_audit(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_audit_verdict v = { 0 };
    int r = rp_audit_verify(cli->session.catalog, &v, err);
    if (r < 0) return r;
    rp_emit(cli, rp_audit_verdict_json(&v));
    if (v.broken) {
        rp_error_set(err, RP_EFAILED, "the audit log is broken at lane %" PRId64 ", row %" PRId64 ": %s", v.lane, v.seq,
                     v.why);
        return rp_error_hint(err, "someone changed the catalog by hand, or it was damaged; a backup tells which");
    }
    if (!cli->json)
        rp_say(cli, "ok: %zu %s, %" PRId64 " rows, %" PRId64 " with erased details; every link holds\n", v.lanes,
               v.lanes == 1 ? "lane" : "lanes", v.rows, v.erased);
    return 0;
}

/* ---- export ---- */

static int export_row(void *ctx, const struct rp_audit_row *row, struct rp_error *err)
{
    (void)ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *o = rp_audit_json(row);
    if (json_dumpf(o, stdout, JSON_COMPACT) < 0 || fputc('\n', stdout) == EOF)
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

int rp_cmd_audit(struct rp_cli *cli, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    const char *verb = args->n_words > 0 ? args->words[0] : "";
    bool verify = strcmp(verb, "verify") == 0, export = strcmp(verb, "export") == 0;
    if (args->n_words > 0 && !verify && !export) return rp_cli_unknown_verb(cli, "verify, export", err);
    if (rp_args_has(args, "lane") && !export) return rp_error_set(err, RP_EINVAL, "--lane goes with `audit export`");
    cli->patient = verify;
    int r = rp_cli_open(cli, err);
    if (r < 0) return r;
    if (verify) return verify_audit(cli, err);
    return export ? export_audit(cli, err) : show_audit(cli, err);
}
