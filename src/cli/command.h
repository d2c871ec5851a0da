/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - THE table of commands. Parsing, --help, the overview and the manual page all walk it,
 * so that they cannot disagree.
 *
 * C1  A command's options end with an entry without a name. No option has the name or letter of a
 *     global one.
 * C2  `synopsis` is what follows "reprieve NAME", one line for each form; `summary` is one line
 *     without a full stop.
 * C3  `help` is sentences; a line that begins with two blanks is an example or a list and is
 *     printed as it stands. */
#ifndef RP_CLI_COMMAND_H
#define RP_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct rp_cli;
struct rp_error;

struct rp_option {
    const char *name;
    char letter;     /* 0: none */
    const char *arg; /* NULL: a flag */
    const char *help;
    bool hidden; /* works, but is for the project itself */
};

struct rp_cli_command {
    const char *name, *alias; /* alias NULL: none */
    const char *synopsis, *summary, *help;
    const struct rp_option *options;
    size_t words_least, words_most; /* how many words may follow the name */
    /* The exit code, or a negative error code with `err` filled in. */
    int (*run)(struct rp_cli *cli, struct rp_error *err);
};

#define RP_WORDS_ANY 1000000

extern const struct rp_cli_command rp_commands[];
extern const size_t rp_commands_count;
extern const struct rp_option rp_global_options[];

/* By name or alias; NULL: none. */
const struct rp_cli_command *rp_command_find(const char *name);
const struct rp_option *rp_option_find(const struct rp_option *options, const char *name, size_t n);
const struct rp_option *rp_option_find_letter(const struct rp_option *options, char letter);

/* One function a command. */
int rp_cmd_audit(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_cancel(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_clock(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_dead(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_doctor(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_explain(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_get(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_help(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_hold(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_import(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_init(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_ls(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_mark(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_marks(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_migrate(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_pause(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_put(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_quota(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_recover(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_restore(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_resume(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_runs(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_retention(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_safety_net(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_serve(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_stores(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_sweep(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_token(struct rp_cli *cli, struct rp_error *err);
int rp_cmd_version(struct rp_cli *cli, struct rp_error *err);

#endif
