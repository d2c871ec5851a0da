/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_restore.c - `restore`: named subjects, or everything that fits all of the given filters (core/undo.h), 1,000 at a
 * time: that many are one command, of whatever stores they are. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/run.h"
#include "cli/answers.h"
#include "cli/progress.h"
#include "core/reprieve.h"
#include "core/undo.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BATCH_ARENA_MAX ((size_t)16 << 20)

struct restoring {
    struct rp_cli *cli;
    struct rp_undo_filter filter;
    bool dry_run;
    struct rp_arena arena; /* of the command */
    struct rp_reprieve_item *items;
    const char **texts; /* of each as it was given; "": by a filter */
    size_t n;
    struct rp_store *stores[RP_STORES_MAX];
    size_t n_stores;
    struct rp_answers told;
    struct rp_progress progress;
    bool broken;
};

/* ---- one answer ---- */

static json_t *answer_json(const struct restoring *res, size_t i)
{
    const struct rp_reprieve_item *item = &res->items[i];
    if (item->mark.id != 0 && item->store != NULL)
        return rp_reprieve_answer_json(&item->answer, &item->mark, item->store->config->name, res->dry_run);
    json_t *o = json_object();
    rp_json_set(o, "subject", rp_json_text(res->texts[i]));
    rp_json_set(o, "outcome", json_string("refused"));
    if (res->dry_run) rp_json_set(o, "dry_run", json_true());
    rp_json_set(o, "error", rp_error_json(&item->answer.error));
    return o;
}

static void tell(struct restoring *res, size_t i)
{
    const struct rp_reprieve_item *item = &res->items[i];
    char subject[RP_SHOWN_MAX], due[RP_WHEN_TEXT], reason[RP_SHOWN_MAX];
    if (res->cli->json) rp_emit(res->cli, answer_json(res, i));
    if (item->answer.what == RP_REPRIEVE_REFUSED) {
        rp_answers_refused(&res->told, &item->answer.error);
        return;
    }
    rp_show_subject(item->store->config->name, item->mark.key, subject);
    if (res->dry_run)
        rp_answers_done(&res->told, "%s  would be %s; it was due %s%s%s\n", subject,
                        rp_reprieving_name(item->answer.what),
                        rp_show_when(item->mark.due_at_ms, rp_session_now_ms(&res->cli->session), due),
                        item->mark.reason[0] != 0 ? ", reason: " : "", rp_show(item->mark.reason, reason));
    else
        rp_answers_done(&res->told, "%s  %s\n", subject, rp_reprieving_name(item->answer.what));
    if (item->answer.annotate_note[0] != 0)
        rp_warn("%s: restored, but its annotation stands; restore it again to try that again: %s", subject,
                item->answer.annotate_note);
}

/* ---- one command ---- */

static int flush_batch(struct restoring *res, struct rp_error *err)
{
    struct rp_session *s = &res->cli->session;
    struct rp_reprieve_command c;
    rp_reprieve_command_init(&c, res->items, res->n, s->actor, &res->arena);
    c.stores = res->stores;
    c.n_stores = res->n_stores;
    int r = res->dry_run ? rp_reprieve_dry_run(s->catalog, &c, err) : 0;
    if (r < 0) return r;
    if (!res->dry_run) (void)rp_command_run(s->catalog, &c.command);
    res->broken = c.command.failed;
    rp_progress_clear(&res->progress);
    for (size_t i = 0; i < res->n; i++) {
        if (res->broken) res->items[i].answer = (struct rp_reprieve_answer){ .error = c.command.error };
        tell(res, i);
    }
    rp_progress_at(&res->progress, res->told.done + res->told.refused);
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

/* ---- by filters ---- */

static int add_mark(void *ctx, const struct rp_mark *mark, struct rp_error *err)
{
    struct restoring *res = ctx;
    struct rp_reprieve_item item = { 0 };
    int r = rp_mark_copy(mark, &res->arena, &item.mark, err);
    if (r == 0) r = rp_cli_store_of(res->cli, mark->store_id, &item.store, err);
    if (r == 0) r = add(res, "", &item, err);
    return r < 0 ? r : res->broken;
}

/* ---- the command ---- */

static int ignore_record(void *ctx, const struct rp_record_row *row, struct rp_error *err)
{
    (void)ctx, (void)row, (void)err;
    return 0;
}

static int read_filter(struct rp_cli *cli, struct rp_undo_filter *f, struct rp_error *err)
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
    if (run != NULL && r == 0) r = rp_record_get(cli->session.catalog->db, f->run_id, ignore_record, NULL, err);
    if (r == 0 && prefix != NULL) r = rp_cli_prefix(cli, prefix, &subject, err);
    if (r == 0 && prefix != NULL) f->store_id = subject.store->id;
    f->prefix = subject.key;
    if (r == 0) r = rp_args_when(args, "since", now_ms, -1, &f->since_ms, err);
    return r < 0 ? r : rp_args_when(args, "until", now_ms, -1, &f->until_ms, err);
}

static int check_use(const struct rp_args *args, bool *filtered, struct rp_error *err)
{
    static const char *const names[] = { "run", "prefix", "reason", "actor", "since", "until" };
    *filtered = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        *filtered = *filtered || rp_args_has(args, names[i]);
    if (*filtered && args->n_words > 0)
        return rp_error_set(err, RP_EINVAL, "restore: give subjects or filters, not both ('%.64s')", args->words[0]);
    if (*filtered || args->n_words > 0) return 0;
    rp_error_set(err, RP_EINVAL, "restore what?");
    return rp_error_hint(err, "reprieve restore STORE:KEY, or a filter: --run, --prefix, --reason, --actor, --since");
}

static void restoring_done(struct restoring *res)
{
    rp_arena_done(&res->arena);
    free(res->items);
    free(res->texts);
}

int rp_cmd_restore(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(restoring_done) struct restoring res = { .cli = cli, .arena = RP_ARENA(BATCH_ARENA_MAX) };
    bool filtered;
    int r = check_use(&cli->args, &filtered, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r == 0 && filtered) r = read_filter(cli, &res.filter, err);
    if (r < 0) return r;
    res.items = calloc(RP_REPRIEVE_ITEMS_MAX, sizeof *res.items);
    res.texts = calloc(RP_REPRIEVE_ITEMS_MAX, sizeof *res.texts);
    if (res.items == NULL || res.texts == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    res.dry_run = rp_args_has(&cli->args, "dry-run");
    rp_answers_init(&res.told, cli);
    rp_progress_begin(&res.progress, cli, "restoring", 0);
    r = filtered ? rp_undo_each(cli->session.catalog->db, &res.filter, add_mark, &res, err) : restore_words(&res, err);
    if (r == 0 && res.n > 0) r = flush_batch(&res, err);
    rp_progress_clear(&res.progress);
    if (r < 0) return r;
    if (res.told.done + res.told.refused == 0) rp_say(cli, "nothing to restore: no waiting mark fits\n");
    return rp_answers_end(&res.told, res.dry_run ? "would be restored" : "restored");
}
