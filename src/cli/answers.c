/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void rp_answers_init(struct rp_answers *a, const struct rp_cli *cli)
{
    *a = (struct rp_answers){ .cli = cli, .on_terminal = isatty(STDOUT_FILENO) };
}

void rp_answers_done(struct rp_answers *a, const char *fmt, ...)
{
    va_list args;
    a->done++;
    if (a->cli->json || a->cli->quiet) return;
    if (a->on_terminal && a->shown++ >= RP_ANSWERS_SHOWN) return;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
}

void rp_answers_refused(struct rp_answers *a, const struct rp_error *why)
{
    char text[RP_SHOWN_MAX];
    if (a->refused == 0) a->first = *why;
    a->several_reasons = a->several_reasons || why->code != a->first.code;
    a->refused++;
    if (a->cli->json) return;
    if (a->on_terminal && a->shown_refused++ >= RP_ANSWERS_SHOWN) return;
    rp_warn("%s", rp_show(why->text, text));
    if (why->hint[0] == 0 || strcmp(why->hint, a->last_hint) == 0) return;
    snprintf(a->last_hint, sizeof a->last_hint, "%s", why->hint);
    fprintf(stderr, "  %s\n", rp_show(why->hint, text));
}

static int code_of(const struct rp_answers *a)
{
    if (a->refused == 0) return 0;
    if (a->done > 0) return RP_EPARTLY;
    return a->several_reasons ? RP_EFAILED : a->first.code;
}

/* With one subject the refusal itself, with several the counts. */
static struct rp_error sum_up(const struct rp_answers *a, const char *verb, int code)
{
    struct rp_error sum = a->first;
    if (a->done + a->refused == 1) return sum;
    rp_error_set(&sum, code, "%" PRId64 " %s, %" PRId64 " refused", a->done, verb, a->refused);
    rp_error_hint(&sum, "the first: %.200s", a->first.text);
    return sum;
}

int rp_answers_end(const struct rp_answers *a, const char *verb)
{
    bool several = a->done + a->refused > 1;
    int code = code_of(a);
    if (code == 0) {
        if (several) rp_say(a->cli, "%" PRId64 " %s\n", a->done, verb);
        return 0;
    }
    struct rp_error sum = sum_up(a, verb, code);
    if (a->cli->json) return rp_report(a->cli, &sum);
    if (several) rp_warn("%s", sum.text);
    return rp_error_exit(code);
}
