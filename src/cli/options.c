/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text/nearest.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 64

/* ---- the line ---- */

struct parser {
    int argc, at;
    char **argv;
    struct rp_args *out;
    bool only_words;
};

static const struct rp_option no_options[] = { { .name = NULL } };

static const struct rp_option *own_options(const struct parser *p)
{
    return p->out->command != NULL ? p->out->command->options : no_options;
}

static size_t collect_names(const struct rp_option *options, const char **names, size_t n)
{
    for (; options->name != NULL && n < NAMES_MAX; options++)
        if (!options->hidden) names[n++] = options->name;
    return n;
}

static int unknown_option(const struct parser *p, const char *text, struct rp_error *err)
{
    const char *names[NAMES_MAX];
    char name[64];
    size_t n = collect_names(own_options(p), names, 0);
    n = collect_names(rp_global_options, names, n);
    snprintf(name, sizeof name, "%s", text + strspn(text, "-"));
    name[strcspn(name, "=")] = 0;
    const char *nearest = rp_text_nearest(name, names, n);
    const char *command = p->out->command != NULL ? p->out->command->name : NULL;
    rp_error_set(err, RP_EINVAL, "unknown option '%.64s'%s%s", text, command != NULL ? " for " : "",
                 command != NULL ? command : "");
    if (nearest != NULL) return rp_error_hint(err, "did you mean --%s?", nearest);
    if (command == NULL) return rp_error_hint(err, "a command's own options stand after its name");
    return rp_error_hint(err, "`reprieve help %s` lists its options", command);
}

static int unknown_command(const char *text, struct rp_error *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < rp_commands_count && n + 1 < NAMES_MAX; i++) {
        names[n++] = rp_commands[i].name;
        if (rp_commands[i].alias != NULL) names[n++] = rp_commands[i].alias;
    }
    const char *nearest = rp_text_nearest(text, names, n);
    rp_error_set(err, RP_EINVAL, "unknown command '%.64s'", text);
    if (nearest != NULL) return rp_error_hint(err, "did you mean `reprieve %s`?", nearest);
    return rp_error_hint(err, "`reprieve help` lists the commands");
}

static void keep(struct parser *p, const struct rp_option *option, const char *value)
{
    p->out->given[p->out->n_given++] = (struct rp_given){ .option = option, .value = value };
}

/* The value of an option: what stands behind it in the same word, else the next word. */
static int take_value(struct parser *p, const struct rp_option *option, const char *joined, struct rp_error *err)
{
    if (joined == NULL && p->at + 1 < p->argc) joined = p->argv[++p->at];
    if (joined == NULL) return rp_error_set(err, RP_EINVAL, "--%s needs a value: %s", option->name, option->arg);
    keep(p, option, joined);
    return 0;
}

static int parse_long(struct parser *p, const char *text, struct rp_error *err)
{
    size_t n = strcspn(text + 2, "=");
    const char *joined = text[2 + n] == '=' ? text + 2 + n + 1 : NULL;
    const struct rp_option *option = rp_option_find(own_options(p), text + 2, n);
    if (option == NULL) option = rp_option_find(rp_global_options, text + 2, n);
    if (option == NULL) return unknown_option(p, text, err);
    if (option->arg != NULL) return take_value(p, option, joined, err);
    if (joined != NULL) return rp_error_set(err, RP_EINVAL, "--%s takes no value", option->name);
    keep(p, option, NULL);
    return 0;
}

static int parse_letters(struct parser *p, const char *text, struct rp_error *err)
{
    const char *c = text + 1;
    for (; *c != 0; c++) {
        const struct rp_option *option = rp_option_find_letter(own_options(p), *c);
        if (option == NULL) option = rp_option_find_letter(rp_global_options, *c);
        if (option == NULL) return unknown_option(p, text, err);
        if (option->arg != NULL) return take_value(p, option, c[1] != 0 ? c + 1 : NULL, err);
        keep(p, option, NULL);
    }
    return 0;
}

static int parse_word(struct parser *p, const char *text, struct rp_error *err)
{
    struct rp_args *out = p->out;
    if (out->command != NULL) {
        out->words[out->n_words++] = text;
        return 0;
    }
    out->command = rp_command_find(text);
    return out->command != NULL ? 0 : unknown_command(text, err);
}

static int parse_one(struct parser *p, struct rp_error *err)
{
    const char *text = p->argv[p->at];
    if (p->only_words || text[0] != '-' || text[1] == 0) return parse_word(p, text, err);
    if (text[1] != '-') return parse_letters(p, text, err);
    if (text[2] != 0) return parse_long(p, text, err);
    p->only_words = true;
    return 0;
}

/* Each joined letter may need an entry of its own. */
static size_t letters_in(int argc, char **argv)
{
    size_t n = 0;
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-' && argv[i][1] != '-') n += strlen(argv[i]);
    return n;
}

int rp_args_parse(int argc, char **argv, struct rp_args *out, struct rp_error *err)
{
    struct parser p = { .argc = argc, .at = 1, .argv = argv, .out = out };
    size_t most = (size_t)argc + 1;
    *out = (struct rp_args){ .given = calloc(most + letters_in(argc, argv), sizeof *out->given),
                             .words = calloc(most, sizeof(const char *)) };
    if (out->given == NULL || out->words == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for the options");
    int r = 0;
    for (; p.at < argc && r == 0; p.at++)
        r = parse_one(&p, err);
    return r;
}

void rp_args_done(struct rp_args *args)
{
    free(args->given);
    free(args->words);
    *args = (struct rp_args){ 0 };
}

/* ---- values ---- */

static const struct rp_option *declared(const struct rp_args *args, const char *name)
{
    const struct rp_option *option = NULL;
    if (args->command != NULL) option = rp_option_find(args->command->options, name, strlen(name));
    if (option == NULL) option = rp_option_find(rp_global_options, name, strlen(name));
    RP_ASSERT(option != NULL);
    return option;
}

static const struct rp_given *last_given(const struct rp_args *args, const char *name)
{
    const struct rp_option *option = declared(args, name);
    for (size_t i = args->n_given; i > 0; i--)
        if (args->given[i - 1].option == option) return &args->given[i - 1];
    return NULL;
}

bool rp_args_has(const struct rp_args *args, const char *name)
{
    return last_given(args, name) != NULL;
}

const char *rp_args_text(const struct rp_args *args, const char *name)
{
    const struct rp_given *given = last_given(args, name);
    return given != NULL ? given->value : NULL;
}

const char *rp_args_next(const struct rp_args *args, const char *name, size_t *at)
{
    const struct rp_option *option = declared(args, name);
    for (; *at < args->n_given; (*at)++)
        if (args->given[*at].option == option) return args->given[(*at)++].value;
    return NULL;
}

int rp_args_number(const struct rp_args *args, const char *name, int64_t *out, struct rp_error *err)
{
    const char *text = rp_args_text(args, name);
    if (text == NULL) return 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 15 || text[digits] != 0)
        return rp_error_set(err, RP_EINVAL, "--%s: expected a whole number, found '%.32s'", name, text);
    *out = strtoll(text, NULL, 10);
    return 0;
}

int rp_args_duration(const struct rp_args *args, const char *name, int64_t *out_ms, struct rp_error *err)
{
    const char *text = rp_args_text(args, name);
    if (text == NULL) return 0;
    int r = rp_duration_parse(text, out_ms, err);
    return r < 0 ? rp_error_wrap(err, RP_EINVAL, "--%s", name) : 0;
}

int rp_args_when(const struct rp_args *args, const char *name, int64_t now_ms, int sign, int64_t *out_ms,
                 struct rp_error *err)
{
    const char *text = rp_args_text(args, name);
    if (text == NULL) return 0;
    int r = rp_time_parse_when(text, now_ms, sign, out_ms, err);
    return r < 0 ? rp_error_wrap(err, RP_EINVAL, "--%s", name) : 0;
}
