/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include "base/time.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define REDRAW_MS   100
#define BAR_COLUMNS 30

void rp_progress_begin(struct rp_progress *p, const struct rp_cli *cli, const char *what, int64_t total)
{
    *p = (struct rp_progress){ .what = what, .total = total, .begun_at_ms = rp_time_boot_ms() };
    p->shown = !cli->quiet && !cli->json && isatty(STDERR_FILENO);
}

static void draw_bar(int64_t done, int64_t total)
{
    int filled = total > 0 ? (int)((done < total ? done : total) * BAR_COLUMNS / total) : 0;
    fputs(" [", stderr);
    for (int i = 0; i < BAR_COLUMNS; i++)
        fputc(i < filled ? '#' : '.', stderr);
    fputc(']', stderr);
}

void rp_progress_at(struct rp_progress *p, int64_t done)
{
    int64_t now_ms = rp_time_boot_ms();
    if (!p->shown || now_ms - p->drawn_at_ms < REDRAW_MS) return;
    p->drawn_at_ms = now_ms;
    p->drawn = true;
    int64_t spent_ms = now_ms - p->begun_at_ms;
    fprintf(stderr, "\r%s", p->what);
    if (p->total > 0) draw_bar(done, p->total);
    fprintf(stderr, " %" PRId64, done);
    if (p->total > 0) fprintf(stderr, " of %" PRId64, p->total);
    if (spent_ms >= RP_SECOND_MS) fprintf(stderr, ", %" PRId64 "/s", done * RP_SECOND_MS / spent_ms);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void rp_progress_clear(struct rp_progress *p)
{
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}
