/* SPDX-License-Identifier: Apache-2.0 */
/* man.c - the manual page, made from the table of commands. man/reprieve.1 is its output; a test
 * compares the two. */
#include "base/text/buf.h"
#include "cli/help.h"

#include <string.h>

/* Text for troff: hyphens that stay hyphens, backslashes, and no line that begins like a
 * request. */
static void add_text(struct rp_buf *out, const char *text, size_t n)
{
    if (n > 0 && (text[0] == '.' || text[0] == '\'')) rp_buf_str(out, "\\&");
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '-')
            rp_buf_str(out, "\\-");
        else if (text[i] == '\\')
            rp_buf_str(out, "\\e");
        else if (text[i] == '\'')
            rp_buf_str(out, "\\(aq");
        else
            rp_buf_char(out, text[i]);
    }
}

static void add_line(struct rp_buf *out, const char *text)
{
    add_text(out, text, strlen(text));
    rp_buf_char(out, '\n');
}

static void add_synopsis(struct rp_buf *out, const struct rp_cli_command *command)
{
    char line[RP_SYNOPSIS_MAX];
    for (size_t i = 0; rp_synopsis(command, i, line); i++) {
        rp_buf_fmt(out, ".br\n\\fBreprieve %s\\fR ", command->name);
        add_line(out, line);
    }
}

/* Sentences as they are, examples as they stand. */
static void add_help(struct rp_buf *out, const char *text)
{
    bool example = false;
    while (*text != 0) {
        size_t n = strcspn(text, "\n");
        if ((text[0] == ' ') != example) {
            example = !example;
            rp_buf_str(out, example ? ".PP\n.nf\n" : ".fi\n");
        }
        add_text(out, text, n);
        rp_buf_char(out, '\n');
        text += n + (text[n] != 0);
    }
    if (example) rp_buf_str(out, ".fi\n");
}

static void add_options(struct rp_buf *out, const struct rp_option *options)
{
    for (; options->name != NULL; options++) {
        if (options->hidden) continue;
        rp_buf_str(out, ".TP\n");
        if (options->letter != 0) rp_buf_fmt(out, "\\fB\\-%c\\fR, ", options->letter);
        rp_buf_str(out, "\\fB\\-\\-");
        add_text(out, options->name, strlen(options->name));
        rp_buf_str(out, "\\fR");
        if (options->arg != NULL) rp_buf_fmt(out, " \\fI%s\\fR", options->arg);
        rp_buf_char(out, '\n');
        add_line(out, options->help);
    }
}

static void add_command(struct rp_buf *out, const struct rp_cli_command *command)
{
    rp_buf_fmt(out, ".SS %s\n", command->name);
    add_text(out, command->summary, strlen(command->summary));
    rp_buf_str(out, ".\n");
    if (command->alias != NULL) rp_buf_fmt(out, "Alias: \\fB%s\\fR.\n", command->alias);
    add_synopsis(out, command);
    rp_buf_str(out, ".PP\n");
    add_help(out, command->help);
    add_options(out, command->options);
}

static void add_exit_codes(struct rp_buf *out)
{
    rp_buf_str(out, ".SH EXIT STATUS\n");
    for (const struct rp_exit_text *e = rp_exit_texts; e->text != NULL; e++) {
        rp_buf_fmt(out, ".TP\n\\fB%d\\fR\n", e->code);
        add_line(out, e->text);
    }
}

void rp_help_man(struct rp_buf *out)
{
    rp_buf_str(out,
               ".\\\" Made by `reprieve help --man`; do not edit.\n"
               ".TH REPRIEVE 1 \"\" \"Reprieve\" \"User commands\"\n"
               ".SH NAME\nreprieve \\- safe deletion for objects: mark, restore, purge\n"
               ".SH SYNOPSIS\n\\fBreprieve\\fR [\\fB\\-\\-config\\fR \\fIFILE\\fR] [\\fB\\-\\-data\\fR \\fIDIR\\fR] "
               "[\\fB\\-\\-json\\fR] [\\fB\\-\\-quiet\\fR] \\fICOMMAND\\fR ...\n"
               ".SH DESCRIPTION\n"
               "A mark is a durable promise: the subject will be purged when it is due, unless it is restored first.\n"
               "A subject is \\fISTORE\\fR:\\fIKEY\\fR, or the id of a mark or a file.\n"
               "A time is RFC 3339 (2026\\-11\\-20, 2026\\-11\\-20T05:02:54Z) or a duration (90s, 15m, 12h, 5d).\n"
               ".SH OPTIONS\n");
    add_options(out, rp_global_options);
    rp_buf_str(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < rp_commands_count; i++)
        add_command(out, &rp_commands[i]);
    add_exit_codes(out);
    rp_buf_str(out, ".SH ENVIRONMENT\n.TP\n\\fBREPRIEVE_CONFIG\\fR\nThe configuration file, if "
                    "\\fB\\-\\-config\\fR is not given.\n.TP\n\\fBNO_COLOR\\fR\nNo bold titles in tables.\n"
                    ".SH FILES\n.TP\n\\fI./reprieve.yaml\\fR, \\fI/etc/reprieve/reprieve.yaml\\fR\nThe configuration.\n"
                    ".SH SEE ALSO\n\\fBreprieve.yaml\\fR(5)\n");
}
