/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_restore.c - `restore`: named subjects, or everything that fits all of the given filters (core/undo.h), 1,000 at a
 * time. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "catalog/run.h"
#include "cli/answers.h"
#include "cli/progress.h"
#include "core/file/file.h"
#include "core/state.h"
#include "core/undo.h"
#include "lib/answer.h"
#include "core/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BATCH_ARENA_MAX ((size_t)16 << 20)

struct item {
    const char *text; /* as it was given, or the mark's subject */
    struct rp_store *store;
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    bool asked;
};

struct restoring {
    struct rp_cli *cli;
    struct rp_undo_filter filter;
    bool dry_run;
    struct rp_arena arena; /* of the batch */
    struct item *items;
    size_t n;
    struct rp_mark *marks; /* of one store's share */
    struct rp_reprieve_answer *answers;
    size_t *from;
    struct rp_answers told;
    struct rp_progress progress;
    bool broken;
};

/* ---- one answer ---- */

static json_t *answer_json(const struct restoring *res, const struct item *item)
{
    if (item->store != NULL)
        return rp_reprieve_answer_json(&item->answer, &item->mark, item->store->config->name, res->dry_run);
    json_t *o = json_object();
    rp_json_set(o, "subject", rp_json_text(item->text));
    rp_json_set(o, "outcome", json_string("refused"));
    if (res->dry_run) rp_json_set(o, "dry_run", json_true());
    rp_json_set(o, "error", rp_error_json(&item->answer.error));
    return o;
}

static void log_answer(const struct restoring *res, const struct item *item)
{
    const struct rp_session *s = &res->cli->session;
    struct rp_journal j = { .log = s->log, .at_ms = rp_session_now_ms(s), .actor = s->actor };
    if (res->dry_run) return;
    if (item->store != NULL)
        rp_journal_restore(&j, item->store->config->name, &item->mark, &item->answer);
    else
        rp_journal_refused(&j, "restore.refused", item->text, "", &item->answer.error);
}

static void tell(struct restoring *res, const struct item *item)
{
    char subject[RP_SHOWN_MAX], due[RP_WHEN_TEXT], reason[RP_SHOWN_MAX];
    log_answer(res, item);
    if (res->cli->json) rp_emit(res->cli, answer_json(res, item));
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

/* ---- one batch ---- */

/* What a restore would say now; nothing is changed. */
static int foresee(struct restoring *res, struct item *item, struct rp_error *err)
{
    return rp_undo_foresee(res->cli->session.catalog->db, &item->mark, item->store->config->name, &res->arena,
                           &item->answer, err);
}

static size_t collect_share(struct restoring *res, const struct rp_store *store)
{
    size_t n = 0;
    for (size_t i = 0; i < res->n; i++) {
        if (res->items[i].store != store || res->items[i].asked) continue;
        res->items[i].asked = true;
        res->marks[n] = res->items[i].mark;
        res->from[n++] = i;
    }
    return n;
}

static int restore_share(struct restoring *res, struct rp_store *store, struct rp_error *err)
{
    struct rp_session *s = &res->cli->session;
    size_t n = collect_share(res, store);
    int r = 0;
    for (size_t i = 0; i < n && r == 0 && res->dry_run; i++)
        r = foresee(res, &res->items[res->from[i]], err);
    if (r < 0 || res->dry_run) return r;
    struct rp_error why = { 0 };
    r = rp_reprieve_many(s->catalog, store, res->marks, n, s->actor, res->answers, &why);
    for (size_t i = 0; i < n; i++) {
        if (r < 0) res->answers[i] = (struct rp_reprieve_answer){ .what = RP_REPRIEVE_REFUSED, .error = why };
        res->items[res->from[i]].answer = res->answers[i];
    }
    if (r < 0) res->broken = true;
    if (r == 0) rp_session_committed(s, store);
    return 0;
}

static int flush_batch(struct restoring *res, struct rp_error *err)
{
    int r = 0;
    for (size_t i = 0; i < res->n && r == 0; i++)
        if (res->items[i].store != NULL && !res->items[i].asked) r = restore_share(res, res->items[i].store, err);
    if (r < 0) return r;
    rp_progress_clear(&res->progress);
    for (size_t i = 0; i < res->n; i++)
        tell(res, &res->items[i]);
    rp_progress_at(&res->progress, res->told.done + res->told.refused);
    rp_log_flush(res->cli->session.log);
    rp_arena_reset(&res->arena);
    res->n = 0;
    return 0;
}

static int added(struct restoring *res, struct rp_error *err)
{
    return ++res->n == RP_REPRIEVE_BATCH_MAX ? flush_batch(res, err) : 0;
}

/* ---- named subjects ---- */

static int find_mark(struct restoring *res, struct item *item, struct rp_error *err)
{
    struct rp_subject subject;
    struct rp_session *s = &res->cli->session;
    int r = rp_cli_subject(res->cli, item->text, &res->arena, &subject, err);
    if (r < 0) return r;
    if (subject.file_id != 0)
        r = rp_file_mark(s->catalog->db, subject.file_id, &res->arena, &item->mark, err);
    else if (subject.mark_id != 0)
        r = rp_mark_get(s->catalog->db, subject.mark_id, &res->arena, &item->mark, err);
    else
        r = rp_reprieve_find(s->catalog, subject.store, subject.key, &res->arena, &item->mark, err);
    if (r == 0) item->store = subject.store;
    return r;
}

static int restore_words(struct restoring *res, struct rp_error *err)
{
    const struct rp_args *args = &res->cli->args;
    int r = 0;
    for (size_t i = 0; i < args->n_words && r == 0 && !res->broken; i++) {
        struct item *item = &res->items[res->n];
        *item = (struct item){ .text = args->words[i] };
        if (find_mark(res, item, &item->answer.error) < 0) item->answer.what = RP_REPRIEVE_REFUSED;
        r = added(res, err);
    }
    return r;
}

/* ---- by filters ---- */

static int add_mark(void *ctx, const struct rp_mark *mark, struct rp_error *err)
{
    struct restoring *res = ctx;
    struct item *item = &res->items[res->n];
    *item = (struct item){ .text = "" };
    int r = rp_mark_copy(mark, &res->arena, &item->mark, err);
    if (r == 0) r = rp_cli_store_of(res->cli, mark->store_id, &item->store, err);
    if (r == 0) r = added(res, err);
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

static int restoring_init(struct restoring *res, struct rp_error *err)
{
    res->arena = RP_ARENA(BATCH_ARENA_MAX);
    res->items = calloc(RP_REPRIEVE_BATCH_MAX, sizeof *res->items);
    res->marks = calloc(RP_REPRIEVE_BATCH_MAX, sizeof *res->marks);
    res->answers = calloc(RP_REPRIEVE_BATCH_MAX, sizeof *res->answers);
    res->from = calloc(RP_REPRIEVE_BATCH_MAX, sizeof *res->from);
    if (res->items == NULL || res->marks == NULL || res->answers == NULL || res->from == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for a batch of marks");
    return 0;
}

static void restoring_done(struct restoring *res)
{
    rp_arena_done(&res->arena);
    free(res->items);
    free(res->marks);
    free(res->answers);
    free(res->from);
}

int rp_cmd_restore(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(restoring_done) struct restoring res = { .cli = cli };
    bool filtered;
    int r = check_use(&cli->args, &filtered, err);
    if (r == 0) r = restoring_init(&res, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r == 0 && filtered) r = read_filter(cli, &res.filter, err);
    if (r < 0) return r;
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
