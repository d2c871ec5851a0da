/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - a run as people see it: its record, and the same of one that is still open. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/run/inner.h"

#include <string.h>

/* As fast as since this worker works on it. */
static json_t *progress_json(const struct rp_run *run, int64_t now_ms)
{
    json_t *o = json_object();
    int64_t done = run->figures.scanned, spent_ms = now_ms - run->paced_at_ms;
    int64_t rate = spent_ms > 0 ? (done - run->paced_done) * RP_SECOND_MS / spent_ms : 0;
    rp_json_set(o, "done", json_integer(done));
    rp_json_set(o, "total", json_integer(done > run->total ? done : run->total));
    rp_json_set(o, "rate_per_s", json_integer(rate));
    if (rate > 0) rp_json_set(o, "left_s", json_integer(done < run->total ? (run->total - done) / rate : 0));
    return o;
}

json_t *rp_run_figures_json(const struct rp_run *run, int64_t now_ms)
{
    json_t *o = json_object();
    if (run->filter != NULL) rp_json_set(o, "filter", json_incref((json_t *)(uintptr_t)run->filter));
    if (run->total > 0 && now_ms > 0) rp_json_set(o, "progress", progress_json(run, now_ms));
    rp_figures_to_json(&run->figures, strcmp(run->kind, RP_RUN_RESTORE) == 0, o);
    return o;
}

json_t *rp_run_record_json(const struct rp_run_row *run, const char *outcome, bool dry_run, int64_t finished_at_ms,
                           const json_t *figures)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    if (!dry_run) rp_json_set(o, "id", json_string(rp_id_format(RP_ID_RUN, run->id, id)));
    rp_json_set(o, "kind", json_string(run->kind));
    rp_json_set(o, "name", rp_json_text(run->name));
    rp_json_set(o, "state", json_string(finished_at_ms == 0 ? "running" : "finished"));
    if (outcome != NULL) rp_json_set(o, "outcome", json_string(outcome));
    rp_json_set(o, "dry_run", json_boolean(dry_run));
    rp_json_set(o, "locked_by", rp_json_text(run->locked_by));
    rp_json_set(o, "started_at", rp_json_time(run->started_at_ms));
    if (finished_at_ms != 0) {
        rp_json_set(o, "finished_at", rp_json_time(finished_at_ms));
        rp_json_set(o, "duration_ms", json_integer(finished_at_ms - run->started_at_ms));
    }
    if (figures != NULL) rp_json_merge(o, (json_t *)(uintptr_t)figures);
    return o;
}

struct rp_run_row rp_run_row_of(const struct rp_run *run)
{
    return (struct rp_run_row){ .id = run->id,
                                .kind = run->kind,
                                .name = run->name,
                                .locked_by = run->worker->name,
                                .fence = run->fence,
                                .started_at_ms = run->started_at_ms };
}

json_t *rp_run_json(const struct rp_run *run, const char *outcome, bool dry_run, int64_t finished_at_ms)
{
    RP_CLEANUP(rp_json_decrefp) json_t *figures = rp_run_figures_json(run, 0);
    struct rp_run_row row = rp_run_row_of(run);
    return rp_run_record_json(&row, outcome, dry_run, finished_at_ms, figures);
}

json_t *rp_run_open_json(const struct rp_run_row *row, bool interrupted, struct rp_error *err)
{
    RP_CLEANUP(rp_json_decrefp) json_t *figures = NULL;
    if (rp_json_parse(row->figures, strlen(row->figures), &figures, err) < 0) {
        rp_error_wrap(err, RP_ECORRUPT, "the figures of a run");
        return NULL;
    }
    json_t *o = rp_run_record_json(row, NULL, false, 0, figures);
    if (interrupted) rp_json_set(o, "state", json_string("interrupted"));
    return o;
}
