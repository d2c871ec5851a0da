/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_hold.c - `hold`, `pause`, `resume`: stops on purging. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "base/utf8.h"
#include "catalog/file.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/hold.h"
#include "core/state.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOLD_ARENA_MAX ((size_t)8 << 20)
#define PAGE           1000

/* ---- list ---- */

struct listing {
    struct rp_cli *cli;
    struct rp_table *table;
    struct rp_names names;
    int64_t now_ms, shown;
};

static void show_hold(struct listing *l, const struct rp_hold_line *line)
{
    const struct rp_hold *hold = &line->hold;
    char id[RP_ID_TEXT], scope[RP_SCOPE_TEXT], when[RP_WHEN_TEXT];
    l->shown++;
    rp_scope_text(hold, rp_names_of(&l->names, hold->store_id), line->tenant, scope);
    rp_id_format(RP_ID_HOLD, hold->id, id);
    if (l->cli->json) {
        rp_emit(l->cli, rp_hold_json(hold, scope));
        return;
    }
    const char *cells[] = { id, scope, rp_show_when(hold->placed_at_ms, l->now_ms, when), hold->actor, hold->reason };
    rp_table_row(l->table, cells);
}

static int show_page(struct listing *l, int64_t *after_id, bool *last, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(HOLD_ARENA_MAX);
    struct rp_hold_line *lines = NULL;
    size_t n = 0;
    int r = rp_holds_list(l->cli->session.catalog->db, *after_id, PAGE, &arena, &lines, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        show_hold(l, &lines[i]);
    if (n > 0) *after_id = lines[n - 1].hold.id;
    *last = n < PAGE;
    return r;
}

static int list_holds(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { { "HOLD", false, false },
                                                { "SCOPE", false, true },
                                                { "PLACED", false, false },
                                                { "BY", false, false },
                                                { "REASON", false, true } };
    RP_CLEANUP(rp_freep) struct listing *l = calloc(1, sizeof *l);
    RP_CLEANUP(rp_table_done) struct rp_table table;
    rp_table_init(&table, stdout, columns, 5);
    if (l == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a list");
    l->cli = cli;
    l->table = &table;
    l->now_ms = rp_session_now_ms(&cli->session);
    int64_t after_id = 0;
    int r = rp_names_load(cli, &l->names, err);
    for (bool last = false; r == 0 && !last;)
        r = show_page(l, &after_id, &last, err);
    rp_table_end(&table);
    if (r == 0 && l->shown == 0) rp_say(cli, "no holds\n");
    return r;
}

/* ---- place ---- */

static int read_prefix(struct rp_cli *cli, const struct rp_scope_name *name, struct rp_arena *arena,
                       struct rp_subject *out, struct rp_error *err)
{
    const char *text = rp_arena_fmt(arena, "%s:%s", name->store, name->key);
    if (text == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a hold");
    return rp_cli_prefix(cli, text, out, err);
}

static int read_scope(struct rp_cli *cli, const char *text, struct rp_arena *arena, struct rp_hold_command *out,
                      struct rp_error *err)
{
    enum rp_id_kind kind;
    int64_t id;
    struct rp_scope_name name = { .scope = RP_SCOPE_SUBJECT }; /* of a mark's id: the subject of that mark */
    struct rp_subject subject;
    int r = rp_id_parse(text, &kind, &id) ? 0 : rp_scope_read(text, arena, &name, err);
    out->scope = name.scope;
    if (r < 0 || name.scope == RP_SCOPE_EVERYTHING) return r;
    out->tenant = name.tenant;
    if (name.scope == RP_SCOPE_TENANT) return 0;
    if (name.scope == RP_SCOPE_PREFIX)
        r = read_prefix(cli, &name, arena, &subject, err);
    else
        r = rp_cli_subject(cli, text, arena, &subject, err);
    if (r < 0) return r;
    out->store = subject.store;
    out->key = subject.key;
    return 0;
}

static json_t *placed_json(const struct rp_names *names, const struct rp_hold_command *c, const char *scope)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object(), *claimed = json_array();
    for (size_t i = 0; i < c->claimed.n; i++)
        rp_json_append(claimed, rp_mark_line(&c->claimed.at[i], rp_names_of(names, c->claimed.at[i].store_id)));
    rp_json_set(o, "id", json_string(rp_id_format(RP_ID_HOLD, c->id, id)));
    rp_json_set(o, "scope", rp_json_text(scope));
    rp_json_set(o, "reason", rp_json_text(c->reason));
    rp_json_set(o, "placed_at", rp_json_time(c->placed_at_ms));
    rp_json_set(o, "claimed", claimed);
    return o;
}

static void say_claimed(const struct rp_cli *cli, const struct rp_names *names, const struct rp_marks *claimed)
{
    char subject[RP_SHOWN_MAX];
    if (cli->json || claimed->n == 0) return;
    rp_warn("%zu %s past the claim already: the purge may still be carried out", claimed->n,
            claimed->n == 1 ? "mark is" : "marks are");
    for (size_t i = 0; i < claimed->n; i++)
        fprintf(stderr, "  %s  %s\n",
                rp_show_subject(rp_names_of(names, claimed->at[i].store_id), claimed->at[i].key, subject),
                rp_state_name(claimed->at[i].state));
}

static int run_command(struct rp_cli *cli, struct rp_hold_command *c, struct rp_error *err)
{
    c->command.actor = cli->session.actor;
    int r = rp_command_run(cli->session.catalog, &c->command);
    if (r < 0) *err = c->command.error;
    return r;
}

static int place_hold(struct rp_cli *cli, const char *scope, const char *reason, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(HOLD_ARENA_MAX);
    RP_CLEANUP(rp_freep) struct rp_names *names = calloc(1, sizeof *names);
    struct rp_hold_command c = { .command = { .verb = &rp_verb_hold_add }, .reason = reason, .arena = &arena };
    char id[RP_ID_TEXT], shown[RP_SHOWN_MAX];
    if (names == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a hold");
    int r = read_scope(cli, scope, &arena, &c, err);
    if (r == 0) r = run_command(cli, &c, err);
    if (r == 0) r = rp_names_load(cli, names, err);
    if (r < 0) return r;
    rp_emit(cli, placed_json(names, &c, scope));
    if (!cli->json)
        rp_say(cli, "%s  holds %s; nothing of it is purged until `reprieve hold rm %s`\n",
               rp_id_format(RP_ID_HOLD, c.id, id), rp_show(scope, shown), id);
    say_claimed(cli, names, &c.claimed);
    return 0;
}

static int check_reason(const char *reason, struct rp_error *err)
{
    if (reason == NULL || reason[0] == 0) {
        rp_error_set(err, RP_EINVAL, "hold add: why? a hold needs --reason");
        return rp_error_hint(err, "whoever finds it in a year will want to know");
    }
    if (strlen(reason) > RP_REASON_MAX)
        return rp_error_set(err, RP_EINVAL, "--reason has %zu bytes; %d are allowed", strlen(reason), RP_REASON_MAX);
    if (!rp_utf8_valid(reason, strlen(reason))) return rp_error_set(err, RP_EINVAL, "--reason is not valid UTF-8");
    return 0;
}

/* ---- lift ---- */

static int lift_hold(struct rp_cli *cli, const char *text, struct rp_error *err)
{
    struct rp_hold_command c = { .command = { .verb = &rp_verb_hold_lift } };
    char shown[RP_ID_TEXT];
    int r = rp_cli_id(text, RP_ID_HOLD, &c.id, err);
    if (r == 0) r = run_command(cli, &c, err);
    if (r == RP_ENOTFOUND) rp_error_hint(err, "`reprieve hold` lists the holds");
    if (r < 0) return r;
    rp_id_format(RP_ID_HOLD, c.id, shown);
    rp_emit(cli, json_pack("{s:s,s:b}", "id", shown, "lifted", 1));
    if (!cli->json) rp_say(cli, "%s  lifted\n", shown);
    return 0;
}

int rp_cmd_hold(struct rp_cli *cli, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    const char *verb = args->n_words > 0 ? args->words[0] : "";
    bool add = strcmp(verb, "add") == 0, rm = strcmp(verb, "rm") == 0;
    if (args->n_words > 0 && !add && !rm) return rp_cli_unknown_verb(cli, "add SCOPE, rm ID", err);
    if (args->n_words == 1) return rp_error_set(err, RP_EINVAL, "hold %s: %s?", verb, add ? "what" : "which");
    int r = add ? check_reason(rp_args_text(args, "reason"), err) : 0;
    if (r == 0) r = rp_cli_open(cli, err);
    if (r < 0) return r;
    if (add) return place_hold(cli, args->words[1], rp_args_text(args, "reason"), err);
    return rm ? lift_hold(cli, args->words[1], err) : list_holds(cli, err);
}

/* ---- pause and resume ---- */

int rp_cmd_pause(struct rp_cli *cli, struct rp_error *err)
{
    const char *reason = rp_args_text(&cli->args, "reason");
    if (reason == NULL) reason = "paused";
    int r = check_reason(reason, err);
    if (r == 0) r = rp_cli_open(cli, err);
    return r < 0 ? r : place_hold(cli, "everything", reason, err);
}

int rp_cmd_resume(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_hold_command c = { .command = { .verb = &rp_verb_resume } };
    int r = rp_cli_open(cli, err);
    if (r == 0) r = run_command(cli, &c, err);
    if (r < 0) return r;
    rp_emit(cli, json_pack("{s:I}", "lifted", (json_int_t)c.lifted));
    if (!cli->json) rp_say(cli, c.lifted > 0 ? "resumed\n" : "nothing was paused\n");
    return 0;
}
