/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_hold.c - `hold`, `pause`, `resume`: stops on purging. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/text/utf8.h"
#include "base/time.h"
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

static void show_hold(struct rp_list *l, const struct rp_names *names, const struct rp_hold_line *line)
{
    const struct rp_hold *hold = &line->hold;
    char id[RP_ID_TEXT], scope[RP_SCOPE_TEXT], when[RP_WHEN_TEXT];
    rp_scope_text(hold, rp_names_of(names, hold->store_id), line->tenant, scope);
    const char *cells[] = { rp_id_format(RP_ID_HOLD, hold->id, id), scope,
                            rp_show_when(hold->placed_at_ms, l->now_ms, when), hold->actor, hold->reason };
    rp_list_row(l, l->cli->json ? rp_hold_json(hold, scope) : NULL, cells);
    l->last_id = hold->id;
}

static int show_page(struct rp_list *l, const struct rp_names *names, bool *last, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(HOLD_ARENA_MAX);
    struct rp_hold_line *lines = NULL;
    size_t n = 0;
    int r = rp_holds_list(l->cli->session.catalog->db, l->last_id, PAGE, &arena, &lines, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        show_hold(l, names, &lines[i]);
    *last = n < PAGE;
    return r;
}

int rp_cmd_hold(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_COLUMN("HOLD"), RP_TEXTS("SCOPE"), RP_COLUMN("PLACED"),
                                                RP_COLUMN("BY"), RP_TEXTS("REASON") };
    RP_CLEANUP(rp_freep) struct rp_names *names = calloc(1, sizeof *names);
    struct rp_list l;
    if (names == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a list");
    RP_LIST_INIT(&l, cli, columns, "no holds");
    int r = rp_names_load(cli, names, err);
    for (bool last = false; r == 0 && !last;)
        r = show_page(&l, names, &last, err);
    return rp_list_end(&l, r);
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
    if (out->store != NULL) rp_session_look(&cli->session, out->store);
    return 0;
}

static const char *name_of(void *ctx, int64_t store_id)
{
    return rp_names_of(ctx, store_id);
}

static void say_claimed(const struct rp_cli *cli, const struct rp_names *names, const struct rp_hold_command *c)
{
    const struct rp_marks *claimed = &c->claimed;
    int64_t more = c->claimed_total - (int64_t)claimed->n;
    char subject[RP_SHOWN_MAX];
    if (cli->json || claimed->n == 0) return;
    rp_warn("%" PRId64 " %s past the claim already: the purge may still be carried out", c->claimed_total,
            c->claimed_total == 1 ? "mark is" : "marks are");
    for (size_t i = 0; i < claimed->n; i++)
        fprintf(stderr, "  %s  %s\n",
                rp_show_subject(rp_names_of(names, claimed->at[i].store_id), claimed->at[i].key, subject),
                rp_state_name(claimed->at[i].state));
    if (more > 0) fprintf(stderr, "  and %" PRId64 " more: see `reprieve marks`\n", more);
}

static int place_hold(struct rp_cli *cli, const char *scope, const char *reason, struct rp_error *err)
{
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(HOLD_ARENA_MAX);
    RP_CLEANUP(rp_freep) struct rp_names *names = calloc(1, sizeof *names);
    struct rp_hold_command c = { .command = { .verb = &rp_verb_hold_add }, .reason = reason, .arena = &arena };
    char id[RP_ID_TEXT], shown[RP_SHOWN_MAX], lift[RP_ID_TEXT + 16];
    if (names == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a hold");
    int r = read_scope(cli, scope, &arena, &c, err);
    if (r == 0) r = rp_cli_run(cli, &c.command, err);
    if (r == 0) r = rp_names_load(cli, names, err);
    if (r < 0) return r;
    rp_id_format(RP_ID_HOLD, c.id, id);
    bool pause = c.scope == RP_SCOPE_EVERYTHING;
    snprintf(lift, sizeof lift, "%s%s", pause ? "resume" : "hold rm ", pause ? "" : id);
    rp_tell(cli, rp_placed_json(&c, scope, name_of, names),
            "%s  holds %s; nothing of it is purged until `reprieve %s`\n", id, rp_show(scope, shown), lift);
    say_claimed(cli, names, &c);
    return 0;
}

static int check_reason(const char *reason, struct rp_error *err)
{
    if (reason == NULL || reason[0] == 0)
        return rp_error_advise(err, RP_EINVAL, "whoever finds it in a year will want to know",
                               "hold add: why? a hold needs --reason");
    if (strlen(reason) > RP_REASON_MAX)
        return rp_error_set(err, RP_EINVAL, "--reason has %zu bytes; %d are allowed", strlen(reason), RP_REASON_MAX);
    if (!rp_utf8_valid(reason, strlen(reason))) return rp_error_set(err, RP_EINVAL, "--reason is not valid UTF-8");
    return 0;
}

/* ---- lift ---- */

int rp_cmd_hold_rm(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_hold_command c = { .command = { .verb = &rp_verb_hold_lift } };
    char shown[RP_ID_TEXT];
    int r = rp_cli_id(cli->args.words[1], RP_ID_HOLD, &c.id, err);
    if (r == 0) r = rp_cli_run(cli, &c.command, err);
    if (r == RP_ENOTFOUND) rp_error_hint(err, "`reprieve hold` lists the holds");
    if (r < 0) return r;
    rp_id_format(RP_ID_HOLD, c.id, shown);
    rp_tell(cli, rp_lifted_json(c.id), "%s  lifted\n", shown);
    return 0;
}

int rp_cmd_hold_add_check(struct rp_cli *cli, struct rp_error *err)
{
    return check_reason(rp_args_text(&cli->args, "reason"), err);
}

int rp_cmd_hold_add(struct rp_cli *cli, struct rp_error *err)
{
    return place_hold(cli, cli->args.words[1], rp_args_text(&cli->args, "reason"), err);
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
    if (r == 0) r = rp_cli_run(cli, &c.command, err);
    if (r < 0) return r;
    json_t *o = json_pack("{s:I}", "lifted", (json_int_t)c.lifted);
    if (c.lifted > 1)
        rp_tell(cli, o, "resumed: %" PRId64 " pauses lifted\n", c.lifted);
    else
        rp_tell(cli, o, "%s\n", c.lifted == 1 ? "resumed" : "nothing was paused");
    return 0;
}
