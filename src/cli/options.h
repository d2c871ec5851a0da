/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - a command line taken apart by the table of commands.
 *
 * P1  Global options stand anywhere, a command's own after its name. "--" ends the options.
 * P2  --name VALUE, --name=VALUE, -x VALUE, -xVALUE; flags may be joined (-ab). A lone "-" is a
 *     word.
 * P3  An unknown command or option is RP_EINVAL; the hint names the nearest known one. */
#ifndef RP_CLI_OPTIONS_H
#define RP_CLI_OPTIONS_H

#include "cli/command.h"

#include <stdint.h>

struct rp_given {
    const struct rp_option *option;
    const char *value; /* NULL for a flag */
};

struct rp_args {
    const struct rp_cli_command *command; /* NULL: none was named */
    struct rp_given *given;               /* in the order of the line */
    size_t n_given;
    const char **words; /* what is left, without the command's name */
    size_t n_words;
};

/* Texts are borrowed from argv. `out` must be given to rp_args_done also when this fails. */
int rp_args_parse(int argc, char **argv, struct rp_args *out, struct rp_error *err);
void rp_args_done(struct rp_args *args); /* also the RP_CLEANUP function */

/* The name must be in the table (asserted). Given twice, the last one counts. */
bool rp_args_has(const struct rp_args *args, const char *name);
const char *rp_args_text(const struct rp_args *args, const char *name); /* NULL: not given */
/* The next value of an option that may be repeated; *at begins as 0. NULL after the last. */
const char *rp_args_next(const struct rp_args *args, const char *name, size_t *at);

/* Typed values; *out stays as it is if the option was not given. RP_EINVAL names the option. */
int rp_args_number(const struct rp_args *args, const char *name, int64_t *out, struct rp_error *err);
int rp_args_duration(const struct rp_args *args, const char *name, int64_t *out_ms, struct rp_error *err);
/* A moment or a duration; `sign` as in rp_time_parse_when. */
int rp_args_when(const struct rp_args *args, const char *name, int64_t now_ms, int sign, int64_t *out_ms,
                 struct rp_error *err);

#endif
