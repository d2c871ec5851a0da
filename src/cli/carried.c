/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/carried.h"

#include "base/id.h"
#include "core/journal.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <string.h>

void rp_carried_say(const struct rp_cli *cli, const struct rp_figures *f, const char *words, const char *nothing)
{
    int64_t sum = 0;
    if (cli->json) return;
    for (size_t i = 0; i < f->n_let_go; i++) {
        sum += f->let_go[i].rows;
        if (f->let_go[i].rows > 0) rp_say(cli, "  %-14s %" PRId64 " %s\n", f->let_go[i].what, f->let_go[i].rows, words);
    }
    if (sum == 0 && nothing != NULL) rp_say(cli, "  %s\n", nothing);
}

void rp_carried_batch(void *progress, const struct rp_run *run)
{
    rp_progress_at(progress, run->figures.scanned);
}

int rp_carried_end(struct rp_cli *cli, const struct rp_run *run, const char *outcome, int r, const char *words,
                   const char *nothing, struct rp_error *err)
{
    char id[RP_ID_TEXT];
    if (outcome == NULL) return r < 0 ? r : rp_error_set(err, RP_ECHANGED, "another worker has taken the run over");
    rp_emit(cli, rp_run_json(run, outcome, false, rp_session_now_ms(&cli->session)));
    rp_say(cli, "%s  %s\n", rp_id_format(RP_ID_RUN, run->id, id), outcome);
    rp_carried_say(cli, &run->figures, words, strcmp(outcome, "done") == 0 ? nothing : NULL);
    for (int64_t i = 0; i < run->figures.n_errors && i < RP_RUN_ERRORS_MAX; i++)
        rp_warn("%s", run->figures.errors[i]);
    return rp_error_exit(rp_outcome_code(outcome, 0));
}
