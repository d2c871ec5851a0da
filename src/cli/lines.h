/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - subjects from a stream, one at a time, in bounded memory. A line that is too long,
 * or holds a NUL byte where newlines separate, is read to its end and reported as what it is;
 * the ones after it are not harmed. */
#ifndef RP_CLI_LINES_H
#define RP_CLI_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct rp_error;

#define RP_LINE_MAX 2048

struct rp_lines {
    FILE *from;
    int separator; /* '\n' or 0 */
    int64_t number;
    char text[RP_LINE_MAX];
};

/* 1: a line stands in `text`; 0: the end; RP_EINVAL: this line is none, go on with the next;
 * other negative codes: the stream failed. Empty lines are left out. */
int rp_lines_next(struct rp_lines *lines, struct rp_error *err);

#endif
