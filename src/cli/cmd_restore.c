/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_restore.c - `restore`: named subjects, 1,000 at a time: that many are one command, of
 * whatever stores they are. Everything that fits filters is restore_filter.c's. */
#include "cli/cmd_restore.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/json.h"
#include "lib/answer.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_ARENA_MAX ((size_t)16 << 20)

struct restoring {
    struct rp_cli *cli;
    struct rp_arena arena; /* of the command */
    struct rp_reprieve_item *items;
    const char **texts; /* of each as it was given */
    size_t n;
    struct rp_store *stores[RP_STORES_MAX];
    size_t n_stores;
    struct rp_restore_report report;
    bool broken;
};

/* ---- one answer ---- */

static json_t *answer_json(const struct rp_restore_report *report, const char *text,
                           const struct rp_reprieve_item *item)
{
    if (item->mark.id != 0 && item->store != NULL)
        return rp_reprieve_answer_json(&item->answer, &item->mark, item->store->config->name, report->dry_run);
    json_t *o = rp_json_object("subject", rp_json_text(text), "outcome", json_string("refused"), NULL);
    if (report->dry_run) rp_json_set(o, "dry_run", json_true());
    rp_json_set(o, "error", rp_error_json(&item->answer.error));
    return o;
}

void rp_restore_report_add(struct rp_restore_report *report, const char *text, const struct rp_reprieve_item *item)
{
    char subject[RP_SHOWN_MAX], due[RP_WHEN_TEXT], reason[RP_SHOWN_MAX];
    if (report->cli->json) rp_emit(report->cli, answer_json(report, text, item));
    if (item->answer.what == RP_REPRIEVE_REFUSED) {
        rp_answers_refused(&report->told, &item->answer.error);
        return;
    }
    rp_show_subject(item->store->config->name, item->mark.key, subject);
    if (report->dry_run)
        rp_answers_done(&report->told, "%s  would be %s; it was due %s%s%s\n", subject,
                        rp_reprieving_name(item->answer.what),
                        rp_show_when(item->mark.due_at_ms, rp_session_now_ms(&report->cli->session), due),
                        item->mark.reason[0] != 0 ? ", reason: " : "", rp_show(item->mark.reason, reason));
    else
        rp_answers_done(&report->told, "%s  %s\n", subject, rp_reprieving_name(item->answer.what));
    if (item->answer.annotate_note[0] != 0)
        rp_warn("%s: restored, but its annotation stands; restore it again to try that again: %s", subject,
                item->answer.annotate_note);
    if (item->answer.agreed != NULL)
        rp_warn("%s: deleted already by: %s; what it held there does not come back with it", subject,
                item->answer.agreed);
}

void rp_restore_report_init(struct rp_restore_report *report, struct rp_cli *cli)
{
    *report = (struct rp_restore_report){ .cli = cli, .dry_run = rp_args_has(&cli->args, "dry-run") };
    rp_answers_init(&report->told, cli);
    rp_progress_begin(&report->progress, cli, "restoring", 0);
}

int rp_restore_report_end(struct rp_restore_report *report)
{
    rp_progress_clear(&report->progress);
    if (report->told.done + report->told.refused == 0)
        rp_say(report->cli, "nothing to restore: no waiting mark fits\n");
    return rp_answers_end(&report->told, report->dry_run ? "would be restored" : "restored");
}

/* ---- one command ---- */

static int flush_batch(struct restoring *res, struct rp_error *err)
{
    struct rp_session *s = &res->cli->session;
    struct rp_reprieve_command c;
    char id[RP_ID_TEXT];
    rp_reprieve_command_init(&c, res->items, res->n, s->actor, &res->arena);
    c.stores = res->stores;
    c.n_stores = res->n_stores;
    int r = res->report.dry_run ? rp_reprieve_dry_run(s->catalog, &c, err) : 0;
    if (r < 0) return r;
    if (!res->report.dry_run) (void)rp_command_run(s->catalog, &c.command);
    res->broken = c.command.failed;
    rp_progress_clear(&res->report.progress);
    for (size_t i = 0; i < res->n; i++) {
        if (res->broken) res->items[i].answer = (struct rp_reprieve_answer){ .error = c.command.error };
        rp_restore_report_add(&res->report, res->texts[i], &res->items[i]);
    }
    for (size_t i = 0; i < c.n_family && !res->broken; i++)
        rp_restore_report_add(&res->report, rp_id_format(RP_ID_FILE, c.family[i].file_id, id), &c.family[i]);
    rp_progress_at(&res->report.progress, res->report.told.done + res->report.told.refused);
    rp_log_flush(s->log);
    rp_arena_reset(&res->arena);
    res->n = 0;
    return 0;
}

static int add(struct restoring *res, const char *text, const struct rp_reprieve_item *item, struct rp_error *err)
{
    res->texts[res->n] = text;
    res->items[res->n++] = *item;
    return res->n == RP_REPRIEVE_ITEMS_MAX ? flush_batch(res, err) : 0;
}

/* ---- named subjects ---- */

static int restore_words(struct restoring *res, struct rp_error *err)
{
    const struct rp_args *args = &res->cli->args;
    int r = rp_session_stores(&res->cli->session, res->stores, &res->n_stores, err);
    for (size_t i = 0; i < args->n_words && r == 0 && !res->broken; i++) {
        struct rp_reprieve_item item = { .key = args->words[i] }; /* it is logged with it if it is no subject */
        struct rp_subject subject;
        if (rp_session_subject(&res->cli->session, args->words[i], &subject, &item.error) == 0)
            item = (struct rp_reprieve_item){
                .mark_id = subject.mark_id, .file_id = subject.file_id, .store = subject.store, .key = subject.key
            };
        r = add(res, args->words[i], &item, err);
    }
    return r;
}

/* ---- the command ---- */

static int check_use(const struct rp_args *args, bool *filtered, struct rp_error *err)
{
    static const char *const names[] = { "run", "prefix", "reason", "actor", "since", "until" };
    *filtered = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        *filtered = *filtered || rp_args_has(args, names[i]);
    if (*filtered && args->n_words > 0)
        return rp_error_set(err, RP_EINVAL, "restore: give subjects or filters, not both ('%.64s')", args->words[0]);
    if (*filtered || args->n_words > 0) return 0;
    return rp_error_advise(err, RP_EINVAL,
                           "reprieve restore STORE:KEY, or a filter: --run, --prefix, --reason, --actor, --since",
                           "restore what?");
}

static void restoring_done(struct restoring *res)
{
    rp_arena_done(&res->arena);
    free(res->items);
    free(res->texts);
}

static int restore_named(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(restoring_done) struct restoring res = { .cli = cli, .arena = RP_ARENA(BATCH_ARENA_MAX) };
    res.items = calloc(RP_REPRIEVE_ITEMS_MAX, sizeof *res.items);
    res.texts = calloc(RP_REPRIEVE_ITEMS_MAX, sizeof *res.texts);
    if (res.items == NULL || res.texts == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    rp_restore_report_init(&res.report, cli);
    int r = restore_words(&res, err);
    if (r == 0 && res.n > 0) r = flush_batch(&res, err);
    rp_progress_clear(&res.report.progress);
    return r < 0 ? r : rp_restore_report_end(&res.report);
}

int rp_cmd_restore(struct rp_cli *cli, struct rp_error *err)
{
    bool filtered;
    int r = check_use(&cli->args, &filtered, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r < 0) return r;
    return filtered ? rp_restore_by_filter(cli, err) : restore_named(cli, err);
}
