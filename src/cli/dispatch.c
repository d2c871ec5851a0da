/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c - the line is held against the row of its command, or of its verb, and run. */
#include "base/assert.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 40

/* ---- how a command is called ---- */

/* `list`: names with blanks between. */
static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (; list != NULL && *list != 0; list += strspn(list, " ")) {
        size_t word = strcspn(list, " ");
        if (word == n && strncmp(list, name, n) == 0) return true;
        list += word;
    }
    return false;
}

static size_t add(char out[RP_SYNOPSIS_MAX], size_t n, const char *before, const char *text, const char *after)
{
    int bytes = snprintf(out + n, RP_SYNOPSIS_MAX - n, "%s%s%s%s", n > 0 ? " " : "", before, text, after);
    RP_ASSERT(bytes >= 0 && n + (size_t)bytes < RP_SYNOPSIS_MAX);
    return n + (size_t)bytes;
}

/* Options that its words do not show stand in brackets behind them. */
static void synopsis_of(const struct rp_cli_command *command, const struct rp_cli_verb *verb, char out[RP_SYNOPSIS_MAX])
{
    char option[64], shown[70];
    size_t n = 0;
    out[0] = 0;
    if (verb->name[0] != 0) n = add(out, n, "", verb->name, "");
    if (verb->words != NULL) n = add(out, n, "", verb->words, "");
    for (const struct rp_option *o = command->options; o->name != NULL; o++) {
        snprintf(shown, sizeof shown, "--%s", o->name);
        if (!is_listed(verb->options, o->name) || (verb->words != NULL && strstr(verb->words, shown) != NULL)) continue;
        snprintf(option, sizeof option, "--%s%s%s", o->name, o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
        n = add(out, n, "[", option, "]");
    }
}

bool rp_synopsis(const struct rp_cli_command *command, size_t i, char out[RP_SYNOPSIS_MAX])
{
    if (command->verbs != NULL) {
        if (command->verbs[i].name != NULL) synopsis_of(command, &command->verbs[i], out);
        return command->verbs[i].name != NULL;
    }
    const char *line = command->synopsis;
    for (; i > 0 && line != NULL; i--) {
        line = strchr(line, '\n');
        if (line != NULL) line++;
    }
    if (line != NULL) snprintf(out, RP_SYNOPSIS_MAX, "%.*s", (int)strcspn(line, "\n"), line);
    return line != NULL;
}

/* ---- what a line may hold ---- */

static int hint_usage(const struct rp_args *args, size_t i, struct rp_error *err)
{
    char usage[RP_SYNOPSIS_MAX] = "";
    (void)rp_synopsis(args->command, i, usage);
    return rp_error_hint(err, "usage: reprieve %s %s", args->command->name, usage);
}

static const char *name_of(const struct rp_cli_command *command, const struct rp_cli_verb *verb,
                           char out[NAME_MAX_BYTES])
{
    snprintf(out, NAME_MAX_BYTES, "%s%s%s", command->name, verb->name[0] != 0 ? " " : "", verb->name);
    return out;
}

static int check_words(const struct rp_args *args, const char *name, size_t own, size_t least, size_t most,
                       size_t usage, struct rp_error *err)
{
    size_t n = args->n_words - own;
    if (n >= least && n <= most) return 0;
    if (n < least)
        rp_error_set(err, RP_EINVAL, "%s: something is missing", name);
    else
        rp_error_set(err, RP_EINVAL, "%s: what is '%.64s'?", name, args->words[own + most]);
    return hint_usage(args, usage, err);
}

static const struct rp_cli_verb *find_verb(const struct rp_args *args, struct rp_error *err)
{
    const char *name = args->n_words > 0 ? args->words[0] : "";
    char known[256] = "";
    size_t n = 0;
    for (const struct rp_cli_verb *verb = args->command->verbs; verb->name != NULL; verb++) {
        if (strcmp(verb->name, name) == 0) return verb;
        if (verb->name[0] == 0) continue;
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? ", " : "", verb->name);
        RP_ASSERT(n < sizeof known);
    }
    rp_error_set(err, RP_EINVAL, "%s: '%.32s' is not one of: %s", args->command->name, name, known);
    rp_error_hint(err, "`reprieve help %s` shows how it is called", args->command->name);
    return NULL;
}

static int check_options(const struct rp_args *args, const struct rp_cli_verb *verb, struct rp_error *err)
{
    char name[NAME_MAX_BYTES], takes[256] = "none";
    size_t n = 0;
    const struct rp_option *wrong = NULL;
    for (size_t i = 0; i < args->n_given && wrong == NULL; i++) {
        const char *given = args->given[i].option->name;
        bool own = rp_option_find(args->command->options, given, strlen(given)) != NULL;
        if (own && !is_listed(verb->options, given)) wrong = args->given[i].option;
    }
    if (wrong == NULL) return 0;
    for (const struct rp_option *o = args->command->options; o->name != NULL; o++) {
        if (!is_listed(verb->options, o->name)) continue;
        n += (size_t)snprintf(takes + n, sizeof takes - n, "%s--%s", n > 0 ? ", " : "", o->name);
        RP_ASSERT(n < sizeof takes);
    }
    rp_error_set(err, RP_EINVAL, "%s: --%s does not go with it; it takes %s", name_of(args->command, verb, name),
                 wrong->name, takes);
    return hint_usage(args, (size_t)(verb - args->command->verbs), err);
}

/* ---- run ---- */

static int run_verb(struct rp_cli *cli, const struct rp_cli_verb *verb, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    char name[NAME_MAX_BYTES];
    int r = check_options(args, verb, err);
    if (r == 0)
        r = check_words(args, name_of(args->command, verb, name), verb->name[0] != 0, verb->words_least,
                        verb->words_most, (size_t)(verb - args->command->verbs), err);
    cli->patient = verb->patient;
    if (r == 0 && verb->check != NULL) r = verb->check(cli, err);
    if (r == 0 && !verb->opens) r = rp_cli_open(cli, err);
    return r < 0 ? r : verb->run(cli, err);
}

int rp_cli_dispatch(struct rp_cli *cli, struct rp_error *err)
{
    const struct rp_cli_command *c = cli->args.command;
    if (c->verbs != NULL) {
        const struct rp_cli_verb *verb = find_verb(&cli->args, err);
        return verb != NULL ? run_verb(cli, verb, err) : RP_EINVAL;
    }
    int r = check_words(&cli->args, c->name, 0, c->words_least, c->words_most, 0, err);
    return r < 0 ? r : c->run(cli, err);
}
