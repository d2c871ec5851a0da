/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mark.c - `mark`: subjects are taken 1,000 at a time, each store's share marked in one transaction, and answered in
 * the order in which they were given. Memory is that of one batch, however long the list. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/answers.h"
#include "cli/lines.h"
#include "cli/progress.h"
#include "lib/answer.h"
#include "core/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BATCH_ARENA_MAX ((size_t)16 << 20)

struct item {
    const char *text;
    struct rp_subject subject; /* store NULL: it is none, `answer.error` says why */
    struct rp_mark_answer answer;
    bool asked;
};

struct marking {
    struct rp_cli *cli;
    struct rp_mark_request pattern; /* all but the key */
    struct rp_arena arena;
    struct item *items;
    size_t n;
    struct rp_mark_request *requests; /* of one store's share */
    struct rp_mark_answer *answers;
    size_t *from; /* which item each is */
    struct rp_answers told;
    struct rp_progress progress;
    bool broken; /* a whole batch failed: what follows would too */
};

/* ---- one answer ---- */

static json_t *answer_json(const struct marking *m, const struct item *item)
{
    const struct rp_subject *subject = &item->subject;
    if (subject->store != NULL)
        return rp_mark_answer_json(&item->answer, subject->store->config->name, subject->key, m->pattern.reason);
    json_t *o = json_object();
    rp_json_set(o, "subject", rp_json_text(item->text));
    rp_json_set(o, "outcome", json_string("refused"));
    rp_json_set(o, "error", rp_error_json(&item->answer.error));
    return o;
}

static void log_answer(const struct marking *m, const struct item *item)
{
    const struct rp_session *s = &m->cli->session;
    struct rp_journal j = { .log = s->log, .at_ms = rp_session_now_ms(s), .actor = s->actor };
    struct rp_mark_request request = m->pattern;
    request.key = item->subject.key;
    if (item->subject.store != NULL)
        rp_journal_mark(&j, item->subject.store->config->name, &request, &item->answer);
    else
        rp_journal_refused(&j, "mark.refused", item->text, m->pattern.reason, &item->answer.error);
}

static void tell(struct marking *m, const struct item *item)
{
    const struct rp_mark_answer *a = &item->answer;
    char subject[RP_SHOWN_MAX], due[RP_WHEN_TEXT], id[RP_ID_TEXT];
    log_answer(m, item);
    if (m->cli->json) rp_emit(m->cli, answer_json(m, item));
    if (a->what == RP_MARK_REFUSED) {
        rp_answers_refused(&m->told, &a->error);
        return;
    }
    rp_answers_done(&m->told, "%s  %s, due %s  %s\n",
                    rp_show_subject(item->subject.store->config->name, item->subject.key, subject),
                    rp_marking_name(a->what), rp_show_when(a->due_at_ms, rp_session_now_ms(&m->cli->session), due),
                    rp_id_format(RP_ID_MARK, a->mark_id, id));
    if (a->annotate_note[0] != 0) rp_warn("%s: marked, but not annotated: %s", subject, a->annotate_note);
}

/* ---- one batch ---- */

static size_t collect_share(struct marking *m, const struct rp_store *store)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->items[i].subject.store != store || m->items[i].subject.file_id != 0 || m->items[i].asked) continue;
        m->items[i].asked = true;
        m->requests[n] = m->pattern;
        m->requests[n].key = m->items[i].subject.key;
        m->from[n++] = i;
    }
    return n;
}

static void mark_share(struct marking *m, struct rp_store *store)
{
    struct rp_session *s = &m->cli->session;
    struct rp_error err = { 0 };
    size_t n = collect_share(m, store);
    bool any = false;
    int r = rp_mark_many(s->catalog, store, m->requests, n, s->actor, m->answers, &err);
    for (size_t i = 0; i < n; i++) {
        if (r < 0) m->answers[i] = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .error = err };
        m->items[m->from[i]].answer = m->answers[i];
        any |= m->answers[i].what != RP_MARK_REFUSED;
    }
    if (r < 0) m->broken = true;
    if (any) rp_session_committed(s, store);
}

static void mark_file(struct marking *m, struct item *item)
{
    struct rp_error err = { 0 };
    item->asked = true;
    int r = rp_session_mark_file(&m->cli->session, item->subject.file_id, &m->pattern, &item->subject.store,
                                 &item->answer, &err);
    if (r < 0) item->answer = (struct rp_mark_answer){ .what = RP_MARK_REFUSED, .error = err };
    if (item->answer.what != RP_MARK_REFUSED) rp_session_committed(&m->cli->session, item->subject.store);
}

static void flush_batch(struct marking *m)
{
    for (size_t i = 0; i < m->n; i++) {
        struct item *item = &m->items[i];
        if (item->subject.store == NULL || item->asked) continue;
        if (item->subject.file_id != 0)
            mark_file(m, item);
        else
            mark_share(m, item->subject.store);
    }
    rp_progress_clear(&m->progress);
    for (size_t i = 0; i < m->n; i++)
        tell(m, &m->items[i]);
    rp_progress_at(&m->progress, m->told.done + m->told.refused);
    rp_log_flush(m->cli->session.log);
    rp_arena_reset(&m->arena);
    m->n = 0;
}

/* `why` NULL: a text that may be a subject; else a line that is none, and why. */
static int add(struct marking *m, const char *text, const struct rp_error *why, struct rp_error *err)
{
    struct item *item = &m->items[m->n];
    *item = (struct item){ .text = rp_arena_strdup(&m->arena, text) };
    item->answer.what = RP_MARK_REFUSED;
    if (item->text == NULL) return rp_error_set(err, RP_ENOMEM, "no memory for a batch of subjects");
    if (why != NULL)
        item->answer.error = *why;
    else if (rp_cli_subject(m->cli, item->text, &m->arena, &item->subject, &item->answer.error) < 0)
        item->subject.store = NULL;
    if (++m->n == RP_MARK_BATCH_MAX) flush_batch(m);
    return 0;
}

/* ---- the whole list ---- */

static int mark_words(struct marking *m, struct rp_error *err)
{
    const struct rp_args *args = &m->cli->args;
    int r = 0;
    for (size_t i = 0; i < args->n_words && r == 0 && !m->broken; i++)
        r = add(m, args->words[i], NULL, err);
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

static int check_use(const struct rp_cli *cli, struct rp_error *err)
{
    const struct rp_args *args = &cli->args;
    bool from_stdin = rp_args_has(args, "stdin");
    if (rp_args_has(args, "confirm")) {
        rp_error_set(err, RP_ECONFIG, "no confirmation service '%.64s' is configured", rp_args_text(args, "confirm"));
        return rp_error_hint(err, "nothing was marked; leave --confirm out");
    }
    if (from_stdin && args->n_words > 0)
        return rp_error_set(err, RP_EINVAL, "--stdin reads the subjects: '%.64s' cannot be given beside it",
                            args->words[0]);
    if (rp_args_has(args, "null") && !from_stdin) return rp_error_set(err, RP_EINVAL, "-0 goes with --stdin");
    if (from_stdin || args->n_words > 0) return 0;
    rp_error_set(err, RP_EINVAL, "mark what?");
    return rp_error_hint(err, "reprieve mark STORE:KEY, or a list with --stdin");
}

static int marking_init(struct marking *m, struct rp_error *err)
{
    m->arena = RP_ARENA(BATCH_ARENA_MAX);
    m->items = calloc(RP_MARK_BATCH_MAX, sizeof *m->items);
    m->requests = calloc(RP_MARK_BATCH_MAX, sizeof *m->requests);
    m->answers = calloc(RP_MARK_BATCH_MAX, sizeof *m->answers);
    m->from = calloc(RP_MARK_BATCH_MAX, sizeof *m->from);
    if (m->items == NULL || m->requests == NULL || m->answers == NULL || m->from == NULL)
        return rp_error_set(err, RP_ENOMEM, "no memory for a batch of subjects");
    return 0;
}

static void marking_done(struct marking *m)
{
    rp_arena_done(&m->arena);
    free(m->items);
    free(m->requests);
    free(m->answers);
    free(m->from);
}

int rp_cmd_mark(struct rp_cli *cli, struct rp_error *err)
{
    RP_CLEANUP(marking_done) struct marking m = { .cli = cli };
    int r = check_use(cli, err);
    if (r == 0) r = read_pattern(cli, &m.pattern, err);
    if (r == 0) r = marking_init(&m, err);
    if (r == 0) r = rp_cli_open(cli, err);
    if (r < 0) return r;
    bool from_stdin = rp_args_has(&cli->args, "stdin");
    rp_answers_init(&m.told, cli);
    rp_progress_begin(&m.progress, cli, "marking", from_stdin ? 0 : (int64_t)cli->args.n_words);
    r = from_stdin ? mark_lines(&m, err) : mark_words(&m, err);
    if (m.n > 0 && !m.broken) flush_batch(&m);
    rp_progress_clear(&m.progress);
    if (r < 0) return r;
    return rp_answers_end(&m.told, "marked");
}
