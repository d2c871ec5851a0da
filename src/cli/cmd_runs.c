/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_runs.c - `runs`: records, newest first, and runs that have none yet. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/run.h"
#include "cli/cli.h"
#include "cli/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_DEFAULT 20

struct listing {
    struct rp_cli *cli;
    struct rp_table *table;
    int64_t now_ms, shown;
    int64_t only; /* 0: every run */
    json_t *found;
};

static const char *number(const json_t *counts, const char *name, char out[24])
{
    snprintf(out, 24, "%" PRId64, rp_json_get_int(counts, name, 0));
    return out;
}

static void show(struct listing *l, json_t *run, int64_t started_at_ms)
{
    const json_t *counts = json_object_get(run, "counts");
    char started[RP_WHEN_TEXT], took[RP_TIME_TEXT] = "", purged[24], gone[24], skipped[24], failed[24],
                                size[RP_SIZE_TEXT], restored[24];
    l->shown++;
    if (l->cli->json) {
        rp_emit(l->cli, json_incref(run));
        return;
    }
    if (json_object_get(run, "duration_ms") != NULL) rp_duration_format(rp_json_get_int(run, "duration_ms", 0), took);
    snprintf(restored, sizeof restored, "%" PRId64,
             rp_json_get_int(counts, "restored", 0) + rp_json_get_int(counts, "returned", 0));
    const char *cells[] = { rp_json_get_text(run, "id", "?"),
                            rp_json_get_text(run, "kind", "?"),
                            rp_json_get_text(run, "name", ""),
                            rp_json_get_text(run, "outcome", rp_json_get_text(run, "state", "?")),
                            rp_show_when(started_at_ms, l->now_ms, started),
                            took,
                            number(counts, "purged", purged),
                            number(counts, "already_gone", gone),
                            number(counts, "skipped", skipped),
                            number(counts, "failed", failed),
                            rp_show_size(rp_json_get_int(counts, "bytes_freed", 0), size),
                            restored };
    rp_table_row(l->table, cells);
}

static int take_open(void *ctx, const struct rp_run_row *row, struct rp_error *err)
{
    struct listing *l = ctx;
    if (l->only != 0 && row->id != l->only) return 0;
    RP_CLEANUP(rp_json_decrefp) json_t *run = rp_run_open_json(row, rp_worker_is_dead(row->locked_by), err);
    if (run == NULL) return RP_ECORRUPT;
    if (l->only != 0)
        l->found = json_incref(run);
    else
        show(l, run, row->started_at_ms);
    return 0;
}

static int take_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    struct listing *l = ctx;
    RP_CLEANUP(rp_json_decrefp) json_t *run = NULL;
    int r = rp_json_parse(row->body, strlen(row->body), &run, err);
    if (r < 0) return rp_error_wrap(err, RP_ECORRUPT, "the record of a run");
    if (l->only != 0)
        l->found = json_incref(run);
    else
        show(l, run, row->started_at_ms);
    return 0;
}

static int list_runs(struct rp_cli *cli, int64_t limit, struct rp_error *err)
{
    static const struct rp_column columns[] = {
        { "RUN", false, false },     { "KIND", false, false },  { "STORES", false, false }, { "OUTCOME", false, false },
        { "STARTED", false, false }, { "TOOK", true, false },   { "PURGED", true, false },  { "GONE", true, false },
        { "SKIPPED", true, false },  { "FAILED", true, false }, { "FREED", true, false },   { "RESTORED", true, false }
    };
    RP_CLEANUP(rp_table_done) struct rp_table table;
    struct listing l = { .cli = cli, .table = &table, .now_ms = rp_session_now_ms(&cli->session) };
    struct rp_db *db = cli->session.catalog->db;
    rp_table_init(&table, stdout, columns, sizeof columns / sizeof columns[0]);
    int r = rp_run_each_open(db, NULL, take_open, &l, err);
    if (r == 0) r = rp_record_each(db, INT64_MAX, limit > 0 ? limit : INT64_MAX, take_record, &l, err);
    rp_table_end(&table);
    if (r == 0 && l.shown == 0) rp_say(cli, "no runs yet\n");
    return r;
}

/* ---- one run ---- */

static void say_value(const struct rp_cli *cli, const char *name, const json_t *value)
{
    RP_CLEANUP(rp_freep) char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    char shown[RP_SHOWN_MAX];
    rp_say(cli, "%-14s%s\n", name,
           rp_show(json_is_string(value) ? json_string_value(value)
                   : text != NULL        ? text
                                         : "?",
                   shown));
}

static void say_time(const struct rp_cli *cli, const char *name, const json_t *value)
{
    struct rp_error ignored = { 0 };
    char when[RP_WHEN_TEXT];
    int64_t ms;
    if (!json_is_string(value) || rp_time_parse(json_string_value(value), &ms, &ignored) < 0)
        say_value(cli, name, value);
    else
        rp_say(cli, "%-14s%s\n", name, rp_show_when(ms, rp_session_now_ms(&cli->session), when));
}

static void say_extreme(const struct rp_cli *cli, const char *name, const json_t *value)
{
    char subject[RP_SHOWN_MAX], size[RP_SIZE_TEXT], age[RP_TIME_TEXT];
    bool oldest = json_object_get(value, "age_s") != NULL;
    rp_say(cli, "%-14s%s, %s%s\n", name, rp_show(rp_json_get_text(value, "subject", "?"), subject),
           oldest ? rp_duration_format(rp_json_get_int(value, "age_s", 0) * RP_SECOND_MS, age)
                  : rp_show_size(rp_json_get_int(value, "bytes", 0), size),
           oldest ? " old" : "");
}

static void say_member(const struct rp_cli *cli, const char *name, json_t *value)
{
    const char *inner;
    json_t *part;
    size_t i;
    if (strcmp(name, "started_at") == 0 || strcmp(name, "finished_at") == 0) {
        say_time(cli, name, value);
    } else if (strcmp(name, "oldest") == 0 || strcmp(name, "largest") == 0) {
        say_extreme(cli, name, value);
    } else if (json_is_object(value)) {
        json_object_foreach(value, inner, part) say_value(cli, inner, part);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, part) say_value(cli, i == 0 ? name : "", part);
    } else {
        say_value(cli, name, value);
    }
}

static int show_run(struct rp_cli *cli, const char *text, struct rp_error *err)
{
    struct listing l = { .cli = cli };
    struct rp_db *db = cli->session.catalog->db;
    struct rp_error ignored = { 0 };
    const char *name;
    json_t *value;
    int r = rp_cli_id(text, RP_ID_RUN, &l.only, err);
    if (r < 0) return r;
    r = rp_record_get(db, l.only, take_record, &l, err);
    if (r == RP_ENOTFOUND && rp_run_each_open(db, NULL, take_open, &l, &ignored) == 0 && l.found != NULL) r = 0;
    if (r < 0) return r;
    if (!cli->json) json_object_foreach(l.found, name, value) say_member(cli, name, value);
    rp_emit(cli, l.found);
    return 0;
}

int rp_cmd_runs(struct rp_cli *cli, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    int64_t limit = LIMIT_DEFAULT;
    int r = rp_args_number(args, "limit", &limit, err);
    if (r < 0) return r;
    if (args->n_words > 0 && strcmp(args->words[0], "show") != 0) return rp_cli_unknown_verb(cli, "show RUN", err);
    if (args->n_words == 1) return rp_error_set(err, RP_EINVAL, "runs show: which run?");
    r = rp_cli_open(cli, err);
    if (r < 0) return r;
    return args->n_words == 0 ? list_runs(cli, limit, err) : show_run(cli, args->words[1], err);
}
