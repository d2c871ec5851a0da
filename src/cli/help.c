/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text/buf.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#define HELP_BYTES_MAX ((size_t)256 << 10)
#define LINE_COLUMNS   96

const struct rp_exit_text rp_exit_texts[] = {
    { 0, "done" },
    { 1, "failed" },
    { 2, "usage, also a grace out of range" },
    { 3, "configuration, or a schema that does not fit" },
    { 4, "not found" },
    { 5, "conflict: too late, held, still referenced, already running" },
    { 6, "a backend is unavailable" },
    { 8, "partly done" },
    { 0, NULL },
};

/* Words filled into lines that begin at `indent`; a line with two blanks in front stays as it
 * is. */
static void add_filled(struct rp_buf *out, const char *text, size_t indent, size_t column)
{
    while (*text != 0) {
        size_t n = strcspn(text, " \n");
        if (column + 1 + n > LINE_COLUMNS) {
            rp_buf_fmt(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        rp_buf_fmt(out, "%s%.*s", column > indent ? " " : "", (int)n, text);
        column += n + 1;
        text += n + (text[n] != 0);
    }
    rp_buf_char(out, '\n');
}

static void add_help_text(struct rp_buf *out, const char *text)
{
    while (*text != 0) {
        size_t n = strcspn(text, "\n");
        if (text[0] == ' ') {
            rp_buf_fmt(out, "%.*s\n", (int)n, text);
        } else {
            char line[2048];
            snprintf(line, sizeof line, "%.*s", (int)n, text);
            add_filled(out, line, 0, 0);
        }
        text += n + (text[n] != 0);
    }
}

static void add_options(struct rp_buf *out, const struct rp_option *options)
{
    for (; options->name != NULL; options++) {
        char left[64];
        if (options->hidden) continue;
        int n = options->letter != 0 ? snprintf(left, sizeof left, "-%c, ", options->letter)
                                     : snprintf(left, sizeof left, "    ");
        snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", options->name, options->arg != NULL ? " " : "",
                 options->arg != NULL ? options->arg : "");
        rp_buf_fmt(out, "  %-28s", left);
        size_t column = strlen(left) > 28 ? strlen(left) + 2 : 30;
        if (column > 30) rp_buf_fmt(out, "\n%*s", 30, "");
        add_filled(out, options->help, 30, 30);
    }
}

static void add_synopsis(struct rp_buf *out, const struct rp_cli_command *command)
{
    char line[RP_SYNOPSIS_MAX];
    for (size_t i = 0; rp_synopsis(command, i, line); i++)
        rp_buf_fmt(out, "usage: reprieve %s%s%s\n", command->name, line[0] != 0 ? " " : "", line);
}

void rp_help_overview(struct rp_buf *out)
{
    rp_buf_str(out, "usage: reprieve [--config FILE] [--data DIR] [--json] [--quiet] COMMAND ...\n\n"
                    "Deletes safely: what is marked can be restored until it is due, then it is purged.\n\n");
    for (size_t i = 0; i < rp_commands_count; i++)
        rp_buf_fmt(out, "  %-10s %s\n", rp_commands[i].name, rp_commands[i].summary);
    rp_buf_str(out, "\noptions for all of them\n");
    add_options(out, rp_global_options);
    rp_buf_str(out, "\nexit codes\n");
    for (const struct rp_exit_text *e = rp_exit_texts; e->text != NULL; e++)
        rp_buf_fmt(out, "  %-3d %s\n", e->code, e->text);
    rp_buf_str(out, "\nfirst steps\n"
                    "  reprieve put main:hello.txt FILE    an object to try it with\n"
                    "  reprieve mark main:hello.txt        due in 5 days\n"
                    "  reprieve marks                      what waits\n"
                    "  reprieve restore main:hello.txt     changed your mind\n"
                    "\n`reprieve help COMMAND` tells more about one.\n");
}

void rp_help_command(struct rp_buf *out, const struct rp_cli_command *command)
{
    add_synopsis(out, command);
    if (command->alias != NULL) rp_buf_fmt(out, "alias: reprieve %s\n", command->alias);
    rp_buf_fmt(out, "\n%s\n\n", command->summary);
    add_help_text(out, command->help);
    bool own = false;
    for (const struct rp_option *o = command->options; o->name != NULL; o++)
        own = own || !o->hidden;
    if (own) rp_buf_str(out, "\noptions\n");
    add_options(out, command->options);
    rp_buf_str(out, "\noptions for all commands\n");
    add_options(out, rp_global_options);
}

int rp_help_print(const struct rp_cli_command *command, FILE *to)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(HELP_BYTES_MAX);
    if (command != NULL)
        rp_help_command(&out, command);
    else
        rp_help_overview(&out);
    fputs(rp_buf_text(&out), to);
    return 0;
}

int rp_cmd_help(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf man = RP_BUF(HELP_BYTES_MAX);
    const struct rp_args *args = &cli->args;
    const struct rp_cli_command *command = args->n_words > 0 ? rp_command_find(args->words[0]) : NULL;
    if (args->n_words > 0 && command == NULL)
        return rp_error_advise(err, RP_EINVAL, "`reprieve help` lists them", "there is no command '%.64s'",
                               args->words[0]);
    if (!rp_args_has(args, "man")) return rp_help_print(command, stdout);
    rp_help_man(&man);
    if (man.failed < 0) return rp_error_set(err, man.failed, "the help does not fit");
    fputs(rp_buf_text(&man), stdout);
    return 0;
}
