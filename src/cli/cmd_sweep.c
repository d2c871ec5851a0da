/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sweep.c - `sweep`: one run over the stores that may be purged, or with --dry-run what such
 * a run would do. SIGINT and SIGTERM end it after the batches under way; the run is then
 * recorded as partial. */
#include "cli/cmd_sweep.h"
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "catalog/mark/hold.h"
#include "catalog/mark/restore.h"
#include "catalog/run.h"
#include "cli/progress.h"
#include "core/confirm/confirm.h"
#include "core/journal.h"
#include "lib/answer.h"
#include "lib/confirming.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what the run tells on its way ---- */

static struct rp_journal journal_of(const struct rp_sweep_call *call)
{
    return rp_session_journal(&call->cli->session);
}

static void run_started(void *ctx, const struct rp_run *run)
{
    struct rp_sweep_call *call = ctx;
    struct rp_journal j = journal_of(call);
    rp_journal_started(&j, run);
    rp_log_flush(call->cli->session.log);
}

static void batch_finished(void *ctx, const struct rp_purge_batch *batch, const struct rp_run *run)
{
    struct rp_sweep_call *call = ctx;
    struct rp_journal j = journal_of(call);
    rp_journal_batch(&j, batch, run);
    rp_log_flush(call->cli->session.log);
    rp_progress_at(&call->progress, run->figures.scanned);
}

static void store_left_out(void *ctx, const struct rp_store *store, int64_t due, const struct rp_error *why)
{
    rp_sweep_leave_out(ctx, store->config->name, due, why);
}

void rp_sweep_leave_out(struct rp_sweep_call *call, const char *store, int64_t due, const struct rp_error *why)
{
    struct rp_journal j = journal_of(call);
    char text[RP_SHOWN_MAX];
    json_t *o = rp_error_json(why);
    rp_json_set(o, "store", rp_json_text(store));
    rp_json_set(o, "due", json_integer(due));
    rp_json_append(call->left_out, o);
    if (!call->dry_run) rp_journal_left_out(&j, store, due, why);
    rp_progress_clear(&call->progress);
    if (call->cli->quiet && why->code == RP_EOBSERVE) return;
    bool others = why->code == RP_ENOTOWNER; /* what is due may stand under another name, or in a copy */
    rp_warn("left out: %s%s", rp_show(why->text, text), due > 0 || others ? "" : " (nothing is due there)");
    if (due > 0) fprintf(stderr, "  %" PRId64 " due; %s\n", due, why->hint);
    if (due == 0 && others) fprintf(stderr, "  %s\n", why->hint);
}

/* ---- the stores ---- */

static int open_stores(struct rp_sweep_call *call, struct rp_error *err)
{
    struct rp_session *s = &call->cli->session;
    const char *only = rp_args_text(&call->cli->args, "store");
    if (only != NULL) {
        int r = rp_session_store(s, only, &call->stores[0], err);
        call->n_stores = r == 0;
        return r;
    }
    return rp_session_stores(s, call->stores, &call->n_stores, err);
}

static int64_t count_due(struct rp_sweep_call *call)
{
    struct rp_session *s = &call->cli->session;
    int64_t sum = 0, now_ms = rp_session_now_ms(s);
    for (size_t i = 0; i < call->n_stores; i++) {
        struct rp_overdue due = { 0 };
        struct rp_error ignored = { 0 };
        if (rp_marks_overdue(s->catalog->db, call->stores[i]->id, now_ms, &due, &ignored) == 0) sum += due.marks;
    }
    return sum;
}

/* ---- what is kept from it ---- */

static int keep_pause(void *ctx, const struct rp_hold *hold, struct rp_error *err)
{
    int64_t *id = ctx;
    (void)err;
    if (hold->scope == RP_SCOPE_EVERYTHING) *id = hold->id;
    return 0;
}

static void say_restore(const struct rp_sweep_call *call, int64_t run_id, int64_t due)
{
    RP_CLEANUP(rp_json_decrefp) json_t *run = NULL;
    struct rp_error ignored = { 0 };
    char id[RP_ID_TEXT];
    const char *waits = due == 1 ? "mark waits" : "marks wait";
    if (rp_run_find_json(call->cli->session.catalog->db, run_id, &run, &ignored) < 0) return;
    rp_id_format(RP_ID_RUN, run_id, id);
    if (strcmp(rp_json_get_text(run, "state", ""), "interrupted") == 0)
        rp_warn("%" PRId64
                " due %s for the restore %s, which was interrupted: `reprieve restore` with its filter carries "
                "it on, `reprieve cancel %s` ends it",
                due, waits, id, id);
    else
        rp_say(call->cli, "%" PRId64 " due %s for the restore %s, which is under way\n", due, waits, id);
}

/* Nothing that an open restore names is claimed, whoever left it open. Told of the oldest one. */
static void say_restores(const struct rp_sweep_call *call)
{
    const struct rp_session *s = &call->cli->session;
    struct rp_error ignored = { 0 };
    int64_t run_id, sum = 0, now_ms = rp_session_now_ms(s);
    size_t n = 0;
    if (rp_run_list_open(s->catalog->db, RP_RUN_RESTORE, &run_id, 1, &n, &ignored) < 0 || n == 0) return;
    for (size_t i = 0; i < call->n_stores; i++) {
        int64_t due = 0;
        if (rp_restore_keeps(s->catalog->db, call->stores[i]->id, now_ms, &due, &ignored) == 0) sum += due;
    }
    if (sum > 0) say_restore(call, run_id, sum);
}

/* A run while everything is held finds nothing to do, which does not mean that nothing is due. */
static void say_pause(struct rp_sweep_call *call)
{
    struct rp_error ignored = { 0 };
    char text[RP_ID_TEXT];
    int64_t id = 0;
    if (rp_hold_each(call->cli->session.catalog->db, keep_pause, &id, &ignored) < 0 || id == 0) return;
    int64_t due = count_due(call);
    rp_say(call->cli, "purging is paused by %s: nothing is claimed; %" PRId64 " due %s for `reprieve resume`\n",
           rp_id_format(RP_ID_HOLD, id, text), due, due == 1 ? "mark waits" : "marks wait");
}

void rp_sweep_say_what_waits(struct rp_sweep_call *call)
{
    say_restores(call);
    say_pause(call);
}

static struct rp_sweep sweep_of(struct rp_sweep_call *call)
{
    const char *only = rp_args_text(&call->cli->args, "store");
    struct rp_sweep sweep = rp_session_sweep(&call->cli->session);
    sweep.by.stores = call->stores;
    sweep.by.n_stores = call->n_stores;
    sweep.name = only != NULL ? only : "all";
    sweep.limit = call->limit;
    sweep.by.stop = &rp_stop_asked;
    sweep.started = run_started;
    sweep.finished = batch_finished;
    sweep.left_out = store_left_out;
    sweep.ctx = call;
    return sweep;
}

/* ---- the end of the run ---- */

static int keep_body(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    return rp_json_parse(row->body, strlen(row->body), ctx, err);
}

/* The record as the catalog has it; what we know, if the catalog cannot be asked. */
static json_t *record_of(struct rp_sweep_call *call, const struct rp_sweep_result *result)
{
    struct rp_session *s = &call->cli->session;
    struct rp_error ignored = { 0 };
    json_t *record = NULL;
    if (rp_record_get(s->catalog->db, result->run.id, keep_body, &record, &ignored) == 0 && record != NULL)
        return record;
    return rp_run_json(&result->run, result->outcome, false, rp_session_now_ms(s));
}

static void say_extremes(const struct rp_cli *cli, const struct rp_figures *f)
{
    char subject[RP_SHOWN_MAX], age[RP_TIME_TEXT], size[RP_SIZE_TEXT];
    const char *of = f->purged + f->already_gone < f->scanned ? "; of all that it looked at, purged or not" : "";
    if (f->aged == 0) return;
    rp_say(cli, "  oldest    %s, marked %s before%s\n", rp_show(f->oldest, subject),
           rp_duration_format(f->oldest_age_s * RP_SECOND_MS, age), of);
    rp_say(cli, "  largest   %s, %s%s\n", rp_show(f->largest, subject), rp_show_size(f->largest_bytes, size), of);
}

/* The run's record names every store that was left out as an error; a person has been told
 * already. */
static bool was_told(const struct rp_sweep_call *call, const char *error)
{
    for (size_t i = 0; i < json_array_size(call->left_out); i++) {
        const char *message = rp_json_get_text(json_array_get(call->left_out, i), "message", "");
        if (strncmp(message, error, strlen(error)) == 0) return true;
    }
    return false;
}

static void say_summary(struct rp_sweep_call *call, const struct rp_sweep_result *result)
{
    const struct rp_cli *cli = call->cli;
    const struct rp_figures *f = &result->run.figures;
    char id[RP_ID_TEXT], size[RP_SIZE_TEXT], text[RP_SHOWN_MAX];
    if (cli->json) return;
    rp_say(
        cli,
        "%s  %s: %" PRId64 " purged, %" PRId64 " already gone, %" PRId64 " skipped, %" PRId64 " failed, %s freed%s\n",
        rp_id_format(RP_ID_RUN, result->run.id, id), result->outcome, f->purged, f->already_gone, f->skipped, f->failed,
        rp_show_size(f->bytes_freed, size), f->superseded > 0 ? "; where a newer upload stands it was left alone" : "");
    say_extremes(cli, f);
    for (int64_t i = 0; i < f->n_errors && i < RP_RUN_ERRORS_MAX; i++)
        if (!was_told(call, f->errors[i])) rp_warn("%s", rp_show(f->errors[i], text));
    if (f->n_errors > RP_RUN_ERRORS_MAX) rp_warn("and %" PRId64 " more errors", f->n_errors - RP_RUN_ERRORS_MAX);
}

static int finish(struct rp_sweep_call *call, const struct rp_sweep_result *result)
{
    struct rp_journal j = journal_of(call);
    int code = rp_outcome_code(result->outcome, result->run.lost ? RP_EFAILED : result->code);
    rp_journal_ended(&j, &result->run, result->outcome, code);
    json_t *record = record_of(call, result);
    if (json_array_size(call->left_out) > 0) rp_json_set(record, "left_out", json_incref(call->left_out));
    rp_emit(call->cli, record);
    say_summary(call, result);
    rp_sweep_say_what_waits(call);
    if (rp_stop_asked != 0) rp_warn("stopped as asked; what is left is purged by the next sweep");
    return rp_error_exit(code);
}

/* Of one whose lock is held its command has told. */
static int not_begun(struct rp_sweep_call *call, int code, const struct rp_error *err)
{
    struct rp_journal j = journal_of(call);
    if (code != RP_ERUNNING) rp_journal_failed(&j, "sweep", NULL, err);
    return code;
}

static int ask_services(struct rp_sweep_call *call, const struct rp_sweep *sweep, struct rp_error *err)
{
    struct rp_asker_pass pass = { 0 };
    int r = rp_confirming_pass(&call->cli->session, sweep, &pass, err);
    if (r == 0 && pass.calls > 0)
        rp_say(call->cli,
               "outside services were asked %" PRId64 " times: %" PRId64 " said yes, %" PRId64 " dead letters\n",
               pass.calls, pass.yes, pass.dead);
    return r;
}

static int run_sweep(struct rp_sweep_call *call, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_sweep_result *result = calloc(1, sizeof *result);
    struct rp_sweep sweep = sweep_of(call);
    if (result == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a sweep");
    rp_catch_signals(0); /* after a second one the leases end by themselves */
    int asked = ask_services(call, &sweep, err);
    if (asked < 0) return not_begun(call, asked, err);
    rp_progress_begin(&call->progress, call->cli, "sweeping", 0);
    if (call->progress.shown) { /* reads every due mark */
        int64_t due = count_due(call);
        call->progress.total = due < call->limit ? due : call->limit;
    }
    int r = rp_sweep_run(&sweep, result, err);
    rp_progress_clear(&call->progress);
    if (r < 0) return not_begun(call, r, err);
    return finish(call, result);
}

int rp_cmd_sweep(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_sweep_call call = { .cli = cli, .dry_run = rp_args_has(&cli->args, "dry-run") };
    int r = rp_cli_open(cli, err);
    if (r < 0) return r;
    call.limit = cli->session.config.sweep_limit;
    r = rp_args_number(&cli->args, "limit", &call.limit, err);
    if (r == 0 && call.limit == 0) r = rp_error_set(err, RP_EINVAL, "--limit: a sweep of 0 marks does nothing");
    if (r < 0) return r;
    RP_CLEANUP(rp_json_decrefp) json_t *left_out = json_array();
    call.left_out = left_out;
    r = open_stores(&call, err);
    if (r < 0) return r;
    struct rp_sweep sweep = sweep_of(&call);
    return call.dry_run ? rp_sweep_dry_run(&call, &sweep, err) : run_sweep(&call, err);
}
