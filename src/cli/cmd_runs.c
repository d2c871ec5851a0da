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

static int show(void *ctx, const struct rp_run_shown *shown, struct rp_error *err)
{
    struct rp_list *l = ctx;
    const json_t *run = shown->run;
    const json_t *counts = json_object_get(run, "counts");
    char started[RP_WHEN_TEXT], took[RP_TIME_TEXT] = "", purged[24], gone[24], skipped[24], failed[24],
                                size[RP_SIZE_TEXT], restored[24];
    (void)err;
    if (json_object_get(run, "duration_ms") != NULL) rp_duration_format(rp_json_get_int(run, "duration_ms", 0), took);
    snprintf(restored, sizeof restored, "%" PRId64,
             rp_json_get_int(counts, "restored", 0) + rp_json_get_int(counts, "returned", 0));
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
                            restored };
    rp_list_row(l, json_incref(shown->run), cells);
    return 0;
}

static int list_runs(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_COLUMN("RUN"),     RP_COLUMN("KIND"),    RP_COLUMN("STORES"),
                                                RP_COLUMN("OUTCOME"), RP_COLUMN("STARTED"), RP_NUMBERS("TOOK"),
                                                RP_NUMBERS("PURGED"), RP_NUMBERS("GONE"),   RP_NUMBERS("SKIPPED"),
                                                RP_NUMBERS("FAILED"), RP_NUMBERS("FREED"),  RP_NUMBERS("RESTORED") };
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

static int show_run(struct rp_cli *cli, struct rp_error *err)
{
    const char *name;
    json_t *value, *run = NULL;
    int64_t id;
    int r = rp_cli_id(cli->args.words[1], RP_ID_RUN, &id, err);
    if (r == 0) r = rp_run_find_json(cli->session.catalog->db, id, &run, err);
    if (r < 0) return r;
    if (!cli->json) json_object_foreach(run, name, value) say_member(cli, name, value);
    rp_emit(cli, run);
    return 0;
}

static int check_limit(struct rp_cli *cli, struct rp_error *err)
{
    int64_t limit;
    return rp_args_number(&cli->args, "limit", &limit, err);
}

int rp_cmd_runs(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_cli_verb verbs[] = {
        { "", 0, 0, NULL, check_limit, list_runs },
        { "show", 2, 0, "runs show: which run?", NULL, show_run },
    };
    return RP_CLI_VERBS(cli, verbs, "show RUN", err);
}
