/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_import.c - `import`: what the walk over a store finds, a batch at a time: a row or a line
 * of JSON for each annotated object, the counts at the end. */
#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "cli/answers.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "core/journal.h"
#include "core/mark/import_run.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct importing {
    struct rp_cli *cli;
    struct rp_import import;
    struct rp_table table;
    struct rp_answers told;
    struct rp_progress progress;
    char run[RP_ID_TEXT]; /* "": a dry run is none */
    const char *outcome;  /* of the run */
};

/* ---- one object ---- */

/* What became a mark's command is logged by that. */
static void log_unread(const struct importing *m, const struct rp_import_item *item)
{
    const struct rp_session *s = &m->cli->session;
    struct rp_journal j = { .log = s->log, .at_ms = rp_session_now_ms(s), .actor = s->actor };
    char subject[RP_SHOWN_MAX];
    if (m->import.dry_run || !item->unread) return;
    snprintf(subject, sizeof subject, "%s:%s", m->import.store->config->name, item->key);
    rp_journal_refused(&j, "mark.refused", subject, item->note.reason, &item->answer.error);
}

static json_t *item_json(const struct importing *m, const struct rp_import_item *item)
{
    json_t *o = rp_mark_answer_json(&item->answer, m->import.store->config->name, item->key);
    bool is_new = item->answer.what == RP_MARK_CREATED || item->answer.what == RP_MARK_REPLACED;
    if (item->note.flag == RP_IMPORT_UNCLEAR) rp_json_set(o, "outcome", json_string("unclear"));
    if (item->note.flag == RP_IMPORT_YES)
        rp_json_set(o, "time_from", json_string(rp_import_time_name(item->note.time)));
    if (!m->import.dry_run) return o;
    rp_json_set(o, "dry_run", json_true());
    if (is_new) {
        json_object_del(o, "mark");
        json_object_del(o, "marked_at");
    }
    return o;
}

static const char *outcome_text(const struct importing *m, const struct rp_import_item *item)
{
    bool is_new = item->answer.what == RP_MARK_CREATED || item->answer.what == RP_MARK_REPLACED;
    return is_new && m->import.dry_run ? "would be marked" : rp_marking_name(item->answer.what);
}

static void tell(struct importing *m, const struct rp_import_item *item)
{
    const struct rp_mark_answer *a = &item->answer;
    char due[RP_WHEN_TEXT], subject[RP_SHOWN_MAX];
    log_unread(m, item);
    rp_emit(m->cli, m->cli->json ? item_json(m, item) : NULL);
    if (item->note.flag == RP_IMPORT_UNCLEAR) { /* nothing failed, but a person should know */
        if (!m->cli->json) rp_warn("%s", rp_show(a->error.text, subject));
        return;
    }
    if (a->what == RP_MARK_REFUSED) {
        rp_answers_refused(&m->told, &a->error);
        return;
    }
    m->told.done++;
    if (m->cli->json || m->cli->quiet) return;
    const char *cells[] = { rp_show_subject(m->import.store->config->name, item->key, subject), outcome_text(m, item),
                            rp_show_when(a->due_at_ms, rp_session_now_ms(&m->cli->session), due),
                            rp_import_time_name(item->note.time),
                            a->what == RP_MARK_SAME ? a->reason : item->note.reason };
    rp_table_row(&m->table, cells);
}

/* ---- all of them ---- */

static void tell_counts(const struct importing *m)
{
    const struct rp_import_counts *c = &m->import.counts;
    bool dry_run = m->import.dry_run;
    json_t *o = !m->cli->json
                    ? NULL
                    : json_pack("{s:s,s:b,s:b,s:{s:I,s:I,s:I,s:I,s:I,s:I,s:I}}", "store", m->import.store->config->name,
                                "dry_run", dry_run, "limited", m->import.limited, "counts", "looked_at",
                                (json_int_t)c->looked_at, "annotated", (json_int_t)c->annotated, "marked",
                                (json_int_t)c->marked, "already_marked", (json_int_t)c->already_marked, "unreadable",
                                (json_int_t)c->unreadable, "unclear", (json_int_t)c->unclear, "refused",
                                (json_int_t)c->refused);
    if (o != NULL && m->run[0] != 0) {
        rp_json_set(o, "run", json_string(m->run));
        rp_json_set(o, "outcome", json_string(m->outcome));
    }
    rp_emit(m->cli, o);
    rp_say(m->cli, "%" PRId64 " looked at, %" PRId64 " annotated: %" PRId64 " %s, %" PRId64 " already marked\n",
           c->looked_at, c->annotated, c->marked, dry_run ? "would be marked" : "marked", c->already_marked);
    if (c->unreadable > 0)
        rp_say(m->cli, "%" PRId64 " with a time that cannot be read: the grace begins with the import\n",
               c->unreadable);
    if (c->unclear > 0) rp_say(m->cli, "%" PRId64 " say neither true nor false and were left alone\n", c->unclear);
    if (m->import.limited) rp_say(m->cli, "stopped at --limit: there may be more\n");
}

static void tell_batch(struct importing *m, const struct rp_import *import)
{
    if (import->n_batch > 0) rp_progress_clear(&m->progress);
    for (size_t i = 0; i < import->n_batch; i++)
        tell(m, import->batch[i]);
    rp_progress_at(&m->progress, import->counts.looked_at);
    rp_log_flush(m->cli->session.log);
}

static int walk(struct importing *m, struct rp_error *err)
{
    int r = rp_import_begin(&m->import, err);
    while (r >= 0 && (r = rp_import_next(&m->import, m->cli->session.catalog, err)) > 0)
        tell_batch(m, &m->import);
    return r;
}

static void batch_finished(void *ctx, const struct rp_import *import, const struct rp_run *run)
{
    (void)run;
    tell_batch(ctx, import);
}

/* As a run, with its record; what was counted is then the import's own. */
static int carry(struct importing *m, struct rp_error *err)
{
    struct rp_session *s = &m->cli->session;
    RP_CLEANUP(rp_freep) struct rp_run *run = calloc(1, sizeof *run);
    struct rp_importer importer = {
        .catalog = s->catalog, .import = m->import, .stop = &rp_stop_asked, .finished = batch_finished, .ctx = m
    };
    struct rp_journal j = { .log = s->log, .at_ms = rp_session_now_ms(s), .actor = s->actor };
    if (run == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for an import");
    int r = rp_run_begin(s->catalog, RP_RUN_IMPORT, m->import.store->config->name, &s->worker,
                         s->config.lock_stale_after_ms, run, err);
    if (r < 0) return r;
    rp_catch_signals(SA_RESTART); /* lines that are being written are written whole */
    rp_journal_started(&j, run);
    r = rp_import_carry(&importer, run, &m->outcome, err);
    j.at_ms = rp_session_now_ms(s);
    rp_journal_ended(&j, run, m->outcome, r);
    m->import.counts = importer.import.counts;
    m->import.limited = importer.import.limited;
    rp_id_format(RP_ID_RUN, run->id, m->run);
    return r;
}

/* The exit code: what was refused, else how the run ended. */
static int end(struct importing *m)
{
    int ended = m->outcome != NULL ? rp_error_exit(rp_outcome_code(m->outcome, 0)) : 0;
    int refused =
        m->told.refused > 0 ? rp_answers_end(&m->told, m->import.dry_run ? "can be imported" : "imported") : 0;
    if (m->outcome != NULL && strcmp(m->outcome, "cancelled") == 0) rp_warn("%s was cancelled", m->run);
    if (ended != 0 && rp_stop_asked != 0) rp_warn("stopped as asked; the next import goes past what is marked");
    return refused != 0 ? refused : ended;
}

static int read_options(struct rp_cli *cli, struct rp_import *import, struct rp_error *err)
{
    const char *store_name = rp_args_text(&cli->args, "store"), *prefix = rp_args_text(&cli->args, "prefix");
    import->prefix = prefix != NULL ? prefix : "";
    import->dry_run = rp_args_has(&cli->args, "dry-run");
    if (store_name == NULL)
        return rp_error_advise(err, RP_EINVAL, "reprieve import --store STORE; `reprieve stores` lists them",
                               "import from where?");
    if (strlen(import->prefix) > RP_KEY_MAX)
        return rp_error_set(err, RP_EINVAL, "--prefix: no key has more than %d bytes", RP_KEY_MAX);
    int r = rp_args_number(&cli->args, "limit", &import->limit, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r == 0) r = rp_session_store(&cli->session, store_name, &import->store, err);
    import->actor = cli->session.actor;
    return r;
}

static void importing_done(struct importing *m)
{
    rp_import_end(&m->import);
    rp_table_done(&m->table);
}

int rp_cmd_import(struct rp_cli *cli, struct rp_error *err)
{
    static const struct rp_column columns[] = { RP_TEXTS("SUBJECT"), RP_COLUMN("OUTCOME"), RP_COLUMN("DUE"),
                                                RP_COLUMN("TIME FROM"), RP_TEXTS("REASON") };
    RP_CLEANUP(importing_done) struct importing m = { .cli = cli };
    int r = read_options(cli, &m.import, err);
    if (r < 0) return r;
    rp_table_init(&m.table, stdout, columns, sizeof columns / sizeof columns[0]);
    rp_answers_init(&m.told, cli);
    rp_progress_begin(&m.progress, cli, "reading", 0);
    r = m.import.dry_run ? walk(&m, err) : carry(&m, err);
    rp_progress_clear(&m.progress);
    rp_table_end(&m.table);
    if (r < 0) return r;
    tell_counts(&m);
    return end(&m);
}
