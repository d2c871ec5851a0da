/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mark.c - `mark`: up to 1,000 subjects are one command, of whatever stores they are,
 * answered in the order in which they were given. A file is a command of its own. Memory is that
 * of one command, however long the list. */
#include "base/cleanup.h"
#include "base/text/json.h"
#include "base/time.h"
#include "cli/answers.h"
#include "cli/lines.h"
#include "cli/progress.h"
#include "core/confirm/confirm.h"
#include "lib/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BATCH_ARENA_MAX ((size_t)16 << 20)

struct marking {
    struct rp_cli *cli;
    struct rp_mark_request pattern; /* all but the key */
    struct rp_confirmer_list confirmers;
    struct rp_arena arena;
    struct rp_mark_item *items; /* what is no subject has no store, and the text as its key */
    size_t n;
    struct rp_answers told;
    struct rp_progress progress;
    bool broken; /* what follows would fail too */
};

/* ---- one answer ---- */

static json_t *answer_json(const struct rp_mark_item *item)
{
    const struct rp_mark_request *request = &item->request;
    if (item->store != NULL) return rp_mark_answer_json(&item->answer, item->store->config->name, request->key);
    return rp_json_object("subject", rp_json_text(request->key), "outcome", json_string("refused"), "error",
                          rp_error_json(&item->answer.error), NULL);
}

static void tell(struct marking *m, const struct rp_mark_item *item)
{
    const struct rp_mark_answer *a = &item->answer;
    struct rp_error refused = a->error;
    char subject[RP_SHOWN_MAX], due[RP_WHEN_TEXT], id[RP_ID_TEXT];
    if (m->cli->json) rp_emit(m->cli, answer_json(item));
    if (a->what == RP_MARK_REFUSED) {
        if (refused.code == RP_EGRACE && m->pattern.at_ms >= 0) rp_error_wrap(&refused, RP_EGRACE, "--at");
        rp_answers_refused(&m->told, &refused);
        return;
    }
    rp_answers_done(&m->told, "%s  %s, due %s  %s\n",
                    rp_show_subject(item->store->config->name, item->request.key, subject), rp_marking_name(a->what),
                    rp_show_when(a->due_at_ms, rp_session_now_ms(&m->cli->session), due),
                    rp_id_format(RP_ID_MARK, a->mark_id, id));
    if (a->asked_now && a->what != RP_MARK_SAME)
        rp_warn("%s: a service is asked at once; from then on it cannot be restored any more", subject);
    if (a->annotate_note[0] != 0) rp_warn("%s: marked, but not annotated: %s", subject, a->annotate_note);
}

/* ---- one command ---- */

static void tell_all(struct marking *m)
{
    rp_progress_clear(&m->progress);
    for (size_t i = 0; i < m->n; i++)
        tell(m, &m->items[i]);
    rp_progress_at(&m->progress, m->told.done + m->told.refused);
    rp_log_flush(m->cli->session.log);
    rp_arena_reset(&m->arena);
    m->n = 0;
}

/* No store answers: the next thousand would only wait as long. */
static bool is_hopeless(const struct marking *m)
{
    size_t n = 0;
    while (n < m->n && m->items[n].answer.error.code == RP_EUNAVAILABLE)
        n++;
    return n == RP_MARK_ITEMS_MAX;
}

static void flush_batch(struct marking *m)
{
    struct rp_mark_command c;
    if (m->n == 0) return;
    rp_mark_command_init(&c, m->items, m->n, m->cli->session.actor);
    (void)rp_command_run(m->cli->session.catalog, &c.command);
    for (size_t i = 0; i < m->n && c.command.failed; i++)
        m->items[i].answer = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .error = c.command.error };
    m->broken = c.command.failed || is_hopeless(m);
    tell_all(m);
}

static void mark_file(struct marking *m, const struct rp_subject *subject)
{
    struct rp_session *s = &m->cli->session;
    struct rp_mark_item *item = &m->items[0];
    struct rp_error err = { 0 };
    *item = (struct rp_mark_item){ .store = subject->store, .request = m->pattern };
    item->request.key = subject->key;
    int r = rp_session_mark_file(s, subject->file_id, &m->pattern, &item->store, &item->answer, &err);
    if (r < 0) item->answer = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .error = err };
    m->n = 1;
    tell_all(m);
}

static bool is_file(const char *text)
{
    enum rp_id_kind kind;
    int64_t id;
    return rp_id_parse(text, &kind, &id) && kind == RP_ID_FILE;
}

/* `why` NULL: a text that may be a subject; else a line that is none, and why. */
static int add(struct marking *m, const char *line, const struct rp_error *why, struct rp_error *err)
{
    struct rp_subject subject = { 0 };
    struct rp_error refused = { 0 };
    if (is_file(line)) flush_batch(m);
    if (m->broken) return 0;
    const char *text = rp_arena_strdup(&m->arena, line);
    if (text == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of subjects");
    if (why != NULL)
        refused = *why;
    else if (rp_cli_subject(m->cli, text, &m->arena, &subject, &refused) < 0)
        subject = (struct rp_subject){ 0 };
    if (subject.file_id != 0) {
        mark_file(m, &subject);
        return 0;
    }
    if (subject.store != NULL) rp_session_look(&m->cli->session, subject.store);
    struct rp_mark_item *item = &m->items[m->n++];
    *item = (struct rp_mark_item){ .store = subject.store, .request = m->pattern };
    if (subject.store == NULL) rp_mark_item_refuse(item, &refused);
    item->request.key = subject.store != NULL ? subject.key : text;
    if (m->n == RP_MARK_ITEMS_MAX) flush_batch(m);
    return 0;
}

/* ---- the whole list ---- */

static int mark_words(struct marking *m, struct rp_error *err)
{
    const struct rp_args *args = &m->cli->args;
    int r = 0;
    size_t i = 0;
    for (; i < args->n_words && r == 0 && !m->broken; i++)
        r = add(m, args->words[i], NULL, err);
    if (m->broken) rp_warn("stopped at '%.64s': what follows was not tried", args->words[i - 1]);
    return r;
}

static int mark_lines(struct marking *m, struct rp_error *err)
{
    RP_CLEANUP(rp_freep) struct rp_lines *lines = calloc(1, sizeof *lines);
    int r = 1;
    if (lines == NULL) return rp_error_set(err, RP_ENOMEM, "no memory to read the list");
    lines->from = stdin;
    lines->separator = rp_args_has(&m->cli->args, "null") ? 0 : '\n';
    while (!m->broken) {
        struct rp_error why = { 0 };
        r = rp_lines_next(lines, &why);
        if (r == 0) return 0;
        if (r < 0 && r != RP_EINVAL) {
            *err = why;
            return r;
        }
        r = add(m, lines->text, r < 0 ? &why : NULL, err);
        if (r < 0) return r;
    }
    if (m->broken) rp_warn("stopped after line %" PRId64 ": the rest was not read", lines->number);
    return 0;
}

static int read_pattern(struct rp_cli *cli, struct rp_mark_request *out, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    const char *reason = rp_args_text(args, "reason");
    *out = (struct rp_mark_request){ .grace_ms = -1, .at_ms = -1, .reason = reason != NULL ? reason : "" };
    out->if_unreferenced = rp_args_has(args, "if-unreferenced");
    out->annotate = rp_args_has(args, "annotate");
    if (rp_args_has(args, "grace") && rp_args_has(args, "at"))
        return rp_error_set(err, RP_EINVAL, "--grace and --at say the same thing: give one of them");
    if (strlen(out->reason) > RP_REASON_MAX)
        return rp_error_set(err, RP_EINVAL, "--reason has %zu bytes; %d are allowed", strlen(reason), RP_REASON_MAX);
    int r = rp_args_duration(args, "grace", &out->grace_ms, err);
    return r < 0 ? r : rp_args_when(args, "at", rp_clock_now_ms(NULL), 1, &out->at_ms, err);
}

static int read_confirmers(struct marking *m, struct rp_error *err)
{
    const char *names[RP_CONFIRMATIONS_EACH], *name;
    size_t n = 0, at = 0;
    while ((name = rp_args_next(&m->cli->args, "confirm", &at)) != NULL) {
        if (n == RP_CONFIRMATIONS_EACH)
            return rp_error_set(err, RP_EINVAL, "--confirm: at most %d services", RP_CONFIRMATIONS_EACH);
        names[n++] = name;
    }
    int r = rp_confirmers_find(&m->cli->session.config, names, n, &m->confirmers, err);
    if (n > 0) m->pattern.confirmations = &m->confirmers;
    return r;
}

static int check_use(const struct rp_cli *cli, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    bool from_stdin = rp_args_has(args, "stdin");
    if (from_stdin && args->n_words > 0)
        return rp_error_set(err, RP_EINVAL, "--stdin reads the subjects: '%.64s' cannot be given beside it",
                            args->words[0]);
    if (rp_args_has(args, "null") && !from_stdin) return rp_error_set(err, RP_EINVAL, "-0 goes with --stdin");
    if (from_stdin || args->n_words > 0) return 0;
    return rp_error_advise(err, RP_EINVAL, "reprieve mark STORE:KEY, or a list with --stdin", "mark what?");
}

static void marking_done(struct marking *m)
{
    rp_arena_done(&m->arena);
    free(m->items);
}

int rp_cmd_mark(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(marking_done) struct marking m = { .cli = cli, .arena = RP_ARENA(BATCH_ARENA_MAX) };
    int r = check_use(cli, err);
    if (r == 0) r = read_pattern(cli, &m.pattern, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r == 0) r = read_confirmers(&m, err);
    if (r < 0) return r;
    m.items = calloc(RP_MARK_ITEMS_MAX, sizeof *m.items);
    if (m.items == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of subjects");
    bool from_stdin = rp_args_has(&cli->args, "stdin");
    rp_answers_init(&m.told, cli);
    rp_progress_begin(&m.progress, cli, "marking", from_stdin ? 0 : (int64_t)cli->args.n_words);
    r = from_stdin ? mark_lines(&m, err) : mark_words(&m, err);
    if (!m.broken) flush_batch(&m);
    rp_progress_clear(&m.progress);
    if (r < 0) return r;
    return rp_answers_end(&m.told, "marked");
}
