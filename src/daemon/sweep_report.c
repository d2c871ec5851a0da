/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sweep_report.h"

#include "base/time.h"
#include "core/check/waits.h"
#include "core/file/file.h"
#include "core/journal.h"

#include <string.h>

static struct rp_journal journal_of(const struct rp_sweep_report *report)
{
    return rp_session_journal(report->session);
}

static void run_started(void *ctx, const struct rp_run *run)
{
    struct rp_sweep_report *report = ctx;
    struct rp_journal j = journal_of(report);
    rp_journal_started(&j, run);
}

static bool is_abandoned(const struct rp_mark *mark)
{
    return mark->file_id != 0 && mark->was == RP_MARKED && strcmp(mark->reason, RP_REASON_ABANDONED) == 0;
}

/* U6: by tenant. A batch of one tenant's uploads is the rule, hence a look-up each time that it
 * changes. */
static void count_abandoned(struct rp_sweep_report *report, const struct rp_purge_batch *batch)
{
    struct rp_tenant tenant = { 0 };
    struct rp_error ignored = { 0 };
    for (size_t i = batch->from; i < batch->to && report->metrics != NULL; i++) {
        const struct rp_mark *mark = &batch->marks.at[i];
        if (!is_abandoned(mark)) continue;
        if (mark->tenant_id != tenant.id &&
            rp_tenant_by_id(report->session->catalog->db, mark->tenant_id, &tenant, &ignored) < 0)
            continue;
        rp_metrics_abandoned(report->metrics, tenant.name, 1, mark->size_bytes);
    }
}

static void batch_finished(void *ctx, const struct rp_purge_batch *batch, const struct rp_run *run)
{
    struct rp_sweep_report *report = ctx;
    struct rp_journal j = journal_of(report);
    rp_journal_batch(&j, batch, run);
    rp_metrics_batch(report->metrics, batch);
    count_abandoned(report, batch);
    if (report->alive != NULL) report->alive(report->ctx);
}

static void left_out(void *ctx, const struct rp_store *store, int64_t due, const struct rp_error *why)
{
    struct rp_sweep_report *report = ctx;
    struct rp_journal j = journal_of(report);
    if (why->code == RP_EOBSERVE && due == 0) return;
    rp_journal_left_out(&j, store->config->name, due, why);
    if (why->code != RP_EOBSERVE) rp_metrics_failure(report->metrics, "store");
}

void rp_sweep_report_left_out(struct rp_sweep_report *report, const struct rp_store *store, const struct rp_error *why)
{
    struct rp_overdue due = { 0 };
    struct rp_error ignored = { 0 };
    (void)rp_marks_overdue(report->session->catalog->db, store->id, rp_session_now_ms(report->session), &due, &ignored);
    left_out(report, store, due.marks, why);
}

/* waits.h: each time that it did not answer, and once it does. */
static void somebody_waits(void *ctx, const struct rp_whom *whom, int64_t left_ms, const struct rp_error *why)
{
    struct rp_sweep_report *report = ctx;
    struct rp_journal j = journal_of(report);
    if (why != NULL) rp_metrics_failure(report->metrics, whom->kind);
    rp_journal_waits(&j, whom, left_ms, why);
}

struct rp_sweep rp_sweep_report_sweep(struct rp_sweep_report *report, const volatile sig_atomic_t *stop)
{
    struct rp_sweep sweep = rp_session_sweep(report->session);
    sweep.by.stop = stop;
    sweep.started = run_started;
    sweep.finished = batch_finished;
    sweep.left_out = left_out;
    sweep.ctx = report;
    rp_waits_tell(report->session->waits, somebody_waits, report);
    return sweep;
}

void rp_sweep_report_ended(struct rp_sweep_report *report, const struct rp_run *run, const char *outcome, int code)
{
    struct rp_journal j = journal_of(report);
    rp_journal_ended(&j, run, outcome, code);
    rp_metrics_run(report->metrics, run, outcome, j.at_ms);
}

void rp_sweep_report_not_begun(struct rp_sweep_report *report, int code, const struct rp_error *err)
{
    struct rp_journal j = journal_of(report);
    if (code != RP_ERUNNING) rp_journal_failed(&j, RP_RUN_SWEEP, NULL, err);
}
