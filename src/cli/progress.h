/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a line on standard error that shows how far long work is. Only on a terminal,
 * never with --quiet or --json; redrawn ten times a second at most, gone when the work is done. */
#ifndef RP_CLI_PROGRESS_H
#define RP_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct rp_cli;

struct rp_progress {
    const char *what;
    int64_t total; /* 0: not known */
    int64_t drawn_at_ms, begun_at_ms;
    bool shown; /* at all */
    bool drawn; /* it stands on the terminal now */
};

void rp_progress_begin(struct rp_progress *progress, const struct rp_cli *cli, const char *what, int64_t total);
void rp_progress_at(struct rp_progress *progress, int64_t done);
/* Removes the line, for other text on the terminal or at the end. */
void rp_progress_clear(struct rp_progress *progress);

#endif
