/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_runs.c - `runs`: records, newest first, and runs that have none yet. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_DEFAULT 20

static const char *number(const json_t *counts, const char *name, char out[24])
{
    snprintf(out, 24, "%" PRId64, rp_json_get_int(counts, name, 0));
    return out;
}

static int64_t sum_of(const json_t *run, const char *name)
{
    const char *what;
    json_t *rows;
    int64_t sum = 0;
    json_object_foreach(json_object_get(run, name), what, rows) sum += json_integer_value(rows);
    return sum;
}

/* What the columns of a sweep do not say. */
static const char *did(const json_t *run, char out[64])
{
    const json_t *counts = json_object_get(run, "counts");
    const struct {
        const char *what;
        int64_t n;
    } others[] = {
        { "repaired", sum_of(run, "repaired") },
        { "let go", sum_of(run, "let_go") },
        { "restored", rp_json_get_int(counts, "restored", 0) + rp_json_get_int(counts, "returned", 0) },
        { "marked", rp_json_get_int(counts, "marked", 0) },
    };
    size_t i = 0, n = sizeof others / sizeof others[0];
    while (i < n && others[i].n == 0)
        i++;
    out[0] = 0;
    if (i < n) snprintf(out, 64, "%" PRId64 " %s", others[i].n, others[i].what);
    return out;
}

static int show(void *ctx, const struct rp_run_shown *shown, struct rp_error *err)
{
    struct rp_list *l = ctx;
    const json_t *run = shown->run;
    const json_t *counts = json_object_get(run, "counts");
    char started[RP_WHEN_TEXT], took[RP_TIME_TEXT] = "", purged[24], gone[24], skipped[24], failed[24],
                                size[RP_SIZE_TEXT], other[64];
    (void)err;
    if (json_object_get(run, "duration_ms") != NULL) rp_duration_format(rp_json_get_int(run, "duration_ms", 0), took);
    const char *cells[] = { rp_json_get_text(run, "id", "?"),
                            rp_json_get_text(run, "kind", "?"),
                            rp_json_get_text(run, "name", ""),
                            rp_json_get_text(run, "outcome", rp_json_get_text(run, "state", "?")),
                            rp_show_when(shown->started_at_ms, l->now_ms, started),
                            took,
                            number(counts, "purged", purged),
                            number(counts, "already_gone", gone),
                            number(counts, "skipped", skipped),
                            number(counts, "failed", failed),
                            rp_show_size(rp_json_get_int(counts, "bytes_freed", 0), size),
                            did(run, other) };
    rp_list_row(l, json_incref(shown->run), cells);
    return 0;
}

int rp_cmd_runs(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_COLUMN("RUN"),     RP_COLUMN("KIND"),    RP_COLUMN("NAME"),
                                                RP_COLUMN("OUTCOME"), RP_COLUMN("STARTED"), RP_NUMBERS("TOOK"),
                                                RP_NUMBERS("PURGED"), RP_NUMBERS("GONE"),   RP_NUMBERS("SKIPPED"),
                                                RP_NUMBERS("FAILED"), RP_NUMBERS("FREED"),  RP_COLUMN("DID") };
    struct rp_list l;
    int64_t limit = LIMIT_DEFAULT;
    int r = rp_args_number(&cli->args, "limit", &limit, err);
    if (r < 0) return r;
    RP_LIST_INIT(&l, cli, columns, "no runs yet");
    r = rp_runs_each_json(cli->session.catalog->db, INT64_MAX, limit > 0 ? limit : INT64_MAX, show, &l, err);
    return rp_list_end(&l, r);
}

/* ---- one run ---- */

static void say_value(const struct rp_cli *cli, const char *name, const json_t *value)
{
    RP_CLEANUP(rp_freep) char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    char shown[RP_SHOWN_MAX];
    rp_say(cli, "%-16s%s\n", name,
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
        rp_say(cli, "%-16s%s\n", name, rp_show_when(ms, rp_session_now_ms(&cli->session), when));
}

/* Sweeps look at marks that are not purged then: in use, failed, kept by a hold. */
static bool left_some(const json_t *run)
{
    const json_t *counts = json_object_get(run, "counts");
    int64_t gone = rp_json_get_int(counts, "purged", 0) + rp_json_get_int(counts, "already_gone", 0);
    return strcmp(rp_json_get_text(run, "kind", ""), "sweep") == 0 && gone < rp_json_get_int(counts, "scanned", 0);
}

static void say_extreme(const struct rp_cli *cli, const char *name, const json_t *value, bool some)
{
    char subject[RP_SHOWN_MAX], size[RP_SIZE_TEXT], age[RP_TIME_TEXT];
    bool oldest = json_object_get(value, "age_s") != NULL;
    rp_say(cli, "%-16s%s, %s%s%s\n", name, rp_show(rp_json_get_text(value, "subject", "?"), subject),
           oldest ? rp_duration_format(rp_json_get_int(value, "age_s", 0) * RP_SECOND_MS, age)
                  : rp_show_size(rp_json_get_int(value, "bytes", 0), size),
           oldest ? " old" : "", some ? "; of all that it looked at, purged or not" : "");
}

/* Figures that belong together, under their name. */
static void say_group(const struct rp_cli *cli, const char *name, json_t *group)
{
    const char *inner;
    json_t *part;
    char indented[80];
    rp_say(cli, "%s\n", name);
    json_object_foreach(group, inner, part)
    {
        snprintf(indented, sizeof indented, "  %.70s", inner);
        say_value(cli, indented, part);
    }
}

static void say_member(const struct rp_cli *cli, const json_t *run, const char *name, json_t *value)
{
    const char *inner;
    json_t *part;
    size_t i;
    if (strcmp(name, "started_at") == 0 || strcmp(name, "finished_at") == 0) {
        say_time(cli, name, value);
    } else if (strcmp(name, "oldest") == 0 || strcmp(name, "largest") == 0) {
        say_extreme(cli, name, value, left_some(run));
    } else if (json_is_object(value) && strcmp(name, "counts") != 0) {
        say_group(cli, name, value);
    } else if (json_is_object(value)) {
        json_object_foreach(value, inner, part) say_value(cli, inner, part);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, part) say_value(cli, i == 0 ? name : "", part);
    } else {
        say_value(cli, name, value);
    }
}

int rp_cmd_runs_show(struct rp_cli *cli, struct rp_error *err)
{
    const char *name;
    json_t *value, *run = NULL;
    int64_t id;
    int r = rp_cli_id(cli->args.words[1], RP_ID_RUN, &id, err);
    if (r == 0) r = rp_run_find_json(cli->session.catalog->db, id, &run, err);
    if (r < 0) return r;
    if (!cli->json) json_object_foreach(run, name, value) say_member(cli, run, name, value);
    rp_emit(cli, run);
    return 0;
}

int rp_cmd_runs_check(struct rp_cli *cli, struct rp_error *err)
{
    int64_t limit;
    return rp_args_number(&cli->args, "limit", &limit, err);
}
