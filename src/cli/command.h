/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - THE table of commands. Parsing, --help, the overview and the manual page all walk it,
 * so that they cannot disagree.
 *
 * C1  A command's options end with an entry without a name. No option has the name or letter of a
 *     global one.
 * C2  `synopsis` is what follows "reprieve NAME", one line for each form; of a command with verbs it
 *     is made from their rows. `summary` is one line without a full stop.
 * C3  `help` is sentences; a line that begins with two blanks is an example or a list and is
 *     printed as it stands.
 * C4  Of a command with verbs the first word says which; the verb named "" has none. A verb takes
 *     those of the command's options that it names: any other one is refused. */
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

/* The exit code, or a negative error code with `err` filled in. */
typedef int rp_cmd_fn(struct rp_cli *cli, struct rp_error *err);

struct rp_cli_verb {
    const char *name;
    const char *words;   /* what follows the name in the synopsis; NULL: nothing */
    const char *options; /* C4: their names, with blanks between; NULL: none */
    size_t words_least, words_most;
    bool patient;     /* what it asks of the catalog may take minutes */
    bool opens;       /* run opens the session itself, if it needs one */
    rp_cmd_fn *check; /* before the session is opened; NULL: nothing to check */
    rp_cmd_fn *run;   /* the session is open */
};

struct rp_cli_command {
    const char *name, *alias; /* alias NULL: none */
    const char *synopsis, *summary, *help;
    const struct rp_option *options;
    size_t words_least, words_most;  /* how many words may follow the name */
    rp_cmd_fn *run;                  /* opens the session */
    const struct rp_cli_verb *verbs; /* C4: in place of synopsis, words and run; ends with an entry without a name */
};

#define RP_WORDS_ANY 1000000

extern const struct rp_cli_command rp_commands[];
extern const size_t rp_commands_count;
extern const struct rp_option rp_global_options[];

/* By name or alias; NULL: none. */
const struct rp_cli_command *rp_command_find(const char *name);
const struct rp_option *rp_option_find(const struct rp_option *options, const char *name, size_t n);
const struct rp_option *rp_option_find_letter(const struct rp_option *options, char letter);

/* The i-th line of its synopsis, in `out`; false: there are no more. */
#define RP_SYNOPSIS_MAX 512
bool rp_synopsis(const struct rp_cli_command *command, size_t i, char out[RP_SYNOPSIS_MAX]);

/* One function a command, or a verb of it. */
rp_cmd_fn rp_cmd_audit;
rp_cmd_fn rp_cmd_audit_verify;
rp_cmd_fn rp_cmd_audit_export;
rp_cmd_fn rp_cmd_audit_segments;
rp_cmd_fn rp_cmd_cancel;
rp_cmd_fn rp_cmd_clock;
rp_cmd_fn rp_cmd_clock_accept;
rp_cmd_fn rp_cmd_dead;
rp_cmd_fn rp_cmd_dead_show;
rp_cmd_fn rp_cmd_dead_retry_check;
rp_cmd_fn rp_cmd_dead_retry;
rp_cmd_fn rp_cmd_dead_keep;
rp_cmd_fn rp_cmd_doctor;
rp_cmd_fn rp_cmd_explain;
rp_cmd_fn rp_cmd_get;
rp_cmd_fn rp_cmd_help;
rp_cmd_fn rp_cmd_hold;
rp_cmd_fn rp_cmd_hold_add_check;
rp_cmd_fn rp_cmd_hold_add;
rp_cmd_fn rp_cmd_hold_rm;
rp_cmd_fn rp_cmd_import;
rp_cmd_fn rp_cmd_init;
rp_cmd_fn rp_cmd_ls;
rp_cmd_fn rp_cmd_mark;
rp_cmd_fn rp_cmd_marks;
rp_cmd_fn rp_cmd_migrate;
rp_cmd_fn rp_cmd_pause;
rp_cmd_fn rp_cmd_put;
rp_cmd_fn rp_cmd_quota;
rp_cmd_fn rp_cmd_quota_set;
rp_cmd_fn rp_cmd_quota_rebuild;
rp_cmd_fn rp_cmd_recover;
rp_cmd_fn rp_cmd_restore;
rp_cmd_fn rp_cmd_resume;
rp_cmd_fn rp_cmd_runs;
rp_cmd_fn rp_cmd_runs_check;
rp_cmd_fn rp_cmd_runs_show;
rp_cmd_fn rp_cmd_retention;
rp_cmd_fn rp_cmd_safety_net;
rp_cmd_fn rp_cmd_serve;
rp_cmd_fn rp_cmd_stores;
rp_cmd_fn rp_cmd_stores_rename;
rp_cmd_fn rp_cmd_sweep;
rp_cmd_fn rp_cmd_token;
rp_cmd_fn rp_cmd_token_create;
rp_cmd_fn rp_cmd_token_revoke;
rp_cmd_fn rp_cmd_token_link;
rp_cmd_fn rp_cmd_version;

#endif
