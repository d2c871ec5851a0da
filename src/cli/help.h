/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - the table of commands as people read it: overview, one command, manual page. */
#ifndef RP_CLI_HELP_H
#define RP_CLI_HELP_H

#include "cli/command.h"

#include <stdio.h>

struct rp_buf;

void rp_help_overview(struct rp_buf *out);
void rp_help_command(struct rp_buf *out, const struct rp_cli_command *command);
void rp_help_man(struct rp_buf *out); /* man/reprieve.1 */

int rp_help_print(const struct rp_cli_command *command, FILE *to); /* NULL: the overview. 0 */

/* What the exit codes mean, in order; ends with a text of NULL. */
struct rp_exit_text {
    int code;
    const char *text;
};
extern const struct rp_exit_text rp_exit_texts[];

#endif
