/* SPDX-License-Identifier: Apache-2.0 */
#include "core/journal.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/time.h"
#include "core/check/waits.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES ((size_t)16 << 10)

struct rp_journal rp_journal_of(const struct rp_command *command, struct rp_log *log, int64_t at_ms)
{
    return (struct rp_journal){ .log = log, .at_ms = at_ms, .actor = command->actor, .request = command->request };
}

static void write_line(const struct rp_journal *j, enum rp_log_level level, const char *event, json_t *fields)
{
    if (j->request != NULL) rp_json_set(fields, "request", json_string(j->request));
    rp_log_event(j->log, level, j->at_ms, event, fields);
}

void rp_journal_change(const struct rp_journal *j, const char *event, json_t *fields)
{
    rp_json_set(fields, "actor", rp_json_text(j->actor));
    write_line(j, RP_LOG_INFO, event, fields);
}

void rp_journal_orphan(const struct rp_journal *j, json_t *fields)
{
    rp_json_set(fields, "actor", rp_json_text(j->actor));
    write_line(j, RP_LOG_WARNING, RP_EVENT_ORPHAN, fields);
}

void rp_journal_reader_behind(const struct rp_journal *j, json_t *fields)
{
    write_line(j, RP_LOG_WARNING, "feed.reader_behind", fields);
}

static void add_error(json_t *fields, const struct rp_error *why)
{
    rp_json_set(fields, "code", json_string(rp_error_slug(why->code)));
    rp_json_set(fields, "error", rp_json_text(why->text));
}

/* ---- marks ---- */

void rp_journal_mark(const struct rp_journal *j, const struct rp_mark_item *item)
{
    const struct rp_mark_request *request = &item->request;
    const struct rp_mark_answer *answer = &item->answer;
    const char *key = request->key != NULL ? request->key : "";
    static const char *const events[] = { [RP_MARK_REFUSED] = "mark.refused",
                                          [RP_MARK_SAME] = "mark.same",
                                          [RP_MARK_EXTENDED] = "mark.extended",
                                          [RP_MARK_CREATED] = "mark.created",
                                          [RP_MARK_REPLACED] = "mark.created" };
    char id[RP_ID_TEXT];
    if (!rp_log_takes(j->log, answer->what == RP_MARK_REFUSED ? RP_LOG_WARNING : RP_LOG_INFO)) return;
    json_t *o = json_object();
    rp_json_set(o, "subject",
                item->store != NULL ? rp_subject_json(item->store->config->name, key) : rp_json_text(key));
    rp_json_set(o, "reason", rp_json_text(request->reason));
    rp_json_set(o, "actor", rp_json_text(j->actor));
    if (answer->what == RP_MARK_REFUSED) {
        add_error(o, &answer->error);
        if (answer->references > 0) rp_json_set(o, "references", json_integer(answer->references));
    } else {
        rp_json_set(o, "marked_at", rp_json_time(answer->marked_at_ms));
        rp_json_set(o, "due_at", rp_json_time(answer->due_at_ms));
        rp_json_set(o, "mark", json_string(rp_id_format(RP_ID_MARK, answer->mark_id, id)));
        rp_json_set(o, "size", json_integer(answer->size_bytes));
        if (answer->annotate_note[0] != 0) rp_json_set(o, "annotation_failed", rp_json_text(answer->annotate_note));
    }
    write_line(j, answer->what == RP_MARK_REFUSED ? RP_LOG_WARNING : RP_LOG_INFO, events[answer->what], o);
}

void rp_journal_refused(const struct rp_journal *j, const char *event, const char *subject, const char *reason,
                        const struct rp_error *why)
{
    json_t *o = json_object();
    rp_json_set(o, "subject", rp_json_text(subject));
    rp_json_set(o, "reason", rp_json_text(reason));
    rp_json_set(o, "actor", rp_json_text(j->actor));
    add_error(o, why);
    write_line(j, RP_LOG_WARNING, event, o);
}

/* `actor` is who acts now; who made the mark stands beside it. */
static json_t *about(const struct rp_journal *j, const char *store, const struct rp_mark *mark)
{
    json_t *o = rp_mark_json(mark, store);
    rp_json_set(o, "actor", rp_json_text(j->actor));
    rp_json_set(o, "marked_by", rp_json_text(mark->actor));
    return o;
}

/* The subject as it was asked for. */
static void write_not_found(const struct rp_journal *j, const struct rp_reprieve_item *item)
{
    char subject[RP_KEY_MAX + 80];
    const char *key = item->key != NULL ? item->key : "";
    snprintf(subject, sizeof subject, "%.*s", RP_KEY_MAX, key); /* it is no subject */
    if (item->store != NULL)
        snprintf(subject, sizeof subject, "%.64s:%.*s", item->store->config->name, RP_KEY_MAX, key);
    if (item->mark_id != 0) rp_id_format(RP_ID_MARK, item->mark_id, subject);
    if (item->file_id != 0) rp_id_format(RP_ID_FILE, item->file_id, subject);
    rp_journal_refused(j, "restore.refused", subject, "", &item->answer.error);
}

void rp_journal_restore(const struct rp_journal *j, const struct rp_reprieve_item *item)
{
    const struct rp_reprieve_answer *answer = &item->answer;
    bool refused = answer->what == RP_REPRIEVE_REFUSED;
    if (item->mark.id == 0) {
        write_not_found(j, item);
        return;
    }
    json_t *o = about(j, item->store != NULL ? item->store->config->name : "?", &item->mark);
    if (refused)
        add_error(o, &answer->error);
    else
        rp_json_set(o, "outcome", json_string(rp_reprieving_name(answer->what)));
    if (answer->agreed != NULL) rp_json_set(o, "deleted_already_by", rp_json_text(answer->agreed));
    const char *done = item->mark.file_id != 0 ? "file.restored" : "mark.reprieved";
    write_line(j, refused ? RP_LOG_WARNING : RP_LOG_INFO, refused ? "restore.refused" : done, o);
}

void rp_journal_decided(const struct rp_journal *j, const char *event, const char *store, const struct rp_mark *mark,
                        const char *as)
{
    json_t *o = rp_mark_json(mark, store);
    rp_json_set(o, "state", json_string(as));
    rp_journal_change(j, event, o);
}

/* ---- files ---- */

/* Uploads and deletes come by the thousand a second: their lines are written as text, not built as
 * trees. */
static void begin_line(struct rp_buf *b, const struct rp_journal *j, const char *store, const char *key,
                       const char *reason)
{
    char subject[RP_KEY_MAX + 80];
    snprintf(subject, sizeof subject, "%.64s:%.*s", store, RP_KEY_MAX, key);
    rp_buf_str(b, "\"subject\":");
    rp_json_quote(b, subject);
    rp_buf_str(b, ",\"reason\":");
    rp_json_quote(b, reason);
    rp_buf_str(b, ",\"actor\":");
    rp_json_quote(b, j->actor);
    if (j->request != NULL) rp_buf_fmt(b, ",\"request\":\"%s\"", j->request); /* letters that need no escape */
}

static void add_times(struct rp_buf *b, int64_t marked_at_ms, int64_t due_at_ms)
{
    char marked[RP_TIME_TEXT], due[RP_TIME_TEXT];
    rp_buf_fmt(b, ",\"marked_at\":\"%s\",\"due_at\":\"%s\"", rp_time_format(marked_at_ms, marked),
               rp_time_format(due_at_ms, due));
}

static void add_ids(struct rp_buf *b, int64_t mark_id, int64_t file_id, int64_t size_bytes)
{
    char file[RP_ID_TEXT], mark[RP_ID_TEXT];
    if (mark_id != 0) rp_buf_fmt(b, ",\"mark\":\"%s\"", rp_id_format(RP_ID_MARK, mark_id, mark));
    rp_buf_fmt(b, ",\"size\":%" PRId64 ",\"file\":\"%s\"", size_bytes, rp_id_format(RP_ID_FILE, file_id, file));
}

void rp_journal_born(const struct rp_journal *j, const struct rp_init *init)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(LINE_MAX_BYTES);
    if (!rp_log_takes(j->log, RP_LOG_INFO)) return;
    begin_line(&b, j, init->store->config->name, init->key,
               init->txn_id != 0 ? RP_REASON_ROLLBACK : RP_REASON_ABANDONED);
    add_times(&b, init->created_at_ms, init->due_at_ms);
    add_ids(&b, init->mark_id, init->file_id, init->size_bytes);
    rp_log_members(j->log, RP_LOG_INFO, j->at_ms, "file.pending", rp_buf_text(&b));
}

void rp_journal_file(const struct rp_journal *j, const char *event, const char *store,
                     const struct rp_file_answer *answer)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(LINE_MAX_BYTES);
    const struct rp_file *f = &answer->file;
    if (!rp_log_takes(j->log, RP_LOG_INFO)) return;
    begin_line(&b, j, store, f->key, answer->mark_reason);
    if (answer->due_at_ms != 0) add_times(&b, answer->marked_at_ms, answer->due_at_ms);
    add_ids(&b, answer->mark_id != 0 ? answer->mark_id : f->mark_id, f->id, f->size_bytes);
    rp_buf_fmt(&b, ",\"status\":\"%s\"", rp_status_name(f->status));
    rp_log_members(j->log, RP_LOG_INFO, j->at_ms, event, rp_buf_text(&b));
}

void rp_journal_marked(const struct rp_journal *j, const char *store, const struct rp_file_marked *marked)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf b = RP_BUF(LINE_MAX_BYTES);
    if (!rp_log_takes(j->log, RP_LOG_INFO)) return;
    begin_line(&b, j, store, marked->key, marked->reason);
    add_times(&b, marked->marked_at_ms, marked->due_at_ms);
    add_ids(&b, marked->mark_id, marked->file_id, marked->size_bytes);
    rp_log_members(j->log, RP_LOG_INFO, j->at_ms, "mark.created", rp_buf_text(&b));
}

/* ---- purges ---- */

static void write_skip(const struct rp_journal *j, const char *store, const struct rp_purge_item *item)
{
    json_t *o = about(j, store, item->mark);
    if (item->status == RP_ITEM_KEPT && item->references >= 0)
        rp_json_set(o, "references", json_integer(item->references));
    rp_json_set(o, "note", rp_json_text(item->note));
    if (item->move.next_at_ms != 0) rp_json_set(o, "next_at", rp_json_time(item->move.next_at_ms));
    write_line(j, RP_LOG_WARNING, "mark.skipped", o);
}

static void write_move(const struct rp_journal *j, const char *store, const struct rp_purge_item *item)
{
    const struct rp_move *move = &item->move;
    json_t *o = about(j, store, item->mark);
    if (!move->done) {
        rp_json_set(o, "note", json_string("another worker had it first"));
        write_line(j, RP_LOG_WARNING, "mark.skipped", o);
        return;
    }
    if (move->to == RP_PURGED || move->to == RP_REPRIEVED) {
        rp_json_set(o, "outcome", json_string(rp_end_name(move->outcome)));
        write_line(j, RP_LOG_INFO, move->to == RP_PURGED ? "mark.purged" : "mark.reprieved", o);
        return;
    }
    rp_json_set(o, "attempts", json_integer(move->attempts));
    rp_json_set(o, "error", rp_json_text(move->note));
    if (move->next_at_ms != 0) rp_json_set(o, "next_at", rp_json_time(move->next_at_ms));
    write_line(j, RP_LOG_ERROR, move->to == RP_DEAD ? "mark.dead" : "mark.failed", o);
}

void rp_journal_batch(const struct rp_journal *j, const struct rp_purge_batch *batch, const struct rp_run *run)
{
    const char *store_name = batch->store->config->name;
    char id[RP_ID_TEXT];
    if (!rp_log_takes(j->log, RP_LOG_ERROR)) return;
    for (size_t i = batch->from; i < batch->to; i++) {
        const struct rp_purge_item *item = &batch->items[i];
        if (rp_purge_is_skipped(item->status))
            write_skip(j, store_name, item);
        else
            write_move(j, store_name, item);
    }
    json_t *o = json_object();
    rp_json_set(o, "run", json_string(rp_id_format(RP_ID_RUN, run->id, id)));
    rp_json_set(o, "store", json_string(store_name));
    rp_json_set(o, "batch", json_integer((json_int_t)(batch->to - batch->from)));
    rp_json_set(o, "done", json_integer(run->figures.scanned));
    rp_json_set(o, "total", json_integer(run->total > run->figures.scanned ? run->total : run->figures.scanned));
    rp_json_set(o, "scanned", json_integer(run->figures.scanned));
    rp_json_set(o, "purged", json_integer(run->figures.purged));
    rp_json_set(o, "failed", json_integer(run->figures.failed));
    write_line(j, RP_LOG_INFO, "cleanup_progress", o);
}

/* ---- runs ---- */

static json_t *about_run(const struct rp_run *run)
{
    char id[RP_ID_TEXT];
    json_t *o = json_object();
    rp_json_set(o, "run", json_string(rp_id_format(RP_ID_RUN, run->id, id)));
    rp_json_set(o, "kind", json_string(run->kind));
    rp_json_set(o, "name", rp_json_text(run->name));
    rp_json_set(o, "worker", rp_json_text(run->worker->name));
    return o;
}

/* "cleanup_started" and the like: nothing but a sweep cleans up. */
static const char *stage_of(const char *kind, const char *stage, char out[40])
{
    snprintf(out, 40, "%s_%s", strcmp(kind, RP_RUN_SWEEP) == 0 ? "cleanup" : kind, stage);
    return out;
}

void rp_journal_started(const struct rp_journal *j, const struct rp_run *run)
{
    json_t *o = about_run(run);
    char stage[40];
    rp_json_set(o, "started_at", rp_json_time(run->started_at_ms));
    write_line(j, RP_LOG_INFO, stage_of(run->kind, "started", stage), o);
}

static void write_completed(const struct rp_journal *j, const struct rp_run *run, const char *outcome)
{
    RP_CLEANUP(rp_json_decrefp) json_t *record = rp_run_json(run, outcome, false, j->at_ms);
    json_t *o = about_run(run), *errors = json_object_get(record, "errors"), *gone = json_object_get(record, "let_go");
    json_t *repaired = json_object_get(record, "repaired");
    char stage[40];
    rp_json_set(o, "outcome", json_string(outcome));
    rp_json_set(o, "counts", json_incref(json_object_get(record, "counts")));
    if (gone != NULL) rp_json_set(o, "let_go", json_incref(gone));
    if (repaired != NULL) rp_json_set(o, "repaired", json_incref(repaired));
    rp_json_set(o, "duration_ms", json_integer(j->at_ms - run->started_at_ms));
    if (json_array_size(errors) > 0) rp_json_set(o, "errors", json_incref(errors));
    write_line(j, json_array_size(errors) > 0 ? RP_LOG_WARNING : RP_LOG_INFO, stage_of(run->kind, "completed", stage),
               o);
}

void rp_journal_failed(const struct rp_journal *j, const char *kind, const struct rp_run *run,
                       const struct rp_error *why)
{
    json_t *o = run != NULL ? about_run(run) : json_object();
    char stage[40];
    rp_json_set(o, "kind", json_string(kind));
    rp_json_set(o, "actor", rp_json_text(j->actor));
    add_error(o, why);
    write_line(j, RP_LOG_ERROR, stage_of(kind, "failed", stage), o);
}

void rp_journal_ended(const struct rp_journal *j, const struct rp_run *run, const char *outcome, int code)
{
    struct rp_error why = { 0 };
    if (strcmp(outcome, "failed") != 0) {
        write_completed(j, run, outcome);
        return;
    }
    rp_error_set(&why, code < 0 ? code : RP_EFAILED, "%s",
                 run->figures.n_errors > 0 ? run->figures.errors[0] : "the lock was taken over by another worker");
    rp_journal_failed(j, run->kind, run, &why);
}

void rp_journal_skipped(const struct rp_journal *j, const char *kind, const char *name, const char *locked_by,
                        int64_t locked_since_ms)
{
    json_t *o = json_object();
    rp_json_set(o, "kind", json_string(kind));
    rp_json_set(o, "name", rp_json_text(name));
    rp_json_set(o, "locked_by", rp_json_text(locked_by));
    rp_json_set(o, "running_since", rp_json_time(locked_since_ms));
    write_line(j, RP_LOG_WARNING, "cleanup_skipped", o);
}

void rp_journal_left_out(const struct rp_journal *j, const char *store, int64_t due, const struct rp_error *why)
{
    json_t *o = json_object();
    rp_json_set(o, "store", rp_json_text(store));
    rp_json_set(o, "due", json_integer(due));
    add_error(o, why);
    write_line(j, RP_LOG_WARNING, "store.left_out", o);
}

void rp_journal_waits(const struct rp_journal *j, const struct rp_whom *whom, int64_t left_ms,
                      const struct rp_error *why)
{
    json_t *o = json_object();
    char event[40];
    snprintf(event, sizeof event, "%s.%s", whom->kind, why != NULL ? "left_alone" : "answers");
    rp_json_set(o, whom->kind, rp_json_text(whom->name));
    if (why != NULL) {
        add_error(o, why);
        rp_json_set(o, "asked_again_at", rp_json_time(j->at_ms + left_ms));
    }
    write_line(j, why != NULL ? RP_LOG_WARNING : RP_LOG_INFO, event, o);
}
