/* SPDX-License-Identifier: Apache-2.0 */
/* restore_filter.c - `restore` by filters: a run of its own (core/restore/restore.h), carried out
 * here. SIGINT and SIGTERM cancel it after the batch under way. A run that another process left is
 * carried on first: until then nothing that it names is purged. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "catalog/run.h"
#include "cli/cmd_restore.h"
#include "core/restore/restore.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FORESEE_ARENA_MAX ((size_t)1 << 20)

/* ---- the filter ---- */

static int read_filter(struct rp_cli *cli, struct rp_restore_filter *f, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    int64_t now_ms = rp_session_now_ms(&cli->session);
    const char *run = rp_args_text(args, "run"), *prefix = rp_args_text(args, "prefix");
    struct rp_subject subject = { 0 };
    int r = 0;
    f->reason = rp_args_text(args, "reason");
    f->actor = rp_args_text(args, "actor");
    f->since_ms = f->until_ms = -1;
    if (run != NULL) r = rp_cli_id(run, RP_ID_RUN, &f->run_id, err);
    if (run != NULL && r == 0) r = rp_run_find(cli->session.catalog->db, f->run_id, NULL, NULL, NULL, err);
    if (r == 0 && prefix != NULL) r = rp_cli_prefix(cli, prefix, &subject, err);
    if (r == 0 && prefix != NULL) f->store_id = subject.store->id;
    f->prefix = subject.key;
    if (r == 0) r = rp_args_when(args, "since", now_ms, -1, &f->since_ms, err);
    return r < 0 ? r : rp_args_when(args, "until", now_ms, -1, &f->until_ms, err);
}

/* ---- a dry run ---- */

struct foreseeing {
    struct rp_restore_report *report;
    struct rp_names names;
    struct rp_store *stores[RP_STORES_MAX];
    size_t n_stores;
    struct rp_arena arena; /* of one mark */
};

/* One whose store is not open is refused, as the run does. */
static int foresee_mark(void *ctx, const struct rp_mark *mark, struct rp_error *err)
{
    struct foreseeing *f = ctx;
    struct rp_reprieve_item item = { .mark = *mark };
    int r = 0;
    rp_arena_reset(&f->arena);
    item.store = rp_store_by_id(f->stores, f->n_stores, mark->store_id);
    if (item.store != NULL && item.store->backend != NULL)
        r = rp_reprieve_foresee(f->report->cli->session.catalog->db, mark, item.store->config->name, &f->arena,
                                &item.answer, err);
    else
        rp_error_set(&item.answer.error, RP_EUNAVAILABLE, "%s:%s: the store is not open",
                     rp_names_of(&f->names, mark->store_id), mark->key);
    if (r == 0) rp_restore_report_add(f->report, mark->key, &item);
    return r;
}

static int dry_run(struct rp_restore_report *report, const struct rp_restore_filter *filter, struct rp_error *err)
{
    struct foreseeing f = { .report = report, .arena = RP_ARENA(FORESEE_ARENA_MAX) };
    int r = rp_names_load(report->cli, &f.names, err);
    if (r == 0) r = rp_session_stores(&report->cli->session, f.stores, &f.n_stores, err);
    if (r == 0) r = rp_restore_each(report->cli->session.catalog->db, filter, foresee_mark, &f, err);
    rp_arena_done(&f.arena);
    return r < 0 ? r : rp_restore_report_end(report);
}

/* ---- the run ---- */

static void batch_finished(void *ctx, const struct rp_run *run, const struct rp_reprieve_item *items, size_t n)
{
    struct rp_restore_report *report = ctx;
    rp_progress_clear(&report->progress);
    for (size_t i = 0; i < n; i++)
        rp_restore_report_add(report, items[i].mark.key, &items[i]);
    report->progress.total = run->total;
    rp_progress_at(&report->progress, run->figures.scanned);
    rp_log_flush(report->cli->session.log);
}

static void say_end(struct rp_restore_report *report, const struct rp_run *run, const char *outcome)
{
    char id[RP_ID_TEXT];
    rp_progress_clear(&report->progress);
    if (report->cli->json) return;
    rp_say(report->cli,
           "%s  %s: %" PRId64 " restored, %" PRId64 " returned, %" PRId64 " restored before, %" PRId64 " refused\n",
           rp_id_format(RP_ID_RUN, run->id, id), outcome, run->figures.restored, run->figures.returned,
           run->figures.already_restored, run->figures.refused);
}

/* Open after this, without `outcome`: another worker has it, or the catalog cannot be reached. */
static int carry(struct rp_restore_report *report, struct rp_run *run, const char **outcome, struct rp_error *err)
{
    struct rp_session *s = &report->cli->session;
    struct rp_store *stores[RP_STORES_MAX];
    struct rp_restorer restorer = {
        .catalog = s->catalog, .stores = stores, .cancel = &rp_stop_asked, .finished = batch_finished, .ctx = report
    };
    int r = rp_session_stores(s, stores, &restorer.n_stores, err);
    if (r == 0) r = rp_restore_carry(&restorer, run, outcome, err);
    rp_progress_clear(&report->progress);
    rp_log_flush(s->log);
    if (r == 0 && *outcome != NULL) say_end(report, run, *outcome);
    if (r < 0 && !run->lost) rp_error_hint(err, "the run is still open: a daemon, or the next restore, carries it on");
    return r;
}

/* What others left, told apart from what is asked for now. */
static int carry_on_others(struct rp_cli *cli, struct rp_run *run, struct rp_error *err)
{
    struct rp_session *s = &cli->session;
    int r = 0;
    while (r == 0 && rp_stop_asked == 0) {
        struct rp_restore_report report;
        const char *outcome = NULL;
        char id[RP_ID_TEXT];
        r = rp_run_resume(s->catalog, RP_RUN_RESTORE, &s->worker, s->config.lock_stale_after_ms, run, err);
        if (r == 0) rp_warn("%s was interrupted and is carried on first", rp_id_format(RP_ID_RUN, run->id, id));
        rp_restore_report_init(&report, cli);
        if (r == 0) r = carry(&report, run, &outcome, err);
    }
    if (r == RP_ENOTFOUND) rp_error_clear(err);
    return r == RP_ENOTFOUND ? 0 : r;
}

static int restore_all(struct rp_restore_report *report, const struct rp_restore_filter *filter, const char *name,
                       struct rp_error *err)
{
    struct rp_session *s = &report->cli->session;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    const char *outcome = NULL;
    if (run == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a restore");
    /* after a second one the run is carried on by whoever finds it; lines that are being written
     * are written whole */
    rp_catch_signals(SA_RESTART);
    int r = carry_on_others(report->cli, run, err);
    if (r == 0) r = rp_restore_begin(s->catalog, filter, name, &s->worker, s->actor, run, err);
    if (r == 0) r = carry(report, run, &outcome, err);
    if (r < 0) return r;
    RP_ASSERT(outcome != NULL); /* nothing stops it but a cancel */
    r = rp_restore_report_end(report);
    if (strcmp(outcome, "failed") == 0) return rp_error_set(err, RP_EFAILED, "%s", run->figures.errors[0]);
    /* a partial one has said what was refused */
    return r == 0 && strcmp(outcome, "cancelled") == 0 ? rp_error_exit(rp_outcome_code(outcome, 0)) : r;
}

int rp_restore_by_filter(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_restore_filter filter = { 0 };
    struct rp_restore_report report;
    int r = read_filter(cli, &filter, err);
    if (r < 0) return r;
    rp_restore_report_init(&report, cli);
    const char *name = filter.store_id != 0 ? rp_session_store_name(&cli->session, filter.store_id) : "all";
    return report.dry_run ? dry_run(&report, &filter, err) : restore_all(&report, &filter, name, err);
}
