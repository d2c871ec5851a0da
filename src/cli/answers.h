/* SPDX-License-Identifier: Apache-2.0 */
/* answers.h - what became of each of many subjects, told as it happens and summed up in one exit
 * code.
 *
 * W1  With --json a line each. To a person a line each, on a terminal the first 20 and then the
 *     counts.
 * W2  All done: 0. All refused for one reason: that reason's exit code; for several: 1. Some of
 *     both: 8. */
#ifndef RP_CLI_ANSWERS_H
#define RP_CLI_ANSWERS_H

#include "cli/cli.h"

#define RP_ANSWERS_SHOWN 20

struct rp_answers {
    const struct rp_cli *cli;
    int64_t done, refused;
    struct rp_error first; /* refusal */
    bool several_reasons;
    bool on_terminal;
    int64_t shown, shown_refused;
    char last_hint[256];
};

void rp_answers_init(struct rp_answers *answers, const struct rp_cli *cli);
void rp_answers_done(struct rp_answers *answers, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rp_answers_refused(struct rp_answers *answers, const struct rp_error *why);
/* Says the counts if there was more than one subject; `verb` as in "3 marked". Returns the exit
 * code. */
int rp_answers_end(const struct rp_answers *answers, const char *verb);

#endif
